//! The causal probe: bpf/causal.bpf.c loaded, put in place, told what to do, and its counts as values.
//!
//! Called by the causal profiler's rig. It keeps no time and judges nothing: an experiment is begun, a window opened and
//! closed, each by a call. The layouts below are those of bpf/causal.h, tied by assertions on both sides.

use super::runs::Ran;
use super::types::Types;
use super::{Attached, BpfError, Hook, Object, Words};
use crate::clock::mono_ns;
use crate::proc::FileId;
use crate::{Pid, Tid};
use aya::Pod;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Built by `cargo xtask gen bpf`; the source lies beside it.
static OBJECT: &[u8] = include_bytes!("../../bpf/causal.bpf.o");

/// Pieces of code that a site may have.
pub const RANGES_MAX: usize = 4096;
/// System calls told apart; the last row takes the numbers above.
pub const SYSTEM_CALLS: usize = 512;

/// The longest pause at a go. On the way back to user mode it is preemptible; inside the sample's program nothing else
/// runs on that core meanwhile.
const TASK_WORK_NS_MAX: u64 = 20_000_000;
const SPIN_NS_MAX: u64 = 1_000_000;

/// Whoever measures more for the interrupt of a sample has measured something else.
pub const INTERRUPT_NS_MAX: u64 = 50_000;

/// The longest that a call is made longer: the kernel ends a program's loop some time after.
pub const SLOWER_NS_MAX: u64 = 100_000_000;

/// The call of the kernel's function that schedules a pause: `call` of a kernel function with a mark for its number.
const MARKED_CALL: [u8; 8] = [0x85, 0x20, 0, 0, 0xef, 0xbe, 0xad, 0x7e];
/// That function's names, the one with the argument that the call gives first.
const SCHEDULE: [&str; 2] = ["bpf_task_work_schedule_resume_impl", "bpf_task_work_schedule_resume"];

/// Words of `struct control`.
mod word {
    pub(super) const ACTIVE: usize = 0;
    pub(super) const DEADLINE_NS: usize = 1;
    pub(super) const EPOCH: usize = 2;
    pub(super) const DELAY_NS: usize = 3;
    pub(super) const REACH: usize = 4;
    pub(super) const PAUSE_NS_MAX: usize = 5;
    pub(super) const WINDOW: usize = 6;
    pub(super) const PREEMPT_COUNT_AT: usize = 7;
    pub(super) const SYSTEM_CALL: usize = 8;
    pub(super) const RETURNS_MIN: usize = 9;
    pub(super) const WAIT_KINDS: usize = 10;
    pub(super) const WAIT_PERCENT: usize = 11;
    pub(super) const WAIT_INODE: usize = 12;
    pub(super) const WAIT_DEVICE: usize = 13;
    pub(super) const START_NS: usize = 14;
    pub(super) const SPIN_NS: usize = 15;
    pub(super) const WATCH: usize = 16;
    pub(super) const SUBJECT: usize = 17;
    pub(super) const PERIOD_NS: usize = 18;
    pub(super) const INTERRUPT_NS: usize = 19;
    /// A line of its own.
    pub(super) const INSERTED_NS: usize = 24;
    /// The first of the counters; seven words lie between.
    pub(super) const COUNTERS: usize = 32;
    pub(super) const IN_FLIGHT: usize = 51;
    pub(super) const IN_FLIGHT_MIN: usize = 52;
    pub(super) const COUNT: usize = 53;
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawThread {
    position_ns: u64,
    epoch: u64,
    inserted_off_ns: u64,
    off_ns: u64,
    sampled_ns: u64,
    work: u64,
    user_mode: u32,
    scheduled: u32,
    paused: u32,
    on_core: u32,
    role: u32,
    waits: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawPoint {
    window: u64,
    count: u64,
    first_ns: u64,
    first_at_ns: u64,
    last_ns: u64,
    last_at_ns: u64,
    since_start_ns: u64,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawRanges {
    count: u64,
    from: [u64; RANGES_MAX],
    to: [u64; RANGES_MAX],
}

const _: () = assert!(size_of::<RawThread>() == 72, "struct thread of causal.h");
const _: () = assert!(size_of::<RawPoint>() == 56, "struct point of causal.h");
const _: () = assert!(size_of::<RawRanges>() == 8 + 16 * RANGES_MAX, "struct ranges of causal.h");
const _: () = assert!(word::COUNT * 8 == 424, "struct control of causal.h");

// SAFETY: numbers only, no padding (the sizes are asserted above): every pattern of bytes is a value.
unsafe impl Pod for RawThread {}
// SAFETY: the same.
unsafe impl Pod for RawPoint {}
// SAFETY: the same.
unsafe impl Pod for RawRanges {}

/// How threads pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pausing {
    /// On their way back to user mode (Linux 6.18).
    TaskWork,
    /// Inside the sample's program, with interrupts off, at most a millisecond at a time.
    SpinInSample,
}

/// What a process is to an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Its code and its waits are tried.
    Target,
    /// Its threads pause and hand on credit; its code never matches.
    Participant,
}

/// Whether processes that a process gives birth to take its role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Children {
    /// They do.
    Followed,
    /// They are strangers.
    Strangers,
}

/// What is tried.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried<'s> {
    /// Nothing: samples hit nothing.
    Nothing,
    /// Code at these addresses.
    Code {
        /// Where it lies in the target.
        ranges: &'s [Range<u64>],
        /// Which part of a stack counts.
        reach: Reach,
        /// Delay for others at each hit.
        delay_ns: u64,
    },
    /// Waits of a kind.
    Waits {
        /// Which.
        kind: Waits,
        /// The share of each that is cut off.
        percent: u32,
    },
    /// Each call of what [`Probe::probe`] put [`Mark::Slow`] on lasts longer.
    Slower {
        /// By so much, at most [`SLOWER_NS_MAX`].
        ns: u64,
    },
}

/// Which part of a stack counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// The sampled instruction.
    Own,
    /// Any frame of the user stack, by frame pointers.
    Inclusive,
}

/// Kinds of waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waits {
    /// All.
    Any,
    /// At locks and conditions.
    Lock,
    /// For disks and files.
    Disk,
    /// For sockets and pipes, and for several descriptors.
    Network,
    /// For one file.
    File(FileId),
}

/// What a system call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitsFor {
    /// A lock.
    Lock,
    /// A disk.
    Disk,
    /// A peer.
    Network,
    /// Whatever its first argument is a descriptor of.
    Descriptor,
    /// A disk, and its first argument says which file.
    DiskDescriptor,
}

/// What a probe on an instruction does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// Counts a unit of progress.
    Visit,
    /// Counts a beginning.
    Begin,
    /// Counts an end, which is a unit of progress too.
    End,
    /// Counts entries into code.
    Entry,
    /// Spins, see [`Tried::Slower`].
    Slow,
}

/// Which visits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counted {
    /// Of the progress point.
    Visits = 0,
    /// Beginnings.
    Begins = 1,
    /// Entries into code.
    Entries = 2,
}

/// Visits in a window, of all CPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visits {
    /// How many.
    pub count: u64,
    /// The first.
    pub first: Visit,
    /// The last.
    pub last: Visit,
    /// From the experiment's start to each, summed.
    pub since_start_ns: u64,
}

/// One visit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Visit {
    /// When.
    pub at_ns: u64,
    /// Inserted delay that its thread had paid, or was credited with.
    pub position_ns: u64,
}

macro_rules! counts {
    ($($(#[$doc:meta])* $name:ident)*) => {
        /// What is counted beside visits. All of it only grows: two readings make a window.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counts { $($(#[$doc])* pub $name: u64),* }

        impl Counts {
            fn read(mut next: impl FnMut() -> u64) -> Counts {
                Counts { $($name: next()),* }
            }

            /// What came since `before`.
            pub fn since(&self, before: &Counts) -> Counts {
                Counts { $($name: self.$name.saturating_sub(before.$name)),* }
            }
        }
    };
}

// In the order of `struct control`, from its counters on.
counts! {
    /// Samples of the target.
    samples
    /// Samples of participants.
    beside
    /// Samples of strangers; the kernel's own threads are none.
    foreign
    /// Samples of idle CPUs.
    idle
    /// Samples of threads while they paused.
    pausing
    /// Hits: samples in the site, waits that were made shorter, calls that were slowed down.
    hits
    /// Pauses.
    pauses
    /// How long they should have been.
    asked_ns
    /// How long they were.
    paid_ns
    /// From samples to the starts of their pauses.
    lag_ns
    /// Pauses that were cut at their longest.
    capped
    /// Pauses that could not be scheduled.
    missed
    /// Wake-ups of the target by threads that take part.
    inner_wakes
    /// Wake-ups of the target by time, disks and strangers.
    outer_wakes
    /// Those of them that ended a wait for a socket or a pipe.
    remote_wakes
    /// Switches onto a core after a sibling that had it for a while.
    runnable_waits
    /// How often the deadline was met.
    expired
    /// How often the target began another program.
    replaced
    /// Threads and processes that the tables had no room for.
    lost
}

const _: () = assert!(size_of::<Counts>() == 8 * (word::IN_FLIGHT - word::COUNTERS), "all counters are read");

/// What threads owe now.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Owed {
    /// Threads of the target that were seen in this experiment.
    pub threads: u64,
    /// What those of them that run or could run have not paid yet.
    pub ns: u64,
}

/// The probe in the kernel. Dropped, it is gone, and nobody pauses any more.
#[derive(Debug)]
pub struct Probe {
    object: Object,
    control: Words,
    pausing: Pausing,
    attached: Vec<Attached>,
}

/// Programs that see births and ends: in place from the beginning to the end.
const LIFE: [(&str, &str); 3] =
    [("on_fork", "sched_process_fork"), ("on_exec", "sched_process_exec"), ("on_exit", "sched_process_exit")];

/// The probe's programs by what they look at.
const HOOKS: [(&str, &[&str]); 5] = [
    ("samples", &["sample_later", "sample_now"]),
    ("switches", &["on_switch"]),
    ("wake-ups", &["on_waking"]),
    ("progress", &["on_visit", "on_begin", "on_end", "on_return", "on_trace"]),
    ("births and ends", &["on_fork", "on_exec", "on_exit"]),
];

impl Probe {
    /// Loads the probe, with the way of pausing that is asked for or the best that the kernel takes. Births and ends are
    /// seen from here on; nothing else is. Needs CAP_BPF and CAP_PERFMON, or root, and Linux 5.17 with its types.
    pub fn load(wanted: Option<Pausing>) -> Result<Probe, BpfError> {
        let types =
            Types::of_kernel().map_err(|source| BpfError::Read { what: "the kernel's types", source })?;
        let (bytes, can_schedule) = patched(&types);
        let object = Object::load(&bytes)?;
        let control = object.words("controls", word::COUNT)?;
        let mut probe = Probe { object, control, pausing: Pausing::SpinInSample, attached: Vec::new() };
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

    /// Lets a process take part, with the threads that are listed; later ones are seen at their birth.
    pub fn take_in(
        &mut self,
        pid: Pid,
        role: Role,
        children: Children,
        tasks: &[Tid],
    ) -> Result<(), BpfError> {
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
            // One that is there already was seen at its birth.
            let _ = threads.insert(tid.cast_unsigned(), fresh, NEW_ONLY);
        }
        Ok(())
    }

    /// The process that the experiments are about: when it begins another program they are over, see [`Counts::replaced`].
    /// A child that does so takes part from then on without its code.
    pub fn set_subject(&self, pid: Pid) {
        self.set(word::SUBJECT, u64::from(pid.cast_unsigned()));
    }

    /// Processes that take part, with those that were born since.
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

    /// Samples, wake-ups and switches are looked at from now on, while an experiment runs.
    pub fn attach(&mut self, period_ns: u64) -> Result<(), BpfError> {
        self.set(word::PERIOD_NS, period_ns);
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
        self.end();
        let (mut delay_ns, mut reach, mut kinds, mut percent, mut spin_ns) = (0, 0, 0, 0, 0);
        let mut ranges: &[Range<u64>] = &[];
        match tried {
            Tried::Nothing => {}
            Tried::Code { ranges: code, reach: asked, delay_ns: delay } => {
                (ranges, delay_ns, reach) = (code, *delay, u64::from(*asked == Reach::Inclusive));
            }
            Tried::Waits { kind, percent: share } => {
                (kinds, percent) = (self.kind_bits(*kind), u64::from(*share));
            }
            Tried::Slower { ns } => spin_ns = (*ns).min(SLOWER_NS_MAX),
        }
        self.set_ranges(ranges)?;
        for (at, value) in [
            (word::DELAY_NS, delay_ns),
            (word::REACH, reach),
            (word::WAIT_KINDS, kinds),
            (word::WAIT_PERCENT, percent),
            (word::SPIN_NS, spin_ns),
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
                self.set(word::WAIT_INODE, file.inode);
                self.set(word::WAIT_DEVICE, kernel_device(file.device));
                16
            }
        }
    }

    fn set_ranges(&mut self, ranges: &[Range<u64>]) -> Result<(), BpfError> {
        let packed = packed(ranges)?;
        let mut code = self.object.array_mut::<RawRanges>("code")?;
        code.set(0, packed, 0).map_err(|source| BpfError::Map { map: "code", source })
    }

    /// Visits of window `number` count from now on; numbers are never used twice.
    pub fn open_window(&self, number: u64) {
        self.control.all()[word::WINDOW].store(number, Release);
    }

    /// No visit counts any more.
    pub fn close_window(&self) {
        self.control.all()[word::WINDOW].store(0, Release);
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
        let points = self.object.per_cpu::<RawPoint>("points")?;
        let rows =
            points.get(&(which as u32), 0).map_err(|source| BpfError::Map { map: "points", source })?;
        Ok(merged(rows.iter().filter(|row| row.window == number && row.count > 0)))
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

/// What [`Probe::attach`] puts in place, one by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The look at each wake-up.
    Wakes,
    /// The look at each switch.
    Switches,
    /// The samples.
    Samples {
        /// Their period.
        period_ns: u64,
    },
}

const EMPTY: RawThread = RawThread {
    position_ns: 0,
    epoch: 0,
    inserted_off_ns: 0,
    off_ns: 0,
    sampled_ns: 0,
    work: 0,
    user_mode: 0,
    scheduled: 0,
    paused: 0,
    on_core: 0,
    role: 0,
    waits: 0,
};

fn sampler(pausing: Pausing) -> &'static str {
    match pausing {
        Pausing::TaskWork => "sample_later",
        Pausing::SpinInSample => "sample_now",
    }
}

/// The object with the number of the kernel's function in its place, and whether the kernel has that function.
fn patched(types: &Types) -> (Vec<u8>, bool) {
    let mut bytes = OBJECT.to_vec();
    let Some(number) = SCHEDULE.iter().find_map(|name| types.function(name)) else { return (bytes, false) };
    let calls: Vec<usize> = (0..bytes.len().saturating_sub(MARKED_CALL.len()))
        .filter(|at| bytes[*at..].starts_with(&MARKED_CALL))
        .collect();
    for at in &calls {
        bytes[at + 4..at + 8].copy_from_slice(&number.to_le_bytes());
    }
    (bytes, !calls.is_empty())
}

/// From a CPU's run queue to its count of reasons not to be preempted.
fn preempt_count_at(types: &Types) -> Result<u64, BpfError> {
    // Linux 6.2 to 6.14 keep it in `struct pcpu_hot`, after a pointer.
    let count = types.of_each_cpu("__preempt_count").or_else(|| Some(types.of_each_cpu("pcpu_hot")? + 8));
    let both = count.zip(types.of_each_cpu("runqueues"));
    let missing = || BpfError::Missing { what: "variable of each CPU", name: "__preempt_count".to_owned() };
    both.map(|(count, queue)| count.wrapping_sub(queue)).ok_or_else(missing)
}

/// The kernel's own form of a device number: 20 bits of minor.
fn kernel_device((major, minor): (u32, u32)) -> u64 {
    u64::from(major) << 20 | u64::from(minor)
}

/// Ranges in order, those that touch as one.
fn packed(ranges: &[Range<u64>]) -> Result<RawRanges, BpfError> {
    let mut sorted: Vec<Range<u64>> = ranges.iter().filter(|range| !range.is_empty()).cloned().collect();
    sorted.sort_unstable_by_key(|range| range.start);
    let mut joined: Vec<Range<u64>> = Vec::with_capacity(sorted.len());
    for range in sorted {
        match joined.last_mut() {
            Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
            _ => joined.push(range),
        }
    }
    if joined.len() > RANGES_MAX {
        return Err(BpfError::Pieces { count: joined.len(), most: RANGES_MAX });
    }
    let mut raw = RawRanges { count: joined.len() as u64, from: [0; RANGES_MAX], to: [0; RANGES_MAX] };
    for (at, range) in joined.into_iter().enumerate() {
        (raw.from[at], raw.to[at]) = (range.start, range.end);
    }
    Ok(raw)
}

fn merged<'r>(rows: impl Iterator<Item = &'r RawPoint>) -> Visits {
    let mut all = Visits::default();
    for row in rows {
        let first = Visit { at_ns: row.first_ns, position_ns: row.first_at_ns };
        let last = Visit { at_ns: row.last_ns, position_ns: row.last_at_ns };
        if all.count == 0 || first.at_ns < all.first.at_ns {
            all.first = first;
        }
        if all.count == 0 || last.at_ns > all.last.at_ns {
            all.last = last;
        }
        all.count += row.count;
        all.since_start_ns += row.since_start_ns;
    }
    all
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn ranges_that_touch_are_one_and_empty_ones_none() {
        let raw = packed(&[30..40, 10..20, 15..18, 20..25, 7..7]).unwrap();
        assert_eq!((raw.count, &raw.from[..3], &raw.to[..3]), (2, &[10, 30, 0][..], &[25, 40, 0][..]));
    }

    #[test]
    fn code_in_too_many_pieces_is_refused() {
        let many: Vec<Range<u64>> = (0..RANGES_MAX as u64 + 1).map(|at| at * 10..at * 10 + 5).collect();
        assert!(matches!(packed(&many), Err(BpfError::Pieces { count: 4097, most: 4096 })));
        assert_eq!(packed(&many[1..]).unwrap().count, 4096);
    }

    #[test]
    fn visits_of_all_cpus_begin_at_the_earliest_and_end_at_the_latest() {
        let row = |first_ns, last_ns, count| RawPoint {
            window: 3,
            count,
            first_ns,
            first_at_ns: first_ns / 10,
            last_ns,
            last_at_ns: last_ns / 10,
            since_start_ns: 5,
        };
        let all = merged([row(100, 400, 4), row(50, 300, 2)].iter());
        assert_eq!((all.count, all.since_start_ns), (6, 10));
        assert_eq!(all.first, Visit { at_ns: 50, position_ns: 5 });
        assert_eq!(all.last, Visit { at_ns: 400, position_ns: 40 });
        assert_eq!(merged([].iter()), Visits::default());
    }

    #[test]
    fn the_object_has_one_place_for_the_kernels_function() {
        let places = OBJECT.windows(MARKED_CALL.len()).filter(|bytes| *bytes == MARKED_CALL).count();
        assert_eq!(places, 1);
    }

    #[test]
    fn a_device_is_told_in_the_kernels_form() {
        assert_eq!(kernel_device((254, 3)), 254 << 20 | 3);
    }

    #[test]
    fn counts_are_told_as_differences() {
        let mut number = 0;
        let before = Counts::read(|| {
            number += 1;
            number
        });
        assert_eq!((before.samples, before.lost), (1, 19));
        let after = Counts { hits: before.hits + 7, ..before };
        assert_eq!(after.since(&before), Counts { hits: 7, ..Counts::default() });
    }
}
