//! One try at a rung: opened, proved, measured, proved again, judged.
//!
//! The passes (`step`) call it. Whatever goes wrong with the rung's servers is its verdict; only what ends the climb is an
//! error here.

use dyno_measure::judge::{End, Judgement, LAST_LOOK_MIN, Verdict, instance_means};
use dyno_measure::series::{Side, Trial};
use dyno_measure::units::percent_of_log;
use dyno_record::climb::{Attempt, Figures, RungVerdict};
use dyno_record::trial::{Schedule, Stage};

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
            Outcome::Judged(judgement) => Ok(self.judged(rung, trial, &judgement)),
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
        let (verdict, why) = self.worth_it(rung, estimate.percent(), words(judgement));
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

fn words(judgement: &Judgement) -> (RungVerdict, String) {
    let at_most = judgement.estimate.at_most_percent();
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
            (RungVerdict::NoDifference, format!("{seen}at most {at_most:.1} %"))
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
}
