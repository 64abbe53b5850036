//! Pictures of a profile: the page, the picture alone, and what changed between two.
//!
//! `dyno profile`, `dyno offcpu` and `dyno flame` write them through [`write`] and [`write_diff`]; a climb's page embeds
//! [`picture()`]. Everything is a pure function of records. Functions of the program are blue, the kernel's are warm, and
//! a function has one hue in all pictures; waits have a colour per kind; a comparison is red and blue.

mod colour;
mod data;
mod draw;
mod format;
mod header;
mod look;
mod measure;
mod page;
#[cfg(test)]
mod tests;
mod timeline;
mod tops;
mod view;
mod waits;

use dyno_profile::diff::{Diff, DiffError, diff};
use dyno_profile::export;
use dyno_profile::tree::Tree;
use dyno_record::profile::Profile;

use crate::page::html::Tag;
pub use format::Format;
pub use look::{Look, Orientation};
use measure::Measure;
use view::View;

/// A profile in a format: the bytes of a file.
pub fn write(profile: &Profile, format: Format, look: Look) -> Vec<u8> {
    match format {
        Format::Html => page::of_profile(&view(profile, look), profile).into_bytes(),
        Format::Svg => draw::file(&view(profile, look)).into_bytes(),
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
    let view = diff_view(before, after, diff, look);
    Ok(match format {
        Format::Svg => draw::file(&view).into_bytes(),
        _ => page::of_diff(&view, before, after).into_bytes(),
    })
}

/// The picture of a profile for another page: as wide as its place, without a script. That page's style needs `flame.css`.
pub(in crate::page) fn picture(profile: &Profile, look: Look) -> Tag {
    draw::in_page(&view(profile, look))
}

/// What changed between two profiles, for another page.
///
/// # Errors
/// When nothing makes the two comparable.
pub(in crate::page) fn picture_of_change(
    before: &Profile,
    after: &Profile,
    look: Look,
) -> Result<Tag, DiffError> {
    let diff = diff(before, after, look.threads)?;
    Ok(draw::in_page(&diff_view(before, after, diff, look)))
}

fn view(profile: &Profile, look: Look) -> View {
    View {
        title: view::target(profile),
        tree: Tree::of(profile, look.threads),
        measure: Measure::of(profile),
        kind: profile.kind,
        orientation: look.orientation,
        basis: None,
    }
}

fn diff_view(before: &Profile, after: &Profile, diff: Diff, look: Look) -> View {
    let (from, to) = (view::target(before), view::target(after));
    View {
        title: if from == to { to } else { format!("{from} → {to}") },
        measure: Measure::of_diff(after, diff.basis),
        tree: diff.tree,
        kind: after.kind,
        orientation: look.orientation,
        basis: Some(diff.basis),
    }
}
