//! Tables: columns with their heads, rows of cells. Both writers draw the same rows.
//!
//! The makers of views fill them. Which columns have room, and what sorts or copies, is the writers' business.

use super::show::{On, Tone, Verdict};
use crate::number;

/// Which edge a column's cells share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    /// Its head, with the unit.
    pub(crate) head: &'static str,
    pub(crate) align: Align,
    pub(crate) on: On,
    /// The order in which columns leave a narrow terminal, the largest first; `None` stays.
    pub(crate) falls: Option<u8>,
    /// A wider cell stands under its row on a terminal.
    pub(crate) cell_max: usize,
    /// How a cell is said under its row, `{}` being its words; empty: not at all.
    pub(crate) under: &'static str,
}

impl Column {
    /// A column of words that stays.
    pub(crate) const fn words(head: &'static str, cell_max: usize) -> Self {
        Self { head, align: Align::Left, on: On::Both, falls: None, cell_max, under: "" }
    }

    /// A column of figures; those that leave first have the largest number.
    pub(crate) const fn figure(head: &'static str, falls: u8, cell_max: usize) -> Self {
        Self { head, align: Align::Right, on: On::Both, falls: Some(falls), cell_max, under: "" }
    }

    /// A column of figures for pages alone.
    pub(crate) const fn page(head: &'static str) -> Self {
        Self { on: On::Page, ..Self::figure(head, 0, 0) }
    }

    pub(crate) const fn under(self, under: &'static str) -> Self {
        Self { under, ..self }
    }

    /// A column that no terminal is too narrow for.
    pub(crate) const fn stays(self) -> Self {
        Self { falls: None, ..self }
    }

    pub(crate) const fn falls(self, falls: u8) -> Self {
        Self { falls: Some(falls), ..self }
    }

    pub(crate) const fn on(self, on: On) -> Self {
        Self { on, ..self }
    }
}

/// What a cell is beside its words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum Look {
    #[default]
    Words,
    /// A figure and the value that it is sorted by.
    Figure(f64),
    Toned(Tone),
    /// A link to an anchor of the page.
    Link(String),
    /// The name of a function: the page of a picture searches for it.
    Function,
}

/// A cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    pub(crate) words: String,
    pub(crate) look: Look,
    /// The same in fewer columns, for a terminal that has no room for all of it; empty: there is no shorter way.
    pub(crate) short: String,
}

impl Cell {
    /// With a way to say it in fewer columns.
    pub(crate) fn in_short(self, short: impl Into<String>) -> Self {
        Self { short: short.into(), ..self }
    }
}

/// Words.
pub(crate) fn words(words: impl Into<String>) -> Cell {
    Cell { words: words.into(), ..Cell::default() }
}

/// A figure; what is not finite sorts last.
pub(crate) fn figure(words: impl Into<String>, value: f64) -> Cell {
    Cell { words: words.into(), look: Look::Figure(value), ..Cell::default() }
}

/// A figure that may not be known.
pub(crate) fn known(value: Option<f64>, written: impl Fn(f64) -> String) -> Cell {
    value.map_or_else(nothing, |value| figure(written(value), value))
}

/// A count.
pub(crate) fn count(value: f64) -> Cell {
    figure(number::count(value), value)
}

/// Nothing to say here.
pub(crate) fn nothing() -> Cell {
    words("")
}

pub(crate) fn verdict(verdict: Verdict) -> Cell {
    Cell { words: verdict.word.to_owned(), look: Look::Toned(verdict.tone), ..Cell::default() }
}

pub(crate) fn link(words: impl Into<String>, anchor: String) -> Cell {
    Cell { words: words.into(), look: Look::Link(anchor), ..Cell::default() }
}

pub(crate) fn function(name: impl Into<String>) -> Cell {
    Cell { words: name.into(), look: Look::Function, ..Cell::default() }
}

/// A row: a cell for each column; the first one is its name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Row {
    pub(crate) cells: Vec<Cell>,
    /// Words after the last cell when a terminal has room, under the row otherwise.
    pub(crate) why: String,
    /// Lines under the row of a terminal in any case.
    pub(crate) notes: Vec<String>,
    /// Sentences under these, each on a line of its own.
    pub(crate) sentences: Vec<String>,
}

impl From<Vec<Cell>> for Row {
    fn from(cells: Vec<Cell>) -> Self {
        Self { cells, ..Self::default() }
    }
}

/// A table.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// What it is, where rows are free to be sorted and copied; empty: it is narrow, and its rows have their order.
    pub(crate) caption: String,
    /// Words over it on a terminal, which has no captions; empty: none.
    pub(crate) lead: String,
    pub(crate) columns: Vec<Column>,
    pub(crate) rows: Vec<Row>,
    /// Rows that a terminal shows at most.
    pub(crate) terminal_rows_max: usize,
}

impl Table {
    /// A table whose rows are as wide as its head.
    pub(crate) fn new(caption: impl Into<String>, columns: &[Column], rows: Vec<Row>) -> Self {
        assert!(!columns.is_empty(), "a table has a column that names its rows");
        for row in &rows {
            assert_eq!(row.cells.len(), columns.len(), "a row is as wide as the head of its table");
        }
        let (caption, columns) = (caption.into(), columns.to_vec());
        Self { caption, lead: String::new(), columns, rows, terminal_rows_max: usize::MAX }
    }

    pub(crate) fn led_by(self, lead: impl Into<String>) -> Self {
        Self { lead: lead.into(), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "a row is as wide as the head of its table")]
    fn a_row_that_is_too_short_is_a_mistake() {
        let columns = [Column::words("name", 10), Column::figure("value", 1, 10)];
        Table::new("", &columns, vec![vec![words("alone")].into()]);
    }

    #[test]
    #[should_panic(expected = "a table has a column")]
    fn a_table_without_columns_is_a_mistake() {
        Table::new("", &[], Vec::new());
    }
}
