//! What pages and their pictures are put together from: words whose figures stay whole, figures, verdicts.

use super::html::{Tag, tag};
use crate::view::show::{Tone, Verdict};

/// A sentence whose figures stay with their units at line ends.
pub(super) fn tied(sentence: &str) -> String {
    [" %", " ±", " µs", " ms", " MB", " kB", " pairs"]
        .iter()
        .fold(sentence.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")))
}

/// A figure of its own, in tabular digits, never broken.
pub(super) fn figure(text: impl std::fmt::Display) -> Tag {
    tag("span").class("figure").text(text)
}

/// A verdict as a word, with a colour beside it for those who see it.
pub(super) fn verdict_word(verdict: Verdict) -> Tag {
    let class = match verdict.tone {
        Tone::Good => "word good",
        Tone::Bad => "word bad",
        Tone::Doubt => "word doubt",
        Tone::Faint => "word plain",
    };
    tag("span").class(class).text(verdict.word)
}
