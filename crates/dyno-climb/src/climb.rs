//! The order of a climb: noise, rungs, second pass, leave-one-out, total.
//!
//! [`climb`] walks a plan through a [`Meter`] and fills a record; it touches nothing else. Each stage is a file in
//! `climb/`. Whatever goes wrong at one rung is that rung's verdict; only an interrupt, a lost keeper or a start that
//! cannot be measured ends the climb, and then the record holds what was measured before.

mod climber;
mod confirm;
mod foretold;
mod in_turn;
mod look;
mod noise;
mod proofs;
mod rules;
mod sides;
mod step;
mod time;
mod total;
mod total_in_turn;
mod trial;

use dyno_measure::Prng;
use dyno_measure::series::BLOCK_COLUMNS;
use dyno_record::climb::Climb;

use crate::meter::Meter;
use crate::plan::Plan;
use climber::Climber;
use time::{Clockwork, Pace};

pub use climber::{ClimbError, Event, INSTANCES, Options, Order, Profiles};
pub use rules::{confirmation, noise_trial, rule_of};

/// Climbs, and returns the record, with the reason when it ended early: what was measured is in the record all the same.
pub fn climb<M: Meter>(
    plan: &Plan,
    options: &Options,
    meter: &mut M,
    record: &mut Climb,
    watch: &mut dyn FnMut(&Event<'_>),
) -> Result<(), ClimbError> {
    record.plan.clone_from(&plan.name);
    record.seed = options.seed;
    record.load = plan.load.record();
    record.series.block_columns = BLOCK_COLUMNS.map(str::to_owned).to_vec();
    let began_ns = meter.now_ns();
    let clockwork = Clockwork::new(began_ns, options.time_ns);
    let rng = Prng::new(options.seed);
    let standing = plan.start();
    let mut climber = Climber {
        plan,
        options,
        meter,
        record,
        watch,
        clockwork,
        pace: Pace::default(),
        rng,
        standing,
        current: None,
        experiments: None,
        spoiled: false,
        kept: Vec::new(),
        instances: options.instances,
        fitted: false,
        burning: Vec::new(),
    };
    let outcome = climber.run();
    climber.close_current();
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

fn reason(error: &ClimbError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl<M: Meter> Climber<'_, M> {
    fn run(&mut self) -> Result<(), ClimbError> {
        self.noise()?;
        self.first_pass()?;
        self.second_pass()?;
        self.close_current();
        self.leave_one_out()?;
        self.total()
    }
}
