//! The first screen: what was gained, what it is worth against the floor, what it cannot say, and how to have it.

use dyno_record::climb::{Arm, Climb, Ratio, Rung, RungVerdict, Total};

use super::view::View;
use crate::apply;
use crate::number;
use crate::page::chart::{Bar, bars};
use crate::page::html::{Tag, tag};
use crate::page::parts::{fact, facts, figure, paragraph, tied};
use crate::text::{arms, seen, unclear};

/// The window's title.
pub(super) fn title(climb: &Climb) -> String {
    match &climb.total {
        Some(total) => format!("{} requests per CPU-second · dyno climb", number::times(total.gain.ratio)),
        None => "dyno climb".to_owned(),
    }
}

/// Everything above the contents.
pub(super) fn head(view: &View<'_>) -> Tag {
    let climb = view.climb;
    let result = tag("div").class("result").push(gain(climb));
    let result = match &climb.total {
        Some(total) => result.push(way(view, total)),
        None => result,
    };
    tag("header")
        .push(kicker(climb))
        .push_all(cut_short(climb))
        .push(result)
        .push(tag("div").class("aside").push(limits(climb)).push(commands(climb)))
}

fn kicker(climb: &Climb) -> Tag {
    let date = crate::date::date(climb.started_unix_s);
    let took = number::duration(climb.duration_s);
    tag("p").class("kicker").text(format!("dyno climb · plan {} · {date} · {took}", climb.plan))
}

fn cut_short(climb: &Climb) -> Option<Tag> {
    let why = climb.cut_short.as_ref()?;
    let lead = tag("strong").text("Cut short");
    Some(
        tag("p")
            .class("alert")
            .push(lead)
            .text(format!(": {why}. Everything below was measured before that.")),
    )
}

/// The large number, its interval, and the three figures that put it into proportion.
fn gain(climb: &Climb) -> Tag {
    let column = tag("div").class("gain");
    let Some(total) = &climb.total else {
        return column.push(no_total(climb)).push(proportions(climb));
    };
    let [low, high] = total.gain.interval;
    let rounds = format!("99 % interval {low:.2} … {high:.2}");
    column
        .push(headline(&total.gain))
        .push(tag("p").class("interval").text(tied(&rounds)))
        .push(paragraph(measured(total)))
        .push(proportions(climb))
}

fn measured(total: &Total) -> String {
    let rounds = number::count(total.rounds as f64);
    let starts = match total.starts {
        0 | 1 => String::new(),
        n => format!(" in {n} starts"),
    };
    format!(
        "Final setting against the start, on fresh data: {rounds} rounds{starts}, all arms live at once, in random order."
    )
}

fn headline(gain: &Ratio) -> Tag {
    let big = tag("span").class("big").text(number::times(gain.ratio));
    let unit = match unclear(gain) {
        true => "requests per CPU-second: no difference seen",
        false => "requests per CPU-second",
    };
    tag("h1").push(big).text(" ").push(tag("span").class("unit").text(unit))
}

fn no_total(climb: &Climb) -> Tag {
    let kept = climb.rungs.iter().filter(|rung| rung.attempt.verdict == RungVerdict::Kept).count();
    let text = format!(
        "{kept} of {} rungs kept. What they bring together was not measured, and steps neither add nor multiply up to it.",
        climb.rungs.len()
    );
    tag("div").push(tag("h1").push(tag("span").class("unit").text("No total"))).push(paragraph(text))
}

fn proportions(climb: &Climb) -> Tag {
    let without = climb.total.as_ref().and_then(|total| total.without.as_ref());
    facts([
        (
            "Floor",
            match &climb.floor {
                Some(floor) => tag("dd")
                    .push(figure(number::times_with_interval(floor)))
                    .text(" of the CPU of the smallest loop that answers these bytes")
                    .text(seen(floor)),
                None => fact("not measured"),
            },
        ),
        (
            "Headline",
            match without {
                Some(without) => tag("dd")
                    .push(figure(number::times_with_interval(&without.gain)))
                    .text(format!(" without {}: the start has it already", without.rung))
                    .text(seen(&without.gain)),
                None => tag("dd"),
            },
        ),
        (
            "p99",
            match arms(climb) {
                Some((from, to)) => tag("dd")
                    .push(figure(format!(
                        "{} → {}",
                        number::latency(from.figures.p99_us),
                        number::latency(to.figures.p99_us)
                    )))
                    .text(" under saturation; not an SLO"),
                None => tag("dd"),
            },
        ),
    ])
}

/// CPU per request of every arm, split where the kernel's tick saw enough.
fn way(view: &View<'_>, total: &Total) -> Tag {
    let levels = total.levels(&view.climb.series);
    let half_width = |at: usize| Some(levels.as_ref()?.level(at)?.half_width);
    let rows: Vec<Bar> = total.arms.iter().enumerate().map(|(at, arm)| row(arm, half_width(at))).collect();
    let list = |row: &Bar| format!("{} {}", row.name, row.figure);
    let sentence =
        format!("Server CPU per request: {}.", rows.iter().map(list).collect::<Vec<_>>().join(", "));
    let split = total.arms.iter().any(|arm| arm.user_share.is_some());
    let caption = match split {
        true => {
            "Server CPU per request, µs. Dark: the program's own (user) time; pale: the kernel's. Line: 99 % interval."
        }
        false => "Server CPU per request, µs. Line: 99 % interval.",
    };
    tag("figure").class("way").push(bars(&rows, &sentence)).push(tag("figcaption").text(caption))
}

/// An arm with its CPU per request, and the half width of its interval as a log ratio.
fn row(arm: &Arm, half_width: Option<f64>) -> Bar {
    let cpu = arm.figures.cpu_us_per_request;
    Bar {
        name: arm.name.clone(),
        figure: format!("{}\u{a0}µs", number::micros(cpu)),
        value: cpu,
        full: arm.user_share,
        interval: half_width.map(|half| [cpu * (-half).exp(), cpu * half.exp()]),
    }
}

/// What the number above does not mean.
fn limits(climb: &Climb) -> Tag {
    let item =
        |lead: &str, rest: String| tag("li").push(tag("strong").text(lead)).text(format!(" {}", tied(&rest)));
    let m = &climb.machine;
    let mut list = tag("ul")
        .push(item("Loopback.", "Server and client share this machine; about 40 % of the server's CPU is the client's TCP input, absent behind a network card.".into()))
        .push(item("Closed loop.", format!("{}: latency is what saturation makes of it, not what a user at a given rate would see.", climb.load)))
        .push(item("One machine.", format!(
            "{} CPUs, {}{}, Linux {}; {:.1} % of its time stolen by the hypervisor, {:.1} % used by others.",
            m.cpus, m.model, if m.virtual_machine { " (virtual)" } else { "" }, m.kernel, m.steal_percent, m.foreign_percent
        )));
    if let Some(noise) = &climb.noise {
        list = list.push(item(
            "Noise.",
            format!("Effects below {:.1} % were not visible that day.", noise.visible_percent),
        ));
    }
    let prices = prices(climb);
    if !prices.is_empty() {
        list = list.push(
            tag("li")
                .push(tag("strong").text("Its price."))
                .text(" What the fast setting gives up:")
                .push(tag("ul").push_all(prices)),
        );
    }
    list = list.push_all(climb.warnings.iter().map(|warning| {
        tag("li").class("warning").push(tag("strong").text("Warning.")).text(format!(" {warning}"))
    }));
    tag("div").class("limits").push(tag("h2").text("What it cannot say")).push(list)
}

/// What each rung risks that stands in the final setting, where it risks anything: `none: why` is how a rung says that it
/// does not. A dial that moved on, or that was kept for a load of its own, costs nothing there.
fn prices(climb: &Climb) -> Vec<Tag> {
    let standing = climb.rungs.iter().filter(|rung| stands(climb, rung));
    let priced = standing.filter(|rung| !rung.risk.is_empty() && !rung.risk.starts_with("none"));
    priced.map(|rung| tag("li").push(tag("b").text(&rung.id)).text(format!(": {}", rung.risk))).collect()
}

/// Kept, and its dial stands where it left it. Older records do not say where that is.
fn stands(climb: &Climb, rung: &Rung) -> bool {
    let setting = climb.reached().map(|reached| reached.final_setting.as_slice()).unwrap_or_default();
    let there = rung.sets.is_empty() || setting.is_empty() || setting.contains(&rung.sets);
    rung.attempt.verdict == RungVerdict::Kept && there && !climb.own_load_only(&rung.attempt)
}

/// The command, as it can be pasted.
fn commands(climb: &Climb) -> Tag {
    let column = tag("div").class("apply").push(tag("h2").text("Apply it"));
    let commands = apply::commands(climb);
    if commands.is_empty() {
        return column.push(paragraph("The climb came to no setting to apply."));
    }
    let text: Vec<String> =
        commands.iter().map(|command| apply::folded(command, apply::PAGE_COLUMNS).join("\n")).collect();
    column.push(tag("pre").attr("data-copy", "command").push(tag("code").text(text.join("\n"))))
}
