//! Leave-one-out: each kept dial is turned back, on fresh data. The gain to quote.
//!
//! A step's own figure decided on the same data that it reports, and reads high; turned back at the end it also says what
//! the dial is worth beside all the others.

use dyno_measure::judge::{Rule, Verdict};
use dyno_measure::record::{Effect, RungVerdict};

use super::step::apply;
use super::time::share_ns;
use super::trial::{Bounds, Outcome, Sides};
use super::{ArmSpec, ClimbError, Climber, Kept, SideArms, Turned};
use crate::dial::Setting;
use crate::meter::{Length, Meter, Trouble};
use crate::plan::LoadSpec;

/// One look: 1.2 % false alarms on fresh data, after a step that had 1 % itself.
const CONFIRM_Z: f64 = 2.5;
/// Pairs of a confirmation at most: two thirds of a step's last look give nearly its width.
const PAIRS_MAX: usize = 160;
/// Below this a confirmation says nothing.
const PAIRS_MIN: usize = 30;
/// What a pair and its share of the instances' starts take.
const PAIR_NS: u64 = 66_000_000;
/// Starting and warming the instances of one side.
const OPEN_NS: u64 = 800_000_000;

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn leave_one_out(&mut self) -> Result<(), ClimbError> {
        let kept = self.kept.clone();
        for (k, one) in kept.iter().enumerate() {
            let share = share_ns(self.meter.now_ns(), self.clockwork.confirm_end_ns(), kept.len() - k);
            self.confirm(one, &kept, share, &format!("confirming {} of {}", k + 1, kept.len()))?;
        }
        self.close_current();
        self.standing = self.confirmed_setting();
        Ok(())
    }

    fn confirm(&mut self, one: &Kept, all: &[Kept], share: u64, stage: &str) -> Result<(), ClimbError> {
        let rung = self
            .plan
            .rung(&self.record.rungs[one.rung].id)
            .expect("the record's rungs are the plan's")
            .clone();
        let load = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        let pairs = ((share.saturating_sub(2 * OPEN_NS) / PAIR_NS) as usize).clamp(PAIRS_MIN, PAIRS_MAX);
        let back = self.turned_back(one, all);
        let bounds = Bounds {
            id: format!("leave-one-out:{}", rung.id),
            stage,
            name: &rung.id,
            metric: rung.metric,
            rule: Rule::once(pairs, CONFIRM_Z),
            length: Length::Short,
            // Twice its share: late is better than nothing, and the total has its own time.
            deadline_ns: self.meter.now_ns() + 2 * share.max(PAIRS_MIN as u64 * PAIR_NS),
        };
        let tried = if rung.in_place {
            self.toggled(&load, &rung.dial, back, &bounds)
        } else {
            self.apart_from(&load, back, &bounds)
        };
        let (trial, outcome) = match tried {
            Ok(tried) => (Some(tried.trial), tried.outcome),
            Err(trouble) => (None, Outcome::Trouble(dyno_measure::series::Side::B, trouble)),
        };
        self.record.series.trials.extend(trial);
        self.conclude(one, outcome)
    }

    fn conclude(&mut self, one: &Kept, outcome: Outcome) -> Result<(), ClimbError> {
        let rung = &mut self.record.rungs[one.rung];
        let unconfirmed = match outcome {
            Outcome::Trouble(_, trouble) if trouble.ends_the_climb() => {
                return Err(ClimbError::Ended(trouble));
            }
            Outcome::Trouble(_, trouble) => Some(format!("could not be measured again: {trouble}")),
            Outcome::Unmeasured(why) => Some(format!("could not be measured again: {why}")),
            Outcome::Bursty => Some("could not be measured again: it works in bursts".into()),
            Outcome::Judged(judgement) => {
                rung.leave_one_out = Some(Effect::from(judgement.estimate));
                let [low, high] = judgement.estimate.interval_percent();
                let seen =
                    format!("turned back on fresh data it made {low:+.1} to {high:+.1} %: not confirmed");
                (judgement.verdict != Verdict::Better).then_some(seen)
            }
        };
        if let Some(why) = unconfirmed {
            rung.attempt.verdict = RungVerdict::Unconfirmed;
            rung.attempt.why = why;
        }
        Ok(())
    }

    /// The end reached, with this rung's dials where the climb found them, and those of every rung that needs it.
    fn turned_back(&self, one: &Kept, all: &[Kept]) -> Setting {
        let later = all.iter().filter(|other| other.rung != one.rung && self.depends(other, one));
        let reversed = |turned: &Turned| Turned {
            dial: turned.dial.clone(),
            from: turned.to.clone(),
            to: turned.from.clone(),
        };
        let mut dependent: Vec<Turned> = later.flat_map(|other| &other.turned).map(reversed).collect();
        dependent.reverse();
        let own: Vec<Turned> = one.turned.iter().rev().map(reversed).collect();
        apply(&apply(&self.standing, &dependent), &own)
    }

    /// Whether `other` cannot stand without `one`: by a declared need, or because it moved the same dial on.
    fn depends(&self, other: &Kept, one: &Kept) -> bool {
        let Ok(rung) = self.plan.rung(&self.record.rungs[other.rung].id) else { return false };
        let provides =
            |dial: &str, value: &str| one.turned.iter().any(|turn| turn.dial == dial && turn.to == value);
        let moved_on = other.turned.iter().any(|turn| provides(&turn.dial, &turn.from));
        moved_on || rung.needs.iter().any(|need| provides(&need.dial, &need.value))
    }

    fn apart_from(
        &mut self,
        load: &LoadSpec,
        back: Setting,
        bounds: &Bounds<'_>,
    ) -> Result<super::trial::Tried, Trouble> {
        self.ensure_current(load)?;
        let mut without = self.open_side(ArmSpec { setting: back, load: load.clone() })?;
        let mut with = self.current.take().expect("ensure_current() has opened it");
        let tried = self.trial(Sides::Apart { a: &mut without, b: &mut with }, bounds);
        self.close_side(without);
        self.settle(with, &tried);
        Ok(tried)
    }

    fn toggled(
        &mut self,
        load: &LoadSpec,
        dial: &str,
        back: Setting,
        bounds: &Bounds<'_>,
    ) -> Result<super::trial::Tried, Trouble> {
        self.ensure_current(load)?;
        let mut arms = self.current.take().expect("ensure_current() has opened it");
        let with = self.standing.clone();
        let tried = self.trial(Sides::InPlace { arms: &mut arms, dial, a: back, b: with.clone() }, bounds);
        for arm in &mut arms.arms {
            if let Err(trouble) = self.meter.turn(arm, &with, dial) {
                self.close_side(arms);
                return Err(trouble);
            }
        }
        self.settle(arms, &tried);
        Ok(tried)
    }

    /// Instances that had trouble are not used again.
    fn settle(&mut self, arms: SideArms<M::Arm>, tried: &super::trial::Tried) {
        match tried.outcome {
            Outcome::Trouble(..) => self.close_side(arms),
            _ => self.current = Some(arms),
        }
    }

    /// The start with every confirmed rung's dials turned, in the order of keeping.
    pub(crate) fn confirmed_setting(&self) -> Setting {
        let confirmed = self.kept.iter().filter(|kept| self.is_confirmed(kept));
        confirmed.fold(self.plan.start(), |setting, kept| {
            // A rung whose ground was not confirmed stands on nothing: its dial stays where it was.
            let stands = kept.turned.iter().all(|turn| setting.get(&turn.dial) == turn.from);
            if stands { apply(&setting, &kept.turned) } else { setting }
        })
    }
}
