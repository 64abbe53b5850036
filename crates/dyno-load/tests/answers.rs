//! Blocks against servers that answer, rightly and wrongly: what is counted is exactly what was sent.
#![allow(clippy::unwrap_used)]

mod scripted;

use dyno_load::{BlockReport, Body, Edge, Errors, Expect, OpenError, Session, SessionPlan, Target};
use scripted::{HELLO, Peer, Server, short, within_deadline};

/// Opens, runs one short block, and hands back the report with the answers that the server sent in it.
fn one_block(server: &Server, plan: SessionPlan) -> (BlockReport, u64) {
    let (report, before) = within_deadline({
        let counts = server.counts.clone();
        move || {
            let mut session = Session::open(&plan).unwrap();
            let before = counts.answers.load(std::sync::atomic::Ordering::SeqCst);
            (session.block(&short(), &mut |_| {}), before)
        }
    });
    (report, server.answers() - before)
}

#[test]
fn every_right_answer_is_counted_once() {
    let server = Server::answering(HELLO);
    let (report, answers) = one_block(&server, server.plan(4));
    assert_eq!(report.errors, Errors::default());
    assert_eq!((report.replies, report.latencies.len()), (answers, answers));
    assert_eq!(report.bytes, answers * HELLO.len() as u64);
    assert_eq!((report.wrong, report.reconnects, report.drained), (0, 0, true));
    assert_eq!(report.sample_answer, HELLO);
    assert!(report.replies >= 200 && report.cpu_ns > 0 && report.events > 0 && report.waits > 0);
    assert!(report.latencies.min() > 0 && report.latencies.max() <= report.wall_ns);
    assert_eq!(server.connections(), 4);
}

#[test]
fn a_wrong_byte_is_a_mismatch_and_no_throughput() {
    const WRONG: &[u8] =
        b"HTTP/1.1 200 OK\r\nDate: Sat, 21 Nov 2026 01:37:55 GMT\r\nContent-Length: 5\r\n\r\nhellO";
    let server = Server::start(|peer| {
        while peer.request() {
            if peer.requests() % 10 == 9 {
                peer.mark();
                peer.send(WRONG);
            } else {
                peer.answer(HELLO);
            }
        }
    });
    let (report, answers) = one_block(&server, server.plan(3));
    assert_eq!(report.errors, Errors { mismatch: server.marks(), ..Errors::default() });
    assert_eq!((report.replies, report.wrong), (answers, server.marks()));
    let wrong = report.first_wrong.unwrap();
    assert_eq!(wrong.got, "5 bytes: \"hellO\"");
    assert!(wrong.expected.contains("differing from byte 4"), "{}", wrong.expected);
    assert!(report.first_error.unwrap().starts_with("wrong answer from 127.0.0.1:"));
}

#[test]
fn a_wrong_status_is_counted_as_such_and_the_connection_is_kept() {
    let server = Server::start(|peer| {
        while peer.request() {
            if peer.requests() % 7 == 6 {
                peer.mark();
                peer.send(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nbusy");
            } else {
                peer.answer(HELLO);
            }
        }
    });
    let (report, answers) = one_block(&server, server.plan(2));
    assert_eq!(report.errors, Errors { status: server.marks(), ..Errors::default() });
    assert_eq!((report.replies, report.reconnects), (answers, 0));
    assert!(report.first_wrong.unwrap().got.contains("503 Service Unavailable"));
}

#[test]
fn an_expected_error_status_is_a_right_answer() {
    let server = Server::answering(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    let expect = Expect { status: Some(404), body: None };
    let (report, answers) = one_block(&server, SessionPlan { expect, ..server.plan(1) });
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
}

#[test]
fn an_answer_in_two_pieces_is_the_same_wherever_it_is_cut() {
    let server = Server::start(|peer| {
        while peer.request() {
            let cut = (peer.requests() % HELLO.len() as u64) as usize;
            peer.answer(&HELLO[..cut]);
            peer.send(&HELLO[cut..]);
        }
    });
    let (report, answers) = one_block(&server, server.plan(2));
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
}

#[test]
fn chunked_answers_are_checked_without_their_frames() {
    let server = Server::answering(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nT: 1\r\n\r\n",
    );
    let (report, answers) = one_block(&server, server.plan(2));
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
}

#[test]
fn an_announced_close_is_followed_by_a_new_connection_and_is_no_error() {
    let server = Server::start(|peer| {
        if peer.request() {
            peer.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let (report, answers) = one_block(&server, server.plan(4));
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
    // At the end of the block up to four connections were made that carried no request any more.
    assert!(report.reconnects.abs_diff(answers) <= 4, "{} for {answers}", report.reconnects);
}

/// Planted fault: the moment between two connections is time in which the server was away.
#[test]
fn a_server_that_ends_its_only_connection_after_each_answer_is_never_away() {
    let server = Server::start(|peer| {
        if peer.request() {
            peer.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
        }
    });
    let (report, _) = one_block(&server, server.plan(1));
    assert!(report.reconnects > 50, "{} connections", report.reconnects);
    assert_eq!((report.down_ns, report.errors), (0, Errors::default()));
}

/// Of each batch of four, the third answer says that it is the last. Planted fault: what is owed behind it is forgotten.
#[test]
fn what_an_announced_close_leaves_of_a_batch_is_counted() {
    const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
    let server = Server::start(|peer| {
        // A connection asks once before its first batch, unless it takes the place of another.
        let answers =
            if peer.counts.connections.load(std::sync::atomic::Ordering::SeqCst) == 1 { 3 } else { 2 };
        for _ in 0..answers {
            if !peer.request() || !peer.answer(HELLO) {
                return;
            }
        }
        if peer.request() {
            peer.answer(LAST);
            peer.wait_for_close();
        }
    });
    let (report, answers) = one_block(&server, SessionPlan { pipeline: 4, ..server.plan(1) });
    let batches = report.errors.read;
    assert_eq!(report.errors, Errors { read: batches, ..Errors::default() });
    assert_eq!((report.replies, report.unanswered, report.timed_out), (answers, batches, 0));
    assert_eq!(answers, 3 * batches);
    let error = report.first_error.unwrap();
    assert!(error.ends_with("ended before its batch was answered whole; 1 missing"), "{error}");
}

#[test]
fn an_answer_that_ends_with_its_connection_is_right() {
    let server = Server::start(|peer| {
        if peer.request() {
            peer.answer(b"HTTP/1.1 200 OK\r\n\r\nhe");
            peer.send(b"llo");
        }
    });
    let (report, answers) = one_block(&server, server.plan(4));
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
    // At the end of the block up to four connections were made that carried no request any more.
    assert!(report.reconnects.abs_diff(answers) <= 4, "{} for {answers}", report.reconnects);
}

#[test]
fn a_body_larger_than_any_buffer_is_compared_while_it_streams() {
    const BODY: usize = 1_000_003;
    let body = || (0..BODY).map(|index| (index % 251) as u8).collect::<Vec<u8>>();
    let answer = [format!("HTTP/1.1 200 OK\r\nContent-Length: {BODY}\r\n\r\n").into_bytes(), body()].concat();
    let mut wrong = answer.clone();
    *wrong.last_mut().unwrap() ^= 1;
    for expect in [Expect::body(body()), Expect::same_body()] {
        let (answer, wrong) = (answer.clone(), wrong.clone());
        let server = Server::start(move |peer| {
            while peer.request() {
                if peer.requests() % 5 == 4 {
                    peer.mark();
                    peer.send(&wrong);
                } else {
                    peer.answer(&answer);
                }
            }
        });
        let (report, answers) = one_block(&server, SessionPlan { expect, ..server.plan(2) });
        assert_eq!(report.errors, Errors { mismatch: server.marks(), ..Errors::default() });
        assert_eq!(report.replies, answers);
        assert!(report.sample_answer.is_empty(), "a sample of a megabyte is not kept");
    }
}

#[test]
fn pipelined_batches_are_answered_in_whole_and_in_parts() {
    for parts in [1, 3] {
        let server = Server::start(move |peer| {
            while peer.request() {
                for piece in HELLO.chunks(HELLO.len().div_ceil(parts)) {
                    peer.send(piece);
                }
                peer.counts.answers.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        let plan = SessionPlan { pipeline: 16, ..server.plan(2) };
        let (report, _) = one_block(&server, plan);
        assert_eq!(report.errors, Errors::default());
        assert_eq!(report.replies % 16, 0, "batches are sent whole");
        assert_eq!(report.replies, report.latencies.len());
    }
}

#[test]
fn the_first_answer_can_be_what_all_others_must_be() {
    let server = Server::start(|peer| {
        while peer.request() {
            if peer.requests() == 50 {
                peer.mark();
                peer.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother");
            } else {
                peer.answer(HELLO);
            }
        }
    });
    let plan = SessionPlan { expect: Expect::same_body(), ..server.plan(4) };
    let (report, answers) = one_block(&server, plan);
    assert_eq!(report.errors, Errors { mismatch: 1, ..Errors::default() });
    assert_eq!(report.replies, answers);
}

#[test]
fn a_long_request_is_sent_in_parts_while_the_server_reads_slowly() {
    const BODY: usize = 6 << 20;
    let server = Server::start(|peer| while peer.request() && peer.body(BODY) && peer.answer(HELLO) {});
    let url = format!("http://{}/", server.addr());
    let target = Target::builder(&url).method("POST").body(vec![b'x'; BODY]).build().unwrap();
    let (report, answers) = within_deadline({
        let (plan, counts) = (SessionPlan { target, ..server.plan(2) }, server.counts.clone());
        move || {
            let mut session = Session::open(&plan).unwrap();
            let spec = dyno_load::BlockSpec { replies_min: 6, ..short() };
            let report = session.block(&spec, &mut |_| {});
            (report, counts.answers.load(std::sync::atomic::Ordering::SeqCst) - 2)
        }
    });
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
}

#[test]
fn a_unix_socket_is_loaded_like_any_other() {
    use std::os::unix::net::UnixListener;
    let path = std::env::temp_dir().join(format!("dyno-load-{}.sock", std::process::id()));
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4_096];
        while stream.read(&mut buffer).is_ok_and(|count| count > 0) && stream.write_all(HELLO).is_ok() {}
    });
    let over = dyno_sys::socket::Addr::Unix(path.clone());
    let target = Target::builder("http://localhost/").over(over).build().unwrap();
    let plan = SessionPlan {
        target,
        expect: Expect::body("hello"),
        connections: 1,
        pipeline: 1,
        timeout_ns: 5_000_000_000,
    };
    let report = within_deadline(move || Session::open(&plan).unwrap().block(&short(), &mut |_| {}));
    std::fs::remove_file(&path).unwrap();
    assert!(report.replies >= 200);
    assert_eq!(report.errors, Errors::default());
}

/// Reads a request with a body of so many bytes, and answers it, until the client is gone.
fn answer_bodies(mut stream: std::os::unix::net::UnixStream, body: usize) {
    use std::io::{Read, Write};
    let (mut held, mut piece) = (Vec::new(), [0; 4_096]);
    loop {
        let end = held.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|head| head + 4 + body);
        match end.filter(|end| *end <= held.len()) {
            Some(end) => {
                held.drain(..end);
                if stream.write_all(HELLO).is_err() {
                    return;
                }
            }
            None => match stream.read(&mut piece) {
                Ok(count) if count > 0 => held.extend_from_slice(&piece[..count]),
                _ => return,
            },
        }
    }
}

/// A socket takes some 200 kB at once, a batch here is 512 kB: the first requests are answered while the last are unsent.
/// Planted fault: an answer in the midst of a batch that is still being sent ends its connection.
#[test]
fn a_batch_larger_than_the_sockets_buffer_is_answered_whole() {
    const BODY: usize = 8_192;
    let path = std::env::temp_dir().join(format!("dyno-load-batch-{}.sock", std::process::id()));
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map(Result::unwrap) {
            std::thread::spawn(move || answer_bodies(stream, BODY));
        }
    });
    let over = dyno_sys::socket::Addr::Unix(path.clone());
    let target = Target::builder("http://localhost/").method("POST").body(vec![b'x'; BODY]).over(over);
    let plan = SessionPlan {
        target: target.build().unwrap(),
        expect: Expect::body("hello"),
        connections: 2,
        pipeline: 64,
        timeout_ns: 10_000_000_000,
    };
    let report = within_deadline(move || Session::open(&plan).unwrap().block(&short(), &mut |_| {}));
    std::fs::remove_file(&path).unwrap();
    assert_eq!((report.errors, report.unanswered, report.reconnects), (Errors::default(), 0, 0));
    assert!(report.replies >= 200 && report.replies % 64 == 0, "{} right answers", report.replies);
}

/// Four are accepted, greeted, and ended after their second answer; then nobody is accepted any more.
#[test]
fn a_socket_file_whose_queue_stays_full_delays_no_block_and_is_reported() {
    use dyno_sys::socket::{Addr, ListenOptions, listen};
    use std::io::{Read, Write};
    let path = std::env::temp_dir().join(format!("dyno-load-full-{}.sock", std::process::id()));
    let options = ListenOptions { backlog: 1, ..ListenOptions::default() };
    let listener =
        std::os::unix::net::UnixListener::from(listen(&Addr::Unix(path.clone()), &options).unwrap());
    listener.set_nonblocking(false).unwrap();
    let accepting = std::thread::spawn({
        let listener = listener.try_clone().unwrap();
        move || {
            for _ in 0..4 {
                let (mut stream, _) = listener.accept().unwrap();
                std::thread::spawn(move || {
                    let mut buffer = [0; 4_096];
                    for _ in 0..2 {
                        if stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                            stream.write_all(HELLO).unwrap();
                        }
                    }
                });
            }
        }
    });
    let target = Target::builder("http://localhost/").over(Addr::Unix(path.clone())).build().unwrap();
    let plan = SessionPlan {
        target,
        expect: Expect::body("hello"),
        connections: 4,
        pipeline: 1,
        timeout_ns: 1_000_000_000,
    };
    let spec = dyno_load::BlockSpec { replies_min: 0, measure_ns: 3_000_000_000, ..short() };
    let report = within_deadline(move || Session::open(&plan).unwrap().block(&spec, &mut |_| {}));
    accepting.join().unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(report.errors.connect > 0, "{report:?}");
    assert!(report.first_error.is_some(), "{report:?}");
}

#[test]
fn both_edges_are_called_in_order_and_settling_is_not_counted() {
    let server = Server::answering(HELLO);
    let plan = server.plan(2);
    let counts = server.counts.clone();
    let (edges, at_settle_end, at_end, report) = within_deadline(move || {
        let mut session = Session::open(&plan).unwrap();
        let mut seen = Vec::new();
        let spec = dyno_load::BlockSpec { settle_ns: 500_000_000, ..short() };
        let report = session.block(&spec, &mut |edge| {
            seen.push((edge, counts.answers.load(std::sync::atomic::Ordering::SeqCst)));
        });
        (seen.iter().map(|seen| seen.0).collect::<Vec<_>>(), seen[0].1, seen[1].1, report)
    });
    assert_eq!(edges, [Edge::SettleEnd, Edge::End]);
    assert!(at_settle_end > 2, "nothing was sent while settling");
    // What was answered but not yet received at the edge is received, and counted, after it.
    let answered = at_end - at_settle_end;
    assert!((answered..=answered + 2).contains(&report.replies), "{} for {answered}", report.replies);
}

#[test]
fn a_session_runs_block_after_block_over_the_same_connections() {
    let server = Server::answering(HELLO);
    let plan = server.plan(3);
    let replies: u64 = within_deadline(move || {
        let mut session = Session::open(&plan).unwrap();
        (0..5).map(|_| session.block(&short(), &mut |_| {}).replies).sum()
    });
    assert_eq!(replies, server.answers() - 3);
    assert_eq!(server.connections(), 3);
}

#[test]
fn the_open_session_knows_its_first_answer() {
    let server = Server::answering(HELLO);
    let plan = SessionPlan { expect: Expect::same_body(), ..server.plan(1) };
    let session = Session::open(&plan).unwrap();
    assert_eq!(session.sample_answer(), HELLO);
    assert_eq!(session.expect().body, Some(Body::Bytes(b"hello".to_vec())));
}

#[test]
fn a_plan_without_sense_opens_nothing() {
    let server = Server::answering(HELLO);
    for plan in [
        SessionPlan { connections: 0, ..server.plan(1) },
        SessionPlan { pipeline: 0, ..server.plan(1) },
        SessionPlan { pipeline: usize::MAX, ..server.plan(1) },
        SessionPlan { timeout_ns: 0, ..server.plan(1) },
    ] {
        assert!(matches!(Session::open(&plan), Err(OpenError::Plan { .. })));
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_server_that_counts_its_own_requests_agrees_while_it_closes_now_and_then() {
    let script = |peer: &mut Peer| {
        for left in (0..20).rev() {
            if !peer.request() {
                return;
            }
            if left == 0 {
                peer.answer(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello");
            } else {
                peer.answer(HELLO);
            }
        }
    };
    let server = Server::start(script);
    let (report, answers) = one_block(&server, server.plan(5));
    assert_eq!((report.replies, report.errors), (answers, Errors::default()));
    assert!(report.reconnects >= answers / 20 - 5);
}
