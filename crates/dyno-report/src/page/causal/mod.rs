//! The page of a causal profile: a curve for each site, the largest effect first, with what may be believed of it.
//!
//! `dyno causal` writes it, `dyno report` draws it again. It is a pure function of the record and measures nothing.

pub mod coz;
mod curves;
mod figures;
mod head;
#[cfg(test)]
mod tests;
mod words;

use dyno_record::causal::Causal;

use super::html::{document, tag};
use super::parts::{SCRIPT, Section, contents, paragraph};
use crate::number;

const STYLE: &str = concat!(include_str!("../style.css"), include_str!("causal.css"));

/// The whole page.
pub fn render(record: &Causal) -> String {
    let sections = [
        curves::section(record),
        figures::effects(record),
        Some(figures::belief(record)),
        figures::not_measured(record),
        Some(figures::measured(record)),
    ];
    let sections: Vec<Section> = sections.into_iter().flatten().collect();
    let main = tag("main")
        .push(head::head(record))
        .push(contents(&sections))
        .push_all(sections.into_iter().map(Section::tag));
    let made = format!(
        "dyno {} · seed {} · the record beside this page holds every window; nothing on this page asks the network",
        number::visible(&record.version),
        record.seed
    );
    let foot = tag("footer").push(paragraph(made));
    document(&head::title(record), tag("body").push(main).push(foot), STYLE, SCRIPT)
}
