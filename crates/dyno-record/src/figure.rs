//! What a record comes to as named figures with intervals, whatever the record: a sheet.
//!
//! Comparing, gating and exporting read sheets and know no record. Names are an interface (docs/records.md); `sheet` makes
//! them.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::plan_text::PlanText;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A ratio of two measurements of one machine.
    Ratio,
    /// A change in percent of a measurement of the same machine.
    Percent,
    /// Microseconds.
    Us,
    /// Events per second.
    PerSecond,
    /// Events.
    Count,
    /// A part of a whole, in percent.
    Share,
}

impl Unit {
    /// Whether the machine's speed stands in it.
    #[must_use]
    pub fn is_absolute(self) -> bool {
        matches!(self, Unit::Us | Unit::PerSecond)
    }

    /// Its name in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Unit::Ratio => "a ratio",
            Unit::Percent => "a change in percent",
            Unit::Us => "a time",
            Unit::PerSecond => "a rate",
            Unit::Count => "a count",
            Unit::Share => "a share in percent",
        }
    }
}

/// Which direction is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More of it.
    Higher,
    /// Less of it.
    Lower,
    /// It is said, and not judged.
    Neither,
}

/// A figure.
#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    /// Its name, as conditions and exports have it: `total`, `p99`, `rung.one-send`.
    pub name: String,
    /// What it is, in words.
    pub what: String,
    /// What it counts.
    pub unit: Unit,
    /// What the figure of this name counts in a record by itself: of two records it is a change in percent.
    pub alone: Unit,
    /// Which direction is good.
    pub better: Better,
    /// None where it was not measured.
    pub value: Option<f64>,
    /// Both ends of its interval, where it has one.
    pub interval: Option<[f64; 2]>,
    /// The verdict that stands beside it in the record.
    pub word: String,
    /// Why there is no value, or what it is a figure of: two figures of another kind are not compared.
    pub basis: String,
    /// Names of a plan that it is a figure of: where one is another text, the figure is another one.
    pub of: Vec<PlanText>,
    /// Whether a comparison of two records ends with its answer.
    pub decides: Decides,
    /// Of a guard: of how many it counts some.
    pub among: Option<u64>,
}

/// What a figure is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decides {
    /// A comparison's verdict is this figure's.
    Verdict,
    /// A surely larger share of it is worse, whatever decides: an answer that is wrong is none.
    Guard,
    /// Any of it where the other side has none is worse too: it does not happen by chance.
    StrictGuard,
    /// It stands beside it.
    Nothing,
}

impl Decides {
    /// Whether more of it is worse, whatever decides.
    #[must_use]
    pub fn is_guard(self) -> bool {
        matches!(self, Decides::Guard | Decides::StrictGuard)
    }
}

impl Figure {
    /// A figure without interval and verdict.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        what: impl Into<String>,
        (unit, better): (Unit, Better),
        value: Option<f64>,
    ) -> Self {
        Self {
            name: name.into(),
            what: what.into(),
            unit,
            alone: unit,
            better,
            value: value.filter(|value| value.is_finite()),
            interval: None,
            word: String::new(),
            basis: String::new(),
            of: Vec::new(),
            decides: Decides::Nothing,
            among: None,
        }
    }

    /// With an interval; one without ends is none.
    #[must_use]
    pub fn within(self, interval: Option<[f64; 2]>) -> Self {
        let interval = interval.filter(|ends| ends.iter().all(|end| end.is_finite()));
        Self { interval, ..self }
    }

    /// With a verdict.
    #[must_use]
    pub fn word(self, word: impl Into<String>) -> Self {
        Self { word: word.into(), ..self }
    }

    /// With what it is a figure of.
    #[must_use]
    pub fn basis(self, basis: impl Into<String>) -> Self {
        Self { basis: basis.into(), ..self }
    }

    /// With the names that it is a figure of.
    #[must_use]
    pub fn of(self, of: Vec<PlanText>) -> Self {
        Self { of, ..self }
    }

    /// The one that decides.
    #[must_use]
    pub fn deciding(self) -> Self {
        Self { decides: Decides::Verdict, ..self }
    }

    /// The same as a guard, which counts some of so many.
    #[must_use]
    pub fn guarding(self, decides: Decides, among: u64) -> Self {
        Self { decides, among: Some(among), ..self }
    }
}

/// What a difference of a condition forbids to conclude.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Forbids {
    /// Nothing: it may be what was changed on purpose.
    Nothing,
    /// Naming a cause: it may be this.
    Cause,
    /// Comparing times and rates, and naming a cause.
    Absolute,
    /// Comparing at all.
    All,
}

/// Something under which a record was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// What.
    pub what: &'static str,
    /// How it was.
    pub value: String,
    /// What it forbids where it differs.
    pub forbids: Forbids,
}

impl Condition {
    /// One.
    #[must_use]
    pub fn new(what: &'static str, value: impl Into<String>, forbids: Forbids) -> Self {
        Self { what, value: value.into(), forbids }
    }
}

/// How runs are held apart from others of their kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Starts {
    /// Its intervals hold what starts of a server differ by.
    #[default]
    Seen,
    /// One start of a server: what others would give was not seen.
    One,
}

/// A record's figures, and under what they were made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sheet {
    /// The kind, as the schema has it: `climb`.
    pub kind: &'static str,
    /// The record's schema.
    pub schema: String,
    /// Version of the program that wrote it.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long it took.
    pub duration_s: f64,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// Under what it was made.
    pub conditions: Vec<Condition>,
    /// What the names of its plan stood for, where it has one and says so.
    pub texts: Vec<PlanText>,
    /// The figures.
    pub figures: Vec<Figure>,
    /// Whether its intervals hold what starts differ by.
    pub starts: Starts,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
}

impl Sheet {
    /// The figure of this name.
    #[must_use]
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.name == name)
    }
}

/// The machine as conditions: what is built in forbids to compare times, what is set forbids to name a cause.
#[must_use]
pub fn of_machine(machine: &Machine) -> Vec<Condition> {
    let virtual_machine = if machine.virtual_machine { "yes" } else { "no" };
    let rights = if machine.root { "root" } else { "an ordinary user" };
    let gib = (machine.memory_bytes as f64 / f64::from(1 << 30)).round();
    let all = [
        ("processor", machine.model.clone(), Forbids::Absolute),
        ("CPUs", machine.cpus.to_string(), Forbids::Absolute),
        ("virtual machine", virtual_machine.to_owned(), Forbids::Absolute),
        ("memory", format!("{gib:.0} GiB"), Forbids::Absolute),
        ("server's CPUs", machine.server_cpus.clone(), Forbids::Absolute),
        ("load's CPUs", machine.load_cpus.clone(), Forbids::Absolute),
        ("kernel", machine.kernel.clone(), Forbids::Cause),
        ("clock source", machine.clocksource.clone(), Forbids::Cause),
        ("congestion control", machine.congestion.clone(), Forbids::Cause),
        ("rights", rights.to_owned(), Forbids::Cause),
    ];
    all.into_iter().map(|(what, value, forbids)| Condition::new(what, value, forbids)).collect()
}
