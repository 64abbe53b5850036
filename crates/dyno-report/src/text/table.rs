//! A table of text that knows how to become narrow.
//!
//! Columns fall away in a fixed order until the rest fits; what a column held goes to an indented line under its row, so
//! that nothing is lost. The last column is free text and never falls.

use super::lines::{chars, wrapped};
use crate::color::{Color, painted};
use crate::number::visible;
use crate::view::table::{Align, Column, Look, Row, Table};

/// Blanks between columns.
const GAP: usize = 2;
/// Blanks before a row.
const INDENT: usize = 2;
/// Blanks before the lines under a row.
const NOTE_INDENT: usize = 6;
/// A reason may hold the last words of a server that died; this much of it is a table's business, the record has it all.
const WHY_CHARS_MAX: usize = 300;

/// A row as the terminal may show it.
struct Line<'r> {
    cells: Vec<String>,
    end: String,
    /// The end with its colour.
    end_printed: String,
    row: &'r Row,
}

/// The table in at most `width` columns, each line ended.
pub(super) fn render(table: &Table, width: usize, color: Color) -> String {
    let on = |at: &usize| table.columns[*at].on.terminal();
    let places: Vec<usize> = (0..table.columns.len()).filter(on).collect();
    let last = places.last().copied().expect("a table for a terminal has a column there");
    // Words end the row; a figure keeps its edge.
    let end = (table.columns[last].align == Align::Left).then_some(last);
    let places = if end.is_some() { &places[..places.len() - 1] } else { &places[..] };
    let columns: Vec<Column> = places.iter().map(|at| table.columns[*at]).collect();
    let rows = table.rows.iter().take(table.terminal_rows_max);
    let rows: Vec<Line<'_>> = rows.map(|row| line(row, places, end, color)).collect();
    if rows.is_empty() {
        return String::new();
    }
    let end_head = end.map_or("", |end| table.columns[end].head);
    let end_width = rows.iter().map(|row| chars(&row.end)).chain([chars(end_head)]).max().unwrap_or(0);
    let shown = shown_columns(&columns, &rows, width.saturating_sub(INDENT + end_width));
    let lead = visible(&table.lead);
    let mut out = if lead.is_empty() { lead } else { wrapped(&lead, width, INDENT) };
    out.push_str(&head_line(&shown, end_head));
    for row in rows.iter().filter(|row| says_something(&shown, row)) {
        push_row(&mut out, &shown, row, &columns, width);
    }
    out
}

fn line<'r>(row: &'r Row, places: &[usize], end: Option<usize>, color: Color) -> Line<'r> {
    let last = end.map(|end| &row.cells[end]);
    let word = last.map(|cell| visible(&cell.words)).unwrap_or_default();
    let end_printed = match last.map(|cell| &cell.look) {
        Some(Look::Toned(tone)) => painted(&word, *tone, color),
        _ => word.clone(),
    };
    let cells = places.iter().map(|at| visible(&row.cells[*at].words)).collect();
    Line { cells, end: word, end_printed, row }
}

/// Whether more than a row's name is left of it.
fn says_something(shown: &[Shown], row: &Line<'_>) -> bool {
    !row.end.is_empty() || shown.iter().skip(1).any(|s| !row.cells[s.at].is_empty())
}

/// A column that is shown: its place and its width.
struct Shown {
    at: usize,
    width: usize,
    column: Column,
}

/// The columns that hold anything and fit into `room` together.
fn shown_columns(columns: &[Column], rows: &[Line<'_>], room: usize) -> Vec<Shown> {
    let mut shown: Vec<Shown> = columns
        .iter()
        .enumerate()
        .filter(|(at, _)| rows.iter().any(|row| !row.cells[*at].is_empty()))
        .map(|(at, column)| Shown { at, width: column_width(column, at, rows), column: *column })
        .collect();
    while shown.iter().map(|s| s.width + GAP).sum::<usize>() > room {
        let falls = |s: &Shown| s.column.falls.unwrap_or(0);
        match shown.iter().enumerate().max_by_key(|(_, s)| falls(s)) {
            Some((at, s)) if falls(s) > 0 => drop(shown.remove(at)),
            _ => break,
        }
    }
    shown
}

fn column_width(column: &Column, at: usize, rows: &[Line<'_>]) -> usize {
    let cells = rows.iter().map(|row| chars(&row.cells[at])).filter(|width| *width <= column.cell_max);
    cells.chain([chars(column.head)]).max().unwrap_or(0)
}

fn head_line(shown: &[Shown], end_head: &str) -> String {
    let mut line = " ".repeat(INDENT);
    for s in shown {
        push_cell(&mut line, s.column.head, s);
    }
    line.push_str(end_head);
    format!("{}\n", line.trim_end())
}

fn push_row(out: &mut String, shown: &[Shown], row: &Line<'_>, columns: &[Column], width: usize) {
    let mut line = " ".repeat(INDENT);
    for s in shown {
        let cell = &row.cells[s.at];
        if chars(cell) <= s.width {
            push_cell(&mut line, cell, s);
        } else if s.column.falls.is_none() {
            // A name that is too long has the line above for itself.
            out.push_str(&wrapped(cell, width, INDENT));
            push_cell(&mut line, "", s);
        } else {
            push_cell(&mut line, "", s);
        }
    }
    let why = in_short(&visible(&row.row.why));
    let fits = why.is_empty() || chars(&line) + chars(&row.end) + 2 + chars(&why) <= width;
    line.push_str(&row.end_printed);
    if fits && !why.is_empty() {
        line.extend([": ", &why]);
    }
    out.extend([line.trim_end(), "\n"]);
    push_notes(out, shown, row, columns, if fits { "" } else { &why }, width);
}

fn in_short(why: &str) -> String {
    match why.char_indices().nth(WHY_CHARS_MAX) {
        Some((end, _)) => format!("{} … (all of it is in the record)", &why[..end]),
        None => why.to_owned(),
    }
}

/// What has no place in the row, in one paragraph under it.
fn push_notes(
    out: &mut String,
    shown: &[Shown],
    row: &Line<'_>,
    columns: &[Column],
    why: &str,
    width: usize,
) {
    let has_place = |at: usize| shown.iter().any(|s| s.at == at && chars(&row.cells[at]) <= s.width);
    let fallen = columns.iter().zip(&row.cells).enumerate();
    let fallen = fallen.filter(|(at, (_, cell))| !has_place(*at) && !cell.is_empty());
    let fallen = fallen.map(|(_, (column, cell))| column.under.replace("{}", cell));
    let notes = fallen.chain([why.to_owned()]).chain(row.row.notes.iter().map(|note| visible(note)));
    let text: Vec<String> = notes.filter(|note| !note.is_empty()).collect();
    if !text.is_empty() {
        out.push_str(&wrapped(&text.join(" · "), width, NOTE_INDENT));
    }
    for sentence in &row.row.sentences {
        out.push_str(&wrapped(&visible(sentence), width, NOTE_INDENT));
    }
}

fn push_cell(line: &mut String, text: &str, shown: &Shown) {
    let blanks = " ".repeat(shown.width.saturating_sub(chars(text)));
    match shown.column.align {
        Align::Left => line.extend([text, &blanks]),
        Align::Right => line.extend([&blanks, text]),
    }
    line.push_str(&" ".repeat(GAP));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::table::words;

    const COLUMNS: [Column; 4] = [
        Column::words("name", 10),
        Column::words("words", 40).falls(1).under("{}"),
        Column::figure("figure", 2, 20).under("figure {}"),
        Column::words("verdict", 20),
    ];

    fn row(name: &str, said: &str, figure: &str, why: &str) -> Row {
        let cells = [name, said, figure, "kept"].map(words).to_vec();
        Row { cells, why: why.into(), ..Row::default() }
    }

    fn text(rows: Vec<Row>, width: usize) -> String {
        render(&Table::new("", &COLUMNS, rows), width, Color::Plain)
    }

    #[test]
    fn figures_share_their_right_edge_and_words_their_left() {
        let rows = vec![row("one", "some words", "1.0", ""), row("two", "x", "13.9", "because")];
        assert_eq!(
            text(rows, 60),
            "  name  words       figure  verdict\n\
             \x20 one   some words     1.0  kept\n\
             \x20 two   x             13.9  kept: because\n"
        );
    }

    #[test]
    fn a_fallen_column_is_said_under_its_row() {
        let words = "a change that takes much room";
        assert_eq!(
            text(vec![row("one", words, "1.0", "")], 50),
            "  name  words                          verdict\n\
             \x20 one   a change that takes much room  kept\n\
             \x20     figure 1.0\n"
        );
    }

    #[test]
    fn a_long_name_is_whole_on_its_own_line() {
        let text = text(vec![row("a-very-long-name", "x", "1.0", "")], 60);
        assert!(text.contains("  a-very-long-name\n"), "{text}");
    }
}
