//! The climb without a machine: thousands of climbs through a simulated world with known effects and noise as measured.
//!
//! `world` is the `Meter`, `noise` and `tape` are the machine's noise, `ladder` makes plans and climbs them. The other files
//! are tests: `golden` (climbs as they were, figure by figure), `rates` (how often it is right), `burning` (work outside the blocks), `verdicts` (every answer), `troubles`
//! (everything that breaks), `host` (its settings), `records` and `rejudge` (what is left behind), `real` (block series of
//! a real machine).
#![allow(clippy::unwrap_used)]

mod burning;
mod golden;
mod host;
mod ladder;
mod noise;
mod rates;
mod real;
mod records;
mod rejudge;
mod starts;
mod tape;
mod troubles;
mod verdicts;
mod world;
