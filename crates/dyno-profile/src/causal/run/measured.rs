//! One window of a site: its effective time per visit, and whether it counts.
//!
//! **Effective time** is what passed less what was inserted. Each thread has a time of its own: it stands still while the
//! thread pauses, runs ahead when the thread is sampled in the site, and is set forward by credit. A visit happens in the
//! time of the thread that makes it, so what passed between two visits is the wall's time less that thread's own shift
//! between them. Pauses that another thread still owes when the window ends are no error of these two moments. The two
//! visits need not be of one thread, because all times were equal when the window's delays began. What is assumed is that
//! debts are small against the window, since a thread that owes much was hardly delayed at all; the verdict checks that.

use dyno_record::causal::{Metric, Treatment};

use super::latency::latency_ns;
use crate::causal::rig::window::Window;

/// Fewest visits of a window that have a time between them.
const VISITS_MIN: u64 = 2;

/// Windows with more of other processes than this, percent of all ticks, are excluded where they took more than this from
/// the target too, percent of the time that its threads ran or could have: who runs on cores that it leaves free takes
/// nothing, and what else a neighbour does to it shows in how much windows deviate.
pub(super) const FOREIGN_PERCENT_MAX: f64 = 5.0;
const QUEUED_PERCENT_MAX: f64 = 5.0;

/// Time that the hypervisor kept, percent, from which on a window is excluded. It is lost by the clock, and effective time is
/// a part of that: at 50 % it weighs twice as much as in a window without pauses, and a site that no thread waits for seems
/// to hurt. One tick in a quarter of a second of two CPUs is less than this.
const STOLEN_PERCENT_MAX: f64 = 2.5;

/// Time per unit of progress with the inserted delay taken out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Effective {
    /// Between visits.
    pub(super) period_ns: f64,
    /// From begin to end, where progress is a pair.
    pub(super) latency_ns: Option<f64>,
    /// Inserted between the first and the last visit.
    pub(super) inserted_ns: f64,
}

impl Effective {
    /// `None` with too few visits, or when more was inserted than passed.
    pub(super) fn of(window: &Window) -> Option<Effective> {
        if window.visits < VISITS_MIN {
            return None;
        }
        let elapsed_ns = window.last.at_ns.checked_sub(window.first.at_ns)? as f64;
        // A visitor that was far behind may come after one that was ahead.
        let inserted_ns = window.last.inserted_ns as f64 - window.first.inserted_ns as f64;
        let effective_ns = elapsed_ns - inserted_ns;
        let period_ns = effective_ns / (window.visits - 1) as f64;
        let latency_ns = latency_ns(window);
        (period_ns > 0.0).then_some(Effective { period_ns, latency_ns, inserted_ns })
    }

    /// What an effect is an effect on.
    pub(super) fn value(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => Some(self.period_ns),
            Metric::Latency => self.latency_ns.filter(|latency| *latency > 0.0),
        }
    }
}

/// Why a window does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Excluded {
    /// Too few visits.
    Visits,
    /// Others used the CPUs.
    Foreign,
    /// The hypervisor kept the CPUs.
    Stolen,
    /// The kernel ended it before its time.
    Expired,
    /// Far from its like.
    Outlier,
    /// What was done before it still showed.
    Unsettled,
    /// Too short for what lies between two visits: longer ones have replaced it.
    Short,
}

impl Excluded {
    /// As a record has it.
    pub(super) fn words(self) -> &'static str {
        match self {
            Excluded::Visits => "too few visits",
            Excluded::Foreign => "other processes used the CPUs",
            Excluded::Stolen => "the hypervisor kept the CPUs",
            Excluded::Expired => "cut short: dyno itself was kept from the CPUs",
            Excluded::Outlier => "far from its like",
            Excluded::Unsettled => "what was done before it still showed",
            Excluded::Short => "too short for what lies between two visits",
        }
    }

    /// Whether other windows were run in its place.
    pub(super) fn is_replaced(self) -> bool {
        matches!(self, Excluded::Unsettled | Excluded::Short)
    }
}

/// A window of a site, and what was made of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    /// Its round.
    pub(super) round: u32,
    /// What was done.
    pub(super) treatment: Treatment,
    /// The counts.
    pub(super) window: Window,
    /// The time per unit of progress.
    pub(super) effective: Option<Effective>,
    /// Why it does not count.
    pub(super) excluded: Option<Excluded>,
}

impl Measured {
    pub(super) fn new(round: u32, treatment: Treatment, window: Window) -> Measured {
        let effective = Effective::of(&window);
        let excluded = excluded(&window).or(effective.is_none().then_some(Excluded::Visits));
        debug_assert!(effective.is_some() || excluded.is_some(), "what has no time does not count");
        Measured { round, treatment, window, effective, excluded }
    }

    /// The logarithm of what an effect is an effect on; `None` where the window does not count.
    pub(super) fn ln(&self, metric: Metric) -> Option<f64> {
        let counts = self.excluded.is_none();
        self.effective.filter(|_| counts).and_then(|effective| effective.value(metric)).map(f64::ln)
    }

    /// Whether nothing was done.
    pub(super) fn is_null(&self) -> bool {
        self.treatment == Treatment::Nothing
    }
}

/// What makes a window worthless, however much was counted in it.
pub(super) fn excluded(window: &Window) -> Option<Excluded> {
    if window.expired {
        Some(Excluded::Expired)
    } else if foreign_percent(window) > FOREIGN_PERCENT_MAX && queued_percent(window) > QUEUED_PERCENT_MAX {
        Some(Excluded::Foreign)
    } else if stolen_percent(window) > STOLEN_PERCENT_MAX {
        Some(Excluded::Stolen)
    } else {
        None
    }
}

/// Share of the CPUs' time that the hypervisor kept; the kernel counts it in ticks of 10 ms.
fn stolen_percent(window: &Window) -> f64 {
    100.0 * window.steal_ns as f64 / window.length_ns.max(1) as f64
}

/// Time that the target's threads waited for a core behind others, of all that they ran or could have.
fn queued_percent(window: &Window) -> f64 {
    let could_run_ns = window.target_cpu_ns + window.queued_ns;
    100.0 * window.queued_ns as f64 / could_run_ns.max(1) as f64
}

/// Other processes' share of all ticks.
pub(super) fn foreign_percent(window: &Window) -> f64 {
    100.0 * window.foreign as f64 / ticks(window).max(1) as f64
}

/// Ticks of all CPUs, the kernel's own threads aside.
pub(super) fn ticks(window: &Window) -> u64 {
    window.samples + window.beside + window.foreign + window.idle
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::Moment;

    fn window(period_ns: u64, inserted_ns: u64) -> Window {
        let at_ns = period_ns * 100 + inserted_ns;
        let last = Moment { at_ns, inserted_ns };
        Window { length_ns: at_ns, visits: 101, last, samples: 100, ..Window::default() }
    }

    #[test]
    fn inserted_delay_is_no_time() {
        let plain = window(1_000_000, 20_000_000);
        let found = Effective::of(&plain).unwrap();
        assert!((found.period_ns - 1e6).abs() < 1.0 && (found.inserted_ns - 2e7).abs() < 1.0);
        assert_eq!(Effective::of(&Window { visits: 1, ..plain.clone() }), None);
        let more = Moment { inserted_ns: 300_000_000, ..plain.last };
        assert_eq!(Effective::of(&Window { last: more, ..plain }), None, "more inserted than passed");
    }

    #[test]
    fn windows_with_others_on_the_cpus_do_not_count() {
        let excluded = |window| Measured::new(0, Treatment::Nothing, window).excluded;
        let beside =
            |queued_ns| Window { foreign: 10, target_cpu_ns: 90_000_000, queued_ns, ..window(1_000_000, 0) };
        assert_eq!(excluded(beside(10_000_000)), Some(Excluded::Foreign));
        assert_eq!(excluded(beside(1_000_000)), None, "on a core that the target left free");
        assert_eq!(excluded(Window { foreign: 1, ..beside(10_000_000) }), None, "nobody else was there");
        let of = |steal_ns| Window { steal_ns, length_ns: 250_000_000, ..window(1_000_000, 0) };
        assert_eq!(excluded(of(5_000_000)), None);
        assert_eq!(excluded(of(10_000_000)), Some(Excluded::Stolen));
    }
}
