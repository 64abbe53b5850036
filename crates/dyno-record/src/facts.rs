//! The facts of a host: everything an audit judges, as it was read, once.
//!
//! `dyno audit facts --json` writes them; its field names are an interface (docs/records.md). The audit reads them and nothing
//! else, so that facts from another machine, or made up, are judged alike. Values are raw: what the kernel said, in its units.

mod machine;
mod measured;
mod network;
mod server;

pub use machine::{
    Audit, AuditRule, BpfProgram, Cache, Cpus, Frequency, Idle, IdleState, Interrupt, Kernel, Memory,
    Neighbour, Node, Pressure, Reader, Security, Swap, TimeShares, Tracing, Watchers,
};
pub use measured::{Figure, Filters, Locality, Measured, Packets, Watched};
pub use network::{
    Chain, Conntrack, Device, Listener, Netfilter, Network, Qdisc, QueueSetting, Rule, Softnet, Tap, Within,
};
pub use server::{
    Arrivals, Cgroup, EpollPolling, Group, Holder, Scheduled, Server, ServerListener, SocketOptions, Threads,
};

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::fact::{Fact, Gap, Unread};

/// Name and number of this record's shape.
pub const FACTS_SCHEMA: &str = "dyno.facts/1";

/// All that was read of a host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Facts {
    /// [`FACTS_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// When it was read, seconds since 1970 (UTC).
    pub taken_unix_s: u64,
    /// How long reading took.
    pub took_s: f64,
    /// Who read it.
    pub reader: Reader,
    /// The kernel.
    pub kernel: Kernel,
    /// Its processors.
    pub cpus: Cpus,
    /// What stands before system calls and packets for safety's sake.
    pub security: Security,
    /// Who watches.
    pub watchers: Watchers,
    /// Memory.
    pub memory: Memory,
    /// The network.
    pub network: Network,
    /// Packet filters.
    pub netfilter: Netfilter,
    /// Settings under `/proc/sys`, by name, as they read.
    pub sysctls: BTreeMap<String, Fact<String>>,
    /// Who else used the CPUs while the facts were read.
    pub neighbours: Fact<Vec<Neighbour>>,
    /// The server that was named, if one was.
    pub server: Option<Server>,
    /// What was measured, where that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Lists that were longer than what is read of them.
    pub cut: Vec<String>,
    /// Parts that a file did not hold: what stands in their place here says nothing.
    #[serde(skip)]
    pub missing: Vec<String>,
}

impl Facts {
    /// A setting under `/proc/sys` as it reads.
    ///
    /// # Errors
    /// When it was not read.
    pub fn sysctl(&self, name: &str) -> Result<&str, Gap> {
        match self.sysctls.get(name) {
            Some(fact) => fact.known().map(String::as_str),
            None => Err(Gap::Unread(Unread {
                what: name.into(),
                why: "these facts do not hold it".into(),
                ..Unread::default()
            })),
        }
    }

    /// The same as the number that it begins with.
    ///
    /// # Errors
    /// When it was not read, or is no number.
    pub fn sysctl_number(&self, name: &str) -> Result<i64, Gap> {
        let text = self.sysctl(name)?;
        let number = text.split_whitespace().next().and_then(|word| word.parse().ok());
        number.ok_or_else(|| {
            Gap::Unread(Unread {
                what: name.into(),
                why: format!("it reads {text:?}, which is no number"),
                ..Unread::default()
            })
        })
    }

    /// How many processors there are.
    ///
    /// # Errors
    /// When these facts do not say.
    pub fn cpu_count(&self) -> Result<u32, Gap> {
        counted("cpus.count", self.cpus.count)
    }

    /// How much memory there is, bytes.
    ///
    /// # Errors
    /// When these facts do not say.
    pub fn memory_bytes(&self) -> Result<u64, Gap> {
        counted("memory.total_bytes", self.memory.total_bytes)
    }

    /// Reads a record.
    ///
    /// # Errors
    /// When it is none, or of another version.
    pub fn from_json(text: &str) -> Result<Facts, FactsError> {
        let facts: Facts = serde_json::from_str(text)?;
        match facts.schema.as_str() {
            FACTS_SCHEMA => Ok(Facts { missing: missing(&serde_json::from_str(text)?), ..facts }),
            other => Err(FactsError::Schema { found: other.to_owned() }),
        }
    }
}

/// A number of which no machine has none.
fn counted<N: Default + PartialEq>(what: &str, number: N) -> Result<N, Gap> {
    match number == N::default() {
        false => Ok(number),
        true => Err(Gap::Unread(Unread {
            what: what.into(),
            why: "these facts do not hold it".into(),
            ..Unread::default()
        })),
    }
}

/// What `dyno audit facts` writes of each host and this text does not hold: whole parts, or fields of one.
fn missing(text: &Value) -> Vec<String> {
    let whole = serde_json::to_value(Facts::default()).unwrap_or_default();
    // What is no object is about the record, or is there only where it was asked for.
    let parts = whole.as_object().into_iter().flatten().filter(|(_, part)| part.is_object());
    let mut all = Vec::new();
    for (name, part) in parts {
        match (text.get(name), part.as_object()) {
            (None, _) => all.push(name.clone()),
            (Some(held), Some(fields)) if !fields.is_empty() && !fields.contains_key("unread") => {
                let gone = fields.keys().filter(|field| held.get(field).is_none());
                all.extend(gone.map(|field| format!("{name}.{field}")));
            }
            // Settings have the names that the kernel has: none at all is a part that is not there.
            (Some(Value::Object(held)), _) if held.is_empty() => all.push(name.clone()),
            _ => {}
        }
    }
    all
}

/// Why a text is no record of facts.
#[derive(Debug, thiserror::Error)]
pub enum FactsError {
    /// It says that it is something else.
    #[error("it says {found:?} of itself, not {FACTS_SCHEMA}")]
    Schema {
        /// What it says.
        found: String,
    },
    /// It is damaged.
    #[error("it is not shaped like facts")]
    Shape(#[from] serde_json::Error),
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn facts_are_read_back_as_they_were_written() {
        let facts = Facts {
            schema: FACTS_SCHEMA.into(),
            sysctls: [("net.core.somaxconn".to_owned(), Fact::Value("4096".to_owned()))].into(),
            server: Some(Server { pid: 7, ..Server::default() }),
            ..Facts::default()
        };
        let text = serde_json::to_string(&facts).unwrap();
        assert_eq!(Facts::from_json(&text).unwrap(), facts);
        assert_eq!(facts.sysctl_number("net.core.somaxconn"), Ok(4_096));
        assert!(facts.sysctl("net.core.busy_poll").is_err());
    }

    /// Planted fault: what a file does not hold reads as none of it.
    #[test]
    fn what_a_file_does_not_hold_is_known_to_be_missing() {
        let whole = serde_json::to_value(Facts { schema: FACTS_SCHEMA.into(), ..Facts::default() }).unwrap();
        let missing = |text: &Value| Facts::from_json(&text.to_string()).unwrap().missing;
        assert_eq!(missing(&whole), ["sysctls"], "settings without names are none");
        let mut cut = whole.clone();
        cut["sysctls"]["net.core.somaxconn"] = serde_json::json!({ "value": "1" });
        cut.as_object_mut().unwrap().remove("network");
        cut["cpus"].as_object_mut().unwrap().remove("count");
        assert_eq!(missing(&cut), ["cpus.count", "network"]);
        let nearly_empty = Facts::from_json(r#"{"schema":"dyno.facts/1"}"#).unwrap();
        assert!(nearly_empty.missing.len() == 10 && nearly_empty.cpu_count().is_err());
    }

    #[test]
    fn another_record_is_refused_by_its_name() {
        assert!(matches!(Facts::from_json(r#"{"schema":"dyno.climb/2"}"#), Err(FactsError::Schema { .. })));
        assert!(matches!(Facts::from_json("7"), Err(FactsError::Shape(_))));
    }
}
