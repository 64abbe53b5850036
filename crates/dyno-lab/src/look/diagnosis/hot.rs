//! The hottest instructions of a target: sampled with their registers, and the bytes of code around them.
//!
//! A hot instruction in a library stands for itself and for the call that led there: a program's loop that spends its time
//! in memcmp is found by the return address on the stack.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_record::observation::{HotSpot, Registers};
use dyno_sys::clock::mono_ns;
use dyno_sys::perf::{HotSample, HotSampler};
use dyno_sys::proc::{self, Mapping};
use dyno_sys::{Pid, Tid};

/// Samples per second of a running thread, beside the profile's own.
const FREQUENCY_HZ: u64 = 499;
/// Each thread needs a ring of its own: of more threads than this those are sampled that used most CPU time.
const THREADS_MAX: usize = 128;
/// Samples below which shares are accidents.
const SAMPLES_MIN: usize = 100;
/// Between two looks at the rings, which hold some 200 samples.
const LOOK: Duration = Duration::from_millis(50);
/// Instructions that are kept, and the samples' registers for each.
const SPOTS_MAX: usize = 96;
const REGISTERS_MAX: usize = 48;
/// Bytes before and behind a hot instruction: loops that reach further are no tight loops.
const BEFORE: u64 = 640;
const BEHIND: u64 = 640;
/// The longest call instruction that leaves a return address.
const CALL_BYTES_MAX: u64 = 7;

/// Samples of all threads.
pub(super) struct Hot {
    samples: Vec<HotSample>,
    seen_ns: u64,
    /// The share of the target's running time that was that of the threads that were sampled.
    sampled_share: f64,
    /// Whose its threads are.
    processes: BTreeMap<Tid, Pid>,
}

/// What a sample is counted for.
#[derive(Debug, Default)]
struct Tally {
    samples: usize,
    by_thread: BTreeMap<Tid, Vec<Registers>>,
}

impl Hot {
    /// Samples the threads of `pid` and of its children for so long, or until `stop` is set.
    pub(super) fn watch(pid: Pid, time: Duration, stop: &AtomicBool) -> std::io::Result<Hot> {
        let mut samplers = Vec::new();
        let mut refused = None;
        let before = run_times(pid);
        let mut busiest: Vec<(Tid, u64)> = before.iter().map(|(tid, ns)| (*tid, *ns)).collect();
        busiest.sort_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
        let mut sampled = BTreeSet::new();
        for (tid, _) in busiest.into_iter().take(THREADS_MAX) {
            match HotSampler::open(tid, FREQUENCY_HZ) {
                Ok(sampler) => {
                    samplers.push(sampler);
                    sampled.insert(tid);
                }
                Err(error) => refused = Some(error),
            }
        }
        if let Some(error) = refused.filter(|_| samplers.is_empty()) {
            return Err(error);
        }
        let mut samples = Vec::new();
        // Opening many takes its own time.
        let start_ns = mono_ns();
        let end_ns = start_ns + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
        while mono_ns() < end_ns && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
            samplers.iter_mut().for_each(|sampler| sampler.drain(&mut samples));
        }
        let seen_ns = mono_ns() - start_ns;
        let (mut all, mut theirs) = (0, 0);
        for (tid, ns) in run_times(pid) {
            let ran = ns.saturating_sub(before.get(&tid).copied().unwrap_or(0));
            all += ran;
            theirs += if sampled.contains(&tid) { ran } else { 0 };
        }
        let sampled_share = if all > 0 { theirs as f64 / all as f64 } else { 1.0 };
        Ok(Hot { samples, seen_ns, sampled_share, processes: processes(pid) })
    }

    /// How long they were sampled.
    pub(super) fn seen_s(&self) -> f64 {
        self.seen_ns as f64 / 1e9
    }

    /// The hottest instructions. `user_share` is the share of the target's CPU time outside the kernel, which was not
    /// sampled here; `name` gives function and place of an address.
    pub(super) fn spots(
        &self,
        pid: Pid,
        user_share: f64,
        name: &mut dyn FnMut(u64) -> (String, Option<String>),
    ) -> std::io::Result<Vec<HotSpot>> {
        if self.samples.len() < SAMPLES_MIN {
            return Ok(Vec::new());
        }
        let memory = proc::Memory::open(pid)?;
        let maps = Maps::read(pid)?;
        let tallies = self.tallies(&maps, &memory);
        let all = self.samples.len().max(1) as f64;
        let mut hottest: Vec<(u64, Tally)> = tallies.into_iter().collect();
        hottest.sort_by_key(|(address, tally)| (std::cmp::Reverse(tally.samples), *address));
        hottest.truncate(SPOTS_MAX);
        let spot = |(address, tally): (u64, Tally)| {
            let (function, place) = name(address);
            let code_at = address.saturating_sub(BEFORE).max(maps.start_of(address));
            let length = (address + BEHIND).min(maps.end_of(address)).saturating_sub(code_at);
            HotSpot {
                address,
                function,
                place,
                share: tally.samples as f64 / all * user_share * self.sampled_share,
                code_at,
                code: hex(&memory.read(code_at, length as usize)),
                seen: tally.registers(&self.processes),
            }
        };
        Ok(hottest.into_iter().map(spot).collect())
    }

    fn tallies(&self, maps: &Maps, memory: &proc::Memory) -> HashMap<u64, Tally> {
        let mut tallies = HashMap::<u64, Tally>::new();
        let mut calls = HashMap::new();
        for sample in &self.samples {
            tallies.entry(sample.ip).or_default().add(sample);
            let caller =
                if maps.is_library(sample.ip) { maps.caller(sample, memory, &mut calls) } else { None };
            if let Some(caller) = caller {
                tallies.entry(caller).or_default().samples += 1;
            }
        }
        tallies
    }
}

/// Whose threads these are, now.
fn processes(pid: Pid) -> BTreeMap<Tid, Pid> {
    let threads = |pid| proc::task_costs(pid).into_iter().map(move |task| (task.tid, pid));
    proc::tree(pid).into_iter().flat_map(threads).collect()
}

/// Memory that a process shares with others that have it mapped.
pub(super) fn shared_memory(pid: Pid) -> Vec<[u64; 2]> {
    let all = proc::mappings(pid).unwrap_or_default();
    all.iter().filter(|mapping| mapping.shared).map(|mapping| [mapping.start, mapping.end]).collect()
}

/// How long each thread of the target has run.
fn run_times(pid: Pid) -> BTreeMap<Tid, u64> {
    let tasks = proc::tree(pid).into_iter().flat_map(proc::task_costs);
    tasks.map(|task| (task.tid, task.run_ns)).collect()
}

impl Tally {
    fn add(&mut self, sample: &HotSample) {
        self.samples += 1;
        let seen = self.by_thread.entry(sample.tid).or_default();
        if seen.len() < REGISTERS_MAX {
            seen.push(Registers { tid: sample.tid.cast_unsigned(), pid: 0, values: sample.registers });
        }
    }

    /// Some of each thread, so that what one thread does never hides another.
    fn registers(self, processes: &BTreeMap<Tid, Pid>) -> Vec<Registers> {
        let each = REGISTERS_MAX / self.by_thread.len().max(1);
        let of = |(tid, seen): (Tid, Vec<Registers>)| {
            // One that has ended meanwhile shares nothing with anybody.
            let pid = processes.get(&tid).copied().unwrap_or(tid).cast_unsigned();
            seen.into_iter().take(each.max(2)).map(move |one| Registers { pid, ..one })
        };
        self.by_thread.into_iter().flat_map(of).collect()
    }
}

/// The code that is mapped into the target.
struct Maps {
    code: Vec<Mapping>,
    program: Option<String>,
}

impl Maps {
    fn read(pid: Pid) -> std::io::Result<Maps> {
        let code = proc::mappings(pid)?.into_iter().filter(|mapping| mapping.executable).collect();
        let program = std::fs::read_link(format!("{}/exe", proc::folder(pid))).ok();
        Ok(Maps { code, program: program.map(|path| path.to_string_lossy().into_owned()) })
    }

    fn of(&self, address: u64) -> Option<&Mapping> {
        self.code.iter().find(|mapping| mapping.start <= address && address < mapping.end)
    }

    fn start_of(&self, address: u64) -> u64 {
        self.of(address).map_or(address, |mapping| mapping.start)
    }

    fn end_of(&self, address: u64) -> u64 {
        self.of(address).map_or(address, |mapping| mapping.end)
    }

    fn is_program(&self, address: u64) -> bool {
        self.of(address).is_some_and(|mapping| Some(&mapping.path) == self.program.as_ref())
    }

    fn is_library(&self, address: u64) -> bool {
        self.of(address).is_some_and(|mapping| Some(&mapping.path) != self.program.as_ref())
    }

    /// The first word on the stack that is a return address into the program itself.
    fn caller(
        &self,
        sample: &HotSample,
        memory: &proc::Memory,
        calls: &mut HashMap<u64, bool>,
    ) -> Option<u64> {
        let mut follows =
            |address: u64| *calls.entry(address).or_insert_with(|| follows_a_call(memory, address));
        sample.stack.iter().copied().find(|word| self.is_program(*word) && follows(*word))
    }
}

/// Whether a call ends right before this address: `e8 rel32`, or `ff /2` in one of its lengths.
fn follows_a_call(memory: &proc::Memory, address: u64) -> bool {
    let before = memory.read(address.saturating_sub(CALL_BYTES_MAX), CALL_BYTES_MAX as usize);
    let from_end = |bytes: usize| before.len().checked_sub(bytes).map(|at| &before[at..]);
    let relative = from_end(5).is_some_and(|code| code[0] == 0xe8);
    let is_ff2 = |code: &[u8]| code[0] == 0xff && code[1] >> 3 & 7 == 2;
    relative || [2, 3, 4, 6, 7].into_iter().any(|bytes| from_end(bytes).is_some_and(is_ff2))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_thread_keeps_some_of_its_registers() {
        let mut tally = Tally::default();
        for at in 0..500 {
            tally.add(&HotSample {
                tid: 1 + i32::from(at % 100 == 0),
                ip: 1,
                registers: [0; 16],
                stack: Vec::new(),
            });
        }
        let kept = tally.registers(&BTreeMap::new());
        assert_eq!(kept.iter().filter(|seen| seen.tid == 2).count(), 5);
        assert_eq!(kept.iter().filter(|seen| seen.tid == 1).count(), REGISTERS_MAX / 2);
    }

    #[test]
    fn a_return_address_stands_behind_a_call() {
        let memory = proc::Memory::open(dyno_sys::child::this()).unwrap();
        let code: Vec<u8> = [0x90, 0x90, 0xe8, 1, 2, 3, 4, 0x90, 0x90, 0x90, 0xff, 0xd0, 0x90].to_vec();
        let at = code.as_ptr().addr() as u64;
        assert!(follows_a_call(&memory, at + 7) && follows_a_call(&memory, at + 12));
        assert!(!follows_a_call(&memory, at + 9));
    }
}
