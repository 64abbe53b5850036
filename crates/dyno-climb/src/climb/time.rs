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

    const SECOND: u64 = 1_000_000_000;

    fn is_near(ns: u64, seconds: f64) -> bool {
        (ns as f64 / 1e9 - seconds).abs() < 1e-6
    }

    /// Of a hundred seconds: 30 for confirming and the total, 40 % of these for the total, of which three quarters are its own.
    #[test]
    fn the_time_is_split_as_planned() {
        let clock = Clockwork::new(SECOND, 100 * SECOND);
        let ends = [
            (clock.noise_end_ns(), 26.0),
            (clock.rungs_end_ns(), 71.0),
            (clock.confirm_end_ns(), 89.0),
            (clock.total_begins_ns(), 92.0),
            (clock.end_ns(), 101.0),
        ];
        assert!(ends.iter().all(|(ns, seconds)| is_near(*ns, *seconds)), "{ends:?}");
        assert!(is_near(clock.left_ns(31 * SECOND), 70.0), "{}", clock.left_ns(31 * SECOND));
    }

    /// A pair takes 64 ms, an opening 1.6 s, and after 60 pairs all servers are started anew.
    #[test]
    fn pairs_take_their_time_and_that_of_starting_servers_anew() {
        let pace = Pace::default();
        for (pairs, ns) in [
            (0, 1_600_000_000),
            (1, 1_664_000_000),
            (60, 5_440_000_000),
            // 2 · 1.6 + 61 · 0.064 s.
            (61, 7_104_000_000),
            (120, 10_880_000_000),
            (121, 12_544_000_000),
        ] {
            assert_eq!(pace.of_pairs(pairs), ns, "{pairs} pairs");
        }
        // Nine times as long, on servers that are alive and started anew after twenty.
        for (pairs, ns) in [(0, 0), (1, 576_000_000), (20, 11_520_000_000), (21, 13_696_000_000)] {
            assert_eq!(pace.of_long_pairs(pairs), ns, "{pairs} long pairs");
        }
        assert_eq!(pace.of_turns(), 12 * 1_500_000_000);
    }

    /// A sixtieth of 1.6 s belongs to each pair: 64 ms and 26.666,666 ms.
    #[test]
    fn pairs_in_a_time_pay_their_part_of_the_starts() {
        let each_ns = 64_000_000 + 26_666_666;
        let in_time = [10 * each_ns - 1, 10 * each_ns].map(|ns| Pace::default().pairs_in(ns));
        assert_eq!(in_time, [9, 10]);
        let no_time = Pace { pair_ns: 0, open_ns: 0, ..Pace::default() };
        assert_eq!(no_time.pairs_in(7), 7, "pairs that take no time are not divided by");
    }

    /// √(0.00203 · 25 · 4 / 0.0001) = 45.06: an opening lasts as long as 25 pairs, and four servers of a side are opened.
    #[test]
    fn servers_are_started_anew_where_both_parts_of_the_error_cost_what_they_take_away() {
        let renewed = |between, pair, instances, pace: Pace| {
            let mut pace = pace;
            pace.weigh(between, pair, instances);
            pace.renewed_after()
        };
        let pace = Pace::default();
        assert_eq!(pace.renewed_after(), 60, "until it is known");
        assert_eq!(renewed(1e-4, 0.002_03, 4, pace), 45);
        assert_eq!(renewed(1e-4, 0.002_03, 8, pace), 63, "√2 times as many with twice as many servers");
        assert_eq!(renewed(1e-2, 0.002_03, 4, pace), 30, "not before half of the usual");
        assert_eq!(renewed(0.0, 0.002_03, 4, pace), 120, "and not later than twice as late");
        assert_eq!(renewed(-1e-4, 0.002_03, 4, pace), 120, "less than nothing between starts is nothing");
        // Starting them never takes more than half of the time: 1.6 s are 160 pairs of 10 ms.
        assert_eq!(renewed(1e-2, 0.002_03, 4, Pace { pair_ns: 10_000_000, ..pace }), 160);
    }

    /// A visit lasts four times as long as the start of a server at least, until one was measured.
    #[test]
    fn what_a_turn_takes_follows_from_the_starts_until_one_was_seen() {
        let mut pace = Pace::default();
        pace.opened(SECOND, 8);
        assert_eq!((pace.open_ns, pace.opening_ns, pace.turn_ns), (SECOND, SECOND, 1_500_000_000));
        pace.opened(8 * SECOND, 8);
        assert_eq!((pace.open_ns, pace.opening_ns, pace.turn_ns), (8 * SECOND, 9 * SECOND, 4 * SECOND));
        pace.turned(30 * SECOND, 12);
        assert_eq!(pace.turn_ns, 2_500_000_000);
        pace.opened(80 * SECOND, 8);
        assert_eq!((pace.open_ns, pace.turn_ns), (80 * SECOND, 2_500_000_000), "it was seen");
    }

    /// A tenth of the time: of 100 s that is 156 pairs of 64 ms, or 6 turns of 1.5 s.
    #[test]
    fn noise_takes_a_tenth_of_the_time_within_the_bounds_of_its_rule() {
        let pairs = |seconds: u64| {
            let clock = Clockwork::new(0, seconds * SECOND);
            (clock.noise_pairs(&Pace::default()), clock.noise_turns(&Pace::default()))
        };
        assert_eq!(pairs(100), (156, IN_TURN.first));
        assert_eq!(pairs(10), (Rule::QUICK.first, IN_TURN.first));
        assert_eq!(pairs(601), (Rule::QUICK.last, 40));
        assert_eq!(pairs(3_000), (Rule::QUICK.last, IN_TURN.last));
    }

    /// Rungs have 60 % of the time; confirming one has 30 % less three quarters of 40 % of them: 21 %.
    #[test]
    fn the_time_that_is_needed_holds_all_rungs_and_one_confirmation() {
        let needed = |rungs, rung_s: u64, confirm_s: u64| {
            Clockwork::needed_ns(rungs, rung_s * SECOND, confirm_s * SECOND)
        };
        assert!(is_near(needed(6, 10, 1), 100.0), "{}", needed(6, 10, 1));
        assert!(is_near(needed(1, 6, 21), 100.0), "{}", needed(1, 6, 21));
        assert_eq!(needed(0, 10, 0), 0);
    }

    /// A look of 30 pairs takes 3.52 s, and 60 s hold 17 of them; each of ten rungs has 6 s, which are 48 pairs of 90.7 ms after
    /// an opening.
    #[test]
    fn a_time_suffices_for_as_many_looks_as_it_holds() {
        let suffices = |rungs| Clockwork::new(0, 100 * SECOND).suffices(&Pace::default(), rungs);
        let ten = suffices(10);
        assert_eq!((ten.rungs, ten.measured, ten.pairs), (10, 10, 48));
        // 35.2 s are 60 % of that.
        assert!(is_near(ten.needed_ns, 58.666_666_7), "{}", ten.needed_ns);
        let forty = suffices(40);
        assert_eq!((forty.rungs, forty.measured, forty.pairs), (40, 17, Rule::QUICK.first));
        let one = suffices(1);
        assert_eq!((one.measured, one.pairs), (1, Rule::QUICK.last));
        // For one rung its confirmation is what takes longest: 3.52 s are 21 % of that.
        assert!(is_near(one.needed_ns, 16.761_904_8), "{}", one.needed_ns);
    }

    #[test]
    fn a_share_is_an_equal_one_or_the_least_that_serves_but_never_more_than_is_left() {
        for (now, end, parts, least, wanted) in [
            (100, 1_100, 4, 0, 250),
            (100, 1_100, 4, 250, 250),
            (100, 1_100, 4, 400, 400),
            (100, 1_100, 4, 2_000, 1_000),
            (100, 1_100, 0, 0, 1_000),
            (1_100, 1_100, 4, 10, 0),
            (1_200, 1_100, 4, 10, 0),
        ] {
            assert_eq!(share_ns(now, end, parts, least), wanted, "{now} to {end}, {parts} parts, {least}");
        }
        assert_eq!(Until::at(5), Until { share_ns: 5, most_ns: 5 });
    }
}
