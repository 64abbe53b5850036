//! Profiles: where the time of a program goes, on and off the CPU; how that is laid out as pictures and tables, compared,
//! and read and written in the formats of others.
//!
//! The binary and diagnosis call this. It prints nothing, draws nothing and judges nothing; only the recorders ask the
//! kernel.

pub mod diff;
pub mod export;
pub mod import;
pub mod layout;
pub mod locks;
pub mod name;
pub mod offcpu;
pub mod spin;
pub mod top;
pub mod tree;
