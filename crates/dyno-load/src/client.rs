//! One connection: its link, the batch in flight on it, and the reading of its answers.
//!
//! The session moves the bytes and keeps the time; here answers are taken from what was received and counted. No
//! system call is made here.

use std::io;
use std::os::fd::OwnedFd;

use dyno_measure::Histogram;
use dyno_sys::socket::Addr;

use crate::answer::{After, Answer, AtEnd, Broken, Progress, Reader};
use crate::check::{Rules, Verdict, WrongAnswer, shown};
use crate::report::{Errors, OpenError, Unfinished};
use crate::requests::Batches;

/// A cache line: with hundreds of connections the next one's is rarely near, and every line more is a miss per request.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Client {
    pub(crate) link: Link,
    pub(crate) reader: Reader,
    /// Requests that were sent, wholly or in part, and not answered.
    pub(crate) in_flight: usize,
    /// The last bytes of the batch, which the socket has not taken yet.
    pub(crate) unsent: usize,
    /// Where the batch ends among the session's requests.
    pub(crate) batch_end: usize,
    /// When the batch was sent; while connecting, when that began.
    pub(crate) since_ns: u64,
}

const _: () = assert!(size_of::<Client>() == 64, "a connection is one cache line");

#[derive(Debug, Default)]
pub(crate) enum Link {
    #[default]
    Down,
    /// Refused by a socket file whose queue was full.
    Queueing,
    Connecting(OwnedFd),
    Up(OwnedFd),
}

/// What may happen next on the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Answers are owed.
    Waiting,
    /// Everything is answered.
    Ready,
    /// It cannot be used further; errors are counted.
    Over,
}

/// What one receive brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) right: u64,
    pub(crate) fate: Fate,
}

/// What is counted in a block, by one thread.
#[derive(Debug)]
pub(crate) struct Tally {
    addr: Addr,
    pub(crate) replies: u64,
    pub(crate) bytes: u64,
    pub(crate) latencies: Histogram,
    pub(crate) wrong_latencies: Histogram,
    pub(crate) events: u64,
    pub(crate) waits: u64,
    pub(crate) reconnects: u64,
    pub(crate) errors: Errors,
    pub(crate) unanswered: u64,
    pub(crate) timed_out: u64,
    pub(crate) unfinished: Vec<Unfinished>,
    pub(crate) first_wrong: Option<WrongAnswer>,
    pub(crate) first_error: Option<OpenError>,
}

impl Client {
    /// Takes the answers in `input`, which is not empty.
    #[inline]
    pub(crate) fn take(
        &mut self,
        mut input: &[u8],
        batches: &Batches,
        rules: &mut Rules,
        tally: &mut Tally,
    ) -> Taken {
        debug_assert!(!input.is_empty(), "the end of a stream is no input: take_end takes it");
        let mut right = 0;
        loop {
            if self.in_flight == 0 {
                tally.broken(&Broken::Unasked, shown(input));
                return Taken { right, fate: Fate::Over };
            }
            match self.reader.next(input, rules) {
                Ok(Progress::NeedMore) => return Taken { right, fate: Fate::Waiting },
                Ok(Progress::Whole(answer)) => {
                    debug_assert!(answer.used > 0, "an answer takes a byte, or this loop would not end");
                    input = &input[answer.used..];
                    right += self.count(&answer, rules, tally);
                    if let Some(fate) = self.fate_after(&answer, input, batches) {
                        if fate == Fate::Over {
                            tally.owed(self.in_flight);
                        }
                        return Taken { right, fate };
                    }
                }
                Err(broken) => {
                    // An answer came, if not one that can be read.
                    self.in_flight -= 1;
                    tally.broken(&broken, self.reader.got());
                    return Taken { right, fate: Fate::Over };
                }
            }
        }
    }

    /// Takes the end of the stream.
    pub(crate) fn take_end(&mut self, rules: &mut Rules, tally: &mut Tally) -> Taken {
        let right = match self.reader.at_end(rules) {
            AtEnd::Whole(answer) => {
                let right = self.count(&answer, rules, tally);
                tally.owed(self.in_flight);
                right
            }
            // A server may close an idle connection whenever it likes (RFC 9112 §9.5).
            AtEnd::Between if self.in_flight == 0 => 0,
            AtEnd::Between => {
                tally.closed("nothing".to_owned());
                0
            }
            AtEnd::Cut => {
                tally.closed(self.reader.got());
                0
            }
        };
        Taken { right, fate: Fate::Over }
    }

    /// Takes a broken connection (`ECONNRESET` and the like); between two requests that is a closed one.
    pub(crate) fn take_failure(&mut self, errno: i32, tally: &mut Tally) -> Taken {
        if self.in_flight > 0 {
            tally.errors.read += 1;
            tally.note(|addr| OpenError::Broken { addr, source: io::Error::from_raw_os_error(errno) });
        }
        Taken { right: 0, fate: Fate::Over }
    }

    #[inline]
    fn count(&mut self, answer: &Answer, rules: &Rules, tally: &mut Tally) -> u64 {
        debug_assert!(self.in_flight > 0, "an answer is counted for a request that was sent");
        self.in_flight -= 1;
        match answer.verdict {
            Verdict::Right => {
                tally.bytes += answer.bytes;
                return 1;
            }
            Verdict::WrongStatus => tally.errors.status += 1,
            Verdict::WrongBody(_) => tally.errors.mismatch += 1,
        }
        tally.note_wrong(|| self.reader.wrong_answer(answer.verdict, rules));
        0
    }

    /// What always holds between two events of a connection.
    #[inline]
    pub(crate) fn check(&self) {
        let is_up = matches!(self.link, Link::Up(_));
        debug_assert!(is_up || self.in_flight == 0, "requests are in flight on a connection that is not up");
        debug_assert!(self.in_flight > 0 || self.unsent == 0, "bytes of no request are still to be sent");
        debug_assert!(self.unsent <= self.batch_end, "more is unsent than there is");
    }

    /// `None` while more of the input has to be looked at.
    #[inline]
    fn fate_after(&self, answer: &Answer, rest: &[u8], batches: &Batches) -> Option<Fate> {
        if answer.after == After::Close || (self.unsent > 0 && self.answered_early(batches)) {
            return Some(Fate::Over);
        }
        if !rest.is_empty() {
            return None;
        }
        Some(if self.in_flight == 0 { Fate::Ready } else { Fate::Waiting })
    }

    /// Whether the request that was just answered is not even sent whole: the rest of it would be taken for the next one.
    fn answered_early(&self, batches: &Batches) -> bool {
        batches.end_of(self.batch_end, self.in_flight) > self.batch_end - self.unsent
    }
}

impl Tally {
    pub(crate) fn new(addr: Addr) -> Self {
        Self {
            addr,
            replies: 0,
            bytes: 0,
            latencies: Histogram::new(),
            wrong_latencies: Histogram::new(),
            events: 0,
            waits: 0,
            reconnects: 0,
            errors: Errors::default(),
            unanswered: 0,
            timed_out: 0,
            unfinished: Vec::new(),
            first_wrong: None,
            first_error: None,
        }
    }

    /// Counts replies from here; errors stay counted.
    pub(crate) fn start_measuring(&mut self) {
        self.replies = 0;
        self.bytes = 0;
        self.events = 0;
        self.waits = 0;
        self.latencies.clear();
    }

    /// Every right answer has its latency, and an error that is counted can be said in words.
    fn check(&self) {
        assert_eq!(self.replies, self.latencies.len(), "right answers and their latencies differ");
        assert!(self.bytes >= self.replies, "there are answers without a byte");
        assert_eq!(self.errors.total() > 0, self.first_error.is_some(), "errors are counted without words");
    }

    /// What was counted since the last time, with new counters in its place.
    pub(crate) fn replace(&mut self) -> Self {
        self.check();
        let addr = self.addr.clone();
        std::mem::replace(self, Self::new(addr))
    }

    /// Remembers the first error only: the text of all others would cost more than the load.
    pub(crate) fn note(&mut self, error: impl FnOnce(Addr) -> OpenError) {
        if self.first_error.is_none() {
            self.first_error = Some(error(self.addr.clone()));
        }
    }

    /// A connection ends behind a whole answer; so many requests of its batch have none.
    fn owed(&mut self, requests: usize) {
        if requests > 0 {
            self.errors.read += 1;
            self.note(|addr| OpenError::Owed { addr, requests });
        }
    }

    fn closed(&mut self, got: String) {
        self.errors.read += 1;
        self.note(|addr| OpenError::Closed { addr, got });
    }

    fn broken(&mut self, why: &Broken, got: String) {
        self.errors.protocol += 1;
        if self.first_wrong.is_none() {
            let expected = format!("an HTTP/1.1 answer ({why})");
            self.first_wrong = Some(WrongAnswer { expected, got: got.clone() });
        }
        self.note(|addr| OpenError::NotHttp { addr, why: why.to_string(), got });
    }

    fn note_wrong(&mut self, wrong: impl FnOnce() -> WrongAnswer) {
        if self.first_wrong.is_some() {
            return;
        }
        let wrong = wrong();
        let WrongAnswer { expected, got } = wrong.clone();
        self.first_wrong = Some(wrong);
        self.note(|addr| OpenError::WrongAnswer { addr, expected, got });
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn tally() -> Tally {
        Tally::new("127.0.0.1:1".parse().unwrap())
    }

    #[test]
    #[should_panic(expected = "right answers and their latencies differ")]
    fn a_right_answer_without_a_latency_is_our_mistake() {
        let mut tally = tally();
        (tally.replies, tally.bytes) = (1, 40);
        tally.replace();
    }

    #[test]
    #[should_panic(expected = "errors are counted without words")]
    fn an_error_without_words_is_our_mistake() {
        let mut tally = tally();
        tally.errors.read = 1;
        tally.replace();
    }

    #[test]
    #[should_panic(expected = "on a connection that is not up")]
    fn a_request_in_flight_nowhere_is_our_mistake() {
        Client { in_flight: 1, ..Client::default() }.check();
    }

    #[test]
    #[should_panic(expected = "bytes of no request")]
    fn bytes_of_no_request_are_our_mistake() {
        Client { unsent: 1, batch_end: 1, ..Client::default() }.check();
    }
}
