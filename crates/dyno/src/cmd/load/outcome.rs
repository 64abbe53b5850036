//! What a run of `dyno load` came to, with all that is printed about it.

use dyno_lab::measure::cost::ServerCost;
use dyno_load::limit::{Limited, Signs};
use dyno_load::run::LoadReport;

use crate::cli;

/// What a run came to, with all that is printed about it.
pub(super) struct Outcome<'r> {
    pub(super) args: &'r cli::Load,
    pub(super) threads: usize,
    pub(super) report: &'r LoadReport,
    pub(super) signs: Signs,
    pub(super) limited: Limited,
    pub(super) server: Option<ServerCost>,
    pub(super) rates: Vec<f64>,
}

/// An answer that was not right, in words.
pub(super) fn wrong(answer: &dyno_load::WrongAnswer) -> String {
    format!("expected {}; got {}", answer.expected, answer.got)
}
