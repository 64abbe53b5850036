//! Charts as SVG that is as wide as its place and never scales its text.
//!
//! Sections of the page call this. Positions across are percentages of the width, positions down are pixels, so that one
//! drawing serves a phone and a screen. Colours come from the style sheet by class. Nothing here knows what a rung is.

mod curve;
mod effect;
mod points;
mod strip;

pub(crate) use curve::{Curve, Stroke, curves};
pub(crate) use effect::{Effect, Estimate, Trust, effect};
pub(crate) use points::{Points, points};
pub(crate) use strip::{Bar, Ink, Mark, axis, bars, strip};

use super::html::{Tag, tag};

/// Most steps across: labels of five characters then stand apart in the narrowest chart of the page (a card's).
const STEPS_ACROSS_MAX: usize = 3;
/// Most steps upwards, in a picture of 150 pixels.
const STEPS_UP_MAX: usize = 5;

/// From values to percent of the width. The left value may be the larger one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// The value at the left edge.
    pub(crate) left: f64,
    /// The value at the right edge.
    pub(crate) right: f64,
}

impl Scale {
    /// A scale that holds these values and zero, with a little air at both ends.
    pub(crate) fn around_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let (low, high) = finite.fold((0.0_f64, 0.0_f64), |(low, high), v| (low.min(v), high.max(v)));
        // A thousandth keeps a scale from having no width at all.
        let air = (0.04 * (high - low)).max(1e-3);
        let left = if low < 0.0 { low - air } else { 0.0 };
        Self { left, right: high + air }
    }

    /// The same scale from right to left.
    pub(crate) fn mirrored(self) -> Self {
        Self { left: self.right, right: self.left }
    }

    /// Where a value stands, in percent of the width, held within the picture.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let place = 100.0 * (value - self.left) / (self.right - self.left);
        if place.is_finite() { place.clamp(0.0, 100.0) } else { 0.0 }
    }

    /// Whether a value lies within the picture.
    pub(crate) fn holds(&self, value: f64) -> bool {
        (self.left.min(self.right)..=self.left.max(self.right)).contains(&value)
    }

    /// Round values over the whole scale, `steps_max` steps apart at most.
    fn ticks(&self, steps_max: usize) -> Vec<f64> {
        let (low, high) = (self.left.min(self.right), self.left.max(self.right));
        let step = round_step((high - low) / steps_max as f64);
        let first = (low / step).ceil() as i64;
        let last = (high / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// The smallest of 1, 2, 3 and 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10_f64.powf(least.max(1e-9).log10().floor());
    let steps = [1.0, 2.0, 3.0, 5.0, 10.0].map(|k| k * power);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * power)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_begins_at_zero_unless_something_is_below_it() {
        assert_eq!(Scale::around_zero([3.0, 10.0]).left, 0.0);
        assert!(Scale::around_zero([-3.0, 10.0]).left < -3.0);
    }

    #[test]
    fn gains_stand_on_the_right_of_a_mirrored_scale() {
        let scale = Scale::around_zero([-30.0, 5.0]).mirrored();
        assert!(scale.at(-30.0) > scale.at(-10.0) && scale.at(-10.0) > scale.at(5.0));
    }

    #[test]
    fn nothing_is_drawn_outside() {
        let scale = Scale { left: 0.0, right: 10.0 };
        assert_eq!([scale.at(-5.0), scale.at(50.0), scale.at(f64::NAN)], [0.0, 100.0, 0.0]);
        assert!(scale.holds(10.0) && !scale.holds(10.1));
    }

    #[test]
    fn ticks_are_few_and_round() {
        assert_eq!(Scale { left: 0.0, right: 16.0 }.ticks(3), [0.0, 10.0]);
        assert_eq!(Scale { left: 4.0, right: -54.0 }.ticks(3), [-40.0, -20.0, 0.0]);
        let narrow = Scale::around_zero([0.0]).ticks(3);
        assert!(!narrow.is_empty() && narrow.len() <= 4, "{narrow:?}");
    }
}
