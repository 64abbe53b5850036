//! The ladder: a row of bars for each rung on one scale, beside its name, its figure and its verdict.

use super::strip::{axis, strip};
use crate::page::html::{Tag, tag};
use crate::page::parts::{figure, tied, verdict_word};
use crate::view::chart::{Ladder, LadderRung, Mark, Scale};

/// Six lines of its column; the card says the rest.
const WHY_CHARS_MAX: usize = 160;

/// The picture: the key, the scale, a row for each rung.
pub(super) fn ladder(ladder: &Ladder) -> Tag {
    let sides = ladder.sides.iter().map(|side| tag("span").text(side));
    let scale = tag("div").class("strip-cell").push(tag("p").class("sides").push_all(sides));
    let head = tag("div").class("rung-row head").attr("aria-hidden", "true").push(tag("span"));
    let head = head.push(scale.push(axis(&ladder.scale, "%")));
    let rows = tag("ol").push_all(ladder.rungs.iter().map(|rung| row(&ladder.scale, rung)));
    let key = (!ladder.key.is_empty()).then(|| key(&ladder.key));
    tag("div").class("ladder").push_all(key).push(head).push(rows)
}

fn key(key: &[(Mark, &'static str)]) -> Tag {
    let scale = Scale { left: 0.0, right: 1.0 };
    let sample = |(mark, words): &(Mark, &'static str)| {
        tag("li").push(tag("span").class("swatch").push(strip(&scale, &[*mark], ""))).text(words)
    };
    tag("ul").class("key").push_all(key.iter().map(sample))
}

fn row(scale: &Scale, rung: &LadderRung) -> Tag {
    let otherwise = tag("span").class("change own").text(&rung.otherwise);
    let name = tag("div")
        .class("name")
        .push(tag("a").attr("href", format!("#{}", rung.anchor)).text(&rung.name))
        .push(tag("span").class("change").text(&rung.change))
        .push_all((!rung.otherwise.is_empty()).then_some(otherwise));
    let gain = figure(tied(&rung.figure));
    let gain = if rung.confirmed { gain } else { gain.attr("data-step", "") };
    let chart = tag("div").class("strip-cell").push(strip(scale, &rung.marks, ""));
    tag("li").class("rung-row").push(name).push(chart).push(gain).push(verdict(rung))
}

fn verdict(rung: &LadderRung) -> Tag {
    let cell = tag("div").class("verdict").push(verdict_word(rung.verdict));
    let why = tag("span").class("why").text(tied(&in_short(&rung.why)));
    cell.push_all((!rung.why.is_empty()).then_some(why))
}

/// The first line of a reason: the last words of a server that died stand whole in its card.
fn in_short(why: &str) -> String {
    let mut lines = why.trim().lines();
    let first = lines.next().unwrap_or_default();
    let cut = first.char_indices().nth(WHY_CHARS_MAX).map(|(end, _)| &first[..end]);
    match cut {
        Some(start) => format!("{start} …"),
        None if lines.next().is_some() => format!("{first} …"),
        None => first.to_owned(),
    }
}
