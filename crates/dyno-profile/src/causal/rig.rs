//! What an experiment needs of a machine: one window at a time, with or without a virtual speed-up, and its raw counts.
//!
//! The experiment (`run`) knows a target through [`Rig`] alone: over a live process, or over a simulated one whose truth
//! is known. A rig never interprets what it counts, and an experiment never touches a process.

use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::Error;

/// Something whose speed-up is tried.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Its name as it is shown: a function, `FILE:LINE`, `wait:disk`.
    pub name: String,
    /// Which code, or which waits.
    pub place: Place,
    /// How much of a stack is looked at.
    pub reach: Reach,
}

/// Either code, or a kind of wait.
#[derive(Debug, Clone, PartialEq)]
pub enum Place {
    /// Code.
    Code {
        /// Addresses in the running target. A caller is looked up one byte before its return address.
        ranges: Vec<Range<u64>>,
        /// Where a call begins, for slowing it down; none for lines and inlined copies.
        entries: Vec<Entry>,
    },
    /// Waits.
    Wait(WaitKind),
}

/// A place where a probe may be set.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Entry {
    /// The file, by a path that this process can open: `/proc/PID/root/…`, or `/proc/PID/map_files/…`.
    pub image: PathBuf,
    /// The offset in it of the instruction.
    pub offset: u64,
}

/// How much of a stack is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reach {
    /// The sampled instruction itself.
    Own,
    /// Anywhere on the user stack, by frame pointers.
    Inclusive,
}

/// What a thread waits for.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// A disk or a file system.
    Disk,
    /// A lock, a condition, a join.
    Lock,
    /// A socket or a pipe.
    Network,
    /// One file, by its path.
    File(String),
    /// Anything.
    Any,
}

/// A visit of the progress point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// When, by the monotonic clock.
    pub at_ns: u64,
    /// Delay that the visiting thread had paid, was credited with, or had caused by then: how far its own time is shifted
    /// against the wall's.
    pub inserted_ns: u64,
}

/// The raw counts of one window.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Window {
    /// How long was counted.
    pub length_ns: u64,
    /// Delay for each hit.
    pub delay_ns: u64,
    /// Visits of the progress point.
    pub visits: u64,
    /// The first visit.
    pub first: Moment,
    /// The last visit.
    pub last: Moment,
    /// Mean number of requests begun and not ended, where progress is a pair.
    pub in_flight: Option<f64>,
    /// Samples of the target.
    pub samples: u64,
    /// Samples of participants, and of threads that pause.
    pub beside: u64,
    /// Samples of processes that take no part, the kernel's own threads aside.
    pub foreign: u64,
    /// Ticks of idle CPUs.
    pub idle: u64,
    /// Samples in the site.
    pub hits: u64,
    /// Pauses that were made.
    pub paid_ns: u64,
    /// Pauses that were still due at the end, summed over the threads that ran in the window. What a thread that sleeps
    /// would be credited with on waking is not due.
    pub owed_ns: u64,
    /// Threads of the target, and of those who take part, that ran in the window.
    pub threads: u64,
    /// Pauses cut off at their longest.
    pub capped: u64,
    /// Pauses that could not be scheduled.
    pub missed: u64,
    /// Whether the kernel ended the experiment before its window was over, because nobody had spoken to it for too long:
    /// from then on nobody paused and nothing was sampled.
    pub expired: bool,
    /// Wake-ups of threads of the target by each other.
    pub inner_wakes: u64,
    /// Wake-ups from outside: time, disks, other processes.
    pub outer_wakes: u64,
    /// Those of the outer wake-ups that ended a wait for a socket or a pipe: something that a client, or another process
    /// that takes no part, sent. Zero where that is not counted.
    pub remote_wakes: u64,
    /// Switches onto a core right after another thread of the target.
    pub runnable_waits: u64,
    /// Time that the hypervisor took, of a CPU in the mean.
    pub steal_ns: u64,
    /// Threads and processes that took no part because the tables were full.
    pub lost: u64,
    /// CPU time of the target.
    pub target_cpu_ns: u64,
}

/// What is done to the target during a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Nothing: everything is attached, nobody is paused.
    Nothing,
    /// Others pause whenever a sample lies in the site.
    SpeedUp {
        /// Index of the site.
        site: usize,
        /// The pause as a share of the sampling period.
        percent: u32,
    },
    /// Each call of the site is made longer, really.
    SlowDown {
        /// Index of the site.
        site: usize,
        /// By so much.
        ns: u64,
    },
}

/// What the rig's programs in the kernel took for a while, with everything attached and nobody delayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Time of all CPUs of the machine meanwhile.
    pub machine_ns: u64,
    /// How long it was by the clock.
    pub length_ns: u64,
    /// What each looks at, how long it ran on all CPUs together, and how often.
    pub ran: Vec<(&'static str, u64, u64)>,
}

/// How threads are paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// On their way back to user mode, preemptible.
    TaskWork,
    /// Inside the sample's program, with interrupts off, at most a millisecond at a time.
    SpinInSample,
}

/// How long a deed is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before its window opens, at least: until the target has come to rest.
    pub settle: Duration,
    /// While it is counted.
    pub length: Duration,
}

impl Span {
    /// Both.
    #[must_use]
    pub fn whole(self) -> Duration {
        self.settle + self.length
    }
}

/// A target under experiment.
pub trait Rig {
    /// Runs one window: settles, counts, cools off. With [`Deed::Nothing`] all hooks are attached and nobody is delayed.
    ///
    /// # Errors
    /// [`Error::Ended`] when the target is gone.
    fn window(&mut self, deed: &Deed, span: Span) -> Result<Window, Error>;

    /// A window with nothing attached but the progress counter: what watching costs is told from it.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn detached(&mut self, span: Span) -> Result<Window, Error>;

    /// What its programs in the kernel take, watched for `length`; `None` where nobody tells.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn hooks(&mut self, _length: Duration) -> Result<Option<Hooks>, Error> {
        Ok(None)
    }

    /// Time between samples of one CPU.
    fn period_ns(&self) -> u64;

    /// Samples come twice as often from here on and pauses are half as long, where that costs the target little enough.
    fn sample_finely(&mut self) {}

    /// How threads are paused.
    fn pause(&self) -> Pause;

    /// Calls of a site per second; `None` where its calls cannot be counted.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error>;
}
