//! One connection's answers, from bytes in any pieces to verdicts: pure, no socket, no clock.
//!
//! The session feeds it what it received; it finds the end of each answer, checks it by the session's rules and says
//! whether the connection may carry another. Everything that a hostile server can stretch is bounded: a head and the
//! interim answers before it by their bytes, chunk overhead by the decoder; a body is streamed, never kept, and bounded
//! by the request's timeout.

use dyno_proto::http1::Reject as ChunkReject;
use dyno_proto::http1::chunk::Decoder;
use dyno_proto::http1::response::{self, BodyLength, Parsed};

use crate::check::{BodyCheck, Rules, SHOWN_BYTES_MAX, Verdict, WrongAnswer, shown};

/// A head and the interim answers (1xx) before it, together: what the parser takes for one head. A cut head is parsed
/// again with each piece that comes, so this also bounds that work.
const HEAD_BYTES_MAX: usize = response::HEAD_BYTES_MAX;

/// Whether the connection can carry the next request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum After {
    KeepAlive,
    Close,
}

/// A whole answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    /// How many bytes of this input belong to it.
    pub(crate) used: usize,
    /// How many bytes it had, head and body and interim answers.
    pub(crate) bytes: u64,
    pub(crate) after: After,
    pub(crate) verdict: Verdict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// All of the input was taken; the answer goes on.
    NeedMore,
    Whole(Answer),
}

/// What the end of the stream means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtEnd {
    /// No answer had begun.
    Between,
    /// The answer was delimited by it.
    Whole(Answer),
    /// An answer was cut off.
    Cut,
}

/// Why bytes are no answer; the connection cannot be used further.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Broken {
    #[error("{0}")]
    Head(response::Reject),
    #[error("{0}")]
    Chunk(ChunkReject),
    #[error("the head is longer than {HEAD_BYTES_MAX} bytes")]
    HeadTooLong,
    #[error("101 Switching Protocols was not asked for")]
    Switched,
    #[error("bytes came that no request asked for")]
    Unasked,
}

/// The state between two inputs. What an answer that is recognised whole does not need stands elsewhere: of each connection
/// only a cache line is looked at then.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    /// Bytes of the current answer taken so far.
    bytes: u64,
    slow: Box<Slow>,
}

/// What parsing needs.
#[derive(Debug, Default)]
struct Slow {
    stage: Stage,
    /// A head that was cut, until the rest of it comes.
    head: Vec<u8>,
    seen: Seen,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Head,
    Body(Streaming),
}

#[derive(Debug)]
struct Streaming {
    status: u16,
    after: After,
    framing: Framing,
    check: BodyCheck,
}

#[derive(Debug)]
enum Framing {
    Length(u64),
    Chunked(Decoder),
    UntilClose,
}

/// The beginnings of the current, then of the last answer: for messages only.
#[derive(Debug, Default)]
struct Seen {
    head: Vec<u8>,
    body: Vec<u8>,
    body_bytes: u64,
}

impl Reader {
    /// Takes the next bytes of the stream, which must not be empty. What follows a whole answer is left in `input`.
    #[inline]
    pub(crate) fn next(&mut self, input: &[u8], rules: &mut Rules) -> Result<Progress, Broken> {
        debug_assert!(!input.is_empty(), "the end of the stream is at_end's");
        debug_assert!(self.bytes > 0 || self.slow.is_between(), "{BETWEEN}");
        if self.bytes == 0
            && let Some(used) = rules.recognise(input)
        {
            let bytes = used as u64;
            return Ok(Progress::Whole(Answer {
                used,
                bytes,
                after: After::KeepAlive,
                verdict: Verdict::Right,
            }));
        }
        self.parse(input, rules)
    }

    fn parse(&mut self, input: &[u8], rules: &mut Rules) -> Result<Progress, Broken> {
        let began_here = self.bytes == 0;
        let mut used = 0;
        if let Stage::Head = self.slow.stage {
            match self.take_head(input, rules)? {
                Some(head) => used = head,
                None => return Ok(Progress::NeedMore),
            }
        }
        let (body, end) = self.take_body(&input[used..], rules)?;
        used += body;
        debug_assert!(used <= input.len(), "an answer has bytes that did not come");
        if end == End::NotYet {
            debug_assert_eq!(used, input.len(), "bytes of an answer that goes on would be lost");
            return Ok(Progress::NeedMore);
        }
        let answer = self.finish(used, rules);
        if began_here && answer.verdict == Verdict::Right && answer.after == After::KeepAlive {
            rules.remember(&input[..used]);
        }
        Ok(Progress::Whole(answer))
    }

    /// What the server's closing of the connection means here.
    pub(crate) fn at_end(&mut self, rules: &mut Rules) -> AtEnd {
        match &self.slow.stage {
            Stage::Body(Streaming { framing: Framing::UntilClose, .. }) => {
                AtEnd::Whole(self.finish(0, rules))
            }
            Stage::Head if self.bytes == 0 => AtEnd::Between,
            _ => AtEnd::Cut,
        }
    }

    /// Forgets an answer that will not be finished; keeps the memory.
    pub(crate) fn reset(&mut self) {
        self.slow.stage = Stage::Head;
        self.slow.head.clear();
        self.bytes = 0;
    }

    /// What was wrong with the answer that was just finished.
    pub(crate) fn wrong_answer(&self, verdict: Verdict, rules: &Rules) -> WrongAnswer {
        let got = match verdict {
            Verdict::WrongBody(_) => {
                let more = if self.slow.seen.body_bytes > self.slow.seen.body.len() as u64 {
                    ", which begins"
                } else {
                    ""
                };
                format!("{} bytes{more}: {}", self.slow.seen.body_bytes, shown(&self.slow.seen.body))
            }
            Verdict::WrongStatus | Verdict::Right => self.got(),
        };
        WrongAnswer { expected: rules.expected(verdict), got }
    }

    /// The beginning of the answer that was begun last, escaped.
    pub(crate) fn got(&self) -> String {
        let mut start = self.slow.seen.head.clone();
        start.extend_from_slice(&self.slow.seen.body);
        start.truncate(SHOWN_BYTES_MAX);
        shown(&start)
    }

    /// The length of the head's part in `input`, once it is whole.
    fn take_head(&mut self, input: &[u8], rules: &Rules) -> Result<Option<usize>, Broken> {
        let before = self.slow.head.len();
        if before > 0 {
            self.slow.head.extend_from_slice(input);
        }
        let whole = if before > 0 { &self.slow.head[..] } else { input };
        self.slow.seen.restart(whole);
        let Some((body, used)) = parse_head(whole, rules)? else {
            if before == 0 {
                self.slow.head.extend_from_slice(input);
            }
            self.bytes += input.len() as u64;
            return Ok(None);
        };
        debug_assert!(used > before, "a head that was whole before was not taken as such");
        self.slow.seen.head.truncate(used);
        self.slow.head.clear();
        self.bytes += (used - before) as u64;
        self.slow.stage = Stage::Body(body);
        Ok(Some(used - before))
    }

    /// How many bytes of `input` belong to the body, and whether it ends with them.
    fn take_body(&mut self, input: &[u8], rules: &Rules) -> Result<(usize, End), Broken> {
        let Stage::Body(Streaming { framing, check, .. }) = &mut self.slow.stage else {
            return Ok((0, End::NotYet));
        };
        let mut data = |piece: &[u8]| {
            self.slow.seen.push(piece);
            check.push(piece, rules);
        };
        let (used, end) = match framing {
            Framing::UntilClose => {
                data(input);
                (input.len(), End::NotYet)
            }
            Framing::Length(left) => {
                let used = usize::try_from(*left).map_or(input.len(), |left| left.min(input.len()));
                data(&input[..used]);
                *left -= used as u64;
                (used, if *left == 0 { End::Here } else { End::NotYet })
            }
            Framing::Chunked(decoder) => take_chunks(decoder, input, data)?,
        };
        self.bytes += used as u64;
        Ok((used, end))
    }

    fn finish(&mut self, used: usize, rules: &mut Rules) -> Answer {
        let bytes = self.bytes;
        let Stage::Body(body) = std::mem::take(&mut self.slow.stage) else {
            unreachable!("only a body is finished")
        };
        self.reset();
        debug_assert!(bytes >= used as u64, "more was used of this input than the whole answer has");
        Answer { used, bytes, after: body.after, verdict: body.check.finish(body.status, rules) }
    }
}

/// Between two answers nothing of either is held: what is would be read as the beginning of the next.
const BETWEEN: &str = "something of the last answer is still held";

impl Slow {
    fn is_between(&self) -> bool {
        self.head.is_empty() && matches!(self.stage, Stage::Head)
    }
}

impl Seen {
    fn restart(&mut self, head: &[u8]) {
        self.head.clear();
        self.head.extend_from_slice(&head[..head.len().min(SHOWN_BYTES_MAX)]);
        self.body.clear();
        self.body_bytes = 0;
    }

    fn push(&mut self, data: &[u8]) {
        debug_assert!(self.body.len() <= SHOWN_BYTES_MAX, "more is kept than is ever shown");
        let room = SHOWN_BYTES_MAX - self.body.len();
        self.body.extend_from_slice(&data[..data.len().min(room)]);
        self.body_bytes += data.len() as u64;
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Here,
    NotYet,
}

/// What the head says of the body, and the bytes up to there.
fn parse_head(input: &[u8], rules: &Rules) -> Result<Option<(Streaming, usize)>, Broken> {
    let (head, used) = match response::parse(input, rules.asked()).map_err(Broken::Head)? {
        Parsed::Whole { used, .. } if used > HEAD_BYTES_MAX => return Err(Broken::HeadTooLong),
        Parsed::NeedMore if input.len() > HEAD_BYTES_MAX => return Err(Broken::HeadTooLong),
        Parsed::NeedMore => return Ok(None),
        Parsed::Whole { head, used } => (head, used),
    };
    if head.status < 200 {
        return Err(Broken::Switched);
    }
    let framing = match head.body {
        BodyLength::None => Framing::Length(0),
        BodyLength::Length(length) => Framing::Length(length),
        BodyLength::Chunked => Framing::Chunked(Decoder::new()),
        BodyLength::UntilClose => Framing::UntilClose,
    };
    let ends = !head.keep_alive || matches!(framing, Framing::UntilClose);
    let after = if ends { After::Close } else { After::KeepAlive };
    let check = BodyCheck::new(rules, head.status);
    Ok(Some((Streaming { status: head.status, after, framing, check }, used)))
}

fn take_chunks(
    decoder: &mut Decoder,
    input: &[u8],
    mut data: impl FnMut(&[u8]),
) -> Result<(usize, End), Broken> {
    let mut at = 0;
    while at < input.len() {
        let chunk = decoder.push(&input[at..]).map_err(Broken::Chunk)?;
        data(&input[at..][chunk.data]);
        at += chunk.used;
        if chunk.done {
            return Ok((at, End::Here));
        }
        debug_assert!(chunk.used > 0, "the decoder takes a byte of every input, or this loop would not end");
    }
    Ok((at, End::NotYet))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::check::Expect;
    use dyno_measure::Prng;
    use dyno_proto::http1::response::Asked;

    const PLAIN: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:55 GMT\r\nContent-Length: 5\r\n\r\nhello";
    const LATER: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:56 GMT\r\nContent-Length: 5\r\n\r\nhello";
    const CHUNKED: &[u8] =
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n";
    const INTERIM: &[u8] =
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const EMPTY: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";
    const WRONG_BODY: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:55 GMT\r\nContent-Length: 5\r\n\r\nhelLo";
    const WRONG_STATUS: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\n\r\nhello";
    const UNTIL_CLOSE: &[u8] = b"HTTP/1.1 200 OK\r\n\r\nhello";

    fn rules() -> Rules {
        Rules::new(Expect::body("hello"), Asked::Other)
    }

    /// The verdicts on a stream that comes in these pieces, with the length of each answer.
    fn verdicts(rules: &mut Rules, pieces: &[&[u8]]) -> Result<Vec<(Verdict, u64, After)>, Broken> {
        let mut reader = Reader::default();
        let mut found = Vec::new();
        for piece in pieces {
            let mut input = *piece;
            while !input.is_empty() {
                match reader.next(input, rules)? {
                    Progress::NeedMore => break,
                    Progress::Whole(answer) => {
                        input = &input[answer.used..];
                        found.push((answer.verdict, answer.bytes, answer.after));
                    }
                }
            }
        }
        match reader.at_end(rules) {
            AtEnd::Whole(answer) => found.push((answer.verdict, answer.bytes, answer.after)),
            AtEnd::Between => {}
            AtEnd::Cut => found.push((Verdict::WrongBody(None), 0, After::Close)),
        }
        Ok(found)
    }

    fn cut_at<'s>(stream: &'s [u8], cuts: &[usize]) -> Vec<&'s [u8]> {
        let mut bounds = vec![0];
        bounds.extend_from_slice(cuts);
        bounds.push(stream.len());
        bounds.sort_unstable();
        bounds.windows(2).map(|pair| &stream[pair[0]..pair[1]]).collect()
    }

    #[test]
    fn every_kind_of_answer_has_its_verdict_at_every_cut() {
        let right = |answer: &[u8]| (Verdict::Right, answer.len() as u64, After::KeepAlive);
        for (answer, wanted) in [
            (PLAIN, right(PLAIN)),
            (CHUNKED, right(CHUNKED)),
            (INTERIM, right(INTERIM)),
            (UNTIL_CLOSE, (Verdict::Right, UNTIL_CLOSE.len() as u64, After::Close)),
            (EMPTY, (Verdict::WrongBody(Some(0)), EMPTY.len() as u64, After::KeepAlive)),
            (WRONG_BODY, (Verdict::WrongBody(Some(3)), WRONG_BODY.len() as u64, After::KeepAlive)),
            (WRONG_STATUS, (Verdict::WrongStatus, WRONG_STATUS.len() as u64, After::KeepAlive)),
        ] {
            for cut in 0..=answer.len() {
                let found = verdicts(&mut rules(), &cut_at(answer, &[cut]));
                assert_eq!(found, Ok(vec![wanted]), "{} cut at {cut}", answer.escape_ascii());
            }
            let bytes: Vec<&[u8]> = answer.chunks(1).collect();
            assert_eq!(verdicts(&mut rules(), &bytes), Ok(vec![wanted]), "byte by byte");
        }
    }

    #[test]
    fn the_short_way_and_the_long_way_count_the_same_however_a_stream_is_cut() {
        let seed = 0x10ad;
        let mut rng = Prng::new(seed);
        let kinds = [PLAIN, PLAIN, PLAIN, LATER, CHUNKED, INTERIM, EMPTY, WRONG_BODY, WRONG_STATUS];
        for round in 0..2_000 {
            let answers: Vec<&[u8]> = (0..rng.below(12)).map(|_| kinds[rng.below(9) as usize]).collect();
            let stream = answers.concat();
            let mut cuts = || rng.below(stream.len() as u64 + 1) as usize;
            let cuts: Vec<usize> = (0..round % 7).map(|_| cuts()).collect();
            let pieces = cut_at(&stream, &cuts);
            let short = verdicts(&mut rules(), &pieces);
            let long = verdicts(&mut rules().without_template(), &pieces);
            let whole = verdicts(&mut rules().without_template(), &answers);
            assert_eq!(short, long, "seed {seed}, round {round}");
            assert_eq!(long, whole, "seed {seed}, round {round}");
        }
    }

    #[test]
    fn one_flipped_byte_is_judged_the_same_both_ways() {
        let seed = 0xf11b;
        let mut rng = Prng::new(seed);
        for round in 0..20_000 {
            let mut other = PLAIN.to_vec();
            other[rng.below(PLAIN.len() as u64) as usize] = rng.next_u64() as u8;
            let stream = [PLAIN, &other, PLAIN].concat();
            let short = verdicts(&mut rules(), &[&stream]);
            let long = verdicts(&mut rules().without_template(), &[&stream]);
            assert_eq!(short, long, "seed {seed}, round {round}: {}", other.escape_ascii());
        }
    }

    #[test]
    fn only_a_right_answer_that_came_whole_and_keeps_the_connection_is_a_template() {
        let closing: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
        for (pieces, is_template) in [
            (vec![PLAIN], true),
            (vec![CHUNKED], true),
            (cut_at(PLAIN, &[9]), false),
            (vec![WRONG_BODY], false),
            (vec![WRONG_STATUS], false),
            (vec![UNTIL_CLOSE], false),
            (vec![closing], false),
        ] {
            let mut rules = rules();
            verdicts(&mut rules, &pieces).unwrap();
            assert_eq!(rules.has_template(), is_template, "{}", pieces.concat().escape_ascii());
        }
    }

    #[test]
    #[should_panic(expected = "something of the last answer is still held")]
    fn a_rest_of_the_last_answer_is_our_mistake() {
        let mut reader = Reader::default();
        reader.slow.head.extend_from_slice(b"HTTP/1.1 2");
        let _ = reader.next(PLAIN, &mut rules());
    }

    #[test]
    fn what_is_no_answer_is_broken_at_once_or_at_a_bound() {
        let broken =
            |stream: &[u8]| verdicts(&mut rules(), &cut_at(stream, &[stream.len() / 2])).unwrap_err();
        assert!(matches!(broken(b"SSH-2.0-OpenSSH_9.2\r\n"), Broken::Head(_)));
        assert!(matches!(
            broken(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
            Broken::Switched
        ));
        let bad_chunk: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n";
        assert!(matches!(broken(bad_chunk), Broken::Chunk(_)));
        let both: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n";
        assert!(matches!(broken(both), Broken::Head(_)));
    }

    #[test]
    fn endless_heads_interims_and_chunk_frames_end_at_their_bounds() {
        let endless = |start: &[u8], more: &[u8]| {
            let mut reader = Reader::default();
            let mut rules = Rules::new(Expect::any(), Asked::Other);
            let mut taken = start.len();
            let mut outcome = reader.next(start, &mut rules);
            let piece = more.repeat(4_096 / more.len());
            while let Ok(progress) = outcome {
                assert_eq!(progress, Progress::NeedMore);
                assert!(taken < 4 << 20, "4 MiB of {} were taken", more.escape_ascii());
                taken += piece.len();
                outcome = reader.next(&piece, &mut rules);
            }
        };
        endless(b"HTTP/1.1 200 OK\r\n", b"X-Filler: abcdefgh\r\n");
        endless(b"HTTP/1.1 200 OK\r\nX: ", b"x");
        endless(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n");
        let chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        endless(chunked, b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n");
        endless(&[chunked, &b"0\r\n"[..]].concat(), b"T: abcdefgh\r\n");
    }

    #[test]
    fn the_end_of_the_stream_is_no_cut_answer() {
        let at_end = |bytes: &[u8]| {
            let (mut reader, mut rules) = (Reader::default(), rules());
            if !bytes.is_empty() {
                reader.next(bytes, &mut rules).unwrap();
            }
            reader.at_end(&mut rules)
        };
        assert_eq!(at_end(b""), AtEnd::Between);
        assert_eq!(at_end(PLAIN), AtEnd::Between);
        assert!(matches!(at_end(UNTIL_CLOSE), AtEnd::Whole(Answer { verdict: Verdict::Right, .. })));
        for cut in 1..PLAIN.len() {
            assert_eq!(at_end(&PLAIN[..cut]), AtEnd::Cut, "cut at {cut}");
        }
    }

    #[test]
    fn a_head_request_has_answers_without_bodies() {
        let mut rules = Rules::new(Expect::any(), Asked::Head);
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
        let found = verdicts(&mut rules, &[&head.repeat(3)]).unwrap();
        assert_eq!(found, vec![(Verdict::Right, head.len() as u64, After::KeepAlive); 3]);
    }

    #[test]
    fn a_wrong_answer_is_shown_with_what_was_expected() {
        let shown_of = |stream: &[u8]| {
            let (mut reader, mut rules) = (Reader::default(), rules());
            match reader.next(stream, &mut rules) {
                Ok(Progress::Whole(answer)) => reader.wrong_answer(answer.verdict, &rules),
                other => panic!("{other:?}"),
            }
        };
        let body = shown_of(WRONG_BODY);
        assert_eq!(body.expected, "a body of 5 bytes, differing from byte 3: \"hello\"");
        assert_eq!(body.got, "5 bytes: \"helLo\"");
        let status = shown_of(WRONG_STATUS);
        assert_eq!(status.expected, "status 2xx or 3xx");
        assert!(status.got.starts_with("\"HTTP/1.1 503 Busy\\r\\n"), "{}", status.got);
    }
}
