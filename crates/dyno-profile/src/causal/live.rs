//! The rig over a live process: the probe in the kernel, one window at a time; a window's arithmetic is in `window`, what
//! the probe must know of waits in `waits`.
//!
//! `dyno causal` opens it and hands it to the run. It interprets nothing; what it attaches hangs on descriptors of this
//! process and is gone with them; should this process hang, a watchdog in the kernel ends the experiment and all threads run on.

mod candidates;
mod entries;
mod refusal;
mod subject;
mod waits;
mod window;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_measure::Prng;
use dyno_record::causal::SlowedAt;
use dyno_sys::bpf::causal::{
    self as bpf, Mark, Pausing, Probe, RANGES_MAX, Role, SLOWER_NS_MAX, Tried, Waits,
};
use dyno_sys::bpf::{Attached, runs};
use dyno_sys::clock::mono_ns;
use dyno_sys::{Pid, affinity, child, perf, proc, socket};

use super::rig::progress::{Progress, Returns};
use super::rig::site::{Entry, Place, Reach, Site};
use super::rig::window::Window;
use super::rig::{Hooks, Pause, Rig, Span, Treatment};
use super::site::Spinning;
use crate::error::Error;
use crate::sample::recorder::frequency_max;
pub use candidates::{Candidate, candidates, passed_per_second, ranked, rates};
use entries::entered_per_second;
use refusal::{no_probe, no_tracepoint, refused};
pub use subject::{Children, Subject};
use waits::{named_waits, waits};
use window::{Counting, Sums};

const MS: u64 = 1_000_000;

/// Where threads hand on to each other within a few pauses: half as long.
const PERIOD_FINE: Duration = Duration::from_micros(485);
/// Samples that come more seldom say little in a window, and what they insert at once is longer than most hand-offs.
const PERIOD_MAX: Duration = Duration::from_millis(5);
/// Fine samples are taken where their interrupts take no more than this share of all time.
const INTERRUPT_SHARE_MAX: f64 = 0.016;
/// Random time beside the time to settle, some periods: windows must not keep step with what the target does.
const SETTLE_CHANCE_NS: u64 = 3 * MS;
/// After an experiment, so that pauses are over before the next one.
const COOL_NS: u64 = 8 * MS;
/// Ways to draw the clocks that sample.
const TURNS: u64 = 1 << 32;
/// Watchdog: the kernel ends an experiment by itself this long after the last sign of life from here. Should this process
/// hang, or die slowly, the target runs on.
const WATCHDOG_NS: u64 = 60 * MS;
/// Between two signs of life, and looks at `stop`.
const LOOK_NS: u64 = 15 * MS;
/// How long this thread is looked at to know what the interrupt of a sample takes: some sixty of them.
const CALIBRATION: Duration = Duration::from_millis(60);
/// The kernel counts samples by its ticks and drops the last that it takes of each: half as many as it takes leave room.
const ROOM: u64 = 2;
/// How often a window is tried that the watchdog ends, because this process gets no CPU for so long.
const TRIES: u32 = 4;

/// Whether this process may experiment here at all: what is loaded is gone again.
///
/// # Errors
/// When the kernel refuses, or cannot do it.
pub fn is_possible() -> Result<(), Error> {
    Probe::load(None).map(drop).map_err(refused)
}

/// A live process under experiment. What always holds:
///
/// - no thread pauses between two experiments: each is ended in the kernel before the next begins, after an error too;
/// - windows have numbers of their own, from one, so that what is counted late counts for no other;
/// - every site has its kind of wait, or is code.
#[derive(Debug)]
pub struct Live<'s> {
    subject: Subject,
    sites: Vec<Site>,
    stop: &'s AtomicBool,
    /// What the sites that are waits wait for, by site.
    waits: Vec<Option<Waits>>,
    probe: Probe,
    /// What the interrupt of a sample takes, where that could be measured.
    interrupt_ns: Option<u64>,
    ended: OwnedFd,
    /// Descriptors that become readable when a participant ends (pidfds).
    participants_ended: Vec<(Pid, OwnedFd)>,
    /// Descendants that run another program: they take part, and their code is not the code that is tried.
    strange_children: Vec<Pid>,
    /// Where the target's first code lies.
    code: Option<(u64, u64)>,
    chance: Prng,
    /// Held for their whole life.
    progress: Vec<Attached>,
    /// Probes in files that strangers run too: they are put into each process of the target by itself.
    in_each: Vec<(Mark, Entry)>,
    /// Those processes, as long as they live.
    held_in: BTreeMap<Pid, Vec<Attached>>,
    /// Files, and whether strangers run them too.
    run_by_others: BTreeMap<PathBuf, bool>,
    is_pair: bool,
    is_attached: bool,
    /// The kernel takes fewer samples than were wanted, and may drop some of those that are left.
    is_limited: bool,
    window: u64,
    begun_ns: u64,
    /// Percent of the time that all threads owe, and since when: while a control is run.
    alike: Option<(u32, u64)>,
    /// Share of the target's samples in loops that wait, percent.
    spinning_percent: f64,
}

impl<'s> Live<'s> {
    /// Puts the probe in place: progress is counted from here on, and no thread is paused before the first window.
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
        let waits = sites.iter().map(|site| match &site.place {
            Place::Wait(kind) => waits(pid, kind).map(Some),
            Place::Code { .. } => Ok(None),
        });
        let waits = waits.collect::<Result<_, _>>()?;
        let probe = Probe::load(wanted).map_err(refused)?;
        let mut live = Live {
            subject: subject.clone(),
            sites: sites.to_vec(),
            stop,
            waits,
            probe,
            interrupt_ns: perf::interrupt_ns(CALIBRATION).ok().flatten(),
            ended,
            participants_ended: Vec::new(),
            strange_children: Vec::new(),
            code: first_code(pid),
            chance: Prng::new(subject.seed),
            progress: Vec::new(),
            in_each: Vec::new(),
            held_in: BTreeMap::new(),
            run_by_others: BTreeMap::new(),
            is_pair: matches!(progress, Progress::Between { .. }),
            is_attached: false,
            is_limited: false,
            window: 0,
            begun_ns: mono_ns(),
            alike: None,
            spinning_percent: 0.0,
        };
        live.probe.name_waits(&named_waits()).map_err(refused)?;
        // Where it could not be measured, pauses are taken as they are.
        live.probe.set_interrupt(live.interrupt_ns.unwrap_or(0));
        live.take_in()?;
        live.count(progress)?;
        assert_eq!(live.waits.len(), live.sites.len(), "each site is code or a kind of wait");
        assert!(!live.progress.is_empty() || !live.in_each.is_empty(), "progress is counted");
        Ok(live)
    }

    /// Tells it what a profile knows of loops that wait, wherever they lie.
    ///
    /// # Errors
    /// When the kernel does not take them.
    pub fn with_spinning(mut self, spinning: &Spinning) -> Result<Live<'s>, Error> {
        let all = spinning.loops.len().min(RANGES_MAX);
        self.probe.name_loops(&spinning.loops[..all]).map_err(refused)?;
        Ok(Live { spinning_percent: spinning.percent, ..self })
    }

    fn take_in(&mut self) -> Result<(), Error> {
        let followed = self.subject.children == Children::Followed;
        let children = if followed { bpf::Children::Followed } else { bpf::Children::Strangers };
        assert!(self.window == 0 && self.progress.is_empty(), "nothing is counted before all take part");
        self.probe.set_subject(self.subject.pid);
        for pid in self.target() {
            let alike = first_code(pid) == self.code;
            let role = if alike { Role::Target } else { Role::Participant };
            self.probe.take_in(pid, role, children, &proc::tasks(pid)).map_err(refused)?;
            if !alike {
                self.strange_children.push(pid);
            }
        }
        for pid in self.subject.participants.clone() {
            let tasks = proc::tasks(pid);
            if tasks.is_empty() {
                return Err(Error::NoProcess { pid });
            }
            let ended = child::pidfd_open(pid).map_err(|_gone| Error::NoProcess { pid })?;
            self.participants_ended.push((pid, ended));
            let children = bpf::Children::Strangers;
            self.probe.take_in(pid, Role::Participant, children, &tasks).map_err(refused)?;
        }
        Ok(())
    }

    /// The target's processes that live now.
    fn target(&self) -> Vec<Pid> {
        match self.subject.children {
            Children::Followed => {
                let all = proc::tree(self.subject.pid).into_iter();
                all.filter(|pid| !self.strange_children.contains(pid)).collect()
            }
            Children::Strangers => vec![self.subject.pid],
        }
    }

    /// Address spaces that a probe in the target's code is put into; none: all that run the file, those of later children
    /// among them. Where strangers run it too, as a library, they would meet the probe for nothing.
    fn whose(&mut self, entry: &Entry) -> Vec<Option<Pid>> {
        if self.subject.children == Children::Followed && !self.is_run_by_others(entry) {
            return vec![None];
        }
        self.target().into_iter().map(Some).collect()
    }

    fn is_run_by_others(&mut self, entry: &Entry) -> bool {
        let own = self.target();
        let look = || {
            let inode = std::fs::metadata(&entry.image).map_or(0, |file| file.ino());
            proc::is_run_by_others(inode, &own)
        };
        *self.run_by_others.entry(entry.image.clone()).or_insert_with(look)
    }

    fn count(&mut self, progress: &Progress) -> Result<(), Error> {
        match progress {
            Progress::At { entries, whom } => {
                self.mark(Mark::Visit, entries, whom)?;
                self.follow()
            }
            Progress::Between { begin, end } => {
                self.mark(Mark::End, end, &[])?;
                self.mark(Mark::Begin, begin, &[])?;
                self.follow()
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

    /// Probes that stay; in the target's address spaces where no other process is named.
    fn mark(&mut self, mark: Mark, entries: &[Entry], whom: &[Pid]) -> Result<(), Error> {
        let is_followed = whom.is_empty() && self.subject.children == Children::Followed;
        for entry in entries {
            if is_followed && self.is_run_by_others(entry) {
                self.in_each.push((mark, entry.clone()));
                continue;
            }
            let named = whom.iter().copied().map(Some).collect();
            for pid in if whom.is_empty() { self.whose(entry) } else { named } {
                let held = self.hold(mark, entry, pid)?;
                self.progress.push(held);
            }
        }
        if entries.is_empty() {
            let reason = "its place has no instruction that a probe could be put on".to_owned();
            return Err(Error::NoProgress { asked: "it".to_owned(), reason });
        }
        Ok(())
    }

    /// Children that began since get the probes that each process has of its own; those of ended ones go.
    fn follow(&mut self) -> Result<(), Error> {
        if self.in_each.is_empty() {
            return Ok(());
        }
        let now = self.target();
        self.held_in.retain(|pid, _| now.contains(pid));
        for pid in now {
            if self.held_in.contains_key(&pid) || first_code(pid) != self.code {
                continue;
            }
            let places = self.in_each.clone();
            let held = places.iter().map(|(mark, entry)| self.hold(*mark, entry, Some(pid)));
            match held.collect::<Result<Vec<_>, _>>() {
                Ok(held) => drop(self.held_in.insert(pid, held)),
                // Since it was listed, or before (a zombie).
                Err(_) if proc::has_ended(pid) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// A probe on an instruction; that it is refused may be the target's end.
    fn hold(&mut self, mark: Mark, entry: &Entry, pid: Option<Pid>) -> Result<Attached, Error> {
        let held = self.probe.probe(mark, &entry.image, entry.offset, pid);
        held.map_err(|error| no_probe(entry, error)).or_else(|error| self.check_target().and(Err(error)))
    }

    /// Samples, wake-ups and switches are looked at from here on, if they were not before. What the kernel takes of samples
    /// it may lower at any time: more seldom ones are longer pauses, and those that it drops would be none.
    fn attach(&mut self) -> Result<(), Error> {
        let limit_hz = frequency_max();
        let least = least_period(limit_hz, self.probe.clocks());
        if least > PERIOD_MAX {
            return Err(Error::TooSeldom { limit_hz });
        }
        if self.subject.period < least {
            self.subject.period = least;
            self.is_limited = true;
            self.probe.detach();
            self.is_attached = false;
        }
        if !self.is_attached {
            self.probe.attach(self.period_ns()).map_err(refused)?;
            self.is_attached = true;
            // They began at once.
            self.cool()?;
        }
        debug_assert!(self.period_ns() > 0, "time passes between samples");
        Ok(())
    }

    /// Between experiments, until pauses are over: all clocks that sample are drawn anew, each at a time of its own, so that
    /// whatever keeps step with one of them does not for long.
    fn cool(&mut self) -> Result<(), Error> {
        let (begun_ns, clocks) = (mono_ns(), self.probe.clocks());
        let turn = self.chance.below(TURNS) as f64 / TURNS as f64;
        for clock in 0..clocks {
            if self.is_attached {
                let drawn = self.probe.draw_clock(clock, turn);
                drawn
                    .map_err(|source| Error::Perf { operation: "draw the clock of samples anew", source })?;
            }
            self.wait_until(begun_ns + COOL_NS * (clock as u64 + 1) / clocks as u64)?;
        }
        Ok(())
    }

    fn after_s(&self) -> f64 {
        (mono_ns() - self.begun_ns) as f64 / 1e9
    }

    /// Whether there is still something to experiment with.
    fn check_target(&self) -> Result<(), Error> {
        let pid = self.subject.pid;
        let is_over = |ended| socket::wait_readable(ended, 0).is_ok_and(|ready| ready == socket::Ready::Yes);
        if is_over(&self.ended) {
            return Err(Error::Ended { pid, after_s: self.after_s() });
        }
        if let Some((pid, _)) = self.participants_ended.iter().find(|(_, ended)| is_over(ended)) {
            return Err(Error::ParticipantEnded { pid: *pid, after_s: self.after_s() });
        }
        if self.probe.counts().replaced > 0 {
            return Err(Error::Replaced { pid, after_s: self.after_s() });
        }
        Ok(())
    }

    /// Sleeps until then, or until there is nothing to wait for any more.
    fn wait_until(&self, until_ns: u64) -> Result<(), Error> {
        while mono_ns() < until_ns && !self.stop.load(Ordering::Relaxed) {
            self.probe.live_until(mono_ns() + WATCHDOG_NS);
            let look_ns = until_ns.min(mono_ns() + self.owe_alike());
            let slept = socket::wait_readable(&self.ended, look_ns);
            slept.map_err(|source| Error::Perf { operation: "wait for the target", source })?;
            self.check_target()?;
        }
        Ok(())
    }

    /// While a control is run: what all threads owe by now. Until when to look again.
    fn owe_alike(&self) -> u64 {
        let Some((percent, since_ns)) = self.alike else { return LOOK_NS };
        self.probe.all_owe(mono_ns().saturating_sub(since_ns) * u64::from(percent) / 100);
        self.period_ns()
    }

    fn chance_ns(&mut self) -> u64 {
        self.chance.below(SETTLE_CHANCE_NS)
    }

    /// One experiment with one window in it, tried again where the watchdog ended it; the last try is the answer, expired
    /// or not.
    fn experiment(&mut self, tried: &Tried<'_>, span: Span) -> Result<Window, Error> {
        let mut window = self.try_once(tried, span)?;
        for _ in 1..TRIES {
            if !window.expired {
                break;
            }
            window = self.try_once(tried, span)?;
        }
        Ok(window)
    }

    /// What the programs take in a time; none where the watchdog ended it.
    fn try_hooks(&mut self, length: Duration) -> Result<Option<Hooks>, Error> {
        let expired = self.probe.counts().expired;
        self.probe.begin(&Tried::Nothing, mono_ns() + WATCHDOG_NS).map_err(refused)?;
        let number = self.next_window();
        self.probe.open_window(number);
        let hooks = self.watch_hooks(u64::try_from(length.as_nanos()).unwrap_or(u64::MAX));
        self.probe.end();
        self.probe.take_places().map_err(refused)?;
        // After the deadline the programs return at once: that is not what they cost.
        if self.probe.counts().expired > expired {
            return Ok(None);
        }
        hooks.map(Some)
    }

    fn try_once(&mut self, tried: &Tried<'_>, span: Span) -> Result<Window, Error> {
        self.check_target()?;
        self.follow()?;
        let [settle_ns, length_ns] =
            [span.settle, span.length].map(|time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        assert!(self.is_attached || matches!(tried, Tried::Nothing), "without samples nobody would pause");
        let expired = self.probe.counts().expired;
        let settle_ns = settle_ns.saturating_add(self.chance_ns());
        let start_ns = self.probe.begin(tried, mono_ns() + WATCHDOG_NS).map_err(refused)?;
        self.alike = self.alike.map(|(percent, _)| (percent, start_ns));
        let window = self.count_window(start_ns, start_ns.saturating_add(settle_ns), length_ns);
        // After an error too: no thread pauses any more.
        self.probe.end();
        let alike = self.alike.take();
        let window = window?;
        self.cool()?;
        // Of several tries each is one.
        self.alike = alike;
        Ok(Window { expired: self.probe.counts().expired > expired, ..window })
    }

    fn count_window(&mut self, start_ns: u64, open_ns: u64, length_ns: u64) -> Result<Window, Error> {
        self.wait_until(open_ns)?;
        let (number, before) = self.opened();
        // Elsewhere it is a hypervisor that takes CPUs away, and samples with them.
        let period_ns = if self.is_attached && self.is_limited { self.period_ns() } else { 0 };
        let counting = Counting { number, start_ns, is_pair: self.is_pair, period_ns };
        self.wait_until(before.at_ns.saturating_add(length_ns))?;
        self.probe.close_window();
        let after = self.sums();
        assert!(after.at_ns >= before.at_ns, "the clock is monotonic");
        let window = counting.window(&self.probe, &before, &after).map_err(refused)?;
        Ok(Window { places: self.probe.take_places().map_err(refused)?, ..window })
    }

    /// A window that is open, and the sums at its opening. A unit of a pair that ended between the two would be taken to be
    /// on its way for all of the window: then another one is opened. Where units pass faster than that can be done, one of
    /// them more or less is in flight.
    fn opened(&mut self) -> (u64, Sums) {
        const TRIES: usize = 16;
        for _ in 1..TRIES {
            let (number, before) = (self.next_window(), self.sums());
            self.probe.open_window(number);
            if !self.is_pair || self.probe.in_flight() == before.in_flight {
                return (number, before);
            }
            self.probe.close_window();
        }
        let (number, before) = (self.next_window(), self.sums());
        self.probe.open_window(number);
        (number, before)
    }

    fn sums(&self) -> Sums {
        let strange = !self.strange_children.is_empty();
        let children = if strange { Children::Strangers } else { self.subject.children };
        Sums::read(&self.probe, &self.target(), children)
    }

    fn next_window(&mut self) -> u64 {
        self.window += 1;
        assert!(self.window > 0, "zero is no window's number");
        self.window
    }

    /// What the programs take from now on.
    fn watch_hooks(&self, length_ns: u64) -> Result<Hooks, Error> {
        let (begun_ns, before) = (mono_ns(), self.probe.ran().map_err(refused)?);
        self.wait_until(begun_ns.saturating_add(length_ns))?;
        let (length_ns, after) = (mono_ns() - begun_ns, self.probe.ran().map_err(refused)?);
        assert_eq!(after.len(), before.len(), "programs neither come nor go meanwhile");
        let ran = after.iter().zip(&before).map(|((hook, after), (_, before))| {
            let ran = after.since(*before);
            (*hook, ran.ns, ran.count)
        });
        Ok(Hooks { machine_ns: length_ns * affinity::online().len() as u64, length_ns, ran: ran.collect() })
    }

    fn slowed(&mut self, site: usize, ns: u64, span: Span) -> Result<Window, Error> {
        let entries = self.entries(site);
        assert!(ns > 0 && !entries.is_empty(), "what has no entry is not slowed down");
        let mut held = Vec::new();
        for entry in &entries {
            for pid in self.whose(entry) {
                match self.hold(Mark::Slow, entry, pid) {
                    Ok(attached) => held.push(attached),
                    Err(_) if pid.is_some_and(proc::has_ended) => {}
                    Err(error) => return Err(error),
                }
            }
        }
        let mut window = self.experiment(&Tried::Slower { ns }, span)?;
        window.delay_ns = ns.min(SLOWER_NS_MAX);
        Ok(window)
    }

    /// Whoever is sampled in the site pauses itself.
    fn held(&mut self, site: usize, ns: u64, span: Span) -> Result<Window, Error> {
        let tried = self.sites[site].clone();
        let Place::Code { ranges, .. } = &tried.place else {
            unreachable!("a wait has no samples that could be made longer");
        };
        let held = Tried::Held { ranges, reach: reach(tried.reach), ns };
        Ok(Window { delay_ns: ns, ..self.experiment(&held, span)? })
    }

    fn entries(&self, site: usize) -> Vec<Entry> {
        match &self.sites[site].place {
            Place::Code { entries, .. } => entries.clone(),
            Place::Wait(_) => Vec::new(),
        }
    }

    fn sped_up(&mut self, site: usize, percent: u32, span: Span) -> Result<Window, Error> {
        let tried = self.sites[site].clone();
        // By nothing: its samples are counted, and nobody pauses.
        assert!(percent <= 100, "a time can be saved once");
        match &tried.place {
            Place::Code { ranges, .. } => {
                let delay_ns = self.period_ns() * u64::from(percent) / 100;
                let reach = reach(tried.reach);
                let window = self.experiment(&Tried::Code { ranges, reach, delay_ns }, span)?;
                Ok(Window { delay_ns, ..window })
            }
            Place::Wait(_) => {
                let kind = self.waits[site].expect("a wait's kind was read when the rig was opened");
                self.experiment(&Tried::Waits { kind, percent }, span)
            }
        }
    }
}

/// In the words of the programs in the kernel.
fn reach(reach: Reach) -> bpf::Reach {
    match reach {
        Reach::Own => bpf::Reach::Own,
        Reach::Inclusive => bpf::Reach::Inclusive,
    }
}

impl Rig for Live<'_> {
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error> {
        self.attach()?;
        match *treatment {
            Treatment::Nothing => self.experiment(&Tried::Nothing, span),
            Treatment::SpeedUp { site, percent } => self.sped_up(site, percent, span),
            Treatment::SlowDown { site, at: SlowedAt::Calls, ns } => self.slowed(site, ns, span),
            Treatment::SlowDown { site, at: SlowedAt::Samples, ns } => self.held(site, ns, span),
        }
    }

    fn detached(&mut self, span: Span) -> Result<Window, Error> {
        self.probe.detach();
        self.is_attached = false;
        self.experiment(&Tried::Nothing, span)
    }

    fn alike(&mut self, percent: u32, span: Span) -> Result<Option<Window>, Error> {
        assert!(percent < 100, "some of the time is left");
        self.attach()?;
        self.alike = Some((percent, mono_ns()));
        let window = self.experiment(&Tried::Nothing, span);
        self.alike = None;
        window.map(Some)
    }

    fn throttled(&self) -> Option<u64> {
        // Each of the groups one above the other keeps it from its CPUs.
        let all = proc::cpu_quotas(self.subject.pid);
        (!all.is_empty()).then(|| all.iter().map(|group| group.quota.throttled).sum())
    }

    fn interrupt_ns(&self) -> Option<u64> {
        self.interrupt_ns
    }

    fn spinning_percent(&self) -> f64 {
        self.spinning_percent
    }

    fn hooks(&mut self, length: Duration) -> Result<Option<Hooks>, Error> {
        self.attach()?;
        let Some(_counting) = runs::Counting::begin() else { return Ok(None) };
        for _ in 0..TRIES {
            if let Some(hooks) = self.try_hooks(length)? {
                return Ok(Some(hooks));
            }
        }
        Ok(None)
    }

    fn period_ns(&self) -> u64 {
        u64::try_from(self.subject.period.as_nanos()).unwrap_or(u64::MAX)
    }

    fn sample_finely(&mut self) {
        if self.interrupt_ns.is_some_and(is_cheap) && self.subject.period > PERIOD_FINE {
            self.subject.period = PERIOD_FINE;
            self.probe.detach();
            self.is_attached = false;
        }
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
        let whom = self.target();
        let window = &mut self.window;
        let mut numbers = || {
            *window += 1;
            *window
        };
        match entered_per_second(&mut self.probe, &entries, &whom, &mut numbers, length) {
            Err(Error::NoProbe { .. }) => Ok(None),
            counted => counted.map(Some),
        }
    }
}

/// Between samples of one CPU, at least, where the kernel takes so many of each event (`perf_event_max_sample_rate`): each
/// clock is one.
fn least_period(limit_hz: u64, clocks: usize) -> Duration {
    Duration::from_nanos(ROOM * 1_000_000_000 / limit_hz / clocks as u64)
}

/// Whether twice as many interrupts cost little enough.
fn is_cheap(interrupt_ns: u64) -> bool {
    interrupt_ns as f64 <= INTERRUPT_SHARE_MAX * PERIOD_FINE.as_nanos() as f64
}

fn check(pid: Pid) -> Result<(), Error> {
    if pid == child::this() {
        return Err(Error::Own { pid });
    }
    match proc::stat(pid) {
        Err(_gone) => Err(Error::NoProcess { pid }),
        Ok(_) if proc::has_ended(pid) => Err(Error::Zombie { pid }),
        Ok(_) => Ok(()),
    }
}

/// Where a process's first code lies, and of which file it is: the same in all that were forked, another one after
/// an exec.
fn first_code(pid: Pid) -> Option<(u64, u64)> {
    let mappings = proc::mappings(pid).ok()?;
    let is_code = |mapping: &&proc::Mapping| mapping.executable && mapping.path.starts_with('/');
    mappings.iter().find(is_code).map(|mapping| (mapping.start, mapping.inode))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interrupts_of_five_microseconds_are_borne_twice_as_often_and_those_of_ten_are_not() {
        assert!(is_cheap(0) && is_cheap(5_000) && !is_cheap(10_000));
    }

    /// The kernel's limit is each event's, and each clock is one. Planted fault: it is taken for that of all together.
    #[test]
    fn a_lowered_limit_of_samples_is_each_clocks() {
        assert_eq!(least_period(1_000, 8), Duration::from_micros(250));
        assert_eq!(least_period(1_000, 2), Duration::from_millis(1));
        assert!(least_period(49, 8) > PERIOD_MAX && least_period(50, 8) <= PERIOD_MAX);
    }

    #[test]
    fn this_process_and_one_that_is_not_there_are_refused() {
        assert!(matches!(check(child::this()), Err(Error::Own { .. })));
        assert!(matches!(check(Pid::MAX - 1), Err(Error::NoProcess { .. })));
    }

    #[test]
    fn a_child_that_began_a_program_of_its_own_has_other_code() {
        let mut child = std::process::Command::new("sleep").arg("9").spawn().expect("sleep runs");
        let pid = child.id().cast_signed();
        let own = first_code(child::this());
        assert!(own.is_some() && own == first_code(child::this()));
        // Between fork and exec it is a copy of this process.
        let begun = std::time::Instant::now();
        while own == first_code(pid) {
            assert!(begun.elapsed() < Duration::from_secs(60), "its code is ours");
            std::thread::yield_now();
        }
        child.kill().expect("it lives");
        child.wait().expect("it ended");
    }
}
