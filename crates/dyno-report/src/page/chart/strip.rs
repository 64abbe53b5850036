//! Horizontal estimates: a bar or a dot with its interval, on a scale that several rows share.

use super::shape::{STEPS_ACROSS_MAX, bar, drawing, label, line, share, short};
use crate::page::html::{Tag, tag};
use crate::page::parts::{figure, tied};
use crate::view::chart::{Bar, Estimates, Ink, Mark, Row, Scale};

/// Height of a row in pixels: a finger's width with its neighbours' air.
const HEIGHT: u32 = 26;
/// The line on which everything stands: marks are drawn in a picture of their own that begins in the middle of the row,
/// so that a row may be made higher by the style sheet.
const MIDDLE: f64 = 0.0;
/// Height of a named bar in pixels: a line of text and the bar.
const BAR_ROW: u32 = 44;

/// Characters of a bar's name that leave its figure room on a phone.
const NAME_CHARS_MAX: usize = 32;

/// Rows of estimates with their names and their figures, and the scale below.
pub(super) fn estimates(estimates: &Estimates) -> Tag {
    let scale = &estimates.scale;
    let row = |row: &Row| {
        tag("div")
            .class("estimate")
            .push(tag("span").class("name").text(&row.name))
            .push(strip(scale, &row.marks, &format!("{}: {}", row.name, row.words)))
            .push(figure(tied(&row.words)))
    };
    let axis = tag("div").class("estimate").push(tag("span")).push(axis(scale, "%")).push(tag("span"));
    tag("div").class("estimates").push_all(estimates.rows.iter().map(row)).push(axis)
}

/// One row of marks over the zero line.
pub(super) fn strip(scale: &Scale, marks: &[Mark], sentence: &str) -> Tag {
    let through = |at: f64, class| {
        tag("line").attr("x1", share(at)).attr("x2", share(at)).attr("y2", "100%").class(class)
    };
    let grid = scale
        .ticks(STEPS_ACROSS_MAX)
        .into_iter()
        .map(|tick| through(scale.at(tick), if tick == 0.0 { "zero" } else { "grid" }));
    let bands = marks.iter().filter(|mark| mark.ink == Ink::Band).filter_map(|mark| {
        let [low, high] = mark.interval?.map(|end| scale.at(end));
        let (left, width) = (share(low.min(high)), share((high - low).abs()));
        Some(tag("rect").attr("x", left).attr("width", width).attr("height", "100%").class("band"))
    });
    let middle = tag("svg").attr("y", "50%").attr("width", "100%").class("middle");
    let middle = middle.push_all(marks.iter().filter_map(|mark| drawn(scale, mark)));
    drawing(HEIGHT, sentence).class("strip").push_all(grid).push_all(bands).push(middle)
}

/// A mark around the middle; bands lie behind all marks and are drawn before.
fn drawn(scale: &Scale, mark: &Mark) -> Option<Tag> {
    let (zero, at) = (scale.at(0.0), scale.at(mark.value));
    let body = |height: f64| bar([zero, at], [MIDDLE - height / 2.0, height], "body");
    let group = match mark.ink {
        Ink::Solid => tag("g").class("solid").push(body(10.0)),
        Ink::Hollow => tag("g").class("hollow").push(body(16.0)),
        Ink::Grey => tag("g").class("grey").push(body(10.0)),
        Ink::Dot => tag("g").class("dot"),
        Ink::Tick => return Some(line([at, at], [MIDDLE - 4.0, MIDDLE + 4.0], "tick")),
        Ink::Band => return None,
    };
    let group = whisker(group, scale, mark.interval);
    let group = if mark.ink == Ink::Dot { group.push(dot(at)) } else { group };
    Some(if scale.holds(mark.value) { group } else { group.push(beyond(at)) })
}

fn dot(at: f64) -> Tag {
    tag("circle").attr("cx", share(at)).attr("cy", MIDDLE).attr("r", 4).class("body")
}

fn whisker(group: Tag, scale: &Scale, interval: Option<[f64; 2]>) -> Tag {
    let Some(ends) = interval else { return group };
    let ends = ends.map(|end| scale.at(end));
    let caps = ends.map(|end| line([end, end], [MIDDLE - 4.0, MIDDLE + 4.0], "whisker"));
    group.push(line(ends, [MIDDLE, MIDDLE], "whisker")).push_all(caps)
}

/// A value outside the picture is said to go on.
fn beyond(at: f64) -> Tag {
    let arrow = if at < 50.0 { "◂" } else { "▸" };
    label(at, MIDDLE + 5.0, "beyond", arrow)
}

/// The labels of a shared scale.
pub(super) fn axis(scale: &Scale, unit: &str) -> Tag {
    let label_of = |tick: f64| label(scale.at(tick), 12.0, "axis", &tick_text(tick, unit));
    drawing(16, "").class("strip").push_all(scale.ticks(STEPS_ACROSS_MAX).into_iter().map(label_of))
}

/// The label of a level: above its line, or below where the picture ends.
pub(super) fn level_label(tick: f64, down: f64) -> Tag {
    let y = if down < 14.0 { down + 13.0 } else { down - 3.0 };
    tag("text").attr("x", "2").attr("y", format!("{y:.1}")).class("axis halo").text(tick_text(tick, "%"))
}

fn tick_text(tick: f64, unit: &str) -> String {
    let decimals = if (tick - tick.round()).abs() < 1e-9 { 0 } else { 1 };
    let sign = match unit {
        "%" if tick > 0.0 => "+",
        _ if tick < 0.0 => "−",
        _ => "",
    };
    format!("{sign}{:.decimals$}\u{a0}{unit}", tick.abs())
}

/// Bars over one scale, one below the other.
pub(super) fn bars(rows: &[Bar], sentence: &str) -> Tag {
    let ends = rows.iter().flat_map(|row| [row.value, row.interval.map_or(row.value, |[_, high]| high)]);
    let scale = Scale::around_zero(ends);
    let svg = drawing(BAR_ROW * rows.len() as u32, sentence).class("bars");
    rows.iter()
        .enumerate()
        .fold(svg, |svg, (k, row)| drawn_bar(svg, &scale, row, f64::from(BAR_ROW) * k as f64))
}

fn drawn_bar(svg: Tag, scale: &Scale, row: &Bar, top: f64) -> Tag {
    let text = |x: &str, anchor: &str, class, words: &str| {
        tag("text").attr("x", x).attr("y", top + 13.0).attr("text-anchor", anchor).class(class).text(words)
    };
    let split = scale.at(row.value * row.full.unwrap_or(1.0));
    let svg = svg
        .push(text("0", "start", "name", &short(&row.name, NAME_CHARS_MAX)))
        .push(text("100%", "end", "figure", &tied(&row.figure)))
        .push(bar([split, scale.at(row.value)], [top + 20.0, 12.0], "pale"))
        .push(bar([0.0, split], [top + 20.0, 12.0], "full"));
    match row.interval {
        Some(ends) => svg.push(line(ends.map(|end| scale.at(end)), [top + 26.0; 2], "whisker")),
        None => svg,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCALE: Scale = Scale { left: 10.0, right: -40.0 };

    #[test]
    fn every_estimate_is_drawn_with_its_interval() {
        let mark = Mark { value: -30.0, interval: Some([-31.0, -29.0]), ink: Ink::Solid };
        let svg = strip(&SCALE, &[mark], "gain 30 %").to_string();
        assert_eq!(svg.matches("class=\"whisker\"").count(), 3, "{svg}");
        assert!(svg.contains("aria-label=\"gain 30 %\""), "{svg}");
    }

    #[test]
    fn a_value_outside_points_outwards() {
        let far = Mark { value: 900.0, interval: None, ink: Ink::Grey };
        assert!(strip(&SCALE, &[far], "").to_string().contains('◂'));
        let near = Mark { value: 5.0, ..far };
        assert!(!strip(&SCALE, &[near], "").to_string().contains('◂'));
    }

    #[test]
    fn ticks_are_written_with_sign_and_unit() {
        assert_eq!(tick_text(-20.0, "%"), "−20\u{a0}%");
        assert_eq!(tick_text(0.5, "%"), "+0.5\u{a0}%");
        assert_eq!(tick_text(5.0, "µs"), "5\u{a0}µs");
    }
}
