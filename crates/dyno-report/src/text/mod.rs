//! What the terminal shows: tables, and one-line progress.
//!
//! Verbs call this and write the text where it belongs: data to stdout, talk to stderr. Nothing here writes, reads a
//! clock, or asks whether there is a terminal; width and colour are arguments.

pub mod audit;
pub mod causal;
#[cfg(test)]
mod climb;
mod compare;
mod diagnose;
mod draw;
mod line;
mod lines;
mod planted;
mod profile;
pub mod specimen;
mod table;

use dyno_record::climb::Climb;

use crate::color::Color;
use crate::view;

pub use compare::{difference, history, judged};
pub use diagnose::diagnosis_card;
pub use line::{Doing, Progress};
pub use planted::planted_host;
pub use profile::profile;

/// The whole climb in at most `width` columns (40 at least).
pub fn climb_table(climb: &Climb, width: usize, color: Color) -> String {
    draw::view(&view::climb::view(climb), width, color)
}
