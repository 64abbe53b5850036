//! The plan: the only input of a climb.
//!
//! A launch, a load, dials and rungs. The built-in plan is made in `rung/`; the user's comes from TOML (`text`). A plan runs
//! commands: trust it like a Makefile. Everything wrong in it is found before anything is started, and named with its place.

mod build;
mod step;
mod syntax;
mod text;

use std::collections::BTreeMap;

use dyno_record::alike;
use dyno_record::plan_text::{PlanText, load_of};
use serde::Deserialize;

use crate::dial::{Dial, How, Setting, Value};
use crate::load::LoadSpec;
use crate::proof::Proof;
use crate::rung::Rung;

pub use step::BuildStep;
pub use syntax::Syntax;

/// Most dials and rungs of a plan: far above any ladder that a night of measuring could climb.
const ENTRIES_MAX: usize = 200;
/// Most connections of a load: the descriptor limit of the generator's process is the real bound, checked when opening.
const CONNECTIONS_MAX: usize = 1_000_000;

/// What to climb.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// Its name, for the report.
    pub name: String,
    /// How the server is started.
    pub launch: Launch,
    /// The load, unless a rung has its own.
    pub load: LoadSpec,
    /// What can be turned.
    pub dials: Vec<Dial>,
    /// What is tried, in order.
    pub rungs: Vec<Rung>,
    /// Most that a server may hold of the memory, bytes: a rung that is surely above it is refused. Without it memory is a
    /// price, which is told.
    pub memory_max_bytes: Option<u64>,
    /// A rung whose share the total also states apart, because it is large and undisputed.
    pub headline: Option<String>,
}

/// How a server is started. `{address}`, `{port}`, `{dir}` and template dials are filled into every text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
    /// Variables added to the environment.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// Files written into `{dir}` before the start: name to text.
    #[serde(default)]
    pub files: BTreeMap<String, String>,
    /// A program run once before the first start (a build), in the plan's folder.
    #[serde(default)]
    pub prepare: Option<Vec<String>>,
    /// How it is built, once for each place where the build dials stand; `{out}` is the folder of the build.
    #[serde(default)]
    pub build: Vec<BuildStep>,
    /// Longest step of a build, ms.
    #[serde(default = "build_ms")]
    pub build_ms: u64,
    /// Load before the first block, ms. A JIT needs seconds, native code 100 ms.
    #[serde(default = "warm_up_ms")]
    pub warm_up_ms: u64,
    /// Longest wait for the first answer, ms.
    #[serde(default = "ready_ms")]
    pub ready_ms: u64,
    /// Whether the server speaks the control protocol on an inherited socket (`{control}` is its descriptor).
    #[serde(default)]
    pub control: bool,
}

fn warm_up_ms() -> u64 {
    100
}

fn ready_ms() -> u64 {
    10_000
}

/// As long as a preparation: an optimised build of a large server takes minutes.
fn build_ms() -> u64 {
    600_000
}

/// Why a plan cannot be climbed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not TOML, an unknown key, or a value of the wrong type.
    #[error("line {}, column {}: {}", .0.line, .0.column, .0.what)]
    Syntax(Box<Syntax>),
    /// Well-formed, and makes no sense.
    #[error("{place}: {what}")]
    Sense {
        /// Which part, e.g. `rung "log-off"`.
        place: String,
        /// What is wrong and what would be right.
        what: String,
        /// The name that was perhaps meant.
        meant: Option<String>,
    },
    /// A rung was named that the plan does not have.
    #[error("the plan has no rung \"{name}\"; its rungs are {}", known.join(", "))]
    UnknownRung {
        /// As given.
        name: String,
        /// Those there are.
        known: Vec<String>,
    },
}

fn sense(place: impl Into<String>, what: impl Into<String>) -> PlanError {
    PlanError::Sense { place: place.into(), what: what.into(), meant: None }
}

/// A name that is none of the known ones.
fn unknown(place: &str, what: String, name: &str, known: &[&str]) -> PlanError {
    let meant = alike::meant(name, known.iter().copied()).map(str::to_owned);
    PlanError::Sense { place: place.to_owned(), what, meant }
}

impl PlanError {
    /// The name that was perhaps meant, where one is wrong.
    #[must_use]
    pub fn meant(&self) -> Option<&str> {
        match self {
            PlanError::Syntax(syntax) => syntax.meant.as_deref(),
            PlanError::Sense { meant, .. } => meant.as_deref(),
            PlanError::UnknownRung { name, known } => alike::meant(name, known.iter().map(String::as_str)),
        }
    }
}

impl Plan {
    /// Finds what makes no sense before anything is started.
    ///
    /// # Errors
    /// The first thing found.
    pub fn check(&self) -> Result<(), PlanError> {
        if self.launch.argv.is_empty() {
            return Err(sense("launch", "argv is empty; it names the program and its arguments"));
        }
        if self.rungs.is_empty() {
            return Err(sense("plan", "there is no [[rung]]: nothing to climb"));
        }
        if self.rungs.len().max(self.dials.len()) > ENTRIES_MAX {
            return Err(sense("plan", format!("more than {ENTRIES_MAX} dials or rungs")));
        }
        let plain = |name: &&String| name.is_empty() || name.contains('/') || *name == "." || *name == "..";
        if let Some(name) = self.launch.files.keys().find(plain) {
            return Err(sense(
                "launch.files",
                format!("\"{name}\" is no plain file name; files go into {{dir}}"),
            ));
        }
        check_load("load", &self.load)?;
        self.check_build()?;
        self.rungs.iter().try_for_each(|rung| self.check_rung(rung))?;
        match &self.headline {
            Some(name) => self.rung(name).map(|_| ()),
            None => Ok(()),
        }
    }

    fn check_rung(&self, rung: &Rung) -> Result<(), PlanError> {
        let place = format!("rung \"{}\"", rung.id);
        let twice = self.rungs.iter().filter(|other| other.id == rung.id).count() > 1;
        if twice {
            return Err(sense(place, "there are two of this name"));
        }
        if rung.proofs.is_empty() {
            return Err(sense(
                place,
                "it has no proof: a change counts only when it can be seen to be in force",
            ));
        }
        if let Some(load) = &rung.load {
            check_load(&place, load)?;
        }
        let of_build = |proof: &Proof| matches!(proof, Proof::Built { .. });
        if self.launch.build.is_empty() && rung.proofs.iter().any(of_build) {
            return Err(sense(place, "a proof \"built\" needs launch.build"));
        }
        let needs = rung.needs.iter().map(|need| (&need.dial, &need.value));
        for (dial, value) in needs.chain([(&rung.dial, &rung.to)]) {
            self.known(&place, dial, value)?;
        }
        Ok(())
    }

    fn known(&self, place: &str, dial: &str, value: &str) -> Result<(), PlanError> {
        let known: Vec<&str> = self.dials.iter().map(|d| d.name.as_str()).collect();
        let found = self.dials.iter().find(|d| d.name == dial);
        let found = found.ok_or_else(|| {
            unknown(place, format!("no dial \"{dial}\"; the dials are {}", known.join(", ")), dial, &known)
        })?;
        let values: Vec<&str> = found.values.iter().map(|v| v.name.as_str()).collect();
        if !values.contains(&value) {
            let what = format!("dial \"{dial}\" has no value \"{value}\", only {}", values.join(", "));
            return Err(unknown(place, what, value, &values));
        }
        Ok(())
    }

    /// The rung of this name.
    ///
    /// # Errors
    /// With the names that there are.
    pub fn rung(&self, name: &str) -> Result<&Rung, PlanError> {
        let known = || self.rungs.iter().map(|rung| rung.id.clone()).collect();
        let found = self.rungs.iter().find(|rung| rung.id == name);
        found.ok_or_else(|| PlanError::UnknownRung { name: name.to_owned(), known: known() })
    }

    /// The dial of this name.
    ///
    /// # Panics
    /// When there is none: [`Plan::check`] has seen every name.
    #[must_use]
    pub fn dial(&self, name: &str) -> &Dial {
        self.dials.iter().find(|dial| dial.name == name).expect("check() has seen every dial's name")
    }

    /// The first dial that only a laboratory has, if there is one.
    #[must_use]
    pub fn lab_dial(&self) -> Option<&Dial> {
        self.dials.iter().find(|dial| matches!(dial.how, How::Lab { .. }))
    }

    /// A text of the launch with an address that only this machine's loopback has, where no text asks for `{address}`.
    #[must_use]
    pub fn loopback_text(&self) -> Option<&str> {
        let texts: Vec<&String> = self.launch_texts().collect();
        if texts.iter().any(|text| text.contains("{address}")) {
            return None;
        }
        let found = texts.into_iter().find(|text| text.contains("127.0.0.1") || text.contains("localhost"));
        found.map(String::as_str)
    }

    /// Every text that a launch may hand over. Words of a build are in what it made.
    fn launch_texts(&self) -> impl Iterator<Item = &String> {
        let launch = &self.launch;
        let values = self.dials.iter().filter(|dial| dial.how != How::Build).flat_map(|dial| &dial.values);
        let dials = values.flat_map(|value| value.words.iter().chain([&value.text]));
        launch.argv.iter().chain(launch.env.values()).chain(launch.files.values()).chain(dials)
    }

    /// Where all dials stand at the start.
    #[must_use]
    pub fn start(&self) -> Setting {
        Setting::start(&self.dials)
    }

    /// What its names stand for, for the record: a name may be another text tomorrow.
    #[must_use]
    pub fn texts(&self) -> Vec<PlanText> {
        let of_dial = |dial: &Dial| {
            let value = |(at, value): (usize, &Value)| PlanText {
                name: format!("{}={}", dial.name, value.name),
                text: value.stands_for(&dial.how),
                start: at == dial.start,
            };
            dial.values.iter().enumerate().map(value).collect::<Vec<_>>()
        };
        let file = |(name, text): (&String, &String)| PlanText {
            name: format!("file {name}"),
            text: text.clone(),
            start: false,
        };
        let own = |rung: &Rung| {
            let load = rung.load.as_ref()?;
            Some(PlanText { name: load_of(&rung.id), text: load.text(), start: false })
        };
        let files = self.launch.files.iter().map(file);
        self.dials.iter().flat_map(of_dial).chain(files).chain(self.rungs.iter().filter_map(own)).collect()
    }

    /// The value that a setting gives a dial.
    ///
    /// # Panics
    /// When the setting is not of this plan.
    #[must_use]
    pub fn value<'p>(&'p self, setting: &Setting, dial: &'p Dial) -> &'p Value {
        let position = dial.position(setting.get(&dial.name)).expect("a setting holds known values only");
        &dial.values[position]
    }
}

fn check_load(place: &str, load: &LoadSpec) -> Result<(), PlanError> {
    if !load.path.starts_with('/') {
        return Err(sense(place, format!("path \"{}\" does not begin with /", load.path)));
    }
    if !(1..=CONNECTIONS_MAX).contains(&load.connections) || !(1..=1_024).contains(&load.pipeline) {
        return Err(sense(place, "connections and pipeline must be at least 1 (and pipeline at most 1024)"));
    }
    Ok(())
}
