//! A view as Markdown, for a comment on a change or a job's summary: what a terminal shows, the answer first.
//!
//! A third writer of views. Everything that could be markup is written as a numeric character reference, which no reader
//! of Markdown takes for structure (CommonMark 0.31 §2.5).

use dyno_record::condition::Held;

use crate::apply;
use crate::figures;
use crate::number::visible;
use crate::view::block::{Block, Card, Fact, Headline, Item, OnTerminal, View};
use crate::view::table::{Align, Column, Row, Table};

/// Columns of a folded command.
const COMMAND_COLUMNS: usize = 100;

/// The whole text.
pub(super) fn write(view: &View, held: &[Held]) -> String {
    let order =
        [OnTerminal::Answer, OnTerminal::Found, OnTerminal::Above, OnTerminal::Below, OnTerminal::Last];
    let of = |place: OnTerminal| view.sections.iter().filter(move |section| section.on_terminal == place);
    let blocks = order.into_iter().flat_map(of).flat_map(|section| &section.blocks);
    let title = (!view.title.is_empty()).then(|| format!("### {}\n", text(&view.title)));
    let parts = title.into_iter().chain(conditions(held));
    let parts = parts.chain(blocks.map(block)).chain([line(&view.foot)]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Whether the gate holds, before all the rest.
fn conditions(held: &[Held]) -> Option<String> {
    let line = |held: &Held| format!("| {} | {} |\n", text(&held.text), text(&figures::held(held)));
    let lines: String = held.iter().map(line).collect();
    (!held.is_empty()).then(|| format!("| condition | found |\n| --- | --- |\n{lines}"))
}

fn block(block: &Block) -> String {
    match block {
        Block::Headline(one) => headline(one),
        Block::Heading(words) => format!("**{}**\n", text(words)),
        Block::Paragraph(one) => line(&one.words),
        Block::Facts(facts) => {
            facts.iter().filter(|fact| fact.on.terminal() && !fact.is_empty()).map(fact).collect()
        }
        Block::List(label, items) => items.iter().map(|one| item(label, one)).collect(),
        Block::Lines(heading, lines) => {
            let lines: String = lines.iter().map(|one| format!("- {}\n", text(one))).collect();
            format!("**{}**\n\n{lines}", text(heading))
        }
        Block::Commands(_, all) => commands(all),
        Block::Table(one) => table(one),
        Block::Columns(columns) => columns
            .iter()
            .flatten()
            .map(self::block)
            .filter(|part| !part.is_empty())
            .collect::<Vec<_>>()
            .join("\n"),
        Block::Cards(cards) => cards.iter().map(card).collect::<Vec<_>>().join("\n"),
        Block::Figure(_) | Block::Details(..) => String::new(),
    }
}

fn line(words: &str) -> String {
    if words.is_empty() { String::new() } else { format!("{}\n", text(words)) }
}

fn headline(one: &Headline) -> String {
    let parts = [&one.big, &one.unit, &one.subject, &one.rest].map(|part| text(part));
    let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    let interval =
        if one.interval.is_empty() { String::new() } else { format!(" ({})", text(&one.interval)) };
    format!("**{}**{interval}\n", parts.join(" "))
}

fn fact(fact: &Fact) -> String {
    format!("- **{}** {}\n", text(&fact.label), text(&fact.text()))
}

fn item(label: &str, item: &Item) -> String {
    let lead = if item.lead.is_empty() { label } else { &item.lead };
    format!("- **{}** {}\n", text(lead), text(&item.words))
}

/// Between fences that no line of theirs can end.
fn commands(all: &[String]) -> String {
    let lines = all.iter().flat_map(|command| apply::folded(command, COMMAND_COLUMNS));
    let lines: Vec<String> = lines.map(|line| visible_in_place(&line)).collect();
    let longest = lines.iter().flat_map(|line| line.split(|c| c != '`').map(str::len)).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}sh\n{}\n{fence}\n", lines.join("\n"))
}

/// A line of code: its blanks stay, and nothing in it is obeyed.
fn visible_in_place(line: &str) -> String {
    let shown =
        |c: char| if crate::number::obeyed(c) { c.escape_unicode().to_string() } else { c.to_string() };
    line.chars().map(shown).collect()
}

fn card(card: &Card) -> String {
    let aside = match (card.aside.as_str(), &card.verdict) {
        ("", Some(verdict)) => format!("({})", verdict.word),
        (aside, _) => text(aside),
    };
    let head = format!("- **{}** {aside}\n", text(&card.name));
    let said = card.blocks.iter().map(|block| match block {
        Block::Paragraph(one) => format!("  - {}\n", text(&one.words)),
        Block::List(_, items) => {
            items.iter().map(|one| format!("  - {} {}\n", text(&one.lead), text(&one.words))).collect()
        }
        Block::Facts(facts) => {
            facts.iter().filter(|one| one.on.terminal()).map(|one| format!("  {}", fact(one))).collect()
        }
        _ => String::new(),
    });
    std::iter::once(head).chain(said).collect()
}

/// Columns that hold anything. Notes under a row go behind its last cell.
fn table(table: &Table) -> String {
    let on = |at: &usize| {
        table.columns[*at].on.terminal() && table.rows.iter().any(|row| !row.cells[*at].words.is_empty())
    };
    let places: Vec<usize> = (0..table.columns.len()).filter(on).collect();
    if places.is_empty() {
        return String::new();
    }
    let columns: Vec<&Column> = places.iter().map(|at| &table.columns[*at]).collect();
    let heads: String = columns.iter().map(|column| format!(" {} |", text(column.head))).collect();
    let rules: String = columns
        .iter()
        .map(|column| if column.align == Align::Right { " ---: |" } else { " --- |" })
        .collect();
    let rows = table.rows.iter().take(table.terminal_rows_max).map(|one| row(one, &places));
    std::iter::once(format!("|{heads}\n|{rules}\n")).chain(rows).collect()
}

fn row(row: &Row, places: &[usize]) -> String {
    let more =
        std::iter::once(&row.why).chain(&row.notes).chain(&row.sentences).filter(|words| !words.is_empty());
    let more: Vec<String> = more.map(|words| text(words)).collect();
    let last = places.len() - 1;
    let cell = |(at, place): (usize, &usize)| {
        let words = text(&row.cells[*place].words);
        match at == last && !more.is_empty() {
            true => format!(" {words}; {} |", more.join("; ")),
            false => format!(" {words} |"),
        }
    };
    let cells: String = places.iter().enumerate().map(cell).collect();
    format!("|{cells}\n")
}

/// Words on one line, with nothing in them that Markdown, HTML or a mention would make something of.
fn text(words: &str) -> String {
    let shown = visible(words);
    let mut out = String::with_capacity(shown.len());
    let mut start = true;
    let mut letters = shown.chars().peekable();
    while let Some(c) = letters.next() {
        let markup = matches!(
            c,
            '<' | '>' | '&' | '|' | '`' | '*' | '_' | '[' | ']' | '\\' | '~' | '@' | '#' | '!' | '$' | '^'
        );
        // At the start of a line these begin lists, headings and rules; digits are a list's number before a dot and a blank.
        let numbered = matches!(c, '.' | ')') && letters.peek().is_none_or(|next| *next == ' ');
        let begins = start && (matches!(c, '-' | '+' | '=' | ':') || numbered);
        // Behind the letters of a scheme or a host these make a link.
        let links = c == ':' && shown.contains("://") || c == '.' && shown.contains("www.");
        start = start && c.is_ascii_digit();
        if markup || begins || links {
            out.push_str(&format!("&#{};", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_markup() {
        assert_eq!(text("<b>|a|*x*"), "&#60;b&#62;&#124;a&#124;&#42;x&#42;");
        assert_eq!([text("- a"), text("1. a"), text("3.89 ms")], ["&#45; a", "1&#46; a", "3.89 ms"]);
        assert_eq!([text("a\nb"), text("@all"), text("http://h")], ["a b", "&#64;all", "http&#58;//h"]);
    }
}
