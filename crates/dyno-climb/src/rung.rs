//! Rungs: each moves one dial one step, and says what it claims, on whose word, at what risk, and how to see it.
//!
//! The ladder of `dyno serve` is listed here, one file per rung. The words are those of the
//! server's flags; a test in the binary feeds each of them to the engine's own parser.

use crate::dial::{Dial, How, Value};

mod allocator;
mod batch;
mod borrowed_headers;
mod congestion;
mod cpu_steering;
mod date_cache;
mod edge;
mod log_off;
mod log_ring;
mod one_send;
mod outbox;
mod pin;
mod recv_send;
mod reuseport;
mod shape;
mod short_read;
mod spin;
mod workers;

pub use shape::{Needs, Rung, Surroundings};

/// The rungs of `dyno serve`, in the order in which they are climbed.
pub(crate) fn ladder(surroundings: &Surroundings) -> Vec<Rung> {
    vec![
        one_send::rung(),
        log_ring::rung(),
        log_off::rung(),
        recv_send::rung(),
        short_read::rung(),
        outbox::rung(),
        borrowed_headers::rung(),
        date_cache::rung(),
        edge::rung(),
        batch::rung(),
        congestion::rung(surroundings),
        allocator::rung(surroundings),
        spin::rung(),
        workers::rung(surroundings),
        reuseport::rung(),
        pin::rung(),
        cpu_steering::rung(),
    ]
}

/// What can be turned of it.
pub(crate) fn dials(surroundings: &Surroundings) -> Vec<Dial> {
    let workers = surroundings.server_cpus.max(2).to_string();
    vec![
        flag("send", &["split", "joined"]),
        flag("log", &["sync", "ring", "off"]),
        flag("calls", &["read-write", "recv-send"]),
        flag("read", &["drain", "once"]),
        flag("body", &["generic", "outbox"]),
        flag("headers", &["owned", "borrowed"]),
        flag("date", &["reply", "second"]),
        flag("trigger", &["level", "edge"]),
        flag("replies", &["single", "batch"]),
        flag("congestion", &["default", "reno"]),
        allocator::dial(surroundings),
        spin::dial(),
        flag("workers", &["1", &workers]),
        flag("reuseport", &["off", "hash", "cpu"]),
        flag("pin", &["none", "cpu"]),
    ]
}

/// A dial that is a flag of the same name; the first value is the start.
fn flag(name: &str, values: &[&str]) -> Dial {
    let value = |value: &&str| Value {
        name: (*value).to_owned(),
        words: vec![format!("--{name}"), (*value).to_owned()],
        text: String::new(),
    };
    Dial { name: name.to_owned(), how: How::Arg, values: values.iter().map(value).collect(), start: 0 }
}
