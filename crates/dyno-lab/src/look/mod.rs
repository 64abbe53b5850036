//! Looking at what runs: profiles, diagnosis, experiments, and the meter that a climb is lent.

pub mod causal;
pub mod cost;
pub mod diagnosis;
mod meter;
mod profile;
pub mod refused;
