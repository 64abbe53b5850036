//! A recording made of recorded samples and made-up neighbours, and the record that it ever became.
#![allow(clippy::unwrap_used)]

use std::os::unix::fs::MetadataExt;

use dyno_sys::perf::{Clock, Inherit, Sampling, Stacks, Start};

use super::*;
use crate::golden::{FOLDER, KALLSYMS, assert_golden, lines};

/// No process of Linux has these numbers: nothing is read of them.
/// `PERF_SAMPLE_REGS_ABI_32` and `_64`.
const ABI_32: u64 = 1;
const ABI_64: u64 = 2;

const PID: Pid = Pid::MAX - 10;
const CHILD: Pid = Pid::MAX - 20;

/// Bytes as the kernel writes them into a ring.
struct Bytes(Vec<u8>);

impl Bytes {
    fn add(&mut self, kind: u32, misc: u16, words: &[u64]) {
        let size = u16::try_from(8 + words.len() * 8).unwrap();
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(misc.to_ne_bytes());
        self.0.extend(size.to_ne_bytes());
        words.iter().for_each(|word| self.0.extend(word.to_ne_bytes()));
    }

    /// With what ends every record but a sample: thread, time, CPU, event.
    fn record(&mut self, kind: u32, misc: u16, (pid, tid): (Pid, Tid), time_ns: u64, words: &[u64]) {
        let trailer = [pair(pid, tid), time_ns, 0, 42];
        self.add(kind, misc, &[words, &trailer].concat());
    }

    fn comm(&mut self, thread: (Pid, Tid), time_ns: u64, name: &[u8; 8], exec: bool) {
        let words = [pair(thread.0, thread.1), u64::from_ne_bytes(*name)];
        self.record(3, u16::from(exec) << 13, thread, time_ns, &words);
    }

    fn task(&mut self, kind: u32, (pid, tid): (Pid, Tid), parent: Pid, time_ns: u64) {
        self.record(kind, 0, (pid, tid), time_ns, &[pair(pid, parent), pair(tid, parent), time_ns]);
    }

    fn mmap(&mut self, pid: Pid, time_ns: u64, (start, length, offset): (u64, u64, u64), path: &str) {
        let inode = std::fs::metadata(path).map_or(1, |file| file.ino());
        let mut text = path.as_bytes().to_vec();
        text.resize((text.len() + 1).next_multiple_of(8), 0);
        let text = text.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap()));
        let head = [pair(pid, pid), start, length, offset, 0, inode, 0, 0];
        self.record(10, 2, (pid, pid), time_ns, &head.into_iter().chain(text).collect::<Vec<_>>());
    }

    fn sample(&mut self, (pid, tid): (Pid, Tid), time_ns: u64, period: u64, kernel: &[u64], user: &User) {
        let chain: Vec<u64> = [(-128_i64) as u64]
            .iter()
            .chain(kernel)
            .chain(&[(-512_i64) as u64])
            .chain(&user.chain)
            .copied()
            .collect();
        let mut words = vec![42, user.ip, pair(pid, tid), time_ns, 0, period, chain.len() as u64];
        words.extend(chain);
        match user.regs {
            Some([fp, sp]) => words.extend([user.abi, fp, sp, user.ip]),
            None => words.push(0),
        }
        words.push(user.stack.len() as u64);
        let words_of_stack = user.stack.chunks_exact(8);
        words.extend(words_of_stack.map(|word| u64::from_ne_bytes(word.try_into().unwrap())));
        words.extend((!user.stack.is_empty()).then_some(user.stack.len() as u64));
        self.add(9, 2, &words);
    }
}

fn pair(low: i32, high: i32) -> u64 {
    u64::from(high.cast_unsigned()) << 32 | u64::from(low.cast_unsigned())
}

/// The user's side of a sample.
struct User {
    ip: u64,
    /// Of the registers: 64 bits, or 32.
    abi: u64,
    regs: Option<[u64; 2]>,
    chain: Vec<u64>,
    stack: Vec<u8>,
}

impl Default for User {
    fn default() -> User {
        User { ip: 0, abi: ABI_64, regs: None, chain: Vec::new(), stack: Vec::new() }
    }
}

/// What `samples.txt` holds: where the program was mapped, and its samples.
fn recorded() -> (u64, Vec<User>) {
    let hex = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let text = std::fs::read_to_string(format!("{FOLDER}samples.txt")).unwrap();
    let mut lines = text.lines();
    let start = hex(lines.next().unwrap().split(' ').nth(1).unwrap());
    let user = |line: &str| {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, _, ip, sp, fp, chain, stack] = words[..] else { panic!("{line}") };
        let byte = |at| u8::from_str_radix(&stack[at..at + 2], 16).unwrap();
        User {
            ip: hex(ip),
            regs: Some([hex(fp), hex(sp)]),
            chain: chain.split(',').map(hex).collect(),
            stack: (0..stack.len()).step_by(2).map(byte).collect(),
            ..User::default()
        }
    };
    (start, lines.map(user).collect())
}

fn recorder(clock: Clock) -> Recorder {
    let sampling = Sampling {
        clock,
        frequency_hz: 499,
        kernel: Kernel::With,
        stacks: Stacks { chain: true, copy_bytes: 512 },
        inherit: Inherit::Children,
        start: Start::Later,
        wakeup_bytes: 1,
    };
    let event = if clock == Clock::Switches { Event::Switches } else { Event::CpuClock };
    let options = Options { event, frequency_hz: 499, min: Duration::from_nanos(100), ..Options::default() };
    let away = (clock == Clock::Switches).then(|| Away::new(options.min));
    Recorder {
        target: Target::Process(PID),
        asked_hz: 499,
        options,
        session: Session::without_events(sampling),
        watched: Watched::new(away),
        queue: Vec::new(),
        hung_up: HashSet::new(),
        next_look_ns: u64::MAX,
        is_thread_gone: false,
    }
}

/// What a recorder makes of these bytes.
fn replayed(clock: Clock, bytes: Bytes, end_ns: u64) -> Profile {
    let mut recorder = recorder(clock);
    recorder.enqueue(Rc::new(bytes.0));
    recorder.collect(u64::MAX);
    recorder.watched.end(end_ns);
    let mut profile = recorder.head();
    profile.started_unix_s = 0;
    recorder.finish(&mut profile, Symbols::of_kernel(KALLSYMS));
    profile
}

fn begun(bytes: &mut Bytes, start: u64) {
    bytes.comm((PID, PID), 10, b"server\0\0", true);
    bytes.mmap(PID, 20, (start, 0x1000, 0x1000), &format!("{FOLDER}program.elf"));
    bytes.mmap(PID, 21, (0x7000_0000, 0x1000, 0), "/no/such/library.so");
    bytes.mmap(PID, 22, (0x7100_0000, 0x1000, 0), "//anon");
    bytes.task(7, (PID, PID + 1), PID, 30);
    bytes.comm((PID, PID + 1), 31, b"worker\0\0", false);
}

#[test]
fn recorded_samples_fold_as_they_ever_did() {
    let (start, users) = recorded();
    let mut bytes = Bytes(Vec::new());
    begun(&mut bytes, start);
    let kernel: [&[u64]; 3] = [
        &[],
        &[0xffff_ffff_8100_0310, 0xffff_ffff_8100_0220, 0xffff_ffff_8100_0133],
        &[0xffff_ffff_c000_0010, 0xffff_ffff_8100_0314],
    ];
    for (at, user) in users.iter().enumerate() {
        let (tid, time_ns) = (PID + i32::from(at % 3 == 0), 1_000 + 10 * at as u64);
        bytes.sample((PID, tid), time_ns, 2_004_008, kernel[at % kernel.len()], user);
        // The next one comes from another ring, a little older.
        bytes.sample((PID, PID), time_ns - 5, 1_000, &[], user);
    }
    // A copy that ends too soon, code without a file, code that the process made, and no code at all.
    let short = User { stack: users[0].stack[..8].to_vec(), chain: users[0].chain.clone(), ..users[0] };
    bytes.sample((PID, PID), 2_000, 500, &[], &short);
    for ip in [0x7000_0010, 0x7100_0020, 0x7100_0020, 0x9_0000] {
        let chain = vec![ip, start + 0xd8];
        let user = User { ip, regs: Some([0, 0x100]), chain, ..User::default() };
        bytes.sample((PID, PID), 2_001, 700, &[], &user);
    }
    // A thread of the kernel, and a chain alone.
    bytes.sample((PID, PID), 2_010, 900, &[0xffff_ffff_8100_0450, 0xffff_ffff_8100_0550], &User::default());
    let chain = vec![start + 0x24, start + 0x76, start + 0xd8, start + 0x119];
    bytes.sample((PID, PID), 2_011, 900, &[], &User { chain, ..User::default() });
    // A child with its parent's code, until it begins another program.
    bytes.task(7, (CHILD, CHILD), PID, 3_000);
    bytes.sample((CHILD, CHILD), 3_001, 100, &[], &users[1]);
    bytes.comm((CHILD, CHILD), 3_002, b"child\0\0\0", true);
    bytes.sample((CHILD, CHILD), 3_003, 100, &[], &users[1]);
    bytes.task(4, (CHILD, CHILD), PID, 3_004);
    bytes.record(2, 0, (PID, PID), 3_005, &[1, 30]);
    bytes.add(5, 0, &[3_006, 1, 42, 0, 0, 0, 42]);
    // A record of a kind that nobody knows.
    bytes.record(250, 0, (PID, PID), 3_007, &[1, 2]);
    assert_golden("record.txt", &lines("samples", &replayed(Clock::CpuClock, bytes, 4_000)));
}

/// Fault: `Watched::walk` that takes such a sample for one of a thread of the kernel, whose stack is whole and empty.
#[test]
fn a_copied_stack_of_a_program_of_32_bits_is_its_leaf_and_counts_as_cut() {
    let (start, users) = recorded();
    let mut bytes = Bytes(Vec::new());
    begun(&mut bytes, start);
    let narrow = User { ip: start + 0x24, abi: ABI_32, regs: users[0].regs, ..User::default() };
    bytes.sample((PID, PID), 2_000, 500, &[], &narrow);
    let profile = replayed(Clock::CpuClock, bytes, 4_000);
    assert_eq!((profile.sampling.samples, profile.sampling.truncated), (1, 1));
    let frames = &profile.stacks[0].frames;
    assert!(frames.len() > 1, "the mark of a cut, and where it was: {frames:?}");
    assert!(
        profile.sampling.truncated_by.keys().all(|why| why.contains("32 bits")),
        "{:?}",
        profile.sampling
    );
}

#[test]
fn recorded_switches_fold_as_they_ever_did() {
    let (start, users) = recorded();
    let mut bytes = Bytes(Vec::new());
    begun(&mut bytes, start);
    let waits: [&[u64]; 4] = [
        &[0xffff_ffff_8100_0410, 0xffff_ffff_8100_0510, 0xffff_ffff_8100_0610, 0xffff_ffff_8100_0710],
        &[0xffff_ffff_8100_0410, 0xffff_ffff_8100_0520, 0xffff_ffff_8100_0810, 0xffff_ffff_8100_0230],
        &[0xffff_ffff_8100_0410, 0xffff_ffff_8100_0520],
        &[],
    ];
    let (out, preempted) = (1 << 13, 1 << 13 | 1 << 14);
    for (at, user) in users.iter().enumerate() {
        let thread = (PID, PID + i32::from(at % 3 == 0));
        let time_ns = 10_000 * (1 + at as u64);
        bytes.sample(thread, time_ns, 1, waits[at % waits.len()], user);
        let way = if at % 5 == 0 { preempted } else { out };
        bytes.record(14, way, thread, time_ns + 1, &[]);
        // Every seventh is too short to be kept.
        let away_ns = if at % 7 == 0 { 90 } else { 1_000 + 100 * (at as u64 % 3) };
        bytes.record(14, 0, thread, time_ns + 1 + away_ns, &[]);
    }
    bytes.record(14, 0, (PID, PID + 2), 5_000, &[]);
    bytes.task(4, (PID, PID + 2), PID, 6_000);
    assert_golden("switches.txt", &lines("switches", &replayed(Clock::Switches, bytes, 300_000)));
}
