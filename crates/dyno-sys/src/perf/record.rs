//! What the kernel writes into a ring, as values: samples, and what happened to address spaces and threads meanwhile.
//!
//! Bytes in, values out; a record that is shorter than it says is passed over.

use super::attributes as asked;
use crate::{Pid, Tid};

/// Record types (uapi/linux/perf_event.h).
const MMAP: u32 = 1;
const LOST: u32 = 2;
const COMM: u32 = 3;
const EXIT: u32 = 4;
const THROTTLE: u32 = 5;
const FORK: u32 = 7;
const READ: u32 = 8;
const SAMPLE: u32 = 9;
const MMAP2: u32 = 10;
const LOST_SAMPLES: u32 = 13;
const SWITCH: u32 = 14;

/// Bits of the header's `misc`.
const CPU_MODE: u16 = 7;
const MISC_COMM_EXEC: u16 = 1 << 13;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// `type`, `misc` and `size`.
const HEADER_BYTES: usize = 8;

/// Markers in a chain are above this (`PERF_CONTEXT_MAX`).
const CONTEXT_MAX: u64 = -4095_i64 as u64;
/// `PERF_CONTEXT_KERNEL` and `PERF_CONTEXT_USER`.
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
const CONTEXT_USER: u64 = -512_i64 as u64;

/// How an event's records are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub(super) sample_type: u64,
}

/// Where a CPU was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In a program.
    User,
    /// In the kernel.
    Kernel,
    /// In a guest, in a hypervisor, or unknown.
    Other,
}

/// One record.
#[derive(Clone, Copy, Debug)]
pub enum Record<'r> {
    /// What ran.
    Sample(Sample<'r>),
    /// Code was mapped.
    Mmap(Mmap<'r>),
    /// A thread got a name, perhaps by exec.
    Comm(Comm<'r>),
    /// A thread or process began.
    Fork(Task),
    /// A thread ended.
    Exit(Task),
    /// A thread left a CPU or is back on one; only where switches are sampled.
    Switch(Switch),
    /// What a thread that inherited the event counted until its end.
    Counted(Counted),
    /// Records found no room.
    Lost(Lost),
    /// The kernel paused sampling: it took too much of the CPU.
    Throttle {
        /// When.
        time_ns: u64,
    },
}

/// What ran at one instant.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'r> {
    /// The event that made it, by [`super::SamplingEvent::id`].
    pub id: u64,
    /// Where the CPU was.
    pub mode: Mode,
    /// The instruction pointer.
    pub ip: u64,
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// When, on `mono_ns`.
    pub time_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// Clock events since the sample before: nanoseconds of the CPU clock, or cycles.
    pub period: u64,
    chain: Words<'r>,
    /// The program's registers, also when the CPU was in the kernel.
    pub regs: Regs,
    /// The stack from the stack pointer upwards, as far as it was copied.
    pub stack: &'r [u8],
}

/// Registers of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regs {
    /// There are none: a thread of the kernel, or nobody asked for them.
    None,
    /// Of a program of 32 bits, whose stacks are not walked here.
    Narrow {
        /// Its instruction pointer.
        ip: u64,
    },
    /// Of 64 bits.
    Wide(UserRegs),
}

/// The registers that unwinding starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UserRegs {
    /// Instruction pointer.
    pub ip: u64,
    /// Stack pointer.
    pub sp: u64,
    /// Frame pointer.
    pub fp: u64,
    /// Link register; 0 where the architecture has none.
    pub lr: u64,
}

/// Code that was mapped.
#[derive(Clone, Copy, Debug)]
pub struct Mmap<'r> {
    /// The process.
    pub pid: Pid,
    /// When.
    pub time_ns: u64,
    /// First address.
    pub start: u64,
    /// Length in bytes.
    pub length: u64,
    /// Where in the file it begins.
    pub offset: u64,
    /// The file's inode; 0 for what is no file.
    pub inode: u64,
    /// The file's path as the process sees it, `//anon`, `[vdso]` …
    pub path: &'r [u8],
}

/// A thread's new name.
#[derive(Clone, Copy, Debug)]
pub struct Comm<'r> {
    /// The process.
    pub pid: Pid,
    /// The thread.
    pub tid: Tid,
    /// When.
    pub time_ns: u64,
    /// The name.
    pub name: &'r [u8],
    /// Whether the process began another program.
    pub exec: bool,
}

/// A thread that began or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: Pid,
    /// The process that it came from.
    pub parent: Pid,
    /// Its number.
    pub tid: Tid,
    /// When.
    pub time_ns: u64,
}

/// A thread that left a CPU or came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Switch {
    /// Its process.
    pub pid: Pid,
    /// Its number.
    pub tid: Tid,
    /// When.
    pub time_ns: u64,
    /// Which of the two.
    pub way: Way,
}

/// What an event counted in a thread that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    /// Its number.
    pub tid: Tid,
    /// When it ended.
    pub time_ns: u64,
    /// Clock events, as in [`Sample::period`].
    pub events: u64,
}

/// Which way a thread was switched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// It runs again.
    In,
    /// It waits for something.
    Waits,
    /// It could go on, but another one got the CPU.
    Preempted,
}

/// Records that found no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// How many.
    pub count: u64,
    /// When the kernel said so.
    pub time_ns: u64,
}

impl Record<'_> {
    /// When it was made, on `mono_ns`.
    pub fn time_ns(&self) -> u64 {
        match self {
            Record::Sample(sample) => sample.time_ns,
            Record::Mmap(mmap) => mmap.time_ns,
            Record::Comm(comm) => comm.time_ns,
            Record::Fork(task) | Record::Exit(task) => task.time_ns,
            Record::Switch(switch) => switch.time_ns,
            Record::Counted(counted) => counted.time_ns,
            Record::Lost(lost) => lost.time_ns,
            Record::Throttle { time_ns } => *time_ns,
        }
    }
}

impl<'r> Sample<'r> {
    /// The kernel's part of the chain, leaf first.
    pub fn kernel_chain(&self) -> impl Iterator<Item = u64> + use<'r> {
        part(self.chain, CONTEXT_KERNEL)
    }

    /// The user's part of the chain by frame pointers, leaf first; empty when it was not asked for.
    pub fn user_chain(&self) -> impl Iterator<Item = u64> + use<'r> {
        part(self.chain, CONTEXT_USER)
    }
}

/// The addresses between a marker and the next.
fn part(chain: Words<'_>, marker: u64) -> impl Iterator<Item = u64> + use<'_> {
    chain.skip_while(move |word| *word != marker).skip(1).take_while(|word| *word < CONTEXT_MAX)
}

/// Words of 64 bits in a record.
#[derive(Clone, Copy, Debug)]
pub struct Words<'r>(&'r [u8]);

impl Iterator for Words<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let (word, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*word))
    }
}

/// The records in `bytes`, as a ring gave them, each whole with its header; a torn end is passed over.
pub fn records(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let size = usize::from(Cursor(rest.get(HEADER_BYTES - 2..)?).u16()?);
        // A size below the header's own would never end.
        let (record, behind) = rest.split_at_checked(size).filter(|_| size >= HEADER_BYTES)?;
        rest = behind;
        Some(record)
    })
}

impl<'r> Record<'r> {
    /// Reads one whole record; `None` for one of an unknown type, or shorter than its fields.
    pub fn parse(record: &'r [u8], layout: Layout) -> Option<Record<'r>> {
        let mut header = Cursor(record);
        let (kind, misc, _size) = (header.u32()?, header.u16()?, header.u16()?);
        parse(kind, misc, header.0, layout)
    }

    /// When a whole record was made, on `mono_ns`, without reading the rest of it: records of several rings are put in
    /// order before they are parsed. `None` for one of an unknown type, or too short to have a time.
    pub fn time_of(record: &[u8], layout: Layout) -> Option<u64> {
        let mut header = Cursor(record);
        let (kind, _misc, _size) = (header.u32()?, header.u16()?, header.u16()?);
        let word = |at: usize| Cursor(header.0.get(at * size_of::<u64>()..)?).u64();
        match kind {
            // Behind the identifier, the instruction and the thread.
            SAMPLE => word(3),
            // Behind two processes and two threads.
            FORK | EXIT => word(2),
            THROTTLE => word(0),
            MMAP | MMAP2 | COMM | LOST | LOST_SAMPLES | SWITCH | READ => trailing_time(header.0, layout),
            _ => None,
        }
    }
}

fn parse(kind: u32, misc: u16, body: &[u8], layout: Layout) -> Option<Record<'_>> {
    let mut cursor = Cursor(body);
    let time_ns = trailing_time(body, layout);
    match kind {
        SAMPLE => sample(misc, cursor, layout).map(Record::Sample),
        MMAP | MMAP2 => mmap(kind, cursor, time_ns?).map(Record::Mmap),
        COMM => {
            let (pid, tid) = (cursor.pid()?, cursor.pid()?);
            let (name, exec) = (text(cursor.0), misc & MISC_COMM_EXEC != 0);
            Some(Record::Comm(Comm { pid, tid, time_ns: time_ns?, name, exec }))
        }
        FORK => task(cursor).map(Record::Fork),
        EXIT => task(cursor).map(Record::Exit),
        LOST => {
            let (_id, count) = (cursor.u64()?, cursor.u64()?);
            Some(Record::Lost(Lost { count, time_ns: time_ns? }))
        }
        SWITCH => {
            let (pid, tid) = (cursor.pid()?, cursor.pid()?);
            Some(Record::Switch(Switch { pid, tid, time_ns: time_ns?, way: way(misc) }))
        }
        READ => {
            let (_pid, tid, events) = (cursor.pid()?, cursor.pid()?, cursor.u64()?);
            Some(Record::Counted(Counted { tid, time_ns: time_ns?, events }))
        }
        LOST_SAMPLES => Some(Record::Lost(Lost { count: cursor.u64()?, time_ns: time_ns? })),
        THROTTLE => Some(Record::Throttle { time_ns: cursor.u64()? }),
        _ => None,
    }
}

/// The fields that every record but a sample ends with: ids, time, CPU, identifier, as `sample_type` has them.
fn trailing_time(body: &[u8], layout: Layout) -> Option<u64> {
    let behind = [asked::SAMPLE_CPU, asked::SAMPLE_IDENTIFIER];
    let words = behind.iter().filter(|bit| layout.sample_type & **bit != 0).count();
    let from_end = (words + 1) * size_of::<u64>();
    Cursor(body.get(body.len().checked_sub(from_end)?..)?).u64()
}

fn way(misc: u16) -> Way {
    match (misc & MISC_SWITCH_OUT != 0, misc & MISC_SWITCH_OUT_PREEMPT != 0) {
        (false, _) => Way::In,
        (true, false) => Way::Waits,
        (true, true) => Way::Preempted,
    }
}

fn task(mut cursor: Cursor<'_>) -> Option<Task> {
    let (pid, parent, tid, _parent_tid) = (cursor.pid()?, cursor.pid()?, cursor.pid()?, cursor.pid()?);
    Some(Task { pid, parent, tid, time_ns: cursor.u64()? })
}

fn mmap(kind: u32, mut cursor: Cursor<'_>, time_ns: u64) -> Option<Mmap<'_>> {
    let (pid, _tid) = (cursor.pid()?, cursor.pid()?);
    let (start, length, offset) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    let mut inode = 0;
    if kind == MMAP2 {
        let _device = cursor.u64()?;
        inode = cursor.u64()?;
        let (_generation, _rights) = (cursor.u64()?, cursor.u64()?);
    }
    Some(Mmap { pid, time_ns, start, length, offset, inode, path: text(cursor.0) })
}

/// The fields in the order of `sample_type`'s bits, the identifier first.
fn sample(misc: u16, mut cursor: Cursor<'_>, layout: Layout) -> Option<Sample<'_>> {
    let (id, ip) = (cursor.u64()?, cursor.u64()?);
    let (pid, tid, time_ns) = (cursor.pid()?, cursor.pid()?, cursor.u64()?);
    let (cpu, _reserved, period) = (cursor.u32()?, cursor.u32()?, cursor.u64()?);
    let length = usize::try_from(cursor.u64()?).ok()?;
    let chain = Words(cursor.bytes(length.checked_mul(size_of::<u64>())?)?);
    let regs =
        if layout.sample_type & asked::SAMPLE_REGS_USER != 0 { registers(&mut cursor)? } else { Regs::None };
    let copied = layout.sample_type & asked::SAMPLE_STACK_USER != 0;
    let stack = if copied { stack(&mut cursor)? } else { &[] };
    let mode = match misc & CPU_MODE {
        1 => Mode::Kernel,
        2 => Mode::User,
        _ => Mode::Other,
    };
    Some(Sample { id, mode, ip, pid, tid, time_ns, cpu, period, chain, regs, stack })
}

fn registers(cursor: &mut Cursor<'_>) -> Option<Regs> {
    /// `PERF_SAMPLE_REGS_ABI_NONE` and `_64`.
    const NONE: u64 = 0;
    const ABI_64: u64 = 2;
    let abi = cursor.u64()?;
    if abi == NONE {
        return Some(Regs::None);
    }
    let regs = pointers(cursor)?;
    Some(if abi == ABI_64 { Regs::Wide(regs) } else { Regs::Narrow { ip: regs.ip } })
}

#[cfg(target_arch = "x86_64")]
fn pointers(cursor: &mut Cursor<'_>) -> Option<UserRegs> {
    let (fp, sp, ip) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
    Some(UserRegs { ip, sp, fp, lr: 0 })
}

#[cfg(target_arch = "aarch64")]
fn pointers(cursor: &mut Cursor<'_>) -> Option<UserRegs> {
    let (fp, lr, sp, ip) = (cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?);
    Some(UserRegs { ip, sp, fp, lr })
}

fn stack<'r>(cursor: &mut Cursor<'r>) -> Option<&'r [u8]> {
    let size = usize::try_from(cursor.u64()?).ok()?;
    if size == 0 {
        return Some(&[]);
    }
    let bytes = cursor.bytes(size)?;
    let copied = usize::try_from(cursor.u64()?).ok()?;
    Some(&bytes[..copied.min(size)])
}

/// A name up to its zero byte.
fn text(bytes: &[u8]) -> &[u8] {
    bytes.split(|byte| *byte == 0).next().unwrap_or_default()
}

/// Fields one after the other.
struct Cursor<'r>(&'r [u8]);

impl<'r> Cursor<'r> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn u16(&mut self) -> Option<u16> {
        self.chunk().map(u16::from_ne_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_ne_bytes)
    }

    fn pid(&mut self) -> Option<i32> {
        self.chunk().map(i32::from_ne_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_ne_bytes)
    }

    fn bytes(&mut self, length: usize) -> Option<&'r [u8]> {
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::perf::{Clock, Inherit, Kernel, Sampling, Stacks, Start};

    fn layout(copy_bytes: u32) -> Layout {
        let sampling = Sampling {
            clock: Clock::CpuClock,
            frequency_hz: 99,
            kernel: Kernel::With,
            stacks: Stacks { chain: true, copy_bytes },
            inherit: Inherit::Nobody,
            start: Start::Later,
            wakeup_bytes: 1,
        };
        sampling.layout()
    }

    fn record(kind: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let size = u16::try_from(HEADER_BYTES + words.len() * 8).unwrap();
        let mut bytes = [kind.to_ne_bytes().as_slice(), &misc.to_ne_bytes(), &size.to_ne_bytes()].concat();
        words.iter().for_each(|word| bytes.extend(word.to_ne_bytes()));
        bytes
    }

    fn pair(low: u32, high: u32) -> u64 {
        u64::from(high) << 32 | u64::from(low)
    }

    fn parsed(bytes: &[u8], layout: Layout) -> Vec<Record<'_>> {
        records(bytes).filter_map(|record| Record::parse(record, layout)).collect()
    }

    fn sample_bytes() -> Vec<u8> {
        let chain = [CONTEXT_KERNEL, 0xffff_ffff_8100_0000, CONTEXT_USER, 0x40_1000, 0x40_2000];
        let mut words = vec![77, 0xffff_ffff_8100_0000, pair(10, 11), 5_000, pair(1, 0), 1_001_001];
        words.push(chain.len() as u64);
        words.extend(chain);
        words.push(2);
        words.extend(if cfg!(target_arch = "x86_64") {
            vec![0xb0, 0x50, 0x10]
        } else {
            vec![0xb0, 0, 0x50, 0x10]
        });
        words.extend([16, 0x1111, 0x2222, 8]);
        record(SAMPLE, 1, &words)
    }

    #[test]
    fn a_sample_comes_with_both_chains_registers_and_stack() {
        let bytes = sample_bytes();
        let [Record::Sample(sample)] = parsed(&bytes, layout(16))[..] else { panic!("a sample") };
        assert_eq!((sample.id, sample.pid, sample.tid, sample.time_ns), (77, 10, 11, 5_000));
        assert_eq!((sample.cpu, sample.period, sample.mode), (1, 1_001_001, Mode::Kernel));
        assert_eq!(sample.kernel_chain().collect::<Vec<_>>(), [0xffff_ffff_8100_0000]);
        assert_eq!(sample.user_chain().collect::<Vec<_>>(), [0x40_1000, 0x40_2000]);
        assert_eq!(sample.regs, Regs::Wide(UserRegs { ip: 0x10, sp: 0x50, fp: 0xb0, lr: 0 }));
        assert_eq!(sample.stack, 0x1111_u64.to_ne_bytes(), "eight of sixteen bytes were copied");
    }

    #[test]
    fn a_records_time_is_known_without_the_rest_of_it() {
        let trailer = [pair(7, 8), 123, pair(0, 0), 42];
        let with = |kind, words: &[u64]| record(kind, 0, &[words, &trailer].concat());
        let name = u64::from_ne_bytes(*b"worker\0\0");
        let all = [
            sample_bytes(),
            with(MMAP2, &[pair(7, 8), 1, 2, 3, 0, 9, 0, 0, name]),
            with(MMAP, &[pair(7, 8), 1, 2, 3, name]),
            with(COMM, &[pair(7, 8), name]),
            with(FORK, &[pair(9, 7), pair(9, 7), 77]),
            with(EXIT, &[pair(9, 7), pair(9, 7), 78]),
            with(LOST, &[1, 30]),
            with(LOST_SAMPLES, &[30]),
            with(SWITCH, &[]),
            with(THROTTLE, &[79, 1, 42]),
        ];
        for bytes in &all {
            let parsed = Record::parse(bytes, layout(16)).map(|record| record.time_ns());
            assert!(parsed.is_some());
            assert_eq!(Record::time_of(bytes, layout(16)), parsed, "{:?}", &bytes[..8]);
        }
        assert_eq!(Record::time_of(&with(250, &[1, 2]), layout(16)), None);
        assert_eq!(Record::time_of(&sample_bytes()[..24], layout(16)), None);
    }

    #[test]
    fn records_cut_anywhere_are_passed_over() {
        let bytes = sample_bytes();
        for cut in 0..bytes.len() {
            assert_eq!(parsed(&bytes[..cut], layout(16)).len(), 0, "cut at {cut}");
        }
        assert_eq!(parsed(&record(SAMPLE, 0, &[1, 2]), layout(16)).len(), 0, "a sample without its fields");
        assert_eq!(parsed(&[9, 0, 0, 0, 0, 0, 0, 0, 1], layout(0)).len(), 0, "a size of nothing");
    }

    #[test]
    fn what_happens_to_a_process_comes_with_its_time() {
        let trailer = [pair(7, 8), 123, pair(0, 0), 42];
        let name = u64::from_ne_bytes(*b"/bin/a\0\0");
        let mapped = [pair(7, 8), 0x1000, 0x2000, 0x3000, 0, 99, 0, 0, name];
        let all = [
            record(MMAP2, 2, &[mapped.as_slice(), &trailer].concat()),
            record(COMM, MISC_COMM_EXEC, &[[pair(7, 8), name].as_slice(), &trailer].concat()),
            record(FORK, 0, &[[pair(9, 7), pair(9, 7), 123].as_slice(), &trailer].concat()),
            record(LOST, 0, &[[1, 30].as_slice(), &trailer].concat()),
            record(250, 0, &trailer),
        ]
        .concat();
        let found = parsed(&all, layout(0));
        assert!(found.len() == 4 && found.iter().all(|record| record.time_ns() == 123), "{found:?}");
        let Record::Mmap(mmap) = found[0] else { panic!("{found:?}") };
        assert_eq!((mmap.pid, mmap.start, mmap.length, mmap.offset), (7, 0x1000, 0x2000, 0x3000));
        assert_eq!((mmap.inode, mmap.path), (99, b"/bin/a".as_slice()));
        assert!(matches!(found[1], Record::Comm(comm) if comm.exec && comm.tid == 8));
        assert!(matches!(found[2], Record::Fork(task) if task.pid == 9 && task.parent == 7));
        assert!(matches!(found[3], Record::Lost(lost) if lost.count == 30));
    }
}
