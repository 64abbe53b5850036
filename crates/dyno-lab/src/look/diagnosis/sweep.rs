//! The load swept over connections, for the scalability law.

use std::sync::atomic::{AtomicBool, Ordering};

use dyno_load::run::{LoadPlan, step};
use dyno_load::{BlockReport, BlockSpec, Unanswered};
use dyno_measure::Prng;
use dyno_measure::usl::{self, Point, Usl};

use crate::failure::chain;

/// Repeats of each level: they make the bootstrap's intervals.
const REPEATS: usize = 3;
/// Levels double up to twice the load's own connections, and at least to this.
const CONNECTIONS_MIN: usize = 64;
/// A block of a level: long enough for some thousands of answers of a fast server.
const SPEC: BlockSpec = BlockSpec {
    settle_ns: 60_000_000,
    measure_ns: 300_000_000,
    replies_min: 50,
    ns_max: 1_000_000_000,
    drain_ns_max: 2_000_000_000,
    drain_slow_ns_max: 0,
};
/// The bootstrap's draws are the same for the same points.
const SEED: u64 = 0x0d15_ea5e;

/// The levels: 1, 2, 4 … connections.
fn levels(connections: usize) -> Vec<usize> {
    let most = (2 * connections).max(CONNECTIONS_MIN);
    std::iter::successors(Some(1), |n| Some(n * 2)).take_while(|n| *n <= most).collect()
}

/// Measures all levels and fits the law; what went wrong otherwise.
pub(super) fn sweep(plan: &LoadPlan, stop: &AtomicBool) -> Result<Usl, String> {
    let mut points = Vec::new();
    for connections in levels(plan.session.connections) {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        points.extend(level(plan, connections, stop)?);
    }
    usl::fit(&points, &mut Prng::new(SEED)).map_err(|error| error.to_string())
}

fn level(plan: &LoadPlan, connections: usize, stop: &AtomicBool) -> Result<Vec<Point>, String> {
    let blocks = step(plan, connections, &SPEC, REPEATS, stop).map_err(|error| chain(&error))?;
    blocks.iter().map(|block| point(connections, block).map_err(|error| chain(&error))).collect()
}

/// A level that was not answered at all has no throughput: the target died, or fell silent.
fn point(connections: usize, block: &BlockReport) -> Result<Point, Unanswered> {
    block.answered()?;
    // Of the time in which requests were sent: one straggler would make a level of it that is slow.
    let seconds = block.loaded.wall_ns.max(1) as f64 / 1e9;
    Ok(Point { n: connections as f64, throughput: block.loaded.replies as f64 / seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_load::Loaded;

    #[test]
    fn levels_double_beyond_the_loads_own() {
        assert_eq!(levels(4), [1, 2, 4, 8, 16, 32, 64]);
        assert_eq!(levels(100).last(), Some(&128));
    }

    /// Planted fault: the wait for one answer that takes a second is time in which the level answered nothing.
    #[test]
    fn a_straggler_makes_no_level_slow() {
        let loaded = Loaded { replies: 3_000, wall_ns: 300_000_000, ..Loaded::default() };
        let whole = BlockReport { replies: 3_000, wall_ns: 300_000_000, loaded, ..BlockReport::default() };
        let late = BlockReport { replies: 3_001, wall_ns: 1_300_000_000, ..whole.clone() };
        assert_eq!(point(8, &late).ok(), point(8, &whole).ok());
        assert_eq!(point(8, &whole).ok().map(|point| point.throughput), Some(10_000.0));
    }
}
