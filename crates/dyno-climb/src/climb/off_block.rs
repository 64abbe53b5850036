//! CPU that a server burns outside its own blocks: how much of it there is, and which settings were seen to do so.
//!
//! Side by side, a block is charged with all that its server burnt while the others had theirs: right for work that the
//! block left behind (a collector, a log writer), many times too much for work that goes on whatever is served, and that
//! work also takes CPU time from the server whose block it is. Where it is more than [`OFF_BLOCK_PERCENT_MAX`] of a side's
//! CPU, no two servers are alive at the same time (`visit`).

use std::cmp::Reverse;

use dyno_measure::judge::{Basis, LAST_LOOK_MIN};
use dyno_measure::series::{Block, Side, Totals, Trial};

use super::climber::Climber;
use crate::dial::Setting;
use crate::meter::Meter;

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
    pub(crate) fn burns<'s>(&self, settings: impl IntoIterator<Item = &'s Setting>) -> bool {
        settings.into_iter().any(|setting| self.burning.contains(setting))
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
    pub(crate) fn mark_sides(&mut self, settings: &[Setting; 2], shares: [f64; 2]) -> Option<f64> {
        for (setting, percent) in settings.iter().zip(shares).filter(|(_, percent)| too_much(*percent)) {
            self.mark_burning(setting, percent);
        }
        Some(shares[0].max(shares[1])).filter(|percent| too_much(*percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_measure::series::Pair;

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
