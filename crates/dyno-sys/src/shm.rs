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

    /// Appends every whole record to `out` and frees their room; the bytes appended. Consumer's side only.
    pub fn drain(&self, out: &mut Vec<u8>) -> usize {
        let (head, mut tail) = (self.header[HEAD].load(Acquire), self.header[TAIL].load(Relaxed));
        let before = out.len();
        while tail != head {
            let len = self.slot(tail).load(Relaxed) as usize;
            let words = len.div_ceil(WORD_BYTES) as u64;
            if words >= head.wrapping_sub(tail) {
                // Two producers wrote at once: lengths mean nothing any more, so what is there is given up.
                tail = head;
                break;
            }
            self.copy_out(tail.wrapping_add(1), len, out);
            tail = tail.wrapping_add(1 + words);
        }
        // Release: the producer may overwrite only after these reads.
        self.header[TAIL].store(tail, Release);
        out.len() - before
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

    fn drained(ring: &Ring) -> Vec<u8> {
        let mut out = Vec::new();
        let appended = ring.drain(&mut out);
        assert_eq!(appended, out.len());
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
                ring.drain(&mut out);
                std::thread::yield_now();
            }
        });
        ring.drain(&mut out);
        let got: Vec<u32> = out.chunks(4).map(|four| u32::from_le_bytes(four.try_into().unwrap())).collect();
        assert!(got.into_iter().eq(0..50_000), "a record was lost, doubled or torn");
    }

    #[test]
    fn a_garbled_length_loses_text_and_nothing_else() {
        let ring = Ring::new(64).unwrap();
        ring.push(b"good");
        ring.slots[0].store(u64::MAX, Relaxed);
        assert_eq!(drained(&ring), b"");
        assert_eq!(ring.push(b"next"), Pushed::Whole);
        assert_eq!(drained(&ring), b"next");
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
