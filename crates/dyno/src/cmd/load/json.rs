//! A run as one JSON object; its field names are an interface (docs/records.md).

use dyno_load::limit::Limited;
use serde::Serialize;

use super::outcome::Outcome;
use dyno_lab::Failure;
use dyno_lab::measure::cost::ServerCost;

#[derive(Serialize)]
struct Run {
    requests: u64,
    requests_per_second: f64,
    duration_s: f64,
    bytes_read: u64,
    errors: Errors,
    latency_us: Latency,
    generator: Generator,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<Server>,
}

#[derive(Serialize)]
struct Errors {
    connect: u64,
    read: u64,
    write: u64,
    timeout: u64,
    status: u64,
    protocol: u64,
    mismatch: u64,
}

#[derive(Serialize)]
struct Latency {
    min: f64,
    mean: f64,
    stdev: f64,
    p50: f64,
    p75: f64,
    p90: f64,
    p99: f64,
    p99_9: f64,
    p99_99: f64,
    max: f64,
}

#[derive(Serialize)]
struct Generator {
    cpu_us_per_request: Option<f64>,
    busy_fraction: f64,
    events_per_wait: f64,
    limited: bool,
    limit_reason: &'static str,
}

#[derive(Serialize)]
struct Server {
    cpu_us_per_request: Cpu,
    #[serde(skip_serializing_if = "Option::is_none")]
    warning: Option<String>,
}

/// `None` is null: not known.
#[derive(Serialize)]
struct Cpu {
    user: Option<f64>,
    system: Option<f64>,
    total: Option<f64>,
}

/// The object with a line's end.
pub(super) fn object(outcome: &Outcome<'_>) -> Result<String, Failure> {
    let text = serde_json::to_string(&run(outcome));
    let text =
        text.map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))?;
    Ok(text + "\n")
}

fn run(outcome: &Outcome<'_>) -> Run {
    let block = &outcome.report.block;
    let errors = &block.errors;
    Run {
        requests: block.loaded.replies,
        requests_per_second: outcome.report.replies_per_s(),
        duration_s: block.loaded.wall_ns as f64 / 1e9,
        bytes_read: block.loaded.bytes,
        errors: Errors {
            connect: errors.connect,
            read: errors.read,
            write: errors.write,
            timeout: errors.timeout,
            status: errors.status,
            protocol: errors.protocol,
            mismatch: errors.mismatch,
        },
        latency_us: latency(&block.latencies),
        generator: Generator {
            cpu_us_per_request: (block.replies > 0).then(|| block.cpu_ns as f64 / 1e3 / block.replies as f64),
            busy_fraction: outcome.signs.busy(),
            events_per_wait: outcome.signs.events_per_wait(),
            limited: matches!(outcome.limited, Limited::Yes | Limited::Both),
            limit_reason: outcome.limited.in_words(),
        },
        server: outcome.server.as_ref().map(server),
    }
}

fn latency(latencies: &dyno_measure::Histogram) -> Latency {
    let us = |ns: f64| ns / 1e3;
    let at = |q| us(latencies.quantile(q) as f64);
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
        let value: serde_json::Value = serde_json::from_str(&object(&sample.outcome()).unwrap()).unwrap();
        let mut top = keys(&value);
        top.sort_unstable();
        let wanted = "bytes_read duration_s errors generator latency_us requests requests_per_second server";
        assert_eq!(top.join(" "), wanted);
        assert_eq!(keys(&value["errors"]).len(), 7);
        assert_eq!(keys(&value["latency_us"]).len(), 10);
        assert_eq!(keys(&value["generator"]).len(), 5);
        assert_eq!(value["generator"]["limited"], true);
        assert_eq!(value["server"]["cpu_us_per_request"]["total"], 8.0);
        assert_eq!(value["server"]["cpu_us_per_request"]["user"], 2.0);
    }

    #[test]
    fn what_is_not_known_is_null_and_no_server_is_no_field() {
        let mut sample = Sample::new();
        sample.report.block.replies = 0;
        let outcome = Outcome { server: None, ..sample.outcome() };
        let value: serde_json::Value = serde_json::from_str(&object(&outcome).unwrap()).unwrap();
        assert!(value["generator"]["cpu_us_per_request"].is_null());
        assert!(value.get("server").is_none());
    }
}
