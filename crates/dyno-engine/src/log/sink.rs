//! The log as its writer sees it: takes the lines of a ring whole, once, and says so when it cannot.
//!
//! A write can end in the middle of a line: the disk is full, or the writer is killed (the kernel looks for that between
//! two pages). So what is written is noted before, with the file's length: whoever goes on, this writer or its successor,
//! sees in the file how much of it is there. A pipe takes a write of `PIPE_BUF` bytes wholly or not at all; after a kill
//! some of its lines can come twice.

use super::ledger::{Begun, Ledger};
use dyno_sys::shm::{Peeked, Ring};
use dyno_sys::socket::{self, Io};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Bytes of one write to a file.
const FILE_BYTES: usize = 32 << 10;

/// Bytes of one write to anything else: what a pipe takes wholly or not at all (PIPE_BUF, pipe(7)).
const PIPE_BYTES: usize = 4_096;

/// What became of a ring's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Took {
    /// All that were offered are written.
    Whole,
    /// The log takes nothing now, or took a part.
    Later,
    /// The log refuses; the ledger says why.
    Refused,
}

/// The log, and how far its writes have come.
pub(super) struct Sink {
    log: File,
    /// The number of a regular file; nothing else can be looked at again.
    file: Option<u64>,
    /// Whether the log ends within a line that is not ours to end.
    is_torn: bool,
    ledger: Ledger,
    /// The lines at hand.
    lines: Vec<u8>,
    /// Of each ring's write that has begun: how much is written. A successor does not know it.
    progress: Vec<Option<usize>>,
}

impl Sink {
    pub(super) fn new(log: OwnedFd, ledger: Ledger, rings: usize) -> Sink {
        let log = File::from(log);
        let lines = Vec::with_capacity(FILE_BYTES + PIPE_BYTES);
        let mut sink = Sink { log, file: None, is_torn: false, ledger, lines, progress: vec![None; rings] };
        sink.look();
        sink
    }

    /// Writes to another file from now on. What was begun in the one before is forgotten: see [`Sink::give_back`].
    pub(super) fn change(&mut self, log: File) {
        self.log = log;
        for number in 0..self.progress.len() {
            self.forget(number);
        }
        self.look();
        self.ledger.took();
    }

    /// Looks what the log is, and how it ends.
    fn look(&mut self) {
        self.file = self.log.metadata().ok().filter(std::fs::Metadata::is_file).map(|file| file.ino());
        self.is_torn = self.ends_torn();
    }

    /// Whether a file ends within a line. One that cannot be read is taken to be in order.
    fn ends_torn(&self) -> bool {
        let (Some(_), Some(last)) = (self.file, self.length().checked_sub(1)) else { return false };
        let mut byte = [b'\n'];
        self.log.read_at(&mut byte, last).is_ok() && byte != *b"\n"
    }

    fn length(&self) -> u64 {
        self.log.metadata().map_or(0, |file| file.len())
    }

    /// Writes lines of a ring, and says which; `None` where there were none.
    pub(super) fn take(&mut self, number: usize, ring: &Ring) -> (Peeked, Option<Took>) {
        let begun = self.ledger.begun(number);
        let most = if self.file.is_some() { FILE_BYTES } else { PIPE_BYTES };
        let wanted = begun.map_or(most, |begun| usize::try_from(begun.length).unwrap_or(most));
        self.lines.clear();
        let peeked = ring.peek(&mut self.lines, wanted);
        if peeked.records == 0 {
            return (peeked, None);
        }
        let took = match begun.filter(|begun| begun.length == self.lines.len() as u64) {
            Some(begun) => {
                let written = self.written_of(number, begun);
                self.go_on(number, written)
            }
            None => self.begin(number),
        };
        (peeked, Some(took))
    }

    /// Whether a write has begun that is not released: it must be ended before another ring's begins.
    pub(super) fn has_begun(&self, number: usize) -> bool {
        self.ledger.begun(number).is_some()
    }

    /// How much of a write that was begun before stands in the log; 0 where that cannot be told.
    fn written_of(&mut self, number: usize, begun: Begun) -> usize {
        let length = self.length();
        let known = self.progress[number];
        if self.file.is_none() {
            return known.unwrap_or(0);
        }
        let present = length.saturating_sub(begun.start).min(begun.length);
        let present = usize::try_from(present).unwrap_or(0);
        let is_as_left = known.is_none_or(|known| known == present);
        if self.file == Some(begun.file) && length >= begun.start && is_as_left && self.stands(begun, present)
        {
            // However the file ended, the end is this write's.
            self.is_torn = false;
            return present;
        }
        // Somebody has cut the file, or written there too: it is begun anew.
        self.forget(number);
        self.is_torn = self.ends_torn();
        0
    }

    /// Whether the file has the first `count` bytes of the lines at hand where the write began. One that cannot be read
    /// is believed.
    fn stands(&self, begun: Begun, count: usize) -> bool {
        let mut there = vec![0; count];
        match self.log.read_exact_at(&mut there, begun.start) {
            Ok(()) => there == self.lines[..count],
            Err(error) => error.kind() != io::ErrorKind::UnexpectedEof,
        }
    }

    /// A write that nothing stands of yet.
    fn begin(&mut self, number: usize) -> Took {
        if self.is_torn {
            match self.write(b"\n") {
                Io::Done(1..) => self.is_torn = false,
                other => return self.not_taken(other),
            }
        }
        let begun = Begun {
            length: self.lines.len() as u64,
            start: if self.file.is_some() { self.length() } else { 0 },
            file: self.file.unwrap_or(0),
        };
        self.ledger.begin(number, begun);
        self.go_on(number, 0)
    }

    fn go_on(&mut self, number: usize, from: usize) -> Took {
        if self.ledger.begun(number).is_none() {
            return self.begin(number);
        }
        let mut written = from;
        while written < self.lines.len() {
            self.progress[number] = Some(written);
            let lines = std::mem::take(&mut self.lines);
            let moved = self.write(&lines[written..]);
            self.lines = lines;
            match moved {
                Io::Done(some) if some > 0 => written += some,
                other => return self.not_taken(other),
            }
        }
        self.progress[number] = Some(written);
        self.ledger.took();
        Took::Whole
    }

    fn not_taken(&self, why: Io) -> Took {
        match why {
            Io::Failed(errno) => {
                self.ledger.refused(errno);
                Took::Refused
            }
            _ => Took::Later,
        }
    }

    /// One write, where something can be written without waiting for a reader. Only a file's disk is waited for.
    fn write(&mut self, bytes: &[u8]) -> Io {
        self.ledger.waits();
        if self.file.is_none() && !socket::is_writable(&self.log) {
            return Io::WouldBlock;
        }
        loop {
            match self.log.write(bytes) {
                Ok(written) => return Io::Done(written),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Io::WouldBlock,
                Err(error) => return Io::Failed(error.raw_os_error().unwrap_or(0)),
            }
        }
    }

    /// Has the disk take what was written; `false` where it does not.
    pub(super) fn sync(&self) -> bool {
        self.ledger.waits();
        match self.log.sync_data() {
            Err(error) if self.file.is_some() => {
                self.ledger.refused(error.raw_os_error().unwrap_or(0));
                false
            }
            // What is no file is on no disk.
            _ => {
                self.ledger.took();
                true
            }
        }
    }

    /// What was written of a ring is released.
    pub(super) fn released(&mut self, number: usize) {
        self.forget(number);
    }

    /// A write begins anew.
    pub(super) fn forget(&mut self, number: usize) {
        self.ledger.end(number);
        self.progress[number] = None;
    }

    /// Ends a write that cannot go on: its whole lines are the log's, to be released; what is left of a line is taken out
    /// of the file again, and the line stays in its ring.
    pub(super) fn give_back(&mut self, number: usize, ring: &Ring) -> Option<Peeked> {
        let begun = self.ledger.begun(number)?;
        let written = self.progress[number]?;
        self.lines.clear();
        let _still_there = ring.peek(&mut self.lines, usize::try_from(begun.length).unwrap_or(0));
        let written = &self.lines[..written.min(self.lines.len())];
        let whole = written.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let is_ours = self.file.is_some() && self.length() == begun.start + written.len() as u64;
        if is_ours && whole < written.len() {
            // A file that cannot be cut keeps the torn line: its successor ends it.
            let _ = self.log.set_len(begun.start + whole as u64);
        }
        self.forget(number);
        (whole > 0).then(|| {
            self.lines.clear();
            ring.peek(&mut self.lines, whole)
        })
    }
}

#[cfg(test)]
#[path = "sink_tests.rs"]
mod tests;
