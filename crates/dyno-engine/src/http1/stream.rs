//! Streamed bodies: a source is asked for the next piece when the one before has left.

use super::frame::answered;
use super::{Http1, Next, Turn, next_after};
use crate::conn::{Owed, OwedWhat, StreamFraming};
use crate::fault::{Fault, planted};
use crate::response::Filled;
use crate::seam::Net;
use crate::segment::Flushed;
use dyno_proto::http1::encode;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Bytes of one body that are made in a turn, so that a fast reader does not keep the other connections waiting.
const TURN_BYTES: usize = 256 << 10;

/// What came of asking a source once.
enum Asking {
    /// It has more.
    Again,
    Waits,
    Ended,
    Broken,
}

impl<N: Net> Turn<'_, N> {
    /// A stream has given something: a peer that has closed one half of the connection waits anew for what comes next.
    fn forget_silence(&mut self) {
        if let Some(busy) = self.conn.busy.as_deref_mut() {
            busy.owed_due = None;
        }
    }
}

impl Http1 {
    /// Asks the source that is owed until it has no more, the socket is full, or the turn is over.
    pub(super) fn pump<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> Next {
        let mut made = 0;
        while made < TURN_BYTES {
            let before = self.scratch.out.len();
            let Some(owed) = turn.conn.busy.as_deref_mut().and_then(|busy| busy.owed.as_mut()) else {
                return Next::Broken;
            };
            let asking = self.ask(owed);
            made += self.scratch.out.len() - before;
            if made > 0 {
                turn.forget_silence();
            }
            if turn.net.holds_replies() {
                self.tell_whole(turn);
            }
            match asking {
                Asking::Again => {}
                Asking::Waits => {
                    self.wait_for_source(turn);
                    return Next::Paused;
                }
                Asking::Ended => return self.end_stream(turn),
                Asking::Broken => return Next::Broken,
            }
            match self.flush(turn) {
                Flushed::All => {}
                Flushed::Blocked | Flushed::Cold => return Next::Paused,
                Flushed::Changed => return Next::Short,
                Flushed::Broken => return Next::Broken,
            }
        }
        Next::Paused
    }

    /// Nothing is sent from now on, for any time: the kernel looks whether there is still somebody.
    fn wait_for_source<N: Net>(&mut self, turn: &mut Turn<'_, N>) {
        let Some(busy) = turn.conn.busy.as_deref_mut() else { return };
        if !busy.is_kept_alive && !planted(Fault::NotKeptAlive) {
            busy.is_kept_alive = true;
            turn.net.keep_alive(turn.conn.socket());
        }
    }

    /// A body of known length is whole for its client with its last byte, though its source may not have said so yet: with
    /// that byte waits its line, where replies wait for theirs.
    fn tell_whole<N: Net>(&mut self, turn: &mut Turn<'_, N>) {
        let owed = turn.conn.busy.as_deref_mut().and_then(|busy| busy.owed.as_mut());
        let Some(owed) = owed.filter(|owed| !owed.is_told) else { return };
        if !matches!(owed.what, OwedWhat::Stream { framing: StreamFraming::Length(0), .. }) {
            return;
        }
        owed.is_told = true;
        let answered = answered(owed);
        let line = owed.line.take();
        self.log_line(turn.conn.peer, line.as_deref(), answered);
    }

    /// One piece, framed into the outbox.
    fn ask(&mut self, owed: &mut Owed) -> Asking {
        let OwedWhat::Stream { source, framing, is_waiting, .. } = &mut owed.what else {
            unreachable!("only streams are asked for more");
        };
        let mut piece = std::mem::take(&mut self.scratch.piece);
        piece.clear();
        debug_assert!(!*is_waiting, "a source that waits is not asked");
        let filled = catch_unwind(AssertUnwindSafe(|| source.fill(&mut piece))).unwrap_or_else(|_| {
            self.scratch.tally.counts.panics += 1;
            Filled::Broken
        });
        owed.body_bytes += piece.len() as u64;
        let is_framed = put_piece(self.scratch.out.bytes(), framing, &piece);
        let asking = match filled {
            _ if !is_framed => Asking::Broken,
            Filled::Broken => Asking::Broken,
            // Nothing and "more" would be asked again and again.
            Filled::More if !piece.is_empty() => Asking::Again,
            Filled::More | Filled::Wait => {
                *is_waiting = true;
                Asking::Waits
            }
            Filled::End => end_framing(self.scratch.out.bytes(), *framing),
        };
        self.scratch.piece = piece;
        asking
    }

    fn end_stream<N: Net>(&mut self, turn: &mut Turn<'_, N>) -> Next {
        let owed = turn.conn.busy.as_deref_mut().and_then(|busy| busy.owed.take());
        let owed = owed.expect("the stream that has just ended was owed");
        let is_framed = !matches!(owed.what, OwedWhat::Stream { framing: StreamFraming::Length(1..), .. });
        debug_assert!(is_framed, "a stream of a known length ends when all of it was given");
        self.scratch.owing.release();
        let answered = answered(&owed);
        self.count_reply(turn.net, answered);
        if !owed.is_told {
            self.log_line(turn.conn.peer, owed.line.as_deref(), answered);
        }
        next_after(owed.asked.connection)
    }
}

/// Frames a piece; `false` when it is more than was promised.
fn put_piece(out: &mut Vec<u8>, framing: &mut StreamFraming, piece: &[u8]) -> bool {
    match framing {
        StreamFraming::Chunked => encode::chunk(out, piece),
        StreamFraming::Close => out.extend_from_slice(piece),
        StreamFraming::Length(left) => {
            let Some(rest) = left.checked_sub(piece.len() as u64) else { return false };
            *left = rest;
            out.extend_from_slice(piece);
        }
    }
    true
}

/// Frames the end; a body that is shorter than was promised is broken.
fn end_framing(out: &mut Vec<u8>, framing: StreamFraming) -> Asking {
    match framing {
        StreamFraming::Chunked if planted(Fault::NoLastChunk) => {}
        StreamFraming::Chunked => encode::last_chunk(out),
        StreamFraming::Close | StreamFraming::Length(0) => {}
        StreamFraming::Length(_) => return Asking::Broken,
    }
    Asking::Ended
}

#[cfg(test)]
mod tests {
    use super::*;

    fn framed(mut framing: StreamFraming, pieces: &[&str]) -> (Vec<bool>, String, StreamFraming) {
        let mut out = Vec::new();
        let taken = pieces.iter().map(|piece| put_piece(&mut out, &mut framing, piece.as_bytes())).collect();
        (taken, String::from_utf8_lossy(&out).into_owned(), framing)
    }

    /// Planted faults: a byte more than was promised is sent, or the last one is not.
    #[test]
    fn a_stream_gives_what_its_framing_holds_and_no_more() {
        let (chunked, close) = (StreamFraming::Chunked, StreamFraming::Close);
        assert_eq!(framed(close, &["ab", "", "c"]), (vec![true; 3], "abc".to_owned(), close));
        assert_eq!(framed(chunked, &["ab"]), (vec![true], "2\r\nab\r\n".to_owned(), chunked));
        let of = StreamFraming::Length;
        assert_eq!(framed(of(3), &["ab"]), (vec![true], "ab".to_owned(), of(1)));
        assert_eq!(framed(of(3), &["ab", "c"]), (vec![true; 2], "abc".to_owned(), of(0)));
        assert_eq!(framed(of(3), &["ab", "cd"]), (vec![true, false], "ab".to_owned(), of(1)));
        assert_eq!(framed(of(0), &["", "x"]), (vec![true, false], String::new(), of(0)));
    }

    #[test]
    fn a_stream_ends_whole_or_is_broken() {
        for (framing, is_whole, end) in [
            (StreamFraming::Chunked, true, "0\r\n\r\n"),
            (StreamFraming::Close, true, ""),
            (StreamFraming::Length(0), true, ""),
            (StreamFraming::Length(1), false, ""),
        ] {
            let mut out = Vec::new();
            let ended = end_framing(&mut out, framing);
            assert_eq!(matches!(ended, Asking::Ended), is_whole, "{framing:?}");
            assert_eq!(matches!(ended, Asking::Broken), !is_whole, "{framing:?}");
            assert_eq!(String::from_utf8_lossy(&out), end, "{framing:?}");
        }
    }
}
