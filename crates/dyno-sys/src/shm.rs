//! Memory shared with children: counters and byte rings that outlive a worker.
//!
//! Made before a fork, mapped for the life of the process (nothing here is ever unmapped, so references are `'static`).
//! Every shared word is an atomic: a second writer by mistake garbles a ring's text but never memory.

use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// A ring larger than this is a mistake: 1 GiB would hold minutes of logs nobody reads.
pub const RING_BYTES_MAX: usize = 1 << 30;
const WORD_BYTES: usize = size_of::<u64>();
/// Producer, consumer and drop counts each have a cache line of their own, so that the two sides do not slow each other.
const LINE_WORDS: usize = 64 / WORD_BYTES;
const HEAD: usize = 0;
const TAIL: usize = LINE_WORDS;
const DROPPED: usize = 2 * LINE_WORDS;
const HEADER_WORDS: usize = 3 * LINE_WORDS;

/// An array of counters shared with every process forked after it was made. Copies are the same array.
#[derive(Clone, Copy, Debug)]
pub struct Counters {
    words: &'static [AtomicU64],
}

/// A ring of whole byte records with one producer and one consumer, which may be different processes.
///
/// Each record takes its length, a word, and padding to 8 bytes. A producer that dies in a push leaves nothing visible.
#[derive(Clone, Copy, Debug)]
pub struct Ring {
    header: &'static [AtomicU64],
    slots: &'static [AtomicU64],
}

/// Records that were read and are still in their ring.
#[must_use = "what was read stays in the ring until it is released"]
#[derive(Debug, PartialEq, Eq)]
pub struct Peeked {
    from: u64,
    upto: u64,
    /// How many.
    pub records: u64,
    /// The producer wrote what cannot be; released, the rest of the ring is given up.
    pub is_garbled: bool,
}

/// What became of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// All of it is in the ring.
    Whole,
    /// There was no room: none of it is in, and the drop is counted.
    Dropped,
}

impl Counters {
    /// `n` counters at zero, on pages of their own. Fails without memory.
    pub fn new(n: usize) -> io::Result<Counters> {
        Ok(Counters { words: map(n.max(1))? })
    }

    /// Counter `i`. Panics beyond the last.
    #[inline]
    pub fn get(&self, i: usize) -> &'static AtomicU64 {
        &self.words[i]
    }

    /// The `N` counters from `first` on. Panics beyond the last.
    pub fn row<const N: usize>(&self, first: usize) -> &'static [AtomicU64; N] {
        self.words[first..].first_chunk().expect("a row lies within the counters")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Never: there is always at least one.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

impl Ring {
    /// A ring of `capacity` bytes, a power of two from 64 to [`RING_BYTES_MAX`]; `EINVAL` otherwise.
    pub fn new(capacity: usize) -> io::Result<Ring> {
        if !capacity.is_power_of_two() || !(64..=RING_BYTES_MAX).contains(&capacity) {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let (header, slots) = map(HEADER_WORDS + capacity / WORD_BYTES)?.split_at(HEADER_WORDS);
        Ok(Ring { header, slots })
    }

    /// Puts one record in, wholly or not at all. Producer's side only. Costs no system call, lock or allocation.
    #[inline]
    pub fn push(&self, record: &[u8]) -> Pushed {
        let (head, tail) = (self.header[HEAD].load(Relaxed), self.header[TAIL].load(Acquire));
        let need = 1 + record.len().div_ceil(WORD_BYTES);
        let used = head.wrapping_sub(tail) as usize;
        if need > self.slots.len().saturating_sub(used) {
            // Only the producer writes this count, so a load and a store are enough.
            self.header[DROPPED].store(self.dropped() + 1, Relaxed);
            return Pushed::Dropped;
        }
        self.slot(head).store(record.len() as u64, Relaxed);
        for (at, piece) in (head.wrapping_add(1)..).zip(record.chunks(WORD_BYTES)) {
            let mut word = [0; WORD_BYTES];
            word[..piece.len()].copy_from_slice(piece);
            self.slot(at).store(u64::from_ne_bytes(word), Relaxed);
        }
        // Release: a consumer that sees the new head sees the words before it.
        self.header[HEAD].store(head.wrapping_add(need as u64), Release);
        Pushed::Whole
    }

    /// Appends whole records to `out`, `bytes_max` bytes of them at most but at least one record, and leaves them in the
    /// ring.
    /// Consumer's side only.
    ///
    /// A consumer that dies before [`Ring::release`] has taken nothing: the next one gets the same records.
    pub fn peek(&self, out: &mut Vec<u8>, bytes_max: usize) -> Peeked {
        let (tail, head) = self.ends();
        let (mut at, before) = (tail, out.len());
        let mut peeked = Peeked { from: tail, upto: tail, records: 0, is_garbled: false };
        let Some(head) = head else { return Peeked { is_garbled: true, ..peeked } };
        while at != head {
            let Some((length, next)) = self.record(at, head) else {
                // The whole ones before it are whole: it is met again when they are released.
                return Peeked { is_garbled: peeked.records == 0, ..peeked };
            };
            if peeked.records > 0 && length > bytes_max.saturating_sub(out.len() - before) {
                break;
            }
            self.copy_out(at.wrapping_add(1), length, out);
            at = next;
            peeked = Peeked { upto: at, records: peeked.records + 1, ..peeked };
        }
        peeked
    }

    /// Frees the room of what was read. Consumer's side only.
    pub fn release(&self, peeked: Peeked) {
        debug_assert_eq!(self.header[TAIL].load(Relaxed), peeked.from, "a ring has one consumer");
        // Of a garbled ring nothing is understood any more: what is there is given up.
        let upto = if peeked.is_garbled { self.header[HEAD].load(Acquire) } else { peeked.upto };
        // Release: the producer may overwrite only after these reads.
        self.header[TAIL].store(upto, Release);
    }

    /// How many whole records are in the ring.
    pub fn records(&self) -> u64 {
        let (mut at, head) = self.ends();
        let mut records = 0;
        while let Some((_, next)) = head.filter(|&head| at != head).and_then(|head| self.record(at, head)) {
            (at, records) = (next, records + 1);
        }
        records
    }

    /// Where the oldest record begins and where the newest ends; no end when the producer wrote what cannot be. It may
    /// be another user's process: what it writes is believed only where it is possible.
    fn ends(&self) -> (u64, Option<u64>) {
        let (head, tail) = (self.header[HEAD].load(Acquire), self.header[TAIL].load(Relaxed));
        let is_possible = head.wrapping_sub(tail) <= self.slots.len() as u64;
        (tail, is_possible.then_some(head))
    }

    /// The length of the record at `at`, and where the next one begins.
    fn record(&self, at: u64, head: u64) -> Option<(usize, u64)> {
        let length = self.slot(at).load(Relaxed);
        let words = length.div_ceil(WORD_BYTES as u64);
        let is_possible = words < head.wrapping_sub(at);
        is_possible.then_some((length as usize, at.wrapping_add(1).wrapping_add(words)))
    }

    /// Up to where records were put in; it only grows, in a unit of its own, and wraps.
    #[inline]
    pub fn pushed(&self) -> u64 {
        self.header[HEAD].load(Relaxed)
    }

    /// Up to where records were released, in the unit of [`Ring::pushed`].
    #[inline]
    pub fn released(&self) -> u64 {
        // Acquire: who acts on a release sees what its consumer did before.
        self.header[TAIL].load(Acquire)
    }

    /// Records that found no room, since the ring was made.
    #[inline]
    pub fn dropped(&self) -> u64 {
        self.header[DROPPED].load(Relaxed)
    }

    /// Bytes of room now taken, padding included.
    pub fn level(&self) -> usize {
        let tail = self.header[TAIL].load(Acquire);
        let words = self.header[HEAD].load(Acquire).wrapping_sub(tail) as usize;
        words.min(self.slots.len()) * WORD_BYTES
    }

    /// Bytes of room in all.
    pub fn capacity(&self) -> usize {
        self.slots.len() * WORD_BYTES
    }

    fn copy_out(&self, first: u64, len: usize, out: &mut Vec<u8>) {
        let mut left = len;
        let mut at = first;
        while left > 0 {
            let word = self.slot(at).load(Relaxed).to_ne_bytes();
            let take = left.min(WORD_BYTES);
            out.extend_from_slice(&word[..take]);
            left -= take;
            at = at.wrapping_add(1);
        }
    }

    #[inline]
    fn slot(&self, at: u64) -> &'static AtomicU64 {
        // The length is a power of two, so the mask keeps the index inside.
        &self.slots[at as usize & (self.slots.len() - 1)]
    }
}

/// Zeroed shared words, kept until the process ends.
fn map(words: usize) -> io::Result<&'static [AtomicU64]> {
    let bytes = words.checked_mul(WORD_BYTES).ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the mapping is `words` zeroed, page-aligned u64s, never unmapped, and only ever used as atomics.
    Ok(unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), words) })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::VecDeque;

    fn drain(ring: &Ring, out: &mut Vec<u8>) {
        let peeked = ring.peek(out, usize::MAX);
        assert_eq!(ring.records(), peeked.records, "what was read is still there");
        ring.release(peeked);
    }

    fn drained(ring: &Ring) -> Vec<u8> {
        let mut out = Vec::new();
        drain(ring, &mut out);
        out
    }

    #[test]
    fn records_come_out_whole_and_in_order() {
        let ring = Ring::new(64).unwrap();
        for record in [&b"one"[..], b"", b"exactly8", b"nine byte"] {
            assert_eq!(ring.push(record), Pushed::Whole);
        }
        assert_eq!(drained(&ring), b"oneexactly8nine byte");
        assert_eq!((ring.level(), ring.dropped()), (0, 0));
        let before = ring.pushed();
        ring.push(b"one more");
        assert_eq!((ring.released(), ring.pushed() > before), (before, true));
        drained(&ring);
        assert_eq!(ring.released(), ring.pushed());
    }

    #[test]
    fn a_record_without_room_is_dropped_whole_and_counted() {
        let ring = Ring::new(64).unwrap();
        assert_eq!(ring.push(&[1; 40]), Pushed::Whole);
        assert_eq!(ring.push(&[2; 16]), Pushed::Dropped);
        assert_eq!(ring.push(&[3; 8]), Pushed::Whole);
        assert_eq!((ring.level(), ring.dropped()), (64, 1));
        assert_eq!(drained(&ring), [&[1; 40][..], &[3; 8]].concat());
        assert_eq!(ring.push(&[9; 57]), Pushed::Dropped);
        assert_eq!(ring.push(&[9; 56]), Pushed::Whole);
    }

    #[test]
    fn random_pushes_and_drains_agree_with_a_queue() {
        let seed = 0x5eed_d1a0_u64;
        println!("seed {seed}");
        let mut state = seed;
        let mut below = |n: u64| {
            // splitmix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % n
        };
        let ring = Ring::new(256).unwrap();
        let (mut model, mut drops) = (VecDeque::new(), 0);
        for _ in 0..20_000 {
            if below(3) == 0 {
                assert_eq!(drained(&ring), model.drain(..).collect::<Vec<u8>>());
            } else {
                let record: Vec<u8> = (0..below(90)).map(|_| below(256) as u8).collect();
                match ring.push(&record) {
                    Pushed::Whole => model.extend(&record),
                    Pushed::Dropped => drops += 1,
                }
            }
        }
        assert_eq!(ring.dropped(), drops);
        assert!(drops > 0, "the ring was never full: the test is too weak");
    }

    #[test]
    fn two_threads_move_every_byte_that_was_not_dropped() {
        let ring = Ring::new(1 << 12).unwrap();
        let mut out = Vec::new();
        std::thread::scope(|scope| {
            let producer = scope.spawn(move || {
                let mut sent = 0_u32;
                while sent < 50_000 {
                    match ring.push(&sent.to_le_bytes()) {
                        Pushed::Whole => sent += 1,
                        Pushed::Dropped => std::thread::yield_now(),
                    }
                }
            });
            while !producer.is_finished() {
                let peeked = ring.peek(&mut out, 64);
                ring.release(peeked);
                std::thread::yield_now();
            }
        });
        drain(&ring, &mut out);
        let got: Vec<u32> = out.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect();
        assert!(got.into_iter().eq(0..50_000), "a record was lost, doubled or torn");
    }

    #[test]
    fn a_garbled_length_loses_text_and_nothing_else() {
        let ring = Ring::new(64).unwrap();
        ring.push(b"good");
        ring.slots[0].store(u64::MAX, Relaxed);
        let mut out = Vec::new();
        let peeked = ring.peek(&mut out, usize::MAX);
        assert!(peeked.is_garbled && out.is_empty());
        ring.release(peeked);
        assert_eq!(ring.push(b"next"), Pushed::Whole);
        assert_eq!(drained(&ring), b"next");
    }

    /// Red where one bad length gives up what stands before it.
    #[test]
    fn what_stands_before_a_garbled_length_is_read_and_released_by_itself() {
        let ring = Ring::new(64).unwrap();
        ring.push(b"good");
        ring.push(b"bad");
        ring.slots[2].store(u64::MAX, Relaxed);
        let mut out = Vec::new();
        let peeked = ring.peek(&mut out, usize::MAX);
        assert_eq!((peeked.records, peeked.is_garbled, out.as_slice()), (1, false, &b"good"[..]));
        ring.release(peeked);
        let mut out = Vec::new();
        let peeked = ring.peek(&mut out, usize::MAX);
        assert!(peeked.is_garbled && out.is_empty());
        ring.release(peeked);
        assert_eq!((ring.push(b"next"), drained(&ring)), (Pushed::Whole, b"next".to_vec()));
    }

    #[test]
    fn a_head_that_cannot_be_loses_text_and_nothing_else() {
        let ring = Ring::new(64).unwrap();
        for head in [u64::MAX, 1 << 40, 9] {
            ring.push(b"good");
            ring.header[HEAD].store(ring.header[TAIL].load(Relaxed).wrapping_add(head), Relaxed);
            let mut out = Vec::new();
            let peeked = ring.peek(&mut out, 1 << 20);
            assert!(peeked.is_garbled && out.is_empty(), "{head}: {peeked:?}");
            ring.release(peeked);
            assert_eq!((ring.push(b"next"), drained(&ring)), (Pushed::Whole, b"next".to_vec()));
        }
    }

    #[test]
    fn a_consumer_that_dies_before_it_releases_has_taken_nothing() {
        let ring = Ring::new(64).unwrap();
        for record in [&b"one"[..], b"two", b"three"] {
            ring.push(record);
        }
        let mut out = Vec::new();
        assert_eq!(ring.peek(&mut out, 10).records, 2);
        assert_eq!((out.as_slice(), ring.records()), (&b"onetwo"[..], 3));
        assert_eq!(ring.peek(&mut Vec::new(), 1).records, 1, "at least one, however long");
        assert_eq!(drained(&ring), b"onetwothree");
    }

    #[test]
    fn odd_capacities_are_refused() {
        for capacity in [0, 1, 63, 65, 100, RING_BYTES_MAX * 2] {
            assert!(Ring::new(capacity).is_err(), "{capacity}");
        }
    }

    #[test]
    fn copies_of_counters_are_the_same_counters() {
        let counters = Counters::new(3).unwrap();
        let copy = counters;
        counters.get(2).fetch_add(5, Relaxed);
        assert_eq!((copy.get(2).load(Relaxed), copy.get(0).load(Relaxed), copy.len()), (5, 0, 3));
    }
}
