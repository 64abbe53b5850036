//! Two lists of numbers whose starts are known: the start is the unit.
//!
//! Numbers of one start of a program share its draw of hashes, addresses and layout, and no number of them says how another start
//! would differ. So each start says one thing, and the interval comes from what starts differ by, as that of a climb's
//! total does ([`rounds`](crate::rounds)). `dyno judge` asks it where a list says where its starts begin.

use crate::dependence::{Dependence, Told, logs, times_the_error, welch};
use crate::estimate::{Estimate, trimmed};
use crate::judge::Verdict;
use crate::means::{Means, are_outside};
use crate::movement::Movement;
use crate::normal::normal_quantile;
use crate::rounds::over_starts;
use crate::stats::{mean, variance};
use crate::student::student;

/// From so many starts a side on, pairs of them (the first beside the first) lose little by their fewer degrees of freedom, and
/// what both starts of a pair share falls out. Fewer are compared as wholes, which is right of starts in turns as well.
pub const PAIRS_OF_STARTS_MIN: usize = 6;
/// Fewest starts on both sides together: of one and one nobody knows what starts differ by.
pub const STARTS_MIN: usize = 3;

/// Where a side has fewer, its own say next to nothing of what starts differ by, and those of both sides are taken together.
const WELCH_MIN: usize = 3;

/// From so many on it can be seen whether starts resemble the ones before them, as those do that were made one side after the other on a
/// machine that changes slowly. Of fewer it is taken for granted that they were made in turns.
const STARTS_SEEN_MIN: usize = 20;
/// Starts that resemble each other so much that they are worth fewer tell nothing.
const STARTS_WORTH_MIN: f64 = 3.0;

/// What is compared with what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Start k of one list was measured beside start k of the other.
    InTurns,
    /// They have no order in common.
    None,
}

/// Typical numbers of B's starts against A's, and means where they lie outside of what these claim. `None` with fewer starts than
/// [`STARTS_MIN`], or an empty one.
#[must_use]
pub fn of_starts(a: &[&[f64]], b: &[&[f64]], order: Order, alpha: f64) -> Option<(Told, Option<Means>)> {
    let is_empty = |starts: &[&[f64]]| starts.is_empty() || starts.iter().any(|start| start.is_empty());
    if is_empty(a) || is_empty(b) || a.len() + b.len() < STARTS_MIN {
        return None;
    }
    let level =
        |of: fn(&[f64]) -> f64| [a, b].map(|starts| starts.iter().map(|start| of(start)).collect::<Vec<_>>());
    let levels = level(|start| trimmed(&logs(start)));
    let (typical, dependence) = compared(&levels, order, alpha);
    let numbers = a.iter().chain(b).map(|start| start.len()).sum();
    let lists = [a, b].map(|starts| starts.iter().flat_map(|start| logs(start)).collect::<Vec<_>>());
    let tells = dependence.is_none_or(|one| one.effective >= STARTS_WORTH_MIN);
    let told =
        Told { estimate: typical, dependence, tells, by_movement: false, stretches: None, drift: None };
    let told = told.or_by(Movement::of(&[&lists[0], &lists[1]], numbers, alpha));
    let (of_means, _) = compared(&level(ln_of_mean), order, alpha);
    let lean = Verdict::of(&of_means) != Verdict::NoDifference;
    let means = Means { estimate: of_means, beyond: [0; 2], of: numbers, lean };
    Some((told, are_outside(&of_means, &told.estimate).then_some(means)))
}

/// Whether start k of one side is held against start k of the other.
fn are_pairs([a, b]: &[Vec<f64>; 2], order: Order) -> bool {
    order == Order::InTurns && a.len() == b.len() && a.len() >= PAIRS_OF_STARTS_MIN
}

/// ln of the arithmetic mean, of numbers of any size.
fn ln_of_mean(values: &[f64]) -> f64 {
    let largest = values.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    largest.ln() + mean(&values.iter().map(|value| value / largest).collect::<Vec<_>>()).ln()
}

/// Levels of the starts of both sides, log; and how they depend on each other, where that is seen.
fn compared(levels: &[Vec<f64>; 2], order: Order, alpha: f64) -> (Estimate, Option<Dependence>) {
    let [a, b] = levels;
    let z = normal_quantile(1.0 - alpha / 2.0);
    if are_pairs(levels, order) {
        let ratios: Vec<f64> = b.iter().zip(a).map(|(b, a)| b - a).collect();
        let (times, dependence) = resemblance(&ratios);
        let estimate = over_starts(&ratios, ratios.len(), z);
        let [error, half_width] = [estimate.error, estimate.half_width].map(|one| times * one);
        return (Estimate { error, half_width, ..estimate }, dependence);
    }
    let n = a.len().min(b.len());
    let (error, freedom, dependence) = if n < WELCH_MIN {
        let (error, freedom) = pooled(a, b);
        (error, freedom, None)
    } else {
        let [(of_a, a_resembles), (of_b, b_resembles)] = [a, b].map(|levels| of(levels, z));
        let (error, freedom) = welch(of_a, of_b);
        let resemble = [a_resembles, b_resembles].into_iter().flatten();
        (error, freedom, resemble.min_by(|a, b| a.effective.total_cmp(&b.effective)))
    };
    let half_width = student(z, freedom) * error;
    (Estimate { log_ratio: mean(b) - mean(a), error, half_width, n, uncharged: 0.0 }, dependence)
}

/// How many times as large an error is as that of independent starts, where there are enough of them to see it.
fn resemblance(levels: &[f64]) -> (f64, Option<Dependence>) {
    let enough = levels.len() >= STARTS_SEEN_MIN;
    enough.then(|| times_the_error(levels)).flatten().unwrap_or((1.0, None))
}

/// Error and degrees of freedom of a side's level, and how its starts depend on each other.
fn of(levels: &[f64], z: f64) -> ((f64, f64), Option<Dependence>) {
    let (times, dependence) = resemblance(levels);
    let error = times * over_starts(levels, levels.len(), z).error;
    ((error, (levels.len() - 1) as f64), dependence)
}

/// The same of the difference of both, where what starts differ by is supposed to be alike on both sides (Student).
fn pooled(a: &[f64], b: &[f64]) -> (f64, f64) {
    let freedom = (a.len() + b.len() - 2) as f64;
    let squares = |levels: &[f64]| variance(levels) * (levels.len() - 1) as f64;
    let each = 1.0 / a.len() as f64 + 1.0 / b.len() as f64;
    (((squares(a) + squares(b)) / freedom * each).sqrt(), freedom)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;

    fn slices(starts: &[Vec<f64>]) -> Vec<&[f64]> {
        starts.iter().map(Vec::as_slice).collect()
    }

    /// Starts of twenty numbers each: what starts differ by, and the numbers within one.
    fn side(rng: &mut Prng, starts: usize, level: f64, between: f64, within: f64) -> Vec<Vec<f64>> {
        let one = |rng: &mut Prng| {
            let start = level.ln() + between * rng.normal();
            (0..20).map(|_| (start + within * rng.normal()).exp()).collect()
        };
        (0..starts).map(|_| one(rng)).collect()
    }

    fn told(a: &[Vec<f64>], b: &[Vec<f64>], order: Order) -> Told {
        of_starts(&slices(a), &slices(b), order, 0.01).unwrap().0
    }

    /// Planted fault: all numbers of a side are one list, of which one in six is called different where two starts differ by 2 %.
    #[test]
    fn equal_programs_are_rarely_called_different_however_much_their_starts_differ() {
        let mut rng = Prng::new(41);
        for counts in [[1, 4], [2, 2], [2, 5], [4, 4], [10, 10]] {
            for between in [0.0, 0.02] {
                let called = (0..1_000).filter(|_| {
                    let [a, b] = counts.map(|count| side(&mut rng, count, 100.0, between, 0.01));
                    told(&a, &b, Order::InTurns).verdict() != Verdict::NoDifference
                });
                let called = called.count();
                println!("{counts:?} starts that differ by {between}: {called} of 1,000");
                // Nominal 10, and three binomial errors.
                assert!(called <= 19, "{counts:?} starts, {between}: {called} of 1,000");
            }
        }
    }

    /// All of A's starts and then all of B's on a machine that changes slowly. Planted fault: starts are taken for independent
    /// (`STARTS_SEEN_MIN` without a bound), and 11, 33 and 41 % are called different. With turns it is less than 1 %.
    #[test]
    fn starts_that_resemble_the_ones_before_are_told_for_what_they_are_worth() {
        let mut rng = Prng::new(45);
        for (lag, most) in [(0.0, 0.012), (0.5, 0.045), (0.8, 0.07), (0.9, 0.07)] {
            let called = |_: &usize| {
                let mut state = rng.normal();
                let mut levels = || {
                    let mut next = || {
                        let now = state;
                        state = lag * state + (1.0_f64 - lag * lag).sqrt() * rng.normal();
                        vec![(0.02 * now).exp(); 3]
                    };
                    (0..20).map(|_| next()).collect::<Vec<_>>()
                };
                let (a, b) = (levels(), levels());
                told(&a, &b, Order::InTurns).verdict() != Verdict::NoDifference
            };
            let called = (0..2_000).filter(called).count() as f64 / 2_000.0;
            println!("lag-1 {lag}: {called}");
            assert!(called <= most, "lag-1 {lag}: {called}");
        }
    }

    /// Planted fault: Welch's interval of two starts a side, with which one doubling in four is not told.
    #[test]
    fn what_is_more_than_starts_differ_by_is_found() {
        let mut rng = Prng::new(42);
        for (starts, times, least) in [(2, 2.0, 195), (4, 1.2, 195), (10, 1.05, 185)] {
            let found = (0..200).filter(|_| {
                let [a, b] = [100.0, 100.0 * times].map(|level| side(&mut rng, starts, level, 0.02, 0.01));
                told(&a, &b, Order::None).verdict() == Verdict::Worse
            });
            let found = found.count();
            println!("{starts} starts a side, times {times}: {found} of 200");
            assert!(found >= least, "{starts} starts, times {times}: {found} of 200");
        }
    }

    /// A machine that drifts by a tenth from start to start of both sides. Planted fault: starts in turns are never paired.
    #[test]
    fn what_both_starts_of_a_pair_share_falls_out() {
        let mut rng = Prng::new(43);
        let (mut a, mut b) = (side(&mut rng, 8, 100.0, 0.005, 0.01), side(&mut rng, 8, 103.0, 0.005, 0.01));
        for both in [&mut a, &mut b] {
            both.iter_mut()
                .enumerate()
                .for_each(|(at, start)| start.iter_mut().for_each(|value| *value *= 1.1_f64.powi(at as i32)));
        }
        let [turns, wholes] = [Order::InTurns, Order::None].map(|order| told(&a, &b, order));
        assert_eq!(
            [turns.verdict(), wholes.verdict()],
            [Verdict::Worse, Verdict::NoDifference],
            "{turns:?} {wholes:?}"
        );
        assert_eq!(turns.estimate.n, 8);
    }

    /// Levels of 1 and 3 against 4 and 8: means of 2 and 6, squares of 2 and 8 over two degrees, times 1: √5. And of 1 alone
    /// against 4, 6, 8: 4 · (1 + 1/3) over two degrees.
    #[test]
    fn few_starts_are_pooled_as_student_does() {
        let near = |read: f64, wanted: f64| (read - wanted).abs() < 1e-9;
        let (two, _) = compared(&[vec![1.0, 3.0], vec![4.0, 8.0]], Order::InTurns, 0.01);
        assert!(near(two.log_ratio, 4.0) && near(two.error, 5_f64.sqrt()), "{two:?}");
        assert!(near(two.half_width, student(normal_quantile(0.995), 2.0) * two.error));
        let (one, _) = compared(&[vec![1.0], vec![4.0, 6.0, 8.0]], Order::None, 0.01);
        assert!(near(one.log_ratio, 5.0) && near(one.error, (16.0_f64 / 3.0).sqrt()), "{one:?}");
        assert_eq!((one.n, two.n), (1, 2));
    }

    /// Every start of B has a number in ten that is four times as large. Planted fault: nobody is told.
    #[test]
    fn means_outside_of_what_is_claimed_are_told() {
        let mut rng = Prng::new(44);
        let [a, mut b] = [0, 1].map(|_| side(&mut rng, 4, 100.0, 0.005, 0.01));
        assert_eq!(of_starts(&slices(&a), &slices(&b), Order::None, 0.01).unwrap().1, None);
        b.iter_mut().for_each(|start| start.iter_mut().step_by(10).for_each(|value| *value *= 4.0));
        let (told, means) = of_starts(&slices(&a), &slices(&b), Order::None, 0.01).unwrap();
        assert_eq!(told.verdict(), Verdict::NoDifference, "{told:?}");
        assert!((28.0..32.0).contains(&means.unwrap().estimate.percent()), "{means:?}");
    }

    #[test]
    fn constant_numbers_are_told_and_too_few_or_empty_starts_are_not() {
        let of = |level: f64| vec![vec![level; 20]; 2];
        assert_eq!(told(&of(100.0), &of(200.0), Order::InTurns).verdict(), Verdict::Worse);
        assert_eq!(told(&of(100.0), &of(100.0), Order::InTurns).verdict(), Verdict::NoDifference);
        assert_eq!(told(&of(1e308), &of(1e-308), Order::InTurns).verdict(), Verdict::Better);
        let none = |a: &[&[f64]], b: &[&[f64]]| of_starts(a, b, Order::None, 0.01).is_none();
        assert!(
            none(&[&[1.0]], &[&[1.0]])
                && none(&[&[1.0], &[]], &[&[1.0]])
                && none(&[], &[&[1.0], &[1.0], &[1.0]])
        );
        assert!(!none(&[&[1.0], &[1.0]], &[&[1.0]]));
    }
}
