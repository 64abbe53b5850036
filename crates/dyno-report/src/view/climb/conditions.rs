//! Under which conditions all this holds: the machine, the noise, and what nobody looked at.

use dyno_record::climb::{Climb, Noise};
use dyno_record::machine::Machine;
use dyno_record::trial::Compared;

use super::card::belongs;
use super::{series, widths};
use crate::apply;
use crate::number;
use crate::view::block::{Block, Fact, OnPage, OnTerminal, Section};
use crate::view::chart::{Estimates, Figure, Ink, Mark, Row};
use crate::view::show::On;
use crate::view::words::{self, paragraph};

/// The machine, the loads, and the command lines.
pub(super) fn machine(climb: &Climb) -> Section {
    let m = &climb.machine;
    let whole = format!(
        "{} · server on {}, load on {} · {}",
        words::machine(m),
        m.server_cpus,
        m.load_cpus,
        climb.load
    );
    let more = [
        ("memory", number::bytes(m.memory_bytes)),
        ("kernel", format!("clock source {}, congestion control {}", m.clocksource, m.congestion)),
        ("neighbours", neighbours(m)),
        ("generator", format!("{:.1} µs of CPU per request", m.generator_us_per_request)),
        ("rights", if m.root { "root" } else { "an ordinary user" }.to_owned()),
    ];
    let more = more.into_iter().map(|(label, words)| Fact::new(label, words).on(On::Page));
    let facts = std::iter::once(Fact::new("machine", whole)).chain(more).chain(commands(climb)).collect();
    let place = (OnPage::Body, OnTerminal::Above);
    Section::new("machine", "Machine and commands", place, vec![Block::Facts(facts)])
}

/// Who else used the machine's time.
pub(super) fn neighbours(m: &Machine) -> String {
    format!(
        "{:.1} % of all CPUs' time stolen by the hypervisor, {:.1} % used by other processes",
        m.steal_percent, m.foreign_percent
    )
}

/// What was run, from where to where.
fn commands(climb: &Climb) -> Vec<Fact> {
    let line = |env: &[String], argv: &[String]| apply::command_line(env, argv);
    let mut list = vec![("this climb", line(&[], &climb.command))];
    if let Some(reached) = climb.reached() {
        list.push(("start", line(&[], &reached.naive_argv)));
        list.push(("end", line(&reached.final_env, &reached.final_argv)));
        list.push(("setting", reached.final_setting.join(" ")));
    }
    list.into_iter().map(|(label, words)| Fact::code(label, words).on(On::Page)).collect()
}

/// A against A, what it hides, and the series that belong to no rung.
pub(super) fn noise(climb: &Climb) -> Section {
    let said = match &climb.noise {
        Some(noise) => a_against_a(noise) + widths::of_noise(climb).unwrap_or_default(),
        None => "not measured: how small an effect would show is unknown".to_owned(),
    };
    let picture = climb.noise.as_ref().and_then(drawn).map(Block::Figure);
    let rest = climb.series.trials.iter().filter(|trial| of_no_rung(climb, trial));
    let rest = rest.map(|trial| series::trial(climb, trial, None));
    let blocks = std::iter::once(Block::Facts(vec![Fact::new("noise", said)])).chain(picture).chain(rest);
    Section::new("noise", "Noise", (OnPage::Body, OnTerminal::Above), blocks.collect())
}

fn of_no_rung(climb: &Climb, trial: &Compared) -> bool {
    !climb.rungs.iter().any(|rung| belongs(rung, trial))
}

fn a_against_a(noise: &Noise) -> String {
    let again = if noise.tries > 1 { ", on fresh instances after a first try that differed" } else { "" };
    let starts =
        noise.starts_percent.map(|percent| format!(" · starts of a server differ by {percent:.1} %"));
    let starts = starts.unwrap_or_default();
    format!(
        "A against A: {} over {} pairs{again}{starts} · effects from {:.1} % up are visible here today",
        number::effect(noise.aa_percent, noise.interval_percent),
        number::count(noise.pairs as f64),
        noise.visible_percent
    )
}

fn drawn(noise: &Noise) -> Option<Figure> {
    let visible = noise.visible_percent.abs();
    let hidden = Mark::of(0.0, Some([-visible, visible]), Ink::Band)?;
    let mut row = Row::one("A against A", noise.aa_percent, Some(noise.interval_percent), Ink::Dot)?;
    row.marks.insert(0, hidden);
    let caption =
        "Band: what cannot be told from zero; a smaller gain or loss would have been called no difference.";
    Estimates::of(vec![row], [-2.0 * visible, 2.0 * visible]).map(|estimates| estimates.figure(caption))
}

pub(super) fn not_measured(climb: &Climb) -> Section {
    let items = words::missing(&climb.not_measured);
    let (id, heading) = ("unknown", "What was not measured");
    match items.is_empty() {
        true => Section::page(id, heading, OnPage::Body, vec![paragraph("The record names nothing.")]),
        false => {
            let place = (OnPage::Body, OnTerminal::Below);
            Section::new(id, heading, place, vec![Block::List("unknown", items)])
        }
    }
}
