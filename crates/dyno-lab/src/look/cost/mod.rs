//! Costs that can be measured safely: what an audit says with "measured here".
//!
//! `dyno audit --measure` calls [`measure`] after the facts are read. It works in children, threads and namespaces of its own,
//! which end with it however it ends; no setting is changed. A server that is named is looked at for a moment: its filters are
//! read, and its system calls watched, which makes it slower while that lasts.

mod calls;
mod figure;
mod locality;
mod packets;
mod rules;
mod server;

use std::time::{Duration, Instant};

use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{Facts, Measured};
use dyno_sys::Pid;

/// The longest that all of it should take: what is begun is ended, nothing more is begun after that.
pub const TAKES_MAX: Duration = Duration::from_secs(15);

/// Measures what the facts make worth measuring. The process must have one thread: children are forked from it.
#[must_use]
pub fn measure(facts: &Facts) -> Measured {
    let begun = Instant::now();
    let pids: Vec<Pid> = facts.server.iter().flat_map(|server| server.pids.iter().copied()).collect();
    // Children first, while there is one thread.
    let call_ns = calls::bare();
    let filters = calls::filters(&pids);
    let mut measured = Measured {
        call_ns,
        filters,
        request_us: packets::over_loopback(),
        locality: locality::locality(&pids),
        server: server::watched(facts, &pids),
        ..Measured::default()
    };
    measured.rules = in_time(begun, || packets::through_rules(facts));
    measured.tap = in_time(begun, packets::past_a_tap);
    measured.took_s = begun.elapsed().as_secs_f64();
    measured
}

/// What the last of the measurements takes, on cables of its own.
const LAST: Duration = Duration::from_secs(5);

fn in_time<T>(begun: Instant, measure: impl FnOnce() -> Fact<T>) -> Fact<T> {
    if begun.elapsed() + LAST < TAKES_MAX {
        return measure();
    }
    Fact::Unread(Unread {
        why: "no time was left for it".into(),
        needs: "a quieter machine".into(),
        ..Unread::default()
    })
}
