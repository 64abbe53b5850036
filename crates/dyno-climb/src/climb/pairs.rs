//! Pairs of blocks until the judge has enough, or the time is up.
//!
//! The one loop behind noise, steps and confirmations, however their servers are alive. What it measured is in the record
//! when it returns.

use dyno_measure::Histogram;
use dyno_measure::estimate::{spread_of_equals, spread_of_starts};
use dyno_measure::judge::{self, Basis, Estimate, LAST_LOOK_MIN, Next, Rule};
use dyno_measure::series::{Metric, Pair, Side, Trial};
use dyno_record::trial::{Compared, Schedule, Stage};

use super::bench::{Bench, other};
use super::climber::Climber;
use super::comparison::{Comparison, Sides};
use super::off_block::{is_off_block_look, off_block_percent};
use super::options::Event;
use super::time::Until;
use crate::meter::{Length, Meter, Trouble};

/// Replies below which a block says nothing. A block lasts a second at most ([`Length`]), so as many must come in one.
const REPLIES_MIN: u64 = 200;
/// Share of invalid pairs above which a trial says nothing.
const INVALID_SHARE_MAX: f64 = 0.05;
/// Invalid pairs that are forgiven whatever their share: the first pairs of a trial.
const INVALID_FREE: u64 = 3;

/// What is asked of a comparison: what for, of which metric, and until when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) stage: Stage,
    /// Which try of that stage, from 1.
    pub(crate) attempt: u32,
    pub(crate) rung: Option<&'a str>,
    /// For the progress: the stage, and what is measured.
    pub(crate) words: [&'a str; 2],
    pub(crate) metric: Metric,
    pub(crate) until: Until,
}

/// How a trial ended.
pub(crate) struct Tried {
    /// Index into the record's trials.
    pub(crate) trial: usize,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    /// The judge has enough, or the time is up and this is the last look.
    Judged(judge::Judgement),
    /// Work comes in bursts.
    Bursty,
    /// Too much CPU was burnt outside the blocks, this share of a side's, percent: instances must be measured one after
    /// another.
    OffBlock(f64),
    /// A proof did not hold in one of the pairs.
    NotApplied(String),
    /// The time was up before anything could be said.
    OutOfTime(String),
    /// Too many pairs were invalid.
    Unmeasured(String),
    /// A side failed; which, and how.
    Trouble(Side, Trouble),
}

impl<M: Meter> Climber<'_, M> {
    /// Measures pairs until the rule has enough; where work comes in bursts, once more in long blocks by `bursty`.
    pub(crate) fn pairs_or_bursts(
        &mut self,
        bench: &mut Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        bursty: Rule,
        asked: &Asked<'_>,
    ) -> Tried {
        let tried = self.pairs(bench, comparison, asked);
        match tried.outcome {
            Outcome::Bursty if comparison.schedule == Schedule::LivePairs => {
                // Of its share there may be too little left for the first look.
                let look_ns = self.meter.now_ns() + self.pace.of_long_pairs(bursty.first);
                let Until { share_ns, most_ns } = asked.until;
                let asked = Asked { until: Until::at(share_ns.max(look_ns.min(most_ns))), ..*asked };
                bench.count_anew();
                self.pairs(bench, &comparison.by(Schedule::LongPairs, bursty), &asked)
            }
            _ => tried,
        }
    }

    /// Measures pairs until the rule has enough.
    pub(crate) fn pairs(
        &mut self,
        bench: &mut Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> Tried {
        assert!(asked.attempt > 0, "tries are counted from 1");
        assert!(asked.rung.is_none() == (asked.stage == Stage::Noise), "all but noise is about a rung");
        let visits = matches!(bench, Bench::InTurn(_));
        assert!(
            visits == (comparison.schedule == Schedule::InTurn),
            "the bench was opened for another schedule"
        );
        let comparison = &self.paying(bench, comparison, asked.metric);
        let servers = if matches!(bench, Bench::Live(_)) { bench.instances() } else { 0 };
        let mut trial = Trial::of_starts(asked.metric, servers);
        let began_ns = self.meter.now_ns();
        let opening_ns = self.pace.opening_ns;
        let outcome = self.until_judged(bench, &mut trial, comparison, asked);
        // What it took to start servers anew meanwhile is no part of a pair.
        let began_ns = began_ns + (self.pace.opening_ns - opening_ns);
        let measured = trial.pairs.len() as u64 + trial.invalid_pairs;
        let took_ns = self.meter.now_ns() - began_ns;
        if visits && measured > 0 {
            self.pace.turned(took_ns, measured);
        }
        if comparison.length() == Length::Short && measured >= LAST_LOOK_MIN as u64 {
            self.pace.pair_ns = took_ns / measured;
        }
        assert!(trial.pairs.len() <= comparison.rule.last, "nothing is measured after the last look");
        if comparison.rule.between.is_some() {
            let shown = if asked.stage == Stage::Noise { spread_of_equals } else { spread_of_starts };
            let spread = shown(trial.metric, &trial.pairs);
            self.spreads.extend(spread.map(|spread| (trial.metric, spread)));
        }
        let clock = if bench.instances() == 0 { String::new() } else { bench.clock() };
        let trial = self.write_down(trial, clock, comparison, asked);
        Tried { trial, outcome }
    }

    /// The same by a rule that pays for what starts differ by, as far as trials before have shown it; a dial toggled in place is
    /// compared within each start, and where each pair is new servers their spread is the pairs'.
    fn paying(
        &self,
        bench: &Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        metric: Metric,
    ) -> Comparison<Sides> {
        let rule = comparison.rule.within(self.plan.memory_max_bytes);
        let rule = match bench {
            Bench::Live(_) => rule.paying_for(self.between(metric)),
            Bench::Toggled { .. } | Bench::InTurn(_) => rule,
        };
        Comparison { rule, ..comparison.clone() }
    }

    /// A trial of which nothing was measured, in the record.
    pub(crate) fn without_pairs(
        &mut self,
        bench: &Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> usize {
        self.write_down(Trial::new(asked.metric), bench.clock(), comparison, asked)
    }

    /// Puts a trial into the record, with all that is needed to judge it again; its index.
    fn write_down(
        &mut self,
        trial: Trial,
        clock: String,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> usize {
        let compared = Compared {
            id: self.fresh_id(asked),
            stage: asked.stage,
            attempt: asked.attempt,
            rung: asked.rung.map(str::to_owned),
            schedule: comparison.schedule,
            toggles: comparison.arms.toggles().map(str::to_owned),
            clock,
            rule: comparison.rule,
            trial,
        };
        assert!(self.record.trial(&compared.id).is_none(), "two trials are called {}", compared.id);
        self.record.series.trials.push(compared);
        self.record.series.trials.len() - 1
    }

    /// A name that no trial of this record has. People may recognise it; nothing is read from it.
    fn fresh_id(&self, asked: &Asked<'_>) -> String {
        let stage = match (asked.stage, asked.attempt) {
            (Stage::Noise, _) => "noise",
            (Stage::Step, 1) => "step",
            (Stage::Step, _) => "second",
            (Stage::LeaveOneOut, _) => "leave-one-out",
        };
        let name = asked.rung.map_or(stage.to_owned(), |rung| format!("{stage}:{rung}"));
        let is_free = |id: &String| self.record.trial(id).is_none();
        let numbered = (2..).map(|number| format!("{name}#{number}"));
        std::iter::once(name.clone()).chain(numbered).find(is_free).expect("numbers do not end")
    }

    fn until_judged(
        &mut self,
        bench: &mut Bench<M::Arm>,
        trial: &mut Trial,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> Outcome {
        let (rule, settings) = (&comparison.rule, comparison.arms.settings());
        let (mut latest, mut slow) = (None, None);
        let deadline_ns = asked.until.most_ns;
        loop {
            let shares = is_off_block_look(trial).then(|| off_block_percent(trial, rule.basis));
            if let Some(outcome) = self.not_comparable(bench, settings, shares) {
                return outcome;
            }
            if rule.looks_at(trial.pairs.len()) {
                // The judge's guards read memory: it must be in the trial before it is judged.
                if let Err((side, trouble)) = self.remember(trial, bench) {
                    return Outcome::Trouble(side, trouble);
                }
                match judge::next(trial, rule, self.options.seed) {
                    Next::Done(judgement) => return Outcome::Judged(judgement),
                    Next::Bursty => return Outcome::Bursty,
                    Next::More(estimate) => latest = estimate,
                }
            }
            if let Some(outcome) = too_many_invalid(trial, slow) {
                return outcome;
            }
            if self.meter.now_ns() >= deadline_ns {
                if let Err((side, trouble)) = self.remember(trial, bench) {
                    return Outcome::Trouble(side, trouble);
                }
                let enough = trial.pairs.len() >= LAST_LOOK_MIN;
                let shares = enough.then(|| off_block_percent(trial, rule.basis));
                let late = self.not_comparable(bench, settings, shares);
                return late.unwrap_or_else(|| self.out_of_time(trial, rule));
            }
            if self.is_to_renew(bench, trial.pairs.len(), comparison.length(), deadline_ns) {
                match self.renew(bench, trial.pairs.len()) {
                    Ok(None) => {}
                    Ok(Some(why)) => return Outcome::NotApplied(why),
                    Err((side, trouble)) => return Outcome::Trouble(side, trouble),
                }
            }
            match self.pair(bench, trial, comparison.length()) {
                Ok((pair, latencies)) => {
                    slow = slower(&pair).or(slow);
                    add(trial, pair, &latencies);
                }
                Err((side, trouble)) => return Outcome::Trouble(side, trouble),
            }
            self.report(trial, rule, asked, latest);
        }
    }

    /// Why the pairs so far compare nothing: work outside the blocks, or a proof that does not hold.
    fn not_comparable(
        &mut self,
        bench: &Bench<M::Arm>,
        settings: &[crate::dial::Setting; 2],
        shares: Option<[f64; 2]>,
    ) -> Option<Outcome> {
        if let Bench::InTurn(turns) = bench {
            return turns.not_applied.clone().map(Outcome::NotApplied);
        }
        self.mark_sides(settings, shares?).map(Outcome::OffBlock)
    }

    fn out_of_time(&self, trial: &Trial, rule: &Rule) -> Outcome {
        match judge::cut_short(trial, rule, self.options.seed) {
            Some(judgement) => Outcome::Judged(judgement),
            None if trial.pairs.len() >= LAST_LOOK_MIN && rule.basis == Basis::Pairs => Outcome::Bursty,
            None => Outcome::OutOfTime(format!("time was up after {} pairs", trial.pairs.len())),
        }
    }

    /// What the servers hold of the memory.
    fn remember(&mut self, trial: &mut Trial, bench: &mut Bench<M::Arm>) -> Result<(), (Side, Trouble)> {
        trial.memory_bytes = self.memory_of(bench)?;
        let largest = |side: &Vec<u64>| side.iter().copied().max();
        if let [Some(a), Some(b)] = trial.memory_bytes.each_ref().map(largest) {
            trial.rss_peak_bytes = [a, b];
        }
        Ok(())
    }

    fn pair(
        &mut self,
        bench: &mut Bench<M::Arm>,
        trial: &Trial,
        length: Length,
    ) -> Result<(Pair, [Histogram; 2]), (Side, Trouble)> {
        if let Bench::InTurn(turns) = bench {
            return self.pair_in_turn(turns, trial);
        }
        let first = self.first_side();
        let instance = self.rng.below(self.instances as u64) as usize;
        let block = |climber: &mut Self, bench: &mut Bench<M::Arm>, side: Side| {
            climber.block_on(bench, side, instance, length).map_err(|trouble| (side, trouble))
        };
        let one = block(self, bench, first)?;
        let two = block(self, bench, other(first))?;
        let (a, b) = if first == Side::A { (one, two) } else { (two, one) };
        let instance = bench.first_instance() + instance as u32;
        Ok((Pair { first, instance, a: a.block, b: b.block }, [a.latencies, b.latencies]))
    }

    fn report(&mut self, trial: &Trial, rule: &Rule, asked: &Asked<'_>, estimate: Option<Estimate>) {
        let left_ns = self.clockwork.left_ns(self.meter.now_ns());
        let (pair, of, [stage, name]) = (trial.pairs.len(), rule.last, asked.words);
        (self.watch)(&Event::Pair { stage, name, pair, of, estimate, left_ns });
    }
}

/// Adds a pair, or counts it as thrown away.
fn add(trial: &mut Trial, pair: Pair, latencies: &[Histogram; 2]) {
    if is_valid(&pair, trial.metric) {
        trial.add(pair, latencies.each_ref());
    } else {
        trial.invalid_pairs += 1;
    }
}

/// A clock that stood still while hundreds of replies were served was not read.
fn is_valid(pair: &Pair, metric: Metric) -> bool {
    debug_assert!(pair.a.wrong == 0 && pair.b.wrong == 0, "a wrong answer ends a trial at once");
    let is_read = |value: f64| value.is_finite() && value > 0.0;
    pair.a.replies.min(pair.b.replies) >= REPLIES_MIN
        && is_read(pair.a.value(metric))
        && is_read(pair.b.value(metric))
}

/// The side that gave too few replies, the slower one where both did, and how many a second.
fn slower(pair: &Pair) -> Option<(Side, u64)> {
    let per_second = |side: Side| {
        let block = pair.block(side);
        let rate = block.replies.saturating_mul(1_000_000_000) / block.wall_ns.max(1);
        (block.replies < REPLIES_MIN).then_some((side, rate))
    };
    Side::BOTH.into_iter().filter_map(per_second).min_by_key(|(_, rate)| *rate)
}

fn too_many_invalid(trial: &Trial, slow: Option<(Side, u64)>) -> Option<Outcome> {
    let all = trial.pairs.len() as u64 + trial.invalid_pairs;
    let allowed = INVALID_FREE.max((all as f64 * INVALID_SHARE_MAX) as u64);
    if trial.invalid_pairs <= allowed {
        return None;
    }
    Some(match slow {
        Some((side, per_second)) => {
            Outcome::Trouble(side, Trouble::TooSlow { per_second, needed: REPLIES_MIN })
        }
        None => Outcome::Unmeasured(format!("{} of {all} pairs had no clock", trial.invalid_pairs)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::rules::step_rule;
    use crate::climb::still::{SECOND, measured, on_a_climb, options, plan, trial};
    use dyno_measure::series::Block;

    /// Planted fault: whatever makes a pair invalid, its clock is blamed.
    #[test]
    fn a_server_that_answers_too_seldom_is_called_slow() {
        let block = |replies| Block { replies, wall_ns: 1_600_000_000, cpu_in_ns: 1, ..Block::default() };
        let pair = |a, b| Pair { first: Side::A, instance: 0, a: block(a), b: block(b) };
        let trial = Trial { invalid_pairs: INVALID_FREE + 1, ..Trial::new(Metric::CpuPerRequest) };
        let why = |pair: &Pair| match too_many_invalid(&trial, slower(pair)) {
            Some(Outcome::Trouble(side, trouble)) => (Some(side), trouble.to_string()),
            Some(Outcome::Unmeasured(why)) => (None, why),
            _ => panic!("it is too many"),
        };
        let slow = "it is too slow to be measured: 100 answers a second under this load, and 200 are needed";
        assert_eq!(why(&pair(500, 160)), (Some(Side::B), slow.to_owned()));
        assert_eq!(why(&pair(160, 170)), (Some(Side::A), slow.to_owned()));
        assert_eq!(why(&pair(500, 500)), (None, "4 of 4 pairs had no clock".to_owned()));
        assert!(too_many_invalid(&Trial::new(Metric::CpuPerRequest), Some((Side::A, 1))).is_none());
    }

    fn block(replies: u64, cpu_in_ns: u64) -> Block {
        Block { replies, cpu_in_ns, wall_ns: 1_600_000_000, p50_ns: 1_000, ..Block::default() }
    }

    fn pair(a: Block, b: Block) -> Pair {
        Pair { first: Side::A, instance: 0, a, b }
    }

    /// Planted faults: one side alone is asked, a clock that stood still is believed, the bound is crossed where it is reached.
    #[test]
    fn a_pair_is_valid_with_two_hundred_replies_and_a_clock_on_either_side() {
        let (good, few, still) = (block(200, 1), block(199, 1), block(200, 0));
        let valid = |a, b, metric| is_valid(&pair(a, b), metric);
        assert!(valid(good, good, Metric::CpuPerRequest));
        for (a, b) in [(few, good), (good, few), (still, good), (good, still)] {
            assert!(!valid(a, b, Metric::CpuPerRequest), "{a:?} {b:?}");
        }
        assert!(valid(still, still, Metric::SecondsPerRequest), "another clock is asked");
        let mut trial = Trial::new(Metric::CpuPerRequest);
        let latencies = [Histogram::new(), Histogram::new()];
        for one in [pair(good, good), pair(good, few), pair(good, good)] {
            add(&mut trial, one, &latencies);
        }
        assert_eq!((trial.pairs.len(), trial.invalid_pairs), (2, 1));
    }

    /// 199 replies in 1.6 s are 124 a second, 160 are 100.
    #[test]
    fn the_slower_side_is_the_one_with_too_few_replies_a_second() {
        let slow = |a, b| slower(&pair(block(a, 1), block(b, 1)));
        assert_eq!(slow(200, 200), None);
        assert_eq!(slow(199, 200), Some((Side::A, 124)));
        assert_eq!(slow(200, 199), Some((Side::B, 124)));
        assert_eq!(slow(199, 160), Some((Side::B, 100)));
        assert_eq!(slow(160, 199), Some((Side::A, 100)));
    }

    /// Three are forgiven whatever their share, and from sixty pairs on one in twenty.
    #[test]
    fn three_invalid_pairs_are_forgiven_or_one_in_twenty() {
        let cell = pair(block(200, 1), block(200, 1));
        let too_many = |invalid_pairs: u64, pairs: usize| {
            let pairs = vec![cell; pairs];
            let trial = Trial { invalid_pairs, pairs, ..Trial::new(Metric::CpuPerRequest) };
            match too_many_invalid(&trial, None) {
                Some(Outcome::Unmeasured(why)) => Some(why),
                Some(_) => panic!("nothing was slow"),
                None => None,
            }
        };
        for (invalid, pairs) in [(0, 0), (3, 0), (3, 5), (3, 57), (5, 95)] {
            assert_eq!(too_many(invalid, pairs), None, "{invalid} beside {pairs}");
        }
        assert_eq!(too_many(4, 0).as_deref(), Some("4 of 4 pairs had no clock"));
        assert_eq!(too_many(4, 75).as_deref(), Some("4 of 79 pairs had no clock"), "a twentieth of 79 is 3");
        assert_eq!(too_many(4, 76), None);
        assert_eq!(too_many(6, 94).as_deref(), Some("6 of 100 pairs had no clock"));
    }

    fn asked(stage: Stage, attempt: u32, rung: Option<&'static str>) -> Asked<'static> {
        let (words, metric) = (["", ""], Metric::CpuPerRequest);
        Asked { stage, attempt, rung, words, metric, until: Until::at(0) }
    }

    #[test]
    fn a_trial_has_a_name_that_no_other_has() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut named = |stage, attempt, rung| {
                let id = climber.fresh_id(&asked(stage, attempt, rung));
                let schedule = (stage, Schedule::LivePairs);
                measured(climber, &id, schedule, Rule::QUICK, trial(&[]));
                id
            };
            let ids = [
                named(Stage::Noise, 1, None),
                named(Stage::Noise, 2, None),
                named(Stage::Step, 1, Some("x")),
                named(Stage::Step, 2, Some("x")),
                named(Stage::LeaveOneOut, 1, Some("x")),
                named(Stage::LeaveOneOut, 2, Some("x")),
                named(Stage::LeaveOneOut, 1, Some("x")),
                named(Stage::Step, 1, Some("y")),
            ];
            let wanted = ["noise", "noise#2", "step:x", "second:x", "leave-one-out:x"];
            assert_eq!(ids[..5], wanted);
            assert_eq!(ids[5..], ["leave-one-out:x#2", "leave-one-out:x#3", "step:y"]);
        });
    }

    #[test]
    fn when_time_is_up_few_pairs_are_told_and_bursts_are_no_answer() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let calm: Vec<(u32, u64, u64)> = (0..20).map(|at| (0, 6_000, 6_000 + 40 * (at % 5))).collect();
            let out_of_time =
                |pairs: &[(u32, u64, u64)], rule: &Rule| climber.out_of_time(&trial(pairs), rule);
            let rule = Rule { first: 100, ..Rule::QUICK };
            assert!(matches!(out_of_time(&calm, &rule), Outcome::Judged(judged) if judged.estimate.n == 20));
            let few = out_of_time(&calm[..19], &rule);
            assert!(matches!(few, Outcome::OutOfTime(why) if why == "time was up after 19 pairs"));
            // One block in twenty costs fifteen times as much: more than any noise.
            let mut rare = calm.clone();
            rare[9].2 = 90_000;
            assert!(matches!(out_of_time(&rare, &rule), Outcome::Bursty));
            assert!(matches!(out_of_time(&rare, &rule.by_totals()), Outcome::Judged(_)), "totals hold them");
        });
    }

    /// Planted faults: what one server held stands for all, or for the other side.
    #[test]
    fn the_largest_server_of_each_side_is_remembered() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut trial = trial(&[]);
            let settings = [climber.standing.clone(), climber.standing.with("a", "on")];
            let (arms, load) = (Sides::apart(settings), climber.plan.load.clone());
            let in_turn = step_rule(Schedule::InTurn);
            let comparison = Comparison { arms, schedule: Schedule::InTurn, rule: in_turn, load };
            let opened = climber.open_bench(&comparison, &[]);
            let Ok(mut bench) = opened else { panic!("visits open nothing") };
            let Bench::InTurn(turns) = &mut bench else { panic!("visits have no live servers") };
            turns.memory = [vec![3, 9, 4], vec![8, 7]];
            assert!(climber.remember(&mut trial, &mut bench).is_ok());
            assert_eq!(trial.rss_peak_bytes, [9, 8]);
            assert_eq!(trial.memory_bytes, [vec![3, 9, 4], vec![8, 7]]);
            let Bench::InTurn(turns) = &mut bench else { panic!("visits have no live servers") };
            turns.memory[1].clear();
            assert!(climber.remember(&mut trial, &mut bench).is_ok());
            assert_eq!(trial.rss_peak_bytes, [9, 8], "of one side alone nothing is known");
            climber.close_bench(bench);
        });
    }

    /// Thirty pairs of blocks of 30 ms, or twelve of visits with two blocks, late in a climb that has opened servers before.
    #[test]
    fn what_a_pair_takes_is_read_from_the_pairs_alone() {
        let (live, in_turn) = (Rule::once(30, 2.5), Rule::once(12, 2.5).by_instances());
        for (schedule, rule, pair_ns, turn_ns) in [
            (Schedule::LivePairs, live, 60_000_000, 7 * SECOND),
            (Schedule::InTurn, in_turn, 64_000_000, 120_000_000),
        ] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                (climber.meter.now_ns, climber.meter.block_ns) = (100 * SECOND, 30_000_000);
                (climber.pace.opening_ns, climber.pace.turn_ns) = (5 * SECOND, 7 * SECOND);
                let arms = Sides::apart([climber.standing.clone(), climber.standing.with("a", "on")]);
                let load = climber.plan.load.clone();
                let comparison = Comparison { arms, schedule, rule, load };
                let Ok(mut bench) = climber.open_bench(&comparison, &[]) else { panic!("it opens") };
                (climber.pace.pair_ns, climber.pace.turn_ns) = (64_000_000, 7 * SECOND);
                let asked = Asked { until: Until::at(u64::MAX), ..asked(Stage::Step, 1, Some("a=on")) };
                let tried = climber.pairs(&mut bench, &comparison, &asked);
                let pairs = climber.record.series.trials[tried.trial].trial.pairs.len();
                assert_eq!(pairs, rule.first);
                assert!(matches!(tried.outcome, Outcome::Judged(_)));
                assert_eq!((climber.pace.pair_ns, climber.pace.turn_ns), (pair_ns, turn_ns), "{schedule:?}");
                climber.close_bench(bench);
            });
        }
    }
}
