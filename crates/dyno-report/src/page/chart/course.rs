//! A figure over several runs, in the order in which they were made: dots with their intervals, evenly apart, and marks
//! where something changed.

use super::shape::{drawing, label, line, share, short};
use crate::page::html::{Tag, tag};
use crate::page::parts::tied;
use crate::view::chart::{Course, Ink, Mark, Scale};

/// Height in pixels: a line of text, the dots, the dates.
const HEIGHT: f64 = 150.0;
/// Where the dots' part begins and ends.
const TOP: f64 = 40.0;
const FLOOR: f64 = HEIGHT - 20.0;
/// Where the first and the last dot stand, in percent of the width: the levels have the left edge for themselves.
const LEFT: f64 = 15.0;
const RIGHT: f64 = 97.0;
/// Half the width of a whisker's cap.
const CAP: f64 = 0.6;
/// Steps upwards.
const STEPS_MAX: usize = 3;
/// Characters of the name that leave the last figure room on a phone.
const NAME_CHARS_MAX: usize = 22;

/// The picture.
pub(super) fn course(course: &Course, sentence: &str) -> Tag {
    let frame = course.frame();
    let down = |value: f64| FLOOR - (FLOOR - TOP) * frame.at(value) / 100.0;
    let ticks = frame.ticks(STEPS_MAX);
    let level = |tick: &f64| line([LEFT - 3.0, 100.0], [down(*tick); 2], "grid");
    let named = |tick: &f64| {
        let y = format!("{:.1}", down(*tick) + 4.0);
        let words = written(*tick, course.suffix, &ticks);
        tag("text")
            .attr("x", share(LEFT - 4.0))
            .attr("y", y)
            .attr("text-anchor", "end")
            .class("axis")
            .text(words)
    };
    drawing(HEIGHT as u32, sentence)
        .class("course")
        .push_all(head(course))
        .push_all(ticks.iter().filter(|tick| (*tick - course.base).abs() > 1e-9).map(level))
        .push(line([LEFT - 3.0, 100.0], [down(course.base); 2], "zero"))
        .push_all(ticks.iter().map(named))
        .push_all(changes(course))
        .push_all(
            course.marks.iter().enumerate().filter_map(|(at, mark)| {
                Some(dot(across(at, course.marks.len()), mark.as_ref()?, down, &frame))
            }),
        )
        .push_all(dates(course))
}

/// The name and the last figure, as above a bar.
fn head(course: &Course) -> [Tag; 2] {
    let text = |x: &str, anchor: &str, class, words: &str| {
        tag("text").attr("x", x).attr("y", 14).attr("text-anchor", anchor).class(class).text(words)
    };
    [
        text("0", "start", "name", &short(&course.title, NAME_CHARS_MAX)),
        text("100%", "end", "figure", &tied(&course.figure)),
    ]
}

fn across(at: usize, of: usize) -> f64 {
    match of {
        0 | 1 => f64::midpoint(LEFT, RIGHT),
        _ => LEFT + (RIGHT - LEFT) * at as f64 / (of - 1) as f64,
    }
}

/// Dashed lines half way to the climb before, numbered from the left.
fn changes(course: &Course) -> Vec<Tag> {
    let places =
        course.changed.iter().enumerate().filter(|(at, changed)| **changed && *at > 0).map(|(at, _)| at);
    let all = course.marks.len();
    let drawn = |(number, at): (usize, usize)| {
        let x = f64::midpoint(across(at - 1, all), across(at, all));
        let words = format!("{}", number + 1);
        [line([x, x], [TOP - 6.0, FLOOR], "changed"), label(x, TOP - 9.0, "axis", &words)]
    };
    places.enumerate().flat_map(drawn).collect()
}

fn dot(x: f64, mark: &Mark, down: impl Fn(f64) -> f64, frame: &Scale) -> Tag {
    let class = if mark.ink == Ink::Hollow { "run hollow" } else { "run dot" };
    let whisker = mark.interval.map(|ends| {
        let [low, high] = ends.map(&down);
        let caps = [low, high].map(|end| line([x - CAP, x + CAP], [end; 2], "whisker"));
        tag("g").push(line([x, x], [low, high], "whisker")).push_all(caps)
    });
    let y = down(mark.value);
    let body = if frame.holds(mark.value) {
        tag("circle").attr("cx", share(x)).attr("cy", format!("{y:.1}")).attr("r", 4).class("body")
    } else {
        let arrow = if y < f64::midpoint(TOP, FLOOR) { "▴" } else { "▾" };
        label(x, y.clamp(TOP + 8.0, FLOOR), "beyond", arrow)
    };
    tag("g").class(class).push_all(whisker).push(body)
}

fn dates(course: &Course) -> Vec<Tag> {
    let [first, last] = &course.dates;
    let text = |x: f64, anchor: &str, words: &str| {
        tag("text")
            .attr("x", share(x))
            .attr("y", HEIGHT - 4.0)
            .attr("text-anchor", anchor)
            .class("axis")
            .text(words)
    };
    match course.marks.len() {
        0 | 1 => vec![text(f64::midpoint(LEFT, RIGHT), "middle", first)],
        _ => vec![text(LEFT - 3.0, "start", first), text(100.0, "end", last)],
    }
}

/// As many decimals as its neighbours need.
fn written(tick: f64, suffix: &str, ticks: &[f64]) -> String {
    let whole = |digits: i32| {
        ticks
            .iter()
            .all(|tick| ((tick * 10_f64.powi(digits)).round() / 10_f64.powi(digits) - tick).abs() < 1e-9)
    };
    let digits = (0..4).find(|digits| whole(*digits)).unwrap_or(4) as usize;
    let sign = match suffix {
        "%" if tick > 1e-9 => "+",
        _ if tick < -1e-9 => "−",
        _ => "",
    };
    let gap = if suffix == "%" { "\u{a0}" } else { "" };
    format!("{sign}{:.digits$}{gap}{suffix}", tick.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(values: &[f64]) -> Course {
        Course {
            title: "total".into(),
            figure: "2.07×".into(),
            base: 1.0,
            suffix: "×",
            marks: values.iter().map(|v| Mark::of(*v, Some([v - 0.1, v + 0.1]), Ink::Dot)).collect(),
            changed: values.iter().enumerate().map(|(at, _)| at == 2).collect(),
            dates: ["1 Jan".into(), "9 Jan".into()],
        }
    }

    #[test]
    fn each_run_is_a_dot_with_its_interval_and_each_change_a_numbered_line() {
        let svg = course(&sample(&[2.0, 2.1, 2.2, 2.0]), "four").to_string();
        assert_eq!(
            (svg.matches("<circle").count(), svg.matches("class=\"whisker\"").count()),
            (4, 12),
            "{svg}"
        );
        assert_eq!((svg.matches("class=\"changed\"").count(), svg.matches(">1<").count()), (1, 1), "{svg}");
        assert!(
            svg.contains(">1.0×<") && svg.contains("9 Jan") && svg.contains("aria-label=\"four\""),
            "{svg}"
        );
    }

    #[test]
    fn one_run_and_a_run_without_a_figure_are_drawn_too() {
        assert!(course(&sample(&[2.0]), "one").to_string().contains("cx=\"56.00%\""));
        let svg = course(&sample(&[f64::NAN, 2.0]), "").to_string();
        assert_eq!(svg.matches("<circle").count(), 1);
    }
}
