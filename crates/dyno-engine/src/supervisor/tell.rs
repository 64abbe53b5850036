//! What a supervisor tells by itself, without anything having come in: full workers, lack of memory, life.

use super::{Event, MEMORY_LOOK_NS, MemoryReported, Supervisor};
use crate::orders::Report;
use crate::stats::{Accepting, Counts};
use dyno_sys::clock;

impl Supervisor<'_> {
    /// The master hears of it in time, and tells whoever watches the server.
    pub(super) fn tell_alive(&mut self) {
        let now_ns = clock::mono_ns();
        if let (Some(due_ns), Some(alive_ns)) = (self.alive_due_ns, self.config.alive_ns)
            && due_ns <= now_ns
        {
            self.alive_due_ns = Some(now_ns + alive_ns);
            self.report(&Report::Alive);
        }
    }

    /// Says at once that workers are full, and then once a minute.
    pub(super) fn tell_full(&mut self, on_event: &mut dyn FnMut(Event)) {
        let is_full = |number: &usize| self.counters.accepting(*number) == Accepting::Full;
        let workers = (0..self.places.len()).filter(is_full).count();
        let now_ns = clock::mono_ns();
        let is_news = self.full_told_ns.is_none_or(|told_ns| now_ns >= told_ns + MEMORY_LOOK_NS);
        if workers > 0 && is_news {
            self.full_told_ns = Some(now_ns);
            on_event(Event::Full { workers });
        }
    }

    /// Says once a minute what lack of memory has cost.
    pub(super) fn tell_memory(&mut self, on_event: &mut dyn FnMut(Event)) {
        let now_ns = clock::mono_ns();
        if now_ns < self.memory.looked_ns + MEMORY_LOOK_NS {
            return;
        }
        let Counts { budget_refusals, budget_cuts, .. } = self.counters.total();
        let (refused, cut) = (budget_refusals - self.memory.refused, budget_cuts - self.memory.cut);
        self.memory = MemoryReported { looked_ns: now_ns, refused: budget_refusals, cut: budget_cuts };
        if refused + cut > 0 {
            on_event(Event::MemoryShort { refused, cut });
        }
    }
}
