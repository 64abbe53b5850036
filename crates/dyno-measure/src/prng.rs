//! Chance with a seed: xoshiro256++ (Blackman and Vigna, 2019), seeded by SplitMix64.
//!
//! The coin of a climb, the bootstrap and the simulated meter draw from here, so that a record's seed repeats its order.
//! Not for secrets.

/// A seeded pseudo-random generator. The same seed gives the same sequence on every machine.
#[derive(Debug, Clone)]
pub struct Prng {
    state: [u64; 4],
}

impl Prng {
    /// A generator for this seed; every seed, zero too, is a good one.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut mix = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut mix)) }
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = self.state;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.state = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in `0..bound`. The bias of the multiplication is below `bound / 2^64`.
    ///
    /// # Panics
    /// When `bound` is zero: an empty range has no member.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "below(0): an empty range has no member");
        let wide = u128::from(self.next_u64()) * u128::from(bound);
        (wide >> 64) as u64
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A fair coin.
    pub fn coin(&mut self) -> bool {
        self.next_u64() >> 63 == 1
    }

    /// Puts a slice into random order (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence_and_another_seed_another() {
        let draw = |seed| {
            let mut rng = Prng::new(seed);
            [rng.next_u64(), rng.next_u64(), rng.next_u64()]
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
    }

    #[test]
    fn below_is_uniform_within_five_sigma() {
        let mut rng = Prng::new(3);
        let mut counts = [0_u32; 6];
        for _ in 0..60_000 {
            counts[rng.below(6) as usize] += 1;
        }
        for count in counts {
            assert!((f64::from(count) - 10_000.0).abs() < 5.0 * 91.3, "{counts:?}");
        }
    }

    #[test]
    fn normal_has_mean_zero_and_unit_variance() {
        let mut rng = Prng::new(11);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..100_000 {
            let x = rng.normal();
            sum += x;
            squares += x * x;
        }
        assert!((sum / 1e5).abs() < 0.02);
        assert!((squares / 1e5 - 1.0).abs() < 0.03);
    }

    #[test]
    fn shuffle_keeps_every_item() {
        let mut items: Vec<u32> = (0..100).collect();
        Prng::new(5).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }

    /// The reference programs' own numbers: xoshiro256++ from 1, 2, 3, 4, and SplitMix64 from 0.
    #[test]
    fn the_generator_is_the_one_that_is_named() {
        let mut rng = Prng { state: [1, 2, 3, 4] };
        let drawn: Vec<u64> = (0..6).map(|_| rng.next_u64()).collect();
        let wanted = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
            9_973_669_472_204_895_162,
        ];
        assert_eq!(drawn, wanted);
        let seeds =
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4, 0x06c4_5d18_8009_454f, 0xf88b_b8a8_724c_81ec];
        assert_eq!(Prng::new(0).state, seeds);
    }

    /// The first number from 0 is 0x53175d61490b23df: 0.3246 of all.
    #[test]
    fn numbers_are_shares_of_the_whole_range() {
        let first = || Prng::new(0);
        assert_eq!([1, 3, 6, 1_000].map(|bound| first().below(bound)), [0, 0, 1, 324]);
        assert!((first().unit() - 0.324_575_268).abs() < 1e-9, "{}", first().unit());
        let mut rng = Prng::new(9);
        assert!((0..10_000).all(|_| (0.0..1.0).contains(&rng.unit())));
        // A fair coin has its half of ten thousand, give or take five errors of 50.
        let heads = (0..10_000).filter(|_| rng.coin()).count();
        assert!((4_750..=5_250).contains(&heads), "{heads}");
        // From one number alone, moved by 23 bits and added to itself: the highest bit is its own.
        let coins = [1 << 63, 1].map(|number| Prng { state: [number, 0, 0, 0] }.coin());
        assert_eq!(coins, [true, false]);
    }

    #[test]
    #[should_panic(expected = "below(0)")]
    fn nothing_is_drawn_from_an_empty_range() {
        Prng::new(1).below(0);
    }

    /// Of three items all six orders come, each in a sixth of the cases, give or take five errors of 29.
    #[test]
    fn every_order_is_as_likely() {
        let mut rng = Prng::new(4);
        let mut orders = std::collections::BTreeMap::<[u8; 3], u32>::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            rng.shuffle(&mut items);
            *orders.entry(items).or_default() += 1;
        }
        assert!(
            orders.len() == 6 && orders.values().all(|times| (855..=1_145).contains(times)),
            "{orders:?}"
        );
        let mut none: [u8; 0] = [];
        rng.shuffle(&mut none);
    }
}
