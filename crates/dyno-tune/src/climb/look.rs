//! A look at both sides of a rung: where their CPU time goes, for whoever wants to see why a rung helps or does not.

use dyno_measure::record::{Attempt, SideProfile};
use dyno_measure::series::Side;

use super::in_turn::Turns;
use super::{ClimbError, Climber, Profiles};
use crate::meter::Meter;
use crate::rung::Rung;

/// How long each side is watched: some hundred samples of a busy server.
const LOOK_NS: u64 = 1_000_000_000;
/// Frames with less than this share of the time are folded into their callers: nobody would see them.
const DUST: f64 = 0.002;

impl<M: Meter> Climber<'_, M> {
    /// Whether this rung's sides are worth a look: profiles were asked for, and there are figures to explain.
    pub(super) fn wants_look(&self, attempt: &Attempt) -> bool {
        self.options.profiles == Profiles::Sides && attempt.effect_percent.is_some()
    }

    /// A look at an instance of each side, one after the other.
    pub(super) fn look_in_turn(&mut self, rung: &Rung, turns: &Turns) -> Result<(), ClimbError> {
        for side in Side::BOTH {
            match self.meter.open(&turns.specs[side.index()]) {
                Ok(mut arm) => {
                    self.look(rung, side, &mut arm);
                    self.meter.close(arm);
                }
                Err(trouble) if trouble.ends_the_climb() => return Err(ClimbError::Ended(trouble)),
                Err(trouble) => self.missing(format!("profile of {}", rung.id), trouble.to_string()),
            }
        }
        Ok(())
    }

    /// Profiles one server, which serves meanwhile. Where it cannot be done that is said, and costs nothing else.
    pub(super) fn look(&mut self, rung: &Rung, side: Side, arm: &mut M::Arm) {
        match self.meter.profile(arm, LOOK_NS) {
            Ok(profile) => {
                let taken = SideProfile { rung: rung.id.clone(), side, profile: profile.pruned(DUST) };
                // A second try has other sides than the first.
                self.record.profiles.retain(|earlier| earlier.rung != rung.id || earlier.side != side);
                self.record.profiles.push(taken);
            }
            Err(why) => self.missing(format!("profile of {}", rung.id), why),
        }
    }
}
