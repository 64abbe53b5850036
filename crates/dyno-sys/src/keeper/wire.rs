//! What dyno, the keeper and its wardens say to each other: small packets, written and read here only.
//!
//! Both ends are the same program, so there is no version; a packet that cannot be read is a broken channel.

use super::packet::{Reader, Writer};
use super::step::Step;
use super::undo::Undo;
use crate::Pid;
use crate::affinity::CpuSet;
use crate::child::Exit;

/// The longest request: arguments, environment and paths together. Well below net.core.wmem_default (208 KiB), which
/// bounds a packet.
pub(super) const REQUEST_BYTES_MAX: usize = 96 * 1_024;
/// Every other packet is a few numbers.
pub(super) const NOTE_BYTES_MAX: usize = 64;
/// Numbers of the longest of them.
const NOTE_NUMBERS: usize = 3;
const _: () = assert!(NOTE_NUMBERS * size_of::<u64>() <= NOTE_BYTES_MAX, "a note fits its reader");

/// Dyno to the keeper; each is answered by one [`Reply`] of the same number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// Fork a warden for this order; the descriptors come with the packet.
    Hold(Box<Order>),
    /// Remember how a change is undone, instead of what was remembered under this token.
    Undo { token: u64, steps: Vec<Undo> },
    /// It was undone.
    Forget { token: u64 },
    /// Remember a folder to remove.
    Remove { folder: Vec<u8> },
}

/// The keeper to dyno. A [`Reply::Warden`] carries the warden's channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Ready,
    Done,
    Warden,
    Refused { errno: i32 },
}

/// A launch in bytes; descriptors travel beside it: the output, then one per target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) argv: Vec<Vec<u8>>,
    pub(super) env: Vec<(Vec<u8>, Vec<u8>)>,
    pub(super) cwd: Option<Vec<u8>>,
    pub(super) cpus: Option<CpuSet>,
    pub(super) user: Option<(u32, u32)>,
    pub(super) targets: Vec<i32>,
}

/// Dyno to a warden.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Release,
    Stop { grace_ns: u64 },
}

/// A warden to dyno.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The child is ready and blocked before exec.
    Held { pid: Pid },
    /// The child could not be made ready.
    NotReady { step: Step, errno: i32 },
    /// The program runs.
    Released,
    /// The program could not be run.
    NotRun { errno: i32 },
    /// The direct child ended.
    Exited(Exit),
    /// The launch was stopped; so many of its processes would not end.
    Stopped { left: u64 },
}

impl Request {
    pub(super) fn encode(&self, number: u64) -> Vec<u8> {
        let mut out = Writer::default();
        out.number(number);
        match self {
            Request::Hold(order) => order.write(out.number(0)),
            Request::Undo { token, steps } => {
                out.number(1).number(*token).number(steps.len() as u64);
                steps.iter().for_each(|step| step.encode(&mut out));
                &mut out
            }
            Request::Forget { token } => out.number(2).number(*token),
            Request::Remove { folder } => out.number(3).bytes(folder),
        };
        out.0
    }

    pub(super) fn decode(packet: &[u8]) -> Option<(u64, Request)> {
        let mut packet = Reader(packet);
        let number = packet.number()?;
        let request = match packet.number()? {
            0 => Request::Hold(Box::new(Order::read(&mut packet)?)),
            1 => Request::Undo { token: packet.number()?, steps: packet.many(Undo::decode)? },
            2 => Request::Forget { token: packet.number()? },
            3 => Request::Remove { folder: packet.bytes()? },
            _ => return None,
        };
        Some((number, request))
    }
}

impl Reply {
    pub(super) fn encode(self, number: u64) -> Vec<u8> {
        let (kind, errno) = match self {
            Reply::Ready => (0, 0),
            Reply::Done => (1, 0),
            Reply::Warden => (2, 0),
            Reply::Refused { errno } => (3, errno),
        };
        numbers(&[number, kind, signed(errno)])
    }

    pub(super) fn decode(packet: &[u8]) -> Option<(u64, Reply)> {
        let [number, kind, errno] = read_numbers(packet)?;
        let reply = match kind {
            0 => Reply::Ready,
            1 => Reply::Done,
            2 => Reply::Warden,
            3 => Reply::Refused { errno: unsigned(errno) },
            _ => return None,
        };
        Some((number, reply))
    }
}

impl Command {
    pub(super) fn encode(self) -> Vec<u8> {
        match self {
            Command::Release => numbers(&[0, 0]),
            Command::Stop { grace_ns } => numbers(&[1, grace_ns]),
        }
    }

    pub(super) fn decode(packet: &[u8]) -> Option<Command> {
        match read_numbers(packet)? {
            [0, _] => Some(Command::Release),
            [1, grace_ns] => Some(Command::Stop { grace_ns }),
            _ => None,
        }
    }
}

impl Event {
    pub(super) fn encode(self) -> Vec<u8> {
        numbers(&match self {
            Event::Held { pid } => [0, signed(pid), 0],
            Event::NotReady { step, errno } => [1, step as u64, signed(errno)],
            Event::Released => [2, 0, 0],
            Event::NotRun { errno } => [3, signed(errno), 0],
            Event::Exited(Exit::Code(code)) => [4, signed(code), 0],
            Event::Exited(Exit::Signal(number)) => [5, signed(number), 0],
            Event::Stopped { left } => [6, left, 0],
        })
    }

    pub(super) fn decode(packet: &[u8]) -> Option<Event> {
        let [kind, first, second] = read_numbers(packet)?;
        Some(match kind {
            0 => Event::Held { pid: unsigned(first) },
            1 => Event::NotReady { step: Step::from_number(first)?, errno: unsigned(second) },
            2 => Event::Released,
            3 => Event::NotRun { errno: unsigned(first) },
            4 => Event::Exited(Exit::Code(unsigned(first))),
            5 => Event::Exited(Exit::Signal(unsigned(first))),
            6 => Event::Stopped { left: first },
            _ => return None,
        })
    }
}

impl Order {
    fn write<'w>(&self, out: &'w mut Writer) -> &'w mut Writer {
        out.number(self.argv.len() as u64);
        for word in &self.argv {
            out.bytes(word);
        }
        out.number(self.env.len() as u64);
        for (name, value) in &self.env {
            out.bytes(name).bytes(value);
        }
        out.optional(self.cwd.as_deref());
        out.optional(self.cpus.as_ref().map(ToString::to_string).as_deref().map(str::as_bytes));
        let user = self.user.map(|(uid, gid)| numbers(&[u64::from(uid), u64::from(gid)]));
        out.optional(user.as_deref());
        let targets: Vec<u64> = self.targets.iter().map(|&target| signed(target)).collect();
        out.bytes(&numbers(&targets))
    }

    fn read(packet: &mut Reader<'_>) -> Option<Order> {
        let argv = packet.many(Reader::bytes)?;
        let env = packet.many(|packet| Some((packet.bytes()?, packet.bytes()?)))?;
        let cwd = packet.optional()?;
        let cpus = packet.optional()?.map(|text| String::from_utf8(text).ok()?.parse().ok());
        let user = packet.optional()?.map(|pair| read_user(&pair));
        let targets = packet.bytes()?;
        let targets = targets.chunks(8).map(|eight| Reader(eight).number().map(unsigned));
        Some(Order {
            argv,
            env,
            cwd,
            // A set or a user that cannot be read must not become none at all.
            cpus: cpus.map_or(Some(None), |set| set.map(Some))?,
            user: user.map_or(Some(None), |user| user.map(Some))?,
            targets: targets.collect::<Option<_>>()?,
        })
    }
}

fn read_user(pair: &[u8]) -> Option<(u32, u32)> {
    let [uid, gid] = read_numbers(pair)?;
    Some((u32::try_from(uid).ok()?, u32::try_from(gid).ok()?))
}

fn signed(number: i32) -> u64 {
    u64::from(number.cast_unsigned())
}

fn unsigned(number: u64) -> i32 {
    (number as u32).cast_signed()
}

fn numbers(all: &[u64]) -> Vec<u8> {
    let mut out = Writer::default();
    for &number in all {
        out.number(number);
    }
    out.0
}

fn read_numbers<const N: usize>(packet: &[u8]) -> Option<[u64; N]> {
    let mut packet = Reader(packet);
    let mut all = [0; N];
    for number in &mut all {
        *number = packet.number()?;
    }
    packet.0.is_empty().then_some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn order() -> Order {
        Order {
            argv: vec![b"server".to_vec(), b"--flag".to_vec(), b"".to_vec()],
            env: vec![(b"A".to_vec(), b"1".to_vec()), (b"B".to_vec(), b"".to_vec())],
            cwd: Some(b"/tmp".to_vec()),
            cpus: Some("0-1,5".parse().unwrap()),
            user: Some((1_000, u32::MAX)),
            targets: vec![3, 4],
        }
    }

    fn bare() -> Order {
        Order { argv: vec![b"x".to_vec()], env: vec![], cwd: None, cpus: None, user: None, targets: vec![] }
    }

    fn requests() -> [Request; 5] {
        let ours = vec![b"2".to_vec(), b"".to_vec()];
        let steps = vec![
            Undo::Write { path: "/proc/x".into(), old: b"1".to_vec(), ours },
            Undo::write("/proc/y", b"3"),
        ];
        let restore = Request::Undo { token: 7, steps };
        [
            Request::Hold(Box::new(order())),
            Request::Hold(Box::new(bare())),
            restore,
            Request::Forget { token: u64::MAX },
            Request::Remove { folder: b"/tmp/x".to_vec() },
        ]
    }

    #[test]
    fn every_request_comes_back_as_it_went() {
        for request in requests() {
            assert_eq!(Request::decode(&request.encode(9)), Some((9, request)));
        }
    }

    #[test]
    fn a_request_cut_anywhere_is_none() {
        for request in requests() {
            let packet = request.encode(9);
            assert!((0..packet.len()).all(|cut| Request::decode(&packet[..cut]).is_none()), "{request:?}");
        }
    }

    #[test]
    fn every_note_comes_back_as_it_went_and_fits() {
        for reply in [Reply::Ready, Reply::Done, Reply::Warden, Reply::Refused { errno: 12 }] {
            assert_eq!(Reply::decode(&reply.encode(3)), Some((3, reply)));
        }
        for command in [Command::Release, Command::Stop { grace_ns: 5 }] {
            assert_eq!(Command::decode(&command.encode()), Some(command));
        }
        let events = [
            Event::Held { pid: 77 },
            Event::NotReady { step: Step::User, errno: 1 },
            Event::Released,
            Event::NotRun { errno: 2 },
            Event::Exited(Exit::Code(255)),
            Event::Exited(Exit::Signal(9)),
            Event::Stopped { left: 3 },
        ];
        for event in events {
            assert_eq!(Event::decode(&event.encode()), Some(event));
            assert!(event.encode().len() <= NOTE_BYTES_MAX);
        }
    }

    #[test]
    fn a_false_count_is_refused_without_memory() {
        let mut out = Writer::default();
        out.number(1).number(0).number(u64::MAX);
        assert_eq!(Request::decode(&out.0), None);
    }
}
