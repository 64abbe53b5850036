//! The servers of one comparison: opened, given their blocks, closed, in one place for noise, steps and confirmations.
//!
//! Two sides are alive together, or one set of servers is toggled, or none is kept alive and every pair opens its own. Both
//! sides are started for each comparison: servers grow older while they serve, and an old side beside a fresh one differs
//! from it whatever the change does. What is opened here is closed here.

use dyno_measure::judge::LAST_LOOK_MIN;
use dyno_measure::series::Side;
use dyno_record::climb::ProofLine;
use dyno_record::trial::Schedule;

use super::climber::{Climber, SideArms};
use super::comparison::{Comparison, Sides};
use super::rules::RENEW_LONG_PAIRS;
use crate::dial::Setting;
use crate::meter::{ArmSpec, Length, Measured, Meter, Trouble, Vitals};
use crate::proof::{Proof, Reading};

/// Where the two sides of a comparison live.
pub(crate) enum Bench<A> {
    /// Each in processes of its own, all alive, all started for this comparison.
    Live(Live<A>),
    /// In the same processes, whose dial is toggled.
    Toggled { arms: SideArms<A>, dial: String, settings: [Setting; 2], proving: Proving },
    /// Never two servers at the same time.
    InTurn(Turns),
}

/// Both sides alive. None is older than the other: they are started in turns, and started anew together.
pub(crate) struct Live<A> {
    pub(crate) sides: [SideArms<A>; 2],
    pub(crate) proving: Proving,
    /// How often they were started anew, and how many pairs there were then.
    generation: u32,
    renewed_at: usize,
    /// When they were opened, and the longest that any has served before, ns.
    opened_ns: u64,
    longest_ns: u64,
    /// What those that are gone held of the memory, bytes.
    memory: [Vec<u64>; 2],
}

/// Two settings of which only one is alive at a time.
pub(crate) struct Turns {
    pub(crate) specs: [ArmSpec; 2],
    /// The live dial to toggle within each instance; `None` where each side has instances of its own.
    pub(crate) toggles: Option<String>,
    /// What must distinguish the sides, read in every pair.
    pub(crate) proving: Proving,
    /// Why a proof did not hold.
    pub(crate) not_applied: Option<String>,
    /// What each instance of each side held of the memory, bytes.
    pub(crate) memory: [Vec<u64>; 2],
    /// The clock that CPU was read from.
    pub(crate) clock: String,
}

impl Turns {
    fn new(comparison: &Comparison<Sides>, proofs: &[Proof]) -> Self {
        Self {
            specs: comparison.arms.settings().each_ref().map(|setting| comparison.spec(setting)),
            toggles: comparison.arms.toggles().map(str::to_owned),
            proving: Proving::of(proofs),
            not_applied: None,
            memory: [Vec::new(), Vec::new()],
            clock: String::new(),
        }
    }
}

/// What must distinguish the sides, and what was read of it.
#[derive(Default)]
pub(crate) struct Proving {
    pub(crate) proofs: Vec<Proof>,
    /// Of the first servers before their load, and of the latest after it; of the first server that differs from the others.
    pub(crate) before: Vec<ProofLine>,
    pub(crate) after: Vec<ProofLine>,
}

impl Proving {
    fn of(proofs: &[Proof]) -> Self {
        Self { proofs: proofs.to_vec(), ..Self::default() }
    }

    /// The lines of the record.
    pub(crate) fn lines(&mut self) -> Vec<ProofLine> {
        let mut lines = std::mem::take(&mut self.before);
        lines.append(&mut self.after);
        lines
    }
}

impl<A: Vitals> Live<A> {
    fn read_memory(&self) -> [Vec<u64>; 2] {
        self.sides.each_ref().map(|side| side.arms.iter().map(|arm| arm.memory().server_bytes).collect())
    }
}

impl<A: Vitals> Bench<A> {
    /// Live servers of each side.
    pub(crate) fn instances(&self) -> usize {
        match self {
            Self::Live(Live { sides: [a, b], .. }) => a.arms.len().min(b.arms.len()),
            Self::Toggled { arms, .. } => arms.arms.len(),
            Self::InTurn(_) => 1,
        }
    }

    /// From here on another trial counts its pairs, from zero.
    pub(crate) fn count_anew(&mut self) {
        if let Self::Live(live) = self {
            live.renewed_at = 0;
        }
    }

    /// The number that the first of the live servers has among all that this comparison has started.
    pub(crate) fn first_instance(&self) -> u32 {
        match self {
            Self::Live(live) => live.generation * live.sides[0].arms.len() as u32,
            Self::Toggled { .. } | Self::InTurn(_) => 0,
        }
    }

    /// The clock of the side with the change.
    pub(crate) fn clock(&self) -> String {
        match self {
            Self::Live(Live { sides: [_, side], .. }) | Self::Toggled { arms: side, .. } => {
                side.arms[0].clock()
            }
            Self::InTurn(turns) => turns.clock.clone(),
        }
    }

    /// What each instance of each side holds, or held at its end; of a server toggled in place see [`Climber::memory_of`].
    pub(crate) fn memory(&self) -> [Vec<u64>; 2] {
        match self {
            Self::Live(live) => {
                let mut all = live.memory.clone();
                all.iter_mut().zip(live.read_memory()).for_each(|(all, mut now)| all.append(&mut now));
                all
            }
            Self::Toggled { .. } => [Vec::new(), Vec::new()],
            Self::InTurn(turns) => turns.memory.clone(),
        }
    }

    /// The longest that one of its servers has lived, ns; none where each lives for a pair.
    pub(crate) fn horizon_ns(&self, now_ns: u64) -> Option<u64> {
        match self {
            Self::Live(live) => Some(live.longest_ns.max(now_ns - live.opened_ns)),
            Self::Toggled { .. } | Self::InTurn(_) => None,
        }
    }

    pub(crate) fn proving(&mut self) -> &mut Proving {
        match self {
            Self::Live(Live { proving, .. }) | Self::Toggled { proving, .. } => proving,
            Self::InTurn(turns) => &mut turns.proving,
        }
    }
}

impl<M: Meter> Climber<'_, M> {
    /// Opens what a comparison needs. Trouble with a server leaves none open.
    pub(crate) fn open_bench(
        &mut self,
        comparison: &Comparison<Sides>,
        proofs: &[Proof],
    ) -> Result<Bench<M::Arm>, (Side, Trouble)> {
        comparison.check();
        if comparison.schedule == Schedule::InTurn {
            return Ok(Bench::InTurn(Turns::new(comparison, proofs)));
        }
        let settings = comparison.arms.settings();
        for (side, setting) in Side::BOTH.into_iter().zip(settings) {
            self.meter.build(setting).map_err(|trouble| (side, trouble))?;
        }
        let proving = Proving::of(proofs);
        if let Some(dial) = comparison.arms.toggles() {
            let arms = self.open_side(comparison.spec(&settings[0])).map_err(|trouble| (Side::A, trouble))?;
            return Ok(Bench::Toggled { arms, dial: dial.to_owned(), settings: settings.clone(), proving });
        }
        let sides = self.open_sides(settings.each_ref().map(|setting| comparison.spec(setting)))?;
        Ok(Bench::Live(Live {
            sides,
            proving,
            generation: 0,
            renewed_at: 0,
            opened_ns: self.meter.now_ns(),
            longest_ns: 0,
            memory: [Vec::new(), Vec::new()],
        }))
    }

    /// Servers of both sides, a pair at a time, which of the two first by a coin: neither side is older than the other.
    fn open_sides(&mut self, specs: [ArmSpec; 2]) -> Result<[SideArms<M::Arm>; 2], (Side, Trouble)> {
        assert!(specs[0].load == specs[1].load, "both sides serve the same load");
        let mut sides = specs.map(|spec| SideArms { spec, arms: Vec::new() });
        let began_ns = self.meter.now_ns();
        while sides[0].arms.len() < self.instances {
            let first = self.first_side();
            for side in [first, other(first)] {
                if let Err(trouble) = self.open_one(&mut sides[side.index()]) {
                    sides.into_iter().for_each(|side| self.close_side(side));
                    return Err((side, trouble));
                }
            }
        }
        self.pace.opened(self.meter.now_ns() - began_ns, 2 * sides[0].arms.len());
        assert!(sides.iter().all(|side| !side.arms.is_empty()), "each side of a live pair has a server");
        Ok(sides)
    }

    /// Starts all servers of a live bench anew, where they have served so many pairs; both sides, so that none is older than
    /// the other. Each is proved again, the old ones at their end too.
    pub(crate) fn renew(
        &mut self,
        bench: &mut Bench<M::Arm>,
        pairs: usize,
    ) -> Result<Option<String>, (Side, Trouble)> {
        if let Some(why) = self.prove_all(bench, "after")? {
            return Ok(Some(why));
        }
        let now_ns = self.meter.now_ns();
        let Bench::Live(live) = bench else { unreachable!("only live servers are started anew") };
        for (all, mut read) in live.memory.iter_mut().zip(
            live.sides
                .each_ref()
                .map(|side| -> Vec<u64> { side.arms.iter().map(|arm| arm.memory().server_bytes).collect() }),
        ) {
            all.append(&mut read);
        }
        live.longest_ns = live.longest_ns.max(now_ns - live.opened_ns);
        let specs = live.sides.each_ref().map(|side| side.spec.clone());
        for side in &mut live.sides {
            let arms = std::mem::take(&mut side.arms);
            arms.into_iter().for_each(|arm| self.meter.close(arm));
        }
        live.sides = self.open_sides(specs)?;
        (live.generation, live.renewed_at) = (live.generation + 1, pairs);
        live.opened_ns = self.meter.now_ns();
        self.prove_all(bench, "before")
    }

    /// Whether the servers of a bench have served for so long that others tell more than they would.
    pub(crate) fn is_to_renew(
        &self,
        bench: &Bench<M::Arm>,
        pairs: usize,
        length: Length,
        deadline_ns: u64,
    ) -> bool {
        let Bench::Live(live) = bench else { return false };
        let each = if length == Length::Long { RENEW_LONG_PAIRS } else { self.pace.renewed_after() };
        let needed_ns = self.pace.open_ns + self.pace.pair_ns * LAST_LOOK_MIN as u64;
        pairs >= live.renewed_at + each && self.meter.now_ns() + needed_ns < deadline_ns
    }

    /// Closes it. A bench whose servers could not be started anew has none left.
    pub(crate) fn close_bench(&mut self, bench: Bench<M::Arm>) {
        match bench {
            Bench::InTurn(_) => {}
            Bench::Live(Live { sides, .. }) => sides.into_iter().for_each(|side| self.close_side(side)),
            Bench::Toggled { arms, .. } => self.close_side(arms),
        }
    }

    /// An instance that stands as this side.
    ///
    /// # Panics
    /// Where no server is alive between visits.
    pub(crate) fn arm_of<'b>(
        &mut self,
        bench: &'b mut Bench<M::Arm>,
        side: Side,
        at: usize,
    ) -> Result<&'b mut M::Arm, Trouble> {
        assert!(at < bench.instances(), "instance {at} is none of the {} that live", bench.instances());
        match bench {
            Bench::Live(live) => Ok(&mut live.sides[side.index()].arms[at]),
            Bench::Toggled { arms, dial, settings, .. } => {
                let arm = &mut arms.arms[at];
                self.meter.turn(arm, &settings[side.index()], dial)?;
                Ok(arm)
            }
            Bench::InTurn(_) => unreachable!("a visit opens its own"),
        }
    }

    /// A block on an instance of this side.
    pub(crate) fn block_on(
        &mut self,
        bench: &mut Bench<M::Arm>,
        side: Side,
        at: usize,
        length: Length,
    ) -> Result<Measured, Trouble> {
        let arm = self.arm_of(bench, side, at)?;
        self.meter.block(arm, length)
    }

    /// What each instance of each side holds. A server toggled in place has no two memories to compare, and one that a plan may
    /// limit: what it holds with the change, after a block that serves for nothing else.
    pub(crate) fn memory_of(&mut self, bench: &mut Bench<M::Arm>) -> Result<[Vec<u64>; 2], (Side, Trouble)> {
        if !matches!(bench, Bench::Toggled { .. }) || self.plan.memory_max_bytes.is_none() {
            return Ok(bench.memory());
        }
        let instances = bench.instances();
        let held = |at| {
            self.block_on(bench, Side::B, at, Length::Short)?;
            Ok(self.arm_of(bench, Side::B, at)?.memory().server_bytes)
        };
        let held: Result<_, Trouble> = (0..instances).map(held).collect();
        Ok([Vec::new(), held.map_err(|trouble| (Side::B, trouble))?])
    }

    pub(crate) fn read_on(
        &mut self,
        bench: &mut Bench<M::Arm>,
        side: Side,
        at: usize,
        proof: &Proof,
    ) -> Result<Reading, Trouble> {
        let arm = self.arm_of(bench, side, at)?;
        self.meter.prove(arm, proof)
    }
}

pub(crate) fn other(side: Side) -> Side {
    if side == Side::A { Side::B } else { Side::A }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::rules::step_rule;
    use crate::climb::still::{SECOND, Server, Still, on_a_climb, options, plan};
    use crate::climb::time::Pace;
    use crate::meter::Memory;
    use crate::plan::Plan;

    /// The start against the same with its first rung.
    fn comparison(climber: &Climber<'_, Still>, schedule: Schedule) -> Comparison<Sides> {
        let settings = [climber.standing.clone(), climber.standing.with("a", "on")];
        let (arms, load) = (Sides::apart(settings), climber.plan.load.clone());
        Comparison { arms, schedule, rule: step_rule(schedule), load }
    }

    fn open(climber: &mut Climber<'_, Still>, schedule: Schedule) -> Bench<Server> {
        let comparison = comparison(climber, schedule);
        let Ok(bench) = climber.open_bench(&comparison, &[]) else { panic!("it opens") };
        bench
    }

    fn toggled(climber: &mut Climber<'_, Still>) -> Bench<Server> {
        let one = comparison(climber, Schedule::LivePairs);
        let arms = Sides::toggled(one.arms.settings().clone(), "a");
        let Ok(bench) = climber.open_bench(&Comparison { arms, ..one }, &[]) else { panic!("it opens") };
        bench
    }

    fn memory(server_bytes: u64) -> Memory {
        Memory { server_bytes, left_bytes: 1 << 40 }
    }

    /// Planted faults: servers that are started anew have the numbers of the first ones; what those held is forgotten, or counted
    /// for the other side.
    #[test]
    fn live_servers_are_numbered_on_and_what_the_first_ones_held_is_remembered() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            climber.meter.memory = memory(5);
            let mut bench = open(climber, Schedule::LivePairs);
            assert_eq!((bench.instances(), bench.first_instance(), climber.meter.alive), (4, 0, 8));
            assert_eq!((bench.memory(), bench.clock()), ([vec![5; 4], vec![5; 4]], "still".to_owned()));
            climber.meter.memory = memory(7);
            for (renewal, held) in [(1, vec![5, 5, 5, 5, 7, 7, 7, 7]), (2, [[5; 4], [7; 4], [7; 4]].concat())]
            {
                assert_eq!(climber.renew(&mut bench, 60).map_err(|_| ()), Ok(None));
                assert_eq!((bench.instances(), bench.first_instance()), (4, 4 * renewal));
                assert_eq!(bench.memory(), [held.clone(), held]);
            }
            climber.close_bench(bench);
        });
    }

    #[test]
    fn a_comparison_is_as_old_as_the_oldest_server_that_it_had() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            climber.meter.now_ns = 100 * SECOND;
            let mut bench = open(climber, Schedule::LivePairs);
            let mut horizon_s = |climber: &mut Climber<'_, Still>, after_s: u64, renewed: bool| {
                climber.meter.now_ns += after_s * SECOND;
                if renewed {
                    assert_eq!(climber.renew(&mut bench, 1).map_err(|_| ()), Ok(None));
                }
                bench.horizon_ns(climber.meter.now_ns).map(|ns| ns / SECOND)
            };
            assert_eq!(horizon_s(climber, 5, false), Some(5));
            assert_eq!(horizon_s(climber, 1, true), Some(6), "they served for six seconds");
            assert_eq!(horizon_s(climber, 2, true), Some(6), "the next ones for two");
            assert_eq!(horizon_s(climber, 9, false), Some(9), "and these for nine");
            climber.close_bench(bench);
            let bench = toggled(climber);
            assert_eq!(bench.horizon_ns(climber.meter.now_ns), None, "both sides are one");
            climber.close_bench(bench);
        });
    }

    /// A look of twenty pairs (1.28 s) must fit after the start (1.6 s).
    #[test]
    fn servers_are_started_anew_after_so_many_pairs_where_a_look_fits_before_the_end() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut bench = open(climber, Schedule::LivePairs);
            climber.pace = Pace::default();
            climber.meter.now_ns = SECOND;
            let enough_ns = SECOND + 2_880_000_001;
            for (pairs, length, deadline_ns, wanted) in [
                (59, Length::Short, enough_ns, false),
                (60, Length::Short, enough_ns, true),
                (60, Length::Short, enough_ns - 1, false),
                (19, Length::Long, enough_ns, false),
                (20, Length::Long, enough_ns, true),
            ] {
                let is = climber.is_to_renew(&bench, pairs, length, deadline_ns);
                assert_eq!(is, wanted, "{pairs} pairs, {length:?}, until {deadline_ns}");
            }
            assert_eq!(climber.renew(&mut bench, 60).map_err(|_| ()), Ok(None));
            climber.pace = Pace::default();
            let renewed = [119, 120].map(|pairs| climber.is_to_renew(&bench, pairs, Length::Short, u64::MAX));
            assert_eq!(renewed, [false, true], "counted from the last time");
            climber.close_bench(bench);
            let bench = toggled(climber);
            assert!(!climber.is_to_renew(&bench, 1_000, Length::Short, u64::MAX), "one server is both sides");
            climber.close_bench(bench);
        });
    }

    /// Planted faults: the dial is turned to the other side's value, or each side is a server.
    #[test]
    fn a_toggled_server_stands_as_the_side_that_it_is_asked_to_be() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut bench = toggled(climber);
            assert_eq!((bench.instances(), bench.first_instance(), climber.meter.alive), (4, 0, 4));
            for (side, at) in [(Side::B, 0), (Side::A, 3), (Side::B, 3)] {
                assert!(climber.block_on(&mut bench, side, at, Length::Short).is_ok());
            }
            assert_eq!(climber.meter.turned, ["a=on", "a=off", "a=on"]);
            assert_eq!(climber.meter.blocks, 3);
            climber.close_bench(bench);
        });
    }

    /// Planted faults: it is read without the change, or costs blocks where no plan limits it.
    #[test]
    fn what_a_toggled_server_holds_is_read_with_the_change_where_a_plan_limits_it() {
        for limit in [None, Some(1)] {
            let plan = Plan { memory_max_bytes: limit, ..plan(&["a=on"]) };
            on_a_climb(&plan, &options(), |climber| {
                climber.meter.memory = memory(9);
                let mut bench = toggled(climber);
                let Ok(held) = climber.memory_of(&mut bench) else { panic!("they live") };
                let read = if limit.is_some() { vec![9; 4] } else { vec![] };
                assert_eq!(climber.meter.blocks, read.len());
                assert!(climber.meter.turned.iter().all(|turned| turned == "a=on"));
                assert_eq!(held, [vec![], read]);
                climber.close_bench(bench);
                let mut bench = open(climber, Schedule::LivePairs);
                let Ok(held) = climber.memory_of(&mut bench) else { panic!("they live") };
                assert_eq!(held, [vec![9; 4], vec![9; 4]], "of two sides it is what both hold");
                climber.close_bench(bench);
            });
        }
    }

    #[test]
    fn visits_have_one_instance_and_keep_what_each_one_held() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut bench = open(climber, Schedule::InTurn);
            assert_eq!((bench.instances(), bench.first_instance(), climber.meter.alive), (1, 0, 0));
            let Bench::InTurn(turns) = &mut bench else { panic!("visits have no live servers") };
            assert_eq!(
                (turns.specs[0].setting.words(), turns.specs[1].setting.words()),
                (vec!["a=off".to_owned()], vec!["a=on".to_owned()])
            );
            (turns.memory, turns.clock) = ([vec![1], vec![2, 3]], "a clock".into());
            assert_eq!((bench.memory(), bench.clock()), ([vec![1], vec![2, 3]], "a clock".to_owned()));
            assert_eq!(bench.horizon_ns(SECOND), None);
            climber.close_bench(bench);
        });
    }

    #[test]
    fn the_other_side_is_the_other_one() {
        assert_eq!([Side::A, Side::B].map(other), [Side::B, Side::A]);
    }
}
