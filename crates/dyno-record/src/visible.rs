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
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every character that Unicode TR 9 gives a say in the direction of others. Planted fault: one of them is left out.
    #[test]
    fn no_mark_of_direction_is_obeyed() {
        for mark in
            "\u{61c}\u{200e}\u{200f}\u{202a}\u{202b}\u{202c}\u{202d}\u{202e}\u{2066}\u{2067}\u{2068}\u{2069}"
                .chars()
        {
            assert!(obeyed(mark), "{}", mark.escape_unicode());
            assert_eq!(visible(&format!("a{mark}b")), format!("a{}b", mark.escape_unicode()));
        }
    }
}
