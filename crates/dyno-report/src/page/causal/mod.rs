//! The page of a causal profile: a curve for each site, the largest effect first, with what may be believed of it.
//!
//! `dyno causal` writes it, `dyno report` draws it again. It is a pure function of the record and measures nothing.

pub mod coz;
#[cfg(test)]
mod tests;

use dyno_record::causal::Causal;

use super::draw::{SCRIPT, page};
use crate::view;

const STYLE: &str = concat!(include_str!("../style.css"), include_str!("causal.css"));

/// The whole page.
pub fn render(record: &Causal) -> String {
    page(&view::causal::view(record), None, STYLE, SCRIPT)
}
