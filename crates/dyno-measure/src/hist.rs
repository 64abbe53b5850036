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
}
