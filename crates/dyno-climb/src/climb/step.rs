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
                self.record.rungs[slot].bundle.clone_from(&change.bundle);
                let attempt = self.attempt(rung, &change, stage, pass, until)?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::still::{SECOND, Still, keep, needs, on_a_climb, options, plan, tried};
    use crate::load::LoadSpec;

    /// Planted faults: half of the interval is all of it, or what was not measured is tried first.
    #[test]
    fn what_reads_most_like_a_gain_is_tried_first() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            tried(climber, 0, RungVerdict::NoDifference);
            for (effect, interval, wanted) in [
                (Some(-4.0), Some([-6.0, -2.0]), -2.0),
                (Some(-4.0), Some([-12.0, 4.0]), -0.5),
                (Some(3.0), Some([1.0, 5.0]), 1.5),
                (Some(4.0), Some([4.0, 4.0]), f64::NEG_INFINITY),
                (Some(-4.0), None, f64::NEG_INFINITY),
                (None, None, f64::NEG_INFINITY),
            ] {
                let attempt = &mut climber.record.rungs[0].attempt;
                (attempt.effect_percent, attempt.interval_percent) = (effect, interval);
                let read = climber.reads(0);
                // `f64::NEG_INFINITY` less itself is no number.
                assert!(read == wanted || (read - wanted).abs() < 1e-12, "{effect:?} {interval:?}: {read}");
            }
        });
    }

    /// Rungs 0 and 2 around 1, which was kept.
    #[test]
    fn a_rung_is_tried_again_where_something_was_kept_after_it_or_nothing_was_measured() {
        let judged = [RungVerdict::NoDifference, RungVerdict::NotWorthwhile, RungVerdict::Reverted];
        let not_measured = [RungVerdict::NotMeasured, RungVerdict::NotPossible];
        let ended =
            [RungVerdict::Kept, RungVerdict::Failed, RungVerdict::NotApplied, RungVerdict::Unconfirmed];
        let mut plan = plan(&["a=on", "b=on", "c=on"]);
        let deserve = |plan: &Plan, verdict: RungVerdict| {
            on_a_climb(plan, &options(), |climber| {
                tried(climber, 0, verdict);
                keep(climber, 1);
                tried(climber, 2, verdict);
                [0, 2].map(|slot| climber.deserves_another_try(slot))
            })
        };
        for (verdicts, wanted) in
            [(&judged[..], [true, false]), (&not_measured[..], [true, true]), (&ended[..], [false, false])]
        {
            for verdict in verdicts {
                assert_eq!(deserve(&plan, *verdict), wanted, "{verdict:?}");
            }
        }
        plan.rungs[0].impossible = Some("no such device".into());
        assert_eq!(deserve(&plan, RungVerdict::NotPossible), [false, true], "later it is as little possible");
        assert_eq!(deserve(&plan, RungVerdict::NotMeasured), [true, true]);
    }

    /// `log` was turned by a rung that was kept, before or after another one of the same dial was judged.
    #[test]
    fn a_dial_has_moved_on_where_a_rung_that_was_kept_later_turned_it() {
        let plan = plan(&["log=ring", "log=none", "spin=on"]);
        on_a_climb(&plan, &options(), |climber| {
            let ring = tried(climber, 0, RungVerdict::NoDifference);
            keep(climber, 1);
            let spin = tried(climber, 2, RungVerdict::NoDifference);
            assert!(climber.moved_on(ring, 9), "kept after it");
            assert!(!climber.moved_on(spin, 0), "another dial");
            climber.record.rungs[ring].attempt.verdict = RungVerdict::NotPossible;
            assert!(!climber.moved_on(ring, 0), "what was not possible was judged from nowhere");
        });
        on_a_climb(&plan, &options(), |climber| {
            keep(climber, 0);
            let none = tried(climber, 1, RungVerdict::NoDifference);
            assert!(!climber.moved_on(none, 1), "kept before it, in the first pass");
            assert!(climber.moved_on(none, 0), "in the second one that is later");
        });
    }

    /// Seventy seconds for rungs; 30 pairs take 3.52 s, 90 pairs 8.96 s.
    #[test]
    fn a_rung_has_its_share_and_until_an_answer_what_the_others_will_not_need() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let rung = climber.plan.rungs[0].clone();
            let until = |now_s: u64, parts, climber: &mut Climber<'_, Still>| {
                climber.meter.now_ns = now_s * SECOND;
                let Until { share_ns, most_ns } = climber.rung_until(&rung, parts, 70 * SECOND);
                (share_ns, most_ns)
            };
            assert_eq!(until(0, 1, climber), (70 * SECOND, 70 * SECOND));
            assert_eq!(until(0, 2, climber), (35 * SECOND, 61_040_000_000));
            assert_eq!(until(10, 2, climber), (40 * SECOND, 61_040_000_000));
            // Nine others would need 80.64 s: there is the share alone.
            assert_eq!(until(0, 10, climber), (7 * SECOND, 7 * SECOND));
            assert_eq!(until(0, 70, climber), (3_520_000_000, 3_520_000_000), "a look at least");
            assert_eq!(until(0, 0, climber), (70 * SECOND, 70 * SECOND));
            assert_eq!(until(69, 1, climber), (70 * SECOND, 70 * SECOND), "and no more than there is");
        });
    }

    #[test]
    fn a_rung_whose_side_burns_needs_the_time_of_turns() {
        on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
            let [a, b] = [0, 1].map(|at| climber.plan.rungs[at].clone());
            let least = |climber: &Climber<'_, Still>| [&a, &b].map(|rung| climber.least_ns(rung, 30));
            assert_eq!(least(climber), [3_520_000_000; 2]);
            climber.burning = vec![climber.standing.with("a", "on")];
            assert_eq!(least(climber), [18 * SECOND, 3_520_000_000], "where its own side does");
            climber.burning = vec![climber.standing.clone()];
            assert_eq!(least(climber), [18 * SECOND; 2], "where the setting does that stands");
        });
    }

    /// 480 pairs of 90.666,666 ms after an opening of 1.6 s, before 88 s are over.
    #[test]
    fn second_tries_leave_the_time_that_confirmations_take() {
        on_a_climb(&plan(&["a=on", "b=on", "c=on"]), &options(), |climber| {
            assert_eq!(climber.second_tries_end_ns(), 70 * SECOND);
            keep(climber, 0);
            assert_eq!(climber.second_tries_end_ns(), 88 * SECOND - 480 * 90_666_666 - 1_600_000_000);
            keep(climber, 1);
            assert_eq!(climber.second_tries_end_ns(), 0, "there is none left");
        });
    }

    #[test]
    fn a_verdict_says_how_far_a_rung_came() {
        let mut plan = plan(&["a=on"]);
        plan.rungs[0].state = Some(State::NeedsReboot);
        let here = Some(State::MeasuredHere);
        on_a_climb(&plan, &options(), |climber| {
            for (verdict, wanted) in [
                (RungVerdict::NotPossible, Some(State::NeedsReboot)),
                (RungVerdict::NotApplied, Some(State::NotInForce)),
                (RungVerdict::NotMeasured, None),
                (RungVerdict::Failed, None),
                (RungVerdict::Kept, here),
                (RungVerdict::Reverted, here),
                (RungVerdict::NotWorthwhile, here),
                (RungVerdict::NoDifference, here),
                (RungVerdict::Unconfirmed, here),
            ] {
                let slot = tried(climber, 0, verdict);
                let attempt = &climber.record.rungs[slot].attempt;
                assert_eq!(state_of(&plan.rungs[0], attempt), wanted, "{verdict:?}");
            }
        });
    }

    /// Planted faults: a rung that was tried is written down once more, as never reached; its own load or need is lost.
    #[test]
    fn rungs_that_a_climb_never_came_to_are_written_down_with_all_that_is_known() {
        let mut plan = plan(&["a=on", "b=on"]);
        plan.rungs[1].needs = needs("a=on");
        plan.rungs[1].load = Some(LoadSpec { connections: 1, ..LoadSpec::default() });
        plan.rungs[1].elsewhere = "+28 %, published".into();
        on_a_climb(&plan, &options(), |climber| {
            tried(climber, 0, RungVerdict::Reverted);
            climber.list_unreached();
            climber.list_unreached();
            assert_eq!(climber.record.rungs.len(), 2);
            let rung = &climber.record.rungs[1];
            assert_eq!((rung.id.as_str(), rung.change.as_str()), ("b=on", "b off → on"));
            assert_eq!((rung.sets.as_str(), rung.needs.join(" ")), ("b=on", "a=on".to_owned()));
            assert_eq!((rung.claim.as_str(), rung.source.as_str()), ("it helps", "a book"));
            assert_eq!((rung.risk.as_str(), rung.elsewhere.as_str()), ("none", "+28 %, published"));
            assert_eq!(rung.reverts, "restart without the flag");
            assert_eq!(rung.attempt.verdict, RungVerdict::NotMeasured);
            assert_eq!(rung.attempt.why, "the climb ended before it");
            assert!(rung.attempt.load.contains("1 connection,"), "{}", rung.attempt.load);
        });
    }

    /// A look of twenty pairs takes 2.88 s.
    #[test]
    fn a_rung_without_time_for_a_look_is_not_measured_and_one_that_cannot_be_had_says_why() {
        on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
            for at in [0, 1] {
                tried(climber, at, RungVerdict::NotMeasured);
            }
            let tried_in = |climber: &mut Climber<'_, Still>, at: usize, ns: u64, pass: Pass| {
                let rung = climber.plan.rungs[at].clone();
                assert_eq!(climber.try_rung(&rung, at, "rung", pass, Until::at(ns)), Ok(()));
                let attempt = &climber.record.rungs[at].attempt;
                (attempt.verdict, attempt.why.clone())
            };
            let late = (RungVerdict::NotMeasured, "no time left for it".to_owned());
            assert_eq!(tried_in(climber, 0, 2_879_999_999, Pass::First), late);
            assert!(climber.record.rungs[0].first_attempt.is_none());
            climber.burning = vec![climber.standing.clone()];
            let (_, why) = tried_in(climber, 0, 17 * SECOND, Pass::Second);
            assert!(
                why.starts_with("no time left for it: one instance after another takes --time "),
                "{why}"
            );
            assert!(climber.record.rungs[0].first_attempt.is_some(), "the first try stays");
            climber.standing = climber.standing.with("b", "on");
            let stands = (RungVerdict::NotPossible, "b stands at on already".to_owned());
            assert_eq!(tried_in(climber, 1, 70 * SECOND, Pass::First), stands);
            assert!(climber.kept.is_empty());
        });
    }

    /// Servers that are all alike: no rung is better, and those that were judged are in the record with their trial.
    #[test]
    fn a_pass_tries_each_rung_once_and_another_one_what_deserves_it() {
        on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
            assert_eq!(climber.first_pass(), Ok(()));
            assert_eq!(climber.second_pass(), Ok(()));
            let done: Vec<_> =
                climber.record.rungs.iter().map(|rung| (rung.id.as_str(), rung.attempt.verdict)).collect();
            assert_eq!(done, [("a=on", RungVerdict::NoDifference), ("b=on", RungVerdict::NoDifference)]);
            assert!(climber.record.rungs.iter().all(|rung| rung.first_attempt.is_none()), "nothing was kept");
            assert!(climber.kept.is_empty() && climber.record.not_measured.is_empty());
            let trials: Vec<&str> =
                climber.record.series.trials.iter().map(|trial| trial.id.as_str()).collect();
            assert_eq!(trials, ["step:a=on", "step:b=on"]);
        });
    }
}
