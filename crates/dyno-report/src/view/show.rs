//! Who shows a thing, and how good or bad a word is.
//!
//! Blocks, tables and charts share these.

/// Who shows a fact or a column.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum On {
    #[default]
    Both,
    Terminal,
    Page,
}

impl On {
    pub(crate) fn terminal(self) -> bool {
        self != On::Page
    }

    pub(crate) fn page(self) -> bool {
        self != On::Terminal
    }
}

/// How good or bad a word is; colour never says it alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    Good,
    Bad,
    Doubt,
    /// Says little.
    #[default]
    Faint,
}

/// A verdict: a word and its tone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) word: &'static str,
    pub(crate) tone: Tone,
}
