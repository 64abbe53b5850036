//! HTTP/1.1 as a value: bytes in, replies into the outbox. It knows no descriptor, no clock and no environment.
//!
//! One per worker; what a connection needs beyond its entry is in the connection's box. The core calls the entrances:
//! `on_bytes`, `on_reply`, `on_source`, `on_time`, `on_end`. Each gets a [`Turn`], through which the connection's state
//! and the seam are reached. A request is answered by a direct call inside `on_bytes`; nothing is queued and nothing
//! copied for one that arrives whole. After an error nothing more of a connection is understood.

mod dispatch;
mod frame;
mod guard;
mod hold;
pub(crate) mod intake;
mod prepared;
mod stream;

use crate::answer::{Answer, AnswerContent};
use crate::asked::{Asked, Chunks, Connection, Content};
use crate::budget::Budget;
use crate::config::Limits;
use crate::conn::{Client, Conn, Owed, OwedWhat};
use crate::error_log::Level;
use crate::fault::{Fault, planted};
use crate::log::{AccessLog, Entry, Kept, Seen};
use crate::reply::Reply;
use crate::request::Request;
use crate::response::{Body, Response};
use crate::route::{Action, Found, Router};
use crate::scratch::Scratch;
use crate::seam::Net;
use crate::segment::Flushed;
use crate::timer::{Tick, ticks_of};
use crate::upload::BodyError;
use dispatch::{call, otherwise, short, too_many};
use dyno_proto::http1::request::{self, BodyLength, Head, Method, Parsed, Reject, Slots, Version};
use frame::{Answered, Framed, answered};
use std::collections::VecDeque;
use std::net::IpAddr;
use std::num::Wrapping;
use std::sync::Arc;

/// One connection, for the time in which something is done with it.
pub(crate) struct Turn<'t, N: Net> {
    pub(crate) net: &'t mut N,
    pub(crate) conn: &'t mut Conn<N::Socket>,
    pub(crate) token: u64,
    pub(crate) now: Tick,
}

/// How a turn of a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Everything that was whole is answered; more input is needed.
    More,
    /// Requests must wait: the connection's box says for what.
    Paused,
    /// The last reply was made.
    Close,
    /// The last reply is shorter than it said: the peer gets what there is, and the end.
    Short,
    /// The connection is broken, or must be broken off.
    Broken,
}

/// The outcome of a turn: `used` bytes of the input are done with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest {
    pub(crate) used: usize,
    pub(crate) end: End,
}

/// What follows a step over one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Request,
    MoreInput,
    Paused,
    Close,
    Short,
    Broken,
}

/// A step over the front of the input.
struct Step {
    used: usize,
    next: Next,
}

/// Whose request is answered, as far as it was understood.
#[derive(Clone, Copy)]
struct Whose<'s> {
    client: Option<IpAddr>,
    request: Seen<'s>,
}

impl<'s> Whose<'s> {
    fn asks<N: Net>(turn: &mut Turn<'_, N>, head: &'s Head<'s>) -> Whose<'s> {
        Whose { client: client_of(turn, head), request: Seen::Head(head) }
    }

    /// By what was kept of it; without that only the peer is known.
    fn kept(peer: Option<IpAddr>, line: Option<&'s Kept>) -> Whose<'s> {
        let request = line.map_or(Seen::Nothing, Seen::Kept);
        Whose { client: line.map_or(peer, |line| line.client), request }
    }
}

/// The protocol, with everything of a worker that makes replies.
pub(crate) struct Http1 {
    pub(crate) scratch: Scratch,
    pub(crate) budget: Budget,
    /// Every reply is its connection's last.
    pub(crate) is_draining: bool,
    router: Arc<Router>,
    log: AccessLog,
    /// Connections whose replies wait, each behind how far the log must be written, in that order. One may stand here
    /// twice: what holds is what its box says.
    held: VecDeque<(u64, u64)>,
    /// What the parser has against the request that is refused.
    reason: Option<Reject>,
    http_limits: request::Limits,
    body_bytes_max: usize,
    upload_bytes_max: u64,
    /// The decoded path of the request at hand.
    path: Vec<u8>,
    /// The decoded body of a chunked request that came whole.
    chunked: Vec<u8>,
}

impl Http1 {
    pub(crate) fn new(
        router: Arc<Router>,
        limits: &Limits,
        log: AccessLog,
        mut scratch: Scratch,
        buffer_bytes_max: usize,
    ) -> Http1 {
        let drops = &mut scratch.tally.counts.log_drops;
        *drops = log.dropped_before().max(*drops);
        Http1 {
            scratch,
            budget: Budget::new(buffer_bytes_max),
            is_draining: false,
            router,
            log,
            held: VecDeque::new(),
            reason: None,
            http_limits: limits.http(),
            body_bytes_max: limits.body_bytes_max,
            upload_bytes_max: limits.upload_bytes_max,
            path: Vec::new(),
            chunked: Vec::new(),
        }
    }

    /// Whether lines are written that need the peer's address.
    pub(crate) fn wants_peer(&self) -> bool {
        !self.log.is_off() || self.scratch.errors.as_ref().is_some_and(|errors| errors.takes(Level::Info))
    }

    /// Answers every request that is whole in `input`, which continues what the connection holds of a body.
    #[inline(never)] // One copy of the common way, in which everything else is inlined.
    pub(crate) fn on_bytes<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        slots: &mut Slots,
        input: &[u8],
    ) -> Digest {
        debug_assert!(self.scratch.out.is_empty(), "one connection at a time uses the outbox");
        debug_assert!(
            turn.conn.busy.as_ref().is_none_or(|busy| !busy.is_paused()),
            "nothing is understood while requests must wait"
        );
        self.scratch.owing.token = turn.token;
        let (mut used, mut next) = (0, Next::Request);
        if turn.net.gate().is_some() && turn.conn.client == Client::Awaited {
            match self.take_header(turn, input) {
                Ok(header) => used = header,
                Err(digest) => return digest,
            }
        }
        if turn.conn.busy.is_some() {
            let step = self.resume(turn, slots, &input[used..]);
            (used, next) = (used + step.used, step.next);
        }
        while next == Next::Request && used < input.len() {
            let step = self.step(turn, slots, &input[used..]);
            used += step.used;
            next = step.next;
            if self.scratch.out.len() >= turn.net.flush_bytes() || self.scratch.out.has_parts() {
                next = self.flush_between(turn, next);
            }
        }
        let end = self.flush_last(turn, next);
        debug_assert!(used <= input.len(), "no more is used than there is");
        Digest { used, end }
    }

    /// What holds when anything but input is brought to a connection.
    fn check_entrance<N: Net>(&self, turn: &Turn<'_, N>) {
        debug_assert!(self.scratch.out.is_empty(), "one connection at a time uses the outbox");
        debug_assert!(
            turn.conn.busy.as_ref().is_none_or(|busy| !busy.is_closing),
            "nothing is answered on a connection whose last reply was made"
        );
    }

    /// The answer to a request that was to be answered later. `None`: nobody awaits it any more, and nothing was done.
    pub(crate) fn on_reply<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        serial: u32,
        answer: Answer,
    ) -> Option<End> {
        let owed = self.take_owed(turn, serial)?;
        self.check_entrance(turn);
        self.scratch.owing.token = turn.token;
        let host = if planted(Fault::AnswerOfAnotherHost) { 0 } else { owed.asked.host };
        self.scratch.begin(Asked { host, ..owed.asked });
        let response = self.made_of(answer);
        let next = self.send_owed(turn, owed, response);
        Some(self.flush_last(turn, next))
    }

    /// A source, which was not waited for, is asked for more; what was sent before has left.
    pub(crate) fn on_source<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> End {
        self.check_entrance(turn);
        debug_assert!(!turn.conn.has_queue(), "a source is asked when what it gave before has left");
        let next = self.pump(turn);
        self.flush_last(turn, next)
    }

    /// A head or a body took too long: 408.
    pub(crate) fn on_time<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> End {
        self.check_entrance(turn);
        if let Some(incoming) = turn.conn.busy.as_deref_mut().and_then(|busy| busy.incoming.take()) {
            self.refuse_incoming(turn, incoming, 408, BodyError::TimedOut);
        } else {
            let begun = turn.conn.busy.as_deref().map_or(&[][..], |busy| &busy.input);
            let asked = Asked { content: content_for(begun), ..Asked::LAST };
            let whose = Whose::kept(turn.conn.peer, None);
            self.refuse(turn, 408, asked, whose);
        }
        self.flush_last(turn, Next::Close)
    }

    /// The peer sends no more while something is owed to it: whoever works on it may learn so.
    pub(crate) fn on_peer_closed<N: Net>(&mut self, turn: &mut Turn<'_, N>) {
        let Some(busy) = turn.conn.busy.as_deref_mut() else { return };
        busy.peer_has_closed = true;
        if let Some(Owed { what: OwedWhat::Answer { waited }, .. }) = &busy.owed {
            waited.client_has_closed();
        }
    }

    /// What was owed took too long. An answer: 504, and whoever still works on it may learn so. A stream that is silent,
    /// with a peer that sends no more: it is broken off.
    pub(crate) fn on_late<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> End {
        let Some(busy) = turn.conn.busy.as_deref() else { return End::Paused };
        if busy.is_silent() {
            return End::Broken;
        }
        let Some(serial) = busy.owed.as_ref().map(|owed| owed.serial) else { return End::Paused };
        self.check_entrance(turn);
        let Some(owed) = self.take_owed(turn, serial) else { return End::Paused };
        if let OwedWhat::Answer { waited } = &owed.what {
            waited.end();
        }
        self.scratch.complain(Level::Warn, format_args!("an answer did not come in its time: 504"));
        self.scratch.begin(owed.asked);
        let response = short(&mut self.scratch, 504, None);
        let next = self.send_owed(turn, owed, response);
        self.flush_last(turn, next)
    }

    /// The connection ends: whoever still works for it learns so, and nothing of it is held any more.
    pub(crate) fn on_end<N: Net>(&mut self, turn: &mut Turn<'_, N>, why: BodyError) {
        self.drop_incoming(turn, why);
        let Some(mut busy) = turn.conn.busy.take() else { return };
        if let Some(owed) = busy.owed.take() {
            if let OwedWhat::Answer { waited } = &owed.what {
                waited.end();
            }
            let answered = answered(&owed);
            if owed.status > 0 {
                self.count_reply(turn.net, answered);
                if !owed.is_told {
                    self.log_line(turn.conn.peer, owed.line.as_deref(), answered);
                }
                // There is nobody left from whom a reply could be kept.
                self.log.take_refused();
            }
            self.scratch.owing.release();
        }
        if !planted(Fault::BudgetLeaked) {
            self.budget.recharge(busy.charged, 0);
        }
    }

    #[inline(always)] // Called in one place.
    fn step<N: Net>(&mut self, turn: &mut Turn<'_, N>, slots: &mut Slots, input: &[u8]) -> Step {
        match request::parse(input, &self.http_limits, slots) {
            Ok(Parsed::Whole { head, used }) if head.body == BodyLength::None => {
                Step { used, next: self.answer(turn, &head, &[]) }
            }
            Ok(Parsed::Whole { head, used }) => {
                self.step_with_body(turn, &head, &input[..used], &input[used..])
            }
            Ok(Parsed::NeedMore) => Step { used: 0, next: Next::MoreInput },
            Err(reject) => {
                self.reason = Some(reject);
                self.scratch.counts().rejects += 1;
                let asked = Asked { content: content_for(input), ..Asked::LAST };
                let whose = Whose::kept(turn.conn.peer, None);
                self.reject(turn, reject.status(), asked, whose, input.len())
            }
        }
    }

    /// Answers a request that is whole.
    #[inline(always)] // Once in each step over a request without a body, and once below.
    fn answer<N: Net>(&mut self, turn: &mut Turn<'_, N>, head: &Head<'_>, body: &[u8]) -> Next {
        let mut asked = self.asked(turn, head);
        self.scratch.begin(asked);
        self.scratch.tally.counts.requests += 1;
        let response = if self.is_too_many(turn, head) {
            if planted(Fault::LimitedIsClosed) {
                asked.connection = Connection::Closed;
            }
            too_many(&mut self.scratch)
        } else {
            match self.router.find(head.method, head.path(), &mut self.path) {
                Found::Action { action: Action::Answer(handler), params } => {
                    call(handler, &Request::new(head, body, &params), &mut self.scratch)
                }
                found => otherwise(found, head, &mut self.scratch),
            }
        };
        let is_plain = self.log.is_off() && !turn.net.splits() && !turn.net.tells_hosts_apart();
        if is_plain && frame::is_predicted(&self.scratch, asked, &response) {
            if let Body::Inline { head, body } = response.body {
                self.count_reply(
                    turn.net,
                    Answered { status: 200, head_bytes: head as u64, body_bytes: body as u64 },
                );
            }
            // An inline body owns nothing.
            std::mem::forget(response);
            return Next::Request;
        }
        self.finish(turn, head, asked, response)
    }

    /// The same for a request with a body.
    #[inline(never)]
    fn answer_with_body<N: Net>(&mut self, turn: &mut Turn<'_, N>, head: &Head<'_>, body: &[u8]) -> Next {
        self.answer(turn, head, body)
    }

    /// Frames the response and tells the access log.
    #[inline(never)]
    fn finish<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        asked: Asked,
        response: Response,
    ) -> Next {
        match frame::frame(&mut self.scratch, asked, response, turn.net.splits()) {
            Framed::Whole(answered) => {
                self.count_reply(turn.net, answered);
                if !self.log.is_off() {
                    self.log_request(Whose::asks(turn, head), answered);
                }
                next_after(asked.connection)
            }
            Framed::Owed(owed) => {
                let line = self.line_of(turn, head);
                self.take_on(turn, *owed, line)
            }
        }
    }

    #[cold]
    fn take_on<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        framed: frame::FramedOwed,
        line: Option<Box<Kept>>,
    ) -> Next {
        let frame::FramedOwed { mut owed, wait_ns } = framed;
        owed.line = line;
        self.scratch.owing.take_on();
        let is_stream = matches!(owed.what, OwedWhat::Stream { .. });
        let busy = turn.conn.busy_mut();
        debug_assert!(busy.owed.is_none(), "a connection is owed one reply at a time");
        busy.owed = Some(owed);
        // It is told again, so that whoever works on this one learns so too.
        busy.peer_has_closed = false;
        busy.owed_due = wait_ns
            .filter(|_| !planted(Fault::NoAnswerTimeout))
            .map(|wait_ns| turn.now + Wrapping(ticks_of(wait_ns)));
        if is_stream { self.pump(turn) } else { Next::Paused }
    }

    /// What was owed, if it is this and it is a whole answer; it is owed no more.
    fn take_owed<N: Net>(&mut self, turn: &mut Turn<'_, N>, serial: u32) -> Option<Owed> {
        let busy = turn.conn.busy.as_deref_mut()?;
        let is_misled = planted(Fault::LaterToNextRequest) || planted(Fault::LaterToSuccessor);
        let is_it = |owed: &Owed| {
            (owed.serial == serial || is_misled) && matches!(owed.what, OwedWhat::Answer { .. })
        };
        if !busy.owed.as_ref().is_some_and(is_it) {
            return None;
        }
        busy.owed_due = None;
        self.scratch.owing.release();
        let mut owed = busy.owed.take()?;
        owed.asked = self.asked_now(owed.asked);
        Some(owed)
    }

    /// How a reply that is made now is framed: since its head came a drain may have begun.
    fn asked_now(&self, asked: Asked) -> Asked {
        if self.is_draining && !planted(Fault::CloseNotSaid) {
            return Asked { connection: Connection::Closed, ..asked };
        }
        asked
    }

    /// A reply of an owned answer.
    fn made_of(&mut self, answer: Answer) -> Response {
        /// Up to here a copy costs less than another piece of a gathering write.
        const INLINE_BYTES_MAX: usize = 4 << 10;
        self.scratch.own_fields.extend_from_slice(&answer.fields);
        let reply = Reply::new(&mut self.scratch).status(if answer.is_refused { 0 } else { answer.status });
        match answer.content {
            AnswerContent::Empty => reply.empty(),
            AnswerContent::Bytes { content_type, bytes } if bytes.len() <= INLINE_BYTES_MAX => {
                reply.bytes(&content_type, bytes.as_bytes())
            }
            AnswerContent::Bytes { content_type, bytes } => reply.shared(&content_type, bytes),
            AnswerContent::File { content_type, file } => reply.file(&content_type, file),
        }
    }

    /// What holds of a reply whose head was made after its request was understood.
    fn check_said(&self, asked: Asked) {
        debug_assert!(
            !self.is_draining || asked.connection == Connection::Closed,
            "a drain is said: who is answered in it learns that the connection ends"
        );
    }

    fn send_owed<N: Net>(&mut self, turn: &mut Turn<'_, N>, owed: Owed, response: Response) -> Next {
        self.check_said(owed.asked);
        let Framed::Whole(answered) =
            frame::frame(&mut self.scratch, owed.asked, response, turn.net.splits())
        else {
            unreachable!("an answer is neither streamed nor left to another")
        };
        self.count_reply(turn.net, answered);
        self.log_line(turn.conn.peer, owed.line.as_deref(), answered);
        next_after(owed.asked.connection)
    }

    #[inline]
    fn asked<N: Net>(&self, turn: &Turn<'_, N>, head: &Head<'_>) -> Asked {
        let is_old = head.version == Version::Http10;
        let connection = match (head.keep_alive && !self.is_draining, is_old) {
            (false, _) => Connection::Closed,
            (true, true) => Connection::KeptAloud,
            (true, false) => Connection::Kept,
        };
        let content = if head.method == Method::Head { Content::Omitted } else { Content::Sent };
        let host = match &self.scratch.hosts {
            Some(hosts) if turn.net.tells_hosts_apart() => hosts.find(named_host(head)),
            _ => 0,
        };
        Asked { connection, content, chunks: if is_old { Chunks::Unknown } else { Chunks::Known }, host }
    }

    /// Refuses what cannot be a request; all of the input is used, for nothing after it is understood. `asked` is as much as
    /// is known of it: an answer to HEAD has no content, also when it is a refusal (RFC 9110 §9.3.2), and what was asked of
    /// a host is refused by that host.
    #[cold]
    fn reject<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        status: u16,
        asked: Asked,
        whose: Whose<'_>,
        used: usize,
    ) -> Step {
        self.refuse(turn, status, asked, whose);
        if planted(Fault::ReadOnAfterRefusal) && used > 0 {
            return Step { used, next: Next::Request };
        }
        Step { used, next: Next::Close }
    }

    #[cold]
    fn refuse<N: Net>(&mut self, turn: &mut Turn<'_, N>, status: u16, asked: Asked, whose: Whose<'_>) {
        self.scratch.counts().requests += 1;
        self.complain_of(whose.client, status);
        let host = if planted(Fault::RefusedAsAnybodys) { 0 } else { asked.host };
        let asked = Asked { content: asked.content, host, ..Asked::LAST };
        self.scratch.begin(asked);
        let response = match status {
            429 if !planted(Fault::UploadNotTold) => too_many(&mut self.scratch),
            _ => short(&mut self.scratch, status, None),
        };
        let framed = frame::frame(&mut self.scratch, asked, response, turn.net.splits());
        if let Framed::Whole(answered) = framed {
            self.count_reply(turn.net, answered);
            self.log_entry(whose, answered);
        }
    }

    /// Says why a request is refused, and whose.
    #[cold]
    fn complain_of(&mut self, client: Option<IpAddr>, status: u16) {
        let why = self.reason.take().map_or_else(String::new, |why| format!(": {why}"));
        let client = client.map_or_else(String::new, |client| format!(" of {client}"));
        let what = dyno_proto::http1::encode::reason(status);
        self.scratch
            .complain(Level::Info, format_args!("a request{client} is refused with {status} {what}{why}"));
    }

    /// In the middle of a turn, because much has gathered, or because each reply leaves by itself.
    #[inline(never)]
    fn flush_between<N: Net>(&mut self, turn: &mut Turn<'_, N>, next: Next) -> Next {
        match self.flush(turn) {
            Flushed::Broken => Next::Broken,
            Flushed::Changed => Next::Short,
            Flushed::Blocked if next == Next::Request && turn.conn.busy_mut().is_paused() => Next::Paused,
            _ => next,
        }
    }

    #[inline(always)] // Into each entrance, the common one above all.
    fn flush_last<N: Net>(&mut self, turn: &mut Turn<'_, N>, next: Next) -> End {
        match self.flush(turn) {
            Flushed::Broken => return End::Broken,
            Flushed::Changed => return End::Short,
            Flushed::All | Flushed::Blocked | Flushed::Cold => {}
        }
        match next {
            Next::Request | Next::MoreInput => End::More,
            Next::Paused => End::Paused,
            Next::Close => End::Close,
            Next::Short => End::Short,
            Next::Broken => End::Broken,
        }
    }

    /// Sends what has gathered, behind what waits already.
    #[inline(always)] // Its common way is one call.
    fn flush<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> Flushed {
        if turn.net.holds_replies()
            && let Some(held) = self.hold(turn)
        {
            return held;
        }
        let out = &mut self.scratch.out;
        if out.is_empty() {
            return Flushed::All;
        }
        if turn.conn.has_queue() {
            return self.enqueue(turn);
        }
        let flushed = out.flush(turn.net, turn.conn.socket(), &mut self.scratch.tally.counts);
        if matches!(flushed, Flushed::Blocked | Flushed::Cold) {
            // What is not in memory is fetched when the socket is told to have room, which it has.
            return self.enqueue(turn);
        }
        flushed
    }

    #[cold]
    fn enqueue<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> Flushed {
        self.scratch.out.move_to(&mut turn.conn.busy_mut().queue);
        debug_assert!(self.scratch.out.is_empty(), "what the socket refused is the connection's own now");
        Flushed::Blocked
    }

    /// Counts a reply where anybody asks for metrics.
    #[inline(always)] // Where nobody can, nothing is left of it.
    fn count_reply<N: Net>(&self, net: &mut N, answered: Answered) {
        if let Some(meter) = net.meter() {
            meter.replied(answered.status, answered.head_bytes, answered.body_bytes);
            meter.figures.log_lines += u64::from(!self.log.is_off());
        }
    }

    /// What the log will say of a request that is not answered yet.
    fn line_of<N: Net>(&self, turn: &mut Turn<'_, N>, head: &Head<'_>) -> Option<Box<Kept>> {
        (!self.log.is_off()).then(|| self.kept_of(turn, head))
    }

    fn kept_of<N: Net>(&self, turn: &mut Turn<'_, N>, head: &Head<'_>) -> Box<Kept> {
        Box::new(Kept::new(self.log.format(), head, client_of(turn, head)))
    }

    #[inline(never)]
    fn log_request(&mut self, whose: Whose<'_>, answered: Answered) {
        self.log_entry(whose, answered);
    }

    fn log_line(&mut self, peer: Option<IpAddr>, line: Option<&Kept>, answered: Answered) {
        self.log_entry(Whose::kept(peer, line), answered);
    }

    fn log_entry(&mut self, whose: Whose<'_>, answered: Answered) {
        if self.log.is_off() {
            return;
        }
        let Whose { client, request } = whose;
        let Answered { status, body_bytes, .. } = answered;
        let Scratch { heads, tally, .. } = &mut self.scratch;
        let entry = Entry { client, dates: &heads.log_dates, request, status, body_bytes };
        self.log.entry(&entry, &mut tally.counts);
    }
}

/// Whether the answer to a request that begins like this has content. Only as many empty lines are passed over as the
/// parser does, so that the answer is the same however the bytes were cut.
fn content_for(head: &[u8]) -> Content {
    let mut line = head;
    for _ in 0..request::EMPTY_LINES_MAX {
        line = line.strip_prefix(b"\r\n").unwrap_or(line);
    }
    if line.starts_with(b"HEAD ") { Content::Omitted } else { Content::Sent }
}

/// The host that a request names.
#[inline]
fn named_host<'h>(head: &Head<'h>) -> Option<&'h [u8]> {
    if planted(Fault::FieldBeforeTarget) {
        return head.headers().find(|line| line.name.eq_ignore_ascii_case(b"Host")).map(|line| line.value);
    }
    head.host()
}

/// Who asks, as the access log tells it.
#[inline(always)] // Without a gate it is the peer.
fn client_of<N: Net>(turn: &mut Turn<'_, N>, head: &Head<'_>) -> Option<IpAddr> {
    let peer = turn.conn.peer;
    turn.net.gate().map_or(peer, |gate| gate.client(head, peer))
}

#[inline]
fn next_after(connection: Connection) -> Next {
    if connection == Connection::Closed && !planted(Fault::AnswerAfterClose) {
        Next::Close
    } else {
        Next::Request
    }
}
