//! What the causal probe counted, as values: visits of all CPUs, the counters, what threads owe.
//!
//! The probe reads them out of the kernel's maps; the profiler's rig makes windows of them.

use super::layout::RawPoint;
use super::word;

/// Visits in a window, of all CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visits {
    /// How many.
    pub count: u64,
    /// The first.
    pub first: Visit,
    /// The last.
    pub last: Visit,
    /// From the experiment's start to each, summed.
    pub since_start_ns: u64,
    /// Inserted delay that its thread had paid, or was credited with, at each, summed.
    pub positions_ns: u64,
    /// And what it owed, summed.
    pub behind_ns: u64,
    /// Ends of what another thread has begun.
    pub carried: u64,
}

/// One visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visit {
    /// When.
    pub at_ns: u64,
    /// Inserted delay that its thread had paid, or was credited with.
    pub position_ns: u64,
    /// What it still owed.
    pub behind_ns: u64,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// What is counted beside visits. All of it only grows: two readings make a window.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64),* }

        impl Counts {
            pub(super) fn read(mut next: impl FnMut() -> u64) -> Counts {
                Counts { $($name: next()),* }
            }

            /// What came since `before`.
            pub fn since(&self, before: &Counts) -> Counts {
                $(debug_assert!(self.$name >= before.$name, concat!(stringify!($name), " only grows"));)*
                Counts { $($name: self.$name.saturating_sub(before.$name)),* }
            }
        }
    };
}

// In the order of `struct control`, from its counters on.
counts! {
    /// Samples of the target.
    samples
    /// Samples of participants.
    beside
    /// Samples of processes that take no part; the kernel's own threads are none.
    foreign
    /// Samples of idle CPUs.
    idle
    /// Samples of threads while they paused.
    pausing
    /// Hits: samples in the site, waits that were made shorter, calls that were slowed down.
    hits
    /// Pauses.
    pauses
    /// How long they should have been.
    asked_ns
    /// How long they were.
    paid_ns
    /// From samples to the starts of their pauses.
    lag_ns
    /// Pauses that were cut at their longest.
    capped
    /// Pauses that could not be scheduled.
    missed
    /// Wake-ups of the target by threads that take part.
    inner_wakes
    /// Wake-ups of the target by time, disks and processes that take no part.
    outer_wakes
    /// Those of them that ended a wait for a socket or a pipe.
    remote_wakes
    /// Wake-ups of the target by participants, which are among the inner ones.
    partner_wakes
    /// Switches onto a core after a sibling that had it for a while.
    runnable_waits
    /// Time that threads of the target waited for a core which strangers had, from a tenth of a millisecond on.
    queued_ns
    /// How often the deadline was met.
    expired
    /// How often the target began another program.
    replaced
    /// Threads and processes that the tables had no room for.
    lost
    /// Samples of any kind, the kernel's own threads and ending ones among them.
    ticks
    /// Samples of threads of the target that were met in a loop that waits in this experiment.
    of_spinners
    /// Those of them that lie in one.
    spun
    /// And the first ones behind it.
    spins
    /// How long the steps took that samples of the target do to see the pace of the CPU that it has.
    steps_ns
    /// How often they were done and not interrupted.
    stepped
}

const _: () = assert!(size_of::<Counts>() == 8 * (word::IN_FLIGHT - word::COUNTERS), "all counters are read");

/// What threads owe now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owed {
    /// Threads of the target that were seen in this experiment.
    pub threads: u64,
    /// What those of them that run or could run have not paid yet.
    pub ns: u64,
}

pub(super) fn merged<'r>(rows: impl Iterator<Item = &'r RawPoint>) -> Visits {
    let mut all = Visits::default();
    for row in rows {
        let visit = |at_ns, position_ns, behind_ns| Visit { at_ns, position_ns, behind_ns };
        let first = visit(row.first_ns, row.first_at_ns, row.first_behind_ns);
        let last = visit(row.last_ns, row.last_at_ns, row.last_behind_ns);
        if all.count == 0 || first.at_ns < all.first.at_ns {
            all.first = first;
        }
        if all.count == 0 || last.at_ns > all.last.at_ns {
            all.last = last;
        }
        all.count += row.count;
        all.since_start_ns += row.since_start_ns;
        all.positions_ns += row.positions_ns;
        all.behind_ns += row.behind_ns;
        all.carried += row.carried;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_of_all_cpus_begin_at_the_earliest_and_end_at_the_latest() {
        let row = |first_ns, last_ns, count| RawPoint {
            window: 3,
            count,
            first_ns,
            first_at_ns: first_ns / 10,
            first_behind_ns: 1,
            last_ns,
            last_at_ns: last_ns / 10,
            last_behind_ns: 2,
            since_start_ns: 5,
            positions_ns: 4,
            behind_ns: 3,
            carried: 1,
        };
        let all = merged([row(100, 400, 4), row(50, 300, 2)].iter());
        assert_eq!((all.count, all.since_start_ns), (6, 10));
        assert_eq!((all.positions_ns, all.behind_ns, all.carried), (8, 6, 2));
        assert_eq!(all.first, Visit { at_ns: 50, position_ns: 5, behind_ns: 1 });
        assert_eq!(all.last, Visit { at_ns: 400, position_ns: 40, behind_ns: 2 });
        assert_eq!(merged([].iter()), Visits::default());
    }

    #[test]
    fn counts_are_read_as_differences() {
        let mut number = 0;
        let before = Counts::read(|| {
            number += 1;
            number
        });
        assert_eq!((before.samples, before.stepped), (1, 27));
        let after = Counts { hits: before.hits + 7, ..before };
        assert_eq!(after.since(&before), Counts { hits: 7, ..Counts::default() });
    }

    #[test]
    #[should_panic(expected = "hits only grows")]
    fn readings_are_never_taken_in_the_wrong_order() {
        let later = Counts { hits: 7, ..Counts::default() };
        let _ = Counts::default().since(&later);
    }
}
