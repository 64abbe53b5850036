//! What goroutines wait for: read from the memory of a Go program, which the kernel knows nothing of.
//!
//! Go's run-time keeps a list of all goroutines with what each does and, where it waits, why; and it keeps frame pointers, so
//! that the stack of one that waits can be walked. All of it is read through /proc without stopping anything, so a look may
//! catch one in the middle of a change: only what many looks agree on means something. Diagnosis calls it.

use std::collections::{BTreeMap, BTreeSet};

use dyno_sys::Pid;
use dyno_sys::proc::{self, Memory};
use object::LittleEndian;
use object::elf::Sym64;
use object::read::elf::Sym as _;

use crate::image::spaces::AddressSpaces;
use crate::symbol::Symbols;

/// Tables of names larger than this are not read.
const TABLE_BYTES_MAX: u64 = 256 << 20;
/// Goroutines that are looked at each time; of more, every so-manieth.
const LOOKED_AT_MAX: usize = 512;
/// Stacks that are walked each time.
const WALKED_MAX: usize = 8;
/// Return addresses of a stack that are kept.
const DEPTH_MAX: usize = 24;
/// Reasons that a run-time may know; there are some forty.
const REASONS_MAX: usize = 64;
/// Bytes of the run-time's record of a goroutine that hold what is asked for.
const RECORD_BYTES: usize = 200;
/// Where the state lies in that record: it moved when fields before it came and went. Number and reason lie behind it.
const STATE_AT: [usize; 3] = [144, 152, 160];
const NUMBER_BEHIND: usize = 8;
const REASON_BEHIND: usize = 32;
/// Where a goroutine that does not run keeps its frame pointer.
const FRAME_AT: [usize; 2] = [96, 104];
/// Goroutines that must agree before a layout is believed.
const AGREE_MIN: usize = 2;

/// A Go program's goroutines.
pub struct Goroutines {
    pid: Pid,
    memory: Memory,
    list: u64,
    reasons: Vec<String>,
    state_at: Option<usize>,
    looks: u32,
    seen: BTreeMap<String, f64>,
    stacks: BTreeMap<Vec<u64>, f64>,
}

/// What many looks saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Seen {
    /// How often it was looked.
    pub looks: u32,
    /// How many goroutines were in each state, on average: `running`, `runnable`, `in a system call`, or what is waited for.
    pub states: BTreeMap<String, f64>,
    /// Functions in which mutexes were waited for, with how many waited there, on average.
    pub at_mutexes: BTreeMap<String, f64>,
}

/// Reasons of goroutines that wait for a mutex.
const AT_MUTEX: [&str; 4] = ["sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock", "semacquire"];

/// Whether that is what a goroutine waits for at a mutex.
#[must_use]
pub fn is_mutex(reason: &str) -> bool {
    AT_MUTEX.contains(&reason)
}

impl Goroutines {
    /// Those of a process; none where it is no Go program.
    ///
    /// # Errors
    /// Why they cannot be seen.
    pub fn of(pid: Pid) -> Result<Option<Goroutines>, &'static str> {
        let path = std::fs::read_link(format!("{}/exe", proc::folder(pid))).unwrap_or_default();
        let mappings = proc::mappings(pid).unwrap_or_default();
        let own = mappings.iter().find(|one| one.executable && path.as_os_str() == one.path.as_str());
        let Some(own) = own else { return Ok(None) };
        let mut spaces = AddressSpaces::new();
        spaces.read(pid);
        let Some(place) = spaces.locate(pid, own.start) else { return Ok(None) };
        let Some(elf) = spaces.images().get(place.image).elf().filter(|elf| elf.is_go()) else {
            return Ok(None);
        };
        let bias = elf.bias(own.start, own.offset).unwrap_or(0);
        let names = ["runtime.allgs", "runtime.waitReasonStrings"];
        let found = addresses(elf, &names).ok_or("its table of symbols is stripped")?;
        let memory = Memory::open(pid).map_err(|_refused| "its memory may not be read")?;
        let reasons = reasons(&memory, found[1].wrapping_add(bias));
        Ok(Some(Goroutines {
            pid,
            memory,
            list: found[0].wrapping_add(bias),
            reasons,
            state_at: None,
            looks: 0,
            seen: BTreeMap::new(),
            stacks: BTreeMap::new(),
        }))
    }

    /// Looks at all of them once.
    pub fn look(&mut self) {
        let records = self.records();
        if self.state_at.is_none() {
            self.state_at = layout(&records.iter().map(|record| record.bytes.as_slice()).collect::<Vec<_>>());
        }
        let Some(state_at) = self.state_at else { return };
        self.looks += 1;
        let mut walked = 0;
        for record in &records {
            let Some(state) = self.state(&record.bytes, state_at) else { continue };
            if is_mutex(&state) && walked < WALKED_MAX {
                walked += 1;
                let stack = self.walk(&record.bytes);
                *self.stacks.entry(stack).or_default() += record.stands_for;
            }
            *self.seen.entry(state).or_default() += record.stands_for;
        }
    }

    /// What all looks saw; none where the run-time's records could not be read.
    #[must_use]
    pub fn finish(self) -> Option<Seen> {
        let looks = f64::from(self.looks);
        if self.looks == 0 {
            return None;
        }
        let mean = |(name, sum): (String, f64)| (name, sum / looks);
        let (mut spaces, mut symbols) = (AddressSpaces::new(), Symbols::new());
        spaces.read(self.pid);
        let mut at_mutexes = BTreeMap::<String, f64>::new();
        for (stack, sum) in &self.stacks {
            let mut here = BTreeSet::new();
            for address in stack {
                // A return address lies behind its call.
                let functions = symbols.symbolize(&mut spaces, self.pid, address.saturating_sub(1));
                here.extend(functions.into_iter().map(|function| function.name));
            }
            here.into_iter().for_each(|name| *at_mutexes.entry(name).or_default() += sum / looks);
        }
        Some(Seen { looks: self.looks, states: self.seen.into_iter().map(mean).collect(), at_mutexes })
    }

    fn records(&self) -> Vec<Record> {
        let header = self.memory.read(self.list, 16);
        let (Some(at), Some(count)) = (word(&header, 0), word(&header, 8)) else { return Vec::new() };
        let count = usize::try_from(count).unwrap_or(0).min(1 << 20);
        let pointers = self.memory.read(at, count * 8);
        let every = count.div_ceil(LOOKED_AT_MAX).max(1);
        let record = |at: usize| {
            let bytes = self.memory.read(word(&pointers, at * 8)?, RECORD_BYTES);
            (bytes.len() == RECORD_BYTES).then_some(Record { bytes, stands_for: every as f64 })
        };
        (0..pointers.len() / 8).step_by(every).filter_map(record).collect()
    }

    /// What one does; none of one that has ended.
    fn state(&self, record: &[u8], state_at: usize) -> Option<String> {
        let reason = usize::from(*record.get(state_at + REASON_BEHIND)?);
        let waits = || self.reasons.get(reason).cloned().unwrap_or_else(|| "waiting".to_owned());
        Some(match half(record, state_at)? & 0xfff {
            1 => "runnable".to_owned(),
            2 => "running".to_owned(),
            3 => "in a system call".to_owned(),
            4 => waits(),
            _ => return None,
        })
    }

    /// Return addresses of one that waits, the innermost first.
    fn walk(&self, record: &[u8]) -> Vec<u64> {
        let (Some(low), Some(high)) = (word(record, 0), word(record, 8)) else { return Vec::new() };
        let inside = |at: u64| at > low && at + 16 <= high && at.is_multiple_of(8);
        let mut frame = FRAME_AT.iter().filter_map(|at| word(record, *at)).find(|at| inside(*at));
        let mut stack = Vec::new();
        while let Some(at) = frame.filter(|at| inside(*at) && stack.len() < DEPTH_MAX) {
            let pair = self.memory.read(at, 16);
            let (Some(next), Some(address)) = (word(&pair, 0), word(&pair, 8)) else { break };
            stack.push(address);
            frame = (next > at).then_some(next);
        }
        stack
    }
}

struct Record {
    bytes: Vec<u8>,
    stands_for: f64,
}

/// Where the state lies, if all records agree: states are small numbers, goroutines have numbers of their own.
fn layout(records: &[&[u8]]) -> Option<usize> {
    let fits = |state_at: &usize| {
        let mut numbers = BTreeSet::new();
        records.iter().all(|record| {
            let state = half(record, *state_at).map(|state| state & !0x1000);
            let number = word(record, state_at + NUMBER_BEHIND).unwrap_or(0);
            // One that was never used has no number.
            let is_new = number > 0 && number < 1 << 48 && numbers.insert(number);
            state.is_some_and(|state| state <= 15) && (is_new || matches!(state, Some(0 | 6 | 10..)))
        }) && numbers.len() >= AGREE_MIN
    };
    STATE_AT.into_iter().find(fits)
}

/// The run-time's words for why one waits.
fn reasons(memory: &Memory, table: u64) -> Vec<String> {
    let rows = memory.read(table, REASONS_MAX * 16);
    let text = |row: &[u8]| {
        let (at, length) = (word(row, 0)?, word(row, 8)?);
        let bytes = memory.read(at, usize::try_from(length).ok().filter(|length| *length <= 64)?);
        String::from_utf8(bytes).ok()
    };
    rows.chunks_exact(16).map_while(text).collect()
}

/// The addresses of these symbols in the file, if it has them all.
fn addresses(elf: &crate::image::elf::Elf, wanted: &[&str; 2]) -> Option<[u64; 2]> {
    let header = elf.header(".symtab")?;
    let names = elf.contents(elf.linked(header)?, TABLE_BYTES_MAX).ok()?;
    let raw = elf.contents(header, TABLE_BYTES_MAX).ok()?;
    let count = raw.len() / size_of::<Sym64<LittleEndian>>();
    let (all, _) = object::pod::slice_from_bytes::<Sym64<LittleEndian>>(&raw, count).ok()?;
    let mut found = [None; 2];
    for symbol in all {
        let text = names.get(symbol.st_name(LittleEndian) as usize..).unwrap_or_default();
        for (at, name) in wanted.iter().enumerate() {
            if text.strip_prefix(name.as_bytes()).is_some_and(|rest| rest.first() == Some(&0)) {
                found[at] = Some(symbol.st_value(LittleEndian));
            }
        }
    }
    Some([found[0]?, found[1]?])
}

fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(state_at: usize, state: u32, number: u64) -> Vec<u8> {
        let mut bytes = vec![0xff; RECORD_BYTES];
        bytes[state_at..state_at + 4].copy_from_slice(&state.to_le_bytes());
        bytes[state_at + 8..state_at + 16].copy_from_slice(&number.to_le_bytes());
        bytes
    }

    #[test]
    fn the_layout_is_the_one_that_all_records_agree_on() {
        for state_at in STATE_AT {
            let records = [record(state_at, 4, 1), record(state_at, 0x1002, 2), record(state_at, 6, 7)];
            let all: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
            assert_eq!(layout(&all), Some(state_at));
        }
        let twice = [record(144, 4, 1), record(144, 4, 1)];
        assert_eq!(layout(&[&twice[0], &twice[1]]), None, "two have one number");
    }

    #[test]
    fn this_program_has_no_goroutines() {
        assert!(Goroutines::of(dyno_sys::child::this()).is_ok_and(|found| found.is_none()));
    }
}
