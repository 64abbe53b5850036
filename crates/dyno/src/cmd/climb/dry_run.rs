//! `dyno climb --dry-run`: everything that a plan would run, write and turn, and nothing run.
//!
//! A plan runs commands as the user: whoever got it from elsewhere reads here what they are, each text as it stands.

use dyno_climb::dial::{Dial, How, Value};
use dyno_climb::plan::{BuildStep, Plan};
use dyno_climb::proof::Proof;
use dyno_climb::rung::Rung;
use dyno_record::commands::quoted;
use dyno_sys::affinity::CpuSet;

use dyno_report::number::visible;
use dyno_report::text::beside;

/// What would be started, which files and host settings would be written, which commands would be run.
pub(super) fn text(
    plan: &Plan,
    rungs: &[&Rung],
    server_cpus: &CpuSet,
    load_cpus: &[usize],
    columns: Option<usize>,
) -> String {
    let mut lines = Lines { text: String::new(), columns };
    lines.launch(plan);
    let mut load = CpuSet::empty();
    load_cpus.iter().for_each(|cpu| load.insert(*cpu));
    let shared = load_cpus.iter().any(|cpu| server_cpus.contains(*cpu));
    let shared = if shared { ", shared: each steals the other's time" } else { "" };
    lines.line("CPUs", &format!("servers on {server_cpus}, load on {load}{shared}"));
    lines.line("load", &plan.load.record().to_string());
    for dial in plan.dials.iter().filter(|dial| starts_with_text(dial)) {
        let start = &dial.values[dial.start];
        lines.line("start", &format!("{}={}: {}", dial.name, start.name, reaches(dial, start)));
    }
    rungs.iter().for_each(|rung| lines.rung(plan, rung));
    lines.text
}

/// Whether the start hands the server something that the command line above does not show.
fn starts_with_text(dial: &Dial) -> bool {
    let start = &dial.values[dial.start];
    !start.words.is_empty() || !start.text.is_empty() && !matches!(dial.how, How::Live)
}

/// How a value reaches the server.
fn reaches(dial: &Dial, value: &Value) -> String {
    match &dial.how {
        How::Arg if value.words.is_empty() => "no words".to_owned(),
        How::Arg => words(value),
        How::Live => format!("{}, or the message {:?} while it runs", words(value), value.text),
        How::Env { variable } if value.text.is_empty() => format!("variable {variable} as it was found"),
        How::Env { variable } => format!("variable {variable}={:?}", value.text),
        How::Build => format!("{{{}}} is {:?} where the server is built", dial.name, value.words),
        How::Told => "changes nothing: it is told and not tried".to_owned(),
        How::Template => format!("{{{}}} is {:?}", dial.name, value.text),
        How::Knob { path } if value.text.is_empty() => format!("{path} as it was found"),
        How::Lab { part } => format!("the laboratory's {} is {:?}", part.name(), value.text),
        How::Knob { path } => format!("writes {:?} to {path}, and puts it back", value.text),
    }
}

/// Words of a command line as a shell takes them.
fn words(value: &Value) -> String {
    value.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

struct Lines {
    text: String,
    /// Where lines end, if anywhere.
    columns: Option<usize>,
}

impl Lines {
    /// One line under a label of ten columns.
    fn line(&mut self, label: &str, text: &str) {
        self.text.push_str(&beside(&format!("{label:<10}"), &visible(text), self.columns));
    }

    fn launch(&mut self, plan: &Plan) {
        let launch = &plan.launch;
        if let Some(argv) = &launch.prepare {
            self.line("prepare", &argv.join(" "));
        }
        for step in &launch.build {
            self.step(step);
        }
        self.line("server", &launch.argv.join(" "));
        for (name, value) in &launch.env {
            self.line("", &format!("with {name}={value:?}"));
        }
        for (name, text) in &launch.files {
            self.line("file", &format!("{{dir}}/{name}"));
            text.lines().for_each(|line| self.text.push_str(&format!("          | {}\n", shown(line))));
        }
    }

    fn step(&mut self, step: &BuildStep) {
        let label = if step.run.is_empty() { "train" } else { "build" };
        let when = step.when.as_ref().map(|when| format!(", when {when}")).unwrap_or_default();
        let time =
            if step.run.is_empty() { format!(", under load for {} ms", step.for_ms) } else { String::new() };
        self.line(label, &format!("{}{time}{when}", step.argv().join(" ")));
        for (name, value) in &step.env {
            self.line("", &format!("with {name}={value:?}"));
        }
    }

    fn rung(&mut self, plan: &Plan, rung: &Rung) {
        let dial = plan.dial(&rung.dial);
        let start = &dial.values[dial.start].name;
        self.line("rung", &format!("{}: {} {start} → {}", rung.id, rung.dial, rung.to));
        if let Some(value) = dial.position(&rung.to).map(|at| &dial.values[at]) {
            self.line("", &reaches(dial, value));
        }
        if let Some(load) = &rung.load {
            self.line("", &format!("load {}", load.record()));
        }
        for proof in &rung.proofs {
            if let Proof::Command { argv, .. } = proof {
                self.line("", &format!("proof runs {}", argv.join(" ")));
            }
        }
    }
}

/// A line of a file with its indent, which `visible` alone would take away.
fn shown(line: &str) -> String {
    let indent: String = line.chars().take_while(|c| *c == ' ').collect();
    indent + &visible(line)
}
