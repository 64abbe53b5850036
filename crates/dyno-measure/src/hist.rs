//! A latency histogram with a bounded relative error.
//!
//! Log-linear: exact below 2,048 ns, above that 1,024 buckets per power of two, so that a bucket's middle is at most
//! 1/2,048 (0.05 %) from any value in it. The load generator records into it; reports and the judge read it.

/// Buckets per power of two, as a power of two. Ten bits give the 0.05 % that the module promises.
const PRECISION_BITS: u32 = 10;
const SUB: u64 = 1 << PRECISION_BITS;
/// Values from 2^41 ns (36 minutes) on are counted there: no latency that this tool waits for is longer.
const VALUE_MAX: u64 = (1 << 41) - 1;
const BUCKETS: usize = bucket_of(VALUE_MAX) + 1;

/// Counts of values in nanoseconds.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    min: u64,
    max: u64,
    sum: f64,
    sum_of_squares: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram; 256 kB, untouched until used.
    #[must_use]
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0, min: u64::MAX, max: 0, sum: 0.0, sum_of_squares: 0.0 }
    }

    /// Counts one value, in nanoseconds.
    #[inline]
    pub fn record(&mut self, value_ns: u64) {
        self.record_n(value_ns, 1);
    }

    /// Counts a value `count` times.
    #[inline]
    pub fn record_n(&mut self, value_ns: u64, count: u64) {
        if count == 0 {
            return;
        }
        let value = value_ns.min(VALUE_MAX);
        self.counts[bucket_of(value)] += count;
        self.total += count;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let (value, count) = (value as f64, count as f64);
        self.sum += value * count;
        self.sum_of_squares += value * value * count;
    }

    /// Adds all of `other`'s counts.
    pub fn merge(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        let range = bucket_of(other.min)..=bucket_of(other.max);
        for (mine, theirs) in self.counts[range.clone()].iter_mut().zip(&other.counts[range]) {
            *mine += theirs;
        }
        self.total += other.total;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_of_squares += other.sum_of_squares;
        debug_assert!(self.is_whole(), "the total is the sum of all buckets");
    }

    /// Whether every value is in a bucket between the smallest and the largest.
    fn is_whole(&self) -> bool {
        self.occupied().map(|(_, count)| count).sum::<u64>() == self.total
    }

    /// Forgets everything but keeps its memory.
    pub fn clear(&mut self) {
        if !self.is_empty() {
            self.counts[bucket_of(self.min)..=bucket_of(self.max)].fill(0);
        }
        (self.total, self.min, self.max, self.sum, self.sum_of_squares) = (0, u64::MAX, 0, 0.0, 0.0);
        debug_assert!(self.counts.iter().all(|count| *count == 0), "a value outlives the clearing");
    }

    /// How many values were counted.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.total
    }

    /// Whether nothing was counted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The smallest value, exact; 0 when empty.
    #[must_use]
    pub fn min(&self) -> u64 {
        if self.is_empty() { 0 } else { self.min }
    }

    /// The largest value, exact (up to 36 minutes); 0 when empty.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.max
    }

    /// The mean, from the values themselves, not from the buckets; 0 when empty.
    #[must_use]
    pub fn mean(&self) -> f64 {
        if self.is_empty() { 0.0 } else { self.sum / self.total as f64 }
    }

    /// The standard deviation, from the values themselves; 0 when empty.
    #[must_use]
    pub fn stdev(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let mean = self.mean();
        (self.sum_of_squares / self.total as f64 - mean * mean).max(0.0).sqrt()
    }

    /// The smallest recorded value that at least the share `q` (0 to 1) of all values do not exceed; 0 when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        if self.is_empty() {
            return 0;
        }
        let wanted = ((q.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).clamp(1, self.total);
        let mut seen = 0;
        for (bucket, count) in self.occupied() {
            seen += count;
            if seen >= wanted {
                return middle_of(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// Share of values within one standard deviation of the mean, as wrk prints it; 0 when empty.
    #[must_use]
    pub fn within_stdev(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let (low, high) = (self.mean() - self.stdev(), self.mean() + self.stdev());
        let inside = |bucket: &(usize, u64)| (low..=high).contains(&(middle_of(bucket.0) as f64));
        self.occupied().filter(inside).map(|(_, count)| count).sum::<u64>() as f64 / self.total as f64
    }

    /// The occupied buckets as (middle in ns, count), ascending: for records and pictures.
    #[must_use]
    pub fn sparse(&self) -> Vec<(u64, u64)> {
        self.occupied().map(|(bucket, count)| (middle_of(bucket), count)).collect()
    }

    fn occupied(&self) -> impl Iterator<Item = (usize, u64)> {
        let first = if self.is_empty() { 0 } else { bucket_of(self.min) };
        let end = if self.is_empty() { 0 } else { bucket_of(self.max) + 1 };
        self.counts[first..end].iter().enumerate().filter(|(_, c)| **c > 0).map(move |(i, c)| (first + i, *c))
    }
}

const fn bucket_of(value: u64) -> usize {
    if value < 2 * SUB {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - PRECISION_BITS;
    (shift as u64 * SUB + (value >> shift)) as usize
}

const fn middle_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    if bucket < 2 * SUB {
        return bucket;
    }
    let shift = bucket / SUB - 1;
    ((bucket - shift * SUB) << shift) + (1 << shift) / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prng;

    #[test]
    fn every_value_stands_within_half_a_per_mille_of_its_bucket() {
        let mut rng = Prng::new(1);
        for _ in 0..100_000 {
            let value = rng.next_u64() >> (24 + rng.below(40));
            let value = value.min(VALUE_MAX);
            let error = (middle_of(bucket_of(value)) as f64 - value as f64).abs();
            assert!(error <= value as f64 / 2048.0 + 0.5, "{value}: off by {error}");
        }
    }

    #[test]
    fn buckets_are_contiguous_and_ordered() {
        let mut last = bucket_of(0);
        for value in 1..100_000 {
            let bucket = bucket_of(value);
            assert!(bucket == last || bucket == last + 1, "a gap before {value}");
            last = bucket;
        }
    }

    #[test]
    fn quantiles_agree_with_sorted_values() {
        let mut rng = Prng::new(2);
        let mut values: Vec<u64> =
            (0..20_000).map(|_| (200_000.0 * (rng.normal() * 0.7).exp()) as u64).collect();
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.record(*v));
        values.sort_unstable();
        for q in [0.001, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let exact = values[((q * 20_000.0_f64).ceil() as usize).max(1) - 1] as f64;
            let read = histogram.quantile(q) as f64;
            assert!((read / exact - 1.0).abs() < 0.001, "q {q}: {read} for {exact}");
        }
        assert_eq!((histogram.min(), histogram.max()), (values[0], values[19_999]));
    }

    #[test]
    fn merging_is_the_same_as_recording_all() {
        let (mut left, mut right, mut all) = (Histogram::new(), Histogram::new(), Histogram::new());
        for value in [3, 70, 4_000, 5_000_000, u64::MAX] {
            left.record(value);
            right.record(value / 2);
            all.record(value);
            all.record(value / 2);
        }
        left.merge(&right);
        left.merge(&Histogram::new());
        assert_eq!((left.sparse(), left.len()), (all.sparse(), all.len()));
        assert_eq!(left.quantile(0.3), all.quantile(0.3));
    }

    #[test]
    fn an_empty_one_answers_zero_and_a_cleared_one_is_empty() {
        let mut histogram = Histogram::new();
        assert_eq!((histogram.quantile(0.5), histogram.min(), histogram.max()), (0, 0, 0));
        histogram.record_n(9_000_000, 5);
        histogram.clear();
        assert!(histogram.is_empty() && histogram.sparse().is_empty());
    }

    #[test]
    fn sparse_form_keeps_counts_and_quantiles() {
        let mut histogram = Histogram::new();
        (1..5_000_u64).for_each(|v| histogram.record(v * 977));
        let mut copy = Histogram::new();
        histogram.sparse().iter().for_each(|(value, count)| copy.record_n(*value, *count));
        assert_eq!(copy.len(), histogram.len());
        assert_eq!(copy.sparse(), histogram.sparse());
    }

    #[test]
    #[should_panic(expected = "a value outlives the clearing")]
    fn no_value_outlives_the_clearing() {
        let mut histogram = Histogram::new();
        histogram.record(5);
        // A value that nobody counted in.
        histogram.counts[900] += 1;
        histogram.clear();
    }

    #[test]
    #[should_panic(expected = "the total is the sum of all buckets")]
    fn no_count_is_ever_lost() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        [1, 9].into_iter().for_each(|value| other.record(value));
        other.counts[9] = 0;
        one.merge(&other);
    }

    /// 2, 4, 4, 4, 5, 5, 7, 9: a mean of 5, and squares of 32 over eight. Six of them lie within 3 to 7.
    #[test]
    fn mean_and_spread_are_those_of_the_values() {
        let mut histogram = Histogram::new();
        [2, 5, 5, 7, 9].into_iter().for_each(|value| histogram.record(value));
        histogram.record_n(4, 3);
        assert!((histogram.mean() - 5.0).abs() < 1e-12 && (histogram.stdev() - 2.0).abs() < 1e-12);
        assert_eq!((histogram.within_stdev(), histogram.len()), (0.75, 8));
        let empty = Histogram::new();
        assert_eq!((empty.mean(), empty.stdev(), empty.within_stdev(), empty.len()), (0.0, 0.0, 0.0, 0));
        let mut one = Histogram::new();
        one.record_n(1_000, 3);
        assert_eq!((one.mean(), one.stdev(), one.within_stdev()), (1_000.0, 0.0, 1.0));
    }

    #[test]
    fn a_quantile_is_reached_with_its_share_of_the_values() {
        let mut histogram = Histogram::new();
        (1..=4).for_each(|value| histogram.record(10 * value));
        for (q, wanted) in [(0.0, 10), (0.25, 10), (0.26, 20), (0.5, 20), (0.51, 30), (0.75, 30), (0.76, 40)]
        {
            assert_eq!(histogram.quantile(q), wanted, "{q}");
        }
        assert_eq!([1.0, 7.0, -1.0].map(|q| histogram.quantile(q)), [40, 40, 10]);
        // The middle of a bucket is never told where no value is: 1,000,001 is alone in its own.
        let mut one = Histogram::new();
        one.record(1_000_001);
        assert_eq!([0.1, 0.9].map(|q| one.quantile(q)), [1_000_001; 2]);
    }

    /// Planted fault: a bucket's bounds lie where they are not exact any more, or its middle at one end.
    #[test]
    fn values_are_exact_up_to_two_thousand_and_stand_in_the_middle_above() {
        for (value, bucket, middle) in [
            (0, 0, 0),
            (2_047, 2_047, 2_047),
            // Two values a bucket from 2,048 on, four from 4,096.
            (2_048, 2_048, 2_049),
            (2_049, 2_048, 2_049),
            (2_050, 2_049, 2_051),
            (4_095, 3_071, 4_095),
            (4_096, 3_072, 4_098),
            (4_099, 3_072, 4_098),
            (4_100, 3_073, 4_102),
        ] {
            assert_eq!((bucket_of(value), middle_of(bucket)), (bucket, middle), "{value}");
        }
        let mut histogram = Histogram::new();
        histogram.record(u64::MAX);
        assert_eq!((histogram.max(), histogram.min()), ((1 << 41) - 1, (1 << 41) - 1), "36 minutes");
        assert_eq!(bucket_of(VALUE_MAX) + 1, histogram.counts.len());
    }

    /// Planted faults: nothing recorded is something; the ends or the sums are those of one of the two.
    #[test]
    fn ends_and_sums_follow_what_is_added_merged_and_forgotten() {
        let (mut one, mut other) = (Histogram::new(), Histogram::new());
        one.record_n(7, 0);
        assert!(one.is_empty() && (one.min(), one.max()) == (0, 0));
        one.record_n(50, 2);
        other.record(10);
        other.record(200);
        one.merge(&other);
        assert_eq!((one.min(), one.max(), one.len()), (10, 200, 4));
        assert!((one.mean() - 77.5).abs() < 1e-12, "{}", one.mean());
        // (2 · 2,500 + 100 + 40,000) / 4 − 77.5².
        assert!((one.stdev() - (11_275.0_f64 - 6_006.25).sqrt()).abs() < 1e-9, "{}", one.stdev());
        assert_eq!(one.sparse(), [(10, 1), (50, 2), (200, 1)]);
        one.clear();
        assert_eq!((one.min(), one.max(), one.len(), one.mean()), (0, 0, 0, 0.0));
        one.record(5);
        assert_eq!((one.min(), one.max(), one.stdev()), (5, 5, 0.0), "nothing of it is left");
        let mut empty = Histogram::default();
        empty.merge(&one);
        assert_eq!((empty.min(), empty.max(), empty.len()), (5, 5, 1));
    }
}
