//! What `dyno causal` says of one part of a program. The strangers' task asks, and holds the answer against the twin.

use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::trouble::Trouble;

use super::limits;
use super::program::Program;
use super::twins::{Asked, Twin};

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Predicted {
    /// It was told with a verdict.
    Told(Told),
    /// There is none, for this reason.
    Refused(String),
}

/// What was told of one level.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Told {
    pub(crate) verdict: String,
    /// Time saved per unit, percent, and its interval.
    pub(crate) saved: f64,
    pub(crate) interval: [f64; 2],
    /// Drawn hollow: no verdict rests on it.
    pub(crate) hollow: bool,
}

/// Asks for one part of a program that runs.
///
/// # Errors
/// When nothing was said that can be read.
pub(crate) fn ask(dyno: &Path, time: &str, program: &Program, twin: &Twin) -> Result<Predicted, Trouble> {
    let mut words = vec!["causal".to_owned(), program.pid().to_string()];
    words.extend(["--json", "--for", time].map(str::to_owned));
    words.extend(twin.progress.iter().flat_map(|point| ["--progress".to_owned(), point.clone()]));
    words.extend(match twin.site.asked {
        Asked::Own => vec!["--site".to_owned(), twin.site.name.clone()],
        Asked::Inclusive => ["--inclusive", "--site", &twin.site.name].map(str::to_owned).to_vec(),
        Asked::Default => Vec::new(),
    });
    words.extend(program.said("participant").flat_map(|pid| ["--participant".to_owned(), pid.to_owned()]));
    let run = limits::asking(dyno).args(&words).stdin(Stdio::null()).output();
    let output = run.map_err(Trouble::cannot(format!("run {}", dyno.display())))?;
    if limits::was_late(output.status) {
        return Err(Trouble::new(format!("dyno causal did not end within {} s", limits::ASKING_S_MAX)));
    }
    // What it could not answer has its record too; what it could not try has none.
    match serde_json::from_slice(&output.stdout) {
        Ok(record) => Ok(read(&record, &twin.site.name, twin.percent)),
        Err(_) => Ok(Predicted::Refused(first_error(&String::from_utf8_lossy(&output.stderr))?)),
    }
}

/// The line that begins with "error: ".
fn first_error(said: &str) -> Result<String, Trouble> {
    let error = said.lines().find_map(|line| line.strip_prefix("error: "));
    error.map(str::to_owned).ok_or_else(|| Trouble::new("dyno causal said neither a record nor an error"))
}

/// The record's answer for this site at this level.
pub(crate) fn read(record: &Value, site: &str, percent: u32) -> Predicted {
    let sites = record["sites"].as_array().into_iter().flatten();
    let Some(found) = sites.into_iter().find(|one| one["name"] == site) else {
        return Predicted::Refused("it was not tried".to_owned());
    };
    let verdict = found["verdict"].as_str().unwrap_or_default();
    if verdict == "not_measurable" {
        return Predicted::Refused(found["reason"].as_str().unwrap_or_default().to_owned());
    }
    let points = found["points"].as_array().into_iter().flatten();
    let told = points.into_iter().find(|point| point["speedup_percent"] == percent).and_then(|point| {
        let ends = &point["interval_percent"];
        Some(Told {
            verdict: verdict.replace('_', " "),
            saved: point["effect_percent"].as_f64()?,
            interval: [ends[0].as_f64()?, ends[1].as_f64()?],
            hollow: point["biased"] == true,
        })
    });
    told.map_or_else(|| Predicted::Refused(format!("no figure at {percent} %")), Predicted::Told)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn record(verdict: &str) -> Value {
        serde_json::json!({"sites": [{"name": "other"}, {
            "name": "f", "verdict": verdict, "reason": "paced from outside",
            "points": [
                {"speedup_percent": 25, "effect_percent": 1.0, "interval_percent": [0.0, 2.0], "biased": false},
                {"speedup_percent": 50, "effect_percent": 2.0, "interval_percent": [1.0, 3.0], "biased": true}]}]})
    }

    #[test]
    fn the_site_and_the_level_that_were_asked_for_are_read() {
        let told = Told { verdict: "no effect".to_owned(), saved: 2.0, interval: [1.0, 3.0], hollow: true };
        assert_eq!(read(&record("no_effect"), "f", 50), Predicted::Told(told));
        assert_eq!(read(&record("helps"), "g", 50), Predicted::Refused("it was not tried".to_owned()));
        assert_eq!(read(&record("helps"), "f", 10), Predicted::Refused("no figure at 10 %".to_owned()));
    }

    #[test]
    fn what_is_not_measurable_is_refused_with_its_reason_whatever_figures_stand_beside_it() {
        let refused = read(&record("not_measurable"), "f", 50);
        assert_eq!(refused, Predicted::Refused("paced from outside".to_owned()));
        assert_eq!(first_error("reading\nerror: no such symbol\n  try: x").unwrap(), "no such symbol");
        assert!(first_error("Killed").is_err());
    }
}
