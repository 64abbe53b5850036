//! Charts as SVG that is as wide as its place and never scales its text.
//!
//! The writer of pages calls this. Positions across are percentages of the width, positions down are pixels, so that one
//! drawing serves a phone and a screen. Colours come from the style sheet by class. Nothing here knows what a rung is.

mod course;
mod curve;
mod effect;
mod ladder;
mod points;
mod shape;
mod strip;

use crate::view::chart::{Chart, Figure};

use super::html::Tag;

/// A picture with what stands under it.
pub(super) fn figure(figure: &Figure) -> Tag {
    let sentence = figure.sentence.as_str();
    match &figure.chart {
        Chart::Bars(rows) => strip::bars(rows, sentence),
        Chart::Estimates(estimates) => strip::estimates(estimates),
        Chart::Ladder(ladder) => ladder::ladder(ladder),
        Chart::Curves(all) => curve::curves(all, sentence),
        Chart::Course(one) => course::course(one, sentence),
        Chart::Effect(one) => effect::effect(one, sentence),
        Chart::Points(series) => points::points(series, sentence),
        Chart::Boxes(boxes) | Chart::Explorable(boxes) => super::boxes::in_page(boxes, sentence),
        Chart::Lanes(all) => super::boxes::lanes(all),
    }
}
