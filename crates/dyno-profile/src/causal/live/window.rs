//! The arithmetic of one window: what the probe and /proc count, read before and after, as the rig's raw counts.
//!
//! The rig calls it around each window. It attaches nothing and waits for nothing.

use dyno_sys::bpf::BpfError;
use dyno_sys::bpf::causal::{Counted, Counts, Probe, Visit, Visits};
use dyno_sys::clock::{mono_ns, process_cpu_ns};
use dyno_sys::{Pid, affinity, proc};

use crate::causal::rig::window::{Marks, Moment, Pair, Window};

/// Counters; what happened in a window is the difference of two readings.
pub(super) struct Sums {
    pub(super) at_ns: u64,
    counts: Counts,
    cpu_ns: u64,
    steal_ns: u64,
    pub(super) in_flight: i64,
}

impl Sums {
    pub(super) fn read(probe: &Probe, target: &[Pid]) -> Sums {
        // Processes that ended since count nothing.
        let cpu_ns = target.iter().filter_map(|pid| process_cpu_ns(*pid).ok()).sum();
        let cpus = proc::cpu_stat();
        let steal_ns = cpus.iter().map(|cpu| cpu.steal).sum::<u64>() / cpus.len().max(1) as u64;
        let (counts, in_flight) = (probe.counts(), probe.in_flight());
        Sums { at_ns: mono_ns(), counts, cpu_ns, steal_ns, in_flight }
    }
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
            steal_ns,
            target_cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
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
