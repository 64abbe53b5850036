//! Sampling events: what is sampled, how often, with how much of the stack, and where the samples go.
//!
//! An event samples one thread (on all CPUs, or on one with the threads and children that it starts) or one CPU. Events of
//! one CPU share a [`super::Ring`].

use super::attributes as bits;
use super::attributes::{
    Attributes, SAMPLE_CALLCHAIN, SAMPLE_CPU, SAMPLE_IDENTIFIER, SAMPLE_IP, SAMPLE_PERIOD, SAMPLE_REGS_USER,
    SAMPLE_STACK_USER, SAMPLE_TID, SAMPLE_TIME, open,
};
use super::record::Layout;
use crate::errno::{checked, checked_size};
use crate::{Pid, Tid};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// `PERF_COUNT_SW_CPU_CLOCK`, `PERF_COUNT_SW_CONTEXT_SWITCHES` and `PERF_COUNT_HW_CPU_CYCLES`.
const CPU_CLOCK: u64 = 0;
const CONTEXT_SWITCHES: u64 = 3;
const CPU_CYCLES: u64 = 0;

/// `PERF_FORMAT_LOST` (Linux 6.0).
const FORMAT_LOST: u64 = 1 << 4;

/// The most a kernel copies of a stack: its field has 16 bits and must be a multiple of 8.
pub const STACK_BYTES_MAX: u32 = 65_528;

/// Frame, stack and instruction pointer, as bits of the register mask (asm/perf_regs.h of each architecture).
#[cfg(target_arch = "x86_64")]
const REGISTERS: u64 = 1 << 6 | 1 << 7 | 1 << 8;
/// Frame pointer, link register, stack pointer and program counter.
#[cfg(target_arch = "aarch64")]
const REGISTERS: u64 = 1 << 29 | 1 << 30 | 1 << 31 | 1 << 32;

const IOC_ENABLE: libc::Ioctl = 0x2400 as libc::Ioctl;
const IOC_DISABLE: libc::Ioctl = 0x2401 as libc::Ioctl;
const IOC_SET_OUTPUT: libc::Ioctl = 0x2405 as libc::Ioctl;
/// `_IOR('$', 7, __u64 *)` with a pointer of 8 bytes.
const IOC_ID: libc::Ioctl = 0x8008_2407_u32 as libc::Ioctl;

/// What makes a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The kernel's timer: time on a CPU. Exists everywhere; stretches with interrupts off are charged to their end.
    CpuClock,
    /// The processor's cycle counter. Absent in most virtual machines (`ENOENT`, `EOPNOTSUPP`).
    Cycles,
    /// Leaving a CPU: a sample each time, and a record when the thread leaves and when it is back. With the kernel only.
    Switches,
}

/// Whether the kernel's own time and stacks are sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Yes; needs CAP_PERFMON, or kernel.perf_event_paranoid 1 or less.
    With,
    /// No: time inside the kernel makes no samples at all.
    Without,
}

/// Whether threads and children that the sampled thread starts are sampled too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inherit {
    /// They are. Only for an event of one CPU: the kernel gives no ring to any other.
    Children,
    /// Only the thread itself.
    Nobody,
}

/// When sampling begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With [`SamplingEvent::enable`].
    Later,
    /// When the thread execs.
    AtExec,
}

/// How much of the user stack comes with a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stacks {
    /// Whether the kernel walks frame pointers.
    pub chain: bool,
    /// Bytes copied from the stack pointer upwards, with the registers needed to unwind them; 0: none.
    pub copy_bytes: u32,
}

/// What is sampled, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampling {
    /// What makes a sample.
    pub clock: Clock,
    /// Samples per second on a busy CPU; of no meaning for switches.
    pub frequency_hz: u64,
    /// The kernel's side.
    pub kernel: Kernel,
    /// The user's stack.
    pub stacks: Stacks,
    /// Children.
    pub inherit: Inherit,
    /// When it begins.
    pub start: Start,
    /// The ring wakes its reader when this many bytes are in it.
    pub wakeup_bytes: u32,
}

/// Who is sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whom {
    /// A thread, on whatever CPU it runs. Without inheritance only.
    Thread(Tid),
    /// A thread while it runs on this CPU.
    ThreadOn(Tid, usize),
    /// Everybody on this CPU. Needs CAP_PERFMON, or kernel.perf_event_paranoid 0 or less.
    Cpu(usize),
}

/// An open event. Closing it ends the sampling.
#[derive(Debug)]
pub struct SamplingEvent {
    fd: OwnedFd,
    id: u64,
}

impl Sampling {
    /// How its records are laid out.
    pub fn layout(&self) -> Layout {
        Layout { sample_type: self.sample_type() }
    }

    /// # Panics
    /// When the kernel would take it and give no sample, or an error that says nothing.
    fn check(&self, whom: Whom) {
        assert!(self.frequency_hz > 0 || self.clock == Clock::Switches, "a clock that never ticks");
        let is_thread = matches!(whom, Whom::Thread(_));
        assert!(
            !is_thread || self.inherit == Inherit::Nobody,
            "what inherits an event of every CPU has no ring"
        );
        let is_cpu = matches!(whom, Whom::Cpu(_));
        assert!(!is_cpu || self.start == Start::Later, "a CPU never execs");
        let own_side = self.kernel == Kernel::Without && self.clock == Clock::Switches;
        assert!(!own_side, "threads are switched by the kernel alone");
    }

    fn sample_type(&self) -> u64 {
        let plain = SAMPLE_IDENTIFIER | SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_PERIOD;
        let copied = if self.stacks.copy_bytes > 0 { SAMPLE_REGS_USER | SAMPLE_STACK_USER } else { 0 };
        plain | SAMPLE_CALLCHAIN | copied
    }

    fn flags(&self, whom: Whom) -> u64 {
        let tracking = bits::MMAP | bits::MMAP2 | bits::COMM | bits::COMM_EXEC | bits::TASK;
        let mut flags = tracking | bits::DISABLED | bits::SAMPLE_ID_ALL | bits::WATERMARK;
        flags |= bits::USE_CLOCKID | bits::EXCLUDE_HV;
        let mut set = |when: bool, bit: u64| flags |= if when { bit } else { 0 };
        let switches = self.clock == Clock::Switches;
        set(switches, bits::CONTEXT_SWITCH);
        set(!switches, bits::FREQ);
        set(self.inherit == Inherit::Children, bits::INHERIT);
        // What each thread that inherited the event counted is told at its end.
        set(self.inherit == Inherit::Children && !switches, bits::INHERIT_STAT);
        set(self.start == Start::AtExec, bits::ENABLE_ON_EXEC);
        set(self.kernel == Kernel::Without, bits::EXCLUDE_KERNEL | bits::EXCLUDE_CALLCHAIN_KERNEL);
        set(!self.stacks.chain, bits::EXCLUDE_CALLCHAIN_USER);
        set(matches!(whom, Whom::Cpu(_)), bits::EXCLUDE_IDLE);
        flags
    }

    fn attributes(&self, whom: Whom) -> Attributes {
        let (kind, config) = match self.clock {
            Clock::CpuClock => (bits::TYPE_SOFTWARE, CPU_CLOCK),
            Clock::Cycles => (bits::TYPE_HARDWARE, CPU_CYCLES),
            Clock::Switches => (bits::TYPE_SOFTWARE, CONTEXT_SWITCHES),
        };
        let every = if self.clock == Clock::Switches { 1 } else { self.frequency_hz };
        let copied = self.stacks.copy_bytes > 0;
        Attributes {
            kind,
            config,
            sample_period_or_freq: every,
            sample_type: self.sample_type(),
            read_format: FORMAT_LOST,
            flags: self.flags(whom),
            wakeup: self.wakeup_bytes,
            sample_regs_user: if copied { REGISTERS } else { 0 },
            sample_stack_user: self.stacks.copy_bytes.min(STACK_BYTES_MAX) & !7,
            // The clock of `mono_ns`, so that records of all CPUs and our own times have one order.
            clockid: libc::CLOCK_MONOTONIC,
            ..Attributes::EMPTY
        }
    }
}

impl SamplingEvent {
    /// Opens an event. `EACCES` or `EPERM` without the right, `ESRCH` when the thread is gone, `EMFILE` without
    /// descriptors, `ENOENT` or `EOPNOTSUPP` when the machine has no such clock.
    pub fn open(sampling: &Sampling, whom: Whom) -> io::Result<SamplingEvent> {
        const EVERYBODY: Pid = -1;
        sampling.check(whom);
        let (pid, cpu) = match whom {
            Whom::Thread(tid) => (tid, None),
            Whom::ThreadOn(tid, cpu) => (tid, Some(cpu)),
            Whom::Cpu(cpu) => (EVERYBODY, Some(cpu)),
        };
        let mut attributes = sampling.attributes(whom);
        let fd = match open(&attributes, pid, cpu) {
            // Before Linux 6.0 lost samples are counted in records alone.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {
                attributes.read_format = 0;
                open(&attributes, pid, cpu)?
            }
            opened => opened?,
        };
        let id = identity(&fd)?;
        Ok(SamplingEvent { fd, id })
    }

    /// Its number, which every sample of it and of what inherited it carries.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Sends its records into the ring of `owner`, an event of the same CPU.
    pub fn share_ring_of(&self, owner: &SamplingEvent) -> io::Result<()> {
        // SAFETY: this request takes a descriptor's number.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_SET_OUTPUT, owner.fd.as_raw_fd()) })?;
        Ok(())
    }

    /// Begins to sample.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: this request takes no pointer.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_ENABLE, 0) })?;
        Ok(())
    }

    /// Stops sampling; what inherited it stops too.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: this request takes no pointer.
        checked(unsafe { libc::ioctl(self.fd.as_raw_fd(), IOC_DISABLE, 0) })?;
        Ok(())
    }

    /// Samples of this event that found no room in the ring; 0 where the kernel does not count them (before 6.0).
    pub fn lost(&self) -> u64 {
        let mut words = [0_u64; 2];
        let size = size_of_val(&words);
        // SAFETY: `words` is writable for `size` bytes through the call.
        let got = checked_size(unsafe { libc::read(self.fd.as_raw_fd(), words.as_mut_ptr().cast(), size) });
        if got.is_ok_and(|got| got == size) { words[1] } else { 0 }
    }
}

impl AsFd for SamplingEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn identity(fd: &OwnedFd) -> io::Result<u64> {
    let mut id = 0_u64;
    // SAFETY: `id` is writable for the length of the call.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), IOC_ID, &raw mut id) })?;
    Ok(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sampling() -> Sampling {
        Sampling {
            clock: Clock::CpuClock,
            frequency_hz: 99,
            kernel: Kernel::With,
            stacks: Stacks { chain: true, copy_bytes: 0 },
            inherit: Inherit::Nobody,
            start: Start::Later,
            wakeup_bytes: 4_096,
        }
    }

    #[test]
    #[should_panic(expected = "a clock that never ticks")]
    fn a_clock_without_a_frequency_is_never_opened() {
        let _ = SamplingEvent::open(&Sampling { frequency_hz: 0, ..sampling() }, Whom::Cpu(0));
    }

    #[test]
    #[should_panic(expected = "has no ring")]
    fn an_event_of_every_cpu_is_never_inherited() {
        let _ = SamplingEvent::open(&Sampling { inherit: Inherit::Children, ..sampling() }, Whom::Thread(1));
    }

    #[test]
    #[should_panic(expected = "a CPU never execs")]
    fn a_cpu_is_never_waited_for_to_exec() {
        let _ = SamplingEvent::open(&Sampling { start: Start::AtExec, ..sampling() }, Whom::Cpu(0));
    }
}
