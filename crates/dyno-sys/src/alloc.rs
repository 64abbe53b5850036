//! A global allocator that counts, so that "no allocation per request" is a number and not a belief.
//!
//! The binary and the engine's tests install it; libraries only read the count. It stands over the system's allocator
//! and adds about a nanosecond: each of the first threads has a counter of its own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// Counters to give out; a worker per CPU and a few control threads fit, later threads share the last one.
const SHARDS: usize = 64;

/// Each counter on a cache line of its own.
#[repr(align(64))]
struct Shard(AtomicU64);

static COUNTS: [Shard; SHARDS] = [const { Shard(AtomicU64::new(0)) }; SHARDS];
static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's counter; `usize::MAX` before its first allocation. A plain number without a destructor, so that
    /// reaching it never allocates.
    static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The system allocator with a count of allocations: `#[global_allocator] static A: CountingAlloc = CountingAlloc;`
#[derive(Clone, Copy, Debug, Default)]
pub struct CountingAlloc;

/// Allocations and reallocations of this process so far, over all threads; 0 unless [`CountingAlloc`] is installed.
pub fn allocations() -> u64 {
    let given_out = NEXT.load(Relaxed).min(SHARDS);
    COUNTS[..given_out].iter().map(|shard| shard.0.load(Relaxed)).fold(0, u64::wrapping_add)
}

#[inline]
fn count() {
    let shard = MINE.with(|mine| if mine.get() == usize::MAX { take_shard(mine) } else { mine.get() });
    let counter = &COUNTS[shard].0;
    if shard < SHARDS - 1 {
        // Only this thread writes it: a load and a store cost less than an atomic addition.
        counter.store(counter.load(Relaxed).wrapping_add(1), Relaxed);
    } else {
        counter.fetch_add(1, Relaxed);
    }
}

#[cold]
fn take_shard(mine: &Cell<usize>) -> usize {
    let shard = NEXT.fetch_add(1, Relaxed).min(SHARDS - 1);
    mine.set(shard);
    shard
}

// SAFETY: every call goes to `System` with the arguments it came with; counting touches no memory of the caller's.
unsafe impl GlobalAlloc for CountingAlloc {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: our caller keeps the contract of GlobalAlloc, which is System's.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above; the block came from System.
        unsafe { System.dealloc(block, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above; the block came from System.
        unsafe { System.realloc(block, layout, size) }
    }
}
