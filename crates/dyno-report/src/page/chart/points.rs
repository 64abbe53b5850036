//! Raw measurements in the order in which they were made, under their estimate and its interval.

use std::fmt::Write;

use super::shape::{self, STEPS_UP_MAX, bar, drawing, line};
use super::strip::level_label;
use crate::page::html::{Tag, tag};
use crate::view::chart::Points;

/// Height of the picture in pixels.
const HEIGHT: f64 = 150.0;
/// The picture.
pub(super) fn points(series: &Points, sentence: &str) -> Tag {
    let down = |value: f64| HEIGHT * series.frame.at(value) / 100.0;
    let ticks = series.frame.ticks(STEPS_UP_MAX);
    drawing(HEIGHT as u32, sentence)
        .class("points")
        .push_all(series.estimate.map(|(_, ends)| band(ends.map(down))))
        .push_all(
            ticks
                .iter()
                .map(|tick| line([0.0, 100.0], [down(*tick); 2], if *tick == 0.0 { "zero" } else { "grid" })),
        )
        .push(cloud(series))
        .push_all(series.estimate.map(|(value, _)| line([0.0, 100.0], [down(value); 2], "mean")))
        // The labels come last, so that no point hides one.
        .push_all(ticks.iter().map(|tick| level_label(*tick, down(*tick))))
}

/// An interval over the whole width; at least a pixel of it can be seen.
fn band([a, b]: [f64; 2]) -> Tag {
    bar([0.0, 100.0], [a.min(b), (a - b).abs().max(1.0)], "band")
}

/// All points as one path of round dots: a few bytes each, round at every width.
fn cloud(series: &Points) -> Tag {
    let mut path = String::new();
    for (k, value) in series.values.iter().enumerate() {
        let _ = write!(path, "M{k} {:.0}h0", 10.0 * series.frame.at(*value));
    }
    shape::plot(HEIGHT, &format!("-1 0 {} 1000", series.values.len() + 1))
        .push(tag("path").class("cloud").attr("d", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dots(values: &[f64], stride: usize) -> usize {
        let series = Points::new(values, stride, Some((-2.0, [-3.0, -1.0])));
        points(&series, "240 pairs").to_string().matches("h0").count()
    }

    #[test]
    fn each_value_is_a_point_and_thinning_leaves_every_nth() {
        let values: Vec<f64> = (0..240).map(|k| f64::from(k % 7) - 3.0).collect();
        assert_eq!([dots(&values, 1), dots(&values, 3), dots(&[], 1)], [240, 80, 0]);
    }
}
