//! What a rung is, a step of the ladder that holds one, and the words that the files of this folder are written with.
//!
//! A dial stands in the file of the first rung that moves it.

use dyno_measure::series::Metric;

use crate::dial::{Dial, How, Value};
use dyno_record::climb::State;
use dyno_record::lab::{Count, Part};

use crate::load::LoadSpec;
use crate::proof::{Bound, Proof};

/// A step of the ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Rung {
    /// Its name.
    pub id: String,
    /// The dial that it moves.
    pub dial: String,
    /// Where to.
    pub to: String,
    /// Where other dials must stand for it.
    pub needs: Vec<Needs>,
    /// What it is said to bring, and why.
    pub claim: String,
    /// Who says so.
    pub source: String,
    /// What it risks, or gives up.
    pub risk: String,
    /// What is compared.
    pub metric: Metric,
    /// Its own load, where the plan's would not show it.
    pub load: Option<LoadSpec>,
    /// Server CPUs that it needs.
    pub server_cpus: usize,
    /// Why it cannot be had on this machine, if it cannot.
    pub impossible: Option<String>,
    /// How far it can come here at all, where it is impossible.
    pub state: Option<State>,
    /// What it was worth where somebody else measured it; empty where nobody's figure is known.
    pub elsewhere: String,
    /// How to see that it is in force; all must hold.
    pub proofs: Vec<Proof>,
    /// Toggled in one running instance instead of measured between two.
    pub in_place: bool,
    /// Tried by who names it and by nobody else: it gives up what no speed is worth unasked.
    pub only_named: bool,
}

impl Rung {
    /// Whether a climb tries it that was asked for these rungs, or for none in particular.
    #[must_use]
    pub fn is_wanted(&self, only: &[String]) -> bool {
        if only.is_empty() { !self.only_named } else { only.contains(&self.id) }
    }

    /// Whether it is kept for a load of its own only: one that is judged by another measure than CPU per request may pay
    /// in CPU, so the setting on which other rungs are measured goes on without it. (A server that spins burns all the CPU
    /// that the generator leaves it, and CPU per request then measures the generator.)
    #[must_use]
    pub fn own_load_only(&self) -> bool {
        self.metric != Metric::CpuPerRequest && self.load.is_some()
    }
}

/// Another dial's place that a rung depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// The dial.
    pub dial: String,
    /// Its value.
    pub value: String,
}

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
    /// The laboratory's network, where servers are behind one.
    pub network: Option<NetworkHere>,
}

/// What the network's rungs must know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NetworkHere {
    /// The servers' CPUs as a mask in hexadecimal.
    pub server_mask: String,
    /// What was read of the host, for rungs that are told and not tried.
    pub host: HostHere,
}

/// What was read of the host, each in words; empty where nobody looked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostHere {
    /// Measures against weaknesses of the processor that are in force.
    pub mitigations: String,
    /// Whether audit is on, and its rules.
    pub audit: String,
    /// Its rules for system calls.
    pub audit_rules: usize,
    /// `net.core.rps_sock_flow_entries`.
    pub flow_entries: String,
    /// The clock that programs read.
    pub clocksource: String,
}

/// A rung, with its dial where no rung before it moves the same.
pub(crate) struct Step {
    pub(crate) dial: Option<Dial>,
    pub(crate) rung: Rung,
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

/// A dial that is a part of the laboratory: names and texts of its values, the first the start.
pub(super) fn part(part: Part, values: &[(&str, &str)]) -> Dial {
    let value = |(name, text): &(&str, &str)| {
        let fault = part.fault(text);
        assert!(fault.is_none(), "{fault:?}");
        Value { name: (*name).to_owned(), words: Vec::new(), text: (*text).to_owned() }
    };
    let values = values.iter().map(value).collect();
    Dial { name: part.name().to_owned(), how: How::Lab { part }, values, start: 0 }
}

/// A rung of the network: what it costs is paid by whoever's CPU the packet is on, so time per request is compared.
pub(super) fn network_rung(id: &str, part: Part, to: &str, count: Count, per_request: Bound) -> Rung {
    let proof = Proof::Network { count, per_request };
    Rung { metric: Metric::SecondsPerRequest, ..rung(id, part.name(), to, vec![proof]) }
}

/// A rung that is told and not tried: what it would change, how far it can come here, and what was read. Its dial turns nothing.
pub(super) fn told(id: &str, dial: &str, values: [&str; 2], state: Option<State>, why: String) -> Step {
    let value = |name: &str| Value { name: name.to_owned(), words: Vec::new(), text: String::new() };
    let words = state.map_or_else(|| why.clone(), |state| format!("{}: {why}", state.words()));
    // Never read: what is not tried has nothing to prove.
    let proofs = vec![Proof::Command { argv: vec!["/bin/false".into()], expect: "nothing".into() }];
    let rung = Rung { impossible: Some(words), state, ..rung(id, dial, values[1], proofs) };
    Step::first(
        Dial {
            name: dial.to_owned(),
            how: How::Told,
            values: values.iter().map(|name| value(name)).collect(),
            start: 0,
        },
        rung,
    )
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
        state: None,
        elsewhere: String::new(),
        proofs,
        in_place: false,
        only_named: false,
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
