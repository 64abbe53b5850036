//! Crews and whole runs: several threads as one load, watched and stopped.
#![allow(clippy::unwrap_used)]

mod scripted;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_load::run::{Ended, LoadPlan, beside, load, step};
use dyno_load::{BlockSpec, Crew, Edge, Errors, Expect, OpenError, Placement, SessionPlan, Waited};
use scripted::{HELLO, Server, short, within_deadline};

/// Two load CPUs: the first and the last that this process may use, which may be the same one.
fn two_cpus() -> Placement {
    let allowed = dyno_sys::affinity::allowed();
    Placement::Pinned(vec![allowed.iter().next().unwrap(), allowed.iter().last().unwrap()])
}

/// A block that lasts until it is stopped.
fn endless() -> BlockSpec {
    let spec = BlockSpec { settle_ns: 0, measure_ns: u64::MAX, replies_min: 0, ..BlockSpec::default() };
    BlockSpec { ns_max: 0, drain_ns_max: 2_000_000_000, ..spec }
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
    let no_cpu = Crew::open(&server.plan(2), &Placement::Pinned(Vec::new())).map(drop);
    assert!(matches!(no_cpu, Err(OpenError::Plan { .. })), "{no_cpu:?}");
    let too_few = Crew::open(&server.plan(1), &two_cpus()).map(drop);
    assert!(matches!(too_few, Err(OpenError::Plan { .. })), "{too_few:?}");
    let foreign = Crew::open(&server.plan(2), &Placement::Pinned(vec![8_191])).map(drop);
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
fn a_run_ends_after_its_duration_and_reports_its_progress() {
    let server = Server::answering(HELLO);
    let plan = LoadPlan::new(server.plan(2), Placement::Unpinned(1), 1_500_000_000);
    let (report, seen) = within_deadline(move || {
        let mut seen = Vec::new();
        let report = load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |now| seen.push(*now)).unwrap();
        (report, seen)
    });
    assert_eq!((report.ended, report.block.errors), (Ended::Whole, Errors::default()));
    assert_eq!(report.block.replies, server.answers() - 2);
    assert!(report.block.wall_ns >= 1_500_000_000);
    // One for each whole second; a stall may swallow all but one.
    assert!((1..=report.block.wall_ns / 1_000_000_000).contains(&(seen.len() as u64)), "{}", seen.len());
    assert!(seen[0].replies > 0 && seen[0].replies <= report.block.replies && seen[0].errors == 0);
    assert!(report.replies_per_s() > 0.0 && report.bytes_per_s() > report.replies_per_s());
}

#[test]
fn a_run_that_is_stopped_drains_and_reports() {
    let server = Server::answering(HELLO);
    let plan = LoadPlan::new(server.plan(2), two_cpus(), 3_600_000_000_000);
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

/// Planted fault: only a run that is shorter than its plan was stopped.
#[test]
fn a_run_that_is_stopped_while_its_last_answers_are_awaited_was_stopped() {
    let stop = std::sync::Arc::new(AtomicBool::new(false));
    let server = Server::start({
        let stop = stop.clone();
        move |peer| {
            // The first is asked when the connection is opened.
            if peer.request() && peer.answer(HELLO) && peer.request() {
                dyno_sys::clock::sleep_ns(500_000_000);
                stop.store(true, Ordering::SeqCst);
                peer.answer(HELLO);
            }
        }
    });
    let plan = LoadPlan::new(server.plan(1), Placement::Unpinned(1), 100_000_000);
    let report = within_deadline(move || load(&plan, &stop, &mut |_| {}, &mut |_| {}).unwrap());
    assert!(report.block.loaded.wall_ns >= 100_000_000, "{:?}", report.block.loaded);
    assert_eq!(report.ended, Ended::Stopped);
}

/// Planted fault: answers that take longer than two seconds, and may take thirty, have timed out when the run is over.
#[test]
fn a_run_awaits_the_last_answers_of_a_slow_server_and_blames_none() {
    let server = Server::start(|peer| {
        while peer.request() {
            dyno_sys::clock::sleep_ns(2_300_000_000);
            peer.answer(HELLO);
        }
    });
    let session = SessionPlan { timeout_ns: 30_000_000_000, ..server.plan(1) };
    let plan = LoadPlan::new(session, Placement::Unpinned(1), 100_000_000);
    let report =
        within_deadline(move || load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |_| {}).unwrap());
    let block = &report.block;
    assert_eq!((block.errors, block.timed_out, block.unfinished()), (Errors::default(), 0, 0));
    assert_eq!((block.replies, block.loaded.replies, report.ended), (1, 0, Ended::Whole));
    assert!(
        block.latency_at(0.99).known().is_some_and(|ns| ns >= 2_300_000_000),
        "{:?}",
        block.latency_at(0.99)
    );
}

/// Planted fault: who opens looks for answers and for the time, and for nothing else.
#[test]
fn a_run_that_is_stopped_while_it_is_opened_says_how_far_it_came() {
    let server = Server::start(|peer| {
        while peer.request() && peer.requests() <= 3 && peer.answer(HELLO) {}
        peer.wait_for_close();
    });
    let session = SessionPlan { timeout_ns: 3_600_000_000_000, ..server.plan(5) };
    let plan = LoadPlan::new(session, two_cpus(), 3_600_000_000_000);
    let (stop, counts) = (std::sync::Arc::new(AtomicBool::new(false)), server.counts.clone());
    std::thread::spawn({
        let stop = stop.clone();
        move || {
            // The second thread's first connection is asked alone, when the first one's three were answered.
            scripted::wait_until("a fourth request", || counts.requests.load(Ordering::SeqCst) > 3);
            stop.store(true, Ordering::SeqCst);
        }
    });
    let error = within_deadline(move || load(&plan, &stop, &mut |_| {}, &mut |_| {}).map(drop).unwrap_err());
    assert!(matches!(error, OpenError::Stopped { answered: 3, connections: 5, .. }), "{error:?}");
}

/// Planted fault: the first answer is awaited for the whole timeout, however short the run is to be.
#[test]
fn a_server_that_accepts_and_is_silent_holds_a_short_run_for_seconds() {
    let server = Server::start(scripted::Peer::wait_for_close);
    let session = SessionPlan { timeout_ns: 30_000_000_000, ..server.plan(2) };
    let plan = LoadPlan::new(session, Placement::Unpinned(1), 100_000_000);
    let error = within_deadline(move || {
        load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |_| {}).map(drop).unwrap_err()
    });
    assert!(matches!(error, OpenError::TimedOut { timeout_ns: 5_000_000_000, .. }), "{error:?}");
}

#[test]
fn first_answers_are_awaited_for_three_times_the_run_five_seconds_at_least_and_never_beyond_the_timeout() {
    let server = Server::answering(HELLO);
    let second = 1_000_000_000;
    let wait = |duration_s: u64, timeout_s: u64| {
        let session = SessionPlan { timeout_ns: timeout_s * second, ..server.plan(1) };
        let duration_ns = duration_s.saturating_mul(second);
        LoadPlan::new(session, Placement::Caller, duration_ns).opening_ns_max / second
    };
    assert_eq!(
        [(1, 2), (1, 30), (3, 30), (60, 30), (u64::MAX, 30)].map(|(d, t)| wait(d, t)),
        [2, 5, 9, 30, 30]
    );
}

/// Planted fault: what lasts a day at most awaits its first answer for the whole timeout.
#[test]
fn a_load_beside_a_look_awaits_first_answers_for_three_times_the_look() {
    let server = Server::answering(HELLO);
    let session = SessionPlan { timeout_ns: 3_600_000_000_000, ..server.plan(1) };
    let plan = LoadPlan::new(session, Placement::Caller, 1).beside(4_000_000_000);
    assert_eq!(plan.opening_ns_max, 12_000_000_000);
    assert!(plan.duration_ns > plan.opening_ns_max, "it runs until it is told to stop");
}

/// Planted fault: what two threads are without a connection is counted twice, or not at all.
#[test]
fn a_server_that_dies_under_two_threads_leaves_time_without_any_connection() {
    let mut server = Server::start(|peer| {
        while peer.request() && peer.counts.answers.load(Ordering::SeqCst) < 20 {
            peer.answer(HELLO);
        }
    });
    let plan = LoadPlan::new(server.plan(2), two_cpus(), u64::MAX);
    let (report, ()) = within_deadline(move || {
        beside(&plan, &AtomicBool::new(false), &mut |_| {}, |load| {
            scripted::wait_until("answers are counted", || load.progress().replies > 0);
            server.stop_listening();
            let before = load.progress().errors;
            scripted::wait_until("nobody connects", || load.progress().errors > before + 20);
            // One of the threads may not have come so far: it needs a CPU once in this time.
            std::thread::sleep(Duration::from_millis(500));
        })
        .unwrap()
    });
    let (down_ns, wall_ns) = (report.block.down_ns, report.block.loaded.wall_ns);
    assert!(down_ns > 20_000_000 && down_ns <= wall_ns, "no connection for {down_ns} of {wall_ns} ns");
    assert!(report.down() > 0.0 && report.down() <= 1.0);
}

/// Planted fault: one thread's connections hang, and that is a server that answers nobody.
#[test]
fn a_server_is_silent_only_where_it_is_for_all_threads() {
    let server = Server::start(|peer| {
        let hangs = peer.counts.connections.load(Ordering::SeqCst) > 1;
        while peer.request() && peer.answer(HELLO) && !hangs {}
        peer.wait_for_close();
    });
    let plan = LoadPlan::new(server.plan(2), two_cpus(), 100_000_000);
    let report =
        within_deadline(move || load(&plan, &AtomicBool::new(false), &mut |_| {}, &mut |_| {}).unwrap());
    assert_eq!((report.block.unfinished(), report.block.silent_ns, report.silent()), (1, 0, 0.0));
}

#[test]
fn a_load_beside_something_lasts_as_long_as_that_and_counts_meanwhile() {
    let server = Server::answering(HELLO);
    let plan = LoadPlan::new(server.plan(4), two_cpus(), u64::MAX);
    let counts = server.counts.clone();
    let (report, before, after) = within_deadline(move || {
        let (report, (before, after)) = beside(&plan, &AtomicBool::new(false), &mut |_| {}, |load| {
            let before = load.progress();
            scripted::wait_until("answers are counted", || load.progress().replies > before.replies + 100);
            assert_eq!(load.wait(Duration::ZERO), Waited::TimedOut, "it goes on by itself");
            (before, load.progress())
        })
        .unwrap();
        (report, before, after)
    });
    assert!(after.rate_since(&before).unwrap() > 0.0);
    assert!(report.block.replies >= after.replies && after.errors == 0);
    assert_eq!((report.ended, report.block.drained, report.block.threads), (Ended::Stopped, true, 2));
    let end = counts.answers.load(Ordering::SeqCst);
    assert_eq!(report.block.replies, end - 4, "nothing is sent after the look is over");
}

#[test]
fn a_load_ends_with_the_look_that_panics() {
    let server = Server::answering(HELLO);
    let plan = server.plan(2);
    let outcome = within_deadline(move || {
        let mut crew = Crew::open(&plan, &two_cpus()).unwrap();
        let look = std::panic::AssertUnwindSafe(|| {
            crew.beside(&endless(), &AtomicBool::new(false), &mut |_| {}, |_| panic!("while it looked"))
        });
        std::panic::catch_unwind(look).map(drop)
    });
    assert_eq!(outcome.unwrap_err().downcast_ref::<&str>(), Some(&"while it looked"));
}

#[test]
fn threads_run_where_they_were_placed_from_their_first_connection_on() {
    let server = Server::answering(HELLO);
    let first = dyno_sys::affinity::allowed().iter().next().unwrap();
    let allowed = dyno_sys::affinity::allowed();
    let pinned = dyno_sys::affinity::CpuSet::single(first);
    for (placement, wanted) in [
        (Placement::Pinned(vec![first]), pinned),
        (Placement::Unpinned(1), allowed.clone()),
        (Placement::Caller, allowed),
    ] {
        let plan = server.plan(1);
        let seen = within_deadline(move || {
            let mut crew = Crew::open(&plan, &placement).unwrap();
            let mut seen = Vec::new();
            crew.block(&short(), &mut |_edge| seen.push(dyno_sys::affinity::allowed()));
            seen
        });
        assert_eq!(seen, [wanted.clone(), wanted], "at both edges");
    }
}

#[test]
fn a_block_of_the_callers_own_runs_on_its_thread_and_beside_something_on_another() {
    let server = Server::answering(HELLO);
    let plan = server.plan(1);
    within_deadline(move || {
        let mut crew = Crew::open(&plan, &Placement::Caller).unwrap();
        let caller = std::thread::current().id();
        let mut on = Vec::new();
        crew.block(&short(), &mut |_edge| on.push(std::thread::current().id()));
        assert!(on.iter().all(|id| *id == caller));
        let mut beside = None;
        let mut at_edge = |_edge| beside = Some(std::thread::current().id());
        crew.beside(&short(), &AtomicBool::new(false), &mut at_edge, |load| load.wait_until_over());
        assert!(beside.is_some_and(|id| id != caller));
    });
}

#[test]
fn a_step_of_a_sweep_has_its_own_connections_and_no_idle_thread() {
    let server = Server::answering(HELLO);
    let plan = LoadPlan::new(server.plan(64), two_cpus(), 1);
    let (one, four) = within_deadline(move || {
        let go = AtomicBool::new(false);
        (step(&plan, 1, &short(), 2, &go).unwrap(), step(&plan, 4, &short(), 3, &go).unwrap())
    });
    let shape = |reports: &[dyno_load::BlockReport]| (reports.len(), reports[0].threads);
    assert_eq!((shape(&one), shape(&four), server.connections()), ((2, 1), (3, 2), 5));
}

#[test]
fn a_target_that_ends_meanwhile_is_in_the_report_and_never_waited_for() {
    // After twenty answers every request finds its connection closed.
    let server = Server::start(|peer| {
        while peer.request() && peer.counts.answers.load(Ordering::SeqCst) < 20 {
            peer.answer(HELLO);
        }
    });
    let plan = LoadPlan::new(server.plan(2), Placement::Unpinned(1), u64::MAX);
    let (report, ()) = within_deadline(move || {
        beside(&plan, &AtomicBool::new(false), &mut |_| {}, |load| {
            scripted::wait_until("errors are counted", || load.progress().errors > 0);
        })
        .unwrap()
    });
    assert!(report.block.errors.read > 0, "{:?}", report.block.errors);
    let words = report.block.first_error.unwrap();
    assert!(words.contains("closed the connection before its answer was whole"), "{words}");
}
