//! The figures as tables, how far they may be believed, and how all of it was measured.

use dyno_record::causal::{Causal, Progress, Site};
use dyno_record::machine::Missing;

use super::words::point_words;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::{Section, fact, facts, paragraph, tied};
use crate::page::table::{Cell, Edge, nothing, number as cell, table, words};
use crate::text::causal as text;

/// All sites in one table.
pub(super) fn effects(record: &Causal) -> Option<Section> {
    let heads = [
        ("site", Edge::Left),
        ("samples %", Edge::Right),
        ("saved at the greatest level", Edge::Right),
        ("% saved per % faster", Edge::Right),
        ("rounds", Edge::Right),
        ("verdict", Edge::Left),
    ];
    let rows: Vec<_> =
        record.sites.iter().enumerate().map(|(at, site)| (name(at, site), cells(site))).collect();
    (!rows.is_empty())
        .then(|| Section::new("figures", "Figures", tag("div").push(table("Every site", &heads, rows))))
}

fn name(at: usize, site: &Site) -> Tag {
    tag("a").attr("href", format!("#site-{}", at + 1)).text(number::visible(&site.name))
}

fn cells(site: &Site) -> Vec<Cell> {
    let greatest = site.greatest();
    vec![
        site.share_percent.map_or_else(nothing, |share| cell(format!("{share:.1}"), share)),
        greatest.map_or_else(nothing, |point| {
            let text = format!("{} at {} %", point_words(point), point.speedup_percent);
            cell(tied(&text), point.effect_percent)
        }),
        site.slope.map_or_else(nothing, |slope| {
            let [low, high] = slope.interval;
            let text = format!("{:.2} ({low:.2} … {high:.2})", slope.per_percent);
            cell(text.replace('-', "−"), slope.per_percent)
        }),
        greatest.map_or_else(nothing, |point| cell(point.rounds, point.rounds as f64)),
        words(site.verdict.words()),
    ]
}

/// The figures that decide how far the rest may be believed, of each site and of all.
pub(super) fn belief(record: &Causal) -> Section {
    let heads = [
        ("site", Edge::Left),
        ("windows", Edge::Right),
        ("set aside", Edge::Right),
        ("others' CPU %", Edge::Right),
        ("unpaid %", Edge::Right),
        ("cut off", Edge::Right),
        ("missed", Edge::Right),
        ("run between wakes µs", Edge::Right),
        ("noise %", Edge::Right),
    ];
    let rows = record.sites.iter().map(|site| (tag("span").text(number::visible(&site.name)), of_site(site)));
    let rows: Vec<_> = rows.collect();
    let note = "Others' CPU: windows beside much of it are set aside. Unpaid: pauses still due when a window ended. Cut off and missed: pauses that were too long, or could not be made. \
        Run between wakes: where threads hand work to each other after less than five pauses, the method is biased. Noise: one window without a speed-up, one standard deviation.";
    let list = text::belief(&record.credibility).into_iter().chain(text::costs(record));
    let list = list.map(|(name, words)| tag("div").push(tag("dt").text(name)).push(fact(tied(&words))));
    let content = tag("div").push(tag("dl").class("facts").push_all(list));
    let content = match rows.is_empty() {
        true => content,
        false => content.push(table("Each site's own windows", &heads, rows)).push(paragraph(tied(note))),
    };
    Section::new("belief", "How far it may be believed", content)
}

fn of_site(site: &Site) -> Vec<Cell> {
    let own = &site.credibility;
    let count = |value: f64| cell(number::count(value), value);
    let tenth = |value: f64| if value.is_finite() { cell(format!("{value:.1}"), value) } else { nothing() };
    vec![
        count(own.windows as f64),
        count(own.dropped_windows as f64),
        tenth(own.foreign_percent),
        tenth(own.unpaid_percent),
        count(own.capped as f64),
        count(own.missed as f64),
        own.run_between_wakes_us.map_or_else(nothing, |us| cell(number::micros(us), us)),
        tenth(site.nulls.sd_percent),
    ]
}

/// What was not tried.
pub(super) fn not_measured(record: &Causal) -> Option<Section> {
    let item = |missing: &Missing| {
        let what = tag("b").text(number::visible(&missing.what));
        tag("li").push(what).text(format!(": {}", number::visible(&missing.why)))
    };
    let list = tag("ul").push_all(record.not_measured.iter().map(item));
    (!list.is_empty()).then(|| Section::new("unknown", "What was not tried", tag("div").push(list)))
}

/// Why this is counted, where nobody named anything.
fn chosen(progress: &Progress) -> String {
    progress.chosen.as_ref().map_or_else(String::new, |why| format!("nothing was named; {why}"))
}

/// The target, the command, the machine.
pub(super) fn measured(record: &Causal) -> Section {
    let text = |text: &str| if text.is_empty() { tag("dd") } else { fact(number::visible(text)) };
    let code = |words: &[String]| match words.is_empty() {
        true => tag("dd"),
        false => tag("dd").push(tag("code").text(number::visible(&words.join(" ")))),
    };
    let machine = &record.machine;
    let virtual_machine = if machine.virtual_machine { ", virtual machine" } else { "" };
    let cpus =
        if machine.cpus > 0 { format!("{} CPUs{virtual_machine}", machine.cpus) } else { String::new() };
    let parts = [machine.model.clone(), cpus, machine.kernel.clone()];
    let where_ran: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let options = &record.options;
    let levels: Vec<String> = options.levels_percent.iter().map(|level| format!("{level} %")).collect();
    let participants: Vec<String> = options.participants.iter().map(u32::to_string).collect();
    let progress = &record.progress;
    let list = facts([
        ("target", code(&record.target.argv)),
        ("command", code(&record.command)),
        ("progress", text(&format!("{}, {} per second", progress.name, number::count(progress.per_second)))),
        ("counted because", text(&chosen(progress))),
        ("could be counted", text(&crate::text::causal::others(record).unwrap_or_default())),
        ("levels", text(&tied(&levels.join(", ")))),
        ("budget", text(&number::duration(options.budget_s))),
        ("taking part", text(&participants.join(", "))),
        ("machine", text(&where_ran.join(", "))),
    ]);
    Section::new("measured", "How it was measured", tag("div").push(list))
}
