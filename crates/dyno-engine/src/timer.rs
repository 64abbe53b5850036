//! A timer wheel for connections: one entry each, examined when its slot comes round.
//!
//! The worker arms an entry when a deadline comes nearer and merely stores a later tick otherwise: a request costs one
//! store, and the wheel finds out when it looks. It never reads a clock; ticks are arguments.

use std::num::Wrapping;

/// Nanoseconds of one tick: 2^23 (8.4 ms), fine enough for the shortest sensible limit, and a shift instead of a division.
pub(crate) const TICK_NS_SHIFT: u32 = 23;

/// Slots of the wheel: 8.6 s at a turn. Later deadlines are looked at once a turn and put back.
const SLOTS: usize = 1_024;

const _: () =
    assert!(SLOTS.is_power_of_two() && SLOTS.is_multiple_of(64), "slots are masked and kept in words");

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

/// How many ticks are at least `ns`; capped at half the range, beyond which comparison would turn round.
pub(crate) fn ticks_of(ns: u64) -> u32 {
    let ticks = ns.div_ceil(1 << TICK_NS_SHIFT).min(1 << 30);
    u32::try_from(ticks).unwrap_or(1 << 30)
}

/// Whether `tick` is not after `now`.
#[inline]
pub(crate) fn reached(tick: Tick, now: Tick) -> bool {
    (now - tick).0 < 1 << 31
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
}

/// Where the entries live: the wheel knows them by index.
pub(crate) trait Entries {
    /// The link of an entry that exists.
    fn link(&mut self, index: u32) -> &mut Link;
}

/// The wheel.
pub(crate) struct Wheel {
    heads: Box<[u32; SLOTS]>,
    /// A bit per slot that is not empty, so that the next wake-up is found in sixteen words.
    occupied: [u64; SLOTS / 64],
    /// When the next slot that is not empty must be examined: asked every turn, so it is kept.
    nearest: Option<Tick>,
    /// Everything up to this tick has been examined.
    examined: Tick,
}

impl Wheel {
    pub(crate) fn new(now: Tick) -> Wheel {
        Wheel { heads: Box::new([NONE; SLOTS]), occupied: [0; SLOTS / 64], nearest: None, examined: now }
    }

    /// Puts the entry where it will be examined at its `due`, or a turn from now if that is earlier.
    pub(crate) fn arm(&mut self, entries: &mut impl Entries, index: u32) {
        self.disarm(entries, index);
        let slot = self.slot_for(entries.link(index).due);
        let head = std::mem::replace(&mut self.heads[slot], index);
        if head != NONE {
            entries.link(head).previous = index;
        }
        let link = entries.link(index);
        link.previous = NONE;
        link.next = head;
        link.slot = u16::try_from(slot).expect("SLOTS is 1024");
        if self.occupied[slot / 64] & (1 << (slot % 64)) == 0 {
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.nearest = self.first_occupied();
        }
    }

    /// Takes the entry out; nothing happens when it is in no slot.
    pub(crate) fn disarm(&mut self, entries: &mut impl Entries, index: u32) {
        let link = entries.link(index);
        let slot = usize::from(std::mem::replace(&mut link.slot, UNLINKED));
        if slot == usize::from(UNLINKED) {
            return;
        }
        let (previous, next) = (link.previous, link.next);
        if next != NONE {
            entries.link(next).previous = previous;
        }
        match previous {
            NONE => self.heads[slot] = next,
            _ => entries.link(previous).next = next,
        }
        if self.heads[slot] == NONE {
            self.occupied[slot / 64] &= !(1 << (slot % 64));
            self.nearest = self.first_occupied();
        }
    }

    /// Examines every slot up to `now` and appends the entries that have expired; they are in no slot afterwards.
    pub(crate) fn advance(&mut self, entries: &mut impl Entries, now: Tick, expired: &mut Vec<u32>) {
        let passed = (now - self.examined).0;
        if passed == 0 || passed >= 1 << 31 {
            return;
        }
        let first = self.examined;
        self.examined = now;
        // A turn of the wheel passes every slot once, however long the worker slept.
        for step in 1..=passed.min(SLOTS as u32) {
            let slot = (first + Wrapping(step)).0 as usize % SLOTS;
            if self.occupied[slot / 64] & (1 << (slot % 64)) != 0 {
                self.examine(entries, slot, now, expired);
            }
        }
    }

    /// How many ticks after `now` the next slot must be examined; `None` when nothing is armed.
    #[inline]
    pub(crate) fn next_in(&self, now: Tick) -> Option<u32> {
        self.nearest.map(|nearest| if reached(nearest, now) { 0 } else { (nearest - now).0 })
    }

    fn slot_for(&self, due: Tick) -> usize {
        let ahead = (due - self.examined).0;
        let ahead = match ahead {
            // What is due already is examined at the next tick.
            0 => 1,
            late if late >= 1 << 31 => 1,
            ahead => ahead.min(SLOTS as u32 - 1),
        };
        (self.examined + Wrapping(ahead)).0 as usize % SLOTS
    }

    fn examine(&mut self, entries: &mut impl Entries, slot: usize, now: Tick, expired: &mut Vec<u32>) {
        let mut next = self.heads[slot];
        while next != NONE {
            let index = next;
            let link = entries.link(index);
            next = link.next;
            let due = link.due;
            if reached(due, now) {
                self.disarm(entries, index);
                expired.push(index);
            } else {
                self.arm(entries, index);
            }
        }
    }

    /// The tick of the first slot after the examined ones that is not empty, going round once.
    fn first_occupied(&self) -> Option<Tick> {
        let start = (self.examined.0 as usize + 1) % SLOTS;
        let words = self.occupied.len();
        for step in 0..=words {
            let word = (start / 64 + step) % words;
            let mut bits = self.occupied[word];
            if step == 0 {
                bits &= u64::MAX << (start % 64);
            }
            if bits != 0 {
                let slot = word * 64 + bits.trailing_zeros() as usize;
                let distance = u32::try_from((slot + SLOTS - start) % SLOTS).expect("SLOTS is 1024");
                return Some(self.examined + Wrapping(distance + 1));
            }
        }
        None
    }
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
        assert_eq!(wheel.next_in(Wrapping(u32::MAX - 3)), Some(9));
        assert_eq!(advance(&mut wheel, &mut entries, 4), [0_u32; 0]);
        assert_eq!(advance(&mut wheel, &mut entries, 5), [0]);
        assert_eq!(wheel.next_in(Wrapping(5)), None);
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
                    let due = now + 1 + u32::try_from(random.below(3_000)).unwrap();
                    entries.0[index as usize].due = Wrapping(due);
                    wheel.arm(&mut entries, index);
                    model[index as usize] = Some(due);
                }
                2 => {
                    wheel.disarm(&mut entries, index);
                    model[index as usize] = None;
                }
                _ => {
                    now += u32::try_from(random.below(40)).unwrap();
                    let mut expired = advance(&mut wheel, &mut entries, now);
                    expired.sort_unstable();
                    let expected: Vec<u32> =
                        (0..50).filter(|&i| model[i as usize].is_some_and(|due| due <= now)).collect();
                    assert_eq!(expired, expected, "at {now}");
                    expected.iter().for_each(|&i| model[i as usize] = None);
                    let nearest = model.iter().flatten().min();
                    let wait = wheel.next_in(Wrapping(now));
                    assert_eq!(wait.is_some(), nearest.is_some());
                    assert!(
                        wait.is_none_or(|wait| now + wait <= *nearest.unwrap()),
                        "it wakes before the nearest"
                    );
                }
            }
        }
    }
}
