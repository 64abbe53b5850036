//! What every page is put together from: sections with a place in the contents, paragraphs, facts, figures.

use super::html::{Tag, tag};
use crate::number;

/// What every page can do beside being read.
pub(super) const SCRIPT: &str = include_str!("page.js");

/// A part of the page with a place in its contents.
pub(super) struct Section {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) content: Tag,
}

impl Section {
    /// A section; its content is a `div` that sections fill.
    pub(super) fn new(id: &'static str, title: &'static str, content: Tag) -> Self {
        Self { id, title, content }
    }

    pub(super) fn tag(self) -> Tag {
        let heading = tag("h2").text(self.title);
        tag("section").attr("id", self.id).push(heading).push(self.content)
    }
}

pub(super) fn contents(sections: &[Section]) -> Tag {
    let link = |section: &Section| {
        tag("li").push(tag("a").attr("href", format!("#{}", section.id)).text(section.title))
    };
    let list = tag("ul").push_all(sections.iter().map(link));
    tag("nav").attr("aria-label", "Contents").push(list)
}

/// A paragraph.
pub(super) fn paragraph(text: impl std::fmt::Display) -> Tag {
    tag("p").text(text)
}

/// A sentence of this program whose figures stay with their units at line ends.
pub(super) fn tied(sentence: &str) -> String {
    [" %", " ±", " µs", " ms", " MB", " kB", " pairs"]
        .iter()
        .fold(sentence.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")))
}

/// A figure of its own, in tabular digits, never broken.
pub(super) fn figure(text: impl std::fmt::Display) -> Tag {
    tag("span").class("figure").text(text)
}

/// A list of names and what they are; pairs without content are left out.
pub(super) fn facts(pairs: impl IntoIterator<Item = (&'static str, Tag)>) -> Tag {
    let list = tag("dl").class("facts");
    let filled = pairs.into_iter().filter(|(_, content)| !content.is_empty());
    filled.fold(list, |list, (name, content)| list.push(tag("div").push(tag("dt").text(name)).push(content)))
}

/// The content of a fact.
pub(super) fn fact(text: impl std::fmt::Display) -> Tag {
    tag("dd").text(text)
}

/// An effect in words for a sentence: `−33.1 % ±0.8`, or nothing.
pub(super) fn effect_words(value: Option<f64>, interval: Option<[f64; 2]>) -> String {
    match (value, interval) {
        (Some(value), Some(interval)) => number::effect(value, interval),
        (Some(value), None) => number::percent(value),
        (None, _) => String::new(),
    }
}
