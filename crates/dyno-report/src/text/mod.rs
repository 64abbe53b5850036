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
use dyno_record::load::LoadRun;

use crate::color::Color;
use crate::view;

pub use compare::{difference, history, judged};
pub use diagnose::diagnosis_card;
pub use line::{Doing, Progress};
pub use planted::planted_host;
pub use profile::profile;

/// A lead, and beside it a paragraph in at most `width` columns; under it where there is little room beside it. Without a
/// width it is one line: whoever reads a pipe cuts it himself.
pub fn beside(lead: &str, text: &str, width: Option<usize>) -> String {
    let columns = lead.chars().count();
    let Some(width) = width.filter(|width| columns + text.chars().count() > *width) else {
        return format!("{}\n", format!("{lead}{text}").trim_end());
    };
    let width = width.max(draw::WIDTH_MIN);
    if columns + BESIDE_MIN > width {
        let lead = lead.trim_end();
        let lead = match lead.chars().count() <= width {
            true => format!("{lead}\n"),
            false => lines::wrapped(lead, width, 0),
        };
        return lead + &lines::wrapped(text, width, UNDER_INDENT);
    }
    lead.to_owned() + lines::wrapped(text, width, columns).trim_start_matches(' ')
}

/// Fewer columns beside a lead are no place for a paragraph.
const BESIDE_MIN: usize = 24;
/// Columns before a paragraph that stands under its lead.
const UNDER_INDENT: usize = 4;

/// A load's record in at most `width` columns.
pub fn load_table(run: &LoadRun, width: usize, color: Color) -> String {
    draw::view(&view::load::view(run), width, color)
}

/// The whole climb in at most `width` columns (40 at least).
pub fn climb_table(climb: &Climb, width: usize, color: Color) -> String {
    draw::view(&view::climb::view(climb), width, color)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_paragraph_stands_beside_its_lead_or_under_it_and_in_a_pipe_in_one_line() {
        let text = "one write less for each request";
        assert_eq!(beside("one-send  ", text, None), "one-send  one write less for each request\n");
        assert_eq!(
            beside("one-send  ", text, Some(40)),
            "one-send  one write less for each\n          request\n"
        );
        let lead = "a-rung-with-a-name  send=joined  ";
        assert_eq!(
            beside(lead, text, Some(40)),
            "a-rung-with-a-name  send=joined\n    one write less for each request\n"
        );
    }
}
