//! From windows to effects: effective time per visit, the ratio to the nulls of the same round, and intervals over
//! rounds. Pure: the same windows give the same figures.
//!
//! **Effective time** is what passed less what was inserted. Each thread lives in a time of its own, which stands still
//! while it pauses, runs ahead when it is sampled in the site, and is set forward by credit. A visit happens in the time of
//! the thread that makes it: what passed between two visits is the wall's time less that thread's own shift between them.
//! What another thread still owes when the window ends is then no error of these two moments; nor need the two visits be
//! of one thread, since all times were equal when the window's delays began. What is assumed is that debts are small
//! against the window, for who owes much was hardly delayed at all: the verdict looks at that.
//!
//! **The interval** is Student's over the rounds' log ratios. Each round draws its order anew, so that drift, however
//! slow or correlated, is independent noise of mean zero in the ratio to the nulls of the same round; a bootstrap of five
//! rounds would cover 85 % where it says 95.

use dyno_measure::stats::{self, MAD_SIGMA, Z_95, median};
use dyno_measure::student::{chance, student};
use dyno_record::causal::{Deed, Metric, Nulls, Point, Slope};

use crate::causal::rig::window::Window;

/// A ratio this many robust deviations from the median is no measurement of the same thing.
const OUTLIER_SIGMAS: f64 = 4.0;
/// Fewer values tell no robust deviation.
const OUTLIER_VALUES_MIN: usize = 10;
/// A median absolute deviation of few values is itself uncertain: the limit is wider by this over their number. Without
/// it the intervals of eight to twelve rounds hold the truth in 92 to 94 %.
const OUTLIER_SLACK: f64 = 8.0;
/// Fewest values with a spread.
const VALUES_MIN: usize = 3;
/// Fewest visits of a window that tell a period.
const VISITS_MIN: u64 = 2;

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
        let latency_ns = window.in_flight.map(|in_flight| in_flight * period_ns);
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

/// Time that the hypervisor keeps is lost by the clock, and effective time is a part of that: at 50 % it weighs twice as much
/// as in a window without pauses, and a site that nobody waits for seems to hurt. One tick in a quarter of a second of two
/// CPUs is less than this.
const STOLEN_PERCENT_MAX: f64 = 2.5;

/// Why a window does not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dropped {
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
}

impl Dropped {
    pub(super) fn words(self) -> &'static str {
        match self {
            Dropped::Visits => "too few visits",
            Dropped::Foreign => "other processes used the CPUs",
            Dropped::Stolen => "the hypervisor kept the CPUs",
            Dropped::Expired => "cut short: dyno itself was kept from the CPUs",
            Dropped::Outlier => "far from its like",
            Dropped::Unsettled => "what was done before it still showed",
        }
    }
}

/// A window of a site, and what was made of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Measured {
    /// Its round.
    pub(super) round: u32,
    /// What was done.
    pub(super) deed: Deed,
    /// The counts.
    pub(super) window: Window,
    /// The time per unit of progress.
    pub(super) effective: Option<Effective>,
    /// Why it does not count.
    pub(super) dropped: Option<Dropped>,
}

impl Measured {
    pub(super) fn new(round: u32, deed: Deed, window: Window, foreign_percent_max: f64) -> Measured {
        let effective = Effective::of(&window);
        let dropped = spoilt(&window, foreign_percent_max).or(effective.is_none().then_some(Dropped::Visits));
        Measured { round, deed, window, effective, dropped }
    }

    fn ln(&self, metric: Metric) -> Option<f64> {
        let counts = self.dropped.is_none();
        self.effective.filter(|_| counts).and_then(|effective| effective.value(metric)).map(f64::ln)
    }
}

/// What makes a window worthless, however much was counted in it.
pub(super) fn spoilt(window: &Window, foreign_percent_max: f64) -> Option<Dropped> {
    if window.expired {
        Some(Dropped::Expired)
    } else if foreign_percent(window) > foreign_percent_max {
        Some(Dropped::Foreign)
    } else if stolen_percent(window) > STOLEN_PERCENT_MAX {
        Some(Dropped::Stolen)
    } else {
        None
    }
}

/// Share of the CPUs' time that the hypervisor kept: the kernel tells it in ticks of 10 ms.
fn stolen_percent(window: &Window) -> f64 {
    100.0 * window.steal_ns as f64 / window.length_ns.max(1) as f64
}

/// Other processes' share of all ticks.
pub(super) fn foreign_percent(window: &Window) -> f64 {
    100.0 * window.foreign as f64 / ticks(window).max(1) as f64
}

/// Ticks of all CPUs, the kernel's own threads aside.
pub(super) fn ticks(window: &Window) -> u64 {
    window.samples + window.beside + window.foreign + window.idle
}

/// A mean with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Mean {
    pub(super) mean: f64,
    pub(super) half_width: f64,
    pub(super) sd: f64,
    pub(super) n: usize,
    /// How often chance alone gives as much.
    pub(super) p: f64,
}

impl Mean {
    /// `None` with too few values.
    pub(super) fn of(values: &[f64]) -> Option<Mean> {
        if values.len() < VALUES_MIN {
            return None;
        }
        let n = values.len() as f64;
        let (mean, sd) = (stats::mean(values), stats::deviation(values));
        let error = sd / n.sqrt();
        let half_width = student(Z_95, n - 1.0) * error;
        // Equal values tell no spread: nothing is certain of them.
        let p = if error > 0.0 { chance(mean / error, n - 1.0) } else { 1.0 };
        Some(Mean { mean, half_width, sd, n: values.len(), p })
    }

    fn interval(&self) -> [f64; 2] {
        [self.mean - self.half_width, self.mean + self.half_width]
    }
}

/// What the windows of one site say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Estimates {
    /// The effect of each level, with the chance that it is none.
    pub(super) points: Vec<(Point, f64)>,
    /// All levels together, with the chance that there is none.
    pub(super) slope: Option<Slope>,
    /// The nulls among themselves.
    pub(super) nulls: Nulls,
    /// What really slowing down cost, percent, its interval, and rounds.
    pub(super) cost: Option<(f64, [f64; 2], usize)>,
}

/// Marks what does not count, then estimates everything. `levels` are those that the slope rests on.
pub(super) fn estimate(measured: &mut [Measured], metric: Metric, asked: &[u32], sound: &[u32]) -> Estimates {
    set_aside(measured, metric);
    let points = asked.iter().filter_map(|level| point(measured, metric, *level)).collect();
    Estimates {
        points,
        slope: slope(measured, metric, sound),
        nulls: nulls(measured, metric),
        cost: cost(measured, metric),
    }
}

/// The ratio of a level's window to the nulls of its round, as a logarithm, with the window's index.
fn ratios(measured: &[Measured], metric: Metric, is: impl Fn(Deed) -> bool) -> Vec<(usize, f64)> {
    let of_deed = measured.iter().enumerate().filter(|(_, one)| is(one.deed));
    of_deed
        .filter_map(|(at, one)| Some((at, one.ln(metric)? - null_ln(measured, metric, one.round)?)))
        .collect()
}

/// The mean of a round's nulls.
fn null_ln(measured: &[Measured], metric: Metric, round: u32) -> Option<f64> {
    let of_round = measured.iter().filter(|one| one.round == round && one.deed == Deed::Nothing);
    let lns: Vec<f64> = of_round.filter_map(|one| one.ln(metric)).collect();
    (!lns.is_empty()).then(|| stats::mean(&lns))
}

/// Drops what is far from its like: of two nulls that differ the one that is farther from the other rounds' like, then
/// windows of levels. Decided anew each time, since later rounds tell more of the spread.
fn set_aside(measured: &mut [Measured], metric: Metric) {
    for one in measured.iter_mut().filter(|one| one.dropped == Some(Dropped::Outlier)) {
        one.dropped = None;
    }
    let pairs = null_pairs(measured, metric);
    let apart: Vec<f64> =
        pairs.iter().map(|[a, b]| ln_of(measured, *b, metric) - ln_of(measured, *a, metric)).collect();
    for at in beyond(&apart) {
        let [a, b] = pairs[at];
        let later_is_off = off_its_round(measured, metric, b) > off_its_round(measured, metric, a);
        measured[if later_is_off { b } else { a }].dropped = Some(Dropped::Outlier);
    }
    let mut deeds: Vec<Deed> =
        measured.iter().map(|one| one.deed).filter(|deed| *deed != Deed::Nothing).collect();
    deeds.dedup();
    while let Some(deed) = deeds.pop() {
        deeds.retain(|other| *other != deed);
        let of_level = ratios(measured, metric, |other| other == deed);
        let values: Vec<f64> = of_level.iter().map(|(_, value)| *value).collect();
        for at in beyond(&values) {
            measured[of_level[at].0].dropped = Some(Dropped::Outlier);
        }
    }
}

fn ln_of(measured: &[Measured], at: usize, metric: Metric) -> f64 {
    measured[at].ln(metric).unwrap_or(f64::NAN)
}

/// How far a window is from the mean of its whole round: levels shift that mean alike for both nulls.
fn off_its_round(measured: &[Measured], metric: Metric, at: usize) -> f64 {
    let of_round = measured.iter().filter(|one| one.round == measured[at].round);
    let usual = median(of_round.filter_map(|one| one.ln(metric)));
    (ln_of(measured, at, metric) - usual).abs()
}

/// Indices of the two nulls of each round that has both, in the order in which they were run.
fn null_pairs(measured: &[Measured], metric: Metric) -> Vec<[usize; 2]> {
    let mut pairs: Vec<[usize; 2]> = Vec::new();
    let mut open: Option<usize> = None;
    for (at, one) in measured.iter().enumerate() {
        if one.deed != Deed::Nothing || one.ln(metric).is_none() {
            continue;
        }
        match open.take() {
            Some(first) if measured[first].round == one.round => pairs.push([first, at]),
            _ => open = Some(at),
        }
    }
    pairs
}

/// Indices of values beyond so many robust deviations of their median.
fn beyond(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLIER_VALUES_MIN {
        return Vec::new();
    }
    let centre = median(values.iter().copied());
    let off = |value: &f64| (value - centre).abs();
    let slack = 1.0 + OUTLIER_SLACK / values.len() as f64;
    let limit = OUTLIER_SIGMAS * slack * MAD_SIGMA * median(values.iter().map(off));
    (0..values.len()).filter(|at| limit > 0.0 && off(&values[*at]) > limit).collect()
}

/// Time saved, in percent, of a log ratio.
fn saved_percent(ln: f64) -> f64 {
    -100.0 * ln.exp_m1()
}

fn point(measured: &[Measured], metric: Metric, level: u32) -> Option<(Point, f64)> {
    let is_level = |deed| deed == Deed::SpeedUp(level);
    let found = ratios(measured, metric, is_level);
    let mean = Mean::of(&found.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
    let [low, high] = mean.interval();
    let of_level = || measured.iter().filter(|one| is_level(one.deed));
    let inserted_ns: f64 =
        of_level().filter_map(|one| one.effective).map(|effective| effective.inserted_ns).sum();
    let length_ns: f64 = of_level().map(|one| one.window.length_ns as f64).sum();
    let point = Point {
        speedup_percent: level,
        effect_percent: saved_percent(mean.mean),
        interval_percent: [saved_percent(high), saved_percent(low)],
        rounds: mean.n,
        dropped: of_level().filter(|one| one.dropped.is_some()).count(),
        inserted_percent: 100.0 * inserted_ns / length_ns.max(1.0),
        ..Point::default()
    };
    Some((point, mean.p))
}

/// A straight line through the origin in each round, and the mean of the rounds' slopes: a round's levels share its
/// nulls, so rounds are what is independent.
fn slope(measured: &[Measured], metric: Metric, levels: &[u32]) -> Option<Slope> {
    let mut of_round = std::collections::BTreeMap::<u32, (f64, f64)>::new();
    for level in levels {
        let weight = f64::from(*level);
        for (at, ratio) in ratios(measured, metric, |deed| deed == Deed::SpeedUp(*level)) {
            let (sum, weights) = of_round.entry(measured[at].round).or_default();
            *sum += weight * saved_percent(ratio);
            *weights += weight * weight;
        }
    }
    let slopes: Vec<f64> = of_round.values().map(|(sum, weights)| sum / weights).collect();
    let mean = Mean::of(&slopes)?;
    Some(Slope { per_percent: mean.mean, interval: mean.interval(), p: mean.p, p_adjusted: mean.p })
}

/// What a level promises beyond what a slow-down costs, `scale` times, in points, round by round.
pub(super) fn gap(measured: &[Measured], metric: Metric, level: u32, scale: f64) -> Option<Mean> {
    let gains = ratios(measured, metric, |deed| deed == Deed::SpeedUp(level));
    let costs = ratios(measured, metric, |deed| matches!(deed, Deed::SlowDown(_)));
    let cost =
        |round| costs.iter().find(|(at, _)| measured[*at].round == round).map(|(_, ln)| -saved_percent(*ln));
    let gaps =
        gains.iter().filter_map(|(at, ln)| Some(saved_percent(*ln) - scale * cost(measured[*at].round)?));
    Mean::of(&gaps.collect::<Vec<_>>())
}

fn nulls(measured: &[Measured], metric: Metric) -> Nulls {
    let all: Vec<f64> =
        measured.iter().filter(|one| one.deed == Deed::Nothing).filter_map(|one| one.ln(metric)).collect();
    if all.is_empty() {
        return Nulls::default();
    }
    let pairs = null_pairs(measured, metric);
    let apart: Vec<f64> = pairs
        .iter()
        .map(|[a, b]| 100.0 * (ln_of(measured, *b, metric) - ln_of(measured, *a, metric)))
        .collect();
    let mean_us = stats::mean(&all).exp() / 1e3;
    let Some(mean) = Mean::of(&apart) else {
        return Nulls { mean_us, rounds: pairs.len(), ..Nulls::default() };
    };
    Nulls {
        mean_us,
        // The difference of two has twice the variance of one.
        sd_percent: mean.sd / std::f64::consts::SQRT_2,
        rounds: pairs.len(),
        difference_percent: mean.mean,
        interval_percent: mean.interval(),
    }
}

fn cost(measured: &[Measured], metric: Metric) -> Option<(f64, [f64; 2], usize)> {
    let found = ratios(measured, metric, |deed| matches!(deed, Deed::SlowDown(_)));
    let mean = Mean::of(&found.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
    Some((-saved_percent(mean.mean), mean.interval().map(|ln| -saved_percent(ln)), mean.n))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::Moment;
    use dyno_measure::Prng;

    fn window(period_ns: f64, inserted_ns: u64) -> Window {
        let visits = 101;
        let at_ns = (period_ns * 100.0) as u64 + inserted_ns;
        Window {
            length_ns: at_ns,
            delay_ns: 500_000,
            visits,
            last: Moment { at_ns, inserted_ns },
            threads: 1,
            samples: 100,
            ..Window::default()
        }
    }

    #[test]
    fn inserted_delay_is_no_time() {
        let plain = window(1_000_000.0, 20_000_000);
        let found = Effective::of(&plain).unwrap();
        assert!((found.period_ns - 1e6).abs() < 1.0 && (found.inserted_ns - 2e7).abs() < 1.0);
        assert_eq!(Effective::of(&Window { visits: 1, ..plain.clone() }), None);
        let more = Moment { inserted_ns: 300_000_000, ..plain.last };
        assert_eq!(Effective::of(&Window { last: more, ..plain }), None, "more inserted than passed");
    }

    /// Rounds of a site whose effect is `effects`, under noise that a generator makes, one window after the other.
    fn rounds(
        effects: &[(u32, f64)],
        n: u32,
        rng: &mut Prng,
        noise: &mut dyn FnMut(&mut Prng) -> f64,
    ) -> Vec<Measured> {
        let mut all = Vec::new();
        for round in 0..n {
            let mut deeds = vec![(Deed::Nothing, 0.0); 2];
            deeds.extend(effects.iter().map(|(level, effect)| (Deed::SpeedUp(*level), *effect)));
            rng.shuffle(&mut deeds);
            for (deed, effect) in deeds {
                let period_ns = 1e6 * (1.0 - effect / 100.0) * noise(rng).exp();
                all.push(Measured::new(round, deed, window(period_ns, 0), 5.0));
            }
        }
        all
    }

    /// Drift of a machine with neighbours: autocorrelation 0.9 between windows, wild ones now and then.
    fn drifting(sd: f64) -> impl FnMut(&mut Prng) -> f64 {
        let mut slow = 0.0;
        move |rng| {
            slow = 0.9 * slow + 0.436 * 2.0 * sd * rng.normal();
            let wild = if rng.below(25) == 0 { 5.0 } else { 1.0 };
            slow + sd * wild * rng.normal()
        }
    }

    /// How often the interval of 50 % holds the truth, in so many experiments.
    fn coverage(n: u32, seed: u64, experiments: u32) -> f64 {
        let mut rng = Prng::new(seed);
        let mut held = 0;
        for _ in 0..experiments {
            let mut noise = drifting(0.02);
            let mut all = rounds(&[(10, 4.0), (25, 9.0), (50, 18.0)], n, &mut rng, &mut noise);
            let found = estimate(&mut all, Metric::Throughput, &[10, 25, 50], &[10, 25, 50]);
            let [low, high] = found.points[2].0.interval_percent;
            held += u32::from(low <= 18.0 && 18.0 <= high);
        }
        100.0 * f64::from(held) / f64::from(experiments)
    }

    #[test]
    fn intervals_hold_the_truth_as_often_as_they_say_from_five_rounds_on() {
        for (n, seed) in [(5, 1), (8, 2), (12, 3), (30, 4)] {
            let covered = coverage(n, seed, 2_000);
            println!("{n} rounds, seed {seed}: 95 % intervals hold the truth in {covered:.1} %");
            assert!(covered >= 93.0, "{n} rounds: {covered} %");
        }
    }

    #[test]
    fn a_wild_window_is_set_aside_and_its_like_is_not() {
        let mut rng = Prng::new(9);
        let mut quiet = |rng: &mut Prng| 0.01 * rng.normal();
        let mut all = rounds(&[(50, 20.0)], 20, &mut rng, &mut quiet);
        let wild = [0, 1].map(|kind| {
            let is =
                |one: &&mut Measured| (one.deed == Deed::Nothing) == (kind == 0) && one.round == 7 + kind;
            let one = all.iter_mut().find(is).unwrap();
            *one = Measured::new(one.round, one.deed, window(2e6, 0), 5.0);
            (one.round, one.deed)
        });
        let found = estimate(&mut all, Metric::Throughput, &[50], &[50]);
        let dropped: Vec<_> =
            all.iter().filter(|one| one.dropped.is_some()).map(|one| (one.round, one.deed)).collect();
        assert_eq!(dropped, wild);
        assert!((found.points[0].0.effect_percent - 20.0).abs() < 1.0, "{found:?}");
        assert!((found.slope.unwrap().per_percent - 0.4).abs() < 0.02);
        assert!(found.nulls.sd_percent < 2.0);
    }

    #[test]
    fn a_window_that_the_kernel_ended_counts_for_nothing_and_neither_does_its_like() {
        let mut rng = Prng::new(5);
        let mut quiet = |rng: &mut Prng| 0.01 * rng.normal();
        let mut all = rounds(&[(50, 20.0)], 8, &mut rng, &mut quiet);
        let is = |one: &&mut Measured| one.round == 3 && one.deed == Deed::SpeedUp(50);
        let one = all.iter_mut().find(is).unwrap();
        // Nobody paused in most of it: it seems to have no effect at all.
        *one = Measured::new(3, one.deed, Window { expired: true, ..window(1e6, 0) }, 5.0);
        assert_eq!(one.dropped, Some(Dropped::Expired));
        let point = estimate(&mut all, Metric::Throughput, &[50], &[50]).points[0].0;
        assert_eq!((point.rounds, point.dropped), (7, 1));
        assert!((point.effect_percent - 20.0).abs() < 1.5, "{point:?}");
    }

    #[test]
    fn windows_with_others_on_the_cpus_do_not_count() {
        let busy = Window { foreign: 10, ..window(1e6, 0) };
        assert_eq!(Measured::new(0, Deed::Nothing, busy, 5.0).dropped, Some(Dropped::Foreign));
        let of = |steal_ns| Window { steal_ns, length_ns: 250_000_000, ..window(1e6, 0) };
        assert_eq!(Measured::new(0, Deed::Nothing, of(5_000_000), 5.0).dropped, None);
        assert_eq!(Measured::new(0, Deed::Nothing, of(10_000_000), 5.0).dropped, Some(Dropped::Stolen));
    }
}
