//! What `dyno tune` shows and keeps: a plan of changes with their prices, and a snapshot of everything that it could touch.
//!
//! `dyno tune plan --json` and `dyno tune snapshot` write them; their field names are an interface (docs/records.md).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::audit::{Gain, Level, Prices, Risk};
use crate::change::{ChangeSpec, What};

/// Name and number of the plan's shape.
pub const PLAN_SCHEMA: &str = "dyno.plan/1";
/// Name and number of the snapshot's shape.
pub const SNAPSHOT_SCHEMA: &str = "dyno.snapshot/1";
/// Name and number of the shape of two snapshots compared.
pub const SETTINGS_SCHEMA: &str = "dyno.settings/1";
/// Name and number of the shape of what the journal holds.
pub const CHANGES_SCHEMA: &str = "dyno.changes/1";

/// One setting that would be changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The setting, where it is to stand, and why.
    #[serde(flatten)]
    pub spec: ChangeSpec,
    /// What it reads now.
    pub was: String,
    /// The command that does the same.
    pub set: String,
    /// The command that undoes it.
    pub undo: String,
    /// How it could cut the way in to this machine; such a change asks to be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cuts: Option<String>,
}

/// What is done for one finding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Step {
    /// The finding, as `net.rps`.
    pub id: String,
    /// What it is about, where there are several.
    pub object: String,
    /// What costs speed.
    pub title: String,
    /// How much it costs.
    pub level: Level,
    /// What mending it would bring.
    pub gain: Gain,
    /// The gravest of what it would risk.
    pub risk: Risk,
    /// What it would cost.
    pub prices: Prices,
    /// The changes; none where all of them stand already.
    pub changes: Vec<Planned>,
    /// Why it cannot be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cannot: Option<String>,
}

/// A finding that is mended by hand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByHand {
    /// The finding.
    pub id: String,
    /// What it is about.
    pub object: String,
    /// What costs speed.
    pub title: String,
    /// Why dyno does not do it; empty where it goes without saying.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Commands that change it.
    pub apply: Vec<String>,
    /// Commands that undo that.
    pub revert: Vec<String>,
}

/// What would be done.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Tells this plan from every other: settings, values now and values then.
    pub hash: String,
    /// What is done, finding by finding.
    pub steps: Vec<Step>,
    /// What is not.
    pub by_hand: Vec<ByHand>,
    /// Ids that were asked for and have nothing to do.
    pub nothing_to_do: Vec<String>,
}

impl Step {
    /// Whether it lowers a defence: then it is accepted by name.
    #[must_use]
    pub fn lowers_defence(&self) -> bool {
        matches!(self.risk, Risk::Security | Risk::Reboot)
    }
}

impl Plan {
    /// The hash of what is in it (FNV-1a of the changes): a plan that was shown and has changed since has another.
    #[must_use]
    pub fn hash_of(steps: &[Step]) -> String {
        let parts = steps.iter().flat_map(|step| step.changes.iter().map(move |change| (&step.id, change)));
        let text: Vec<_> =
            parts.map(|(id, change)| (id, &change.spec.what, &change.was, &change.spec.wanted)).collect();
        let bytes = serde_json::to_vec(&text).expect("a plan is plain data");
        let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        format!("{hash:016x}")
    }
}

/// One setting of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reading {
    /// What it reads, raw.
    Value(String),
    /// Why it cannot be read.
    Unread(String),
}

/// Everything that tune could touch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// [`SNAPSHOT_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The boot.
    pub boot: String,
    /// When it was taken, seconds since 1970 (UTC).
    pub taken_unix_s: u64,
    /// The settings by name.
    pub settings: BTreeMap<String, Reading>,
}

/// Settings that move by themselves, and are not compared: a path, or what it begins or ends with.
pub const MOVING: [&str; 14] = [
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-",
    "/proc/sys/fs/quota/",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/kernel/ns_last_pid",
    "/proc/sys/kernel/random/",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/perf_event_max_sample_rate",
    "/proc/sys/kernel/perf_cpu_time_max_percent",
    "/proc/sys/net/netfilter/nf_conntrack_count",
    "/proc/sys/vm/stat_",
    "/proc/sys/net/ipv4/tcp_fastopen_key",
    "/proc/sys/kernel/keys/",
];

/// What differs between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// [`SETTINGS_SCHEMA`].
    pub schema: String,
    /// Settings that differ: before and after; `None` is not there.
    pub changed: BTreeMap<String, (Option<Reading>, Option<Reading>)>,
    /// Settings that differ and move by themselves.
    pub moving: Vec<String>,
}

/// What the journal holds: changes that are not undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Changes {
    /// [`CHANGES_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The changes, the oldest first.
    pub changes: Vec<Held>,
}

/// A change that is not undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// Its number in the journal.
    pub number: u64,
    /// What kept it; none where nothing did.
    pub by: Option<String>,
    /// The setting.
    pub what: What,
    /// What it was before.
    pub was: String,
    /// How it stands now, in words.
    pub state: String,
    /// What it reads now, where that is another thing.
    pub reads: String,
    /// Whether it does what it is for; missing where it does not stand any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<Effect>,
}

/// Whether a change that reads back does what it is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Force {
    /// Something shows that it does.
    InForce,
    /// Something shows that it does not.
    NotInForce,
    /// Nothing shows it either way.
    #[default]
    NotShown,
}

/// The proof of effect of one change: what is written and read back is not yet in force.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Whether.
    pub force: Force,
    /// What shows it, or why nothing does.
    pub why: String,
    /// What would show it; empty where something does.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub shown_by: String,
}

impl Effect {
    /// This shows that it is in force.
    #[must_use]
    pub fn in_force(why: impl Into<String>) -> Effect {
        Effect { force: Force::InForce, why: why.into(), shown_by: String::new() }
    }

    /// This shows that it is not.
    #[must_use]
    pub fn not_in_force(why: impl Into<String>) -> Effect {
        Effect { force: Force::NotInForce, why: why.into(), shown_by: String::new() }
    }

    /// Nothing shows it; something else would.
    #[must_use]
    pub fn not_shown(why: impl Into<String>, shown_by: impl Into<String>) -> Effect {
        Effect { force: Force::NotShown, why: why.into(), shown_by: shown_by.into() }
    }
}

impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Effect { force, why, shown_by } = self;
        match force {
            Force::InForce => write!(f, "in force: {why}"),
            Force::NotInForce => write!(f, "written, not in force: {why}"),
            Force::NotShown => {
                write!(
                    f,
                    "written and read back; in force: not shown: {why} (what would show it: {shown_by})"
                )
            }
        }
    }
}

/// Compares.
#[must_use]
pub fn difference(before: &Snapshot, after: &Snapshot) -> Difference {
    let mut difference = Difference { schema: SETTINGS_SCHEMA.into(), ..Difference::default() };
    let names: std::collections::BTreeSet<&String> =
        before.settings.keys().chain(after.settings.keys()).collect();
    for name in names {
        let (a, b) = (before.settings.get(name), after.settings.get(name));
        if a == b {
            continue;
        }
        match MOVING.iter().any(|moving| name.starts_with(moving)) {
            true => difference.moving.push(name.clone()),
            false => {
                difference.changed.insert(name.clone(), (a.cloned(), b.cloned()));
            }
        }
    }
    difference
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(was: &str, wanted: &str) -> Step {
        let spec = ChangeSpec { what: What::File("/a".into()), wanted: wanted.into(), why: "w".into() };
        let planned = Planned { spec, was: was.into(), set: String::new(), undo: String::new(), cuts: None };
        Step { id: "net.idle".into(), changes: vec![planned], ..Step::default() }
    }

    /// Planted fault: the value of now is left out of the hash; then a plan is applied that nobody saw.
    #[test]
    fn a_plan_whose_values_differ_has_another_hash() {
        let hash = |was, wanted| Plan::hash_of(&[step(was, wanted)]);
        assert_eq!(hash("0", "1"), hash("0", "1"));
        assert!(hash("0", "1") != hash("2", "1") && hash("0", "1") != hash("0", "2"));
    }

    #[test]
    fn what_moves_by_itself_is_listed_apart() {
        let snapshot = |pairs: &[(&str, &str)]| Snapshot {
            settings: pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Reading::Value((*value).to_owned())))
                .collect(),
            ..Snapshot::default()
        };
        let before = snapshot(&[("/proc/sys/fs/file-nr", "1"), ("/a", "1"), ("/gone", "x")]);
        let difference = difference(&before, &snapshot(&[("/proc/sys/fs/file-nr", "2"), ("/a", "2")]));
        assert_eq!(difference.moving, ["/proc/sys/fs/file-nr"]);
        assert_eq!(difference.changed.keys().map(String::as_str).collect::<Vec<_>>(), ["/a", "/gone"]);
        assert_eq!(difference.changed["/gone"].1, None);
    }
}
