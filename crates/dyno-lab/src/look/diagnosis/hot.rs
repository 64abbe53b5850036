//! The hottest instructions of a target: sampled with their registers, and the bytes of code around them.
//!
//! Each sample is its process's: what lies at an address is asked of that one. Equal code of several processes is counted together.
//!
//! A hot instruction in a library stands for itself and for the call that led there: a program's loop that spends its time
//! in memcmp is found by the return address on the stack.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_record::observation::{HotSpot, Registers};
use dyno_sys::clock::mono_ns;
use dyno_sys::perf::{HotSample, HotSampler};
use dyno_sys::{Pid, Tid, proc};

use super::mapped::{self, Mapped, Text};

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

/// Samples of all threads.
pub(super) struct Hot {
    samples: Vec<HotSample>,
    seen_ns: u64,
    /// The share of the target's running time that was that of the threads that were sampled.
    sampled_share: f64,
    /// What was mapped into its processes when they began to be sampled.
    spaces: BTreeMap<Pid, Mapped>,
}

/// What a sample is counted for.
#[derive(Debug, Default)]
struct Tally {
    samples: usize,
    by_thread: BTreeMap<Tid, Vec<Registers>>,
}

/// Tallies by process and address.
type Tallies = HashMap<(Pid, u64), Tally>;

impl Hot {
    /// Samples the threads of `pid` and of its children for so long, or until `stop` is set.
    pub(super) fn watch(pid: Pid, time: Duration, stop: &AtomicBool) -> std::io::Result<Hot> {
        let mut samplers = Vec::new();
        let mut refused = None;
        let before = run_times(pid);
        let mut busiest: Vec<(Tid, u64)> = before.iter().map(|(tid, ns)| (*tid, *ns)).collect();
        busiest.sort_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
        busiest.truncate(THREADS_MAX);
        let spaces = spaces(pid, &busiest.iter().map(|(tid, _)| *tid).collect());
        let mut sampled = BTreeSet::new();
        for (tid, _) in busiest {
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
        Ok(Hot { samples, seen_ns, sampled_share, spaces })
    }

    /// The processes in which samples fell.
    pub(super) fn processes(&self) -> BTreeSet<Pid> {
        self.samples.iter().map(|sample| sample.pid).collect()
    }

    /// How long they were sampled.
    pub(super) fn seen_s(&self) -> f64 {
        self.seen_ns as f64 / 1e9
    }

    /// The hottest instructions. `user_share` is the share of the target's CPU time outside the kernel, which was not
    /// sampled here; `name` gives function and place of an address of a process.
    pub(super) fn spots(
        mut self,
        user_share: f64,
        name: &mut dyn FnMut(Pid, u64) -> (String, Option<String>),
    ) -> std::io::Result<Vec<HotSpot>> {
        if self.samples.len() < SAMPLES_MIN {
            return Ok(Vec::new());
        }
        let processes = self.processes();
        self.spaces.retain(|pid, _| processes.contains(pid));
        let mut spaces = mapped::now(std::mem::take(&mut self.spaces))?;
        let all = self.samples.len().max(1) as f64;
        let mut hottest: Vec<((Pid, u64), Tally)> = self.tallies(&mut spaces).into_iter().collect();
        hottest.sort_by_key(|(at, tally)| (std::cmp::Reverse(tally.samples), *at));
        hottest.truncate(SPOTS_MAX);
        let spot = |((pid, address), tally): ((Pid, u64), Tally)| {
            let (function, place) = name(pid, address);
            let code = spaces.get(&pid).map(|space| space.code(address, BEFORE, BEHIND));
            let (code_at, code) = code.unwrap_or((address, Vec::new()));
            HotSpot {
                address,
                function,
                place,
                share: tally.samples as f64 / all * user_share * self.sampled_share,
                code_at,
                code: hex(&code),
                seen: tally.registers(),
            }
        };
        Ok(hottest.into_iter().map(spot).collect())
    }

    fn tallies(&self, spaces: &mut BTreeMap<Pid, Mapped>) -> Tallies {
        let mut tallies = Tallies::new();
        for sample in &self.samples {
            tallies.entry((sample.pid, sample.ip)).or_default().add(sample);
            let caller = spaces.get_mut(&sample.pid).and_then(|space| space.caller(sample));
            if let Some(caller) = caller {
                tallies.entry((sample.pid, caller)).or_default().samples += 1;
            }
        }
        merged(tallies, spaces)
    }
}

/// Puts together what is one code in a file: as that of the process which ran most of it and can be read. Where others have it at the
/// same addresses, as forks have, their registers are of use there; where they have it elsewhere, what registers point to lies
/// elsewhere too, and only their samples are counted.
fn merged(tallies: Tallies, spaces: &BTreeMap<Pid, Mapped>) -> Tallies {
    let homes = homes(&tallies, spaces);
    let mut all = Tallies::new();
    for ((pid, address), mut tally) in tallies {
        let found = spaces.get(&pid).and_then(|space| space.text(address));
        let home = found.and_then(|(text, start)| Some((homes.get(&text)?, start)));
        let at = home.map_or((pid, address), |((home, there), start)| (*home, there + (address - start)));
        if at.1 != address {
            tally.by_thread.clear();
        }
        all.entry(at).or_default().join(tally);
    }
    all
}

/// Of each file's code the process that it is told as, and where it begins there.
fn homes(tallies: &Tallies, spaces: &BTreeMap<Pid, Mapped>) -> HashMap<Text, (Pid, u64)> {
    let mut ran = HashMap::<Text, BTreeMap<(Pid, u64), usize>>::new();
    for ((pid, address), tally) in tallies {
        if let Some((text, start)) = spaces.get(pid).and_then(|space| space.text(*address)) {
            *ran.entry(text).or_default().entry((*pid, start)).or_default() += tally.samples;
        }
    }
    let most = |ran: BTreeMap<(Pid, u64), usize>| {
        let rank = |(at, samples): &((Pid, u64), usize)| {
            (spaces.get(&at.0).is_some_and(Mapped::is_readable), *samples, std::cmp::Reverse(*at))
        };
        ran.into_iter().max_by_key(rank).map(|(at, _)| at)
    };
    ran.into_iter().filter_map(|(text, ran)| Some((text, most(ran)?))).collect()
}

/// What is mapped now into each process of the target that has one of these threads.
fn spaces(pid: Pid, threads: &BTreeSet<Tid>) -> BTreeMap<Pid, Mapped> {
    let has_one = |pid: &Pid| proc::tasks(*pid).iter().any(|tid| threads.contains(tid));
    let theirs = proc::tree(pid).into_iter().filter(has_one);
    theirs.map(|pid| (pid, Mapped::look(pid).unwrap_or_default())).collect()
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
            let (tid, pid) = (sample.tid.cast_unsigned(), sample.pid.cast_unsigned());
            seen.push(Registers { tid, pid, values: sample.registers });
        }
    }

    fn join(&mut self, other: Tally) {
        self.samples += other.samples;
        for (tid, seen) in other.by_thread {
            self.by_thread.entry(tid).or_default().extend(seen);
        }
    }

    /// Some of each thread, so that what one thread does never hides another.
    fn registers(self) -> Vec<Registers> {
        let each = REGISTERS_MAX / self.by_thread.len().max(1);
        self.by_thread.into_values().flat_map(|seen| seen.into_iter().take(each.max(2))).collect()
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_sys::proc::Mapping;

    #[test]
    fn each_thread_keeps_some_of_its_registers() {
        let mut tally = Tally::default();
        for at in 0..500 {
            tally.add(&HotSample {
                pid: 1,
                tid: 1 + i32::from(at % 100 == 0),
                ip: 1,
                registers: [0; 16],
                stack: Vec::new(),
            });
        }
        let kept = tally.registers();
        assert_eq!(kept.iter().filter(|seen| seen.tid == 2).count(), 5);
        assert_eq!(kept.iter().filter(|seen| seen.tid == 1).count(), REGISTERS_MAX / 2);
    }

    fn sampled(pid: Pid, ip: u64) -> HotSample {
        HotSample { pid, tid: pid, ip, registers: [ip; 16], stack: Vec::new() }
    }

    /// Processes with these addresses of the same program, and samples in them.
    fn merged_of(starts: &[(Pid, u64)], samples: Vec<HotSample>) -> BTreeMap<(Pid, u64), (usize, usize)> {
        let program = |start| Mapping {
            start,
            end: start + 0x1000,
            executable: true,
            shared: false,
            offset: 0x2000,
            inode: 7,
            path: "/srv".into(),
        };
        let space = |(pid, start): &(Pid, u64)| (*pid, Mapped::of(vec![program(*start)]));
        let mut spaces = starts.iter().map(space).collect();
        let hot = Hot { samples, seen_ns: 0, sampled_share: 1.0, spaces: BTreeMap::new() };
        let tallies = hot.tallies(&mut spaces).into_iter();
        tallies.map(|(at, tally)| (at, (tally.samples, tally.registers().len()))).collect()
    }

    /// Planted faults: tallies by address alone; equal code of two processes counted apart; registers of a process in which it lies
    /// elsewhere.
    #[test]
    fn equal_code_of_several_processes_is_counted_together_wherever_it_lies() {
        let forks = [(1, 0x1000), (2, 0x1000), (3, 0x5000)];
        let samples = || vec![sampled(1, 0x1010), sampled(2, 0x1010), sampled(2, 0x1020), sampled(3, 0x5010)];
        let found = merged_of(&forks, samples());
        assert_eq!(found, BTreeMap::from([((2, 0x1010), (3, 2)), ((2, 0x1020), (1, 1))]));
    }

    /// Planted fault: tallies by address alone.
    #[test]
    fn what_lies_at_one_address_of_two_processes_is_not_one_code() {
        let samples = vec![sampled(1, 0x9010), sampled(2, 0x9010)];
        let found = merged_of(&[(1, 0x1000), (2, 0x1000)], samples);
        assert_eq!(
            found,
            BTreeMap::from([((1, 0x9010), (1, 1)), ((2, 0x9010), (1, 1))]),
            "made by each itself"
        );
    }
}
