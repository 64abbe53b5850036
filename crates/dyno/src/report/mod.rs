//! The page of a climb: one file, no network, readable without scripts.
//!
//! `dyno climb` writes it, `dyno report` redraws any old record. A page says nothing that is not in its record and
//! measures nothing; it is a pure function of it.

pub(crate) mod apply;
mod card;
pub(crate) mod causal;
mod chart;
mod conditions;
mod figures;
pub(crate) mod flame;
mod foretold;
mod html;
mod ladder;
mod latency;
mod look;
#[cfg(test)]
pub(crate) mod sample;
mod series;
mod summary;
mod table;
#[cfg(test)]
mod tests;

use dyno_record::climb::Climb;

use crate::print::number;
use html::{Tag, tag};

/// Raw points on a page, over all its series: ten bytes each leave room for everything else within 400 kB.
const POINTS_MAX: usize = 12_000;

const STYLE: &str = include_str!("style.css");
const STYLE_WITH_FLAMES: &str = concat!(include_str!("style.css"), include_str!("flame/flame.css"));
const SCRIPT: &str = include_str!("page.js");

/// The whole page.
pub(crate) fn render(climb: &Climb) -> String {
    let view = View::of(climb);
    let sections = [
        ladder::section(&view),
        card::section(&view),
        latency::section(&view),
        figures::section(&view),
        conditions::noise(&view),
        conditions::machine(&view),
        conditions::not_measured(&view),
    ];
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let main = tag("main")
        .push(summary::head(&view))
        .push(contents(&sections))
        .push_all(sections.into_iter().map(Section::tag));
    let body = tag("body").push(main).push(foot(climb));
    // The colours of flame graphs only where there are some.
    let style = if climb.profiles.is_empty() { STYLE } else { STYLE_WITH_FLAMES };
    html::document(&summary::title(climb), body, style, SCRIPT)
}

/// A climb and what every section needs to know to draw it.
struct View<'c> {
    climb: &'c Climb,
    /// Every how many-th raw point is drawn.
    stride: usize,
}

impl<'c> View<'c> {
    fn of(climb: &'c Climb) -> Self {
        let pairs: usize = climb.series.trials.iter().map(|compared| compared.trial.pairs.len()).sum();
        Self { climb, stride: (pairs + climb.series.rounds.len()).div_ceil(POINTS_MAX).max(1) }
    }
}

/// A part of the page with a place in its contents.
struct Section {
    id: &'static str,
    title: &'static str,
    content: Tag,
}

impl Section {
    /// A section; its content is a `div` that sections fill.
    fn new(id: &'static str, title: &'static str, content: Tag) -> Self {
        Self { id, title, content }
    }

    fn tag(self) -> Tag {
        let heading = tag("h2").text(self.title);
        tag("section").attr("id", self.id).push(heading).push(self.content)
    }
}

fn contents(sections: &[Section]) -> Tag {
    let link = |section: &Section| {
        tag("li").push(tag("a").attr("href", format!("#{}", section.id)).text(section.title))
    };
    let list = tag("ul").push_all(sections.iter().map(link));
    tag("nav").attr("aria-label", "Contents").push(list)
}

fn foot(climb: &Climb) -> Tag {
    let made = format!(
        "dyno {} · seed {} · the record beside this page holds every block; dyno judge reaches the same verdicts from it.",
        climb.version, climb.seed
    );
    tag("footer").push(tag("p").text(made))
}

/// A paragraph.
fn paragraph(text: impl std::fmt::Display) -> Tag {
    tag("p").text(text)
}

/// A sentence of this program whose figures stay with their units at line ends.
fn tied(sentence: &str) -> String {
    [" %", " ±", " µs", " ms", " MB", " kB", " pairs"]
        .iter()
        .fold(sentence.to_owned(), |text, unit| text.replace(unit, &unit.replace(' ', "\u{a0}")))
}

/// A figure of its own, in tabular digits, never broken.
fn figure(text: impl std::fmt::Display) -> Tag {
    tag("span").class("figure").text(text)
}

/// A list of names and what they are; pairs without content are left out.
fn facts(pairs: impl IntoIterator<Item = (&'static str, Tag)>) -> Tag {
    let list = tag("dl").class("facts");
    let filled = pairs.into_iter().filter(|(_, content)| !content.is_empty());
    filled.fold(list, |list, (name, content)| list.push(tag("div").push(tag("dt").text(name)).push(content)))
}

/// The content of a fact.
fn fact(text: impl std::fmt::Display) -> Tag {
    tag("dd").text(text)
}

/// An effect in words for a sentence: `−33.1 % ±0.8`, or nothing.
fn effect_words(value: Option<f64>, interval: Option<[f64; 2]>) -> String {
    match (value, interval) {
        (Some(value), Some(interval)) => number::effect(value, interval),
        (Some(value), None) => number::percent(value),
        (None, _) => String::new(),
    }
}
