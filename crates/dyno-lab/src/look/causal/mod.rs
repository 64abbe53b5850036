//! Experiments on a process that runs: what it would bring if this function, line or wait were faster.
//!
//! `dyno_profile::causal` experiments; here are the target's places, what is counted, and why nothing could be tried.

mod asked;
mod event;
mod experiment;
mod failure;
mod progress;

pub use asked::{Asked, Point};
pub use event::Event;
pub use experiment::experiment;
pub use failure::not_run;
pub use progress::can_be_counted;
