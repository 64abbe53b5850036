//! CPU that other processes burn for each request of a side: work that a change moves there is no gain.
//!
//! The judge refuses by it, the climb warns by it. The kernel counts that CPU in ticks (4 ms), beside the servers' exact
//! clocks, so that a single block says nothing; the mean of a trial's pairs does.

use crate::series::{Block, Pair};
use crate::stats::{deviation, mean};
use crate::student::student;

/// Two-sided normal quantile beyond which a difference is no chance: one in 900 on the side that refuses.
const SURE_Z: f64 = 3.06;
/// Fewest pairs of which their mean is believed.
const PAIRS_MIN: usize = 20;

/// What others burn more for each request of B than of A.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rise {
    /// ns for each request; negative where they burn less.
    pub ns: f64,
    /// Half width of its interval.
    pub half_width_ns: f64,
}

impl Rise {
    /// Whether they surely burn more.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.ns > self.half_width_ns
    }

    /// As little as it may be.
    #[must_use]
    pub fn low_ns(&self) -> f64 {
        self.ns - self.half_width_ns
    }
}

/// Reads it from pairs; `None` of too few.
#[must_use]
pub fn rise(pairs: &[Pair]) -> Option<Rise> {
    let each = |block: &Block| block.foreign_ns as f64 / block.replies.max(1) as f64;
    let rises: Vec<f64> = pairs.iter().map(|pair| each(&pair.b) - each(&pair.a)).collect();
    (rises.len() >= PAIRS_MIN).then(|| {
        let error = deviation(&rises) / (rises.len() as f64).sqrt();
        Rise { ns: mean(&rises), half_width_ns: student(SURE_Z, (rises.len() - 1) as f64) * error }
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::series::Side;

    /// Pairs of a thousand requests, whose others burn so much for each of B's, beside a tick now and then on either side.
    fn pairs(count: usize, ns: u64, seed: u64) -> Vec<Pair> {
        let mut rng = Prng::new(seed);
        let mut block = |ns: u64| {
            let tick = if rng.unit() < 0.2 { 4_000_000 } else { 0 };
            Block { replies: 1_000, foreign_ns: 1_000 * ns + tick, ..Block::default() }
        };
        (0..count).map(|_| Pair { first: Side::A, instance: 0, a: block(0), b: block(ns) }).collect()
    }

    /// Planted faults: sums of ticks are held against nothing, or A's and B's are mixed up.
    #[test]
    fn what_others_burn_more_is_sure_where_ticks_by_chance_do_not_explain_it() {
        let sure = |ns: u64| (0..200).filter(|seed| rise(&pairs(60, ns, *seed)).unwrap().is_sure()).count();
        assert!(sure(0) <= 2, "{} of 200 by chance", sure(0));
        assert_eq!(sure(2_500), 200);
        let told = rise(&pairs(240, 1_000, 1)).unwrap();
        assert!((told.ns - 1_000.0).abs() < told.half_width_ns && told.low_ns() > 0.0, "{told:?}");
        assert_eq!(rise(&pairs(19, 5_000, 1)), None);
    }

    #[test]
    fn without_ticks_there_is_no_rise() {
        let still: Vec<Pair> = (0..30)
            .map(|_| Pair {
                first: Side::A,
                instance: 0,
                a: Block { replies: 9, ..Block::default() },
                b: Block { replies: 9, ..Block::default() },
            })
            .collect();
        let told = rise(&still).unwrap();
        assert!(!told.is_sure() && told.low_ns() == 0.0);
    }

    /// Others burn 1,000 and 3,000 ns for B's requests in turns, and 500 for A's: 1,500 more, which deviate by 1,000 · √(20 / 19).
    #[test]
    fn what_others_burn_more_is_a_mean_with_students_interval() {
        let block = |ns: u64| Block { replies: 1_000, foreign_ns: 1_000 * ns, ..Block::default() };
        let pair =
            |at: u64| Pair { first: Side::A, instance: 0, a: block(500), b: block(1_000 + 2_000 * (at % 2)) };
        let pairs: Vec<Pair> = (0..20).map(pair).collect();
        let told = rise(&pairs).unwrap();
        let half_width_ns = student(SURE_Z, 19.0) * 1_000.0 / 19_f64.sqrt();
        assert!((told.ns - 1_500.0).abs() < 1e-9, "{told:?}");
        assert!((told.half_width_ns - half_width_ns).abs() < 1e-9, "{told:?} {half_width_ns}");
        assert_eq!(told.low_ns(), told.ns - told.half_width_ns);
        assert_eq!(rise(&pairs[1..]), None, "nineteen are too few");
        let at = |ns| Rise { ns, half_width_ns: 5.0 }.is_sure();
        assert_eq!([4.9, 5.0, 5.1].map(at), [false, false, true]);
        let unanswered = Block { foreign_ns: 7, ..Block::default() };
        let none = Pair { first: Side::A, instance: 0, a: Block::default(), b: unanswered };
        assert_eq!(rise(&[none; 20]).map(|told| told.ns), Some(7.0), "without a reply nothing is divided");
    }
}
