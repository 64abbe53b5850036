//! Off the CPU: who waits, for what, how long, and who ends the wait. Processes in, the record of a profile out.
//!
//! The binary and diagnosis call [`record`]. The kernel adds up (`dyno_sys::bpf::offcpu`), `watch` listens while it does,
//! `profile` writes down what came out. Where BPF is refused perf's records of switches take its place (`sample`), which
//! know less. When this ends, in whatever way, nothing of it is left in the kernel.

mod code;
mod objects;
mod options;
mod profile;
mod recorder;
mod seen;
mod user_stacks;
mod waiting;
mod watch;

pub use options::{By, Calls, Error, MIN_DEFAULT, Options, SPANS_MAX, SWITCHES_BY_BPF, Timeline};
pub use recorder::{Recorder, record};
