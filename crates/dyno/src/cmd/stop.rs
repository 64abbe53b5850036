//! Ctrl-C, for verbs that load or watch: the first one asks them to end with what they have, the second says that this is
//! being done, the third ends the process.

use crate::out;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};

use dyno_sys::clock::mono_ns;
use dyno_sys::signal::{Signal, SignalFd};
use dyno_sys::socket;

use super::exit;
use dyno_lab::Failure;

/// How long the watcher sleeps at most; it has nothing to do but wait.
const WATCH_NS: u64 = 3_600_000_000_000;

/// A key that bounces, or an impatient finger, shall not cost what was measured: putting names to it takes a second.
const ASKED_BEFORE_GIVING_UP: u32 = 2;

/// Set by the first SIGINT or SIGTERM; libraries take it as an argument.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Whether the user asked for the end.
pub(super) fn asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// How a verb ends that did what it could.
pub(super) fn exit_code() -> ExitCode {
    if asked() { ExitCode::from(exit::INTERRUPTED) } else { exit::DONE }
}

/// Listens from now on. Before any other thread, so that all of them leave the signals to the descriptor.
pub(super) fn listen() -> Result<(), Failure> {
    let cannot = |error| Failure::error("cannot receive signals").because(&error);
    let signals = SignalFd::new(&[Signal::Int, Signal::Term]).map_err(cannot)?;
    let mut count = 0;
    let watch = move || loop {
        // An error of the wait comes again at once or never; the signal is looked for in either case.
        let _ = socket::wait_readable(&signals, mono_ns() + WATCH_NS);
        if signals.next().is_some() {
            count += 1;
            heard(count);
        }
    };
    // It ends with the process.
    std::thread::Builder::new().name("dyno-signals".to_owned()).spawn(watch).map_err(cannot)?;
    Ok(())
}

fn heard(count: u32) {
    STOP.store(true, Ordering::Relaxed);
    if count > ASKED_BEFORE_GIVING_UP {
        std::process::exit(i32::from(exit::INTERRUPTED));
    }
    if count == ASKED_BEFORE_GIVING_UP {
        out::say("ending, with what there is; Ctrl-C once more gives it up\n");
    }
}
