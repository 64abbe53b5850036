//! Four named threads, each in a function of its own; the main thread waits. Each multiplies by another number: equal
//! bodies would become one function.

use std::hint::black_box;
use std::thread;

macro_rules! worker {
    ($name:ident, $odd:literal) => {
        #[inline(never)]
        fn $name(seed: u64) -> u64 {
            (0..100_000).fold(seed, |state, round| black_box(state.wrapping_mul($odd) ^ round))
        }
    };
}

worker!(north, 6_364_136_223_846_793_005);
worker!(east, 3_935_559_000_370_003_845);
worker!(south, 2_862_933_555_777_941_757);
worker!(west, 3_202_034_522_624_059_733);

fn main() {
    let works: [(&str, fn(u64) -> u64); 4] = [("north", north), ("east", east), ("south", south), ("west", west)];
    let forever = |work: fn(u64) -> u64| {
        move || {
            (0..).for_each(|seed| {
                black_box(work(seed));
            })
        }
    };
    let started: Vec<_> = works
        .into_iter()
        .map(|(name, work)| thread::Builder::new().name(name.to_owned()).spawn(forever(work)).unwrap())
        .collect();
    started.into_iter().for_each(|thread| thread.join().unwrap());
}
