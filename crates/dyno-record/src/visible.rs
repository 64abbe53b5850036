//! Text from elsewhere, shown and never obeyed: records, plans and the outputs of programs come from strangers.
//!
//! Called by everything that draws a record or prints a failure.

/// Text of a record on one line, with nothing in it that a terminal would obey.
///
/// Records come from strangers: an escape sequence or a reversal of the writing direction is shown as its number.
pub fn visible(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    in_place(&words.join(" "))
}

/// The same for a line whose blanks say where something stands; a tab is a blank.
pub fn in_place(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if c == '\t' {
            out.push(' ');
        } else if obeyed(c) {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a terminal or a text renderer acts on this character instead of showing it (Unicode TR 9 for directions).
pub fn obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}
