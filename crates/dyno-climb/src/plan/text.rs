//! A plan as the user writes it, in TOML. What is wrong is named with its line, or with its place where it parses.

use std::collections::BTreeMap;

use dyno_measure::series::Metric;
use serde::Deserialize;

use super::{Launch, Plan, PlanError, sense};
use crate::dial::{Dial, How, Value};
use crate::load::LoadSpec;
use crate::proof::Proof;
use crate::rung::{Needs, Rung};

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

fn one() -> usize {
    1
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
