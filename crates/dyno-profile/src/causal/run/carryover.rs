//! Whether what was done in one window still shows in the next (carry-over). A queue that filled while its producer was faster
//! drains for a while after, and a window that opens meanwhile measures the queue and not the treatment: a producer that
//! all others wait for seems worth nothing, or twice what it is.
//!
//! Rounds are run in an order of chance, so windows of the same treatment differ by what was done before them. Those after
//! a faster site and those after nothing are alike where nothing is carried over. Pure.

use dyno_measure::stats::{MAD_SIGMA, mean, median};
use dyno_measure::student::chance;
use dyno_record::causal::{Metric, Treatment};

use super::measured::{Excluded, Measured};

/// How often chance alone may be taken for carry-over, over all looks at a site.
const CHANCE_MAX: f64 = 0.001;
/// From here on it is open whether there is any.
const CHANCE_OPEN: f64 = 0.02;
/// Least carry-over that matters, percent.
const PERCENT_MIN: f64 = 0.5;
/// Least standard deviation of a window: equal ones would make everything certain.
const SPREAD_MIN: f64 = 5e-4;
/// Least drift of the target without delays since before the first one, percent: any machine drifts by less.
const DRIFT_PERCENT_MIN: f64 = 2.0;
/// And in deviations of a window: a machine that drifts by as much in the meantime deviates by as much.
const DRIFT_SIGMAS_MIN: f64 = 2.0;
/// How often chance alone may be taken for drift.
const DRIFT_CHANCE_MAX: f64 = 0.001;
/// Fewest windows on each side of that comparison.
const DRIFT_ROWS_MIN: usize = 3;
/// Share of a round's windows that its mean leaves free.
const FREE_SHARE: f64 = 0.8;
/// Fewest degrees of freedom for a slope and its spread.
const FREEDOM_MIN: f64 = 6.0;
/// Fewest windows of each kind before: a line goes through one alone, whatever disturbed it, and calls the rest exact.
const ROWS_MIN: usize = 3;
/// What was done before a window, and how much longer its units took than those of its like.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    before: f64,
    ln: f64,
}

/// Whether windows of a site depend on those before them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Carryover {
    /// Nothing says so.
    None,
    /// They may: more windows are needed.
    Open,
    /// They do, by so much, as a logarithm.
    Shows(f64),
}

/// Compares a site's windows, each kind of treatment by what came before it.
pub(super) fn carryover(measured: &[Measured], metric: Metric) -> Carryover {
    let residuals = residuals(measured, metric);
    let look = |own: Kind, before: fn(Kind) -> Option<f64>| {
        let of_own = (0..measured.len()).filter(|at| Kind::of(measured[*at].treatment) == own);
        let row = |at| Some(Row { before: before(previous(measured, at)?)?, ln: residuals[at]? });
        slope(&of_own.filter_map(row).collect::<Vec<_>>())
    };
    let kinds = [Kind::Nothing, Kind::Faster, Kind::Slower];
    let looks =
        kinds.into_iter().flat_map(|own| [look(own, after_faster), look(own, after_slower)]).flatten();
    let looks: Vec<(f64, f64)> = looks.collect();
    let matters = looks.iter().filter(|(ln, _)| 100.0 * ln.abs() >= PERCENT_MIN);
    // Each look is a test of its own (Bonferroni).
    let below = |most: f64| {
        let found = matters.clone().filter(|(_, chance)| chance * looks.len() as f64 <= most);
        found.map(|(ln, _)| ln.abs()).max_by(f64::total_cmp)
    };
    match (below(CHANCE_MAX), below(CHANCE_OPEN)) {
        (Some(most), _) => Carryover::Shows(most),
        (None, Some(_)) => Carryover::Open,
        (None, None) => Carryover::None,
    }
}

/// What was done, however much of it: a queue between stages of nearly the same speed is filled by the least.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Faster,
    Slower,
}

impl Kind {
    fn of(treatment: Treatment) -> Kind {
        match treatment {
            Treatment::Nothing => Kind::Nothing,
            Treatment::SpeedUp(_) => Kind::Faster,
            Treatment::SlowDown(_) => Kind::Slower,
        }
    }
}

/// Windows after a faster site against those after nothing.
fn after_faster(before: Kind) -> Option<f64> {
    match before {
        Kind::Nothing => Some(0.0),
        Kind::Faster => Some(1.0),
        Kind::Slower => None,
    }
}

/// Windows after a slower site against all others.
fn after_slower(before: Kind) -> Option<f64> {
    Some(f64::from(u8::from(before == Kind::Slower)))
}

/// What was done in the window before; none for the first of a round, which another site's may come before.
fn previous(measured: &[Measured], at: usize) -> Option<Kind> {
    let previous = measured.get(at.checked_sub(1)?)?;
    (previous.round == measured[at].round).then(|| Kind::of(previous.treatment))
}

/// What is left of each window's time when the means of its treatment and of its round are taken out.
fn residuals(measured: &[Measured], metric: Metric) -> Vec<Option<f64>> {
    let lns: Vec<Option<f64>> = measured.iter().map(|one| ln(one, metric)).collect();
    let of_treatment = less_mean(measured, &lns, |a, b| a.treatment == b.treatment);
    let residuals = less_mean(measured, &of_treatment, |a, b| a.round == b.round);
    debug_assert_eq!(residuals.len(), measured.len(), "each window has its own");
    residuals
}

/// Values less the mean of their like.
fn less_mean(
    measured: &[Measured],
    values: &[Option<f64>],
    alike: impl Fn(&Measured, &Measured) -> bool,
) -> Vec<Option<f64>> {
    assert_eq!(measured.len(), values.len(), "each window has its value");
    let of_like = |one: &Measured| {
        let like = measured.iter().zip(values).filter(|(other, _)| alike(one, other));
        mean(&like.filter_map(|(_, value)| *value).collect::<Vec<_>>())
    };
    measured.iter().zip(values).map(|(one, value)| Some((*value)? - of_like(one))).collect()
}

/// By how much the target without delays is slower than it was before the first one, as a logarithm; `None` where it is
/// as fast as it was. `baseline` are windows from before, as logarithms.
pub(super) fn drift(measured: &[Measured], metric: Metric, baseline: &[f64]) -> Option<f64> {
    let nulls = measured.iter().filter(|one| one.is_null());
    let now: Vec<f64> = nulls.filter_map(|one| ln(one, metric)).collect();
    let [n, m] = [now.len(), baseline.len()].map(|n| n as f64);
    if now.len().min(baseline.len()) < DRIFT_ROWS_MIN {
        return None;
    }
    // A queue that is mostly full and empty now and then has two modes: medians say what is usual, and how far it is off.
    let gap = usual(&now) - usual(baseline);
    let off = |values: &[f64]| {
        let usual = usual(values);
        values.iter().map(|value| (value - usual).abs()).collect::<Vec<_>>()
    };
    let spread = (MAD_SIGMA * usual(&[off(&now), off(baseline)].concat())).max(SPREAD_MIN);
    let chance = chance(gap / (spread * (1.0 / n + 1.0 / m).sqrt()), n + m - 2.0);
    debug_assert!(spread >= SPREAD_MIN, "nothing is certain");
    let is_far = 100.0 * gap.abs() >= DRIFT_PERCENT_MIN && gap.abs() >= DRIFT_SIGMAS_MIN * spread;
    (is_far && chance < DRIFT_CHANCE_MAX).then_some(gap)
}

/// After how many windows without delays at most half of a gap to the baseline was left, for good; `None` where it stayed.
pub(super) fn recovered_after(undisturbed: &[f64], baseline: &[f64], gap: f64) -> Option<usize> {
    let is_back = |values: &[f64]| (mean(values) - usual(baseline)).abs() < gap.abs() / 2.0;
    // Of one window chance decides.
    let last = undisturbed.len().saturating_sub(1);
    debug_assert!(last == 0 || !baseline.is_empty(), "there is something to come back to");
    (0..last).find(|at| is_back(&undisturbed[*at..]) && is_back(&undisturbed[*at..*at + 2]))
}

fn usual(values: &[f64]) -> f64 {
    median(values.iter().copied())
}

/// Outliers count: what is far from its like may be just what is looked for.
fn ln(one: &Measured, metric: Metric) -> Option<f64> {
    let counts = matches!(one.excluded, None | Some(Excluded::Outlier));
    one.effective.filter(|_| counts)?.value(metric).map(f64::ln)
}

/// The straight line through the rows, and how often chance alone gives one as steep: without the row that is farthest off
/// too, which a neighbour has disturbed, perhaps. Times on a busy machine have no normal tails.
fn slope(rows: &[Row]) -> Option<(f64, f64)> {
    let highest = rows.iter().map(|row| row.before).fold(0.0, f64::max);
    let after = rows.iter().filter(|row| row.before >= highest).count();
    if after.min(rows.len() - after) < ROWS_MIN {
        return None;
    }
    let (slope, chance) = line(rows)?;
    let (_, of_rest) = line(&without_farthest(rows))?;
    Some((slope, chance.max(of_rest)))
}

/// Rows without the one that is farthest from the usual.
fn without_farthest(rows: &[Row]) -> Vec<Row> {
    let usual = usual(&rows.iter().map(|row| row.ln).collect::<Vec<_>>());
    let mut rows = rows.to_vec();
    rows.sort_by(|a, b| (a.ln - usual).abs().total_cmp(&(b.ln - usual).abs()));
    rows.pop();
    rows
}

/// The line, and how often chance alone gives one as steep where tails are normal.
fn line(rows: &[Row]) -> Option<(f64, f64)> {
    let n = rows.len() as f64;
    // Each round's mean was taken out of its rows, and so was their own.
    let freedom = n * FREE_SHARE - 1.0;
    let mean_of = |of: fn(&Row) -> f64| mean(&rows.iter().map(of).collect::<Vec<_>>());
    let (before, ln) = (mean_of(|row| row.before), mean_of(|row| row.ln));
    let square: f64 = rows.iter().map(|row| (row.before - before).powi(2)).sum();
    if freedom < FREEDOM_MIN || square <= 0.0 {
        return None;
    }
    let slope = rows.iter().map(|row| (row.before - before) * (row.ln - ln)).sum::<f64>() / square;
    let rest: f64 = rows.iter().map(|row| (row.ln - ln - slope * (row.before - before)).powi(2)).sum();
    let spread = (rest / freedom).sqrt().max(SPREAD_MIN);
    debug_assert!(spread > 0.0 && square > 0.0, "nothing is certain");
    Some((slope, chance(slope / (spread / square.sqrt()), freedom)))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::rig::window::{Moment, Window};
    use dyno_measure::Prng;

    fn measured(round: u32, treatment: Treatment, period_ns: f64) -> Measured {
        let last = Moment { at_ns: (period_ns * 100.0) as u64, inserted_ns: 0 };
        let window = Window { length_ns: last.at_ns, visits: 101, last, samples: 100, ..Window::default() };
        Measured::new(round, treatment, window)
    }

    /// Rounds in which a window's time is `of(treatment, treatment before it)`, with noise.
    fn rounds(n: u32, sd: f64, seed: u64, of: impl Fn(Treatment, Treatment) -> f64) -> Vec<Measured> {
        let mut rng = Prng::new(seed);
        let (mut all, mut before, mut drift) = (Vec::new(), Treatment::Nothing, 0.0);
        for round in 0..n {
            let mut treatments = vec![Treatment::Nothing; 2];
            treatments.extend([10, 25, 50].map(Treatment::SpeedUp));
            rng.shuffle(&mut treatments);
            for treatment in treatments {
                drift = 0.9 * drift + sd * rng.normal();
                let noise: f64 = drift + sd * rng.normal();
                all.push(measured(round, treatment, 1e6 * of(treatment, before) * noise.exp()));
                before = treatment;
            }
        }
        all
    }

    fn is_faster(treatment: Treatment) -> bool {
        matches!(treatment, Treatment::SpeedUp(_))
    }

    #[test]
    fn a_null_that_still_runs_on_a_full_queue_and_a_gain_until_the_queue_is_full_are_seen() {
        // The consumer counts: after a faster producer it has something to eat for a while.
        let eats = |treatment, before| if is_faster(treatment) || is_faster(before) { 0.9 } else { 1.0 };
        assert!(matches!(carryover(&rounds(12, 0.005, 1, eats), Metric::Throughput), Carryover::Shows(_)));
        // The producer counts: it is as fast as it can until the queue is full.
        let makes = |treatment, before| match (is_faster(treatment), is_faster(before)) {
            (true, false) => 0.6,
            (true, true) => 0.9,
            (false, _) => 1.0,
        };
        assert!(matches!(carryover(&rounds(12, 0.005, 2, makes), Metric::Throughput), Carryover::Shows(_)));
    }

    #[test]
    fn windows_that_leave_nothing_behind_are_hardly_ever_taken_for_such() {
        let independent = |treatment, _| if is_faster(treatment) { 0.8 } else { 1.0 };
        let found = |seed| carryover(&rounds(12, 0.02, seed, independent), Metric::Throughput);
        let found: Vec<Carryover> = (0..1_000).map(found).collect();
        let wrong = found.iter().filter(|one| matches!(one, Carryover::Shows(_))).count();
        let open = found.iter().filter(|one| **one == Carryover::Open).count();
        println!("of 1,000 sites without memory {wrong} are said to have one, {open} perhaps");
        assert!(wrong <= 5 && open <= 50);
        assert_eq!(carryover(&rounds(12, 0.0, 1, independent), Metric::Throughput), Carryover::None);
    }

    /// Rounds without memory of which one window in ten was disturbed, the last two with a real slow-down among them.
    fn disturbed(n: u32, seed: u64, bursts: &mut Prng) -> Vec<Measured> {
        let faster = |treatment, _| if is_faster(treatment) { 0.8 } else { 1.0 };
        let mut all = rounds(n, 0.01, seed, faster);
        for round in n - 2..n {
            let first = all.iter().position(|one| one.round == round).unwrap();
            let slower = measured(round, Treatment::SlowDown(1), 1.3e6);
            all.insert(first + bursts.below(5) as usize, slower);
        }
        for one in &mut all {
            if bursts.unit() < 0.1 {
                let period_ns = one.window.last.at_ns as f64 / 100.0 * (1.2 + bursts.unit());
                *one = measured(one.round, one.treatment, period_ns);
            }
        }
        all
    }

    /// Planted fault: a line through windows of which one stands alone (`ROWS_MIN` of one, and `slope` that asks `line` once).
    #[test]
    fn windows_that_a_neighbour_disturbed_are_hardly_ever_taken_for_a_memory() {
        let mut bursts = Prng::new(11);
        for n in [5, 8, 12] {
            let found =
                (0..1_000).map(|seed| carryover(&disturbed(n, seed, &mut bursts), Metric::Throughput));
            let wrong = found.filter(|one| matches!(one, Carryover::Shows(_))).count();
            println!("of 1,000 disturbed sites without memory, {n} rounds, {wrong} are said to have one");
            // The same seeds each time.
            assert!(wrong <= 5, "{n} rounds: {wrong}");
        }
    }

    #[test]
    fn a_queue_that_never_drains_between_windows_shows_against_the_baseline_and_how_long_recovery_takes() {
        let mut rng = Prng::new(3);
        let baseline: Vec<f64> = (0..8).map(|_| 1e6_f64.ln() + 0.005 * rng.normal()).collect();
        let fed = rounds(8, 0.005, 4, |_, _| 0.9);
        let gap = drift(&fed, Metric::Throughput, &baseline).expect("a tenth is seen");
        assert!((gap + 0.105).abs() < 0.02, "{gap}");
        let same = rounds(8, 0.005, 4, |treatment, _| if is_faster(treatment) { 0.8 } else { 1.0 });
        assert_eq!(drift(&same, Metric::Throughput, &baseline), None);
        assert_eq!(drift(&fed, Metric::Throughput, &baseline[..2]), None, "two windows prove nothing");
        let drains: Vec<f64> = (0..16).map(|at| 1e6_f64.ln() - if at < 5 { 0.1 } else { 0.0 }).collect();
        assert_eq!(recovered_after(&drains, &baseline, gap), Some(4));
        assert_eq!(recovered_after(&drains[..5], &baseline, gap), None);
        assert_eq!(recovered_after(&[], &baseline, gap), None);
    }

    #[test]
    fn few_windows_prove_nothing() {
        assert_eq!(carryover(&[], Metric::Throughput), Carryover::None);
        let eats = |treatment, before| if is_faster(treatment) || is_faster(before) { 0.9 } else { 1.0 };
        assert_eq!(carryover(&rounds(2, 0.0, 1, eats), Metric::Throughput), Carryover::None);
    }
}
