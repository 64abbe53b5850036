//! Which figures there are, under which names: base units, `dyno_` in front, one series per worker.
//!
//! A figure of a worker goes on over its replacement, CPU time aside, which is its process's and starts anew. A reload starts
//! all of them anew, but for those of reloads.

use super::board::Board;
use super::page::{Family, Kind, Page};
use crate::meter::Figures;
use crate::stats::{Accepting, Counts};
use dyno_sys::{clock, proc};

/// Clock ticks of /proc in a second (USER_HZ, the same on every architecture of today).
const TICKS_PER_S: f64 = 100.0;

/// Writes every family.
pub(super) fn write(page: &mut Page, board: Board) {
    server(page, board);
    let rows: Vec<(Counts, Figures)> =
        (0..board.meters.rows()).map(|row| (board.counters.of(row), board.meters.figures(row))).collect();
    requests(page, &rows);
    connections(page, &rows);
    bytes(page, board, &rows);
    log(page, board, &rows);
    workers(page, board);
    reloads(page, board);
}

fn server(page: &mut Page, board: Board) {
    let version = board.version;
    info(page, "dyno_build", "The program's version.", format!("version=\"{version}\""));
    let uptime_s = clock::mono_ns().saturating_sub(board.started_ns) as f64 / 1e9;
    let help = "Time since the server started.";
    page.family(
        gauge("dyno_uptime_seconds", Some("seconds"), help),
        [(String::new(), format!("{uptime_s:.3}"))],
    );
    let help = "When the server started, in seconds since 1970.";
    page.family(gauge("dyno_start_time_seconds", Some("seconds"), help), [(String::new(), board.started_s)]);
}

fn requests(page: &mut Page, rows: &[(Counts, Figures)]) {
    let help = "Replies by the class of their status.";
    let classes = each(rows, |_, seen| {
        vec![
            ("code=\"2xx\"", seen.replies_2xx),
            ("code=\"3xx\"", seen.replies_3xx),
            ("code=\"4xx\"", seen.replies_4xx),
            ("code=\"5xx\"", seen.replies_5xx),
        ]
    });
    page.family(counter("dyno_http_requests", None, help), classes);
    let of =
        |figure: fn(&Counts, &Figures) -> u64| each(rows, |counts, seen| vec![("", figure(counts, seen))]);
    for (name, help, samples) in [
        (
            "dyno_requests_refused",
            "Requests refused for their framing or their size.",
            of(|counts, _| counts.rejects),
        ),
        (
            "dyno_requests_limited",
            "Requests answered 429, because their address asks too often.",
            of(|_, seen| seen.requests_limited),
        ),
        (
            "dyno_bodies_refused",
            "Request bodies refused because connections held as much as they may.",
            of(|counts, _| counts.budget_refusals),
        ),
        (
            "dyno_addresses_uncounted",
            "Connections and requests whose address found no place in the table of limits.",
            of(|_, seen| seen.addresses_uncounted),
        ),
        (
            "dyno_handler_panics",
            "Handlers and uploads that panicked; each was answered with 500.",
            of(|counts, _| counts.panics),
        ),
    ] {
        page.family(counter(name, None, help), samples);
    }
}

fn connections(page: &mut Page, rows: &[(Counts, Figures)]) {
    let of = |figure: fn(&Counts) -> u64| each(rows, |counts, _| vec![("", figure(counts))]);
    let open = of(|counts| counts.accepts.saturating_sub(counts.closes));
    page.family(gauge("dyno_connections_open", None, "Connections that are open."), open);
    let help = "Connections accepted.";
    page.family(counter("dyno_connections_accepted", None, help), of(|counts| counts.accepts));
    let help = "Connections ended: done (after the last reply), peer, timeout, limit (of its address).";
    let closed = each(rows, |_, seen| {
        vec![
            ("reason=\"done\"", seen.closed_done),
            ("reason=\"peer\"", seen.closed_by_peer),
            ("reason=\"timeout\"", seen.closed_late),
            ("reason=\"limit\"", seen.closed_limited),
        ]
    });
    page.family(counter("dyno_connections_closed", None, help), closed);
    let help = "Times that a worker stopped accepting because it could hold no more.";
    page.family(counter("dyno_accept_pauses", None, help), of(|counts| counts.accept_pauses));
}

fn bytes(page: &mut Page, board: Board, rows: &[(Counts, Figures)]) {
    let of = |figure: fn(&Figures) -> u64| each(rows, |_, seen| vec![("", figure(seen))]);
    let help = "Bytes read from connections.";
    page.family(counter("dyno_received_bytes", Some("bytes"), help), of(|seen| seen.received_bytes));
    let help = "Bytes given to connections.";
    page.family(counter("dyno_sent_bytes", Some("bytes"), help), of(|seen| seen.sent_bytes));
    let help = "Bytes of replies as they were made: head (status and header lines) and body.";
    let made =
        each(rows, |_, seen| vec![("kind=\"head\"", seen.head_bytes), ("kind=\"body\"", seen.body_bytes)]);
    page.family(counter("dyno_reply_bytes", Some("bytes"), help), made);
    let help = "Bytes that connections hold in memory: partial requests, and replies that wait.";
    page.family(gauge("dyno_buffered_bytes", Some("bytes"), help), of(|seen| seen.buffered_bytes));
    let help = "Bytes that the connections of all workers may hold.";
    page.family(
        gauge("dyno_buffer_limit_bytes", Some("bytes"), help),
        [(String::new(), board.buffer_bytes_max)],
    );
}

fn log(page: &mut Page, board: Board, rows: &[(Counts, Figures)]) {
    let made = each(rows, |_, seen| vec![("", seen.log_lines)]);
    page.family(counter("dyno_log_lines", None, "Lines made for the access log."), made);
    let lost = board.counters.total().log_drops;
    let help = "Lines of the access log that were lost.";
    page.family(counter("dyno_log_lines_lost", None, help), [(String::new(), lost)]);
    let failing = u8::from(board.counters.is_log_failing());
    let help = "Whether the access log does not take every line, as it was seen within the last second.";
    page.family(gauge("dyno_log_failing", None, help), [(String::new(), failing)]);
}

fn workers(page: &mut Page, board: Board) {
    let rows = 0..board.meters.rows();
    let accepting = rows.clone().map(|row| {
        let is_open = board.counters.accepting(row) == Accepting::Open;
        (worker(row, ""), u8::from(is_open))
    });
    page.family(gauge("dyno_worker_accepting", None, "Whether a worker accepts connections."), accepting);
    let help = "Workers that died and were replaced.";
    let restarts = board.meters.restarts() + board.ledger.deaths_together();
    page.family(counter("dyno_worker_restarts", None, help), [(String::new(), restarts)]);
    let times = rows.filter_map(|row| Some((row, proc::user_system_ticks(board.meters.pid(row)?).ok()?)));
    let modes = times.flat_map(|(row, (user, system))| {
        [("mode=\"user\"", user), ("mode=\"system\"", system)]
            .map(|(mode, ticks)| (worker(row, mode), format!("{:.2}", ticks as f64 / TICKS_PER_S)))
    });
    let help = "CPU time of a worker's process; a replacement starts anew.";
    page.family(counter("dyno_worker_cpu_seconds", Some("seconds"), help), modes.collect::<Vec<_>>());
}

fn reloads(page: &mut Page, board: Board) {
    let (reloads, failures) = board.ledger.reloads();
    let help = "Times that new settings came into force.";
    page.family(counter("dyno_reloads", None, help), [(String::new(), reloads)]);
    let help = "Times that new settings were refused, so that those before them stayed.";
    page.family(counter("dyno_reload_failures", None, help), [(String::new(), failures)]);
    let help = "Whether the last reload succeeded; 1 before there was one.";
    let succeeded = u8::from(!board.ledger.has_failed_last());
    page.family(gauge("dyno_last_reload_successful", None, help), [(String::new(), succeeded)]);
}

/// Samples for each worker, from its figures.
fn each(
    rows: &[(Counts, Figures)],
    of: impl Fn(&Counts, &Figures) -> Vec<(&'static str, u64)>,
) -> Vec<(String, u64)> {
    let labelled = |(row, (counts, seen)): (usize, &(Counts, Figures))| {
        of(counts, seen).into_iter().map(move |(label, value)| (worker(row, label), value))
    };
    rows.iter().enumerate().flat_map(labelled).collect()
}

fn worker(row: usize, label: &str) -> String {
    let comma = if label.is_empty() { "" } else { "," };
    format!("worker=\"{row}\"{comma}{label}")
}

fn counter(name: &'static str, unit: Option<&'static str>, help: &'static str) -> Family {
    Family { name, kind: Kind::Counter, unit, help }
}

fn gauge(name: &'static str, unit: Option<&'static str>, help: &'static str) -> Family {
    Family { name, kind: Kind::Gauge, unit, help }
}

fn info(page: &mut Page, name: &'static str, help: &'static str, labels: String) {
    page.family(Family { name, kind: Kind::Info, unit: None, help }, [(labels, 1)]);
}
