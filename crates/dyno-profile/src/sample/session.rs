//! The events of one profile, opened: on every thread of a process, on one thread, or on every CPU, with a ring per CPU.
//!
//! Threads that start while events are being opened may get an event twice, one of their own and one inherited; [`Session::counts`]
//! then says which samples count.

use std::collections::{HashMap, HashSet};
use std::io;

use dyno_sys::perf::{
    Clock, Inherit, Kernel, Layout, Ring, Sample, Sampling, SamplingEvent, Stacks, Start, Whom, wait,
};
use dyno_sys::{Pid, Tid, affinity, child, proc};

use crate::error::{Error, paranoid};
use crate::image::elf::{Elf, Source};
use crate::sample::options::{CallGraph, Event, Options, Target};

/// How often the threads of a process are listed again for those that started meanwhile; each round finds fewer.
const ROUNDS_MAX: usize = 8;

/// Bytes of a ring: a quarter of a second of copied stacks at 999 Hz and 16 KiB each. Smaller ones are tried when the
/// user may not lock that much.
const RING_BYTES: usize = 4 << 20;
/// The same for the nearest part of stacks; without copied stacks a sample is some hundred bytes.
const RING_BYTES_PLAIN: usize = 1 << 20;
const RING_BYTES_MIN: usize = 64 << 10;

/// The reader is woken when a ring is a quarter full: it then has three quarters of the time until it overflows.
const WAKEUPS_PER_RING: u32 = 4;

/// Bytes that are enough to find the caller of a leaf that keeps no frame, and to walk out of code that uses the frame
/// pointer for something else (Go's assembly).
const LEAF_BYTES: u32 = 4 << 10;

/// Open events and their rings. What always holds:
///
/// - events of a thread stand together, one for each CPU in the order of CPUs: by its place an event finds its CPU's ring;
/// - every ring belongs to one of the events (`owners`), which is open as long as the ring;
/// - a thread is in `threads` once its events are open on all CPUs.
pub(crate) struct Session {
    sampling: Sampling,
    events: Vec<SamplingEvent>,
    rings: Vec<Ring>,
    /// Indices of the events that own a ring, in the order of `rings`.
    owners: Vec<usize>,
    /// Which thread an event was opened on; none for events of CPUs.
    opened_on: HashMap<u64, Tid>,
    direct: HashSet<Tid>,
    threads: Vec<(Pid, Tid)>,
}

impl Session {
    /// Opens everything; nothing is sampled yet.
    pub(crate) fn open(target: &Target, options: &Options) -> Result<Session, Error> {
        let mut session = Session::open_with(target, sampling(target, options))?;
        let ring_bytes = session.map_rings()?;
        if u32::try_from(ring_bytes)
            .is_ok_and(|bytes| bytes / WAKEUPS_PER_RING < session.sampling.wakeup_bytes)
        {
            // A ring that is smaller than asked for must wake us earlier, or it is full before.
            let wakeup_bytes = ring_bytes as u32 / WAKEUPS_PER_RING;
            session = Session::open_with(target, Sampling { wakeup_bytes, ..session.sampling })?;
            session.map_rings()?;
        }
        Ok(session)
    }

    /// One that sampled nothing and holds nothing: what it records comes from the test.
    #[cfg(test)]
    pub(crate) fn without_events(sampling: Sampling) -> Session {
        Session {
            sampling,
            events: Vec::new(),
            rings: Vec::new(),
            owners: Vec::new(),
            opened_on: HashMap::new(),
            direct: HashSet::new(),
            threads: Vec::new(),
        }
    }

    fn open_with(target: &Target, sampling: Sampling) -> Result<Session, Error> {
        let mut session = Session {
            sampling,
            events: Vec::new(),
            rings: Vec::new(),
            owners: Vec::new(),
            opened_on: HashMap::new(),
            direct: HashSet::new(),
            threads: Vec::new(),
        };
        match session.open_all(target) {
            // Switches happen in the kernel: outside of it there are none.
            Err(Error::Refused { .. }) if session.sampling.clock != Clock::Switches => {
                // Without the right to see the kernel one may still watch one's own processes outside of it.
                session.sampling.kernel = Kernel::Without;
                session.open_all(target)?;
            }
            opened => opened?,
        }
        Ok(session)
    }

    fn open_all(&mut self, target: &Target) -> Result<(), Error> {
        // One event per thread and CPU, and a ring or two.
        let _ = proc::raise_nofile_to_hard();
        match target {
            Target::Machine => self.open_cpus(affinity::online().iter()),
            Target::Cpus(cpus) => self.open_cpus(cpus.iter().copied()),
            Target::Thread(tid) => self.open_thread(*tid),
            Target::Held(pid) => self.open_threads_of(&[*pid], || vec![(*pid, *pid)]),
            Target::Process(_) | Target::Processes(_) => {
                let pids = target.processes();
                self.open_threads_of(pids, || families(pids).flat_map(threads_of).collect())
            }
        }
    }

    fn open_cpus(&mut self, cpus: impl Iterator<Item = usize>) -> Result<(), Error> {
        for cpu in cpus {
            let event = SamplingEvent::open(&self.sampling, Whom::Cpu(cpu));
            let event = event.map_err(|source| self.refused(source, "the machine".to_owned()))?;
            self.events.push(event);
        }
        Ok(())
    }

    fn open_thread(&mut self, tid: Tid) -> Result<(), Error> {
        let event = SamplingEvent::open(&self.sampling, Whom::Thread(tid));
        let event = event.map_err(|source| self.refused(source, format!("thread {tid}")))?;
        self.opened_on.insert(event.id(), tid);
        self.events.push(event);
        let pid = process_of(tid).unwrap_or(tid);
        self.direct.insert(tid);
        self.threads.push((pid, tid));
        Ok(())
    }

    fn open_threads_of(&mut self, pids: &[Pid], list: impl Fn() -> Vec<(Pid, Tid)>) -> Result<(), Error> {
        for _ in 0..ROUNDS_MAX {
            let new: Vec<_> = list().into_iter().filter(|(_, tid)| !self.direct.contains(tid)).collect();
            if new.is_empty() {
                break;
            }
            for (pid, tid) in new {
                match self.open_on_all_cpus(pid, tid) {
                    // A child that became another user's is not ours to watch; the rest of the family is.
                    Err(Error::Refused { .. }) if !pids.contains(&pid) => {
                        self.direct.insert(tid);
                    }
                    opened => opened?,
                }
            }
        }
        if self.events.is_empty() { Err(Error::NoProcess { pid: pids[0] }) } else { Ok(()) }
    }

    fn open_on_all_cpus(&mut self, pid: Pid, tid: Tid) -> Result<(), Error> {
        // With two events of its own on a CPU a thread would be sampled twice.
        if !self.direct.insert(tid) {
            return Ok(());
        }
        let before = self.events.len();
        for cpu in affinity::online().iter() {
            match SamplingEvent::open(&self.sampling, Whom::ThreadOn(tid, cpu)) {
                Ok(event) => {
                    self.opened_on.insert(event.id(), tid);
                    self.events.push(event);
                }
                // It ended since it was listed.
                Err(error) if is(&error, libc_errno::ESRCH) => {
                    self.forget_events(before);
                    return Ok(());
                }
                Err(source) => {
                    self.forget_events(before);
                    self.direct.remove(&tid);
                    return Err(self.refused(source, format!("process {pid}")));
                }
            }
        }
        debug_assert!(!self.threads.contains(&(pid, tid)), "each thread once");
        self.threads.push((pid, tid));
        Ok(())
    }

    /// Events stand in the order of CPUs: those of a thread that is not on all of them would shift all others.
    fn forget_events(&mut self, from: usize) {
        assert!(from <= self.events.len(), "events are taken from the end");
        for event in self.events.drain(from..) {
            self.opened_on.remove(&event.id());
        }
    }

    fn refused(&self, source: io::Error, what: String) -> Error {
        let event = match self.sampling.clock {
            Clock::CpuClock => "cpu-clock",
            Clock::Cycles => "cycles",
            Clock::Switches => "context-switches",
        };
        match source.raw_os_error() {
            Some(libc_errno::EACCES | libc_errno::EPERM) => {
                Error::Refused { what, paranoid: paranoid(), source }
            }
            Some(libc_errno::ENOENT | libc_errno::EOPNOTSUPP | libc_errno::ENODEV) => {
                Error::NoEvent { event, source }
            }
            Some(libc_errno::EMFILE | libc_errno::ENFILE) => {
                Error::Descriptors { threads: self.direct.len(), cpus: affinity::online().len(), source }
            }
            _ => Error::Perf { operation: "open a perf event", source },
        }
    }

    /// One ring per CPU, the events of each CPU sharing it; events stand thread by thread, each in the order of CPUs.
    /// The bytes of the smallest.
    fn map_rings(&mut self) -> Result<usize, Error> {
        assert!(self.rings.is_empty() && self.owners.is_empty(), "rings are mapped once");
        assert!(!self.events.is_empty(), "there is something to sample");
        let per_thread = if matches!(self.sampling.inherit, Inherit::Children) {
            affinity::online().len()
        } else {
            self.events.len()
        };
        let wanted = if self.sampling.stacks.copy_bytes > LEAF_BYTES { RING_BYTES } else { RING_BYTES_PLAIN };
        let mut bytes = wanted;
        for at in 0..self.events.len() {
            if at < per_thread {
                let ring = map(&self.events[at], &mut bytes)?;
                self.rings.push(ring);
                self.owners.push(at);
            } else {
                let operation = "share a ring between events";
                let owner = &self.events[at % per_thread];
                self.events[at].share_ring_of(owner).map_err(|source| Error::Perf { operation, source })?;
            }
        }
        assert_eq!(self.rings.len(), self.owners.len(), "each ring has its owner");
        debug_assert!(self.owners.iter().all(|owner| *owner < self.events.len()));
        assert!((RING_BYTES_MIN..=wanted).contains(&bytes), "rings shrink to a limit");
        Ok(bytes)
    }

    /// Begins to sample; a held program begins by itself, when it execs.
    pub(crate) fn enable(&self) -> Result<(), Error> {
        assert!(!self.rings.is_empty(), "samples have room before they come");
        if self.sampling.start == Start::AtExec {
            return Ok(());
        }
        let enable = |event: &SamplingEvent| match event.enable() {
            Err(error) if !is(&error, libc_errno::ESRCH) => Err(error),
            _ => Ok(()),
        };
        let enabled = self.events.iter().try_for_each(enable);
        enabled.map_err(|source| Error::Perf { operation: "enable a perf event", source })
    }

    /// Stops sampling. An event whose thread is gone has stopped already.
    pub(crate) fn disable(&self) {
        debug_assert_eq!(self.rings.len(), self.owners.len(), "rings live as long as their events");
        for event in &self.events {
            let _ = event.disable();
        }
    }

    /// Sleeps until a ring asks to be read, or until `deadline_ns`.
    pub(crate) fn wait(&self, hung_up: &mut HashSet<usize>, deadline_ns: u64) -> Result<(), Error> {
        let live: Vec<usize> = self.owners.iter().copied().filter(|owner| !hung_up.contains(owner)).collect();
        let mut events: Vec<&SamplingEvent> = live.iter().map(|at| &self.events[*at]).collect();
        wait(&mut events, deadline_ns)
            .map_err(|source| Error::Perf { operation: "wait for samples", source })?;
        let still: HashSet<u64> = events.iter().map(|event| event.id()).collect();
        hung_up.extend(live.into_iter().filter(|at| !still.contains(&self.events[*at].id())));
        debug_assert!(
            hung_up.iter().all(|at| self.owners.contains(at)),
            "only owners of rings are waited for"
        );
        Ok(())
    }

    /// Takes everything out of the rings.
    pub(crate) fn drain(&mut self, out: &mut Vec<u8>) {
        for ring in &mut self.rings {
            ring.drain(out);
        }
    }

    /// Whether a sample is not a second one of the same moment.
    pub(crate) fn counts(&self, sample: &Sample<'_>) -> bool {
        let of_thread = self.opened_on.get(&sample.id);
        of_thread.is_none_or(|tid| *tid == sample.tid || !self.direct.contains(&sample.tid))
    }

    /// A thread ended: its number may come again, for one that inherited its event.
    pub(crate) fn ended(&mut self, tid: Tid) {
        self.direct.remove(&tid);
    }

    /// Samples that the events themselves counted as lost.
    pub(crate) fn lost(&self) -> u64 {
        self.events.iter().map(SamplingEvent::lost).sum()
    }

    pub(crate) fn layout(&self) -> Layout {
        self.sampling.layout()
    }

    pub(crate) fn sampling(&self) -> &Sampling {
        &self.sampling
    }

    /// Threads that events were opened on.
    pub(crate) fn threads(&self) -> &[(Pid, Tid)] {
        &self.threads
    }
}

fn sampling(target: &Target, options: &Options) -> Sampling {
    let stacks = match options.call_graph {
        CallGraph::FramePointers => Stacks { chain: true, copy_bytes: 0 },
        CallGraph::Dwarf => Stacks { chain: false, copy_bytes: options.stack_bytes },
        CallGraph::Auto if needs_no_tables(target) => Stacks { chain: true, copy_bytes: LEAF_BYTES },
        CallGraph::Auto => Stacks { chain: true, copy_bytes: options.stack_bytes },
    };
    let ring = if stacks.copy_bytes > LEAF_BYTES { RING_BYTES } else { RING_BYTES_PLAIN };
    Sampling {
        clock: match options.event {
            Event::CpuClock => Clock::CpuClock,
            Event::Cycles => Clock::Cycles,
            Event::Switches => Clock::Switches,
        },
        frequency_hz: options.frequency_hz,
        kernel: Kernel::With,
        stacks,
        inherit: match target {
            Target::Process(_) | Target::Processes(_) | Target::Held(_) => Inherit::Children,
            Target::Thread(_) | Target::Machine | Target::Cpus(_) => Inherit::Nobody,
        },
        start: if matches!(target, Target::Held(_)) { Start::AtExec } else { Start::Later },
        wakeup_bytes: u32::try_from(ring).expect("a ring is a few MiB") / WAKEUPS_PER_RING,
    }
}

/// Whether the target is one static program of Go, whose code keeps frame pointers: then nothing need be copied.
fn needs_no_tables(target: &Target) -> bool {
    let (Target::Process(_) | Target::Processes(_)) = target else { return false };
    let go = |pid: Pid| {
        let exe = Source::open(format!("{}/exe", proc::folder(pid)).as_ref());
        let elf = exe.and_then(Elf::open);
        elf.is_some_and(|elf| elf.is_go() && !elf.is_dynamic())
    };
    families(target.processes()).all(go)
}

/// Processes and their living descendants, without this profiler, which may well be one of them. One that descends from
/// another of them comes twice.
fn families(pids: &[Pid]) -> impl Iterator<Item = Pid> + '_ {
    pids.iter().flat_map(|pid| proc::tree(*pid)).filter(|pid| *pid != child::this())
}

fn threads_of(pid: Pid) -> Vec<(Pid, Tid)> {
    proc::tasks(pid).into_iter().map(|tid| (pid, tid)).collect()
}

/// The process that a thread belongs to.
pub(crate) fn process_of(tid: Tid) -> Option<Pid> {
    let status = std::fs::read(format!("/proc/{tid}/status")).ok()?;
    proc::parse_status_field(&String::from_utf8_lossy(&status), "Tgid")?.parse().ok()
}

/// Maps a ring of `bytes`, or of as many as may be locked; the next ones begin there.
fn map(event: &SamplingEvent, bytes: &mut usize) -> Result<Ring, Error> {
    loop {
        match Ring::map(event, *bytes) {
            Ok(ring) => return Ok(ring),
            Err(error) if *bytes > RING_BYTES_MIN && may_be_smaller(&error) => *bytes /= 2,
            Err(source) => return Err(Error::Ring { bytes: *bytes, source }),
        }
    }
}

fn may_be_smaller(error: &io::Error) -> bool {
    is(error, libc_errno::EPERM) || is(error, libc_errno::ENOMEM)
}

fn is(error: &io::Error, errno: i32) -> bool {
    error.raw_os_error() == Some(errno)
}

/// Numbers of the kernel's answers, the same on all architectures of Linux that are supported.
mod libc_errno {
    pub(super) const EPERM: i32 = 1;
    pub(super) const ENOENT: i32 = 2;
    pub(super) const ESRCH: i32 = 3;
    pub(super) const ENOMEM: i32 = 12;
    pub(super) const EACCES: i32 = 13;
    pub(super) const ENODEV: i32 = 19;
    pub(super) const ENFILE: i32 = 23;
    pub(super) const EMFILE: i32 = 24;
    pub(super) const EOPNOTSUPP: i32 = 95;
}
