//! Servers that burn CPU outside their own blocks, measured one instance after another.
//!
//! Side by side, a block is charged with all that its server burnt while the others had theirs: right for work that the
//! block left behind (a collector, a log writer), many times too much for work that goes on whatever is served, and that
//! work also takes CPU time from the server whose block it is. Where it is more than [`OFF_BLOCK_PERCENT_MAX`] of a side's
//! CPU, no two servers are alive at the same time: a *visit* opens an instance, measures it for a while and closes it, and a
//! pair is a visit of each side in the order of a coin. The machine's drift does not cancel over a second as it does over a
//! twentieth of one, so that only larger effects are visible this way; intervals say which.

use std::cmp::Reverse;

use dyno_measure::Histogram;
use dyno_measure::judge::{Basis, LAST_LOOK_MIN};
use dyno_measure::series::{Block, Pair, Side, Totals, Trial};
use dyno_record::climb::ProofLine;

use super::climber::Climber;
use super::proofs::hold;
use super::sides::{Sides, Turns, other, unreadable};
use crate::dial::Setting;
use crate::meter::{Length, Measured, Meter, Trouble};
use crate::proof::{Proof, Reading};

/// Share of a side's CPU outside its own blocks above which its instances are measured one after another. Below it, even if
/// all of it went on by itself, side by side misjudges CPU per request by no more than this.
const OFF_BLOCK_PERCENT_MAX: f64 = 5.0;
/// Pairs between two looks at that share: a few blocks may hold one collection and nothing else.
const OFF_BLOCK_LOOK: usize = LAST_LOOK_MIN;
/// One pair in so many, those with the most CPU outside blocks, is left out of a side's share where pairs are judged by their
/// trimmed mean: on a busy machine a block is cut short now and then, and what is left of its work is burnt after it. The mean
/// sets aside twice as many; and where they make the sides differ the rung is measured in long blocks, of which none is left
/// out. What burns once a second is in every fourth pair.
const CHANCE_PAIRS: usize = 10;
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

/// Whether the CPU outside the sides' own blocks is looked at now.
pub(crate) fn is_off_block_look(trial: &Trial) -> bool {
    let pairs = trial.pairs.len();
    pairs > 0 && pairs.is_multiple_of(OFF_BLOCK_LOOK)
}

/// Share of each side's CPU outside its own blocks, in percent; of pairs without those that may be chance.
pub(crate) fn off_block_percent(trial: &Trial, basis: Basis) -> [f64; 2] {
    let left_out = if basis == Basis::Pairs { trial.pairs.len() / CHANCE_PAIRS } else { 0 };
    Side::BOTH.map(|side| {
        let mut blocks: Vec<&Block> = trial.pairs.iter().map(|pair| pair.block(side)).collect();
        blocks.sort_by_key(|block| Reverse(block.cpu_off_ns));
        Totals::of(blocks.into_iter().skip(left_out)).off_block_percent()
    })
}

/// What is said of such a share.
pub(crate) fn off_block_words(percent: f64) -> String {
    format!("{percent:.0} % of a server's CPU was burnt outside its own blocks")
}

/// Whether a share of this size is too much for measuring side by side.
pub(crate) fn too_much(percent: f64) -> bool {
    percent > OFF_BLOCK_PERCENT_MAX
}

impl<M: Meter> Climber<'_, M> {
    /// Whether one of these settings was seen to burn CPU outside its own blocks.
    pub(crate) fn burns(&self, settings: &[&Setting]) -> bool {
        settings.iter().any(|setting| self.burning.contains(setting))
    }

    /// Remembers that this setting does, and warns the first time that any does.
    pub(crate) fn mark_burning(&mut self, setting: &Setting, percent: f64) {
        if self.burning.is_empty() {
            self.record.warnings.push(format!(
                "{}: where that is so, servers are measured one after another, and only larger effects are visible",
                off_block_words(percent)
            ));
        }
        if !self.burning.contains(setting) {
            self.burning.push(setting.clone());
        }
    }

    /// What the settings of a trial burnt outside their blocks, the greater, when it is too much: then they are marked.
    pub(crate) fn mark_sides(&mut self, sides: &Sides<'_, M::Arm>, shares: [f64; 2]) -> Option<f64> {
        let settings = sides.settings().map(Clone::clone);
        for (setting, percent) in settings.iter().zip(shares).filter(|(_, percent)| too_much(*percent)) {
            self.mark_burning(setting, percent);
        }
        Some(shares[0].max(shares[1])).filter(|percent| too_much(*percent))
    }

    /// A visit of each side, one after the other.
    pub(crate) fn pair_in_turn(
        &mut self,
        turns: &mut Turns,
        trial: &mut Trial,
        least_replies: u64,
    ) -> Result<(), (Side, Trouble)> {
        let first = if self.rng.coin() { Side::A } else { Side::B };
        let mut visits = self.visits(turns, first)?;
        let [Some(a), Some(b)] = Side::BOTH.map(|side| visits[side.index()].take()) else { return Ok(()) };
        turns.prove([&a, &b]);
        let (a, b) = (a.measured, b.measured);
        if a.block.replies.min(b.block.replies) < least_replies
            || unreadable(&a, trial)
            || unreadable(&b, trial)
        {
            trial.invalid_pairs += 1;
        } else {
            let instance = trial.pairs.len() as u32;
            trial.add(Pair { first, instance, a: a.block, b: b.block }, [&a.latencies, &b.latencies]);
        }
        Ok(())
    }

    fn visits(&mut self, turns: &mut Turns, first: Side) -> Result<[Option<Visit>; 2], (Side, Trouble)> {
        let mut visits = [None, None];
        let Some(dial) = turns.toggles.clone() else {
            for side in [first, other(first)] {
                let visit = self.visit_of_its_own(turns, side).map_err(|trouble| (side, trouble))?;
                visits[side.index()] = Some(visit);
            }
            return Ok(visits);
        };
        let began_ns = self.meter.now_ns();
        let mut arm = self.meter.open(&turns.specs[0]).map_err(|trouble| (Side::A, trouble))?;
        let open_ns = self.meter.now_ns() - began_ns;
        for side in [first, other(first)] {
            let turned = self.meter.turn(&mut arm, &turns.specs[side.index()].setting, &dial);
            match turned.and_then(|()| self.visit(turns, side, &mut arm, open_ns)) {
                Ok(visit) => visits[side.index()] = Some(visit),
                Err(trouble) => {
                    self.meter.close(arm);
                    return Err((side, trouble));
                }
            }
        }
        self.meter.close(arm);
        Ok(visits)
    }

    fn visit_of_its_own(&mut self, turns: &mut Turns, side: Side) -> Result<Visit, Trouble> {
        let began_ns = self.meter.now_ns();
        let mut arm = self.meter.open(&turns.specs[side.index()])?;
        let open_ns = self.meter.now_ns() - began_ns;
        let visit = self.visit(turns, side, &mut arm, open_ns);
        self.meter.close(arm);
        visit
    }

    fn visit(
        &mut self,
        turns: &mut Turns,
        side: Side,
        arm: &mut M::Arm,
        open_ns: u64,
    ) -> Result<Visit, Trouble> {
        let first = turns.before.is_empty() && turns.after.is_empty();
        let before = if first { self.readings(&turns.proofs, arm)? } else { Vec::new() };
        let measured = self.blocks_of_visit(arm, open_ns)?;
        let after = self.readings(&turns.proofs, arm)?;
        let peak = &mut turns.rss_peak_bytes[side.index()];
        // A server toggled in place has no two memories to compare.
        if turns.toggles.is_none() {
            *peak = (*peak).max(self.meter.memory_bytes(arm));
        }
        turns.clock = self.meter.clock(arm);
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
        Ok(Measured { block: Block::sum(&blocks, &latencies), latencies })
    }
}

impl Turns {
    /// Holds the proofs against both sides' readings.
    fn prove(&mut self, visits: [&Visit; 2]) {
        let [a, b] = visits;
        let mut lines = Vec::new();
        let why = held(&self.proofs, [&a.before, &b.before], "before", &mut lines);
        self.before.append(&mut lines);
        let later = held(&self.proofs, [&a.after, &b.after], "after", &mut lines);
        self.after = lines;
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

    /// Twenty pairs, A's with these CPU times outside its blocks, ms, beside 25 within each.
    fn share(off_ms: &[u64], basis: Basis) -> bool {
        let block = |ms: u64| Block {
            cpu_in_ns: 25_000_000,
            cpu_off_ns: ms * 1_000_000,
            replies: 1,
            ..Block::default()
        };
        let off = off_ms.iter().copied().chain(std::iter::repeat(0));
        let pairs = off.take(20).map(|ms| Pair { first: Side::A, instance: 0, a: block(ms), b: block(0) });
        let trial = Trial { pairs: pairs.collect(), ..Trial::default() };
        let [a, b] = off_block_percent(&trial, basis);
        assert!(!too_much(b));
        too_much(a)
    }

    #[test]
    fn two_pairs_that_were_cut_short_are_no_server_that_burns() {
        assert!(!share(&[90, 60], Basis::Pairs));
        assert!(share(&[90, 60], Basis::Totals), "totals set nothing aside");
        assert!(share(&[20; 5], Basis::Pairs), "a timer of 20 ms once a second is in every fourth pair");
        assert!(share(&[2; 20], Basis::Pairs), "a poller is in all of them");
    }
}
