//! The page of a climb: one file, no network, readable without scripts.
//!
//! `dyno climb` writes it, `dyno report` redraws any old record. A page says nothing that is not in its record and
//! measures nothing; it is a pure function of it.

#[cfg(test)]
mod tests;

use dyno_record::climb::Climb;

use super::draw::{SCRIPT, page};
use crate::view;

const STYLE: &str = include_str!("style.css");
const STYLE_WITH_FLAMES: &str = concat!(include_str!("style.css"), include_str!("boxes/flame.css"));

/// The whole page.
pub fn render(climb: &Climb) -> String {
    // The colours of flame graphs only where there are some.
    let style = if climb.profiles.is_empty() { STYLE } else { STYLE_WITH_FLAMES };
    page(&view::climb::view(climb), None, style, SCRIPT)
}
