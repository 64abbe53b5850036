//! Raw measurements in the order in which they were made, under their estimate and its interval.

use std::fmt::Write;

use super::strip::tick_text;
use super::{STEPS_UP_MAX, Scale, bar, drawing, line, share};
use crate::page::html::{Tag, tag};

/// Height of the picture in pixels.
const HEIGHT: f64 = 150.0;
/// Robust deviations that the picture holds: beyond lie wild blocks, which are drawn at its edge.
const FRAME_SIGMAS: f64 = 5.0;

/// A series and what was read from it, in percent.
#[derive(Debug, Clone)]
pub(crate) struct Points<'p> {
    /// The values in their order; values that are not finite are left out.
    pub(crate) values: &'p [f64],
    /// Every how many-th value is drawn.
    pub(crate) stride: usize,
    /// The estimate and its interval.
    pub(crate) estimate: Option<(f64, [f64; 2])>,
    /// The sentence for those who do not see it.
    pub(crate) sentence: &'p str,
}

/// The picture, and how many of the drawn values lie beyond it.
pub(crate) fn points(series: &Points<'_>) -> (Tag, usize) {
    let frame = frame(series);
    let down = |value: f64| HEIGHT * frame.at(value) / 100.0;
    let ticks = frame.ticks(STEPS_UP_MAX);
    let (cloud, beyond) = cloud(series, &frame);
    let svg = drawing(HEIGHT as u32, series.sentence)
        .class("points")
        .push_all(series.estimate.map(|(_, ends)| band(ends.map(down))))
        .push_all(
            ticks
                .iter()
                .map(|tick| line([0.0, 100.0], [down(*tick); 2], if *tick == 0.0 { "zero" } else { "grid" })),
        )
        .push(cloud)
        .push_all(series.estimate.map(|(value, _)| line([0.0, 100.0], [down(value); 2], "mean")))
        // The labels come last, so that no point hides one.
        .push_all(ticks.iter().map(|tick| level(*tick, down(*tick))));
    (svg, beyond)
}

/// An interval over the whole width; at least a pixel of it can be seen.
fn band([a, b]: [f64; 2]) -> Tag {
    bar([0.0, 100.0], [a.min(b), (a - b).abs().max(1.0)], "band")
}

/// The label of a level: above its line, or below where the picture ends.
fn level(tick: f64, down: f64) -> Tag {
    let y = if down < 14.0 { down + 13.0 } else { down - 3.0 };
    tag("text").attr("x", "2").attr("y", format!("{y:.1}")).class("axis halo").text(tick_text(tick, "%"))
}

/// From values to percent of the height, larger values above.
fn frame(series: &Points<'_>) -> Scale {
    let mut sorted: Vec<f64> = series.values.iter().copied().filter(|value| value.is_finite()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let Some(centre) = sorted.get(sorted.len() / 2).copied() else {
        return Scale::around_zero([-1.0, 1.0]).mirrored();
    };
    let mut sizes: Vec<f64> = sorted.iter().map(|value| (value - centre).abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let spread = FRAME_SIGMAS * 1.4826 * sizes[sizes.len() / 2];
    let (low, high) = (sorted[0].max(centre - spread), sorted[sorted.len() - 1].min(centre + spread));
    Scale::around_zero([low, high]).mirrored()
}

/// All points as one path of round dots: a few bytes each, round at every width.
fn cloud(series: &Points<'_>, frame: &Scale) -> (Tag, usize) {
    let drawn: Vec<f64> = series.values.iter().copied().step_by(series.stride.max(1)).collect();
    let mut path = String::new();
    let mut beyond = 0;
    for (k, value) in drawn.iter().enumerate().filter(|(_, value)| value.is_finite()) {
        beyond += usize::from(!frame.holds(*value));
        let _ = write!(path, "M{k} {:.0}h0", 10.0 * frame.at(*value));
    }
    let plot = tag("svg")
        .attr("width", share(100.0))
        .attr("height", HEIGHT)
        .attr("viewBox", format!("-1 0 {} 1000", drawn.len() + 1))
        .attr("preserveAspectRatio", "none")
        .push(tag("path").class("cloud").attr("d", path));
    (plot, beyond)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(values: &[f64], stride: usize) -> (String, usize) {
        let series = Points { values, stride, estimate: Some((-2.0, [-3.0, -1.0])), sentence: "240 pairs" };
        let (svg, beyond) = points(&series);
        (svg.to_string(), beyond)
    }

    #[test]
    fn each_value_is_a_point_and_thinning_leaves_every_nth() {
        let values: Vec<f64> = (0..240).map(|k| f64::from(k % 7) - 3.0).collect();
        assert_eq!(picture(&values, 1).0.matches("h0").count(), 240);
        assert_eq!(picture(&values, 3).0.matches("h0").count(), 80);
    }

    #[test]
    fn a_wild_value_stays_at_the_edge_and_is_counted() {
        let mut values: Vec<f64> = (0..100).map(|k| f64::from(k % 7) - 3.0).collect();
        values[50] = 5_000.0;
        assert_eq!(picture(&values, 1).1, 1);
    }

    #[test]
    fn values_that_are_no_numbers_and_empty_series_draw_nothing() {
        assert_eq!(picture(&[f64::NAN, 1.0, f64::INFINITY], 1).0.matches("h0").count(), 1);
        assert_eq!(picture(&[], 1).0.matches("h0").count(), 0);
    }
}
