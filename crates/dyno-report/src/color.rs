//! Whether words on the terminal may be coloured: the caller knows, by flag, environment and terminal.

use crate::view::show::Tone;

/// Whether words may be coloured. Figures never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Text alone.
    Plain,
    /// ANSI colours on verdicts and warnings.
    Ansi,
}

/// A word as it is shown.
pub(crate) fn painted(word: &str, tone: Tone, color: Color) -> String {
    let sgr = match tone {
        Tone::Good => 32,
        Tone::Bad => 31,
        Tone::Doubt => 33,
        Tone::Faint => 2,
    };
    match color {
        Color::Ansi if !word.is_empty() => format!("\u{1b}[{sgr}m{word}\u{1b}[0m"),
        _ => word.to_owned(),
    }
}
