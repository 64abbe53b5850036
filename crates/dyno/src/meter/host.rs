//! What the host did meanwhile: time stolen by the hypervisor, CPU of other processes, the generator's own.

use dyno_sys::proc::{self, CpuStat};

use super::Arm;

/// Sums since the climb began. The kernel counts CPU time in ticks, so only sums over many blocks mean anything.
#[derive(Debug)]
pub(crate) struct Tally {
    at_start: Vec<CpuStat>,
    /// CPU of servers that were closed, and of what ran beside them, ns.
    closed_ns: u64,
    /// CPU of the servers in the blocks seen so far, ns.
    servers_ns: u64,
    /// CPU of the generator, ns.
    pub(crate) generator_ns: u64,
    /// Replies that it got.
    pub(crate) replies: u64,
    steal_told_ns: u64,
    foreign_told_ns: u64,
}

/// Where the machine's time went since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// All CPUs' time, ns.
    pub(crate) all_ns: u64,
    /// Busy, ns.
    pub(crate) busy_ns: u64,
    /// Stolen, ns.
    pub(crate) steal_ns: u64,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Self {
            at_start: proc::cpu_stat(),
            closed_ns: 0,
            servers_ns: 0,
            generator_ns: 0,
            replies: 0,
            steal_told_ns: 0,
            foreign_told_ns: 0,
        }
    }

    pub(crate) fn spent(&self) -> Spent {
        let now = proc::cpu_stat();
        self.at_start.iter().zip(&now).fold(Spent::default(), |sum, (before, after)| {
            let busy = |s: &CpuStat| s.user + s.nice + s.system + s.irq + s.softirq;
            let all = |s: &CpuStat| busy(s) + s.idle + s.iowait + s.steal;
            Spent {
                all_ns: sum.all_ns + all(after).saturating_sub(all(before)),
                busy_ns: sum.busy_ns + busy(after).saturating_sub(busy(before)),
                steal_ns: sum.steal_ns + after.steal.saturating_sub(before.steal),
            }
        })
    }

    /// CPU of others since the start, ns.
    pub(crate) fn foreign_ns(&self, spent: &Spent) -> u64 {
        let own = dyno_sys::clock::process_cpu_ns(dyno_sys::child::this()).unwrap_or(self.generator_ns);
        spent.busy_ns.saturating_sub(self.servers_ns + self.closed_ns + own)
    }

    /// Steal and foreign CPU that no block was told yet: summed over blocks they are the whole.
    pub(crate) fn news(&mut self, server_ns: u64) -> [u64; 2] {
        self.servers_ns += server_ns;
        let spent = self.spent();
        let foreign = self.foreign_ns(&spent);
        let news =
            [spent.steal_ns.saturating_sub(self.steal_told_ns), foreign.saturating_sub(self.foreign_told_ns)];
        self.steal_told_ns = self.steal_told_ns.max(spent.steal_ns);
        self.foreign_told_ns = self.foreign_told_ns.max(foreign);
        news
    }

    /// CPU of a process of ours that is neither server nor this one.
    pub(crate) fn beside(&mut self, cpu_ns: u64) {
        self.closed_ns += cpu_ns;
    }

    /// What a server burnt outside the blocks that were seen: its start, its warm-up, its proofs.
    pub(crate) fn close(&mut self, arm: &Arm) {
        let all = arm.clock.read_ns().unwrap_or(arm.seen_ns);
        self.closed_ns += all.saturating_sub(arm.seen_ns);
    }
}
