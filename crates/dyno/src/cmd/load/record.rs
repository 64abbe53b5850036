//! A run as its record (`dyno_record::load`), with what is printed or written of it for programs.

use dyno_host::machine::machine;
use dyno_lab::measure::cost::ServerCost;
use dyno_load::BlockReport;
use dyno_load::limit::Limited;
use dyno_load::run::Ended;
use dyno_record::load::{AtLeast, Cpu, Errors, Generator, LOAD_SCHEMA, Latency, LoadRun, Server};

use super::outcome::Outcome;
use crate::this_run;

/// The record.
pub(super) fn record(outcome: &Outcome<'_>) -> LoadRun {
    let (args, block) = (outcome.args, &outcome.report.block);
    let duration_s = block.loaded.wall_ns as f64 / 1e9;
    LoadRun {
        schema: LOAD_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: dyno_sys::clock::real_coarse_s().saturating_sub(duration_s as u64),
        command: this_run::command_line(),
        machine: machine(),
        request: format!("{} {}", args.method, args.url),
        request_digest: outcome.digests[0].clone(),
        answer_digest: outcome.digests[1].clone(),
        connections: args.connections.get(),
        threads: outcome.threads,
        pipeline: args.pipeline.get(),
        requests: block.loaded.replies,
        requests_per_second: outcome.report.replies_per_s(),
        // Samples are the mean over all threads.
        rates: outcome.rates.iter().map(|rate| rate * outcome.threads as f64).collect(),
        duration_s,
        bytes_read: block.loaded.bytes,
        errors: errors(&block.errors),
        unanswered: block.unanswered,
        timed_out: block.timed_out,
        unfinished: block.unfinished(),
        answered_late: block.replies.saturating_sub(block.loaded.replies),
        down_s: block.down_ns as f64 / 1e9,
        silent_at_end_s: block.silent_ns as f64 / 1e9,
        latency_us: latency(block),
        at_least_us: at_least(block),
        generator: generator(outcome),
        server: outcome.server.as_ref().map(server),
        interrupted: outcome.report.ended == Ended::Stopped,
    }
}

/// The generator's kinds as the record's: the two know nothing of each other, and here a kind that one of them alone has
/// does not compile.
fn errors(of_load: &dyno_load::Errors) -> Errors {
    let dyno_load::Errors { connect, read, write, timeout, status, protocol, mismatch } = *of_load;
    Errors { connect, read, write, timeout, status, protocol, mismatch }
}

fn generator(outcome: &Outcome<'_>) -> Generator {
    let block = &outcome.report.block;
    Generator {
        cpu_us_per_request: (block.replies > 0).then(|| block.cpu_ns as f64 / 1e3 / block.replies as f64),
        busy_fraction: outcome.signs.busy(),
        events_per_wait: outcome.signs.events_per_wait(),
        limited: matches!(outcome.limited, Limited::Yes | Limited::Both),
        limit_reason: outcome.limited.in_words().to_owned(),
    }
}

fn latency(block: &BlockReport) -> Latency {
    let (latencies, us) = (&block.latencies, |ns: f64| ns / 1e3);
    let at = |q| block.latency_at(q).known().map(|ns| us(ns as f64));
    Latency {
        min: us(latencies.min() as f64),
        mean: us(latencies.mean()),
        stdev: us(latencies.stdev()),
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
        max: us(latencies.max() as f64),
    }
}

/// Where requests were unfinished alone.
fn at_least(block: &BlockReport) -> Option<AtLeast> {
    let at = |q| block.latency_at(q).at_least().map(|ns| ns as f64 / 1e3);
    let bounds = AtLeast {
        p50: at(0.5),
        p75: at(0.75),
        p90: at(0.9),
        p99: at(0.99),
        p99_9: at(0.999),
        p99_99: at(0.9999),
    };
    (bounds != AtLeast::default()).then_some(bounds)
}

fn server(cost: &ServerCost) -> Server {
    let part = |share: Option<f64>| Some(cost.total_us? * share?);
    Server {
        cpu_us_per_request: Cpu {
            user: part(cost.user_share),
            system: part(cost.user_share.map(|share| 1.0 - share)),
            total: cost.total_us,
        },
        warning: cost.warning.clone(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::text::tests::Sample;
    use super::*;

    fn keys(value: &serde_json::Value) -> Vec<&str> {
        value.as_object().unwrap().keys().map(String::as_str).collect()
    }

    #[test]
    fn the_object_has_the_published_fields() {
        let sample = Sample::new();
        let value: serde_json::Value = serde_json::to_value(record(&sample.outcome())).unwrap();
        let mut top = keys(&value);
        top.sort_unstable();
        let wanted = "answer_digest bytes_read command connections duration_s errors generator interrupted latency_us machine pipeline rates request \
                      request_digest requests requests_per_second schema server started_unix_s threads version";
        assert_eq!(top.join(" "), wanted);
        assert_eq!(keys(&value["errors"]).len(), 7);
        assert_eq!(keys(&value["latency_us"]).len(), 10);
        assert_eq!(keys(&value["generator"]).len(), 5);
        assert_eq!(value["generator"]["limited"], true);
        assert_eq!(value["server"]["cpu_us_per_request"]["total"], 8.0);
        assert_eq!(value["server"]["cpu_us_per_request"]["user"], 2.0);
    }

    /// Planted fault: a kind of the generator's that the record counts under another name, or not at all.
    #[test]
    fn each_kind_of_error_is_recorded_under_the_name_that_the_generator_has_for_it() {
        let of_load = dyno_load::Errors {
            connect: 1,
            read: 2,
            write: 3,
            timeout: 4,
            status: 5,
            protocol: 6,
            mismatch: 7,
        };
        let recorded = errors(&of_load);
        assert_eq!(recorded.total(), of_load.total());
        let debug = format!("{of_load:?}");
        for (name, count) in recorded.by_name() {
            assert!(debug.contains(&format!("{name}: {count}")), "{name} is {count} of {debug}");
        }
    }

    /// Planted faults: unfinished requests are lost with the run, or count as failed; and a percentile that they may move is told.
    #[test]
    fn what_was_unfinished_or_came_late_and_time_without_a_connection_are_recorded() {
        let mut sample = Sample::new();
        let block = &mut sample.report.block;
        block.unfinished = vec![dyno_load::Unfinished { age_ns: 2_000_000_000, requests: 3 }];
        block.loaded.replies -= 7;
        (block.down_ns, block.silent_ns) = (500_000_000, 250_000_000);
        let run = record(&sample.outcome());
        assert_eq!((run.unfinished, run.answered_late), (3, 7));
        assert_eq!((run.down_s, run.silent_at_end_s), (0.5, 0.25));
        assert_eq!((run.failed(), run.timed_out()), (0, 0));
        let is_near = |us: Option<f64>, wanted: f64| us.is_some_and(|us| (us / wanted - 1.0).abs() < 0.001);
        let (told, bounds) = (run.latency_us, run.at_least_us.unwrap());
        assert!(is_near(told.p90, 900.0) && told.p99.is_none(), "{told:?}");
        assert!(bounds.p90.is_none() && is_near(bounds.p99, 2e6), "{bounds:?}");
    }

    #[test]
    fn what_is_not_known_is_null_and_no_server_is_no_field() {
        let mut sample = Sample::new();
        sample.report.block.replies = 0;
        let outcome = Outcome { server: None, ..sample.outcome() };
        let value: serde_json::Value = serde_json::to_value(record(&outcome)).unwrap();
        assert!(value["generator"]["cpu_us_per_request"].is_null());
        assert!(value.get("server").is_none());
    }
}
