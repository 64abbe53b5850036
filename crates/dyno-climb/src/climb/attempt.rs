//! One try at a rung: opened, proved, measured, proved again, judged.
//!
//! The passes (`step`) call it. Whatever goes wrong with the rung's servers is its verdict; only what ends the climb is an
//! error here.

use dyno_measure::judge::{Basis, End, Judgement, LAST_LOOK_MIN, Verdict, Veto, instance_means};
use dyno_measure::others::rise;
use dyno_measure::series::{Metric, Side, Trial};
use dyno_measure::units::percent_of_log;
use dyno_record::climb::{Attempt, Figures, RungVerdict};
use dyno_record::trial::{Compared, Schedule, Stage};

use super::bench::{Bench, Turns};
use super::change::Change;
use super::climber::Climber;
use super::comparison::{Comparison, Sides};
use super::off_block::off_block_words;
use super::options::ClimbError;
use super::pairs::{Asked, Outcome, Tried};
use super::rules::step_rule;
use super::time::{Clockwork, Until};
use super::turned::apply;
use crate::load::LoadSpec;
use crate::meter::{Look, Trouble};
use crate::rung::Rung;

/// Which of the two tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pass {
    First,
    Second,
}

impl Pass {
    /// Its number in the record.
    fn number(self) -> u32 {
        match self {
            Self::First => 1,
            Self::Second => 2,
        }
    }
}

/// Whether the servers of a comparison may be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Servers {
    Sound,
    /// One of them was in trouble: others may be lost too.
    Suspect,
}

impl<M: Look> Climber<'_, M> {
    /// Side by side where that can be, one instance after another where a side burns CPU outside its blocks. Errors end the
    /// climb.
    pub(crate) fn attempt(
        &mut self,
        rung: &Rung,
        change: &Change,
        words: &str,
        pass: Pass,
        until: Until,
    ) -> Result<Attempt, ClimbError> {
        self.forget_looks(rung);
        let comparison = self.step_of(rung, change);
        let asked = Asked {
            stage: Stage::Step,
            attempt: pass.number(),
            rung: Some(&rung.id),
            words: [words, &rung.id],
            metric: rung.metric,
            until,
        };
        let mut beside = None;
        if !self.burns(comparison.arms.settings()) {
            let attempt = self.compared(rung, &comparison, &asked)?;
            if !self.burns(comparison.arms.settings()) {
                return Ok(attempt);
            }
            beside = Some(attempt);
        }
        // What is left of a share for short pairs may hold too few of these to judge by.
        let least_ns = self.meter.now_ns() + self.pace.of_turns();
        let deadline_ns = until.share_ns.max(least_ns).min(self.clockwork.rungs_end_ns());
        match beside {
            Some(attempt) if deadline_ns < least_ns => {
                let why = format!("{}, and there was no time: {}", attempt.why, self.time_in_turn());
                Ok(Attempt { why, ..attempt })
            }
            _ => {
                let comparison = comparison.by(Schedule::InTurn, step_rule(Schedule::InTurn));
                self.compared(rung, &comparison, &Asked { until: Until::at(deadline_ns), ..asked })
            }
        }
    }

    /// The setting that stands against the same with the rung.
    fn step_of(&self, rung: &Rung, change: &Change) -> Comparison<Sides> {
        let settings = [self.standing.clone(), apply(&self.standing, &change.turned)];
        assert!(settings[0] != settings[1], "{} is compared with itself", rung.id);
        // Only a live dial can be toggled: with another one in the bundle each side needs servers of its own.
        let arms = match rung.in_place && change.turned.len() == 1 {
            true => Sides::toggled(settings, &rung.dial),
            false => Sides::apart(settings),
        };
        let schedule = Schedule::LivePairs;
        Comparison { arms, schedule, rule: self.live_rule(self.gives_up), load: self.load_of(rung) }
    }

    fn compared(
        &mut self,
        rung: &Rung,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> Result<Attempt, ClimbError> {
        let mut bench = match self.open_bench(comparison, &rung.proofs) {
            Ok(bench) => bench,
            Err((side, trouble)) => return self.trouble(rung, side, trouble),
        };
        let tried = self.on_bench(rung, &mut bench, comparison, asked);
        let horizon_ns = bench.horizon_ns(self.meter.now_ns());
        let proof = bench.proving().lines();
        self.close_bench(bench);
        let attempt = Attempt { proof, horizon_s: horizon_ns.map(|ns| ns as f64 / 1e9), ..tried? };
        if stays(&attempt) {
            self.standing.clone_from(&comparison.arms.settings()[Side::B.index()]);
        }
        check_attempt(&attempt);
        Ok(attempt)
    }

    fn on_bench(
        &mut self,
        rung: &Rung,
        bench: &mut Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> Result<Attempt, ClimbError> {
        if !matches!(bench, Bench::InTurn(_)) {
            match self.prove_all(bench, "before") {
                Ok(None) => {}
                Ok(Some(why)) => return Ok(self.without_data(rung, RungVerdict::NotApplied, why)),
                Err((side, trouble)) => return self.trouble(rung, side, trouble),
            }
        }
        let (attempt, servers) = self.judge_rung(rung, bench, comparison, asked)?;
        match bench {
            Bench::InTurn(turns) => self.after_turns(rung, turns, attempt),
            _ if servers == Servers::Suspect => Ok(attempt),
            _ => self.after_pairs(rung, bench, attempt),
        }
    }

    /// A look at both sides where it was asked for; then the proofs once more, on the same instances: the change must have
    /// been in force all along.
    fn after_pairs(
        &mut self,
        rung: &Rung,
        bench: &mut Bench<M::Arm>,
        attempt: Attempt,
    ) -> Result<Attempt, ClimbError> {
        let looked = if self.wants_look(&attempt) { self.look_at_both(rung, bench) } else { Ok(()) };
        let proved = looked.and_then(|()| self.prove_all(bench, "after"));
        match proved {
            Ok(None) => Ok(attempt),
            Ok(Some(why)) => Ok(Attempt { verdict: RungVerdict::NotApplied, why, ..attempt }),
            Err((side, trouble)) => self.trouble(rung, side, trouble),
        }
    }

    /// A look at both sides where it was asked for.
    fn after_turns(&mut self, rung: &Rung, turns: &Turns, attempt: Attempt) -> Result<Attempt, ClimbError> {
        if self.wants_look(&attempt) {
            self.look_in_turn(rung, turns)?;
        }
        Ok(Attempt { instances: attempt.pairs, ..attempt })
    }

    fn judge_rung(
        &mut self,
        rung: &Rung,
        bench: &mut Bench<M::Arm>,
        comparison: &Comparison<Sides>,
        asked: &Asked<'_>,
    ) -> Result<(Attempt, Servers), ClimbError> {
        let bursty = step_rule(Schedule::LongPairs);
        let Tried { trial, outcome } = self.pairs_or_bursts(bench, comparison, bursty, asked);
        let servers = if matches!(outcome, Outcome::Trouble(..)) { Servers::Suspect } else { Servers::Sound };
        let mut attempt = self.attempt_of(rung, trial, outcome)?;
        let compared = &self.record.series.trials[trial];
        assert!(compared.rung.as_deref() == Some(&*rung.id), "{} is another rung's trial", compared.id);
        let why = match compared.schedule {
            Schedule::LivePairs => attempt.why,
            Schedule::LongPairs => {
                let how = if attempt.effect_percent.is_some() { "judged by totals of" } else { "and in" };
                format!("works in bursts, {how} long blocks: {}", attempt.why)
            }
            Schedule::InTurn => format!("one instance after another: {}", attempt.why),
        };
        (attempt.why, attempt.clock) = (why, compared.clock.clone());
        attempt.trial = Some(compared.id.clone());
        Ok((attempt, servers))
    }

    fn attempt_of(&mut self, rung: &Rung, trial: usize, outcome: Outcome) -> Result<Attempt, ClimbError> {
        match outcome {
            Outcome::Judged(judgement) => {
                let attempt = self.judged(rung, trial, &judgement);
                Ok(self.beside_others(rung, trial, &judgement, attempt))
            }
            Outcome::Trouble(side, trouble) => self.trouble(rung, side, trouble),
            Outcome::OutOfTime(why) | Outcome::Unmeasured(why) => {
                Ok(self.without_data(rung, RungVerdict::NotMeasured, why))
            }
            Outcome::NotApplied(why) => Ok(self.without_data(rung, RungVerdict::NotApplied, why)),
            Outcome::OffBlock(percent) => {
                let totals = self.record.series.trials[trial].trial.totals(Side::B);
                let attempt = self.without_data(rung, RungVerdict::NotMeasured, off_block_words(percent));
                Ok(Attempt { off_block_percent: totals.off_block_percent(), ..attempt })
            }
            Outcome::Bursty => {
                Ok(self.without_data(rung, RungVerdict::NotMeasured, "it works in bursts".into()))
            }
        }
    }

    fn judged(&self, rung: &Rung, trial: usize, judgement: &Judgement) -> Attempt {
        let trial = &self.record.series.trials[trial].trial;
        assert!(!trial.pairs.is_empty(), "{} is judged, and nothing was measured", rung.id);
        let estimate = &judgement.estimate;
        let (verdict, why) = self.worth_it(rung, estimate.percent(), words(judgement, trial.metric));
        let means = instance_means(trial.metric, &trial.pairs);
        Attempt {
            effect_percent: Some(estimate.percent()),
            interval_percent: Some(estimate.interval_percent()),
            pairs: trial.pairs.len(),
            instances: starts_of(trial),
            instance_spread_percent: (means.len() > 1).then(|| percent_of_log(spread(&means))),
            off_block_percent: trial.totals(Side::B).off_block_percent(),
            figures: Some(Side::BOTH.map(|side| figures(trial, side))),
            rss_peak_bytes: trial.rss_peak_bytes,
            ..self.without_data(rung, verdict, why)
        }
    }

    /// Of a gain it is told where other processes surely burn more with it, whether the judge refuses it for that or not.
    fn beside_others(
        &mut self,
        rung: &Rung,
        trial: usize,
        judgement: &Judgement,
        attempt: Attempt,
    ) -> Attempt {
        let Compared { trial, schedule, .. } = &self.record.series.trials[trial];
        let is_gain = judgement.verdict == Verdict::Better
            && trial.metric == Metric::CpuPerRequest
            && *schedule != Schedule::InTurn;
        let Some(rise) = rise(&trial.pairs).filter(|rise| is_gain && rise.is_sure()) else { return attempt };
        let words = format!("other processes burn {:.1} µs more for each request with it", rise.ns / 1e3);
        self.record.warnings.push(format!("{}: {words}", rung.id));
        match judgement.veto {
            Some(Veto::Elsewhere { .. }) => attempt,
            _ => Attempt { why: format!("{}; {words}", attempt.why), ..attempt },
        }
    }

    /// A failure on the side with the change is the rung's verdict; on the side before it nothing could be compared.
    fn trouble(&mut self, rung: &Rung, side: Side, trouble: Trouble) -> Result<Attempt, ClimbError> {
        if trouble.ends_the_climb() {
            return Err(ClimbError::Ended(trouble));
        }
        let verdict = match (&trouble, side) {
            (Trouble::Knob(_), Side::B) => RungVerdict::NotPossible,
            (trouble, side) if trouble.is_of_measuring() || side == Side::A => RungVerdict::NotMeasured,
            _ => RungVerdict::Failed,
        };
        let place = if side == Side::A { "without the change, " } else { "" };
        Ok(self.without_data(rung, verdict, format!("{place}{trouble}")))
    }

    pub(crate) fn without_data(&self, rung: &Rung, verdict: RungVerdict, why: String) -> Attempt {
        Attempt { instances: self.instances, ..blank(rung, &self.load_of(rung), verdict, why) }
    }

    /// How long the whole climb must take for rungs to be measured one instance after another, in words.
    pub(crate) fn time_in_turn(&self) -> String {
        let one_ns = self.pace.of_pairs(LAST_LOOK_MIN) + self.pace.of_turns();
        let possible = self.order().iter().filter(|at| self.possible(&self.plan.rungs[**at]).is_ok()).count();
        let needed_ns = Clockwork::needed_ns(possible, one_ns, self.pace.of_turns());
        let seconds = needed_ns.div_ceil(1_000_000_000).next_multiple_of(10);
        format!("one instance after another takes --time {seconds}s or so")
    }
}

/// What is kept was measured, and its figures are in the record: they are looked at again when it is confirmed.
fn check_attempt(attempt: &Attempt) {
    let is_measured = attempt.pairs > 0 && attempt.trial.is_some() && attempt.interval_percent.is_some();
    assert!(attempt.verdict != RungVerdict::Kept || is_measured, "a rung is kept that was not measured");
    let [low, high] = attempt.interval_percent.unwrap_or_default();
    let effect = attempt.effect_percent.unwrap_or(low);
    // What is no number lies nowhere: values without any spread may have such an interval.
    assert!(!(effect < low || effect > high), "{effect} % lies outside of {low} to {high} %");
}

/// A try of which nothing was measured.
pub(crate) fn blank(rung: &Rung, load: &LoadSpec, verdict: RungVerdict, why: String) -> Attempt {
    Attempt {
        verdict,
        why,
        metric: rung.metric,
        clock: String::new(),
        load: load.record().to_string(),
        effect_percent: None,
        interval_percent: None,
        level: 0.99,
        pairs: 0,
        instances: 0,
        instance_spread_percent: None,
        off_block_percent: 0.0,
        proof: Vec::new(),
        figures: None,
        own_load: rung.own_load_only(),
        rss_peak_bytes: [0, 0],
        trial: None,
        horizon_s: None,
    }
}

/// Starts of each side that were measured.
fn starts_of(trial: &Trial) -> usize {
    let mut starts: Vec<u32> = trial.pairs.iter().map(|pair| pair.instance).collect();
    starts.sort_unstable();
    starts.dedup();
    starts.len()
}

/// Absolute figures of one side.
fn figures(trial: &Trial, side: Side) -> Figures {
    let totals = trial.totals(side);
    Figures {
        requests_per_second: totals.requests_per_second(),
        cpu_us_per_request: totals.cpu_us_per_request(),
        p50_us: trial.latency_ns(side, 0.50) as f64 / 1e3,
        p99_us: trial.latency_ns(side, 0.99) as f64 / 1e3,
    }
}

/// So many blocks of bursts come up where nine of them do but for one chance in a hundred (Poisson): nine on one side are what
/// the judge's test of outliers needs.
const PAIRS_PER_BURST: f64 = 17.0;

fn words(judgement: &Judgement, metric: Metric) -> (RungVerdict, String) {
    let at_most = judgement.estimate.at_most_percent();
    // What single pairs say leaves rare ones out, and of those that never came nobody knows.
    let leaves_out = metric == Metric::CpuPerRequest && judgement.basis == Basis::Pairs;
    let but = match leaves_out.then_some((judgement.estimate.n as f64 / PAIRS_PER_BURST) as u64) {
        Some(blocks @ 2..) => format!(", but for bursts in fewer than one block of {blocks}"),
        _ => String::new(),
    };
    match (judgement.verdict, judgement.veto) {
        (Verdict::Better, None) => (RungVerdict::Kept, "better, the interval excludes zero".into()),
        (Verdict::Better, Some(veto)) => (RungVerdict::Reverted, format!("cheaper, but {veto}")),
        (Verdict::Worse, _) => (RungVerdict::Reverted, "worse, the interval excludes zero".into()),
        (Verdict::NoDifference, _) => {
            let seen = match judgement.end {
                End::Answered => "",
                End::Hopeless => "none seen, and hardly any by more pairs; ",
                End::LastLook => "none seen; ",
            };
            (RungVerdict::NoDifference, format!("{seen}at most {at_most:.1} %{but}"))
        }
    }
}

/// Whether the climb goes on from the setting with the rung: it was kept, and not for a load of its own only.
fn stays(attempt: &Attempt) -> bool {
    attempt.verdict == RungVerdict::Kept && !attempt.own_load
}

fn spread(means: &[f64]) -> f64 {
    assert!(means.len() > 1, "one instance has no spread");
    let centre = means.iter().sum::<f64>() / means.len() as f64;
    (means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (means.len() as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::options::Options;
    use crate::climb::still::{block, measured, on_a_climb, options, plan, trial};
    use crate::climb::turned::Turned;
    use dyno_measure::Histogram;
    use dyno_measure::judge::{Estimate, Rule};
    use dyno_measure::series::Pair;

    fn attempt(verdict: RungVerdict) -> Attempt {
        let measured = Attempt {
            verdict,
            why: String::new(),
            metric: dyno_measure::series::Metric::CpuPerRequest,
            clock: String::new(),
            load: String::new(),
            effect_percent: Some(-5.0),
            interval_percent: Some([-6.0, -4.0]),
            level: 0.99,
            pairs: 30,
            instances: 4,
            instance_spread_percent: None,
            off_block_percent: 0.0,
            proof: Vec::new(),
            figures: None,
            own_load: false,
            rss_peak_bytes: [0, 0],
            trial: Some("step:spin".into()),
            horizon_s: None,
        };
        check_attempt(&measured);
        measured
    }

    #[test]
    #[should_panic(expected = "a rung is kept that was not measured")]
    fn a_rung_without_a_trial_is_never_kept() {
        check_attempt(&Attempt { trial: None, ..attempt(RungVerdict::Kept) });
    }

    #[test]
    #[should_panic(expected = "lies outside of")]
    fn an_effect_never_lies_outside_its_interval() {
        check_attempt(&Attempt { effect_percent: Some(-3.0), ..attempt(RungVerdict::Reverted) });
    }

    #[test]
    fn a_rung_that_could_not_be_measured_has_no_figures() {
        let unmeasured =
            Attempt { effect_percent: None, interval_percent: None, ..attempt(RungVerdict::NotMeasured) };
        check_attempt(&unmeasured);
    }

    #[test]
    fn an_effect_may_lie_at_either_end_of_its_interval() {
        for effect in [-6.0, -4.0] {
            check_attempt(&Attempt { effect_percent: Some(effect), ..attempt(RungVerdict::Kept) });
        }
    }

    #[test]
    #[should_panic(expected = "lies outside of")]
    fn an_effect_is_never_greater_than_its_interval() {
        check_attempt(&Attempt { effect_percent: Some(-7.0), ..attempt(RungVerdict::Reverted) });
    }

    #[test]
    #[should_panic(expected = "a rung is kept that was not measured")]
    fn a_rung_without_pairs_is_never_kept() {
        check_attempt(&Attempt { pairs: 0, ..attempt(RungVerdict::Kept) });
    }

    #[test]
    #[should_panic(expected = "a rung is kept that was not measured")]
    fn a_rung_without_an_interval_is_never_kept() {
        let bare = Attempt { effect_percent: None, interval_percent: None, ..attempt(RungVerdict::Kept) };
        check_attempt(&bare);
    }

    fn judgement(verdict: Verdict, end: End, veto: Option<Veto>) -> Judgement {
        // An interval of −1 to +3 % (log): 100 · (e^0.03 − 1) = 3.05 % at most.
        let estimate = Estimate { log_ratio: 0.01, error: 0.007, half_width: 0.02, n: 30, uncharged: 0.0 };
        Judgement { verdict, estimate, end, veto, basis: Basis::Pairs }
    }

    /// Planted fault: a guard that refuses is asked of what is worse anyway, or of nothing.
    #[test]
    fn a_judgement_becomes_a_verdict_with_its_reason() {
        let veto = Some(Veto::Tail { percent: 30.0 });
        for (verdict, end, veto, wanted, why) in [
            (Verdict::Better, End::Answered, None, RungVerdict::Kept, "better, the interval excludes zero"),
            (Verdict::Better, End::Answered, veto, RungVerdict::Reverted, "cheaper, but p99 grew by 30 %"),
            (Verdict::Worse, End::Answered, None, RungVerdict::Reverted, "worse, the interval excludes zero"),
            (Verdict::Worse, End::LastLook, veto, RungVerdict::Reverted, "worse, the interval excludes zero"),
            (Verdict::NoDifference, End::Answered, None, RungVerdict::NoDifference, "at most 3.0 %"),
            (
                Verdict::NoDifference,
                End::LastLook,
                None,
                RungVerdict::NoDifference,
                "none seen; at most 3.0 %",
            ),
            (
                Verdict::NoDifference,
                End::Hopeless,
                veto,
                RungVerdict::NoDifference,
                "none seen, and hardly any by more pairs; at most 3.0 %",
            ),
        ] {
            assert_eq!(words(&judgement(verdict, end, veto), Metric::P50), (wanted, why.to_owned()));
        }
    }

    /// Planted fault: what nobody has seen is told as what is not there.
    #[test]
    fn what_single_pairs_cannot_show_is_said_of_cpu_per_request() {
        let none = judgement(Verdict::NoDifference, End::Answered, None);
        let none = Judgement { estimate: Estimate { n: 240, ..none.estimate }, ..none };
        let said = |judgement: &Judgement, metric| words(judgement, metric).1;
        assert_eq!(
            said(&none, Metric::CpuPerRequest),
            "at most 3.0 %, but for bursts in fewer than one block of 14"
        );
        let few = Judgement { estimate: Estimate { n: 30, ..none.estimate }, ..none };
        assert_eq!(
            said(&few, Metric::CpuPerRequest),
            "at most 3.0 %",
            "of so few pairs nobody speaks of bursts"
        );
        let totals = Judgement { basis: Basis::Totals, ..none };
        assert_eq!(said(&totals, Metric::CpuPerRequest), "at most 3.0 %");
        assert_eq!(said(&none, Metric::P50), "at most 3.0 %", "half of the replies know no bursts");
    }

    #[test]
    fn a_climb_goes_on_from_what_was_kept_and_not_for_a_load_of_its_own() {
        assert!(stays(&attempt(RungVerdict::Kept)));
        assert!(!stays(&Attempt { own_load: true, ..attempt(RungVerdict::Kept) }));
        assert!(!stays(&attempt(RungVerdict::Reverted)) && !stays(&attempt(RungVerdict::NotWorthwhile)));
    }

    #[test]
    fn instances_are_counted_once_each_and_spread_as_in_the_books() {
        assert_eq!(starts_of(&trial(&[(3, 1, 1), (1, 1, 1), (3, 1, 1), (0, 1, 1)])), 3);
        assert_eq!(starts_of(&trial(&[])), 0);
        // Squares of 1, 0 and 1 over two; of two values their distance over √2.
        assert!((spread(&[1.0, 2.0, 3.0]) - 1.0).abs() < 1e-12);
        assert!((spread(&[0.0, 0.02]) - 0.02 / 2_f64.sqrt()).abs() < 1e-12);
    }

    #[test]
    #[should_panic(expected = "one instance has no spread")]
    fn one_instance_is_never_spread() {
        spread(&[1.0]);
    }

    /// Planted faults: figures of the other side, quantiles that are mixed up, units that are off by a thousand.
    #[test]
    fn figures_are_those_of_their_own_side() {
        let mut trial = Trial::new(Metric::CpuPerRequest);
        for _ in 0..2 {
            // Of a hundred latencies two are slow: the ninety-ninth is.
            let latencies = [1, 2].map(|times| {
                let mut latencies = Histogram::new();
                latencies.record_n(100_000 * times, 98);
                latencies.record_n(900_000 * times, 2);
                latencies
            });
            let pair = Pair { first: Side::B, instance: 0, a: block(5_000, 1_000), b: block(3_000, 0) };
            trial.add(pair, latencies.each_ref());
        }
        for (side, cpu_us, times) in [(Side::A, 6.0, 1.0), (Side::B, 3.0, 2.0)] {
            let read = figures(&trial, side);
            // 2,000 replies in 50 ms.
            assert!((read.requests_per_second - 40_000.0).abs() < 1e-6, "{read:?}");
            assert!((read.cpu_us_per_request - cpu_us).abs() < 1e-9, "{read:?}");
            assert!((read.p50_us / (100.0 * times) - 1.0).abs() < 0.01, "{read:?}");
            assert!((read.p99_us / (900.0 * times) - 1.0).abs() < 0.01, "{read:?}");
        }
    }

    fn died() -> Trouble {
        Trouble::Died { status: "exit status: 1".into(), stderr_tail: String::new() }
    }

    /// Planted fault: what fails without the change is held against it, or the other way round.
    #[test]
    fn trouble_is_the_rungs_where_its_own_server_has_it() {
        let lost = || Trouble::ClockLost { why: "it spins".into() };
        let slow = || Trouble::TooSlow { per_second: 9, needed: 200 };
        let knob = || Trouble::Knob("it is read-only".into());
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let rung = climber.plan.rungs[0].clone();
            for (side, trouble, wanted, says) in [
                (Side::B, died(), RungVerdict::Failed, "the server died: exit status: 1"),
                (Side::A, died(), RungVerdict::NotMeasured, "without the change, the server died"),
                (Side::B, lost(), RungVerdict::NotMeasured, "the server's CPU clock cannot be read"),
                (Side::A, lost(), RungVerdict::NotMeasured, "without the change, the server's CPU clock"),
                (Side::B, slow(), RungVerdict::NotMeasured, "it is too slow to be measured: 9 answers"),
                (Side::B, knob(), RungVerdict::NotPossible, "it is read-only"),
                (Side::A, knob(), RungVerdict::NotMeasured, "without the change, it is read-only"),
            ] {
                let attempt = climber.trouble(&rung, side, trouble).expect("it ends no climb");
                assert_eq!(attempt.verdict, wanted, "{}", attempt.why);
                assert!(attempt.why.starts_with(says), "{}", attempt.why);
                assert_eq!((attempt.instances, attempt.pairs, attempt.trial), (4, 0, None));
            }
            for trouble in [Trouble::Interrupted, Trouble::Lost("the keeper is gone".into())] {
                let ended = climber.trouble(&rung, Side::B, trouble.clone());
                assert_eq!(ended, Err(ClimbError::Ended(trouble)));
            }
        });
    }

    #[test]
    fn each_end_of_a_trial_without_an_answer_has_its_own_verdict() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let rung = climber.plan.rungs[0].clone();
            let mut trial = trial(&[(0, 6_000, 6_000)]);
            trial.pairs[0].b = block(900, 100);
            let schedule = (Stage::Step, Schedule::LivePairs);
            let at = measured(climber, "a=on", schedule, Rule::QUICK, trial);
            for (outcome, wanted, why) in [
                (Outcome::OutOfTime("late".into()), RungVerdict::NotMeasured, "late"),
                (Outcome::Unmeasured("no clock".into()), RungVerdict::NotMeasured, "no clock"),
                (Outcome::NotApplied("not in force".into()), RungVerdict::NotApplied, "not in force"),
                (Outcome::Bursty, RungVerdict::NotMeasured, "it works in bursts"),
                (Outcome::Trouble(Side::B, died()), RungVerdict::Failed, "the server died: exit status: 1"),
                (
                    Outcome::OffBlock(12.4),
                    RungVerdict::NotMeasured,
                    "12 % of a server's CPU was burnt outside its own blocks",
                ),
            ] {
                let share = if matches!(outcome, Outcome::OffBlock(_)) { 10.0 } else { 0.0 };
                let attempt = climber.attempt_of(&rung, at, outcome).expect("it ends no climb");
                assert_eq!((attempt.verdict, attempt.why.as_str()), (wanted, why));
                assert!((attempt.off_block_percent - share).abs() < 1e-9, "{}", attempt.off_block_percent);
            }
        });
    }

    /// Two instances of five pairs, which see no difference and 4 % (log): they spread by 0.04 / √2 (2.87 %).
    #[test]
    fn what_was_judged_stands_in_the_attempt_with_its_figures() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let rung = climber.plan.rungs[0].clone();
            let dearer = (1e6 * 0.04_f64.exp()) as u64;
            let cost = |at: u32| if at.is_multiple_of(2) { 1_000_000 } else { dearer };
            let pairs: Vec<(u32, u64, u64)> = (0..10).map(|at| (at % 2, 1_000_000, cost(at))).collect();
            let schedule = (Stage::Step, Schedule::LivePairs);
            let of_both = Trial { rss_peak_bytes: [7, 8], ..trial(&pairs) };
            let at = measured(climber, "a=on", schedule, Rule::QUICK, of_both);
            let judged = Outcome::Judged(judgement(Verdict::Worse, End::Answered, None));
            let attempt = climber.attempt_of(&rung, at, judged).expect("it ends no climb");
            assert_eq!((attempt.verdict, attempt.pairs, attempt.instances), (RungVerdict::Reverted, 10, 2));
            assert_eq!(attempt.rss_peak_bytes, [7, 8]);
            let near = |read: f64, wanted: f64| (read - wanted).abs() < 1e-3;
            assert!(
                attempt.effect_percent.is_some_and(|read| near(read, 1.005)),
                "{:?}",
                attempt.effect_percent
            );
            let spread = attempt.instance_spread_percent;
            assert!(spread.is_some_and(|read| near(read, 2.868_8)), "{spread:?}");
            assert_eq!(attempt.figures.map(|both| both.len()), Some(2));
            // One instance, or fewer than five pairs of each, have no spread.
            let schedule = (Stage::Step, Schedule::LivePairs);
            let at = measured(climber, "b", schedule, Rule::QUICK, trial(&pairs[..9]));
            let judged = Outcome::Judged(judgement(Verdict::NoDifference, End::LastLook, None));
            let attempt = climber.attempt_of(&rung, at, judged).expect("it ends no climb");
            assert_eq!((attempt.pairs, attempt.instances, attempt.instance_spread_percent), (9, 2, None));
        });
    }

    /// Three rungs of 20 pairs (2.88 s) and twelve turns (18 s) each have 60 % of the time: 104.4 s, in whole tens.
    #[test]
    fn the_time_for_one_after_another_is_that_of_all_rungs_that_are_possible() {
        let mut plan = plan(&["a=on", "b=on", "c=on", "d=on"]);
        plan.rungs[3].impossible = Some("no such device".into());
        let words = on_a_climb(&plan, &options(), |climber| climber.time_in_turn());
        assert_eq!(words, "one instance after another takes --time 110s or so");
        // One alone: its confirmation takes longer, 18 s being 21 % of the time: 85.7 s.
        let only = Options { only: vec!["b=on".into()], ..options() };
        let words = on_a_climb(&plan, &only, |climber| climber.time_in_turn());
        assert_eq!(words, "one instance after another takes --time 90s or so");
    }

    #[test]
    fn sides_are_toggled_where_the_rungs_own_dial_is_all_that_turns() {
        let mut plan = plan(&["a=on", "b=on"]);
        (plan.rungs[0].in_place, plan.rungs[1].in_place) = (true, false);
        on_a_climb(&plan, &options(), |climber| {
            let turn = |dial: &str| Turned { dial: dial.into(), from: "off".into(), to: "on".into() };
            let step = |at: usize, dials: &[&str]| {
                let turned = dials.iter().map(|dial| turn(dial)).collect();
                let comparison =
                    climber.step_of(&climber.plan.rungs[at], &Change { turned, bundle: Vec::new() });
                assert_eq!(comparison.arms.settings()[0], climber.standing);
                (
                    comparison.arms.toggles().map(str::to_owned),
                    comparison.arms.settings()[1].words().join(" "),
                )
            };
            assert_eq!(step(0, &["a"]), (Some("a".to_owned()), "a=on b=off".to_owned()));
            assert_eq!(step(0, &["b", "a"]), (None, "a=on b=on".to_owned()), "another dial in the bundle");
            assert_eq!(step(1, &["b"]), (None, "a=off b=on".to_owned()), "no live dial");
        });
    }

    #[test]
    fn tries_are_numbered_from_one() {
        assert_eq!([Pass::First, Pass::Second].map(Pass::number), [1, 2]);
    }
}
