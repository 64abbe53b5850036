//! Leave-one-out: each kept dial is turned back, on fresh data. The gain to quote.
//!
//! A step's own figure decided on the same data that it reports, and reads high; turned back at the end it also says what
//! the dial is worth beside all the others.

use dyno_measure::judge::{LAST_LOOK_MIN, Rule, Verdict};
use dyno_measure::series::Side;
use dyno_measure::units::log_of_percent;
use dyno_record::climb::{Attempt, Effect, RungVerdict};

use super::climber::{ClimbError, Climber, Kept, SideArms, Turned};
use super::in_turn::off_block_words;
use super::rules::{BURSTY, BURSTY_SUFFIX, CONFIRM_Z, IN_TURN, IN_TURN_SUFFIX};
use super::sides::Turns;
use super::sides::{Bounds, Outcome, Sides, Tried};
use super::step::apply;
use super::time::Pace;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::ArmSpec;
use crate::meter::{Length, Meter, Trouble};

/// Pairs of a confirmation at least, however short the time: one look of a step.
const PAIRS_MIN: usize = 30;
/// Pairs that a confirmation asks for at least, however large its effect: its interval is quoted, and by chance alone what
/// instances differ by widens it by half or more in one of ten. 5 % is seen again among neighbours (8 % a pair) in 0.95 of
/// trials with 60 pairs, 0.993 with 100, 0.999 with 160 (simulated).
const PAIRS_WANTED_MIN: usize = 120;
/// Pairs of a confirmation at most: beyond, what instances differ by outweighs what pairs do.
const PAIRS_MAX: usize = 480;
/// Normal quantile of the chance that an effect as large as the step's low end is seen again: 99 %.
const SEEN_AGAIN_Z: f64 = 2.33;
/// A pair of long blocks lasts as long as this many pairs of short ones.
pub(crate) const LONG_PAIRS: u64 = 9;

/// How a confirmation is measured, from the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Short,
    Long,
    InTurn,
}

impl Way {
    /// As the step was; a setting that was seen to burn since then is measured in turn whatever the step was.
    fn of(attempt: &Attempt) -> Self {
        match &attempt.trial {
            Some(trial) if trial.ends_with(IN_TURN_SUFFIX) => Self::InTurn,
            Some(trial) if trial.ends_with(BURSTY_SUFFIX) => Self::Long,
            _ => Self::Short,
        }
    }

    /// Fewest and most pairs.
    fn bounds(self) -> (usize, usize) {
        match self {
            Self::Short => (PAIRS_WANTED_MIN, PAIRS_MAX),
            Self::Long => (BURSTY.first, BURSTY.last),
            Self::InTurn => (IN_TURN.first + IN_TURN.step, IN_TURN.last),
        }
    }

    /// A pair of it lasts as long as this many pairs of short blocks.
    fn short_pairs(self, pace: &Pace) -> u64 {
        match self {
            Self::Short => 1,
            Self::Long => LONG_PAIRS,
            Self::InTurn => (pace.turn_ns / pace.pair_ns.max(1)).max(1),
        }
    }
}

/// A kept rung that waits for its confirmation.
struct Waiting {
    kept: Kept,
    /// What is compared: its dials turned back, and the setting reached.
    settings: [Setting; 2],
    way: Way,
    /// Pairs after which it should be seen again; none where no number would do. They follow from the step's data alone:
    /// fresh data that decided when to stop would be as biased as the step's.
    wanted: Option<usize>,
}

impl Waiting {
    /// Pairs that it asks for.
    fn pairs(&self) -> usize {
        let (least, most) = self.way.bounds();
        self.wanted.map_or(most, |pairs| pairs.clamp(least, most))
    }

    /// Its length in pairs of short blocks.
    fn weight(&self, pace: &Pace) -> u64 {
        self.pairs() as u64 * self.way.short_pairs(pace)
    }
}

/// Pairs that show the step's effect again with [`CONFIRM_Z`], the effect taken one error lower than it read, because what
/// decided reads high. `None` when so little is left of it that no number would do.
fn pairs_to_see_again(attempt: &Attempt) -> Option<usize> {
    let [low, high] = attempt.interval_percent?.map(log_of_percent);
    let error = (high - low) / 2.0 / Rule::QUICK.z;
    let effect = f64::midpoint(low, high).abs() - error;
    let needed = attempt.pairs as f64 * ((CONFIRM_Z + SEEN_AGAIN_Z) * error / effect).powi(2);
    (effect > 0.0).then_some(needed.ceil() as usize)
}

impl<M: Meter> Climber<'_, M> {
    /// Those that need the fewest pairs come first: when time is short, most are confirmed; what is left goes to the rest.
    pub(crate) fn leave_one_out(&mut self) -> Result<(), ClimbError> {
        let all = self.kept.clone();
        let mut waiting: Vec<Waiting> = all.iter().map(|kept| self.waits(kept, &all)).collect();
        while !waiting.is_empty() {
            // A rung that was kept after it, or a confirmation, may have shown that its servers burn.
            let burning = waiting.iter_mut().filter(|one| self.burns(&one.settings.each_ref()));
            burning.for_each(|one| one.way = Way::InTurn);
            let pace = self.pace;
            waiting.sort_by_key(|one| one.weight(&pace));
            let pairs = self.allotted(&waiting);
            let one = waiting.remove(0);
            let stage = format!("confirming {} of {}", all.len() - waiting.len(), all.len());
            self.confirm(one, pairs, &stage)?;
        }
        self.close_current();
        self.standing = self.confirmed_setting();
        Ok(())
    }

    fn waits(&self, kept: &Kept, all: &[Kept]) -> Waiting {
        // The setting reached holds every kept dial, but those that are kept for a load of their own.
        let with = apply(&self.standing, &kept.turned);
        let back = self.turned_back(&with, kept, all);
        let attempt = &self.record.rungs[kept.rung].attempt;
        Waiting {
            kept: kept.clone(),
            settings: [back, with],
            way: Way::of(attempt),
            wanted: pairs_to_see_again(attempt),
        }
    }

    /// Pairs for the first of those that wait: what it wants where an equal share of the time left holds as much, so that a
    /// small effect behind it, which can never have enough, takes nothing away; its share by weight where that is more.
    fn allotted(&self, waiting: &[Waiting]) -> usize {
        let first = &waiting[0];
        let left_ns = self.clockwork.confirm_end_ns().saturating_sub(self.meter.now_ns());
        let opening_ns = self.pace.open_ns * (waiting.len() as u64 + 1);
        let affordable = left_ns.saturating_sub(opening_ns) / self.pace.pair_ns.max(1);
        let equal = affordable / waiting.len() as u64;
        let weight = first.weight(&self.pace);
        let by_weight = affordable * weight / waiting.iter().map(|one| one.weight(&self.pace)).sum::<u64>();
        let pairs = (weight.min(equal).max(by_weight) / first.way.short_pairs(&self.pace)) as usize;
        match first.way {
            Way::Short => pairs.clamp(PAIRS_MIN, PAIRS_MAX),
            Way::Long => pairs.clamp(BURSTY.first, BURSTY.last),
            Way::InTurn => pairs.clamp(IN_TURN.first, IN_TURN.last),
        }
    }

    fn confirm(&mut self, one: Waiting, pairs: usize, stage: &str) -> Result<(), ClimbError> {
        let Waiting { kept, settings: [back, with], way, .. } = one;
        let least_ns = match way {
            Way::InTurn => self.pace.of_turns(),
            Way::Short | Way::Long => self.pace.of_pairs(LAST_LOOK_MIN),
        };
        if self.confirming_left_ns() < least_ns {
            return self.conclude(&kept, Outcome::OutOfTime("no time was left for it".into()));
        }
        let rung = self.rung_of(kept.rung).clone();
        let load = rung.load.clone().unwrap_or_else(|| self.plan.load.clone());
        let bounds = Bounds {
            id: format!("leave-one-out:{}", rung.id),
            stage,
            name: &rung.id,
            metric: rung.metric,
            rule: Rule::once(pairs, CONFIRM_Z),
            length: Length::Short,
            // The total may get some less time than planned, for what a rung is worth is quoted before it; not none.
            deadline_ns: self.clockwork.total_begins_ns(),
        };
        let long = Rule::once(pairs.clamp(BURSTY.first, BURSTY.last), CONFIRM_Z).by_totals();
        let only_dial = with.with(&rung.dial, back.get(&rung.dial)) == back;
        let measuring = Measuring { bounds, long, way, pairs };
        let toggles = (rung.in_place && only_dial).then_some(rung.dial.as_str());
        let tried = self.compared(&load, toggles, [back, with], measuring);
        match tried {
            Ok(Tried { trial, outcome }) => {
                self.record.series.trials.push(trial);
                self.conclude(&kept, outcome)
            }
            Err(trouble) => self.conclude(&kept, Outcome::Trouble(Side::B, trouble)),
        }
    }

    /// Time until the total must begin.
    fn confirming_left_ns(&self) -> u64 {
        self.clockwork.total_begins_ns().saturating_sub(self.meter.now_ns())
    }

    /// Side by side where that can be, one instance after another where one of them burns CPU outside its blocks.
    fn compared(
        &mut self,
        load: &LoadSpec,
        toggles: Option<&str>,
        settings: [Setting; 2],
        measuring: Measuring<'_>,
    ) -> Result<Tried, Trouble> {
        let turns = self.turns_of(load, toggles, &settings);
        let (in_turn, way, mut pairs) = (measuring.bounds.again(), measuring.way, measuring.pairs);
        if way != Way::InTurn {
            let began_ns = self.meter.now_ns();
            let allotted_ns = pairs as u64 * way.short_pairs(&self.pace) * self.pace.pair_ns;
            let tried = match toggles {
                Some(dial) => self.toggled(load, dial, settings, measuring),
                None => self.apart_from(load, settings, measuring),
            }?;
            let Outcome::OffBlock(percent) = tried.outcome else { return Ok(tried) };
            if self.confirming_left_ns() < self.pace.of_turns() {
                let why = format!("{}, and no time was left for one after another", off_block_words(percent));
                return Ok(Tried { outcome: Outcome::OutOfTime(why), ..tried });
            }
            self.record.series.trials.push(tried.trial);
            // What was allotted to its pairs side by side holds fewer of these.
            let left_ns = (began_ns + allotted_ns).saturating_sub(self.meter.now_ns());
            pairs = (left_ns / self.pace.turn_ns.max(1)) as usize;
        }
        Ok(self.confirm_in_turn(turns, in_turn, pairs))
    }

    fn turns_of(&self, load: &LoadSpec, toggles: Option<&str>, settings: &[Setting; 2]) -> Turns {
        let specs =
            settings.each_ref().map(|setting| ArmSpec { setting: setting.clone(), load: load.clone() });
        Turns { toggles: toggles.map(str::to_owned), ..Turns::new(specs) }
    }

    fn confirm_in_turn(&mut self, mut turns: Turns, bounds: Bounds<'_>, pairs: usize) -> Tried {
        self.close_current();
        let pairs = pairs.clamp(IN_TURN.first, IN_TURN.last);
        let bounds = bounds.in_turn(Rule::once(pairs, CONFIRM_Z).by_instances());
        self.trial(Sides::InTurn(&mut turns), &bounds)
    }

    /// What the end of the climb leaves behind: kept is only what was seen again.
    pub(crate) fn end_early(&mut self) {
        for kept in self.kept.clone() {
            let rung = &mut self.record.rungs[kept.rung];
            if rung.attempt.verdict == RungVerdict::Kept && rung.leave_one_out.is_none() {
                rung.attempt.verdict = RungVerdict::Unconfirmed;
                rung.attempt.why = "better in its step; the climb ended before it was seen again".into();
            }
        }
    }

    fn conclude(&mut self, one: &Kept, outcome: Outcome) -> Result<(), ClimbError> {
        let rung = &mut self.record.rungs[one.rung];
        let unconfirmed = match outcome {
            Outcome::Trouble(_, trouble) if trouble.ends_the_climb() => {
                return Err(ClimbError::Ended(trouble));
            }
            Outcome::Trouble(_, trouble) => Some(format!("could not be measured again: {trouble}")),
            Outcome::OutOfTime(why) | Outcome::Unmeasured(why) => {
                Some(format!("could not be measured again: {why}"))
            }
            Outcome::Bursty => Some("could not be measured again: it works in bursts".into()),
            Outcome::OffBlock(_) | Outcome::NotApplied(_) => {
                unreachable!("compared() measures in turn then, and nothing is proved again")
            }
            Outcome::Judged(judgement) => {
                rung.leave_one_out = Some(Effect::from(judgement.estimate));
                let [low, high] = judgement.estimate.interval_percent();
                let seen = format!("turned back on fresh data it made {low:+.1} to {high:+.1} %");
                match (judgement.verdict, judgement.veto) {
                    (Verdict::Better, None) => None,
                    (Verdict::Better, Some(veto)) => Some(format!("{seen}, but {veto}")),
                    _ => Some(format!("{seen}: not confirmed")),
                }
            }
        };
        if let Some(why) = unconfirmed {
            rung.attempt.verdict = RungVerdict::Unconfirmed;
            rung.attempt.why = why;
        }
        Ok(())
    }

    /// A setting with this rung's dials where the climb found them, and those of every rung that needs it.
    fn turned_back(&self, with: &Setting, one: &Kept, all: &[Kept]) -> Setting {
        let later = all.iter().filter(|other| other.rung != one.rung && self.depends(other, one));
        let reversed = |turned: &Turned| Turned {
            dial: turned.dial.clone(),
            from: turned.to.clone(),
            to: turned.from.clone(),
        };
        let mut dependent: Vec<Turned> = later.flat_map(|other| &other.turned).map(reversed).collect();
        dependent.reverse();
        let own: Vec<Turned> = one.turned.iter().rev().map(reversed).collect();
        apply(&apply(with, &dependent), &own)
    }

    /// Whether `other` cannot stand without `one`: by a declared need, or because it moved the same dial on.
    fn depends(&self, other: &Kept, one: &Kept) -> bool {
        let Ok(rung) = self.plan.rung(&self.record.rungs[other.rung].id) else { return false };
        let provides =
            |dial: &str, value: &str| one.turned.iter().any(|turn| turn.dial == dial && turn.to == value);
        let moved_on = other.turned.iter().any(|turn| provides(&turn.dial, &turn.from));
        moved_on || rung.needs.iter().any(|need| provides(&need.dial, &need.value))
    }

    /// Measures two settings, of which one stands, on servers of their own.
    fn apart_from(
        &mut self,
        load: &LoadSpec,
        [a, b]: [Setting; 2],
        measuring: Measuring<'_>,
    ) -> Result<Tried, Trouble> {
        self.ensure_current(load)?;
        let stands_first = a == self.standing;
        let other = if stands_first { b } else { a };
        let mut other = self.open_side(ArmSpec { setting: other, load: load.clone() })?;
        let mut standing = self.current.take().expect("ensure_current() has opened it");
        let sides = if stands_first {
            Sides::Apart { a: &mut standing, b: &mut other }
        } else {
            Sides::Apart { a: &mut other, b: &mut standing }
        };
        let tried = self.measured(sides, measuring);
        self.close_side(other);
        self.settle(standing, &tried);
        Ok(tried)
    }

    fn toggled(
        &mut self,
        load: &LoadSpec,
        dial: &str,
        [a, b]: [Setting; 2],
        measuring: Measuring<'_>,
    ) -> Result<Tried, Trouble> {
        self.ensure_current(load)?;
        let mut arms = self.current.take().expect("ensure_current() has opened it");
        let stays = self.standing.clone();
        let sides = Sides::InPlace { arms: &mut arms, dial, a, b };
        let mut tried = self.measured(sides, measuring);
        if !matches!(tried.outcome, Outcome::Trouble(..)) {
            let turned = arms.arms.iter_mut().try_for_each(|arm| self.meter.turn(arm, &stays, dial));
            if let Err(trouble) = turned {
                tried.outcome = Outcome::Trouble(Side::B, trouble);
            }
        }
        self.settle(arms, &tried);
        Ok(tried)
    }

    fn measured(&mut self, sides: Sides<'_, M::Arm>, measuring: Measuring<'_>) -> Tried {
        let Measuring { bounds, long, way, .. } = measuring;
        match way {
            Way::Short => self.trial_or_bursts(sides, bounds, long),
            Way::Long => self.trial(sides, &bounds.in_long_blocks(long)),
            Way::InTurn => unreachable!("compared() sends those to confirm_in_turn()"),
        }
    }

    /// Instances that had trouble are not used again.
    fn settle(&mut self, arms: SideArms<M::Arm>, tried: &Tried) {
        match tried.outcome {
            Outcome::Trouble(..) => self.close_side(arms),
            _ => self.current = Some(arms),
        }
    }

    /// The start with every confirmed rung's dials turned, in the order of keeping, but those kept for a load of their own.
    /// A rung whose ground was not confirmed stands on nothing: it goes back with it.
    fn confirmed_setting(&mut self) -> Setting {
        let mut setting = self.plan.start();
        for kept in self.kept.clone() {
            if !self.is_confirmed(&kept) {
                continue;
            }
            match self.lacks(&kept, &setting) {
                None if self.rung_of(kept.rung).own_load_only() => {}
                None => setting = apply(&setting, &kept.turned),
                Some(ground) => {
                    let rung = &mut self.record.rungs[kept.rung];
                    rung.attempt.verdict = RungVerdict::Unconfirmed;
                    rung.attempt.why = format!("turned back with {ground}, on which it stands");
                    // It was measured on ground that is gone: there is no gain to quote.
                    rung.leave_one_out = None;
                }
            }
        }
        setting
    }

    /// What a kept rung stood on that does not stand in this setting, as `dial=value`.
    fn lacks(&self, kept: &Kept, setting: &Setting) -> Option<String> {
        let moved_from = kept.turned.iter().map(|turn| (&turn.dial, &turn.from));
        let brought =
            |dial: &str, value: &str| kept.turned.iter().any(|turn| turn.dial == dial && turn.to == value);
        let needed = self.rung_of(kept.rung).needs.iter().map(|need| (&need.dial, &need.value));
        let needed = needed.filter(|(dial, value)| !brought(dial, value));
        moved_from
            .chain(needed)
            .find(|(dial, value)| setting.get(dial) != value.as_str())
            .map(|(dial, value)| format!("{dial}={value}"))
    }
}

/// How a confirmation is measured: its bounds, the rule for long blocks, from the start or when bursts are seen, and what was
/// allotted: so many pairs of this way.
struct Measuring<'m> {
    bounds: Bounds<'m>,
    long: Rule,
    way: Way,
    pairs: usize,
}
