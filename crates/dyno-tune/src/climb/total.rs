//! The total: start, end and floor as live servers in random order, on fresh data.
//!
//! Products and sums of steps appear nowhere: the whole way is measured as one.

use dyno_measure::Histogram;
use dyno_measure::judge::{PAIRS_MIN, trimmed_mean};
use dyno_measure::record::{Arm as ArmRecord, Figures, Ratio, Total, Without};
use dyno_measure::series::{Block, Tail, Totals};

use super::{ArmSpec, ClimbError, Climber, Event};
use crate::dial::Setting;
use crate::meter::{Length, Meter, Trouble};

/// Rounds at most; more would narrow the interval below what instances differ by.
const ROUNDS_MAX: usize = 600;
/// Two-sided 99 %, one look.
const TOTAL_Z: f64 = 2.576;

/// A live server of the total with what it has shown so far.
struct Live<A> {
    name: String,
    setting: Option<Setting>,
    arm: A,
    ticks: Option<(u64, u64)>,
    latencies: Histogram,
    blocks: Vec<Block>,
}

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn total(&mut self) -> Result<(), ClimbError> {
        if self.meter.now_ns() >= self.clockwork.end_ns() {
            self.missing("total", "no time left for it");
            return Ok(());
        }
        let mut live = Vec::new();
        let outcome = self.open_total(&mut live).and_then(|()| self.rounds(&mut live));
        let finished = self.finish(&mut live);
        for one in live {
            self.meter.close(one.arm);
        }
        match outcome {
            Err(trouble) if trouble.ends_the_climb() => Err(ClimbError::Ended(trouble)),
            Err(trouble) => {
                self.missing("total", trouble.to_string());
                Ok(())
            }
            Ok(()) => {
                if !finished {
                    self.missing("total", "too few rounds in the time left");
                }
                Ok(())
            }
        }
    }

    fn open_total(&mut self, live: &mut Vec<Live<M::Arm>>) -> Result<(), Trouble> {
        let start = self.plan.start();
        self.open_live(live, "naive".into(), start.clone())?;
        self.open_live(live, "final".into(), self.standing.clone())?;
        if let Some((rung, setting)) = self.headline(&start) {
            self.open_live(live, format!("naive+{rung}"), setting)?;
        }
        let load = self.plan.load.clone();
        match self.meter.open_floor(&live[1].arm, &load) {
            Ok(arm) => {
                live.push(Live { name: "floor".into(), setting: None, ..self.starting(arm) });
                Ok(())
            }
            Err(trouble) if trouble.ends_the_climb() => Err(trouble),
            Err(trouble) => {
                self.missing("floor", trouble.to_string());
                Ok(())
            }
        }
    }

    /// The start with the headline rung given to it, when that rung was kept.
    fn headline(&self, start: &Setting) -> Option<(String, Setting)> {
        let rung = self.plan.rung(self.plan.headline.as_ref()?).ok()?;
        let kept = self.standing.get(&rung.dial) == rung.to;
        kept.then(|| (rung.id.clone(), start.with(&rung.dial, &rung.to)))
    }

    fn open_live(
        &mut self,
        live: &mut Vec<Live<M::Arm>>,
        name: String,
        setting: Setting,
    ) -> Result<(), Trouble> {
        let spec = ArmSpec { setting: setting.clone(), load: self.plan.load.clone() };
        let arm = self.meter.open(&spec)?;
        live.push(Live { name, setting: Some(setting), ..self.starting(arm) });
        Ok(())
    }

    fn starting(&mut self, arm: M::Arm) -> Live<M::Arm> {
        let ticks = self.meter.user_system_ticks(&arm);
        Live {
            name: String::new(),
            setting: None,
            arm,
            ticks,
            latencies: Histogram::new(),
            blocks: Vec::new(),
        }
    }

    fn rounds(&mut self, live: &mut [Live<M::Arm>]) -> Result<(), Trouble> {
        let mut order: Vec<usize> = (0..live.len()).collect();
        for round in 0..ROUNDS_MAX {
            if self.meter.now_ns() >= self.clockwork.end_ns() {
                break;
            }
            self.rng.shuffle(&mut order);
            let mut blocks = vec![None; live.len()];
            for index in &order {
                blocks[*index] = Some(self.meter.block(&mut live[*index].arm, Length::Short)?);
            }
            if blocks.iter().flatten().any(|measured| measured.block.replies == 0) {
                continue;
            }
            for (one, measured) in live.iter_mut().zip(blocks.into_iter().flatten()) {
                one.latencies.merge(&measured.latencies);
                one.blocks.push(measured.block);
            }
            let left_ns = self.clockwork.left_ns(self.meter.now_ns());
            let name = "naive, final, floor";
            let estimate = None;
            (self.watch)(&Event::Pair {
                stage: "total",
                name,
                pair: round + 1,
                of: ROUNDS_MAX,
                estimate,
                left_ns,
            });
        }
        Ok(())
    }

    /// Fills the record with what was measured; false when that is too little.
    fn finish(&mut self, live: &mut [Live<M::Arm>]) -> bool {
        let rounds = live.iter().map(|one| one.blocks.len()).min().unwrap_or(0);
        let find = |name: &str| live.iter().position(|one| one.name == name);
        let (Some(naive), Some(last)) = (find("naive"), find("final")) else { return false };
        if rounds < PAIRS_MIN {
            return false;
        }
        let headline = live.iter().position(|one| one.name.starts_with("naive+"));
        let without = headline.map(|index| Without {
            rung: live[index].name.trim_start_matches("naive+").to_owned(),
            gain: ratio(&live[last].blocks, &live[index].blocks),
        });
        self.record.floor = find("floor").map(|floor| ratio(&live[floor].blocks, &live[last].blocks));
        let gain = ratio(&live[last].blocks, &live[naive].blocks);
        let describe =
            |one: &Live<M::Arm>| one.setting.as_ref().map(|s| self.meter.describe(s)).unwrap_or_default();
        let (start, end) = (describe(&live[naive]), describe(&live[last]));
        let final_setting = live[last].setting.as_ref().map(Setting::words).unwrap_or_default();
        let arms = live.iter().map(|one| arm_record(one, self.meter.user_system_ticks(&one.arm))).collect();
        self.record.series.rounds =
            (0..rounds).map(|r| live.iter().map(|one| one.blocks[r]).collect()).collect();
        self.record.total = Some(Total {
            naive_argv: start.argv,
            final_argv: end.argv,
            final_env: end.env,
            apply: end.apply,
            final_setting,
            gain,
            without,
            rounds,
            arms,
        });
        true
    }
}

/// CPU per request of `over` against `under`, round by round.
fn ratio(under: &[Block], over: &[Block]) -> Ratio {
    let logs: Vec<f64> =
        under.iter().zip(over).map(|(u, o)| (o.cpu_per_reply_ns() / u.cpu_per_reply_ns()).ln()).collect();
    Ratio::of(&trimmed_mean(&logs, TOTAL_Z))
}

fn arm_record<A>(one: &Live<A>, ticks_now: Option<(u64, u64)>) -> ArmRecord {
    let totals = Totals::of(&one.blocks);
    let micros = |q: f64| one.latencies.quantile(q) as f64 / 1e3;
    let share = user_share(one.ticks, ticks_now);
    ArmRecord {
        name: one.name.clone(),
        figures: Figures {
            requests_per_second: totals.requests_per_second(),
            cpu_us_per_request: totals.cpu_us_per_request(),
            p50_us: micros(0.50),
            p99_us: micros(0.99),
        },
        user_share: share.map(|(share, _)| share),
        user_share_error: share.map(|(_, error)| error),
        latencies: Tail::of(&one.latencies),
    }
}

/// Share of user ticks and its binomial error: the kernel samples the split once a tick.
fn user_share(before: Option<(u64, u64)>, after: Option<(u64, u64)>) -> Option<(f64, f64)> {
    let ((user_0, system_0), (user_1, system_1)) = (before?, after?);
    let (user, system) = (user_1.saturating_sub(user_0) as f64, system_1.saturating_sub(system_0) as f64);
    let all = user + system;
    let share = user / all;
    (all > 0.0).then(|| (share, (share * (1.0 - share) / all).sqrt()))
}
