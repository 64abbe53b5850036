//! What a view is put together from: sections of blocks, with their place in a terminal and on a page.
//!
//! The makers of views fill these types, the writers draw them. They hold words and figures, never a layout.

use super::chart::Figure;
use super::show::{On, Verdict};
use super::table::Table;

/// All that is said of a record.
#[derive(Debug, Clone)]
pub(crate) struct View {
    /// The window's title.
    pub(crate) title: String,
    /// What it is, of what, when and for how long: the line over a page.
    pub(crate) kicker: String,
    /// Its parts, in the order of a page.
    pub(crate) sections: Vec<Section>,
    /// By what and from what it was made: the line under a page.
    pub(crate) foot: String,
    /// Columns that the labels of facts take on a terminal.
    pub(crate) label_columns: usize,
}

impl View {
    /// A view that no page shows.
    pub(crate) fn terminal(label_columns: usize, groups: Vec<(OnTerminal, Block)>) -> Self {
        let section = |(place, block)| Section::new("", "", (OnPage::Nowhere, place), vec![block]);
        let sections = groups.into_iter().map(section).collect();
        Self { title: String::new(), kicker: String::new(), sections, foot: String::new(), label_columns }
    }
}

/// Where a section stands on a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnPage {
    /// Above the contents, over the whole width.
    Head,
    /// Above the contents, beside its neighbour.
    Beside,
    /// Below the contents, which name it.
    Body,
    /// A page has no room for it or says it elsewhere.
    Nowhere,
}

/// Where a section stands on a terminal, which is read from its end. A blank line parts the groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OnTerminal {
    /// Of what the rest is said.
    Above,
    /// What was found, one by one; a blank line parts its blocks.
    Found,
    /// What all of it comes to.
    Answer,
    /// What limits the answer.
    Below,
    /// What changes how all of it is to be read.
    Last,
    /// A terminal cannot show it or says it elsewhere.
    Nowhere,
}

/// A part of a view.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Its anchor on a page.
    pub(crate) id: &'static str,
    /// Its heading on a page; empty: none.
    pub(crate) heading: &'static str,
    pub(crate) on_page: OnPage,
    pub(crate) on_terminal: OnTerminal,
    pub(crate) blocks: Vec<Block>,
}

impl Section {
    /// A part of both.
    pub(crate) fn new(
        id: &'static str,
        heading: &'static str,
        (on_page, on_terminal): (OnPage, OnTerminal),
        blocks: Vec<Block>,
    ) -> Self {
        let nowhere = on_page == OnPage::Nowhere && on_terminal == OnTerminal::Nowhere;
        assert!(!nowhere, "{id}: what nobody draws is not made");
        assert!(on_page != OnPage::Body || !heading.is_empty(), "{id}: the contents name each section");
        Self { id, heading, on_page, on_terminal, blocks }
    }

    /// A part of the page alone.
    pub(crate) fn page(id: &'static str, heading: &'static str, on_page: OnPage, blocks: Vec<Block>) -> Self {
        Self::new(id, heading, (on_page, OnTerminal::Nowhere), blocks)
    }
}

/// One thing that is said or shown.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// The answer in large letters.
    Headline(Headline),
    /// A heading below a section's own.
    Heading(&'static str),
    /// A paragraph.
    Paragraph(Paragraph),
    /// Names and what they are.
    Facts(Vec<Fact>),
    /// A label, and things of its kind, one under the other.
    List(&'static str, Vec<Item>),
    /// A heading, and lines that are each a sentence.
    Lines(&'static str, Vec<String>),
    /// Commands to copy, with their label.
    Commands(&'static str, Vec<String>),
    Table(Table),
    /// A picture: pages draw it, its sentence is for those who do not see it.
    Figure(Figure),
    /// One click away on a page.
    Details(String, Vec<Block>),
    /// One thing of several, with all that is known of it.
    Cards(Vec<Card>),
    /// Blocks side by side where there is room.
    Columns(Vec<Vec<Block>>),
}

/// The answer in large letters.
#[derive(Debug, Clone, Default)]
pub(crate) struct Headline {
    /// The figure, if there is one.
    pub(crate) big: String,
    /// Its unit, or the answer in words.
    pub(crate) unit: String,
    /// What it is the answer about, a name from the record, between the unit and the rest.
    pub(crate) subject: String,
    pub(crate) rest: String,
    /// How sure the figure is.
    pub(crate) interval: String,
    /// How it was come by.
    pub(crate) from: String,
}

/// How a paragraph is said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Voice {
    #[default]
    Plain,
    /// What something is said to do.
    Claim,
    /// A reason; its line ends count.
    Why,
    /// An aside.
    Small,
}

/// A paragraph, perhaps with a few words that lead it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paragraph {
    pub(crate) lead: &'static str,
    pub(crate) words: String,
    pub(crate) voice: Voice,
}

/// What a fact is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    #[default]
    Plain,
    /// What changes how all the rest is to be read.
    Alert,
    /// A command or a setting, as it would be typed.
    Code,
}

/// A name and what it is; one without content is left out.
#[derive(Debug, Clone, Default)]
pub(crate) struct Fact {
    pub(crate) label: String,
    /// A figure before the words.
    pub(crate) figure: String,
    pub(crate) words: String,
    pub(crate) kind: Kind,
    pub(crate) on: On,
}

impl Fact {
    /// Of both writers.
    pub(crate) fn new(label: impl Into<String>, words: impl Into<String>) -> Self {
        Self { label: label.into(), words: words.into(), ..Self::default() }
    }

    /// With a figure of its own before the words.
    pub(crate) fn with_figure(label: &str, figure: String, words: impl Into<String>) -> Self {
        Self { figure, ..Self::new(label, words) }
    }

    pub(crate) fn alert(label: &str, words: impl Into<String>) -> Self {
        Self { kind: Kind::Alert, ..Self::new(label, words) }
    }

    pub(crate) fn code(label: &str, words: impl Into<String>) -> Self {
        Self { kind: Kind::Code, ..Self::new(label, words) }
    }

    pub(crate) fn on(self, on: On) -> Self {
        Self { on, ..self }
    }

    /// Figure and words in one.
    pub(crate) fn text(&self) -> String {
        format!("{}{}", self.figure, self.words)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.figure.is_empty() && self.words.is_empty()
    }
}

/// An entry of a list: a few words that lead it, and the rest.
#[derive(Debug, Clone, Default)]
pub(crate) struct Item {
    pub(crate) lead: String,
    pub(crate) words: String,
    /// Entries of its own.
    pub(crate) items: Vec<Item>,
}

impl Item {
    pub(crate) fn new(lead: impl Into<String>, words: impl Into<String>) -> Self {
        Self { lead: lead.into(), words: words.into(), items: Vec::new() }
    }
}

/// One thing of several.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// Its anchor, e.g. `rung-1`.
    pub(crate) anchor: String,
    pub(crate) name: String,
    /// What is said beside the name.
    pub(crate) aside: String,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) shown: Shown,
    pub(crate) blocks: Vec<Block>,
}

/// How much of a card a page shows at first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// All of it.
    Open,
    /// Its heading; the rest at a click, or when a link leads there.
    Folded,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "what nobody draws is not made")]
    fn a_section_that_nobody_draws_is_a_mistake() {
        Section::new("x", "X", (OnPage::Nowhere, OnTerminal::Nowhere), Vec::new());
    }

    #[test]
    #[should_panic(expected = "the contents name each section")]
    fn a_section_of_the_body_without_a_heading_is_a_mistake() {
        Section::page("x", "", OnPage::Body, Vec::new());
    }
}
