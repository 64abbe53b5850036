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
/// Looks at each side at least where changes are to be predicted: one alone does not show how much they differ.
const LOOKS_MIN: usize = 2;
/// Call paths with less than this share of the time are folded into their callers: they would be too narrow to see.
const DUST: f64 = 0.002;

/// What was seen of both sides.
#[derive(Default)]
pub(super) struct Looks {
    /// Of all looks at a side, whole: what is dust in a stack may be a function that changed.
    pub(super) profiles: [Option<Profile>; 2],
    /// CPU time per request of each look, before and after.
    pub(super) costs: Vec<[f64; 2]>,
}

impl Looks {
    fn add(&mut self, side: Side, profile: Profile) {
        let joined = match self.profiles[side.index()].take() {
            Some(earlier) => earlier.joined(&profile),
            None => profile,
        };
        self.profiles[side.index()] = Some(joined);
    }
}

impl<M: Look> Climber<'_, M> {
    /// Whether this rung's sides are worth a look: profiles were asked for, and there are figures to explain.
    pub(super) fn wants_look(&self, attempt: &Attempt) -> bool {
        let asked = self.options.profiles == Profiles::Sides || self.options.causal_ns.is_some();
        asked && attempt.effect_percent.is_some()
    }

    /// Looks at one server of each side; where changes are to be predicted at all of them, in turns, so that drift meets both
    /// sides alike. That longer look is no part of the climb's own time.
    pub(super) fn look_at_both(
        &mut self,
        rung: &Rung,
        bench: &mut Bench<M::Arm>,
    ) -> Result<Looks, (Side, Trouble)> {
        let predicts = self.options.causal_ns.is_some();
        let instances = bench.instances();
        let began_ns = self.meter.now_ns();
        let mut looks = Looks::default();
        for at in 0..if predicts { instances.max(LOOKS_MIN) } else { 1 } {
            let order = if at % 2 == 0 { Side::BOTH } else { [Side::B, Side::A] };
            let mut cost = [f64::NAN; 2];
            for side in order {
                let arm = self.arm_of(bench, side, at % instances).map_err(|trouble| (side, trouble))?;
                let Some(profile) = self.seen(rung, arm) else {
                    return Ok(Looks::default());
                };
                cost[side.index()] = per_request(&profile);
                looks.add(side, profile);
            }
            looks.costs.push(cost);
        }
        self.keep_looks(rung, &looks);
        if predicts {
            self.clockwork.postpone(self.meter.now_ns() - began_ns);
        }
        Ok(looks)
    }

    /// A look at an instance of each side, one after the other.
    pub(super) fn look_in_turn(&mut self, rung: &Rung, turns: &Turns) -> Result<(), ClimbError> {
        let mut looks = Looks::default();
        for side in Side::BOTH {
            let spec = &turns.specs[side.index()];
            match self.visited(spec, |climber, arm| Ok(climber.seen(rung, arm))) {
                Ok(seen) => looks.profiles[side.index()] = seen,
                Err(trouble) if trouble.ends_the_climb() => return Err(ClimbError::Ended(trouble)),
                Err(trouble) => self.missing(format!("profile of {}", rung.id), trouble.to_string()),
            }
        }
        self.keep_looks(rung, &looks);
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
    fn keep_looks(&mut self, rung: &Rung, looks: &Looks) {
        self.forget_looks(rung);
        if let [Some(before), Some(after)] = &looks.profiles {
            let both = Profile::pruned_together(before, after, DUST);
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

fn per_request(profile: &Profile) -> f64 {
    let requests = profile.requests.as_ref().map_or(0, |requests| requests.count);
    profile.total_ns() as f64 / requests as f64
}
