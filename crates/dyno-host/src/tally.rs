//! What the host did meanwhile: time stolen by the hypervisor, CPU of other processes, the generator's own.
//!
//! The lab's meter asks it after every block; it only reads.

use dyno_sys::proc::{self, CpuStat};

/// Sums since the climb began. The kernel counts CPU time in ticks, so only sums over many blocks mean anything.
#[derive(Debug)]
pub struct Tally {
    at_start: Vec<CpuStat>,
    /// CPU of servers that were closed, and of what ran beside them, ns.
    closed_ns: u64,
    /// CPU of the servers in the blocks seen so far, ns.
    servers_ns: u64,
    /// CPU of the generator, ns.
    pub generator_ns: u64,
    /// Replies that it got.
    pub replies: u64,
    steal_counted_ns: u64,
    foreign_counted_ns: u64,
}

/// Where the machine's time went since the start.
#[derive(Debug, Clone, Copy, Default)]
pub struct Spent {
    /// All CPUs' time, ns.
    pub all_ns: u64,
    /// Busy, ns.
    pub busy_ns: u64,
    /// Stolen, ns.
    pub steal_ns: u64,
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

impl Tally {
    /// Counting from now on.
    #[must_use]
    pub fn new() -> Self {
        Self {
            at_start: proc::cpu_stat(),
            closed_ns: 0,
            servers_ns: 0,
            generator_ns: 0,
            replies: 0,
            steal_counted_ns: 0,
            foreign_counted_ns: 0,
        }
    }

    /// Where all CPUs' time went since the start.
    #[must_use]
    pub fn spent(&self) -> Spent {
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
    #[must_use]
    pub fn foreign_ns(&self, spent: &Spent) -> u64 {
        let own = dyno_sys::clock::process_cpu_ns(dyno_sys::child::this()).unwrap_or(self.generator_ns);
        spent.busy_ns.saturating_sub(self.servers_ns + self.closed_ns + own)
    }

    /// Steal and foreign CPU since the last call: summed over blocks they are the whole.
    pub fn since_last(&mut self, server_ns: u64) -> [u64; 2] {
        self.servers_ns += server_ns;
        let spent = self.spent();
        let foreign = self.foreign_ns(&spent);
        let since = [
            spent.steal_ns.saturating_sub(self.steal_counted_ns),
            foreign.saturating_sub(self.foreign_counted_ns),
        ];
        self.steal_counted_ns = self.steal_counted_ns.max(spent.steal_ns);
        self.foreign_counted_ns = self.foreign_counted_ns.max(foreign);
        since
    }

    /// CPU of a process of ours that is neither server nor this one.
    pub fn beside(&mut self, cpu_ns: u64) {
        self.closed_ns += cpu_ns;
    }

    /// A server was closed that burnt this outside the blocks that were seen: its start, its warm-up, its proofs.
    pub fn close(&mut self, unseen_ns: u64) {
        self.closed_ns += unseen_ns;
    }
}
