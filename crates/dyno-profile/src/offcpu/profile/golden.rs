//! A watch that saw two threads, their waits and wakers, and the record that it ever became.
#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;

use dyno_sys::Tid;
use dyno_sys::bpf::offcpu::Thread;
use dyno_sys::perf::Mmap;
use dyno_sys::trace::call_number;

use super::super::code::Code;
use super::super::objects::{Mappings, Objects};
use super::*;
use crate::golden::{FOLDER, KALLSYMS, assert_golden, lines};
use crate::image::spaces::AddressSpaces;
use crate::stack::names::Names;
use crate::symbol::Symbols;

/// No process of Linux has these numbers: nothing is read of them.
const PID: Pid = Pid::MAX - 10;
const OTHER: Pid = Pid::MAX - 20;

/// Where both processes have the program.
const START: u64 = 0x5555_0000_0000;

/// Addresses of `program.elf`: the leaf within two functions that were folded into it, and its callers.
const AROUND: [u64; 4] = [0x24, 0x75, 0xd7, 0x119];
const DEEP: [u64; 5] = [0x2c, 0x8f, 0xa7, 0xe4, 0x119];

const SCHEDULE: [u64; 2] = [0xffff_ffff_8100_0410, 0xffff_ffff_8100_0520];

fn spaces() -> AddressSpaces {
    let mut spaces = AddressSpaces::new();
    let path = format!("{FOLDER}program.elf");
    for pid in [PID, OTHER] {
        spaces.exec(pid);
        spaces.mmap(&Mmap {
            pid,
            time_ns: 0,
            start: START,
            length: 0x1000,
            offset: 0x1000,
            inode: std::fs::metadata(&path).unwrap().ino(),
            path: path.as_bytes(),
        });
    }
    spaces
}

fn thread(pid: Pid, tid: Tid, ns: u64) -> Thread {
    Thread { tid, pid, running_ns: ns, runnable_ns: ns / 2, waiting_ns: ns / 4, open: Vec::new() }
}

fn wait(tid: Tid, kernel: i32, shape: u64, call: &str, ns: u64) -> Wait {
    Wait {
        tid,
        pid: PID,
        part: Part::Wait,
        shape: Some(shape),
        kernel_stack: Some(kernel),
        system_call: call_number(call),
        object: None,
        waker: None,
        fault: None,
        ns,
        count: 1,
        max_ns: ns,
    }
}

fn waker(id: u64, tid: Tid, name: &str, kernel: i32, shape: u64) -> Waker {
    let (name, kernel_stack, shape) = (name.to_owned(), Some(kernel), Some(shape));
    Waker { id, tid, pid: PID, name, shape, kernel_stack }
}

/// Kernel stacks by number, the leaf first.
fn kernel() -> Vec<(i32, Vec<u64>)> {
    let with = |inner: &[u64]| [&SCHEDULE, inner].concat();
    vec![
        (1, with(&[0xffff_ffff_8100_0610, 0xffff_ffff_8100_0710])),
        // The same functions, in other places of them.
        (2, with(&[0xffff_ffff_8100_0620, 0xffff_ffff_8100_0730])),
        (3, with(&[0xffff_ffff_8100_0810, 0xffff_ffff_8100_0310, 0xffff_ffff_8100_0230])),
        (4, with(&[])),
        (5, vec![0xffff_ffff_8100_0710]),
        // An interrupt that came while a module ran.
        (6, vec![0xffff_ffff_8100_0910, 0xffff_ffff_8100_0a10, 0xffff_ffff_c000_0010]),
    ]
}

fn user() -> Vec<(u64, Pid, Vec<u64>)> {
    let of = |addresses: &[u64]| addresses.iter().map(|address| START + address).collect::<Vec<_>>();
    vec![
        (1, PID, of(&AROUND)),
        (3, PID, of(&DEEP)),
        (5, OTHER, of(&AROUND)),
        (7, PID, vec![START + 0x24, 0x10]),
        (0x5eed_0000_0000_0001, PID, of(&AROUND[2..])),
    ]
}

fn waits() -> Vec<Wait> {
    let part = |part, wait| Wait { part, ..wait };
    vec![
        Wait { waker: Some(21), object: Some(0x7f10), ..wait(1, 1, 1, "futex", 500) },
        Wait { waker: Some(21), object: Some(0x7f10), count: 3, ..wait(1, 2, 1, "futex", 700) },
        Wait { waker: Some(22), object: Some(1_000_001), ..wait(2, 3, 3, "read", 1_200) },
        // As long as others: rows of one weight stand by what they are.
        Wait { waker: Some(23), ..wait(2, 3, 3, "fsync", 1_200) },
        wait(1, 4, 7, "clock_nanosleep", 1_200),
        wait(2, 4, 7, "clock_nanosleep", 1_200),
        Wait { fault: Some(0x1234), ..wait(1, 4, 1, "read", 40) },
        part(Part::Queue, wait(1, 4, 1, "futex", 30)),
        part(Part::Preemption, wait(2, 4, 3, "futex", 20)),
        Wait { pid: OTHER, ..wait(3, 5, 5, "futex", 10) },
        Wait { kernel_stack: None, system_call: None, ..wait(2, 0, 0x5eed_0000_0000_0001, "read", 60) },
        // Nobody knows this thread.
        wait(9, 1, 1, "futex", 10_000),
        Wait { shape: None, kernel_stack: None, system_call: None, ..wait(1, 0, 0, "read", 5) },
    ]
}

fn seen() -> Seen {
    let mut kallsyms = KALLSYMS.to_owned();
    kallsyms
        .push_str("ffffffff81000900 T try_to_wake_up\nffffffff81000a00 T asm_sysvec_apic_timer_interrupt\n");
    let mut code = Code::of(spaces(), Names::new(Symbols::of_kernel(&kallsyms)));
    let user = user().into_iter().map(|(id, pid, all)| (id, code.placed(pid, &all))).collect();
    let raw = |all: Vec<u64>| all.into_iter().map(Raw::Kernel).collect();
    let kernel = kernel().into_iter().map(|(id, all)| (id, raw(all))).collect();
    let span = |tid, state, from_ns, kernel_stack| {
        let system_call = call_number("read");
        Span { tid, pid: PID, state, from_ns, to_ns: from_ns + 50, kernel_stack, system_call }
    };
    let log2_ns = [0, 0, 4, 1, 0, 0].to_vec();
    let call =
        Call { number: call_number("read").unwrap(), count: 5, errors: 1, total_ns: 99, max_ns: 44, log2_ns };
    Seen {
        start_ns: 1_000,
        end_ns: 11_000,
        cpu_ns: 70,
        hook_ns: Some(30),
        cut_short: None,
        code,
        threads: vec![
            (thread(PID, 1, 4_000), "server".to_owned()),
            (thread(PID, 2, 3_000), "worker".to_owned()),
            (thread(OTHER, 3, 100), "child".to_owned()),
        ],
        waits: waits(),
        wakers: vec![
            waker(21, 2, "worker", 6, 3),
            waker(22, 2, "worker", 5, 3),
            waker(23, 0, "swapper/1", 4, 1),
            waker(24, 2, "worker", 5, 3),
        ],
        kernel,
        seeded: HashMap::from([(
            0x5eed_0000_0000_0001,
            ["ep_poll", "do_epoll_wait"].map(|name| Raw::KernelNamed(name.to_owned())).to_vec(),
        )]),
        user,
        short: HashMap::from([(7, Cut::CopyEnded)]),
        spans: vec![
            span(2, State::Blocked, 1_100, Some(1)),
            span(1, State::Running, 1_200, None),
            span(1, State::Runnable, 1_150, None),
            span(9, State::Running, 1_000, None),
            span(1, State::Blocked, 1_300, Some(3)),
        ],
        spans_cut: true,
        calls: vec![call],
        counts: Counts {
            switches: 77,
            lost_waits: 2,
            lost_stacks: 1,
            lost_processes: 4,
            ..Counts::default()
        },
        objects: Objects::new(),
        faults: HashMap::from([(PID, Mappings::default())]),
        stopped: 0,
    }
}

#[test]
fn what_a_watch_saw_folds_as_it_ever_did() {
    let server = Process { pid: PID.cast_unsigned(), name: "server".to_owned(), argv: vec!["a".to_owned()] };
    let about = About { processes: vec![server], started_unix_s: 7 };
    assert_golden("offcpu.txt", &lines("waits", &profile(about, seen())));
}
