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
    use crate::climb::still::{on_a_climb, options, plan};
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

    /// Shares of both sides, percent, of pairs that burnt these outside of 25 ms within, ms.
    fn shares(off_ms: &[(u64, u64)], basis: Basis) -> [f64; 2] {
        let block = |ms: u64| Block {
            cpu_in_ns: 25_000_000,
            cpu_off_ns: ms * 1_000_000,
            replies: 1,
            ..Block::default()
        };
        let pair = |(a, b): &(u64, u64)| Pair { first: Side::A, instance: 0, a: block(*a), b: block(*b) };
        off_block_percent(&Trial { pairs: off_ms.iter().map(pair).collect(), ..Trial::default() }, basis)
    }

    /// Of twenty pairs the two that burnt most are left out, on each side its own: 18 of 18 · 26 ms. In totals all of them
    /// count: 168 of 668 ms.
    #[test]
    fn one_pair_in_ten_may_be_chance_where_a_trimmed_mean_judges() {
        let mut off_ms = vec![(1, 0); 20];
        (off_ms[3].0, off_ms[7].0, off_ms[9].1) = (50, 100, 25);
        let [a, b] = shares(&off_ms, Basis::Pairs);
        assert!((a - 100.0 / 26.0).abs() < 1e-9 && b == 0.0, "{a} {b}");
        for basis in [Basis::Totals, Basis::Instances] {
            let [a, b] = shares(&off_ms, basis);
            assert!((a - 100.0 * 168.0 / 668.0).abs() < 1e-9, "{a}");
            assert!((b - 100.0 * 25.0 / 525.0).abs() < 1e-9, "{b}");
        }
        // Of nineteen one: 50 and 17 are left, of 18 · 25 and as much.
        let [a, _] = shares(&off_ms[..19], Basis::Pairs);
        assert!((a - 100.0 * 67.0 / 517.0).abs() < 1e-9, "{a}");
        let [few, _] = shares(&off_ms[..9], Basis::Pairs);
        assert!(few > 37.0, "of nine none: {few}");
    }

    #[test]
    fn it_is_looked_at_after_every_twenty_pairs_and_five_percent_are_not_too_much() {
        let pair = Pair { first: Side::A, instance: 0, a: Block::default(), b: Block::default() };
        let looks =
            |pairs: &usize| is_off_block_look(&Trial { pairs: vec![pair; *pairs], ..Trial::default() });
        assert_eq!((0..=60).filter(looks).collect::<Vec<_>>(), [20, 40, 60]);
        assert_eq!([5.0, 5.000_1].map(too_much), [false, true]);
        assert_eq!(off_block_words(12.4), "12 % of a server's CPU was burnt outside its own blocks");
    }

    /// Planted faults: the side that burns less is marked, or the smaller share is told, or each is warned of.
    #[test]
    fn the_sides_that_burn_are_marked_and_the_first_is_warned_of() {
        on_a_climb(&plan(&["a=on", "b=on"]), &options(), |climber| {
            let start = climber.standing.clone();
            let [a, b] = ["a", "b"].map(|dial| start.with(dial, "on"));
            assert_eq!(climber.mark_sides(&[start.clone(), a.clone()], [5.0, 4.0]), None);
            assert!(climber.record.warnings.is_empty() && !climber.burns([&start, &a]));
            assert_eq!(climber.mark_sides(&[start.clone(), a.clone()], [5.0, 7.0]), Some(7.0));
            assert!(climber.burns([&a]) && climber.burns([&start, &a]) && !climber.burns([&start]));
            assert!(
                climber.record.warnings[0].starts_with("7 % of a server's CPU"),
                "{:?}",
                climber.record.warnings
            );
            assert_eq!(climber.mark_sides(&[a.clone(), b.clone()], [9.0, 6.0]), Some(9.0));
            assert_eq!(climber.burning, [a, b], "each once");
            assert_eq!(climber.record.warnings.len(), 1);
        });
    }
}
