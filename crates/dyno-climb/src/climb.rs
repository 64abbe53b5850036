//! The order of a climb: noise, rungs, second pass, leave-one-out, total.
//!
//! [`climb`] walks a plan through a [`crate::meter::Meter`] and fills a record; it touches nothing else. Each stage is a file
//! in `climb/`: noise, step, confirm and total each write down a *comparison* and have it measured. Whatever goes wrong at
//! one rung is that rung's verdict; only an interrupt, a lost keeper or a start that cannot be measured ends the climb, and
//! then the record holds what was measured before.

mod attempt;
mod bench;
mod change;
mod climber;
mod comparison;
mod confirm;
#[cfg(test)]
mod faults;
mod in_force;
mod look;
mod noise;
mod off_block;
mod options;
mod pairs;
mod proofs;
mod prove_arms;
mod rules;
mod starts;
mod step;
#[cfg(test)]
mod still;
mod time;
mod total;
mod turned;
mod visit;

use dyno_measure::series::BLOCK_COLUMNS;
use dyno_record::climb::Climb;

use crate::meter::{Describe, Look};
use crate::plan::Plan;
use climber::Climber;
pub use options::{ClimbError, Event, INSTANCES, Options, Order, Profiles, Suffices};
pub use rules::step_rule;

/// Climbs, and returns the record, with the reason when it ended early: what was measured is in the record all the same.
pub fn climb<M: Look + Describe>(
    plan: &Plan,
    options: &Options,
    meter: &mut M,
    record: &mut Climb,
    watch: &mut dyn FnMut(&Event<'_>),
) -> Result<(), ClimbError> {
    describe(plan, options, record);
    let began_ns = meter.now_ns();
    let mut climber = Climber::new(plan, options, meter, record, watch);
    let outcome = in_order(&mut climber);
    if outcome.is_err() {
        climber.end_early();
        climber.list_unreached();
    }
    record.duration_s = (meter.now_ns() - began_ns) as f64 / 1e9;
    if let Err(error) = &outcome {
        record.cut_short = Some(reason(error));
    }
    outcome
}

/// A climb that ended before anything could be measured: its record says which it was, and why.
pub fn not_begun(plan: &Plan, options: &Options, record: &mut Climb, error: &ClimbError) {
    describe(plan, options, record);
    record.cut_short = Some(reason(error));
}

fn describe(plan: &Plan, options: &Options, record: &mut Climb) {
    record.plan.clone_from(&plan.name);
    record.texts = plan.texts();
    record.seed = options.seed;
    record.load = plan.load.record();
    record.series.block_columns = BLOCK_COLUMNS.map(str::to_owned).to_vec();
}

fn in_order<M: Look + Describe>(climber: &mut Climber<'_, M>) -> Result<(), ClimbError> {
    climber.begins();
    climber.noise()?;
    assert!(climber.kept.is_empty(), "nothing is kept before a rung was tried");
    climber.first_pass()?;
    climber.second_pass()?;
    climber.leave_one_out()?;
    climber.total()
}

fn reason(error: &ClimbError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
