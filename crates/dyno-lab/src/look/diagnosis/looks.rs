//! The first window of a diagnosis: while it passes and counters count, goroutines and connections are looked at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_profile::goroutines::{Goroutines, is_mutex};
use dyno_record::observation::{self, Sending};
use dyno_sys::Pid;
use dyno_sys::clock::mono_ns;

use super::sending;

/// Between looks: some hundred in a window of seconds, each of some hundred microseconds.
const LOOK: Duration = Duration::from_millis(25);

/// Between two looks at the clock and the stop flag.
const GLANCE: Duration = Duration::from_millis(10);

/// What was looked at.
pub(super) struct Looked {
    /// None where it is no Go program; why, where its goroutines cannot be seen.
    pub(super) goroutines: Result<Option<observation::Goroutines>, &'static str>,
    pub(super) sending: Option<Sending>,
}

/// Lets the time pass, looking.
pub(super) fn watch(pid: Pid, time: Duration, stop: &AtomicBool) -> Looked {
    let end_ns = mono_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    let (mut goroutines, mut connections) = (Goroutines::of(pid), sending::Watch::of(pid));
    while !stop.load(Ordering::Relaxed) {
        let left = Duration::from_nanos(end_ns.saturating_sub(mono_ns()));
        if left.is_zero() {
            break;
        }
        if let Ok(Some(goroutines)) = &mut goroutines {
            goroutines.look();
        }
        connections.look();
        rest(LOOK.min(left), stop);
    }
    Looked { goroutines: goroutines.and_then(finished), sending: connections.finish() }
}

fn finished(goroutines: Option<Goroutines>) -> Result<Option<observation::Goroutines>, &'static str> {
    let Some(goroutines) = goroutines else { return Ok(None) };
    let seen = goroutines.finish().ok_or("its run-time keeps them otherwise than is known here")?;
    let at_mutexes = seen.states.iter().filter(|(state, _)| is_mutex(state)).map(|(_, many)| many).sum();
    Ok(Some(observation::Goroutines {
        looks: seen.looks,
        states: seen.states,
        at_mutexes,
        mutexes_in: seen.at_mutexes,
    }))
}

/// Sleeps as long as asked, or until `stop` is set.
pub(super) fn rest(time: Duration, stop: &AtomicBool) {
    let end_ns = mono_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    while mono_ns() < end_ns && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE.min(time));
    }
}
