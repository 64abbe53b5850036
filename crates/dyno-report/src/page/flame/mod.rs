//! Pictures of a profile: the page, the picture alone, and what changed between two.
//!
//! `dyno profile`, `dyno offcpu` and `dyno flame` write them through [`write`] and [`write_diff`]; a climb's page embeds the
//! same picture. Everything is a pure function of records. Functions of the program are blue, the kernel's are warm, and
//! a function has one hue in all pictures; waits have a colour per kind; a comparison is red and blue.

mod format;
#[cfg(test)]
pub(in crate::page) mod tests;

use dyno_profile::diff::{DiffError, diff};
use dyno_profile::export;
use dyno_record::profile::Profile;

use crate::page::{boxes, draw};
use crate::view;
use crate::view::block::View;
use crate::view::boxes::Boxes;

pub use crate::view::{Look, Order, Orientation};
pub use format::Format;

const STYLE: &str =
    concat!(include_str!("../style.css"), include_str!("../boxes/flame.css"), include_str!("page.css"));
const SCRIPT: &str = concat!(include_str!("../page.js"), include_str!("flame.js"));

/// A profile in a format: the bytes of a file.
pub fn write(profile: &Profile, format: Format, look: Look) -> Vec<u8> {
    match format {
        Format::Html => page(&view::profile::view(profile, look), &Boxes::of(profile, look)),
        Format::Svg => boxes::file(&Boxes::of(profile, look)).into_bytes(),
        Format::Folded => export::folded::bytes(profile),
        Format::Pprof => export::pprof::bytes(profile),
        Format::Firefox => export::firefox::bytes(profile),
        Format::Speedscope => export::speedscope::bytes(profile),
        Format::Json => serde_json::to_vec(profile).expect("a record is plain data with names for keys"),
    }
}

/// What changed between two profiles, in a format that has room for it; others fall back to the page.
///
/// # Errors
/// When nothing makes the two comparable.
pub fn write_diff(
    before: &Profile,
    after: &Profile,
    format: Format,
    look: Look,
) -> Result<Vec<u8>, DiffError> {
    let diff = diff(before, after, look.threads)?;
    if format == Format::Folded {
        return Ok(export::folded::diff_bytes(&diff));
    }
    let changed = Boxes::of_diff(before, after, diff, look);
    Ok(match format {
        Format::Svg => boxes::file(&changed).into_bytes(),
        _ => {
            let view = view::profile::change::view(before, after, changed.clone());
            page(&view, &changed)
        }
    })
}

/// The page of a view whose picture shows these boxes, with their data for its script.
fn page(view: &View, shown: &Boxes) -> Vec<u8> {
    draw::page(view, Some(boxes::island(shown)), STYLE, SCRIPT).into_bytes()
}
