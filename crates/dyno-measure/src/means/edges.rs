//! Means of two lists by hand: their errors, how far is far, and whose outliers lean.
#![allow(clippy::unwrap_used)]

use super::*;

/// Typical numbers whose interval claims nothing.
fn wide(log_ratio: f64) -> Estimate {
    Estimate { log_ratio, error: 10.0, half_width: 30.0, n: 9, uncharged: 0.0 }
}

fn near(read: f64, wanted: f64) -> bool {
    (read - wanted).abs() <= 1e-6 * wanted.abs().max(1.0)
}

/// Eight numbers of two stretches: 1 and 3, each four times, deviate by √(8 / 7), their stretches by √2. In turns the stretches are
/// alike.
#[test]
fn a_mean_is_as_unsure_as_its_numbers_or_its_stretches() {
    let (rows, turns) = ([1.0, 1.0, 1.0, 1.0, 3.0, 3.0, 3.0, 3.0], [1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 1.0, 3.0]);
    assert_eq!(error_of_mean(&rows), (1.0, 1.0));
    let (error, freedom) = error_of_mean(&turns);
    assert!(near(error, 1.0 / 7_f64.sqrt()) && freedom == 1.0, "{error} {freedom}");
    let (error, freedom) = error_of_mean(&turns[..7]);
    // Of one stretch nothing is told: four ones and three threes deviate by √(48 / 7 / 6).
    assert!(near(error, (8.0_f64 / 49.0).sqrt()) && freedom == 1.0, "{error} {freedom}");
    // Ten stretches of five, 0 and 1 in turns: √(2.5 / 9) over √10.
    let fifty: Vec<f64> = (0..50).map(|at| f64::from(at / 5 % 2)).collect();
    let (error, freedom) = error_of_mean(&fifty);
    assert!(near(error, 1.0 / 6.0) && freedom == 9.0, "{error} {freedom}");
    // Forty-five have eleven stretches of four, and one number over.
    assert_eq!(error_of_mean(&fifty[..45]).1, 10.0);
    assert_eq!(error_of_mean(&[&fifty[..]; 2].concat()).1, 9.0, "ten stretches of ten");
}

const A: [f64; 8] = [10.0, 11.0, 10.0, 12.0, 10.0, 11.0, 10.0, 12.0];
const B: [f64; 8] = [10.1, 10.9, 10.1, 11.9, 10.1, 10.9, 10.1, 120.0];

/// 86 and 194.1 in all. What each pair adds is b / 24.2625 − a / 10.75; two stretches have one degree of freedom.
#[test]
fn a_ratio_of_paired_means_has_the_error_of_what_each_pair_adds() {
    let told = means_paired(&A, &B, &wide(0.0), 0.01).unwrap();
    let added: Vec<f64> = A.iter().zip(B).map(|(a, b)| b / 24.2625 - a / 10.75).collect();
    let error = error_of_mean(&added).0;
    assert!(near(told.estimate.log_ratio, (194.1_f64 / 86.0).ln()), "{told:?}");
    assert!(near(told.estimate.error, error) && near(error, 0.556_929_4), "{told:?} {error}");
    assert!(near(told.estimate.half_width / error, 63.656_741), "{told:?}");
    assert_eq!((told.estimate.n, told.of, told.beyond), (8, 8, [1, 0]));
    let turned = means_paired(&B, &A, &wide(0.0), 0.01).unwrap();
    assert!(near(turned.estimate.log_ratio, -told.estimate.log_ratio), "{turned:?}");
    assert_eq!(turned.beyond, [0, 1]);
}

/// B's ratios lie about a typical 1 %: what is far from it is counted, and not what is far from nought.
#[test]
fn outliers_of_pairs_are_held_against_the_typical_ratio() {
    let a = [100.0; 12];
    let mut b = [200.0, 202.0, 198.0, 201.0, 199.0, 200.5, 199.5, 202.0, 198.0, 201.0, 199.0, 2_000.0];
    let told = means_paired(&a, &b, &wide(2_f64.ln()), 0.01).unwrap();
    assert_eq!((told.beyond, told.of), ([1, 0], 12));
    b[11] = 20.0;
    let told = means_paired(&a, &b, &wide(2_f64.ln()), 0.01).unwrap();
    assert_eq!((told.beyond, told.of), ([0, 1], 12));
}

/// Seven numbers have no stretches to speak of: one degree of freedom, whatever the longer list has.
#[test]
fn a_ratio_of_means_in_no_order_pays_for_both_lists_by_the_degrees_of_the_poorer() {
    let long: Vec<f64> = (0..50).map(|at| 100.0 + f64::from(at / 5 % 2)).collect();
    let short = [99.0, 100.0, 101.0, 100.0, 99.0, 1_000.0, 1_000.0];
    let error = error_of_mean(&short).0 / (2_499.0 / 7.0);
    for (a, b, log) in
        [(&long[..], &short[..], 2_499.0 / 7.0 / 100.5), (&short[..], &long[..], 100.5 * 7.0 / 2_499.0)]
    {
        let told = means_unpaired(a, b, &wide(0.0), 0.01).unwrap_or_else(|| panic!("two in seven are told"));
        assert!(near(told.estimate.log_ratio, f64::ln(log)), "{told:?}");
        assert!(near(told.estimate.error, error.hypot(1.0 / 6.0 / 100.5)), "{told:?} {error}");
        assert!(near(told.estimate.half_width / told.estimate.error, 63.656_741), "{told:?}");
        assert_eq!((told.estimate.n, told.of), (7, 57));
    }
}

#[test]
fn differences_are_those_to_the_middle() {
    assert_eq!(centred(&[5.0, 1.0, 3.0]), [2.0, -2.0, 0.0]);
}

/// Of ±2 a deviation is 2 · 1.4826 = 2.9652: four of them are 11.86, forty 118.6. Where half are alike three fifths count: 1 / 0.842,
/// of which four are 4.75.
#[test]
fn values_are_far_beyond_four_and_forty_deviations_of_most_of_them() {
    let beyond = |last: f64| {
        let of = Beyond::of(&[2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, -2.0, 2.0, last]);
        assert_eq!(of.of, 10);
        (of.outliers, of.far)
    };
    assert_eq!([11.8, -11.8].map(beyond), [([0, 0], [0, 0]); 2]);
    assert_eq!([11.9, -11.9].map(beyond), [([1, 0], [0, 0]), ([0, 1], [0, 0])]);
    assert_eq!([118.5, -118.5].map(beyond), [([1, 0], [0, 0]), ([0, 1], [0, 0])]);
    assert_eq!([118.7, -118.7].map(beyond), [([1, 0], [1, 0]), ([0, 1], [0, 1])]);
    let half_alike = |last: f64| Beyond::of(&[0.0, 0.0, 0.0, 0.0, 0.0, 1.0, -1.0, 1.0, -1.0, last]).outliers;
    assert_eq!([4.7, 4.8, -4.8].map(half_alike), [[0, 0], [1, 0], [0, 1]]);
    let still = Beyond { outliers: [0; 2], far: [0; 2], of: 3 };
    assert_eq!(Beyond::of(&[0.0, 0.0, 0.0]), still, "without a spread nothing is far");
}

fn sides(outliers: [[usize; 2]; 2], far: [[usize; 2]; 2], share: f64) -> bool {
    Sides { outliers, far, share }.lean()
}

/// Six of six coins are 2 / 64 = 0.031, five 0.063, and of two kinds each must be below 0.025: seven, 0.016. Of a quarter of the
/// numbers three of three are 2 / 64, two 0.13.
#[test]
fn outliers_lean_where_chance_gives_as_many_to_one_side_once_in_twenty() {
    let none = [[0; 2]; 2];
    let by_many = |outliers, share| sides(outliers, none, share);
    assert!(by_many([[6, 0], [0, 0]], 0.5) && by_many([[0, 6], [0, 0]], 0.5));
    assert!(!by_many([[5, 0], [0, 0]], 0.5) && !by_many([[7, 1], [0, 0]], 0.5));
    assert!(
        !by_many([[6, 0], [1, 0]], 0.5) && by_many([[7, 0], [1, 0]], 0.5) && by_many([[1, 0], [0, 7]], 0.5)
    );
    assert!(
        by_many([[3, 0], [0, 0]], 0.25)
            && !by_many([[2, 0], [0, 0]], 0.25)
            && !by_many([[0, 3], [0, 0]], 0.25)
    );
    // Cheap ones of A count for B, and A has three quarters of the numbers.
    assert!(by_many([[0, 0], [0, 3]], 0.25) && !by_many([[0, 0], [3, 0]], 0.25));
    assert!(!by_many([[0, 0], [0, 0]], 0.5));
}

/// One alone is enough where both lists are as long. Of a quarter three are 1 / 64, below 0.02, and two are not; of three quarters
/// fourteen are 0.0178 and thirteen 0.024.
#[test]
fn what_is_far_leans_where_it_stands_on_one_side_alone() {
    let none = [[0; 2]; 2];
    let by_far = |far, share| sides(none, far, share);
    assert!(by_far([[1, 0], [0, 0]], 0.5) && by_far([[0, 1], [0, 0]], 0.5) && by_far([[0, 0], [1, 0]], 0.5));
    assert!(!by_far([[1, 1], [0, 0]], 0.5) && !by_far([[2, 1], [0, 0]], 0.5) && !by_far(none, 0.5));
    assert!(by_far([[3, 0], [0, 0]], 0.25) && !by_far([[2, 0], [0, 0]], 0.25));
    assert!(by_far([[0, 14], [0, 0]], 0.25) && !by_far([[0, 13], [0, 0]], 0.25));
    assert!(by_far([[0, 0], [0, 3]], 0.25) && !by_far([[0, 0], [0, 2]], 0.25));
    assert!(by_far([[0, 0], [14, 0]], 0.25) && !by_far([[0, 0], [13, 0]], 0.25));
}

#[test]
fn bs_dear_numbers_and_as_cheap_ones_make_bs_share_larger() {
    let a = Beyond { outliers: [1, 2], far: [3, 4], of: 300 };
    let b = Beyond { outliers: [5, 9], far: [7, 8], of: 100 };
    let both = Sides::of_lists(&a, &b);
    assert_eq!((both.outliers, both.far), ([[5, 1], [2, 9]], [[7, 3], [4, 8]]));
    assert_eq!((both.share, both.all()), (0.25, [7, 10]));
    let pairs = Sides::of_pairs(&a);
    assert_eq!((pairs.outliers, pairs.far), ([[1, 2], [0, 0]], [[3, 4], [0, 0]]));
    assert_eq!((pairs.share, pairs.all()), (0.5, [1, 2]));
    let nothing = Beyond { outliers: [0; 2], far: [0; 2], of: 0 };
    assert_eq!(Sides::of_lists(&nothing, &nothing).share, 0.0, "of no numbers nothing is divided");
}

#[test]
fn means_are_told_from_a_percent_beside_what_is_typical_on() {
    let leaning = || Sides { outliers: [[9, 0], [0, 0]], far: [[0; 2]; 2], share: 0.5 };
    let estimate = Estimate { log_ratio: 0.0, error: 0.1, half_width: 0.3, n: 5, uncharged: 0.0 };
    let is_told = |typical: f64, sides: &Sides| told(estimate, &wide(typical), sides, 5);
    // e^−0.0102 is 1.015 % less, e^−0.0099 0.985 %.
    for (typical, is) in [(0.010_2, true), (-0.010_2, true), (0.009_9, false), (-0.009_9, false)] {
        assert_eq!(is_told(typical, &leaning()).is_some(), is, "{typical}");
    }
    let half_more = Estimate { log_ratio: 0.5, ..estimate };
    assert_eq!(told(half_more, &wide(0.5), &leaning(), 5), None, "both say the same");
    assert_eq!(is_told(0.5, &leaning()), Some(Means { estimate, beyond: [9, 0], of: 5, lean: true }));
    assert_eq!(is_told(0.5, &Sides { outliers: [[0; 2]; 2], ..leaning() }), None);
    assert_eq!(told(Estimate { n: 4, ..estimate }, &wide(0.5), &leaning(), 4), None, "too few");
    assert_eq!(told(Estimate { log_ratio: f64::NAN, ..estimate }, &wide(0.5), &leaning(), 5), None);
    assert_eq!(told(Estimate { log_ratio: f64::INFINITY, ..estimate }, &wide(0.5), &leaning(), 5), None);
}

/// Typical numbers are 5 to 15 % more (log). Planted faults: means are held against one end alone, or told within a percent.
#[test]
fn means_outside_of_what_is_claimed_of_typical_numbers_are_told_whoever_leans() {
    let calm = Sides { outliers: [[0; 2]; 2], far: [[0; 2]; 2], share: 0.5 };
    let claimed = |half_width| Estimate { log_ratio: 0.1, error: 0.02, half_width, n: 9, uncharged: 0.0 };
    let is_told = |log_ratio: f64, half_width: f64| {
        let means = Estimate { log_ratio, error: 0.1, half_width: 0.3, n: 9, uncharged: 0.0 };
        told(means, &claimed(half_width), &calm, 9).map(|told| told.lean)
    };
    for (log_ratio, wanted) in
        [(0.04, Some(false)), (0.06, None), (0.14, None), (0.16, Some(false)), (-3.0, Some(false))]
    {
        assert_eq!(is_told(log_ratio, 0.05), wanted, "{log_ratio}");
    }
    // 0.5 % beside it is nothing, however narrow the interval.
    assert_eq!([is_told(0.105, 1e-4), is_told(0.12, 1e-4)], [None, Some(false)]);
}
