//! The rig over a live process: the probe in the kernel, one window at a time.
//!
//! `dyno causal` opens it and hands it to the run. It interprets nothing; what it attaches hangs on descriptors of this
//! process and is gone with them, and a deadline in the kernel lets everybody run on should this process hang.

use std::os::fd::OwnedFd;
use std::os::linux::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::Prng;
use dyno_sys::bpf::causal::{
    self as bpf, Counted, Counts, Mark, Pausing, Probe, Role, SLOWER_NS_MAX, Tried, Visits, Waits, WaitsFor,
};
use dyno_sys::bpf::{Attached, BpfError};
use dyno_sys::clock::{mono_ns, process_cpu_ns};
use dyno_sys::trace::call_number;
use dyno_sys::{Pid, child, proc, socket};

use super::point::{Progress, Returns, entered_per_second};
use super::rig::{Deed, Entry, Moment, Pause, Place, Reach, Rig, Site, WaitKind, Window};
use crate::error::Error;

const MS: u64 = 1_000_000;

/// Between samples of one CPU. Shorter ones cost more than they tell: an interrupt of a virtual machine takes some 25 µs.
const PERIOD: Duration = Duration::from_millis(1);
/// After the start of an experiment, until its window opens: some periods, by chance, so that no rhythm is met.
const SETTLE_NS: u64 = 5 * MS;
const SETTLE_CHANCE_NS: u64 = 3 * MS;
/// After it, so that pauses are over before the next one.
const COOL_NS: u64 = 8 * MS;
/// The kernel ends an experiment by itself this long after the last word from here: should this process hang, or take
/// its time to die, the target runs on.
const PATIENCE_NS: u64 = 60 * MS;
/// Between words to it, and looks at whether to stop.
const LOOK_NS: u64 = 15 * MS;
/// How often a window is begun again that the kernel ended because this process was kept from its CPU for so long.
const TRIES: u32 = 4;

/// Whether processes that the target gives birth to belong to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Children {
    /// They do, with those that it has now: workers of a server.
    Followed,
    /// Only the process itself.
    #[default]
    Strangers,
}

/// Who is experimented with, and how.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The process whose code and waits are tried.
    pub pid: Pid,
    /// Whether its children are tried with it.
    pub children: Children,
    /// Other processes whose threads pause and hand on credit: a client on this machine that waits for answers.
    pub participants: Vec<Pid>,
    /// Between samples of one CPU.
    pub period: Duration,
    /// How threads pause; the best that the kernel takes, where nothing is said.
    pub pause: Option<Pause>,
    /// Seed of the little chance that is needed.
    pub seed: u64,
}

impl Subject {
    /// A process alone.
    pub fn new(pid: Pid) -> Subject {
        Subject {
            pid,
            children: Children::Strangers,
            participants: Vec::new(),
            period: PERIOD,
            pause: None,
            seed: 1,
        }
    }
}

/// Whether this process may experiment here at all: what is loaded is gone again.
///
/// # Errors
/// When the kernel refuses, or cannot do it.
pub fn is_possible() -> Result<(), Error> {
    Probe::load(None).map(drop).map_err(refused)
}

/// A live process under experiment.
#[derive(Debug)]
pub struct Live<'s> {
    subject: Subject,
    sites: Vec<Site>,
    stop: &'s AtomicBool,
    probe: Probe,
    ended: OwnedFd,
    chance: Prng,
    /// Held for their whole life.
    progress: Vec<Attached>,
    is_pair: bool,
    is_attached: bool,
    window: u64,
    begun_ns: u64,
}

impl<'s> Live<'s> {
    /// Puts the probe in place: progress is counted from here on, and nobody is paused before the first window.
    /// Windows end early once `stop` is set.
    ///
    /// # Errors
    /// When the target is not there or is this process, the kernel refuses, or progress cannot be counted.
    pub fn open(
        subject: &Subject,
        progress: &Progress,
        sites: &[Site],
        stop: &'s AtomicBool,
    ) -> Result<Live<'s>, Error> {
        let pid = subject.pid;
        check(pid)?;
        let ended = child::pidfd_open(pid).map_err(|_gone| Error::NoProcess { pid })?;
        let wanted = subject.pause.map(|pause| match pause {
            Pause::TaskWork => Pausing::TaskWork,
            Pause::SpinInSample => Pausing::SpinInSample,
        });
        let probe = Probe::load(wanted).map_err(refused)?;
        let mut live = Live {
            subject: subject.clone(),
            sites: sites.to_vec(),
            stop,
            probe,
            ended,
            chance: Prng::new(subject.seed),
            progress: Vec::new(),
            is_pair: matches!(progress, Progress::Between { .. }),
            is_attached: false,
            window: 0,
            begun_ns: mono_ns(),
        };
        live.probe.name_waits(&named_waits()).map_err(refused)?;
        live.take_in()?;
        live.count(progress)?;
        Ok(live)
    }

    fn take_in(&mut self) -> Result<(), Error> {
        let followed = self.subject.children == Children::Followed;
        let children = if followed { bpf::Children::Followed } else { bpf::Children::Strangers };
        for pid in self.target() {
            let tasks = proc::tasks(pid);
            self.probe.take_in(pid, Role::Target, children, &tasks).map_err(refused)?;
        }
        for pid in self.subject.participants.clone() {
            let tasks = proc::tasks(pid);
            if tasks.is_empty() {
                return Err(Error::NoProcess { pid });
            }
            let strangers = bpf::Children::Strangers;
            self.probe.take_in(pid, Role::Participant, strangers, &tasks).map_err(refused)?;
        }
        Ok(())
    }

    /// The target's processes that live now.
    fn target(&self) -> Vec<Pid> {
        match self.subject.children {
            Children::Followed => proc::tree(self.subject.pid),
            Children::Strangers => vec![self.subject.pid],
        }
    }

    /// Address spaces that a probe in the target's code is put into; none: all, children that will be born among them.
    fn whose(&self) -> Option<Pid> {
        (self.subject.children == Children::Strangers).then_some(self.subject.pid)
    }

    fn count(&mut self, progress: &Progress) -> Result<(), Error> {
        match progress {
            Progress::At { entries, whom } if whom.is_empty() => self.mark(Mark::Visit, entries, &[]),
            Progress::At { entries, whom } => self.mark(Mark::Visit, entries, whom),
            Progress::Between { begin, end } => {
                self.mark(Mark::End, end, &[])?;
                self.mark(Mark::Begin, begin, &[])
            }
            Progress::Tracepoint(name) => {
                let held = self.probe.count_tracepoint(name).map_err(|error| no_tracepoint(name, error))?;
                self.progress.push(held);
                Ok(())
            }
            Progress::SystemCall { number, returns } => {
                let least = i64::from(*returns == Returns::Data);
                let held = self.probe.count_returns(*number, least).map_err(refused)?;
                self.progress.push(held);
                Ok(())
            }
        }
    }

    /// Probes that stay; in the target's address space where nobody else is named.
    fn mark(&mut self, mark: Mark, entries: &[Entry], whom: &[Pid]) -> Result<(), Error> {
        let whose =
            if whom.is_empty() { vec![self.whose()] } else { whom.iter().copied().map(Some).collect() };
        for entry in entries {
            for pid in &whose {
                let held = self.probe.probe(mark, &entry.image, entry.offset, *pid);
                self.progress.push(held.map_err(refused)?);
            }
        }
        if entries.is_empty() {
            let reason = "its place has no instruction that a probe could be put on".to_owned();
            return Err(Error::NoProgress { asked: "it".to_owned(), reason });
        }
        Ok(())
    }

    /// Threads that the target has, as far as the probe saw them in its last window, and what they owe.
    fn attach(&mut self) -> Result<(), Error> {
        if !self.is_attached {
            let period_ns = self.period_ns();
            self.probe.attach(period_ns).map_err(refused)?;
            self.is_attached = true;
        }
        Ok(())
    }

    fn after_s(&self) -> f64 {
        (mono_ns() - self.begun_ns) as f64 / 1e9
    }

    /// Whether there is still something to experiment with.
    fn check_target(&self) -> Result<(), Error> {
        let pid = self.subject.pid;
        if socket::wait_readable(&self.ended, 0).is_ok_and(|ready| ready == socket::Ready::Yes) {
            return Err(Error::Ended { pid, after_s: self.after_s() });
        }
        if self.probe.counts().replaced > 0 {
            return Err(Error::Replaced { pid, after_s: self.after_s() });
        }
        Ok(())
    }

    /// Sleeps until then, or until there is nothing to wait for any more.
    fn wait_until(&self, until_ns: u64) -> Result<(), Error> {
        while mono_ns() < until_ns && !self.stop.load(Ordering::Relaxed) {
            self.probe.live_until(mono_ns() + PATIENCE_NS);
            let look_ns = until_ns.min(mono_ns() + LOOK_NS);
            let slept = socket::wait_readable(&self.ended, look_ns);
            slept.map_err(|source| Error::Perf { operation: "wait for the target", source })?;
            self.check_target()?;
        }
        Ok(())
    }

    fn chance_ns(&mut self) -> u64 {
        self.chance.below(SETTLE_CHANCE_NS)
    }

    /// One experiment with one window in it; begun again when the kernel lost its patience with this process.
    fn experiment(&mut self, tried: &Tried<'_>, length: Duration) -> Result<Window, Error> {
        self.check_target()?;
        let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        let mut tries = 1;
        loop {
            let expired = self.probe.counts().expired;
            let settle_ns = SETTLE_NS + self.chance_ns();
            let start_ns = self.probe.begin(tried, mono_ns() + PATIENCE_NS).map_err(refused)?;
            let window = self.count_window(start_ns, start_ns + settle_ns, length_ns);
            // Whatever came in between: nobody pauses any more.
            self.probe.end();
            let window = window?;
            self.wait_until(mono_ns() + COOL_NS)?;
            if self.probe.counts().expired == expired || tries == TRIES {
                return Ok(window);
            }
            tries += 1;
        }
    }

    fn count_window(&mut self, start_ns: u64, open_ns: u64, length_ns: u64) -> Result<Window, Error> {
        self.wait_until(open_ns)?;
        self.window += 1;
        let before = Sums::read(self);
        self.probe.open_window(self.window);
        self.wait_until(before.at_ns.saturating_add(length_ns))?;
        self.probe.close_window();
        let after = Sums::read(self);
        self.window_of(&before, &after, start_ns)
    }

    fn window_of(&self, before: &Sums, after: &Sums, start_ns: u64) -> Result<Window, Error> {
        let visits = self.probe.visits(Counted::Visits, self.window).map_err(refused)?;
        let owed = self.probe.owed().map_err(refused)?;
        let counts = after.counts.since(&before.counts);
        let moment = |visit: bpf::Visit| Moment { at_ns: visit.at_ns, inserted_ns: visit.position_ns };
        Ok(Window {
            length_ns: after.at_ns - before.at_ns,
            delay_ns: 0,
            visits: visits.count,
            first: moment(visits.first),
            last: moment(visits.last),
            in_flight: self.in_flight(before, after, start_ns, &visits)?,
            samples: counts.samples,
            foreign: counts.foreign,
            idle: counts.idle,
            hits: counts.hits,
            paid_ns: counts.paid_ns,
            owed_ns: owed.ns,
            threads: owed.threads,
            capped: counts.capped,
            missed: counts.missed,
            inner_wakes: counts.inner_wakes,
            outer_wakes: counts.outer_wakes,
            remote_wakes: counts.remote_wakes,
            runnable_waits: counts.runnable_waits,
            steal_ns: after.steal_ns.saturating_sub(before.steal_ns),
            target_cpu_ns: after.cpu_ns.saturating_sub(before.cpu_ns),
        })
    }

    /// What was on its way at the start, and each beginning and end for the rest of the window.
    fn in_flight(
        &self,
        before: &Sums,
        after: &Sums,
        start_ns: u64,
        ends: &Visits,
    ) -> Result<Option<f64>, Error> {
        if !self.is_pair {
            return Ok(None);
        }
        let begins = self.probe.visits(Counted::Begins, self.window).map_err(refused)?;
        let length = (after.at_ns - before.at_ns) as f64;
        let rest = |visits: &Visits| {
            visits.count as f64 * (after.at_ns - start_ns) as f64 - visits.since_start_ns as f64
        };
        let all = before.in_flight as f64 * length + rest(&begins) - rest(ends);
        Ok(Some((all / length).max(0.0)))
    }

    fn slowed(&mut self, site: usize, ns: u64, length: Duration) -> Result<Window, Error> {
        let entries = self.entries(site);
        let mut held = Vec::new();
        for entry in &entries {
            let probed = self.probe.probe(Mark::Slow, &entry.image, entry.offset, self.whose());
            held.push(probed.map_err(refused)?);
        }
        let mut window = self.experiment(&Tried::Slower { ns }, length)?;
        window.delay_ns = ns.min(SLOWER_NS_MAX);
        Ok(window)
    }

    fn entries(&self, site: usize) -> Vec<Entry> {
        match &self.sites[site].place {
            Place::Code { entries, .. } => entries.clone(),
            Place::Wait(_) => Vec::new(),
        }
    }

    fn sped_up(&mut self, site: usize, percent: u32, length: Duration) -> Result<Window, Error> {
        let tried = self.sites[site].clone();
        match &tried.place {
            Place::Code { ranges, .. } => {
                let delay_ns = self.period_ns() * u64::from(percent) / 100;
                let reach = match tried.reach {
                    Reach::Own => bpf::Reach::Own,
                    Reach::Inclusive => bpf::Reach::Inclusive,
                };
                let window = self.experiment(&Tried::Code { ranges, reach, delay_ns }, length)?;
                Ok(Window { delay_ns, ..window })
            }
            Place::Wait(kind) => {
                let kind = waits(self.subject.pid, kind)?;
                self.experiment(&Tried::Waits { kind, percent }, length)
            }
        }
    }
}

impl Rig for Live<'_> {
    fn window(&mut self, deed: &Deed, length: Duration) -> Result<Window, Error> {
        self.attach()?;
        match *deed {
            Deed::Nothing => self.experiment(&Tried::Nothing, length),
            Deed::SpeedUp { site, percent } => self.sped_up(site, percent, length),
            Deed::SlowDown { site, ns } => self.slowed(site, ns, length),
        }
    }

    fn detached(&mut self, length: Duration) -> Result<Window, Error> {
        self.probe.detach();
        self.is_attached = false;
        self.experiment(&Tried::Nothing, length)
    }

    fn period_ns(&self) -> u64 {
        u64::try_from(self.subject.period.as_nanos()).unwrap_or(u64::MAX)
    }

    fn pause(&self) -> Pause {
        match self.probe.pausing() {
            Pausing::TaskWork => Pause::TaskWork,
            Pausing::SpinInSample => Pause::SpinInSample,
        }
    }

    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error> {
        self.check_target()?;
        let entries = self.entries(site);
        if entries.is_empty() {
            return Ok(None);
        }
        self.window += 1;
        let whom = self.target();
        entered_per_second(&mut self.probe, &entries, &whom, self.window, length).map(Some)
    }
}

/// What is told by differences.
struct Sums {
    at_ns: u64,
    counts: Counts,
    cpu_ns: u64,
    steal_ns: u64,
    in_flight: i64,
}

impl Sums {
    fn read(live: &Live<'_>) -> Sums {
        // Processes that ended since count nothing.
        let cpu_ns = live.target().into_iter().filter_map(|pid| process_cpu_ns(pid).ok()).sum();
        let steal_ns = proc::cpu_stat().iter().map(|cpu| cpu.steal).sum();
        let (counts, in_flight) = (live.probe.counts(), live.probe.in_flight());
        Sums { at_ns: mono_ns(), counts, cpu_ns, steal_ns, in_flight }
    }
}

fn check(pid: Pid) -> Result<(), Error> {
    if pid == child::this() {
        return Err(Error::Own { pid });
    }
    match proc::stat(pid) {
        Err(_gone) => Err(Error::NoProcess { pid }),
        Ok(stat) if matches!(stat.state, 'Z' | 'X') => Err(Error::Zombie { pid }),
        Ok(_) => Ok(()),
    }
}

pub(super) fn refused(source: BpfError) -> Error {
    if source.is_permission() { Error::ProbeRefused { source } } else { Error::ProbeUnable { source } }
}

fn no_tracepoint(name: &str, error: BpfError) -> Error {
    match error {
        BpfError::Missing { .. } => Error::NoProgress {
            asked: format!("tracepoint:{name}"),
            reason: "this kernel has no such tracepoint".to_owned(),
        },
        other => refused(other),
    }
}

fn waits(pid: Pid, kind: &WaitKind) -> Result<Waits, Error> {
    Ok(match kind {
        WaitKind::Any => Waits::Any,
        WaitKind::Lock => Waits::Lock,
        WaitKind::Disk => Waits::Disk,
        WaitKind::Network => Waits::Network,
        WaitKind::File(path) => {
            // As the target sees it: it may live in another root.
            let seen = std::fs::metadata(format!("/proc/{pid}/root{path}"));
            let file = seen.map_err(|source| Error::NoFile { pid, path: path.clone(), source })?;
            Waits::File { inode: file.st_ino(), device: file.st_dev() }
        }
    })
}

/// What system calls wait for. The others wait for something else, unless all waits are meant.
const LOCKS: [&str; 3] = ["futex", "futex_waitv", "flock"];
const DISKS: [&str; 10] = [
    "msync",
    "sync",
    "io_getevents",
    "open",
    "openat",
    "openat2",
    "newfstatat",
    "statx",
    "unlinkat",
    "renameat2",
];
const FILES: [&str; 9] = [
    "fsync",
    "fdatasync",
    "sync_file_range",
    "syncfs",
    "fallocate",
    "ftruncate",
    "getdents64",
    "copy_file_range",
    "fadvise64",
];
const PEERS: [&str; 19] = [
    "accept",
    "accept4",
    "connect",
    "recvfrom",
    "recvmsg",
    "recvmmsg",
    "sendto",
    "sendmsg",
    "sendmmsg",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "shutdown",
    "tee",
    "vmsplice",
];
const EITHER: [&str; 12] = [
    "read", "write", "readv", "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
    "sendfile", "splice",
];

fn named_waits() -> Vec<(u32, WaitsFor)> {
    let of = |names: &'static [&'static str], waits| {
        names.iter().filter_map(move |name| Some((call_number(name)?, waits)))
    };
    of(&LOCKS, WaitsFor::Lock)
        .chain(of(&DISKS, WaitsFor::Disk))
        .chain(of(&FILES, WaitsFor::DiskDescriptor))
        .chain(of(&PEERS, WaitsFor::Network))
        .chain(of(&EITHER, WaitsFor::Descriptor))
        .collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn each_call_waits_for_one_thing() {
        let mut numbers: Vec<u32> = named_waits().into_iter().map(|(number, _)| number).collect();
        let all = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!(numbers.len(), all);
        assert!(all > 40, "{all} of them are known here");
    }

    #[test]
    fn this_process_and_one_that_is_not_there_are_refused() {
        assert!(matches!(check(child::this()), Err(Error::Own { .. })));
        assert!(matches!(check(Pid::MAX - 1), Err(Error::NoProcess { .. })));
    }

    #[test]
    fn a_file_is_known_by_its_number_and_one_that_is_not_there_is_named() {
        let pid = child::this();
        assert!(matches!(waits(pid, &WaitKind::File("/proc/self/exe".to_owned())), Ok(Waits::File { .. })));
        let error = waits(pid, &WaitKind::File("/no/such".to_owned())).unwrap_err();
        assert!(error.to_string().contains("/no/such"));
    }
}
