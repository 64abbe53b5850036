//! Verdicts, effects and sites of a causal profile in the words of its page.

use dyno_record::causal::{Point, Site, Verdict};

use crate::number;
use crate::page::html::{Tag, tag};
use crate::page::parts::tied;

/// The verdict, coloured; the words say it without colour.
pub(super) fn verdict_word(verdict: Verdict) -> Tag {
    let colour = match verdict {
        Verdict::Helps => "word good",
        Verdict::Hurts => "word bad",
        Verdict::NoEffect => "word plain",
        Verdict::NotMeasurable => "word doubt",
    };
    tag("span").class(colour).text(verdict.words())
}

/// What one level brings, in words: `−3.1 % ±0.8` is a loss.
pub(super) fn point_words(point: &Point) -> String {
    tied(&number::effect(point.effect_percent, point.interval_percent))
}

/// A sentence about a site for those who do not see its curve.
pub(super) fn sentence(site: &Site) -> String {
    let level = |point: &Point| format!("{} % faster: {}", point.speedup_percent, point_words(point));
    let levels: Vec<String> = site.points.iter().map(level).collect();
    format!("{}: {}. {}", number::visible(&site.name), site.verdict.words(), levels.join(", "))
}
