//! What a run of `dyno load` came to, with all that is printed about it.

use dyno_lab::measure::cost::ServerCost;
use dyno_load::limit::{Limited, Signs};
use dyno_load::run::{Ended, LoadReport};

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

/// A run says nothing of its target when no request was answered rightly, or most were not: what, and the first error or
/// wrong answer. Who stopped a run knows why it is short.
pub(super) fn failed(report: &LoadReport) -> Option<(String, Option<String>)> {
    let block = &report.block;
    let (errors, replies) = (block.errors.total(), block.replies);
    let what = if report.ended == Ended::Stopped {
        return None;
    } else if block.answered().is_err() {
        "no request was answered rightly".to_owned()
    } else if errors > replies {
        format!("{errors} requests failed and {replies} were answered")
    } else {
        return None;
    };
    Some((what, block.first_error.clone().or_else(|| block.first_wrong.as_ref().map(wrong))))
}
