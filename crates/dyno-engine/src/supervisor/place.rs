//! The place of a process that the supervisor keeps running: who is in it, and how soon one that died is replaced.

use crate::config::SECOND_NS;
use dyno_sys::Pid;
use std::os::fd::OwnedFd;

/// A process that lived less than this died at its start, not at its work.
const SHORT_LIFE_NS: u64 = SECOND_NS / 5;

/// So many short lives in a row are replaced at once; after them the pause doubles from `PAUSE_NS` to `PAUSE_NS_MAX`.
const SHORT_LIVES_FREE: u32 = 3;
const PAUSE_NS: u64 = 10_000_000;
pub(crate) const PAUSE_NS_MAX: u64 = 5 * SECOND_NS;

/// How a process in a place ends: with its work done, not able to do it, or with connections cut at the end of a drain.
pub(crate) const OK: i32 = 0;
pub(crate) const FAILED: i32 = 2;
pub(crate) const CUT: i32 = 3;

/// A place, whether there is a process in it or not.
pub(crate) struct Place {
    pub(crate) life: Life,
    short_lives: u32,
}

pub(crate) enum Life {
    /// `orders` is the supervisor's end of a channel: closing it tells a worker to drain.
    Running {
        pid: Pid,
        since_ns: u64,
        orders: Option<OwnedFd>,
    },
    Waiting {
        until_ns: u64,
        old: Pid,
    },
    Vacant,
}

impl Place {
    pub(crate) fn vacant() -> Place {
        Place { life: Life::Vacant, short_lives: 0 }
    }

    pub(crate) fn pid(&self) -> Option<Pid> {
        match self.life {
            Life::Running { pid, .. } => Some(pid),
            _ => None,
        }
    }

    /// When its next process is started.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        match self.life {
            Life::Waiting { until_ns, .. } => Some(until_ns),
            _ => None,
        }
    }

    /// Its process is dead; says in how many nanoseconds it is replaced.
    pub(crate) fn die(&mut self, pid: Pid, now_ns: u64) -> u64 {
        assert_eq!(self.pid(), Some(pid), "who dies was in its place");
        let lived_ns = match self.life {
            Life::Running { since_ns, .. } => now_ns.saturating_sub(since_ns),
            _ => 0,
        };
        self.short_lives = if lived_ns < SHORT_LIFE_NS { self.short_lives + 1 } else { 0 };
        let pause_ns = pause_ns(self.short_lives);
        self.life = Life::Waiting { until_ns: now_ns + pause_ns, old: pid };
        pause_ns
    }
}

/// How long a place stays empty after so many short lives in a row.
fn pause_ns(short_lives: u32) -> u64 {
    match short_lives.checked_sub(SHORT_LIVES_FREE + 1) {
        None => 0,
        Some(doublings) => (PAUSE_NS << doublings.min(10)).min(PAUSE_NS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_dies_at_its_start_is_replaced_more_and_more_slowly() {
        let pauses: Vec<u64> = (0..16).map(pause_ns).collect();
        assert_eq!(pauses[..6], [0, 0, 0, 0, PAUSE_NS, 2 * PAUSE_NS]);
        assert!(pauses.is_sorted());
        assert_eq!(pauses[15], PAUSE_NS_MAX);
    }

    #[test]
    fn a_process_that_dies_at_its_work_is_replaced_at_once() {
        let life = Life::Running { pid: 7, since_ns: 0, orders: None };
        let mut place = Place { life, short_lives: 9 };
        assert_eq!(place.die(7, SHORT_LIFE_NS), 0);
        assert_eq!((place.short_lives, place.due_ns()), (0, Some(SHORT_LIFE_NS)));
    }
}
