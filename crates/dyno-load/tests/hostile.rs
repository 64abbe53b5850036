//! Servers that break, stall or lie: each misdeed is counted once, in its class, and every block ends.
#![allow(clippy::unwrap_used)]

mod scripted;

use dyno_load::run::{LoadPlan, LoadReport, load};
use dyno_load::{BlockReport, BlockSpec, Errors, Expect, OpenError, Placement, Session, SessionPlan};
use std::sync::atomic::AtomicBool;

use scripted::{HELLO, Peer, Server, short, wait_until, within_deadline};

const MS: u64 = 1_000_000;

/// Long enough for a peer whose CPU was taken away for a while, so that only those time out that never answer.
const TIMEOUT_NS: u64 = 1_000 * MS;

/// A server that is right until every connection of the plan was greeted, then does `misdeed` at each request.
fn turning(greetings: u64, misdeed: impl Fn(&mut Peer) + Send + Sync + 'static) -> Server {
    Server::start(move |peer| {
        while peer.request() {
            if peer.requests() > greetings {
                peer.mark();
                misdeed(peer);
                return;
            }
            peer.answer(HELLO);
        }
    })
}

/// So many misdeeds are enough for a block.
fn brief() -> BlockSpec {
    BlockSpec { measure_ns: 30 * MS, replies_min: 0, drain_ns_max: 2_000 * MS, ..short() }
}

fn block_of(plan: SessionPlan, spec: BlockSpec) -> BlockReport {
    within_deadline(move || Session::open(&plan).unwrap().block(&spec, &mut |_| {}))
}

/// The server may count a request only after its sender has given up.
fn every_request_is_seen(server: &Server, report: &BlockReport) {
    wait_until("every request is seen", || server.marks() >= report.errors.timeout);
}

fn only(class: impl Fn(&mut Errors)) -> Errors {
    let mut errors = Errors::default();
    class(&mut errors);
    errors
}

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n";

/// What a run of a fifth of a second comes to, of a server that answers by the number of the request.
fn loaded(connections: usize, answer: fn(u64) -> &'static [u8]) -> Result<LoadReport, OpenError> {
    let server = Server::start(move |peer| {
        while peer.request() {
            peer.answer(answer(peer.requests()));
        }
    });
    let plan = LoadPlan::new(server.plan(connections), Placement::Unpinned(2), 200 * MS);
    within_deadline(move || load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |_| {}))
}

/// One answer in three is not right, the very first one among them. Planted fault: the first of them ends the opening, and nobody is told
/// of the other two.
#[test]
fn a_server_that_errs_now_and_then_is_loaded_and_its_errors_are_counted() {
    let report = loaded(16, |number| if number % 3 == 1 { BUSY } else { HELLO }).unwrap().block;
    assert!(report.errors.status > 0 && report.replies > report.errors.status, "{report:?}");
    assert!(report.first_wrong.unwrap().got.contains("503"));
    // One that never answers rightly says what is wrong before anything is measured.
    for connections in [2, 16] {
        let refused = loaded(connections, |_| BUSY).unwrap_err();
        assert!(matches!(refused, OpenError::WrongAnswer { .. }), "{refused}");
    }
}

#[test]
fn a_close_instead_of_an_answer_is_a_read_error_each_time() {
    let server = turning(2, |_| {});
    let report = block_of(server.plan(2), brief());
    assert_eq!(report.errors, only(|errors| errors.read = server.marks()));
    assert!(report.errors.read > 0 && report.replies == 0 && report.drained);
    assert!(report.first_error.unwrap().contains("it sent nothing"));
}

#[test]
fn a_close_within_an_answer_is_a_read_error_wherever_it_comes() {
    for cut in [1, 16, HELLO.len() - 6, HELLO.len() - 1] {
        let server = turning(2, move |peer| {
            peer.send(&HELLO[..cut]);
        });
        let report = block_of(server.plan(2), brief());
        assert_eq!(report.errors, only(|errors| errors.read = server.marks()), "cut at {cut}");
    }
}

#[test]
fn a_reset_within_a_body_is_a_read_error() {
    let server = turning(2, |peer| {
        peer.send(&HELLO[..HELLO.len() - 2]);
        peer.reset();
    });
    let report = block_of(server.plan(2), brief());
    assert_eq!(report.errors, only(|errors| errors.read = server.marks()));
}

#[test]
fn a_length_that_promises_too_little_leaves_bytes_that_nobody_asked_for() {
    let server = turning(2, |peer| {
        peer.answer(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, world");
        peer.wait_for_close();
    });
    let report = block_of(server.plan(2), brief());
    assert_eq!(report.errors, only(|errors| errors.protocol = server.marks()));
    assert_eq!(report.replies, server.marks(), "up to its announced end each answer was right");
    assert!(report.first_error.unwrap().contains("no request asked for"));
}

#[test]
fn a_length_that_promises_too_much_times_out() {
    let server = turning(2, |peer| {
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello");
        peer.wait_for_close();
    });
    let report = block_of(SessionPlan { timeout_ns: TIMEOUT_NS, ..server.plan(2) }, brief());
    every_request_is_seen(&server, &report);
    assert_eq!(report.errors, only(|errors| errors.timeout = server.marks()));
}

#[test]
fn a_server_that_falls_silent_costs_a_timeout_for_each_request_and_not_the_block() {
    let server = turning(3, Peer::wait_for_close);
    let spec = BlockSpec { measure_ns: 2 * TIMEOUT_NS, ..brief() };
    let report = block_of(SessionPlan { timeout_ns: TIMEOUT_NS, ..server.plan(3) }, spec);
    every_request_is_seen(&server, &report);
    assert_eq!(report.errors, only(|errors| errors.timeout = server.marks()));
    assert!(report.errors.timeout > 3, "timed out connections were not replaced");
    assert_eq!((report.unanswered, report.timed_out), (report.errors.timeout, report.errors.timeout));
    // Each connection was answered before: planted fault, the sentence of a load that is being opened.
    let why = report.first_error.unwrap();
    assert!(why.starts_with("a request to ") && why.ends_with(" was not answered within 1000 ms"), "{why}");
}

/// Planted fault: a connection that is lost is one request, whatever it carried.
#[test]
fn each_request_of_a_batch_that_times_out_is_one_that_was_not_answered() {
    let server = turning(1, |peer| {
        peer.answer(HELLO);
        peer.wait_for_close();
    });
    let plan = SessionPlan { pipeline: 8, timeout_ns: TIMEOUT_NS, ..server.plan(1) };
    let report = block_of(plan, BlockSpec { measure_ns: 3 * TIMEOUT_NS / 2, ..brief() });
    let lost = report.errors.timeout;
    assert!(lost > 1 && report.errors == only(|errors| errors.timeout = lost), "{:?}", report.errors);
    assert_eq!((report.unanswered, report.timed_out), (7 * lost, 7 * lost));
}

/// Planted fault: who was asked a moment ago, and may take five seconds, has timed out when the drain is given up.
#[test]
fn a_request_that_is_younger_than_its_timeout_at_the_end_is_unfinished_and_no_error() {
    let server = turning(2, Peer::wait_for_close);
    let spec = BlockSpec { drain_ns_max: 10 * MS, ..brief() };
    let report = block_of(server.plan(2), spec);
    assert!(!report.drained);
    assert_eq!((report.errors, report.timed_out, report.failed()), (Errors::default(), 0, 0));
    assert_eq!(report.unfinished(), 2);
    let ages = |report: &BlockReport| report.unfinished.iter().map(|one| one.age_ns).collect::<Vec<_>>();
    assert!(ages(&report).iter().all(|age_ns| (10 * MS..5_000 * MS).contains(age_ns)), "{:?}", ages(&report));
    let why = report.answered().unwrap_err().to_string();
    assert!(why.contains("2 were unfinished at the end, the oldest"), "{why}");
}

/// Planted faults: a server that hangs is as good as one that answers; who says something, or comes back in the drain, hangs.
#[test]
fn a_server_that_hangs_is_silent_up_to_the_end_and_one_that_says_anything_after_it_is_not() {
    let spec = BlockSpec { measure_ns: 200 * MS, drain_ns_max: 100 * MS, ..brief() };
    let hangs = turning(2, Peer::wait_for_close);
    let report = block_of(hangs.plan(2), spec);
    assert!(report.silent_ns >= report.loaded.wall_ns, "{} ns", report.silent_ns);
    let spec = BlockSpec { drain_ns_max: 3_000 * MS, ..spec };
    let pieces = turning(2, |peer| {
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
        while peer.send(b"x") {
            dyno_sys::clock::sleep_ns(20 * MS);
        }
    });
    let report = block_of(pieces.plan(2), spec);
    assert_eq!((report.replies, report.silent_ns), (0, 0));
    let comes_back = turning(2, |peer| {
        dyno_sys::clock::sleep_ns(1_200 * MS);
        peer.answer(HELLO);
        peer.wait_for_close();
    });
    let report = block_of(comes_back.plan(2), spec);
    assert_eq!((report.loaded.replies, report.silent_ns), (0, 0));
}

/// Planted fault: every server's last answers are awaited for as long as those of a quick one.
#[test]
fn slow_answers_are_awaited_for_twice_as_long_as_the_longest_took() {
    let server = Server::start(|peer| {
        while peer.request() {
            dyno_sys::clock::sleep_ns(400 * MS);
            peer.answer(HELLO);
        }
    });
    let spec = BlockSpec { drain_ns_max: 10 * MS, drain_slow_ns_max: 20_000 * MS, ..brief() };
    let report = block_of(server.plan(2), spec);
    assert_eq!((report.errors, report.unfinished(), report.drained), (Errors::default(), 0, true));
    assert_eq!((report.replies, report.loaded.replies), (2, 0), "both came when nothing was sent any more");
}

#[test]
fn one_hanging_answer_stretches_its_latency_and_no_rate() {
    let server = turning(2, |peer| {
        // One request hangs until its client gives it up; the connection that replaces it is answered as before.
        if peer.mark() == 1 {
            peer.wait_for_close();
        }
        peer.answer(HELLO);
        while peer.request() {
            peer.answer(HELLO);
        }
    });
    let spec = BlockSpec { measure_ns: 200 * MS, drain_ns_max: 600 * MS, ..brief() };
    let report = block_of(server.plan(2), spec);
    assert!(!report.drained, "the hanging request was in flight at the end");
    assert!(report.wall_ns >= 800 * MS, "the drain is in the whole: {}", report.wall_ns);
    assert!(report.loaded.wall_ns >= 200 * MS);
    assert!(report.loaded.wall_ns + 600 * MS <= report.wall_ns, "it is not in the loaded part");
    assert!(report.loaded.replies > 0 && report.loaded.replies <= report.replies);
}

#[test]
fn a_late_answer_of_one_block_is_never_taken_for_the_next_ones() {
    let server = Server::start(|peer| {
        while peer.request() {
            // The fourth request of all is answered only when its client has gone away.
            if peer.requests() == 4 {
                peer.wait_for_close();
                peer.send(HELLO);
                return;
            }
            peer.answer(HELLO);
        }
    });
    let plan = server.plan(2);
    let (first, second) = within_deadline(move || {
        let mut session = Session::open(&plan).unwrap();
        let spec = BlockSpec { drain_ns_max: TIMEOUT_NS, ..brief() };
        (session.block(&spec, &mut |_| {}), session.block(&brief(), &mut |_| {}))
    });
    assert_eq!((first.errors, first.unfinished(), first.drained), (Errors::default(), 1, false));
    assert_eq!((second.errors, second.drained, second.reconnects), (Errors::default(), true, 1));
}

#[test]
fn what_is_not_http_is_a_protocol_error_at_once() {
    for garbage in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"HTTP/2 200\r\n", b"HTTP/1.1 200 OK\r\nA B: c\r\n"]
    {
        let server = turning(2, move |peer| {
            peer.send(garbage);
            peer.wait_for_close();
        });
        let report = block_of(server.plan(2), brief());
        assert_eq!(report.errors, only(|errors| errors.protocol = server.marks()));
        assert!(report.first_wrong.unwrap().got.contains(&garbage[..4].escape_ascii().to_string()));
    }
}

#[test]
fn heads_interims_and_chunks_without_end_are_cut_off() {
    let chunked: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for (start, more) in [
        (&b"HTTP/1.1 200 OK\r\n"[..], &b"X-Filler: abcdefgh\r\n"[..]),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (chunked, b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n"),
    ] {
        let server = turning(1, move |peer| {
            peer.send(start);
            while peer.send(&more.repeat(500)) {}
        });
        let plan = SessionPlan { expect: Expect::any(), ..server.plan(1) };
        let report = block_of(plan, brief());
        assert!(report.errors.protocol > 0, "{}", more.escape_ascii());
        assert_eq!(report.errors, only(|errors| errors.protocol = server.marks()));
    }
}

#[test]
fn a_body_without_end_is_cut_off_by_the_timeout() {
    for head in
        [&b"HTTP/1.1 200 OK\r\n\r\n"[..], b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551615\r\n\r\n"]
    {
        let server = turning(1, move |peer| {
            peer.send(head);
            while peer.send(&[b'x'; 65_536]) {}
        });
        let plan = SessionPlan { expect: Expect::any(), timeout_ns: TIMEOUT_NS, ..server.plan(1) };
        let report = block_of(plan, brief());
        every_request_is_seen(&server, &report);
        assert_eq!(report.errors, only(|errors| errors.timeout = server.marks()));
    }
}

#[test]
fn a_dribbled_answer_is_right_if_it_is_in_time() {
    let server = Server::start(|peer| {
        while peer.request() {
            peer.counts.answers.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            HELLO.chunks(1).for_each(|byte| {
                peer.send(byte);
            });
        }
    });
    let report = block_of(server.plan(1), short());
    assert_eq!((report.errors, report.replies), (Errors::default(), server.answers() - 1));
}

#[test]
fn a_server_that_is_gone_costs_connect_errors_without_spinning() {
    let mut server =
        Server::start(|peer| while peer.request() && peer.requests() <= 4 && peer.answer(HELLO) {});
    let plan = server.plan(2);
    let session = within_deadline(move || Session::open(&plan).unwrap());
    server.stop_listening();
    let report = within_deadline(move || {
        let mut session = session;
        session.block(&BlockSpec { measure_ns: 400 * MS, ..brief() }, &mut |_| {})
    });
    let (down_ns, wall_ns) = (report.down_ns, report.loaded.wall_ns);
    assert!(down_ns > wall_ns / 10 && down_ns <= wall_ns, "no connection for {down_ns} of {wall_ns} ns");
    assert!(report.errors.connect >= 2 && report.drained);
    let sweeps = report.wall_ns / (20 * MS) + 2;
    assert!(report.errors.connect <= 2 * sweeps, "{} connects in {sweeps} sweeps", report.errors.connect);
}

#[test]
fn connections_that_the_server_closed_while_idle_are_replaced_quietly() {
    // Each connection is closed by the server after its greeting; those of the block are kept.
    let server = Server::start(|peer| {
        let greets = peer.counts.connections.load(std::sync::atomic::Ordering::SeqCst) <= 3;
        while peer.request() && peer.answer(HELLO) {
            if greets {
                peer.mark();
                return;
            }
        }
    });
    let plan = server.plan(3);
    let session = within_deadline(move || Session::open(&plan).unwrap());
    wait_until("three connections are closed", || server.marks() == 3);
    // The mark is made before the socket is closed; that it is, shows here only by asking the kernel.
    wait_until("no connection of the server's is left", || established(server.addr().port()) == 0);
    let report = within_deadline(move || {
        let mut session = session;
        session.block(&short(), &mut |_| {})
    });
    assert_eq!((report.errors, report.reconnects), (Errors::default(), 3));
    assert_eq!(report.replies, server.answers() - 3);
}

/// Sockets of this local port in state ESTABLISHED (01), by /proc/net/tcp.
fn established(port: u16) -> usize {
    let local = format!(":{port:04X}");
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let is_ours = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        fields.len() > 3 && fields[1].ends_with(&local) && fields[3] == "01"
    };
    table.lines().filter(is_ours).count()
}

/// What opening says of a server that does this with each request.
fn refusal(
    plan: impl Fn(SessionPlan) -> SessionPlan,
    script: impl Fn(&mut Peer) + Send + Sync + 'static,
) -> OpenError {
    let server = Server::start(move |peer| {
        if peer.request() {
            script(peer);
        }
    });
    let plan = plan(server.plan(3));
    within_deadline(move || Session::open(&plan).map(drop).unwrap_err())
}

#[test]
fn opening_says_what_is_wrong_with_the_server() {
    let same = |plan| plan;
    let wrong = refusal(same, |peer| {
        peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno");
    });
    assert!(matches!(&wrong, OpenError::WrongAnswer { got, .. } if got == "2 bytes: \"no\""), "{wrong:?}");
    let status = refusal(same, |peer| {
        peer.send(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    assert!(matches!(&status, OpenError::WrongAnswer { got, .. } if got.contains("404")), "{status:?}");
    let garbage = refusal(same, |peer| {
        peer.send(b"SSH-2.0-x\r\n");
    });
    assert!(matches!(&garbage, OpenError::NotHttp { got, .. } if got.contains("SSH-2.0")), "{garbage:?}");
    let closed = refusal(same, |peer| {
        peer.send(b"HTTP/1.1 200");
    });
    assert!(matches!(&closed, OpenError::Closed { got, .. } if got == "\"HTTP/1.1 200\""), "{closed:?}");
    let silent = refusal(|plan| SessionPlan { timeout_ns: TIMEOUT_NS, ..plan }, Peer::wait_for_close);
    assert!(matches!(silent, OpenError::TimedOut { answered: 0, connections: 3, .. }), "{silent:?}");
}

#[test]
fn a_server_that_serves_one_connection_at_a_time_is_found_out() {
    let served = std::sync::Mutex::new(());
    let server = Server::start(move |peer| {
        let _one = served.lock().unwrap();
        while peer.request() && peer.answer(HELLO) {}
    });
    let plan = SessionPlan { timeout_ns: TIMEOUT_NS, ..server.plan(3) };
    let error = within_deadline(move || Session::open(&plan).map(drop).unwrap_err());
    assert!(matches!(error, OpenError::TimedOut { answered: 1, connections: 3, .. }), "{error:?}");
}

#[test]
fn nobody_listening_is_refused() {
    let mut server = Server::answering(HELLO);
    server.stop_listening();
    let plan = server.plan(2);
    let error = within_deadline(move || Session::open(&plan).map(drop).unwrap_err());
    assert!(matches!(error, OpenError::Refused { .. }), "{error:?}");
}
