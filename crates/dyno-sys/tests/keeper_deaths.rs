//! Dyno, the keeper and a warden killed at every moment: nothing of theirs may be left, and settings are back.
//!
//! The runner is a subreaper: after each test it waits until it has no descendant at all.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Scratch, as_dyno_killed, is_alive, launch, nothing_is_left, until};
use dyno_sys::child::{self, Exit, Wait};
use dyno_sys::keeper::{Keeper, KeeperError, Undo};
use dyno_sys::signal::{Signal, kill};
use dyno_sys::{Pid, clock, proc};
use std::fs;
use std::process::ExitCode;

const SECOND_NS: u64 = 1_000_000_000;
/// Two daemons, a child and the program itself, all deaf to SIGTERM.
const STUBBORN: &str = "trap '' TERM; for n in 1 2; do (setsid env -i sh -c 'echo $$ >>pids; exec sleep 60' &); done; \
                        sleep 60 & echo $! >>pids; echo $$ >>pids; wait";
const STUBBORN_PIDS: usize = 4;

fn main() -> ExitCode {
    common::run(&[
        ("dyno_killed_after_any_step_leaves_nothing", dyno_killed_after_any_step_leaves_nothing),
        ("dyno_killed_at_any_moment_leaves_nothing", dyno_killed_at_any_moment_leaves_nothing),
        ("a_keeper_killed_at_any_moment_leaves_nothing", a_keeper_killed_at_any_moment_leaves_nothing),
        (
            "dyno_killed_while_it_stops_a_launch_does_not_wait_for_grace",
            dyno_killed_while_it_stops_a_launch_does_not_wait_for_grace,
        ),
        (
            "a_keeper_killed_while_a_launch_is_stopped_ends_the_grace",
            a_keeper_killed_while_a_launch_is_stopped_ends_the_grace,
        ),
        (
            "a_child_of_dynos_that_holds_the_channel_does_not_matter",
            a_child_of_dynos_that_holds_the_channel_does_not_matter,
        ),
        ("settings_are_put_back_in_reverse_order", settings_are_put_back_in_reverse_order),
        ("a_folder_goes_when_dyno_is_killed", a_folder_goes_when_dyno_is_killed),
        ("a_folder_stays_when_a_setting_is_not_back", a_folder_stays_when_a_setting_is_not_back),
        ("a_lock_lasts_until_the_keeper_has_ended", a_lock_lasts_until_the_keeper_has_ended),
        (
            "a_killed_keeper_takes_everything_along_and_is_told",
            a_killed_keeper_takes_everything_along_and_is_told,
        ),
        (
            "a_killed_warden_takes_its_launch_along_and_no_other",
            a_killed_warden_takes_its_launch_along_and_no_other,
        ),
        ("dyno_dropped_in_order_leaves_nothing", dyno_dropped_in_order_leaves_nothing),
    ])
}

/// Dyno's day, step by step; the last steps are left out when `steps` is small.
fn day(scratch: &Scratch, steps: usize) {
    let mut left = steps;
    let mut next = || {
        left = left.saturating_sub(1);
        left == 0
    };
    if next() {
        return;
    }
    let keeper = Keeper::start().unwrap();
    // Never dropped: this dyno is killed.
    let keeper = std::mem::ManuallyDrop::new(keeper);
    if next() {
        return;
    }
    let token = keeper.undo_on_death(&[Undo::write(scratch.path("knob"), b"old")]).unwrap();
    fs::write(scratch.path("knob"), "new").unwrap();
    if next() {
        return;
    }
    let held = keeper.hold(&scratch.sh(STUBBORN)).unwrap();
    if next() {
        return;
    }
    let pid = keeper.release(held).unwrap();
    if next() {
        return;
    }
    scratch.pids("pids", STUBBORN_PIDS);
    let held = keeper.hold(&scratch.sh("exec sleep 60")).unwrap();
    if next() {
        return;
    }
    keeper.stop(pid, SECOND_NS / 100).unwrap();
    if next() {
        return;
    }
    keeper.release(held).unwrap();
    if next() {
        return;
    }
    fs::write(scratch.path("knob"), "old").unwrap();
    keeper.forget(token).unwrap();
}
const STEPS: usize = 9;

fn dyno_killed_after_any_step_leaves_nothing() {
    for steps in 1..=STEPS {
        let scratch = Scratch::new();
        fs::write(scratch.path("knob"), "old").unwrap();
        as_dyno_killed(|| day(&scratch, steps));
        nothing_is_left();
        assert_eq!(scratch.text("knob"), "old", "after {steps} steps");
    }
}

/// Moments from 0 to 40 ms, which is about how long a day takes; each time the same ones (xorshift64).
fn moments(rounds: usize) -> impl Iterator<Item = u64> {
    let seed = 0x0dd5_eed5_u64;
    println!("seed {seed}");
    let mut state = seed;
    let next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % 40_000_000
    };
    std::iter::repeat_with(next).take(rounds)
}

fn dyno_killed_at_any_moment_leaves_nothing() {
    for (round, moment_ns) in moments(40).enumerate() {
        let scratch = Scratch::new();
        fs::write(scratch.path("knob"), "old").unwrap();
        let dyno = child::fork(|| {
            day(&scratch, usize::MAX);
            clock::sleep_ns(60 * SECOND_NS);
            0
        });
        clock::sleep_ns(moment_ns);
        kill(dyno.unwrap(), Signal::Kill).unwrap();
        nothing_is_left();
        assert_eq!(scratch.text("knob"), "old", "round {round}, killed after {moment_ns} ns");
    }
}

/// Settings are not looked at here: dyno lives and puts them back itself.
fn a_keeper_killed_at_any_moment_leaves_nothing() {
    for moment_ns in moments(40) {
        let scratch = Scratch::new();
        let dyno = child::fork(|| {
            // It panics as soon as it learns that the keeper is gone, or goes on to the end of its day.
            std::panic::set_hook(Box::new(|_| {}));
            let keeper = Keeper::start().unwrap();
            fs::write(scratch.path("keeper"), format!("{}\n", keeper.pid())).unwrap();
            for _ in 0..10 {
                let pid = launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
                keeper.stop(pid, 1_000_000).unwrap();
            }
            0
        });
        let keeper = scratch.pids("keeper", 1)[0];
        clock::sleep_ns(moment_ns);
        // It may be gone by then, with all of dyno.
        let _ = kill(keeper, Signal::Kill);
        child::wait(dyno.unwrap(), Wait::Block).unwrap();
        nothing_is_left();
    }
}

fn dyno_killed_while_it_stops_a_launch_does_not_wait_for_grace() {
    let scratch = Scratch::new();
    let dyno = child::fork(|| {
        let keeper = Keeper::start().unwrap();
        let pid = launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
        scratch.pids("pids", STUBBORN_PIDS);
        fs::write(scratch.path("stopping"), "").unwrap();
        // Longer than the runner waits: only the kill can end this in time.
        let _ = keeper.stop(pid, 600 * SECOND_NS);
        0
    });
    until("dyno is stopping", || scratch.path("stopping").exists());
    kill(dyno.unwrap(), Signal::Kill).unwrap();
    nothing_is_left();
}

fn a_keeper_killed_while_a_launch_is_stopped_ends_the_grace() {
    let scratch = Scratch::new();
    let dyno = child::fork(|| {
        let keeper = Keeper::start().unwrap();
        let pid = launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
        scratch.pids("pids", STUBBORN_PIDS);
        fs::write(scratch.path("keeper"), format!("{}\n", keeper.pid())).unwrap();
        // Longer than the runner waits.
        i32::from(!matches!(keeper.stop(pid, 600 * SECOND_NS), Err(KeeperError::Gone)))
    });
    let dyno = dyno.unwrap();
    kill(scratch.pids("keeper", 1)[0], Signal::Kill).unwrap();
    let mut exit = None;
    until("dyno learns it", || {
        exit = child::wait(dyno, Wait::NoHang).unwrap();
        exit.is_some()
    });
    assert_eq!(exit, Some(Exit::Code(0)));
}

fn a_child_of_dynos_that_holds_the_channel_does_not_matter() {
    let scratch = Scratch::new();
    as_dyno_killed(|| {
        let keeper = std::mem::ManuallyDrop::new(Keeper::start().unwrap());
        launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
        scratch.pids("pids", STUBBORN_PIDS);
        // It has copies of all of dyno's descriptors and lives on.
        let holder = child::fork(|| {
            clock::sleep_ns(60 * SECOND_NS);
            0
        });
        fs::write(scratch.path("holder"), format!("{}\n", holder.unwrap())).unwrap();
    });
    let pids = scratch.pids("pids", STUBBORN_PIDS);
    until("the launch is gone", || !pids.iter().any(|&pid| is_alive(pid)));
    let holder = scratch.pids("holder", 1)[0];
    assert!(is_alive(holder), "who was not launched is left alone");
    kill(holder, Signal::Kill).unwrap();
}

fn settings_are_put_back_in_reverse_order() {
    let scratch = Scratch::new();
    fs::write(scratch.path("knob"), "3").unwrap();
    as_dyno_killed(|| {
        let keeper = std::mem::ManuallyDrop::new(Keeper::start().unwrap());
        // The first one holds the value from before everything.
        for old in [b"1", b"2"] {
            let _token = keeper.undo_on_death(&[Undo::write(scratch.path("knob"), old)]).unwrap();
        }
    });
    nothing_is_left();
    assert_eq!(scratch.text("knob"), "1");
}

/// Dyno is killed after it told the keeper of a setting at `knob` and of a folder; the folder.
fn killed_with_a_folder(scratch: &Scratch, knob: &str) -> std::path::PathBuf {
    let folder = scratch.path("folder");
    fs::create_dir_all(folder.join("server-1")).unwrap();
    as_dyno_killed(|| {
        let keeper = std::mem::ManuallyDrop::new(Keeper::start().unwrap());
        keeper.remove_at_end(&folder).unwrap();
        let _token = keeper.undo_on_death(&[Undo::write(scratch.path(knob), b"old")]).unwrap();
    });
    nothing_is_left();
    folder
}

fn a_folder_goes_when_dyno_is_killed() {
    let scratch = Scratch::new();
    fs::write(scratch.path("knob"), "new").unwrap();
    assert!(!killed_with_a_folder(&scratch, "knob").exists());
    assert_eq!(scratch.text("knob"), "old");
}

fn a_folder_stays_when_a_setting_is_not_back() {
    let scratch = Scratch::new();
    assert!(killed_with_a_folder(&scratch, "missing").exists());
}

fn a_lock_lasts_until_the_keeper_has_ended() {
    let scratch = Scratch::new();
    let open = || fs::File::create(scratch.path("lock")).unwrap();
    let (told, other) = (scratch.path("told"), open());
    let dyno = child::fork(|| {
        let lock = open();
        lock.try_lock().unwrap();
        let keeper = Keeper::start_with(&[std::os::fd::AsFd::as_fd(&lock)]).unwrap();
        drop(lock);
        fs::write(&told, "").unwrap();
        clock::sleep_ns(60 * SECOND_NS);
        drop(keeper);
        0
    });
    until("the keeper lives", || told.exists());
    assert!(other.try_lock().is_err(), "dyno has closed it, the keeper has not");
    kill(dyno.unwrap(), Signal::Kill).unwrap();
    nothing_is_left();
    other.try_lock().unwrap();
}

fn a_killed_keeper_takes_everything_along_and_is_told() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let pid = launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
    let held = keeper.hold(&scratch.sh("true")).unwrap();
    let pids = scratch.pids("pids", STUBBORN_PIDS);
    kill(keeper.pid(), Signal::Kill).unwrap();
    until("the launch is gone", || !pids.iter().any(|&pid| is_alive(pid)));
    assert!(matches!(keeper.hold(&scratch.sh("true")), Err(KeeperError::Gone)));
    assert!(matches!(keeper.stop(pid, SECOND_NS), Err(KeeperError::Gone)));
    assert!(matches!(keeper.release(held), Err(KeeperError::Gone)));
    assert!(matches!(keeper.undo_on_death(&[Undo::write(scratch.path("x"), b"1")]), Err(KeeperError::Gone)));
    assert!(keeper.exits().contains(&(pid, Exit::Signal(libc::SIGKILL))));
    assert!(matches!(keeper.close(), Err(KeeperError::Gone)));
}

fn a_killed_warden_takes_its_launch_along_and_no_other() {
    let (scratch, keeper) = (Scratch::new(), Keeper::start().unwrap());
    let pid = launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
    let other = launch(&keeper, &scratch.sh("exec sleep 60")).unwrap();
    let pids = scratch.pids("pids", STUBBORN_PIDS);
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let warden: Pid = proc::parse_stat(&stat).unwrap().parent;
    assert_eq!(fs::read_to_string(format!("/proc/{warden}/comm")).unwrap(), "dyno-warden\n");
    kill(warden, Signal::Kill).unwrap();
    until("the launch is gone", || !pids.iter().any(|&pid| is_alive(pid)));
    assert_eq!(common::next_exit(&keeper), (pid, Exit::Signal(libc::SIGKILL)));
    keeper.stop(pid, 0).unwrap();
    assert!(is_alive(other));
    keeper.stop(other, SECOND_NS).unwrap();
    assert!(!is_alive(other));
}

fn dyno_dropped_in_order_leaves_nothing() {
    let scratch = Scratch::new();
    let keeper = Keeper::start().unwrap();
    launch(&keeper, &scratch.sh(STUBBORN)).unwrap();
    let pids = scratch.pids("pids", STUBBORN_PIDS);
    let keeper_pid = keeper.pid();
    drop(keeper);
    assert!(!is_alive(keeper_pid) && !pids.into_iter().any(is_alive), "dropping waits for the end");
}
