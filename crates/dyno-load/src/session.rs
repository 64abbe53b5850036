//! One thread's load: open connections, and blocks of requests run over them.
//!
//! A block is a loop around `epoll_wait`. Connections are registered once, level-triggered; per request there is one
//! receive, one send and a share of a wait, no `epoll_ctl` and no read until EAGAIN. The next request is sent straight
//! after the reply was checked, and the one clock read between them is the end of the one and the start of the other.
//! With pipelining a batch is sent by one call and the next when all its answers came (as wrk does); the clock is then
//! read once per receive, and each reply's latency counts from the sending of its batch.
//!
//! Used inline by a caller with one load CPU, and by the crew's threads. It never prints, and sleeps only in epoll.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use dyno_sys::clock::{mono_ns, thread_cpu_ns};
use dyno_sys::epoll::{Epoll, Events, Timeout};

use crate::check::{Body, Expect};
use crate::client::Tally;
use crate::connections::{Connections, Sending, Share};
use crate::down;
use crate::report::{BlockReport, BlockSpec, Edge, Loaded, OpenError, SessionPlan};

/// Connections opened at once while a session opens: below the listen backlogs of servers (nginx 511; Linux' own
/// default was 128), beyond which a SYN is dropped and sent again after a second.
const WAVE_CONNECTIONS: usize = 64;
/// Events taken by one wait: one per connection up to this; more would only delay the edges of a block.
const EVENTS_MAX: usize = 1_024;
/// How often room in a socket file's full queue is looked for.
const QUEUE_NS: u64 = 1_000_000;
/// 256 KiB of an answer are kept for those who want to answer the same.
const SAMPLE_BYTES_MAX: usize = 256 * 1024;

/// Open connections to one target, driven by the calling thread.
#[derive(Debug)]
pub struct Session {
    epoll: Epoll,
    events: Events,
    connections: Connections,
    now_ns: u64,
    sweep_at_ns: u64,
    sweep_every_ns: u64,
    /// The longest answer while opening.
    opening_ns: u64,
    sample_answer: Vec<u8>,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Opening<'o> {
    /// How long each of the first answers is awaited.
    pub(crate) answer_ns_max: u64,
    /// Ends it when it becomes true.
    pub(crate) stop: &'o AtomicBool,
    /// What becomes of an answer that is not right.
    pub(crate) wrong: Wrong,
}

/// What becomes of answers that are not right while connections are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wrong {
    /// The first of them ends it: who compares servers wants none.
    Refused,
    /// A server that errs now and then is loaded, and its errors are counted, as long as it answers rightly at all.
    Counted,
}

/// Connections of which one must be answered rightly.
const TRIES: usize = 8;

/// One block: when it settles, for how long it is measured, and what the threads that run it share.
#[derive(Debug)]
pub(crate) struct Block<'b> {
    spec: BlockSpec,
    settle_end_ns: u64,
    /// Replies of all threads, added once the nominal end has come.
    replies: AtomicU64,
    /// End the block early when one of them becomes true.
    stops: &'b [&'b AtomicBool],
}

/// What a running session has counted so far, published some fifty times a second.
#[derive(Debug, Default)]
pub(crate) struct LiveCounts {
    pub(crate) replies: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// Where one session's measured part lay.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measured {
    pub(crate) began_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) loaded: Loaded,
    pub(crate) drained: bool,
    /// When no connection was up in the loaded part.
    pub(crate) down: Vec<Range<u64>>,
    /// When something was last received in the loaded part.
    heard_ns: u64,
    /// The end of that part in which nothing was, where nothing came afterwards either.
    pub(crate) silent_ns: u64,
    /// Replies that were added to the common count.
    counted: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Settle,
    /// Until `end_ns`, or longer for want of replies, to `latest_ns` at most.
    Measure {
        end_ns: u64,
        latest_ns: u64,
    },
    /// Until `until_ns`; where the block is stopped, to `stopped_ns` at most.
    Drain {
        until_ns: u64,
        stopped_ns: u64,
    },
}

impl Phase {
    /// When to look at the phase again at the latest; a wait may wake earlier.
    fn due_ns(self, block: &Block<'_>, now_ns: u64) -> u64 {
        match self {
            Self::Settle => block.settle_end_ns,
            Self::Measure { end_ns, .. } if now_ns < end_ns => end_ns,
            // Past the nominal end every turn looks for itself, and the sweeps see to it that there are turns.
            Self::Measure { latest_ns, .. } => latest_ns,
            Self::Drain { until_ns, .. } => until_ns,
        }
    }
}

impl<'b> Block<'b> {
    pub(crate) fn new(spec: &BlockSpec, start_ns: u64, stops: &'b [&'b AtomicBool]) -> Self {
        let settle_end_ns = start_ns.saturating_add(spec.settle_ns);
        Self { spec: *spec, settle_end_ns, replies: AtomicU64::new(0), stops }
    }

    fn is_stopped(&self) -> bool {
        self.stops.iter().any(|stop| stop.load(Ordering::Relaxed))
    }
}

impl Measured {
    /// The measured part began and ended, in that order: a block without one would have a rate of nothing over nothing.
    fn check(&self) {
        assert!(self.began_ns > 0, "a block ended that was never measured");
        assert!(self.began_ns <= self.ended_ns, "a block ended before it was measured");
    }
}

impl Session {
    /// Opens all connections, sends one request on each and checks its answer.
    ///
    /// # Errors
    /// The first thing that went wrong: see [`OpenError`].
    pub fn open(plan: &SessionPlan) -> Result<Self, OpenError> {
        let whole = Share { connections: plan.connections, before: 0, all: plan.connections };
        Self::open_share(
            plan,
            whole,
            Opening { answer_ns_max: plan.timeout_ns, stop: &AtomicBool::new(false), wrong: Wrong::Refused },
        )
    }

    /// Runs one block. `at_edge` is called twice, at the end of settling while the load goes on, and when all is
    /// drained.
    pub fn block(&mut self, spec: &BlockSpec, at_edge: &mut dyn FnMut(Edge)) -> BlockReport {
        let block = Block::new(spec, mono_ns(), &[]);
        let part = self.run(&block, &LiveCounts::default(), &mut || at_edge(Edge::SettleEnd));
        at_edge(Edge::End);
        self.report(&part)
    }

    /// How many connections it keeps open.
    pub(crate) fn connections(&self) -> usize {
        self.connections.len()
    }

    /// The whole bytes of one right answer, as received by [`Session::open`]; empty when longer than 256 KiB.
    #[must_use]
    pub fn sample_answer(&self) -> &[u8] {
        &self.sample_answer
    }

    /// What answers are held against; [`crate::Body::Same`] is the learned body by now.
    #[must_use]
    pub fn expect(&self) -> &Expect {
        self.connections.expect()
    }

    /// Opens its part.
    pub(crate) fn open_share(
        plan: &SessionPlan,
        share: Share,
        opening: Opening<'_>,
    ) -> Result<Self, OpenError> {
        check(plan, share)?;
        let epoll = Epoll::new().map_err(|source| OpenError::Epoll { source })?;
        let mut session = Self {
            epoll,
            events: Events::with_capacity(share.connections.min(EVENTS_MAX)),
            connections: Connections::new(plan, share),
            now_ns: mono_ns(),
            sweep_at_ns: 0,
            // An eighth of the timeout is how late it may be noticed, as long as looking stays cheap.
            sweep_every_ns: (plan.timeout_ns / 8).clamp(1_000_000, 20_000_000),
            opening_ns: 0,
            sample_answer: Vec::new(),
        };
        session.open_all(plan, share, opening)?;
        Ok(session)
    }

    /// One request on every connection; the first alone, so that what it teaches holds for all others.
    fn open_all(&mut self, plan: &SessionPlan, share: Share, opening: Opening<'_>) -> Result<(), OpenError> {
        let (connections, mut open) = (share.connections, 0);
        let (mut is_learned, mut wrong) = (false, None);
        let within = |ns: u64| mono_ns().saturating_add(ns);
        let first_ns = within(opening.answer_ns_max);
        while open < connections {
            let next = if is_learned { connections.min(open + WAVE_CONNECTIONS) } else { open + 1 };
            if !is_learned {
                self.connections.keep_received(SAMPLE_BYTES_MAX);
            }
            let deadline_ns = if is_learned { within(opening.answer_ns_max) } else { first_ns };
            let refused = self.open_wave(open..next, deadline_ns, plan, share, opening)?;
            if !is_learned {
                let received = self.connections.take_received();
                match refused {
                    None => {
                        self.sample_answer = received;
                        self.check_learned();
                        is_learned = true;
                    }
                    // The sessions before have learned.
                    Some(error) if share.before == 0 && next == connections.min(TRIES) => {
                        return Err(wrong.unwrap_or(error));
                    }
                    Some(error) => {
                        wrong = wrong.or(Some(error));
                        is_learned = next >= TRIES;
                    }
                }
            }
            open = next;
        }
        self.connections.sending = Sending::Nothing;
        self.connections.check_between_blocks();
        Ok(())
    }

    /// The first answer taught what all others must be: a second one that taught too would be right whatever it is.
    fn check_learned(&self) {
        assert_ne!(
            self.expect().body,
            Some(Body::Same),
            "the first answer was taken and nothing was learned"
        );
    }

    /// The first answer that was not right, where such are counted.
    fn open_wave(
        &mut self,
        wave: Range<usize>,
        deadline_ns: u64,
        plan: &SessionPlan,
        share: Share,
        opening: Opening<'_>,
    ) -> Result<Option<OpenError>, OpenError> {
        assert!(
            !wave.is_empty() && wave.end <= self.connections.len(),
            "a wave is of connections to be made"
        );
        let answered = wave.start;
        let silent = OpenError::TimedOut {
            addr: plan.target.addr().clone(),
            timeout_ns: opening.answer_ns_max,
            answered,
            connections: self.connections.len(),
        };
        self.now_ns = mono_ns();
        self.connections.send_one_each(&self.epoll, wave, self.now_ns);
        let goes_on = |error: &OpenError| opening.wrong == Wrong::Counted && error.is_of_an_answer();
        while self.connections.first_error().is_none_or(goes_on) && self.connections.is_busy() {
            if self.now_ns >= deadline_ns {
                return Err(silent);
            }
            // The sweeps see to it that there are turns.
            if opening.stop.load(Ordering::Relaxed) {
                let answered = share.before + answered + self.connections.tally.latencies.len() as usize;
                let addr = plan.target.addr().clone();
                return Err(OpenError::Stopped { addr, answered, connections: share.all });
            }
            self.turn(deadline_ns, &LiveCounts::default());
        }
        let tally = self.connections.tally.replace();
        self.opening_ns = self.opening_ns.max(tally.latencies.max());
        match tally.first_error {
            Some(OpenError::Late { .. } | OpenError::Unreached { .. }) => Err(silent),
            Some(error) if !goes_on(&error) => Err(error),
            wrong => Ok(wrong),
        }
    }

    /// Runs a block up to its drained end; the caller calls what is due there, then asks for the report.
    pub(crate) fn run(
        &mut self,
        block: &Block<'_>,
        live: &LiveCounts,
        at_settle_end: &mut dyn FnMut(),
    ) -> Measured {
        self.connections.check_between_blocks();
        let mut part = Measured::default();
        let mut phase = Phase::Settle;
        self.start();
        // Without settling the edge comes before the first request, so that every answer counts.
        if self.now_ns >= block.settle_end_ns {
            phase = self.settle_end(block, &mut part, at_settle_end);
        }
        self.connections.send_everywhere(&self.epoll, self.now_ns);
        while !self.is_done(block, phase) {
            self.turn(phase.due_ns(block, self.now_ns), live);
            phase = match phase {
                Phase::Settle if self.now_ns >= block.settle_end_ns || block.is_stopped() => {
                    self.settle_end(block, &mut part, at_settle_end)
                }
                Phase::Measure { end_ns, latest_ns } => self.measured(block, end_ns, latest_ns, &mut part),
                other => other,
            };
        }
        part.ended_ns = mono_ns();
        if self.connections.heard_ns(part.ended_ns) > part.heard_ns {
            part.silent_ns = 0;
        }
        part.cpu_ns = thread_cpu_ns().saturating_sub(part.cpu_ns);
        part.drained = !self.connections.awaits_answers();
        self.connections.give_up_unanswered(part.ended_ns);
        self.connections.check_between_blocks();
        part.check();
        self.publish(live);
        part
    }

    /// The block as this session alone saw it, with its counters taken out.
    pub(crate) fn report(&mut self, part: &Measured) -> BlockReport {
        let Tally {
            replies,
            bytes,
            latencies,
            wrong_latencies,
            events,
            waits,
            reconnects,
            errors,
            unanswered,
            timed_out,
            unfinished,
            first_wrong,
            first_error,
            ..
        } = self.connections.tally.replace();
        BlockReport {
            replies,
            wrong: errors.wrong(),
            bytes,
            errors,
            unanswered,
            timed_out,
            unfinished,
            wall_ns: part.ended_ns.saturating_sub(part.began_ns),
            loaded: part.loaded,
            down_ns: down::sum(&part.down),
            silent_ns: part.silent_ns,
            latencies,
            wrong_latencies,
            events,
            waits,
            cpu_ns: part.cpu_ns,
            threads: 1,
            cpus: 1,
            unpinned: 0,
            reconnects,
            first_wrong,
            first_error: first_error.map(|error| error.in_words()),
            drained: part.drained,
            sample_answer: self.sample_answer.clone(),
        }
    }

    /// Takes note of what happened to idle connections since the last block: servers close them.
    fn start(&mut self) {
        self.now_ns = mono_ns();
        self.sweep_at_ns = self.now_ns.saturating_add(self.sweep_every_ns);
        self.connections.sending = Sending::Nothing;
        let mut left = self.connections.len().div_ceil(self.events.capacity());
        while left > 0 && self.take_events(Timeout::Poll) == self.events.capacity() {
            left -= 1;
        }
        self.now_ns = mono_ns();
    }

    fn settle_end(
        &mut self,
        block: &Block<'_>,
        part: &mut Measured,
        at_settle_end: &mut dyn FnMut(),
    ) -> Phase {
        assert_eq!(part.began_ns, 0, "settling ends once");
        at_settle_end();
        self.connections.start_measuring(self.now_ns);
        // The CPU clock's start stands here until the end turns it into the difference.
        part.cpu_ns = thread_cpu_ns();
        part.began_ns = mono_ns();
        self.now_ns = part.began_ns;
        let end_ns = self.now_ns.saturating_add(block.spec.measure_ns);
        Phase::Measure { end_ns, latest_ns: end_ns.max(self.now_ns.saturating_add(block.spec.ns_max)) }
    }

    /// The phase after one turn of measuring.
    fn measured(&mut self, block: &Block<'_>, end_ns: u64, latest_ns: u64, part: &mut Measured) -> Phase {
        debug_assert_eq!(
            self.connections.sending,
            Sending::Batches,
            "what is measured is a load that goes on"
        );
        let lasts = self.now_ns < end_ns || (self.now_ns < latest_ns && self.are_few(block, part));
        if lasts && !block.is_stopped() {
            return Phase::Measure { end_ns, latest_ns };
        }
        part.down = self.connections.stop_sending(self.now_ns);
        part.heard_ns = self.connections.heard_ns(self.now_ns);
        part.silent_ns = self.now_ns.saturating_sub(part.heard_ns);
        let Tally { replies, bytes, events, waits, .. } = self.connections.tally;
        let wall_ns = self.now_ns.saturating_sub(part.began_ns);
        let cpu_ns = thread_cpu_ns().saturating_sub(part.cpu_ns);
        part.loaded = Loaded { replies, bytes, wall_ns, cpu_ns, events, waits };
        let until = |ns: u64| self.now_ns.saturating_add(ns);
        let spec = &block.spec;
        Phase::Drain {
            until_ns: until(spec.drain_ns(self.longest_ns())),
            stopped_ns: until(spec.drain_ns_max),
        }
    }

    /// The longest answer of the block; where there was none, of those before it.
    fn longest_ns(&self) -> u64 {
        let latencies = &self.connections.tally.latencies;
        if latencies.is_empty() { self.opening_ns } else { latencies.max() }
    }

    /// Adds this thread's replies to the common count and says whether it is still too low.
    fn are_few(&self, block: &Block<'_>, part: &mut Measured) -> bool {
        debug_assert!(self.connections.tally.replies >= part.counted, "replies were taken back");
        let fresh = self.connections.tally.replies - part.counted;
        part.counted += fresh;
        block.replies.fetch_add(fresh, Ordering::Relaxed) + fresh < block.spec.replies_min
    }

    fn is_done(&self, block: &Block<'_>, phase: Phase) -> bool {
        let Phase::Drain { until_ns, stopped_ns } = phase else { return false };
        let given_up = self.now_ns >= until_ns || (self.now_ns >= stopped_ns && block.is_stopped());
        given_up || !self.connections.awaits_answers()
    }

    /// One wait and what it brought, and now and then a look at the clocks of all connections.
    #[inline]
    fn turn(&mut self, due_ns: u64, live: &LiveCounts) {
        let before_ns = self.now_ns;
        self.take_events(sleep_until(due_ns.min(self.sweep_at_ns), before_ns));
        if self.now_ns == before_ns {
            self.now_ns = mono_ns();
        }
        debug_assert!(self.now_ns >= before_ns, "the monotonic clock went back");
        if self.now_ns >= self.sweep_at_ns {
            self.connections.sweep(&self.epoll, self.now_ns);
            let every_ns = if self.connections.is_queueing() { QUEUE_NS } else { self.sweep_every_ns };
            self.sweep_at_ns = self.now_ns.saturating_add(every_ns);
            self.publish(live);
        }
    }

    #[inline]
    fn take_events(&mut self, timeout: Timeout) -> usize {
        let ready = self.epoll.wait(&mut self.events, timeout);
        let ready =
            ready.expect("epoll_wait fails only for a bad descriptor or buffer, and both are owned here");
        self.connections.tally.waits += 1;
        self.connections.tally.events += ready.len() as u64;
        for event in ready {
            if let Some(now_ns) = self.connections.on_event(&self.epoll, *event) {
                self.now_ns = now_ns;
            }
        }
        ready.len()
    }

    fn publish(&self, live: &LiveCounts) {
        live.replies.store(self.connections.tally.replies, Ordering::Relaxed);
        live.errors.store(self.connections.tally.errors.total(), Ordering::Relaxed);
    }
}

fn check(plan: &SessionPlan, share: Share) -> Result<(), OpenError> {
    let wrong = |why| Err(OpenError::Plan { why });
    if share.connections == 0 {
        return wrong("at least one connection per thread is needed");
    }
    if plan.pipeline == 0 {
        return wrong("at least one request per batch is needed");
    }
    if plan.timeout_ns == 0 {
        return wrong("a timeout of zero fails every request");
    }
    if plan.target.requests().batch_bytes(plan.pipeline) > crate::connections::BATCH_BYTES_MAX {
        return wrong("the requests of a batch are longer than 64 MiB");
    }
    Ok(())
}

/// Rounded up to the next millisecond: rounding down would spin through the last one.
fn sleep_until(due_ns: u64, now_ns: u64) -> Timeout {
    let left_ms = due_ns.saturating_sub(now_ns).div_ceil(1_000_000);
    if left_ms == 0 { Timeout::Poll } else { Timeout::Millis(i32::try_from(left_ms).unwrap_or(i32::MAX)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a block ended that was never measured")]
    fn a_block_that_never_settled_is_our_mistake() {
        Measured { ended_ns: 5, ..Measured::default() }.check();
    }

    #[test]
    #[should_panic(expected = "a block ended before it was measured")]
    fn a_block_that_ends_before_it_begins_is_our_mistake() {
        Measured { began_ns: 6, ended_ns: 5, ..Measured::default() }.check();
    }

    #[test]
    fn a_wait_is_rounded_up_and_is_none_when_it_is_due() {
        assert!(matches!(sleep_until(1_000_001, 0), Timeout::Millis(2)));
        assert!(matches!(sleep_until(5, 5), Timeout::Poll));
        assert!(matches!(sleep_until(u64::MAX, 0), Timeout::Millis(i32::MAX)));
    }
}
