//! The split of the time: fixed before the start, unspent time passes on.

use dyno_measure::judge::Rule;

/// Share of the time that is kept for leave-one-out and the total: they are the figures that are quoted.
const CONFIRM_SHARE: f64 = 0.30;
/// Share of the confirming time that belongs to the total.
const TOTAL_SHARE: f64 = 0.40;
/// Share of the time before confirming that measuring the noise may take.
const NOISE_SHARE: f64 = 0.10;
/// Two blocks of 30 ms with their edges.
const PAIR_NS: u64 = 64_000_000;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Clockwork {
    began_ns: u64,
    time_ns: u64,
}

impl Clockwork {
    pub(crate) fn new(began_ns: u64, time_ns: u64) -> Self {
        Self { began_ns, time_ns }
    }

    fn after(&self, share: f64) -> u64 {
        self.began_ns + (self.time_ns as f64 * share) as u64
    }

    /// When the last rung must be done.
    pub(crate) fn rungs_end_ns(&self) -> u64 {
        self.after(1.0 - CONFIRM_SHARE)
    }

    /// When leave-one-out must be done.
    pub(crate) fn confirm_end_ns(&self) -> u64 {
        self.after(1.0 - CONFIRM_SHARE * TOTAL_SHARE)
    }

    /// When everything must be done.
    pub(crate) fn end_ns(&self) -> u64 {
        self.after(1.0)
    }

    /// Pairs that measure the noise: those of a rung's last look, fewer when the time is short.
    pub(crate) fn noise_pairs(&self) -> usize {
        let affordable = (self.time_ns as f64 * NOISE_SHARE) as u64 / PAIR_NS;
        (affordable as usize).clamp(Rule::QUICK.first, Rule::QUICK.last)
    }

    pub(crate) fn left_ns(&self, now_ns: u64) -> u64 {
        self.end_ns().saturating_sub(now_ns)
    }
}

/// An equal share of what is left for each of `parts`.
pub(crate) fn share_ns(now_ns: u64, end_ns: u64, parts: usize) -> u64 {
    end_ns.saturating_sub(now_ns) / parts.max(1) as u64
}
