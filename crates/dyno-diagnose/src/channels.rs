//! Requests of a Go program that wait in channels: for a turn, for a worker, for one of a pool's connections.
//!
//! A goroutine that waits in a channel is no fault: workers wait there for work, and handlers for news. It is one where it
//! serves a request, many more wait so than do anything, and those that do are at it all the time: then they are too few.
//! Who fans out waits for as many as work for it; who asks another server waits in its connection. Called by `pool`.

use dyno_record::observation::{Goroutines, Place};

use super::draft::{Draft, percent};
use super::facts::Facts;
use super::limits::pool_draft;
use super::names;

/// Fewer requests that wait are no line.
const WAITING_MIN: f64 = 4.0;
/// Requests that wait for each goroutine that does something: who fans out waits for one child at least.
const FOR_EACH_MIN: f64 = 4.0;
/// The same of those beside that are ready to run: who fans out has one of them ready for each that waits. A few were made ready a
/// moment ago, those that look up among them.
const FOR_EACH_READY_MIN: f64 = 2.0;
/// Of the looks, those at which somebody must be at work for the work to be what the others wait for: workers that are too few
/// never rest. Answers and news that others send come when they come.
const BUSY_MIN: f64 = 0.95;
/// Looks from which on a share of them is told.
const LOOKS_MIN: u32 = 10;

/// Of goroutines that wait to hand something over, or for one of a pool, the requests that clients wait for: then they serve these,
/// below whatever functions.
const OWED_FOR_EACH_MIN: f64 = 0.75;

/// What stands below all that is done for a request, in the servers that most use.
const SERVES: &[&str] = &[
    "net/http.(*conn).serve",
    "net/http.(*serverConn).runHandler",
    "net/http.(*http2serverConn).runHandler",
    "golang.org/x/net/http2.(*serverConn).runHandler",
    "google.golang.org/grpc.(*Server).handleStream",
    "github.com/valyala/fasthttp.(*Server).serveConn",
];

/// Between them, what calls the program's own part.
const HANDLES: &[&str] = &[
    "net/http.serverHandler.ServeHTTP",
    "google.golang.org/grpc.(*Server).process*",
    "golang.org/x/net/http2.(*serverConn).runHandler",
    "net/http.(*http2serverConn).runHandler",
    "github.com/valyala/fasthttp.(*Server).serveConn",
];

/// Waiting in channels of libraries for what another server answers.
const ANSWERS: &[&str] = &[
    "net/http.(*persistConn).roundTrip",
    "net/http.(*http2clientStream).*",
    "net/http.(*http2ClientConn).*",
    "golang.org/x/net/http2.(*ClientConn).*",
    "google.golang.org/grpc/internal/transport.*",
];

/// A server's own waiting for requests, and a client's for what comes in the background.
const IDLE: &[&str] = &[
    "net/http.(*connReader).backgroundRead",
    "net/http.(*persistConn).readLoop",
    "net.(*TCPListener).Accept*",
    "net.(*UnixListener).Accept*",
    "net.(*netFD).accept",
];

/// Waiting for one of a pool's few things to become free: nobody's news.
const POOLS: &[&str] = &[
    "database/sql.(*DB).conn",
    "golang.org/x/sync/semaphore.(*Weighted).Acquire",
    "github.com/jackc/puddle*.(*Pool*).Acquire",
    "github.com/redis/go-redis/*/internal/pool.(*ConnPool).*",
    "github.com/go-redis/redis/*/internal/pool.(*ConnPool).*",
];

/// Functions that say nothing of the place: Go's own primitives.
const PRIMITIVES: &[&str] = &["runtime.*", "internal/*", "sync.*", "sync/*", "context.*"];

/// Where the paths of Go's own packages begin, those in which something waits.
const GOS: &[&str] = &[
    "bufio", "bytes", "compress", "context", "crypto", "database", "encoding", "fmt", "html", "internal",
    "io", "log", "net", "os", "runtime", "sync", "syscall", "text", "time", "vendor",
];

/// Of the time of those for whom requests wait, what they are at a disk from which on it is the disk.
const AT_DISK_MIN: f64 = 0.5;

/// Requests in channels, against what is done.
#[derive(Debug, Default)]
struct Line<'o> {
    /// Goroutines that serve requests and wait in a channel.
    waiting: f64,
    /// Of them, those that wait to hand something over, and those that wait for one of a pool.
    sending: f64,
    pooled: f64,
    /// Goroutines that do something, or wait for the network or a clock in the middle of it.
    engaged: f64,
    /// Those that are ready to.
    ready: f64,
    /// Where most wait, and where most of those that do something sleep or wait.
    place: Option<&'o Place>,
    behind: Option<&'o Place>,
}

/// What is wrong, or may be, with how requests wait in channels.
pub(super) enum Found {
    Limit(Draft),
    /// It is not known whether they wait for work to be done.
    Perhaps(Draft),
}

/// Goroutines that serve requests and wait in channels while too few work for them and CPUs are free.
pub(super) fn requests_in_channels(facts: &Facts<'_>, spare: f64, is_asked: bool) -> Option<Found> {
    let seen = facts.seen.goroutines.as_ref().filter(|seen| seen.looks >= LOOKS_MIN)?;
    let line = Line::of(seen, owed(facts));
    let least = (FOR_EACH_MIN * line.engaged).max(FOR_EACH_READY_MIN * (line.engaged + line.ready));
    if line.waiting < WAITING_MIN.max(least) {
        return None;
    }
    let draft = draft(&line, seen, spare);
    let is_busy = f64::from(seen.busy_looks) >= BUSY_MIN * f64::from(seen.looks);
    // Who waits to hand over waits for nobody's news, nor does who waits for one of a pool.
    let is_known = |part: f64| part >= 0.5 * line.waiting;
    let is_known_line = is_known(line.sending) || is_known(line.pooled);
    let is_line = is_known_line || is_busy && is_asked && !is_at_a_disk(facts, &line);
    Some(if is_line { Found::Limit(draft) } else { Found::Perhaps(draft) })
}

/// Those for whom requests wait are at a disk most of the time: more of them would gather less for each time there. It is the disk that is
/// waited for, and its rule tells of it.
fn is_at_a_disk(facts: &Facts<'_>, line: &Line<'_>) -> bool {
    facts.off.as_ref().is_some_and(|off| {
        let there_ns = off.sum(|time| time.disk + time.syncing) as f64;
        there_ns >= AT_DISK_MIN * off.window_ns * line.engaged.max(1.0)
    })
}

/// Goroutines that serve requests and wait in a channel, on average.
pub(super) fn waiting(facts: &Facts<'_>) -> Option<f64> {
    Some(Line::of(facts.seen.goroutines.as_ref()?, owed(facts)).waiting)
}

/// Requests that were taken and not answered yet, as far as connections tell.
fn owed(facts: &Facts<'_>) -> f64 {
    facts.seen.packets.as_ref().and_then(|packets| packets.serving).map_or(0.0, |serving| serving.owed())
}

impl<'o> Line<'o> {
    fn of(seen: &'o Goroutines, owed: f64) -> Line<'o> {
        let by_hand = |place: &&Place| waits_for_its_turn(place) && !waits_in_line(place);
        let by_hand = seen.places.iter().filter(by_hand).map(|place| place.many).sum::<f64>();
        let known =
            seen.places.iter().filter(|place| waits_in_line(place)).map(|place| place.many).sum::<f64>();
        let serves_by_hand = by_hand > 0.0 && owed - known >= OWED_FOR_EACH_MIN * by_hand;
        let state = |name: &str| seen.states.get(name).copied().unwrap_or(0.0);
        let mut line = Line {
            engaged: state("running") + state("in a system call"),
            ready: state("runnable"),
            ..Line::default()
        };
        let most = |known: &mut Option<&'o Place>, place: &'o Place| {
            if known.is_none_or(|known| known.many < place.many) {
                *known = Some(place);
            }
        };
        for place in &seen.places {
            if waits_in_line(place) || serves_by_hand && waits_for_its_turn(place) {
                line.waiting += place.many;
                line.sending += if place.state == "chan send" { place.many } else { 0.0 };
                line.pooled += if has(place, POOLS) { place.many } else { 0.0 };
                most(&mut line.place, place);
            } else if is_engaged(place) {
                line.engaged += place.many;
                most(&mut line.behind, place);
            }
        }
        line
    }
}

fn has(place: &Place, table: names::Table) -> bool {
    place.stack.split(';').any(|name| names::is(name, table))
}

/// A request is served, and it waits in a channel for something in this process.
fn waits_in_line(place: &Place) -> bool {
    in_channel(place) && has(place, SERVES) && has(place, HANDLES) && !has(place, ANSWERS)
}

/// It waits for what nobody sends as news: to hand something over, or for one of a library's pool.
fn waits_for_its_turn(place: &Place) -> bool {
    place.state == "chan send" || in_channel(place) && has(place, POOLS)
}

fn in_channel(place: &Place) -> bool {
    matches!(place.state.as_str(), "chan send" | "chan receive" | "select")
}

/// In the middle of some work: asleep, or waiting for another's answer, but not for a request.
fn is_engaged(place: &Place) -> bool {
    match place.state.as_str() {
        "sleep" => true,
        "IO wait" => !has(place, IDLE) && (!has(place, SERVES) || has(place, HANDLES)),
        "select" | "chan receive" => has(place, ANSWERS),
        _ => false,
    }
}

/// The innermost function that is more than a primitive, and the program's own that called it where that is Go's.
fn name_of(place: &Place) -> Option<String> {
    let told = || place.stack.rsplit(';').filter(|name| !names::is(name, PRIMITIVES));
    let innermost = told().next()?;
    let is_gos = |name: &&str| GOS.contains(&name.split(['/', '.']).next().unwrap_or_default());
    let own = told().find(|name| !is_gos(name));
    Some(match own.filter(|own| *own != innermost) {
        Some(own) => format!("{innermost}, called by {own}"),
        None => innermost.to_owned(),
    })
}

fn draft(line: &Line<'_>, seen: &Goroutines, spare: f64) -> Draft {
    let Line { waiting, sending, engaged, ready, .. } = line;
    let engaged = engaged + ready;
    let place = line.place.and_then(name_of);
    let at = place.as_ref().map_or_else(String::new, |place| format!(" at {place}"));
    let summary = format!(
        "{waiting:.1} requests wait in channels{at} while {engaged:.1} goroutines do something and {} of the CPUs is free",
        percent(spare)
    );
    let draft = pool_draft(spare, summary)
        .fact(format!("{waiting:.1} goroutines that serve requests wait in channels"), *waiting, "goroutines")
        .fact(format!("{sending:.1} of them wait to hand something over"), *sending, "goroutines")
        .fact(
            format!("{engaged:.1} goroutines run, want to, sleep, or wait for the network meanwhile"),
            engaged,
            "goroutines",
        )
        .fact(
            format!("somebody was at work at {} of {} looks", seen.busy_looks, seen.looks),
            f64::from(seen.busy_looks),
            "looks",
        );
    let behind = line.behind.and_then(|place| Some((name_of(place)?, place)));
    let behind = behind.map(|(name, place)| format!("{:.1} of those: {} in {name}", place.many, place.state));
    draft.sign_if(behind).at(place)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::collections::BTreeMap;

    use dyno_record::finding::Class;
    use dyno_record::observation::{Goroutines, Packets, Place, Serving};
    use dyno_record::profile::WaitClass;

    use crate::scene::{Scene, busy_load};

    const SERVE: &str =
        "net/http.(*conn).serve;net/http.serverHandler.ServeHTTP;net/http.HandlerFunc.ServeHTTP";

    /// So many run; the others wait for that in these functions.
    fn program(running: f64, busy_looks: u32, places: &[(&str, &str, f64)]) -> Scene {
        let place = |(state, stack, many): &(&str, &str, f64)| Place {
            state: (*state).to_owned(),
            stack: stack.replace("SERVE", SERVE),
            many: *many,
        };
        let mut states = BTreeMap::from([("running".to_owned(), running)]);
        for (state, _, many) in places {
            *states.entry((*state).to_owned()).or_default() += many;
        }
        let places = places.iter().map(place).collect();
        let seen = Goroutines { looks: 60, states, places, busy_looks, ..Goroutines::default() };
        Scene::new(&[0.5, 0.5]).on("main.serve;main.work", 100).with(|all| all.goroutines = Some(seen))
    }

    fn judged(scene: &Scene) -> (Vec<Class>, bool) {
        let said = scene.diagnosed();
        let noted = said.notes.iter().any(|note| note.class == Class::PoolLimit);
        (said.findings.iter().map(|finding| finding.class).collect(), noted)
    }

    /// Planted fault: only who serves in `main` counts, or no state but `chan receive`.
    #[test]
    fn handlers_that_wait_for_a_turn_are_a_pool_that_is_too_small() {
        let turn = program(
            0.1,
            60,
            &[("chan send", "SERVE;main.handle", 60.0), ("sleep", "SERVE;main.handle;main.work", 2.0)],
        );
        let finding = turn.diagnosed().findings.remove(0);
        assert_eq!(finding.class, Class::PoolLimit);
        assert!(
            finding.summary.contains("60.0 requests wait in channels at main.handle"),
            "{}",
            finding.summary
        );
        assert_eq!(finding.next[0].code.as_deref(), Some("main.handle"));
    }

    /// Planted faults: a server's own waiting for requests is work; an answer that is waited for is none.
    #[test]
    fn who_waits_for_requests_does_nothing_and_who_waits_for_an_answer_is_in_the_middle_of_something() {
        let engaged = |state: &str, stack: &str| {
            let stack = stack.replace("SERVE", SERVE);
            super::is_engaged(&Place { state: state.to_owned(), stack, many: 1.0 })
        };
        for (state, stack, wanted) in [
            ("sleep", "main.worker", true),
            ("running", "main.worker", false),
            ("IO wait", "main.client;net.(*conn).Read", true),
            ("IO wait", "net/http.(*connReader).backgroundRead", false),
            ("IO wait", "SERVE;net/http.(*connReader).backgroundRead", false),
            ("IO wait", "SERVE;main.ask;net.(*conn).Read", true),
            ("IO wait", "net/http.(*conn).serve;net/http.(*conn).readRequest", false),
            ("select", "SERVE;main.ask;net/http.(*persistConn).roundTrip", true),
            ("chan receive", "SERVE;main.ask", false),
            ("chan send", "SERVE;main.ask;net/http.(*persistConn).roundTrip", false),
        ] {
            assert_eq!(engaged(state, stack), wanted, "{state} {stack}");
        }
    }

    /// Planted fault: who is never at rest is not asked for (`is_busy` always true).
    #[test]
    fn handlers_that_wait_for_a_worker_are_found_where_they_are_asked_and_it_never_rests() {
        let worker = |busy| {
            program(0.3, busy, &[("chan receive", "SERVE;main.ask", 60.0), ("sleep", "main.worker", 1.0)])
        };
        assert_eq!(judged(&worker(60).load(busy_load())), (vec![Class::PoolLimit], false));
        assert_eq!(judged(&worker(60)), (vec![], true), "they may wait for news");
        // Sixty-four clients whose answers come within milliseconds, or much later. Planted fault: however long they wait.
        let owed = |owed_ms: f64| {
            worker(60).with(|seen| {
                let serving =
                    Serving { connections: 64.0, looks: 100, looks_owed: 100, owed_ms, ..Serving::default() };
                seen.packets = Some(Packets { serving: Some(serving), ..Packets::default() });
            })
        };
        assert_eq!(judged(&owed(20.0)), (vec![Class::PoolLimit], false));
        assert_eq!(judged(&owed(2_000.0)), (vec![], true), "they may wait for news");
        // A writer gathers records and syncs them. Planted fault: the disk is not asked.
        let sync = "main.(*wal).write;syscall.Syscall;do_syscall_64_[k];__x64_sys_fdatasync_[k];do_fsync_[k]";
        let writes = |at_disk_s: f64| owed(4.0).off(1, WaitClass::Disk, sync, at_disk_s);
        assert!(!judged(&writes(9.0)).0.contains(&Class::PoolLimit), "it is the disk that is waited for");
        assert!(judged(&writes(2.0)).0.contains(&Class::PoolLimit));
        let multiplexed = program(
            0.7,
            40,
            &[("chan receive", "SERVE;main.ask", 60.0), ("IO wait", "main.client;net.(*conn).Read", 1.0)],
        );
        assert_eq!(judged(&multiplexed.load(busy_load())), (vec![], true), "another server answers");
    }

    /// Planted faults: who is ready to run does something; whoever is ready counts for nothing.
    #[test]
    fn goroutines_that_are_ready_for_a_moment_work_for_nobody_and_one_for_each_that_waits_is_its_child() {
        let ready = |many: f64| {
            let line = program(0.8, 60, &[("chan receive", "SERVE;main.ask", 12.5), ("runnable", "", many)]);
            judged(&line.load(busy_load())).0
        };
        assert_eq!(ready(2.4), [Class::PoolLimit]);
        assert_eq!(ready(12.5), []);
    }

    /// Planted fault: a pool's wait is one for news (`POOLS` of nothing).
    #[test]
    fn handlers_that_wait_for_one_of_a_pools_connections_need_no_load_to_be_told() {
        let places = |at: &str| {
            [
                ("select", format!("SERVE;main.handle;{at}"), 30.0),
                ("IO wait", "main.ask;net.(*conn).Read".to_owned(), 2.0),
            ]
        };
        let waits = |at: &str| {
            let places = places(at);
            judged(&program(
                0.1,
                30,
                &places.each_ref().map(|(state, stack, many)| (*state, stack.as_str(), *many)),
            ))
        };
        assert_eq!(
            waits("database/sql.(*DB).query;database/sql.(*DB).conn"),
            (vec![Class::PoolLimit], false)
        );
        assert_eq!(waits("main.news"), (vec![], true));
    }

    /// A server of its own protocol. Planted faults: only who serves below a known server counts; nobody asks whether as many
    /// requests are held (`OWED_FOR_EACH_MIN` of 0).
    #[test]
    fn handlers_of_a_server_that_nobody_knows_wait_for_a_turn_where_as_many_requests_are_held() {
        let places = [
            ("chan send", "main.serve;main.handle", 60.0),
            ("sleep", "main.serve;main.handle;main.work", 2.0),
        ];
        let held = |owed: u64| {
            let serving = Serving { connections: 64.0, looks: 64, looks_owed: owed, ..Serving::default() };
            program(0.1, 60, &places).with(|seen| {
                seen.packets.get_or_insert_default().serving = Some(serving);
            })
        };
        assert_eq!(judged(&held(62)), (vec![Class::PoolLimit], false));
        assert_eq!(judged(&held(8)), (vec![], false), "producers behind a slow consumer");
        // Twelve requests for news beside twelve such producers. Planted fault: the same requests are counted twice.
        let news = [("select", "SERVE;main.news", 12.0), ("chan send", "main.stage", 12.0)];
        let serving = Serving { connections: 12.0, looks: 12, looks_owed: 12, ..Serving::default() };
        let polled = program(0.1, 20, &news).with(|seen| {
            seen.packets.get_or_insert_default().serving = Some(serving);
        });
        assert_eq!(judged(&polled), (vec![], true));
    }

    /// Planted fault: every wait in a channel is one of a request (`waits_in_line` is `in_channel`).
    #[test]
    fn workers_without_work_tickers_and_idle_connections_are_no_requests() {
        let idle = program(
            0.1,
            60,
            &[
                ("chan receive", "main.worker", 100.0),
                ("select", "main.tick", 8.0),
                ("IO wait", "net/http.(*conn).serve;net/http.(*conn).readRequest", 64.0),
                ("select", "net/http.(*persistConn).writeLoop", 64.0),
            ],
        );
        assert_eq!(judged(&idle.load(busy_load())), (vec![], false));
    }

    /// Planted fault: a single goroutine at work is enough for any number that waits (`FOR_EACH_MIN` of 0).
    #[test]
    fn who_fans_out_or_asks_another_server_waits_for_as_many_as_work_for_it() {
        let fan = program(1.2, 60, &[("chan receive", "SERVE;main.handle", 8.0), ("runnable", "", 0.0)]);
        let fan = fan.with(|seen| {
            let states = &mut seen.goroutines.as_mut().unwrap().states;
            states.insert("runnable".to_owned(), 9.0);
        });
        assert_eq!(judged(&fan.load(busy_load())), (vec![], false));
        let asks = program(
            0.1,
            60,
            &[
                ("select", "SERVE;main.handle;net/http.(*Client).do;net/http.(*persistConn).roundTrip", 60.0),
                ("IO wait", "net/http.(*connReader).backgroundRead", 60.0),
            ],
        );
        assert_eq!(judged(&asks.load(busy_load())), (vec![], false));
        let children = program(
            0.1,
            60,
            &[("chan receive", "SERVE;main.handle", 30.0), ("IO wait", "main.child;net.(*conn).Read", 60.0)],
        );
        assert_eq!(judged(&children.load(busy_load())), (vec![], false));
    }

    #[test]
    fn a_pool_of_connections_to_a_database_is_named_with_who_asks_it() {
        let pool = program(
            0.2,
            60,
            &[
                ("select", "SERVE;main.list;database/sql.(*DB).QueryContext;database/sql.(*DB).conn", 48.0),
                (
                    "IO wait",
                    "SERVE;main.list;database/sql.(*DB).QueryContext;github.com/lib/pq.(*conn).recv",
                    2.0,
                ),
            ],
        );
        let finding = pool.load(busy_load()).diagnosed().findings.remove(0);
        let said = &finding.summary;
        assert!(said.contains("at database/sql.(*DB).conn, called by main.list"), "{said}");
        let sleeps = Place { stack: "main.worker;time.Sleep".to_owned(), ..Place::default() };
        assert_eq!(super::name_of(&sleeps).as_deref(), Some("time.Sleep, called by main.worker"));
    }
}
