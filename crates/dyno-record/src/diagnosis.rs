//! The published record of a diagnosis: the four metrics on a card, what is wrong, and what was not looked at.
//!
//! `dyno diagnose --json` writes it; its field names are an interface (docs/records.md).

use dyno_measure::usl::Usl;
use serde::{Deserialize, Serialize};

use crate::finding::{Finding, RuledOut};
use crate::machine::Machine;
use crate::observation::{NotLookedAt, Part};
use crate::profile::Target;

/// One diagnosis.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// [`crate::finding::DIAGNOSIS_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long the target was watched.
    pub duration_s: f64,
    /// How long each part of it was really seen; none in records of before.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// The command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// What was watched.
    pub target: Target,
    /// The program in which most of its CPU time is, where that is not the process that was named: what a shell runs, say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub works_in: Option<String>,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// The four metrics.
    pub card: Card,
    /// What is wrong, the deepest cause first.
    pub findings: Vec<Finding>,
    /// What was seen and is no fault by itself.
    pub notes: Vec<Finding>,
    /// What is not wrong, and the figure that says so.
    pub ruled_out: Vec<RuledOut>,
    /// Of it, what came nearest to being found.
    #[serde(default)]
    pub nearest: Vec<RuledOut>,
    /// What could not be looked at.
    pub not_looked_at: Vec<NotLookedAt>,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
}

impl Diagnosis {
    /// Whether the server of this program was watched: its rungs are advice for no other one.
    #[must_use]
    pub fn is_of_dyno_serve(&self) -> bool {
        let program = self.target.argv.first().map(|path| path.rsplit('/').next().unwrap_or_default());
        program == Some("dyno") && self.target.argv[1..].iter().any(|word| word == "serve")
    }
}

/// Throughput, latency, what a request costs, and how it scales.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Right answers per second, where a load ran.
    pub requests_per_second: Option<f64>,
    /// Latency of an answer under that load, µs: median and 99 %.
    pub latency_us: Option<Tail>,
    /// CPUs that the target kept busy.
    pub cpus_used: f64,
    /// CPUs that it may use.
    pub cpus: u32,
    /// What the figures of `resources` are divided by: `request` or `second`.
    pub per: String,
    /// What was used.
    pub resources: Resources,
    /// How throughput grows with load, where it was swept.
    pub scalability: Option<Usl>,
}

/// A latency's middle and end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Tail {
    /// Median.
    pub p50: f64,
    /// 99 %.
    pub p99: f64,
}

/// What was used per request, or per second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Resources {
    /// CPU time, µs.
    pub cpu_us: f64,
    /// System calls, where they were counted.
    pub system_calls: Option<f64>,
    /// Context switches, voluntary and not.
    pub switches: f64,
    /// Page faults.
    pub faults: f64,
    /// Bytes of requests and answers, where a load ran.
    pub wire_bytes: Option<f64>,
    /// Connections opened, where a load ran.
    pub connections: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: every program is advised to turn our own server's dials.
    #[test]
    fn only_dyno_serve_is_dyno_serve() {
        let of = |line: &str| {
            let argv = line.split_whitespace().map(str::to_owned).collect();
            let target = Target { argv, ..Target::default() };
            Diagnosis { target, ..Diagnosis::default() }.is_of_dyno_serve()
        };
        assert!(of("/usr/bin/dyno serve public") && of("dyno serve") && of("dyno --color never serve"));
        assert!(!of("nginx: worker process") && !of("dyno load http://h/") && !of("serve dyno") && !of(""));
    }
}
