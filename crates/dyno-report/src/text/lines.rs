//! Paragraphs in lines of a width, with figures never parted from their units.
//!
//! The writer of views and the tables use it. Widths are arguments.

/// A paragraph whose lines all start with `indent` blanks; words longer than a line are cut where it ends.
pub(super) fn wrapped(text: &str, width: usize, indent: usize) -> String {
    let room = width.saturating_sub(indent).max(1);
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

    #[test]
    fn a_figure_stays_with_its_unit_and_a_long_word_is_cut() {
        assert_eq!(lines("it is −33.1 % ±0.8 here", 14), ["it is", "−33.1 % ±0.8", "here"]);
        assert_eq!(lines("abcdefgh", 3), ["abc", "def", "gh"]);
    }
}
