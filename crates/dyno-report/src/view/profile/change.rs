//! The view of what changed between two profiles.

use std::collections::BTreeMap;

use dyno_profile::diff::Basis;
use dyno_profile::top::functions;
use dyno_record::profile::{Origin, Profile};

use super::functions::{ROWS_MAX, captioned};
use super::parts::{LABEL_COLUMNS, doubts, foot, measured, picture};
use crate::number;
use crate::view::block::{Block, Fact, Headline, OnPage, Section, View};
use crate::view::boxes::{Boxes, target};
use crate::view::measure::Measure;
use crate::view::table::{self, Column, Row, Table, figure};
use crate::view::words::cut_short;

/// All that is said of a change.
pub(crate) fn view(before: &Profile, after: &Profile, boxes: Boxes) -> View {
    let basis = boxes.basis.expect("a comparison has a basis");
    let table = changes(before, after, basis, &boxes.measure);
    let body = |id, heading, block| Section::page(id, heading, OnPage::Body, vec![block]);
    let (title, kicker) = (boxes.title.clone(), format!("Comparison · {}", boxes.title));
    let sections = vec![
        Section::page("all", "", OnPage::Head, head(before, after, &boxes)),
        picture(boxes),
        body("functions", "Functions", Block::Table(table)),
        body("before", "How the first was measured", measured(before)),
        body("after", "How the second was measured", measured(after)),
    ];
    View { title, kicker, sections, foot: foot(after), label_columns: LABEL_COLUMNS }
}

fn head(before: &Profile, after: &Profile, boxes: &Boxes) -> Vec<Block> {
    let (total, measure) = (boxes.tree.total(), &boxes.measure);
    let percent = number::percent(100.0 * total.change() / total.before);
    let headline = Headline {
        big: measure.change(total.change()),
        unit: measure.said.clone(),
        interval: format!("{percent} of all of it"),
        ..Headline::default()
    };
    let side = |label, profile, total| {
        Fact::new(label, format!("{} {}: {}", measure.figure(total), measure.said, target(profile)))
    };
    let of = |profile: &Profile| {
        cut_short(profile.cut_short.as_ref()).into_iter().chain(doubts(profile)).collect::<Vec<_>>()
    };
    let alerts = [before, after].into_iter().flat_map(of);
    let sides = [side("before", before, total.before), side("after", after, total.after)];
    vec![Block::Headline(headline), Block::Facts(alerts.chain(sides).collect())]
}

/// Functions by how much their own time changed.
fn changes(before: &Profile, after: &Profile, basis: Basis, measure: &Measure) -> Table {
    let mut sums: BTreeMap<(String, Origin), [[f64; 2]; 2]> = BTreeMap::new();
    for ((side, profile), scale) in [before, after].into_iter().enumerate().zip(basis.scales()) {
        for function in functions(profile) {
            let sums = sums.entry((function.name, function.origin)).or_default();
            sums[0][side] += function.own as f64 * scale;
            sums[1][side] += function.total as f64 * scale;
        }
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    let change = |[before, after]: [f64; 2]| after - before;
    sums.sort_by(|a, b| change(b.1[0]).abs().total_cmp(&change(a.1[0]).abs()));
    let heads = ["self before", "after", "change", "total before", "after", "change"].map(Column::page);
    let columns: Vec<Column> = std::iter::once(Column::words("function", 0)).chain(heads).collect();
    let count = sums.len();
    let rows = sums.into_iter().take(ROWS_MAX).map(|((name, _), [own, total])| -> Row {
        let side = |[before, after]: [f64; 2]| {
            let change = after - before;
            let plain = [before, after].map(|value| figure(measure.figure(value), value));
            plain.into_iter().chain([figure(measure.change(change), change)])
        };
        let cells = std::iter::once(table::function(name)).chain(side(own)).chain(side(total));
        cells.collect::<Vec<_>>().into()
    });
    let caption = format!("Functions by how much their own time changed, in {}", measure.said);
    Table::new(captioned(&caption, count, "functions"), &columns, rows.collect())
}
