//! What the terminal shows: tables, and one-line progress.
//!
//! Verbs call this and write the text where it belongs: data to stdout, talk to stderr. Nothing here writes, reads a
//! clock, or asks whether there is a terminal; width and colour are arguments.

pub mod causal;
mod climb;
mod diagnose;
pub(crate) mod foretold;
mod line;
mod offcpu;
mod profile;
pub mod specimen;
mod table;

pub use climb::climb_table;
pub(crate) use climb::{arms, own_load, seen, unclear};
pub use diagnose::diagnosis_card;
pub use line::Progress;
pub use offcpu::offcpu;
pub use profile::profile;
