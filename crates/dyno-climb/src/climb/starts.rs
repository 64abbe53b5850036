//! Starts of the total: all arms started anew, measured in rounds, closed, again and again.
//!
//! A new process is a new draw of hashes and layout, and rounds that follow each other are alike: so all arms are started
//! anew several times, and the interval comes from what these starts differ by (`dyno_measure::rounds`). Where a server burns
//! CPU outside its blocks the arms of a start follow each other; the rounds have the same shape, so that the same estimator
//! reads them, and what the machine does meanwhile is in what starts differ by.

use dyno_measure::Histogram;
use dyno_measure::judge::LAST_LOOK_MIN;
use dyno_measure::rounds::{STARTS_MIN, TOTAL_Z};
use dyno_measure::series::{Block, Totals};
use dyno_measure::student::student;
use dyno_record::climb::Role;

use super::climber::Climber;
use super::comparison::Comparison;
use super::in_force::InForce;
use super::off_block::too_much;
use super::options::Event;
use super::rules::{LONG_PAIRS, STARTS_MAX};
use super::visit::VISIT_BLOCKS_MIN;
use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::meter::{ArmSpec, Length, Measured, Meter, Opening, Trouble, Vitals};

/// Rounds of a start at most; more would not narrow what starts differ by.
const START_ROUNDS_MAX: usize = 50;
/// For the progress while the total is measured: the stage, and what is measured.
const WORDS: [&str; 2] = ["total", "start, final, floor"];

/// An arm of the total. The floor has no setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) role: Role,
    pub(crate) name: String,
    pub(crate) setting: Option<Setting>,
}

/// One arm of the total: its live server, with what all its servers have shown so far.
pub(crate) struct Live<A> {
    pub(crate) is: Named,
    pub(crate) arm: Option<A>,
    /// User and system ticks of the live server when it began, and those of all before it.
    ticks_began: Option<(u64, u64)>,
    pub(crate) ticks: (u64, u64),
    pub(crate) latencies: Histogram,
    pub(crate) blocks: Vec<Block>,
}

impl<A> Live<A> {
    pub(crate) fn new(arm: &Named) -> Self {
        Self {
            is: arm.clone(),
            arm: None,
            ticks_began: None,
            ticks: (0, 0),
            latencies: Histogram::new(),
            blocks: Vec::new(),
        }
    }

    pub(crate) fn add(&mut self, measured: Measured) {
        self.latencies.merge(&measured.latencies);
        self.blocks.push(measured.block);
    }

    /// Nothing was measured of it.
    pub(crate) fn forget(&mut self) {
        (self.latencies, self.ticks) = (Histogram::new(), (0, 0));
        self.blocks.clear();
    }
}

/// What was measured of the whole way: a block per arm and round, and which start each round belongs to.
pub(crate) struct Rounds<A> {
    pub(crate) arms: Vec<Live<A>>,
    pub(crate) starts: Vec<u32>,
    pub(crate) in_force: InForce,
}

impl<A> Rounds<A> {
    /// # Panics
    /// When an arm has another number of rounds than the rest: they would be compared with each other's.
    pub(crate) fn check(&self) {
        let whole = self.arms.iter().all(|one| one.blocks.len() == self.starts.len());
        assert!(whole, "a round has a block of every arm");
        assert!(self.starts.is_sorted(), "rounds of a start follow each other");
    }

    /// Adds rounds of a start, the blocks of each arm; none of them where one block had no reply or no clock.
    fn add(&mut self, blocks: Vec<Vec<Measured>>, start: u32) {
        let rounds = blocks.first().map_or(0, Vec::len);
        assert!(blocks.len() == self.arms.len(), "blocks of {} arms of {}", blocks.len(), self.arms.len());
        assert!(blocks.iter().all(|of_arm| of_arm.len() == rounds), "a round has a block of every arm");
        if blocks.iter().flatten().any(|measured| dead(&measured.block)) {
            return;
        }
        for (one, blocks) in self.arms.iter_mut().zip(blocks) {
            blocks.into_iter().for_each(|measured| one.add(measured));
        }
        self.starts.extend(std::iter::repeat_n(start, rounds));
        self.check();
    }

    fn at(&self, role: Role) -> Option<usize> {
        self.arms.iter().position(|one| one.is.role == role)
    }

    fn floor(&self) -> Option<usize> {
        let floor = self.arms.iter().position(|one| one.is.setting.is_none());
        assert!(floor.is_none_or(|at| at + 1 == self.arms.len()), "the floor is the last arm");
        floor
    }

    fn forget(&mut self) {
        self.starts.clear();
        self.arms.iter_mut().for_each(Live::forget);
        self.check();
    }
}

impl<M: Meter> Climber<'_, M> {
    /// All arms alive at the same time, unless one of them burns CPU outside its blocks.
    pub(crate) fn all_starts(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        comparison: &Comparison<Vec<Named>>,
    ) -> Result<(), Trouble> {
        if !self.any_burns(comparison) {
            self.starts_beside(rounds, comparison)?;
            if !self.any_burns(comparison) {
                return Ok(());
            }
            // The start in which that was seen compares nothing.
            rounds.forget();
        }
        self.starts_in_turn(rounds, comparison)
    }

    pub(crate) fn any_burns(&self, comparison: &Comparison<Vec<Named>>) -> bool {
        self.burns(comparison.arms.iter().filter_map(|arm| arm.setting.as_ref()))
    }

    fn starts_beside(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        comparison: &Comparison<Vec<Named>>,
    ) -> Result<(), Trouble> {
        let began_ns = self.meter.now_ns();
        let (mut start, mut wanted, mut opening_ns) = (0, 1, 0);
        while start < wanted && opening_ns < self.left_ns() {
            self.open_arms(rounds, &comparison.load)?;
            if start == 0 {
                self.prove_arms(rounds, "before")?;
                opening_ns = self.meter.now_ns() - began_ns;
                wanted = self.affordable_starts(opening_ns, self.round_ns(rounds, comparison.length()));
            }
            let share = (start + 1) as f64 / wanted as f64;
            let until_ns = began_ns + ((self.clockwork.end_ns() - began_ns) as f64 * share) as u64;
            if rounds.in_force.not_applied.is_none() {
                self.rounds_until(rounds, comparison.length(), until_ns, start as u32)?;
                self.prove_arms(rounds, "after")?;
            }
            self.close_arms(rounds);
            if rounds.in_force.not_applied.is_some() {
                break;
            }
            start += 1;
            if start == 1 && self.mark_burning_arms(&rounds.arms) {
                break;
            }
        }
        Ok(())
    }

    /// Starts every arm by itself, measures it and closes it, one after the other, again and again.
    fn starts_in_turn(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        comparison: &Comparison<Vec<Named>>,
    ) -> Result<(), Trouble> {
        let mut longest_ns = 0;
        for start in 0..STARTS_MAX as u32 {
            let began_ns = self.meter.now_ns();
            if start > 0 && longest_ns > self.left_ns() {
                break;
            }
            let blocks = self.start_in_turn(rounds, &comparison.load)?;
            if rounds.in_force.not_applied.is_some() {
                break;
            }
            rounds.add(blocks, start);
            longest_ns = longest_ns.max(self.meter.now_ns() - began_ns);
            let more = VISIT_BLOCKS_MIN * (self.left_ns() / longest_ns.max(1)) as usize;
            self.report_rounds(rounds, more);
        }
        Ok(())
    }

    /// Opens a server of every arm in random order, the floor last: it answers what the final setting does.
    fn open_arms(&mut self, rounds: &mut Rounds<M::Arm>, load: &LoadSpec) -> Result<(), Trouble> {
        for role in self.order_of(rounds) {
            self.open_arm(rounds, role, load)?;
        }
        let Some(floor) = rounds.floor() else { return Ok(()) };
        let end = rounds.at(Role::Final).expect("the total has a final arm");
        if let Some(arm) = self.floor_beside(rounds, end, load)? {
            began(&mut rounds.arms[floor], arm);
        }
        Ok(())
    }

    /// A start: arms in random order, the floor right after the end, whose answer it learns. The blocks of each arm.
    fn start_in_turn(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        load: &LoadSpec,
    ) -> Result<Vec<Vec<Measured>>, Trouble> {
        assert!(rounds.arms.iter().all(|one| one.arm.is_none()), "a server lives beside another one's turn");
        let (mut blocks, mut read) = (Vec::new(), Vec::new());
        for role in self.order_of(rounds) {
            let Some(at) = self.open_arm(rounds, role, load)? else { continue };
            blocks.push((role, self.blocks_of(&mut rounds.arms[at])?));
            read.push((role, self.read_of_arm(rounds, role)?));
            let floor = rounds.floor().filter(|_| role == Role::Final);
            let opened = floor.map(|_| self.floor_beside(rounds, at, load)).transpose()?.flatten();
            self.close_arm(&mut rounds.arms[at]);
            if let (Some(floor), Some(arm)) = (floor, opened) {
                began(&mut rounds.arms[floor], arm);
                blocks.push((Role::Floor, self.blocks_of(&mut rounds.arms[floor])?));
                self.close_arm(&mut rounds.arms[floor]);
            }
        }
        rounds.hold_all(read, "after");
        let place = |role: Role| rounds.at(role).expect("what was measured is an arm");
        blocks.sort_by_key(|(role, _)| place(*role));
        Ok(blocks.into_iter().map(|(_, blocks)| blocks).collect())
    }

    fn blocks_of(&mut self, one: &mut Live<M::Arm>) -> Result<Vec<Measured>, Trouble> {
        let arm = one.arm.as_mut().expect("it was just opened");
        (0..VISIT_BLOCKS_MIN).map(|_| self.meter.block(arm, Length::Long)).collect()
    }

    /// Measures rounds until then, at least one.
    fn rounds_until(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        length: Length,
        until_ns: u64,
        start: u32,
    ) -> Result<(), Trouble> {
        assert!(rounds.arms.iter().all(|one| one.arm.is_some()), "a round has a block of every arm");
        let mut order: Vec<usize> = (0..rounds.arms.len()).collect();
        for round in 0..START_ROUNDS_MAX {
            if round > 0 && self.meter.now_ns() >= until_ns {
                break;
            }
            self.rng.shuffle(&mut order);
            let blocks = self.round(&mut rounds.arms, length, &order)?;
            rounds.add(blocks, start);
            let more = (self.left_ns() / self.round_ns(rounds, length)) as usize;
            self.report_rounds(rounds, more);
        }
        Ok(())
    }

    /// A block on every arm.
    fn round(
        &mut self,
        arms: &mut [Live<M::Arm>],
        length: Length,
        order: &[usize],
    ) -> Result<Vec<Vec<Measured>>, Trouble> {
        let mut blocks = vec![Vec::new(); arms.len()];
        for at in order {
            let arm = arms[*at].arm.as_mut().expect("open_arms() has opened it");
            blocks[*at].push(self.meter.block(arm, length)?);
        }
        Ok(blocks)
    }

    fn report_rounds(&mut self, rounds: &Rounds<M::Arm>, more: usize) {
        let (pair, left_ns, [stage, name]) = (rounds.starts.len(), self.left_ns(), WORDS);
        (self.watch)(&Event::Pair { stage, name, pair, of: pair + more, estimate: None, left_ns });
    }

    /// Opens the floor while the server that it repeats is alive. Where it cannot be had at the first try it is left out.
    fn floor_beside(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        end: usize,
        load: &LoadSpec,
    ) -> Result<Option<M::Arm>, Trouble> {
        let like = rounds.arms[end].arm.as_ref().expect("it is open, or its blocks were just measured");
        match self.meter.open(Opening::Floor { like, load }) {
            Ok(arm) => Ok(Some(arm)),
            Err(trouble) => self.left_out(rounds, Role::Floor, trouble).map(|()| None),
        }
    }

    /// Goes on without an arm, unless the way begins or ends there, there are rounds with it, or the climb must end.
    fn left_out(&mut self, rounds: &mut Rounds<M::Arm>, role: Role, trouble: Trouble) -> Result<(), Trouble> {
        let is_new = |at: &usize| rounds.arms[*at].blocks.is_empty();
        let is_needed = matches!(role, Role::Naive | Role::Final) || trouble.ends_the_climb();
        let Some(at) = rounds.at(role).filter(|at| !is_needed && is_new(at)) else { return Err(trouble) };
        let left = rounds.arms.remove(at);
        self.missing(left.is.name, trouble.to_string());
        Ok(())
    }

    /// Those with a setting of their own, in random order.
    fn order_of(&mut self, rounds: &Rounds<M::Arm>) -> Vec<Role> {
        let own = rounds.arms.iter().filter(|one| one.is.setting.is_some());
        let mut order: Vec<Role> = own.map(|one| one.is.role).collect();
        self.rng.shuffle(&mut order);
        order
    }

    /// Opens a server of this arm; none where it cannot be had and was left out.
    fn open_arm(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        role: Role,
        load: &LoadSpec,
    ) -> Result<Option<usize>, Trouble> {
        let at = rounds.at(role).expect("an arm is opened that the total has");
        let setting = rounds.arms[at].is.setting.clone().expect("the floor is opened beside the end");
        match self.meter.open(Opening::Server(&ArmSpec { setting, load: load.clone() })) {
            Ok(arm) => {
                began(&mut rounds.arms[at], arm);
                Ok(Some(at))
            }
            Err(trouble) => self.left_out(rounds, role, trouble).map(|()| None),
        }
    }

    pub(crate) fn close_arms(&mut self, rounds: &mut Rounds<M::Arm>) {
        rounds.arms.iter_mut().for_each(|one| self.close_arm(one));
        assert!(rounds.arms.iter().all(|one| one.arm.is_none()), "an arm of the total outlives its start");
    }

    fn close_arm(&mut self, one: &mut Live<M::Arm>) {
        let Some(arm) = one.arm.take() else { return };
        if let (Some((user_0, system_0)), Some((user_1, system_1))) =
            (one.ticks_began, arm.user_system_ticks())
        {
            one.ticks.0 += user_1.saturating_sub(user_0);
            one.ticks.1 += system_1.saturating_sub(system_0);
        }
        self.meter.close(arm);
    }

    /// Whether an arm's first server burnt too much CPU outside its blocks; then its setting is marked.
    fn mark_burning_arms(&mut self, live: &[Live<M::Arm>]) -> bool {
        let shares = live.iter().filter(|one| one.blocks.len() >= LAST_LOOK_MIN).filter_map(|one| {
            let percent = Totals::of(&one.blocks).off_block_percent();
            one.is.setting.as_ref().filter(|_| too_much(percent)).map(|setting| (setting, percent))
        });
        let burning: Vec<_> = shares.collect();
        burning.iter().for_each(|(setting, percent)| self.mark_burning(setting, *percent));
        !burning.is_empty()
    }

    /// What a round takes, ns: a block per arm.
    fn round_ns(&self, rounds: &Rounds<M::Arm>, length: Length) -> u64 {
        let short_ns = (self.pace.pair_ns * rounds.arms.len() as u64 / 2).max(1);
        if length == Length::Long { LONG_PAIRS * short_ns } else { short_ns }
    }

    fn left_ns(&self) -> u64 {
        self.clockwork.left_ns(self.meter.now_ns())
    }

    /// As many starts as make the interval narrowest: more of them are a better known spread, and leave less time for rounds.
    /// One, where there is no time for as many as show a spread. The first is open already.
    fn affordable_starts(&self, opening_ns: u64, round_ns: u64) -> usize {
        let left_ns = self.left_ns();
        let width = |starts: usize| {
            let rounds = left_ns.saturating_sub(opening_ns * (starts as u64 - 1)) / round_ns;
            let enough = rounds >= starts as u64;
            enough.then(|| (starts, student(TOTAL_Z, (starts - 1) as f64) / (rounds as f64).sqrt()))
        };
        let widths = (STARTS_MIN..=STARTS_MAX).filter_map(width);
        widths.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(1, |(starts, _)| starts)
    }
}

fn began<A: Vitals>(one: &mut Live<A>, arm: A) {
    assert!(one.arm.is_none(), "{} is opened twice", one.is.name);
    one.ticks_began = arm.user_system_ticks();
    one.arm = Some(arm);
}

/// A block of which nothing can be read.
fn dead(block: &Block) -> bool {
    block.replies == 0 || block.cpu_in_ns + block.cpu_off_ns == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::in_force::Due;
    use crate::climb::still::{SECOND, Server, Still, block, keep, on_a_climb, options, plan};
    use crate::proof::{Bound, Proof, Reading};

    fn measured() -> Measured {
        let block = Block { replies: 1_000, cpu_in_ns: 1_000_000, ..Block::default() };
        Measured { block, latencies: Histogram::new() }
    }

    /// Two arms, without servers.
    fn rounds() -> Rounds<()> {
        let arm = |role| Live::new(&Named { role, name: "x".into(), setting: None });
        let arms = vec![arm(Role::Final), arm(Role::Floor)];
        Rounds { arms, starts: Vec::new(), in_force: InForce::default() }
    }

    #[test]
    fn a_round_with_a_dead_block_is_no_round() {
        let mut rounds = rounds();
        rounds.add(vec![vec![measured()], vec![measured()]], 0);
        let dead = Measured { block: Block::default(), ..measured() };
        rounds.add(vec![vec![measured()], vec![dead]], 0);
        assert_eq!((rounds.starts.len(), rounds.arms[0].blocks.len()), (1, 1));
    }

    #[test]
    #[should_panic(expected = "blocks of 1 arms of 2")]
    fn a_round_never_lacks_an_arm() {
        rounds().add(vec![vec![measured()]], 0);
    }

    #[test]
    #[should_panic(expected = "rounds of a start follow each other")]
    fn an_earlier_start_never_comes_back() {
        let mut rounds = rounds();
        for start in [1, 0] {
            rounds.add(vec![vec![measured()], vec![measured()]], start);
        }
    }

    #[test]
    #[should_panic(expected = "a round has a block of every arm")]
    fn arms_never_have_different_numbers_of_rounds() {
        let mut rounds = rounds();
        rounds.arms[0].add(measured());
        rounds.check();
    }

    /// Planted faults: a clock that stood still is read; what is burnt outside of blocks is no CPU.
    #[test]
    fn a_block_is_dead_without_a_reply_or_without_any_cpu() {
        let block =
            |replies, cpu_in_ns, cpu_off_ns| Block { replies, cpu_in_ns, cpu_off_ns, ..Block::default() };
        assert!(!dead(&block(1, 5, 0)) && !dead(&block(1, 0, 5)) && !dead(&block(1, 5, 5)));
        assert!(dead(&block(0, 5, 5)) && dead(&block(1, 0, 0)));
    }

    /// Of 12 s the starts after the first take theirs, and the rest is rounds of 96 ms: 103 in 22 starts of 0.1 s each are narrower
    /// by Student's t than 104 in 21; 62 in 7 starts of 1 s narrower than 72 in 6.
    #[test]
    fn starts_are_as_many_as_make_the_interval_narrowest() {
        let affordable = |left_ns: u64, opening_ns: u64| {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                climber.meter.now_ns = 100 * SECOND - left_ns;
                climber.affordable_starts(opening_ns, 96_000_000)
            })
        };
        assert_eq!(affordable(12 * SECOND, SECOND / 10), 22);
        assert_eq!(affordable(12 * SECOND, SECOND), 7);
        assert_eq!(affordable(12 * SECOND, 0), STARTS_MAX);
        assert_eq!(affordable(12 * SECOND, 5 * SECOND), 3);
        // Three starts need two openings and three rounds: 2.288 s.
        assert_eq!(affordable(2_288_000_000, SECOND), 3);
        assert_eq!(affordable(2_287_999_999, SECOND), 1, "without a spread one is as good as two");
    }

    fn named(role: Role, setting: Option<Setting>) -> Named {
        Named { role, name: format!("{role:?}"), setting }
    }

    /// The arms of a total, without servers.
    fn arms(climber: &Climber<'_, Still>, roles: &[Role]) -> Rounds<Server> {
        let setting =
            |role: Role| (role != Role::Floor).then(|| climber.standing.with("a", &format!("{role:?}")));
        let arms = roles.iter().map(|role| Live::new(&named(*role, setting(*role)))).collect();
        Rounds { arms, starts: Vec::new(), in_force: InForce::default() }
    }

    /// Two arms share a pair's time, three half as much more; a long block lasts nine times as long.
    #[test]
    fn a_round_takes_half_a_pair_for_each_arm() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let all = [Role::Naive, Role::Final, Role::Floor];
            let [two, three] = [&all[..2], &all[..]].map(|roles| arms(climber, roles));
            assert_eq!(climber.round_ns(&two, Length::Short), 64_000_000);
            assert_eq!(climber.round_ns(&three, Length::Short), 96_000_000);
            assert_eq!(climber.round_ns(&three, Length::Long), 864_000_000);
            climber.pace.pair_ns = 0;
            assert_eq!(climber.round_ns(&three, Length::Short), 1, "what takes no time is not divided by");
        });
    }

    /// Planted faults: a handful of blocks, or exactly five percent, is enough; the arm that does not burn is marked.
    #[test]
    fn an_arm_burns_with_more_than_five_percent_of_twenty_blocks() {
        let marked = |blocks: usize, off: [u64; 2]| {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                let mut rounds = arms(climber, &[Role::Naive, Role::Final, Role::Floor]);
                for (one, off) in rounds.arms.iter_mut().zip([off[0], off[1], 900]) {
                    one.blocks = vec![block(1_000 - off, off); blocks];
                }
                let any = climber.mark_burning_arms(&rounds.arms);
                assert_eq!(any, !climber.burning.is_empty());
                climber.burning.iter().map(|setting| setting.get("a").to_owned()).collect::<Vec<_>>()
            })
        };
        assert!(marked(20, [50, 50]).is_empty(), "the floor has no setting");
        assert_eq!(marked(20, [50, 51]), ["Final"]);
        assert_eq!(marked(20, [200, 51]), ["Naive", "Final"]);
        assert!(marked(19, [200, 200]).is_empty());
    }

    /// Planted faults: the way goes on without its beginning or its end, or without what was measured for rounds already.
    #[test]
    fn an_arm_that_cannot_be_opened_is_left_out_where_the_way_goes_on_without_it() {
        let died = || Trouble::Died { status: "exit status: 1".into(), stderr_tail: String::new() };
        for (role, has_rounds, trouble, goes_on) in [
            (Role::Floor, false, died(), true),
            (Role::NaiveWithHeadline, false, died(), true),
            (Role::Reached, false, died(), true),
            (Role::Naive, false, died(), false),
            (Role::Final, false, died(), false),
            (Role::Floor, true, died(), false),
            (Role::Floor, false, Trouble::Interrupted, false),
        ] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                let all = [Role::Naive, Role::Final, Role::Reached, Role::NaiveWithHeadline, Role::Floor];
                let mut rounds = arms(climber, &all);
                if has_rounds {
                    rounds.add(vec![vec![measured()]; 5], 0);
                }
                let left = climber.left_out(&mut rounds, role, trouble.clone());
                let is_there = rounds.arms.iter().any(|one| one.is.role == role);
                let missing: Vec<&str> =
                    climber.record.not_measured.iter().map(|missing| missing.what.as_str()).collect();
                if goes_on {
                    assert_eq!(
                        (left, is_there, missing),
                        (Ok(()), false, vec![format!("{role:?}").as_str()])
                    );
                } else {
                    assert_eq!((left, is_there, missing), (Err(trouble), true, vec![]), "{role:?}");
                }
            });
        }
    }

    #[test]
    fn rounds_of_a_start_are_added_for_every_arm_and_forgotten_together() {
        let mut rounds = rounds();
        rounds.add(vec![vec![measured(); 2], vec![measured(); 2]], 0);
        rounds.add(vec![vec![measured(); 3], vec![measured(); 3]], 4);
        assert_eq!(rounds.starts, [0, 0, 4, 4, 4]);
        assert_eq!([0, 1].map(|arm| rounds.arms[arm].blocks.len()), [5, 5]);
        assert_eq!((rounds.at(Role::Floor), rounds.at(Role::Naive)), (Some(1), None));
        rounds.arms[1].ticks = (3, 4);
        rounds.forget();
        assert!(rounds.starts.is_empty() && rounds.arms.iter().all(|one| one.blocks.is_empty()));
        assert_eq!(rounds.arms[1].ticks, (0, 0));
    }

    #[test]
    #[should_panic(expected = "the floor is the last arm")]
    fn the_floor_is_never_before_another_arm() {
        let setting = Some(Setting::default());
        let arms = [named(Role::Floor, None), named(Role::Final, setting)].map(|arm| Live::<()>::new(&arm));
        let _ = Rounds { arms: arms.into(), starts: Vec::new(), in_force: InForce::default() }.floor();
    }

    #[test]
    fn where_there_is_no_floor_none_is_found() {
        let arm = Live::<()>::new(&named(Role::Final, Some(Setting::default())));
        let mut rounds = Rounds { arms: vec![arm], starts: Vec::new(), in_force: InForce::default() };
        assert_eq!(rounds.floor(), None);
        rounds.arms.push(Live::new(&named(Role::Floor, None)));
        assert_eq!(rounds.floor(), Some(1));
    }

    /// A block takes 100 ms, a round of three arms 300.
    #[test]
    fn a_start_has_a_round_at_least_fifty_at_most_and_none_is_begun_when_its_time_is_over() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            climber.meter.block_ns = SECOND / 10;
            let mut rounds = arms(climber, &[Role::Naive, Role::Final, Role::Floor]);
            let load = climber.plan.load.clone();
            assert_eq!(climber.open_arms(&mut rounds, &load), Ok(()));
            assert_eq!(climber.meter.alive, 3);
            for (until_ns, all) in [(0, 1), (SECOND / 10 * 3, 2), (SECOND * 12 / 10, 4), (20 * SECOND, 54)] {
                assert_eq!(climber.rounds_until(&mut rounds, Length::Short, until_ns, 0), Ok(()));
                assert_eq!(rounds.starts.len(), all, "until {until_ns}");
            }
            assert_eq!(climber.meter.blocks, 3 * 54);
            climber.close_arms(&mut rounds);
        });
    }

    /// What was read of the start is held against the end, which must stand so; who does not is not asked.
    #[test]
    fn what_is_due_is_read_of_the_start_and_of_the_arms_that_stand_so() {
        let proof = |count| Proof::Threads { count };
        let due = |value: &str| Due {
            rung: "a=on".into(),
            proof: proof(Bound::AtMost(3.0)),
            dial: "a".into(),
            value: value.into(),
        };
        for (readings, wanted) in [
            (vec![5.0, 2.0], None),
            (vec![5.0, 7.0], Some("a=on: not in force: threads: at most 3, read 7".to_owned())),
        ] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                let mut rounds = arms(climber, &[Role::Naive, Role::Final, Role::Reached, Role::Floor]);
                rounds.in_force = InForce::due(vec![due("Final")]);
                for one in &mut rounds.arms {
                    let Some(setting) = one.is.setting.clone() else { continue };
                    let spec = ArmSpec { setting, load: climber.plan.load.clone() };
                    let Ok(arm) = climber.meter.open(Opening::Server(&spec)) else { panic!("it opens") };
                    began(one, arm);
                }
                climber.meter.readings = readings.into_iter().map(Reading::Number).collect();
                assert_eq!(climber.prove_arms(&mut rounds, "before"), Ok(()));
                assert!(climber.meter.readings.is_empty() && rounds.in_force.doubts.is_empty());
                assert_eq!(rounds.in_force.not_applied, wanted);
                climber.close_arms(&mut rounds);
            });
        }
    }

    /// A drop is one against the setting before, and what is for a load of its own is proved under that.
    #[test]
    fn proofs_that_others_may_hide_are_not_due_on_the_totals_servers() {
        let mut plan = plan(&["a=on", "b=on", "c=on"]);
        let proof = |count| Proof::Threads { count };
        plan.rungs[0].proofs = vec![proof(Bound::AtMost(3.0)), proof(Bound::Drops(1.0))];
        plan.rungs[1].proofs = vec![proof(Bound::AtMost(4.0))];
        plan.rungs[1].load = Some(LoadSpec::default());
        plan.rungs[2].proofs = vec![proof(Bound::AtLeast(5.0)), proof(Bound::Rises(1.0))];
        on_a_climb(&plan, &options(), |climber| {
            assert!(climber.due_in_total().is_empty(), "nothing is kept");
            (0..3).for_each(|at| drop(keep(climber, at)));
            let due = climber.due_in_total();
            let wanted = [("a", Bound::AtMost(3.0)), ("c", Bound::AtLeast(5.0))].map(|(dial, count)| Due {
                rung: format!("{dial}=on"),
                proof: proof(count),
                dial: dial.into(),
                value: "on".into(),
            });
            assert_eq!(due, wanted);
        });
    }
}
