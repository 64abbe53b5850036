//! What is mapped into a process of the target: whose code lies at an address, and which memory other processes share.
//!
//! `hot` and `profiles` ask; nothing here samples or judges. Each process is asked by itself: a wrapper's memory says nothing
//! of the server that it started.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;

use dyno_sys::Pid;
use dyno_sys::perf::HotSample;
use dyno_sys::proc::{self, Mapping, Memory};

/// The longest call instruction that leaves a return address.
const CALL_BYTES_MAX: u64 = 7;

/// One process, as it was at one moment.
#[derive(Default)]
pub(super) struct Mapped {
    /// In the order of their addresses.
    code: Vec<Mapping>,
    program: Option<String>,
    /// None where the process was only looked at, or has ended.
    memory: Option<Memory>,
    /// Whether a call ends before an address, where that was asked.
    calls: HashMap<u64, bool>,
}

/// Code as a file has it: inode, path, and where in the file the mapping begins. It is the same wherever it is mapped.
pub(super) type Text = (u64, String, u64);

impl Mapped {
    /// Where its code lies alone.
    pub(super) fn look(pid: Pid) -> io::Result<Mapped> {
        let mut code = proc::mappings(pid)?;
        code.retain(|mapping| mapping.executable);
        if code.is_empty() {
            // A zombie, or a thread of the kernel.
            return Err(io::Error::new(io::ErrorKind::NotFound, "it has no memory any more"));
        }
        let program = std::fs::read_link(format!("{}/exe", proc::folder(pid))).ok();
        let program = program.map(|path| path.to_string_lossy().into_owned());
        Ok(Mapped { code, program, ..Mapped::default() })
    }

    /// The same, to be read.
    pub(super) fn open(pid: Pid) -> io::Result<Mapped> {
        Ok(Mapped { memory: Some(Memory::open(pid)?), ..Mapped::look(pid)? })
    }

    pub(super) fn is_readable(&self) -> bool {
        self.memory.is_some()
    }

    /// The bytes from `before` this address to `behind` it, as far as they are of the same mapping, and where they begin. None of what
    /// is not there any more.
    pub(super) fn code(&self, address: u64, before: u64, behind: u64) -> (u64, Vec<u8>) {
        let Some((mapping, memory)) = self.code_at(address).zip(self.memory.as_ref()) else {
            return (address, Vec::new());
        };
        let start = address.saturating_sub(before).max(mapping.start);
        let end = address.saturating_add(behind).min(mapping.end);
        (start, memory.read(start, end.saturating_sub(start) as usize))
    }

    /// The file's code at an address, and where it begins here. None of what the process made itself.
    pub(super) fn text(&self, address: u64) -> Option<(Text, u64)> {
        let mapping = self.code_at(address).filter(|mapping| mapping.inode != 0)?;
        Some(((mapping.inode, mapping.path.clone(), mapping.offset), mapping.start))
    }

    /// Of a sample in a library, the first word on the stack that is a return address into the program itself.
    pub(super) fn caller(&mut self, sample: &HotSample) -> Option<u64> {
        let is_library = self.code_at(sample.ip).is_some_and(|mapping| !self.is_program(mapping));
        is_library.then_some(())?;
        sample.stack.iter().copied().find(|word| {
            self.code_at(*word).is_some_and(|mapping| self.is_program(mapping)) && self.follows_a_call(*word)
        })
    }

    fn is_program(&self, mapping: &Mapping) -> bool {
        Some(&mapping.path) == self.program.as_ref()
    }

    fn follows_a_call(&mut self, address: u64) -> bool {
        let Some(memory) = &self.memory else { return false };
        *self.calls.entry(address).or_insert_with(|| follows_a_call(memory, address))
    }

    fn code_at(&self, address: u64) -> Option<&Mapping> {
        between(&self.code, address, address.saturating_add(1)).next()
    }
}

/// What lies between two addresses, whole or in part.
fn between(all: &[Mapping], start: u64, end: u64) -> impl Iterator<Item = &Mapping> {
    let first = all.partition_point(|mapping| mapping.end <= start);
    all[first..].iter().take_while(move |mapping| mapping.start < end)
}

/// Whether a call ends right before this address: `e8 rel32`, or `ff /2` in one of its lengths.
fn follows_a_call(memory: &Memory, address: u64) -> bool {
    let before = memory.read(address.saturating_sub(CALL_BYTES_MAX), CALL_BYTES_MAX as usize);
    let from_end = |bytes: usize| before.len().checked_sub(bytes).map(|at| &before[at..]);
    let relative = from_end(5).is_some_and(|code| code[0] == 0xe8);
    let is_ff2 = |code: &[u8]| code[0] == 0xff && code[1] >> 3 & 7 == 2;
    relative || [2, 3, 4, 6, 7].into_iter().any(|bytes| from_end(bytes).is_some_and(is_ff2))
}

/// Memory that these processes share with others that have it mapped, by its addresses. Where one of them has something else there the
/// addresses say nothing, and are left out.
pub(super) fn shared_memory(pids: &[Pid]) -> Vec<[u64; 2]> {
    let spaces: Vec<Vec<Mapping>> = pids.iter().filter_map(|pid| proc::mappings(*pid).ok()).collect();
    shared(&spaces)
}

fn shared(spaces: &[Vec<Mapping>]) -> Vec<[u64; 2]> {
    let all = spaces.iter().flatten().filter(|mapping| mapping.shared);
    let all: BTreeSet<_> = all.map(|mapping| (mapping.start, mapping.end, mapping.inode)).collect();
    let is_alone = |(start, end, inode): &(u64, u64, u64)| {
        let is_it = |mapping: &Mapping| mapping.shared && mapping.inode == *inode;
        spaces.iter().all(|space| between(space, *start, *end).all(is_it))
    };
    all.into_iter().filter(is_alone).map(|(start, end, _)| [start, end]).collect()
}

/// The processes of which samples were taken: as they are now, or as they were where they have ended meanwhile.
///
/// # Errors
/// When none of them may be read.
pub(super) fn now(before: BTreeMap<Pid, Mapped>) -> io::Result<BTreeMap<Pid, Mapped>> {
    let mut refused = None;
    let mut opened = |(pid, before): (Pid, Mapped)| match Mapped::open(pid) {
        Ok(now) => (pid, now),
        Err(error) => {
            refused = Some(error);
            (pid, before)
        }
    };
    let spaces: BTreeMap<Pid, Mapped> = before.into_iter().map(&mut opened).collect();
    match refused {
        Some(error) if !spaces.values().any(Mapped::is_readable) => Err(error),
        _ => Ok(spaces),
    }
}

#[cfg(test)]
impl Mapped {
    /// A process with this code, which cannot be read.
    pub(super) fn of(code: Vec<Mapping>) -> Mapped {
        Mapped { code, ..Mapped::default() }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_return_address_stands_behind_a_call() {
        let memory = Memory::open(dyno_sys::child::this()).unwrap();
        let code: Vec<u8> = [0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90, 0x90, 0x90, 0xff, 0xd0, 0x90].to_vec();
        let at = code.as_ptr().addr() as u64;
        assert!(follows_a_call(&memory, at + 7) && follows_a_call(&memory, at + 12));
        assert!(!follows_a_call(&memory, at + 9));
    }

    /// Planted faults: what one process shares counts whatever another has there; one that has nothing there is in the way.
    #[test]
    fn memory_is_shared_where_no_process_has_something_else() {
        let of = |start, inode, shared| Mapping {
            start,
            end: start + 0x1000,
            executable: false,
            shared,
            offset: 0,
            inode,
            path: String::new(),
        };
        let ring = || of(0x1000, 7, true);
        let shared = |other: Vec<Mapping>| super::shared(&[vec![ring()], other]);
        assert_eq!(shared(vec![]), [[0x1000, 0x2000]], "a wrapper");
        assert_eq!(shared(vec![ring(), of(0x2000, 0, false)]), [[0x1000, 0x2000]]);
        assert_eq!(shared(vec![of(0x1800, 0, false)]), [[0_u64; 2]; 0]);
        assert_eq!(shared(vec![of(0x1000, 8, true)]), [[0_u64; 2]; 0], "another's");
    }

    /// Planted fault: the mappings of whoever asks.
    #[test]
    fn each_process_has_its_own_code() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().unwrap();
        let pid = child.id().cast_signed();
        let until_ns = dyno_sys::clock::mono_ns() + 10_000_000_000;
        // Until it is another program it is this one.
        while !proc::name(pid).is_ok_and(|name| name == "sleep") {
            assert!(dyno_sys::clock::mono_ns() < until_ns, "it never began");
            std::thread::yield_now();
        }
        let here = each_process_has_its_own_code as *const () as usize as u64;
        let me = dyno_sys::child::this();
        let spaces = now(BTreeMap::from([(me, Mapped::default()), (pid, Mapped::default())])).unwrap();
        let (start, bytes) = spaces[&me].code(here, 0, 16);
        assert_eq!((start, bytes.len()), (here, 16));
        assert!(spaces[&me].text(here).is_some_and(|((_, path, _), _)| path.contains("dyno")));
        assert!(spaces[&pid].code(here, 0, 16).1.is_empty() && spaces[&pid].text(here).is_none());
        child.kill().unwrap();
        child.wait().unwrap();
        let gone = now(BTreeMap::from([(pid, Mapped::default())]));
        assert!(gone.is_err());
    }
}
