//! One rung: precondition, change, proof, measurement, verdict.

use dyno_measure::judge::{Judgement, LAST_LOOK_MIN, Rule, Verdict, instance_means};
use dyno_measure::record::{Attempt, Figures, ProofLine, Rung as RungRecord, RungVerdict};
use dyno_measure::series::{Side, Trial};
use dyno_measure::stats::deviation;
use dyno_measure::units::percent_of_log;

use super::in_turn::{Turns, off_block_words};
use super::rules::{BURSTY, BURSTY_SUFFIX, IN_TURN, IN_TURN_SUFFIX};
use super::time::{Clockwork, share_ns};
use super::trial::{Bounds, Outcome, Sides, Tried};
use super::{ArmSpec, ClimbError, Climber, Event, Kept, SideArms, Turned};
use crate::dial::Setting;
use crate::meter::{Length, Meter, Trouble};
use crate::plan::LoadSpec;
use crate::proof::Reading;
use crate::rung::Rung;

/// Time below which a second try is not begun: two looks and the instances' start.
const SECOND_TRY_NS: u64 = 5_000_000_000;

/// Which of the two tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    First,
    Second,
}

impl Pass {
    /// What its trials' names begin with.
    fn stage(self) -> &'static str {
        match self {
            Self::First => "step",
            Self::Second => "second",
        }
    }
}

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
            let possible = order[k..].iter().filter(|i| self.possible(&self.plan.rungs[**i]).is_ok()).count();
            let stage = format!("rung {} of {}", k + 1, order.len());
            let rung = &self.plan.rungs[*index];
            let share = self.rung_share_ns(rung, possible);
            let slot = self.record.rungs.len();
            let blank = Self::blank(self.plan, rung, &self.standing);
            self.record.rungs.push(blank);
            self.try_rung(rung, slot, &stage, Pass::First, share)?;
        }
        Ok(())
    }

    /// Writes down the rungs that a climb never came to.
    pub(crate) fn list_unreached(&mut self) {
        for index in self.order() {
            let rung = &self.plan.rungs[index];
            if self.record.rungs.iter().all(|done| done.id != rung.id) {
                self.record.rungs.push(Self::blank(self.plan, rung, &self.standing));
            }
        }
    }

    /// While one bottleneck stands, fixes of the next show nothing or even harm: what was not kept is tried once more on
    /// the setting reached, as far as time allows.
    pub(crate) fn second_pass(&mut self) -> Result<(), ClimbError> {
        let first_kept = self.kept.len();
        let slots: Vec<usize> =
            (0..self.record.rungs.len()).filter(|slot| self.deserves_another_try(*slot)).collect();
        for (k, slot) in slots.iter().enumerate() {
            let rung = self.rung_of(*slot).clone();
            // What was kept meanwhile may have moved its dial on; or what it needs still does not stand.
            if self.moved_on(*slot, first_kept) || self.change(&rung).is_err() {
                continue;
            }
            let share = self.rung_share_ns(&rung, slots.len() - k);
            if share < SECOND_TRY_NS.max(self.least_ns(&rung, LAST_LOOK_MIN)) {
                self.missing(format!("second try of {}", rung.id), "no time left for it");
                continue;
            }
            let stage = format!("second try {} of {}", k + 1, slots.len());
            self.try_rung(&rung, *slot, &stage, Pass::Second, share)?;
        }
        Ok(())
    }

    /// Judged, and something was kept after that; or not even measured, which time or fresh instances may cure.
    fn deserves_another_try(&self, slot: usize) -> bool {
        match self.record.rungs[slot].attempt.verdict {
            RungVerdict::NoDifference | RungVerdict::Reverted => {
                self.kept.iter().any(|kept| kept.rung > slot)
            }
            RungVerdict::NotMeasured | RungVerdict::NotPossible => true,
            _ => false,
        }
    }

    /// Whether a rung kept after this one was judged has turned its dial: from there it would be another step.
    fn moved_on(&self, slot: usize, first_kept: usize) -> bool {
        let done = &self.record.rungs[slot];
        let dial = &self.rung_of(slot).dial;
        let later = self.kept.iter().enumerate().filter(|(k, kept)| kept.rung > slot || *k >= first_kept);
        done.attempt.verdict != RungVerdict::NotPossible
            && later.flat_map(|(_, kept)| &kept.turned).any(|turn| turn.dial == *dial)
    }

    fn rung_share_ns(&self, rung: &Rung, parts: usize) -> u64 {
        let one_look_ns = self.least_ns(rung, Rule::QUICK.first);
        share_ns(self.meter.now_ns(), self.clockwork.rungs_end_ns(), parts, one_look_ns)
    }

    /// What this many pairs of a rung take, or the fewest that are judged where instances follow each other.
    fn least_ns(&self, rung: &Rung, pairs: usize) -> u64 {
        if self.is_known_to_burn(rung) { self.pace.of_turns() } else { self.pace.of_pairs(pairs) }
    }

    /// Whether one of a rung's sides was seen to burn CPU outside its own blocks.
    fn is_known_to_burn(&self, rung: &Rung) -> bool {
        let turned = self.change(rung).map(|change| apply(&self.standing, &change.turned));
        self.burns(&[&self.standing]) || turned.is_ok_and(|turned| self.burns(&[&turned]))
    }

    /// How long the whole climb must take for rungs to be measured one instance after another, in words.
    fn time_in_turn(&self) -> String {
        let one_ns = self.pace.of_pairs(LAST_LOOK_MIN) + self.pace.of_turns();
        let possible = self.order().iter().filter(|at| self.possible(&self.plan.rungs[**at]).is_ok()).count();
        let needed_ns = Clockwork::needed_ns(possible, one_ns, self.pace.of_turns());
        let seconds = needed_ns.div_ceil(1_000_000_000).next_multiple_of(10);
        format!("one instance after another takes --time {seconds}s or so")
    }

    fn try_rung(
        &mut self,
        rung: &Rung,
        slot: usize,
        stage: &str,
        pass: Pass,
        share: u64,
    ) -> Result<(), ClimbError> {
        let attempt = match self.change(rung) {
            Err(why) => self.without_data(rung, RungVerdict::NotPossible, why),
            Ok(_) if share < self.least_ns(rung, LAST_LOOK_MIN) => {
                let how = if self.is_known_to_burn(rung) { self.time_in_turn() } else { String::new() };
                let why = ["no time left for it", &how].join(if how.is_empty() { "" } else { ": " });
                self.without_data(rung, RungVerdict::NotMeasured, why)
            }
            Ok(change) => {
                self.record.rungs[slot].change = step_words(rung, &self.standing);
                // What is measured in turn is not foretold: its sides are never profiled side by side.
                if !self.is_known_to_burn(rung) {
                    self.experiment(rung)?;
                }
                let deadline_ns = self.meter.now_ns() + share;
                let attempt = self.measure(rung, &change, stage, pass, deadline_ns)?;
                self.record.rungs[slot].bundle.clone_from(&change.bundle);
                if attempt.verdict == RungVerdict::Kept {
                    self.kept.push(Kept { rung: slot, turned: change.turned });
                }
                attempt
            }
        };
        let earlier = std::mem::replace(&mut self.record.rungs[slot].attempt, attempt);
        if pass == Pass::Second {
            self.record.rungs[slot].first_attempt = Some(earlier);
        }
        let done = self.record.rungs[slot].clone();
        (self.watch)(&Event::Rung(&done));
        Ok(())
    }

    /// What must be turned for the rung, or why it cannot be.
    fn change(&self, rung: &Rung) -> Result<Change, String> {
        self.possible(rung)?;
        let mut change = Change { turned: Vec::new(), bundle: Vec::new() };
        self.meet_needs(rung, &mut change)?;
        self.turn_to(&rung.dial, &rung.to, &mut change.turned)?;
        Ok(change)
    }

    /// Whether it can be had here at all.
    fn possible(&self, rung: &Rung) -> Result<(), String> {
        if let Some(why) = &rung.impossible {
            return Err(why.clone());
        }
        let cpus = self.meter.server_cpus();
        if cpus < rung.server_cpus {
            let plural = if cpus == 1 { "" } else { "s" };
            return Err(format!("{cpus} server CPU{plural}, it needs {}", rung.server_cpus));
        }
        Ok(())
    }

    fn meet_needs(&self, rung: &Rung, change: &mut Change) -> Result<(), String> {
        for need in &rung.needs {
            let turned = change.turned.iter().any(|turn| turn.dial == need.dial && turn.to == need.value);
            if !turned && self.standing.get(&need.dial) != need.value {
                self.needed(&need.dial, &need.value, change)?;
            }
        }
        Ok(())
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
                self.turn_to(dial, value, &mut change.turned)?;
                // What it needs itself may have shown no difference too.
                self.meet_needs(self.plan.rung(&done.id).expect("found above"), change)
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
        pass: Pass,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        self.forget_looks(rung);
        let load = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        let turned = apply(&self.standing, &change.turned);
        let both =
            [self.standing.clone(), turned.clone()].map(|setting| ArmSpec { setting, load: load.clone() });
        let mut beside = None;
        if !self.burns(&[&self.standing, &turned]) {
            let attempt =
                self.side_by_side(rung, change, (turned.clone(), load), stage, pass, deadline_ns)?;
            if !self.burns(&[&self.standing, &turned]) {
                return Ok(attempt);
            }
            beside = Some(attempt);
        }
        // What is left of a share for short pairs may hold too few of these to judge by.
        let least_ns = self.meter.now_ns() + self.pace.of_turns();
        let deadline_ns = deadline_ns.max(least_ns).min(self.clockwork.rungs_end_ns());
        match beside {
            Some(attempt) if deadline_ns < least_ns => {
                let why = format!("{}, and there was no time: {}", attempt.why, self.time_in_turn());
                Ok(Attempt { why, ..attempt })
            }
            _ => self.in_turn(rung, change, both, stage, pass, deadline_ns),
        }
    }

    fn side_by_side(
        &mut self,
        rung: &Rung,
        change: &Change,
        (turned, load): (Setting, LoadSpec),
        stage: &str,
        pass: Pass,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        self.spoiled = false;
        if let Err(trouble) = self.ensure_current(&load) {
            return self.trouble(rung, Side::A, trouble);
        }
        let mut current = self.current.take().expect("ensure_current() has opened it");
        // Only a live dial can be toggled: with another one in the bundle each side needs servers of its own.
        let attempt = if rung.in_place && change.turned.len() == 1 {
            self.in_place(rung, &mut current, turned, stage, pass, deadline_ns)
        } else {
            let spec = ArmSpec { setting: turned.clone(), load };
            match self.open_side(spec) {
                Err(trouble) => self.trouble(rung, Side::B, trouble),
                Ok(mut other) => {
                    let attempt = self.apart(rung, &mut current, &mut other, stage, pass, deadline_ns);
                    let keep = attempt.as_ref().is_ok_and(|attempt| stays(rung, attempt));
                    let loser = if keep { std::mem::replace(&mut current, other) } else { other };
                    self.close_side(loser);
                    attempt
                }
            }
        };
        if std::mem::take(&mut self.spoiled) {
            // The side that stays may have lost an instance too: the next rung gets fresh ones.
            self.close_side(current);
        } else {
            self.standing = current.spec.setting.clone();
            self.current = Some(current);
        }
        attempt
    }

    /// One instance after another: no two servers are alive at the same time.
    fn in_turn(
        &mut self,
        rung: &Rung,
        change: &Change,
        specs: [ArmSpec; 2],
        stage: &str,
        pass: Pass,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        self.close_current();
        let turned = specs[1].setting.clone();
        let mut turns = Turns::new(specs);
        turns.proofs.clone_from(&rung.proofs);
        turns.toggles = (rung.in_place && change.turned.len() == 1).then(|| rung.dial.clone());
        self.spoiled = false;
        let attempt = self.judge_rung(rung, Sides::InTurn(&mut turns), stage, pass, deadline_ns)?;
        self.spoiled = false;
        let proof = turns.lines();
        if self.wants_look(&attempt) {
            self.look_in_turn(rung, &turns)?;
        }
        if stays(rung, &attempt) {
            self.standing = turned;
        }
        let causal = self.not_foretold_in_turn(&attempt);
        Ok(Attempt { proof, instances: attempt.pairs, causal, ..attempt })
    }

    fn apart(
        &mut self,
        rung: &Rung,
        a: &mut SideArms<M::Arm>,
        b: &mut SideArms<M::Arm>,
        stage: &str,
        pass: Pass,
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
        if self.spoiled {
            return Ok(Attempt { proof: lines, ..attempt });
        }
        let attempt = if self.wants_look(&attempt) {
            match self.look_at_both(rung, Sides::Apart { a, b }) {
                Ok(looks) => Attempt { causal: self.foretold(&attempt, &looks), ..attempt },
                Err((side, trouble)) => return self.trouble(rung, side, trouble),
            }
        } else {
            attempt
        };
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
        pass: Pass,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let before = arms.spec.setting.clone();
        let mut lines = Vec::new();
        let mut attempt =
            match self.prove_toggled(rung, &mut arms.arms[0], [&before, &turned], "before", &mut lines) {
                Err(trouble) => return self.trouble(rung, Side::B, trouble),
                Ok(Some(why)) => self.without_data(rung, RungVerdict::NotApplied, why),
                Ok(None) => {
                    let sides =
                        Sides::InPlace { arms, dial: &rung.dial, a: before.clone(), b: turned.clone() };
                    self.judge_rung(rung, sides, stage, pass, deadline_ns)?
                }
            };
        if self.spoiled {
            return Ok(Attempt { proof: lines, ..attempt });
        }
        if self.wants_look(&attempt) {
            let sides = Sides::InPlace { arms, dial: &rung.dial, a: before.clone(), b: turned.clone() };
            match self.look_at_both(rung, sides) {
                Ok(looks) => attempt.causal = self.foretold(&attempt, &looks),
                Err((side, trouble)) => return self.trouble(rung, side, trouble),
            }
        }
        if attempt.verdict != RungVerdict::NotApplied {
            // Read again after measuring: it must still do what it did.
            match self.prove_toggled(rung, &mut arms.arms[0], [&before, &turned], "after", &mut lines) {
                Err(trouble) => return self.trouble(rung, Side::B, trouble),
                Ok(Some(why)) => attempt = Attempt { verdict: RungVerdict::NotApplied, why, ..attempt },
                Ok(None) => {}
            }
        }
        let attempt = Attempt { proof: lines, ..attempt };
        let setting = if stays(rung, &attempt) { turned } else { before };
        for arm in &mut arms.arms {
            if let Err(trouble) = self.meter.turn(arm, &setting, &rung.dial) {
                return self.trouble(rung, Side::B, trouble);
            }
        }
        arms.spec.setting = setting;
        Ok(attempt)
    }

    fn judge_rung(
        &mut self,
        rung: &Rung,
        mut sides: Sides<'_, M::Arm>,
        stage: &str,
        pass: Pass,
        deadline_ns: u64,
    ) -> Result<Attempt, ClimbError> {
        let id = format!("{}:{}", pass.stage(), rung.id);
        let bounds = Bounds {
            id,
            stage,
            name: &rung.id,
            metric: rung.metric,
            rule: Rule::QUICK,
            length: Length::Short,
            deadline_ns,
        };
        let Tried { trial, outcome } = match &sides {
            Sides::InTurn(_) => self.trial(sides.reborrow(), &bounds.in_turn(IN_TURN)),
            Sides::Apart { .. } | Sides::InPlace { .. } => {
                self.trial_or_bursts(sides.reborrow(), bounds, BURSTY)
            }
        };
        let clock = match &sides {
            Sides::Apart { b: side, .. } | Sides::InPlace { arms: side, .. } => {
                self.meter.clock(&side.arms[0])
            }
            Sides::InTurn(turns) => turns.clock.clone(),
        };
        let attempt = self.attempt_of(rung, &trial, outcome);
        let id = trial.id.clone();
        self.record.series.trials.push(trial);
        let mut attempt = attempt?;
        if id.ends_with(BURSTY_SUFFIX) {
            let how = if attempt.effect_percent.is_some() { "judged by totals of" } else { "and in" };
            attempt.why = format!("works in bursts, {how} long blocks: {}", attempt.why);
        }
        if id.ends_with(IN_TURN_SUFFIX) {
            attempt.why = format!("one instance after another: {}", attempt.why);
        }
        attempt.clock = clock;
        attempt.trial = Some(id);
        Ok(attempt)
    }

    fn attempt_of(&mut self, rung: &Rung, trial: &Trial, outcome: Outcome) -> Result<Attempt, ClimbError> {
        match outcome {
            Outcome::Judged(judgement) => Ok(self.judged(rung, trial, &judgement)),
            Outcome::Trouble(side, trouble) => self.trouble(rung, side, trouble),
            Outcome::OutOfTime(why) | Outcome::Unmeasured(why) => {
                Ok(self.without_data(rung, RungVerdict::NotMeasured, why))
            }
            Outcome::NotApplied(why) => Ok(self.without_data(rung, RungVerdict::NotApplied, why)),
            Outcome::OffBlock(percent) => {
                let off_block_percent = trial.totals(Side::B).off_block_percent();
                let attempt = self.without_data(rung, RungVerdict::NotMeasured, off_block_words(percent));
                Ok(Attempt { off_block_percent, ..attempt })
            }
            Outcome::Bursty => {
                Ok(self.without_data(rung, RungVerdict::NotMeasured, "it works in bursts".into()))
            }
        }
    }

    fn judged(&self, rung: &Rung, trial: &Trial, judgement: &Judgement) -> Attempt {
        let estimate = &judgement.estimate;
        let (verdict, why) = words(judgement);
        let means = instance_means(trial.metric, &trial.pairs);
        Attempt {
            effect_percent: Some(estimate.percent()),
            interval_percent: Some(estimate.interval_percent()),
            pairs: trial.pairs.len(),
            instance_spread_percent: (means.len() > 1).then(|| percent_of_log(deviation(&means))),
            off_block_percent: trial.totals(Side::B).off_block_percent(),
            figures: Some(Side::BOTH.map(|side| figures(trial, side))),
            rss_peak_bytes: trial.rss_peak_bytes,
            ..self.without_data(rung, verdict, why)
        }
    }

    /// A failure on the side with the change is the rung's verdict; on the side before it nothing could be compared.
    fn trouble(&mut self, rung: &Rung, side: Side, trouble: Trouble) -> Result<Attempt, ClimbError> {
        self.spoiled = true;
        if trouble.ends_the_climb() {
            return Err(ClimbError::Ended(trouble));
        }
        let verdict = match (&trouble, side) {
            (Trouble::Knob(_), Side::B) => RungVerdict::NotPossible,
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
        when: &str,
        lines: &mut Vec<ProofLine>,
    ) -> Result<Option<String>, Trouble> {
        for proof in &rung.proofs {
            let mut readings = Vec::new();
            for setting in settings {
                self.meter.turn(arm, setting, &rung.dial)?;
                readings.push(self.meter.prove(arm, proof)?);
            }
            if let Some(why) = hold(proof, [&readings[0], &readings[1]], when, lines) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    fn without_data(&self, rung: &Rung, verdict: RungVerdict, why: String) -> Attempt {
        let load: LoadSpec = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        Attempt { instances: self.instances, ..blank_attempt(rung, &load, verdict, why) }
    }

    fn blank(plan: &crate::plan::Plan, rung: &Rung, standing: &Setting) -> RungRecord {
        let load = rung.load.clone().unwrap_or_else(|| plan.load.clone());
        RungRecord {
            id: rung.id.clone(),
            change: step_words(rung, standing),
            claim: rung.claim.clone(),
            source: rung.source.clone(),
            risk: rung.risk.clone(),
            reverts: plan.dial(&rung.dial).how.reverts(),
            needs: rung.needs.iter().map(|need| format!("{}={}", need.dial, need.value)).collect(),
            sets: format!("{}={}", rung.dial, rung.to),
            bundle: Vec::new(),
            attempt: blank_attempt(rung, &load, RungVerdict::NotMeasured, "the climb ended before it".into()),
            first_attempt: None,
            leave_one_out: None,
        }
    }
}

fn step_words(rung: &Rung, standing: &Setting) -> String {
    format!("{} {} → {}", rung.dial, standing.get(&rung.dial), rung.to)
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
        causal: None,
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

/// Whether the climb goes on from the setting with the rung: it was kept, and not for a load of its own only.
fn stays(rung: &Rung, attempt: &Attempt) -> bool {
    attempt.verdict == RungVerdict::Kept && !rung.own_load_only()
}

/// Writes down what was read on both sides; the reason when the proof does not single out the change.
pub(crate) fn hold(
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
