//! A log that replies wait for, and a writer that takes its time: no reply is whole before its line is written.

use crate::dials::Log;
use crate::log::{AccessLog, LogFormat, Rings, Until};
use dyno_measure::Prng;
use std::rc::Rc;

/// The log of one simulation.
pub(crate) struct Commit {
    rings: Rc<Rings>,
    chance: Prng,
    /// Lines that were written.
    pub(crate) written: u64,
    /// Whether the worker was told of lines that were written.
    pub(crate) tells: bool,
}

impl Commit {
    /// One simulation in four has such a log. Chances of its own, so that the same seed does all else as it does without.
    pub(crate) fn by_chance(seed: u64) -> Option<Commit> {
        thread_local! {
            // Mapped for the life of the process: one ring serves all simulations of a thread.
            static RINGS: Rc<Rings> =
                Rc::new(Rings::new(Log::Commit, Until::Written, 1).expect("a ring can be mapped").expect("it is asked for"));
        }
        let mut chance = Prng::new(seed ^ 0x10_6106);
        if chance.below(4) > 0 {
            return None;
        }
        let rings = RINGS.with(Rc::clone);
        rings.take(0);
        Some(Commit { rings, chance, written: 0, tells: false })
    }

    pub(crate) fn log(&self) -> AccessLog {
        AccessLog::ring(LogFormat::default(), self.rings.end(0))
    }

    /// Whether the writer gets its turn now, and has something to do.
    pub(crate) fn is_due(&mut self) -> bool {
        self.chance.below(3) == 0 && self.rings.left() > 0
    }

    /// The writer writes what is there.
    pub(crate) fn write(&mut self) {
        let lines = self.rings.take(0);
        self.written += lines;
        self.tells |= lines > 0;
    }

    /// Whether lines wait to be written, or replies for what was.
    pub(crate) fn is_awaited(&self) -> bool {
        self.tells || self.rings.left() > 0
    }
}
