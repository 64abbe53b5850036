//! A against A: what can be seen here today.

use dyno_measure::judge::{INSTANCES_LOOK_MIN, Judgement, Rule, Verdict};
use dyno_measure::series::Metric;
use dyno_record::climb::Noise;

use super::climber::{ClimbError, Climber, Event};
use super::rules::noise_id;
use super::sides::Turns;
use super::sides::{Bounds, Outcome, Sides, Tried};
use crate::meter::ArmSpec;
use crate::meter::{Length, Meter, Trouble};

/// Tries: the second one has fresh instances.
const TRIES: u32 = 2;

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn noise(&mut self) -> Result<(), ClimbError> {
        let mut seen = String::new();
        for tries in 1..=TRIES {
            match self.a_against_a(tries)? {
                Outcome::Judged(judgement) => {
                    let noise = noise_of(&judgement, tries);
                    (self.watch)(&Event::Noise(&noise));
                    seen = format!("{:+.1} %", noise.aa_percent);
                    self.record.noise = Some(noise);
                    if judgement.verdict == Verdict::NoDifference {
                        return Ok(());
                    }
                }
                Outcome::Bursty => "it works in bursts".clone_into(&mut seen),
                Outcome::OutOfTime(why) => {
                    self.missing("noise", why);
                    return Ok(());
                }
                Outcome::OffBlock(_) | Outcome::NotApplied(_) => {
                    unreachable!(
                        "what burns outside its blocks is measured in turn at once, and nothing is proved here"
                    )
                }
                Outcome::Unmeasured(why) => return Err(ClimbError::Start(Trouble::ClockLost { why })),
                Outcome::Trouble(_, trouble) if trouble.ends_the_climb() => {
                    return Err(ClimbError::Ended(trouble));
                }
                Outcome::Trouble(_, trouble) => return Err(ClimbError::Start(trouble)),
            }
            self.close_current();
        }
        Err(ClimbError::Noise(seen))
    }

    fn a_against_a(&mut self, tries: u32) -> Result<Outcome, ClimbError> {
        let beside = match self.burns(&[&self.standing]) {
            true => None,
            false => Some(self.noise_side_by_side(tries)?)
                .filter(|outcome| !matches!(outcome, Outcome::OffBlock(_))),
        };
        Ok(match beside {
            Some(outcome) => outcome,
            None => self.noise_in_turn(tries),
        })
    }

    fn noise_side_by_side(&mut self, tries: u32) -> Result<Outcome, ClimbError> {
        let load = self.plan.load.clone();
        self.ensure_current(&load).map_err(at_start)?;
        let spec = ArmSpec { setting: self.standing.clone(), load };
        let mut twin = self.open_side(spec).map_err(at_start)?;
        let pairs = self.clockwork.noise_pairs(&self.pace);
        let bounds = Bounds {
            rule: Rule::once(pairs, Rule::QUICK.z),
            deadline_ns: self.noise_deadline_ns(self.pace.pair_ns * Rule::QUICK.first as u64),
            ..noise_bounds(tries)
        };
        let mut current = self.current.take().expect("ensure_current() has opened it");
        let tried = self.trial(Sides::Apart { a: &mut current, b: &mut twin }, &bounds);
        self.current = Some(current);
        self.close_side(twin);
        self.record.series.trials.push(tried.trial);
        Ok(tried.outcome)
    }

    fn noise_in_turn(&mut self, tries: u32) -> Outcome {
        self.close_current();
        let spec = ArmSpec { setting: self.standing.clone(), load: self.plan.load.clone() };
        let pairs = self.clockwork.noise_turns(&self.pace);
        let bounds = Bounds {
            deadline_ns: self.noise_deadline_ns(self.pace.turn_ns * 2 * INSTANCES_LOOK_MIN as u64),
            ..noise_bounds(tries)
        };
        let bounds = bounds.in_turn(Rule::once(pairs, Rule::QUICK.z).by_instances());
        let mut turns = Turns::new([spec.clone(), spec]);
        let Tried { trial, outcome } = self.trial(Sides::InTurn(&mut turns), &bounds);
        self.record.series.trials.push(trial);
        outcome
    }

    /// Its share of the time, or one look's where that is longer, but never the time of all rungs.
    fn noise_deadline_ns(&self, look_ns: u64) -> u64 {
        let one_look_ns = self.meter.now_ns() + look_ns;
        self.clockwork.noise_end_ns().max(one_look_ns).min(self.clockwork.rungs_end_ns())
    }
}

fn noise_bounds(tries: u32) -> Bounds<'static> {
    Bounds {
        id: noise_id(tries),
        stage: "noise",
        name: "A against A",
        metric: Metric::CpuPerRequest,
        rule: Rule::QUICK,
        length: Length::Short,
        deadline_ns: 0,
    }
}

/// Trouble with the very first servers is the start's, unless it is the user's or the keeper's.
fn at_start(trouble: Trouble) -> ClimbError {
    if trouble.ends_the_climb() { ClimbError::Ended(trouble) } else { ClimbError::Start(trouble) }
}

fn noise_of(judgement: &Judgement, tries: u32) -> Noise {
    let estimate = &judgement.estimate;
    Noise {
        aa_percent: estimate.percent(),
        interval_percent: estimate.interval_percent(),
        visible_percent: dyno_measure::units::percent_of_log(estimate.half_width),
        pairs: estimate.n,
        tries,
    }
}
