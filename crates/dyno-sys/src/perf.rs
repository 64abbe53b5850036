//! Perf events: a clock that counts a process's CPU time, and sampling: what runs, some hundred times a second, with its
//! stack, how often an instruction is passed, and what a sample's interrupt takes.
//!
//! The lab opens them; the target pays for its own interrupts. Everything is held by descriptors: when they are closed,
//! also by `kill -9`, nothing is left. What a record means is written here; what it says of a program is the profiler's.

mod attributes;
mod clock;
mod clocks;
mod entries;
mod hot;
mod interrupt;
mod record;
mod ring;
mod sampling;

pub use clock::TaskClock;
pub(crate) use clocks::{SampleClock, clocks_of_a_cpu, periods};
pub use entries::{PassCounter, busiest, urgently};
pub use hot::{HotSample, HotSampler};
pub use interrupt::interrupt_ns;
pub use record::{
    Comm, Counted, Layout, Lost, Mmap, Mode, Record, Regs, Sample, Switch, Task, UserRegs, Way, Words,
    records,
};
pub use ring::{Ring, page_bytes, wait};
pub use sampling::{Clock, Inherit, Kernel, STACK_BYTES_MAX, Sampling, SamplingEvent, Stacks, Start, Whom};
