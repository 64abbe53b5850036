//! A causal profile from beginning to end: calibrate, run rounds over all sites until each is decided or time is up, judge.
//!
//! ```text
//! experiment (the loop) → site_run (one site's windows) → estimate, carryover, slow_down → schedule (what next)
//!            ├→ watching (what being attached costs)          └→ hand_off (bias of the method)
//!            └→ control (pauses for all alike), whole (what windows leave out), latency (pairs), unpaid (debts)
//! report (the record) → verdict (answer and reason) → obstacle (why there is none)
//! ```
//! `dyno causal` calls [`run`] over a live process, the tests over simulated ones. It knows neither: time and chance come
//! in as arguments, windows from the [`Rig`].

mod asked;
mod backlog;
mod carryover;
mod case;
mod composition;
mod control;
mod estimate;
mod experiment;
mod hand_off;
mod latency;
mod lost;
mod mean;
mod measured;
mod obstacle;
mod report;
mod schedule;
mod seen;
mod site_run;
mod slow_down;
mod unpaid;
mod verdict;
mod watching;
mod whole;

use std::sync::atomic::AtomicBool;

use dyno_record::causal::Causal;

use super::rig::Rig;
use super::rig::site::Tried;
use crate::error::Error;
use experiment::Experiment;

pub use asked::{Asked, RoundEvent};
pub use schedule::sites_that_fit;

/// Tries every site, in the order of the rig's, and says what came of it. Only what belongs to the experiment is filled
/// in: version, command, machine and target are the caller's to know. `on_round` hears of every round that has ended.
///
/// # Errors
/// When not even the first window can be run. Once there is one, an end of the target, an error or `stop` ends the run,
/// and the record says why.
pub fn run(
    asked: &Asked,
    rig: &mut dyn Rig,
    sites: &[Tried],
    clock: &dyn Fn() -> u64,
    on_round: &mut dyn FnMut(&RoundEvent<'_>),
    stop: &AtomicBool,
) -> Result<Causal, Error> {
    let begun_ns = clock();
    let mut experiment = Experiment::new(asked, rig, sites, clock, stop);
    let cut_short = experiment.run(on_round)?;
    let mut record = report::causal(experiment.outcome());
    record.duration_s = (clock() - begun_ns) as f64 / 1e9;
    record.cut_short = cut_short;
    assert_eq!(record.sites.len(), sites.len(), "each site has its verdict, however short the run was");
    Ok(record)
}
