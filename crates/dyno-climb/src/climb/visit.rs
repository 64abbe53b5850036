//! Visits: servers measured one instance after another, because one of them burns CPU outside its own blocks (`off_block`).
//!
//! A *visit* opens an instance, measures it for a while and closes it, and a pair is a visit of each side in the order of a
//! coin. The machine's drift does not cancel over a second as it does over a twentieth of one, so that only larger effects
//! are visible this way; intervals say which.

use dyno_measure::Histogram;
use dyno_measure::series::{Block, Pair, Side, Trial};
use dyno_record::climb::ProofLine;

use super::bench::{Turns, other};
use super::climber::Climber;
use super::proofs::hold;
use crate::meter::{Length, Measured, Meter, Trouble, Vitals};
use crate::proof::{Proof, Reading};

/// Long blocks of a visit at least: what the first leaves behind is charged to the second.
pub(crate) const VISIT_BLOCKS_MIN: usize = 2;
/// Long blocks of a visit at most, however slowly its server starts.
const VISIT_BLOCKS_MAX: usize = 8;

/// What a visit brought home.
struct Visit {
    measured: Measured,
    before: Vec<Reading>,
    after: Vec<Reading>,
}

impl<M: Meter> Climber<'_, M> {
    /// A visit of each side, one after the other; none where a proof's readings are all that came of it.
    pub(crate) fn pair_in_turn(
        &mut self,
        turns: &mut Turns,
        trial: &Trial,
    ) -> Result<(Pair, [Histogram; 2]), (Side, Trouble)> {
        let first = self.first_side();
        let mut visits = self.visits(turns, first)?;
        let [a, b] = Side::BOTH.map(|side| {
            visits[side.index()].take().expect("visits() has visited both sides, or says why not")
        });
        turns.prove([&a, &b]);
        let (a, b) = (a.measured, b.measured);
        let instance = trial.pairs.len() as u32;
        Ok((Pair { first, instance, a: a.block, b: b.block }, [a.latencies, b.latencies]))
    }

    pub(crate) fn first_side(&mut self) -> Side {
        if self.rng.coin() { Side::A } else { Side::B }
    }

    fn visits(&mut self, turns: &mut Turns, first: Side) -> Result<[Option<Visit>; 2], (Side, Trouble)> {
        match turns.toggles.clone() {
            Some(dial) => self.visits_of_one(turns, &dial, first),
            None => self.visits_of_two(turns, first),
        }
    }

    /// Each side has an instance of its own.
    fn visits_of_two(
        &mut self,
        turns: &mut Turns,
        first: Side,
    ) -> Result<[Option<Visit>; 2], (Side, Trouble)> {
        let mut visits = [None, None];
        for side in [first, other(first)] {
            let (spec, began_ns) = (turns.specs[side.index()].clone(), self.meter.now_ns());
            let visit = self.visited(&spec, |climber, arm| {
                let open_ns = climber.meter.now_ns() - began_ns;
                climber.visit(turns, side, arm, open_ns)
            });
            visits[side.index()] = Some(visit.map_err(|trouble| (side, trouble))?);
        }
        Ok(visits)
    }

    /// One instance stands as both sides.
    fn visits_of_one(
        &mut self,
        turns: &mut Turns,
        dial: &str,
        first: Side,
    ) -> Result<[Option<Visit>; 2], (Side, Trouble)> {
        let (mut visits, mut at) = ([None, None], Side::A);
        let (spec, began_ns) = (turns.specs[0].clone(), self.meter.now_ns());
        let done = self.visited(&spec, |climber, arm| {
            let open_ns = climber.meter.now_ns() - began_ns;
            for side in [first, other(first)] {
                at = side;
                climber.meter.turn(arm, &turns.specs[side.index()].setting, dial)?;
                visits[side.index()] = Some(climber.visit(turns, side, arm, open_ns)?);
            }
            Ok(())
        });
        done.map(|()| visits).map_err(|trouble| (at, trouble))
    }

    fn visit(
        &mut self,
        turns: &mut Turns,
        side: Side,
        arm: &mut M::Arm,
        open_ns: u64,
    ) -> Result<Visit, Trouble> {
        let proving = &turns.proving;
        let before = self.readings(&proving.proofs, arm)?;
        let measured = self.blocks_of_visit(arm, open_ns)?;
        let after = self.readings(&proving.proofs, arm)?;
        // A server toggled in place has no two memories to compare, and one that a plan may limit.
        if turns.toggles.is_none() || (side == Side::B && self.plan.memory_max_bytes.is_some()) {
            turns.memory[side.index()].push(arm.memory().server_bytes);
        }
        turns.clock = arm.clock();
        Ok(Visit { measured, before, after })
    }

    fn readings(&mut self, proofs: &[Proof], arm: &mut M::Arm) -> Result<Vec<Reading>, Trouble> {
        proofs.iter().map(|proof| self.meter.prove(arm, proof)).collect()
    }

    /// Blocks until they have taken as long as the opening did: then no more than half of the time is lost on it.
    fn blocks_of_visit(&mut self, arm: &mut M::Arm, open_ns: u64) -> Result<Measured, Trouble> {
        let began_ns = self.meter.now_ns();
        let (mut blocks, mut latencies) = (Vec::new(), Histogram::new());
        while blocks.len() < VISIT_BLOCKS_MIN
            || (blocks.len() < VISIT_BLOCKS_MAX && self.meter.now_ns() - began_ns < open_ns)
        {
            let measured = self.meter.block(arm, Length::Long)?;
            latencies.merge(&measured.latencies);
            blocks.push(measured.block);
        }
        assert!(
            (VISIT_BLOCKS_MIN..=VISIT_BLOCKS_MAX).contains(&blocks.len()),
            "a visit is a few long blocks"
        );
        Ok(Measured { block: Block::sum(&blocks, &latencies), latencies })
    }
}

impl Turns {
    /// Holds the proofs against both sides' readings.
    fn prove(&mut self, visits: [&Visit; 2]) {
        let [a, b] = visits;
        let proving = &mut self.proving;
        let read = [a, b].map(|visit| visit.after.len());
        assert!(read == [proving.proofs.len(); 2], "every proof is read after each visit's load");
        let (mut before, mut after) = (Vec::new(), Vec::new());
        let why = held(&proving.proofs, [&a.before, &b.before], "before", &mut before);
        if proving.before.is_empty() || why.is_some() {
            proving.before = before;
        }
        let later = held(&proving.proofs, [&a.after, &b.after], "after", &mut after);
        proving.after = after;
        self.not_applied = why.or(later);
    }
}

/// The reason why one of the proofs does not single out the change.
fn held(
    proofs: &[Proof],
    [a, b]: [&Vec<Reading>; 2],
    when: &str,
    lines: &mut Vec<ProofLine>,
) -> Option<String> {
    let readings = a.iter().zip(b);
    proofs.iter().zip(readings).find_map(|(proof, (a, b))| hold(proof, [a, b], when, lines))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::bench::Bench;
    use crate::climb::comparison::{Comparison, Sides};
    use crate::climb::rules::step_rule;
    use crate::climb::still::{Server, Still, on_a_climb, options, plan};
    use crate::meter::{ArmSpec, Memory};
    use crate::plan::Plan;
    use crate::proof::Bound;
    use dyno_record::trial::Schedule;

    const MILLISECOND: u64 = 1_000_000;

    fn on_a_server<T>(
        climber: &mut Climber<'_, Still>,
        work: impl FnOnce(&mut Climber<'_, Still>, &mut Server) -> Result<T, Trouble>,
    ) -> T {
        let spec = ArmSpec { setting: climber.standing.clone(), load: climber.plan.load.clone() };
        climber.visited(&spec, work).unwrap_or_else(|trouble| panic!("{trouble}"))
    }

    /// Blocks of 100 ms. Planted faults: one more or one less where they have taken exactly as long.
    #[test]
    fn a_visit_lasts_as_long_as_its_start_within_two_and_eight_blocks() {
        for (open_ms, blocks) in [(0, 2), (200, 2), (201, 3), (400, 4), (450, 5), (800, 8), (9_000, 8)] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                climber.meter.block_ns = 100 * MILLISECOND;
                let measured =
                    on_a_server(climber, |climber, arm| climber.blocks_of_visit(arm, open_ms * MILLISECOND));
                assert_eq!(climber.meter.blocks, blocks, "{open_ms} ms");
                // A thousand replies of 6 µs each.
                let (replies, cpu_in_ns) = (measured.block.replies, measured.block.cpu_in_ns);
                assert_eq!((replies, cpu_in_ns), (1_000 * blocks as u64, 6_000_000 * blocks as u64));
            });
        }
    }

    fn turns(climber: &mut Climber<'_, Still>, toggled: bool, proofs: &[Proof]) -> Turns {
        let settings = [climber.standing.clone(), climber.standing.with("a", "on")];
        let arms = if toggled { Sides::toggled(settings, "a") } else { Sides::apart(settings) };
        let (schedule, load) = (Schedule::InTurn, climber.plan.load.clone());
        let comparison = Comparison { arms, schedule, rule: step_rule(schedule), load };
        let Ok(Bench::InTurn(turns)) = climber.open_bench(&comparison, proofs) else {
            panic!("visits open nothing")
        };
        turns
    }

    /// Planted faults: what one server holds is counted for the other side; a toggled one's is read on both.
    #[test]
    fn visits_remember_what_their_servers_held() {
        for (toggled, limit, wanted) in
            [(false, None, [1, 1]), (false, Some(1), [1, 1]), (true, None, [0, 0]), (true, Some(1), [0, 1])]
        {
            let plan = Plan { memory_max_bytes: limit, ..plan(&["a=on"]) };
            on_a_climb(&plan, &options(), |climber| {
                climber.meter.memory = Memory { server_bytes: 9, left_bytes: 1 << 40 };
                // How late it is says nothing of how long a start takes: visits of two blocks follow.
                climber.meter.now_ns = 100_000 * MILLISECOND;
                let mut turns = turns(climber, toggled, &[]);
                let Ok((pair, _)) = climber.pair_in_turn(&mut turns, &Trial::default()) else {
                    panic!("it lives")
                };
                assert_eq!(turns.memory, wanted.map(|servers| vec![9; servers]), "{toggled} {limit:?}");
                assert_eq!((pair.a.replies, pair.b.replies, pair.instance), (2_000, 2_000, 0));
                assert_eq!(turns.clock, "still");
                assert_eq!(climber.meter.turned.len(), if toggled { 2 } else { 0 });
            });
        }
    }

    #[test]
    fn a_toggled_server_is_turned_to_each_side_in_the_order_of_the_coin() {
        on_a_climb(&plan(&["a=on"]), &options(), |climber| {
            let mut turns = turns(climber, true, &[]);
            for _ in 0..8 {
                climber.meter.turned.clear();
                let Ok((pair, _)) = climber.pair_in_turn(&mut turns, &Trial::default()) else {
                    panic!("it lives")
                };
                let wanted = if pair.first == Side::A { ["a=off", "a=on"] } else { ["a=on", "a=off"] };
                assert_eq!(climber.meter.turned, wanted);
            }
        });
    }

    /// Threads are counted before and after the load of each visit: A's and then B's, or the other way round by the coin.
    #[test]
    fn proofs_are_held_against_both_visits_before_and_after_their_load() {
        let proofs = [Proof::Threads { count: Bound::AtMost(3.0) }];
        let not = "not in force: threads: at most 3, read";
        for (a, b, why) in [
            ([5.0, 5.0], [2.0, 2.0], None),
            ([5.0, 5.0], [7.0, 2.0], Some(format!("{not} 7"))),
            ([5.0, 5.0], [2.0, 8.0], Some(format!("{not} 8"))),
            (
                [5.0, 2.0],
                [2.0, 2.0],
                Some("the proof cannot tell the sides apart: threads: at most 3, read 2 on both".into()),
            ),
            // What fails first is told.
            ([5.0, 5.0], [7.0, 8.0], Some(format!("{not} 7"))),
        ] {
            on_a_climb(&plan(&["a=on"]), &options(), |climber| {
                let mut turns = turns(climber, false, &proofs);
                let visit = |[before, after]: [f64; 2]| Visit {
                    measured: Measured { block: Block::default(), latencies: Histogram::new() },
                    before: vec![Reading::Number(before)],
                    after: vec![Reading::Number(after)],
                };
                turns.prove([&visit(a), &visit(b)]);
                assert_eq!(turns.not_applied, why);
                let read =
                    |lines: &[ProofLine]| lines.iter().map(|line| line.read.clone()).collect::<Vec<_>>();
                assert_eq!(read(&turns.proving.before), [a[0].to_string(), b[0].to_string()]);
                assert_eq!(read(&turns.proving.after), [a[1].to_string(), b[1].to_string()]);
                // Of later visits the first readings stay where they hold.
                turns.prove([&visit([4.0, 4.0]), &visit([1.0, 1.0])]);
                assert_eq!(turns.not_applied, None);
                assert_eq!(read(&turns.proving.before), [a[0].to_string(), b[0].to_string()]);
                assert_eq!(read(&turns.proving.after), ["4", "1"]);
                turns.prove([&visit([4.0, 4.0]), &visit([6.0, 6.0])]);
                assert_eq!(read(&turns.proving.before), ["4", "6"], "and go where they do not");
            });
        }
    }
}
