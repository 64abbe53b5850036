//! Who is watched, by what, and how.

use std::time::Duration;

use dyno_sys::{Pid, Tid};

/// Who is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A process with all its threads, its living descendants, and what they start.
    Process(Pid),
    /// Several processes, each as one alone; the first names the profile. At least one.
    Processes(Vec<Pid>),
    /// One thread.
    Thread(Tid),
    /// Everybody.
    Machine,
    /// Everybody, on these CPUs only. At least one.
    Cpus(Vec<usize>),
    /// A child that was held before it execs; sampling begins with its program.
    Held(Pid),
}

impl Target {
    /// The processes that are watched by name, the first first; a thread's is not among them.
    pub(crate) fn processes(&self) -> &[Pid] {
        match self {
            Target::Process(pid) | Target::Held(pid) => std::slice::from_ref(pid),
            Target::Processes(pids) => pids,
            Target::Thread(_) | Target::Machine | Target::Cpus(_) => &[],
        }
    }
}

/// What makes a sample.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Event {
    /// The kernel's timer: time on a CPU.
    #[default]
    CpuClock,
    /// The processor's cycle counter, where there is one.
    Cycles,
    /// Every switch of the scheduler: what comes of it is time off the CPU.
    Switches,
}

impl Event {
    /// As perf calls it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Event::CpuClock => "cpu-clock",
            Event::Cycles => "cycles",
            Event::Switches => "context-switches",
        }
    }
}

/// How stacks are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CallGraph {
    /// Module by module: by unwind tables where there are any, by frame pointers elsewhere.
    #[default]
    Auto,
    /// By unwind tables from a copied stack.
    Dwarf,
    /// By frame pointers, in the kernel.
    FramePointers,
}

/// How it is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// What makes a sample.
    pub event: Event,
    /// Samples per second of CPU time.
    pub frequency_hz: u64,
    /// How stacks are read.
    pub call_graph: CallGraph,
    /// Bytes copied of each stack, where it is copied; at most [`dyno_sys::perf::STACK_BYTES_MAX`].
    pub stack_bytes: u32,
    /// How long; until the target ends or sampling is stopped when `None`.
    pub duration: Option<Duration>,
    /// Shorter times off the CPU are not kept by stack; of no meaning for other events.
    pub min: Duration,
}

impl Options {
    /// Not a round number, so that sampling does not keep step with what a program does every millisecond.
    pub const FREQUENCY_HZ: u64 = 999;
    /// Twice what perf copies: one in a hundred of a server's stacks is deeper than 8 KiB.
    pub const STACK_BYTES: u32 = 16 << 10;
}

impl Default for Options {
    fn default() -> Options {
        Options {
            event: Event::default(),
            frequency_hz: Options::FREQUENCY_HZ,
            call_graph: CallGraph::default(),
            stack_bytes: Options::STACK_BYTES,
            duration: None,
            min: Duration::ZERO,
        }
    }
}
