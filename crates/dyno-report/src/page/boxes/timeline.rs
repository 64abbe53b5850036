//! What each thread did when, drawn: a lane per thread, the states as paths.
//!
//! The page of a profile draws it; what each lane holds is worked out by the view.

use std::fmt::Write;

use dyno_record::name;

use super::colour;
use super::key::swatches;
use crate::page::html::{Tag, tag};
use crate::view::chart::{Lane, Lanes, STATES};

/// A lane's height in its own units.
const HIGH: f64 = 100.0;

/// The picture.
pub(in crate::page) fn lanes(all: &Lanes) -> Tag {
    let list = tag("ol").class("lanes").push_all(all.lanes.iter().map(lane)).push(axis(&all.axis));
    tag("div").push(swatches(all.key.iter().map(|(state, word)| (class(*state), word)))).push(list)
}

fn lane(lane: &Lane) -> Tag {
    let svg = tag("svg")
        .attr("viewBox", format!("0 0 {} {HIGH}", lane.columns.len()))
        .attr("preserveAspectRatio", "none")
        .attr("role", "img")
        .attr("aria-label", &lane.sentence)
        .push_all((0..STATES).filter_map(|state| path(&lane.columns, state)));
    tag("li").push(tag("span").class("name").text(&lane.name)).push(svg)
}

fn class(state: usize) -> &'static str {
    match state.checked_sub(2) {
        None if state == 0 => "runs",
        None => "W0",
        Some(wait) => colour::of_wait(name::WAITS[wait]),
    }
}

/// All of a state's boxes in one path; neighbours of equal height are one.
fn path(columns: &[[f64; STATES]], state: usize) -> Option<Tag> {
    let edges = |column: &[f64; STATES]| {
        let under: f64 = column[..state].iter().sum();
        let round = |share: f64| (share.min(1.0) * HIGH).round() as i64;
        (round(under), round(under + column[state]))
    };
    let mut d = String::new();
    let mut at = 0;
    while at < columns.len() {
        let (low, high) = edges(&columns[at]);
        let same = columns[at..].iter().take_while(|column| edges(column) == (low, high)).count();
        if high > low {
            let top = HIGH as i64 - high;
            write!(d, "M{at} {top}h{same}v{}h-{same}z", high - low).expect("a String takes all");
        }
        at += same;
    }
    (!d.is_empty()).then(|| tag("path").class(class(state)).attr("d", d))
}

fn axis(labels: &[String; 2]) -> Tag {
    let scale = tag("span").class("scale").push(tag("span").text("0"));
    let scale = scale.push_all(labels.iter().map(|label| tag("span").text(label)));
    tag("li").class("axis").attr("aria-hidden", "true").push(tag("span").class("name")).push(scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_neighbours_are_one_box() {
        let columns = vec![[0.5; STATES]; 10_000];
        let path = path(&columns, 0).map(|path| path.to_string());
        assert!(path.is_some_and(|path| path.len() < 200));
    }
}
