//! The first window of a diagnosis: while it passes and counters count, goroutines and connections are looked at.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_profile::goroutines::{self, Goroutines, is_mutex};
use dyno_record::observation;
use dyno_sys::clock::mono_ns;
use dyno_sys::{Pid, proc};

use super::queues::Queues;
use super::sending;

/// Between looks: some hundred in a window of seconds, each of some hundred microseconds.
const LOOK: Duration = Duration::from_millis(25);

/// Between two looks at the clock and the stop flag.
const GLANCE: Duration = Duration::from_millis(10);

/// What was looked at.
pub(super) struct Looked {
    /// How long was looked: on a full machine looks come late, and what lies between was not seen.
    pub(super) seen_s: f64,
    /// None where it is no Go program; why, where its goroutines cannot be seen.
    pub(super) goroutines: Result<Option<observation::Goroutines>, &'static str>,
    /// CPU time of Go programs meanwhile, where there are such.
    pub(super) go_ran_ns: u64,
    pub(super) connections: sending::Connected,
    /// Why the limits of its unix listeners' queues are not known, where it has such and they are not.
    pub(super) unlimited: Option<&'static str>,
}

/// What is looked at, found out before the window begins: to look through a large program takes its own time.
pub(super) struct Before {
    goroutines: Result<Option<Goroutines>, &'static str>,
    /// All processes of the target that run one.
    go: Vec<Pid>,
    queues: Queues,
}

impl Before {
    pub(super) fn of(pid: Pid) -> Before {
        let goroutines = goroutines::below(pid).map_or(Ok(None), Goroutines::of);
        Before { goroutines, go: goroutines::all_below(pid), queues: Queues::of(pid) }
    }
}

/// Lets the time pass, looking. `peers` hold the other ends of the connections.
pub(super) fn watch(
    pid: Pid,
    (before, peers): (Before, &[Pid]),
    time: Duration,
    stop: &AtomicBool,
) -> Looked {
    let Before { mut goroutines, go, queues } = before;
    let ran_ns = || go.iter().filter_map(|pid| proc::run_ns(*pid).ok()).sum::<u64>();
    let go_ran_ns = ran_ns();
    let mut connections = sending::Watch::of(pid, peers, queues);
    let end_ns = mono_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    let (mut seen_ns, mut last_ns) = (0, mono_ns());
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
        seen_ns += covered(mono_ns() - std::mem::replace(&mut last_ns, mono_ns()));
    }
    Looked {
        seen_s: seen_ns as f64 / 1e9,
        goroutines: goroutines.and_then(finished),
        go_ran_ns: ran_ns().saturating_sub(go_ran_ns),
        unlimited: connections.unlimited(),
        connections: connections.finish(),
    }
}

/// Of the time from one look to the next, what they stand for: looks that come at half the pace still do.
fn covered(apart_ns: u64) -> u64 {
    apart_ns.min(2 * u64::try_from(LOOK.as_nanos()).unwrap_or(u64::MAX / 2))
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
        places: seen.places.into_iter().map(place).collect(),
        busy_looks: seen.busy_looks,
    }))
}

fn place(seen: dyno_profile::goroutines::Place) -> observation::Place {
    observation::Place { state: seen.state, stack: seen.stack, many: seen.many }
}

/// Sleeps as long as asked, or until `stop` is set.
pub(super) fn rest(time: Duration, stop: &AtomicBool) {
    let end_ns = mono_ns() + u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 2);
    while mono_ns() < end_ns && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(GLANCE.min(time));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: all of the time counts, however far apart the looks are.
    #[test]
    fn looks_stand_for_the_time_around_them_and_not_for_a_gap() {
        assert_eq!([25, 35, 50, 400].map(|ms: u64| covered(ms * 1_000_000) / 1_000_000), [25, 35, 50, 50]);
    }
}
