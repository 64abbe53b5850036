//! Judging what was measured: figures of this machine in place of figures from elsewhere, and what a server does for a reply.

#![allow(clippy::unwrap_used)]

use dyno_record::audit::{AuditFinding, Goal, Source};
use dyno_record::fact::Fact;
use dyno_record::facts::{
    Chain, Facts, Figure, Filters, Locality, Measured, Packets, Rule, Server, Tap, Threads, Watched,
};

use super::audit;

fn figure(value: f64) -> Figure {
    Figure { value, interval: [0.9 * value, 1.1 * value], n: 6 }
}

fn packets(packet_ns: f64, percent: f64) -> Fact<Packets> {
    Fact::Value(Packets {
        what: "a copy of 300 rules, to port 80".into(),
        request_us: figure(10.0),
        packet_ns: figure(packet_ns),
        percent: figure(percent),
    })
}

/// A server behind three filters and 300 rules, with ten taps: measured.
fn measured() -> Facts {
    let drop = Rule { tests: vec!["address".into()], action: "drop".into(), ..Rule::default() };
    let chain = Chain {
        family: "inet".into(),
        hook: Some("input".into()),
        rules: vec![drop; 300],
        ..Chain::default()
    };
    let threads = Threads { count: 2, serving: 1, seccomp_filters: [(3, 2)].into(), ..Threads::default() };
    let mut facts = Facts {
        server: Some(Server { pid: 42, threads: Fact::Value(threads), ..Server::default() }),
        measured: Some(Measured {
            call_ns: Fact::Value(figure(130.0)),
            request_us: Fact::Value(figure(10.0)),
            filters: Fact::Value(Filters {
                tid: 42,
                count: 3,
                instructions: 900,
                call_ns: figure(330.0),
                extra_ns: figure(200.0),
            }),
            rules: packets(5_000.0, 50.0),
            tap: packets(250.0, 4.8),
            ..Measured::default()
        }),
        ..Facts::default()
    };
    facts.netfilter.nftables = Fact::Value(vec![chain]);
    let tap = Tap { protocol: 3, pid: Some(9), owner: "tap".into(), ..Tap::default() };
    facts.network.taps = Fact::Value(vec![tap; 10]);
    facts
}

fn watched(change: impl FnOnce(&mut Watched)) -> Facts {
    let mut seen = Watched {
        replies: 100,
        calls: [("epoll_wait", 100), ("recvfrom", 100), ("sendto", 100)]
            .map(|(n, c)| (n.to_owned(), c))
            .into(),
        receives: 100,
        sends: 100,
        ..Watched::default()
    };
    change(&mut seen);
    let mut facts = measured();
    facts.measured.as_mut().unwrap().server = Fact::Value(seen);
    facts
}

fn found(facts: &Facts, id: &str) -> Option<AuditFinding> {
    audit(facts, Goal::Throughput).findings.into_iter().find(|one| one.id == id)
}

#[test]
fn what_was_measured_here_stands_in_place_of_what_was_elsewhere() {
    let facts = measured();
    for (id, range) in
        [("nf.linear", [45.0, 55.0]), ("tap.packet", [14.3, 35.5]), ("app.seccomp", [5.1, 6.2])]
    {
        let gain = found(&facts, id).unwrap().gain;
        assert_eq!(gain.source, Source::MeasuredHere, "{id}");
        assert_eq!(gain.percent, Some(range), "{id}: {}", gain.of);
    }
    let mut without = facts;
    without.measured = None;
    for id in ["nf.linear", "tap.packet", "app.seccomp"] {
        assert_eq!(found(&without, id).unwrap().gain.source, Source::MeasuredElsewhere, "{id}");
    }
}

#[test]
fn a_figure_below_nothing_is_nothing() {
    let mut facts = measured();
    facts.measured.as_mut().unwrap().rules = packets(-20.0, -0.4);
    assert_eq!(found(&facts, "nf.linear").unwrap().gain.percent, Some([0.0, 0.0]));
}

#[test]
fn a_server_that_receives_and_sends_once_for_a_reply_has_nothing_to_change() {
    let judged = audit(&watched(|_| {}), Goal::Throughput);
    for id in ["app.rw", "app.syscalls", "app.split", "app.log"] {
        assert!(judged.fine.iter().any(|one| one.id == id), "{id}: {:?}", judged.findings);
    }
}

#[test]
fn each_habit_of_a_server_is_named_by_itself() {
    type Habit = (&'static str, fn(&mut Watched));
    let habits: [Habit; 5] = [
        ("app.rw", |seen| (seen.writes, seen.sends) = (100, 0)),
        ("app.split", |seen| seen.sends = 200),
        ("app.log", |seen| seen.file_writes = 100),
        ("app.log", |seen| seen.syncs = 90),
        ("app.syscalls", |seen| {
            seen.calls.insert("getpid".into(), 300);
        }),
    ];
    for (id, habit) in habits {
        let judged = audit(&watched(habit), Goal::Throughput);
        let ids = ["app.rw", "app.syscalls", "app.split", "app.log"];
        let named: Vec<&str> =
            judged.findings.iter().map(|one| one.id.as_str()).filter(|one| ids.contains(one)).collect();
        assert_eq!(named, [id]);
    }
    // Planted fault: a line that waits for the disk promised no more than one that is written.
    let [written, synced] = [watched(|seen| seen.file_writes = 100), watched(|seen| seen.syncs = 90)]
        .map(|facts| found(&facts, "app.log").unwrap().gain.percent.unwrap());
    assert!(synced[0] > written[1], "{written:?} {synced:?}");
    let calls = found(
        &watched(|seen| {
            seen.calls.insert("getpid".into(), 300);
        }),
        "app.syscalls",
    )
    .unwrap();
    assert_eq!(calls.gain.source, Source::MeasuredHere);
    assert!(calls.found.starts_with("6.0 for a reply: getpid 3.0"), "{}", calls.found);
}

#[test]
fn without_measuring_what_a_server_does_is_not_seen_and_it_is_said_how_it_would_be() {
    let mut facts = measured();
    facts.measured = None;
    let unseen = audit(&facts, Goal::Throughput).not_looked_at;
    assert!(unseen.iter().any(|one| one.id == "app.split" && one.needs.contains("--pid 42 --measure")));
}

#[test]
fn work_on_other_cpus_is_found_only_where_it_is_sure() {
    let mut facts = measured();
    let server = facts.server.as_mut().unwrap();
    server.options = Fact::Value(dyno_record::facts::SocketOptions::default());
    let of = |interval| Locality {
        server_cpus: vec![0],
        per_second: 9_000.0,
        elsewhere_percent: Figure { value: 50.0, interval, n: 16 },
    };
    facts.measured.as_mut().unwrap().locality = Fact::Value(of([40.0, 60.0]));
    assert!(found(&facts, "app.locality").unwrap().found.contains("50 % [40, 60]"));
    facts.measured.as_mut().unwrap().locality = Fact::Value(of([2.0, 98.0]));
    assert_eq!(found(&facts, "app.locality"), None);
}
