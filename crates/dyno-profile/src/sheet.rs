//! The sheet of a profile: what ran, per request where that is known, and the functions that took most of it.
//!
//! `dyno judge` compares two of them by it; what is above a function is `diff`'s business.

use dyno_record::figure::{Better, Condition, Figure, Forbids, Sheet, Starts, Unit, of_machine};
use dyno_record::profile::{Kind, Profile};

use crate::{diff, top};

/// Functions that are compared: beyond them lies dust.
const FUNCTIONS_MAX: usize = 20;

/// All that a profile comes to.
#[must_use]
pub fn of_profile(profile: &Profile) -> Sheet {
    Sheet {
        kind: "profile",
        schema: profile.schema.clone(),
        version: profile.version.clone(),
        started_unix_s: profile.started_unix_s,
        duration_s: profile.duration_s,
        cut_short: profile.cut_short.clone(),
        conditions: conditions(profile),
        texts: Vec::new(),
        figures: whole(profile).into_iter().chain(functions(profile)).collect(),
        starts: Starts::One,
        warnings: profile.warnings.clone(),
    }
}

fn conditions(profile: &Profile) -> Vec<Condition> {
    let kind = if profile.kind == Kind::OnCpu { "time on a CPU" } else { "time off a CPU" };
    let own = [
        Condition::new("weights", kind, Forbids::All),
        Condition::new("program", profile.target.name.clone(), Forbids::All),
        Condition::new("event", profile.sampling.event.clone(), Forbids::Cause),
        Condition::new("version", profile.version.clone(), Forbids::Nothing),
    ];
    of_machine(&profile.machine).into_iter().filter(|one| !one.value.is_empty()).chain(own).collect()
}

fn total_ns(profile: &Profile) -> u64 {
    profile.stacks.iter().fold(0, |sum, stack| sum.saturating_add(stack.weight_ns))
}

fn whole(profile: &Profile) -> Vec<Figure> {
    let (total, seconds) = (total_ns(profile) as f64, profile.duration_s);
    let neither = (Unit::Count, Better::Neither);
    let per_second = (seconds > 0.0).then(|| total / 1e9 / seconds);
    let requests = diff::requests(profile).filter(|requests| *requests > 0);
    let per_request = requests.map(|requests| total / 1e3 / requests as f64);
    let (user, kernel) = top::user_and_kernel(profile);
    let share = 100.0 * kernel as f64 / (user + kernel).max(1) as f64;
    vec![
        Figure::new("cpu", "time per request", (Unit::Us, Better::Lower), per_request),
        Figure::new("busy", "threads busy, or waiting, at a time", neither, per_second),
        Figure::new("kernel", "share of the kernel", (Unit::Share, Better::Neither), Some(share)),
        Figure::new("samples", "samples, or switches", neither, Some(profile.sampling.samples as f64)),
    ]
}

fn functions(profile: &Profile) -> Vec<Figure> {
    let total = total_ns(profile).max(1) as f64;
    let figure = |(name, ns): (String, u64)| {
        let share = 100.0 * ns as f64 / total;
        Figure::new(
            format!("own.{name}"),
            "share of its own, among the largest",
            (Unit::Share, Better::Neither),
            Some(share),
        )
    };
    top::own(profile).into_iter().take(FUNCTIONS_MAX).map(figure).collect()
}
