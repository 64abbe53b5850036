//! What goroutines wait for: read from the memory of a Go program, which the kernel knows nothing of.
//!
//! Go's run-time keeps a list of all goroutines with what each does and, where it waits, why; and it keeps frame pointers, so
//! that the stack of one that waits can be walked. All of it is read through /proc without stopping anything, so a look may
//! catch one in the middle of a change: only what many looks agree on means something. Diagnosis calls it.

mod below;
mod place;
mod record;

use std::collections::{BTreeMap, BTreeSet};

use dyno_sys::Pid;
use dyno_sys::proc::Memory;

use crate::image::spaces::{AddressSpaces, program};
use crate::symbol::Symbols;
pub use below::{all_below, below};
use record::{GOROUTINES_MAX, REASON_BEHIND, RECORD_BYTES, half, layout, number, word};

/// Goroutines that are looked at each time; of more, every so-manieth.
const LOOKED_AT_MAX: usize = 512;
/// Stacks that are walked each time, for each thing that is waited for.
const WALKED_MAX: usize = 8;
/// Return addresses of a stack that are kept: what serves a request lies below all that a program calls for it.
const DEPTH_MAX: usize = 48;
/// Bytes of a stack that are read.
const STACK_BYTES_MAX: u64 = 32 << 10;
/// Different stacks that are kept, and of the named ones those that are told.
const STACKS_MAX: usize = 4_096;
const TOLD_MAX: usize = 32;
/// Where a goroutine that does not run keeps its frame pointer.
const FRAME_AT: [usize; 2] = [96, 104];
/// A Go program's goroutines.
pub struct Goroutines {
    pid: Pid,
    memory: Memory,
    list: u64,
    reasons: Vec<String>,
    state_at: Option<usize>,
    looks: u32,
    seen: BTreeMap<String, f64>,
    /// By what is waited for, and return addresses.
    stacks: BTreeMap<(String, Vec<u64>), f64>,
    busy: Busy,
}

/// Who was at work at each look, by number.
#[derive(Default)]
struct Busy {
    looks: Vec<Vec<u64>>,
    /// Looks at which each was in a system call.
    in_calls: BTreeMap<u64, usize>,
}

impl Busy {
    fn take(&mut self, look: &[(u64, &str)]) {
        let at_work = look.iter().filter(|(_, state)| BUSY.contains(state));
        self.looks.push(at_work.map(|(number, _)| *number).collect());
        for (number, _) in look.iter().filter(|(_, state)| *state == IN_CALL) {
            *self.in_calls.entry(*number).or_default() += 1;
        }
    }

    /// Looks at which somebody was at work. Who was never seen outside of a system call waits in it: for signals, say.
    fn looks(&self) -> u32 {
        let waits = |number: &u64| self.in_calls.get(number).is_some_and(|looks| *looks >= self.looks.len());
        self.looks.iter().filter(|look| !look.iter().all(waits)).count() as u32
    }
}

/// A goroutine in a system call.
const IN_CALL: &str = "in a system call";
/// What a goroutine does that is at work, or that sleeps for a time as one that stands for work does.
const BUSY: [&str; 4] = ["running", "runnable", IN_CALL, "sleep"];
/// Reasons whose stacks are walked beside those of mutexes.
const WALKED: [&str; 5] = ["chan receive", "chan send", "select", "IO wait", "sleep"];

/// Goroutines that wait at one place.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Place {
    /// What is waited for.
    pub state: String,
    /// Functions from the outermost to the innermost, joined by `;`, without the run-time's.
    pub stack: String,
    /// How many waited there, on average.
    pub many: f64,
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
    /// Where others waited or slept, the most first.
    pub places: Vec<Place>,
    /// Looks at which somebody ran, wanted to, slept, or was in a system call that ended.
    pub busy_looks: u32,
}

/// Reasons of goroutines that wait for a mutex.
const AT_MUTEX: [&str; 4] = ["sync.Mutex.Lock", "sync.RWMutex.RLock", "sync.RWMutex.Lock", "semacquire"];

/// Whether that is what a goroutine waits for at a mutex.
#[must_use]
pub fn is_mutex(reason: &str) -> bool {
    AT_MUTEX.contains(&reason)
}

/// Whether a process is a Go program.
fn is_go(pid: Pid) -> bool {
    program(pid).is_some_and(|(elf, _)| elf.is_go())
}

impl Goroutines {
    /// Those of a process; none where it is no Go program.
    ///
    /// # Errors
    /// Why they cannot be seen.
    pub fn of(pid: Pid) -> Result<Option<Goroutines>, &'static str> {
        let Some((elf, bias)) = program(pid).filter(|(elf, _)| elf.is_go()) else { return Ok(None) };
        let memory = Memory::open(pid).map_err(|_refused| "its memory may not be read")?;
        let place::Place { list, reasons } = place::find(&elf, &memory, bias)?;
        Ok(Some(Goroutines {
            pid,
            memory,
            list,
            reasons,
            state_at: None,
            looks: 0,
            seen: BTreeMap::new(),
            stacks: BTreeMap::new(),
            busy: Busy::default(),
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
        let mut waiting = BTreeMap::<String, Vec<&Record>>::new();
        let mut states = Vec::new();
        for record in &records {
            let Some(state) = self.state(&record.bytes, state_at) else { continue };
            let number = number(&record.bytes, state_at);
            *self.seen.entry(state.clone()).or_default() += record.stands_for;
            if is_mutex(&state) || WALKED.contains(&state.as_str()) {
                waiting.entry(state.clone()).or_default().push(record);
            }
            states.push((number, state));
        }
        let states: Vec<(u64, &str)> =
            states.iter().map(|(number, state)| (*number, state.as_str())).collect();
        self.busy.take(&states);
        for (state, those) in waiting {
            self.walk_some(&state, &those);
        }
    }

    /// Walks the stacks of some that wait for the same, other ones at each look: each stands for as many as there are.
    fn walk_some(&mut self, state: &str, those: &[&Record]) {
        let all: f64 = those.iter().map(|record| record.stands_for).sum();
        let step = those.len().div_ceil(WALKED_MAX).max(1);
        let walked: Vec<&&Record> = those.iter().skip(self.looks as usize % step).step_by(step).collect();
        let each = all / walked.len().max(1) as f64;
        for record in walked {
            let key = (state.to_owned(), self.walk(&record.bytes));
            if self.stacks.len() < STACKS_MAX || self.stacks.contains_key(&key) {
                *self.stacks.entry(key).or_default() += each;
            }
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
        let mut names = BTreeMap::<u64, Vec<String>>::new();
        let mut name = |address: u64| {
            let named = names.entry(address).or_insert_with(|| {
                // A return address lies behind its call.
                let functions = symbols.symbolize(&mut spaces, self.pid, address.saturating_sub(1));
                functions.into_iter().map(|function| function.name).collect()
            });
            named.clone()
        };
        let mut at_mutexes = BTreeMap::<String, f64>::new();
        let mut places = BTreeMap::<(String, String), f64>::new();
        for ((state, stack), sum) in self.stacks {
            let functions: Vec<String> = stack.into_iter().flat_map(&mut name).collect();
            if is_mutex(&state) {
                let here: BTreeSet<String> = functions.into_iter().collect();
                here.into_iter().for_each(|name| *at_mutexes.entry(name).or_default() += sum / looks);
            } else {
                *places.entry((state, folded(&functions))).or_default() += sum / looks;
            }
        }
        let place = |((state, stack), many)| Place { state, stack, many };
        let mut places: Vec<Place> = places.into_iter().map(place).collect();
        places.sort_by(|a, b| b.many.total_cmp(&a.many));
        places.truncate(TOLD_MAX);
        let states = self.seen.into_iter().map(mean).collect();
        Some(Seen { looks: self.looks, states, at_mutexes, places, busy_looks: self.busy.looks() })
    }

    fn records(&self) -> Vec<Record> {
        let header = self.memory.read(self.list, 16);
        let (Some(at), Some(count)) = (word(&header, 0), word(&header, 8)) else { return Vec::new() };
        let count = usize::try_from(count).unwrap_or(0).min(GOROUTINES_MAX);
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
        let frame = FRAME_AT.iter().filter_map(|at| word(record, *at)).find(|at| inside(*at));
        let Some(begin) = frame else { return Vec::new() };
        let bytes = (high - begin).min(STACK_BYTES_MAX);
        let memory = self.memory.read(begin, usize::try_from(bytes).unwrap_or(0));
        let (mut stack, mut frame) = (Vec::new(), frame);
        while let Some(at) = frame.filter(|at| inside(*at) && stack.len() < DEPTH_MAX) {
            let from = usize::try_from(at - begin).unwrap_or(usize::MAX);
            let (Some(next), Some(address)) = (word(&memory, from), word(&memory, from.saturating_add(8)))
            else {
                break;
            };
            stack.push(address);
            frame = (next > at).then_some(next);
        }
        stack
    }
}

/// Functions, the innermost first, as a line from the outermost on; the run-time's own say nothing.
fn folded(functions: &[String]) -> String {
    let own = functions.iter().rev().filter(|name| !name.starts_with("runtime."));
    own.map(String::as_str).collect::<Vec<_>>().join(";")
}

struct Record {
    bytes: Vec<u8>,
    stands_for: f64,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Planted fault: every system call is work.
    #[test]
    fn who_stays_in_one_system_call_is_not_at_work() {
        let mut busy = Busy::default();
        busy.take(&[(1, IN_CALL), (2, "IO wait"), (3, "chan send")]);
        busy.take(&[(1, IN_CALL), (2, "running"), (3, "chan send")]);
        busy.take(&[(1, IN_CALL), (2, IN_CALL), (3, "chan send")]);
        assert_eq!(busy.looks(), 2);
    }

    #[test]
    fn a_stack_is_told_from_its_outermost_function_without_the_run_times() {
        let innermost_first =
            ["runtime.gopark", "runtime.chansend1", "main.handle", "net/http.(*conn).serve"];
        let functions = innermost_first.map(str::to_owned);
        assert_eq!(folded(&functions), "net/http.(*conn).serve;main.handle");
    }

    #[test]
    fn this_program_has_no_goroutines() {
        assert!(Goroutines::of(dyno_sys::child::this()).is_ok_and(|found| found.is_none()));
    }
}
