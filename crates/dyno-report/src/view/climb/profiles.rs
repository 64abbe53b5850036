//! What the profiles of a rung's two sides show: a flame graph of a kept rung, what changed, and in words what moved.

use dyno_measure::series::Side;
use dyno_profile::diff::Basis;
use dyno_profile::moved::{Moved, Time, moved};
use dyno_record::climb::{Climb, Rung, RungVerdict};
use dyno_record::name;
use dyno_record::profile::Profile;

use crate::view::block::{Block, Voice};
use crate::view::boxes::Boxes;
use crate::view::chart::{Chart, Figure};
use crate::view::look::Look;
use crate::view::words::said;

/// Functions that are named: more is what the picture is for.
const NAMED_MAX: usize = 4;

/// The part of the greatest change from which a function is said to hold it.
const ABOUT_AS_MUCH: f64 = 0.7;

/// The part of a rung's card, where both sides were profiled.
pub(super) fn block(climb: &Climb, rung: &Rung) -> Option<Block> {
    let (before, after) = (of(climb, rung, Side::A)?, of(climb, rung, Side::B)?);
    // A rung that was not kept is told in words: its picture is that of the setting before.
    let whole = if rung.attempt.verdict == RungVerdict::Kept {
        vec![
            Block::Heading("Where the CPU goes with it"),
            drawn(Boxes::of(after, Look::default())),
            Block::Heading("What it changed: red grew, blue shrank"),
        ]
    } else {
        Vec::new()
    };
    let blocks = whole.into_iter().chain([change(before, after)]).collect();
    Some(Block::Details(words(before, after), blocks))
}

fn drawn(boxes: Boxes) -> Block {
    let sentence = boxes.summary();
    Block::Figure(Figure { chart: Chart::Boxes(Box::new(boxes)), sentence, caption: String::new() })
}

fn of<'c>(climb: &'c Climb, rung: &Rung, side: Side) -> Option<&'c Profile> {
    climb.profiles.iter().find(|one| one.rung == rung.id && one.side == side).map(|one| &one.profile)
}

fn change(before: &Profile, after: &Profile) -> Block {
    match Boxes::of_change(before, after, Look::default()) {
        Ok(boxes) => drawn(boxes),
        Err(error) => said(Voice::Why, "", format!("Not compared: {error}.")),
    }
}

/// Which functions' own time moved; else the innermost one that moved with what it calls; else that none did.
fn words(before: &Profile, after: &Profile) -> String {
    let Ok((basis, found)) = moved(before, after, Time::Own) else {
        return "Profile: the two sides cannot be compared".to_owned();
    };
    let (scale, unit) = match basis {
        Basis::Requests(_) => (1e-3, "µs per request"),
        Basis::Seconds(_) => (1e-6, "ms per second"),
    };
    let clear: Vec<&Moved> = found.iter().filter(|one| one.is_clear()).take(NAMED_MAX).collect();
    if clear.is_empty()
        && let Some(one) = innermost(before, after)
    {
        let (was, is) = (one.before * scale, one.after * scale);
        let name = name::short(&one.name);
        return format!("Profile: {name} with what it calls {was:.2} → {is:.2} {unit}");
    }
    if clear.is_empty() {
        let most = found.first().map_or(0.0, |one| one.change().abs() * scale);
        return format!(
            "Profile: no function moved by more than sampling can tell (at most {most:.2} {unit} of its own time)"
        );
    }
    let change = |one: &&Moved| {
        let sign = if one.change() < 0.0 { '−' } else { '+' };
        format!("{} {sign}{:.2}", name::short(&one.name), one.change().abs() * scale)
    };
    let list: Vec<String> = clear.iter().map(change).collect();
    format!("Profile, own time in {unit}: {}", list.join(", "))
}

/// Callers move with what they call: of those that moved about as much as any, the one with the least time tells where.
fn innermost(before: &Profile, after: &Profile) -> Option<Moved> {
    let (_, found) = moved(before, after, Time::Total).ok()?;
    let most = found.first()?.change().abs();
    let with_it = |one: &Moved| one.is_clear() && one.change().abs() >= ABOUT_AS_MUCH * most;
    let least = |a: &Moved, b: &Moved| a.before.max(a.after).total_cmp(&b.before.max(b.after));
    found.into_iter().filter(with_it).min_by(least)
}
