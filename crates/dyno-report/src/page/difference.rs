//! The page of two records held against each other: one file, no network, readable without scripts.

use dyno_record::difference::Difference;

use super::draw::{SCRIPT, page};
use crate::view;

const STYLE: &str = include_str!("style.css");

/// The whole page.
pub fn render(record: &Difference) -> String {
    page(&view::difference::view(record), None, STYLE, SCRIPT)
}
