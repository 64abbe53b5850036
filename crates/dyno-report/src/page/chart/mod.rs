//! Charts as SVG that is as wide as its place and never scales its text.
//!
//! The writer of pages calls this. Positions across are percentages of the width, positions down are pixels, so that one
//! drawing serves a phone and a screen. Colours come from the style sheet by class. Nothing here knows what a rung is.

mod curve;
mod effect;
mod ladder;
mod points;
mod strip;

use crate::view::chart::{Chart, Figure};

use super::html::{Tag, tag};

/// Most steps across: labels of five characters then stand apart in the narrowest chart of the page (a card's).
const STEPS_ACROSS_MAX: usize = 3;
/// Most steps upwards, in a picture of 150 pixels.
const STEPS_UP_MAX: usize = 5;

/// A picture with what stands under it.
pub(super) fn figure(figure: &Figure) -> Tag {
    let sentence = figure.sentence.as_str();
    match &figure.chart {
        Chart::Bars(rows) => strip::bars(rows, sentence),
        Chart::Estimates(estimates) => strip::estimates(estimates),
        Chart::Ladder(ladder) => ladder::ladder(ladder),
        Chart::Curves(all) => curve::curves(all, sentence),
        Chart::Effect(one) => effect::effect(one, sentence),
        Chart::Points(series) => points::points(series, sentence),
        Chart::Boxes(boxes) | Chart::Explorable(boxes) => super::boxes::in_page(boxes, sentence),
        Chart::Lanes(all) => super::boxes::lanes(all),
    }
}

/// A drawing of full width with its sentence for those who do not see it.
fn drawing(height: u32, sentence: &str) -> Tag {
    let svg = tag("svg").attr("width", "100%").attr("height", height);
    // A part of a larger figure has no sentence of its own.
    if sentence.is_empty() {
        svg.attr("aria-hidden", "true")
    } else {
        svg.attr("role", "img").attr("aria-label", sentence)
    }
}

/// A straight line; `x` in percent, `y` in pixels.
fn line([x1, x2]: [f64; 2], [y1, y2]: [f64; 2], class: &'static str) -> Tag {
    tag("line").attr("x1", share(x1)).attr("x2", share(x2)).attr("y1", y1).attr("y2", y2).class(class)
}

/// A filled or hollow bar.
fn bar([x1, x2]: [f64; 2], [y, height]: [f64; 2], class: &'static str) -> Tag {
    let (left, width) = (x1.min(x2), (x2 - x1).abs());
    tag("rect")
        .attr("x", share(left))
        .attr("y", y)
        .attr("width", share(width))
        .attr("height", height)
        .class(class)
}

/// Text whose anchor keeps it inside the picture at both edges.
fn label(x: f64, y: f64, class: &'static str, text: &str) -> Tag {
    let anchor = match x {
        x if x < 6.0 => "start",
        x if x > 94.0 => "end",
        _ => "middle",
    };
    tag("text").attr("x", share(x)).attr("y", y).attr("text-anchor", anchor).class(class).text(text)
}

/// A name within a picture: text there does not wrap, so a long one is cut, and stands whole in a table of the page.
fn short(name: &str, chars_max: usize) -> String {
    match name.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// A percentage with two decimals: a fifth of a pixel on the widest page.
fn share(value: f64) -> String {
    format!("{value:.2}%")
}
