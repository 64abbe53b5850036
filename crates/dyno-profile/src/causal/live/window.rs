//! The arithmetic of one window: what the probe and /proc count, read before and after, as the rig's raw counts.
//!
//! The rig calls it around each window. It attaches nothing and waits for nothing.

use std::collections::BTreeMap;

use dyno_sys::bpf::BpfError;
use dyno_sys::bpf::causal::{Counted, Counts, Probe, Visit, Visits};
use dyno_sys::clock::{mono_ns, process_cpu_ns};
use dyno_sys::{Pid, affinity, proc};

use super::Children;
use crate::causal::rig::window::{Marks, Moment, Pair, Window};

/// Counters; what happened in a window is the difference of two readings.
pub(super) struct Sums {
    pub(super) at_ns: u64,
    counts: Counts,
    cpu: BTreeMap<Pid, Used>,
    steal_ns: u64,
    pub(super) in_flight: i64,
}

impl Sums {
    /// `children`: whether all that these processes begin are the target's.
    pub(super) fn read(probe: &Probe, target: &[Pid], children: Children) -> Sums {
        let cpu = target.iter().filter_map(|pid| Some((*pid, Used::by(*pid, children)?))).collect();
        let cpus = proc::cpu_stat();
        let steal_ns = cpus.iter().map(|cpu| cpu.steal).sum::<u64>() / cpus.len().max(1) as u64;
        let (counts, in_flight) = (probe.counts(), probe.in_flight());
        Sums { at_ns: mono_ns(), counts, cpu, steal_ns, in_flight }
    }
}

/// CPU time of a process up to a moment.
#[derive(Debug, Clone, Copy)]
struct Used {
    own_ns: u64,
    /// Of children that ended and were waited for, counted in ticks.
    children_ns: u64,
}

/// A tick is 10 ms to programs on every Linux of today.
const TICK_NS: u64 = 10_000_000;

impl Used {
    fn by(pid: Pid, children: Children) -> Option<Used> {
        let own_ns = process_cpu_ns(pid).ok()?;
        let (user, system) = match children {
            Children::Followed => proc::stat(pid).map(|stat| stat.children_ticks).unwrap_or_default(),
            Children::Strangers => (0, 0),
        };
        Some(Used { own_ns, children_ns: (user + system) * TICK_NS })
    }
}

/// What a program's processes used between two readings. Those that came meanwhile are new; what those used that ended, who waited for
/// them was told, along with what is known of them from before.
///
/// `most_ns`: what all CPUs could do meanwhile. A child that ended before it was read brings all that it ever used.
fn used(before: &BTreeMap<Pid, Used>, after: &BTreeMap<Pid, Used>, most_ns: u64) -> u64 {
    let was = |pid: &Pid| before.get(pid).copied().unwrap_or(Used { own_ns: 0, children_ns: 0 });
    let own = |(pid, now): (&Pid, &Used)| now.own_ns.saturating_sub(was(pid).own_ns);
    let told = |(pid, now): (&Pid, &Used)| now.children_ns.saturating_sub(was(pid).children_ns);
    let gone = before.iter().filter(|(pid, _)| !after.contains_key(*pid));
    let known: u64 = gone.map(|(_, was)| was.own_ns + was.children_ns).sum();
    let of_ended = after.iter().map(told).sum::<u64>().saturating_sub(known);
    (after.iter().map(own).sum::<u64>() + of_ended).min(most_ns)
}

/// Fewest samples that say how fast a CPU is, and least part of all that they are: where more were interrupted, or slower by half than
/// the fastest, a mean of the others is none.
const STEPPED_MIN: u64 = 10;
const STEPPED_SHARE_MIN: f64 = 0.8;

/// How long the steps of samples took, in the mean; zero where that is not known.
fn steps_ns(counts: &Counts) -> f64 {
    let says =
        counts.stepped >= STEPPED_MIN && counts.stepped as f64 >= STEPPED_SHARE_MIN * counts.samples as f64;
    if says { counts.steps_ns as f64 / counts.stepped as f64 } else { 0.0 }
}

/// Which window is counted.
pub(super) struct Counting {
    /// The number that its visits bear.
    pub(super) number: u64,
    /// When its experiment began.
    pub(super) start_ns: u64,
    /// Whether progress is a pair.
    pub(super) is_pair: bool,
    /// Between samples of one CPU, where it is to be seen that all of them came; 0 elsewhere.
    pub(super) period_ns: u64,
}

impl Counting {
    /// What was counted; what was done, and whether it could be done to the end, is the caller's to know.
    pub(super) fn window(&self, probe: &Probe, before: &Sums, after: &Sums) -> Result<Window, BpfError> {
        let visits = probe.visits(Counted::Visits, self.number)?;
        let owed = probe.owed()?;
        assert!(self.number > 0 && after.at_ns >= before.at_ns, "a window that was opened, and closed after");
        let counts = after.counts.since(&before.counts);
        let (length_ns, steal_ns) =
            (after.at_ns - before.at_ns, after.steal_ns.saturating_sub(before.steal_ns));
        let ran_ns = length_ns.saturating_sub(steal_ns) * affinity::online().len() as u64;
        Ok(Window {
            length_ns,
            ticks: counts.ticks,
            ticks_due: ran_ns.checked_div(self.period_ns).unwrap_or(0),
            visits: visits.count,
            first: moment(visits.first),
            last: moment(visits.last),
            first_owed_ns: visits.first.behind_ns,
            last_owed_ns: visits.last.behind_ns,
            pair: self.pair(probe, before, after, &visits)?,
            samples: counts.samples,
            beside: counts.beside + counts.pausing,
            foreign: counts.foreign,
            idle: counts.idle,
            hits: counts.hits,
            paid_ns: counts.paid_ns,
            owed_ns: owed.ns,
            threads: owed.threads,
            capped: counts.capped,
            missed: counts.missed,
            inner_wakes: counts.inner_wakes,
            partner_wakes: counts.partner_wakes,
            outer_wakes: counts.outer_wakes,
            remote_wakes: counts.remote_wakes,
            runnable_waits: counts.runnable_waits,
            queued_ns: counts.queued_ns,
            lost: counts.lost,
            of_spinners: counts.of_spinners,
            spun: counts.spun,
            spins: counts.spins,
            steps_ns: steps_ns(&counts),
            steal_ns,
            target_cpu_ns: used(&before.cpu, &after.cpu, length_ns * affinity::online().len() as u64),
            ..Window::default()
        })
    }

    /// Begins and ends, where progress is a pair.
    fn pair(
        &self,
        probe: &Probe,
        before: &Sums,
        after: &Sums,
        ends: &Visits,
    ) -> Result<Option<Pair>, BpfError> {
        if !self.is_pair {
            return Ok(None);
        }
        debug_assert!(self.start_ns <= before.at_ns, "a window lies in its experiment");
        let begins = probe.visits(Counted::Begins, self.number)?;
        Ok(Some(Pair {
            start_ns: self.start_ns,
            opened_ns: before.at_ns,
            closed_ns: after.at_ns,
            in_flight: before.in_flight,
            begins: marks(&begins),
            ends: marks(ends),
            carried: ends.carried,
        }))
    }
}

fn marks(visits: &Visits) -> Marks {
    Marks {
        count: visits.count,
        since_start_ns: visits.since_start_ns,
        inserted_ns: visits.positions_ns,
        owed_ns: visits.behind_ns,
    }
}

fn moment(visit: Visit) -> Moment {
    Moment { at_ns: visit.at_ns, inserted_ns: visit.position_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Faults: sums of whoever is there, so that a child's end takes all that it ever used out; a child that came and went counts
    /// nothing; what an ended one had used before counts again.
    #[test]
    fn processes_that_end_take_no_time_with_them() {
        let used_ms = |before: &[(Pid, u64, u64)], after: &[(Pid, u64, u64)]| {
            let all = |rows: &[(Pid, u64, u64)]| {
                let one = |&(pid, own_ms, children_ms): &(Pid, u64, u64)| {
                    (pid, Used { own_ns: own_ms * 1_000_000, children_ns: children_ms * 1_000_000 })
                };
                rows.iter().map(one).collect::<BTreeMap<Pid, Used>>()
            };
            used(&all(before), &all(after), 250_000_000) / 1_000_000
        };
        assert_eq!(used_ms(&[(1, 50, 0), (2, 900, 0)], &[(1, 60, 0), (2, 950, 0)]), 60);
        assert_eq!(used_ms(&[(1, 50, 0), (2, 900, 0)], &[(1, 60, 940)]), 50, "40 ms of the one that ended");
        assert_eq!(used_ms(&[(1, 50, 0)], &[(1, 60, 30)]), 40, "one that came and went");
        assert_eq!(used_ms(&[(1, 50, 0)], &[(1, 60, 0), (3, 20, 0)]), 30, "one that came");
        assert_eq!(used_ms(&[(1, 50, 0), (2, 900, 0)], &[(1, 60, 0)]), 10, "nobody waited for it");
        assert_eq!(used_ms(&[(1, 50, 0)], &[(1, 60, 600_000)]), 250, "one that was not read before");
    }
}
