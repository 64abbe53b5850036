//! What colours mean, and what was waited for: keys beside pictures, and a table of waits by kind.

use dyno_profile::name;
use dyno_profile::top;
use dyno_record::profile::{Kind, Profile, WaitClass};

use super::colour;
use super::measure::{Measure, share};
use super::view::View;
use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::table::{Edge, Row, nothing, number as figure, table, words};

/// Locks, files and peers named in a row.
const OBJECTS_MAX: usize = 3;

/// Each colour's class and what it means.
fn meanings(view: &View) -> Vec<(String, String)> {
    let one = |class: &str, text: &str| (class.to_owned(), text.to_owned());
    match (view.basis, view.kind) {
        (Some(_), _) => vec![one("grew4", "grew"), one("same", "as before"), one("shrank4", "shrank")],
        (None, Kind::OnCpu) => {
            vec![one("u2", "program and libraries"), one("k2", "kernel"), one("mark", "no code")]
        }
        (None, Kind::OffCpu) => {
            let seen = name::WAITS.into_iter().filter(|class| seen(view, *class));
            let waits = seen.map(|class| one(colour::of_wait(class), name::of_wait(class)));
            let woke = view.tree.labels.iter().any(|label| label.role == dyno_profile::tree::Role::Waker);
            waits
                .chain(woke.then(|| one("woke", "who ended the wait, from its innermost function up")))
                .collect()
        }
    }
}

fn seen(view: &View, class: WaitClass) -> bool {
    view.tree.labels.iter().any(|label| label.role == dyno_profile::tree::Role::Wait(class))
}

/// The key on a page.
pub(super) fn key(view: &View) -> Tag {
    let item = |(class, text): (String, String)| {
        let rect = tag("rect").attr("width", "100%").attr("height", 12).attr("class", class);
        let swatch = tag("svg").class("swatch").attr("height", 12).attr("aria-hidden", "true").push(rect);
        tag("li").push(swatch).push(tag("span").text(text))
    };
    tag("ul").class("key").push_all(meanings(view).into_iter().map(item))
}

/// The key in a file of its own, in a line.
pub(super) fn file_key(view: &View, x: f64, y: f64) -> Tag {
    /// Width of a letter of the key's type, and of what stands before a text and after it.
    const LETTER: f64 = 6.2;
    const AROUND: f64 = 38.0;
    let mut x = x;
    let mut key = tag("g");
    for (class, text) in meanings(view) {
        let rect = tag("rect")
            .attr("x", format!("{x:.1}"))
            .attr("y", y - 9.0)
            .attr("width", 14)
            .attr("height", 10)
            .attr("class", class);
        key = key
            .push(rect)
            .push(tag("text").attr("x", format!("{:.1}", x + 19.0)).attr("y", y).class("said").text(&text));
        x += AROUND + LETTER * text.chars().count() as f64;
    }
    key
}

/// Waits by kind; none when nothing waited.
pub(super) fn rows(profile: &Profile, measure: &Measure) -> Option<Tag> {
    let found = top::waits(profile);
    let whole: u64 = found.values().map(|waits| waits.total_ns).sum();
    let mut classes: Vec<_> = found.into_iter().collect();
    classes.sort_by_key(|(_, waits)| std::cmp::Reverse(waits.total_ns));
    let row = |(class, waits): &(WaitClass, top::Waits)| -> Row {
        let time = waits.total_ns as f64;
        let mean_us = time / waits.count.max(1) as f64 / 1e3;
        let cells = vec![
            figure(measure.figure(time), time),
            figure(share(time, whole as f64), time),
            figure(number::count(waits.count as f64), waits.count as f64),
            figure(number::latency(mean_us), mean_us),
            objects(waits),
        ];
        (tag("span").text(name::of_wait(*class)), cells)
    };
    let heads = [
        ("wait", Edge::Left),
        (measure.unit, Edge::Right),
        ("share", Edge::Right),
        ("waits", Edge::Right),
        ("mean", Edge::Right),
        ("most for", Edge::Left),
    ];
    let rows: Vec<Row> = classes.iter().map(row).collect();
    (!rows.is_empty()).then(|| table("Waits by kind", &heads, rows))
}

fn objects(waits: &top::Waits) -> crate::page::table::Cell {
    let of = |(object, time): &(String, u64)| {
        format!("{} {}", number::visible(object), share(*time as f64, waits.total_ns as f64))
    };
    match waits.objects.iter().take(OBJECTS_MAX).map(of).collect::<Vec<_>>() {
        none if none.is_empty() => nothing(),
        some => words(some.join(", ")),
    }
}
