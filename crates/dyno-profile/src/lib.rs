//! Where the time of a program goes, on and off the CPU: events of the kernel in, the record of a profile out.
//!
//! Called by the binary and by diagnosis. It prints nothing, draws nothing and judges nothing.

pub mod locks;
pub mod offcpu;
pub mod spin;
