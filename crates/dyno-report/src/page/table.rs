//! Tables that can be sorted and copied where scripts run, and become lists on a phone.

use super::html::{Tag, tag};
use super::parts::tied;
use crate::view::table::{Align, Cell, Column, Look, Row, Table};

/// A table; each row begins with its name. A column's unit stands in its head.
pub(super) fn table(table: &Table) -> Tag {
    // A column in which no row has a word is a head above nothing.
    let is_filled = |at: &usize| *at == 0 || table.rows.iter().any(|row| !row.cells[*at].words.is_empty());
    let on: Vec<usize> =
        (0..table.columns.len()).filter(|at| table.columns[*at].on.page() && is_filled(at)).collect();
    let heads: Vec<&Column> = on.iter().map(|at| &table.columns[*at]).collect();
    let caption = (!table.caption.is_empty()).then(|| tag("caption").text(tied(&table.caption)));
    let made = match caption {
        Some(_) => tag("table").attr("data-sort", ""),
        None => tag("table").class("small"),
    };
    let cell = if caption.is_some() { labelled } else { plain };
    let rows = table.rows.iter().map(|one| row(one, &on, &heads, cell));
    made.push_all(caption).push(head(&heads)).push(tag("tbody").push_all(rows))
}

fn head(heads: &[&Column]) -> Tag {
    let cell = |column: &&Column| {
        let class = if column.align == Align::Right { "figure" } else { "words" };
        tag("th").attr("scope", "col").class(class).text(column.head)
    };
    tag("thead").push(tag("tr").push_all(heads.iter().map(cell)))
}

fn row(row: &Row, on: &[usize], heads: &[&Column], drawn: fn(&Cell, &Column) -> Tag) -> Tag {
    let mut cells = on.iter().zip(heads).map(|(at, column)| (&row.cells[*at], *column));
    let name = cells.next().map(|(cell, _)| tag("th").attr("scope", "row").push(words(cell)));
    tag("tr").push_all(name).push_all(cells.map(|(cell, column)| drawn(cell, column)))
}

/// A cell's words in their own look.
fn words(cell: &Cell) -> Tag {
    match &cell.look {
        Look::Link(anchor) => tag("a").attr("href", format!("#{anchor}")).text(&cell.words),
        Look::Function => tag("span").class("function").text(&cell.words),
        _ => tag("span").text(&cell.words),
    }
}

fn plain(cell: &Cell, _: &Column) -> Tag {
    match &cell.look {
        Look::Figure(_) => tag("td").class("figure").text(tied(&cell.words)),
        _ => tag("td").text(tied(&cell.words)),
    }
}

/// From here on a cell takes a phone's whole row: two of them are wider than half of 360 pixels each.
const WIDE_CHARS: usize = 16;

/// On a phone a cell stands below its row's name with its column's head before it.
fn labelled(cell: &Cell, column: &Column) -> Tag {
    let content = plain(cell, column).attr("data-label", column.head);
    let content = match cell.words.chars().count() {
        0 => content.attr("data-empty", ""),
        WIDE_CHARS.. => content.attr("data-wide", ""),
        _ => content,
    };
    match cell.look {
        Look::Figure(value) if value.is_finite() => content.attr("data-value", value),
        _ => content,
    }
}
