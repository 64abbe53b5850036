//! The noise of a simulated machine, as it was measured on a shared two-core one, or a recorded stretch of the real thing.
//!
//! Neighbours move the machine's speed slowly: drift is shared by neighbouring blocks (autocorrelation 0.87 at 50 ms, 0.5
//! at 1 s, 0.37 at 2 s), so that only fast alternation cancels it. On top each block has noise of its own, and a few are
//! wild: always dearer, never cheaper.

use std::sync::OnceLock;

use dyno_measure::Prng;
use dyno_measure::stats::mean;

use crate::tape;

/// Share of the drift's variance that is gone after a tenth of a second; the rest lasts for seconds. Together they give
/// the measured autocorrelations.
const FAST_SHARE: f64 = 0.3;
const FAST_NS: f64 = 0.1e9;
const SLOW_NS: f64 = 3e9;
/// One row of a recorded series is one block of 25 ms after 5 ms of settling.
const ROW_NS: u64 = 31_000_000;

/// How restless the machine is. Figures in brackets: standard error times √n of the trimmed mean of pairs, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weather {
    /// No noise at all: for tests of the order of things.
    None,
    /// A quiet half hour (5.3).
    Quiet,
    /// Neighbours at work (8).
    Contended,
    /// The worst half minute (12), with heavy tails.
    Worst,
    /// The real A/A series of 800 blocks, from a place drawn by the seed.
    Recorded,
    /// Only what neighbouring blocks share.
    DriftOnly,
}

/// Standard deviations (log) of drift and of single blocks; share and size of wild blocks.
struct Shape {
    drift: f64,
    block: f64,
    wild_share: f64,
    wild: f64,
}

impl Weather {
    fn shape(self) -> Shape {
        let (drift, block, wild_share, wild) = match self {
            Self::None | Self::Recorded => (0.0, 0.0, 0.0, 0.0),
            Self::DriftOnly => (0.06, 0.0, 0.0, 0.0),
            Self::Quiet => (0.06, 0.024, 0.05, 0.40),
            Self::Contended => (0.09, 0.037, 0.06, 0.60),
            Self::Worst => (0.12, 0.052, 0.085, 0.90),
        };
        Shape { drift, block, wild_share, wild }
    }
}

/// The state of the machine's noise at a moment.
pub(crate) struct Noise {
    weather: Weather,
    shape: Shape,
    fast: f64,
    slow: f64,
    at_ns: u64,
    start_row: u64,
}

impl Noise {
    pub(crate) fn new(weather: Weather, rng: &mut Prng) -> Self {
        let start_row = rng.below(tape::null().len() as u64);
        let (fast, slow) = (rng.normal(), rng.normal());
        Self { weather, shape: weather.shape(), fast, slow, at_ns: 0, start_row }
    }

    /// How much dearer (log) a block that begins now is, by the machine alone.
    pub(crate) fn of_block(&mut self, now_ns: u64, rng: &mut Prng) -> f64 {
        match self.weather {
            Weather::None => 0.0,
            Weather::Recorded => self.recorded(now_ns),
            Weather::Quiet | Weather::Contended | Weather::Worst | Weather::DriftOnly => {
                self.made(now_ns, rng)
            }
        }
    }

    fn made(&mut self, now_ns: u64, rng: &mut Prng) -> f64 {
        let passed = (now_ns - self.at_ns) as f64;
        self.at_ns = now_ns;
        self.fast = moved(self.fast, passed / FAST_NS, rng);
        self.slow = moved(self.slow, passed / SLOW_NS, rng);
        let drift = FAST_SHARE.sqrt() * self.fast + (1.0 - FAST_SHARE).sqrt() * self.slow;
        let wild =
            if rng.unit() < self.shape.wild_share { self.shape.wild * rng.normal().abs() } else { 0.0 };
        self.shape.drift * drift + self.shape.block * rng.normal() + wild
    }

    fn recorded(&self, now_ns: u64) -> f64 {
        static DEVIATIONS: OnceLock<Vec<f64>> = OnceLock::new();
        let deviations = DEVIATIONS.get_or_init(|| {
            let logs: Vec<f64> = tape::null().iter().map(|row| row.block.cpu_per_reply_ns().ln()).collect();
            let centre = mean(&logs);
            logs.iter().map(|log| log - centre).collect()
        });
        deviations[((self.start_row + now_ns / ROW_NS) % deviations.len() as u64) as usize]
    }
}

/// An Ornstein-Uhlenbeck step over `passed` lifetimes, unit variance.
pub(crate) fn moved(state: f64, passed: f64, rng: &mut Prng) -> f64 {
    let kept = (-passed).exp();
    kept * state + (1.0 - kept * kept).sqrt() * rng.normal()
}
