//! Fewer cores than threads: who can run waits for its turn, first come first served, and gives way after a slice. As in the
//! probe whoever has a core next takes over what was inserted while it waited behind the one before.

use std::collections::VecDeque;

use dyno_measure::Prng;

use super::{Machine, PERIOD_NS, Spun, State, Thread};

/// How long a thread runs while another waits for its core: out of step with samples, which keep no step with any tick.
const SLICE_NS: u64 = 2_830_000;
/// Shorter queueing is the price of any hand-over on one core.
const QUEUED_NS_MIN: u64 = 100_000;

pub(super) struct Cores {
    is_limited: bool,
    /// When each of them is sampled.
    phases: Vec<u64>,
    free: Vec<usize>,
    ready: VecDeque<usize>,
}

impl Cores {
    pub(super) fn new(cores: Option<usize>, rng: &mut Prng) -> Cores {
        let count = cores.unwrap_or(0);
        let phases = (0..count).map(|_| rng.below(PERIOD_NS)).collect();
        Cores { is_limited: cores.is_some(), phases, free: (0..count).collect(), ready: VecDeque::new() }
    }

    pub(super) fn next_tick(&self, core: usize, now: u64, period_ns: u64) -> u64 {
        let phase = self.phases[core] % period_ns;
        if now < phase { phase } else { phase + ((now - phase) / period_ns + 1) * period_ns }
    }
}

impl Machine {
    /// Whether a thread that can run has a core; else it waits for one.
    pub(super) fn gets_core(&mut self, at: usize) -> bool {
        if !self.cores.is_limited {
            return true;
        }
        let Some(core) = self.cores.free.pop() else {
            (self.threads[at].is_ready, self.threads[at].begins_step) = (true, true);
            self.cores.ready.push_back(at);
            return false;
        };
        self.has_core(at, core);
        true
    }

    fn has_core(&mut self, at: usize, core: usize) {
        let now = self.now.get();
        let thread = &mut self.threads[at];
        (thread.core, thread.entered, thread.is_ready) = (Some(core), now, false);
        self.skip_ticks(at);
    }

    /// Whoever waits has its core next.
    pub(super) fn leave_core(&mut self, at: usize) {
        let Some(core) = self.threads[at].core.take() else { return };
        let Some(next) = self.cores.ready.pop_front() else {
            self.cores.free.push(core);
            return;
        };
        let now = self.now.get();
        self.credit(at, next);
        let has_waited = now - self.threads[next].t_off >= QUEUED_NS_MIN;
        self.seen.runnable_waits += u64::from(self.counting && has_waited);
        self.has_core(next, core);
        let thread = &mut self.threads[next];
        thread.since = now;
        if let State::Paused { until, .. } = &mut thread.state {
            *until = now.max(*until);
        }
        if std::mem::take(&mut thread.begins_step) {
            self.step(next);
        }
    }

    /// When a thread has to give way.
    pub(super) fn slice_ends(&self, thread: &Thread) -> u64 {
        if thread.core.is_none() || self.cores.ready.is_empty() {
            return u64::MAX;
        }
        (thread.entered + SLICE_NS).max(self.now.get())
    }

    pub(super) fn preempt(&mut self, at: usize) {
        self.off_core(at);
        let thread = &mut self.threads[at];
        thread.is_ready = true;
        if thread.spun == Spun::Left {
            thread.spun = Spun::Out;
        }
        self.cores.ready.push_back(at);
        self.leave_core(at);
    }
}
