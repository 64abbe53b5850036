//! The page of a causal profile: a curve for each site, the largest effect first, with what may be believed of it.
//!
//! `dyno causal` writes it, `dyno report` draws it again. It is a pure function of the record and measures nothing.

pub mod coz;
mod curves;
mod figures;
mod head;
#[cfg(test)]
mod tests;

use dyno_record::causal::{Causal, Point, Site, Verdict};

use super::html::{Tag, document, tag};
use super::parts::{SCRIPT, Section, contents, paragraph, tied};
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

/// The verdict, coloured; the words say it without colour.
fn verdict_word(verdict: Verdict) -> Tag {
    let colour = match verdict {
        Verdict::Helps => "word good",
        Verdict::Hurts => "word bad",
        Verdict::NoEffect => "word plain",
        Verdict::NotMeasurable => "word doubt",
    };
    tag("span").class(colour).text(verdict.words())
}

/// What one level brings, in words: `−3.1 % ±0.8` is a loss.
fn point_words(point: &Point) -> String {
    tied(&number::effect(point.effect_percent, point.interval_percent))
}

/// A sentence about a site for those who do not see its curve.
fn sentence(site: &Site) -> String {
    let level = |point: &Point| format!("{} % faster: {}", point.speedup_percent, point_words(point));
    let levels: Vec<String> = site.points.iter().map(level).collect();
    format!("{}: {}. {}", number::visible(&site.name), site.verdict.words(), levels.join(", "))
}
