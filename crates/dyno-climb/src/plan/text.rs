//! A plan as the user writes it, in TOML. What is wrong is named with its line, or with its place where it parses.

use std::collections::BTreeMap;

use dyno_measure::series::Metric;
use dyno_record::lab::Part;
use serde::Deserialize;

use super::{Launch, Plan, PlanError, Syntax, sense, unknown};
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
    memory_max: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DialText {
    how: HowText,
    variable: Option<String>,
    path: Option<String>,
    part: Option<String>,
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
    Lab,
    Build,
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
        let text: PlanText =
            toml::from_str(text).map_err(|error| PlanError::Syntax(Box::new(Syntax::of(&error, text))))?;
        let dials =
            text.dial.into_iter().map(|(name, dial)| dial_of(name, dial)).collect::<Result<Vec<_>, _>>()?;
        let mut rungs =
            text.rung.into_iter().map(|rung| rung_of(rung, &dials)).collect::<Result<Vec<_>, _>>()?;
        // The plan's load written down once more is no load of the rung's own.
        rungs.iter_mut().for_each(|rung| rung.load = rung.load.take().filter(|load| *load != text.load));
        let plan = Self {
            name: text.name,
            launch: text.launch,
            load: text.load,
            dials,
            rungs,
            memory_max_bytes: text.memory_max.as_deref().map(bytes).transpose()?,
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
        HowText::Build => How::Build,
        HowText::Lab => How::Lab { part: lab_part(&place, &text.part.ok_or_else(|| missing("part"))?)? },
        HowText::Knob => How::Knob { path: knob_path(&place, text.path.ok_or_else(|| missing("path"))?)? },
    };
    let values: Vec<Value> =
        text.values.into_iter().map(|v| Value { name: v.name, words: v.words, text: v.text }).collect();
    if let How::Lab { part } = &how {
        let faults = values.iter().filter(|value| !value.text.is_empty()).filter_map(|v| part.fault(&v.text));
        faults.map(|why| sense(&place, why)).next().map_or(Ok(()), Err)?;
    }
    if values.len() < 2 {
        return Err(sense(place, "a dial has at least two values"));
    }
    let start = values.iter().position(|value| value.name == text.start);
    let start = start.ok_or_else(|| {
        let names: Vec<&str> = values.iter().map(|value| value.name.as_str()).collect();
        unknown(&place, format!("start \"{}\" is none of its values", text.start), &text.start, &names)
    })?;
    Ok(Dial { name, how, values, start })
}

fn lab_part(place: &str, name: &str) -> Result<Part, PlanError> {
    let known = Part::ALL.map(Part::name);
    let what = || format!("the laboratory has no part \"{name}\"; its parts are {}", known.join(", "));
    Part::of_name(name).ok_or_else(|| unknown(place, what(), name, &known))
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
    // The kernel reads many settings when a socket is made or a connection begins: a setting of the host is measured between
    // servers that were started under it, with connections of their own.
    let in_place = dials.iter().any(|d| d.name == dial && matches!(d.how, How::Live));
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
        state: None,
        elsewhere: String::new(),
        proofs: text.proof,
        in_place,
        only_named: false,
    })
}

/// `"64 MB"`, `"1.5 GiB"`: a number of bytes.
fn bytes(text: &str) -> Result<u64, PlanError> {
    const UNITS: [(&str, f64); 7] = [
        ("kib", 1024.0),
        ("mib", 1048576.0),
        ("gib", 1073741824.0),
        ("kb", 1e3),
        ("mb", 1e6),
        ("gb", 1e9),
        ("b", 1.0),
    ];
    let lower = text.trim().to_lowercase();
    let (number, unit) = UNITS
        .iter()
        .find_map(|(name, unit)| Some((lower.strip_suffix(name)?, *unit)))
        .unwrap_or((&lower, 1.0));
    let number = number.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    let number = number
        .ok_or_else(|| sense("memory_max", format!("\"{text}\" is no number of bytes, as \"64 MB\"")))?;
    Ok((number * unit) as u64)
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
        error.to_string()
    }

    #[test]
    fn a_plan_is_read_with_its_defaults() {
        let plan = Plan::from_toml(PLAN).expect("the sample");
        assert_eq!((plan.load.connections, plan.load.pipeline, plan.launch.warm_up_ms), (64, 1, 100));
        assert_eq!(plan.start().get("log"), "sync");
        assert_eq!(plan.value(&plan.start(), plan.dial("log")).words, ["--log", "sync"]);
    }

    /// Planted fault: only the names of values are recorded.
    #[test]
    fn what_names_stand_for_is_known_with_the_files_and_where_it_starts() {
        let plan = PLAN.replace("[dial.log]", "[launch.files]\n\"a.conf\" = \"log {log}\"\n[dial.log]");
        let texts = Plan::from_toml(&plan).expect("the sample with a file").texts();
        let told: Vec<_> =
            texts.iter().map(|one| (one.name.as_str(), one.text.as_str(), one.start)).collect();
        let wanted = [
            ("log=sync", "--log sync", true),
            ("log=off", "--log off", false),
            ("file a.conf", "log {log}", false),
        ];
        assert_eq!(told, wanted);
    }

    /// Planted fault: whatever load a rung names is its own; then it is never in the final setting, and the record says it is.
    #[test]
    fn the_plans_load_written_down_once_more_is_no_load_of_a_rungs_own() {
        let with = |load: &str| {
            let plan = PLAN.replace("claim =", &format!("metric = \"p50\"\nload = {load}\nclaim ="));
            Plan::from_toml(&plan).expect("the sample with a load").rungs[0].own_load_only()
        };
        assert_eq!([with("{ path = \"/\" }"), with("{ connections = 64 }")], [false, false]);
        assert_eq!([with("{ connections = 1 }"), with("{ headers = { A = \"b\" } }")], [true, true]);
    }

    #[test]
    fn a_typo_is_named_with_its_line() {
        let text = error("claim =", "clame =");
        assert!(
            text.starts_with("line 12, column 1: unknown key \"clame\"; the keys here are id, set"),
            "{text}"
        );
    }

    #[test]
    fn a_wrong_name_is_told_the_one_that_was_meant_wherever_it_stands() {
        for (from, to, meant) in [
            ("claim =", "clame =", "claim"),
            ("[launch]", "[lanch]", "launch"),
            ("argv =", "agv =", "argv"),
            ("\"syscalls\"", "\"syscals\"", "syscalls"),
            ("drops =", "drop =", "drops"),
            ("how = \"arg\"", "how = \"agr\"", "arg"),
            ("log=off\"", "log=of\"", "off"),
            ("set = \"log", "set = \"lag", "log"),
            ("start = \"sync\"", "start = \"snyc\"", "sync"),
            ("how = \"arg\"", "how = \"lab\"\npart = \"rulse\"", "rules"),
            ("name = \"demo\"", "name = \"demo\"\nheadline = \"log-of\"", "log-off"),
        ] {
            let error = Plan::from_toml(&PLAN.replacen(from, to, 1)).expect_err(to);
            assert_eq!(error.meant(), Some(meant), "{to}: {error}");
        }
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
            ("how = \"arg\"", "how = \"lab\"", "dial \"log\": part is missing"),
            (
                "how = \"arg\"",
                "how = \"lab\"\npart = \"wires\"",
                "no part \"wires\"; its parts are taps, rules",
            ),
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
    fn a_limit_of_memory_is_a_number_with_a_unit() {
        let with = |limit: &str| Plan::from_toml(&format!("memory_max = \"{limit}\"\n{PLAN}"));
        for (limit, wanted) in [("64 MB", 64_000_000), ("1.5GiB", 1_610_612_736), ("4096", 4_096), ("7 b", 7)]
        {
            assert_eq!(with(limit).expect("a limit").memory_max_bytes, Some(wanted), "{limit}");
        }
        for limit in ["much", "-1 MB", "0", "inf"] {
            assert!(with(limit).expect_err("no limit").to_string().contains("no number of bytes"), "{limit}");
        }
        assert_eq!(Plan::from_toml(PLAN).expect("the sample").memory_max_bytes, None);
    }

    #[test]
    fn a_rung_without_proof_is_refused() {
        let start = PLAN.find("proof =").expect("the sample has a proof");
        let text = format!("{}proof = []\n", &PLAN[..start]);
        assert!(Plan::from_toml(&text).expect_err("no proof").to_string().contains("it has no proof"));
    }
}
