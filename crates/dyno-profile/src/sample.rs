//! Profiles by perf's events: on the CPU by samples, off it by records of switches where BPF is refused.

mod hints;
pub(crate) mod options;
pub(crate) mod recorder;
pub(crate) mod session;
pub(crate) mod short;
pub(crate) mod switches;
mod watched;
