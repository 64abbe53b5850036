//! A view on a terminal: labels with their paragraphs, tables, cards.
//!
//! The functions of [`super`] call it for every record. It knows no record; width and colour are arguments, and nothing in
//! a view is obeyed by the terminal.

use super::lines::{lines, wrapped};
use super::table;
use crate::apply;
use crate::color::{Color, painted};
use crate::number::visible;
use crate::view::block::{Block, Card, Fact, Item, Kind, OnTerminal, Section, View};
use crate::view::show::Tone;

/// The narrowest terminal: below this one wraps whatever one does.
pub(super) const WIDTH_MIN: usize = 40;
/// Columns before lines without a label.
const LINE_INDENT: usize = 2;
/// Columns before what stands under a card's name, and before its points; those of their marks.
const CARD_INDENT: usize = 5;
const POINT_INDENT: usize = 7;
const MARK_COLUMNS: usize = 4;

/// The whole view in at most `width` columns, 40 at least.
pub(super) fn view(view: &View, width: usize, color: Color) -> String {
    let mut writer =
        Writer { out: String::new(), width: width.max(WIDTH_MIN), color, labels: view.label_columns };
    let on = |place: OnTerminal| view.sections.iter().filter(move |section| section.on_terminal == place);
    writer.group(on(OnTerminal::Above));
    writer.found(on(OnTerminal::Found));
    let rest = [OnTerminal::Answer, OnTerminal::Below, OnTerminal::Last];
    writer.group(rest.into_iter().flat_map(on));
    writer.out
}

struct Writer {
    out: String,
    width: usize,
    color: Color,
    labels: usize,
}

impl Writer {
    /// Sections that stand together.
    fn group<'s>(&mut self, sections: impl Iterator<Item = &'s Section>) {
        let before = self.out.len();
        sections.flat_map(|section| &section.blocks).for_each(|block| self.block(block));
        if before > 0 && self.out.len() > before {
            self.out.insert(before, '\n');
        }
    }

    /// Sections whose blocks stand apart.
    fn found<'s>(&mut self, sections: impl Iterator<Item = &'s Section>) {
        for block in sections.flat_map(|section| &section.blocks) {
            let before = self.out.len();
            self.block(block);
            if before > 0 && self.out.len() > before {
                self.out.insert(before, '\n');
            }
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Facts(facts) => {
                facts.iter().filter(|fact| fact.on.terminal()).for_each(|fact| self.fact(fact));
            }
            Block::List(label, items) => items.iter().for_each(|item| {
                self.label(label, label, &format!("{} {}", item.lead, item.words));
            }),
            Block::Lines(heading, lines) => std::iter::once(*heading)
                .chain(lines.iter().map(String::as_str))
                .for_each(|line| self.out.push_str(&wrapped(&visible(line), self.width, LINE_INDENT))),
            Block::Commands(label, commands) => self.commands(label, commands),
            Block::Paragraph(paragraph) => {
                self.out.push_str(&wrapped(&visible(&paragraph.words), self.width, 0));
            }
            Block::Table(table) => self.out.push_str(&table::render(table, self.width, self.color)),
            Block::Columns(columns) => columns.iter().flatten().for_each(|block| self.block(block)),
            Block::Cards(cards) => self.cards(cards),
            // Large letters, pictures and what is one click away belong to pages; a terminal has their words elsewhere.
            Block::Headline(_) | Block::Heading(_) | Block::Figure(_) | Block::Details(..) => {}
        }
    }

    fn fact(&mut self, fact: &Fact) {
        if fact.is_empty() {
            return;
        }
        let printed = match fact.kind {
            Kind::Alert => painted(&fact.label, Tone::Doubt, self.color),
            Kind::Plain | Kind::Code => fact.label.clone(),
        };
        self.label(&fact.label, &printed, &fact.text());
    }

    /// A label, and beside it a paragraph. `printed` is the label as it is shown, with colour.
    fn label(&mut self, label: &str, printed: &str, text: &str) {
        let room = self.width - self.labels;
        for (k, line) in lines(&visible(text), room).iter().enumerate() {
            let (label, printed) = if k == 0 { (label, printed) } else { ("", "") };
            let blanks = " ".repeat(self.labels.saturating_sub(label.chars().count()));
            self.out.extend([printed, &blanks, line, "\n"]);
        }
    }

    /// Commands are folded between arguments, so that what is copied still runs.
    fn commands(&mut self, label: &str, commands: &[String]) {
        let room = self.width - self.labels;
        for (k, line) in commands.iter().flat_map(|command| apply::folded(command, room)).enumerate() {
            let label = if k == 0 { label } else { "" };
            self.out.push_str(&format!("{label:<columns$}{line}\n", columns = self.labels));
        }
    }

    fn cards(&mut self, cards: &[Card]) {
        for (at, card) in cards.iter().enumerate() {
            let tone = card.verdict.map_or(Tone::Faint, |verdict| verdict.tone);
            let name = painted(&visible(&card.name), tone, self.color);
            let parting = if at > 0 { "\n" } else { "" };
            let aside = visible(&card.aside);
            let columns = CARD_INDENT + visible(&card.name).chars().count() + 2 + aside.chars().count();
            if columns <= self.width {
                self.out.push_str(&format!("{parting}{:>3}  {name}  {aside}\n", at + 1));
            } else {
                self.out.push_str(&format!("{parting}{:>3}  {name}\n", at + 1));
                self.out.push_str(&wrapped(&aside, self.width, CARD_INDENT));
            }
            card.blocks.iter().for_each(|block| self.of_card(block));
        }
    }

    fn of_card(&mut self, block: &Block) {
        match block {
            Block::Paragraph(said) => {
                self.out.push_str(&wrapped(&visible(&said.words), self.width, CARD_INDENT));
            }
            Block::List(_, items) => {
                let longest = items.iter().map(|item| item.lead.chars().count() + 1).max();
                let columns = longest.unwrap_or(0).max(MARK_COLUMNS);
                items.iter().for_each(|item| self.point(item, columns));
            }
            _ => self.block(block),
        }
    }

    /// A mark and its words, with a blank between them at least.
    fn point(&mut self, item: &Item, columns: usize) {
        let room = self.width - POINT_INDENT - columns;
        for (k, line) in lines(&visible(&item.words), room).iter().enumerate() {
            let mark = if k == 0 { item.lead.as_str() } else { "" };
            self.out.push_str(&format!("{:POINT_INDENT$}{mark:<columns$}{line}\n", ""));
        }
    }
}
