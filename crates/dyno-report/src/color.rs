//! Whether words on the terminal may be coloured: the caller knows, by flag, environment and terminal.

/// Whether words may be coloured. Figures never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// Text alone.
    Plain,
    /// ANSI colours on verdicts and warnings.
    Ansi,
}
