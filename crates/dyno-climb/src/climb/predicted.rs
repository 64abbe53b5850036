//! What experiments on the setting before a rung predict of it, beside what was measured.
//!
//! They are made before the rung is tried, on a server of their own that is started for them: other servers would wait long
//! enough for their connections to be closed. Rungs that begin from the same setting under the same load share them. They
//! decide nothing.

use dyno_measure::judge;
use dyno_measure::series::Metric;
use dyno_record::climb::{Attempt, Predicted, SettingCausal};
use dyno_record::predict::predict;

use super::climber::{Climber, Experiments};
use super::look::Looks;
use super::options::{ClimbError, Event};
use crate::meter::{ArmSpec, Look};
use crate::rung::Rung;

impl<M: Look> Climber<'_, M> {
    /// Experiments on the setting that stands, where they were asked for and not made yet.
    pub(super) fn experiment(&mut self, rung: &Rung) -> Result<(), ClimbError> {
        let Some(for_ns) = self.options.causal_ns else { return Ok(()) };
        let spec = ArmSpec { setting: self.standing.clone(), load: self.load_of(rung) };
        if self.experiments.as_ref().is_some_and(|done| done.spec == spec) {
            return Ok(());
        }
        (self.watch)(&Event::Experiments { rung: &rung.id, for_ns });
        let began_ns = self.meter.now_ns();
        let was_open = self.current.is_some();
        self.close_current();
        let found = self.experiment_on(&spec, for_ns)?;
        if was_open {
            // The next caller that needs them meets the trouble again, and says so.
            let _ = self.ensure_current(spec.clone());
        }
        self.clockwork.postpone(self.meter.now_ns() - began_ns);
        if let Err(why) = &found {
            self.missing(format!("what {} should bring", rung.id), why.clone());
        }
        self.experiments = Some(Experiments { spec, found });
        Ok(())
    }

    fn experiment_on(&mut self, spec: &ArmSpec, for_ns: u64) -> Result<Result<usize, String>, ClimbError> {
        let seed = self.options.seed;
        let profile = match self.visited(spec, |climber, arm| Ok(climber.meter.causal(arm, for_ns, seed))) {
            Ok(profile) => profile,
            Err(trouble) if trouble.ends_the_climb() => return Err(ClimbError::Ended(trouble)),
            Err(trouble) => return Ok(Err(trouble.to_string())),
        };
        Ok(profile.map(|profile| {
            let (setting, load) = (spec.setting.words(), spec.load.record().to_string());
            self.record.causal.push(SettingCausal { setting, load, profile });
            self.record.causal.len() - 1
        }))
    }

    /// What was predicted of an attempt and what was measured, once both sides were profiled.
    pub(super) fn predicted(&self, attempt: &Attempt, looks: &Looks) -> Option<Predicted> {
        let experiments = self.experiments.as_ref()?;
        let predicted = match (&experiments.found, &looks.profiles) {
            (Ok(at), [Some(before), Some(after)]) => {
                let causal = &self.record.causal[*at].profile;
                Predicted { profile: Some(*at), ..predict(causal, before, after, &looks.costs) }
            }
            (Err(why), _) => not_predicted(why),
            (Ok(_), _) => not_predicted("its sides could not be profiled"),
        };
        Some(self.with_measured(attempt, predicted))
    }

    /// Where changes were to be predicted and this one was not: its sides were never alive together.
    pub(super) fn not_predicted_in_turn(&self, attempt: &Attempt) -> Option<Predicted> {
        let why = "its servers were measured one after another";
        let asked = self.options.causal_ns.is_some() && attempt.effect_percent.is_some();
        asked.then(|| self.with_measured(attempt, not_predicted(why)))
    }

    fn with_measured(&self, attempt: &Attempt, predicted: Predicted) -> Predicted {
        let compared = attempt.trial.as_ref().and_then(|id| self.record.trial(id));
        let measured = compared.and_then(|compared| {
            let (trial, basis) = (&compared.trial, compared.rule.basis);
            judge::aside(trial, Metric::SecondsPerRequest, basis, self.options.seed)
        });
        Predicted {
            measured_percent: measured.map(|estimate| estimate.percent()),
            measured_interval_percent: measured.map(|estimate| estimate.interval_percent()),
            ..predicted
        }
    }
}

fn not_predicted(why: &str) -> Predicted {
    Predicted { why_not: Some(why.to_owned()), ..Predicted::default() }
}
