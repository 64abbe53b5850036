//! Stacks: what a thread stood in, counted while it is watched, named and written down at the end.
//!
//! ```text
//! addresses → raw (kernel, or a place in a file) → names (functions, once for each) → rows (the tables of a record)
//! ```
//! Samples on the CPU and perf's switches are counted here (`fold`); where BPF watches, the kernel has counted already and
//! its sums go straight into rows.

pub(crate) mod fold;
pub(crate) mod names;
pub(crate) mod raw;
pub(crate) mod rows;
pub(crate) mod table;
pub(crate) mod wait;
