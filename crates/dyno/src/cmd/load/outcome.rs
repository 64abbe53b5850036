//! What a run of `dyno load` came to, with all that is printed about it.

use dyno_lab::measure::cost::ServerCost;
use dyno_load::Errors;
use dyno_load::limit::{Limited, Signs};
use dyno_load::run::{Ended, LoadReport};

use crate::cli;

/// From this share of a run on, without any connection, or up to its end without anything received, its rate says nothing of
/// the server that it was to be of.
const AWAY_MAX: f64 = 0.1;

/// What a run came to, with all that is printed about it.
pub(super) struct Outcome<'r> {
    pub(super) args: &'r cli::Load,
    pub(super) threads: usize,
    /// CPUs that this process may run on.
    pub(super) cpus: usize,
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

/// Why a run says nothing of its target.
pub(super) struct Failed {
    pub(super) what: String,
    /// The first error or wrong answer.
    pub(super) why: Option<String>,
    pub(super) try_this: &'static str,
}

/// A run says nothing of its target when no request was answered rightly, or most were not, or when nobody was there for a
/// good part of it, or answered up to its end. Who stopped a run knows why it is short.
pub(super) fn failed(report: &LoadReport) -> Option<Failed> {
    let block = &report.block;
    let (failed, replies) = (block.failed(), block.replies);
    let first = || block.first_error.clone().or_else(|| block.first_wrong.as_ref().map(wrong));
    let (what, why, try_this) = if report.ended == Ended::Stopped {
        return None;
    } else if let Err(unanswered) = block.answered() {
        ("no request was answered rightly".to_owned(), unanswered.why.or_else(first), CURL)
    } else if failed > replies {
        let what = format!("{failed} requests failed and {replies} were answered{}", lost(&block.errors));
        (what, first(), CURL)
    } else if report.down() > AWAY_MAX && first().is_some_and(|why| why.contains(NO_PORTS)) {
        let what = away(report, "no port was left here to connect from for", block.down_ns);
        (
            what,
            first(),
            "a server that keeps connections open, or less time; ports are free again after a minute",
        )
    } else if report.down() > AWAY_MAX {
        let what = away(report, "no connection was up for", block.down_ns);
        let silent = || "it answers no attempt to connect".to_owned();
        (
            what,
            Some(first().unwrap_or_else(silent)),
            "the server's own log: did it end, or was it started anew?",
        )
    } else if report.silent() > AWAY_MAX {
        let what = away(report, "nothing was received for the last", block.silent_ns);
        (what, first().or_else(|| block.unfinished_in_words()), "what its threads wait for: dyno offcpu PID")
    } else {
        return None;
    };
    Some(Failed { what, why, try_this })
}

/// EADDRNOTAVAIL, as errors of connecting are told: each connection that this side closes keeps its port for a minute.
const NO_PORTS: &str = "os error 99";

fn away(report: &LoadReport, what: &str, ns: u64) -> String {
    let [away_s, all_s] = [ns, report.block.loaded.wall_ns].map(|ns| ns as f64 / 1e9);
    format!("{what} {away_s:.1} s of {all_s:.1} s: Requests/sec is not what the server answers")
}

/// What shows one answer.
const CURL: &str = "curl -si URL";

/// Connections are no requests: one may carry several, and each attempt to make one counts.
fn lost(errors: &Errors) -> String {
    match errors.total() - errors.wrong() {
        0 => String::new(),
        lost => format!("; {lost} connections were lost or refused"),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_load::limit::Limited;
    use dyno_load::{BlockReport, Loaded, Unfinished};

    fn what(errors: Errors, unanswered: u64, replies: u64) -> Option<String> {
        let block = BlockReport { errors, unanswered, replies, ..BlockReport::default() };
        failed(&LoadReport { block, limited: Limited::No, ended: Ended::Whole }).map(|failed| failed.what)
    }

    /// Of a run of ten seconds with many answers.
    fn without_connection(down_ms: u64, ended: Ended) -> Option<Failed> {
        let loaded = Loaded { replies: 1_000, wall_ns: 10_000_000_000, ..Loaded::default() };
        let errors = Errors { read: 10, connect: 450, ..Errors::default() };
        let first_error = Some("127.0.0.1:1 refuses connections".to_owned());
        let down_ns = down_ms * 1_000_000;
        let block =
            BlockReport { replies: 1_000, loaded, errors, down_ns, first_error, ..BlockReport::default() };
        failed(&LoadReport { block, limited: Limited::No, ended })
    }

    /// Planted fault: what was answered in a second is divided by ten, and all is well.
    #[test]
    fn a_run_whose_server_was_away_for_more_than_a_tenth_of_it_failed() {
        let died = without_connection(9_000, Ended::Whole).unwrap();
        assert!(died.what.starts_with("no connection was up for 9.0 s of 10.0 s"), "{}", died.what);
        assert_eq!(died.why.as_deref(), Some("127.0.0.1:1 refuses connections"));
        assert!(without_connection(1_001, Ended::Whole).is_some());
        assert!(without_connection(1_000, Ended::Whole).is_none(), "a start of its own takes a moment");
        assert!(without_connection(9_000, Ended::Stopped).is_none(), "who stops a run knows why it is short");
    }

    /// A run of ten seconds with many answers, and none at its end.
    fn silent(silent_ms: u64, ended: Ended) -> Option<Failed> {
        let loaded = Loaded { replies: 1_000, wall_ns: 10_000_000_000, ..Loaded::default() };
        let unfinished = vec![Unfinished { age_ns: 7_000_000_000, requests: 10 }];
        let silent_ns = silent_ms * 1_000_000;
        let block = BlockReport { replies: 1_000, loaded, unfinished, silent_ns, ..BlockReport::default() };
        failed(&LoadReport { block, limited: Limited::No, ended })
    }

    /// Planted fault: nothing failed and nobody was away, so all is well with a server that hangs.
    #[test]
    fn a_run_whose_server_answered_nothing_for_its_last_tenth_failed() {
        let hangs = silent(5_000, Ended::Whole).unwrap();
        assert!(
            hangs.what.starts_with("nothing was received for the last 5.0 s of 10.0 s"),
            "{}",
            hangs.what
        );
        assert_eq!(hangs.why.as_deref(), Some("10 were unfinished at the end, the oldest 7000 ms old"));
        assert!(silent(1_001, Ended::Whole).is_some());
        assert!(silent(1_000, Ended::Whole).is_none(), "answers that are slow near the end");
        assert!(silent(5_000, Ended::Stopped).is_none(), "who stops a run knows why it is short");
    }

    /// Planted fault: there was no error, and nothing says why nothing was measured.
    #[test]
    fn a_run_of_unfinished_requests_alone_says_how_old_they_are() {
        let unfinished = vec![Unfinished { age_ns: 3_000_000_000, requests: 10 }];
        let block = BlockReport { unfinished, ..BlockReport::default() };
        let told = failed(&LoadReport { block, limited: Limited::No, ended: Ended::Whole }).unwrap();
        assert_eq!(told.what, "no request was answered rightly");
        assert_eq!(told.why.as_deref(), Some("10 were unfinished at the end, the oldest 3000 ms old"));
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
