//! Counters: plain numbers in a worker, published once per loop turn into a shared mapping.
//!
//! The worker counts where a thing happens, in its own memory; the supervisor (or the embedding program) reads the
//! shared rows. A row outlives its worker: a replacement goes on from where the dead one stopped.

use dyno_sys::shm;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {
        /// What workers count. Every figure only grows.
        ///
        /// ```
        /// # use dyno_engine::*;
        /// let running = Server::new().listen("127.0.0.1:0").start()?;
        /// let Counts { requests, accepts, .. } = running.counts();
        /// assert_eq!((requests, accepts), (0, 0));
        /// # Ok::<(), EngineError>(())
        /// ```
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts {
            $($(#[$doc])* pub $name: u64),+
        }

        impl Counts {
            /// The names of the figures, in the order of a row.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert!(Counts::NAMES.contains(&"requests"));
            /// ```
            pub const NAMES: &'static [&'static str] = &[$(stringify!($name)),+];

            pub(crate) fn each(&self, mut see: impl FnMut(usize, u64)) {
                let mut at = 0;
                $(see(at, self.$name); at += 1;)+
                debug_assert_eq!(at, Counts::NAMES.len());
            }

            pub(crate) fn fill(mut value: impl FnMut(usize) -> u64) -> Counts {
                let mut at = 0;
                let mut next = || { at += 1; value(at - 1) };
                Counts { $($name: next()),+ }
            }
        }
    };
}

counts! {
    /// Requests answered, errors included.
    requests,
    /// Requests whose headers were copied into a map (`headers = owned`).
    owned_heads,
    /// Replies put together from strings (`body = generic`).
    generic_bodies,
    /// Times that the Date header was formatted.
    dates_formatted,
    /// Empty polls (`spin`).
    spins,
    /// Calls of send(2) or write(2) on connections.
    sends,
    /// Calls of recv(2) or read(2) on connections.
    reads,
    /// Calls of write(2) on the access log.
    log_writes,
    /// Access log lines that found no room in the ring, or that the log did not take whole.
    log_drops,
    /// Connections accepted.
    accepts,
    /// Heap allocations of the process; zero unless the program counts them (`dyno_sys::alloc`).
    allocations,
    /// Connections closed, for whatever reason.
    closes,
    /// Requests refused for their framing or their size.
    rejects,
    /// Connections that ran out of time, the idle ones included.
    timeouts,
    /// Handlers and uploads that panicked; each was answered with 500.
    panics,
    /// Times that a worker stopped accepting because it could hold no more.
    accept_pauses,
    /// Request bodies refused because connections held more bytes than they may (`buffer_bytes_max`).
    budget_refusals,
    /// Connections cut for the same reason: those that held most for longest without progress.
    budget_cuts,
    /// Loop turns.
    turns,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut outcome = Ok(());
        self.each(|at, value| {
            let gap = if at == 0 { "" } else { " " };
            outcome = outcome.and_then(|()| write!(f, "{gap}{}={value}", Counts::NAMES[at]));
        });
        outcome
    }
}

/// Where `requests` stands in a row: first, so that it is read before the others.
const REQUESTS: usize = 0;

/// The log took nothing and gave no reason: a pipe that is full. No error number is as large.
pub(crate) const LOG_TAKES_NOTHING: u64 = 1 << 32;
/// Beside a reason: it is over.
pub(crate) const LOG_TOOK_AGAIN: u64 = 1 << 63;

/// The rows, one more for what is nobody's, and a word for each worker.
const fn words_of(rows: usize) -> usize {
    (rows + 1) * ROW_WORDS + rows
}

/// Words of a row: the counters rounded up to whole cache lines, so that two workers never write one line.
const ROW_WORDS: usize = Counts::NAMES.len().next_multiple_of(8);

/// The figures of one worker.
type Row = [AtomicU64; Counts::NAMES.len()];

/// Whether a worker accepts connections. While it does not, those with room accept in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Accepting {
    /// It does. Fresh memory says so.
    Open = 0,
    /// It can hold no more.
    Full = 1,
    /// It drains or is dead; its successor opens again.
    Leaving = 2,
    /// It does not turn its loop, as the supervisor has seen.
    Stuck = 3,
}

impl Accepting {
    /// What a word of the shared memory says. Workers can write there, and the supervisor must outlive a broken one: a
    /// word that `set_accepting` never writes says that its worker is not to be counted on.
    fn of(word: u64) -> Accepting {
        let known = [Accepting::Open, Accepting::Full, Accepting::Stuck];
        known.into_iter().find(|state| *state as u64 == word).unwrap_or(Accepting::Leaving)
    }
}

/// Shared memory: a row of counters per worker, and the dials that can be turned while workers run.
#[derive(Clone, Copy)]
pub(crate) struct Counters {
    words: shm::Counters,
    rows: usize,
}

impl Counters {
    /// Counters for `rows` workers, mapped for the life of the process and inherited by its children.
    pub(crate) fn new(rows: usize, spin_us: u32) -> std::io::Result<Counters> {
        let words = shm::Counters::new(words_of(rows))?;
        let counters = Counters { words, rows };
        counters.set_spin(spin_us);
        Ok(counters)
    }

    /// How many workers count here.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// As new, for others; nobody counts here any more.
    pub(crate) fn reset(&self, spin_us: u32) {
        (0..words_of(self.rows)).for_each(|at| self.words.get(at).store(0, Ordering::Relaxed));
        self.set_spin(spin_us);
    }

    /// The spin dial as it stands now, in microseconds.
    #[inline]
    pub(crate) fn spin(&self) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS)
    }

    pub(crate) fn set_spin(&self, spin_us: u32) {
        self.spin().store(u64::from(spin_us), Ordering::Relaxed);
    }

    /// Access log lines that the rings' writer could not write; it has no row of its own.
    pub(crate) fn lost(&self) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS + 1)
    }

    /// Whether the access log does not take every line, as the supervisor has seen it last.
    pub(crate) fn is_log_failing(&self) -> bool {
        self.log_failing().load(Ordering::Relaxed) != 0
    }

    pub(crate) fn set_log_failing(&self, is_failing: bool) {
        self.log_failing().store(u64::from(is_failing), Ordering::Relaxed);
    }

    fn log_failing(&self) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS + 2)
    }

    /// Why a worker that writes the access log itself has lost its last line: an error number, [`LOG_TAKES_NOTHING`], or 0;
    /// with [`LOG_TOOK_AGAIN`] a line went in since. Workers write the same file, so that one word does for all of them.
    pub(crate) fn log_refusal(&self) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS + 3)
    }

    /// Workers that died and were replaced.
    pub(crate) fn deaths(&self) -> &'static AtomicU64 {
        self.words.get(self.rows * ROW_WORDS + 4)
    }

    /// Whether a worker accepts connections.
    pub(crate) fn accepting(&self, row: usize) -> Accepting {
        Accepting::of(self.accepting_word(row).load(Ordering::Acquire))
    }

    /// Said by the supervisor, unless the worker itself has said something else meanwhile.
    pub(crate) fn change_accepting(&self, row: usize, from: Accepting, to: Accepting) {
        let (from, to) = (from as u64, to as u64);
        let _ = self.accepting_word(row).compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// Said by the worker itself, and of a dead one by the supervisor.
    pub(crate) fn set_accepting(&self, row: usize, state: Accepting) {
        self.accepting_word(row).store(state as u64, Ordering::Release);
    }

    fn accepting_word(&self, row: usize) -> &'static AtomicU64 {
        assert!(row < self.rows, "a worker's row is one of the {}, not {row}", self.rows);
        self.words.get((self.rows + 1) * ROW_WORDS + row)
    }

    /// The sum over all workers, and the log lines that the writer lost.
    pub(crate) fn total(&self) -> Counts {
        let mut counts =
            Counts::fill(|at| (0..self.rows).map(|row| self.word(row, at).load(Ordering::Acquire)).sum());
        counts.log_drops += self.lost().load(Ordering::Relaxed);
        counts
    }

    /// One worker's figures.
    pub(crate) fn of(&self, row: usize) -> Counts {
        assert!(row < self.rows, "a worker's row is one of the {}, not {row}", self.rows);
        Counts::fill(|at| self.word(row, at).load(Ordering::Acquire))
    }

    fn word(&self, row: usize, at: usize) -> &'static AtomicU64 {
        self.words.get(row * ROW_WORDS + at)
    }

    fn row(&self, row: usize) -> &'static Row {
        assert!(row < self.rows, "a worker's row is one of the {}, not {row}", self.rows);
        self.words.row(row * ROW_WORDS)
    }
}

/// One worker's figures and its row.
pub(crate) struct Tally {
    /// What this worker has counted, counting from where its row stood.
    pub(crate) counts: Counts,
    row: &'static Row,
    /// Whether this worker counts the allocations of its process: of the workers that share one, the first does.
    counts_allocations: bool,
    allocations_seen: u64,
}

/// What a worker runs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunsIn {
    /// In a process of its own, under a supervisor.
    Process,
    /// In a thread of the embedding program.
    Thread,
}

impl Tally {
    pub(crate) fn new(counters: Counters, row: usize, runs_in: RunsIn) -> Tally {
        let counts_allocations = runs_in == RunsIn::Process || row == 0;
        let row = counters.row(row);
        let mut counts = Counts::fill(|at| row[at].load(Ordering::Relaxed));
        // Connections end with the worker that had accepted them, though it may not have lived to count it.
        counts.closes = counts.accepts;
        Tally { counts, row, counts_allocations, allocations_seen: dyno_sys::alloc::allocations() }
    }

    /// Writes the row. Plain stores: a row has one writer.
    pub(crate) fn publish(&mut self) {
        if self.counts_allocations {
            let allocations = dyno_sys::alloc::allocations();
            debug_assert!(allocations >= self.allocations_seen, "a process's allocations only grow");
            self.counts.allocations += allocations - self.allocations_seen;
            self.allocations_seen = allocations;
        }
        let is_behind = self.row[REQUESTS].load(Ordering::Relaxed) <= self.counts.requests;
        debug_assert!(is_behind, "a row has one writer, and its figures only grow");
        self.counts.each(|at, value| {
            if at != REQUESTS {
                self.row[at].store(value, Ordering::Relaxed);
            }
        });
        // Last, so that who sees a request counted sees what it took as well.
        self.row[REQUESTS].store(self.counts.requests, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_replacement_goes_on_from_its_predecessors_row() {
        let counters = Counters::new(2, 7).unwrap();
        let mut first = Tally::new(counters, 0, RunsIn::Process);
        first.counts.requests = 10;
        (first.counts.accepts, first.counts.closes) = (3, 1);
        first.publish();
        let mut other = Tally::new(counters, 1, RunsIn::Process);
        other.counts.requests = 5;
        other.publish();

        let mut second = Tally::new(counters, 0, RunsIn::Process);
        second.counts.requests += 1;
        second.publish();
        assert_eq!(counters.total().requests, 16);
        assert_eq!((counters.of(0).accepts, counters.of(0).closes), (3, 3), "what it had open is closed");
        assert_eq!(counters.spin().load(Ordering::Relaxed), 7);
    }

    #[test]
    fn what_is_used_again_is_as_new() {
        let counters = Counters::new(2, 7).unwrap();
        let mut tally = Tally::new(counters, 1, RunsIn::Process);
        tally.counts.requests = 10;
        tally.publish();
        counters.set_accepting(1, Accepting::Leaving);
        counters.deaths().store(3, Ordering::Relaxed);
        counters.reset(9);
        assert_eq!((counters.rows(), counters.total()), (2, Counts::default()));
        assert_eq!((counters.accepting(1), counters.deaths().load(Ordering::Relaxed)), (Accepting::Open, 0));
        assert_eq!(counters.spin().load(Ordering::Relaxed), 9);
    }

    #[test]
    fn whether_a_worker_accepts_is_what_was_last_said_of_its_own_row() {
        let counters = Counters::new(2, 7).unwrap();
        assert_eq!(counters.accepting(1), Accepting::Open, "fresh memory");
        for state in [Accepting::Full, Accepting::Leaving, Accepting::Open] {
            counters.set_accepting(1, state);
            assert_eq!((counters.accepting(0), counters.accepting(1)), (Accepting::Open, state));
        }
        counters.change_accepting(1, Accepting::Full, Accepting::Stuck);
        assert_eq!(counters.accepting(1), Accepting::Open, "it has said so itself meanwhile");
        counters.change_accepting(1, Accepting::Open, Accepting::Stuck);
        assert_eq!((counters.accepting(0), counters.accepting(1)), (Accepting::Open, Accepting::Stuck));
        assert_eq!((counters.total(), counters.spin().load(Ordering::Relaxed)), (Counts::default(), 7));
    }

    #[test]
    fn a_word_that_nobody_wrote_takes_a_worker_for_gone_and_harms_nobody() {
        for word in [4, 1 << 32, u64::MAX] {
            assert_eq!(Accepting::of(word), Accepting::Leaving);
        }
    }

    #[test]
    #[should_panic(expected = "one of the 2, not 2")]
    fn a_row_past_the_last_belongs_to_no_worker() {
        Counters::new(2, 7).unwrap().accepting(2);
    }

    #[test]
    fn the_text_names_every_figure_in_order() {
        let counts = Counts { requests: 3, turns: 9, ..Counts::default() };
        let text = counts.to_string();
        assert!(text.starts_with("requests=3 owned_heads=0 ") && text.ends_with(" turns=9"), "{text}");
        assert_eq!(text.split(' ').count(), Counts::NAMES.len());
    }
}
