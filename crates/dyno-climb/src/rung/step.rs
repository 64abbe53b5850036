//! What the files of this folder are made of: a step of the built-in ladder, and words for its usual parts.
//!
//! A dial stands in the file of the first rung that moves it.

use dyno_measure::series::Metric;

use crate::dial::{Dial, How, Value};
use crate::plan::Rung;
use crate::proof::{Bound, Proof};

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

/// A rung, with its dial where no rung before it moves the same.
pub(super) struct Step {
    pub(super) dial: Option<Dial>,
    pub(super) rung: Rung,
}

impl Step {
    /// The first rung of a dial.
    ///
    /// # Panics
    /// When the rung does not move this dial away from where it starts.
    pub(super) fn first(dial: Dial, rung: Rung) -> Self {
        assert!(dial.name == rung.dial, "{} moves {}, not {}", rung.id, rung.dial, dial.name);
        let to = dial.position(&rung.to);
        assert!(to.is_some_and(|to| to != dial.start), "{} leads {} nowhere", rung.id, dial.name);
        Self { dial: Some(dial), rung }
    }

    /// A rung that moves on a dial of a rung before it.
    pub(super) fn further(rung: Rung) -> Self {
        Self { dial: None, rung }
    }
}

/// A dial that is a flag of the same name; the first value is the start.
pub(super) fn flag(name: &str, values: &[&str]) -> Dial {
    let value = |value: &&str| Value {
        name: (*value).to_owned(),
        words: vec![format!("--{name}"), (*value).to_owned()],
        text: String::new(),
    };
    Dial { name: name.to_owned(), how: How::Arg, values: values.iter().map(value).collect(), start: 0 }
}

/// A rung with the usual metric and load; its file fills in the rest.
pub(super) fn rung(id: &str, dial: &str, to: &str, proofs: Vec<Proof>) -> Rung {
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
pub(super) fn calls(names: &[&str], per_request: Bound) -> Proof {
    Proof::Syscalls { names: names.iter().map(|name| (*name).to_owned()).collect(), per_request }
}

/// A counter of the server, per request.
pub(super) fn counter(name: &str, per_request: Bound) -> Proof {
    Proof::Counter { name: name.to_owned(), per_request }
}

/// Every call that can carry a reply or a log line.
pub(super) const WRITING: [&str; 4] = ["write", "writev", "sendto", "sendmsg"];
/// Every call that can take a request.
pub(super) const READING: [&str; 3] = ["read", "recvfrom", "recvmsg"];
