//! The view of a sheet alone: an answer in a line, and every figure.

use dyno_record::figure::{Figure, Sheet};

use super::block::{Block, Fact, OnPage, OnTerminal, Section, View};
use super::table::{Column, Row, Table, figure, nothing, words};
use super::words::{alerts, warnings};
use crate::figures;

const LABEL_COLUMNS: usize = 10;

const COLUMNS: [Column; 4] = [
    Column::words("figure", 20),
    Column::figure("value", 0, 40),
    Column::words("verdict", 20),
    Column::words("what", 20),
];

/// A sheet, and the answer that was read from it.
pub(crate) fn view(sheet: &Sheet, answer: &str) -> View {
    let facts = Block::Facts(vec![Fact::new("answer", answer)]);
    let sections = [
        Some(Section::new("answer", "", (OnPage::Head, OnTerminal::Answer), vec![facts])),
        alerts("warnings", OnTerminal::Last, warnings(&sheet.warnings)),
        Some(Section::new(
            "figures",
            "Figures",
            (OnPage::Body, OnTerminal::Found),
            vec![Block::Table(table(sheet))],
        )),
    ];
    View {
        title: format!("dyno {}", sheet.kind),
        kicker: format!("dyno {}", sheet.kind),
        sections: sections.into_iter().flatten().collect(),
        foot: format!("dyno {}", sheet.version),
        label_columns: LABEL_COLUMNS,
    }
}

/// Every figure of a sheet that has a value.
pub(super) fn table(sheet: &Sheet) -> Table {
    let row = |one: &Figure| -> Row {
        let value = one.value.map(|value| {
            let whole = figures::within(one.unit, value, one.interval);
            figure(whole, value).in_short(figures::value(one.unit, value))
        });
        vec![words(&one.name), value.unwrap_or_else(nothing), words(&one.word), words(&one.what)].into()
    };
    let known = sheet.figures.iter().filter(|one| one.value.is_some());
    Table::new("Every figure", &COLUMNS, known.map(row).collect())
}
