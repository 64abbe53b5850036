//! Tuning: a plan is made of findings, carried out change by change, kept in a journal, and rolled back.
//!
//! `dyno tune` calls it. Every write goes through [`crate::change::HostChange`]; what it takes to be asked first, and in which
//! words, is the verb's.

pub mod effect;
pub mod persist;
pub mod plan;
pub mod rollback;
pub mod session;
pub mod snapshot;
pub mod state;
