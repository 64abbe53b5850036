//! The raw counts of one window, as a rig counted them and without interpretation.

/// A visit of the progress point.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moment {
    /// When, by the monotonic clock.
    pub at_ns: u64,
    /// Delay that the visiting thread had paid, was credited with, or had caused by then: how far its own time is shifted
    /// against the wall's.
    pub inserted_ns: u64,
}

/// Begins, or ends, of a pair.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Marks {
    /// How many there were.
    pub count: u64,
    /// From the experiment's start to each, by the clock, summed.
    pub since_start_ns: u64,
    /// What the thread that came by was shifted by then ([`Moment::inserted_ns`]), summed.
    pub inserted_ns: u64,
    /// Pauses that it still owed then, summed.
    pub owed_ns: u64,
}

/// Units of work that begin at one place and end at another, as sums: no number is carried along.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Pair {
    /// When the experiment began, by the monotonic clock.
    pub start_ns: u64,
    /// When the window opened.
    pub opened_ns: u64,
    /// When it closed.
    pub closed_ns: u64,
    /// Begun and not ended when it opened.
    pub in_flight: i64,
    /// What began in it.
    pub begins: Marks,
    /// What ended in it.
    pub ends: Marks,
    /// Ends in another thread than the begin.
    pub carried: u64,
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
    /// Pauses that the thread of the first visit still owed then.
    pub first_owed_ns: u64,
    /// The same of the last visit.
    pub last_owed_ns: u64,
    /// Begins and ends, where progress is a pair.
    pub pair: Option<Pair>,
    /// Samples of any kind.
    pub ticks: u64,
    /// How many there would have been if the kernel had dropped none; zero where that is not known.
    pub ticks_due: u64,
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
    /// Whether the kernel's watchdog ended the experiment before its window was over, because the profiler got no CPU:
    /// from then on no thread paused and nothing was sampled.
    pub expired: bool,
    /// Wake-ups of threads of the target by each other.
    pub inner_wakes: u64,
    /// Those of them by participants: clients on this machine that take part.
    pub partner_wakes: u64,
    /// Wake-ups from outside: time, disks, other processes.
    pub outer_wakes: u64,
    /// Those of the outer wake-ups that ended a wait for a socket or a pipe: something that a client, or another process
    /// that takes no part, sent. Zero where that is not counted.
    pub remote_wakes: u64,
    /// Switches onto a core right after another thread of the target.
    pub runnable_waits: u64,
    /// Time that threads of the target waited for a core, no sibling being there.
    pub queued_ns: u64,
    /// Places of code and how many samples of the target fell there, where nothing was made faster or slower; all of the kernel is
    /// one of them ([`dyno_sys::bpf::causal::IN_KERNEL`]).
    pub places: Vec<(u64, u64)>,
    /// How long the CPU that a sample found the target on took for always the same steps, in the mean: the machine's own pace.
    /// Zero where that is not known.
    pub steps_ns: f64,
    /// Time that the hypervisor took, of a CPU in the mean.
    pub steal_ns: u64,
    /// Threads and processes that took no part because the tables were full.
    pub lost: u64,
    /// CPU time of the target.
    pub target_cpu_ns: u64,
    /// Samples of threads that were met in a loop that waits.
    pub of_spinners: u64,
    /// Those of them that lie in one: their threads wait, and owe nothing.
    pub spun: u64,
    /// And the first ones behind it: a wait was over.
    pub spins: u64,
}
