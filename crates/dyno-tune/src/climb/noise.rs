//! A against A: what can be seen here today.

use dyno_measure::judge::{Judgement, Rule, Verdict};
use dyno_measure::record::Noise;
use dyno_measure::series::{Metric, Side};

use super::trial::{Bounds, Outcome, Sides};
use super::{ArmSpec, ClimbError, Climber, Event};
use crate::meter::{Length, Meter, Trouble};

/// Tries: the second one has fresh instances.
const TRIES: u32 = 2;

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn noise(&mut self) -> Result<(), ClimbError> {
        for tries in 1..=TRIES {
            let judgement = self.a_against_a(tries)?;
            let noise = noise_of(&judgement, tries);
            (self.watch)(&Event::Noise(&noise));
            self.record.noise = Some(noise);
            if judgement.verdict == Verdict::NoDifference {
                return Ok(());
            }
            self.close_current();
        }
        let aa = self.record.noise.as_ref().map_or(0.0, |noise| noise.aa_percent);
        Err(ClimbError::Noise(format!("{aa:+.1} %")))
    }

    fn a_against_a(&mut self, tries: u32) -> Result<Judgement, ClimbError> {
        let load = self.plan.load.clone();
        self.ensure_current(&load).map_err(ClimbError::Start)?;
        let spec = ArmSpec { setting: self.standing.clone(), load };
        let mut twin = self.open_side(spec).map_err(ClimbError::Start)?;
        let pairs = self.clockwork.noise_pairs();
        let bounds = Bounds {
            id: if tries == 1 { "noise".into() } else { format!("noise:{tries}") },
            stage: "noise",
            name: "A against A",
            metric: Metric::CpuPerRequest,
            rule: Rule::once(pairs, Rule::QUICK.z),
            length: Length::Short,
            deadline_ns: self.clockwork.rungs_end_ns(),
        };
        let mut current = self.current.take().expect("ensure_current() has opened it");
        let tried = self.trial(Sides::Apart { a: &mut current, b: &mut twin }, &bounds);
        self.current = Some(current);
        self.close_side(twin);
        self.record.series.trials.push(tried.trial);
        match tried.outcome {
            Outcome::Judged(judgement) => Ok(judgement),
            Outcome::Bursty => Err(ClimbError::Noise("it works in bursts".into())),
            Outcome::Unmeasured(why) => Err(ClimbError::Start(Trouble::ClockLost { why })),
            Outcome::Trouble(Side::A | Side::B, trouble) if trouble.ends_the_climb() => {
                Err(ClimbError::Ended(trouble))
            }
            Outcome::Trouble(_, trouble) => Err(ClimbError::Start(trouble)),
        }
    }
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
