//! What a block is asked to be and what it came to. Plain values: sessions fill them, callers judge and print them.

use std::io;

use dyno_measure::Histogram;
use dyno_sys::socket::Addr;

use crate::check::{Expect, WrongAnswer};
use crate::target::Target;

/// What a session keeps open and sends.
#[derive(Debug, Clone)]
pub struct SessionPlan {
    /// Where to, and the bytes of one request, or of several that are sent in turn.
    pub target: Target,
    /// What a right answer is.
    pub expect: Expect,
    /// Connections kept open; at least 1. Each carries one batch of requests at a time.
    pub connections: usize,
    /// Requests per batch, sent by one system call; the next batch follows when all answers of this one came, as with
    /// wrk. 1 is no pipelining; at least 1.
    pub pipeline: usize,
    /// The age in nanoseconds at which an unanswered request counts as timed out and its connection is replaced.
    pub timeout_ns: u64,
}

/// The shape of one block, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockSpec {
    /// Load without counting, first.
    pub settle_ns: u64,
    /// The least that is measured after it.
    pub measure_ns: u64,
    /// The measured part is lengthened until so many replies came …
    pub replies_min: u64,
    /// … but to no more than this.
    pub ns_max: u64,
    /// How long replies in flight at the end are awaited …
    pub drain_ns_max: u64,
    /// … and where that is less than twice what the longest answer took: for as long as that, but no longer than this. 0
    /// waits no longer for slow ones.
    pub drain_slow_ns_max: u64,
}

impl BlockSpec {
    /// How long replies in flight are awaited where the longest answer took so long.
    pub(crate) fn drain_ns(&self, longest_ns: u64) -> u64 {
        self.drain_ns_max.max(longest_ns.saturating_mul(2).min(self.drain_slow_ns_max))
    }
}

impl Default for BlockSpec {
    /// The block of a climb: 5 ms settling and 25 ms measured were the most sensitive shape; the second block after a
    /// switch carries 97-100 % of the rate after 2 ms. Lengthened until 500 replies, 1 s at most.
    fn default() -> Self {
        Self {
            settle_ns: 5_000_000,
            measure_ns: 25_000_000,
            replies_min: 500,
            ns_max: 1_000_000_000,
            drain_ns_max: 1_000_000_000,
            drain_slow_ns_max: 0,
        }
    }
}

/// The moments at which a caller reads the server's clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// Settling is over: replies count from here. The load goes on meanwhile.
    SettleEnd,
    /// Nothing is in flight any more.
    End,
}

/// Errors by class: one for each answer that was wrong, one for each connection that was lost, whatever it carried.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// Connections that could not be made.
    pub connect: u64,
    /// Connections that ended, closed or reset, while answers were owed.
    pub read: u64,
    /// Connections that took no request.
    pub write: u64,
    /// Connections whose oldest request passed the timeout.
    pub timeout: u64,
    /// Answers with a wrong status.
    pub status: u64,
    /// Answers that were not HTTP/1.1, and bytes that nobody had asked for.
    pub protocol: u64,
    /// Answers with a wrong body.
    pub mismatch: u64,
}

impl Errors {
    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.connect + self.read + self.write + self.timeout + self.wrong()
    }

    /// Answers that came and were wrong.
    #[must_use]
    pub fn wrong(&self) -> u64 {
        self.status + self.protocol + self.mismatch
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.connect += other.connect;
        self.read += other.read;
        self.write += other.write;
        self.timeout += other.timeout;
        self.status += other.status;
        self.protocol += other.protocol;
        self.mismatch += other.mismatch;
    }
}

/// What one block came to.
#[derive(Debug, Clone, Default)]
pub struct BlockReport {
    /// Right answers received from [`Edge::SettleEnd`] to [`Edge::End`], those drained after the last send included.
    pub replies: u64,
    /// [`Errors::wrong`] of `errors`.
    pub wrong: u64,
    /// The bytes of those replies, heads included.
    pub bytes: u64,
    /// Errors of the whole block: a wrong answer is one in the settling part too.
    pub errors: Errors,
    /// Requests of the whole block that were sent, wholly or in part, and never answered: what was in flight on the
    /// connections that were lost.
    pub unanswered: u64,
    /// Those of them that were given up for their age.
    pub timed_out: u64,
    /// Requests that were younger than the timeout when the drain was given up: neither answered nor failed, and no error.
    pub unfinished: Vec<Unfinished>,
    /// From [`Edge::SettleEnd`] to [`Edge::End`].
    pub wall_ns: u64,
    /// The part up to the moment from which nothing more was sent. Rates are of this part: what one slow answer takes
    /// after it is that answer's latency, and says nothing of how many requests a second were answered.
    pub loaded: Loaded,
    /// Time of that part in which no connection was up, on any thread, and could not be made.
    pub down_ns: u64,
    /// The end of that part in which nothing was received on any thread, where nothing came in the drain either; 0 otherwise.
    /// Up to a fiftieth of a second too short.
    pub silent_ns: u64,
    /// From the sending of a batch to each of its replies, in nanoseconds; connecting is not in it.
    pub latencies: Histogram,
    /// The same of answers that were wrong.
    pub wrong_latencies: Histogram,
    /// Events that epoll delivered in the measured part, and …
    pub events: u64,
    /// … the calls that it took.
    pub waits: u64,
    /// CPU time of the generator's threads in the measured part.
    pub cpu_ns: u64,
    /// How many threads that were.
    pub threads: usize,
    /// On how many CPUs they could run at a time.
    pub cpus: usize,
    /// Threads that could not be pinned to their CPU any more.
    pub unpinned: usize,
    /// Connections that were opened anew in the whole block, because of an error or because the server closed them.
    pub reconnects: u64,
    /// The first wrong answer of the block.
    pub first_wrong: Option<WrongAnswer>,
    /// The first error of any class, in words.
    pub first_error: Option<String>,
    /// Whether every request had its answer, or its error, before the drain was given up.
    pub drained: bool,
    /// The whole bytes of one right answer, as received when the session was opened; empty when it was longer than
    /// 256 KiB.
    pub sample_answer: Vec<u8>,
}

/// Requests of one connection that were still awaited when the drain was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unfinished {
    /// Since they were sent: an answer would have taken longer.
    pub age_ns: u64,
    /// How many.
    pub requests: u64,
}

/// What is known of the latency that a share of all requests does not exceed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Percentile {
    /// There was no request.
    None,
    /// It is this, in nanoseconds.
    Is(u64),
    /// It is no less: what it is depends on requests that were unfinished.
    AtLeast(u64),
    /// Those that timed out reach it.
    TimedOut,
}

impl Percentile {
    /// The latency, where it is known.
    #[must_use]
    pub fn known(self) -> Option<u64> {
        if let Self::Is(ns) = self { Some(ns) } else { None }
    }

    /// The slower of two.
    fn slower(self, other: Self) -> Self {
        let least = |one: Self| match one {
            Self::None => 0,
            Self::Is(ns) | Self::AtLeast(ns) => ns,
            Self::TimedOut => u64::MAX,
        };
        if least(other) > least(self) { other } else { self }
    }

    /// What it is no less than, where no more is known.
    #[must_use]
    pub fn at_least(self) -> Option<u64> {
        if let Self::AtLeast(ns) = self { Some(ns) } else { None }
    }
}

/// The part of a block in which requests were sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Right answers received in it.
    pub replies: u64,
    /// Their bytes, heads included.
    pub bytes: u64,
    /// How long it was.
    pub wall_ns: u64,
    /// CPU time of the generator's threads in it.
    pub cpu_ns: u64,
    /// Events that epoll delivered in it, and …
    pub events: u64,
    /// … the calls that it took.
    pub waits: u64,
}

impl Loaded {
    /// Both at once, by two threads.
    pub(crate) fn and(self, other: Loaded) -> Loaded {
        Loaded {
            replies: self.replies + other.replies,
            bytes: self.bytes + other.bytes,
            wall_ns: self.wall_ns.max(other.wall_ns),
            cpu_ns: self.cpu_ns + other.cpu_ns,
            events: self.events + other.events,
            waits: self.waits + other.waits,
        }
    }
}

/// Not one request of a block was answered rightly.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no request was answered rightly{}", .why.as_ref().map(|why| format!(": {why}")).unwrap_or_default())]
pub struct Unanswered {
    /// The first error in words, where there was one.
    pub why: Option<String>,
}

impl BlockReport {
    /// Whether the target answered at all: a figure over no right answer says nothing of it.
    ///
    /// # Errors
    /// When there was not one right answer: the target died, fell silent, or answered wrongly throughout.
    pub fn answered(&self) -> Result<(), Unanswered> {
        if self.replies > 0 {
            return Ok(());
        }
        Err(Unanswered { why: self.first_error.clone().or_else(|| self.unfinished_in_words()) })
    }

    /// The latency that the share `q` of all requests does not exceed, where those that timed out are slower than any answer
    /// and of those that were unfinished nothing is known but that they are slower than they are old. Slow wrong answers are requests as
    /// well; fast ones make no other request quicker.
    #[must_use]
    pub fn latency_at(&self, q: f64) -> Percentile {
        let right = self.latency_among(&self.latencies, q);
        if self.wrong_latencies.is_empty() {
            return right;
        }
        let mut all = self.latencies.clone();
        all.merge(&self.wrong_latencies);
        right.slower(self.latency_among(&all, q))
    }

    fn latency_among(&self, answers: &Histogram, q: f64) -> Percentile {
        let (answered, unfinished) = (answers.len(), self.unfinished());
        let all = answered + unfinished + self.timed_out;
        if all == 0 {
            return Percentile::None;
        }
        let rank = ((q * all as f64).ceil() as u64).clamp(1, all);
        if rank > answered + unfinished {
            return Percentile::TimedOut;
        }
        // It lies between these: unfinished ones may be answered at once, or be slower than any answer.
        let most = (rank <= answered).then(|| ranked(answers, rank));
        let with_ages = || {
            let mut all = answers.clone();
            self.unfinished.iter().for_each(|one| all.record_n(one.age_ns, one.requests));
            all
        };
        let least = if unfinished > 0 { ranked(&with_ages(), rank) } else { most.unwrap_or(0) };
        match most {
            // No farther apart than two values of one of the histogram's buckets.
            Some(most) if most.saturating_sub(least) <= most >> 10 => Percentile::Is(most),
            _ => Percentile::AtLeast(least),
        }
    }

    /// Requests that were unfinished when the drain was given up.
    #[must_use]
    pub fn unfinished(&self) -> u64 {
        self.unfinished.iter().map(|one| one.requests).sum()
    }

    /// The age of the oldest of them.
    #[must_use]
    pub fn oldest_unfinished_ns(&self) -> Option<u64> {
        self.unfinished.iter().map(|one| one.age_ns).max()
    }

    /// How many were unfinished and how old, where there are any.
    #[must_use]
    pub fn unfinished_in_words(&self) -> Option<String> {
        let (requests, oldest_ns) = (self.unfinished(), self.oldest_unfinished_ns()?);
        Some(format!("{requests} were unfinished at the end, the oldest {} ms old", oldest_ns / 1_000_000))
    }

    /// Requests that had no answer, or a wrong one.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.errors.wrong() + self.unanswered
    }
}

/// The value of this rank, from 1 on: half a rank lower, so that no rounding asks for the next one.
fn ranked(values: &Histogram, rank: u64) -> u64 {
    values.quantile((rank as f64 - 0.5) / values.len() as f64)
}

/// Why connections could not be opened, or the first answers on them were not right.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The plan makes no sense.
    #[error("the load cannot be run: {why}")]
    Plan {
        /// What is wrong with it, in words.
        why: &'static str,
    },
    /// A load CPU that this process may not use.
    #[error("CPU {cpu} cannot be used: this process may run on {allowed}")]
    Cpu {
        /// The CPU asked for.
        cpu: usize,
        /// The CPUs allowed.
        allowed: String,
    },
    /// A load CPU on which no thread could be started, or kept.
    #[error("cannot run a thread on CPU {cpu}")]
    Thread {
        /// The CPU asked for.
        cpu: usize,
        /// The kernel's word.
        source: io::Error,
    },
    /// The kernel gave no event queue.
    #[error("cannot make an event queue")]
    Epoll {
        /// The kernel's word.
        source: io::Error,
    },
    /// Nobody listens there.
    #[error("{addr} refuses connections")]
    Refused {
        /// Where to.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// No connection for another reason: no route, no free descriptor or port.
    #[error("cannot connect to {addr}")]
    Connect {
        /// Where to.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// The connection broke.
    #[error("the connection to {addr} broke before the answer was whole")]
    Broken {
        /// Where to.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// The server closed the connection without, or within, an answer.
    #[error("{addr} closed the connection before its answer was whole; it sent {got}")]
    Closed {
        /// Where to.
        addr: Addr,
        /// The first 200 bytes received, escaped.
        got: String,
    },
    /// The connection ended behind a whole answer, and more were owed: requests of a batch, sent at once.
    #[error("the connection to {addr} ended before its batch was answered whole; {requests} missing")]
    Owed {
        /// Where to.
        addr: Addr,
        /// How many.
        requests: usize,
    },
    /// What came is not an HTTP/1.1 answer.
    #[error("{addr} does not answer in HTTP/1.1: {why}; it sent {got}")]
    NotHttp {
        /// Where to.
        addr: Addr,
        /// What is wrong with it, in words.
        why: String,
        /// The first 200 bytes received, escaped.
        got: String,
    },
    /// An answer came and was not the expected one.
    #[error("wrong answer from {addr}: expected {expected}; got {got}")]
    WrongAnswer {
        /// Where from.
        addr: Addr,
        /// What would have been right.
        expected: String,
        /// What came, its first 200 bytes escaped.
        got: String,
    },
    /// Somebody wanted to stop before the load began.
    #[error("stopped while connections were opened: {answered} of {connections} were answered by {addr}")]
    Stopped {
        /// Where to.
        addr: Addr,
        /// Connections of the whole load that had been answered.
        answered: usize,
        /// Connections that it was to have.
        connections: usize,
    },
    /// A request of a load that runs was older than the timeout.
    #[error("a request to {addr} was not answered within {} ms", timeout_ns / 1_000_000)]
    Late {
        /// Where to.
        addr: Addr,
        /// The plan's timeout in nanoseconds.
        timeout_ns: u64,
    },
    /// No answer to an attempt to connect came in time.
    #[error("{addr} took no connection within {} ms", timeout_ns / 1_000_000)]
    Unreached {
        /// Where to.
        addr: Addr,
        /// The plan's timeout in nanoseconds.
        timeout_ns: u64,
    },
    /// No whole answer came in time, while the load was opened.
    #[error("{addr} did not answer within {} ms ({answered} of {connections} connections were answered)", timeout_ns / 1_000_000)]
    TimedOut {
        /// Where to.
        addr: Addr,
        /// The plan's timeout in nanoseconds.
        timeout_ns: u64,
        /// Connections of this session that had been answered before.
        answered: usize,
        /// Connections that it was to have.
        connections: usize,
    },
}

impl OpenError {
    pub(crate) fn connect(addr: &Addr, source: io::Error) -> Self {
        let addr = addr.clone();
        match source.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Self::Refused { addr, source },
            _ => Self::Connect { addr, source },
        }
    }

    /// Whether an answer was wrong, or was none, rather than that nobody could be asked or nobody answered.
    pub(crate) fn is_of_an_answer(&self) -> bool {
        match self {
            Self::NotHttp { .. }
            | Self::WrongAnswer { .. }
            | Self::Closed { .. }
            | Self::Owed { .. }
            | Self::Broken { .. } => true,
            Self::Plan { .. }
            | Self::Cpu { .. }
            | Self::Thread { .. }
            | Self::Epoll { .. }
            | Self::Refused { .. }
            | Self::Connect { .. }
            | Self::Stopped { .. }
            | Self::Late { .. }
            | Self::Unreached { .. }
            | Self::TimedOut { .. } => false,
        }
    }

    /// This error and its cause in one line.
    pub(crate) fn in_words(&self) -> String {
        match std::error::Error::source(self) {
            Some(source) => format!("{self}: {source}"),
            None => self.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: percentiles of the answers alone, which those that never came make no slower.
    #[test]
    fn what_timed_out_is_slower_than_any_answer() {
        let mut latencies = Histogram::new();
        (1..=98).for_each(|ms| latencies.record(ms * 1_000_000));
        let ms = |timed_out, q| {
            let block = BlockReport { latencies: latencies.clone(), timed_out, ..BlockReport::default() };
            block.latency_at(q).known().map(|ns| (ns as f64 / 1e6).round())
        };
        assert_eq!((ms(0, 0.5), ms(0, 0.99)), (Some(49.0), Some(98.0)));
        assert_eq!((ms(2, 0.5), ms(2, 0.98), ms(2, 0.99)), (Some(50.0), Some(98.0), None));
        let silent = BlockReport { timed_out: 1, ..BlockReport::default() };
        assert_eq!(silent.latency_at(0.5), Percentile::TimedOut);
        assert_eq!(BlockReport::default().latency_at(0.5), Percentile::None);
    }

    /// A queue before the server that gives up after a second, and says so. Planted fault: a slow 503 is no request.
    #[test]
    fn a_slow_wrong_answer_is_as_slow_as_a_right_one() {
        let (mut latencies, mut wrong_latencies) = (Histogram::new(), Histogram::new());
        latencies.record_n(1_000_000, 90);
        wrong_latencies.record_n(1_000_000_000, 10);
        let block = BlockReport { latencies, wrong_latencies, ..BlockReport::default() };
        let ms = |q| block.latency_at(q).known().map(|ns| (ns as f64 / 1e6).round());
        assert_eq!([0.5, 0.9, 0.91, 0.99].map(ms), [Some(1.0), Some(1.0), Some(1_000.0), Some(1_000.0)]);
        // Who sheds load at once does not answer the others sooner.
        let (mut latencies, mut wrong_latencies) = (Histogram::new(), Histogram::new());
        latencies.record_n(1_000_000, 97);
        latencies.record_n(1_000_000_000, 3);
        wrong_latencies.record_n(10_000, 900);
        let block = BlockReport { latencies, wrong_latencies, ..BlockReport::default() };
        assert_eq!(block.latency_at(0.99).known().map(|ns| (ns as f64 / 1e6).round()), Some(1_000.0));
    }

    /// Answers of 1 to 90 ms; unfinished requests; how many timed out; and the percentile, in ms.
    fn told(unfinished: &[(u64, u64)], timed_out: u64, q: f64) -> Percentile {
        let mut latencies = Histogram::new();
        (1..=90).for_each(|ms| latencies.record(ms * 1_000_000));
        let one = |(ms, requests): &(u64, u64)| Unfinished { age_ns: ms * 1_000_000, requests: *requests };
        let unfinished = unfinished.iter().map(one).collect();
        let block = BlockReport { latencies, unfinished, timed_out, ..BlockReport::default() };
        let ms = |ns: u64| (ns as f64 / 1e6).round() as u64;
        match block.latency_at(q) {
            Percentile::Is(ns) => Percentile::Is(ms(ns)),
            Percentile::AtLeast(ns) => Percentile::AtLeast(ms(ns)),
            other => other,
        }
    }

    /// Planted faults: what is unfinished counts as slower than any answer, or as answered when it was given up, or not at all.
    #[test]
    fn a_percentile_that_unfinished_requests_may_move_is_told_as_a_bound_and_the_others_as_they_are() {
        use Percentile::{AtLeast, Is, TimedOut};
        // Older than most answers: only what lies beyond their age depends on them.
        let old = [(80, 10)];
        assert_eq!(
            [0.5, 0.8, 0.85, 0.9].map(|q| told(&old, 0, q)),
            [Is(50), Is(80), AtLeast(80), AtLeast(80)]
        );
        assert_eq!([0.95, 1.0].map(|q| told(&old, 0, q)), [AtLeast(85), AtLeast(90)]);
        // Older than all: there is no answer of their rank.
        assert_eq!([0.9, 0.91].map(|q| told(&[(2_000, 10)], 0, q)), [Is(90), AtLeast(2_000)]);
        // Young ones may move everything.
        assert_eq!([0.05, 0.5].map(|q| told(&[(3, 10)], 0, q)), [AtLeast(3), AtLeast(40)]);
        // Those that timed out come behind both.
        assert_eq!([0.45, 0.5, 0.95].map(|q| told(&old, 100, q)), [AtLeast(80), AtLeast(90), TimedOut]);
        let none =
            BlockReport { unfinished: vec![Unfinished { age_ns: 5, requests: 2 }], ..BlockReport::default() };
        assert_eq!(none.latency_at(0.5), AtLeast(5));
        assert_eq!(none.failed(), 0, "it is no failure");
    }

    #[test]
    fn a_drain_lasts_twice_as_long_as_the_longest_answer_where_that_may_be() {
        let spec = BlockSpec { drain_ns_max: 2, drain_slow_ns_max: 30, ..BlockSpec::default() };
        assert_eq!([0, 1, 7, 15, 16, u64::MAX].map(|ns| spec.drain_ns(ns)), [2, 2, 14, 30, 30, 30]);
        assert_eq!(BlockSpec { drain_slow_ns_max: 0, ..spec }.drain_ns(7), 2);
    }
}
