//! The counting allocator, installed in this test's own process.
#![allow(clippy::unwrap_used)]

use dyno_sys::alloc::{CountingAlloc, allocations};

#[global_allocator]
static ALLOCATOR: CountingAlloc = CountingAlloc;

/// One test only: others in this process would allocate at the same time.
#[test]
fn allocations_are_counted_exactly_and_over_all_threads() {
    let before = allocations();
    let boxed = std::hint::black_box(Box::new([0_u8; 100]));
    assert_eq!(allocations() - before, 1);
    drop(boxed);
    assert_eq!(allocations() - before, 1, "freeing is no allocation");

    let mut grown = std::hint::black_box(Vec::<u8>::with_capacity(10));
    grown.reserve_exact(1_000);
    assert_eq!(allocations() - before, 3, "growing in place is one more");
    let zeroed = std::hint::black_box(vec![0_u64; 50]);
    assert_eq!((allocations() - before, zeroed.len()), (4, 50));

    let quiet = allocations();
    let sum: u64 = (0..1_000_u64).map(std::hint::black_box).sum();
    assert_eq!((allocations() - quiet, sum), (0, 499_500));

    // More threads than there are counters, so that the shared one is used too.
    let before = allocations();
    for _ in 0..100 {
        std::thread::spawn(|| (0..100).for_each(|n| drop(std::hint::black_box(Box::new(n))))).join().unwrap();
    }
    let counted = allocations() - before;
    assert!((10_000..20_000).contains(&counted), "{counted} allocations of 10,000 and a few per thread");
}
