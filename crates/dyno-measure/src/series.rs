//! Repeated measurements: blocks of load, pairs of blocks, trials of pairs.
//!
//! A *block* is one short stretch of load on one live server; a *pair* holds one block per side; a *trial* is all that was
//! measured to compare side B with side A. The judge reads trials, records keep them, nothing else is needed to judge
//! again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::student::student;
use crate::{Histogram, stats};

/// Interleaved groups into which a trial's latencies are pooled where they are not pooled by start; the spread between groups is
/// the error of the tail.
pub const TAIL_GROUPS: usize = 8;
/// Starts at least that stand for groups: of fewer the spread is hardly known.
pub const TAIL_STARTS: usize = 4;
/// Bits of precision of a recorded latency: 64 buckets per power of two, 0.8 %, far below the 10 % that is judged.
const TAIL_BITS: u32 = 6;

/// What one block measured. Times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "BlockRow", into = "BlockRow")]
pub struct Block {
    /// Right answers received in the measured part.
    pub replies: u64,
    /// Wrong or missing answers, of any class. One is enough to exclude a side.
    pub wrong: u64,
    /// From the end of settling to the last reply.
    pub wall_ns: u64,
    /// CPU of the server, all its threads and children, inside the measured part.
    pub cpu_in_ns: u64,
    /// CPU of the same server since its previous block ended: collectors, log writers, timers.
    pub cpu_off_ns: u64,
    /// Median latency of the block.
    pub p50_ns: u64,
    /// 99th percentile of the block; a trial's tail is pooled, see [`Trial::tails`].
    pub p99_ns: u64,
    /// CPU of the load generator's threads.
    pub generator_ns: u64,
    /// Replies per wake-up of the generator times 1,000: large when the generator is the limit.
    pub events_per_wait_milli: u64,
    /// CPU time the hypervisor kept from us, all CPUs (in ticks of the kernel: judge sums, not single values).
    pub steal_ns: u64,
    /// CPU time of other processes on our CPUs, in the same ticks.
    pub foreign_ns: u64,
}

/// Column names of a block in a record, in order.
pub const BLOCK_COLUMNS: [&str; 11] = [
    "replies",
    "wrong",
    "wall_ns",
    "cpu_in_ns",
    "cpu_off_ns",
    "p50_ns",
    "p99_ns",
    "generator_ns",
    "events_per_wait_milli",
    "steal_ns",
    "foreign_ns",
];

type BlockRow = [u64; BLOCK_COLUMNS.len()];

impl From<BlockRow> for Block {
    fn from(row: BlockRow) -> Self {
        let [
            replies,
            wrong,
            wall_ns,
            cpu_in_ns,
            cpu_off_ns,
            p50_ns,
            p99_ns,
            generator_ns,
            epw,
            steal_ns,
            foreign_ns,
        ] = row;
        let events_per_wait_milli = epw;
        Self {
            replies,
            wrong,
            wall_ns,
            cpu_in_ns,
            cpu_off_ns,
            p50_ns,
            p99_ns,
            generator_ns,
            events_per_wait_milli,
            steal_ns,
            foreign_ns,
        }
    }
}

impl From<Block> for BlockRow {
    fn from(b: Block) -> Self {
        [
            b.replies,
            b.wrong,
            b.wall_ns,
            b.cpu_in_ns,
            b.cpu_off_ns,
            b.p50_ns,
            b.p99_ns,
            b.generator_ns,
            b.events_per_wait_milli,
            b.steal_ns,
            b.foreign_ns,
        ]
    }
}

impl Block {
    /// CPU of the server per reply, in nanoseconds, with what it burnt since its previous block.
    #[must_use]
    pub fn cpu_per_reply_ns(&self) -> f64 {
        (self.cpu_in_ns + self.cpu_off_ns) as f64 / self.replies as f64
    }

    /// Blocks of one server as one: sums, quantiles of all their latencies, and the mean wake-up weighted by replies.
    #[must_use]
    pub fn sum(blocks: &[Self], latencies: &Histogram) -> Self {
        let of = |read: fn(&Self) -> u64| blocks.iter().map(read).sum::<u64>();
        let replies = of(|block| block.replies);
        Self {
            replies,
            wrong: of(|block| block.wrong),
            wall_ns: of(|block| block.wall_ns),
            cpu_in_ns: of(|block| block.cpu_in_ns),
            cpu_off_ns: of(|block| block.cpu_off_ns),
            p50_ns: latencies.quantile(0.50),
            p99_ns: latencies.quantile(0.99),
            generator_ns: of(|block| block.generator_ns),
            events_per_wait_milli: of(|block| block.events_per_wait_milli * block.replies) / replies.max(1),
            steal_ns: of(|block| block.steal_ns),
            foreign_ns: of(|block| block.foreign_ns),
        }
    }

    /// The value of `metric` in this block; not finite when there was no reply.
    #[must_use]
    pub fn value(&self, metric: Metric) -> f64 {
        match metric {
            Metric::CpuPerRequest => self.cpu_per_reply_ns(),
            Metric::SecondsPerRequest => self.wall_ns as f64 / self.replies as f64,
            Metric::P50 => self.p50_ns as f64,
        }
    }
}

/// What is compared; lower is better in all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Server CPU per request: the most sensitive on a noisy machine, and the default.
    #[default]
    CpuPerRequest,
    /// Wall time per request: where cores are added, or CPU is spent to save time.
    SecondsPerRequest,
    /// The blocks' median latency.
    P50,
}

impl std::fmt::Display for Metric {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::CpuPerRequest => "CPU per request",
            Self::SecondsPerRequest => "seconds per request",
            Self::P50 => "median latency",
        })
    }
}

/// One of the two things compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The setting before.
    A,
    /// The setting with the change.
    B,
}

impl Side {
    /// 0 for A, 1 for B.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// Both, A first.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];
}

/// Two adjacent blocks, one per side, in the order of a coin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pair {
    /// Which side ran first.
    pub first: Side,
    /// Which of the live instances of each side ran (the same number on both).
    pub instance: u32,
    /// The block on side A.
    pub a: Block,
    /// The block on side B.
    pub b: Block,
}

impl Pair {
    /// ln(B / A) of the metric.
    #[must_use]
    pub fn log_ratio(&self, metric: Metric) -> f64 {
        (self.b.value(metric) / self.a.value(metric)).ln()
    }

    /// The same without what its servers burnt outside of these blocks.
    #[must_use]
    pub fn inside(&self) -> Self {
        let [a, b] = [self.a, self.b].map(|block| Block { cpu_off_ns: 0, ..block });
        Self { a, b, ..*self }
    }

    /// The block of one side.
    #[must_use]
    pub fn block(&self, side: Side) -> &Block {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

/// Latencies of one side in one tail group: bucket (ns) to count.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tail(#[serde(with = "rows")] pub BTreeMap<u64, u64>);

/// JSON has no integer keys: a tail is written as `[[ns, count], …]`.
mod rows {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(map: &BTreeMap<u64, u64>, to: S) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, u64>, D::Error> {
        Ok(Vec::<(u64, u64)>::deserialize(from)?.into_iter().collect())
    }
}

impl Tail {
    /// The latencies of a histogram.
    #[must_use]
    pub fn of(latencies: &Histogram) -> Self {
        let mut tail = Self::default();
        tail.add(latencies);
        tail
    }

    fn add(&mut self, latencies: &Histogram) {
        for (value_ns, count) in latencies.sparse() {
            *self.0.entry(coarse(value_ns)).or_default() += count;
        }
    }

    /// Latencies in it.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The quantile `q` in nanoseconds, to 0.8 %; 0 when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> u64 {
        let wanted = (q * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        for (value_ns, count) in &self.0 {
            seen += count;
            if seen >= wanted {
                return *value_ns;
            }
        }
        0
    }
}

fn coarse(value_ns: u64) -> u64 {
    let bits = 64 - value_ns.leading_zeros();
    let drop = bits.saturating_sub(TAIL_BITS + 1);
    (value_ns >> drop << drop) + ((1 << drop) >> 1)
}

/// Pools several tails, e.g. all groups of a side.
pub fn pooled<'t>(tails: impl IntoIterator<Item = &'t Tail>) -> Tail {
    let mut all = Tail::default();
    for tail in tails {
        for (value_ns, count) in &tail.0 {
            *all.0.entry(*value_ns).or_default() += count;
        }
    }
    all
}

/// Everything that was measured to compare side B with side A.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trial {
    /// What is compared.
    pub metric: Metric,
    /// Every valid pair, in the order in which it was measured.
    pub pairs: Vec<Pair>,
    /// Pairs that were thrown away: too few replies, or a clock that could not be read.
    pub invalid_pairs: u64,
    /// Per tail group: latencies of A and of B.
    pub tails: Vec<[Tail; 2]>,
    /// Whether each start is a group; else groups are interleaved, as in older records.
    #[serde(default, skip_serializing_if = "is_false")]
    pub tails_by_start: bool,
    /// The largest resident memory of any instance, per side, in bytes.
    pub rss_peak_bytes: [u64; 2],
    /// Resident memory of every instance at its end, per side. Where one server is both sides, that with the change where a plan
    /// limits it, else none; empty in older records.
    #[serde(default, skip_serializing_if = "are_empty")]
    pub memory_bytes: [Vec<u64>; 2],
}

// serde hands over a reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_false(flag: &bool) -> bool {
    !flag
}

fn are_empty(sides: &[Vec<u64>; 2]) -> bool {
    sides.iter().all(Vec::is_empty)
}

/// Memory of servers of one side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bytes {
    /// Their mean.
    pub bytes: f64,
    /// Half width of its 99 % interval.
    pub half_width: f64,
}

impl Bytes {
    fn of(servers: &[u64]) -> Option<Self> {
        let values: Vec<f64> = servers.iter().map(|bytes| *bytes as f64).collect();
        let n = values.len();
        let error = || stats::deviation(&values) / (n as f64).sqrt();
        (n >= 2).then(|| Self {
            bytes: stats::mean(&values),
            half_width: student(stats::Z_99, (n - 1) as f64) * error(),
        })
    }
}

impl Trial {
    /// An empty trial.
    #[must_use]
    pub fn new(metric: Metric) -> Self {
        let tails = vec![<[Tail; 2]>::default(); TAIL_GROUPS];
        Self { metric, tails, ..Self::default() }
    }

    /// An empty trial of so many servers a side at the same time. All that one start serves is alike, and one that is slower
    /// makes a tail of its own: where there are enough, the starts are its tail groups.
    #[must_use]
    pub fn of_starts(metric: Metric, servers: usize) -> Self {
        match servers >= TAIL_STARTS {
            true => Self { metric, tails_by_start: true, ..Self::default() },
            false => Self::new(metric),
        }
    }

    /// Adds a pair and its latencies (A's, B's).
    ///
    /// # Panics
    /// When the trial was read from a record without latencies: its tails would be those of the later pairs alone.
    pub fn add(&mut self, pair: Pair, latencies: [&Histogram; 2]) {
        let group = if self.tails_by_start { pair.instance as usize } else { self.pairs.len() % TAIL_GROUPS };
        if self.tails_by_start {
            self.tails.resize_with(self.tails.len().max(group + 1), Default::default);
        }
        assert!(group < self.tails.len(), "{} tail groups instead of {TAIL_GROUPS}", self.tails.len());
        for side in Side::BOTH {
            self.tails[group][side.index()].add(latencies[side.index()]);
        }
        self.pairs.push(pair);
    }

    /// Memory of both sides, each over its servers; `None` where fewer than two of a side were read.
    #[must_use]
    pub fn memory(&self) -> Option<[Bytes; 2]> {
        let [a, b] = &self.memory_bytes;
        Some([Bytes::of(a)?, Bytes::of(b)?])
    }

    /// Memory of the side with the change; `None` where fewer than two servers were read.
    #[must_use]
    pub fn memory_with_change(&self) -> Option<Bytes> {
        Bytes::of(&self.memory_bytes[Side::B.index()])
    }

    /// Sums of one side over all pairs.
    #[must_use]
    pub fn totals(&self, side: Side) -> Totals {
        Totals::of(self.pairs.iter().map(|pair| pair.block(side)))
    }

    /// The quantile `q` of all latencies of a side, in nanoseconds.
    #[must_use]
    pub fn latency_ns(&self, side: Side, q: f64) -> u64 {
        pooled(self.tails.iter().map(|group| &group[side.index()])).quantile(q)
    }
}

/// Sums over blocks.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Totals {
    /// Right answers.
    pub replies: u64,
    /// Wrong or missing answers.
    pub wrong: u64,
    /// Wall time of the measured parts, ns.
    pub wall_ns: u64,
    /// Server CPU inside blocks, ns.
    pub cpu_in_ns: u64,
    /// Server CPU between the blocks of the same server, ns.
    pub cpu_off_ns: u64,
    /// Generator CPU, ns.
    pub generator_ns: u64,
    /// Time stolen by the hypervisor, ns.
    pub steal_ns: u64,
    /// CPU of foreign processes on our CPUs, ns.
    pub foreign_ns: u64,
}

impl Totals {
    /// Sums these blocks.
    pub fn of<'b>(blocks: impl IntoIterator<Item = &'b Block>) -> Self {
        blocks.into_iter().fold(Self::default(), |mut sum, block| {
            sum.replies += block.replies;
            sum.wrong += block.wrong;
            sum.wall_ns += block.wall_ns;
            sum.cpu_in_ns += block.cpu_in_ns;
            sum.cpu_off_ns += block.cpu_off_ns;
            sum.generator_ns += block.generator_ns;
            sum.steal_ns += block.steal_ns;
            sum.foreign_ns += block.foreign_ns;
            sum
        })
    }

    /// Server CPU per request in microseconds.
    #[must_use]
    pub fn cpu_us_per_request(&self) -> f64 {
        (self.cpu_in_ns + self.cpu_off_ns) as f64 / 1e3 / self.replies as f64
    }

    /// Requests per second of measured wall time.
    #[must_use]
    pub fn requests_per_second(&self) -> f64 {
        self.replies as f64 / (self.wall_ns as f64 / 1e9)
    }

    /// Share of the CPU that was burnt outside the server's own blocks, in percent.
    #[must_use]
    pub fn off_block_percent(&self) -> f64 {
        100.0 * self.cpu_off_ns as f64 / (self.cpu_in_ns + self.cpu_off_ns).max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn block(replies: u64, cpu_in_ns: u64) -> Block {
        Block { replies, cpu_in_ns, wall_ns: 25_000_000, ..Block::default() }
    }

    #[test]
    fn a_trial_survives_json() {
        let mut trial = Trial::new(Metric::P50);
        let mut latencies = Histogram::new();
        latencies.record_n(123_456, 9);
        let pair = Pair { first: Side::B, instance: 3, a: block(10, 100), b: block(20, 100) };
        trial.add(pair, [&latencies, &Histogram::new()]);
        let text = serde_json::to_string(&trial).unwrap();
        assert_eq!(serde_json::from_str::<Trial>(&text).unwrap(), trial);
    }

    #[test]
    fn a_trial_begins_with_its_metric_and_with_as_many_groups_as_it_needs() {
        for metric in [Metric::CpuPerRequest, Metric::SecondsPerRequest, Metric::P50] {
            let trials = [Trial::new(metric), Trial::of_starts(metric, TAIL_STARTS)];
            assert_eq!(trials.each_ref().map(|trial| trial.metric), [metric; 2]);
            assert_eq!(trials.map(|trial| trial.tails.len()), [TAIL_GROUPS, 0]);
        }
    }

    #[test]
    fn off_block_cpu_counts_against_its_own_side() {
        let quiet = block(1_000, 5_000_000);
        let noisy = Block { cpu_off_ns: 500_000, ..quiet };
        assert!((quiet.cpu_per_reply_ns() - 5_000.0).abs() < 1e-9);
        assert!((noisy.cpu_per_reply_ns() - 5_500.0).abs() < 1e-9);
        assert!((Totals::of([&quiet, &noisy]).off_block_percent() - 100.0 / 21.0).abs() < 1e-9);
    }

    #[test]
    fn blocks_of_one_server_add_up() {
        let (one, two) = (block(1_000, 5_000_000), Block { cpu_off_ns: 9, ..block(3_000, 6_000_000) });
        let (one, two) =
            (Block { events_per_wait_milli: 1_000, ..one }, Block { events_per_wait_milli: 5_000, ..two });
        let mut latencies = Histogram::new();
        latencies.record_n(70_000, 4_000);
        let sum = Block::sum(&[one, two], &latencies);
        assert_eq!((sum.replies, sum.cpu_in_ns, sum.cpu_off_ns), (4_000, 11_000_000, 9));
        assert_eq!((sum.wall_ns, sum.events_per_wait_milli), (50_000_000, 4_000));
        assert_eq!(sum.p50_ns, latencies.quantile(0.5));
    }

    /// Planted fault: a column that is multiplied, or left at what the first block had.
    #[test]
    fn totals_add_up_every_column() {
        let block = |times: u64| Block {
            replies: times,
            wrong: 2 * times,
            wall_ns: 3 * times,
            cpu_in_ns: 4 * times,
            cpu_off_ns: 5 * times,
            generator_ns: 6 * times,
            steal_ns: 7 * times,
            foreign_ns: 8 * times,
            ..Block::default()
        };
        let sum = Totals::of(&[block(1), block(10), block(100)]);
        assert_eq!([sum.replies, sum.wrong, sum.wall_ns, sum.cpu_in_ns], [111, 222, 333, 444]);
        assert_eq!([sum.cpu_off_ns, sum.generator_ns, sum.steal_ns, sum.foreign_ns], [555, 666, 777, 888]);
    }

    #[test]
    fn a_coarse_value_stands_within_one_percent() {
        for value in [1_u64, 127, 128, 129, 5_000, 123_456, 987_654_321] {
            let error = (coarse(value) as f64 / value as f64 - 1.0).abs();
            assert!(error < 0.01, "{value} became {}", coarse(value));
        }
    }

    #[test]
    fn tails_pool_over_groups() {
        let mut trial = Trial::new(Metric::P50);
        for n in 1..=100_u64 {
            let mut latencies = Histogram::new();
            latencies.record(n * 1_000_000);
            let pair = Pair { first: Side::A, instance: 0, a: block(1, 1), b: block(1, 1) };
            trial.add(pair, [&latencies, &latencies]);
        }
        let p99 = trial.latency_ns(Side::A, 0.99) as f64;
        assert!((p99 / 99e6 - 1.0).abs() < 0.01, "{p99}");
    }

    #[test]
    #[should_panic(expected = "0 tail groups")]
    fn a_trial_without_tails_gets_no_pair() {
        let pair = Pair { first: Side::A, instance: 0, a: block(1, 1), b: block(1, 1) };
        Trial::default().add(pair, [&Histogram::new(), &Histogram::new()]);
    }

    /// Planted fault: a column that stands in another one's place, or is left out.
    #[test]
    fn a_block_is_written_as_its_columns_in_their_order() {
        let row: BlockRow = std::array::from_fn(|at| at as u64 + 1);
        let block = Block::from(row);
        let named = [
            ("replies", block.replies),
            ("wrong", block.wrong),
            ("wall_ns", block.wall_ns),
            ("cpu_in_ns", block.cpu_in_ns),
            ("cpu_off_ns", block.cpu_off_ns),
            ("p50_ns", block.p50_ns),
            ("p99_ns", block.p99_ns),
            ("generator_ns", block.generator_ns),
            ("events_per_wait_milli", block.events_per_wait_milli),
            ("steal_ns", block.steal_ns),
            ("foreign_ns", block.foreign_ns),
        ];
        assert_eq!(named.map(|(name, _)| name), BLOCK_COLUMNS);
        assert_eq!(named.map(|(_, read)| read), row);
        assert_eq!(BlockRow::from(block), row);
        assert_eq!(serde_json::to_string(&block).unwrap(), "[1,2,3,4,5,6,7,8,9,10,11]");
    }

    #[test]
    fn what_older_records_had_not_is_left_out_of_a_trial_that_has_it_not() {
        let written = |trial: &Trial| serde_json::to_string(trial).unwrap();
        let plain = written(&Trial::new(Metric::P50));
        assert!(!plain.contains("tails_by_start") && !plain.contains("memory_bytes"), "{plain}");
        let by_start = written(&Trial::of_starts(Metric::P50, TAIL_STARTS));
        assert!(by_start.contains(r#""tails_by_start":true"#), "{by_start}");
        for side in [0, 1] {
            let mut trial = Trial::new(Metric::P50);
            trial.memory_bytes[side] = vec![7];
            assert!(written(&trial).contains("memory_bytes"), "of side {side} alone");
        }
    }

    #[test]
    fn a_metric_reads_its_own_figure_per_reply() {
        let block = Block {
            replies: 1_000,
            wall_ns: 25_000_000,
            cpu_in_ns: 5_000_000,
            cpu_off_ns: 1_000_000,
            p50_ns: 300_000,
            p99_ns: 900_000,
            ..Block::default()
        };
        for (metric, value, words) in [
            (Metric::CpuPerRequest, 6_000.0, "CPU per request"),
            (Metric::SecondsPerRequest, 25_000.0, "seconds per request"),
            (Metric::P50, 300_000.0, "median latency"),
        ] {
            assert_eq!((block.value(metric), metric.to_string().as_str()), (value, words));
        }
        let none = Block { replies: 0, ..block };
        assert!(
            !none.value(Metric::CpuPerRequest).is_finite()
                && !none.value(Metric::SecondsPerRequest).is_finite()
        );
        let twice = Block { cpu_in_ns: 11_000_000, ..block };
        let pair = Pair { first: Side::B, instance: 0, a: block, b: twice };
        assert!(
            (pair.log_ratio(Metric::CpuPerRequest) - 2_f64.ln()).abs() < 1e-12,
            "B over A, whoever was first"
        );
        assert_eq!(Side::BOTH.map(|side| pair.block(side).cpu_in_ns), [5_000_000, 11_000_000]);
        assert_eq!(Side::BOTH.map(Side::index), [0, 1]);
    }

    /// Every column of one server's blocks, and a wake-up that is weighed by replies: (1 · 2 + 3 · 6) / 4 = 5.
    #[test]
    fn blocks_of_one_server_add_up_in_every_column() {
        let one = Block::from([1, 20, 300, 4_000, 5, 6, 7, 8, 2, 10, 11]);
        let two = Block::from([3, 1, 1, 1, 1, 1, 1, 1, 6, 1, 1]);
        let mut latencies = Histogram::new();
        latencies.record_n(100, 90);
        latencies.record_n(1_000, 10);
        let sum = Block::sum(&[one, two], &latencies);
        assert_eq!(BlockRow::from(sum), [4, 21, 301, 4_001, 6, 100, 1_000, 9, 5, 11, 12]);
        let none = Block::sum(&[], &Histogram::new());
        assert_eq!(none, Block::default(), "of no replies nothing is divided");
    }

    #[test]
    fn a_coarse_value_is_the_middle_of_64_buckets_per_power_of_two() {
        for (value, middle) in [
            (0, 0),
            (1, 1),
            (127, 127),
            (128, 129),
            (129, 129),
            (130, 131),
            (255, 255),
            (256, 258),
            (259, 258),
            (260, 262),
            (1_000_000, 999_424 + 4_096),
        ] {
            assert_eq!(coarse(value), middle, "{value}");
        }
    }

    #[test]
    fn a_tails_quantile_is_reached_with_its_share() {
        let tail = Tail(BTreeMap::from([(10, 50), (20, 49), (30, 1)]));
        assert_eq!(tail.count(), 100);
        let read = [0.0, 0.5, 0.51, 0.99, 0.991, 1.0].map(|q| tail.quantile(q));
        assert_eq!(read, [10, 10, 20, 20, 30, 30]);
        assert_eq!((Tail::default().quantile(0.99), Tail::default().count()), (0, 0));
        let all = pooled([&tail, &Tail(BTreeMap::from([(20, 1), (40, 2)]))]);
        assert_eq!(all, Tail(BTreeMap::from([(10, 50), (20, 50), (30, 1), (40, 2)])));
        let mut latencies = Histogram::new();
        latencies.record_n(128, 2);
        latencies.record_n(129, 3);
        assert_eq!(Tail::of(&latencies), Tail(BTreeMap::from([(129, 5)])), "what falls together is added");
    }

    /// Planted faults: groups of starts where there are too few, or pairs that are interleaved where there are enough.
    #[test]
    fn latencies_go_to_the_group_of_their_pair() {
        let mut latencies = Histogram::new();
        latencies.record(100);
        let filled = |servers: usize, instances: &[u32]| {
            let mut trial = Trial::of_starts(Metric::P50, servers);
            for instance in instances {
                let pair = Pair { first: Side::A, instance: *instance, a: block(1, 1), b: block(1, 1) };
                trial.add(pair, [&latencies, &Histogram::new()]);
            }
            assert!(trial.tails.iter().all(|[_, b]| b.count() == 0), "A's are A's");
            (trial.tails_by_start, trial.tails.iter().map(|[a, _]| a.count()).collect::<Vec<_>>())
        };
        assert_eq!(filled(TAIL_STARTS, &[0, 2, 2, 5]), (true, vec![1, 0, 2, 0, 0, 1]));
        assert_eq!(filled(TAIL_STARTS - 1, &[0, 2, 2]), (false, vec![1, 1, 1, 0, 0, 0, 0, 0]));
        assert_eq!(
            filled(0, &[9; 9]),
            (false, vec![2, 1, 1, 1, 1, 1, 1, 1]),
            "the ninth goes to the first group"
        );
    }

    /// Servers of 9 and 11 million bytes: an error of 1 million, and Student's t of one degree where the normal quantile is 2.576.
    #[test]
    fn memory_is_told_of_two_servers_or_more_with_its_interval() {
        let trial =
            |a: &[u64], b: &[u64]| Trial { memory_bytes: [a.to_vec(), b.to_vec()], ..Trial::default() };
        let two = [9_000_000, 11_000_000];
        let told = trial(&[5_000_000; 3], &two).memory_with_change().unwrap();
        assert!((told.bytes - 1e7).abs() < 1e-6, "{told:?}");
        assert!((told.half_width / 1e6 - student(2.576, 1.0)).abs() < 1e-9, "{told:?}");
        let [a, b] = trial(&[5_000_000; 3], &two).memory().unwrap();
        assert_eq!((a.bytes, a.half_width, b), (5e6, 0.0, told));
        assert_eq!(trial(&two, &[1]).memory_with_change(), None);
        assert_eq!((trial(&two, &[1]).memory(), trial(&[1], &two).memory()), (None, None));
    }

    /// Two blocks of a second and of three with four thousand replies in all.
    #[test]
    fn totals_are_told_per_request_and_per_second() {
        let block = |replies, seconds: u64, cpu_in_ns, cpu_off_ns| Block {
            replies,
            wall_ns: seconds * 1_000_000_000_u64,
            cpu_in_ns,
            cpu_off_ns,
            ..Block::default()
        };
        let mut trial = Trial::new(Metric::P50);
        for (first, b) in
            [(Side::A, block(1_000, 1, 6_000_000, 0)), (Side::B, block(3_000, 3, 9_000_000, 5_000_000))]
        {
            trial.pairs.push(Pair { first, instance: 0, a: block(10, 1, 70_000, 0), b });
        }
        let totals = trial.totals(Side::B);
        assert!((totals.requests_per_second() - 1_000.0).abs() < 1e-9, "{totals:?}");
        assert!((totals.cpu_us_per_request() - 5.0).abs() < 1e-9, "{totals:?}");
        assert!((totals.off_block_percent() - 25.0).abs() < 1e-9, "{totals:?}");
        assert!((trial.totals(Side::A).cpu_us_per_request() - 7.0).abs() < 1e-9);
        assert_eq!(Totals::default().off_block_percent(), 0.0, "of no CPU nothing was burnt outside");
    }
}
