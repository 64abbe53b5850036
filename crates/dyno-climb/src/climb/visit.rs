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
