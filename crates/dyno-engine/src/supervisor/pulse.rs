//! Whether workers get on: one that was stopped, or whose handler does not come back, accepts nothing, and does not die.
//!
//! Looked at only where metrics are served, because it wakes workers that idle: who has not turned its loop since the last
//! look is sent a packet that means nothing, and turning for it is the sign of life. A busy worker gets none, and nothing of
//! this is on a request's way. One that shows no sign is told once, said to accept nothing, and helped out by the others.

use crate::config::SECOND_NS;
use dyno_sys::{Pid, clock};

/// How often workers are looked at.
pub(super) const LOOK_NS: u64 = SECOND_NS;

/// A worker that has not turned over so many looks since it was asked to does not get on. A handler that computes for longer
/// keeps everybody else of its worker waiting; nobody's does so in ordinary service. Looks are counted, not time, so that
/// a supervisor that was stopped with its workers blames none of them.
pub(super) const MISSED_MAX: u32 = 10;

/// What was seen of a worker.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Seen {
    pid: Option<Pid>,
    turns: u64,
    /// Looks without a turn, the first of which asked for one.
    missed: u32,
}

/// What a look comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    Turns,
    /// It may idle: it is to be asked.
    Asks,
    Waits,
    /// It does not get on, as is to be told.
    Stuck,
    /// It has got on again, as is to be told.
    Back,
}

/// What was seen of all of them.
pub(super) struct Pulse {
    pub(super) due_ns: u64,
    pub(super) seen: Vec<Seen>,
}

impl Pulse {
    pub(super) fn new(workers: usize) -> Pulse {
        Pulse { due_ns: clock::mono_ns() + LOOK_NS, seen: vec![Seen::default(); workers] }
    }

    /// When workers are looked at next.
    pub(super) fn due_ns(&self) -> u64 {
        self.due_ns
    }
}

impl Seen {
    pub(super) fn look(&mut self, pid: Pid, turns: u64) -> Look {
        let missed = self.missed;
        if self.pid != Some(pid) || self.turns != turns {
            let is_back = self.pid == Some(pid) && missed > MISSED_MAX;
            *self = Seen { pid: Some(pid), turns, missed: 0 };
            return if is_back { Look::Back } else { Look::Turns };
        }
        self.missed = missed.saturating_add(1);
        match missed {
            0 => Look::Asks,
            MISSED_MAX => Look::Stuck,
            _ => Look::Waits,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: a worker that idles is not asked, and waits for ever.
    #[test]
    fn who_idles_is_asked_who_turns_is_not_and_who_does_neither_is_told_once() {
        let mut seen = Seen::default();
        assert_eq!(seen.look(7, 3), Look::Turns, "a worker that was not seen before");
        assert_eq!((seen.look(7, 9), seen.look(7, 10)), (Look::Turns, Look::Turns));
        for turns in [10, 11, 12] {
            assert_eq!((seen.look(7, turns), seen.look(7, turns + 1)), (Look::Asks, Look::Turns), "idle");
        }
        assert_eq!(seen.look(7, 13), Look::Asks);
        for _ in 1..MISSED_MAX {
            assert_eq!(seen.look(7, 13), Look::Waits);
        }
        assert_eq!(seen.look(7, 13), Look::Stuck);
        assert_eq!((seen.look(7, 13), seen.look(7, 13)), (Look::Waits, Look::Waits));
        assert_eq!((seen.look(7, 14), seen.look(7, 15)), (Look::Back, Look::Turns));
    }

    #[test]
    fn who_comes_back_in_time_or_is_another_was_never_stuck() {
        let mut seen = Seen::default();
        seen.look(7, 3);
        for _ in 0..MISSED_MAX {
            assert!(matches!(seen.look(7, 3), Look::Asks | Look::Waits));
        }
        assert_eq!(seen.look(7, 4), Look::Turns);
        for _ in 0..MISSED_MAX {
            assert!(matches!(seen.look(7, 4), Look::Asks | Look::Waits));
        }
        assert_eq!(seen.look(7, 4), Look::Stuck);
        assert_eq!(seen.look(8, 4), Look::Turns, "its successor");
    }
}
