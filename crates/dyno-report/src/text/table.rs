//! A table of text that knows how to become narrow.
//!
//! Columns fall away in a fixed order until the rest fits; what a column held goes to an indented line under its row, so
//! that nothing is lost. The last column is free text and never falls.

/// Blanks between columns.
const GAP: usize = 2;
/// Blanks before a row.
pub(super) const INDENT: usize = 2;
/// Blanks before the lines under a row.
const NOTE_INDENT: usize = 6;
/// The narrowest table: below this a terminal wraps whatever one does.
const WIDTH_MIN: usize = 40;

/// Which edge a column's cells share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    /// Words.
    Left,
    /// Figures.
    Right,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Column {
    /// Its head, with the unit.
    pub(super) head: &'static str,
    /// The edge its cells share.
    pub(super) align: Align,
    /// The order in which columns fall away, the largest first; `None` stays.
    pub(super) falls: Option<u8>,
    /// A wider cell goes to the line under its row.
    pub(super) cell_max: usize,
}

/// A row: a cell per column but the last, which is `end` and may be followed by words.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    /// Text of each column.
    pub(super) cells: Vec<String>,
    /// What is said under the row when the column is not there, e.g. `confirmed −32.4 % ±1.0`; empty: nothing.
    pub(super) elsewhere: Vec<String>,
    /// The last column's word.
    pub(super) end: String,
    /// That word as it is printed, with colour.
    pub(super) end_printed: String,
    /// Words after it when there is room, under the row otherwise.
    pub(super) why: String,
    /// Lines under the row in any case.
    pub(super) notes: Vec<String>,
}

/// The table in at most `width` columns, each line ended.
pub(super) fn render(columns: &[Column], end_head: &str, rows: &[Row], width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let end_width = rows.iter().map(|row| chars(&row.end)).chain([chars(end_head)]).max().unwrap_or(0);
    let shown = shown_columns(columns, rows, width.saturating_sub(INDENT + end_width));
    let mut out = head_line(&shown, end_head);
    for row in rows.iter().filter(|row| says_something(&shown, row)) {
        push_row(&mut out, &shown, row, width);
    }
    out
}

/// Whether more than a row's name is left of it.
fn says_something(shown: &[Shown], row: &Row) -> bool {
    !row.end.is_empty() || shown.iter().any(|s| s.column.falls.is_some() && !row.cells[s.at].is_empty())
}

/// A column that is shown: its place and its width.
struct Shown {
    at: usize,
    width: usize,
    column: Column,
}

/// The columns that hold anything and fit into `room` together.
fn shown_columns(columns: &[Column], rows: &[Row], room: usize) -> Vec<Shown> {
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

fn column_width(column: &Column, at: usize, rows: &[Row]) -> usize {
    let cells = rows.iter().map(|row| chars(&row.cells[at])).filter(|width| *width <= column.cell_max);
    cells.chain([chars(column.head)]).max().unwrap_or(0)
}

fn head_line(shown: &[Shown], end_head: &str) -> String {
    let mut line = " ".repeat(INDENT);
    for s in shown {
        push_cell(&mut line, s.column.head, s);
    }
    line.push_str(end_head);
    line.push('\n');
    line
}

fn push_row(out: &mut String, shown: &[Shown], row: &Row, width: usize) {
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
    let fits = row.why.is_empty() || chars(&line) + chars(&row.end) + 2 + chars(&row.why) <= width;
    line.push_str(&row.end_printed);
    if fits && !row.why.is_empty() {
        line.push_str(": ");
        line.push_str(&row.why);
    }
    out.push_str(line.trim_end());
    out.push('\n');
    push_notes(out, shown, row, if fits { "" } else { &row.why }, width);
}

/// What has no place in the row, in one paragraph under it.
fn push_notes(out: &mut String, shown: &[Shown], row: &Row, why: &str, width: usize) {
    let has_place = |at: usize| shown.iter().any(|s| s.at == at && chars(&row.cells[at]) <= s.width);
    let fallen =
        row.elsewhere.iter().enumerate().filter(|(at, _)| !has_place(*at)).map(|(_, text)| text.as_str());
    let notes = fallen.chain([why]).chain(row.notes.iter().map(String::as_str));
    let text: Vec<&str> = notes.filter(|note| !note.is_empty()).collect();
    if !text.is_empty() {
        out.push_str(&wrapped(&text.join(" · "), width, NOTE_INDENT));
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

/// A paragraph whose lines all start with `indent` blanks; words longer than a line are cut where it ends.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let room = width.max(WIDTH_MIN).saturating_sub(indent).max(1);
    let mut out = String::new();
    for line in lines(text, room) {
        out.push_str(&" ".repeat(indent));
        out.push_str(&line);
        out.push('\n');
    }
    out
}

/// Lines of at most `room` columns; a figure stays with its unit.
pub(super) fn lines(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in figures_with_units(text) {
        let line = lines.last_mut().expect("there is always a line");
        if line.is_empty() {
            line.push_str(&word);
        } else if chars(line) + 1 + chars(&word) <= room {
            line.push(' ');
            line.push_str(&word);
        } else {
            lines.push(word);
        }
        cut_last(&mut lines, room);
    }
    lines
}

/// Words, with `%`, units and half widths tied to the figure before them.
fn figures_with_units(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let tied = word.starts_with(['%', '±', '·']) || matches!(word, "µs" | "ms" | "s");
        match words.last_mut() {
            Some(last) if tied => last.extend([" ", word]),
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// Splits the last line until it fits.
fn cut_last(lines: &mut Vec<String>, room: usize) {
    while let Some((end, _)) = lines.last().and_then(|line| line.char_indices().nth(room)) {
        let last = lines.last_mut().expect("it was just looked at");
        let rest = last.split_off(end);
        lines.push(rest);
    }
}

/// Columns that a text takes: one per character. Wide scripts take more; names of settings seldom are.
pub(super) fn chars(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [Column; 3] = [
        Column { head: "name", align: Align::Left, falls: None, cell_max: 10 },
        Column { head: "words", align: Align::Left, falls: Some(1), cell_max: 40 },
        Column { head: "figure", align: Align::Right, falls: Some(2), cell_max: 20 },
    ];

    fn row(name: &str, words: &str, figure: &str, why: &str) -> Row {
        Row {
            cells: vec![name.into(), words.into(), figure.into()],
            elsewhere: vec![String::new(), words.into(), format!("figure {figure}")],
            end: "kept".into(),
            end_printed: "kept".into(),
            why: why.into(),
            notes: Vec::new(),
        }
    }

    #[test]
    fn figures_share_their_right_edge_and_words_their_left() {
        let rows = [row("one", "some words", "1.0", ""), row("two", "x", "13.9", "because")];
        assert_eq!(
            render(&COLUMNS, "verdict", &rows, 60),
            "  name  words       figure  verdict\n\
             \x20 one   some words     1.0  kept\n\
             \x20 two   x             13.9  kept: because\n"
        );
    }

    #[test]
    fn a_fallen_column_is_said_under_its_row() {
        let words = "a change that takes much room";
        assert_eq!(
            render(&COLUMNS, "verdict", &[row("one", words, "1.0", "")], 50),
            "  name  words                          verdict\n\
             \x20 one   a change that takes much room  kept\n\
             \x20     figure 1.0\n"
        );
    }

    #[test]
    fn a_long_name_is_whole_on_its_own_line() {
        let text = render(&COLUMNS, "verdict", &[row("a-very-long-name", "x", "1.0", "")], 60);
        assert!(text.contains("  a-very-long-name\n"), "{text}");
    }

    #[test]
    fn a_figure_stays_with_its_unit_and_a_long_word_is_cut() {
        assert_eq!(lines("it is −33.1 % ±0.8 here", 14), ["it is", "−33.1 % ±0.8", "here"]);
        assert_eq!(lines("abcdefgh", 3), ["abc", "def", "gh"]);
    }
}
