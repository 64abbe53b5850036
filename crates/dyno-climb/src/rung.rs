//! Rungs: each moves one dial one step, and says what it claims, on whose word, at what risk, and how to see it.
//!
//! The built-in plan for `dyno serve` is assembled here: one file per rung, and this list. The words are those of the
//! server's flags; a test in the binary feeds each of them to the engine's own parser.

use dyno_measure::series::Metric;

use crate::dial::{Dial, How, Value};
use crate::plan::{Launch, LoadSpec, Plan};
pub use crate::plan::{Needs, Rung};
use crate::proof::{Bound, Proof};

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
mod short_read;
mod spin;
mod workers;

/// What the built-in plan must know of the machine; facts are read once, by the caller.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Surroundings {
    /// The path of this program.
    pub program: String,
    /// CPUs for servers.
    pub server_cpus: usize,
    /// Congestion controls that a process may choose.
    pub congestion_controls: Vec<String>,
    /// Allocators that can be preloaded.
    pub allocators: Vec<String>,
}

/// The built-in ladder of `dyno serve`, from an ordinary first version upwards.
#[must_use]
pub fn built_in(surroundings: &Surroundings) -> Plan {
    let argv = ["{program}", "serve", "--listen", "127.0.0.1:{port}", "--control-fd", "{control}"];
    let mut argv: Vec<String> =
        argv.iter().map(|word| word.replace("{program}", &surroundings.program)).collect();
    argv.extend(["--log-file".into(), "{dir}/access.log".into()]);
    let launch = Launch { argv, warm_up_ms: 100, ready_ms: 10_000, control: true, ..Launch::default() };
    let load = LoadSpec { path: "/json".into(), ..LoadSpec::default() };
    let rungs = vec![
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
    ];
    let name = "dyno serve, from --naive".into();
    Plan { name, launch, load, dials: dials(surroundings), rungs, headline: Some("one-send".into()) }
}

fn dials(surroundings: &Surroundings) -> Vec<Dial> {
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

/// A rung with the usual metric and load; files in `rung/` fill in the rest.
fn step(id: &str, dial: &str, to: &str, proofs: Vec<Proof>) -> Rung {
    Rung {
        id: id.into(),
        dial: dial.into(),
        to: to.into(),
        needs: Vec::new(),
        claim: String::new(),
        source: String::new(),
        risk: String::new(),
        metric: Metric::CpuPerRequest,
        load: None,
        server_cpus: 1,
        impossible: None,
        proofs,
        in_place: false,
    }
}

/// System calls of these names, together, per request.
fn calls(names: &[&str], per_request: Bound) -> Proof {
    Proof::Syscalls { names: names.iter().map(|name| (*name).to_owned()).collect(), per_request }
}

/// A counter of the server, per request.
fn counter(name: &str, per_request: Bound) -> Proof {
    Proof::Counter { name: name.to_owned(), per_request }
}

/// Every call that can carry a reply or a log line.
const WRITING: [&str; 4] = ["write", "writev", "sendto", "sendmsg"];
/// Every call that can take a request.
const READING: [&str; 3] = ["read", "recvfrom", "recvmsg"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_plan_makes_sense_on_small_and_large_machines() {
        for server_cpus in [1, 2, 48] {
            let surroundings =
                Surroundings { program: "dyno".into(), server_cpus, ..Surroundings::default() };
            built_in(&surroundings).check().expect("the built-in plan");
        }
    }

    #[test]
    fn every_rung_says_what_it_claims_on_whose_word_and_at_what_risk() {
        for rung in built_in(&Surroundings { server_cpus: 2, ..Surroundings::default() }).rungs {
            for (what, text) in [("claim", &rung.claim), ("source", &rung.source), ("risk", &rung.risk)] {
                assert!(text.len() >= 4, "{}: {what} is \"{text}\"", rung.id);
            }
        }
    }
}
