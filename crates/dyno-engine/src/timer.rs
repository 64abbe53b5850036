//! A timer wheel for connections: one entry each, examined when its deadline comes round.
//!
//! The worker arms an entry when a deadline comes nearer and merely stores a later tick otherwise: a request costs one
//! store, and the wheel finds out when it looks. It never reads a clock; ticks are arguments.
//!
//! Two levels: 1,024 slots of a tick each for what is due within 8.6 s, and 256 slots of 8.6 s for what is due later,
//! each of which knows its earliest deadline. So the wheel asks to be woken for a deadline and for nothing else.
//!
//! Invariants, asserted and planted as faults in the simulator's list:
//! - *nearest is ahead*: what [`Wheel::next`] answers is after everything that was examined;
//! - *linked is due*: an entry in a slot has a deadline, and the slot is examined no later than it.

use crate::fault::{Fault, planted};
use std::num::Wrapping;

/// Nanoseconds of one tick: 2^23 (8.4 ms), fine enough for the shortest sensible limit, and a shift instead of a division.
pub(crate) const TICK_NS_SHIFT: u32 = 23;

/// Slots of one tick; a power of two, so that a slot is the low bits of its tick.
const FINE: usize = 1 << FINE_BITS;
const FINE_BITS: u32 = 10;

/// Slots of `FINE` ticks: 36 minutes in all. What is due later is looked at once in that time and put back.
const COARSE: usize = 256;

const SLOTS: usize = FINE + COARSE;
const _: () =
    assert!(FINE.is_multiple_of(64) && COARSE.is_multiple_of(64), "slots are kept in words of 64 bits");
const _: () =
    assert!(COARSE.is_power_of_two() && SLOTS < UNLINKED as usize, "a slot is a masked number of 16 bits");

/// "No entry" in a link.
const NONE: u32 = u32::MAX;

/// "In no slot" in a link.
const UNLINKED: u16 = u16::MAX;

/// A moment in ticks; wraps after 416 days, and only differences are compared.
pub(crate) type Tick = Wrapping<u32>;

/// The tick in which `ns` (monotonic) lies.
#[inline]
pub(crate) fn tick_of(ns: u64) -> Tick {
    // The truncation is the wrap that `Tick` allows for.
    #[allow(clippy::cast_possible_truncation)]
    Wrapping((ns >> TICK_NS_SHIFT) as u32)
}

/// How many ticks are at least `ns`; capped at a quarter of the range, beyond which comparison would turn round.
pub(crate) fn ticks_of(ns: u64) -> u32 {
    let ticks = ns.div_ceil(1 << TICK_NS_SHIFT).min(1 << 30);
    u32::try_from(ticks).unwrap_or(1 << 30)
}

/// Whether `tick` is not after `now`.
#[inline]
pub(crate) fn reached(tick: Tick, now: Tick) -> bool {
    (now - tick).0 < 1 << 31
}

/// The earlier of two moments.
#[inline]
pub(crate) fn earlier(one: Tick, other: Tick) -> Tick {
    if reached(one, other) { one } else { other }
}

/// What an entry keeps for the wheel: 16 bytes inside its connection.
#[derive(Debug)]
pub(crate) struct Link {
    /// The tick at which the entry expires; may be put off freely, must be armed anew when it comes nearer.
    pub(crate) due: Tick,
    previous: u32,
    next: u32,
    slot: u16,
}

impl Link {
    pub(crate) const fn new() -> Link {
        Link { due: Wrapping(0), previous: NONE, next: NONE, slot: UNLINKED }
    }

    /// Whether the entry stands in a slot.
    pub(crate) fn is_linked(&self) -> bool {
        self.slot != UNLINKED
    }
}

/// Where the entries live: the wheel knows them by index.
pub(crate) trait Entries {
    /// The link of an entry that exists.
    fn link(&mut self, index: u32) -> &mut Link;
}

/// The wheel.
pub(crate) struct Wheel {
    heads: Box<[u32; SLOTS]>,
    /// A bit per slot that is not empty, so that the next deadline is found in a few words.
    occupied: [u64; SLOTS / 64],
    /// The earliest deadline in each coarse slot that is not empty, as it was when the entry was put there.
    coarse_due: Box<[Tick; COARSE]>,
    /// Everything up to this tick has been examined.
    examined: Tick,
    /// The next moment at which something must be examined: asked every turn, so it is kept.
    nearest: Option<Tick>,
    /// Whether `nearest` may be too early, because an entry was taken out.
    is_stale: bool,
}

impl Wheel {
    pub(crate) fn new(now: Tick) -> Wheel {
        Wheel {
            heads: Box::new([NONE; SLOTS]),
            occupied: [0; SLOTS / 64],
            coarse_due: Box::new([Wrapping(0); COARSE]),
            examined: now,
            nearest: None,
            is_stale: false,
        }
    }

    /// Puts the entry where it will be examined at its `due`, or at the next tick if that is over.
    pub(crate) fn arm(&mut self, entries: &mut impl Entries, index: u32) {
        self.disarm(entries, index);
        let (slot, at) = self.slot_for(entries.link(index).due);
        let head = std::mem::replace(&mut self.heads[slot], index);
        if head != NONE {
            entries.link(head).previous = index;
        }
        let link = entries.link(index);
        (link.previous, link.next) = (NONE, head);
        link.slot = u16::try_from(slot).expect("there are fewer slots than 65,536");
        self.occupy(slot, at);
        self.nearest = Some(self.nearest.map_or(at, |nearest| earlier(nearest, at)));
        debug_assert!(!reached(at, self.examined), "nearest is ahead: {at} after {}", self.examined);
    }

    /// Takes the entry out; nothing happens when it is in no slot.
    pub(crate) fn disarm(&mut self, entries: &mut impl Entries, index: u32) {
        let link = entries.link(index);
        let slot = usize::from(std::mem::replace(&mut link.slot, UNLINKED));
        if slot == usize::from(UNLINKED) {
            return;
        }
        debug_assert!(slot < SLOTS && self.is_occupied(slot), "an entry stands in a slot that has entries");
        let (previous, next) = (link.previous, link.next);
        debug_assert_eq!(
            previous == NONE,
            self.heads[slot] == index,
            "the first of a slot has none before it"
        );
        if next != NONE {
            entries.link(next).previous = previous;
        }
        match previous {
            NONE => self.heads[slot] = next,
            _ => entries.link(previous).next = next,
        }
        if self.heads[slot] == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            self.is_stale = true;
        }
    }

    /// Examines every slot up to `now` and appends the entries that have expired; they are in no slot afterwards.
    #[inline]
    pub(crate) fn advance(&mut self, entries: &mut impl Entries, now: Tick, expired: &mut Vec<u32>) {
        let passed = (now - self.examined).0;
        if passed != 0 && passed < 1 << 31 {
            self.advance_by(entries, passed, expired);
        }
    }

    // Once a tick. Inlined into `advance` it makes every turn save registers for it: 26 instructions.
    #[inline(never)]
    fn advance_by(&mut self, entries: &mut impl Entries, passed: u32, expired: &mut Vec<u32>) {
        let first = self.examined;
        let now = first + Wrapping(passed);
        self.examined = now;
        // A turn passes every slot once, however long the worker slept.
        for step in 1..=passed.min(FINE as u32) {
            let slot = (first + Wrapping(step)).0 as usize % FINE;
            if self.is_occupied(slot) {
                self.examine(entries, slot, now, expired);
            }
        }
        let blocks = ((now.0 >> FINE_BITS).wrapping_sub(first.0 >> FINE_BITS)) & (u32::MAX >> FINE_BITS);
        for block in 1..=blocks.min(COARSE as u32) {
            let slot = FINE + ((first.0 >> FINE_BITS).wrapping_add(block)) as usize % COARSE;
            if self.is_occupied(slot) {
                self.examine(entries, slot, now, expired);
            }
        }
        self.is_stale = !planted(Fault::NearestInThePast);
    }

    /// When the next slot must be examined; `None` when nothing is armed. Never a moment that was examined.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Tick> {
        if self.is_stale {
            self.nearest = self.search();
            self.is_stale = false;
        }
        debug_assert!(
            self.nearest.is_none_or(|nearest| !reached(nearest, self.examined)),
            "nearest is ahead: {:?} after {}",
            self.nearest,
            self.examined
        );
        self.nearest
    }

    /// The slot for a deadline, and when it will be examined.
    fn slot_for(&self, due: Tick) -> (usize, Tick) {
        let ahead = (due - self.examined).0;
        // What is due already is examined at the next tick.
        let ahead = if ahead == 0 || ahead >= 1 << 31 { 1 } else { ahead };
        let at = self.examined + Wrapping(ahead);
        if ahead < FINE as u32 {
            return (at.0 as usize % FINE, at);
        }
        let blocks = (at.0 >> FINE_BITS).wrapping_sub(self.examined.0 >> FINE_BITS) & (u32::MAX >> FINE_BITS);
        if blocks < COARSE as u32 {
            return (FINE + (at.0 >> FINE_BITS) as usize % COARSE, at);
        }
        let last = (self.examined.0 >> FINE_BITS).wrapping_add(COARSE as u32 - 1);
        (FINE + last as usize % COARSE, Wrapping(last << FINE_BITS))
    }

    fn occupy(&mut self, slot: usize, at: Tick) {
        debug_assert!(self.heads[slot] != NONE, "an occupied slot has an entry");
        let was_empty = !self.is_occupied(slot);
        self.occupied[slot / 64] |= 1 << (slot % 64);
        if let Some(due) = slot.checked_sub(FINE).map(|coarse| &mut self.coarse_due[coarse]) {
            *due = if was_empty { at } else { earlier(*due, at) };
        }
    }

    #[inline]
    fn is_occupied(&self, slot: usize) -> bool {
        self.occupied[slot / 64] & (1 << (slot % 64)) != 0
    }

    fn examine(&mut self, entries: &mut impl Entries, slot: usize, now: Tick, expired: &mut Vec<u32>) {
        let mut next = self.heads[slot];
        while next != NONE {
            let index = next;
            let link = entries.link(index);
            debug_assert_eq!(usize::from(link.slot), slot, "an entry stands in the slot that it names");
            next = link.next;
            if reached(link.due, now) {
                self.disarm(entries, index);
                expired.push(index);
            } else {
                self.arm(entries, index);
            }
        }
    }

    /// The first moment after the examined ones at which a slot has entries.
    fn search(&self) -> Option<Tick> {
        let start = (self.examined.0 as usize + 1) % FINE;
        let fine = first_bit(&self.occupied[..FINE / 64], start)
            .map(|distance| self.examined + Wrapping(distance as u32 + 1));
        let coarse = bits(&self.occupied[FINE / 64..]).map(|slot| {
            let due = self.coarse_due[slot];
            // A deadline that was passed while its slot's turn had not come cannot be: a slot is emptied in its turn.
            debug_assert!(!reached(due, self.examined), "linked is due: slot {slot} was passed over");
            due
        });
        coarse.chain(fine).reduce(earlier)
    }
}

/// How far after `start`, going round once, the first bit stands.
fn first_bit(words: &[u64], start: usize) -> Option<usize> {
    let count = words.len() * 64;
    for step in 0..=words.len() {
        let word = (start / 64 + step) % words.len();
        let mut bits = words[word];
        if step == 0 {
            bits &= u64::MAX << (start % 64);
        }
        if bits != 0 {
            return Some((word * 64 + bits.trailing_zeros() as usize + count - start) % count);
        }
    }
    None
}

/// The bits that stand, lowest first.
fn bits(words: &[u64]) -> impl Iterator<Item = usize> {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let rest = std::iter::successors(Some(word), |&rest| Some(rest & rest.wrapping_sub(1)));
        rest.take_while(|&rest| rest != 0).map(move |rest| at * 64 + rest.trailing_zeros() as usize)
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_measure::Prng;

    struct Table(Vec<Link>);

    impl Entries for Table {
        fn link(&mut self, index: u32) -> &mut Link {
            &mut self.0[index as usize]
        }
    }

    fn table(count: usize) -> Table {
        Table((0..count).map(|_| Link::new()).collect())
    }

    fn advance(wheel: &mut Wheel, entries: &mut Table, now: u32) -> Vec<u32> {
        let mut expired = Vec::new();
        wheel.advance(entries, Wrapping(now), &mut expired);
        expired
    }

    #[test]
    fn an_entry_expires_at_its_tick_and_not_before() {
        let (mut entries, mut wheel) = (table(1), Wheel::new(Wrapping(u32::MAX - 3)));
        entries.0[0].due = Wrapping(5);
        wheel.arm(&mut entries, 0);
        assert_eq!(wheel.next(), Some(Wrapping(5)));
        assert_eq!(advance(&mut wheel, &mut entries, 4), [0_u32; 0]);
        assert_eq!(advance(&mut wheel, &mut entries, 5), [0]);
        assert_eq!(wheel.next(), None);
    }

    #[test]
    fn an_entry_that_was_put_off_is_put_back() {
        let (mut entries, mut wheel) = (table(1), Wheel::new(Wrapping(0)));
        entries.0[0].due = Wrapping(10);
        wheel.arm(&mut entries, 0);
        entries.0[0].due = Wrapping(5_000);
        assert_eq!(advance(&mut wheel, &mut entries, 10), [0_u32; 0]);
        assert_eq!(advance(&mut wheel, &mut entries, 4_999), [0_u32; 0]);
        assert_eq!(advance(&mut wheel, &mut entries, 5_000), [0]);
    }

    #[test]
    fn a_long_sleep_passes_every_slot_once() {
        let (mut entries, mut wheel) = (table(3), Wheel::new(Wrapping(0)));
        for (index, due) in [(0, 3), (1, 1_000), (2, 3_000)] {
            entries.0[index as usize].due = Wrapping(due);
            wheel.arm(&mut entries, index);
        }
        let mut expired = advance(&mut wheel, &mut entries, 2_999);
        expired.sort_unstable();
        assert_eq!(expired, [0, 1]);
        assert_eq!(advance(&mut wheel, &mut entries, 3_000), [2]);
    }

    #[test]
    fn the_wheel_agrees_with_a_sorted_list() {
        let seed = 0x0077_4ee1;
        println!("seed {seed}");
        let mut random = Prng::new(seed);
        let (mut entries, mut wheel, mut now) = (table(50), Wheel::new(Wrapping(0)), 0_u32);
        let mut model: Vec<Option<u32>> = vec![None; 50];
        for _ in 0..20_000 {
            let index = u32::try_from(random.below(50)).unwrap();
            match random.below(4) {
                0 | 1 => {
                    let due = now + 1 + u32::try_from(random.below(40_000)).unwrap();
                    entries.0[index as usize].due = Wrapping(due);
                    wheel.arm(&mut entries, index);
                    model[index as usize] = Some(due);
                }
                2 => {
                    wheel.disarm(&mut entries, index);
                    model[index as usize] = None;
                }
                _ => {
                    now += u32::try_from(random.below(400)).unwrap();
                    let mut expired = advance(&mut wheel, &mut entries, now);
                    expired.sort_unstable();
                    let expected: Vec<u32> =
                        (0..50).filter(|&i| model[i as usize].is_some_and(|due| due <= now)).collect();
                    assert_eq!(expired, expected, "at {now}");
                    expected.iter().for_each(|&i| model[i as usize] = None);
                    let nearest = model.iter().flatten().min();
                    let next = wheel.next();
                    assert_eq!(next.is_some(), nearest.is_some());
                    assert!(
                        next.is_none_or(|next| next.0 > now && next.0 <= *nearest.unwrap()),
                        "it wakes before the nearest, and not for what is over"
                    );
                }
            }
        }
    }

    /// The old wheel burnt a core for 8.6 s here: two idle entries, and an advance that came one tick late.
    #[test]
    fn two_idle_entries_and_a_late_tick_leave_no_moment_in_the_past() {
        for late in 1..2_000 {
            let (mut entries, mut wheel) = (table(2), Wheel::new(Wrapping(0)));
            for (index, due) in [(0_u32, 7_200), (1, 7_201)] {
                entries.0[index as usize].due = Wrapping(due);
                wheel.arm(&mut entries, index);
            }
            let (mut now, mut wakes) = (0, 0);
            while let Some(next) = wheel.next() {
                assert!(next.0 > now, "the worker would wake at once, again and again");
                now = next.0 + late;
                wakes += 1;
                advance(&mut wheel, &mut entries, now);
            }
            assert!(wakes <= 2, "{wakes} wake-ups for two deadlines, {late} late");
        }
    }

    #[test]
    fn ticks_are_eight_milliseconds_rounded_down_for_moments_and_up_for_spans() {
        let tick = 1_u64 << 23;
        for (ns, moment) in
            [(0, 0), (tick - 1, 0), (tick, 1), (3 * tick + 5, 3), (tick << 32, 0), ((tick << 32) + tick, 1)]
        {
            assert_eq!(tick_of(ns), Wrapping(moment), "{ns}");
        }
        for (ns, span) in
            [(0, 0), (1, 1), (tick, 1), (tick + 1, 2), (tick << 30, 1 << 30), (u64::MAX, 1 << 30)]
        {
            assert_eq!(ticks_of(ns), span, "{ns}");
        }
    }

    #[test]
    fn moments_are_compared_round_the_end_of_their_range() {
        for (tick, now, is) in [
            (5, 5, true),
            (5, 6, true),
            (6, 5, false),
            (u32::MAX, 3, true),
            (3, u32::MAX, false),
            (0, (1 << 31) - 1, true),
            (0, 1 << 31, false),
        ] {
            assert_eq!(reached(Wrapping(tick), Wrapping(now)), is, "{tick} at {now}");
        }
        for (one, other, first) in
            [(3, 5, 3), (5, 3, 3), (4, 4, 4), (u32::MAX, 2, u32::MAX), (2, u32::MAX, u32::MAX)]
        {
            assert_eq!(earlier(Wrapping(one), Wrapping(other)), Wrapping(first), "{one} {other}");
        }
    }

    #[test]
    fn bits_are_found_from_any_place_on_and_all_of_them_in_their_order() {
        for (words, start, distance) in [
            ([0b1000, 0], 0, Some(3)),
            ([0b1000, 0], 3, Some(0)),
            ([0b1000, 0], 4, Some(127)),
            ([0, 1], 10, Some(54)),
            ([0, 1], 64, Some(0)),
            ([1, 1 << 63], 65, Some(62)),
            ([1, 0], 127, Some(1)),
            ([0, 0], 7, None),
        ] {
            assert_eq!(first_bit(&words, start), distance, "{words:?} from {start}");
        }
        assert_eq!(bits(&[0b101, 1 << 63, 0, 2]).collect::<Vec<_>>(), [0, 2, 127, 193]);
        assert_eq!(bits(&[0, 0]).count(), 0);
    }

    /// 262,144 ticks are 36 minutes: what is due later is looked at once in that time. Planted faults: it expires then, or is
    /// looked at in every slot.
    #[test]
    fn what_is_due_in_hours_is_looked_at_a_few_times_and_expires_in_time() {
        for (began, due) in [(0, 600_000_u32), (1_023, 263_167), (1_000, 262_143), (5, 262_149), (0, 261_120)]
        {
            let (mut entries, mut wheel) = (table(1), Wheel::new(Wrapping(began)));
            entries.0[0].due = Wrapping(due);
            wheel.arm(&mut entries, 0);
            let mut wakes = 0;
            while let Some(next) = wheel.next() {
                assert!(next.0 <= due, "{due}: it would be late, at {next}");
                wakes += 1;
                let expired = advance(&mut wheel, &mut entries, next.0);
                assert_eq!(!expired.is_empty(), next.0 == due, "{due}: at {next}");
            }
            assert!((1..=3).contains(&wakes) && !entries.0[0].is_linked(), "{due}: {wakes} times");
        }
    }

    #[test]
    fn what_is_due_already_is_examined_at_the_next_tick() {
        for due in [100, 99, 0] {
            let (mut entries, mut wheel) = (table(1), Wheel::new(Wrapping(100)));
            entries.0[0].due = Wrapping(due);
            wheel.arm(&mut entries, 0);
            assert_eq!(wheel.next(), Some(Wrapping(101)), "{due}");
            assert_eq!(advance(&mut wheel, &mut entries, 100), [0_u32; 0], "no time has passed");
            assert_eq!(advance(&mut wheel, &mut entries, 99), [0_u32; 0], "time does not go back");
            assert_eq!(advance(&mut wheel, &mut entries, 101), [0]);
        }
    }

    /// Three entries of one slot, of which any is taken out. Planted fault: its neighbours go with it.
    #[test]
    fn an_entry_is_taken_out_from_between_its_neighbours() {
        for out in 0..3_u32 {
            let (mut entries, mut wheel) = (table(3), Wheel::new(Wrapping(0)));
            for index in 0..3 {
                entries.0[index as usize].due = Wrapping(7);
                wheel.arm(&mut entries, index);
            }
            wheel.disarm(&mut entries, out);
            wheel.disarm(&mut entries, out);
            assert!(!entries.0[out as usize].is_linked() && wheel.next() == Some(Wrapping(7)));
            let mut expired = advance(&mut wheel, &mut entries, 7);
            expired.sort_unstable();
            let left: Vec<u32> = (0..3).filter(|index| *index != out).collect();
            assert_eq!(expired, left);
            assert_eq!(wheel.next(), None);
        }
    }
}
