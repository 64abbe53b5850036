//! Tables that can be sorted and copied where scripts run, and become lists on a phone.

use std::fmt::Display;

use super::html::{Tag, tag};

/// A cell: its text, and for figures the value that it is sorted by.
pub(super) struct Cell {
    content: Tag,
    value: Option<f64>,
}

/// Words.
pub(super) fn words(text: impl Display) -> Cell {
    Cell { content: tag("td").text(text), value: None }
}

/// A figure; what is not finite sorts last.
pub(super) fn number(text: impl Display, value: f64) -> Cell {
    Cell { content: tag("td").class("figure").text(text), value: Some(value) }
}

/// Nothing to say here.
pub(super) fn nothing() -> Cell {
    words("")
}

/// Which edge a column's cells share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// A row: its name and a cell for every other column.
pub(super) type Row = (Tag, Vec<Cell>);

/// A table that can be sorted; each row begins with its name. A column's unit stands in its head.
pub(super) fn table(caption: &str, heads: &[(&'static str, Edge)], rows: Vec<Row>) -> Tag {
    let body = rows.into_iter().map(|(name, cells)| {
        let cells = cells.into_iter().zip(&heads[1..]).map(|(cell, (label, _))| labelled(cell, label));
        named(name).push_all(cells)
    });
    let table = tag("table").attr("data-sort", "").push(tag("caption").text(caption));
    table.push(head(heads)).push(tag("tbody").push_all(body))
}

/// A table so narrow that it stays one everywhere, and whose rows have their order.
pub(super) fn plain_table(heads: &[(&'static str, Edge)], rows: Vec<Row>) -> Tag {
    let body = rows
        .into_iter()
        .map(|(name, cells)| named(name).push_all(cells.into_iter().map(|cell| cell.content)));
    tag("table").push(head(heads)).push(tag("tbody").push_all(body))
}

fn head(heads: &[(&'static str, Edge)]) -> Tag {
    let cell = |(text, edge): &(&'static str, Edge)| {
        let class = if *edge == Edge::Right { "figure" } else { "words" };
        tag("th").attr("scope", "col").class(class).text(text)
    };
    tag("thead").push(tag("tr").push_all(heads.iter().map(cell)))
}

fn named(name: Tag) -> Tag {
    tag("tr").push(tag("th").attr("scope", "row").push(name))
}

/// On a phone a cell stands below its row's name with its column's head before it.
fn labelled(cell: Cell, label: &'static str) -> Tag {
    let empty = cell.content.is_empty();
    let content = cell.content.attr("data-label", label);
    let content = if empty { content.attr("data-empty", "") } else { content };
    match cell.value {
        Some(value) if value.is_finite() => content.attr("data-value", value),
        _ => content,
    }
}
