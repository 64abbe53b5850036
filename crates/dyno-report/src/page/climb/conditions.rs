//! Under which conditions all this holds: the noise, the machine, and what nobody looked at.

use dyno_record::climb::Noise;
use dyno_record::machine::Machine;
use dyno_record::trial::Compared;

use super::card::belongs;
use super::series;
use super::view::View;
use crate::apply;
use crate::number;
use crate::page::chart::{Ink, Mark, Scale, axis, strip};
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, fact, facts, figure, paragraph, tied};

/// A against A, what it hides, and the series that belong to no rung.
pub(super) fn noise(view: &View<'_>) -> Option<Section> {
    let climb = view.climb;
    let rest: Vec<Tag> = climb
        .series
        .trials
        .iter()
        .filter(|trial| of_no_rung(view, trial))
        .map(|trial| series::trial(view, trial, None))
        .collect();
    let content = match &climb.noise {
        Some(noise) => tag("div").push(a_against_a(noise)),
        None => tag("div")
            .push(paragraph("Not measured: how small an effect this machine could have shown is unknown.")),
    };
    Some(Section::new("noise", "Noise", content.push_all(rest)))
}

fn of_no_rung(view: &View<'_>, trial: &Compared) -> bool {
    !view.climb.rungs.iter().any(|rung| belongs(rung, trial))
}

fn a_against_a(noise: &Noise) -> Tag {
    let text = format!(
        "The start against itself, {} pairs{}: it differs from itself by {}. With this noise effects from {:.1} % up are visible; \
        a smaller gain or loss would have been called no difference.",
        number::count(noise.pairs as f64),
        if noise.tries > 1 { ", on fresh instances after a first try that differed" } else { "" },
        number::effect(noise.aa_percent, noise.interval_percent),
        noise.visible_percent
    );
    let visible = noise.visible_percent.abs();
    let scale = Scale::around_zero(noise.interval_percent.into_iter().chain([-2.0 * visible, 2.0 * visible]))
        .mirrored();
    let hidden = Mark { value: 0.0, interval: Some([-visible, visible]), ink: Ink::Band };
    let seen = Mark { value: noise.aa_percent, interval: Some(noise.interval_percent), ink: Ink::Dot };
    let words = number::effect(noise.aa_percent, noise.interval_percent);
    let row = tag("div")
        .class("estimate")
        .push(tag("span").class("name").text("A against A"))
        .push(strip(&scale, &[hidden, seen], &words))
        .push(figure(&words));
    let axis = tag("div").class("estimate").push(tag("span")).push(axis(&scale, "%")).push(tag("span"));
    let picture = tag("figure").push(tag("div").class("estimates").push(row).push(axis));
    let caption = tag("figcaption").text("Band: what cannot be told from zero.");
    tag("div").push(paragraph(tied(&text))).push(picture.push(caption))
}

/// The machine, the loads, and the command lines.
pub(super) fn machine(view: &View<'_>) -> Option<Section> {
    let climb = view.climb;
    let m = &climb.machine;
    let list = facts([
        (
            "Processor",
            fact(format!(
                "{}, {} CPUs{}",
                m.model,
                m.cpus,
                if m.virtual_machine { ", virtual machine" } else { "" }
            )),
        ),
        ("Server on CPU", fact(&m.server_cpus)),
        ("Load on CPU", fact(&m.load_cpus)),
        ("Memory", fact(number::bytes(m.memory_bytes))),
        (
            "Kernel",
            fact(format!(
                "Linux {}, clock source {}, congestion control {}",
                m.kernel, m.clocksource, m.congestion
            )),
        ),
        ("Neighbours", fact(neighbours(m))),
        (
            "Load",
            fact(tied(&format!(
                "{}; the generator spent {:.1} µs of CPU per request",
                climb.load, m.generator_us_per_request
            ))),
        ),
        ("Rights", fact(if m.root { "root" } else { "an ordinary user" })),
    ]);
    let content = tag("div").push(list).push(commands(view));
    Some(Section::new("machine", "Machine and commands", content))
}

fn neighbours(m: &Machine) -> String {
    tied(&format!(
        "{:.1} % of all CPUs' time stolen by the hypervisor, {:.1} % used by other processes",
        m.steal_percent, m.foreign_percent
    ))
}

/// What was run, from where to where.
fn commands(view: &View<'_>) -> Tag {
    let climb = view.climb;
    let code =
        |text: String| if text.is_empty() { tag("dd") } else { tag("dd").push(tag("code").text(text)) };
    let line = |env: &[String], argv: &[String]| code(apply::command_line(env, argv));
    let mut list = vec![("This climb", line(&[], &climb.command))];
    if let Some(reached) = climb.reached() {
        list.push(("Start", line(&[], &reached.naive_argv)));
        list.push(("End", line(&reached.final_env, &reached.final_argv)));
        list.push(("Setting", code(reached.final_setting.join(" "))));
    }
    facts(list)
}

pub(super) fn not_measured(view: &View<'_>) -> Option<Section> {
    let missing = &view.climb.not_measured;
    let item = |m: &dyno_record::machine::Missing| {
        tag("li").push(tag("b").text(&m.what)).text(format!(": {}", m.why))
    };
    let list = match missing.is_empty() {
        true => paragraph("The record names nothing."),
        false => tag("ul").push_all(missing.iter().map(item)),
    };
    Some(Section::new("unknown", "What was not measured", tag("div").push(list)))
}
