//! A view as a page: its head, its contents, its sections, each block as a tag.
//!
//! The pages of every record are drawn by it. It knows no record; a page says nothing that is not in its view.

use super::html::{Tag, document, tag};
use super::parts::{figure, tied, verdict_word};
use super::table::table;
use super::{boxes, chart};
use crate::apply;
use crate::view::block::{
    Block, Card, Fact, Headline, Item, Kind, OnPage, Paragraph, Section, Shown, View, Voice,
};
use crate::view::chart::{Chart, Figure};

/// What every page can do beside being read.
pub(super) const SCRIPT: &str = include_str!("page.js");

/// The whole page, with data for its script if it has any.
pub(super) fn page(view: &View, data: Option<Tag>, style: &'static str, script: &'static str) -> String {
    let body = view.sections.iter().filter(|section| section.on_page == OnPage::Body);
    let main = tag("main").push(head(view)).push(contents(view)).push_all(body.map(of_body));
    let foot = tag("footer").push(tag("p").text(&view.foot));
    document(&view.title, tag("body").push(main).push(foot).push_all(data), style, script)
}

/// Everything above the contents. Sections beside each other share a row.
fn head(view: &View) -> Tag {
    let mut header = tag("header").push(tag("p").class("kicker").text(&view.kicker));
    let sections: Vec<&Section> = view.sections.iter().collect();
    let above = |section: &&&Section| matches!(section.on_page, OnPage::Head | OnPage::Beside);
    let above: Vec<&Section> = sections.iter().filter(above).copied().collect();
    for run in above.chunk_by(|a, b| a.on_page == b.on_page) {
        header = match run[0].on_page {
            OnPage::Beside => {
                header.push(tag("div").class("aside").push_all(run.iter().map(|one| beside(one))))
            }
            _ => header.push_all(run.iter().flat_map(|one| &one.blocks).flat_map(block)),
        };
    }
    header
}

fn beside(section: &Section) -> Tag {
    let heading = tag("h2").text(section.heading);
    tag("div").attr("id", section.id).push(heading).push_all(section.blocks.iter().flat_map(block))
}

fn contents(view: &View) -> Tag {
    let body = view.sections.iter().filter(|section| section.on_page == OnPage::Body);
    let link = |section: &Section| {
        tag("li").push(tag("a").attr("href", format!("#{}", section.id)).text(section.heading))
    };
    tag("nav").attr("aria-label", "Contents").push(tag("ul").push_all(body.map(link)))
}

fn of_body(section: &Section) -> Tag {
    let heading = tag("h2").text(section.heading);
    tag("section").attr("id", section.id).push(heading).push_all(section.blocks.iter().flat_map(block))
}

/// A block as tags: facts that change how the rest is read stand apart from the others.
fn block(block: &Block) -> Vec<Tag> {
    match block {
        Block::Headline(one) => headline(one),
        Block::Heading(text) => vec![tag("h4").text(text)],
        Block::Paragraph(one) => vec![paragraph(one)],
        Block::Facts(all) => facts(all),
        Block::List(_, items) => vec![list(items)],
        Block::Lines(heading, lines) => vec![tag("h4").text(heading), sentences(lines)],
        Block::Commands(_, all) => vec![commands(all)],
        Block::Table(one) => vec![table(one)],
        Block::Figure(one) => vec![pictured(one)],
        Block::Details(summary, blocks) => vec![details(summary, blocks)],
        Block::Cards(cards) => vec![tag("div").class("cards").push_all(cards.iter().map(card))],
        Block::Columns(columns) => vec![side_by_side(columns)],
    }
}

/// Nothing is drawn of what is empty.
fn unless_empty(made: Tag) -> Option<Tag> {
    (!made.is_empty()).then_some(made)
}

fn headline(one: &Headline) -> Vec<Tag> {
    let unit = tag("span").class("unit").text(tied(&one.unit));
    let unit = match one.subject.is_empty() {
        true => unit,
        false => unit.text(" ").push(tag("code").text(&one.subject)).text(" ").text(tied(&one.rest)),
    };
    let big = unless_empty(tag("span").class("big").text(tied(&one.big)));
    let heading = tag("h1").push_all(big).text(" ").push(unit);
    let interval = unless_empty(tag("p").class("interval").text(tied(&one.interval)));
    let from = unless_empty(tag("p").class("from").text(tied(&one.from)));
    std::iter::once(heading).chain(interval).chain(from).collect()
}

fn paragraph(one: &Paragraph) -> Tag {
    let made = match one.voice {
        Voice::Plain => tag("p"),
        Voice::Claim => tag("p").class("claim"),
        Voice::Why => tag("p").class("why"),
        Voice::Small => tag("p").class("small-words"),
    };
    match one.lead {
        "" => made.text(tied(&one.words)),
        lead => made.push(tag("b").text(lead)).text(" ").text(tied(&one.words)),
    }
}

/// A list of names and what they are; those without content are left out.
fn facts(all: &[Fact]) -> Vec<Tag> {
    let shown = || all.iter().filter(|fact| fact.on.page() && !fact.is_empty());
    let alerts = shown().filter(|fact| fact.kind == Kind::Alert).map(alert);
    let plain = shown().filter(|fact| fact.kind != Kind::Alert).map(fact);
    alerts.chain(unless_empty(tag("dl").class("facts").push_all(plain))).collect()
}

fn alert(fact: &Fact) -> Tag {
    let lead = tag("strong").text(format!("{}.", capital(&fact.label)));
    tag("p").class("alert").push(lead).text(" ").text(tied(&fact.text()))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(char::to_uppercase).into_iter().flatten().chain(letters).collect()
}

fn fact(fact: &Fact) -> Tag {
    let content = match fact.kind {
        Kind::Code => tag("dd").push(tag("code").text(&fact.words)),
        _ if fact.figure.is_empty() => tag("dd").text(tied(&fact.words)),
        _ => tag("dd").push(figure(tied(&fact.figure))).text(tied(&fact.words)),
    };
    tag("div").push(tag("dt").text(&fact.label)).push(content)
}

fn list(items: &[Item]) -> Tag {
    let item = |one: &Item| {
        let inner = (!one.items.is_empty()).then(|| list(&one.items));
        tag("li").push(tag("b").text(&one.lead)).text(" ").text(tied(&one.words)).push_all(inner)
    };
    tag("ul").push_all(items.iter().map(item))
}

fn sentences(lines: &[String]) -> Tag {
    tag("ul").push_all(lines.iter().map(|line| tag("li").text(tied(line))))
}

/// Commands, as they can be pasted.
fn commands(all: &[String]) -> Tag {
    let text: Vec<String> =
        all.iter().map(|command| apply::folded(command, apply::PAGE_COLUMNS).join("\n")).collect();
    tag("pre").attr("data-copy", "command").push(tag("code").text(text.join("\n")))
}

fn pictured(one: &Figure) -> Tag {
    if let Chart::Explorable(shown) = &one.chart {
        return boxes::explorable(shown, &one.sentence, &one.caption);
    }
    let caption = unless_empty(tag("figcaption").text(tied(&one.caption)));
    tag("figure").push(chart::figure(one)).push_all(caption)
}

fn details(summary: &str, blocks: &[Block]) -> Tag {
    tag("details").push(tag("summary").text(tied(summary))).push_all(blocks.iter().flat_map(block))
}

fn card(card: &Card) -> Tag {
    let aside = unless_empty(tag("span").class("change").text(&card.aside));
    let title = tag("h3").push(tag("span").class("id").text(&card.name)).push_all(aside);
    let title = title.push_all(card.verdict.map(verdict_word));
    let blocks = card.blocks.iter().flat_map(block);
    match card.shown {
        Shown::Open => tag("article").class("card").attr("id", &card.anchor).push(title).push_all(blocks),
        // The anchor lies within, so that whoever follows a link to it finds it open.
        Shown::Folded => {
            let summary = tag("summary").push(title.attr("id", &card.anchor));
            let folded = tag("details").class("folded").push(summary).push_all(blocks);
            tag("article").class("card").push(folded)
        }
    }
}

fn side_by_side(columns: &[Vec<Block>]) -> Tag {
    let column = |blocks: &Vec<Block>| tag("div").push_all(blocks.iter().flat_map(block));
    tag("div").class("columns").push_all(columns.iter().map(column))
}
