//! One trial: pairs of blocks until the judge has enough, or the time is up.

use dyno_measure::judge::{self, Basis, Estimate, LAST_LOOK_MIN, Next, Rule};
use dyno_measure::series::{Pair, Side, Trial};

use super::climber::{Climber, Event};
use super::in_turn::{is_off_block_look, off_block_percent};
use super::sides::{Bounds, Outcome, Sides, Tried, other, unreadable};
use crate::meter::{Length, Measured, Meter, Trouble};

/// Replies below which a block says nothing.
const REPLIES_MIN: u64 = 200;
/// Share of invalid pairs above which a trial says nothing.
const INVALID_SHARE_MAX: f64 = 0.05;
/// Invalid pairs that are forgiven whatever their share: the first pairs of a trial.
const INVALID_FREE: u64 = 3;

impl<M: Meter> Climber<'_, M> {
    /// Measures pairs until the rule has enough; where work comes in bursts, once more in long blocks by `bursty`.
    pub(crate) fn trial_or_bursts(
        &mut self,
        mut sides: Sides<'_, M::Arm>,
        bounds: Bounds<'_>,
        bursty: Rule,
    ) -> Tried {
        let tried = self.trial(sides.reborrow(), &bounds);
        if !matches!(tried.outcome, Outcome::Bursty) {
            return tried;
        }
        self.record.series.trials.push(tried.trial);
        self.trial(sides, &bounds.in_long_blocks(bursty))
    }

    /// Measures pairs until the rule has enough.
    pub(crate) fn trial(&mut self, mut sides: Sides<'_, M::Arm>, bounds: &Bounds<'_>) -> Tried {
        let mut trial = Trial::new(&bounds.id, bounds.metric);
        let began_ns = self.meter.now_ns();
        let outcome = self.pairs(&mut sides, &mut trial, bounds);
        let measured = trial.pairs.len() as u64 + trial.invalid_pairs;
        if matches!(sides, Sides::InTurn(_)) && measured > 0 {
            self.pace.turned(self.meter.now_ns() - began_ns, measured);
        }
        if bounds.length == Length::Short && measured >= LAST_LOOK_MIN as u64 {
            self.pace.pair_ns = (self.meter.now_ns() - began_ns) / measured;
        }
        Tried { trial, outcome }
    }

    fn pairs(&mut self, sides: &mut Sides<'_, M::Arm>, trial: &mut Trial, bounds: &Bounds<'_>) -> Outcome {
        let mut latest = None;
        loop {
            let looks = is_off_block_look(trial).then(|| off_block_percent(trial, bounds.rule.basis));
            if let Some(outcome) = self.not_comparable(sides, looks) {
                return outcome;
            }
            if bounds.rule.looks_at(trial.pairs.len()) {
                // The judge's guards read memory: it must be in the trial before it is judged.
                trial.rss_peak_bytes = self.memory(sides);
                match judge::next(trial, &bounds.rule, self.options.seed) {
                    Next::Done(judgement) => return Outcome::Judged(judgement),
                    Next::Bursty => return Outcome::Bursty,
                    Next::More(estimate) => latest = estimate,
                }
            }
            if let Some(why) = too_many_invalid(trial) {
                return Outcome::Unmeasured(why);
            }
            if self.meter.now_ns() >= bounds.deadline_ns {
                trial.rss_peak_bytes = self.memory(sides);
                let enough = trial.pairs.len() >= LAST_LOOK_MIN;
                let late =
                    self.not_comparable(sides, enough.then(|| off_block_percent(trial, bounds.rule.basis)));
                return late.unwrap_or_else(|| self.out_of_time(trial, bounds));
            }
            if let Err((side, trouble)) = self.pair(sides, trial, bounds) {
                return Outcome::Trouble(side, trouble);
            }
            self.tell(trial, bounds, latest);
        }
    }

    /// Why the pairs so far compare nothing: work outside the blocks, or a proof that does not hold.
    fn not_comparable(&mut self, sides: &Sides<'_, M::Arm>, shares: Option<[f64; 2]>) -> Option<Outcome> {
        if let Sides::InTurn(turns) = sides {
            return turns.not_applied.clone().map(Outcome::NotApplied);
        }
        self.mark_sides(sides, shares?).map(Outcome::OffBlock)
    }

    fn out_of_time(&self, trial: &Trial, bounds: &Bounds<'_>) -> Outcome {
        match judge::cut_short(trial, &bounds.rule, self.options.seed) {
            Some(judgement) => Outcome::Judged(judgement),
            None if trial.pairs.len() >= LAST_LOOK_MIN && bounds.rule.basis == Basis::Pairs => {
                Outcome::Bursty
            }
            None => Outcome::OutOfTime(format!("time was up after {} pairs", trial.pairs.len())),
        }
    }

    fn pair(
        &mut self,
        sides: &mut Sides<'_, M::Arm>,
        trial: &mut Trial,
        bounds: &Bounds<'_>,
    ) -> Result<(), (Side, Trouble)> {
        if let Sides::InTurn(turns) = sides {
            return self.pair_in_turn(turns, trial, REPLIES_MIN);
        }
        let first = if self.rng.coin() { Side::A } else { Side::B };
        let instance = self.rng.below(self.instances as u64) as usize;
        let mut measured: [Option<Measured>; 2] = [None, None];
        for side in [first, other(first)] {
            let block =
                self.one_block(sides, side, instance, bounds.length).map_err(|trouble| (side, trouble))?;
            measured[side.index()] = Some(block);
        }
        if let [Some(a), Some(b)] = measured {
            if a.block.replies.min(b.block.replies) < REPLIES_MIN
                || unreadable(&a, trial)
                || unreadable(&b, trial)
            {
                trial.invalid_pairs += 1;
            } else {
                let pair = Pair { first, instance: instance as u32, a: a.block, b: b.block };
                trial.add(pair, [&a.latencies, &b.latencies]);
            }
        }
        Ok(())
    }

    fn one_block(
        &mut self,
        sides: &mut Sides<'_, M::Arm>,
        side: Side,
        instance: usize,
        length: Length,
    ) -> Result<Measured, Trouble> {
        match sides {
            Sides::Apart { a, b } => {
                let arms = if side == Side::A { a } else { b };
                self.meter.block(&mut arms.arms[instance], length)
            }
            Sides::InPlace { arms, dial, a, b } => {
                let setting = if side == Side::A { a } else { b };
                self.meter.turn(&mut arms.arms[instance], setting, dial)?;
                self.meter.block(&mut arms.arms[instance], length)
            }
            Sides::InTurn(_) => unreachable!("pair() sends those to pair_in_turn()"),
        }
    }

    fn tell(&mut self, trial: &Trial, bounds: &Bounds<'_>, estimate: Option<Estimate>) {
        let left_ns = self.clockwork.left_ns(self.meter.now_ns());
        let (pair, of) = (trial.pairs.len(), bounds.rule.last);
        (self.watch)(&Event::Pair { stage: bounds.stage, name: bounds.name, pair, of, estimate, left_ns });
    }

    /// The largest instance of each side; a server toggled in place has no two memories to compare.
    fn memory(&mut self, sides: &Sides<'_, M::Arm>) -> [u64; 2] {
        let (a, b) = match sides {
            Sides::Apart { a, b } => (a, b),
            Sides::InPlace { .. } => return [0, 0],
            Sides::InTurn(turns) => return turns.rss_peak_bytes,
        };
        [a, b].map(|side| side.arms.iter().map(|arm| self.meter.memory_bytes(arm)).max().unwrap_or(0))
    }
}

fn too_many_invalid(trial: &Trial) -> Option<String> {
    let all = trial.pairs.len() as u64 + trial.invalid_pairs;
    let allowed = INVALID_FREE.max((all as f64 * INVALID_SHARE_MAX) as u64);
    (trial.invalid_pairs > allowed)
        .then(|| format!("{} of {all} pairs had too few replies or no clock", trial.invalid_pairs))
}
