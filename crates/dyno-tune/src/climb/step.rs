//! One rung: precondition, change, proof, measurement, verdict.

use dyno_measure::judge::{Judgement, Rule, Verdict, instance_means};
use dyno_measure::record::{Attempt, Figures, ProofLine, Rung as RungRecord, RungVerdict};
use dyno_measure::series::{Side, Trial};
use dyno_measure::units::percent_of_log;

use super::time::share_ns;
use super::trial::{Bounds, Outcome, Sides};
use super::{ArmSpec, ClimbError, Climber, Event, Kept, SideArms, Turned};
use crate::dial::Setting;
use crate::meter::{Length, Meter, Trouble};
use crate::plan::LoadSpec;
use crate::proof::Reading;
use crate::rung::Rung;

/// Time below which a second try is not begun: two looks and the instances' start.
const SECOND_TRY_NS: u64 = 5_000_000_000;
/// Bursty trials are judged at these looks: each pair lasts ten times as long.
const BURSTY: Rule = Rule { first: 20, step: 20, last: 120, ..Rule::QUICK.by_totals() };

/// What is turned for an attempt.
struct Change {
    turned: Vec<Turned>,
    /// Rungs tried together with it.
    bundle: Vec<String>,
}

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn first_pass(&mut self) -> Result<(), ClimbError> {
        let order = self.order();
        for (k, index) in order.iter().enumerate() {
            let share = share_ns(self.meter.now_ns(), self.clockwork.rungs_end_ns(), order.len() - k);
            let stage = format!("rung {} of {}", k + 1, order.len());
            let rung = &self.plan.rungs[*index];
            let slot = self.record.rungs.len();
            let blank = Self::blank(self.plan, rung, &self.standing);
            self.record.rungs.push(blank);
            self.try_rung(rung, slot, &stage, "step", share)?;
        }
        Ok(())
    }

    /// While one bottleneck stands, fixes of the next show nothing or even harm: what was not kept is tried once more on
    /// the setting reached, as far as time allows.
    pub(crate) fn second_pass(&mut self) -> Result<(), ClimbError> {
        let again = |verdict| {
            matches!(verdict, RungVerdict::NoDifference | RungVerdict::Reverted | RungVerdict::NotMeasured)
        };
        let slots: Vec<usize> = (0..self.record.rungs.len())
            .filter(|slot| again(self.record.rungs[*slot].attempt.verdict) && self.changed_since(*slot))
            .collect();
        for (k, slot) in slots.iter().enumerate() {
            let share = share_ns(self.meter.now_ns(), self.clockwork.rungs_end_ns(), slots.len() - k);
            if share < SECOND_TRY_NS {
                self.missing(format!("second try of {}", self.record.rungs[*slot].id), "no time left for it");
                continue;
            }
            let rung = self
                .plan
                .rung(&self.record.rungs[*slot].id)
                .expect("the record's rungs are the plan's")
                .clone();
            let earlier = self.record.rungs[*slot].attempt.clone();
            self.record.rungs[*slot].first_attempt = Some(earlier);
            let stage = format!("second try {} of {}", k + 1, slots.len());
            self.try_rung(&rung, *slot, &stage, "second", share)?;
        }
        Ok(())
    }

    /// Whether something was kept after this rung was tried.
    fn changed_since(&self, slot: usize) -> bool {
        self.kept.iter().any(|kept| kept.rung > slot)
    }

    fn try_rung(
        &mut self,
        rung: &Rung,
        slot: usize,
        stage: &str,
        pass: &str,
        share: u64,
    ) -> Result<(), ClimbError> {
        let attempt = match self.change(rung) {
            Err(why) => self.without_data(rung, RungVerdict::NotPossible, why),
            Ok(change) => {
                let deadline_ns = self.meter.now_ns() + share;
                let attempt = self.measure(rung, &change, stage, pass, deadline_ns)?;
                self.record.rungs[slot].bundle.clone_from(&change.bundle);
                if attempt.verdict == RungVerdict::Kept {
                    self.kept.push(Kept { rung: slot, turned: change.turned });
                }
                attempt
            }
        };
        self.record.rungs[slot].attempt = attempt;
        let done = self.record.rungs[slot].clone();
        (self.watch)(&Event::Rung(&done));
        Ok(())
    }

    /// What must be turned for the rung, or why it cannot be.
    fn change(&self, rung: &Rung) -> Result<Change, String> {
        if let Some(why) = &rung.impossible {
            return Err(why.clone());
        }
        if self.meter.server_cpus() < rung.server_cpus {
            let cpus = self.meter.server_cpus();
            return Err(format!(
                "{cpus} server CPU{}, it needs {}",
                if cpus == 1 { "" } else { "s" },
                rung.server_cpus
            ));
        }
        let mut change = Change { turned: Vec::new(), bundle: Vec::new() };
        for need in &rung.needs {
            if self.standing.get(&need.dial) == need.value {
                continue;
            }
            self.needed(&need.dial, &need.value, &mut change)?;
        }
        self.turn_to(&rung.dial, &rung.to, &mut change.turned)?;
        Ok(change)
    }

    /// A needed dial that showed no difference by itself is judged with what needs it; one that harmed is not.
    fn needed(&self, dial: &str, value: &str, change: &mut Change) -> Result<(), String> {
        let provider =
            self.record.rungs.iter().find(|done| {
                self.plan.rung(&done.id).is_ok_and(|rung| rung.dial == dial && rung.to == value)
            });
        match provider {
            Some(done) if done.attempt.verdict == RungVerdict::NoDifference => {
                change.bundle.push(done.id.clone());
                self.turn_to(dial, value, &mut change.turned)
            }
            Some(done) => {
                Err(format!("needs {dial}={value}, and {} was {}", done.id, done.attempt.verdict.words()))
            }
            None => Err(format!("needs {dial}={value}, which no rung before it sets")),
        }
    }

    fn turn_to(&self, dial: &str, to: &str, turned: &mut Vec<Turned>) -> Result<(), String> {
        let from = self.standing.get(dial).to_owned();
        if from == to {
            return Err(format!("{dial} stands at {to} already"));
        }
        turned.push(Turned { dial: dial.to_owned(), from, to: to.to_owned() });
        Ok(())
    }

    /// Opens the other side, proves, measures, proves again, judges. Errors end the climb.
    fn measure(
        &mut self,
        rung: &Rung,
        change: &Change,
        stage: &str,
        pass: &str,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let load = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        let turned = apply(&self.standing, &change.turned);
        if let Err(trouble) = self.ensure_current(&load) {
            return self.trouble(rung, Side::A, trouble);
        }
        let mut current = self.current.take().expect("ensure_current() has opened it");
        let attempt = if rung.in_place {
            self.in_place(rung, &mut current, turned, stage, pass, deadline_ns)
        } else {
            let spec = ArmSpec { setting: turned.clone(), load };
            match self.open_side(spec) {
                Err(trouble) => self.trouble(rung, Side::B, trouble),
                Ok(mut other) => {
                    let attempt = self.apart(rung, &mut current, &mut other, stage, pass, deadline_ns);
                    let keep = attempt.as_ref().is_ok_and(|attempt| attempt.verdict == RungVerdict::Kept);
                    let loser = if keep { std::mem::replace(&mut current, other) } else { other };
                    self.close_side(loser);
                    attempt
                }
            }
        };
        if attempt.as_ref().is_ok_and(|attempt| attempt.verdict == RungVerdict::Failed) {
            // The side that stays may have lost an instance too: the next rung gets fresh ones.
            self.close_side(current);
        } else {
            self.standing = current.spec.setting.clone();
            self.current = Some(current);
        }
        attempt
    }

    fn apart(
        &mut self,
        rung: &Rung,
        a: &mut SideArms<M::Arm>,
        b: &mut SideArms<M::Arm>,
        stage: &str,
        pass: &str,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let mut lines = Vec::new();
        match self.prove_both(rung, a, b, "before", &mut lines) {
            Ok(None) => {}
            Ok(Some(why)) => {
                return Ok(Attempt { proof: lines, ..self.without_data(rung, RungVerdict::NotApplied, why) });
            }
            Err((side, trouble)) => return self.trouble(rung, side, trouble),
        }
        let attempt = self.judge_rung(rung, Sides::Apart { a, b }, stage, pass, deadline_ns)?;
        if attempt.verdict == RungVerdict::Failed {
            return Ok(Attempt { proof: lines, ..attempt });
        }
        // Read again after measuring, on the same instances: it must have been in force all along.
        match self.prove_both(rung, a, b, "after", &mut lines) {
            Ok(None) => Ok(Attempt { proof: lines, ..attempt }),
            Ok(Some(why)) => Ok(Attempt { verdict: RungVerdict::NotApplied, why, proof: lines, ..attempt }),
            Err((side, trouble)) => self.trouble(rung, side, trouble),
        }
    }

    fn in_place(
        &mut self,
        rung: &Rung,
        arms: &mut SideArms<M::Arm>,
        turned: Setting,
        stage: &str,
        pass: &str,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let before = arms.spec.setting.clone();
        let mut lines = Vec::new();
        match self.prove_toggled(rung, &mut arms.arms[0], [&before, &turned], &mut lines) {
            Ok(None) => {}
            Ok(Some(why)) => {
                return Ok(Attempt { proof: lines, ..self.without_data(rung, RungVerdict::NotApplied, why) });
            }
            Err(trouble) => return self.trouble(rung, Side::B, trouble),
        }
        let sides = Sides::InPlace { arms, dial: &rung.dial, a: before.clone(), b: turned.clone() };
        let attempt = self.judge_rung(rung, sides, stage, pass, deadline_ns)?;
        let stays = if attempt.verdict == RungVerdict::Kept { &turned } else { &before };
        for arm in &mut arms.arms {
            if let Err(trouble) = self.meter.turn(arm, stays, &rung.dial) {
                return self.trouble(rung, Side::B, trouble);
            }
        }
        arms.spec.setting = stays.clone();
        Ok(Attempt { proof: lines, ..attempt })
    }

    fn judge_rung(
        &mut self,
        rung: &Rung,
        mut sides: Sides<'_, M::Arm>,
        stage: &str,
        pass: &str,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let id = format!("{pass}:{}", rung.id);
        let mut bounds = Bounds {
            id,
            stage,
            name: &rung.id,
            metric: rung.metric,
            rule: Rule::QUICK,
            length: Length::Short,
            deadline_ns,
        };
        let mut tried = self.trial(sides.reborrow(), &bounds);
        let bursty = matches!(tried.outcome, Outcome::Bursty);
        if bursty {
            self.record.series.trials.push(tried.trial);
            bounds.id.push_str(":bursty");
            bounds.rule = BURSTY;
            bounds.length = Length::Long;
            tried = self.trial(sides.reborrow(), &bounds);
        }
        let mut attempt = match tried.outcome {
            Outcome::Judged(judgement) => self.judged(rung, &tried.trial, &judgement),
            Outcome::Bursty => self.without_data(rung, RungVerdict::NotMeasured, "it works in bursts".into()),
            Outcome::Unmeasured(why) => self.without_data(rung, RungVerdict::NotMeasured, why),
            Outcome::Trouble(side, trouble) => self.trouble(rung, side, trouble)?,
        };
        if bursty && attempt.verdict == RungVerdict::NotMeasured {
            attempt.why = format!("it works in bursts, and in long blocks {}", attempt.why);
        } else if bursty {
            attempt.why = format!("works in bursts, judged by totals of long blocks: {}", attempt.why);
        }
        attempt.clock = sides.any().map_or_else(String::new, |arm| self.meter.clock(arm));
        attempt.trial = Some(tried.trial.id.clone());
        self.record.series.trials.push(tried.trial);
        Ok(attempt)
    }

    fn judged(&self, rung: &Rung, trial: &Trial, judgement: &Judgement) -> Attempt {
        let estimate = &judgement.estimate;
        let (verdict, why) = words(judgement);
        let means = instance_means(trial.metric, &trial.pairs);
        Attempt {
            effect_percent: Some(estimate.percent()),
            interval_percent: Some(estimate.interval_percent()),
            pairs: trial.pairs.len(),
            instance_spread_percent: (means.len() > 1).then(|| percent_of_log(spread(&means))),
            off_block_percent: trial.totals(Side::B).off_block_percent(),
            figures: Some(Side::BOTH.map(|side| figures(trial, side))),
            rss_peak_bytes: trial.rss_peak_bytes,
            ..self.without_data(rung, verdict, why)
        }
    }

    /// A failure on the side with the change is the rung's verdict; on the side before it nothing could be compared.
    fn trouble(&self, rung: &Rung, side: Side, trouble: Trouble) -> Result<Attempt, ClimbError> {
        if trouble.ends_the_climb() {
            return Err(ClimbError::Ended(trouble));
        }
        let verdict = match (&trouble, side) {
            (Trouble::ClockLost { .. }, _) | (_, Side::A) => RungVerdict::NotMeasured,
            _ => RungVerdict::Failed,
        };
        let place = if side == Side::A { "without the change, " } else { "" };
        Ok(self.without_data(rung, verdict, format!("{place}{trouble}")))
    }

    /// Reads every proof on both sides; the reason when the change is not in force.
    fn prove_both(
        &mut self,
        rung: &Rung,
        a: &mut SideArms<M::Arm>,
        b: &mut SideArms<M::Arm>,
        when: &str,
        lines: &mut Vec<ProofLine>,
    ) -> Result<Option<String>, (Side, Trouble)> {
        for proof in &rung.proofs {
            let without = self.meter.prove(&mut a.arms[0], proof).map_err(|trouble| (Side::A, trouble))?;
            let with = self.meter.prove(&mut b.arms[0], proof).map_err(|trouble| (Side::B, trouble))?;
            if let Some(why) = hold(proof, [&without, &with], when, lines) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn prove_toggled(
        &mut self,
        rung: &Rung,
        arm: &mut M::Arm,
        settings: [&Setting; 2],
        lines: &mut Vec<ProofLine>,
    ) -> Result<Option<String>, Trouble> {
        for proof in &rung.proofs {
            let mut readings = Vec::new();
            for setting in settings {
                self.meter.turn(arm, setting, &rung.dial)?;
                readings.push(self.meter.prove(arm, proof)?);
            }
            if let Some(why) = hold(proof, [&readings[0], &readings[1]], "before", lines) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn without_data(&self, rung: &Rung, verdict: RungVerdict, why: String) -> Attempt {
        let load: LoadSpec = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        Attempt { instances: self.options.instances, ..blank_attempt(rung, &load, verdict, why) }
    }

    fn blank(plan: &crate::plan::Plan, rung: &Rung, standing: &Setting) -> RungRecord {
        let load = rung.load.clone().unwrap_or_else(|| plan.load.clone());
        RungRecord {
            id: rung.id.clone(),
            change: format!("{} {} → {}", rung.dial, standing.get(&rung.dial), rung.to),
            claim: rung.claim.clone(),
            source: rung.source.clone(),
            risk: rung.risk.clone(),
            reverts: plan.dial(&rung.dial).how.reverts(),
            needs: rung.needs.iter().map(|need| format!("{}={}", need.dial, need.value)).collect(),
            bundle: Vec::new(),
            attempt: blank_attempt(rung, &load, RungVerdict::NotMeasured, "the climb ended before it".into()),
            first_attempt: None,
            leave_one_out: None,
        }
    }
}

fn blank_attempt(rung: &Rung, load: &LoadSpec, verdict: RungVerdict, why: String) -> Attempt {
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
        rss_peak_bytes: [0, 0],
        trial: None,
    }
}

/// The setting with these dials turned.
pub(crate) fn apply(setting: &Setting, turned: &[Turned]) -> Setting {
    turned.iter().fold(setting.clone(), |setting, turn| setting.with(&turn.dial, &turn.to))
}

/// Absolute figures of one side.
pub(crate) fn figures(trial: &Trial, side: Side) -> Figures {
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
        (Verdict::NoDifference, _) if judgement.settled => {
            (RungVerdict::NoDifference, format!("at most {at_most:.1} %"))
        }
        (Verdict::NoDifference, _) => {
            (RungVerdict::NoDifference, format!("none seen; at most {at_most:.1} %"))
        }
    }
}

/// Writes down what was read on both sides; the reason when the proof does not single out the change.
fn hold(
    proof: &crate::proof::Proof,
    readings: [&Reading; 2],
    when: &str,
    lines: &mut Vec<ProofLine>,
) -> Option<String> {
    let holds = proof.holds(readings[0], readings[1]);
    for side in Side::BOTH {
        lines.push(ProofLine {
            side: if side == Side::A { "a" } else { "b" }.into(),
            when: when.into(),
            expected: proof.to_string(),
            read: readings[side.index()].to_string(),
            holds: holds.as_ref().is_ok_and(|holds| holds[side.index()]),
        });
    }
    match holds {
        Ok([false, true]) => None,
        Ok([true, true]) => {
            Some(format!("the proof cannot tell the sides apart: {proof}, read {} on both", readings[1]))
        }
        Ok([_, false]) => Some(format!("not in force: {proof}, read {}", readings[1])),
        Err(why) => Some(format!("cannot be proved: {why}")),
    }
}

fn spread(means: &[f64]) -> f64 {
    let centre = means.iter().sum::<f64>() / means.len() as f64;
    (means.iter().map(|m| (m - centre).powi(2)).sum::<f64>() / (means.len() as f64 - 1.0)).sqrt()
}

impl<A> Sides<'_, A> {
    pub(crate) fn reborrow(&mut self) -> Sides<'_, A> {
        match self {
            Self::Apart { a, b } => Sides::Apart { a, b },
            Self::InPlace { arms, dial, a, b } => Sides::InPlace { arms, dial, a: a.clone(), b: b.clone() },
        }
    }

    pub(crate) fn any(&self) -> Option<&A> {
        match self {
            Self::Apart { b, .. } => b.arms.first(),
            Self::InPlace { arms, .. } => arms.arms.first(),
        }
    }
}
