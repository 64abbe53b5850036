//! A run as wrk prints it, blank for blank, and a few lines more where there is more to say.
//!
//! Scripts that read wrk's output read this one. Columns and units follow wrk's stats printing and units.c: a unit is
//! left for the next one from 85 % of it on, times have two decimals, and a column ends where the letters of its unit end.

use std::time::Duration;

use dyno_load::limit::Limited;
use dyno_load::run::LoadReport;
use dyno_load::{BlockReport, HeldBack, Percentile, Progress};
use dyno_measure::Histogram;
use dyno_measure::stats::{deviation, mean};

use super::outcome::{Outcome, failed, wrong};
use dyno_lab::measure::cost::ServerCost;

/// Takes a progress line off the terminal.
pub(super) const CLEAR: &str = "\r\x1b[K";

/// What stands above the figures, printed before the run.
pub(super) fn head(args: &crate::cli::Load, threads: usize) -> String {
    let (connections, url) = (args.connections, dyno_report::number::visible(&args.url));
    let over = args.unix_socket.as_ref().map_or_else(String::new, |path| {
        format!(" over {}", dyno_report::number::visible(&path.display().to_string()))
    });
    format!(
        "Running {} test @ {url}{over}\n  {threads} threads and {connections} connections\n",
        length(args.duration)
    )
}

/// How far it is, on one line that the next one overwrites.
pub(super) fn progress(progress: &Progress) -> String {
    let seconds = progress.elapsed_ns / 1_000_000_000;
    let errors = if progress.errors > 0 { format!("  {} errors", progress.errors) } else { String::new() };
    format!("{CLEAR}{seconds} s  {} requests{errors}", progress.replies)
}

/// The figures.
pub(super) fn body(outcome: &Outcome<'_>) -> String {
    let (report, block) = (outcome.report, &outcome.report.block);
    let mut out = format!("  Thread Stats{:>6}{:>11}{:>8}{:>12}\n", "Avg", "Stdev", "Max", "+/- Stdev");
    push_latency(&mut out, &block.latencies);
    push_rates(&mut out, &outcome.rates);
    if outcome.args.latency {
        push_distribution(&mut out, block);
    }
    let loaded = block.loaded;
    let (time, read) = (micros(loaded.wall_ns as f64 / 1e3), binary(loaded.bytes as f64));
    out.push_str(&format!("  {} requests in {time}, {read}B read\n", loaded.replies));
    push_errors(&mut out, outcome);
    push_held_back(&mut out, outcome);
    out.push_str(&format!("Requests/sec: {:>9.2}\n", report.replies_per_s()));
    out.push_str(&format!("Transfer/sec: {:>10}B\n", binary(report.bytes_per_s())));
    if let Some(cost) = &outcome.server {
        push_server(&mut out, cost);
    }
    push_limit(&mut out, outcome);
    out
}

fn push_latency(out: &mut String, latencies: &Histogram) {
    let us = |ns: f64| micros(ns / 1e3);
    let columns = [us(latencies.mean()), us(latencies.stdev()), us(latencies.max() as f64)];
    push_stats(out, "Latency", &columns, latencies.within_stdev());
}

fn push_rates(out: &mut String, rates: &[f64]) {
    let count = rates.len() as f64;
    // As wrk: over n - 1, and nothing for a single sample.
    let (mean, stdev) = if rates.is_empty() { (0.0, 0.0) } else { (mean(rates), deviation(rates)) };
    let max = rates.iter().copied().fold(0.0, f64::max);
    let within = rates.iter().filter(|rate| (*rate - mean).abs() <= stdev).count() as f64;
    let share = if rates.is_empty() { 0.0 } else { within / count };
    push_stats(out, "Req/Sec", &[metric(mean), metric(stdev), metric(max)], share);
}

fn push_stats(out: &mut String, name: &str, columns: &[String; 3], within: f64) {
    let [mean, stdev, max] = columns;
    let columns = [(mean, 8), (stdev, 10), (max, 9)].map(|(text, width)| column(text, width)).concat();
    out.push_str(&format!("    {name:<10}{columns}{:>8.2}%\n", 100.0 * within));
}

fn push_distribution(out: &mut String, block: &BlockReport) {
    out.push_str("  Latency Distribution\n");
    for percent in [50.0, 75.0, 90.0, 99.0] {
        let value = match block.latency_at(percent / 100.0) {
            Percentile::TimedOut => "timed out".to_owned(),
            Percentile::AtLeast(ns) => format!(">={}", micros(ns as f64 / 1e3)),
            Percentile::Is(ns) => micros(ns as f64 / 1e3),
            Percentile::None => micros(0.0),
        };
        out.push_str(&format!("{percent:>7.0}%{}\n", column(&value, 10)));
    }
}

fn push_errors(out: &mut String, outcome: &Outcome<'_>) {
    let (block, errors) = (&outcome.report.block, &outcome.report.block.errors);
    let (connect, read, write, timeout) = (errors.connect, errors.read, errors.write, errors.timeout);
    if connect + read + write + timeout > 0 {
        let line = format!("connect {connect}, read {read}, write {write}, timeout {timeout}");
        out.push_str(&format!("  Socket errors: {line}\n"));
    }
    if errors.status > 0 {
        let wanted = outcome.args.expect.iter().find_map(|word| word.strip_prefix("status="));
        match wanted {
            None => out.push_str(&format!("  Non-2xx or 3xx responses: {}\n", errors.status)),
            Some(status) => out.push_str(&format!("  Responses other than {status}: {}\n", errors.status)),
        }
    }
    if errors.protocol + errors.mismatch > 0 {
        let (protocol, body) = (errors.protocol, errors.mismatch);
        out.push_str(&format!("  Wrong answers: not HTTP/1.1 {protocol}, wrong body {body}\n"));
    }
    if block.timed_out > 0 {
        let timed_out = block.timed_out;
        out.push_str(&format!("  Timed out: {timed_out} requests; the Latency line is of the others\n"));
    }
    push_unfinished(out, block);
    // A connection of batches carries several.
    if block.unanswered > read + write + timeout {
        out.push_str(&format!(
            "  Unanswered: {} requests, on connections that were lost\n",
            block.unanswered
        ));
    }
    push_away(out, block);
    push_first(out, outcome.report);
}

/// What the end of sending cut off, one way or the other.
fn push_unfinished(out: &mut String, block: &BlockReport) {
    if let Some(oldest_ns) = block.oldest_unfinished_ns() {
        let (unfinished, oldest) = (block.unfinished(), micros(oldest_ns as f64 / 1e3));
        out.push_str(&format!(
            "  Unfinished: {unfinished} requests, {oldest} old at most: no errors; the Latency line is of the others\n"
        ));
    }
    // Some are always in flight at the end; they are told where the rate misses a good part of all.
    let late = block.replies.saturating_sub(block.loaded.replies);
    if late > 0 && late > block.loaded.replies / 10 {
        out.push_str(&format!("  Answered late: {late} requests, in Latency and not in Requests/sec\n"));
    }
}

/// What a closed loop does not see, where that is much.
fn push_held_back(out: &mut String, outcome: &Outcome<'_>) {
    let in_flight = outcome.args.connections.get().saturating_mul(outcome.args.pipeline.get()) as u64;
    if let Some(HeldBack { sent_ns, paced_ns }) = outcome.report.block.held_back(in_flight) {
        let [sent, paced] = [sent_ns, paced_ns].map(|ns| micros(ns as f64 / 1e3));
        out.push_str(&format!(
            "  Long waits held requests back: sent at an even pace, 99% would be about {paced}, not {sent}\n"
        ));
    }
}

/// A server that is gone is silent too: that is told once.
fn push_away(out: &mut String, block: &BlockReport) {
    let mut push = |what: &str, ns: u64| {
        let [away, all] = [ns, block.loaded.wall_ns].map(|ns| micros(ns as f64 / 1e3));
        out.push_str(&format!("  {what} {away} of {all}: Requests/sec is of that time too\n"));
    };
    if block.down_ns > 0 {
        push("No connection was up for", block.down_ns);
    }
    if block.silent_ns > block.down_ns {
        push("Nothing was received for the last", block.silent_ns);
    }
}

/// The first thing that went wrong, unless the error says it that this run ends with.
fn push_first(out: &mut String, report: &LoadReport) {
    let block = &report.block;
    let (label, first) = match (&block.first_wrong, &block.first_error) {
        (Some(first), _) => ("First wrong answer", wrong(first)),
        (None, Some(first)) => ("First error", first.clone()),
        (None, None) => return,
    };
    let told = failed(report).and_then(|failed| failed.why);
    if told.as_ref() != Some(&first) {
        out.push_str(&format!("  {label}: {first}\n"));
    }
}

fn push_server(out: &mut String, cost: &ServerCost) {
    if let Some(total) = cost.total_us {
        let split = cost.user_share.map_or_else(String::new, |share| {
            format!(" (user {:.2}, system {:.2}: sampled)", total * share, total * (1.0 - share))
        });
        out.push_str(&format!("Server CPU: {total:>11.2}us/request{split}\n"));
    }
    if let Some(warning) = &cost.warning {
        out.push_str(&format!("warning: {warning}\n"));
    }
}

fn push_limit(out: &mut String, outcome: &Outcome<'_>) {
    if outcome.limited == Limited::No {
        return;
    }
    let busy = 100.0 * outcome.signs.busy();
    let events = outcome.signs.events_per_wait();
    // More threads than CPUs take turns.
    let more = if outcome.threads < outcome.cpus {
        format!("more threads (-t{}) on CPUs that the server does not use (--pin)", outcome.threads + 1)
    } else {
        "the generator on another machine, or the server on fewer CPUs: its threads have all that there are here".to_owned()
    };
    out.push_str(&format!(
        "Generator limited: {} ({busy:.0}% busy, {events:.1} events per wait)\n  try: {more}\n",
        outcome.limited.in_words()
    ));
}

/// The length of a run: whole seconds as wrk has them, anything else as it was given.
fn length(duration: Duration) -> String {
    match (duration.as_secs(), duration.subsec_nanos()) {
        (seconds, 0) => scaled(seconds as f64, 60.0, "s", &["m"], 0),
        (0, nanos) => format!("{}ms", f64::from(nanos) / 1e6),
        _ => format!("{}s", duration.as_secs_f64()),
    }
}

fn micros(us: f64) -> String {
    if us >= 1e6 { scaled(us / 1e6, 60.0, "s", &["m"], 2) } else { scaled(us, 1_000.0, "us", &["ms"], 2) }
}

fn metric(count: f64) -> String {
    scaled(count, 1_000.0, "", &["k", "M", "G", "T"], 2)
}

fn binary(bytes: f64) -> String {
    scaled(bytes, 1_024.0, "", &["K", "M", "G", "T"], 2)
}

/// wrk never takes the last unit of its lists: they are left out here.
fn scaled(amount: f64, scale: f64, base: &str, units: &[&str], decimals: usize) -> String {
    let (mut amount, mut unit) = (amount, base);
    for next in units {
        if amount < scale * 0.85 {
            break;
        }
        amount /= scale;
        unit = next;
    }
    format!("{amount:.decimals$}{unit}")
}

/// Right-aligned so that digits stand under digits: two columns are kept for the unit's letters.
fn column(text: &str, width: usize) -> String {
    let letters = text.chars().rev().take(2).filter(char::is_ascii_alphabetic).count();
    let pad = 2 - letters;
    format!("{text:>0$}{1:pad$}", width - pad, "")
}

#[cfg(test)]
pub(super) mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::tests::load_args;
    use super::*;
    use crate::cli;
    use dyno_load::limit::Signs;
    use dyno_load::run::Ended;
    use dyno_load::{Errors, Loaded, Unfinished, WrongAnswer};

    /// A run that never was, with everything in it.
    pub(in crate::cmd::load) struct Sample {
        args: Box<cli::Load>,
        pub(in crate::cmd::load) report: LoadReport,
    }

    impl Sample {
        pub(in crate::cmd::load) fn new() -> Sample {
            Sample { args: load_args(&["-t2", "-c64", "--latency"]), report: report() }
        }

        pub(in crate::cmd::load) fn outcome(&self) -> Outcome<'_> {
            let signs = Signs::of(&self.report.block, 64);
            let server = Some(ServerCost {
                total_us: Some(8.0),
                user_share: Some(0.25),
                busiest: Some(0.5),
                warning: None,
            });
            let rates = vec![56_000.0, 58_000.0, 57_000.0];
            Outcome {
                args: &self.args,
                threads: 2,
                cpus: 4,
                report: &self.report,
                signs,
                limited: signs.limited(),
                server,
                rates,
                digests: ["0a".into(), "0b".into()],
            }
        }
    }

    fn report() -> LoadReport {
        let mut latencies = Histogram::new();
        latencies.record_n(400_000, 80);
        latencies.record_n(900_000, 18);
        latencies.record_n(12_900_000, 2);
        let block = BlockReport {
            replies: 1_140_000,
            bytes: 141_360_000,
            wall_ns: 10_001_000_000,
            loaded: Loaded {
                replies: 1_140_000,
                bytes: 141_360_000,
                wall_ns: 10_001_000_000,
                cpu_ns: 19_800_000_000,
                events: 1_200_000,
                waits: 100_000,
            },
            latencies,
            events: 1_200_000,
            waits: 100_000,
            cpu_ns: 19_800_000_000,
            threads: 2,
            cpus: 2,
            drained: true,
            ..BlockReport::default()
        };
        LoadReport { block, limited: Limited::Yes, ended: Ended::Whole }
    }

    #[test]
    fn the_text_is_wrks_blank_for_blank() {
        let sample = Sample::new();
        let outcome = Outcome { server: None, limited: Limited::No, ..sample.outcome() };
        let text = head(&sample.args, 2) + &body(&outcome);
        assert_eq!(
            text,
            "Running 10s test @ http://127.0.0.1:1/\n\
             \x20 2 threads and 64 connections\n\
             \x20 Thread Stats   Avg      Stdev     Max   +/- Stdev\n\
             \x20   Latency   740.00us    1.75ms  12.90ms   98.00%\n\
             \x20   Req/Sec    57.00k     1.00k   58.00k   100.00%\n\
             \x20 Latency Distribution\n\
             \x20    50%  400.00us\n\
             \x20    75%  400.00us\n\
             \x20    90%    0.90ms\n\
             \x20    99%   12.90ms\n\
             \x20 1140000 requests in 10.00s, 134.81MB read\n\
             Requests/sec: 113988.60\n\
             Transfer/sec:     13.48MB\n"
        );
    }

    #[test]
    fn errors_are_told_in_wrks_lines_and_ours_below_them() {
        let mut sample = Sample::new();
        let block = &mut sample.report.block;
        block.errors = Errors { read: 3, timeout: 1, status: 5, mismatch: 2, ..Errors::default() };
        block.first_wrong = Some(WrongAnswer { expected: "a body".into(), got: "\"x\"".into() });
        let text = body(&sample.outcome());
        for line in [
            "  Socket errors: connect 0, read 3, write 0, timeout 1\n",
            "  Non-2xx or 3xx responses: 5\n",
            "  Wrong answers: not HTTP/1.1 0, wrong body 2\n",
            "  First wrong answer: expected a body; got \"x\"\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    /// Planted fault: percentiles of the fast ones, with not a word of those that were given up.
    #[test]
    fn requests_that_timed_out_are_told_and_stand_in_the_distribution() {
        let mut sample = Sample::new();
        let block = &mut sample.report.block;
        (block.timed_out, block.unanswered, block.errors.timeout) = (2, 16, 2);
        let text = body(&sample.outcome());
        for line in [
            "     90%    0.90ms\n",
            "     99% timed out\n",
            "  Timed out: 2 requests; the Latency line is of the others\n",
            "  Unanswered: 16 requests, on connections that were lost\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }

    /// Planted fault: a closed loop's percentile, and not a word of what it held back.
    #[test]
    fn a_server_that_stops_is_told_with_the_percentile_of_an_even_pace() {
        let mut sample = Sample::new();
        assert!(!body(&sample.outcome()).contains("Long waits"), "an ordinary run");
        // Of 64 connections, two stops.
        sample.report.block.latencies.record_n(400_000, 640_000);
        sample.report.block.latencies.record_n(700_000_000, 128);
        let line = "  Long waits held requests back: sent at an even pace, 99% would be about 673.39ms, not 400.00us\n";
        let text = body(&sample.outcome());
        assert!(text.contains(line), "{text}");
    }

    /// Planted faults: what is younger than the timeout timed out, or is not told at all.
    #[test]
    fn unfinished_requests_are_told_with_their_age_and_bound_the_distribution() {
        let mut sample = Sample::new();
        let block = &mut sample.report.block;
        block.unfinished = vec![Unfinished { age_ns: 2_100_000_000, requests: 3 }];
        let text = body(&sample.outcome());
        for line in [
            "     90%    0.90ms\n",
            "     99%  >=2.10s \n",
            "  Unfinished: 3 requests, 2.10s old at most: no errors; the Latency line is of the others\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(!text.contains("timed out") && !text.contains("Socket errors"), "{text}");
    }

    /// Planted fault: a rate of nothing, over latencies of all.
    #[test]
    fn answers_that_came_at_the_end_are_told_where_the_rate_misses_many() {
        let mut sample = Sample::new();
        let late = "  Answered late: 1000 requests, in Latency and not in Requests/sec\n";
        sample.report.block.replies += 1_000;
        assert!(!body(&sample.outcome()).contains("Answered late"), "there are always some");
        sample.report.block.loaded.replies = 0;
        sample.report.block.replies = 1_000;
        assert!(body(&sample.outcome()).contains(late));
    }

    /// Planted fault: the rate of a server that died is told as one of a server that was there.
    #[test]
    fn time_without_a_connection_stands_above_the_rate() {
        let mut sample = Sample::new();
        sample.report.block.down_ns = 9_000_000_000;
        let text = body(&sample.outcome());
        let line =
            "  No connection was up for 9.00s of 10.00s: Requests/sec is of that time too\nRequests/sec: ";
        assert!(text.contains(line), "{text}");
    }

    /// Planted faults: the rate of a server that hung is told as one of a server that answered; and one that is gone is told twice.
    #[test]
    fn time_without_anything_received_at_the_end_stands_above_the_rate_unless_nobody_was_there() {
        let mut sample = Sample::new();
        sample.report.block.silent_ns = 5_000_000_000;
        let line = "  Nothing was received for the last 5.00s of 10.00s: Requests/sec is of that time too\nRequests/sec: ";
        assert!(body(&sample.outcome()).contains(line), "{}", body(&sample.outcome()));
        sample.report.block.down_ns = 5_000_000_000;
        assert!(!body(&sample.outcome()).contains("Nothing was received"), "{}", body(&sample.outcome()));
    }

    #[test]
    fn what_the_runs_own_error_says_is_not_said_above_it_too() {
        let mut sample = Sample::new();
        sample.report.block.first_error = Some("it closed".into());
        let is_told = |sample: &Sample| body(&sample.outcome()).contains("  First error: it closed\n");
        assert!(is_told(&sample), "most requests were answered: no error follows");
        sample.report.block.replies = 0;
        assert!(!is_told(&sample), "the error that follows says it");
        sample.report.ended = Ended::Stopped;
        assert!(is_told(&sample), "who stops a run is told no error");
    }

    #[test]
    fn a_generator_at_its_limit_says_so_and_what_to_do() {
        let text = body(&Sample::new().outcome());
        assert!(text.contains("Generator limited: the generator was the limit"), "{text}");
        assert!(
            text.contains("99% busy, 12.0 events per wait") && text.contains("try: more threads (-t3)"),
            "{text}"
        );
        assert!(
            text.contains("Server CPU:        8.00us/request (user 2.00, system 6.00: sampled)\n"),
            "{text}"
        );
    }

    #[test]
    fn units_change_where_wrks_do() {
        assert_eq!([849.0, 850.0, 849_999.0, 1e6].map(micros), ["849.00us", "0.85ms", "850.00ms", "1.00s"]);
        assert_eq!([50.9e6, 51e6, 7_200e6].map(micros), ["50.90s", "0.85m", "120.00m"]);
        assert_eq!([12.0, 870.4, 1e6].map(binary), ["12.00", "0.85K", "0.95M"]);
        assert_eq!([10, 60, 90].map(|s| length(Duration::from_secs(s))), ["10s", "1m", "2m"]);
        assert_eq!([300, 1_500].map(|ms| length(Duration::from_millis(ms))), ["300ms", "1.5s"]);
    }

    #[test]
    fn a_run_without_any_answer_has_zeros_and_no_nan() {
        let mut sample = Sample::new();
        let block = &mut sample.report.block;
        (block.replies, block.bytes, block.wall_ns, block.latencies) = (0, 0, 0, Histogram::new());
        block.loaded = Loaded::default();
        let text = body(&Outcome { rates: Vec::new(), ..sample.outcome() });
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert!(text.contains("    Req/Sec     0.00      0.00     0.00      0.00%\n"), "{text}");
    }
}
