//! What of this program works on a machine for a user, and what would get the rest.
//!
//! `dyno doctor --json` writes it; its field names are an interface (docs/records.md).

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Name and number of this record's shape.
pub const DOCTOR_SCHEMA: &str = "dyno.doctor/1";

/// Whether something works.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It does.
    Works,
    /// Some of it does.
    Partly,
    /// It does not.
    #[default]
    Missing,
}

/// Something that verbs need.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Ability {
    /// Its name: `hardware counters`.
    pub name: String,
    /// What it is for: verbs, and what they see by it.
    pub purpose: String,
    /// Whether it works.
    pub state: State,
    /// What was seen: why it does not work, or what does.
    pub why: String,
    /// The command that gets it, where one does.
    pub get: String,
}

/// One screen.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Doctor {
    /// [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The machine.
    pub machine: Machine,
    /// Who asks, as `root` or `user 1000`.
    pub user: String,
    /// Names of the effective capabilities.
    pub capabilities: Vec<String>,
    /// What verbs need.
    pub abilities: Vec<Ability>,
}
