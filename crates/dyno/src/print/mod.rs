//! What the terminal shows: tables, one-line progress, errors in three lines.
//!
//! Commands call this and write the text where it belongs: data to stdout, talk to stderr. Nothing here writes, reads a
//! clock, or asks whether there is a terminal; width and colour are arguments.

pub(crate) mod causal;
mod climb;
mod diagnose;
pub(crate) mod foretold;
mod line;
pub(crate) mod number;
mod offcpu;
mod profile;
pub(crate) mod specimen;
mod table;

pub(crate) use climb::{arms, climb_table, own_load, seen, unclear};
pub(crate) use diagnose::diagnosis_card;
pub(crate) use line::{Progress, error_chain};
pub(crate) use offcpu::offcpu;
pub(crate) use profile::profile;

/// Whether words may be coloured. Figures never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Color {
    /// Text alone.
    Plain,
    /// ANSI colours on verdicts and warnings.
    Ansi,
}
