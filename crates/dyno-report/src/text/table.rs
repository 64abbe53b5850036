//! A table of text that knows how to become narrow.
//!
//! Columns are shortened, then fall away, in a fixed order until the rest fits; what a column held goes to an indented line
//! under its row, so that nothing is lost. The last column is free text and never falls: where it has no room it stands under
//! its row, too.

use super::lines::{chars, wrapped};
use crate::color::{Color, painted};
use crate::number::{NONE, visible};
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
    /// The same in fewer columns, empty where there is no shorter way.
    shorts: Vec<String>,
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
    let end_max = end.map_or(0, |end| table.columns[end].cell_max);
    let ends = rows.iter().map(|row| chars(&row.end)).filter(|width| *width <= end_max);
    let end_width = ends.chain([chars(end_head)]).max().unwrap_or(0);
    let shown = shown_columns(&columns, &rows, width.saturating_sub(INDENT + end_width));
    let lead = visible(&table.lead);
    let mut out = if lead.is_empty() { lead } else { wrapped(&lead, width, INDENT) };
    out.push_str(&head_line(&shown, end_head, width));
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
    let shorts = places.iter().map(|at| visible(&row.cells[*at].short)).collect();
    Line { cells, shorts, end: word, end_printed, row }
}

/// Whether more than a row's name is left of it.
fn says_something(shown: &[Shown], row: &Line<'_>) -> bool {
    !row.end.is_empty() || shown.iter().skip(1).any(|s| !row.cells[s.at].is_empty())
}

/// How much of a cell is said.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    Whole,
    InShort,
}

/// A column that is shown: its place and its width.
struct Shown {
    at: usize,
    width: usize,
    column: Column,
    said: Said,
}

impl Shown {
    fn new(at: usize, column: Column, said: Said, rows: &[Line<'_>]) -> Shown {
        let shown = Shown { at, width: 0, column, said };
        let cells = rows.iter().map(|row| chars(shown.cell(row))).filter(|width| *width <= column.cell_max);
        let width = cells.chain([chars(column.head)]).max().unwrap_or(0);
        Shown { width, ..shown }
    }

    /// What stands in its place in a row.
    fn cell<'l>(&self, row: &'l Line<'_>) -> &'l str {
        match self.said {
            Said::InShort if !row.shorts[self.at].is_empty() => &row.shorts[self.at],
            _ => &row.cells[self.at],
        }
    }
}

/// The columns that hold anything and fit into `room` together: first they are shortened, then they fall.
fn shown_columns(columns: &[Column], rows: &[Line<'_>], room: usize) -> Vec<Shown> {
    let mut shown: Vec<Shown> = columns
        .iter()
        .enumerate()
        .filter(|(at, _)| rows.iter().any(|row| !row.cells[*at].is_empty()))
        .map(|(at, column)| Shown::new(at, *column, Said::Whole, rows))
        .collect();
    let falls = |s: &Shown| s.column.falls.unwrap_or(0);
    while shown.iter().map(|s| s.width + GAP).sum::<usize>() > room {
        let is_long =
            |s: &Shown| s.said == Said::Whole && rows.iter().any(|row| !row.shorts[s.at].is_empty());
        // Columns that fall alike are compared with each other, and are shortened together.
        if let Some(most) = shown.iter().filter(|s| is_long(s)).map(falls).max() {
            for s in shown.iter_mut().filter(|s| falls(s) == most && is_long(s)) {
                *s = Shown::new(s.at, s.column, Said::InShort, rows);
            }
            continue;
        }
        match shown.iter().enumerate().max_by_key(|(_, s)| falls(s)) {
            Some((at, s)) if falls(s) > 0 => drop(shown.remove(at)),
            _ => break,
        }
    }
    shown
}

fn head_line(shown: &[Shown], end_head: &str, width: usize) -> String {
    let mut line = " ".repeat(INDENT);
    for s in shown {
        push_cell(&mut line, s.column.head, s);
    }
    // What has no room stands under each row and needs no head.
    if chars(&line) + chars(end_head) <= width {
        line.push_str(end_head);
    }
    format!("{}\n", line.trim_end())
}

fn push_row(out: &mut String, shown: &[Shown], row: &Line<'_>, columns: &[Column], width: usize) {
    let mut line = " ".repeat(INDENT);
    for s in shown {
        let cell = s.cell(row);
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
    if chars(&line) + chars(&row.end) > width {
        out.extend([line.trim_end(), "\n"]);
        match chars(&row.end) + NOTE_INDENT <= width {
            true => out.extend([&" ".repeat(NOTE_INDENT), &row.end_printed, "\n"]),
            false => out.push_str(&wrapped(&row.end, width, NOTE_INDENT)),
        }
        push_notes(out, shown, row, columns, &why, width);
        return;
    }
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
    let has_place = |at: usize| shown.iter().any(|s| s.at == at && chars(s.cell(row)) <= s.width);
    let fallen = columns.iter().zip(&row.cells).enumerate();
    let says_nothing = |cell: &String| cell.is_empty() || cell == NONE;
    let fallen = fallen.filter(|(at, (_, cell))| !has_place(*at) && !says_nothing(cell));
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

    /// Planted faults: columns fall before they are shortened; a long last cell takes the room of all others.
    #[test]
    fn cells_are_shortened_before_columns_fall_and_a_long_end_stands_under_its_row() {
        let columns = [
            Column::words("name", 10),
            Column::figure("figure", 1, 20).under("figure {}"),
            Column::words("verdict", 20),
        ];
        let row =
            |end: &str| Row::from(vec![words("one"), words("1.0 (0.9 … 1.1)").in_short("1.0"), words(end)]);
        let text = |end: &str, width| render(&Table::new("", &columns, vec![row(end)]), width, Color::Plain);
        assert_eq!(text("kept", 40), "  name           figure  verdict\n  one   1.0 (0.9 … 1.1)  kept\n");
        assert_eq!(text("kept", 26), "  name  figure  verdict\n  one      1.0  kept\n");
        assert_eq!(
            text("a reason that is longer than any verdict", 40),
            "  name           figure  verdict\n  one   1.0 (0.9 … 1.1)\n      a reason that is longer than any\n      verdict\n"
        );
    }

    #[test]
    fn a_long_name_is_whole_on_its_own_line() {
        let text = text(vec![row("a-very-long-name", "x", "1.0", "")], 60);
        assert!(text.contains("  a-very-long-name\n"), "{text}");
    }
}
