//! Curves over a common pair of axes, each with its name at its end.

use super::shape::{self, drawing, label, line, short};
use crate::page::html::{Tag, tag};
use crate::view::chart::{Curve, Curves, Scale, Stroke};

/// Height of the picture in pixels, its axis included.
const HEIGHT: f64 = 300.0;
/// The axis below the curves.
const AXIS: f64 = 22.0;
/// Least distance of two names at the right edge.
const NAME_HEIGHT: f64 = 16.0;
/// Characters of a name beside a curve: what its column holds on a phone.
const NAME_CHARS_MAX: usize = 15;

/// The curves.
pub(super) fn curves(all: &Curves, sentence: &str) -> Tag {
    let Curves { curves, across, up } = all;
    let whole = Scale { left: 0.0, right: 1.0 };
    let floor = HEIGHT - AXIS;
    let down = |y: f64| floor * (1.0 - y.clamp(0.0, 1.0));
    let mut svg = drawing(HEIGHT as u32, sentence).class("curves");
    for (x, text) in across {
        let at = whole.at(*x);
        // On a phone the next one begins where the first would end: that has the room beneath the levels.
        let mark = match *x > 0.0 {
            true => label(at, HEIGHT - 6.0, "axis", text),
            false => tag("text").attr("y", HEIGHT - 6.0).attr("text-anchor", "end").class("axis").text(text),
        };
        svg = svg.push(line([at, at], [0.0, floor], "grid")).push(mark);
    }
    svg = svg.push_all(up.iter().map(|(y, _)| line([0.0, 100.0], [down(*y); 2], "grid")));
    svg = svg.push(plot(curves, floor));
    tag("div").class("with-names").push(levels(up, down)).push(svg).push(names(curves, floor))
}

/// The labels of the levels, in a column of their own where no curve passes.
fn levels(up: &[(f64, String)], down: impl Fn(f64) -> f64) -> Tag {
    let text = |(y, text): &(f64, String)| {
        let y = format!("{:.1}", down(*y) + 4.0);
        tag("text").attr("x", "100%").attr("y", y).attr("text-anchor", "end").class("axis").text(text)
    };
    tag("svg")
        .class("levels")
        .attr("aria-hidden", "true")
        .attr("height", HEIGHT)
        .push_all(up.iter().map(text))
}

fn plot(curves: &[Curve], floor: f64) -> Tag {
    let plot = shape::plot(floor, "0 0 1000 1000");
    curves.iter().fold(plot, |plot, curve| {
        let places = curve.places.iter().map(|(x, y)| (1e3 * x, 1e3 * (1.0 - y.clamp(0.0, 1.0))));
        plot.push(tag("path").class(class(curve.stroke)).attr("d", shape::path(places)))
    })
}

/// The names beside the ends of their curves, moved apart where the ends meet.
fn names(curves: &[Curve], floor: f64) -> Tag {
    let mut ends: Vec<(f64, &Curve)> = curves
        .iter()
        .filter_map(|curve| curve.places.last().map(|(_, y)| (floor * (1.0 - y.clamp(0.0, 1.0)), curve)))
        .collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut lowest = f64::NEG_INFINITY;
    for (end, _) in &mut ends {
        *end = end.max(lowest + NAME_HEIGHT).max(8.0);
        lowest = *end;
    }
    // What was pushed below the floor goes up again, the lowest first.
    let mut highest = floor + 4.0;
    for (end, _) in ends.iter_mut().rev() {
        *end = end.min(highest);
        highest = *end - NAME_HEIGHT;
    }
    let svg = tag("svg").class("names").attr("aria-hidden", "true").attr("height", HEIGHT);
    svg.push_all(ends.into_iter().map(|(end, curve)| {
        let text = tag("text")
            .attr("x", 6)
            .attr("y", format!("{:.1}", end + 4.0))
            .text(short(&curve.name, NAME_CHARS_MAX));
        text.class(class(curve.stroke))
    }))
}

fn class(stroke: Stroke) -> &'static str {
    match stroke {
        Stroke::Strong => "strong",
        Stroke::Thin => "thin",
        Stroke::Dashed => "dashed",
        Stroke::Dotted => "dotted",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, end: f64) -> Curve {
        Curve::new(name.into(), Stroke::Thin, vec![(0.0, 0.0), (1.0, end)])
    }

    #[test]
    fn names_of_curves_that_meet_stand_apart() {
        let tags = names(&[curve("a", 0.0), curve("b", 0.0), curve("c", 0.01)], 278.0).to_string();
        let ys: Vec<f64> =
            tags.split(" y=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
        assert_eq!(ys.len(), 3, "{tags}");
        assert!(ys.windows(2).all(|pair| pair[1] - pair[0] >= NAME_HEIGHT - 0.2), "{ys:?}");
        assert!(ys.iter().all(|y| (0.0..HEIGHT).contains(y)), "{ys:?}");
    }

    #[test]
    fn a_curve_without_points_has_no_name() {
        let empty = Curve::new("empty".into(), Stroke::Strong, Vec::new());
        let text = curves(&Curves { curves: vec![empty], across: Vec::new(), up: Vec::new() }, "nothing")
            .to_string();
        assert!(!text.contains(">empty<"), "{text}");
    }
}
