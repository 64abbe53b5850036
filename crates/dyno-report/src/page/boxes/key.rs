//! What colours mean: keys beside pictures.

use std::fmt::Display;

use dyno_record::name;
use dyno_record::profile::{Kind, WaitClass};

use super::colour;
use crate::page::html::{Tag, tag};
use crate::view::boxes::Boxes;

/// Each colour's class and what it means.
fn meanings(boxes: &Boxes) -> Vec<(String, String)> {
    let one = |class: &str, text: &str| (class.to_owned(), text.to_owned());
    match (boxes.basis, boxes.kind) {
        (Some(_), _) => vec![one("grew4", "grew"), one("same", "as before"), one("shrank4", "shrank")],
        (None, Kind::OnCpu) => {
            vec![one("u2", "program and libraries"), one("k2", "kernel"), one("mark", "no code")]
        }
        (None, Kind::OffCpu) => {
            let seen = name::WAITS.into_iter().filter(|class| seen(boxes, *class));
            let waits = seen.map(|class| one(colour::of_wait(class), name::of_wait(class)));
            let woke = boxes.tree.labels.iter().any(|label| label.role == dyno_profile::tree::Role::Waker);
            waits
                .chain(woke.then(|| one("woke", "who ended the wait, from its innermost function up")))
                .collect()
        }
    }
}

fn seen(boxes: &Boxes, class: WaitClass) -> bool {
    boxes.tree.labels.iter().any(|label| label.role == dyno_profile::tree::Role::Wait(class))
}

/// The key on a page.
pub(super) fn key(boxes: &Boxes) -> Tag {
    swatches(meanings(boxes).into_iter())
}

/// Colours and what they mean, as a list.
pub(super) fn swatches(all: impl Iterator<Item = (impl Display, impl Display)>) -> Tag {
    tag("ul").class("key").push_all(all.map(|(class, text)| {
        let rect = tag("rect").attr("width", "100%").attr("height", 12).attr("class", class);
        let swatch = tag("svg").class("swatch").attr("height", 12).attr("aria-hidden", "true").push(rect);
        tag("li").push(swatch).push(tag("span").text(text))
    }))
}

/// The key in a file of its own, in a line.
pub(super) fn file_key(boxes: &Boxes, x: f64, y: f64) -> Tag {
    /// Width of a letter of the key's type, and of what stands before a text and after it.
    const LETTER: f64 = 6.2;
    const AROUND: f64 = 38.0;
    let mut x = x;
    let mut key = tag("g");
    for (class, text) in meanings(boxes) {
        let rect = tag("rect")
            .attr("x", format!("{x:.1}"))
            .attr("y", y - 9.0)
            .attr("width", 14)
            .attr("height", 10)
            .attr("class", class);
        key = key
            .push(rect)
            .push(tag("text").attr("x", format!("{:.1}", x + 19.0)).attr("y", y).class("said").text(&text));
        x += AROUND + LETTER * text.chars().count() as f64;
    }
    key
}
