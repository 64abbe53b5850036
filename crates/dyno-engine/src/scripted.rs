//! A socket that takes what a test says, call by call, and remembers what it took: for tests of what is sent, in which calls.
//!
//! The tests beside the outbox, the queue, the framing and the core use it. The simulator has a network of its own.

use crate::file::FilePart;
use crate::seam::{FileSent, Net, ReadUntil, Watch};
use dyno_sys::resident::Patience;
use dyno_sys::socket::Io;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::sync::{Arc, Weak};

/// The socket, and the seam to it.
#[derive(Default)]
pub(crate) struct Scripted {
    /// What the next calls come to, `Done` being the most that they take. Afterwards everything is taken.
    pub(crate) script: VecDeque<FileSent>,
    /// What was taken; a byte of a file is `#`.
    pub(crate) taken: Vec<u8>,
    pub(crate) calls: Vec<String>,
    /// Whether a send ends where a head or a body ends.
    pub(crate) has_split: bool,
    /// What the next reads bring; afterwards there is nothing to read.
    pub(crate) input: VecDeque<Vec<u8>>,
    /// Bytes that the peer has not acknowledged.
    pub(crate) unacknowledged: u64,
    /// Whether readiness is told once, and reads go on until nothing comes.
    pub(crate) is_edged: bool,
}

/// A part of a file of so many bytes, which nobody reads.
pub(crate) fn file(length: u64) -> FilePart {
    let null = std::fs::File::open("/dev/null").expect("every system has it");
    FilePart::sealed(Arc::new(null), length)
}

impl Scripted {
    pub(crate) fn saying(script: impl IntoIterator<Item = FileSent>) -> Scripted {
        Scripted { script: script.into_iter().collect(), ..Scripted::default() }
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.taken).expect("tests send text")
    }

    fn take(&mut self, bytes: &[u8]) -> Io {
        match self.script.pop_front().unwrap_or(FileSent::Done(usize::MAX)) {
            FileSent::Done(most) => {
                let count = most.min(bytes.len());
                self.taken.extend_from_slice(&bytes[..count]);
                Io::Done(count)
            }
            FileSent::WouldBlock => Io::WouldBlock,
            FileSent::Cold | FileSent::Changed | FileSent::Broken => Io::Failed(32),
        }
    }

    fn gather(&mut self, what: &str, slices: &[IoSlice<'_>]) -> Io {
        let lengths: Vec<String> = slices.iter().map(|slice| slice.len().to_string()).collect();
        self.calls.push(format!("{what} {}", lengths.join("+")));
        let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
        self.take(&all)
    }
}

impl Net for Scripted {
    type Socket = ();

    fn receive(&mut self, _socket: &(), into: &mut [u8]) -> Io {
        let Some(mut bytes) = self.input.pop_front() else { return Io::WouldBlock };
        let rest = bytes.split_off(bytes.len().min(into.len()));
        into[..bytes.len()].copy_from_slice(&bytes);
        if !rest.is_empty() {
            self.input.push_front(rest);
        }
        Io::Done(bytes.len())
    }

    fn send(&mut self, _socket: &(), bytes: &[u8]) -> Io {
        self.calls.push(format!("send {}", bytes.len()));
        self.take(bytes)
    }

    fn send_slices(&mut self, _socket: &(), slices: &[IoSlice<'_>]) -> Io {
        self.gather("slices", slices)
    }

    fn send_before_file(&mut self, _socket: &(), slices: &[IoSlice<'_>]) -> Io {
        self.gather("before file", slices)
    }

    fn send_file(
        &mut self,
        _socket: &(),
        _file: &FilePart,
        offset: u64,
        count: usize,
        patience: Patience,
    ) -> FileSent {
        let waits = if patience == Patience::Waits { ", waits" } else { "" };
        self.calls.push(format!("file {offset}+{count}{waits}"));
        match self.script.pop_front().unwrap_or(FileSent::Done(usize::MAX)) {
            FileSent::Done(most) => {
                let count = most.min(count);
                self.taken.extend(std::iter::repeat_n(b'#', count));
                FileSent::Done(count)
            }
            other => other,
        }
    }

    fn fetch(&mut self, _file: &FilePart, _offset: u64, _token: u64, _awaited: Weak<()>) {}

    fn end_output(&mut self, _socket: &()) -> io::Result<()> {
        self.calls.push("end".to_owned());
        Ok(())
    }

    fn reset_on_close(&mut self, _socket: &()) {
        self.calls.push("reset".to_owned());
    }

    fn keep_alive(&mut self, _socket: &()) {}

    fn unacknowledged(&mut self, _socket: &()) -> u64 {
        self.unacknowledged
    }

    fn watch(&mut self, _socket: &(), _token: u64) -> io::Result<()> {
        Ok(())
    }

    fn rewatch(&mut self, _socket: &(), _token: u64, watch: Watch) -> io::Result<()> {
        let what = [(watch.input, " input"), (watch.output, " output"), (watch.peer_close, " close")];
        let words: String = what.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect();
        self.calls.push(format!("watch{words}"));
        Ok(())
    }

    fn read_until(&self) -> ReadUntil {
        if self.is_edged { ReadUntil::Refused } else { ReadUntil::Short }
    }

    fn tells_once(&self) -> bool {
        self.is_edged
    }

    fn flush_bytes(&self) -> usize {
        1
    }

    fn splits(&self) -> bool {
        self.has_split
    }
}
