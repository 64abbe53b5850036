//! The split of the time: fixed before the start, unspent time passes on.

use dyno_measure::judge::Rule;

use super::options::Suffices;
use super::rules::{IN_TURN, LONG_PAIRS, RENEW_LONG_PAIRS};

/// Share of the time that is kept for leave-one-out and the total: they are the figures that are quoted.
const CONFIRM_SHARE: f64 = 0.30;
/// Share of the confirming time that belongs to the total.
const TOTAL_SHARE: f64 = 0.40;
/// Share of the total's time that no confirmation may take, however slow the machine has become meanwhile.
const TOTAL_RESERVED: f64 = 0.75;
/// Share of the time before confirming that measuring the noise should take.
const NOISE_SHARE: f64 = 0.10;
/// Share of the time that it may take where blocks are long: a slow server's noise is judged from fewer pairs.
const NOISE_SHARE_MAX: f64 = 0.25;

// Noise, rungs, confirmations and total follow each other.
const _: () = assert!(NOISE_SHARE <= NOISE_SHARE_MAX && NOISE_SHARE_MAX < 1.0 - CONFIRM_SHARE);
const _: () = assert!(TOTAL_RESERVED <= 1.0 && TOTAL_SHARE < 1.0 && CONFIRM_SHARE < 1.0);

/// Pairs after which all servers are started anew, until it is known what starts differ by.
const RENEW_PAIRS: usize = 60;
/// What a pair of instances takes, one after the other, until that is known.
const TURN_NS_GUESSED: u64 = 1_500_000_000;

/// What things take here, as last measured; the plan of the time rests on it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    /// A pair of short blocks, with its edges, ns.
    pub(crate) pair_ns: u64,
    /// Starting and warming the instances of both sides, ns.
    pub(crate) open_ns: u64,
    /// All starting of sides so far, ns.
    pub(crate) opening_ns: u64,
    /// Pairs after which starting all servers anew tells more than going on, as far as the noise has shown it.
    renew: usize,
    /// A pair of instances, one after the other: opening, long blocks, closing, ns.
    pub(crate) turn_ns: u64,
    /// Whether such a pair was measured.
    turned: bool,
}

impl Default for Pace {
    /// Two blocks of 30 ms with their edges; eight starts with 100 ms of warming; twice a start
    /// with two long blocks.
    fn default() -> Self {
        Self {
            pair_ns: 64_000_000,
            open_ns: 1_600_000_000,
            opening_ns: 0,
            renew: RENEW_PAIRS,
            turn_ns: TURN_NS_GUESSED,
            turned: false,
        }
    }
}

impl Pace {
    /// What this many pairs with a fresh side take, ns.
    pub(crate) fn of_pairs(&self, pairs: usize) -> u64 {
        let openings = 1 + pairs.saturating_sub(1) / self.renewed_after();
        self.open_ns * openings as u64 + self.pair_ns * pairs as u64
    }

    /// What this many pairs of long blocks take on servers that are alive, ns.
    pub(crate) fn of_long_pairs(&self, pairs: usize) -> u64 {
        let openings = pairs.saturating_sub(1) / RENEW_LONG_PAIRS;
        self.open_ns * openings as u64 + LONG_PAIRS * self.pair_ns * pairs as u64
    }

    /// Pairs that can be had in this time, starting servers anew included.
    pub(crate) fn pairs_in(&self, time_ns: u64) -> u64 {
        time_ns / (self.pair_ns + self.open_ns / self.renewed_after() as u64).max(1)
    }

    /// Pairs after which all servers are started anew; never so few that starting them takes more than half of the time.
    pub(crate) fn renewed_after(&self) -> usize {
        self.renew.max((self.open_ns / self.pair_ns.max(1)) as usize)
    }

    /// What was seen of the noise, as variances of a log ratio: between starts, and of a pair; with so many servers a side. The
    /// error of an effect is smallest where both parts of it cost as much as they take away.
    pub(crate) fn weigh(&mut self, between: f64, pair: f64, instances: usize) {
        let opening = self.open_ns as f64 / self.pair_ns.max(1) as f64;
        let best = (pair * opening * instances as f64 / between.max(1e-12)).sqrt();
        self.renew = (best as usize).clamp(RENEW_PAIRS / 2, 2 * RENEW_PAIRS);
    }

    /// What the fewest pairs take that are judged where instances are measured one after another, ns.
    pub(crate) fn of_turns(&self) -> u64 {
        self.turn_ns * IN_TURN.first as u64
    }

    /// Instances of both sides were opened. Until a pair of them was measured one after the other, what that takes follows: a
    /// visit lasts as long as the start at least.
    pub(crate) fn opened(&mut self, took_ns: u64, instances: usize) {
        assert!(instances > 0, "the pace of no instances");
        (self.open_ns, self.opening_ns) = (took_ns, self.opening_ns + took_ns);
        if !self.turned {
            self.turn_ns = TURN_NS_GUESSED.max(4 * took_ns / instances as u64);
        }
    }

    /// So many pairs of instances were measured one after the other.
    pub(crate) fn turned(&mut self, took_ns: u64, pairs: u64) {
        assert!(pairs > 0, "the pace of no pairs");
        (self.turn_ns, self.turned) = (took_ns / pairs, true);
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clockwork {
    began_ns: u64,
    time_ns: u64,
}

impl Clockwork {
    pub(crate) fn new(began_ns: u64, time_ns: u64) -> Self {
        Self { began_ns, time_ns }
    }

    fn after(&self, share: f64) -> u64 {
        self.began_ns + (self.time_ns as f64 * share) as u64
    }

    /// When the noise must be known.
    pub(crate) fn noise_end_ns(&self) -> u64 {
        self.after(NOISE_SHARE_MAX)
    }

    /// When the total must begin at the latest.
    pub(crate) fn total_begins_ns(&self) -> u64 {
        self.after(1.0 - CONFIRM_SHARE * TOTAL_SHARE * TOTAL_RESERVED)
    }

    /// When the last rung must be done.
    pub(crate) fn rungs_end_ns(&self) -> u64 {
        self.after(1.0 - CONFIRM_SHARE)
    }

    /// When leave-one-out should be done.
    pub(crate) fn confirm_end_ns(&self) -> u64 {
        self.after(1.0 - CONFIRM_SHARE * TOTAL_SHARE)
    }

    /// When everything must be done.
    pub(crate) fn end_ns(&self) -> u64 {
        self.after(1.0)
    }

    /// Pairs that measure the noise: those of a rung's last look, fewer when the time is short.
    pub(crate) fn noise_pairs(&self, pace: &Pace) -> usize {
        assert!(pace.pair_ns > 0, "a pair takes time");
        let affordable = (self.time_ns as f64 * NOISE_SHARE) as u64 / pace.pair_ns;
        (affordable as usize).clamp(Rule::QUICK.first, Rule::QUICK.last)
    }

    /// The same where instances are measured one after another.
    pub(crate) fn noise_turns(&self, pace: &Pace) -> usize {
        let affordable = (self.time_ns as f64 * NOISE_SHARE) as u64 / pace.turn_ns;
        (affordable as usize).clamp(IN_TURN.first, IN_TURN.last)
    }

    /// The whole time, in which each of so many rungs has this long for itself beside the noise, and the first of those that
    /// are kept is confirmed in `confirm_ns`.
    pub(crate) fn needed_ns(rungs: usize, rung_ns: u64, confirm_ns: u64) -> u64 {
        let rungs_ns = (rungs as u64 * rung_ns) as f64 / (1.0 - CONFIRM_SHARE - NOISE_SHARE);
        let confirmed_ns = confirm_ns as f64 / (CONFIRM_SHARE * (1.0 - TOTAL_SHARE * TOTAL_RESERVED));
        rungs_ns.max(confirmed_ns) as u64
    }

    /// What the time of the rungs suffices for at this pace.
    pub(crate) fn suffices(&self, pace: &Pace, rungs: usize) -> Suffices {
        let look_ns = pace.of_pairs(Rule::QUICK.first);
        let rungs_ns = (self.time_ns as f64 * (1.0 - CONFIRM_SHARE - NOISE_SHARE)) as u64;
        let measured = rungs.min((rungs_ns / look_ns) as usize);
        let each_ns = rungs_ns / measured.max(1) as u64;
        let pairs = pace.pairs_in(each_ns.saturating_sub(pace.open_ns)) as usize;
        let pairs = pairs.clamp(Rule::QUICK.first, Rule::QUICK.last);
        Suffices { rungs, measured, pairs, needed_ns: Self::needed_ns(rungs, look_ns, look_ns) }
    }

    pub(crate) fn left_ns(&self, now_ns: u64) -> u64 {
        self.end_ns().saturating_sub(now_ns)
    }
}

/// Until when a comparison may be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Until {
    /// The end of its own share of the time.
    pub(crate) share_ns: u64,
    /// Until when pairs go on that may yet have an answer: the time of others that will not need it.
    pub(crate) most_ns: u64,
}

impl Until {
    /// No longer than this, whatever is seen.
    pub(crate) fn at(deadline_ns: u64) -> Self {
        Self { share_ns: deadline_ns, most_ns: deadline_ns }
    }
}

/// An equal share of what is left for each of `parts`, but at least `least_ns` while there is as much: where the time is
/// too short for all, the first ones are measured and the last ones are not.
pub(crate) fn share_ns(now_ns: u64, end_ns: u64, parts: usize, least_ns: u64) -> u64 {
    let left_ns = end_ns.saturating_sub(now_ns);
    let share_ns = (left_ns / parts.max(1) as u64).max(least_ns).min(left_ns);
    assert!(share_ns <= left_ns, "{share_ns} ns are given away of {left_ns}");
    share_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_says_how_many_rungs_it_suffices_for() {
        let suffices = |seconds: u64, rungs| {
            Clockwork { began_ns: 0, time_ns: seconds * 1_000_000_000 }.suffices(&Pace::default(), rungs)
        };
        let enough = suffices(240, 11);
        assert_eq!((enough.rungs, enough.measured), (11, 11));
        assert!((60..=240).contains(&enough.pairs), "{enough:?}");
        let short = suffices(20, 11);
        assert!(short.measured < 11 && short.pairs >= Rule::QUICK.first, "{short:?}");
        let again = suffices(short.needed_ns.div_ceil(1_000_000_000), 11);
        assert_eq!(again.measured, 11, "the time that it names is enough: {short:?} {again:?}");
        assert_eq!(suffices(240, 0).measured, 0);
    }

    /// Planted fault: a sign that is turned, and the total begins after its end.
    #[test]
    fn each_part_of_the_time_ends_before_the_next() {
        let clock = Clockwork { began_ns: 1_000, time_ns: 240_000_000_000 };
        let moments = [
            clock.began_ns,
            clock.noise_end_ns(),
            clock.rungs_end_ns(),
            clock.confirm_end_ns(),
            clock.total_begins_ns(),
            clock.end_ns(),
        ];
        assert!(moments.is_sorted_by(|earlier, later| earlier < later), "{moments:?}");
        assert_eq!(clock.end_ns(), 240_000_001_000);
        assert_eq!(clock.left_ns(clock.end_ns() + 1), 0);
    }
}
