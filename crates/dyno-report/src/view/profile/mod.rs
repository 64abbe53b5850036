//! The view of a profile: where time on the CPU went, or what was waited for, and what watching cost.
//!
//! `dyno profile`, `dyno offcpu` and `dyno flame` show it; [`change`] is the view of what changed between two.

mod call_tree;
pub(crate) mod change;
mod functions;
pub(crate) mod lanes;
mod off;
mod on;
mod parts;
mod system_calls;

use dyno_profile::diff;
use dyno_record::profile::{Kind, Profile, Unit};

use self::parts::{LABEL_COLUMNS, doubts, foot, lost, measured, picture};
use super::block::{Block, Headline, OnPage, OnTerminal, Section, View};
use super::boxes::Boxes;
use super::look::Look;
use super::words;

/// All that is said of a profile; the boxes are those of its picture.
pub(crate) fn view(profile: &Profile, look: Look) -> View {
    let boxes = Boxes::of(profile, look);
    let (kind, own) = match profile.kind {
        Kind::OnCpu => ("on the CPU", on::sections(profile, &boxes.measure)),
        Kind::OffCpu => ("off the CPU", off::sections(profile, &boxes.measure)),
    };
    let headline = Block::Headline(headline(&boxes, profile));
    let cut_short = words::cut_short(profile.cut_short.as_ref()).into_iter().collect();
    let (title, kicker) = (boxes.title.clone(), format!("Profile · time {kind} · {}", boxes.title));
    let head = [
        words::alerts("lost", OnTerminal::Above, lost(profile)),
        words::alerts("cut-short", OnTerminal::Above, cut_short),
        Some(Section::page("all", "", OnPage::Head, vec![headline])),
        words::alerts("alerts", OnTerminal::Last, doubts(profile)),
    ];
    let tail = [
        lanes::section(profile),
        Some(functions::section(profile, &boxes.measure, look.order)),
        call_tree::section(profile),
        system_calls::section(profile),
        Some(Section::page("measured", "How it was measured", OnPage::Body, vec![measured(profile)])),
    ];
    let (about, found) = own;
    let sections = head.into_iter().flatten().chain([about, picture(boxes)]).chain(found);
    View {
        title,
        kicker,
        sections: sections.chain(tail.into_iter().flatten()).collect(),
        foot: foot(profile),
        label_columns: LABEL_COLUMNS,
    }
}

/// The largest figure and its unit.
fn headline(boxes: &Boxes, profile: &Profile) -> Headline {
    let total = profile.total_ns() as f64;
    let known = profile.duration_s > 0.0 && profile.unit == Unit::Nanoseconds;
    let (big, unit) = match profile.kind {
        Kind::OnCpu if known && diff::requests(profile).is_none() => on::headline(profile),
        _ => (boxes.measure.figure(total), boxes.measure.said.clone()),
    };
    Headline { big, unit, ..Headline::default() }
}
