//! What is counted besides where somebody asks for metrics: status classes, bytes, why connections ended, what is held.
//!
//! A worker with a meter moves its bytes by [`ByDials`](crate::kernel::ByDials), which has it; the plain way has none and
//! pays nothing. Rows are published once per loop turn and outlive their worker, as those of `stats` do.

use dyno_sys::{Pid, shm};
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! figures {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What a meter counts. All but `buffered_bytes` only grow.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub(crate) struct Figures {
            $($(#[$doc])* pub(crate) $name: u64),+
        }

        /// How many figures there are.
        const COUNT: usize = [$(stringify!($name)),+].len();

        impl Figures {
            fn words(&self) -> [u64; COUNT] {
                [$(self.$name),+]
            }

            fn of(words: [u64; COUNT]) -> Figures {
                let [$($name),+] = words;
                Figures { $($name),+ }
            }
        }
    };
}

figures! {
    /// Replies by the first digit of their status.
    replies_2xx,
    replies_3xx,
    replies_4xx,
    replies_5xx,
    /// Bytes that connections took in and gave out.
    received_bytes,
    sent_bytes,
    /// Bytes of replies as they were made, by what they are; what a peer did not take of them was not sent.
    head_bytes,
    body_bytes,
    /// Connections that ended because their last reply was made, or by a drain.
    closed_done,
    /// By their peer, in whatever way.
    closed_by_peer,
    /// Because they took too long, or held too much for too long.
    closed_late,
    /// Because their address had as many as it may.
    closed_limited,
    /// Requests refused because their address asks too often.
    requests_limited,
    /// Connections and requests whose address found no place in the table, and that were let in uncounted.
    addresses_uncounted,
    /// Lines made for the access log.
    log_lines,
    /// Bytes that connections hold in memory now.
    buffered_bytes,
}

/// Why a connection has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Its last reply was made, or the server drains.
    Done,
    /// Its peer closed it, or it broke.
    ByPeer,
    /// It took too long.
    Late,
    /// Its address had as many as it may.
    Limited,
}

/// Words of a row, whole cache lines.
const ROW_WORDS: usize = COUNT.next_multiple_of(8);

/// Words that the supervisor writes: its worker's process for each row, then these.
const RESTARTS: usize = 0;
const LEAVING: usize = 1;

/// What stands there while the server drains, and where another generation serves.
const DRAINING: u64 = 1;
const RETIRED: u64 = 2;
const OWN_WORDS: usize = 8;

/// Shared memory: a row for each worker, and what only the supervisor knows.
#[derive(Clone, Copy)]
pub(crate) struct Meters {
    words: shm::Counters,
    rows: usize,
}

impl Meters {
    /// For so many workers, mapped for the life of the process and inherited by its children.
    pub(crate) fn new(rows: usize) -> std::io::Result<Meters> {
        Ok(Meters {
            words: shm::Counters::new(rows * ROW_WORDS + rows.next_multiple_of(8) + OWN_WORDS)?,
            rows,
        })
    }

    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// A worker's figures as they were published last.
    pub(crate) fn figures(&self, row: usize) -> Figures {
        Figures::of(self.row(row).each_ref().map(|word| word.load(Ordering::Relaxed)))
    }

    /// The process that works in a row now.
    pub(crate) fn pid(&self, row: usize) -> Option<Pid> {
        let word = self.pid_word(row).load(Ordering::Relaxed);
        Pid::try_from(word).ok().filter(|pid| *pid > 0)
    }

    pub(crate) fn set_pid(&self, row: usize, pid: Option<Pid>) {
        let word = pid.map_or(0, |pid| u64::from(pid.unsigned_abs()));
        self.pid_word(row).store(word, Ordering::Relaxed);
    }

    /// Workers that died and were replaced.
    pub(crate) fn restarts(&self) -> u64 {
        self.own(RESTARTS).load(Ordering::Relaxed)
    }

    pub(crate) fn count_restart(&self) {
        self.own(RESTARTS).fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.own(LEAVING).load(Ordering::Relaxed) == DRAINING
    }

    /// Whether these are an old generation's workers: another one's accept in their place.
    pub(crate) fn is_retired(&self) -> bool {
        self.own(LEAVING).load(Ordering::Relaxed) == RETIRED
    }

    pub(crate) fn begin_drain(&self) {
        self.own(LEAVING).store(DRAINING, Ordering::Relaxed);
    }

    pub(crate) fn retire(&self) {
        self.own(LEAVING).store(RETIRED, Ordering::Relaxed);
    }

    fn row(&self, row: usize) -> &'static [AtomicU64; COUNT] {
        assert!(row < self.rows, "a worker's row is one of the {}, not {row}", self.rows);
        self.words.row(row * ROW_WORDS)
    }

    fn pid_word(&self, row: usize) -> &'static AtomicU64 {
        assert!(row < self.rows, "a worker's row is one of the {}, not {row}", self.rows);
        self.words.get(self.rows * ROW_WORDS + row)
    }

    fn own(&self, at: usize) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS + self.rows.next_multiple_of(8) + at)
    }
}

/// One worker's figures and its row.
pub(crate) struct Meter {
    pub(crate) figures: Figures,
    row: &'static [AtomicU64; COUNT],
}

impl Meter {
    /// Goes on from where the row stands.
    pub(crate) fn new(meters: Meters, row: usize) -> Meter {
        let figures = Figures { buffered_bytes: 0, ..meters.figures(row) };
        Meter { figures, row: meters.row(row) }
    }

    /// A reply was made.
    pub(crate) fn replied(&mut self, status: u16, head_bytes: u64, body_bytes: u64) {
        let figures = &mut self.figures;
        figures.head_bytes += head_bytes;
        figures.body_bytes += body_bytes;
        match status / 100 {
            0..=2 => figures.replies_2xx += 1,
            3 => figures.replies_3xx += 1,
            4 => figures.replies_4xx += 1,
            _ => figures.replies_5xx += 1,
        }
    }

    /// A connection has ended.
    pub(crate) fn closed(&mut self, how: Ended) {
        let figures = &mut self.figures;
        match how {
            Ended::Done => figures.closed_done += 1,
            Ended::ByPeer => figures.closed_by_peer += 1,
            Ended::Late => figures.closed_late += 1,
            Ended::Limited => figures.closed_limited += 1,
        }
    }

    /// Writes the row. Plain stores: a row has one writer.
    pub(crate) fn publish(&mut self, buffered: usize) {
        self.figures.buffered_bytes = buffered as u64;
        for (word, value) in self.row.iter().zip(self.figures.words()) {
            word.store(value, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_successor_goes_on_from_its_row_and_holds_nothing() {
        let meters = Meters::new(2).unwrap();
        let mut first = Meter::new(meters, 1);
        first.replied(200, 100, 5);
        first.replied(404, 10, 0);
        first.closed(Ended::Late);
        first.publish(77);
        let seen = meters.figures(1);
        assert_eq!(
            (seen.replies_2xx, seen.replies_4xx, seen.closed_late, seen.buffered_bytes),
            (1, 1, 1, 77)
        );
        let mut second = Meter::new(meters, 1);
        second.replied(503, 1, 1);
        second.publish(0);
        let seen = meters.figures(1);
        assert_eq!((seen.replies_2xx, seen.replies_5xx, seen.buffered_bytes), (1, 1, 0));
        assert_eq!((seen.head_bytes, seen.body_bytes), (111, 6));
        assert_eq!(meters.figures(0), Figures::default());
    }

    #[test]
    fn what_the_supervisor_says_stands_beside_the_rows() {
        let meters = Meters::new(3).unwrap();
        meters.set_pid(2, Some(7));
        meters.count_restart();
        assert_eq!(
            (meters.pid(2), meters.pid(1), meters.restarts(), meters.is_draining()),
            (Some(7), None, 1, false)
        );
        meters.retire();
        assert!(meters.is_retired() && !meters.is_draining());
        meters.begin_drain();
        meters.set_pid(2, None);
        assert!(meters.is_draining() && !meters.is_retired() && meters.pid(2).is_none());
        assert_eq!(meters.figures(2), Figures::default());
    }
}
