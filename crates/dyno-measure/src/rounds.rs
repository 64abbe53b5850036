//! The total's rounds: one block on a live server of every arm, in random order, in several starts of all of them.
//!
//! A start is what is drawn anew: processes with their hashes and layout, and the common-mode noise of the machine. Rounds of one start
//! resemble each other (an autocorrelation of 0.53 was seen), so that the interval comes from what starts differ by, and
//! nothing is supposed of the rounds within. One estimator serves the ratios and the absolute figures beside them: each arm
//! has a level, and a ratio is that of two levels.

use crate::estimate::{Estimate, deviation, mean, trimmed};
use crate::series::{Block, Totals};
use crate::student::student;

/// Fewest starts whose spread is believed: of two, an interval would be sixty times as wide as their spread.
pub const STARTS_MIN: usize = 3;
/// Two-sided 99 %, one look.
pub const TOTAL_Z: f64 = 2.576;
/// Fewest rounds of which anything is said.
const ROUNDS_MIN: usize = 5;
/// Where there are fewer starts than [`STARTS_MIN`]: rounds of a stretch that stands for one, and stretches at most.
const STRETCH: usize = 5;
const STRETCHES_MAX: usize = 10;

/// The levels of all arms, ln of CPU per request in ns, in every start.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    of_starts: Vec<Vec<f64>>,
    /// The same of the CPU inside of blocks alone.
    inside: Vec<Vec<f64>>,
    rounds: usize,
}

impl Levels {
    /// Reads them from rounds with a block per arm. `starts` says to which start each round belongs; where it names fewer
    /// than [`STARTS_MIN`], stretches of rounds stand for starts. `by_totals` is for servers that work in bursts. `None`
    /// with too few rounds, or where one lacks an arm, a reply or a clock.
    #[must_use]
    pub fn of(rounds: &[Vec<Block>], starts: &[u32], by_totals: bool) -> Option<Self> {
        let arms = rounds.first()?.len();
        let sound = |block: &Block| block.replies > 0 && block.cpu_in_ns + block.cpu_off_ns > 0;
        if rounds.len() < ROUNDS_MIN || rounds.iter().any(|r| r.len() != arms || !r.iter().all(sound)) {
            return None;
        }
        let level = if by_totals { of_totals } else { typical };
        let of_starts = units(rounds, starts).into_iter().map(level).collect();
        let without = |block: &Block| Block { cpu_off_ns: 0, ..*block };
        let alone: Vec<Vec<Block>> = rounds.iter().map(|round| round.iter().map(without).collect()).collect();
        let inside = units(&alone, starts).into_iter().map(level).collect();
        let levels = Self { of_starts, inside, rounds: rounds.len() };
        levels.check(arms);
        Some(levels)
    }

    /// The same with all CPU outside of blocks charged and no doubt of it: of servers in turn it is their own, and in older records
    /// it was read so.
    #[must_use]
    pub fn all_charged(self) -> Self {
        Self { inside: self.of_starts.clone(), ..self }
    }

    /// Enough starts for a spread, each with a level of every arm.
    fn check(&self, arms: usize) {
        assert!(self.of_starts.len() >= STARTS_MIN, "{} starts have no spread", self.of_starts.len());
        assert!(self.of_starts.iter().all(|start| start.len() == arms), "a start lacks an arm's level");
        assert!(self.of_starts.iter().flatten().all(|level| level.is_finite()), "a level that is no number");
    }

    /// Whether rounds show bursts that a trimmed mean leaves out: the totals tell another ratio of an arm to the first than its
    /// typical blocks do, by `least` (log) or more, and by more than what starts differ by explains.
    #[must_use]
    pub fn show_bursts(rounds: &[Vec<Block>], starts: &[u32], least: f64) -> bool {
        let read = |by_totals| Self::of(rounds, starts, by_totals).map(|levels| levels.of_starts);
        let (Some(typical), Some(totals)) = (read(false), read(true)) else { return false };
        let apart = |over: usize| {
            let ratio = |start: &[f64]| start[over] - start[0];
            let both = typical.iter().zip(&totals);
            let of_starts: Vec<f64> = both.map(|(typical, totals)| ratio(totals) - ratio(typical)).collect();
            estimated(&of_starts, rounds.len())
        };
        (1..typical[0].len()).map(apart).any(|told| told.log_ratio.abs() > told.half_width.max(least))
    }

    /// ln of CPU per request of arm `over` over that of arm `under`, with its 99 % interval: it reaches to what the ratio is where
    /// CPU outside of blocks is not charged to them.
    #[must_use]
    pub fn ratio(&self, under: usize, over: usize) -> Option<Estimate> {
        self.estimate(|start| Some(start.get(over)? - start.get(under)?))
    }

    /// ln of an arm's CPU per request in ns. Its interval holds the common-mode noise as well: ratios are surer than levels.
    #[must_use]
    pub fn level(&self, arm: usize) -> Option<Estimate> {
        let level = |start: &Vec<f64>| start.get(arm).copied();
        Some(estimated(&self.of_starts.iter().map(level).collect::<Option<Vec<f64>>>()?, self.rounds))
    }

    fn estimate(&self, read: impl Fn(&[f64]) -> Option<f64>) -> Option<Estimate> {
        let all = |starts: &[Vec<f64>]| starts.iter().map(|start| read(start)).collect::<Option<Vec<f64>>>();
        let (values, inside) = (all(&self.of_starts)?, all(&self.inside)?);
        let uncharged = mean(&inside) - mean(&values);
        // A block whose clock stood still inside has no such level.
        let uncharged = if uncharged.is_finite() { uncharged } else { 0.0 };
        Some(Estimate { uncharged, ..estimated(&values, self.rounds) })
    }
}

/// A mean over starts with its 99 % interval.
fn estimated(values: &[f64], rounds: usize) -> Estimate {
    over_starts(values, rounds, TOTAL_Z)
}

/// A mean of what each start says, and an interval from what they differ by; `z` as a normal quantile, widened to Student's t.
///
/// # Panics
/// With fewer than two.
pub(crate) fn over_starts(values: &[f64], rounds: usize, z: f64) -> Estimate {
    let error = deviation(values) / (values.len() as f64).sqrt();
    let half_width = student(z, (values.len() - 1) as f64) * error;
    Estimate { log_ratio: mean(values), error, half_width, n: rounds, uncharged: 0.0 }
}

/// Rounds of each start, or stretches of rounds.
fn units<'r>(rounds: &'r [Vec<Block>], starts: &[u32]) -> Vec<&'r [Vec<Block>]> {
    if starts.len() == rounds.len() {
        let mut rest = rounds;
        let lengths = starts.chunk_by(|one, next| one == next).map(<[u32]>::len);
        let of_starts: Vec<_> = lengths
            .map(|length| {
                let (start, later) = rest.split_at(length);
                rest = later;
                start
            })
            .collect();
        if of_starts.len() >= STARTS_MIN {
            check_units(&of_starts, rounds);
            return of_starts;
        }
    }
    let count = (rounds.len() / STRETCH).clamp(STARTS_MIN, STRETCHES_MAX);
    let stretch = |k: usize| &rounds[k * rounds.len() / count..(k + 1) * rounds.len() / count];
    let stretches: Vec<_> = (0..count).map(stretch).collect();
    check_units(&stretches, rounds);
    stretches
}

/// Every round is in one of them and in no other, and none of them is empty.
fn check_units(units: &[&[Vec<Block>]], rounds: &[Vec<Block>]) {
    assert!(units.iter().all(|unit| !unit.is_empty()), "a start without a round has no level");
    assert!(
        units.iter().map(|unit| unit.len()).sum::<usize>() == rounds.len(),
        "a round is left out, or read twice"
    );
}

/// Each arm's level in one start: the trimmed mean of its blocks, without the common-mode noise of their rounds. That of a
/// round is the median, over arms, of how far its blocks lie from where their arms lie: it takes away what the machine does to all arms
/// at once, and trimming what it does to one. (A median of the blocks themselves would follow the arm in the middle, whose
/// wild blocks would then bend the others' ratios.)
fn typical(rounds: &[Vec<Block>]) -> Vec<f64> {
    let logs: Vec<Vec<f64>> = rounds
        .iter()
        .map(|round| round.iter().map(|block| block.cpu_per_reply_ns().ln()).collect())
        .collect();
    let arms = 0..rounds[0].len();
    let of_arm = |arm: usize| -> Vec<f64> { logs.iter().map(|round| round[arm]).collect() };
    let centres: Vec<f64> = arms.clone().map(|arm| trimmed(&of_arm(arm))).collect();
    let beside = |round: &Vec<f64>| round.iter().zip(&centres).map(|(log, centre)| log - centre).collect();
    let common: Vec<f64> = logs.iter().map(|round| median(beside(round))).collect();
    let level =
        |arm: usize| of_arm(arm).iter().zip(&common).map(|(log, common)| log - common).collect::<Vec<_>>();
    arms.map(|arm| trimmed(&level(arm))).collect()
}

/// Each arm's ΣCPU / Σreplies in one start.
fn of_totals(rounds: &[Vec<Block>]) -> Vec<f64> {
    let total = |arm: usize| Totals::of(rounds.iter().map(|round| &round[arm])).cpu_us_per_request();
    (0..rounds[0].len()).map(|arm| (1e3 * total(arm)).ln()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let n = values.len();
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}

#[cfg(test)]
mod edges;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::Prng;
    use crate::units::log_of_percent;

    fn block(cost_ns: f64) -> Block {
        Block { replies: 4_000, cpu_in_ns: (4_000.0 * cost_ns) as u64, ..Block::default() }
    }

    /// What is true of simulated rounds of two arms: effect, spread of processes, their own wandering (all log), and how alike
    /// neighbouring rounds are.
    #[derive(Clone, Copy)]
    struct Truth {
        effect: f64,
        processes: f64,
        rounds: f64,
        alike: f64,
    }

    impl Truth {
        fn rounds(self, rng: &mut Prng, starts: u32, each: usize) -> (Vec<Vec<Block>>, Vec<u32>) {
            let (mut rounds, mut numbers) = (Vec::new(), Vec::new());
            for start in 0..starts {
                let draw = [0, 1].map(|_| self.processes * rng.normal());
                let mut apart = rng.normal();
                for _ in 0..each {
                    apart = self.alike * apart + (1.0 - self.alike * self.alike).sqrt() * rng.normal();
                    let common = 0.1 * rng.normal();
                    let own = [0.0, self.effect + self.rounds * apart];
                    let cost = |arm: usize| 6_000.0 * (common + draw[arm] + own[arm]).exp();
                    rounds.push(vec![block(cost(0)), block(cost(1))]);
                    numbers.push(start);
                }
            }
            (rounds, numbers)
        }

        /// Share of totals whose interval holds the truth, and their mean half width.
        fn held(self, starts: u32, each: usize, by_totals: bool) -> (f64, f64) {
            const RUNS: usize = 4_000;
            let mut rng = Prng::new(11);
            let (mut held, mut width) = (0, 0.0);
            for _ in 0..RUNS {
                let (rounds, numbers) = self.rounds(&mut rng, starts, each);
                let estimate = Levels::of(&rounds, &numbers, by_totals).unwrap().ratio(0, 1).unwrap();
                held += usize::from((estimate.log_ratio - self.effect).abs() <= estimate.half_width);
                width += estimate.half_width / RUNS as f64;
            }
            (held as f64 / RUNS as f64, width)
        }
    }

    #[test]
    fn the_interval_holds_the_truth_whatever_starts_and_rounds_do() {
        for (starts, each) in [(3, 5), (5, 4), (12, 12)] {
            for (effect, processes, rounds, alike) in [
                (0.0, 0.0, 0.08, 0.0),
                (0.0, 0.01, 0.08, 0.53),
                (-0.03, 0.003, 0.08, 0.9),
                (0.7, 0.03, 0.02, 0.53),
            ] {
                let truth = Truth { effect, processes, rounds, alike };
                for by_totals in [false, true] {
                    let (held, width) = truth.held(starts, each, by_totals);
                    println!(
                        "{starts} starts of {each}, {effect}, {processes}, {alike}, {by_totals}: {held} ±{width:.4}"
                    );
                    // Nominal 0.99, less three binomial errors of 4,000.
                    assert!(
                        held >= 0.985,
                        "{starts} starts of {each}, {effect}, {processes}, {alike}: {held}"
                    );
                }
            }
        }
    }

    /// Planted fault: no difference is ever large enough.
    #[test]
    fn dear_blocks_of_one_arm_are_bursts_and_noise_of_all_is_none() {
        let least = log_of_percent(1.0);
        let mut rng = Prng::new(13);
        let truth = Truth { effect: -2.3, processes: 0.003, rounds: 0.05, alike: 0.5 };
        let mut seen = |times: u64| {
            let shows = |_: &usize| {
                let (mut rounds, starts) = truth.rounds(&mut rng, 12, 12);
                rounds.iter_mut().step_by(10).for_each(|round| round[1].cpu_in_ns *= times);
                Levels::show_bursts(&rounds, &starts, least)
            };
            (0..400).filter(shows).count()
        };
        let [none, doubled] = [1, 2].map(&mut seen);
        println!("of 400: {none} without bursts, {doubled} where a tenth of the blocks costs twice as much");
        // By chance one in a hundred, less what is below `least`.
        assert!(none <= 8 && doubled >= 390, "{none}, {doubled}");
    }

    #[test]
    fn rounds_that_are_alike_taken_as_independent_would_not_hold_it() {
        let truth = Truth { effect: 0.0, processes: 0.005, rounds: 0.05, alike: 0.53 };
        let mut rng = Prng::new(3);
        let missed = (0..1_000).filter(|_| {
            let (rounds, _) = truth.rounds(&mut rng, 1, 120);
            let logs: Vec<f64> =
                rounds.iter().map(|r| (r[1].cpu_per_reply_ns() / r[0].cpu_per_reply_ns()).ln()).collect();
            let naive = crate::judge::trimmed_mean(&logs, TOTAL_Z);
            naive.log_ratio.abs() > naive.half_width
        });
        let missed = missed.count();
        println!("{missed} of 1,000 leave the truth out");
        assert!(missed > 60, "{missed} of 1,000: then no starts would be needed");
    }

    #[test]
    fn a_ratio_is_that_of_the_levels_beside_it() {
        let truth = Truth { effect: 0.4, processes: 0.01, rounds: 0.2, alike: 0.5 };
        let (rounds, numbers) = truth.rounds(&mut Prng::new(1), 6, 10);
        for by_totals in [false, true] {
            let levels = Levels::of(&rounds, &numbers, by_totals).unwrap();
            let [a, b] = [0, 1].map(|arm| levels.level(arm).unwrap());
            let ratio = levels.ratio(0, 1).unwrap();
            assert!((ratio.log_ratio - (b.log_ratio - a.log_ratio)).abs() < 1e-12);
            assert!(ratio.half_width < b.half_width, "the common-mode noise cancels");
        }
    }

    #[test]
    fn one_wild_block_in_a_start_moves_nothing_and_bursts_move_totals() {
        let calm = vec![vec![block(6_000.0), block(3_000.0), block(4_000.0)]; 50];
        let numbers: Vec<u32> = (0..50).map(|round| round / 10).collect();
        let mut wild = calm.clone();
        (0..5).for_each(|start| wild[10 * start][1] = block(6_000.0));
        let ratio = |rounds: &[Vec<Block>], by_totals| {
            Levels::of(rounds, &numbers, by_totals).unwrap().ratio(0, 1).unwrap().log_ratio
        };
        assert!((ratio(&wild, false) - 0.5_f64.ln()).abs() < 1e-9);
        assert!(
            (ratio(&wild, true) - 0.55_f64.ln()).abs() < 1e-9,
            "a tenth of the blocks costs twice as much"
        );
        assert!((ratio(&calm, true) - 0.5_f64.ln()).abs() < 1e-9);
    }

    /// Blocks that are dearer by chance, never cheaper, in all arms alike, however far apart these lie.
    #[test]
    fn wild_blocks_of_one_arm_do_not_bend_the_ratio_of_others() {
        let mut rng = Prng::new(8);
        let (mut sum, mut held) = (0.0, 0);
        for _ in 0..400 {
            let mut round = |_| {
                let common = 0.05 * rng.normal();
                let mut cost = |base: f64| {
                    let wild = if rng.unit() < 0.1 { 0.9 * rng.normal().abs() } else { 0.0 };
                    block(base * (common + 0.04 * rng.normal() + wild).exp())
                };
                vec![cost(6_000.0), cost(4_200.0), cost(3_500.0)]
            };
            let rounds: Vec<Vec<Block>> = (0..120).map(&mut round).collect();
            let starts: Vec<u32> = (0..120).map(|round| round / 10).collect();
            let estimate = Levels::of(&rounds, &starts, false).unwrap().ratio(0, 1).unwrap();
            sum += estimate.log_ratio / 400.0;
            held += usize::from((estimate.log_ratio - 0.7_f64.ln()).abs() <= estimate.half_width);
        }
        println!("{held} of 400 hold it; on average {:+.4} beside the truth", sum - 0.7_f64.ln());
        assert!((sum - 0.7_f64.ln()).abs() < 0.001 && held >= 390, "{sum}, {held}");
    }

    #[test]
    fn few_or_broken_rounds_say_nothing_and_a_single_start_is_cut_into_stretches() {
        let truth = Truth { effect: log_of_percent(5.0), processes: 0.0, rounds: 0.01, alike: 0.0 };
        let (rounds, one) = truth.rounds(&mut Prng::new(2), 1, 40);
        for starts in [&one[..], &[]] {
            let levels = Levels::of(&rounds, starts, false).unwrap();
            assert_eq!(levels.of_starts.len(), 8);
            assert!(levels.ratio(0, 1).unwrap().half_width < 0.02 && levels.ratio(0, 2).is_none());
        }
        assert!(Levels::of(&rounds[..ROUNDS_MIN], &one[..ROUNDS_MIN], false).is_some());
        assert!(
            Levels::of(&rounds[..ROUNDS_MIN - 1], &one, false).is_none()
                && Levels::of(&[], &[], false).is_none()
        );
        let mut broken = rounds.clone();
        broken[3][1].replies = 0;
        assert!(Levels::of(&broken, &one, false).is_none());
        broken[3].pop();
        assert!(Levels::of(&broken, &one, false).is_none());
    }

    #[test]
    #[should_panic(expected = "a round is left out")]
    fn no_round_is_ever_left_out() {
        let rounds = vec![vec![block(1.0)]; 6];
        check_units(&[&rounds[..3], &rounds[3..]], &rounds);
        check_units(&[&rounds[..3], &rounds[4..]], &rounds);
    }

    #[test]
    #[should_panic(expected = "a start lacks an arm's level")]
    fn a_start_never_lacks_an_arm() {
        Levels { of_starts: vec![vec![1.0, 2.0], vec![1.0, 2.0], vec![1.0]], inside: Vec::new(), rounds: 15 }
            .check(2);
    }

    #[test]
    #[should_panic(expected = "a level that is no number")]
    fn a_level_is_always_a_number() {
        Levels { of_starts: vec![vec![1.0], vec![1.0], vec![f64::NAN]], inside: Vec::new(), rounds: 15 }
            .check(1);
    }

    /// Rounds of these costs per reply, in ns, an arm each.
    fn rounds(costs: &[&[f64]]) -> Vec<Vec<Block>> {
        costs.iter().map(|round| round.iter().map(|cost| block(*cost)).collect()).collect()
    }

    /// Planted faults: a clock that stood still is believed, or CPU between the blocks is not counted as one.
    #[test]
    fn a_block_is_sound_with_cpu_inside_or_outside_of_it_and_not_without_any() {
        let calm = vec![vec![block(6_000.0), block(3_000.0)]; 5];
        let with = |block: Block| {
            let mut rounds = calm.clone();
            rounds[2][1] = block;
            Levels::of(&rounds, &[], true).is_some()
        };
        assert!(with(Block { cpu_in_ns: 0, cpu_off_ns: 9, ..block(1.0) }), "all of it between the blocks");
        assert!(with(Block { cpu_in_ns: 9, cpu_off_ns: 0, ..block(1.0) }));
        assert!(!with(Block { cpu_in_ns: 0, cpu_off_ns: 0, ..block(1.0) }));
        let mut short = calm.clone();
        short[4].pop();
        assert!(Levels::of(&short, &[], true).is_none(), "an arm is missing in one round");
    }

    /// Starts of which the levels of arm 1 are ln 2 − 0.03, ln 2 and ln 2 + 0.03 above those of arm 0: a deviation of 0.03, an
    /// error of 0.03 / √3, and Student's t of two degrees where the normal quantile is 2.576: 9.927.
    #[test]
    fn an_interval_is_students_of_what_the_starts_differ_by() {
        let start = |level: f64| vec![1.0 + level, 1.0 + level + 2_f64.ln() + level];
        let levels = Levels {
            of_starts: [-0.03, 0.0, 0.03].map(start).to_vec(),
            inside: [-0.03, 0.0, 0.03].map(start).to_vec(),
            rounds: 17,
        };
        let ratio = levels.ratio(0, 1).unwrap();
        assert!((ratio.log_ratio - 2_f64.ln()).abs() < 1e-12 && ratio.n == 17, "{ratio:?}");
        assert!((ratio.error - 0.03 / 3_f64.sqrt()).abs() < 1e-12, "{ratio:?}");
        let times = ratio.half_width / ratio.error;
        assert!((times - 9.927_3).abs() < 1e-3, "{times}");
        assert!((levels.ratio(1, 0).unwrap().log_ratio + ratio.log_ratio).abs() < 1e-12, "turned round");
        assert!((levels.level(0).unwrap().log_ratio - 1.0).abs() < 1e-12);
        assert!(levels.level(2).is_none() && levels.ratio(2, 0).is_none() && levels.ratio(0, 2).is_none());
    }

    /// Planted faults: a round in another start than its own; starts that are too few, or not named for each round, are taken.
    #[test]
    fn rounds_go_to_their_starts_and_to_stretches_of_five_where_these_are_too_few() {
        let lengths = |count: usize, starts: &[u32]| {
            let rounds = vec![vec![block(1.0)]; count];
            units(&rounds, starts).iter().map(|unit| unit.len()).collect::<Vec<_>>()
        };
        assert_eq!(lengths(6, &[0, 0, 1, 2, 2, 2]), [2, 1, 3]);
        assert_eq!(lengths(6, &[7, 7, 3, 3, 7, 7]), [2, 2, 2], "what comes back is another start");
        assert_eq!(lengths(5, &[0, 0, 0, 1, 1]), [1, 2, 2], "two starts are too few");
        assert_eq!(lengths(6, &[0, 1, 2]), [2, 2, 2], "not named for each round");
        assert_eq!(lengths(20, &[]), [5; 4]);
        assert_eq!(lengths(24, &[]), [6; 4]);
        assert_eq!(lengths(14, &[]), [4, 5, 5], "three stretches at least");
        assert_eq!(lengths(60, &[]), [6; 10], "and ten at most");
    }

    /// What a round costs all arms alike is in no ratio; what one arm alone costs is in the totals of that arm.
    #[test]
    fn what_the_machine_does_to_a_round_is_no_burst_and_what_an_arm_does_is() {
        let least = log_of_percent(1.0);
        let shows = |dear: [f64; 3]| {
            // Five starts of ten rounds, the first of which is dear.
            let round = |at: usize| -> Vec<Block> {
                let times = if at.is_multiple_of(10) { dear } else { [1.0; 3] };
                let costs = [6_000.0, 3_000.0, 4_000.0];
                costs.iter().zip(times).map(|(cost, times)| block(cost * times)).collect()
            };
            let rounds: Vec<Vec<Block>> = (0..50).map(round).collect();
            let starts: Vec<u32> = (0..50).map(|at| at / 10).collect();
            Levels::show_bursts(&rounds, &starts, least)
        };
        assert!(!shows([1.0; 3]) && !shows([2.0; 3]));
        assert!(shows([1.0, 2.0, 1.0]) && shows([1.0, 1.0, 2.0]) && shows([2.0, 1.0, 1.0]));
        assert!(!shows([1.0, 1.09, 1.0]), "0.9 % of all that the arm costs");
        assert!(shows([1.0, 1.12, 1.0]), "1.2 %");
    }

    #[test]
    fn rounds_that_are_all_alike_show_no_bursts_however_small_these_may_be() {
        let costs: [&[f64]; 15] = [&[6_000.0, 3_000.0]; 15];
        let alike = rounds(&costs);
        let starts: Vec<u32> = (0..15).map(|at| at / 5).collect();
        assert!(!Levels::show_bursts(&alike[..4], &starts[..4], 0.0), "too few rounds show nothing");
        assert!(!Levels::show_bursts(&alike, &starts, 1e-9));
    }

    /// Rounds of 1, 1, 2, 1 and 1 times the arms' costs: the median over arms takes the 2 away from all of them, also from the
    /// arm whose block was wild in that round.
    #[test]
    fn a_level_is_read_beside_what_all_arms_of_its_round_cost_more() {
        let costs: [&[f64]; 5] = [
            &[6_000.0, 3_000.0, 1_500.0],
            &[6_000.0, 3_000.0, 1_500.0],
            &[12_000.0, 6_000.0, 90_000.0],
            &[6_000.0, 3_000.0, 1_500.0],
            &[6_000.0, 3_000.0, 1_500.0],
        ];
        let levels = typical(&rounds(&costs));
        for (level, cost) in levels.iter().zip([6_000.0_f64, 3_000.0, 1_500.0]) {
            assert!((level - cost.ln()).abs() < 1e-9, "{level} of {cost}");
        }
        // Totals count it: 36,000, 18,000 and 96,000 of five blocks each.
        let totals = of_totals(&rounds(&costs));
        for (level, cost) in totals.iter().zip([7_200.0_f64, 3_600.0, 19_200.0]) {
            assert!((level - cost.ln()).abs() < 1e-9, "{level} of {cost}");
        }
    }

    #[test]
    fn the_median_is_the_middle_one_or_lies_between_two() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![8.0, 1.0, 2.0, 4.0]), 3.0);
        assert_eq!(median(vec![5.0]), 5.0);
    }

    #[test]
    #[should_panic(expected = "a start without a round has no level")]
    fn a_start_is_never_without_a_round() {
        let rounds = vec![vec![block(1.0)]; 6];
        check_units(&[&rounds[..6], &rounds[6..]], &rounds);
    }

    #[test]
    #[should_panic(expected = "2 starts have no spread")]
    fn two_starts_are_never_taken_for_a_spread() {
        Levels { of_starts: vec![vec![1.0], vec![1.0]], inside: Vec::new(), rounds: 15 }.check(1);
    }
}
