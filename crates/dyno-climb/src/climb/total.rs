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
use super::in_force::InForce;
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
        let in_force = InForce::due(self.due_in_total());
        let mut rounds = Rounds { arms, starts: Vec::new(), in_force };
        let outcome = self.all_starts(&mut rounds, &comparison);
        self.close_arms(&mut rounds);
        if let Some(why) = rounds.in_force.not_applied.clone().filter(|_| outcome.is_ok()) {
            self.missing("total", format!("on its own servers {why}"));
            return Ok(());
        }
        for doubt in &rounds.in_force.doubts {
            self.record.warnings.push(format!("on the total's servers, against the start, {doubt}"));
        }
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
        let Rounds { mut arms, starts, in_force } = rounds;
        let blocks = (0..starts.len()).map(|round| arms.iter().map(|one| one.blocks[round]).collect());
        let blocks: Vec<Vec<_>> = blocks.collect();
        let least = log_of_percent(comparison.rule.worthwhile_percent);
        let by_totals =
            comparison.rule.basis == Basis::Totals || Levels::show_bursts(&blocks, &starts, least);
        let outside = comparison.schedule != Schedule::InTurn;
        let read = |blocks: &[Vec<_>], starts: &[u32]| {
            let levels = Levels::of(blocks, starts, by_totals)?;
            Some(if outside { levels } else { levels.all_charged() })
        };
        let end = match in_force.is_proved(Role::Reached) {
            true => self.keep_what_was_reached(&mut arms, read(&blocks, &starts)),
            false => Role::Final,
        };
        let roles: Vec<Role> = arms.iter().map(|one| one.is.role).collect();
        let series = &mut self.record.series;
        (series.rounds, series.round_starts) = (blocks, starts);
        let levels = read(&series.rounds, &series.round_starts);
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
        let ratio = ratios.without.filter(|_| in_force.is_proved(Role::NaiveWithHeadline));
        let without = headline.zip(ratio).map(|(rung, gain)| Without { rung, gain });
        self.record.total = Some(Total {
            reached: self.reached(),
            gain: ratios.gain,
            without,
            rounds: self.record.series.rounds.len(),
            starts,
            in_turn: comparison.schedule == Schedule::InTurn,
            by_totals,
            outside,
            proof: in_force.into_lines(end),
            arms: arms.iter().enumerate().map(|(at, one)| arm_record(one, &levels, at)).collect(),
        });
        true
    }

    /// Where the end is surely worse than what was reached before confirmation, that is the end. Which role those servers had when they were measured.
    fn keep_what_was_reached(&mut self, arms: &mut [Live<M::Arm>], levels: Option<Levels>) -> Role {
        let at = |role| arms.iter().position(|one: &Live<M::Arm>| one.is.role == role);
        let (Some(reached), Some(end)) = (at(Role::Reached), at(Role::Final)) else { return Role::Final };
        let lost = levels.and_then(|levels| levels.ratio(reached, end));
        let Some(lost) = lost.filter(|lost| lost.ends()[0] > 0.0 && lost.has_spread()) else {
            return Role::Final;
        };
        let [low, high] = lost.interval_percent();
        self.record.warnings.insert(
            0,
            format!("without what was not confirmed the setting was worse by {low:.1} to {high:.1} %: what was reached before is the end"),
        );
        (arms[reached].is.role, arms[end].is.role) = (Role::Final, Role::Reached);
        (arms[reached].is.name, arms[end].is.name) = ("final".into(), "confirmed".into());
        self.standing = arms[reached].is.setting.clone().expect("only the floor has none");
        Role::Reached
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
    use crate::climb::still::{
        SECOND, Server, Still, block, keep, measured, needs, on_a_climb, options, plan, trial,
    };
    use dyno_measure::judge::Rule;

    /// Fault: the plain binomial error, by which seven ticks in the kernel show for sure that a server has no time of its own.
    #[test]
    fn a_handful_of_ticks_splits_nothing() {
        assert_eq!([user_share((0, 0)), user_share((0, 7)), user_share((1, 6))], [None, None, None]);
        let none = user_share((0, 400)).unwrap_or_default();
        assert!(none.0 == 0.0 && none.1 > 0.0 && none.1 < 0.01, "{none:?}");
        let some = user_share((100, 300)).unwrap_or_default();
        assert!(some.0 == 0.25 && (some.1 - 0.0217).abs() < 0.001, "{some:?}");
    }

    /// An error of 8 % at most: of as many ticks on either side 35 are one too few, and of the kernel's alone twelve.
    #[test]
    fn a_split_is_told_from_an_error_of_eight_percent_on() {
        for (user, system, is_told) in
            [(17, 18, false), (18, 18, true), (0, 12, false), (0, 13, true), (30, 5, true)]
        {
            assert_eq!(user_share((user, system)).is_some(), is_told, "{user} {system}");
        }
        // 30 of 35, whose error is that of 32 of 39.
        let (share, error) = user_share((30, 5)).unwrap_or_default();
        assert!((share - 30.0 / 35.0).abs() < 1e-12 && (error - 0.061_450_7).abs() < 1e-6, "{share} {error}");
    }

    fn live(role: Role, setting: Option<Setting>, costs: &[u64]) -> Live<Server> {
        let mut one = Live::new(&Named { role, name: format!("{role:?}"), setting });
        one.blocks = costs.iter().map(|cost| block(*cost, 0)).collect();
        one
    }

    /// Planted faults: quantiles that are mixed up, levels of another arm, ticks of both kinds turned round.
    #[test]
    fn an_arm_is_written_down_with_its_own_figures() {
        let mut one = live(Role::Final, Some(Setting::default()), &[3_000; 5]);
        one.latencies.record_n(100_000, 98);
        one.latencies.record_n(900_000, 2);
        one.ticks = (300, 100);
        let rounds: Vec<Vec<_>> = (0..5).map(|_| vec![block(6_000, 0), block(3_000, 0)]).collect();
        let Some(levels) = Levels::of(&rounds, &[], false) else { panic!("five rounds of two arms") };
        let arm = arm_record(&one, &levels, 1);
        assert_eq!((arm.name.as_str(), arm.role, arm.user_share), ("Final", Role::Final, Some(0.75)));
        // A thousand replies in 25 ms.
        assert!((arm.figures.requests_per_second - 40_000.0).abs() < 1e-6, "{:?}", arm.figures);
        assert!((arm.figures.cpu_us_per_request - 3.0).abs() < 1e-9, "{:?}", arm.figures);
        assert!((arm.figures.p50_us / 100.0 - 1.0).abs() < 0.001, "{:?}", arm.figures);
        assert!((arm.figures.p99_us / 900.0 - 1.0).abs() < 0.001, "{:?}", arm.figures);
        assert!(arm.user_share_error.is_some_and(|error| error < 0.03));
        assert_eq!(arm.latencies.count(), 100);
        assert!(arm_record(&one, &levels, 2).figures.cpu_us_per_request.is_nan(), "an arm without a level");
    }

    /// Planted faults: a headline that does not stand is given to the start; or it is given without its ground.
    #[test]
    fn the_headline_is_given_to_the_start_with_what_it_stands_on_where_it_was_kept() {
        let mut plan = plan(&["base=on", "top=on", "more=on"]);
        plan.rungs[1].needs = needs("base=on");
        on_a_climb(&plan, &options(), |climber| {
            keep(climber, 1);
            assert_eq!(climber.headline(&climber.plan.start()), None, "the plan names none");
        });
        plan.headline = Some("top=on".into());
        on_a_climb(&plan, &options(), |climber| {
            let start = climber.plan.start();
            assert_eq!(climber.headline(&start), None, "it does not stand");
            for at in [0, 2, 1] {
                keep(climber, at);
            }
            let (rung, setting) = climber.headline(&start).unwrap_or_default();
            assert_eq!(
                (rung.as_str(), setting.words().join(" ")),
                ("top=on", "base=on more=off top=on".to_owned())
            );
        });
    }

    fn roles(climber: &Climber<'_, Still>) -> Vec<Role> {
        climber.whole_way().arms.iter().map(|arm| arm.role).collect()
    }

    #[test]
    fn the_whole_way_has_what_was_reached_before_and_the_headline_where_these_are_others() {
        let mut plan = plan(&["a=on", "b=on"]);
        plan.headline = Some("a=on".into());
        on_a_climb(&plan, &options(), |climber| {
            assert_eq!(roles(climber), [Role::Naive, Role::Final, Role::Floor]);
            for at in [0, 1] {
                keep(climber, at);
            }
            assert_eq!(roles(climber), [Role::Naive, Role::Final, Role::NaiveWithHeadline, Role::Floor]);
            climber.standing = climber.standing.with("b", "off");
            let all = [Role::Naive, Role::Final, Role::Reached, Role::NaiveWithHeadline, Role::Floor];
            assert_eq!(roles(climber), all);
            let way = climber.whole_way();
            assert_eq!((way.schedule, way.rule), (Schedule::LivePairs, rules::total(Basis::Pairs)));
            let settings: Vec<_> =
                way.arms.iter().map(|arm| arm.setting.as_ref().map(Setting::words)).collect();
            let words = |text: &str| Some(text.split(' ').map(str::to_owned).collect::<Vec<_>>());
            let wanted =
                [words("a=off b=off"), words("a=on b=off"), words("a=on b=on"), words("a=on b=off"), None];
            assert_eq!(settings, wanted);
        });
    }

    /// Planted faults: rungs that went back count, or trials of another stage, or another rung's.
    #[test]
    fn the_way_is_measured_in_long_blocks_where_a_kept_rung_was() {
        let long = |stage: Stage, rung: &str, decided: bool, verdict: RungVerdict| {
            on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
                keep(climber, 0);
                climber.record.rungs[0].attempt.verdict = verdict;
                let rule = Rule::QUICK.by_totals();
                measured(climber, rung, (stage, Schedule::LongPairs), rule, trial(&[]));
                climber.record.rungs[0].attempt.trial = decided.then(|| rung.to_owned());
                climber.in_bursts()
            })
        };
        let kept = RungVerdict::Kept;
        assert!(long(Stage::Step, "a=on", true, kept), "its step was");
        assert!(!long(Stage::Step, "a=on", false, kept), "another try decided");
        assert!(long(Stage::LeaveOneOut, "a=on", false, kept), "its confirmation was");
        assert!(!long(Stage::LeaveOneOut, "b=on", false, kept), "another rung's was");
        for stage in [Stage::Step, Stage::LeaveOneOut] {
            assert!(!long(stage, "a=on", true, RungVerdict::Unconfirmed), "it does not stand");
        }
    }

    /// Pairs that cost 5 % less, by their trimmed mean or by totals as their rule says.
    #[test]
    fn the_way_is_read_by_totals_where_a_kept_gain_was() {
        let slight = |basis: Basis, quoted: bool, verdict: RungVerdict| {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                keep(climber, 0);
                climber.record.rungs[0].attempt.verdict = verdict;
                let pairs: Vec<(u32, u64, u64)> = (0..30).map(|at| (0, 6_000, 5_700 + at % 7)).collect();
                let (schedule, rule) = (Schedule::LivePairs, Rule { basis, ..Rule::QUICK });
                measured(climber, "a=on", (Stage::LeaveOneOut, schedule), rule, trial(&pairs));
                climber.record.rungs[0].leave_one_out_trial = quoted.then(|| "a=on".to_owned());
                climber.in_slight_bursts()
            })
        };
        assert!(slight(Basis::Totals, true, RungVerdict::Kept));
        assert!(
            !slight(Basis::Pairs, true, RungVerdict::Kept)
                && !slight(Basis::Totals, false, RungVerdict::Kept)
        );
        assert!(!slight(Basis::Totals, true, RungVerdict::Unconfirmed));
    }

    #[test]
    fn fewer_than_three_starts_are_warned_of() {
        for (starts, words) in [(1, Some("once only")), (2, Some("twice only")), (3, None)] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                climber.warn_of_few_starts(starts);
                let warnings = climber.record.warnings.join(" ");
                assert_eq!(warnings.is_empty(), words.is_none(), "{starts}: {warnings}");
                assert!(words.is_none_or(|words| warnings.contains(words)), "{starts}: {warnings}");
            });
        }
    }

    /// Three starts of five rounds, of which the end costs this of the start, and what was reached before 3,000 ns.
    fn ended(end: [u64; 3]) -> (Vec<Role>, String, usize) {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            climber.standing = climber.standing.with("a", "end");
            let costs = |of_start: [u64; 3]| of_start.iter().flat_map(|cost| [*cost; 5]).collect::<Vec<_>>();
            let [start, last, reached] =
                ["off", "end", "reached"].map(|value| climber.standing.with("a", value));
            let mut arms = vec![
                live(Role::Naive, Some(start), &costs([6_000, 6_010, 6_020])),
                live(Role::Final, Some(last), &costs(end)),
                live(Role::Reached, Some(reached), &costs([3_000, 3_010, 3_000])),
            ];
            let starts: Vec<u32> = (0..15).map(|round| round / 5).collect();
            let rounds: Vec<Vec<_>> =
                (0..15).map(|round| arms.iter().map(|one| one.blocks[round]).collect()).collect();
            let is_end = climber.keep_what_was_reached(&mut arms, Levels::of(&rounds, &starts, false));
            assert_eq!(is_end == Role::Reached, arms[2].is.role == Role::Final);
            let roles = arms.iter().map(|one| one.is.role).collect();
            (roles, climber.standing.get("a").to_owned(), climber.record.warnings.len())
        })
    }

    #[test]
    fn the_end_is_what_was_reached_before_where_it_is_surely_worse_than_that() {
        let stays = vec![Role::Naive, Role::Final, Role::Reached];
        let turned = vec![Role::Naive, Role::Reached, Role::Final];
        assert_eq!(ended([3_300, 3_310, 3_320]), (turned, "reached".to_owned(), 1), "a tenth more");
        assert_eq!(ended([2_700, 2_710, 2_720]), (stays.clone(), "end".to_owned(), 0), "a tenth less");
        assert_eq!(ended([3_000, 3_900, 3_000]), (stays, "end".to_owned(), 0), "more, and hardly sure");
    }

    #[test]
    fn no_total_is_begun_when_the_time_is_over_and_the_setting_is_told() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            keep(climber, 0);
            climber.meter.now_ns = 100 * SECOND;
            assert_eq!(climber.total(), Ok(()));
            assert_eq!(climber.record.not_measured[0].why, "no time left for it");
            assert!(climber.record.total.is_none() && climber.meter.blocks == 0);
            let reached = climber.record.reached.clone().unwrap_or_default();
            assert_eq!(
                (reached.naive_argv, reached.final_argv),
                (vec!["a=off".to_owned()], vec!["a=on".to_owned()])
            );
            assert_eq!(reached.final_setting, ["a=on"]);
        });
    }
}
