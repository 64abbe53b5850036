//! Numbers that resemble their neighbours: how many independent ones they are worth, and an interval that knows it.
//!
//! Two files that were measured one after the other are series in time: a machine that is slow for a while makes a stretch
//! of one of them slow, and taken as independent such numbers call equal things different in 13 % (lag-1 correlation 0.5)
//! to 40 % (0.85) of cases where 1 % was promised. Nothing is supposed here of how they depend: the interval comes from the
//! slowest waves of the series, which are what a mean suffers from (Müller, 2004; Lazarus, Lewis, Stock and Watson, 2018).
//! `dyno judge` asks it of two files; a climb's blocks are interleaved and need it not.

use crate::apart::Known;
use crate::drift::Drift;
use crate::estimate::{Estimate, PAIRS_MIN, calibrated, influences, mean};
use crate::judge::Verdict;
use crate::movement::Movement;
use crate::normal::normal_quantile;
use crate::stats::{MAD_SIGMA, median};
use crate::stretches::Stretches;
use crate::student::student;

/// One-sided normal quantile from which a lag-1 correlation is taken for one: one in ten of independent series have it by
/// chance, and are told with a wider interval. Where it is missed, series of twenty are called different in twice as many cases.
const LAG_Z: f64 = 1.282;
/// The four slowest waves of independent numbers are this many times as strong as the others in one of ten series (χ²).
const SLOW_RATIO: f64 = 1.94;
const SLOW_WAVES: usize = 4;
/// The same of which chance is next to nothing: one in a hundred of independent series has either. Only what is seen so surely
/// takes the answer away. What is weaker widens the interval as far as it can: of twenty independent numbers a side one list in
/// ten has such a correlation by chance.
const LAG_SURE_Z: f64 = 2.326;
const SLOW_SURE_RATIO: f64 = 3.32;
/// Independent numbers for each wave that the interval rests on: fewer, and faster waves with less of the dependence in them
/// would make it too narrow.
const NUMBERS_PER_WAVE: f64 = 3.0;
/// Waves that an interval rests on: of one alone it would be sixty times as wide as the wave.
const WAVES_MIN: usize = 2;
const WAVES_MAX: usize = 6;
/// How many times wider an interval of the fewest waves is where more of them would have too much of the dependence in them.
const UNSURE: f64 = 1.5;
/// Standard errors that a correlation is taken larger than it reads: too small a one narrows the interval far more than too
/// large a one widens it.
const LAG_SIGMAS: f64 = 0.5;
/// No correlation is believed to be closer to one: a series that wanders away has none.
const LAG_MAX: f64 = 0.99;
/// The same of one that was not seen to be more than chance.
const LAG_SEEN_MAX: f64 = 0.9;

/// How a series depends on itself.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dependence {
    /// Correlation of each number with the next, corrected for what a short series hides of it.
    pub lag_1: f64,
    /// Independent numbers that its mean is worth.
    pub effective: f64,
}

/// Two lists compared, and how they depend on themselves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Told {
    /// The effect. Where nothing can be told, its interval is that of independent numbers, and means nothing.
    pub estimate: Estimate,
    /// The dependence that was seen, of the list that has more of it.
    pub dependence: Option<Dependence>,
    /// Whether anything can be told.
    pub tells: bool,
    /// Whether it is told because the lists are far apart beside all that they move by: then the interval is that movement.
    pub by_movement: bool,
    /// Why nothing can be told, where a list changes its level by itself by as much as both differ.
    pub stretches: Option<Stretches>,
    /// What both lists of pairs drift by, where that may be what they differ by. Where B begins about where A ended nothing can be told.
    pub drift: Option<Drift>,
}

impl Told {
    /// B against A, lower being better; none is told where nothing can be.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let Estimate { log_ratio, half_width, .. } = self.estimate;
        match (self.tells, self.by_movement) {
            (false, _) => Verdict::NoDifference,
            (true, false) => Verdict::of(&self.estimate),
            (true, true) if log_ratio.abs() <= half_width => Verdict::NoDifference,
            (true, true) if log_ratio < 0.0 => Verdict::Better,
            (true, true) => Verdict::Worse,
        }
    }

    /// The same, which is taken back where a list has stretches at the other's level: asked for where something is told. `lists`:
    /// their centres, and where between its own level (0) and the other's (1) each number lies.
    fn unless_two_levels(self, lists: &[(&Centre, Vec<f64>)]) -> Self {
        if self.verdict() == Verdict::NoDifference {
            return self;
        }
        // Where an interval knows how neighbours resemble each other, near ones stray together. They do not leap.
        let asked = lists.iter().filter(|(centre, places)| !centre.is_weighed || leaps(places));
        let marked = asked.map(|(_, places)| at_the_others(places));
        match Stretches::of(marked.collect()) {
            Some(stretches) => Self { tells: false, stretches: Some(stretches), ..self },
            None => self,
        }
    }

    /// The same, which is taken back where B goes on as A ended: asked for where something is told.
    fn unless_joined(self, lists: [&[f64]; 2]) -> Self {
        if self.verdict() == Verdict::NoDifference {
            return self;
        }
        let drift = Drift::of(lists, self.estimate.log_ratio);
        let is_joined = drift.is_some_and(|drift| drift.is_joined);
        Self { tells: self.tells && !is_joined, by_movement: self.by_movement && !is_joined, drift, ..self }
    }

    /// The same of numbers that were rounded by so much (log): of those that are all alike no more is known.
    #[must_use]
    pub fn rounded(self, by: f64) -> Self {
        let half_width = self.estimate.half_width.max(if self.by_movement { by } else { 0.0 });
        Self { estimate: Estimate { half_width, ..self.estimate }, ..self }
    }

    /// The same, read from how far the lists are apart, where their own numbers tell nothing of how sure a mean is.
    pub(crate) fn or_by(self, movement: Movement) -> Self {
        if self.tells && self.estimate.has_spread() {
            return self;
        }
        let Some(half_width) = movement.half_width(self.estimate.log_ratio) else { return self };
        Self { estimate: Estimate { half_width, ..self.estimate }, tells: true, by_movement: true, ..self }
    }
}

/// What a mean is and how sure: `freedom` is none where nothing can be told.
struct Centre {
    value: f64,
    error: f64,
    freedom: Option<f64>,
    independent: (f64, f64),
    dependence: Option<Dependence>,
    /// Whether the error is that of waves slow enough to hold the dependence.
    is_weighed: bool,
}

/// ln of each number of a list.
pub(crate) fn logs(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.ln()).collect()
}

/// One look at two lists of numbers, paired by position. `None` when they differ in length or are too short.
#[must_use]
pub fn series_paired(a: &[f64], b: &[f64], alpha: f64) -> Option<Told> {
    if a.len() != b.len() || a.len() < PAIRS_MIN {
        return None;
    }
    // A quotient of numbers far apart is none any more; their logarithms are.
    let (a_logs, b_logs) = (logs(a), logs(b));
    let ratios: Vec<f64> = b_logs.iter().zip(&a_logs).map(|(b, a)| b - a).collect();
    let centre = Centre::of(&ratios);
    let (error, freedom) = centre.freedom.map_or(centre.independent, |freedom| (centre.error, freedom));
    let half_width = student(normal_quantile(1.0 - alpha / 2.0), freedom) * error;
    let told = Told {
        estimate: Estimate { log_ratio: centre.value, error, half_width, n: a.len(), uncharged: 0.0 },
        dependence: centre.dependence,
        tells: centre.freedom.is_some(),
        by_movement: false,
        stretches: None,
        drift: None,
    };
    let places = ratios.iter().map(|ratio| 1.0 - ratio / centre.value).collect();
    let told = told.unless_two_levels(&[(&centre, places)]);
    let told = told.or_by(Movement::of(&[&ratios], a.len() + b.len(), alpha));
    Some(told.unless_joined([&a_logs, &b_logs]))
}

/// One look at two lists in no common order (Yuen and Welch). `None` when one is too short.
#[must_use]
pub fn series_unpaired(a: &[f64], b: &[f64], alpha: f64) -> Option<Told> {
    if a.len().min(b.len()) < PAIRS_MIN {
        return None;
    }
    let (a_logs, b_logs) = (logs(a), logs(b));
    let (a_is, b_is) = (Centre::of(&a_logs), Centre::of(&b_logs));
    let tells = a_is.freedom.is_some() && b_is.freedom.is_some();
    let read =
        |one: &Centre| one.freedom.filter(|_| tells).map_or(one.independent, |freedom| (one.error, freedom));
    let (error, freedom) = welch(read(&a_is), read(&b_is));
    let half_width = student(normal_quantile(1.0 - alpha / 2.0), freedom) * error;
    let dependences = [a_is.dependence, b_is.dependence].into_iter().flatten();
    let told = Told {
        estimate: Estimate {
            log_ratio: b_is.value - a_is.value,
            error,
            half_width,
            n: a.len().min(b.len()),
            uncharged: 0.0,
        },
        dependence: dependences.min_by(|a, b| a.effective.total_cmp(&b.effective)),
        tells,
        by_movement: false,
        stretches: None,
        drift: None,
    };
    let places = |list: &[f64], own: &Centre, other: &Centre| {
        list.iter().map(|value| (value - own.value) / (other.value - own.value)).collect()
    };
    let told = told
        .unless_two_levels(&[(&a_is, places(&a_logs, &a_is, &b_is)), (&b_is, places(&b_logs, &b_is, &a_is))]);
    Some(told.or_by(Movement::of(&[&a_logs, &b_logs], a.len() + b.len(), alpha)))
}

/// Numbers this near to the other's level lie at it, whatever their own noise is.
const THERE: f64 = 0.25;
/// Deviations of a list's own noise that numbers at a level stray by.
const STRAYS: f64 = 3.0;

/// Which numbers lie at the other's level (1) rather than at their own (0), as far as their noise tells. What lies beyond both, or on the
/// way, as the first runs of a cold program do, is at neither.
fn at_the_others(places: &[f64]) -> Vec<bool> {
    let own = places.iter().filter(|place| **place <= 0.5).map(|place| place.abs());
    let near = THERE.max(STRAYS * MAD_SIGMA * median(own));
    places.iter().map(|place| *place > 0.5 && (place - 1.0).abs() <= near).collect()
}

/// Whether a list has two levels, its own (0) and the other one's (1), rather than all between and around: most numbers lie at
/// one of them, and more at the other's than on the way to it.
fn leaps(places: &[f64]) -> bool {
    let count = |from: f64, to: f64| places.iter().filter(|place| (from..to).contains(*place)).count();
    let [own, on_the_way, there] =
        [(-0.25, 0.25), (0.25, 0.75), (0.75, 1.25)].map(|(from, to)| count(from, to));
    2 * (own + there) > places.len() && there > on_the_way
}

/// Error and degrees of freedom of the difference of two means, each with its own. Without any spread there is nothing to widen.
pub(crate) fn welch((ea, fa): (f64, f64), (eb, fb): (f64, f64)) -> (f64, f64) {
    let error = ea.hypot(eb);
    // As parts of the whole: errors far below one have no fourth power.
    let part = |one: f64, freedom: f64| (one / error).powi(4) / freedom;
    (error, if error > 0.0 { 1.0 / (part(ea, fa) + part(eb, fb)) } else { fa + fb })
}

/// One list's level, with the half width of its interval as a log ratio. `None` where it is too short, or where its numbers
/// change too slowly for any interval.
#[must_use]
pub fn series_level(values: &[f64], alpha: f64) -> Option<Known> {
    let sound = values.len() >= PAIRS_MIN && values.iter().all(|value| value.is_finite() && *value > 0.0);
    let centre = sound.then(|| Centre::of(&logs(values)))?;
    let half_width = student(normal_quantile(1.0 - alpha / 2.0), centre.freedom?) * centre.error;
    Some(Known { log: centre.value, half_width })
}

impl Centre {
    fn of(values: &[f64]) -> Self {
        let (value, error, freedom) = calibrated(values);
        let of = Centre {
            value,
            error,
            freedom: Some(freedom),
            independent: (error, freedom),
            dependence: None,
            is_weighed: false,
        };
        let Some(series) = Series::of(values) else {
            return Centre { error: 0.0, independent: (0.0, freedom), ..of };
        };
        // What is too weak to be seen may be there all the same.
        let least = ((1.0 + series.lag) / (1.0 - series.lag)).sqrt();
        let of = Centre { error: least * error, independent: (least * error, freedom), ..of };
        let Some((dependence, waves)) = series.dependence else { return of };
        let count = ((dependence.effective / NUMBERS_PER_WAVE) as usize).min(WAVES_MAX);
        if count < WAVES_MIN && series.is_sure {
            return Centre { freedom: None, dependence: Some(dependence), ..of };
        }
        // Chance may have made it, and may have hidden more of it.
        let is_weighed = count >= WAVES_MIN;
        let widened = if is_weighed { 1.0 } else { UNSURE };
        let count = count.max(WAVES_MIN);
        let effective =
            dependence.effective.max((NUMBERS_PER_WAVE * WAVES_MIN as f64).min(values.len() as f64));
        let dependence = Some(Dependence { effective, ..dependence });
        let slow = (mean(&waves[..count]) / values.len() as f64).sqrt();
        // Dependence that pulls neighbours apart would narrow the interval: that is left to those who know it.
        Centre {
            error: widened * slow.max(of.error),
            freedom: Some(count as f64),
            dependence,
            is_weighed,
            ..of
        }
    }
}

/// Values that differ by no more than this of their size are alike: what comes of a logarithm is right to some 1e-16.
const ALIKE: f64 = 1e-13;

/// What a series shows of itself.
struct Series {
    /// Its lag-1 correlation, none below zero.
    lag: f64,
    /// Dependence that is more than chance, with the strengths of its waves from the slowest on.
    dependence: Option<(Dependence, Vec<f64>)>,
    /// Whether chance hardly ever makes it.
    is_sure: bool,
}

impl Series {
    /// `None` where all values are alike, but for what rounding leaves of equal ratios.
    fn of(values: &[f64]) -> Option<Self> {
        let influences = influences(values);
        let centre = mean(&influences);
        let centred: Vec<f64> = influences.iter().map(|value| value - centre).collect();
        let n = values.len() as f64;
        let squares: f64 = centred.iter().map(|value| value * value).sum();
        let rounding = ALIKE * (1.0 + centre.abs());
        if squares <= n * rounding * rounding {
            return None;
        }
        let products = |lag: usize| centred[lag..].iter().zip(&centred).map(|(a, b)| a * b).sum::<f64>();
        let read = products(1) / squares;
        // A mean taken from the same few numbers hides that much of a correlation (Marriott and Pope, 1954).
        let hidden = (1.0 + 4.0 * read.clamp(0.0, 1.0)) / n;
        let waves = waves(&centred);
        let ratio = mean(&waves[..SLOW_WAVES.min(waves.len())]) / (squares / (n - 1.0));
        let lag = (read + hidden).clamp(0.0, LAG_SEEN_MAX);
        if read * n.sqrt() <= LAG_Z && ratio <= SLOW_RATIO {
            return Some(Self { lag, dependence: None, is_sure: false });
        }
        let is_sure = read * n.sqrt() > LAG_SURE_Z || ratio > SLOW_SURE_RATIO;
        let error = ((1.0 - read * read).max(0.0) / n).sqrt();
        let lag_1 = (read + hidden + LAG_SIGMAS * error).clamp(0.0, LAG_MAX);
        // How it fades further on: noise of single numbers on top of a slow drift hides how slow it is.
        let [two, three] = [2, 3].map(|lag| products(lag) / squares + hidden);
        let fades = ((two + three) / (lag_1 + two).max(1e-9)).clamp(lag_1, LAG_MAX);
        let by_lags = 1.0 + 2.0 * lag_1 / (1.0 - fades);
        let each = if ratio > SLOW_RATIO { by_lags.max(ratio) } else { by_lags };
        let dependence = Dependence { lag_1: lag, effective: n / each };
        Some(Self { lag, dependence: Some((dependence, waves)), is_sure })
    }
}

/// How many times the error of a mean of these is what independent ones have, by what they show of their dependence; and that, where
/// it is more than chance. `None` where they are alike.
pub(crate) fn times_the_error(values: &[f64]) -> Option<(f64, Option<Dependence>)> {
    let series = Series::of(values)?;
    let least = ((1.0 + series.lag) / (1.0 - series.lag)).sqrt();
    let dependence = series.dependence.map(|(dependence, _)| dependence);
    let seen = dependence.map_or(1.0, |one| (values.len() as f64 / one.effective).sqrt());
    Some((least.max(seen), dependence))
}

/// Squares of a series' cosine waves, the slowest first, each scaled to the variance of independent numbers.
fn waves(centred: &[f64]) -> Vec<f64> {
    let n = centred.len() as f64;
    let strength = |wave: usize| {
        let angle = std::f64::consts::PI * wave as f64 / n;
        let sum: f64 =
            centred.iter().enumerate().map(|(at, value)| value * (angle * (at as f64 + 0.5)).cos()).sum();
        2.0 * sum * sum / n
    };
    (1..=WAVES_MAX.max(SLOW_WAVES).min(centred.len() / 2)).map(strength).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;

    /// Numbers around 100, each like the one before by this much.
    fn series(rng: &mut Prng, n: usize, lag: f64) -> Vec<f64> {
        let mut state = rng.normal();
        let mut next = || {
            let now = state;
            state = lag * state + (1.0 - lag * lag).sqrt() * rng.normal();
            100.0 + now
        };
        (0..n).map(|_| next()).collect()
    }

    /// Shares called different, and told nothing of.
    fn shares(runs: usize, mut numbers: impl FnMut() -> Vec<f64>, unpaired: bool) -> [f64; 2] {
        let compare = if unpaired { series_unpaired } else { series_paired };
        let (mut called, mut silent) = (0, 0);
        for _ in 0..runs {
            let told = compare(&numbers(), &numbers(), 0.01).unwrap();
            called += usize::from(told.verdict() != Verdict::NoDifference);
            silent += usize::from(!told.tells);
        }
        [called, silent].map(|count| count as f64 / runs as f64)
    }

    /// Planted fault: only a spread of exactly nothing is none (`ALIKE` of 0): what rounding leaves of equal ratios is then
    /// taken for numbers that resemble their neighbours.
    #[test]
    fn ratios_that_are_alike_but_for_rounding_have_no_spread() {
        let a: Vec<f64> = (100..130).map(f64::from).collect();
        let b: Vec<f64> = a.iter().map(|value| value * 0.9).collect();
        for (a, b) in [(a, b), (vec![5.0; 30], vec![6.0; 30]), (vec![1e9; 30], vec![1.1e9; 30])] {
            let told = series_paired(&a, &b, 0.01).unwrap();
            assert!(told.tells && !told.estimate.has_spread() && told.dependence.is_none(), "{told:?}");
            assert!(told.estimate.log_ratio.abs() > 0.09);
        }
    }

    /// Planted fault: with `LAG_Z` and `SLOW_RATIO` infinite (no dependence is ever seen) 13 to 40 % are called.
    #[test]
    fn equal_series_are_rarely_called_different_however_alike_neighbours_are() {
        const RUNS: usize = 2_000;
        let mut rng = Prng::new(2);
        for n in [20, 40, 100, 200] {
            for lag in [0.0, 0.5, 0.85] {
                for unpaired in [false, true] {
                    let [called, silent] = shares(RUNS, || series(&mut rng, n, lag), unpaired);
                    println!(
                        "{n} numbers, lag-1 {lag}, unpaired {unpaired}: called {called:.4}, cannot tell {silent:.3}"
                    );
                    // Twenty numbers hide some of it.
                    let most = if n < 40 { 0.05 } else { 0.02 };
                    assert!(called <= most, "{n}, {lag}, {unpaired}: {called}");
                }
            }
        }
    }

    /// Planted fault: a threshold of 0 for the lag sees dependence everywhere, and a third of these are not found.
    #[test]
    fn independent_numbers_lose_little() {
        let mut rng = Prng::new(3);
        let found = (0..400).filter(|_| {
            let a = series(&mut rng, 60, 0.0);
            let b: Vec<f64> = series(&mut rng, 60, 0.0).iter().map(|value| 1.01 * value).collect();
            let told = series_paired(&a, &b, 0.01).unwrap();
            told.tells && Verdict::of(&told.estimate) == Verdict::Worse
        });
        let found = found.count();
        println!("{found} of 400 found: 5.5 standard errors");
        // One in fifty is lost to stretches that chance makes.
        assert!(found >= 352, "{found}");
    }

    /// Planted fault: whatever is worth less than six independent numbers tells nothing (`is_sure` of every dependence): then 6 % of
    /// these are refused in pairs, and 12 % as wholes.
    #[test]
    fn independent_numbers_are_hardly_ever_said_to_change_too_slowly() {
        let mut rng = Prng::new(4);
        for n in [10, 20, 40] {
            for unpaired in [false, true] {
                let [called, silent] = shares(2_000, || series(&mut rng, n, 0.0), unpaired);
                println!("{n} numbers, unpaired {unpaired}: called {called:.4}, cannot tell {silent:.4}");
                assert!(silent <= 0.015 && called <= 0.017, "{n}, {unpaired}: {called} {silent}");
            }
        }
    }

    #[test]
    fn a_series_that_wanders_tells_nothing_and_says_what_it_is_worth() {
        let rising: Vec<f64> = (0..50).map(|at| 100.0 + f64::from(at)).collect();
        let told = series_unpaired(&rising, &rising, 0.01).unwrap();
        let dependence = told.dependence.unwrap();
        assert!(!told.tells && dependence.effective < 9.0 && dependence.lag_1 > 0.8, "{told:?}");
        let told = series_paired(&rising, &rising, 0.01).unwrap();
        assert!(told.tells && told.dependence.is_none(), "what both share is gone in pairs: {told:?}");
    }

    /// A cosine of two half waves over twelve numbers: its own strength is 2 · (12 / 2)² / 12 = 6, and the others have none.
    #[test]
    fn a_wave_is_told_from_all_others() {
        for wave in 1..=6_usize {
            let angle = std::f64::consts::PI * wave as f64 / 12.0;
            let numbers: Vec<f64> = (0..12).map(|at| (angle * (f64::from(at) + 0.5)).cos()).collect();
            let strengths = waves(&numbers);
            assert_eq!(strengths.len(), 6);
            for (at, strength) in strengths.iter().enumerate() {
                let wanted = if at + 1 == wave { 6.0 } else { 0.0 };
                assert!((strength - wanted).abs() < 1e-9, "wave {wave}: {strengths:?}");
            }
        }
        assert_eq!(
            [4, 7, 40].map(|n| waves(&vec![1.0; n]).len()),
            [2, 3, WAVES_MAX],
            "half of the numbers at most"
        );
    }

    /// Numbers that swing from one to the next have a correlation below nought: they are as good as independent, and no better.
    #[test]
    fn numbers_that_swing_are_taken_for_independent_ones() {
        let a = vec![100.0; 20];
        let b: Vec<f64> = (0..20).map(|at| if at % 2 == 0 { 101.0 } else { 99.0 }).collect();
        let told = series_paired(&a, &b, 0.01).unwrap();
        let plain = crate::estimate::compare_paired(&a, &b, 0.01).unwrap();
        assert!(told.tells && told.dependence.is_none(), "{told:?}");
        assert!((told.estimate.half_width / plain.half_width - 1.0).abs() < 1e-9, "{told:?} {plain:?}");
    }

    #[test]
    fn a_list_without_sense_has_no_level_and_short_ones_are_not_compared() {
        let sound = [100.0, 101.0, 99.0, 100.5, 100.0, 99.5];
        assert!(series_level(&sound, 0.01).is_some_and(|level| (level.log - 100_f64.ln()).abs() < 0.01));
        assert!(series_level(&sound[..5], 0.01).is_some() && series_level(&sound[..4], 0.01).is_none());
        for odd in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            let list = [&sound[..], &[odd][..]].concat();
            assert!(series_level(&list, 0.01).is_none(), "{odd}");
        }
        assert!(series_paired(&sound, &sound[..5], 0.01).is_none());
        assert!(series_paired(&sound[..4], &sound[..4], 0.01).is_none());
        assert!(series_unpaired(&sound, &sound[..4], 0.01).is_none());
        let told = series_unpaired(&sound, &sound[..5], 0.01).unwrap();
        assert_eq!((told.estimate.n, told.tells), (5, true), "the shorter one counts");
    }

    /// Planted faults: either list's, or the weaker dependence is told, or one that tells nothing is enough.
    #[test]
    fn two_lists_tell_as_much_as_the_one_that_tells_less() {
        let mut rng = Prng::new(8);
        let calm = series(&mut rng, 60, 0.0);
        let rising: Vec<f64> = (0..60).map(|at| 100.0 + f64::from(at)).collect();
        let wanders = |a: &[f64], b: &[f64]| {
            let told = series_unpaired(a, b, 0.01).unwrap();
            (told.tells, told.dependence.map(|seen| seen.effective < 10.0))
        };
        assert!(series_unpaired(&calm, &calm, 0.01).unwrap().tells);
        for (a, b) in [(&calm, &rising), (&rising, &calm), (&rising, &rising)] {
            assert_eq!(wanders(a, b), (false, Some(true)));
        }
        assert!(series_level(&rising, 0.01).is_none() && series_level(&calm, 0.01).is_some());
    }

    /// Of twenty numbers that swing by δ the influences swing by δ / 0.6; alike is what swings by 1e-13 at nought, by twice that at
    /// one and by 1e-10 at a thousand.
    #[test]
    fn numbers_are_alike_up_to_what_rounding_leaves_at_their_size() {
        let are_alike = |centre: f64, swing: f64| {
            let at = |n: usize| if n.is_multiple_of(2) { centre + 0.6 * swing } else { centre - 0.6 * swing };
            Series::of(&(0..20).map(at).collect::<Vec<_>>()).is_none()
        };
        for (centre, bound) in [(0.0, 1e-13), (1.0, 2e-13), (-1.0, 2e-13), (1_000.0, 1.001e-10)] {
            assert!(are_alike(centre, 0.9 * bound) && !are_alike(centre, 1.1 * bound), "{centre}");
        }
    }
}
