//! What a change of its cause does to an effect: estimates with their intervals over the cause, and the line through them.

use std::fmt::Write;

use super::shape::{self, STEPS_UP_MAX, drawing, label, line, share};
use super::strip::level_label;
use crate::page::html::{Tag, tag};
use crate::view::chart::{Effect, Estimate, Scale, Trust};

/// Height of the picture in pixels, its axis included.
const HEIGHT: f64 = 200.0;
/// The axis below.
const AXIS: f64 = 20.0;
/// Half the width of a whisker's cap, in percent of the picture's.
const CAP: f64 = 1.2;
/// The cause's axis begins left of zero, so that what stands at zero is not cut, and ends right of its last level.
const AIR: f64 = 0.07;

/// The picture.
pub(super) fn effect(effect: &Effect, sentence: &str) -> Tag {
    let frame = Frame::of(effect);
    let zero = frame.down(0.0);
    let ticks = frame.up.ticks(STEPS_UP_MAX);
    let grid = ticks.iter().filter(|tick| **tick != 0.0);
    let svg = drawing(HEIGHT as u32, sentence)
        .class("effect")
        .push_all(grid.map(|tick| line([0.0, 100.0], [frame.down(*tick); 2], "grid")))
        .push(plot(&frame, effect))
        .push(line([0.0, 100.0], [zero; 2], "zero"))
        .push_all(effect.estimates.iter().flat_map(|one| drawn(&frame, one)))
        .push_all(effect.estimates.iter().map(|one| level(&frame, one.across)));
    svg.push_all(ticks.iter().map(|tick| level_label(*tick, frame.down(*tick))))
}

/// Where things stand.
struct Frame {
    across: Scale,
    up: Scale,
}

impl Frame {
    fn of(effect: &Effect) -> Frame {
        let most = effect.across_max.max(1.0);
        // Labels of the effects have the left edge to themselves.
        Frame { across: Scale { left: -2.5 * AIR * most, right: (1.0 + AIR) * most }, up: effect.up }
    }

    /// Pixels from the top, the larger effect above.
    fn down(&self, value: f64) -> f64 {
        (HEIGHT - AXIS) * (100.0 - self.up.at(value)) / 100.0
    }
}

/// What is drawn to scale in both directions: bands, lines, single measurements.
fn plot(frame: &Frame, effect: &Effect) -> Tag {
    let svg = shape::plot(HEIGHT - AXIS, "0 0 1000 1000");
    let most = effect.across_max;
    let origin = (0.0, 0.0);
    let wedge = effect
        .slope
        .map(|(_, [low, high])| area(frame, &[origin, (most, low * most), (most, high * most)], "band"));
    let nulls = effect.nulls.map(|[low, high]| {
        let (from, to) = (frame.across.left, frame.across.right);
        area(frame, &[(from, low), (to, low), (to, high), (from, high)], "nulls")
    });
    let suggested = effect.suggested.map(|slope| stroke(frame, &[origin, (most, slope * most)], "thin"));
    let line = effect.slope.map(|(slope, _)| stroke(frame, &[origin, (most, slope * most)], "strong"));
    svg.push_all(nulls).push_all(wedge).push(cloud(frame, &effect.cloud)).push_all(suggested).push_all(line)
}

fn place(frame: &Frame, (across, value): (f64, f64)) -> (f64, f64) {
    (10.0 * frame.across.at(across), 10.0 * (100.0 - frame.up.at(value)))
}

fn path(frame: &Frame, places: &[(f64, f64)]) -> String {
    shape::path(places.iter().map(|at| place(frame, *at)))
}

fn area(frame: &Frame, corners: &[(f64, f64)], class: &'static str) -> Tag {
    tag("path").class(class).attr("d", path(frame, corners) + "Z")
}

fn stroke(frame: &Frame, places: &[(f64, f64)], class: &'static str) -> Tag {
    tag("path").class(class).attr("d", path(frame, places))
}

/// Single measurements as one path of round dots; wild ones stay at the edge.
fn cloud(frame: &Frame, points: &[(f64, f64)]) -> Tag {
    let mut d = String::new();
    for point in points {
        let (x, y) = place(frame, *point);
        let _ = write!(d, "M{x:.0} {y:.0}h0");
    }
    tag("path").class("cloud").attr("d", d)
}

/// A dot with its whisker; an estimate beyond the picture is an arrow at its edge.
fn drawn(frame: &Frame, one: &Estimate) -> Vec<Tag> {
    let at = frame.across.at(one.across);
    let [low, high] = one.interval.map(|end| frame.down(end));
    let caps = [low, high].map(|end| line([at - CAP, at + CAP], [end; 2], "whisker"));
    let down = frame.down(one.value);
    let dot = match one.trust {
        Trust::Sound => "estimate-dot",
        Trust::Biased => "estimate-dot hollow-dot",
    };
    let mark = if frame.up.holds(one.value) {
        tag("circle").attr("cx", share(at)).attr("cy", format!("{down:.1}")).attr("r", 4).class(dot)
    } else {
        let arrow = if down > HEIGHT / 2.0 { "▾" } else { "▴" };
        label(at, down.clamp(12.0, HEIGHT - AXIS - 2.0), "beyond", arrow)
    };
    std::iter::once(line([at, at], [low, high], "whisker")).chain(caps).chain([mark]).collect()
}

fn level(frame: &Frame, across: f64) -> Tag {
    label(frame.across.at(across), HEIGHT - 5.0, "axis", &format!("{across:.0}\u{a0}%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(estimates: &[Estimate], cloud: &[(f64, f64)]) -> String {
        let all = Effect {
            across_max: 50.0,
            up: Scale { left: -5.0, right: 20.0 },
            estimates: estimates.to_vec(),
            slope: Some((0.3, [0.25, 0.35])),
            suggested: Some(0.6),
            nulls: Some([-0.5, 0.7]),
            cloud: cloud.to_vec(),
        };
        effect(&all.checked(), "15 % at 50 %").to_string()
    }

    fn estimate(value: f64) -> Estimate {
        Estimate { across: 50.0, value, interval: [value - 1.0, value + 1.0], trust: Trust::Sound }
    }

    #[test]
    fn an_estimate_has_its_interval_its_level_and_the_picture_its_sentence() {
        let svg = picture(&[estimate(15.0)], &[(10.0, 3.0)]);
        assert_eq!(svg.matches("class=\"whisker\"").count(), 3, "{svg}");
        assert_eq!(svg.matches("estimate-dot").count(), 1, "{svg}");
        assert_eq!(svg.matches("h0").count(), 1, "{svg}");
        assert!(svg.contains(">50\u{a0}%<") && svg.contains("aria-label=\"15 % at 50 %\""), "{svg}");
    }

    #[test]
    fn what_lies_beyond_the_picture_points_there() {
        assert!(picture(&[estimate(500.0)], &[]).contains('▴'));
        assert!(picture(&[estimate(-500.0)], &[]).contains('▾'));
    }

    #[test]
    fn larger_effects_stand_higher() {
        let frame = Frame { across: Scale { left: 0.0, right: 50.0 }, up: Scale { left: -5.0, right: 20.0 } };
        assert!(frame.down(15.0) < frame.down(0.0) && frame.down(0.0) < frame.down(-4.0));
    }
}
