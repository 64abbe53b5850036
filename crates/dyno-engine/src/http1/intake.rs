//! Request bodies on their way in: collected until they are whole and sane, or handed to an upload piece by piece.

use super::dispatch::{begun, end_upload, otherwise, short, too_many};
use super::frame::{self, Framed};
use super::{Http1, Next, Step, Turn, Whose, next_after};
use crate::asked::{Asked, Connection};
use crate::conn::{Framing, Incoming, Into, Owed, OwedWhat, Uploading};
use crate::fault::{Fault, planted};
use crate::mailbox::{Address, Waker};
use crate::request::Request;
use crate::route::{Action, Found};
use crate::seam::Net;
use crate::upload::{BodyError, Flow, Upload};
use dyno_proto::http1::chunk::Decoder;
use dyno_proto::http1::encode;
use dyno_proto::http1::request::{self, BodyLength, Head, Parsed, Slots};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// What counts as progress of a body or a reader within its stretch of time: about one full segment in ten seconds,
/// below any line that carries a request at all; a byte now and then is how slow-body attacks stay alive.
pub(crate) const PROGRESS_BYTES_MIN: usize = 1_000;

/// How far a body came.
enum Intake {
    /// It is whole; the next request starts after `used`.
    Whole {
        used: usize,
    },
    NeedMore {
        used: usize,
    },
    /// The upload takes no more now.
    Paused {
        used: usize,
    },
    Rejected {
        status: u16,
        why: BodyError,
        by: By,
    },
}

/// Whose fault it is that a body is refused.
#[derive(Clone, Copy)]
enum By {
    /// Its framing's or its size's.
    Form,
    /// The upload does not want it.
    Upload,
    /// The upload has panicked.
    Panic,
}

impl Http1 {
    /// A head that announces a body: answered at once when the body is all there, collected or handed on otherwise.
    pub(super) fn step_with_body<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        head_bytes: &[u8],
        input: &[u8],
    ) -> Step {
        if let Found::Action { action: Action::Upload(_), .. } =
            self.router.find(head.method, head.path(), &mut self.path)
        {
            let step = self.begin_upload(turn, head, input);
            return Step { used: head_bytes.len() + step.used, next: step.next };
        }
        debug_assert!(
            turn.conn.busy.as_ref().is_none_or(|busy| busy.incoming.is_none()),
            "no head is read while a body comes in"
        );
        let mut body = std::mem::take(&mut self.chunked);
        body.clear();
        let step = match head.body {
            BodyLength::Chunked => self.step_chunked(turn, head, head_bytes, input, &mut body),
            BodyLength::Length(length) => match self.admitted(length) {
                Some(length) if length <= input.len() || planted(Fault::CalledTooEarly) => {
                    let length = length.min(input.len());
                    Step { used: length, next: self.answer_with_body(turn, head, &input[..length]) }
                }
                Some(_) => {
                    let left = Framing::Length(length - input.len() as u64);
                    self.collect(turn, head, head_bytes, input.len(), left, input)
                }
                None => self.reject_form(turn, head, 413, input.len()),
            },
            BodyLength::None => Step { used: 0, next: self.answer_with_body(turn, head, &[]) },
        };
        self.chunked = body;
        Step { used: head_bytes.len() + step.used, next: step.next }
    }

    fn step_chunked<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        head_bytes: &[u8],
        input: &[u8],
        body: &mut Vec<u8>,
    ) -> Step {
        let mut framing = Framing::Chunked(Decoder::new());
        match take_in(&mut framing, input, |data| collect_into(body, data, self.body_bytes_max)) {
            Intake::Whole { used } => Step { used, next: self.answer_with_body(turn, head, body) },
            Intake::NeedMore { used } | Intake::Paused { used } => {
                self.collect(turn, head, head_bytes, used, framing, body)
            }
            Intake::Rejected { status, .. } => self.reject_form(turn, head, status, input.len()),
        }
    }

    /// Refuses a request whose head was understood.
    #[cold]
    fn reject_asked<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        status: u16,
        used: usize,
    ) -> Step {
        let (asked, whose) = (self.asked(turn, head), Whose::asks(turn, head));
        self.reject(turn, status, asked, whose, used)
    }

    /// The same for the framing or the size of its body.
    #[cold]
    fn reject_form<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        status: u16,
        used: usize,
    ) -> Step {
        self.scratch.counts().rejects += 1;
        self.reject_asked(turn, head, status, used)
    }

    /// Keeps an incomplete request in its connection, and says `100 Continue` when the client waits for it.
    fn collect<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        head_bytes: &[u8],
        used: usize,
        framing: Framing,
        body: &[u8],
    ) -> Step {
        let needs = match framing {
            Framing::Length(left) => usize::try_from(left).unwrap_or(usize::MAX),
            Framing::Chunked(_) => 0,
        };
        if !self.budget.has_room(needs.saturating_add(body.len() + head_bytes.len())) {
            self.scratch.counts().budget_refusals += 1;
            return self.reject_asked(turn, head, 503, used);
        }
        // A client that has begun to send the body does not wait (RFC 9110 §10.1.1).
        if head.expect_continue && used == 0 {
            let found = self.router.find(head.method, head.path(), &mut self.path);
            if !matches!(found, Found::Action { .. }) {
                // Whether the body follows all the same is not known: the connection cannot be used again.
                return Step { used: 0, next: self.answer_and_close(turn, head) };
            }
            self.go_ahead(turn);
        }
        let asked = self.asked(turn, head);
        let into = Into::Memory(body.to_vec());
        self.await_body(turn, Incoming { head: head_bytes.to_vec(), asked, framing, into, line: None });
        Step { used, next: Next::MoreInput }
    }

    /// Puts a request whose body is awaited into its connection.
    fn await_body<N: Net>(&mut self, turn: &mut Turn<'_, N>, incoming: Incoming) {
        let busy = turn.conn.busy_mut();
        debug_assert!(busy.incoming.is_none(), "one body comes in at a time");
        busy.incoming = Some(incoming);
        // A new body gets a whole stretch of time, as if progress had been made.
        busy.body_progress = PROGRESS_BYTES_MIN;
    }

    fn go_ahead<N: Net>(&mut self, turn: &mut Turn<'_, N>) {
        self.scratch.begin(Asked::LAST);
        let out = self.scratch.out.bytes();
        out.extend_from_slice(encode::CONTINUE);
        if turn.net.splits() {
            let mark = self.scratch.mark;
            self.scratch.out.cut(mark, encode::CONTINUE.len());
        }
    }

    /// The answer to a request whose body is not read.
    fn answer_and_close<N: Net>(&mut self, turn: &mut Turn<'_, N>, head: &Head<'_>) -> Next {
        let asked = Asked { connection: Connection::Closed, ..self.asked(turn, head) };
        self.scratch.begin(asked);
        self.scratch.counts().requests += 1;
        let response = if self.is_too_many(turn, head) {
            too_many(&mut self.scratch)
        } else {
            let found = self.router.find(head.method, head.path(), &mut self.path);
            otherwise(found, head, &mut self.scratch)
        };
        self.finish(turn, head, asked, response);
        Next::Close
    }

    /// More input for a connection with a box: the rest of a body, if one is awaited.
    #[cold]
    pub(super) fn resume<N: Net>(&mut self, turn: &mut Turn<'_, N>, slots: &mut Slots, input: &[u8]) -> Step {
        let busy = turn.conn.busy_mut();
        let Some(mut incoming) = busy.incoming.take() else { return Step { used: 0, next: Next::Request } };
        let taken = match &mut incoming.into {
            Into::Upload(uploading) => {
                let max = self.upload_bytes_max;
                take_in(&mut incoming.framing, input, |data| hand_on(uploading, data, max))
            }
            Into::Memory(body) => {
                let max = self.body_bytes_max;
                take_in(&mut incoming.framing, input, |data| collect_into(body, data, max))
            }
        };
        match taken {
            Intake::Whole { used } => {
                busy.body_progress += used;
                Step { used, next: self.answer_whole(turn, slots, incoming) }
            }
            Intake::NeedMore { used } | Intake::Paused { used } => {
                debug_assert!(used <= input.len(), "no more is used than there is");
                busy.body_progress += used;
                let next =
                    if matches!(taken, Intake::Paused { .. }) { Next::Paused } else { Next::MoreInput };
                busy.incoming = Some(incoming);
                Step { used, next }
            }
            Intake::Rejected { status, why, by } => {
                self.count_refusal(by);
                self.refuse_incoming(turn, incoming, status, why);
                Step { used: input.len(), next: Next::Close }
            }
        }
    }

    fn count_refusal(&mut self, by: By) {
        let counts = self.scratch.counts();
        match by {
            By::Form => counts.rejects += 1,
            By::Upload => {}
            By::Panic => counts.panics += 1,
        }
    }

    /// Refuses a request whose body comes in, or does not.
    #[cold]
    pub(super) fn refuse_incoming<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        incoming: Incoming,
        status: u16,
        why: BodyError,
    ) {
        let Incoming { head, asked, into, line, .. } = incoming;
        self.fail(into, why);
        let mut slots = Slots::new(&self.http_limits);
        // An upload's head is not kept, but a line of it.
        match request::parse(&head, &self.http_limits, &mut slots) {
            Ok(Parsed::Whole { head, .. }) => {
                let whose = Whose::asks(turn, &head);
                self.refuse(turn, status, asked, whose);
            }
            Ok(Parsed::NeedMore) | Err(_) => {
                let whose = Whose::kept(turn.conn.peer, line.as_deref());
                self.refuse(turn, status, asked, whose);
            }
        }
    }

    /// A body has become whole.
    fn answer_whole<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        slots: &mut Slots,
        incoming: Incoming,
    ) -> Next {
        match incoming.into {
            Into::Memory(body) => match request::parse(&incoming.head, &self.http_limits, slots) {
                Ok(Parsed::Whole { head, .. }) => self.answer_with_body(turn, &head, &body),
                // The same bytes were a whole head before; if they are not now, the fault is ours.
                Ok(Parsed::NeedMore) | Err(_) => {
                    let whose = Whose::kept(turn.conn.peer, None);
                    self.reject(turn, 500, incoming.asked, whose, 0).next
                }
            },
            Into::Upload(mut uploading) => {
                let asked = self.asked_now(incoming.asked);
                self.check_said(asked);
                self.scratch.owing.release();
                self.scratch.begin(asked);
                self.scratch.counts().requests += 1;
                let response = end_upload(&mut uploading, &mut self.scratch);
                let splits = turn.net.splits();
                match frame::frame(&mut self.scratch, asked, response, splits) {
                    Framed::Whole(answered) => {
                        self.count_reply(turn.net, answered);
                        self.log_line(turn.conn.peer, incoming.line.as_deref(), answered);
                        next_after(asked.connection)
                    }
                    Framed::Owed(owed) => self.take_on(turn, *owed, incoming.line),
                }
            }
        }
    }

    /// Asks the route whether it takes the body, and hands it what has come.
    fn begin_upload<N: Net>(&mut self, turn: &mut Turn<'_, N>, head: &Head<'_>, input: &[u8]) -> Step {
        if matches!(head.body, BodyLength::Length(length) if length > self.upload_bytes_max) {
            return self.reject_form(turn, head, 413, input.len());
        }
        if self.is_too_many(turn, head) {
            return self.reject_asked(turn, head, 429, input.len());
        }
        let Some(address) = self.scratch.owing.reserve() else {
            return self.reject_asked(turn, head, 503, input.len());
        };
        let asked = self.asked(turn, head);
        let waker = Waker::new(Arc::clone(&self.scratch.owing.mailbox), address);
        let found = self.router.find(head.method, head.path(), &mut self.path);
        let Found::Action { action: Action::Upload(begin), params } = found else {
            unreachable!("the same request was for an upload before")
        };
        match begun(begin, &Request::new(head, &[], &params), waker, &mut self.scratch) {
            Ok(upload) => self.take_upload(turn, head, address, upload, input),
            Err(status) => {
                // The body that follows is not wanted: the connection cannot be used again.
                let asked = Asked { connection: Connection::Closed, ..asked };
                self.scratch.begin(asked);
                self.scratch.counts().requests += 1;
                let response = short(&mut self.scratch, status, None);
                self.finish(turn, head, asked, response);
                Step { used: 0, next: Next::Close }
            }
        }
    }

    fn take_upload<N: Net>(
        &mut self,
        turn: &mut Turn<'_, N>,
        head: &Head<'_>,
        address: Address,
        upload: Box<dyn Upload>,
        input: &[u8],
    ) -> Step {
        debug_assert_eq!(address.token, turn.token, "an upload is its connection's own");
        self.scratch.owing.take_on();
        if head.expect_continue && input.is_empty() {
            self.go_ahead(turn);
        }
        let framing = match head.body {
            BodyLength::Length(length) => Framing::Length(length),
            _ => Framing::Chunked(Decoder::new()),
        };
        let into = Into::Upload(Box::new(Uploading { upload: Some(upload), address, is_paused: false }));
        let (asked, line) = (self.asked(turn, head), self.wants_peer().then(|| self.kept_of(turn, head)));
        self.await_body(turn, Incoming { head: Vec::new(), asked, framing, into, line });
        // What has come with the head; an upload never needs the head again, so no room to note it is needed either.
        self.resume(turn, &mut Slots::new(&request::Limits { headers_max: 0, ..self.http_limits }), input)
    }

    /// The body that is awaited will not become whole.
    pub(crate) fn drop_incoming<N: Net>(&mut self, turn: &mut Turn<'_, N>, why: BodyError) {
        let Some(incoming) = turn.conn.busy.as_deref_mut().and_then(|busy| busy.incoming.take()) else {
            return;
        };
        self.fail(incoming.into, why);
    }

    /// An upload learns that its body will not become whole.
    fn fail(&mut self, into: Into, why: BodyError) {
        if let Into::Upload(mut uploading) = into {
            self.scratch.owing.release();
            if let Some(upload) = uploading.upload.take()
                && catch_unwind(AssertUnwindSafe(|| upload.failed(why))).is_err()
            {
                self.scratch.counts().panics += 1;
            }
        }
    }

    /// A waker has been heard: whether it was for this connection's source or upload, which now goes on.
    pub(crate) fn on_waker<N: Net>(&mut self, turn: &mut Turn<'_, N>, serial: u32) -> bool {
        let Some(busy) = turn.conn.busy.as_deref_mut() else { return false };
        if planted(Fault::WakeLost) {
            return false;
        }
        if let Some(Incoming { into: Into::Upload(uploading), .. }) = &mut busy.incoming
            && uploading.address.serial == serial
        {
            return std::mem::replace(&mut uploading.is_paused, false);
        }
        match &mut busy.owed {
            Some(Owed { serial: owed, what: OwedWhat::Stream { is_waiting, .. }, .. }) if *owed == serial => {
                std::mem::replace(is_waiting, false)
            }
            _ => false,
        }
    }

    fn admitted(&self, length: u64) -> Option<usize> {
        usize::try_from(length).ok().filter(|&length| length <= self.body_bytes_max)
    }
}

/// What taking a piece of a body came to.
enum Taken {
    More,
    Paused,
    Rejected { status: u16, why: BodyError, by: By },
}

fn collect_into(body: &mut Vec<u8>, data: Data<'_>, max: usize) -> Taken {
    if data.announced > max as u64 {
        return Taken::Rejected { status: 413, why: BodyError::Refused, by: By::Form };
    }
    let lost = usize::from(planted(Fault::BodyByteLost) && data.bytes.len() > 1);
    body.extend_from_slice(&data.bytes[lost..]);
    Taken::More
}

fn hand_on(uploading: &mut Uploading, data: Data<'_>, max: u64) -> Taken {
    if data.announced > max {
        return Taken::Rejected { status: 413, why: BodyError::Refused, by: By::Form };
    }
    if data.bytes.is_empty() {
        return Taken::More;
    }
    let upload = uploading.upload.as_mut().expect("an upload whose body comes has not ended");
    match catch_unwind(AssertUnwindSafe(|| upload.data(data.bytes))) {
        Ok(Flow::More) => Taken::More,
        Ok(Flow::Pause) => {
            uploading.is_paused = true;
            Taken::Paused
        }
        Ok(Flow::Refuse(status)) => {
            let status = if (200..=599).contains(&status) { status } else { 500 };
            Taken::Rejected { status, why: BodyError::Refused, by: By::Upload }
        }
        Err(_) => Taken::Rejected { status: 500, why: BodyError::Refused, by: By::Panic },
    }
}

/// A piece of a body.
struct Data<'d> {
    bytes: &'d [u8],
    /// Bytes of the body that its framing has announced so far.
    announced: u64,
}

/// Takes the framing off `input` and gives its pieces to `take`.
fn take_in(framing: &mut Framing, input: &[u8], mut take: impl FnMut(Data<'_>) -> Taken) -> Intake {
    match framing {
        Framing::Length(left) => {
            let used = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
            *left -= used as u64;
            match take(Data { bytes: &input[..used], announced: 0 }) {
                Taken::Rejected { status, why, by } => Intake::Rejected { status, why, by },
                _ if *left == 0 => Intake::Whole { used },
                Taken::Paused => Intake::Paused { used },
                Taken::More => Intake::NeedMore { used },
            }
        }
        Framing::Chunked(decoder) => take_in_chunks(decoder, input, take),
    }
}

fn take_in_chunks(decoder: &mut Decoder, input: &[u8], mut take: impl FnMut(Data<'_>) -> Taken) -> Intake {
    let mut used = 0;
    while used < input.len() {
        let rest = &input[used..];
        let chunk = match decoder.push(rest) {
            Ok(chunk) => chunk,
            Err(reject) => {
                let status = reject.status();
                return Intake::Rejected { status, why: BodyError::Malformed(status), by: By::Form };
            }
        };
        used += chunk.used;
        let taken = take(Data { bytes: &rest[chunk.data], announced: decoder.announced() });
        match taken {
            Taken::Rejected { status, why, by } => return Intake::Rejected { status, why, by },
            _ if chunk.done => return Intake::Whole { used },
            Taken::Paused => return Intake::Paused { used },
            Taken::More => {}
        }
        debug_assert!(chunk.used > 0, "the decoder takes something of what it is given");
    }
    Intake::NeedMore { used }
}
