//! What the core does at each moment, on a socket that does what a test says: limits on time, the budget, a drain, the end.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::config::SECOND_NS;
use crate::draining::{Drained, Leave};
use crate::log::AccessLog;
use crate::mailbox::Mailbox;
use crate::reply::Reply;
use crate::request::Request;
use crate::route::Router;
use crate::scratch::Scratch;
use crate::scripted::Scripted;
use crate::seam::FileSent;
use crate::stats::{Counters, RunsIn, Tally};
use crate::timer::TICK_NS_SHIFT;
use dyno_proto::http1::Method;
use std::sync::Arc;

/// A moment at which a tick begins.
const START_NS: u64 = 1 << 40;
const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// A core with so many connections.
fn core(connections: usize, limits: &Limits) -> Core<Scripted> {
    let tally = Tally::new(Counters::new(1, 0).unwrap(), 0, RunsIn::Process);
    let scratch = Scratch::new(tally, Mailbox::new(None), 9, limits.later_ns, 1_700_000_000);
    let mut router = Router::new();
    for method in [Method::Get, Method::Post] {
        router.route(method, "/", |_: &Request<'_>, reply: Reply<'_>| reply.text("done")).unwrap();
    }
    let http = Http1::new(Arc::new(router), limits, AccessLog::off(), scratch, limits.buffer_bytes_max);
    let mut core = Core::new(Scripted::default(), http, limits, START_NS);
    for _ in 0..connections {
        assert!(core.admit((), None));
    }
    core
}

/// A turn at this moment, in which something comes on a connection.
fn comes(core: &mut Core<Scripted>, at_ns: u64, index: u32, input: &[u8]) {
    core.begin_turn(at_ns);
    core.net.input.push_back(input.to_vec());
    core.on_event(index, Readiness { readable: true, ..Readiness::default() });
    core.end_turn();
}

/// One in which nothing does.
fn passes(core: &mut Core<Scripted>, at_ns: u64) {
    core.begin_turn(at_ns);
    core.end_turn();
}

/// The first moment of a tick that is no earlier than so long after the start.
fn after(ns: u64) -> u64 {
    START_NS + (u64::from(ticks_of(ns)) << TICK_NS_SHIFT)
}

fn timeouts(core: &mut Core<Scripted>) -> (usize, u64) {
    (core.conns.in_use(), core.http.scratch.counts().timeouts)
}

/// Planted faults: an idle connection ends a tick too early or too late; a request puts nothing off.
#[test]
fn an_idle_connection_ends_in_its_tick_and_a_request_puts_that_off() {
    let limits = Limits::default();
    let mut idle = core(1, &limits);
    assert_eq!(idle.next_due_ns(), Some(after(60 * SECOND_NS)));
    passes(&mut idle, after(60 * SECOND_NS) - 1);
    assert_eq!(timeouts(&mut idle), (1, 0));
    passes(&mut idle, after(60 * SECOND_NS));
    assert_eq!(timeouts(&mut idle), (0, 1));
    assert!(idle.take_has_closed() && !idle.take_has_closed());
    let mut asked = core(1, &limits);
    comes(&mut asked, after(30 * SECOND_NS), 0, GET);
    passes(&mut asked, after(60 * SECOND_NS));
    assert_eq!(timeouts(&mut asked), (1, 0));
    let end_ns = after(30 * SECOND_NS) + (after(60 * SECOND_NS) - START_NS);
    passes(&mut asked, end_ns - 1);
    assert_eq!(timeouts(&mut asked), (1, 0));
    passes(&mut asked, end_ns);
    assert_eq!(timeouts(&mut asked), (0, 1));
}

/// Planted fault: each byte gives a head time anew.
#[test]
fn a_head_has_its_time_from_its_first_byte_on() {
    let mut core = core(1, &Limits::default());
    comes(&mut core, START_NS, 0, b"GET / HT");
    comes(&mut core, after(5 * SECOND_NS), 0, b"TP");
    passes(&mut core, after(10 * SECOND_NS) - 1);
    assert_eq!((timeouts(&mut core), core.net.text()), ((1, 0), ""));
    passes(&mut core, after(10 * SECOND_NS));
    assert_eq!(timeouts(&mut core), (1, 1));
    assert!(core.net.text().starts_with("HTTP/1.1 408 ") && core.net.calls.contains(&"end".to_owned()));
}

/// Planted faults: a byte now and then is progress; what came before counts in each stretch.
#[test]
fn a_body_has_another_stretch_for_each_thousand_bytes() {
    let ended = |pieces: [usize; 2]| {
        let mut core = core(1, &Limits::default());
        comes(&mut core, START_NS, 0, b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9000\r\n\r\n");
        for (piece, at_s) in pieces.iter().zip([5, 6]) {
            comes(&mut core, after(at_s * SECOND_NS), 0, &b"x".repeat(*piece));
        }
        let at = |core: &mut Core<Scripted>, at_ns| {
            passes(core, at_ns);
            core.http.scratch.counts().timeouts > 0
        };
        [10, 15, 16].map(|seconds| at(&mut core, after(seconds * SECOND_NS) + (1 << TICK_NS_SHIFT)))
    };
    assert_eq!(ended([998, 1]), [true; 3]);
    assert_eq!(ended([1_000, 999]), [false, true, true]);
    assert_eq!(ended([999, 1]), [false, false, true]);
}

/// Planted faults: whatever is acknowledged is enough; who has acknowledged all is cut.
#[test]
fn a_reader_must_acknowledge_a_thousand_bytes_or_all_in_its_time() {
    let kept = |sent: u64, left: u64| {
        let mut core = core(1, &Limits::default());
        core.net.script = [FileSent::Done(10)].into();
        core.net.unacknowledged = sent;
        comes(&mut core, START_NS, 0, GET);
        core.net.unacknowledged = left;
        core.net.script = [FileSent::WouldBlock].into();
        passes(&mut core, after(60 * SECOND_NS) - 1);
        assert_eq!(core.conns.in_use(), 1);
        passes(&mut core, after(60 * SECOND_NS));
        assert_eq!(core.net.calls.contains(&"reset".to_owned()), core.conns.in_use() == 0);
        core.conns.in_use() == 1
    };
    assert_eq!([kept(10, 10), kept(10, 1), kept(10, 0)], [false, false, true]);
    assert_eq!([kept(5_000, 4_001), kept(5_000, 4_000)], [false, true]);
}

/// Who has everything is idle; who has not is a reader though nothing waits here. Planted fault: both are.
#[test]
fn an_idle_connection_whose_peer_has_not_all_has_another_stretch() {
    let after_idle = |left: u64| {
        let mut core = core(1, &Limits::default());
        comes(&mut core, START_NS, 0, GET);
        core.net.unacknowledged = 5;
        passes(&mut core, after(60 * SECOND_NS));
        assert_eq!(timeouts(&mut core), (1, 0));
        core.net.unacknowledged = left;
        passes(&mut core, after(120 * SECOND_NS) + (1 << TICK_NS_SHIFT));
        (timeouts(&mut core), core.net.calls.contains(&"reset".to_owned()))
    };
    assert_eq!(after_idle(5), ((0, 1), true));
    assert_eq!(after_idle(0), ((0, 1), false));
}

/// Planted faults: cutting goes on until nothing is held; the largest goes first however lately it came.
#[test]
fn over_the_budget_who_holds_most_for_longest_goes_until_an_eighth_is_free() {
    let left = |sizes: [usize; 3]| {
        let mut core = core(3, &Limits { buffer_bytes_max: 8_000, ..Limits::default() });
        for (index, (bytes, at_s)) in sizes.iter().zip([0, 5, 5]).enumerate() {
            let head = [&b"GET /"[..], &b"x".repeat(bytes - 5)].concat();
            comes(&mut core, START_NS + at_s * SECOND_NS, index as u32, &head);
        }
        (core.conns.indexes(), core.http.budget.used(), core.http.scratch.counts().budget_cuts)
    };
    assert_eq!(left([1_000, 3_500, 3_500]), (vec![0, 1, 2], 8_000, 0));
    assert_eq!(left([1_001, 3_500, 3_500]), (vec![1, 2], 7_000, 1));
    assert_eq!(left([1_001, 3_500, 3_501]), (vec![1], 3_500, 2));
}

/// Planted faults: the edge is used up though there is more; a connection reads on while others wait.
#[test]
fn one_connection_reads_sixteen_times_in_a_turn_and_asks_to_be_told_of_the_rest() {
    let mut core = core(1, &Limits::default());
    core.net.is_edged = true;
    core.net.input = vec![GET.to_vec(); 19].into();
    comes(&mut core, START_NS, 0, GET);
    assert_eq!(core.http.scratch.counts().reads, 16);
    assert_eq!(core.net.calls.last().map(String::as_str), Some("watch input"));
    core.net.calls.clear();
    core.begin_turn(START_NS);
    core.on_event(0, Readiness { readable: true, ..Readiness::default() });
    assert_eq!((core.http.scratch.counts().reads, core.http.scratch.counts().requests), (21, 20));
    assert!(!core.net.calls.contains(&"watch input".to_owned()), "{:?}", core.net.calls);
}

/// Planted faults: a flood is fed for ever; a large upload is cut before its refusal is read.
#[test]
fn who_was_refused_may_go_on_for_sixteen_mebibytes() {
    let mut core = core(1, &Limits::default());
    comes(&mut core, START_NS, 0, b"no request\r\n\r\n");
    assert!(core.net.text().starts_with("HTTP/1.1 400 ") && core.net.calls.contains(&"end".to_owned()));
    for _ in 0..16 {
        comes(&mut core, START_NS, 0, &b"x".repeat(1 << 20));
        assert_eq!((core.conns.in_use(), core.net.input.len()), (1, 0));
    }
    comes(&mut core, START_NS, 0, b"x");
    assert_eq!((core.conns.in_use(), core.http.scratch.counts().requests), (0, 1));
}

/// Planted fault: whoever was refused is waited for as long as who is idle.
#[test]
fn who_was_refused_has_two_seconds_to_go() {
    let mut core = core(1, &Limits::default());
    assert!(!core.http.wants_peer(), "nobody writes it down");
    comes(&mut core, START_NS, 0, b"no request\r\n\r\n");
    passes(&mut core, after(2 * SECOND_NS) - 1);
    assert_eq!(core.conns.in_use(), 1);
    passes(&mut core, after(2 * SECOND_NS));
    assert_eq!(core.conns.in_use(), 0);
}

/// Planted faults: idle connections are closed at once, or a quarter of a second late; who is in the middle of something is.
#[test]
fn a_drain_closes_what_is_idle_after_a_moment_and_ends_in_its_time() {
    let drained = |leave, drain_ns, input: &[u8], at_ns: u64| {
        let mut core = core(1, &Limits::default());
        comes(&mut core, START_NS, 0, input);
        assert!(!core.is_draining());
        core.begin_drain(leave, drain_ns);
        assert!(core.is_draining() && core.drained() == Drained::NotYet);
        core.begin_turn(START_NS + at_ns);
        core.drained()
    };
    let quarter_ns = SECOND_NS / 4;
    let stopped = |input, at_ns| drained(Leave::Stopped, 5 * SECOND_NS, input, at_ns);
    assert_eq!([stopped(GET, quarter_ns - 1), stopped(GET, quarter_ns)], [Drained::NotYet, Drained::Wholly]);
    assert_eq!(
        [stopped(b"GET", 5 * SECOND_NS - 1), stopped(b"GET", 5 * SECOND_NS)],
        [Drained::NotYet, Drained::Cut]
    );
    let short = |at_ns| drained(Leave::Stopped, 1_000, GET, at_ns);
    assert_eq!([short(999), short(1_000)], [Drained::NotYet, Drained::Wholly]);
    let replaced = |at_ns| drained(Leave::Replaced, 5 * SECOND_NS, GET, at_ns);
    assert_eq!([replaced(5 * SECOND_NS - 1), replaced(5 * SECOND_NS)], [Drained::NotYet, Drained::Wholly]);
    let mut core = core(1, &Limits::default());
    core.begin_drain(Leave::Stopped, 5 * SECOND_NS);
    assert_eq!(core.next_due_ns(), Some(START_NS + quarter_ns));
    comes(&mut core, START_NS, 0, GET);
    assert!(core.net.text().contains("\r\nConnection: close\r\n"), "{}", core.net.text());
}
