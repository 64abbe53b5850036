//! The climb: change one thing, prove that it is in force, measure it against the setting before, judge, keep or go back.
//!
//! A [`plan::Plan`] names a server, its dials and the rungs to try. [`climb::climb`] walks them through a [`meter::Meter`],
//! which is the only way to the world: the binary lends it real servers and a load generator, the tests lend it a
//! simulated world with known effects. This crate knows no server by name except in `rung/`, which speaks the words of
//! `dyno serve`'s flags.

pub mod built_in;
pub mod climb;
pub mod dial;
pub mod load;
pub mod meter;
pub mod plan;
pub mod planted;
pub mod proof;
pub mod rung;
