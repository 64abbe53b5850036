//! The view of a climb's record judged again: each verdict, and whether its measurements say the same.

use dyno_record::climb::RungVerdict;
use dyno_record::judged::{Again, Judged};

use super::block::{Block, OnPage, OnTerminal, Section, View};
use super::table::{Column, Row, Table, words};
use super::words::paragraph;
use crate::number::NAME_COLUMNS_MAX;

const LABEL_COLUMNS: usize = 10;

const COLUMNS: [Column; 3] = [
    Column::words("rung", NAME_COLUMNS_MAX),
    Column::words("stored verdict", 24).falls(1).under("stored verdict {}"),
    Column::words("judged again", 24),
];

/// All that is said of it.
pub(crate) fn view(record: &Judged) -> View {
    let row = |one: &Again| -> Row {
        let again = one.again.map_or("nothing to judge", RungVerdict::words);
        let differs = if one.differs() { " — differs" } else { "" };
        vec![words(&one.rung), words(one.stored.words()), words(format!("{again}{differs}"))].into()
    };
    let rows: Vec<Row> = record.verdicts.iter().map(row).collect();
    let table = Block::Table(Table::new("Verdicts and what their measurements say", &COLUMNS, rows));
    let said =
        std::iter::once(conclusion(record)).chain(total(record.total_follows)).map(paragraph).collect();
    let sections = vec![
        Section::new("verdicts", "Verdicts", (OnPage::Body, OnTerminal::Above), vec![table]),
        Section::new("answer", "", (OnPage::Head, OnTerminal::Above), said),
    ];
    View {
        title: "dyno judge".to_owned(),
        kicker: format!("dyno judge · {}", record.file),
        sections,
        foot: format!("dyno {}", record.version),
        label_columns: LABEL_COLUMNS,
    }
}

/// How many verdicts are reached again.
pub(crate) fn conclusion(record: &Judged) -> String {
    match (record.measured(), record.differing()) {
        (0, _) => "no verdict in it rests on measurements".to_owned(),
        (1, 0) => "the one verdict that rests on measurements is reached again".to_owned(),
        (judged, 0) => format!("all {judged} verdicts that rest on measurements are reached again"),
        (judged, differing) => format!("{differing} of {judged} verdicts are not reached again"),
    }
}

/// Whether total and floor follow from their rounds; nothing where there are none to say it of.
fn total(follows: Option<bool>) -> Option<String> {
    Some(match follows? {
        true => "total and floor follow from their rounds".to_owned(),
        false => "total or floor do not follow from their rounds".to_owned(),
    })
}
