//! What was seen over some windows, whatever was done in them: what figures that come of them can be trusted for. Pure.

use dyno_measure::stats;
use dyno_record::causal::Credibility;

use super::measured::{Effective, ticks};
use super::unpaid;
use crate::causal::rig::window::Window;
use crate::causal::rig::{Pause, Rig};

/// Waits for something outside, per visit, from which on that may be what says how often visits come.
pub(super) const OUTER_WAKES_PER_VISIT: f64 = 0.1;
/// And per second.
pub(super) const OUTER_WAKES_PER_SECOND: f64 = 10.0;
/// Requests that found the target asleep, of all visits, from which on its clients are the limit.
const ASLEEP_PER_VISIT: f64 = 0.3;
/// Share of the cores that a target could use, below which it leaves some of them free, and of the ticks that then are idle.
/// One that is woken for each request and uses all of them is the limit: a thread for each connection sleeps between two.
const FREE_CPU_SHARE: f64 = 0.8;
const FREE_IDLE_SHARE: f64 = 0.05;
/// Switches from one thread of the target to another on a core, per second, from which on there are more runnable threads than cores.
const CROWDED_PER_SECOND: f64 = 50.0;
/// Share of all cores that the target then uses.
const CROWDED_CPU_SHARE: f64 = 0.9;

/// Threads that are woken more seldom than this, per second, never wait; those that run less than such a share of the time
/// all the same, percent, while others and the hypervisor took less than that, are kept from it.
const STARVED_WAKES_MAX: f64 = 0.5;
const STARVED_PERCENT_MAX: f64 = 80.0;
const STARVED_LOST_MAX: f64 = 2.5;

const NS_PER_S: f64 = 1e9;

/// How a rig samples and pauses.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sampling {
    pub(super) pause: Pause,
    pub(super) period_ns: u64,
    pub(super) interrupt_ns: Option<u64>,
    /// CPUs that the target may run on.
    pub(super) cpus: usize,
}

impl Sampling {
    pub(super) fn of(rig: &dyn Rig, cpus: usize) -> Sampling {
        Sampling { pause: rig.pause(), period_ns: rig.period_ns(), interrupt_ns: rig.interrupt_ns(), cpus }
    }
}

/// What was seen over some windows.
pub(super) fn credibility<'w>(windows: impl Iterator<Item = &'w Window>, sampling: Sampling) -> Credibility {
    let windows: Vec<&Window> = windows.collect();
    let all = || windows.iter().copied();
    let sum = |of: fn(&Window) -> u64| all().map(of).sum::<u64>() as f64;
    let length_ns = sum(|window| window.length_ns).max(1.0);
    let cpu_ns = sum(|window| window.target_cpu_ns);
    let inner = sum(|window| window.inner_wakes);
    // Threads that run beside each other share the wake-ups.
    let running = (cpu_ns / length_ns).max(1.0);
    let threads = sum(|window| window.threads) / windows.len().max(1) as f64;
    let could_run = threads.min(sampling.cpus as f64).max(1.0);
    let leaves_free = cpu_ns / length_ns < FREE_CPU_SHARE * could_run
        && sum(|window| window.idle) >= FREE_IDLE_SHARE * sum(ticks);
    let spun = sum(|window| window.spun) / sum(|window| window.samples).max(1.0);
    let spins = spins_per_second(&windows, sampling.period_ns);
    Credibility {
        windows: windows.len(),
        foreign_percent: 100.0 * sum(|window| window.foreign) / sum(ticks).max(1.0),
        steal_percent: 100.0 * sum(|window| window.steal_ns) / length_ns,
        capped: all().map(|window| window.capped).sum(),
        missed: all().map(|window| window.missed).sum(),
        unpaid_percent: unpaid::percent(&windows),
        inner_wakes: inner * NS_PER_S / length_ns,
        partner_wakes: sum(|window| window.partner_wakes) * NS_PER_S / length_ns,
        outer_wakes: sum(|window| window.outer_wakes) * NS_PER_S / length_ns,
        run_between_wakes_us: (inner > 0.0).then_some(cpu_ns / inner / running / 1e3),
        spinning_percent: 100.0 * spun,
        spins,
        run_between_spins_us: (spins > 0.0)
            .then_some(cpu_ns / length_ns * (1.0 - spun) / spins / running * NS_PER_S / 1e3),
        target_cpu_percent: 100.0 * cpu_ns / length_ns,
        threads,
        load_bound: load_bound(
            sum(|window| window.remote_wakes) / sum(|window| window.visits).max(1.0),
            leaves_free,
        ),
        pause: match sampling.pause {
            Pause::TaskWork => "task_work".to_owned(),
            Pause::SpinInSample => "spin_in_sample".to_owned(),
        },
        period_us: sampling.period_ns as f64 / 1e3,
        interrupt_us: sampling.interrupt_ns.map(|ns| ns as f64 / 1e3),
        ..Credibility::default()
    }
}

/// So many times as often, at most, as samples can follow: waits and work that are both shorter than the time between two
/// samples are not told from still shorter ones.
const SHORTER_MAX: f64 = 9.0;

/// How often waits in loops end, per second. Of threads that wait and work in turns a sample that lies in a loop is followed by
/// one that does not the more often the shorter the turns are: as often as any sample lies outside, where they are much shorter
/// than the time between two samples.
fn spins_per_second(windows: &[&Window], period_ns: u64) -> f64 {
    let sum = |of: fn(&Window) -> u64| windows.iter().copied().map(of).sum::<u64>() as f64;
    let [all, spun, spins] =
        [sum(|window| window.of_spinners), sum(|window| window.spun), sum(|window| window.spins)];
    if spun <= 0.0 || all <= spun {
        return 0.0;
    }
    let outside = 1.0 - spun / all;
    let ends = (spins / spun).min(outside * SHORTER_MAX / (SHORTER_MAX + 1.0));
    let per_sample = outside * (1.0 - outside) * ends / (outside - ends);
    debug_assert!(period_ns > 0 && per_sample >= 0.0, "there are samples");
    per_sample * all * NS_PER_S / sum(|window| window.length_ns).max(1.0)
}

/// Whether the target is the limit: a server that is woken from outside as often as [`ASLEEP_PER_VISIT`] for each visit and
/// leaves CPUs free waits for others, one that is woken less often or uses them all is the limit. None where no wake-up was
/// counted.
fn load_bound(remote_wakes_per_visit: f64, leaves_free: bool) -> Option<bool> {
    (remote_wakes_per_visit > 0.0).then_some(remote_wakes_per_visit < ASLEEP_PER_VISIT || !leaves_free)
}

/// Whether more threads want to run than there are cores.
pub(super) fn is_crowded(switches_per_second: f64, cpu_percent: f64, cpus: usize) -> bool {
    switches_per_second >= CROWDED_PER_SECOND && cpu_percent >= 100.0 * CROWDED_CPU_SHARE * cpus as f64
}

/// Share of the time, percent, that threads run which never wait: less than nearly all of it, with nobody else there, is
/// what a quota leaves them. `None` where they wait, or run, or others have the CPUs.
pub(super) fn starved_percent(seen: &Credibility, cpus: usize) -> Option<f64> {
    let wakes = seen.inner_wakes + seen.outer_wakes;
    let due = seen.threads.min(cpus as f64).max(1.0);
    let percent = seen.target_cpu_percent / due;
    let is_alone = seen.foreign_percent < STARVED_LOST_MAX && seen.steal_percent < STARVED_LOST_MAX;
    (wakes < STARVED_WAKES_MAX * due && is_alone && percent > 0.0 && percent < STARVED_PERCENT_MAX)
        .then_some(percent)
}

/// Visits per second.
pub(super) fn per_second<'w>(windows: impl Iterator<Item = &'w Window>) -> f64 {
    rate(windows, |window| window.visits)
}

/// How often something happened per second.
pub(super) fn rate<'w>(windows: impl Iterator<Item = &'w Window>, of: fn(&Window) -> u64) -> f64 {
    let (count, ns) = windows.fold((0, 0), |(count, ns), window| (count + of(window), ns + window.length_ns));
    count as f64 * NS_PER_S / ns.max(1) as f64
}

/// Mean time from begin to end, µs, where progress is a pair.
pub(super) fn latency_us<'w>(windows: impl Iterator<Item = &'w Window>) -> Option<f64> {
    let latencies: Vec<f64> = windows.filter_map(|window| Effective::of(window)?.latency_ns).collect();
    (!latencies.is_empty()).then(|| stats::mean(&latencies) / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted faults: ends are taken as they are seen (`per_sample` of `ends * spun / all`); no `SHORTER_MAX`.
    #[test]
    fn waits_in_loops_are_the_shorter_the_more_often_the_next_sample_lies_elsewhere() {
        let told = |of_spinners, spun, spins| {
            let window = Window { of_spinners, spun, spins, length_ns: 1_000_000_000, ..Window::default() };
            spins_per_second(&[&window], 1_000_000).round()
        };
        // Half of the time each: waits of fifty samples, of about one, and of much less.
        assert_eq!(
            [told(1_000, 500, 10), told(1_000, 500, 125), told(1_000, 500, 250)],
            [10.0, 250.0, 2_250.0]
        );
        assert_eq!([told(1_000, 0, 0), told(1_000, 1_000, 0)], [0.0; 2]);
    }

    /// Planted fault: whoever is woken for each visit is taken to be idle, a thread for each connection that uses all CPUs too.
    #[test]
    fn who_is_found_asleep_and_leaves_cpus_free_is_not_the_limit_and_of_nothing_counted_nothing_is_known() {
        let sampling = Sampling { pause: Pause::TaskWork, period_ns: 1_000_000, interrupt_ns: None, cpus: 2 };
        let bound = |remote_wakes, target_cpu_ns, idle| {
            let (visits, threads, length_ns, samples) = (100, 8, 100_000_000, 200 - idle);
            let window = Window {
                remote_wakes,
                target_cpu_ns,
                idle,
                visits,
                threads,
                length_ns,
                samples,
                ..Window::default()
            };
            credibility([&window].into_iter(), sampling).load_bound
        };
        assert_eq!([40, 10, 0].map(|wakes| bound(wakes, 60_000_000, 140)), [Some(false), Some(true), None]);
        assert_eq!(bound(100, 195_000_000, 5), Some(true), "it uses all that there is");
        assert_eq!(bound(100, 60_000_000, 0), Some(true), "somebody else leaves it no more");
        assert_eq!(credibility([].into_iter(), sampling).load_bound, None);
        assert!(is_crowded(50.0, 180.0, 2) && !is_crowded(49.0, 180.0, 2) && !is_crowded(50.0, 170.0, 2));
    }
}
