//! The sheet of a load: rate, latencies, errors, and the server's CPU where it was asked for.

use dyno_measure::apart::around;
use dyno_measure::dependence::series_level;
use dyno_measure::judge::PAIRS_MIN;

use crate::figure::{Better, Condition, Decides, Figure, Forbids, Sheet, Starts, Unit, of_machine};
use crate::load::{Errors, LoadRun};
use crate::sheet::{REQUEST_BYTES, RIGHT_ANSWER};

/// Rates that are all alike have no spread to read an interval from: what is smaller is rounding.
const HALF_MIN: f64 = 1e-9;
/// Chance that the rate's interval misses it.
const ALPHA: f64 = 0.01;

/// All that a load comes to.
#[must_use]
pub fn of_load(run: &LoadRun) -> Sheet {
    Sheet {
        kind: "load",
        schema: run.schema.clone(),
        version: run.version.clone(),
        started_unix_s: run.started_unix_s,
        duration_s: run.duration_s,
        cut_short: run.interrupted.then(|| "interrupted".to_owned()),
        conditions: conditions(run),
        texts: Vec::new(),
        figures: rates(run).into_iter().chain(latencies(run)).chain(errors(run)).chain(cpu(run)).collect(),
        starts: Starts::One,
        warnings: warnings(run),
    }
}

fn conditions(run: &LoadRun) -> Vec<Condition> {
    let own = [
        Condition::new("request", path(&run.request), Forbids::All),
        Condition::new(REQUEST_BYTES, run.request_digest.clone(), Forbids::All),
        Condition::new(RIGHT_ANSWER, run.answer_digest.clone(), Forbids::All),
        Condition::new("address", address(&run.request), Forbids::Nothing),
        Condition::new("connections", run.connections.to_string(), Forbids::All),
        Condition::new("pipeline", run.pipeline.to_string(), Forbids::All),
        Condition::new("threads", run.threads.to_string(), Forbids::Cause),
        Condition::new("version", run.version.clone(), Forbids::Nothing),
    ];
    // A load says nothing of which CPUs servers have, and an older one nothing of its bytes.
    of_machine(&run.machine).into_iter().chain(own).filter(|one| !one.value.is_empty()).collect()
}

/// Method and path: a server has another port each time.
fn path(request: &str) -> String {
    let (method, url) = request.split_once(' ').unwrap_or(("", request));
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = rest.find('/').map_or("/", |at| &rest[at..]);
    format!("{method} {path}")
}

/// Where the server was: another port is mostly another start of it, and may be another server.
fn address(request: &str) -> String {
    let url = request.split_once("://").map_or("", |(_, rest)| rest);
    url.split('/').next().unwrap_or_default().to_owned()
}

fn rates(run: &LoadRun) -> Vec<Figure> {
    let half = series_level(&run.rates, ALPHA).map(|level| level.half_width).filter(|half| *half > HALF_MIN);
    let rate = run.requests_per_second;
    let rps = Figure::new("rps", "right answers per second", (Unit::PerSecond, Better::Higher), Some(rate));
    let silent = run.rates.iter().filter(|rate| **rate <= 0.0).count();
    let basis = match (half, run.rates.len()) {
        (Some(_), _) => "",
        (None, _) if silent > 0 => "in some seconds nothing was answered: no interval",
        (None, ..PAIRS_MIN) => "too few seconds for an interval",
        (None, _) => "its seconds change too slowly for an interval: load for longer",
    };
    let requests = (Unit::Count, Better::Neither);
    vec![
        rps.within(half.map(|half| around(rate, half))).basis(basis).deciding(),
        Figure::new("requests", "right answers", requests, Some(run.requests as f64)),
        Figure::new(
            "silent",
            "seconds without a right answer",
            (Unit::Count, Better::Lower),
            Some(silent as f64),
        )
        .guarding(Decides::StrictGuard, run.rates.len() as u64),
    ]
}

fn latencies(run: &LoadRun) -> Vec<Figure> {
    let (l, least) = (&run.latency_us, run.at_least_us.unwrap_or_default());
    // Each with the share of requests that it does not exceed. Of a mean, all of them have to be known.
    let all = [
        ("p50", "median latency", l.p50, least.p50, 0.5),
        ("p75", "75 % latency", l.p75, least.p75, 0.75),
        ("p90", "90 % latency", l.p90, least.p90, 0.9),
        ("p99", "99 % latency", l.p99, least.p99, 0.99),
        ("p99_9", "99.9 % latency", l.p99_9, least.p99_9, 0.999),
        ("p99_99", "99.99 % latency", l.p99_99, least.p99_99, 0.9999),
        ("max", "longest latency", Some(l.max), None, 1.0),
        ("mean", "mean latency", Some(l.mean), None, 1.0),
    ];
    let answered = run.requests.saturating_add(run.answered_late) as f64;
    let without = run.timed_out().saturating_add(run.unfinished) as f64;
    // Of no answer there is no latency, and of what timed out or was unfinished none but "longer".
    let is_known = |share: f64| answered > 0.0 && answered >= share * (answered + without);
    let figure = |(name, what, value, least, share): (&str, &str, Option<f64>, Option<f64>, f64)| {
        let value = value.filter(|_| is_known(share));
        let basis = if value.is_some() { String::new() } else { unknown(run, least) };
        Figure::new(name, what, (Unit::Us, Better::Lower), value).basis(basis)
    };
    all.map(figure).into()
}

/// Why a latency has no value, and what it is no less than.
fn unknown(run: &LoadRun, least_us: Option<f64>) -> String {
    let late = match run.timed_out() {
        0 => None,
        1 => Some("1 request timed out".to_owned()),
        late => Some(format!("{late} requests timed out")),
    };
    let unfinished = match run.unfinished {
        0 => None,
        1 => Some("1 request was unfinished".to_owned()),
        unfinished => Some(format!("{unfinished} requests were unfinished")),
    };
    let why: Vec<String> = late.into_iter().chain(unfinished).collect();
    let least = least_us.map_or_else(String::new, |us| format!("at least {:.1} ms: ", us / 1e3));
    least + &why.join(", ")
}

fn errors(run: &LoadRun) -> Vec<Figure> {
    let figure = |name: String, what: String, count: u64| {
        Figure::new(name, what, (Unit::Count, Better::Lower), Some(count as f64))
    };
    let errors = run.errors.total();
    let all = figure("errors".into(), "errors of every kind".into(), errors);
    let all = all.guarding(Decides::Guard, run.requests.saturating_add(errors));
    let kinds = run
        .errors
        .by_name()
        .map(|(kind, count)| figure(format!("errors.{kind}"), format!("{kind} errors"), count));
    std::iter::once(all).chain(kinds).collect()
}

fn cpu(run: &LoadRun) -> Option<Figure> {
    let total = run.server.as_ref()?.cpu_us_per_request.total;
    Some(Figure::new("cpu", "server CPU per request", (Unit::Us, Better::Lower), total))
}

fn warnings(run: &LoadRun) -> Vec<String> {
    let limited =
        run.generator.limited.then(|| format!("the generator was the limit: {}", run.generator.limit_reason));
    let failed = run.failed();
    let wrong = (failed > 0).then(|| {
        format!("{failed} of {} requests were not answered rightly", run.requests.saturating_add(failed))
    });
    let Errors { connect, read, write, timeout, .. } = run.errors;
    let lost = [connect, read, write, timeout].into_iter().fold(0, u64::saturating_add);
    let lost = (lost > 0).then(|| format!("{lost} connections were lost or refused"));
    let late = run.timed_out();
    let late = (late > 0).then(|| {
        format!(
            "{late} requests timed out: latencies that they reach, as the longest and the mean, have no value"
        )
    });
    let unfinished = (run.unfinished > 0).then(|| {
        format!(
            "{} requests were unfinished at the end, and younger than the timeout: latencies that depend on them, as the longest and the mean, have no value",
            run.unfinished
        )
    });
    let down = (run.down_s > 0.0).then(|| {
        format!(
            "no connection was up for {:.1} s of {:.1} s: the rate is of that time too",
            run.down_s, run.duration_s
        )
    });
    // A server that is gone is silent too.
    let silent = (run.silent_at_end_s > run.down_s).then(|| {
        format!(
            "nothing was received for the last {:.1} s of {:.1} s: the rate is of that time too",
            run.silent_at_end_s, run.duration_s
        )
    });
    let server = run.server.as_ref().and_then(|server| server.warning.clone());
    let of_requests = wrong.into_iter().chain(lost).chain(late).chain(unfinished);
    limited.into_iter().chain(down).chain(silent).chain(of_requests).chain(server).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::{Difference, Named, Verdict};
    use crate::load::{AtLeast, Latency};

    fn verdict(a: &LoadRun, b: &LoadRun) -> (Verdict, String) {
        let (a, b) = (of_load(a), of_load(b));
        let sides = (Named { file: "a", sheet: &a }, Named { file: "b", sheet: &b });
        let told = Difference::of(sides.0, sides.1, "0").expect("two loads");
        (told.verdict, told.why)
    }

    /// A server that refuses a part of what it is asked, so that its right answers come at A's rate.
    fn erring(status: u64, requests: u64) -> LoadRun {
        let rates = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];
        let errors = Errors { status, ..Errors::default() };
        LoadRun { requests_per_second: 100.0, requests, rates, errors, ..LoadRun::default() }
    }

    /// Planted faults: B's errors count only where A has none at all; and any of them does then.
    #[test]
    fn a_surely_larger_share_of_errors_is_worse_and_a_single_one_is_not() {
        let few = erring(1, 1_000_000);
        let (told, why) = verdict(&few, &erring(400_000, 600_000));
        assert_eq!(told, Verdict::Worse);
        assert_eq!(why, "by errors: 1 of 1000001 in A, 400000 of 1000000 in B");
        assert_eq!(verdict(&erring(0, 10_000_000), &erring(1, 10_000_000)).0, Verdict::NoDifference);
        assert_eq!(verdict(&erring(40, 1_000_000), &erring(44, 1_000_000)).0, Verdict::NoDifference);
        assert_eq!(verdict(&erring(40, 1_000_000), &erring(80, 1_000_000)).0, Verdict::Worse);
        assert_eq!(verdict(&erring(80, 1_000_000), &erring(80, 2_000_000)).0, Verdict::NoDifference);
        let mut silent = [erring(0, 700), erring(0, 700)];
        silent[0].rates[6] = 0.0;
        silent[1].rates = vec![0.0; 7];
        let (told, why) = verdict(&silent[0], &silent[1]);
        assert_eq!((told, why.as_str()), (Verdict::Worse, "by silent: 1 of 7 in A, 7 of 7 in B"));
    }

    /// Planted fault: a figure without an interval is never judged, and a dead server is as good as any.
    #[test]
    fn a_server_that_dies_or_errs_is_worse_whatever_its_seconds_say() {
        let rates = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];
        let sound = LoadRun { requests_per_second: 100.0, requests: 700, rates, ..LoadRun::default() };
        let dead =
            LoadRun { requests_per_second: 0.0, requests: 0, rates: vec![0.0; 7], ..LoadRun::default() };
        let half = LoadRun { rates: vec![100.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], ..sound.clone() };
        let errors = LoadRun { errors: Errors { status: 30, ..Errors::default() }, ..sound.clone() };
        for worse in [&dead, &half, &errors] {
            let (verdict, why) = verdict(&sound, worse);
            assert_eq!(verdict, Verdict::Worse, "{why}");
        }
        assert_eq!(verdict(&sound, &sound).0, Verdict::NoDifference);
        assert_ne!(verdict(&errors, &sound).0, Verdict::Worse, "errors of A's are no fault of B's");
    }

    /// Planted fault: a URL is all that is asked for, and a body of a megabyte is as good as none.
    #[test]
    fn another_body_or_another_right_answer_is_other_work() {
        let with = |request: &str, answer: &str| LoadRun {
            request_digest: request.into(),
            answer_digest: answer.into(),
            ..erring(0, 700)
        };
        let told = |a, b| verdict(&a, &b);
        let (body, why) = told(with("aa", "cc"), with("bb", "cc"));
        assert_eq!((body, why.as_str()), (Verdict::NotJudged, "not the same work: request bytes differ"));
        let (answer, why) = told(with("aa", "cc"), with("aa", "dd"));
        assert_eq!((answer, why.as_str()), (Verdict::NotJudged, "not the same work: right answer differ"));
        for (a, b) in [(("aa", "cc"), ("aa", "cc")), (("", ""), ("aa", "cc")), (("aa", "cc"), ("", ""))] {
            let (same, why) = told(with(a.0, a.1), with(b.0, b.1));
            assert_eq!(same, Verdict::NoDifference, "an older record says nothing of it: {why}");
        }
    }

    #[test]
    fn a_request_is_compared_without_its_host_and_port() {
        assert_eq!(path("GET http://127.0.0.1:4711/json?a=b"), "GET /json?a=b");
        assert_eq!(path("GET http://[::1]:80"), "GET /");
        assert_eq!(path(""), " /");
        assert_eq!(address("GET http://127.0.0.1:4711/json?a=b"), "127.0.0.1:4711");
    }

    #[test]
    fn a_rate_has_an_interval_from_its_seconds_and_none_from_too_few() {
        let rates = vec![100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8];
        let run = LoadRun { requests_per_second: 100.0, requests: 700, rates, ..LoadRun::default() };
        let rps = |run: &LoadRun| of_load(run).figure("rps").and_then(|figure| figure.interval);
        let interval = rps(&run);
        assert!(
            interval.is_some_and(|[low, high]| 95.0 < low && low < 100.0 && 100.0 < high && high < 105.0),
            "{interval:?}"
        );
        assert_eq!(rps(&LoadRun { rates: vec![100.0; 4], ..run.clone() }), None);
        assert_eq!(
            rps(&LoadRun { rates: vec![100.0; 9], ..run }),
            None,
            "numbers without spread say nothing"
        );
    }

    /// Planted fault: of what timed out there is no latency, so that the percentiles are those of the fast ones.
    #[test]
    fn a_percentile_that_requests_which_timed_out_reach_has_no_value() {
        let latency_us = Latency { p90: Some(2e3), p99: Some(4e3), p99_9: Some(5e3), ..Latency::default() };
        let run = LoadRun { requests: 980, timed_out: 20, latency_us, ..LoadRun::default() };
        let sheet = of_load(&run);
        let value = |name: &str| sheet.figure(name).map(|figure| (figure.value, figure.basis.as_str()));
        assert_eq!(value("p90"), Some((Some(2e3), "")));
        for name in ["p99", "p99_9", "max", "mean"] {
            assert_eq!(value(name), Some((None, "20 requests timed out")), "{name}");
        }
        let errors = Errors { timeout: 20, ..Errors::default() };
        let older = LoadRun { timed_out: 0, errors, ..run.clone() };
        assert_eq!(latencies(&older), latencies(&run), "older records count connections");
    }

    /// Planted faults: what was unfinished counts as timed out; percentiles that it cannot move have no value; and a run whose
    /// answers all came at its end has no latency.
    #[test]
    fn a_latency_that_unfinished_requests_may_move_has_a_bound_and_the_others_their_values() {
        let latency_us = Latency { p50: Some(2e3), p90: Some(9e3), ..Latency::default() };
        let at_least_us = Some(AtLeast { p99: Some(9.5e3), p99_9: Some(2e6), ..AtLeast::default() });
        let run = LoadRun {
            requests: 900,
            answered_late: 80,
            unfinished: 20,
            latency_us,
            at_least_us,
            ..LoadRun::default()
        };
        let sheet = of_load(&run);
        let value =
            |sheet: &Sheet, name: &str| sheet.figure(name).map(|figure| (figure.value, figure.basis.clone()));
        let told = |value: Option<f64>, basis: &str| Some((value, basis.to_owned()));
        assert_eq!(value(&sheet, "p50"), told(Some(2e3), ""));
        assert_eq!(value(&sheet, "p90"), told(Some(9e3), ""));
        assert_eq!(value(&sheet, "p99"), told(None, "at least 9.5 ms: 20 requests were unfinished"));
        assert_eq!(value(&sheet, "max"), told(None, "20 requests were unfinished"));
        assert_eq!(value(&sheet, "errors"), told(Some(0.0), ""));
        assert_eq!(run.failed(), 0);
        assert!(
            sheet.warnings.iter().any(|one| one.starts_with("20 requests were unfinished")),
            "{:?}",
            sheet.warnings
        );
        let late = LoadRun { requests: 0, answered_late: 5, latency_us, ..LoadRun::default() };
        assert_eq!(value(&of_load(&late), "p90"), told(Some(9e3), ""));
    }

    /// Planted fault: a rate of a tenth is all that a reader is told of a server that died.
    #[test]
    fn time_without_a_connection_is_a_warning() {
        let run = LoadRun { duration_s: 10.0, down_s: 9.0, requests: 5, ..LoadRun::default() };
        assert_eq!(
            warnings(&run),
            ["no connection was up for 9.0 s of 10.0 s: the rate is of that time too"]
        );
        assert_eq!(warnings(&LoadRun { down_s: 0.0, ..run }), Vec::<String>::new());
    }

    /// Planted faults: a server that hangs is not told, or one that is gone is told twice.
    #[test]
    fn time_without_anything_received_is_a_warning_where_connections_were_up() {
        let run = LoadRun { duration_s: 10.0, silent_at_end_s: 5.0, requests: 5, ..LoadRun::default() };
        assert_eq!(
            warnings(&run),
            ["nothing was received for the last 5.0 s of 10.0 s: the rate is of that time too"]
        );
        let gone = warnings(&LoadRun { down_s: 5.0, ..run });
        assert!(gone.len() == 1 && gone[0].starts_with("no connection was up"), "{gone:?}");
    }

    /// Planted fault: each attempt to connect is told as a request.
    #[test]
    fn connections_are_not_told_as_requests() {
        let errors = Errors { connect: 25_000, read: 3, status: 1, ..Errors::default() };
        let run = LoadRun { requests: 1_000, errors, unanswered: 24, ..LoadRun::default() };
        assert_eq!(
            warnings(&run),
            ["25 of 1025 requests were not answered rightly", "25003 connections were lost or refused"]
        );
    }
}
