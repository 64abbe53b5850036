//! Crews and whole runs: several threads as one load, watched and stopped.
#![allow(clippy::unwrap_used)]

mod scripted;

use std::sync::atomic::{AtomicBool, Ordering};

use dyno_load::run::{Ended, LoadPlan, load};
use dyno_load::{Crew, Edge, Errors, Expect, OpenError, SessionPlan};
use scripted::{HELLO, Server, short, within_deadline};

/// Two load CPUs: the first and the last that this process may use, which may be the same one.
fn two_cpus() -> [usize; 2] {
    let allowed = dyno_sys::affinity::allowed();
    [allowed.iter().next().unwrap(), allowed.iter().last().unwrap()]
}

#[test]
fn a_crew_counts_what_all_its_threads_received() {
    let server = Server::answering(HELLO);
    let plan = server.plan(5);
    let counts = server.counts.clone();
    let (report, edges, threads, answered) = within_deadline(move || {
        let mut crew = Crew::open(&plan, &two_cpus()).unwrap();
        let before = counts.answers.load(Ordering::SeqCst);
        let mut edges = Vec::new();
        let report = crew.block(&short(), &mut |edge| edges.push(edge));
        (report, edges, crew.threads(), counts.answers.load(Ordering::SeqCst) - before)
    });
    assert_eq!((report.replies, report.errors), (answered, Errors::default()));
    assert_eq!(report.latencies.len(), answered);
    assert_eq!((threads, report.threads, report.unpinned), (2, 2, 0));
    assert_eq!(edges, [Edge::SettleEnd, Edge::End]);
    assert_eq!((server.connections(), report.drained), (5, true));
    assert_eq!(report.sample_answer, HELLO);
}

#[test]
fn nothing_is_in_flight_on_any_thread_when_the_end_is_called() {
    let server = Server::answering(HELLO);
    let (plan, counts) = (server.plan(4), server.counts.clone());
    within_deadline(move || {
        let mut crew = Crew::open(&plan, &two_cpus()).unwrap();
        for _ in 0..10 {
            let mut at_end = 0;
            crew.block(&short(), &mut |edge| {
                if edge == Edge::End {
                    at_end = counts.answers.load(Ordering::SeqCst);
                }
            });
            assert_eq!(counts.answers.load(Ordering::SeqCst), at_end);
        }
    });
}

#[test]
fn the_first_answer_of_a_crew_binds_all_its_sessions() {
    // Every connection has its own answer: the second session's must not be taken for right.
    let server = Server::start(|peer| {
        let number = peer.counts.connections.load(Ordering::SeqCst);
        let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{}", number.min(9));
        while peer.request() && peer.answer(answer.as_bytes()) {}
    });
    let plan = SessionPlan { expect: Expect::same_body(), ..server.plan(2) };
    let error = within_deadline(move || Crew::open(&plan, &two_cpus()).map(drop).unwrap_err());
    assert!(matches!(&error, OpenError::WrongAnswer { got, .. } if got == "1 bytes: \"2\""), "{error:?}");
}

#[test]
fn a_crew_that_cannot_be_is_not_opened() {
    let server = Server::answering(HELLO);
    let no_cpu = Crew::open(&server.plan(2), &[]).map(drop);
    assert!(matches!(no_cpu, Err(OpenError::Plan { .. })), "{no_cpu:?}");
    let too_few = Crew::open(&server.plan(1), &two_cpus()).map(drop);
    assert!(matches!(too_few, Err(OpenError::Plan { .. })), "{too_few:?}");
    let foreign = Crew::open(&server.plan(2), &[8_191]).map(drop);
    assert!(matches!(foreign, Err(OpenError::Cpu { cpu: 8_191, .. })), "{foreign:?}");
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_panic_at_an_edge_reaches_the_caller_and_hangs_nobody() {
    let server = Server::answering(HELLO);
    let plan = server.plan(2);
    let outcome = within_deadline(move || {
        let mut crew = Crew::open(&plan, &two_cpus()).unwrap();
        let block = std::panic::AssertUnwindSafe(|| crew.block(&short(), &mut |_| panic!("at the edge")));
        std::panic::catch_unwind(block).map(drop)
    });
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"at the edge"));
}

#[test]
fn a_run_ends_after_its_duration_and_tells_its_progress() {
    let server = Server::answering(HELLO);
    let plan = LoadPlan { session: server.plan(2), cpus: vec![two_cpus()[0]], duration_ns: 1_200_000_000 };
    let (report, seen) = within_deadline(move || {
        let mut seen = Vec::new();
        let report = load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |now| seen.push(*now)).unwrap();
        (report, seen)
    });
    assert_eq!((report.ended, report.block.errors), (Ended::Whole, Errors::default()));
    assert_eq!(report.block.replies, server.answers() - 2);
    assert!(report.block.wall_ns >= 1_200_000_000);
    assert_eq!(seen.len(), 1);
    assert!(seen[0].replies > 0 && seen[0].replies <= report.block.replies && seen[0].errors == 0);
    assert!(report.replies_per_s() > 0.0 && report.bytes_per_s() > report.replies_per_s());
}

#[test]
fn a_run_that_is_told_to_stop_drains_and_reports() {
    let server = Server::answering(HELLO);
    let plan =
        LoadPlan { session: server.plan(2), cpus: two_cpus().to_vec(), duration_ns: 3_600_000_000_000 };
    let (stop, counts) = (std::sync::Arc::new(AtomicBool::new(false)), server.counts.clone());
    std::thread::spawn({
        let stop = stop.clone();
        move || {
            scripted::wait_until("the load runs", || counts.answers.load(Ordering::SeqCst) > 100);
            stop.store(true, Ordering::SeqCst);
        }
    });
    let report = within_deadline(move || load(&plan, &stop, &mut |_| {}, &mut |_| {}).unwrap());
    assert_eq!((report.ended, report.block.drained), (Ended::Stopped, true));
    assert_eq!((report.block.replies, report.block.errors), (server.answers() - 2, Errors::default()));
}
