//! What a run of `dyno load` came to, with all that is printed about it.

use dyno_lab::measure::cost::ServerCost;
use dyno_load::Errors;
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
    /// Names of what was asked and of what was expected.
    pub(super) digests: [String; 2],
}

/// An answer that was not right, in words.
pub(super) fn wrong(answer: &dyno_load::WrongAnswer) -> String {
    format!("expected {}; got {}", answer.expected, answer.got)
}

/// A run says nothing of its target when no request was answered rightly, or most were not: what, and the first error or
/// wrong answer. Who stopped a run knows why it is short.
pub(super) fn failed(report: &LoadReport) -> Option<(String, Option<String>)> {
    let block = &report.block;
    let (failed, replies) = (block.failed(), block.replies);
    let what = if report.ended == Ended::Stopped {
        return None;
    } else if block.answered().is_err() {
        "no request was answered rightly".to_owned()
    } else if failed > replies {
        format!("{failed} requests failed and {replies} were answered{}", lost(&block.errors))
    } else {
        return None;
    };
    Some((what, block.first_error.clone().or_else(|| block.first_wrong.as_ref().map(wrong))))
}

/// Connections are no requests: one may carry several, and each attempt to make one counts.
fn lost(errors: &Errors) -> String {
    match errors.total() - errors.wrong() {
        0 => String::new(),
        lost => format!("; {lost} connections were lost or refused"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_load::BlockReport;
    use dyno_load::limit::Limited;

    fn what(errors: Errors, unanswered: u64, replies: u64) -> Option<String> {
        let block = BlockReport { errors, unanswered, replies, ..BlockReport::default() };
        failed(&LoadReport { block, limited: Limited::No, ended: Ended::Whole }).map(|(what, _)| what)
    }

    /// Planted fault: each attempt to connect is a request that failed.
    #[test]
    fn a_connection_that_is_refused_is_no_request() {
        let refused = Errors { connect: 25_000, ..Errors::default() };
        assert_eq!(what(refused, 0, 1_000), None);
        let lost = Errors { read: 20, status: 2, ..refused };
        assert_eq!(
            what(lost, 1_260, 1_000).as_deref(),
            Some("1262 requests failed and 1000 were answered; 25020 connections were lost or refused")
        );
        assert_eq!(what(refused, 0, 0).as_deref(), Some("no request was answered rightly"));
    }
}
