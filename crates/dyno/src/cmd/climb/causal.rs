//! `dyno climb --causal`: whether experiments can be made here, and what they add to the time, both told before the start.

use std::time::Duration;

use dyno_climb::rung::Rung;
use dyno_profile::causal::is_possible;

use crate::cli;
use dyno_lab::Failure;
use dyno_lab::look::causal::not_run;
use dyno_report::number;

/// Longer looks at both sides of a rung: a second of each server.
const LOOK: Duration = Duration::from_secs(1);

/// Whether this process may experiment at all: known before minutes are spent.
pub(super) fn check() -> Result<(), Failure> {
    is_possible().map_err(|error| not_run(&error))
}

/// What it adds to the time, in a line, where each rung begins from a setting of its own; their servers' starts are not in it.
pub(super) fn cost(args: &cli::Climb, rungs: &[&Rung]) -> String {
    let tried = rungs.iter().filter(|rung| rung.impossible.is_none()).count() as u32;
    let looks = LOOK * 2 * u32::from(args.instances);
    let longest = number::duration(((args.causal_for + looks) * tried).as_secs_f64());
    let each = number::duration(args.causal_for.as_secs_f64());
    format!(
        "experiments: {each} for each setting that rungs begin from, beside --time; about {longest} in all where each rung is kept, and as much again where rungs are tried twice\n"
    )
}
