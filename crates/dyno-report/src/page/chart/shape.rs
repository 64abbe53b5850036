//! The strokes of all charts. Positions across are percentages of the width, positions down are pixels.

use crate::page::html::{Tag, tag};

/// Most steps across: labels of five characters then stand apart in the narrowest chart of the page (a card's).
pub(super) const STEPS_ACROSS_MAX: usize = 3;
/// Most steps upwards, in a picture of 150 pixels.
pub(super) const STEPS_UP_MAX: usize = 5;

/// A drawing of full width with its sentence for those who do not see it.
pub(super) fn drawing(height: u32, sentence: &str) -> Tag {
    let svg = tag("svg").attr("width", "100%").attr("height", height);
    // A part of a larger figure has no sentence of its own.
    if sentence.is_empty() {
        svg.attr("aria-hidden", "true")
    } else {
        svg.attr("role", "img").attr("aria-label", sentence)
    }
}

/// A straight line; `x` in percent, `y` in pixels.
pub(super) fn line([x1, x2]: [f64; 2], [y1, y2]: [f64; 2], class: &'static str) -> Tag {
    tag("line").attr("x1", share(x1)).attr("x2", share(x2)).attr("y1", y1).attr("y2", y2).class(class)
}

/// A filled or hollow bar.
pub(super) fn bar([x1, x2]: [f64; 2], [y, height]: [f64; 2], class: &'static str) -> Tag {
    let (left, width) = (x1.min(x2), (x2 - x1).abs());
    tag("rect")
        .attr("x", share(left))
        .attr("y", y)
        .attr("width", share(width))
        .attr("height", height)
        .class(class)
}

/// Text whose anchor keeps it inside the picture at both edges.
pub(super) fn label(x: f64, y: f64, class: &'static str, text: &str) -> Tag {
    let anchor = match x {
        x if x < 6.0 => "start",
        x if x > 94.0 => "end",
        _ => "middle",
    };
    tag("text").attr("x", share(x)).attr("y", y).attr("text-anchor", anchor).class(class).text(text)
}

/// A name within a picture: text there does not wrap, so a long one is cut, and stands whole in a table of the page.
pub(super) fn short(name: &str, chars_max: usize) -> String {
    match name.char_indices().nth(chars_max) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// A percentage with two decimals: a fifth of a pixel on the widest page.
pub(super) fn share(value: f64) -> String {
    format!("{value:.2}%")
}

/// What is drawn to scale in both directions, within a drawing; the box holds its coordinates.
pub(super) fn plot(height: f64, view_box: &str) -> Tag {
    tag("svg")
        .attr("width", share(100.0))
        .attr("height", height)
        .attr("viewBox", view_box)
        .attr("preserveAspectRatio", "none")
}

/// A path through places of a plot.
pub(super) fn path(places: impl Iterator<Item = (f64, f64)>) -> String {
    let letters = std::iter::once('M').chain(std::iter::repeat('L'));
    places.zip(letters).map(|((x, y), letter)| format!("{letter}{x:.0} {y:.0}")).collect()
}
