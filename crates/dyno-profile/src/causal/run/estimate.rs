//! From windows to effects: the ratio to the nulls of the same round, and intervals over rounds. Pure: the same windows give
//! the same figures.
//!
//! The interval is Student's over the rounds' log ratios. Each round draws its own order, so that drift, however slow or
//! correlated, is independent noise of mean zero in the ratio to the nulls of the same round; a bootstrap of five rounds
//! would cover 85 % where it says 95.

use std::collections::BTreeMap;

use dyno_measure::stats::{self, MAD_SIGMA, median};
use dyno_record::causal::{Metric, Nulls, Point, Slope, Treatment};

use super::mean::Mean;
use super::measured::{Excluded, Measured};

/// A ratio this many robust deviations from the median is no measurement of the same thing.
const OUTLIER_SIGMAS: f64 = 4.0;
/// Fewer values have no robust deviation.
const OUTLIER_VALUES_MIN: usize = 10;
/// A median absolute deviation of few values is itself uncertain: the limit is wider by this over their number. Without
/// it the intervals of eight to twelve rounds hold the truth in 92 to 94 %.
const OUTLIER_SLACK: f64 = 8.0;

/// Values that are far from the rest are disturbed as long as they are few: of more than such a part, and more than so
/// many, each is one of the ways in which the target runs, and none is left out.
const DISTURBED_SHARE_MAX: f64 = 0.1;
const DISTURBED_MAX: usize = 2;

/// How far the share of samples in the site may be from the usual one in a window that is disturbed and not different, as a
/// part of it, and in samples.
const ALIKE_PART: f64 = 0.3;
const HITS_BY_CHANCE: f64 = 4.0;

/// What the windows of one site say.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Estimates {
    /// The effect of each level, with the chance that it is none.
    pub(super) points: Vec<(Point, f64)>,
    /// All levels together, with the chance that there is none.
    pub(super) slope: Option<Slope>,
    /// The nulls among themselves.
    pub(super) nulls: Nulls,
    /// What really slowing down cost.
    pub(super) cost: Option<Cost>,
}

/// What a real slow-down cost.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Cost {
    /// Of the time per unit of progress: positive is slower.
    pub(super) percent: f64,
    /// Its 95 % interval.
    pub(super) interval_percent: [f64; 2],
    /// Rounds that it rests on.
    pub(super) rounds: usize,
}

/// Marks outliers, then estimates everything: the levels that were asked for, and the slope of those that are unbiased.
pub(super) fn estimate(
    measured: &mut [Measured],
    metric: Metric,
    asked: &[u32],
    unbiased: &[u32],
) -> Estimates {
    exclude_outliers(measured, metric);
    debug_assert!(unbiased.iter().all(|level| asked.contains(level)), "levels that were tried");
    let points = asked.iter().filter_map(|level| point(measured, metric, *level)).collect();
    Estimates {
        points,
        slope: slope(measured, metric, unbiased),
        nulls: nulls(measured, metric),
        cost: cost(measured, metric),
    }
}

/// The ratio of a level's window to the nulls of its round, as a logarithm, with the window's index.
fn ratios(measured: &[Measured], metric: Metric, is: impl Fn(Treatment) -> bool) -> Vec<(usize, f64)> {
    let treated = measured.iter().enumerate().filter(|(_, one)| is(one.treatment));
    treated
        .filter_map(|(at, one)| Some((at, one.ln(metric)? - null_ln(measured, metric, one.round)?)))
        .collect()
}

/// The mean of a round's nulls.
fn null_ln(measured: &[Measured], metric: Metric, round: u32) -> Option<f64> {
    let of_round = measured.iter().filter(|one| one.round == round && one.is_null());
    let lns: Vec<f64> = of_round.filter_map(|one| one.ln(metric)).collect();
    (!lns.is_empty()).then(|| stats::mean(&lns))
}

/// Excludes what is far from its like: of two nulls that differ the one that is farther from the rest of its round, then
/// windows of levels. Decided again each time, since later rounds say more of the spread.
fn exclude_outliers(measured: &mut [Measured], metric: Metric) {
    for one in measured.iter_mut().filter(|one| one.excluded == Some(Excluded::Outlier)) {
        one.excluded = None;
    }
    exclude_nulls(measured, metric);
    let treatments = measured.iter().map(|one| one.treatment).filter(|one| *one != Treatment::Nothing);
    let mut treatments: Vec<Treatment> = treatments.collect();
    while let Some(treatment) = treatments.pop() {
        treatments.retain(|other| *other != treatment);
        let of_level = ratios(measured, metric, |other| other == treatment);
        let values: Vec<f64> = of_level.iter().map(|(_, value)| *value).collect();
        let alike = alike(measured, &of_level);
        for at in beyond(&values).into_iter().filter(|at| alike[*at]) {
            measured[of_level[at].0].excluded = Some(Excluded::Outlier);
        }
    }
}

/// Which windows met the site about as often as is usual. Others are far from their like because the site did something
/// else in them: phases that alternate are what is measured, and no disturbance of it.
fn alike(measured: &[Measured], of_level: &[(usize, f64)]) -> Vec<bool> {
    let hits = |(at, _): &(usize, f64)| {
        let window = &measured[*at].window;
        window.hits as f64 / window.samples.max(1) as f64
    };
    let usual = median(of_level.iter().map(hits));
    let chance = |(at, _): &(usize, f64)| HITS_BY_CHANCE / measured[*at].window.samples.max(1) as f64;
    let is_alike = |one| (hits(one) - usual).abs() <= ALIKE_PART * usual + chance(one);
    of_level.iter().map(is_alike).collect()
}

fn exclude_nulls(measured: &mut [Measured], metric: Metric) {
    let pairs = null_pairs(measured, metric);
    for at in beyond(&apart(measured, metric, &pairs)) {
        let [a, b] = pairs[at];
        let later_is_off = off_its_round(measured, metric, b) > off_its_round(measured, metric, a);
        measured[if later_is_off { b } else { a }].excluded = Some(Excluded::Outlier);
    }
}

/// By how much the later null of each pair is slower than the earlier one, as a logarithm.
fn apart(measured: &[Measured], metric: Metric, pairs: &[[usize; 2]]) -> Vec<f64> {
    pairs.iter().map(|[a, b]| ln_of(measured, *b, metric) - ln_of(measured, *a, metric)).collect()
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
        if !one.is_null() || one.ln(metric).is_none() {
            continue;
        }
        match open.take() {
            Some(first) if measured[first].round == one.round => pairs.push([first, at]),
            _ => open = Some(at),
        }
    }
    debug_assert!(pairs.iter().all(|[a, b]| a < b && measured[*a].round == measured[*b].round));
    pairs
}

/// Indices of values beyond so many robust deviations of their median; none where they are too many to be disturbed.
fn beyond(values: &[f64]) -> Vec<usize> {
    if values.len() < OUTLIER_VALUES_MIN {
        return Vec::new();
    }
    let centre = median(values.iter().copied());
    let off = |value: &f64| (value - centre).abs();
    let slack = 1.0 + OUTLIER_SLACK / values.len() as f64;
    debug_assert!(centre.is_finite(), "windows that count have a time");
    let limit = OUTLIER_SIGMAS * slack * MAD_SIGMA * median(values.iter().map(off));
    let beyond: Vec<usize> =
        (0..values.len()).filter(|at| limit > 0.0 && off(&values[*at]) > limit).collect();
    let most = (DISTURBED_SHARE_MAX * values.len() as f64).max(DISTURBED_MAX as f64);
    if beyond.len() as f64 > most { Vec::new() } else { beyond }
}

/// Time saved, in percent, of a log ratio.
fn saved_percent(ln: f64) -> f64 {
    -100.0 * ln.exp_m1()
}

fn point(measured: &[Measured], metric: Metric, level: u32) -> Option<(Point, f64)> {
    let is_level = |treatment| treatment == Treatment::SpeedUp(level);
    let found = ratios(measured, metric, is_level);
    // Of shares of time, not of their logarithms: where a site runs in one window of two it saves half of what it does there.
    let mean = Mean::of(&found.iter().map(|(_, value)| saved_percent(*value)).collect::<Vec<_>>())?;
    debug_assert!(mean.half_width >= 0.0, "a mean lies in its interval");
    let of_level = || measured.iter().filter(|one| is_level(one.treatment));
    let inserted_ns: f64 =
        of_level().filter_map(|one| one.effective).map(|effective| effective.inserted_ns).sum();
    let length_ns: f64 = of_level().map(|one| one.window.length_ns as f64).sum();
    let point = Point {
        speedup_percent: level,
        effect_percent: mean.mean,
        interval_percent: mean.interval(),
        rounds: mean.n,
        dropped: of_level().filter(|one| one.excluded.is_some()).count(),
        inserted_percent: 100.0 * inserted_ns / length_ns.max(1.0),
        ..Point::default()
    };
    Some((point, mean.p))
}

/// A straight line through the origin in each round, and the mean of the rounds' slopes: a round's levels share its
/// nulls, so rounds are what is independent.
fn slope(measured: &[Measured], metric: Metric, levels: &[u32]) -> Option<Slope> {
    let mut of_round = BTreeMap::<u32, (f64, f64)>::new();
    for level in levels {
        let weight = f64::from(*level);
        for (at, ratio) in ratios(measured, metric, |treatment| treatment == Treatment::SpeedUp(*level)) {
            let (sum, weights) = of_round.entry(measured[at].round).or_default();
            *sum += weight * saved_percent(ratio);
            *weights += weight * weight;
        }
    }
    debug_assert!(of_round.values().all(|(_, weights)| *weights > 0.0), "a level is more than nought");
    let slopes: Vec<f64> = of_round.values().map(|(sum, weights)| sum / weights).collect();
    let mean = Mean::of(&slopes)?;
    Some(Slope { per_percent: mean.mean, interval: mean.interval(), p: mean.p, p_adjusted: mean.p })
}

/// What a level promises beyond what a slow-down costs, `scale` times, in points, round by round.
pub(super) fn gap(measured: &[Measured], metric: Metric, level: u32, scale: f64) -> Option<Mean> {
    let gains = ratios(measured, metric, |treatment| treatment == Treatment::SpeedUp(level));
    let costs = ratios(measured, metric, |treatment| matches!(treatment, Treatment::SlowDown(_)));
    let cost =
        |round| costs.iter().find(|(at, _)| measured[*at].round == round).map(|(_, ln)| -saved_percent(*ln));
    let gaps =
        gains.iter().filter_map(|(at, ln)| Some(saved_percent(*ln) - scale * cost(measured[*at].round)?));
    Mean::of(&gaps.collect::<Vec<_>>())
}

fn nulls(measured: &[Measured], metric: Metric) -> Nulls {
    let all: Vec<f64> =
        measured.iter().filter(|one| one.is_null()).filter_map(|one| one.ln(metric)).collect();
    if all.is_empty() {
        return Nulls::default();
    }
    let pairs = null_pairs(measured, metric);
    let percent = apart(measured, metric, &pairs).into_iter().map(|ln| 100.0 * ln);
    let percent: Vec<f64> = percent.collect();
    let mean_us = stats::mean(&all).exp() / 1e3;
    let Some(mean) = Mean::of(&percent) else {
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

fn cost(measured: &[Measured], metric: Metric) -> Option<Cost> {
    let found = ratios(measured, metric, |treatment| matches!(treatment, Treatment::SlowDown(_)));
    let mean = Mean::of(&found.iter().map(|(_, value)| *value).collect::<Vec<_>>())?;
    let percent = |ln: f64| -saved_percent(ln);
    Some(Cost { percent: percent(mean.mean), interval_percent: mean.interval().map(percent), rounds: mean.n })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::{Moment, Window};
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

    /// Rounds of a site whose effect is `effects`, under noise that a generator makes, one window after the other.
    fn rounds(
        effects: &[(u32, f64)],
        n: u32,
        rng: &mut Prng,
        noise: &mut dyn FnMut(&mut Prng) -> f64,
    ) -> Vec<Measured> {
        let mut all = Vec::new();
        for round in 0..n {
            let mut treatments = vec![(Treatment::Nothing, 0.0); 2];
            treatments.extend(effects.iter().map(|(level, effect)| (Treatment::SpeedUp(*level), *effect)));
            rng.shuffle(&mut treatments);
            for (treatment, effect) in treatments {
                let period_ns = 1e6 * (1.0 - effect / 100.0) * noise(rng).exp();
                all.push(Measured::new(round, treatment, window(period_ns, 0)));
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
            assert!(covered >= 94.0, "{n} rounds: {covered} %");
        }
    }

    #[test]
    fn a_wild_window_is_set_aside_and_its_like_is_not() {
        let mut rng = Prng::new(9);
        let mut quiet = |rng: &mut Prng| 0.01 * rng.normal();
        let mut all = rounds(&[(50, 20.0)], 20, &mut rng, &mut quiet);
        let wild = [0, 1].map(|kind| {
            let is = |one: &&mut Measured| {
                (one.treatment == Treatment::Nothing) == (kind == 0) && one.round == 7 + kind
            };
            let one = all.iter_mut().find(is).unwrap();
            *one = Measured::new(one.round, one.treatment, window(2e6, 0));
            (one.round, one.treatment)
        });
        let found = estimate(&mut all, Metric::Throughput, &[50], &[50]);
        let dropped: Vec<_> =
            all.iter().filter(|one| one.excluded.is_some()).map(|one| (one.round, one.treatment)).collect();
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
        let is = |one: &&mut Measured| one.round == 3 && one.treatment == Treatment::SpeedUp(50);
        let one = all.iter_mut().find(is).unwrap();
        // Nobody paused in most of it: it seems to have no effect at all.
        *one = Measured::new(3, one.treatment, Window { expired: true, ..window(1e6, 0) });
        assert_eq!(one.excluded, Some(Excluded::Expired));
        let point = estimate(&mut all, Metric::Throughput, &[50], &[50]).points[0].0;
        assert_eq!((point.rounds, point.dropped), (7, 1));
        assert!((point.effect_percent - 20.0).abs() < 1.5, "{point:?}");
    }
}
