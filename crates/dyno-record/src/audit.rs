//! The published record of an audit: what of a host costs speed, what that would bring, what it would cost, and what was not
//! looked at.
//!
//! `dyno audit --json` writes it; its field names are an interface (docs/records.md). Ids of checks never change their meaning.

use serde::{Deserialize, Serialize};

use crate::change::ChangeSpec;
use crate::facts::Measured;
use crate::machine::Machine;

/// Name and number of this record's shape.
pub const AUDIT_SCHEMA: &str = "dyno.audit/1";

/// What a host is wanted for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Goal {
    /// Requests per second when it is busy.
    #[default]
    Throughput,
    /// Time of one answer when it is not.
    Latency,
    /// Connections held at once.
    Connections,
    /// Bytes of memory.
    Memory,
}

impl Goal {
    /// Every goal.
    pub const ALL: [Goal; 4] = [Goal::Throughput, Goal::Latency, Goal::Connections, Goal::Memory];

    /// Its name in records and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Goal::Throughput => "throughput",
            Goal::Latency => "latency",
            Goal::Connections => "connections",
            Goal::Memory => "memory",
        }
    }
}

/// What a change would risk, the gravest first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// It lowers a defence, and counts from the next boot on.
    Reboot,
    /// It lowers a defence.
    Security,
    /// Data can be lost.
    Durability,
    /// CPU is burnt while nothing happens.
    CpuBurn,
    /// Something else may stop working as it is used to.
    Operational,
    /// Nothing is known.
    #[default]
    None,
}

impl Risk {
    /// Its name in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Risk::Reboot => "security, reboot",
            Risk::Security => "security",
            Risk::Durability => "durability",
            Risk::CpuBurn => "CPU burn",
            Risk::Operational => "operational",
            Risk::None => "none",
        }
    }
}

/// Where the figure of a gain comes from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// On this machine, by this audit.
    MeasuredHere,
    /// On another machine.
    MeasuredElsewhere,
    /// Nobody's figure is known.
    #[default]
    NoneFound,
}

impl Source {
    /// Its name in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Source::MeasuredHere => "measured here",
            Source::MeasuredElsewhere => "measured elsewhere",
            Source::NoneFound => "none found",
        }
    }
}

/// How much a finding costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Less than 3 %, or nobody knows.
    #[default]
    Low,
    /// 3 to 10 %.
    Medium,
    /// 10 % or more, or packets and connections are lost.
    High,
}

impl Level {
    /// Its name in words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Level::Low => "low",
            Level::Medium => "medium",
            Level::High => "high",
        }
    }
}

/// What a change would bring.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Gain {
    /// Percent of the goal's figure, the least and the most that is known.
    pub percent: Option<[f64; 2]>,
    /// Where the figure comes from.
    pub source: Source,
    /// What was measured, and on what.
    pub of: String,
}

/// The four prices of a change, in words; an empty one is none.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Prices {
    /// What it opens.
    pub security: String,
    /// What can be lost.
    pub durability: String,
    /// CPU that is burnt while nothing happens.
    pub cpu: String,
    /// What will work differently.
    pub operability: String,
}

/// Something that costs speed.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditFinding {
    /// The check, as `nf.linear`.
    pub id: String,
    /// What it is about, where there are several: a device, a table, a process.
    pub object: String,
    /// One sentence for somebody who has never tuned a kernel.
    pub title: String,
    /// The raw value.
    pub found: String,
    /// What it should be.
    pub recommended: String,
    /// Goals that it helps.
    pub goals: Vec<Goal>,
    /// How much it costs.
    pub level: Level,
    /// What that would bring.
    pub gain: Gain,
    /// The gravest of what it would risk.
    pub risk: Risk,
    /// What it would cost.
    pub prices: Prices,
    /// Why it costs speed.
    pub why: String,
    /// Commands that show it.
    pub see: Vec<String>,
    /// Commands that change it.
    pub apply: Vec<String>,
    /// Commands that undo that.
    pub revert: Vec<String>,
    /// Why it is done by hand; empty where `dyno tune` carries it out, or where it goes without saying.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub by_hand: String,
    /// The same as changes that `dyno tune` carries out; none where it is done by hand.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<ChangeSpec>,
}

/// A check that found nothing to change.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fine {
    /// The check.
    pub id: String,
    /// The raw value.
    pub found: String,
}

/// A check about something that is not here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotHere {
    /// The check.
    pub id: String,
    /// What is not here.
    pub what: String,
}

/// A check that could not look.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotLooked {
    /// The check.
    pub id: String,
    /// What it asked, and why it got no answer.
    pub why: String,
    /// What would give it one.
    pub needs: String,
}

/// A finding that matters for other goals alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherGoal {
    /// The check.
    pub id: String,
    /// The raw value.
    pub found: String,
    /// Goals that it helps.
    pub goals: Vec<Goal>,
}

/// One audit.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Audit {
    /// [`AUDIT_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// When the facts were read, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long reading them took.
    pub took_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// The machine.
    pub machine: Machine,
    /// What the host is wanted for.
    pub goal: Goal,
    /// The server that was named, as `nginx (4242)`.
    pub server: Option<String>,
    /// What costs speed, the dearest first.
    pub findings: Vec<AuditFinding>,
    /// What matters for other goals alone.
    pub other_goals: Vec<OtherGoal>,
    /// Checks that found nothing to change.
    pub fine: Vec<Fine>,
    /// Checks about what is not here.
    pub not_here: Vec<NotHere>,
    /// Checks that could not look.
    pub not_looked_at: Vec<NotLooked>,
    /// What was measured here (`--measure`), raw.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// What changes how all of it is to be read.
    pub warnings: Vec<String>,
}

impl Audit {
    /// Whether too little could be seen to say that nothing is wrong: more than half of the checks could not look.
    #[must_use]
    pub fn saw_too_little(&self) -> bool {
        2 * self.not_looked_at.len() > self.checks()
    }

    /// How many checks there were.
    #[must_use]
    pub fn checks(&self) -> usize {
        let found = self.findings.iter().map(|finding| &finding.id);
        let other = self.other_goals.iter().map(|finding| &finding.id);
        let ids: std::collections::BTreeSet<&String> = found.chain(other).collect();
        ids.len() + self.fine.len() + self.not_here.len() + self.not_looked_at.len()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_goal_has_one_name_for_records_and_people() {
        for goal in Goal::ALL {
            assert_eq!(serde_json::to_string(&goal).unwrap(), format!("\"{}\"", goal.name()));
        }
    }

    #[test]
    fn a_check_with_several_findings_is_one_check() {
        let finding = AuditFinding { id: "net.rps".into(), ..AuditFinding::default() };
        let audit = Audit {
            findings: vec![finding.clone(), finding],
            fine: vec![Fine { id: "net.rfs".into(), found: "0".into() }],
            ..Audit::default()
        };
        assert_eq!(audit.checks(), 2);
    }
}
