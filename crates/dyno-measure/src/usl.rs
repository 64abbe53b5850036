//! The Universal Scalability Law, fitted to a sweep of load (Gunther, 2007): what more load brings, and where it ends.
//!
//! `X(n) = λ n / (1 + σ (n − 1) + κ n (n − 1))`: λ is the throughput of one connection alone, σ what is done one after
//! another (contention), κ what every two must agree on (coherency). `dyno diagnose --sweep` measures the points. Fit and
//! intervals are pure functions: chance comes from a seeded generator.

use serde::{Deserialize, Serialize};

use crate::Prng;
use crate::stats::Sorted;

/// Fewer levels of load than this and three unknowns are guessed, not fitted.
pub const LEVELS_MIN: usize = 4;
/// Draws of the bootstrap: 95 % ends of an interval are then its 13th values from either side.
const DRAWS: usize = 500;
/// A κ below this share of 1 / n² bends the curve by less than one percent over all that was measured: no knee is seen.
const BEND_MIN: f64 = 0.01;

/// One measured throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Connections.
    pub n: f64,
    /// Answers per second.
    pub throughput: f64,
}

/// A figure and its 95 % interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The figure.
    pub value: f64,
    /// Its interval, by bootstrap.
    pub interval: [f64; 2],
}

/// The law's parameters for a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Usl {
    /// λ: answers per second with one connection.
    pub one: Estimate,
    /// σ: the share that is done one after another, 0 to 1.
    pub contention: Estimate,
    /// κ: the price of every pair, 0 and up.
    pub coherency: Estimate,
    /// Connections of the highest throughput; `None` when the curve does not bend down within what was measured.
    pub knee: Option<Estimate>,
    /// Answers per second that are never exceeded: at the knee, or λ / σ where there is none; `None` when it is linear.
    pub ceiling: Option<Estimate>,
    /// Root of the mean squared relative distance of the points from the curve.
    pub misfit: f64,
    /// The points.
    pub points: Vec<Point>,
}

/// Why there is no fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UslError {
    /// Not enough levels.
    #[error("{levels} levels of load are too few for three unknowns: {LEVELS_MIN} are needed")]
    TooFew {
        /// How many there are.
        levels: usize,
    },
    /// A point that is no throughput.
    #[error("a point without a positive load and throughput cannot be fitted")]
    NotPositive,
}

/// λ, σ and κ without their intervals.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Curve {
    one: f64,
    contention: f64,
    coherency: f64,
}

/// Fits the law to the points; several points of one level are repeats and make the intervals honest.
///
/// # Errors
/// See [`UslError`].
pub fn fit(points: &[Point], rng: &mut Prng) -> Result<Usl, UslError> {
    if points.iter().any(|point| !(point.n > 0.0 && point.throughput > 0.0)) {
        return Err(UslError::NotPositive);
    }
    let levels = levels(points);
    if levels.len() < LEVELS_MIN {
        return Err(UslError::TooFew { levels: levels.len() });
    }
    let best = least_squares(points).ok_or(UslError::NotPositive)?;
    let draws: Vec<Curve> =
        (0..DRAWS).filter_map(|_| least_squares(&resampled(points, &levels, &best, rng))).collect();
    Ok(with_intervals(points, best, &draws))
}

impl Curve {
    fn at(&self, n: f64) -> f64 {
        self.one * n / (1.0 + self.contention * (n - 1.0) + self.coherency * n * (n - 1.0))
    }

    fn knee(&self) -> Option<f64> {
        (self.coherency > 0.0).then(|| ((1.0 - self.contention).max(0.0) / self.coherency).sqrt().max(1.0))
    }

    fn ceiling(&self) -> Option<f64> {
        match self.knee() {
            Some(knee) => Some(self.at(knee)),
            None => (self.contention > 0.0).then(|| self.one / self.contention),
        }
    }
}

/// The points' levels of load, ascending, each with the points of it.
fn levels(points: &[Point]) -> Vec<(f64, Vec<f64>)> {
    let mut levels: Vec<(f64, Vec<f64>)> = Vec::new();
    for point in points {
        match levels.iter_mut().find(|level| level.0.total_cmp(&point.n).is_eq()) {
            Some(level) => level.1.push(point.throughput),
            None => levels.push((point.n, vec![point.throughput])),
        }
    }
    levels.sort_by(|a, b| a.0.total_cmp(&b.0));
    levels
}

/// `n / X = a + b (n − 1) + c n (n − 1)` is linear in a = 1/λ, b = σ/λ, c = κ/λ. Weighted by X / n, so that relative
/// errors count alike at every level. σ and κ are not negative, and σ is at most 1, where a second connection brings
/// nothing: the best of the ways to hold them at these ends is taken.
fn least_squares(points: &[Point]) -> Option<Curve> {
    let ways: [&[usize]; 4] = [&[0, 1, 2], &[0, 1], &[0, 2], &[0]];
    let free = ways.iter().filter_map(|way| solve(points, way, row));
    // With σ = 1 the law is n / X = a n + c n (n − 1).
    let serial = ways[2..].iter().filter_map(|way| solve(points, way, serial_row));
    let fits = free.chain(serial.map(|[a, _, c]| [a, a, c]));
    let allowed = fits.filter(|abc| abc[0] > 0.0 && abc[1] >= 0.0 && abc[2] >= 0.0 && abc[1] <= abc[0]);
    let best = allowed.min_by(|x, y| residual(points, x).total_cmp(&residual(points, y)))?;
    let [a, b, c] = best;
    Some(Curve { one: 1.0 / a, contention: b / a, coherency: c / a })
}

fn row(point: &Point) -> [f64; 3] {
    let weight = point.throughput / point.n;
    [weight, weight * (point.n - 1.0), weight * point.n * (point.n - 1.0)]
}

fn serial_row(point: &Point) -> [f64; 3] {
    let [one, more, pairs] = row(point);
    [one + more, 0.0, pairs]
}

fn residual(points: &[Point], abc: &[f64; 3]) -> f64 {
    let distance = |point: &Point| {
        let row = row(point);
        (row[0] * abc[0] + row[1] * abc[1] + row[2] * abc[2] - 1.0).powi(2)
    };
    points.iter().map(distance).sum()
}

/// Least squares over the columns in `way`, the others held at zero: normal equations, eliminated with pivots.
fn solve(points: &[Point], way: &[usize], row: fn(&Point) -> [f64; 3]) -> Option<[f64; 3]> {
    let size = way.len();
    let mut matrix = vec![vec![0.0; size + 1]; size];
    for point in points {
        let row = row(point);
        for (i, &left) in way.iter().enumerate() {
            for (j, &right) in way.iter().enumerate() {
                matrix[i][j] += row[left] * row[right];
            }
            matrix[i][size] += row[left];
        }
    }
    let solution = eliminate(matrix)?;
    let mut abc = [0.0; 3];
    for (column, value) in way.iter().zip(solution) {
        abc[*column] = value;
    }
    Some(abc)
}

fn eliminate(mut matrix: Vec<Vec<f64>>) -> Option<Vec<f64>> {
    let size = matrix.len();
    for column in 0..size {
        let pivot =
            (column..size).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        matrix.swap(column, pivot);
        if matrix[column][column].abs() < 1e-300 {
            return None;
        }
        let pivot_row = matrix[column].clone();
        for (at, row) in matrix.iter_mut().enumerate().filter(|(at, _)| *at != column) {
            let factor = row[column] / pivot_row[column];
            debug_assert!(at != column);
            row.iter_mut().zip(&pivot_row).for_each(|(cell, pivot)| *cell -= factor * pivot);
        }
    }
    Some((0..size).map(|at| matrix[at][size] / matrix[at][at]).collect())
}

/// A draw: repeats of a level are drawn with replacement; where there is one per level, its relative distance from the
/// curve is replaced by another point's.
fn resampled(points: &[Point], levels: &[(f64, Vec<f64>)], best: &Curve, rng: &mut Prng) -> Vec<Point> {
    let repeats = levels.iter().all(|level| level.1.len() > 1);
    if repeats {
        let draw = |(n, values): &(f64, Vec<f64>), rng: &mut Prng| -> Vec<Point> {
            let pick = |rng: &mut Prng| values[rng.below(values.len() as u64) as usize];
            values.iter().map(|_| Point { n: *n, throughput: pick(rng) }).collect()
        };
        return levels.iter().flat_map(|level| draw(level, rng)).collect();
    }
    let ratios: Vec<f64> = points.iter().map(|point| point.throughput / best.at(point.n)).collect();
    let moved = |point: &Point, rng: &mut Prng| {
        let ratio = ratios[rng.below(ratios.len() as u64) as usize];
        Point { n: point.n, throughput: best.at(point.n) * ratio }
    };
    points.iter().map(|point| moved(point, rng)).collect()
}

fn with_intervals(points: &[Point], best: Curve, draws: &[Curve]) -> Usl {
    let most = points.iter().map(|point| point.n).fold(1.0, f64::max);
    let bends = best.coherency * most * most >= BEND_MIN;
    let estimate = |value: f64, of: &dyn Fn(&Curve) -> Option<f64>| Estimate {
        value,
        interval: middle(draws.iter().filter_map(of).collect(), value),
    };
    let knee = best.knee().filter(|_| bends);
    let ceiling = best.ceiling();
    let squares: f64 = points.iter().map(|point| (best.at(point.n) / point.throughput - 1.0).powi(2)).sum();
    Usl {
        one: estimate(best.one, &|curve| Some(curve.one)),
        contention: estimate(best.contention, &|curve| Some(curve.contention)),
        coherency: estimate(best.coherency, &|curve| Some(curve.coherency)),
        knee: knee.map(|knee| estimate(knee, &Curve::knee)),
        ceiling: ceiling.map(|ceiling| estimate(ceiling, &Curve::ceiling)),
        misfit: (squares / points.len() as f64).sqrt(),
        points: points.to_vec(),
    }
}

/// The middle 95 %; the value itself where no draw had one.
fn middle(values: Vec<f64>, value: f64) -> [f64; 2] {
    let draws = Sorted::of(values);
    let at = |share: f64| draws.quantile(share).unwrap_or(value);
    [at(0.025).min(value), at(0.975).max(value)]
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const LOADS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0];

    fn made(curve: Curve, noise: f64, repeats: usize, rng: &mut Prng) -> Vec<Point> {
        let point =
            |n: f64, rng: &mut Prng| Point { n, throughput: curve.at(n) * (1.0 + noise * rng.normal()) };
        LOADS.iter().flat_map(|n| std::iter::repeat_n(*n, repeats)).map(|n| point(n, rng)).collect()
    }

    #[test]
    fn points_without_noise_give_their_parameters_back() {
        let truth = Curve { one: 1_000.0, contention: 0.05, coherency: 0.000_2 };
        let usl = fit(&made(truth, 0.0, 1, &mut Prng::new(1)), &mut Prng::new(2)).unwrap();
        assert!((usl.one.value - 1_000.0).abs() < 1e-6 && (usl.contention.value - 0.05).abs() < 1e-9);
        assert!((usl.coherency.value - 0.000_2).abs() < 1e-12 && usl.misfit < 1e-9);
        let knee = usl.knee.unwrap().value;
        assert!((knee - (0.95_f64 / 0.000_2).sqrt()).abs() < 1e-6, "{knee}");
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        let truth = Curve { one: 5_000.0, contention: 0.03, coherency: 0.000_5 };
        let (mut held, runs) = (0, 100);
        for seed in 0..runs {
            let mut rng = Prng::new(seed);
            let usl = fit(&made(truth, 0.02, 5, &mut rng), &mut rng).unwrap();
            let [low, high] = usl.contention.interval;
            held += usize::from(low <= truth.contention && truth.contention <= high);
        }
        // Five repeats make a bootstrap somewhat too sure of itself: 80 of 100 is the least that is called honest here.
        assert!(held >= 80, "{held} of {runs}");
    }

    #[test]
    fn a_linear_server_has_neither_knee_nor_ceiling() {
        let truth = Curve { one: 700.0, contention: 0.0, coherency: 0.0 };
        let usl = fit(&made(truth, 0.0, 1, &mut Prng::new(3)), &mut Prng::new(4)).unwrap();
        assert!(usl.contention.value.abs() < 1e-9 && usl.knee.is_none());
    }

    #[test]
    fn a_serial_server_ends_at_its_ceiling_without_a_knee() {
        let truth = Curve { one: 700.0, contention: 0.5, coherency: 0.0 };
        let usl = fit(&made(truth, 0.01, 3, &mut Prng::new(5)), &mut Prng::new(6)).unwrap();
        assert!((usl.ceiling.unwrap().value - 1_400.0).abs() < 60.0, "{usl:?}");
    }

    #[test]
    fn a_server_that_one_connection_fills_is_wholly_serial_and_never_more() {
        // Each level a little slower than the one before: without its bound σ would be beyond 1.
        let points: Vec<Point> =
            LOADS.iter().map(|n| Point { n: *n, throughput: 5_000.0 * (1.0 - 0.02 * n.log2()) }).collect();
        let usl = fit(&points, &mut Prng::new(7)).unwrap();
        assert!((0.99..=1.0).contains(&usl.contention.value), "{usl:?}");
        assert!(usl.contention.interval[1] <= 1.0 && usl.one.value > 4_500.0, "{usl:?}");
        assert!(usl.ceiling.unwrap().value < 5_100.0);
    }

    #[test]
    fn noise_never_makes_a_parameter_negative() {
        for seed in 0..50 {
            let truth = Curve { one: 100.0, contention: 0.0, coherency: 0.0 };
            let mut rng = Prng::new(seed);
            let usl = fit(&made(truth, 0.1, 1, &mut rng), &mut rng).unwrap();
            assert!(usl.contention.value >= 0.0 && usl.coherency.value >= 0.0 && usl.one.value > 0.0);
        }
    }

    #[test]
    fn too_few_levels_and_what_is_no_throughput_are_refused() {
        let three: Vec<Point> = LOADS[..3].iter().map(|n| Point { n: *n, throughput: *n }).collect();
        assert_eq!(fit(&three, &mut Prng::new(1)), Err(UslError::TooFew { levels: 3 }));
        let mut points = made(Curve { one: 1.0, contention: 0.0, coherency: 0.0 }, 0.0, 1, &mut Prng::new(1));
        points[2].throughput = 0.0;
        assert_eq!(fit(&points, &mut Prng::new(1)), Err(UslError::NotPositive));
    }

    /// 1,000 · 11 / (1 + 0.05 · 10 + 0.002 · 11 · 10) = 11,000 / 1.72; the most at √(0.95 / 0.002).
    #[test]
    fn a_curve_is_that_of_the_law() {
        let curve = Curve { one: 1_000.0, contention: 0.05, coherency: 0.002 };
        assert!((curve.at(1.0) - 1_000.0).abs() < 1e-9 && (curve.at(11.0) - 11_000.0 / 1.72).abs() < 1e-9);
        let knee = curve.knee().unwrap();
        assert!((knee - 475_f64.sqrt()).abs() < 1e-9, "{knee}");
        assert!(curve.at(knee) > curve.at(0.99 * knee) && curve.at(knee) > curve.at(1.01 * knee));
        assert_eq!(curve.ceiling(), Some(curve.at(knee)));
        let serial = Curve { coherency: 0.0, ..curve };
        assert_eq!((serial.knee(), serial.ceiling()), (None, Some(20_000.0)));
        let linear = Curve { contention: 0.0, ..serial };
        assert_eq!((linear.knee(), linear.ceiling()), (None, None));
        for contention in [1.0, 1.2] {
            let full = Curve { contention, ..curve };
            assert_eq!(
                (full.knee(), full.ceiling()),
                (Some(1.0), Some(1_000.0)),
                "one connection is the most"
            );
        }
    }

    #[test]
    fn points_of_a_load_are_one_level() {
        let point = |(n, throughput): (f64, f64)| Point { n, throughput };
        let points = [(4.0, 30.0), (1.0, 10.0), (4.0, 31.0), (2.0, 19.0), (1.0, 11.0)].map(point);
        let wanted = vec![(1.0, vec![10.0, 11.0]), (2.0, vec![19.0]), (4.0, vec![30.0, 31.0])];
        assert_eq!(levels(&points), wanted);
    }

    /// 2y = 4, 3x = 6: the first row has no x, so rows are exchanged. And 2x + y = 5, x + 3y = 10: x = 1, y = 3.
    #[test]
    fn equations_are_solved_with_pivots_and_singular_ones_are_not() {
        assert_eq!(eliminate(vec![vec![0.0, 2.0, 4.0], vec![3.0, 0.0, 6.0]]), Some(vec![2.0, 2.0]));
        let solved = eliminate(vec![vec![2.0, 1.0, 5.0], vec![1.0, 3.0, 10.0]]).unwrap();
        assert!((solved[0] - 1.0).abs() < 1e-12 && (solved[1] - 3.0).abs() < 1e-12, "{solved:?}");
        assert_eq!(eliminate(vec![vec![1.0, 2.0, 3.0], vec![2.0, 4.0, 6.0]]), None);
    }

    /// Eight answers a second of two connections: a weight of 4, once, for the one more and for the two pairs' ends.
    #[test]
    fn a_row_weighs_a_point_by_its_throughput_per_connection() {
        let point = Point { n: 2.0, throughput: 8.0 };
        assert_eq!((row(&point), serial_row(&point)), ([4.0, 4.0, 8.0], [8.0, 0.0, 8.0]));
        let three = Point { n: 3.0, throughput: 6.0 };
        assert_eq!(row(&three), [2.0, 4.0, 12.0]);
        // 0.1 · 4 + 0.05 · 4 + 0.01 · 8 = 0.68, and 0.1 · 2 + 0.05 · 4 + 0.01 · 12 = 0.52.
        let left = residual(&[point, three], &[0.1, 0.05, 0.01]);
        assert!((left - (0.32_f64.powi(2) + 0.48_f64.powi(2))).abs() < 1e-12, "{left}");
    }

    /// Planted faults: a point of another level is drawn, or levels with one point each are not moved at all.
    #[test]
    fn a_draw_keeps_its_levels() {
        let mut rng = Prng::new(3);
        let best = Curve { one: 10.0, contention: 0.0, coherency: 0.0 };
        let repeated = [(1.0, 9.0), (1.0, 11.0), (2.0, 19.0), (2.0, 22.0)]
            .map(|(n, throughput)| Point { n, throughput });
        for _ in 0..50 {
            let drawn = resampled(&repeated, &levels(&repeated), &best, &mut rng);
            let is_of = |point: &Point| repeated.contains(point);
            assert!(
                drawn.iter().all(is_of) && drawn.iter().map(|one| one.n).eq([1.0, 1.0, 2.0, 2.0]),
                "{drawn:?}"
            );
        }
        // One point a level: 10 and 20 by the curve, a tenth less or a tenth more.
        let single = [(1.0, 9.0), (2.0, 22.0)].map(|(n, throughput)| Point { n, throughput });
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..50 {
            for point in resampled(&single, &levels(&single), &best, &mut rng) {
                seen.insert((point.n as u32, (10.0 * point.throughput).round() as u32));
            }
        }
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [(1, 90), (1, 110), (2, 180), (2, 220)]);
    }

    #[test]
    fn an_interval_holds_its_figure_and_the_middle_of_the_draws() {
        let draws: Vec<f64> = (0..=1_000).map(f64::from).collect();
        assert_eq!(middle(draws.clone(), 500.0), [25.0, 975.0]);
        assert_eq!(middle(draws.clone(), 3.0), [3.0, 975.0]);
        assert_eq!(middle(draws, 999.0), [25.0, 999.0]);
        assert_eq!(middle(Vec::new(), 7.0), [7.0; 2]);
    }

    /// A κ of 0.01 / 128² bends the curve by one percent over all that was measured: from there on a knee is seen.
    #[test]
    fn a_knee_is_seen_where_the_curve_bends_by_a_percent() {
        let fitted = |coherency: f64| {
            let truth = Curve { one: 1_000.0, contention: 0.05, coherency };
            with_intervals(&made(truth, 0.0, 1, &mut Prng::new(1)), truth, &[truth])
        };
        let least = BEND_MIN / 128.0_f64.powi(2);
        assert!(fitted(1.01 * least).knee.is_some() && fitted(0.99 * least).knee.is_none());
        assert!(fitted(0.99 * least).ceiling.is_some(), "it has an end all the same");
        assert_eq!(fitted(least).misfit, 0.0);
        // Points that lie a tenth above the curve: 1 / 1.1 − 1 of each.
        let truth = Curve { one: 1_000.0, contention: 0.05, coherency: 0.0 };
        let mut points = made(truth, 0.0, 1, &mut Prng::new(1));
        points.iter_mut().for_each(|point| point.throughput *= 1.1);
        let misfit = with_intervals(&points, truth, &[truth]).misfit;
        assert!((misfit - (1.0 - 1.0 / 1.1)).abs() < 1e-9, "{misfit}");
    }

    #[test]
    fn four_levels_are_enough_and_no_load_is_no_point() {
        let four: Vec<Point> = LOADS[..4].iter().map(|n| Point { n: *n, throughput: 10.0 * n }).collect();
        assert!(fit(&four, &mut Prng::new(1)).is_ok());
        for (n, throughput) in [(0.0, 10.0), (-1.0, 10.0), (1.0, -10.0), (f64::NAN, 10.0), (1.0, f64::NAN)] {
            let points = [&four[..], &[Point { n, throughput }][..]].concat();
            assert_eq!(fit(&points, &mut Prng::new(1)), Err(UslError::NotPositive), "{n} {throughput}");
        }
    }
}
