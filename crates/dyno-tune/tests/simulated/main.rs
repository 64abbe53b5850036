//! The climb without a machine.
#![allow(clippy::unwrap_used)]

mod ladder;
mod noise;
mod rates;
mod rejudge;
mod tape;
mod world;
