//! A look at both sides of a rung: where their CPU time goes, to see why a rung helps or does not.

use dyno_measure::series::Side;
use dyno_record::climb::{Attempt, SideProfile};
use dyno_record::profile::Profile;

use super::bench::{Bench, Turns};
use super::climber::Climber;
use super::options::{ClimbError, Profiles};
use crate::meter::{Look, Trouble};
use crate::rung::Rung;

/// How long each server is watched: some hundred samples of a busy one.
const LOOK_NS: u64 = 1_000_000_000;
/// Call paths with less than this share of the time are folded into their callers: they would be too narrow to see.
const DUST: f64 = 0.002;

impl<M: Look> Climber<'_, M> {
    /// Whether this rung's sides are worth a look: profiles were asked for, and there are figures to explain.
    pub(super) fn wants_look(&self, attempt: &Attempt) -> bool {
        self.options.profiles == Profiles::Sides && attempt.effect_percent.is_some()
    }

    /// Looks at one server of each side.
    pub(super) fn look_at_both(
        &mut self,
        rung: &Rung,
        bench: &mut Bench<M::Arm>,
    ) -> Result<(), (Side, Trouble)> {
        let mut seen = [None, None];
        for side in Side::BOTH {
            let arm = self.arm_of(bench, side, 0).map_err(|trouble| (side, trouble))?;
            seen[side.index()] = self.seen(rung, arm);
            if seen[side.index()].is_none() {
                return Ok(());
            }
        }
        self.keep_looks(rung, seen);
        Ok(())
    }

    /// A look at an instance of each side, one after the other.
    pub(super) fn look_in_turn(&mut self, rung: &Rung, turns: &Turns) -> Result<(), ClimbError> {
        let mut both = [None, None];
        for side in Side::BOTH {
            let spec = &turns.specs[side.index()];
            match self.visited(spec, |climber, arm| Ok(climber.seen(rung, arm))) {
                Ok(seen) => both[side.index()] = seen,
                Err(trouble) if trouble.ends_the_climb() => return Err(ClimbError::Ended(trouble)),
                Err(trouble) => self.missing(format!("profile of {}", rung.id), trouble.to_string()),
            }
        }
        self.keep_looks(rung, both);
        Ok(())
    }

    /// Profiles one server, which serves meanwhile. Where it cannot be done that is said, and costs nothing else.
    fn seen(&mut self, rung: &Rung, arm: &mut M::Arm) -> Option<Profile> {
        match self.meter.profile(arm, LOOK_NS) {
            Ok(profile) => {
                self.warn_of(&profile);
                Some(profile)
            }
            Err(why) => {
                self.missing(format!("profile of {}", rung.id), why);
                None
            }
        }
    }

    /// What all profiles lack is said once.
    fn warn_of(&mut self, profile: &Profile) {
        let said = profile.warnings.iter().map(|warning| format!("profiles: {warning}"));
        let fresh: Vec<String> = said.filter(|warning| !self.record.warnings.contains(warning)).collect();
        self.record.warnings.extend(fresh);
    }

    /// Both or none: one by itself says nothing of a rung.
    fn keep_looks(&mut self, rung: &Rung, seen: [Option<Profile>; 2]) {
        self.forget_looks(rung);
        if let [Some(before), Some(after)] = seen {
            let both = Profile::pruned_together(&before, &after, DUST);
            let taken = Side::BOTH.into_iter().zip(both);
            let taken = taken.map(|(side, profile)| SideProfile { rung: rung.id.clone(), side, profile });
            self.record.profiles.extend(taken);
        }
    }

    /// Those of an earlier try say nothing of the next one.
    pub(super) fn forget_looks(&mut self, rung: &Rung) {
        self.record.profiles.retain(|earlier| earlier.rung != rung.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::options::Options;
    use crate::climb::still::{Still, on_a_climb, options, plan, tried};
    use dyno_record::climb::RungVerdict;

    fn of(rung: &str, side: Side) -> SideProfile {
        SideProfile { rung: rung.into(), side, profile: Profile::default() }
    }

    fn looked_at(climber: &Climber<'_, Still>) -> Vec<(String, Side)> {
        climber.record.profiles.iter().map(|one| (one.rung.clone(), one.side)).collect()
    }

    /// Planted faults: who did not ask gets profiles, or a try without figures is explained.
    #[test]
    fn sides_are_looked_at_where_it_was_asked_for_and_there_are_figures() {
        for (profiles, effect_percent, wanted) in [
            (Profiles::Sides, Some(-5.0), true),
            (Profiles::Sides, None, false),
            (Profiles::None, Some(-5.0), false),
        ] {
            on_a_climb(&plan(&["a=on"]), &Options { profiles, ..options() }, |climber| {
                tried(climber, 0, RungVerdict::NoDifference);
                climber.record.rungs[0].attempt.effect_percent = effect_percent;
                let attempt = climber.record.rungs[0].attempt.clone();
                assert_eq!(climber.wants_look(&attempt), wanted, "{profiles:?} {effect_percent:?}");
            });
        }
    }

    #[test]
    fn one_side_alone_is_not_kept_and_an_earlier_look_is_forgotten() {
        on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
            climber.record.profiles = vec![of("a=on", Side::A), of("b=on", Side::B), of("a=on", Side::B)];
            let rung = climber.plan.rungs[0].clone();
            climber.keep_looks(&rung, [Some(Profile::default()), None]);
            assert_eq!(looked_at(climber), [("b=on".to_owned(), Side::B)]);
        });
    }

    #[test]
    fn what_all_profiles_lack_is_said_once_and_what_cannot_be_had_is_missing() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let lacks = |words: &[&str]| {
                let warnings = words.iter().map(|word| (*word).to_owned()).collect();
                Profile { warnings, ..Profile::default() }
            };
            climber.warn_of(&lacks(&["no symbols"]));
            climber.warn_of(&lacks(&["no symbols", "no kernel"]));
            assert_eq!(climber.record.warnings, ["profiles: no symbols", "profiles: no kernel"]);
            let rung = climber.plan.rungs[0].clone();
            let spec =
                crate::meter::ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() };
            let seen = climber.visited(&spec, |climber, arm| Ok(climber.seen(&rung, arm).is_some()));
            assert_eq!(seen, Ok(false));
            let missing = &climber.record.not_measured[0];
            assert_eq!((missing.what.as_str(), missing.why.as_str()), ("profile of a=on", "it does nothing"));
        });
    }
}
