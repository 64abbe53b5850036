//! Who calls whom, with the source line that holds most of each call.

use dyno_profile::call_tree::{Call, calls};
use dyno_record::name;
use dyno_record::profile::Profile;

use super::functions::{ROWS_MAX, captioned};
use crate::view::block::{Block, OnPage, Section};
use crate::view::measure::share;
use crate::view::table::{Column, Row, Table, figure, words};
use crate::view::words::paragraph;

/// Share of the whole below which a call is left out.
const SHARE_MIN: f64 = 0.01;
/// Deeper calls stand no farther right: a table has an edge.
const INDENT_MAX: usize = 24;

pub(super) fn section(profile: &Profile) -> Option<Section> {
    let found = calls(profile, SHARE_MIN);
    let whole = profile.total_ns() as f64;
    let columns = [
        Column::page("total %"),
        Column::page("self %"),
        Column::words("call", usize::MAX),
        Column::words("its hottest line", usize::MAX),
    ];
    let rows: Vec<Row> = found.iter().take(ROWS_MAX).map(|call| row(call, whole)).collect();
    let read_me = "From the first fork on: each function under its caller, the heaviest first. A call's hottest line is where \
        most of its time lies, its own or that of what the line calls. What holds less than 1 % is left out.";
    let table = Table::new(captioned("Calls by the time in them", found.len(), "calls"), &columns, rows);
    let folded = Block::Details(
        "Call tree with source lines".to_owned(),
        vec![paragraph(read_me), Block::Table(table)],
    );
    (!found.is_empty()).then(|| Section::page("calls", "Call tree", OnPage::Body, vec![folded]))
}

fn row(call: &Call, whole: f64) -> Row {
    let part = |weight: u64| {
        let share = share(weight as f64, whole);
        figure(share.trim_end_matches(" %"), weight as f64)
    };
    // Blanks that a page keeps.
    let indent = "\u{a0}\u{a0}".repeat(call.depth.min(INDENT_MAX));
    let cells =
        vec![part(call.total), part(call.own), words(format!("{indent}{}", call.name)), words(line(call))];
    cells.into()
}

/// The line, and how much of the call it is where others share it.
fn line(call: &Call) -> String {
    let Some(line) = &call.line else { return String::new() };
    let place = format!("{}:{}", name::file_name(&line.file), line.number);
    match line.total < call.total {
        true => format!("{place} ({})", share(line.total as f64, call.total as f64)),
        false => place,
    }
}
