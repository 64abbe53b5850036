//! The load of a diagnosis, from before the first counter to after the last: what it came to, as observations hold it.

use std::time::Duration;

use dyno_load::Percentile;
use dyno_load::limit::{Limited, Signs};
use dyno_load::run::{LoadPlan, LoadReport};
use dyno_record::observation::{Limit, Load, Observation};

/// The first moments are not the server's usual ones: buffers grow, connections begin.
pub(super) const SETTLE: Duration = Duration::from_millis(500);

/// The figures; `rate` is the one of the window that was watched.
pub(super) fn in_figures(
    plan: &LoadPlan,
    report: &LoadReport,
    rate: Option<f64>,
    seen: &Observation,
) -> Load {
    let block = &report.block;
    let connections = plan.session.connections;
    let signs = Signs { server_busy: server_busy(seen), ..Signs::of(block, connections) };
    let limited = signs.limited();
    let errors = &block.errors;
    // Requests without an answer are slow ones too.
    let latency = |q: f64| match block.latency_at(q) {
        Percentile::Is(ns) | Percentile::AtLeast(ns) => ns,
        Percentile::TimedOut => plan.session.timeout_ns,
        Percentile::None => 0,
    };
    Load {
        connections: connections as u32,
        replies: block.replies,
        replies_per_s: rate.unwrap_or_else(|| report.replies_per_s()),
        wire_bytes: block.bytes + plan.session.target.bytes_of(block.replies),
        p50_ns: latency(0.5),
        p99_ns: latency(0.99),
        lost: errors.connect + errors.read + errors.write + errors.timeout,
        reconnects: block.reconnects,
        limited: match limited {
            Limited::No => Limit::No,
            Limited::Both => Limit::Both,
            Limited::Yes => Limit::Yes,
            Limited::CannotTell => Limit::Unknown,
        },
        limited_why: limited.in_words().to_owned(),
        busy: signs.busy(),
    }
}

/// How near the server is to a limit of its own: its busiest thread, or all it could have of the CPUs.
fn server_busy(seen: &Observation) -> Option<f64> {
    let wall_ns = seen.duration_s * 1e9;
    let busiest = seen.threads.iter().map(|thread| thread.run_ns).max()? as f64 / wall_ns;
    let could = seen.host.all_ns.saturating_sub(seen.host.own_ns + seen.host.foreign_ns + seen.host.steal_ns);
    let all = if could > 0 { seen.process.cpu_ns as f64 / could as f64 } else { 0.0 };
    Some(busiest.max(all).min(1.0))
}
