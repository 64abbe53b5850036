//! The plan: the only input of a climb.
//!
//! A launch, a load, dials and rungs. The built-in plan is made in `rung/`; the user's comes from TOML, parsed here. A plan
//! runs commands: trust it like a Makefile. Everything wrong in it is found before anything is started, and named with its
//! line.

use std::collections::BTreeMap;

use dyno_measure::series::Metric;
use serde::Deserialize;

use crate::dial::{Dial, How, Setting, Value};
use crate::proof::Proof;

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
    /// A rung whose share the total also states apart, because it is large and undisputed.
    pub headline: Option<String>,
}

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
    /// How to see that it is in force; all must hold.
    pub proofs: Vec<Proof>,
    /// Toggled in one running instance instead of measured between two.
    pub in_place: bool,
}

impl Rung {
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

/// How a server is started. `{port}`, `{dir}` and template dials are filled into every text.
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

/// A load on one server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Path and query of the request.
    #[serde(default = "root_path")]
    pub path: String,
    /// Method.
    #[serde(default = "get")]
    pub method: String,
    /// Header fields added.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request.
    #[serde(default)]
    pub body: String,
    /// Connections, all open at once.
    #[serde(default = "sixty_four")]
    pub connections: usize,
    /// Requests on the wire per connection.
    #[serde(default = "one")]
    pub pipeline: usize,
    /// The status of a right answer.
    #[serde(default = "two_hundred")]
    pub expect_status: u16,
    /// The body of a right answer; without it, the first answer's body.
    #[serde(default)]
    pub expect_body: Option<String>,
}

fn root_path() -> String {
    "/".into()
}

fn get() -> String {
    "GET".into()
}

fn sixty_four() -> usize {
    64
}

fn one() -> usize {
    1
}

fn two_hundred() -> u16 {
    200
}

impl Default for LoadSpec {
    fn default() -> Self {
        Self {
            path: root_path(),
            method: get(),
            headers: BTreeMap::new(),
            body: String::new(),
            connections: sixty_four(),
            pipeline: one(),
            expect_status: two_hundred(),
            expect_body: None,
        }
    }
}

impl LoadSpec {
    /// For the record.
    #[must_use]
    pub fn record(&self) -> dyno_record::climb::Load {
        let request = format!("{} {}", self.method, self.path);
        dyno_record::climb::Load { request, connections: self.connections, pipeline: self.pipeline }
    }
}

/// Why a plan cannot be climbed.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// Not TOML, an unknown key, or a value of the wrong type; the message has line and column.
    #[error("the plan does not parse")]
    Syntax(#[source] Box<toml::de::Error>),
    /// Well-formed, and makes no sense.
    #[error("{place}: {what}")]
    Sense {
        /// Which part, e.g. `rung "log-off"`.
        place: String,
        /// What is wrong and what would be right.
        what: String,
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
    PlanError::Sense { place: place.into(), what: what.into() }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanText {
    name: String,
    launch: Launch,
    #[serde(default)]
    load: LoadSpec,
    #[serde(default)]
    dial: BTreeMap<String, DialText>,
    #[serde(default)]
    rung: Vec<RungText>,
    headline: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DialText {
    how: HowText,
    variable: Option<String>,
    path: Option<String>,
    start: String,
    values: Vec<ValueText>,
}

#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "lowercase")]
enum HowText {
    Arg,
    Env,
    Template,
    Live,
    Knob,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueText {
    name: String,
    #[serde(default)]
    words: Vec<String>,
    #[serde(default)]
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RungText {
    id: String,
    set: String,
    #[serde(default)]
    needs: Vec<String>,
    claim: String,
    #[serde(default)]
    source: String,
    #[serde(default)]
    risk: String,
    #[serde(default)]
    metric: Metric,
    load: Option<LoadSpec>,
    #[serde(default = "one")]
    server_cpus: usize,
    proof: Vec<Proof>,
}

impl Plan {
    /// Reads a plan from TOML and checks that it makes sense.
    ///
    /// # Errors
    /// What is wrong, and where.
    pub fn from_toml(text: &str) -> Result<Self, PlanError> {
        let text: PlanText = toml::from_str(text).map_err(|error| PlanError::Syntax(Box::new(error)))?;
        let dials =
            text.dial.into_iter().map(|(name, dial)| dial_of(name, dial)).collect::<Result<Vec<_>, _>>()?;
        let rungs = text.rung.into_iter().map(|rung| rung_of(rung, &dials)).collect::<Result<Vec<_>, _>>()?;
        let plan = Self {
            name: text.name,
            launch: text.launch,
            load: text.load,
            dials,
            rungs,
            headline: text.headline,
        };
        plan.check()?;
        Ok(plan)
    }

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
        let needs = rung.needs.iter().map(|need| (&need.dial, &need.value));
        for (dial, value) in needs.chain([(&rung.dial, &rung.to)]) {
            self.known(&place, dial, value)?;
        }
        Ok(())
    }

    fn known(&self, place: &str, dial: &str, value: &str) -> Result<(), PlanError> {
        let known: Vec<&str> = self.dials.iter().map(|d| d.name.as_str()).collect();
        let found = self.dials.iter().find(|d| d.name == dial);
        let found = found
            .ok_or_else(|| sense(place, format!("no dial \"{dial}\"; the dials are {}", known.join(", "))))?;
        let values: Vec<&str> = found.values.iter().map(|v| v.name.as_str()).collect();
        if !values.contains(&value) {
            return Err(sense(
                place,
                format!("dial \"{dial}\" has no value \"{value}\", only {}", values.join(", ")),
            ));
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

    /// Where all dials stand at the start.
    #[must_use]
    pub fn start(&self) -> Setting {
        Setting::start(&self.dials)
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

fn dial_of(name: String, text: DialText) -> Result<Dial, PlanError> {
    let place = format!("dial \"{name}\"");
    let missing = |key: &str| sense(&place, format!("{key} is missing"));
    let how = match text.how {
        HowText::Arg => How::Arg,
        HowText::Env => How::Env { variable: text.variable.ok_or_else(|| missing("variable"))? },
        HowText::Template => How::Template,
        HowText::Live => How::Live,
        HowText::Knob => How::Knob { path: knob_path(&place, text.path.ok_or_else(|| missing("path"))?)? },
    };
    let values: Vec<Value> =
        text.values.into_iter().map(|v| Value { name: v.name, words: v.words, text: v.text }).collect();
    if values.len() < 2 {
        return Err(sense(place, "a dial has at least two values"));
    }
    let start = values.iter().position(|value| value.name == text.start);
    let start =
        start.ok_or_else(|| sense(&place, format!("start \"{}\" is none of its values", text.start)))?;
    Ok(Dial { name, how, values, start })
}

/// Host settings live in two places; anything else is a file, and files are not knobs.
fn knob_path(place: &str, path: String) -> Result<String, PlanError> {
    let allowed = ["/proc/sys/", "/sys/"].iter().any(|root| path.starts_with(root));
    if !allowed || path.split('/').any(|part| part == "..") {
        return Err(sense(place, format!("path \"{path}\" is not under /proc/sys or /sys")));
    }
    Ok(path)
}

fn rung_of(text: RungText, dials: &[Dial]) -> Result<Rung, PlanError> {
    let place = format!("rung \"{}\"", text.id);
    let (dial, to) = assignment(&place, &text.set)?;
    let in_place = dials.iter().any(|d| d.name == dial && matches!(d.how, How::Live | How::Knob { .. }));
    let needs = text.needs.iter().map(|need| assignment(&place, need)).collect::<Result<Vec<_>, _>>()?;
    Ok(Rung {
        id: text.id,
        dial,
        to,
        needs: needs.into_iter().map(|(dial, value)| Needs { dial, value }).collect(),
        claim: text.claim,
        source: text.source,
        risk: text.risk,
        metric: text.metric,
        load: text.load,
        server_cpus: text.server_cpus,
        impossible: None,
        proofs: text.proof,
        in_place,
    })
}

fn assignment(place: &str, text: &str) -> Result<(String, String), PlanError> {
    let split = text.split_once('=').filter(|(dial, value)| !dial.is_empty() && !value.is_empty());
    let (dial, value) = split.ok_or_else(|| sense(place, format!("\"{text}\" is not dial=value")))?;
    Ok((dial.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAN: &str = r#"
name = "demo"
[launch]
argv = ["demo", "--port", "{port}"]
[dial.log]
how = "arg"
start = "sync"
values = [{ name = "sync", words = ["--log", "sync"] }, { name = "off", words = ["--log", "off"] }]
[[rung]]
id = "log-off"
set = "log=off"
claim = "no write per request"
proof = [{ kind = "syscalls", names = ["write"], per_request = { drops = 0.8 } }]
"#;

    fn error(from: &str, to: &str) -> String {
        assert!(PLAN.contains(from), "the sample has no {from}");
        let error = Plan::from_toml(&PLAN.replace(from, to)).expect_err("a broken plan");
        match &error {
            PlanError::Syntax(source) => format!("{error}: {source}"),
            _ => error.to_string(),
        }
    }

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let plan = Plan::from_toml(PLAN).expect("the sample");
        assert_eq!((plan.load.connections, plan.load.pipeline, plan.launch.warm_up_ms), (64, 1, 100));
        assert_eq!(plan.start().get("log"), "sync");
        assert_eq!(plan.value(&plan.start(), plan.dial("log")).words, ["--log", "sync"]);
    }

    #[test]
    fn a_typo_is_named_with_its_line() {
        let text = error("claim =", "clame =");
        assert!(text.contains("line 9") || text.contains("clame"), "{text}");
        assert!(text.contains("unknown field"), "{text}");
    }

    #[test]
    fn what_makes_no_sense_is_named_with_its_place() {
        for (from, to, wanted) in [
            (
                "log=off\"",
                "log=ring\"",
                "rung \"log-off\": dial \"log\" has no value \"ring\", only sync, off",
            ),
            ("set = \"log", "set = \"lag", "rung \"log-off\": no dial \"lag\"; the dials are log"),
            ("start = \"sync\"", "start = \"on\"", "dial \"log\": start \"on\" is none of its values"),
            ("\"log=off\"", "\"log\"", "rung \"log-off\": \"log\" is not dial=value"),
            ("argv = [\"demo\", \"--port\", \"{port}\"]", "argv = []", "launch: argv is empty"),
            ("how = \"arg\"", "how = \"knob\"\npath = \"/etc/passwd\"", "is not under /proc/sys or /sys"),
            (
                "how = \"arg\"",
                "how = \"knob\"\npath = \"/proc/sys/../../etc/passwd\"",
                "is not under /proc/sys or /sys",
            ),
        ] {
            let text = error(from, to);
            assert!(text.contains(wanted), "{text}");
        }
    }

    #[test]
    fn a_rung_without_proof_is_refused() {
        let start = PLAN.find("proof =").expect("the sample has a proof");
        let text = format!("{}proof = []\n", &PLAN[..start]);
        assert!(Plan::from_toml(&text).expect_err("no proof").to_string().contains("it has no proof"));
    }
}
