//! The total: start, end and floor on fresh data.
//!
//! Products and sums of steps appear nowhere: the whole way is measured as one. How its servers are started and measured
//! stands in `starts`; here is what is compared, and what the record says of it.

use dyno_measure::judge::{self, Basis};
use dyno_measure::rounds::{Levels, STARTS_MIN};
use dyno_measure::series::{Tail, Totals};
use dyno_measure::units::log_of_percent;
use dyno_record::climb::{Arm as ArmRecord, Figures, Reached, Role, RungVerdict, Total, Without};
use dyno_record::ratios::Ratios;
use dyno_record::trial::{Schedule, Stage};

use super::climber::Climber;
use super::comparison::Comparison;
use super::options::ClimbError;
use super::rules;
use super::starts::{Live, Named, Rounds};
use super::turned::apply;
use crate::dial::Setting;
use crate::meter::{Describe, Meter};

impl<M: Meter + Describe> Climber<'_, M> {
    /// Measures the whole way, or says why not; then the record says all the same how to come to its end.
    pub(crate) fn total(&mut self) -> Result<(), ClimbError> {
        let outcome = self.measured_total();
        if self.record.total.is_none() {
            self.record.reached = Some(self.reached());
        }
        outcome
    }

    fn measured_total(&mut self) -> Result<(), ClimbError> {
        if self.meter.now_ns() >= self.clockwork.end_ns() {
            self.missing("total", "no time left for it");
            return Ok(());
        }
        assert!(self.record.total.is_none(), "the whole way is measured once");
        let comparison = self.whole_way();
        let arms = comparison.arms.iter().map(Live::new).collect();
        let mut rounds = Rounds { arms, starts: Vec::new() };
        let outcome = self.all_starts(&mut rounds, &comparison);
        self.close_arms(&mut rounds);
        let comparison = self.as_measured(comparison);
        let is_enough = self.finish(rounds, &comparison);
        match outcome {
            Err(trouble) if trouble.ends_the_climb() => return Err(ClimbError::Ended(trouble)),
            Err(trouble) => self.missing("total", trouble.to_string()),
            Ok(()) if is_enough => {}
            Ok(()) => self.missing("total", "too few rounds in the time left"),
        }
        Ok(())
    }

    /// Start, end, the start with the headline rung where there is one, and the floor last.
    fn whole_way(&self) -> Comparison<Vec<Named>> {
        let start = self.plan.start();
        let named = |role, name: String, setting| Named { role, name, setting };
        let mut arms = vec![
            named(Role::Naive, "start".into(), Some(start.clone())),
            named(Role::Final, "final".into(), Some(self.standing.clone())),
        ];
        // What was not seen again is worth nothing, or the setting is better with it: the total says which.
        let reached = self.unconfirmed_setting();
        if reached != self.standing {
            arms.push(named(Role::Reached, "reached".into(), Some(reached)));
        }
        if let Some((rung, setting)) = self.headline(&start) {
            arms.push(named(Role::NaiveWithHeadline, format!("start+{rung}"), Some(setting)));
        }
        arms.push(named(Role::Floor, "floor".into(), None));
        assert!(
            arms.iter().all(|arm| (arm.role == Role::Floor) == arm.setting.is_none()),
            "the floor alone is no setting"
        );
        let (schedule, basis) = match self.in_bursts() {
            true => (Schedule::LongPairs, Basis::Totals),
            false if self.in_slight_bursts() => (Schedule::LivePairs, Basis::Totals),
            false => (Schedule::LivePairs, Basis::Pairs),
        };
        Comparison { arms, schedule, rule: rules::total(basis), load: self.plan.load.clone() }
    }

    /// The same by the schedule that it came to.
    fn as_measured(&self, planned: Comparison<Vec<Named>>) -> Comparison<Vec<Named>> {
        match self.any_burns(&planned) {
            true => Comparison { schedule: Schedule::InTurn, rule: rules::total(Basis::Totals), ..planned },
            false => planned,
        }
    }

    /// The setting that stands, as commands.
    fn reached(&self) -> Reached {
        let (start, end) = (self.meter.describe(&self.plan.start()), self.meter.describe(&self.standing));
        Reached {
            naive_argv: start.argv,
            final_argv: end.argv,
            final_env: end.env,
            apply: end.apply,
            final_setting: self.standing.words(),
        }
    }

    /// The start with the headline rung given to it, and what that stands on, when that rung was kept.
    fn headline(&self, start: &Setting) -> Option<(String, Setting)> {
        let rung = self.plan.rung(self.plan.headline.as_ref()?).ok()?;
        if self.standing.get(&rung.dial) != rung.to {
            return None;
        }
        let ground = rung.needs.iter().fold(start.clone(), |start, need| start.with(&need.dial, &need.value));
        let kept = self.kept.iter().find(|kept| self.record.rungs[kept.rung].id == rung.id);
        let setting = apply(&ground, kept.map_or(&[], |kept| &kept.turned));
        Some((rung.id.clone(), setting.with(&rung.dial, &rung.to)))
    }

    /// Fills the record with what was measured; false when that is too little.
    fn finish(&mut self, rounds: Rounds<M::Arm>, comparison: &Comparison<Vec<Named>>) -> bool {
        rounds.check();
        let Rounds { mut arms, starts } = rounds;
        let blocks = (0..starts.len()).map(|round| arms.iter().map(|one| one.blocks[round]).collect());
        let blocks: Vec<Vec<_>> = blocks.collect();
        let least = log_of_percent(comparison.rule.worthwhile_percent);
        let by_totals =
            comparison.rule.basis == Basis::Totals || Levels::show_bursts(&blocks, &starts, least);
        self.keep_what_was_reached(&mut arms, &starts, by_totals);
        let roles: Vec<Role> = arms.iter().map(|one| one.is.role).collect();
        let series = &mut self.record.series;
        (series.rounds, series.round_starts) = (blocks, starts);
        let levels = Levels::of(&series.rounds, &series.round_starts, by_totals);
        let ratios = levels.as_ref().and_then(|levels| Ratios::of(levels, &roles));
        let (Some(levels), Some(ratios)) = (levels, ratios) else { return false };
        assert!(
            roles.contains(&Role::Naive) && roles.contains(&Role::Final),
            "the way has no beginning or no end"
        );
        let starts = series.round_starts.chunk_by(|one, next| one == next).count();
        self.warn_of_few_starts(starts);
        self.record.floor = ratios.floor;
        let headline = self.headline(&self.plan.start()).map(|(rung, _)| rung);
        let without = headline.zip(ratios.without).map(|(rung, gain)| Without { rung, gain });
        self.record.total = Some(Total {
            reached: self.reached(),
            gain: ratios.gain,
            without,
            rounds: self.record.series.rounds.len(),
            starts,
            in_turn: comparison.schedule == Schedule::InTurn,
            by_totals,
            arms: arms.iter().enumerate().map(|(at, one)| arm_record(one, &levels, at)).collect(),
        });
        true
    }

    /// Where the end is surely worse than what was reached before confirmation, that is the end.
    fn keep_what_was_reached(&mut self, arms: &mut [Live<M::Arm>], starts: &[u32], by_totals: bool) {
        let at = |role| arms.iter().position(|one: &Live<M::Arm>| one.is.role == role);
        let (Some(reached), Some(end)) = (at(Role::Reached), at(Role::Final)) else { return };
        let round = |round: usize| arms.iter().map(|one| one.blocks[round]).collect::<Vec<_>>();
        let rounds: Vec<_> = (0..starts.len()).map(round).collect();
        let lost = Levels::of(&rounds, starts, by_totals).and_then(|levels| levels.ratio(reached, end));
        let Some(lost) = lost.filter(|lost| lost.log_ratio > lost.half_width && lost.has_spread()) else {
            return;
        };
        let [low, high] = lost.interval_percent();
        self.record.warnings.insert(
            0,
            format!("without what was not confirmed the setting was worse by {low:.1} to {high:.1} %: what was reached before is the end"),
        );
        (arms[reached].is.role, arms[end].is.role) = (Role::Final, Role::Reached);
        (arms[reached].is.name, arms[end].is.name) = ("final".into(), "confirmed".into());
        self.standing = arms[reached].is.setting.clone().expect("only the floor has none");
    }

    fn warn_of_few_starts(&mut self, starts: usize) {
        if starts < STARTS_MIN {
            let times = if starts == 1 { "once" } else { "twice" };
            self.record.warnings.push(format!(
                "there was time to start the total's servers {times} only: what processes differ by is not in its interval"
            ));
        }
    }

    /// Whether a kept rung was judged by totals of long blocks: what a trimmed mean hides there, it would hide of the whole way.
    fn in_bursts(&self) -> bool {
        let is_long =
            |id: &String| self.record.trial(id).is_some_and(|trial| trial.schedule == Schedule::LongPairs);
        let turned_back_long = |rung: &str| {
            let of_rung =
                self.record.series.trials.iter().filter(|trial| trial.rung.as_deref() == Some(rung));
            let mut confirming = of_rung.filter(|trial| trial.stage == Stage::LeaveOneOut);
            confirming.any(|trial| trial.schedule == Schedule::LongPairs)
        };
        let mut kept = self.record.rungs.iter().filter(|rung| rung.attempt.verdict == RungVerdict::Kept);
        kept.any(|rung| rung.attempt.trial.as_ref().is_some_and(is_long) || turned_back_long(&rung.id))
    }

    /// Whether what a kept rung is worth was read from totals of short blocks.
    fn in_slight_bursts(&self) -> bool {
        let by_totals = |id: &String| {
            let compared = self.record.trial(id);
            let judged = compared.and_then(|one| judge::cut_short(&one.trial, &one.rule, self.options.seed));
            judged.is_some_and(|judged| judged.basis == Basis::Totals)
        };
        let mut kept = self.record.rungs.iter().filter(|rung| rung.attempt.verdict == RungVerdict::Kept);
        kept.any(|rung| rung.leave_one_out_trial.as_ref().is_some_and(by_totals))
    }
}

fn arm_record<A>(one: &Live<A>, levels: &Levels, at: usize) -> ArmRecord {
    let totals = Totals::of(&one.blocks);
    let micros = |q: f64| one.latencies.quantile(q) as f64 / 1e3;
    let share = user_share(one.ticks);
    ArmRecord {
        name: one.is.name.clone(),
        role: one.is.role,
        figures: Figures {
            requests_per_second: totals.requests_per_second(),
            cpu_us_per_request: levels.level(at).map_or(f64::NAN, |level| level.log_ratio.exp() / 1e3),
            p50_us: micros(0.50),
            p99_us: micros(0.99),
        },
        user_share: share.map(|(share, _)| share),
        user_share_error: share.map(|(_, error)| error),
        latencies: Tail::of(&one.latencies),
    }
}

/// Share of user ticks and its binomial error: the kernel samples the split once a tick. None where a handful of ticks says
/// next to nothing. The error is that of two ticks more on each side (Agresti and Coull, 1998): of seven ticks in the kernel
/// the plain one would be zero.
fn user_share((user, system): (u64, u64)) -> Option<(f64, f64)> {
    let all = (user + system) as f64;
    let near = (user as f64 + 2.0) / (all + 4.0);
    let error = (near * (1.0 - near) / (all + 4.0)).sqrt();
    (error <= USER_SHARE_ERROR_MAX && all > 0.0).then(|| (user as f64 / all, error))
}

/// A split that is off by more (one standard error) is not told: a bar would show halves of nothing.
const USER_SHARE_ERROR_MAX: f64 = 0.08;

#[cfg(test)]
mod tests {
    use super::*;

    /// Fault: the plain binomial error, by which seven ticks in the kernel show for sure that a server has no time of its own.
    #[test]
    fn a_handful_of_ticks_splits_nothing() {
        assert_eq!([user_share((0, 0)), user_share((0, 7)), user_share((1, 6))], [None, None, None]);
        let none = user_share((0, 400)).unwrap_or_default();
        assert!(none.0 == 0.0 && none.1 > 0.0 && none.1 < 0.01, "{none:?}");
        let some = user_share((100, 300)).unwrap_or_default();
        assert!(some.0 == 0.25 && (some.1 - 0.0217).abs() < 0.001, "{some:?}");
    }
}
