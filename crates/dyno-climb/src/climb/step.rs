//! The passes: every rung is tried once, and what was not kept once more on the setting reached.
//!
//! How a rung is measured stands in `attempt`, what it turns in `change`; here is who is tried, when, and with how much time.

use dyno_measure::judge::{LAST_LOOK_MIN, Rule};
use dyno_record::climb::{Attempt, Rung as RungRecord, RungVerdict, State};

use super::attempt::{Pass, blank};
use super::climber::Climber;
use super::options::{ClimbError, Event};
use super::rules::NULL_PAIRS;
use super::time::{Until, share_ns};
use super::turned::{Kept, apply};
use crate::dial::Setting;
use crate::meter::Look;
use crate::plan::Plan;
use crate::rung::Rung;

/// Time below which a second try is not begun: two looks and the instances' start.
const SECOND_TRY_NS: u64 = 5_000_000_000;

impl<M: Look> Climber<'_, M> {
    pub(crate) fn first_pass(&mut self) -> Result<(), ClimbError> {
        let order = self.order();
        assert!(self.record.rungs.is_empty(), "rungs are tried from the first on");
        self.gives_up = self.time_is_short();
        for (k, index) in order.iter().enumerate() {
            let possible = order[k..].iter().filter(|i| self.possible(&self.plan.rungs[**i]).is_ok()).count();
            let stage = format!("rung {} of {}", k + 1, order.len());
            let rung = &self.plan.rungs[*index];
            let until = self.rung_until(rung, possible, self.clockwork.rungs_end_ns());
            let slot = self.record.rungs.len();
            let blank = unreached(self.plan, rung, &self.standing);
            self.record.rungs.push(blank);
            self.try_rung(rung, slot, &stage, Pass::First, until)?;
        }
        Ok(())
    }

    /// Writes down the rungs that a climb never came to.
    pub(crate) fn list_unreached(&mut self) {
        for index in self.order() {
            let rung = &self.plan.rungs[index];
            if self.record.rungs.iter().all(|done| done.id != rung.id) {
                self.record.rungs.push(unreached(self.plan, rung, &self.standing));
            }
        }
    }

    /// While one bottleneck stands, fixes of the next show nothing or even harm: what was not kept is tried once more on
    /// the setting reached, as far as time allows.
    pub(crate) fn second_pass(&mut self) -> Result<(), ClimbError> {
        let first_kept = self.kept.len();
        let mut slots: Vec<usize> =
            (0..self.record.rungs.len()).filter(|slot| self.deserves_another_try(*slot)).collect();
        // There is seldom time for all: those first that read most like a gain.
        slots.sort_by(|one, other| self.reads(*one).total_cmp(&self.reads(*other)));
        let mut untried = Vec::new();
        for (k, slot) in slots.iter().enumerate() {
            let rung = self.rung_of(*slot).clone();
            // What was kept meanwhile may have moved its dial on; or what it needs still does not stand.
            if self.moved_on(*slot, first_kept) || self.change(&rung).is_err() {
                continue;
            }
            let end_ns = self.second_tries_end_ns();
            let affordable = end_ns.saturating_sub(self.meter.now_ns()) / self.pace.of_pairs(NULL_PAIRS);
            let until = self.rung_until(&rung, (slots.len() - k).min(affordable as usize), end_ns);
            let share_ns = until.share_ns.saturating_sub(self.meter.now_ns());
            if share_ns < SECOND_TRY_NS.max(self.least_ns(&rung, LAST_LOOK_MIN)) {
                untried.push(rung.id);
                continue;
            }
            let stage = format!("second try {} of {}", k + 1, slots.len());
            self.try_rung(&rung, *slot, &stage, Pass::Second, until)?;
        }
        if !untried.is_empty() {
            self.missing(format!("second try of {}", untried.join(", ")), "no time left for it");
        }
        Ok(())
    }

    /// What was read of a rung, in half widths of its interval; below all others what was not measured.
    fn reads(&self, slot: usize) -> f64 {
        let attempt = &self.record.rungs[slot].attempt;
        let half = |[low, high]: [f64; 2]| (high - low) / 2.0;
        match (attempt.effect_percent, attempt.interval_percent.map(half)) {
            (Some(effect), Some(half)) if half > 0.0 => effect / half,
            _ => f64::NEG_INFINITY,
        }
    }

    /// Judged, and something was kept after that; or not even measured, which time or fresh instances may cure.
    fn deserves_another_try(&self, slot: usize) -> bool {
        match self.record.rungs[slot].attempt.verdict {
            RungVerdict::NoDifference | RungVerdict::NotWorthwhile | RungVerdict::Reverted => {
                self.kept.iter().any(|kept| kept.rung > slot)
            }
            RungVerdict::NotMeasured => true,
            // What the machine cannot have it cannot have later either.
            RungVerdict::NotPossible => self.rung_of(slot).impossible.is_none(),
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

    /// Until when a rung may be measured, the first of so many: it has an equal share, and while an answer may yet be expected
    /// all that others will not need, as most of them have no effect.
    fn rung_until(&self, rung: &Rung, parts: usize, end_ns: u64) -> Until {
        let now_ns = self.meter.now_ns();
        let share_ns = share_ns(now_ns, end_ns, parts, self.least_ns(rung, Rule::QUICK.first));
        let others_ns = self.pace.of_pairs(NULL_PAIRS) * (parts as u64).saturating_sub(1);
        let share_ns = now_ns + share_ns;
        Until { share_ns, most_ns: end_ns.saturating_sub(others_ns).max(share_ns) }
    }

    /// Second tries have the time that confirmations will not need: what is not confirmed is not kept.
    fn second_tries_end_ns(&self) -> u64 {
        let confirming_begins_ns = self.clockwork.confirm_end_ns().saturating_sub(self.confirming_ns());
        self.clockwork.rungs_end_ns().min(confirming_begins_ns)
    }

    /// What this many pairs of a rung take, or the fewest that are judged where instances follow each other.
    fn least_ns(&self, rung: &Rung, pairs: usize) -> u64 {
        if self.is_known_to_burn(rung) { self.pace.of_turns() } else { self.pace.of_pairs(pairs) }
    }

    /// Whether one of a rung's sides was seen to burn CPU outside its own blocks.
    fn is_known_to_burn(&self, rung: &Rung) -> bool {
        let turned = self.change(rung).map(|change| apply(&self.standing, &change.turned));
        self.burns([&self.standing]) || turned.is_ok_and(|turned| self.burns([&turned]))
    }

    fn try_rung(
        &mut self,
        rung: &Rung,
        slot: usize,
        stage: &str,
        pass: Pass,
        until: Until,
    ) -> Result<(), ClimbError> {
        assert!(self.record.rungs[slot].id == rung.id, "a rung is tried in its own place of the record");
        assert!(self.kept.iter().all(|kept| kept.rung != slot), "{} was kept already", rung.id);
        let share_ns = until.share_ns.saturating_sub(self.meter.now_ns());
        let attempt = match self.change(rung) {
            Err(why) => self.without_data(rung, RungVerdict::NotPossible, why),
            Ok(_) if share_ns < self.least_ns(rung, LAST_LOOK_MIN) => {
                let how = if self.is_known_to_burn(rung) { self.time_in_turn() } else { String::new() };
                let why = ["no time left for it", &how].join(if how.is_empty() { "" } else { ": " });
                self.without_data(rung, RungVerdict::NotMeasured, why)
            }
            Ok(change) => {
                self.record.rungs[slot].change = step_words(rung, &self.standing);
                let attempt = self.attempt(rung, &change, stage, pass, until)?;
                self.record.rungs[slot].bundle.clone_from(&change.bundle);
                if attempt.verdict == RungVerdict::Kept {
                    self.kept.push(Kept { rung: slot, turned: change.turned, pair_ns: self.pace.pair_ns });
                }
                attempt
            }
        };
        self.record.rungs[slot].state = state_of(rung, &attempt);
        let earlier = std::mem::replace(&mut self.record.rungs[slot].attempt, attempt);
        if pass == Pass::Second {
            assert!(earlier.verdict != RungVerdict::Kept, "what was kept is not tried again");
            self.record.rungs[slot].first_attempt = Some(earlier);
        }
        let done = self.record.rungs[slot].clone();
        (self.watch)(&Event::Rung(&done));
        Ok(())
    }
}

/// A rung that the climb never came to.
fn unreached(plan: &Plan, rung: &Rung, standing: &Setting) -> RungRecord {
    let load = rung.load.as_ref().unwrap_or(&plan.load);
    RungRecord {
        id: rung.id.clone(),
        change: step_words(rung, standing),
        claim: rung.claim.clone(),
        source: rung.source.clone(),
        risk: rung.risk.clone(),
        reverts: plan.dial(&rung.dial).how.reverts(),
        needs: rung.needs.iter().map(|need| format!("{}={}", need.dial, need.value)).collect(),
        sets: format!("{}={}", rung.dial, rung.to),
        state: None,
        elsewhere: rung.elsewhere.clone(),
        bundle: Vec::new(),
        attempt: blank(rung, load, RungVerdict::NotMeasured, "the climb ended before it".into()),
        first_attempt: None,
        leave_one_out: None,
        leave_one_out_trial: None,
        leave_one_out_beside: Vec::new(),
        plan_load: None,
    }
}

/// How far it came.
fn state_of(rung: &Rung, attempt: &Attempt) -> Option<State> {
    match attempt.verdict {
        RungVerdict::NotPossible => rung.state,
        RungVerdict::NotApplied => Some(State::NotInForce),
        RungVerdict::NotMeasured | RungVerdict::Failed => None,
        RungVerdict::Kept
        | RungVerdict::Reverted
        | RungVerdict::NotWorthwhile
        | RungVerdict::NoDifference
        | RungVerdict::Unconfirmed => Some(State::MeasuredHere),
    }
}

fn step_words(rung: &Rung, standing: &Setting) -> String {
    format!("{} {} → {}", rung.dial, standing.get(&rung.dial), rung.to)
}
