//! The causal probe: bpf/causal.bpf.c loaded, attached and set, and its counts as values.
//!
//! Called by the causal profiler's rig. It keeps no time and judges nothing: an experiment is begun, a window opened and
//! closed, each by a call. What is asked stands in `tried`, what comes out in `counts`, the shared memory in `layout`.

mod code;
mod counts;
mod layout;
mod program;
mod tried;
mod window;
mod word;

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::runs::Ran;
use super::types::Types;
use super::{Attached, BpfError, Hook, Object, Words};
use crate::clock::mono_ns;
use crate::{Pid, Tid, affinity, perf};

use code::{kernel_device, packed};
use counts::merged;
use layout::{Code, EMPTY, RawPoint, RawRanges, RawThread};
use program::{HOOKS, LIFE, SPIN_NS_MAX, TASK_WORK_NS_MAX, patched, preempt_count_at, sampler};
use window::Windows;

pub use counts::{Counts, Owed, Visit, Visits};
pub use layout::RANGES_MAX;
pub use tried::{Children, Counted, Mark, Part, Pausing, Reach, Role, SLOWER_NS_MAX, Tried, Waits, WaitsFor};

/// System calls told apart; the last row takes the numbers above.
pub const SYSTEM_CALLS: usize = 512;

/// The place of samples in the kernel, whatever it did (`IN_KERNEL` of bpf/causal.bpf.c).
pub const IN_KERNEL: u64 = 0;

/// Upper clamp of the calibrated interrupt cost, ns: more was no interrupt of a sample.
pub const INTERRUPT_NS_MAX: u64 = 50_000;

/// The probe in the kernel. Dropped, it is gone, and nobody pauses any more.
#[derive(Debug)]
pub struct Probe {
    object: Object,
    control: Words,
    windows: Windows,
    pausing: Pausing,
    attached: Vec<Attached>,
}

impl Probe {
    /// Loads the probe, with the way of pausing that is asked for or the best that the kernel takes. Forks and exits are
    /// seen from here on; nothing else is. Needs CAP_BPF and CAP_PERFMON, or root, and Linux 5.17 with its types.
    pub fn load(wanted: Option<Pausing>) -> Result<Probe, BpfError> {
        let types =
            Types::of_kernel().map_err(|source| BpfError::Read { what: "the kernel's types", source })?;
        let (bytes, can_schedule) = patched(&types);
        let object = Object::load(&bytes)?;
        let control = object.words("controls", word::COUNT)?;
        let mut probe = Probe {
            object,
            control,
            windows: Windows::default(),
            pausing: Pausing::SpinInSample,
            attached: Vec::new(),
        };
        probe.set(word::PREEMPT_COUNT_AT, preempt_count_at(&types)?);
        probe.choose(wanted, can_schedule)?;
        for (program, tracepoint) in LIFE {
            probe.object.attach(program, Hook::Typed(tracepoint))?;
        }
        Ok(probe)
    }

    /// Verifies the samples' program by putting it in place for a moment, long before a period of it is over.
    fn choose(&mut self, wanted: Option<Pausing>, can_schedule: bool) -> Result<(), BpfError> {
        const NEVER_NS: u64 = 1_000_000_000;
        let hook = Hook::CpuClock { period_ns: NEVER_NS };
        let tried = match wanted {
            Some(pausing) => vec![pausing],
            None if can_schedule => vec![Pausing::TaskWork, Pausing::SpinInSample],
            None => vec![Pausing::SpinInSample],
        };
        let mut refused = None;
        for pausing in tried {
            match self.object.hold(sampler(pausing), hook) {
                Ok(_taken_out_again) => {
                    self.pausing = pausing;
                    let longest = if pausing == Pausing::TaskWork { TASK_WORK_NS_MAX } else { SPIN_NS_MAX };
                    self.set(word::PAUSE_NS_MAX, longest);
                    return Ok(());
                }
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.expect("one was tried at least"))
    }

    /// How threads pause.
    pub fn pausing(&self) -> Pausing {
        self.pausing
    }

    /// Lets a process take part, with the threads that are listed; later ones are seen at their fork.
    pub fn take_in(
        &mut self,
        pid: Pid,
        role: Role,
        children: Children,
        tasks: &[Tid],
    ) -> Result<(), BpfError> {
        assert!(pid > 0, "{pid} is no process");
        let followed = if children == Children::Followed { 4 } else { 0 };
        let role = followed | if role == Role::Target { 1_u32 } else { 2 };
        let wrong = |map| move |source| BpfError::Map { map, source };
        let mut processes = self.object.hash_mut::<u32, u32>("processes")?;
        processes.insert(pid.cast_unsigned(), role, 0).map_err(wrong("processes"))?;
        let epoch = self.get(word::EPOCH);
        let mut threads = self.object.hash_mut::<u32, RawThread>("threads")?;
        for tid in tasks {
            let fresh = RawThread { epoch, role, ..EMPTY };
            const NEW_ONLY: u64 = 1;
            // One that is there already was seen at its fork.
            let _ = threads.insert(tid.cast_unsigned(), fresh, NEW_ONLY);
        }
        Ok(())
    }

    /// The process that the experiments are about: when it begins another program they are over, see [`Counts::replaced`].
    /// A child that does so takes part from then on without its code.
    pub fn set_subject(&self, pid: Pid) {
        assert!(pid > 0, "{pid} is no process: its end would never be seen");
        self.set(word::SUBJECT, u64::from(pid.cast_unsigned()));
    }

    /// Processes that take part, with those that were forked since.
    pub fn processes(&self) -> Result<Vec<Pid>, BpfError> {
        let processes = self.object.hash::<u32, u32>("processes")?;
        let all = processes.keys().map(|pid| pid.map(u32::cast_signed));
        all.collect::<Result<_, _>>().map_err(|source| BpfError::Map { map: "processes", source })
    }

    /// What system calls wait for, by their numbers; those that are not named wait for something else.
    pub fn name_waits(&mut self, calls: &[(u32, WaitsFor)]) -> Result<(), BpfError> {
        let mut kinds = self.object.array_mut::<u32>("kinds")?;
        for (number, waits) in calls {
            let kind = match waits {
                WaitsFor::Lock => 2_u32,
                WaitsFor::Disk => 4,
                WaitsFor::Network => 8,
                WaitsFor::Descriptor => 32,
                WaitsFor::DiskDescriptor => 32 | 4,
            };
            kinds.set(*number, kind, 0).map_err(|source| BpfError::Map { map: "kinds", source })?;
        }
        Ok(())
    }

    /// What the interrupt of a sample takes from the thread that it hits ([`crate::perf::interrupt_ns`]): pauses are made to
    /// leave each thread its share of that. At most [`INTERRUPT_NS_MAX`].
    pub fn set_interrupt(&self, ns: u64) {
        self.set(word::INTERRUPT_NS, ns.min(INTERRUPT_NS_MAX));
    }

    /// Clocks that sample each CPU.
    pub fn clocks(&self) -> usize {
        perf::clocks_of_a_cpu(affinity::online().len())
    }

    /// Draws clock `number` of each CPU anew, by a `turn` between 0 and 1 that should be the same for all of them. It begins
    /// its period now: where they are drawn one after the other, a share of a period apart, they stay apart. Samples come as
    /// often as before once all were drawn; between experiments nobody misses them.
    pub fn draw_clock(&self, number: usize, turn: f64) -> io::Result<()> {
        assert!((0.0..=1.0).contains(&turn), "{turn} is no share");
        debug_assert!(!self.is_active(), "an experiment's samples come at one rate");
        let clocks = self.clocks() as u64;
        self.attached
            .iter()
            .try_for_each(|held| held.draw_clock(number, self.get(word::PERIOD_NS) / clocks, turn))
    }

    /// Samples, wake-ups and switches are looked at from now on, while an experiment runs.
    pub fn attach(&mut self, period_ns: u64) -> Result<(), BpfError> {
        assert!(self.attached.is_empty(), "two samplers of one probe would count everything twice");
        assert!(period_ns > 0, "time passes between samples");
        // A pause keeps the step of the clock that began it: its interrupts alone lie in it or not, the others' as elsewhere.
        self.set(word::PERIOD_NS, period_ns * self.clocks() as u64);
        self.set(word::WATCH, self.get(word::WATCH) + 1);
        let hooks = [("on_waking", "sched_waking"), ("on_switch", "sched_switch")];
        for (program, tracepoint) in hooks {
            let held = self.object.hold(program, Hook::Typed(tracepoint))?;
            self.attached.push(held);
        }
        let sampler = sampler(self.pausing);
        let held = self.object.hold(sampler, Hook::CpuClock { period_ns })?;
        self.attached.push(held);
        Ok(())
    }

    /// Only some of what [`Probe::attach`] does, to tell apart what each costs.
    pub fn attach_part(&mut self, part: Part) -> Result<(), BpfError> {
        self.set(word::WATCH, self.get(word::WATCH) + 1);
        let (program, hook) = match part {
            Part::Wakes => ("on_waking", Hook::Typed("sched_waking")),
            Part::Switches => ("on_switch", Hook::Typed("sched_switch")),
            Part::Samples { period_ns } => (sampler(self.pausing), Hook::CpuClock { period_ns }),
        };
        let held = self.object.hold(program, hook)?;
        self.attached.push(held);
        Ok(())
    }

    /// Takes them out again; probes on instructions and what counts progress stay.
    pub fn detach(&mut self) {
        self.set(word::PERIOD_NS, 0);
        self.attached.clear();
    }

    /// Puts a probe on an instruction of a file for as long as the answer lives: in the address space of one process, or
    /// of all that map the file.
    pub fn probe(
        &mut self,
        mark: Mark,
        image: &Path,
        offset: u64,
        pid: Option<Pid>,
    ) -> Result<Attached, BpfError> {
        let program = match mark {
            Mark::Visit => "on_visit",
            Mark::Begin => "on_begin",
            Mark::End => "on_end",
            Mark::Entry => "on_entry",
            Mark::Slow => "on_slow",
        };
        self.object.hold(program, Hook::Instruction { image, offset, pid })
    }

    /// Each return of a system call with at least such an answer is a unit of progress, while the answer lives.
    pub fn count_returns(&mut self, number: u32, least: i64) -> Result<Attached, BpfError> {
        self.set(word::SYSTEM_CALL, u64::from(number));
        self.set(word::RETURNS_MIN, least.cast_unsigned());
        self.object.hold("on_return", Hook::Typed("sys_exit"))
    }

    /// Each time that the target comes by a tracepoint of the kernel is a unit of progress, while the answer lives.
    pub fn count_tracepoint(&mut self, name: &str) -> Result<Attached, BpfError> {
        if !self.object.has_tracepoint(name) {
            return Err(BpfError::Missing { what: "tracepoint", name: name.to_owned() });
        }
        self.object.hold("on_trace", Hook::Typed(name))
    }

    /// Counts all system calls of the target that return something, by number, while the answer lives; they are read by
    /// [`Probe::returns`].
    pub fn count_all_returns(&mut self) -> Result<Attached, BpfError> {
        self.object.hold("on_any_return", Hook::Typed("sys_exit"))
    }

    /// System calls that returned something, and how often.
    pub fn returns(&self) -> Result<Vec<(u32, u64)>, BpfError> {
        let wrong = |source| BpfError::Map { map: "returns", source };
        let returns = self.object.per_cpu::<u64>("returns")?;
        let mut all = Vec::new();
        for number in 0..SYSTEM_CALLS as u32 {
            let sum: u64 = returns.get(&number, 0).map_err(wrong)?.iter().sum();
            if sum > 0 {
                all.push((number, sum));
            }
        }
        Ok(all)
    }

    /// Begins an experiment: all threads are even, and from now on, until [`Probe::end`] or the deadline, those who lie
    /// behind pause. The time of its beginning.
    pub fn begin(&mut self, tried: &Tried<'_>, deadline_ns: u64) -> Result<u64, BpfError> {
        tried.check();
        assert!(!tried.needs_samples() || !self.attached.is_empty(), "without samples nobody would pause");
        assert!(self.get(word::PAUSE_NS_MAX) > 0, "a pause is cut at its longest");
        self.end();
        let (mut delay_ns, mut own_ns, mut kinds, mut percent, mut spin_ns) = (0, 0, 0, 0, 0);
        let mut reach = Reach::Own;
        let mut ranges: &[Range<u64>] = &[];
        match tried {
            Tried::Nothing => {}
            Tried::Code { ranges: code, reach: asked, delay_ns: delay } => {
                (ranges, delay_ns, reach) = (code, *delay, *asked);
            }
            Tried::Held { ranges: code, reach: asked, ns } => (ranges, own_ns, reach) = (code, *ns, *asked),
            Tried::Waits { kind, percent: share } => {
                (kinds, percent) = (self.kind_bits(*kind), u64::from(*share));
            }
            Tried::Slower { ns } => spin_ns = (*ns).min(SLOWER_NS_MAX),
        }
        // A site of which nothing is faster is looked at in windows that the others are held against.
        let is_left_alone = [delay_ns, own_ns, percent, spin_ns] == [0; 4];
        self.set_code(Code::Site, ranges)?;
        for (at, value) in [
            (word::DELAY_NS, delay_ns),
            (word::OWN_NS, own_ns),
            (word::REACH, u64::from(reach == Reach::Inclusive)),
            (word::WAIT_KINDS, kinds),
            (word::WAIT_PERCENT, percent),
            (word::SPIN_NS, spin_ns),
            (word::PLACES, u64::from(is_left_alone)),
            (word::INSERTED_NS, 0),
            (word::EPOCH, self.get(word::EPOCH) + 1),
            (word::DEADLINE_NS, deadline_ns),
        ] {
            self.set(at, value);
        }
        let now = mono_ns();
        self.set(word::START_NS, now);
        self.control.all()[word::ACTIVE].store(1, Release);
        Ok(now)
    }

    fn kind_bits(&self, kind: Waits) -> u64 {
        match kind {
            Waits::Any => 1,
            Waits::Lock => 2,
            Waits::Disk => 4,
            Waits::Network => 8,
            Waits::File(file) => {
                let wanted =
                    [(word::WAIT_INODE, file.inode), (word::WAIT_DEVICE, kernel_device(file.device))];
                if wanted.iter().any(|(at, value)| self.get(*at) != *value) {
                    wanted.iter().for_each(|(at, value)| self.set(*at, *value));
                    self.set(word::FILE_NS, mono_ns());
                }
                16
            }
        }
    }

    /// Names loops of the target in which threads wait for each other. Whoever is sampled there owes nothing for what was
    /// inserted meanwhile.
    pub fn name_loops(&mut self, ranges: &[Range<u64>]) -> Result<(), BpfError> {
        self.set_code(Code::Loops, ranges)
    }

    fn set_code(&mut self, row: Code, ranges: &[Range<u64>]) -> Result<(), BpfError> {
        let packed = packed(ranges)?;
        let mut code = self.object.array_mut::<RawRanges>("code")?;
        code.set(row as u32, packed, 0).map_err(|source| BpfError::Map { map: "code", source })
    }

    /// Visits of window `number` count from now on; numbers are never used twice.
    pub fn open_window(&self, number: u64) {
        self.windows.open(number);
        self.control.all()[word::WINDOW].store(number, Release);
    }

    /// No visit counts any more.
    pub fn close_window(&self) {
        self.control.all()[word::WINDOW].store(window::NONE, Release);
        self.windows.close();
    }

    /// Ends the experiment at once: pauses that run stop, nobody pauses any more.
    pub fn end(&self) {
        self.close_window();
        self.control.all()[word::ACTIVE].store(0, Release);
    }

    /// Moves the deadline of the experiment that runs.
    pub fn live_until(&self, deadline_ns: u64) {
        self.set(word::DEADLINE_NS, deadline_ns);
    }

    /// Whether an experiment runs: not after its deadline, nor after the target began another program.
    pub fn is_active(&self) -> bool {
        self.control.all()[word::ACTIVE].load(Acquire) != 0
    }

    /// All delay that was inserted in this experiment.
    pub fn inserted_ns(&self) -> u64 {
        self.get(word::INSERTED_NS)
    }

    /// All threads owe so much delay, as if one of them had caused it: whoever has paid less pauses at its next sample.
    pub fn all_owe(&self, ns: u64) {
        self.control.all()[word::INSERTED_NS].fetch_max(ns, Relaxed);
    }

    /// Begun and not ended now, once all that had begun before the probes were there have ended.
    pub fn in_flight(&self) -> i64 {
        let signed = |at| self.get(at).cast_signed();
        signed(word::IN_FLIGHT) - signed(word::IN_FLIGHT_MIN).min(0)
    }

    /// What was counted beside visits.
    pub fn counts(&self) -> Counts {
        let mut words = self.control.all()[word::COUNTERS..word::IN_FLIGHT].iter();
        Counts::read(|| words.next().map_or(0, |word| word.load(Relaxed)))
    }

    /// What was visited in window `number`, which should be closed.
    pub fn visits(&self, which: Counted, number: u64) -> Result<Visits, BpfError> {
        self.windows.check_closed(number);
        let points = self.object.per_cpu::<RawPoint>("points")?;
        let rows =
            points.get(&(which as u32), 0).map_err(|source| BpfError::Map { map: "points", source })?;
        Ok(merged(rows.iter().filter(|row| row.window == number && row.count > 0)))
    }

    /// Where samples of the target fell in the last window, by sixteen bytes of code, or [`IN_KERNEL`]; none where somebody was made
    /// faster or slower. They are taken out.
    pub fn take_places(&mut self) -> Result<Vec<(u64, u64)>, BpfError> {
        let wrong = |source| BpfError::Map { map: "places", source };
        let mut places = self.object.hash_mut::<u64, u64>("places")?;
        let all: Vec<(u64, u64)> = places.iter().collect::<Result<_, _>>().map_err(wrong)?;
        for (place, _) in &all {
            places.remove(place).map_err(wrong)?;
        }
        Ok(all)
    }

    /// How long its programs ran while [`super::runs::Counting`] lived, by what they look at. What a sample schedules runs
    /// outside of programs and is not in it.
    pub fn ran(&self) -> Result<Vec<(&'static str, Ran)>, BpfError> {
        let of =
            |(hook, programs): (_, &[&str])| Ok((hook, self.object.ran(|name| programs.contains(&name))?));
        HOOKS.into_iter().map(of).collect()
    }

    /// What threads of the target owe.
    pub fn owed(&self) -> Result<Owed, BpfError> {
        let (epoch, inserted) = (self.get(word::EPOCH), self.inserted_ns());
        let threads = self.object.hash::<u32, RawThread>("threads")?;
        let mut owed = Owed::default();
        // Rows come and go while the table is read; one that cannot be read has ended.
        for (_, thread) in threads.iter().flatten() {
            if thread.epoch == epoch && thread.role & 1 != 0 {
                owed.threads += 1;
                // Who sleeps will be credited by its waker, or pay when it runs.
                let runs = u64::from(u64::from(thread.on_core) == self.get(word::WATCH));
                owed.ns += runs * inserted.saturating_sub(thread.position_ns);
            }
        }
        Ok(owed)
    }

    fn get(&self, at: usize) -> u64 {
        self.control.all()[at].load(Relaxed)
    }

    fn set(&self, at: usize, value: u64) {
        self.control.all()[at].store(value, Relaxed);
    }
}
