//! The task clock over threads and forked grandchildren. This program launches itself to burn.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Scratch, next_exit};
use dyno_sys::child::{Exit, Wait, fork, wait};
use dyno_sys::clock::thread_cpu_ns;
use dyno_sys::keeper::Keeper;
use dyno_sys::perf::{TaskClock, interrupt_ns};
use std::process::ExitCode;
use std::time::Duration;

/// CPU time that each of three burners burns, by its own clock.
const BURN_NS: u64 = 30_000_000;

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() == Some("burn") {
        return burn_three_ways();
    }
    common::run(&[
        ("threads_and_grandchildren_are_counted", threads_and_grandchildren_are_counted),
        ("a_held_child_burns_nothing", a_held_child_burns_nothing),
        ("a_process_that_is_gone_has_no_clock", a_process_that_is_gone_has_no_clock),
        (
            "an_interrupt_takes_less_than_the_time_between_two",
            an_interrupt_takes_less_than_the_time_between_two,
        ),
    ])
}

/// In a child while there is one thread, then in a thread, then here.
fn burn_three_ways() -> ExitCode {
    let child = fork(|| {
        burn();
        0
    });
    std::thread::spawn(burn).join().unwrap();
    burn();
    assert_eq!(wait(child.unwrap(), Wait::Block).unwrap(), Some(Exit::Code(0)));
    ExitCode::SUCCESS
}

fn burn() {
    let until_ns = thread_cpu_ns() + BURN_NS;
    while thread_cpu_ns() < until_ns {}
}

fn threads_and_grandchildren_are_counted() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let me = std::env::current_exe().unwrap();
    let held = keeper.hold(&scratch.program(&[me.to_str().unwrap(), "burn"])).unwrap();
    let clock = match TaskClock::open(held.pid()) {
        Ok(clock) => clock,
        // kernel.perf_event_paranoid 3, or a sandbox without perf events: then there is nothing to test.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EPERM | libc::ENOSYS)) => {
            return println!("no perf events here: {error}");
        }
        Err(error) => panic!("{error}"),
    };
    let pid = keeper.release(held).unwrap();
    assert_eq!(next_exit(&keeper), (pid, Exit::Code(0)), "{}", scratch.text("output"));
    let counted = clock.read_ns().unwrap();
    // The event's clock and the thread's are not the same; one part in a hundred is far more than their difference.
    assert!(counted >= 3 * BURN_NS * 99 / 100, "{counted} ns counted of at least {}", 3 * BURN_NS);
    assert_eq!(clock.read_ns().unwrap(), counted, "nobody is left to burn");
}

fn a_held_child_burns_nothing() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let held = keeper.hold(&scratch.sh("true")).unwrap();
    common::until("it sleeps", || dyno_sys::proc::all_sleeping(held.pid()));
    if let Ok(clock) = TaskClock::open(held.pid()) {
        assert_eq!(clock.read_ns().unwrap(), 0);
    }
}

fn a_process_that_is_gone_has_no_clock() {
    let errno = TaskClock::open(i32::MAX - 1).unwrap_err().raw_os_error();
    assert!(matches!(errno, Some(libc::ESRCH | libc::EACCES | libc::EPERM | libc::ENOSYS)), "{errno:?}");
}

fn an_interrupt_takes_less_than_the_time_between_two() {
    match interrupt_ns(Duration::from_secs(1)) {
        Ok(found) => {
            let ns = found.expect("a second holds ten samples of whoever looks at the clock");
            assert!((300..200_000).contains(&ns), "{ns} ns");
        }
        Err(error) => {
            let refused = [libc::EACCES, libc::EPERM, libc::ENOSYS];
            assert!(refused.contains(&error.raw_os_error().unwrap()), "{error}");
        }
    }
}
