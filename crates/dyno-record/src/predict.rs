//! What a change should bring, from experiments on the setting before it: how much faster each function became, by a profile
//! of either side, and what its causal curve says that this is worth.
//!
//! The climb calls [`predict`] for every rung that it profiled on both sides; the chooser of sites uses the same division of
//! a profile ([`shares`]). Each sample belongs to one function: the innermost one of the program that is called, with what
//! was folded into it and what the kernel does for it. So worths may be summed, as far as sites add up at all.

use std::collections::HashMap;

use dyno_measure::student::student;

use crate::causal::{Causal, Point, Site};
use crate::climb::{ChangedFunction, Predicted, Worth};
use crate::profile::{Origin, Profile, Stack};

/// Standard errors beyond which a function is said to have changed: some thirty are looked at, one of them may be chance,
/// and chance changes are small.
const CLEAR_SIGMAS: f64 = 2.0;
/// Normal quantile of 95 % intervals.
const Z: f64 = 1.959_964;
/// Rounds that a curve must rest on.
const ROUNDS_MIN: usize = 5;
/// Delays still due at windows' ends, percent, from which on a curve is not believed.
const UNPAID_PERCENT_MAX: f64 = 10.0;
/// What belongs to no function of the program.
const KERNEL: &str = "[kernel]";
/// What did not change clearly, together: much of it may have changed a little.
const OTHERS: &str = "[all others]";

/// What of a profile belongs to one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share<'p> {
    /// Its file, as an index into the profile's modules.
    pub module: Option<u32>,
    /// Its name; `[kernel]` where no code of the program is on the stack.
    pub name: &'p str,
    /// Samples.
    pub samples: u64,
    /// Their time.
    pub weight_ns: u64,
}

/// A profile divided among the functions of the program, the greatest share first.
#[must_use]
pub fn shares(profile: &Profile) -> Vec<Share<'_>> {
    let mut found: HashMap<(Option<u32>, &str), (u64, u64)> = HashMap::new();
    for stack in &profile.stacks {
        let of = found.entry(owner(profile, stack)).or_default();
        *of = (of.0 + stack.samples, of.1 + stack.weight_ns);
    }
    let share =
        |((module, name), (samples, weight_ns)): (_, (u64, u64))| Share { module, name, samples, weight_ns };
    let mut all: Vec<Share<'_>> = found.into_iter().map(share).collect();
    all.sort_by(|a, b| {
        b.weight_ns.cmp(&a.weight_ns).then_with(|| (a.module, a.name).cmp(&(b.module, b.name)))
    });
    all
}

fn owner<'p>(profile: &'p Profile, stack: &Stack) -> (Option<u32>, &'p str) {
    let frames = stack.frames.iter().rev().filter_map(|at| profile.frames.get(*at as usize));
    let called = |frame: &&crate::profile::Frame| frame.origin == Origin::User && !frame.inlined;
    let innermost = frames.into_iter().find(called);
    innermost.map_or((None, KERNEL), |frame| (frame.module, frame.name.as_str()))
}

/// What the change between two profiles should bring by the curves of the setting before. Effects are changes of the time
/// per request; what was measured is the caller's to fill in. `looks` are the CPU times per request of the stretches that the
/// profiles were joined from, before and after beside each other: how much they differ among themselves is in the interval.
/// Where fewer than two of them show it, `drift_percent` is none, and the interval lacks it.
#[must_use]
pub fn predict(causal: &Causal, before: &Profile, after: &Profile, looks: &[[f64; 2]]) -> Predicted {
    match predicted(causal, before, after, drift(looks)) {
        Ok(predicted) => predicted,
        Err(why) => Predicted { why_not: Some(why), ..Predicted::default() },
    }
}

fn predicted(
    causal: &Causal,
    before: &Profile,
    after: &Profile,
    drift: Option<f64>,
) -> Result<Predicted, String> {
    let (before, after) = (times(before)?, times(after)?);
    let curves: Vec<Curve<'_>> = causal.sites.iter().filter_map(Curve::of).collect();
    let average = average(&curves).ok_or_else(|| no_curve(causal))?;
    let total_us: f64 = before.of.values().map(|time| time.us).sum();
    let basis = Basis { curves: &curves, average, total_us };
    let (mut changed, others) = changed(&before, &after);
    changed
        .sort_by(|a, b| b.change_us().abs().total_cmp(&a.change_us().abs()).then_with(|| a.key.cmp(b.key)));
    if changed.is_empty() {
        return Err("no function's CPU per request changed by more than samples can tell".to_owned());
    }
    let set_off = SetOff::of(&changed);
    let mut worths: Vec<Worthy> = changed.iter().map(|one| one.worth(&basis, set_off)).collect();
    let all_others = (String::new(), OTHERS.to_owned());
    let others = others.map(|(before, after)| Changed { key: &all_others, before, after });
    changed.extend(others);
    worths.extend(
        changed.last().filter(|_| changed.len() > worths.len()).map(|one| one.worth(&basis, SetOff::NONE)),
    );
    let after_us: f64 = after.of.values().map(|time| time.us).sum();
    let drifted = drift.map(|drift| average.value.abs() * 100.0 * after_us / total_us * drift);
    let sum = sum(&worths, average, drifted.unwrap_or(0.0));
    let is_changed = |curve: &&Curve<'_>| changed.iter().any(|one| curve.is_of(one.key));
    Ok(Predicted {
        predicted_percent: Some(sum.value),
        interval_percent: Some(sum.interval()),
        drift_percent: drifted,
        unchanged: curves.iter().filter(|one| !is_changed(one)).map(|one| one.site.name.clone()).collect(),
        functions: changed.iter().zip(&worths).map(|(one, worth)| one.record(worth)).collect(),
        ..Predicted::default()
    })
}

/// Why there is no curve to go by: what was said of the heaviest site.
fn no_curve(causal: &Causal) -> String {
    let heaviest = causal
        .sites
        .iter()
        .max_by(|a, b| a.share_percent.unwrap_or(0.0).total_cmp(&b.share_percent.unwrap_or(0.0)));
    match (heaviest, &causal.cut_short) {
        (_, Some(why)) => format!("the experiments ended early: {why}"),
        (Some(site), None) => format!("no curve holds; {}: {}", site.name, site.reason),
        (None, None) => "no function has enough samples to be tried".to_owned(),
    }
}

/// A value with the half width of its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Figure {
    value: f64,
    half: f64,
}

impl Figure {
    fn interval(self) -> [f64; 2] {
        [self.value - self.half, self.value + self.half]
    }
}

/// CPU per request of a function, with its standard error.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Time {
    us: f64,
    error_us: f64,
}

/// File and name.
type Key = (String, String);

/// CPU per request of every function of one side.
struct Times {
    of: HashMap<Key, Time>,
    /// What a function that was not seen may take: one sample.
    unseen: Time,
}

fn times(profile: &Profile) -> Result<Times, String> {
    let requests = profile.requests.as_ref().filter(|requests| requests.count > 0);
    let requests =
        requests.ok_or("how many requests were answered beside the profile is not known")?.count as f64;
    let path = |module: Option<u32>| {
        module
            .and_then(|at| profile.modules.get(at as usize))
            .map_or(String::new(), |module| module.path.clone())
    };
    let time = |share: &Share<'_>| {
        let us = share.weight_ns as f64 / 1e3 / requests;
        Time { us, error_us: us / (share.samples.max(1) as f64).sqrt() }
    };
    let all = shares(profile);
    let samples: u64 = all.iter().map(|share| share.samples).sum();
    if samples == 0 {
        return Err("the profile has no sample".to_owned());
    }
    let one_us = profile.total_ns() as f64 / samples as f64 / 1e3 / requests;
    let of = all.iter().map(|share| ((path(share.module), share.name.to_owned()), time(share))).collect();
    Ok(Times { of, unseen: Time { us: 0.0, error_us: one_us } })
}

/// A function whose time is not what it was.
struct Changed<'k> {
    key: &'k Key,
    before: Time,
    after: Time,
}

/// Those that changed clearly; and all others together, before and after.
fn changed<'k>(before: &'k Times, after: &'k Times) -> (Vec<Changed<'k>>, Option<(Time, Time)>) {
    let new = after.of.keys().filter(|key| !before.of.contains_key(*key));
    let of = |key: &'k Key| Changed {
        key,
        before: before.of.get(key).copied().unwrap_or(before.unseen),
        after: after.of.get(key).copied().unwrap_or(after.unseen),
    };
    let (clear, others): (Vec<_>, Vec<_>) =
        before.of.keys().chain(new).map(of).partition(|one: &Changed<'_>| one.is_clear());
    let joined = |time: fn(&Changed<'_>) -> Time| Time {
        us: others.iter().map(|one| time(one).us).sum(),
        error_us: others.iter().map(|one| time(one).error_us.powi(2)).sum::<f64>().sqrt(),
    };
    let together = (joined(|one| one.before), joined(|one| one.after));
    (clear, (!others.is_empty()).then_some(together))
}

impl Changed<'_> {
    /// What came on top; negative where it became faster.
    fn change_us(&self) -> f64 {
        self.after.us - self.before.us
    }

    fn error_us(&self) -> f64 {
        self.after.error_us.hypot(self.before.error_us)
    }

    fn is_clear(&self) -> bool {
        self.change_us().abs() > CLEAR_SIGMAS * self.error_us()
    }

    /// Whether it was not there before.
    fn is_new(&self) -> bool {
        self.before.us <= 0.0
    }

    /// How much faster it became, percent of itself; none where it was not there.
    fn faster(&self) -> Option<Figure> {
        let ratio = (!self.is_new()).then(|| self.after.us / self.before.us)?;
        let error =
            (self.after.error_us / self.before.us).hypot(ratio * self.before.error_us / self.before.us);
        Some(Figure { value: 100.0 * (1.0 - ratio), half: 100.0 * Z * error })
    }

    /// What its change is worth, less what is set off: by its own curve, or by the average of all.
    fn worth(&self, basis: &Basis<'_>, set_off: SetOff) -> Worthy {
        let left = set_off.left(self);
        let curve = basis.curves.iter().find(|curve| curve.is_of(self.key));
        if let Some((curve, faster)) = curve.zip(self.faster()) {
            return curve.worth(Figure { value: left * faster.value, ..faster });
        }
        let (average, percent) = (basis.average, 100.0 / basis.total_us);
        let slower_percent = left * percent * self.change_us();
        let sampled = average.value * percent * Z * self.error_us();
        let figure = Figure {
            value: average.value * slower_percent,
            half: sampled.hypot(average.half * slower_percent),
        };
        let by = if self.is_new() && left <= 0.0 { Worth::SetOff } else { Worth::Average };
        Worthy { figure, by, slower_percent, sampled }
    }

    fn record(&self, worth: &Worthy) -> ChangedFunction {
        let is_own = worth.by != Worth::SetOff;
        ChangedFunction {
            name: self.key.1.clone(),
            before_us: self.before.us,
            after_us: self.after.us,
            faster_percent: self.faster().map(|faster| faster.value),
            predicted_percent: is_own.then_some(worth.figure.value),
            interval_percent: is_own.then(|| worth.figure.interval()),
            by: worth.by,
        }
    }
}

/// What worths are read from.
struct Basis<'c> {
    curves: &'c [Curve<'c>],
    /// What a percent of all the time is worth on average.
    average: Figure,
    /// All the time of a request before.
    total_us: f64,
}

/// New code does what other code did before: its time is set off against that of all that became faster, each by the same
/// part. Two curves' errors would else stand for a difference that may be small.
#[derive(Debug, Clone, Copy)]
struct SetOff {
    new_us: f64,
    saved_us: f64,
}

impl SetOff {
    const NONE: SetOff = SetOff { new_us: 0.0, saved_us: f64::INFINITY };

    fn of(changed: &[Changed<'_>]) -> SetOff {
        let change =
            |new: bool| changed.iter().filter(move |one| one.is_new() == new).map(Changed::change_us);
        SetOff { new_us: change(true).sum(), saved_us: change(false).map(|us| (-us).max(0.0)).sum() }
    }

    /// The part of a function's change that is left.
    fn left(self, one: &Changed<'_>) -> f64 {
        let rest = |own: f64, other: f64| (1.0 - other / own).max(0.0);
        match one.is_new() {
            true => rest(self.new_us, self.saved_us),
            false if one.change_us() < 0.0 => rest(self.saved_us, self.new_us),
            false => 1.0,
        }
    }
}

/// What one function's change is worth.
struct Worthy {
    figure: Figure,
    by: Worth,
    /// Its change, percent of all the time; only of those that are worth the average.
    slower_percent: f64,
    /// What samples alone leave open of it.
    sampled: f64,
}

/// How far the mean ratio of stretches may be from the truth: the half width of its 95 % interval, as a logarithm. Machines
/// drift, and processes differ, by more than samples alone would show. None where fewer than two stretches show it.
fn drift(looks: &[[f64; 2]]) -> Option<f64> {
    let ratios = looks.iter().map(|[before, after]| (after / before).ln());
    let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
    let n = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / n;
    let variance = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (ratios.len() > 1).then(|| student(Z, n - 1.0) * (variance / n).sqrt())
}

/// Those that are worth the average err together, by what the average errs, and all by what the machine drifted; everything
/// else errs by itself.
fn sum(worths: &[Worthy], average: Figure, drifted: f64) -> Figure {
    let value = worths.iter().map(|one| one.figure.value).sum();
    let averaged: f64 = worths.iter().map(|one| one.slower_percent).sum();
    let by_curve = |one: &Worthy| matches!(one.by, Worth::Curve | Worth::BeyondCurve);
    let own = |one: &Worthy| if by_curve(one) { one.figure.half } else { one.sampled };
    let squares: f64 = worths.iter().map(|one| own(one).powi(2)).sum();
    Figure { value, half: squares.sqrt().hypot(average.half * averaged).hypot(drifted) }
}

/// The sound points of a site.
struct Curve<'s> {
    site: &'s Site,
    /// Levels in rising order, with what each saves.
    points: Vec<(f64, Figure)>,
}

impl<'s> Curve<'s> {
    /// None where the site's figures do not hold, or are so wide that they cannot tell nothing from everything.
    fn of(site: &'s Site) -> Option<Curve<'s>> {
        let contradicted = site.slow_down.is_some_and(|slow| slow.contradicts);
        let unpaid = site.credibility.unpaid_percent > UNPAID_PERCENT_MAX;
        if contradicted
            || unpaid
            || site.credibility.load_bound == Some(false)
            || site.share_percent.is_none()
        {
            return None;
        }
        let sound = |point: &&Point| !point.biased && point.rounds >= ROUNDS_MIN;
        let mut points: Vec<(f64, Figure)> = site.points.iter().filter(sound).map(level).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let curve = (!points.is_empty()).then_some(Curve { site, points })?;
        (curve.greatest().1.half < curve.taken()).then_some(curve)
    }

    /// The part of all the time, percent, that the greatest level takes away: what it saves where everything waits for it.
    fn taken(&self) -> f64 {
        self.site.share_percent.unwrap_or(0.0) * self.greatest().0 / 100.0
    }

    fn is_of(&self, (module, name): &Key) -> bool {
        self.site.name == *name && self.site.source.module.as_deref().unwrap_or_default() == module
    }

    /// The greatest level and what it saves.
    fn greatest(&self) -> (f64, Figure) {
        self.points[self.points.len() - 1]
    }

    /// What so much faster saves: between two levels in proportion, beyond the greatest and on the other side of nought along
    /// the line to the greatest.
    fn saves(&self, percent: f64) -> Figure {
        let along = |(x0, y0): (f64, Figure), (x1, y1): (f64, Figure)| {
            let part = (percent - x0) / (x1 - x0);
            let between = |a: f64, b: f64| a + part * (b - a);
            Figure { value: between(y0.value, y1.value), half: between(y0.half, y1.half).abs() }
        };
        let origin = (0.0, Figure::default());
        let all: Vec<(f64, Figure)> = std::iter::once(origin).chain(self.points.iter().copied()).collect();
        let within = all.windows(2).find(|ends| (ends[0].0..=ends[1].0).contains(&percent));
        within.map_or_else(|| along(origin, self.greatest()), |ends| along(ends[0], ends[1]))
    }

    fn worth(&self, faster: Figure) -> Worthy {
        let (level, greatest) = self.greatest();
        let saves = self.saves(faster.value);
        let sampled = greatest.value / level * faster.half;
        let figure = Figure { value: -saves.value, half: saves.half.hypot(sampled) };
        let by = if faster.value > level { Worth::BeyondCurve } else { Worth::Curve };
        Worthy { figure, by, slower_percent: 0.0, sampled }
    }
}

fn level(point: &Point) -> (f64, Figure) {
    let [low, high] = point.interval_percent;
    (f64::from(point.speedup_percent), Figure { value: point.effect_percent, half: (high - low).abs() / 2.0 })
}

/// What a percent of all the time is worth, over all curves, the surer ones counting for more: one where everything waits
/// for everything.
fn average(curves: &[Curve<'_>]) -> Option<Figure> {
    let worth = |curve: &Curve<'_>| {
        let (figure, taken) = (curve.greatest().1, curve.taken());
        // No interval is without a width; this only keeps the division whole.
        Figure { value: figure.value / taken, half: (figure.half / taken).max(1e-6) }
    };
    let weighted = curves.iter().map(worth).map(|worth| (worth.value, worth.half.powi(-2)));
    let (sum, weights) =
        weighted.fold((0.0, 0.0), |(sum, weights), (value, weight)| (sum + value * weight, weights + weight));
    (weights > 0.0).then(|| Figure { value: sum / weights, half: weights.powf(-0.5) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::{Credibility, Source};
    use crate::profile::{Frame, Module, Requests};

    /// µs per request of each function, from ten thousand requests and a sample for each 100 µs.
    fn profile(times: &[(&str, f64)]) -> Profile {
        let frame = |name: &str| Frame { name: name.to_owned(), module: Some(0), ..Frame::default() };
        let kernel = Frame { name: "tcp_sendmsg".to_owned(), origin: Origin::Kernel, ..Frame::default() };
        let folded = Frame { inlined: true, ..frame("folded") };
        let mut frames: Vec<Frame> = times.iter().map(|(name, _)| frame(name)).collect();
        let rest = frames.len() as u32;
        frames.extend([kernel, folded]);
        let stack = |(at, (_, us)): (usize, &(&str, f64))| {
            let weight_ns = (us * 1e3 * 10_000.0) as u64;
            // The kernel works for some, and code is folded into others.
            let frames = vec![at as u32, rest + (at % 2) as u32];
            Stack { frames, samples: weight_ns / 100_000, weight_ns, ..Stack::default() }
        };
        Profile {
            requests: Some(Requests { count: 10_000, source: "load".to_owned() }),
            modules: vec![Module { path: "/bin/server".to_owned(), ..Module::default() }],
            stacks: times.iter().enumerate().map(stack).collect(),
            frames,
            ..Profile::default()
        }
    }

    fn site(name: &str, share: f64, points: &[(u32, f64)]) -> Site {
        let point = |&(speedup_percent, effect_percent): &(u32, f64)| Point {
            speedup_percent,
            effect_percent,
            interval_percent: [effect_percent - 0.5, effect_percent + 0.5],
            rounds: 9,
            ..Point::default()
        };
        Site {
            name: name.to_owned(),
            source: Source { module: Some("/bin/server".to_owned()), ..Source::default() },
            share_percent: Some(share),
            points: points.iter().map(point).collect(),
            ..Site::default()
        }
    }

    fn causal(sites: Vec<Site>) -> Causal {
        Causal { sites, ..Causal::default() }
    }

    #[test]
    fn each_sample_belongs_to_the_innermost_function_that_is_called() {
        let profile = profile(&[("send", 6.0), ("encode", 4.0)]);
        let shares: Vec<_> = shares(&profile).iter().map(|share| (share.name, share.weight_ns)).collect();
        assert_eq!(shares, [("send", 60_000_000), ("encode", 40_000_000)]);
        let kernel = Profile {
            stacks: vec![Stack { frames: vec![2], samples: 1, weight_ns: 7, ..Stack::default() }],
            ..profile
        };
        assert_eq!(super::shares(&kernel)[0].name, KERNEL);
    }

    #[test]
    fn a_function_that_takes_half_is_worth_what_its_curve_says_at_half() {
        let (before, after) =
            (profile(&[("send", 6.0), ("encode", 4.0)]), profile(&[("send", 3.0), ("encode", 4.0)]));
        let causal =
            causal(vec![site("send", 60.0, &[(25, 10.0), (50, 18.0)]), site("encode", 40.0, &[(50, 20.0)])]);
        let found = predict(&causal, &before, &after, &[]);
        assert!((found.predicted_percent.unwrap() + 18.0).abs() < 0.2, "{found:?}");
        let [low, high] = found.interval_percent.unwrap();
        assert!(low < -18.6 && high > -17.4 && low > -24.0, "samples have an error too: {found:?}");
        assert_eq!((found.functions.len(), &found.unchanged[..]), (2, &["encode".to_owned()][..]));
        assert_eq!(found.functions[1].name, OTHERS);
        assert_eq!(found.functions[0].by, Worth::Curve);
    }

    #[test]
    fn a_curve_is_read_between_beyond_and_before_its_levels() {
        let site = site("send", 60.0, &[(25, 10.0), (50, 18.0)]);
        let curve = Curve::of(&site).unwrap();
        let read = |percent| curve.saves(percent).value;
        assert!((read(12.5) - 5.0).abs() < 1e-9 && (read(37.5) - 14.0).abs() < 1e-9);
        assert!((read(100.0) - 36.0).abs() < 1e-9 && (read(-50.0) + 18.0).abs() < 1e-9);
        let half = curve.saves(100.0).half;
        assert!((half - 1.0).abs() < 1e-9, "twice as far, twice as unsure: {half}");
    }

    #[test]
    fn what_replaces_a_function_takes_off_what_it_saved() {
        let (before, after) =
            (profile(&[("read", 5.0), ("rest", 5.0)]), profile(&[("recv", 4.5), ("rest", 5.0)]));
        let causal = causal(vec![site("read", 50.0, &[(50, 25.0)]), site("rest", 50.0, &[(50, 25.0)])]);
        let found = predict(&causal, &before, &after, &[]);
        assert!((found.predicted_percent.unwrap() + 5.0).abs() < 0.5, "{found:?}");
        let by: Vec<Worth> = found.functions.iter().map(|one| one.by).collect();
        assert_eq!(by, [Worth::Curve, Worth::SetOff, Worth::Average]);
        let new = &found.functions[1];
        assert_eq!((new.faster_percent, new.predicted_percent), (None, None));
        let dearer = predict(&causal, &before, &profile(&[("recv", 7.0), ("rest", 5.0)]), &[]);
        assert!((dearer.predicted_percent.unwrap() - 20.0).abs() < 0.5, "{dearer:?}");
    }

    #[test]
    fn a_curve_that_cannot_tell_nothing_from_everything_is_none() {
        let wide = |half: f64| {
            let mut site = site("free", 4.0, &[(50, -3.0)]);
            site.points[0].interval_percent = [-3.0 - half, -3.0 + half];
            site
        };
        assert!(Curve::of(&wide(2.1)).is_none() && Curve::of(&wide(1.9)).is_some());
        let sure = site("send", 60.0, &[(50, 30.0)]);
        let curves: Vec<Curve<'_>> = [&sure].into_iter().filter_map(Curve::of).collect();
        assert!((average(&curves).unwrap().value - 1.0).abs() < 1e-9);
        let odd = wide(1.9);
        let both: Vec<Curve<'_>> = [&sure, &odd].into_iter().filter_map(Curve::of).collect();
        assert!((average(&both).unwrap().value - 1.0).abs() < 0.01, "the sure one counts");
    }

    #[test]
    fn code_that_nobody_waits_for_is_worth_nothing_however_much_faster_it_is() {
        let (before, after) =
            (profile(&[("beside", 6.0), ("path", 4.0)]), profile(&[("beside", 1.0), ("path", 4.0)]));
        let causal = causal(vec![site("beside", 60.0, &[(50, 0.0)]), site("path", 40.0, &[(50, 50.0)])]);
        let found = predict(&causal, &before, &after, &[]);
        assert!(found.predicted_percent.unwrap().abs() < 0.1, "{found:?}");
    }

    #[test]
    fn nothing_is_predicted_without_a_curve_a_change_or_requests() {
        let (before, after) = (profile(&[("send", 6.0)]), profile(&[("send", 3.0)]));
        let why = |causal: &Causal, before: &Profile, after: &Profile| {
            let found = predict(causal, before, after, &[]);
            assert_eq!((found.predicted_percent, found.interval_percent), (None, None));
            found.why_not.unwrap()
        };
        let good = causal(vec![site("send", 60.0, &[(50, 18.0)])]);
        assert!(why(&good, &before, &before).contains("more than samples can tell"));
        let unknown = Profile { requests: None, ..after.clone() };
        assert!(why(&good, &before, &unknown).contains("requests"));
        assert!(why(&causal(Vec::new()), &before, &after).contains("enough samples"));
        let waiting = Credibility { load_bound: Some(false), ..Credibility::default() };
        let site =
            Site { credibility: waiting, reason: "not load-bound".to_owned(), ..good.sites[0].clone() };
        assert!(why(&causal(vec![site]), &before, &after).contains("send: not load-bound"));
        let cut = Causal { cut_short: Some("interrupted".to_owned()), ..causal(Vec::new()) };
        assert!(why(&cut, &before, &after).contains("interrupted"));
    }

    #[test]
    fn a_change_within_the_samples_error_is_left_out() {
        let (before, after) =
            (profile(&[("send", 6.0), ("odd", 0.05)]), profile(&[("send", 3.0), ("odd", 0.04)]));
        let causal = causal(vec![site("send", 60.0, &[(50, 18.0)])]);
        let found = predict(&causal, &before, &after, &[]);
        let names: Vec<&str> = found.functions.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["send", OTHERS], "{found:?}");
    }

    #[test]
    fn stretches_that_differ_widen_the_interval() {
        let (before, after) = (profile(&[("send", 6.0)]), profile(&[("send", 3.0)]));
        let causal = causal(vec![site("send", 60.0, &[(50, 30.0)])]);
        let half = |looks: &[[f64; 2]]| {
            let [low, high] = predict(&causal, &before, &after, looks).interval_percent.unwrap();
            (high - low) / 2.0
        };
        let (alike, apart) = (half(&[[6.0, 3.0], [6.1, 3.05]]), half(&[[6.0, 3.0], [6.0, 2.7], [6.0, 3.3]]));
        assert!((alike - half(&[])).abs() < 0.1 && apart > alike + 5.0, "{alike} {apart}");
    }

    #[test]
    fn an_interval_without_drift_says_so() {
        let (before, after) = (profile(&[("send", 6.0)]), profile(&[("send", 3.0)]));
        let causal = causal(vec![site("send", 60.0, &[(50, 30.0)])]);
        let drift = |looks: &[[f64; 2]]| predict(&causal, &before, &after, looks).drift_percent;
        let unread = [f64::INFINITY, 3.0];
        assert_eq!([drift(&[]), drift(&[[6.0, 3.0]]), drift(&[[6.0, 3.0], unread])], [None; 3]);
        let (two, and_unread) = (drift(&[[6.0, 3.0], [6.0, 2.7]]), drift(&[[6.0, 3.0], unread, [6.0, 2.7]]));
        assert!(two.is_some_and(|drift| drift > 1.0) && two == and_unread, "{two:?} {and_unread:?}");
    }
}
