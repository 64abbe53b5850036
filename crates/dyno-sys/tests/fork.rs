//! Forking, waiting, shared memory and inherited descriptors, in a process of one thread.
#![allow(clippy::unwrap_used)]

mod common;

use common::until;
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::shm::{Counters, Pushed, Ring};
use dyno_sys::signal::{Signal, SignalFd, kill};
use dyno_sys::socket::{Io, pipe, read, wait_readable, write};
use dyno_sys::{clock, proc};
use std::process::ExitCode;
use std::sync::atomic::Ordering::Relaxed;

fn main() -> ExitCode {
    common::run(&[
        ("a_child_ends_with_its_answer", a_child_ends_with_its_answer),
        ("a_child_that_panics_ends_with_101", a_child_that_panics_ends_with_101),
        ("any_child_is_waited_for_once", any_child_is_waited_for_once),
        ("a_child_dies_with_its_parent", a_child_dies_with_its_parent),
        ("a_child_whose_parent_is_gone_is_told", a_child_whose_parent_is_gone_is_told),
        ("counters_are_shared_with_children", counters_are_shared_with_children),
        ("a_ring_outlives_its_producer", a_ring_outlives_its_producer),
        ("the_end_of_a_child_arrives_as_a_signal", the_end_of_a_child_arrives_as_a_signal),
        ("a_child_can_undo_blocked_and_ignored_signals", a_child_can_undo_blocked_and_ignored_signals),
    ])
}

fn a_child_ends_with_its_answer() {
    let pid = child::fork(|| 42).unwrap();
    assert_eq!(child::wait(pid, Wait::Block).unwrap(), Some(Exit::Code(42)));
}

fn a_child_that_panics_ends_with_101() {
    let pid = child::fork(|| {
        std::panic::set_hook(Box::new(|_| {}));
        panic!("on purpose")
    })
    .unwrap();
    assert_eq!(child::wait(pid, Wait::Block).unwrap(), Some(Exit::Code(101)));
}

fn any_child_is_waited_for_once() {
    assert_eq!(child::wait_any(), None);
    let pid = child::fork(|| 3).unwrap();
    let mut seen = None;
    until("the child ends", || {
        seen = child::wait_any();
        seen.is_some()
    });
    assert_eq!((seen, child::wait_any()), (Some((pid, Exit::Code(3))), None));
}

fn a_child_dies_with_its_parent() {
    let (reader, writer) = pipe().unwrap();
    let parent = child::fork(|| {
        let grandchild = child::fork(|| {
            child::die_with_parent().unwrap();
            write(&writer, b"ready");
            loop {
                clock::sleep_ns(1_000_000_000);
            }
        });
        grandchild.unwrap();
        clock::sleep_ns(60_000_000_000);
        0
    });
    wait_readable(&reader, clock::mono_ns() + 5_000_000_000).unwrap();
    // The runner sees that the grandchild is gone too.
    kill(parent.unwrap(), Signal::Kill).unwrap();
}

fn a_child_whose_parent_is_gone_is_told() {
    let (reader, writer) = pipe().unwrap();
    let parent = child::fork(|| {
        let me = child::this();
        let grandchild = child::fork(|| {
            until("its parent is gone", || child::parent() != me);
            let refused = child::die_with_parent().is_err();
            write(&writer, if refused { b"y" } else { b"n" });
            0
        });
        i32::from(grandchild.is_err())
    });
    assert_eq!(child::wait(parent.unwrap(), Wait::Block).unwrap(), Some(Exit::Code(0)));
    wait_readable(&reader, clock::mono_ns() + 5_000_000_000).unwrap();
    let mut answer = [0];
    assert_eq!((read(&reader, &mut answer), &answer), (Io::Done(1), b"y"));
}

fn counters_are_shared_with_children() {
    let counters = Counters::new(2).unwrap();
    let add = || {
        for _ in 0..1_000 {
            counters.get(1).fetch_add(1, Relaxed);
        }
        0
    };
    let pids = [child::fork(add).unwrap(), child::fork(add).unwrap()];
    for pid in pids {
        child::wait(pid, Wait::Block).unwrap();
    }
    assert_eq!((counters.get(0).load(Relaxed), counters.get(1).load(Relaxed)), (0, 2_000));
}

fn a_ring_outlives_its_producer() {
    let ring = Ring::new(64).unwrap();
    let pid = child::fork(|| {
        assert_eq!(ring.push(b"last words"), Pushed::Whole);
        ring.push(&[0; 64]);
        kill(child::this(), Signal::Kill).unwrap();
        0
    });
    child::wait(pid.unwrap(), Wait::Block).unwrap();
    let mut out = Vec::new();
    ring.release(ring.peek(&mut out, usize::MAX));
    assert_eq!((out.as_slice(), ring.dropped()), (&b"last words"[..], 1));
}

fn the_end_of_a_child_arrives_as_a_signal() {
    let signals = SignalFd::new(&[Signal::Child]).unwrap();
    while signals.next().is_some() {}
    let pid = child::fork(|| 0).unwrap();
    wait_readable(&signals, clock::mono_ns() + 5_000_000_000).unwrap();
    assert_eq!(signals.next(), Some(Signal::Child));
    child::wait(pid, Wait::Block).unwrap();
}

fn a_child_can_undo_blocked_and_ignored_signals() {
    let pid = child::fork(|| {
        let _blocked = SignalFd::new(&[Signal::Term, Signal::Usr1]).unwrap();
        dyno_sys::signal::ignore_sigpipe();
        dyno_sys::signal::unblock_all_in_child();
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let none = |name| proc::parse_status_field(&status, name) == Some("0000000000000000");
        i32::from(!none("SigBlk") || !none("SigIgn"))
    });
    assert_eq!(child::wait(pid.unwrap(), Wait::Block).unwrap(), Some(Exit::Code(0)));
}
