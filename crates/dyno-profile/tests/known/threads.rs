//! Four named threads, each in a function of its own for as long as the others; the main thread waits.

use std::hint::black_box;
use std::thread;

macro_rules! worker {
    ($name:ident) => {
        #[inline(never)]
        fn $name(seed: u64) -> u64 {
            (0..100_000).fold(seed, |state, round| black_box(state.wrapping_mul(6_364_136_223_846_793_005) ^ round))
        }
    };
}

worker!(north);
worker!(east);
worker!(south);
worker!(west);

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
