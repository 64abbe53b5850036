//! The published record of a load: how fast a server answered, how many answers were wrong, and whether the generator was
//! the limit.
//!
//! `dyno load --json` writes it; its field names are an interface (docs/records.md).

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Name and number of this record's shape.
pub const LOAD_SCHEMA: &str = "dyno.load/1";

/// One run of the generator.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadRun {
    /// [`LOAD_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// The command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// Method and URL.
    pub request: String,
    /// Names the request's bytes, without the host that they are for ([`crate::digest`]); empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_digest: String,
    /// Names what a right answer is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer_digest: String,
    /// Connections, all open at once.
    pub connections: usize,
    /// Threads of the generator.
    pub threads: usize,
    /// Requests on the wire per connection.
    pub pipeline: usize,
    /// Right answers.
    pub requests: u64,
    /// Right answers per second.
    pub requests_per_second: f64,
    /// The same of each second of the run, in order.
    pub rates: Vec<f64>,
    /// How long it ran.
    pub duration_s: f64,
    /// Bytes of the right answers.
    pub bytes_read: u64,
    /// What went wrong, by kind.
    pub errors: Errors,
    /// Requests that were sent and never answered, on the connections that were lost: some carry several. Older records
    /// do not say it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unanswered: u64,
    /// Those of them that timed out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub timed_out: u64,
    /// Requests that were younger than the timeout when the wait for their answers ended: neither answered nor failed.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unfinished: u64,
    /// Right answers that came when nothing was sent any more: they are in the latencies, and in no count and rate.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub answered_late: u64,
    /// Seconds of the run in which no connection was up and none could be made.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub down_s: f64,
    /// Seconds at the end of the run in which nothing was received, where nothing came afterwards either.
    #[serde(default, skip_serializing_if = "is_no_time")]
    pub silent_at_end_s: f64,
    /// Latency of the right answers, µs; in its percentiles what timed out is slower than any of them.
    pub latency_us: Latency,
    /// What percentiles are no less than that depend on unfinished requests, µs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_us: Option<AtLeast>,
    /// The generator itself.
    pub generator: Generator,
    /// The server, where its process was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Server>,
    /// Whether Ctrl-C ended it.
    pub interrupted: bool,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_no_time(seconds: &f64) -> bool {
    *seconds <= 0.0
}

impl LoadRun {
    /// Requests that timed out, at least.
    #[must_use]
    pub fn timed_out(&self) -> u64 {
        self.timed_out.max(self.errors.timeout)
    }

    /// Requests that had no answer, or a wrong one, at least.
    #[must_use]
    pub fn failed(&self) -> u64 {
        let Errors { connect: _, read, write, timeout, status, protocol, mismatch } = self.errors;
        let lost = [read, write, timeout].into_iter().fold(0, u64::saturating_add);
        [status, protocol, mismatch].into_iter().fold(self.unanswered.max(lost), u64::saturating_add)
    }
}

/// Errors by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Errors {
    /// Connections that could not be made.
    pub connect: u64,
    /// Connections that ended while answers were owed.
    pub read: u64,
    /// Connections that took no request.
    pub write: u64,
    /// Connections that were given up because a request was not answered in time.
    pub timeout: u64,
    /// Answers with a wrong status.
    pub status: u64,
    /// Answers that are no HTTP/1.1.
    pub protocol: u64,
    /// Answers with a wrong body.
    pub mismatch: u64,
}

impl Errors {
    /// Each kind by its name.
    #[must_use]
    pub fn by_name(&self) -> [(&'static str, u64); 7] {
        let Errors { connect, read, write, timeout, status, protocol, mismatch } = *self;
        [
            ("connect", connect),
            ("read", read),
            ("write", write),
            ("timeout", timeout),
            ("status", status),
            ("protocol", protocol),
            ("mismatch", mismatch),
        ]
    }

    /// All of them.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.by_name().iter().fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }
}

/// A distribution of latencies, µs. A percentile is none where what timed out reaches it, or where it depends on requests that
/// were unfinished.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The shortest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// Standard deviation.
    pub stdev: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 75 %.
    pub p75: Option<f64>,
    /// 90 %.
    pub p90: Option<f64>,
    /// 99 %.
    pub p99: Option<f64>,
    /// 99.9 %.
    pub p99_9: Option<f64>,
    /// 99.99 %.
    pub p99_99: Option<f64>,
    /// The longest.
    pub max: f64,
}

/// Bounds of percentiles, µs: each is what it would be had unfinished requests been answered at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct AtLeast {
    /// Median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<f64>,
    /// 75 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p75: Option<f64>,
    /// 90 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<f64>,
    /// 99 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<f64>,
    /// 99.9 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_9: Option<f64>,
    /// 99.99 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_99: Option<f64>,
}

/// The generator's own work.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Generator {
    /// Its CPU per request, µs; none without a request.
    pub cpu_us_per_request: Option<f64>,
    /// How busy its threads were, 0 to 1.
    pub busy_fraction: f64,
    /// Sockets ready per wait.
    pub events_per_wait: f64,
    /// Whether it was the limit, not the server.
    pub limited: bool,
    /// Why, in words.
    pub limit_reason: String,
}

/// The server's CPU.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Server {
    /// By part; none is not known.
    pub cpu_us_per_request: Cpu,
    /// What is to be known of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// CPU per request, µs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// The program's own.
    pub user: Option<f64>,
    /// The kernel's.
    pub system: Option<f64>,
    /// Both.
    pub total: Option<f64>,
}
