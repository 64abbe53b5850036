//! The state of a climb: the setting that stands, its live servers, the time, the record.
//!
//! Every stage is a file of methods on it. What is here all of them need: opening and closing the servers of a setting,
//! and what a climb remembers of the settings it saw.

use dyno_measure::Prng;
use dyno_measure::between::{Between, Spread};
use dyno_measure::judge::Rule;
use dyno_measure::series::Metric;
use dyno_record::climb::{Climb, RungVerdict};
use dyno_record::machine::Missing;
use dyno_record::trial::Schedule;

use super::options::{Event, INSTANCES, Options, Order};
use super::rules::step_rule;
use super::time::{Clockwork, Pace};
use super::turned::Kept;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{ArmSpec, Meter, Opening, Trouble, Vitals};
use crate::plan::Plan;
use crate::rung::Rung;

/// Live instances per side at least: one alone cannot show what a draw makes.
const INSTANCES_MIN: usize = 2;
const _: () = assert!(INSTANCES_MIN <= INSTANCES, "what is cut for want of memory is cut to fewer");

/// The arms of one side, with what they are.
pub(crate) struct SideArms<A> {
    pub(crate) spec: ArmSpec,
    pub(crate) arms: Vec<A>,
}

pub(crate) struct Climber<'c, M: Meter> {
    pub(crate) plan: &'c Plan,
    pub(crate) options: &'c Options,
    pub(crate) meter: &'c mut M,
    pub(crate) record: &'c mut Climb,
    pub(crate) watch: &'c mut dyn FnMut(&Event<'_>),
    pub(crate) clockwork: Clockwork,
    pub(crate) pace: Pace,
    pub(crate) rng: Prng,
    /// The setting reached so far.
    pub(crate) standing: Setting,
    /// What each trial shows of the variance between starts, by its metric.
    pub(crate) spreads: Vec<(Metric, Spread)>,
    /// Kept rungs in the order of keeping.
    pub(crate) kept: Vec<Kept>,
    /// Those of them that are not to be had, as their confirmation showed; indices into the record's rungs.
    pub(crate) refused: Vec<usize>,
    /// Whether rungs without a chance of an answer are given up, because others need their time.
    pub(crate) gives_up: bool,
    /// Live servers per side.
    pub(crate) instances: usize,
    /// Whether they were seen to fit into the memory.
    fitted: bool,
    /// Settings whose servers burn CPU outside their own blocks: measured one after another.
    pub(crate) burning: Vec<Setting>,
}

impl<'c, M: Meter> Climber<'c, M> {
    pub(crate) fn new(
        plan: &'c Plan,
        options: &'c Options,
        meter: &'c mut M,
        record: &'c mut Climb,
        watch: &'c mut dyn FnMut(&Event<'_>),
    ) -> Self {
        assert!(options.instances > 0, "a side has a server at least");
        let clockwork = Clockwork::new(meter.now_ns(), options.time_ns);
        Self {
            plan,
            options,
            meter,
            record,
            watch,
            clockwork,
            pace: Pace::default(),
            rng: Prng::new(options.seed),
            standing: plan.start(),
            spreads: Vec::new(),
            kept: Vec::new(),
            refused: Vec::new(),
            gives_up: false,
            instances: options.instances,
            fitted: false,
            burning: Vec::new(),
        }
    }
}

impl<M: Meter> Climber<'_, M> {
    pub(crate) fn open_side(&mut self, spec: ArmSpec) -> Result<SideArms<M::Arm>, Trouble> {
        let mut side = SideArms { spec, arms: Vec::new() };
        let began_ns = self.meter.now_ns();
        while side.arms.len() < self.instances {
            if let Err(trouble) = self.open_one(&mut side) {
                self.close_side(side);
                return Err(trouble);
            }
        }
        self.pace.opened(2 * (self.meter.now_ns() - began_ns), 2 * side.arms.len());
        assert!(!side.arms.is_empty(), "an open side has a server");
        Ok(side)
    }

    pub(crate) fn open_one(&mut self, side: &mut SideArms<M::Arm>) -> Result<(), Trouble> {
        side.arms.push(self.meter.open(Opening::Server(&side.spec))?);
        self.fit_memory(&side.arms[0]);
        Ok(())
    }

    /// What the trials so far say of the variance between starts by this measure.
    pub(crate) fn between(&self, metric: Metric) -> Between {
        let of_metric = self.spreads.iter().filter(|(of, _)| *of == metric).map(|(_, spread)| *spread);
        Between::pooled(&of_metric.collect::<Vec<_>>())
    }

    /// Cuts the instances to the fewest when as many as were asked for would fill more than half of the memory that is
    /// left beside the first of them: the climb needs the rest for its load, and servers grow.
    fn fit_memory(&mut self, first: &M::Arm) {
        if std::mem::replace(&mut self.fitted, true) {
            return;
        }
        let others = (2 * self.instances - 1) as u64;
        let memory = first.memory();
        if self.instances > INSTANCES_MIN
            && memory.server_bytes.saturating_mul(others) > memory.left_bytes / 2
        {
            let mib = |bytes: u64| bytes >> 20;
            self.record.warnings.push(format!(
                "memory is short: {INSTANCES_MIN} live servers per side instead of {} (one takes {} MiB, {} MiB are left)",
                self.instances,
                mib(memory.server_bytes),
                mib(memory.left_bytes)
            ));
            self.instances = INSTANCES_MIN;
        }
    }

    /// A gain below what its risk is worth is told, and not kept. What is judged together with it risks something too.
    pub(crate) fn worth_it(
        &self,
        rung: &Rung,
        effect_percent: f64,
        (verdict, why): (RungVerdict, String),
    ) -> (RungVerdict, String) {
        let done = self.record.rungs.iter().find(|done| done.id == rung.id);
        let bundle = done.into_iter().flat_map(|done| &done.bundle).filter_map(|id| self.plan.rung(id).ok());
        let mut risks = std::iter::once(rung).chain(bundle).map(|rung| &rung.risk);
        let Some(risk) = risks.find(|risk| !self.record.is_worth(risk, effect_percent)) else {
            return (verdict, why);
        };
        if verdict != RungVerdict::Kept {
            return (verdict, why);
        }
        let least = self.record.worthwhile_percent.unwrap_or_default();
        let why = format!("{why}; below {least:.1} % it is not worth its risk: {risk}");
        (RungVerdict::NotWorthwhile, why)
    }

    pub(crate) fn close_side(&mut self, side: SideArms<M::Arm>) {
        for arm in side.arms {
            self.meter.close(arm);
        }
    }

    /// Opens one server, works on it, and closes it whatever came of that.
    pub(crate) fn visited<T>(
        &mut self,
        spec: &ArmSpec,
        work: impl FnOnce(&mut Self, &mut M::Arm) -> Result<T, Trouble>,
    ) -> Result<T, Trouble> {
        let mut arm = self.meter.open(Opening::Server(spec))?;
        let done = work(self, &mut arm);
        self.meter.close(arm);
        done
    }

    pub(crate) fn missing(&mut self, what: impl Into<String>, why: impl Into<String>) {
        self.record.not_measured.push(Missing { what: what.into(), why: why.into() });
    }

    /// Rungs of the plan, in the order asked for, only those asked for.
    pub(crate) fn order(&self) -> Vec<usize> {
        let wanted = |i: &usize| self.plan.rungs[*i].is_wanted(&self.options.only);
        let mut order: Vec<usize> = (0..self.plan.rungs.len()).filter(wanted).collect();
        match self.options.order {
            Order::Given => {}
            Order::Reverse => order.reverse(),
            Order::Shuffle(seed) => Prng::new(seed).shuffle(&mut order),
        }
        order
    }

    /// Whether the time of the rungs is too short for all pairs of each that is possible here.
    pub(crate) fn time_is_short(&self) -> bool {
        let left_ns = self.clockwork.rungs_end_ns().saturating_sub(self.meter.now_ns());
        let possible = self.order().iter().filter(|at| self.possible(&self.plan.rungs[**at]).is_ok()).count();
        left_ns / (possible.max(1) as u64) < self.pace.of_pairs(Rule::QUICK.last)
    }

    /// The rule of a step side by side. What is given up early may have shown rare bursts later, so nobody does so for time that
    /// no other rung needs.
    pub(crate) fn live_rule(&self, gives_up: bool) -> Rule {
        if gives_up { step_rule(Schedule::LivePairs) } else { Rule::QUICK }
    }

    /// A rung's own load, or the plan's.
    pub(crate) fn load_of(&self, rung: &Rung) -> LoadSpec {
        rung.load.clone().unwrap_or_else(|| self.plan.load.clone())
    }

    /// The plan's rung behind a rung of the record.
    pub(crate) fn rung_of(&self, slot: usize) -> &Rung {
        self.plan.rung(&self.record.rungs[slot].id).expect("the record's rungs are the plan's")
    }

    /// The record's rung for a kept dial, still standing.
    pub(crate) fn is_confirmed(&self, kept: &Kept) -> bool {
        self.record.rungs[kept.rung].attempt.verdict == RungVerdict::Kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::still::{SECOND, Still, keep, on_a_climb, options, plan, tried};
    use crate::climb::time::Pace;
    use crate::meter::Memory;

    /// The first server of eight holds so much, and so much is left beside it: how many live a side then, and the warning.
    fn fitted(instances: usize, server_bytes: u64, left_bytes: u64) -> (usize, Vec<String>) {
        let options = Options { instances, ..options() };
        on_a_climb(&plan(&["a=on"]), &options, |climber| {
            climber.meter.memory = Memory { server_bytes, left_bytes };
            let spec = ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() };
            let side = climber.open_side(spec).unwrap_or_else(|trouble| panic!("{trouble}"));
            assert_eq!(side.arms.len(), climber.instances);
            climber.close_side(side);
            (climber.instances, climber.record.warnings.clone())
        })
    }

    /// Seven others of 10 MiB may take half of what is left: 140 MiB.
    #[test]
    fn instances_are_cut_to_two_where_all_would_take_more_than_half_of_the_memory() {
        let mib = 1 << 20;
        assert_eq!(fitted(4, 10 * mib, 140 * mib), (4, vec![]));
        let (cut, warnings) = fitted(4, 10 * mib, 140 * mib - 2);
        let wanted =
            "memory is short: 2 live servers per side instead of 4 (one takes 10 MiB, 139 MiB are left)";
        assert_eq!((cut, warnings), (2, vec![wanted.to_owned()]));
        assert_eq!(fitted(3, 10 * mib, 100 * mib), (3, vec![]), "five others");
        assert_eq!(fitted(3, 10 * mib, 99 * mib).0, 2);
        assert_eq!(fitted(2, 10 * mib, mib), (2, vec![]), "never fewer than two");
        assert_eq!(fitted(1, 10 * mib, mib), (1, vec![]), "who asked for one has one");
    }

    #[test]
    fn it_is_seen_once_whether_instances_fit() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut side = SideArms {
                spec: ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() },
                arms: Vec::new(),
            };
            for left_bytes in [1 << 40, 1] {
                climber.meter.memory = Memory { server_bytes: 1 << 20, left_bytes };
                assert!(climber.open_one(&mut side).is_ok());
            }
            assert_eq!((climber.instances, climber.record.warnings.len()), (4, 0));
            climber.close_side(side);
        });
    }

    /// Planted faults: a gain without a risk must be worth one; one that is not kept anyway is called not worthwhile.
    #[test]
    fn a_gain_is_kept_from_what_its_risk_is_worth_on() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            climber.record.worthwhile_percent = Some(2.0);
            let mut rung = climber.plan.rungs[0].clone();
            let worth = |climber: &Climber<'_, Still>, rung: &Rung, effect, verdict| {
                climber.worth_it(rung, effect, (verdict, "better".into()))
            };
            assert_eq!(
                worth(climber, &rung, -0.1, RungVerdict::Kept).0,
                RungVerdict::Kept,
                "it risks nothing"
            );
            rung.risk = "lines may be lost".into();
            assert_eq!(
                worth(climber, &rung, -2.0, RungVerdict::Kept),
                (RungVerdict::Kept, "better".to_owned())
            );
            let why = "better; below 2.0 % it is not worth its risk: lines may be lost".to_owned();
            assert_eq!(worth(climber, &rung, -1.9, RungVerdict::Kept), (RungVerdict::NotWorthwhile, why));
            let worse = (RungVerdict::Reverted, "better".to_owned());
            assert_eq!(worth(climber, &rung, 1.0, RungVerdict::Reverted), worse);
        });
    }

    /// Planted fault: the risk of the rung alone is asked; then a rung without one brings in what was not worth its own.
    #[test]
    fn a_bundle_has_the_risks_of_all_its_rungs() {
        let mut plan = plan(&["a=on", "b=on"]);
        plan.rungs[0].risk = "lines may be lost".into();
        on_a_climb(&plan, &options(), |climber| {
            climber.record.worthwhile_percent = Some(2.0);
            let rung = climber.plan.rungs[1].clone();
            let kept = |climber: &Climber<'_, Still>| {
                climber.worth_it(&rung, -1.0, (RungVerdict::Kept, "better".into())).0
            };
            assert_eq!(kept(climber), RungVerdict::Kept);
            let at = tried(climber, 1, RungVerdict::NoDifference);
            climber.record.rungs[at].bundle = vec![climber.plan.rungs[0].id.clone()];
            assert_eq!(kept(climber), RungVerdict::NotWorthwhile);
        });
    }

    #[test]
    fn rungs_are_ordered_as_asked_and_left_out_where_nobody_named_them() {
        let mut plan = plan(&["a=on", "b=on", "c=on", "d=on"]);
        plan.rungs[3].only_named = true;
        let ordered = |order, only: &[&str]| {
            let only = only.iter().map(|id| (*id).to_owned()).collect();
            on_a_climb(&plan, &Options { order, only, ..options() }, |climber| climber.order())
        };
        assert_eq!(ordered(Order::Given, &[]), [0, 1, 2]);
        assert_eq!(ordered(Order::Reverse, &[]), [2, 1, 0]);
        assert_eq!(ordered(Order::Reverse, &["d=on", "b=on"]), [3, 1]);
        let mut shuffled = ordered(Order::Shuffle(2), &[]);
        shuffled.sort_unstable();
        assert_eq!(shuffled, [0, 1, 2]);
    }

    /// 240 pairs take 4 · 1.6 + 240 · 0.064 = 21.76 s; two rungs have 43.52 s of the seventy that rungs have.
    #[test]
    fn time_is_short_where_not_every_possible_rung_has_all_of_its_pairs() {
        let mut plan = plan(&["a=on", "b=on", "c=on"]);
        plan.rungs[2].impossible = Some("no such device".into());
        on_a_climb(&plan, &options(), |climber| {
            climber.pace = Pace::default();
            for (left_ns, wanted) in [(43_520_000_000, false), (43_519_999_998, true), (0, true)] {
                climber.meter.now_ns = 70 * SECOND - left_ns;
                assert_eq!(climber.time_is_short(), wanted, "{left_ns}");
            }
            climber.meter.now_ns = 90 * SECOND;
            assert!(climber.time_is_short(), "there is none");
        });
    }

    #[test]
    fn a_step_gives_up_where_others_need_its_time_only() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            assert_eq!(climber.live_rule(false), Rule::QUICK);
            assert_eq!(climber.live_rule(true), step_rule(Schedule::LivePairs));
            assert!(climber.live_rule(true).hopeless.is_some());
        });
    }

    /// Planted faults: what trials of another metric showed counts, or nothing of them does.
    #[test]
    fn starts_differ_as_trials_of_the_same_metric_showed() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            assert_eq!(climber.between(Metric::CpuPerRequest), Between::pooled(&[]));
            let pairs: Vec<(u32, u64, u64)> = (0..40)
                .map(|at| (at / 10, 6_000, 6_000 + 100 * u64::from(at / 10) + u64::from(at % 2)))
                .collect();
            let trial = crate::climb::still::trial(&pairs);
            let spread = dyno_measure::estimate::spread_of_starts(Metric::CpuPerRequest, &trial.pairs);
            let spread = spread.expect("four starts of ten pairs");
            climber.spreads = vec![(Metric::P50, spread)];
            assert_eq!(climber.between(Metric::CpuPerRequest), Between::pooled(&[]));
            climber.spreads.push((Metric::CpuPerRequest, spread));
            assert_eq!(climber.between(Metric::CpuPerRequest), Between::pooled(&[spread]));
            assert_ne!(Between::pooled(&[spread]), Between::pooled(&[]));
        });
    }

    #[test]
    fn a_rung_has_its_own_load_or_the_plans_and_stands_while_it_is_kept() {
        let mut plan = plan(&["a=on", "b=on"]);
        plan.rungs[1].load = Some(LoadSpec { connections: 1, ..LoadSpec::default() });
        on_a_climb(&plan, &options(), |climber| {
            let connections = [0, 1].map(|at| climber.load_of(&plan.rungs[at]).connections);
            assert_eq!(connections, [64, 1]);
            tried(climber, 1, RungVerdict::NoDifference);
            let kept = keep(climber, 0);
            assert_eq!(climber.rung_of(kept.rung).id, "a=on", "by its place in the record");
            assert!(climber.is_confirmed(&kept));
            climber.record.rungs[kept.rung].attempt.verdict = RungVerdict::Unconfirmed;
            assert!(!climber.is_confirmed(&kept));
        });
    }

    #[test]
    fn who_visits_a_server_closes_it_whatever_came_of_the_work() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let spec = ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() };
            let seen = climber.visited(&spec, |climber, _server| Ok(climber.meter.alive));
            assert_eq!(seen, Ok(1));
            let hung = Trouble::Hung { waited_ms: 1 };
            assert_eq!(
                climber.visited(&spec, |_climber, _server| Err::<(), _>(hung.clone())),
                Err(hung.clone())
            );
            assert_eq!(climber.meter.alive, 0);
            climber.missing("noise", "no time left for it");
            let missing = &climber.record.not_measured[0];
            assert_eq!((missing.what.as_str(), missing.why.as_str()), ("noise", "no time left for it"));
        });
    }

    /// Four servers of a second each: of both sides that would be eight seconds, whenever it is.
    #[test]
    fn opening_one_side_takes_half_of_what_both_would() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            (climber.meter.now_ns, climber.meter.open_ns) = (100 * SECOND, SECOND);
            let spec = ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() };
            let side = climber.open_side(spec).unwrap_or_else(|trouble| panic!("{trouble}"));
            assert_eq!((climber.pace.open_ns, climber.pace.turn_ns), (8 * SECOND, 4 * SECOND));
            climber.close_side(side);
        });
    }
}
