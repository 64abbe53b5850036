//! `dyno profile` and `dyno offcpu` on the terminal.

use dyno_record::profile::Profile;

use super::draw;
use crate::color::Color;
use crate::view::{self, Look};

/// Everything, in at most `width` columns.
pub fn profile(profile: &Profile, width: usize, look: Look) -> String {
    draw::view(&view::profile::view(profile, look), width, Color::Plain)
}
