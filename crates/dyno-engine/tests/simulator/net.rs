//! The simulated network: a seam whose bytes are cut anywhere, whose writes are short, and which keeps account of what
//! the server's kernel would hold and what its client has.

use crate::file::FilePart;
use crate::gate::Gate;
use crate::meter::Meter;
use crate::outbox::OUTBOX_BYTES_FLUSH;
use crate::seam::{FileSent, Net, ReadUntil, Readiness, Watch};
use dyno_measure::Prng;
use dyno_sys::resident::Patience;
use dyno_sys::socket::Io;
use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Weak;

/// A server's end of a connection. Dropping it closes the connection, as a descriptor does.
#[derive(Debug)]
pub(crate) struct Socket {
    id: usize,
    is_closed: Rc<Cell<bool>>,
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.is_closed.set(true);
    }
}

/// How the server's seam behaves: the dials of a first version, by chance.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner {
    pub(crate) reads_on: bool,
    pub(crate) tells_once: bool,
    pub(crate) replies_alone: bool,
    pub(crate) splits: bool,
}

/// One connection, seen from outside.
#[derive(Debug)]
pub(crate) struct Link {
    /// What has arrived at the server and was not read.
    pub(crate) arrived: VecDeque<u8>,
    /// The client has closed its sending half, and the server could know.
    pub(crate) has_fin: bool,
    pub(crate) is_reset: bool,
    /// What the server's kernel took and the client has not.
    pub(crate) held: VecDeque<u8>,
    /// What the client has.
    pub(crate) received: Vec<u8>,
    /// Bytes the kernel still takes.
    pub(crate) room: usize,
    /// Room is told when no more than this is held.
    room_told: usize,
    pub(crate) output_ended: bool,
    /// The server asked for a reset at its close.
    pub(crate) resets_on_close: bool,
    /// The server has its kernel look after a silent client.
    pub(crate) keeps_alive: bool,
    is_closed: Rc<Cell<bool>>,
    pub(crate) token: Option<u64>,
    watch: Watch,
    /// Something has changed since readiness was told (for a seam that tells once).
    pub(crate) has_edge: bool,
    /// Bytes that were fetched in this turn and not sent since.
    pub(crate) fetched: u64,
}

impl Link {
    /// Whether the server has closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed.get()
    }

    /// Whether there is anything to tell, as the connection is watched.
    pub(crate) fn readiness(&self, manner: Manner) -> Option<Readiness> {
        if self.is_closed() || self.token.is_none() || (manner.tells_once && !self.has_edge) {
            return None;
        }
        let readable = !self.arrived.is_empty() || self.has_fin || self.is_reset;
        let ready = Readiness {
            readable: self.watch.input && readable,
            // As the kernel does: room is told when a third of the buffer is free (sk_stream_is_writeable).
            writable: self.watch.output
                && (self.room > 0 && self.held.len() <= self.room_told || self.is_reset),
            peer_closed: self.has_fin && (self.watch.peer_close || manner.tells_once && self.watch.input),
            hangup: self.is_reset,
        };
        (ready != Readiness::default()).then_some(ready)
    }
}

/// What a disk is asked for.
pub(crate) struct Fetch {
    pub(crate) token: u64,
    file: FilePart,
    offset: u64,
    awaited: Weak<()>,
}

impl Fetch {
    /// Whether somebody still awaits it.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.strong_count() > 0
    }

    /// Bytes that the file has there: none where it is shorter than is said.
    pub(crate) fn bytes(&self) -> u64 {
        let there = self.file.file().metadata().expect("the simulator's file can be asked").len();
        (self.file.offset + self.file.length).min(there).saturating_sub(self.offset)
    }
}

/// All connections of a simulation.
pub(crate) struct SimNet {
    pub(crate) links: Vec<Link>,
    pub(crate) manner: Manner,
    pub(crate) chance: Prng,
    /// How much a client's kernel takes while the client does not read.
    room_max: usize,
    /// What a disk is read for.
    pub(crate) fetches: Vec<Fetch>,
    /// How often a socket was asked to take something.
    pub(crate) sends: u64,
    /// Which pages are in memory: a chance of its own, so that the same seed does all else as it does without files.
    cold: Prng,
    /// Where clients come through a proxy.
    pub(crate) gate: Option<Gate>,
    /// How often the gate was asked: for each request and, where there are such, for a proxy's header.
    pub(crate) gate_asked: u64,
    pub(crate) meter: Option<Meter>,
    /// Whether replies wait for the log.
    pub(crate) holds: bool,
    /// Whether there are hosts.
    pub(crate) tells_hosts_apart: bool,
}

impl SimNet {
    pub(crate) fn new(chance: Prng, cold: Prng, manner: Manner, room_max: usize) -> SimNet {
        SimNet {
            links: Vec::new(),
            manner,
            chance,
            room_max,
            fetches: Vec::new(),
            sends: 0,
            cold,
            gate: None,
            gate_asked: 0,
            meter: None,
            holds: false,
            tells_hosts_apart: false,
        }
    }

    /// A client connects.
    pub(crate) fn connect(&mut self) -> Socket {
        let is_closed = Rc::new(Cell::new(false));
        let id = self.links.len();
        self.links.push(Link {
            arrived: VecDeque::new(),
            has_fin: false,
            is_reset: false,
            held: VecDeque::new(),
            received: Vec::new(),
            room: self.room_max,
            room_told: self.room_max - self.room_max / 3,
            output_ended: false,
            resets_on_close: false,
            keeps_alive: false,
            is_closed: Rc::clone(&is_closed),
            token: None,
            watch: Watch::INPUT,
            has_edge: true,
            fetched: 0,
        });
        Socket { id, is_closed }
    }

    /// The client takes so much of what waits for it, which makes room.
    pub(crate) fn take(&mut self, id: usize, count: usize) -> usize {
        let link = &mut self.links[id];
        let count = count.min(link.held.len());
        link.received.extend(link.held.drain(..count));
        let was_told = link.room > 0 && link.held.len() + count <= link.room_told;
        link.room = self.room_max.saturating_sub(link.held.len());
        link.has_edge |= !was_told && link.held.len() <= link.room_told;
        count
    }

    /// A disk has read so many bytes for the connection of this token.
    pub(crate) fn note_fetched(&mut self, token: u64, bytes: u64) {
        let link = self.links.iter_mut().rfind(|link| link.token == Some(token) && !link.is_closed());
        link.expect("what is fetched is awaited by a connection that there is").fetched = bytes;
    }

    fn accept(&mut self, id: usize, bytes: &[&[u8]]) -> Io {
        self.sends += 1;
        let whole: usize = bytes.iter().map(|bytes| bytes.len()).sum();
        let link = &mut self.links[id];
        if link.is_reset || link.output_ended {
            return Io::Failed(104);
        }
        if link.room == 0 {
            return Io::WouldBlock;
        }
        let mut taken = whole.min(link.room);
        // Now and then the kernel is short of memory and takes less than would fit.
        if taken > 1 && self.chance.below(8) == 0 {
            taken = 1 + self.chance.below(taken as u64 - 1) as usize;
        }
        let link = &mut self.links[id];
        let all = bytes.iter().flat_map(|bytes| bytes.iter().copied());
        link.held.extend(all.take(taken));
        link.room = if taken < whole { 0 } else { link.room - taken };
        Io::Done(taken)
    }
}

impl Net for SimNet {
    type Socket = Socket;

    fn receive(&mut self, socket: &Socket, into: &mut [u8]) -> Io {
        let most = match self.chance.below(4) {
            0 => 1 + self.chance.below(64) as usize,
            _ => into.len(),
        };
        let link = &mut self.links[socket.id];
        if link.is_reset {
            return Io::Failed(104);
        }
        if link.arrived.is_empty() {
            return if link.has_fin { Io::Closed } else { Io::WouldBlock };
        }
        // Only a read that empties the socket may come back short: the core takes short for empty.
        let all = link.arrived.len().min(into.len());
        let count = if self.manner.reads_on { all.min(most) } else { all };
        for (to, byte) in into.iter_mut().zip(link.arrived.drain(..count)) {
            *to = byte;
        }
        Io::Done(count)
    }

    fn send(&mut self, socket: &Socket, bytes: &[u8]) -> Io {
        self.accept(socket.id, &[bytes])
    }

    fn send_slices(&mut self, socket: &Socket, slices: &[IoSlice<'_>]) -> Io {
        let slices: Vec<&[u8]> = slices.iter().map(|slice| &slice[..]).collect();
        self.accept(socket.id, &slices)
    }

    fn send_before_file(&mut self, socket: &Socket, slices: &[IoSlice<'_>]) -> Io {
        self.send_slices(socket, slices)
    }

    fn send_file(
        &mut self,
        socket: &Socket,
        file: &FilePart,
        offset: u64,
        count: usize,
        patience: Patience,
    ) -> FileSent {
        // What was fetched may be gone again: then it is waited for, and only then.
        assert!(
            patience == Patience::None || self.links[socket.id].fetched >= count as u64,
            "nothing is waited for that was not fetched a moment ago"
        );
        if patience == Patience::None && self.cold.below(4) == 0 {
            return FileSent::Cold;
        }
        let mut bytes = vec![0; count];
        let read = file.file().read_at(&mut bytes, offset).expect("the simulator's file can be read");
        if read == 0 {
            return FileSent::Changed;
        }
        // Now and then only the first of it is in memory.
        let there = if self.cold.below(8) == 0 { 1 + self.cold.below(read as u64) as usize } else { read };
        match self.accept(socket.id, &[&bytes[..there]]) {
            Io::Done(taken) => {
                let fetched = &mut self.links[socket.id].fetched;
                *fetched = fetched.saturating_sub(taken as u64);
                FileSent::Done(taken)
            }
            Io::WouldBlock => FileSent::WouldBlock,
            Io::Closed | Io::Failed(_) => FileSent::Broken,
        }
    }

    fn fetch(&mut self, file: &FilePart, offset: u64, token: u64, awaited: Weak<()>) {
        let is_awaited = self.fetches.iter().any(|fetch| fetch.token == token);
        assert!(!is_awaited, "a connection awaits pages once");
        self.fetches.push(Fetch { token, file: file.clone(), offset, awaited });
    }

    fn end_output(&mut self, socket: &Socket) -> io::Result<()> {
        let link = &mut self.links[socket.id];
        link.output_ended = true;
        if link.is_reset { Err(io::ErrorKind::NotConnected.into()) } else { Ok(()) }
    }

    fn reset_on_close(&mut self, socket: &Socket) {
        self.links[socket.id].resets_on_close = true;
    }

    fn keep_alive(&mut self, socket: &Socket) {
        self.links[socket.id].keeps_alive = true;
    }

    fn unacknowledged(&mut self, socket: &Socket) -> u64 {
        self.links[socket.id].held.len() as u64
    }

    fn watch(&mut self, socket: &Socket, token: u64) -> io::Result<()> {
        self.links[socket.id].token = Some(token);
        Ok(())
    }

    fn rewatch(&mut self, socket: &Socket, token: u64, watch: Watch) -> io::Result<()> {
        let link = &mut self.links[socket.id];
        assert_eq!(link.token, Some(token), "a connection is watched under its own token");
        (link.watch, link.has_edge) = (watch, true);
        Ok(())
    }

    fn meter(&mut self) -> Option<&mut Meter> {
        self.meter.as_mut()
    }

    fn gate(&mut self) -> Option<&mut Gate> {
        self.gate_asked += 1;
        self.gate.as_mut()
    }

    fn holds_replies(&self) -> bool {
        self.holds
    }

    fn tells_hosts_apart(&self) -> bool {
        self.tells_hosts_apart
    }

    fn read_until(&self) -> ReadUntil {
        if self.manner.reads_on { ReadUntil::Refused } else { ReadUntil::Short }
    }

    fn tells_once(&self) -> bool {
        self.manner.tells_once
    }

    fn flush_bytes(&self) -> usize {
        if self.manner.replies_alone { 1 } else { OUTBOX_BYTES_FLUSH }
    }

    fn splits(&self) -> bool {
        self.manner.splits
    }
}
