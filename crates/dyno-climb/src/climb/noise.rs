//! A against A: what can be seen here today.

use dyno_measure::judge::{INSTANCES_LOOK_MIN, Judgement, Rule, Verdict};
use dyno_measure::series::{Metric, Side};
use dyno_record::climb::Noise;
use dyno_record::trial::{Schedule, Stage};

use super::climber::Climber;
use super::comparison::{Comparison, Sides};
use super::options::{ClimbError, Event};
use super::pairs::{Asked, Outcome, Tried};
use crate::meter::{Meter, Trouble};

/// Tries: the second one has fresh instances.
const TRIES: u32 = 2;

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn noise(&mut self) -> Result<(), ClimbError> {
        let mut seen = String::new();
        for tries in 1..=TRIES {
            let tried = self.a_against_a(tries)?;
            match tried.outcome {
                Outcome::Judged(judgement) => {
                    let trial = self.record.series.trials[tried.trial].id.clone();
                    let noise = noise_of(&judgement, tries, trial);
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
                Outcome::Trouble(_, trouble) => return Err(at_start(trouble)),
            }
            self.close_current();
        }
        Err(ClimbError::Noise(seen))
    }

    /// Side by side, or one instance after another where the start burns CPU outside its blocks.
    fn a_against_a(&mut self, tries: u32) -> Result<Tried, ClimbError> {
        if !self.burns([&self.standing]) {
            let pairs = self.clockwork.noise_pairs(&self.pace);
            let rule = Rule::once(pairs, Rule::QUICK.z);
            let look_ns = self.pace.pair_ns * Rule::QUICK.first as u64;
            let tried = self.noise_by(tries, Schedule::LivePairs, rule, look_ns)?;
            if !matches!(tried.outcome, Outcome::OffBlock(_)) {
                return Ok(tried);
            }
        }
        let rule = Rule::once(self.clockwork.noise_turns(&self.pace), Rule::QUICK.z).by_instances();
        let look_ns = self.pace.turn_ns * 2 * INSTANCES_LOOK_MIN as u64;
        self.noise_by(tries, Schedule::InTurn, rule, look_ns)
    }

    fn noise_by(
        &mut self,
        attempt: u32,
        schedule: Schedule,
        rule: Rule,
        look_ns: u64,
    ) -> Result<Tried, ClimbError> {
        let arms = Sides::apart([self.standing.clone(), self.standing.clone()]);
        let comparison = Comparison { arms, schedule, rule, load: self.plan.load.clone() };
        let mut bench = self.open_bench(&comparison, &[]).map_err(|(_, trouble)| at_start(trouble))?;
        let asked = Asked {
            stage: Stage::Noise,
            attempt,
            rung: None,
            words: ["noise", "A against A"],
            metric: Metric::CpuPerRequest,
            deadline_ns: self.noise_deadline_ns(look_ns),
        };
        let tried = self.pairs(&mut bench, &comparison, &asked);
        self.close_bench(bench, Some(Side::A)).map_err(|(_, trouble)| at_start(trouble))?;
        Ok(tried)
    }

    /// Its share of the time, or one look's where that is longer, but never the time of all rungs.
    fn noise_deadline_ns(&self, look_ns: u64) -> u64 {
        let one_look_ns = self.meter.now_ns() + look_ns;
        self.clockwork.noise_end_ns().max(one_look_ns).min(self.clockwork.rungs_end_ns())
    }
}

/// Trouble with the very first servers is the start's, unless it is the user's or the keeper's.
fn at_start(trouble: Trouble) -> ClimbError {
    if trouble.ends_the_climb() { ClimbError::Ended(trouble) } else { ClimbError::Start(trouble) }
}

fn noise_of(judgement: &Judgement, tries: u32, trial: String) -> Noise {
    let estimate = &judgement.estimate;
    Noise {
        aa_percent: estimate.percent(),
        interval_percent: estimate.interval_percent(),
        visible_percent: dyno_measure::units::percent_of_log(estimate.half_width),
        pairs: estimate.n,
        tries,
        trial: Some(trial),
    }
}
