//! Stacks: what a thread stood in, counted while it is watched, named and written down at the end.
//!
//! What samples on the CPU, and what waits off it, both use it.

pub(crate) mod fold;
pub(crate) mod wait;
