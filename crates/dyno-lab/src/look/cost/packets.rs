//! What stands in the way of packets, measured on a small request and its answer through namespaces of our own.
//!
//! Both ends are one thread's, on one CPU: what a packet costs is then in the time, whoever would pay for it elsewhere. Each
//! cable is a fresh start; sides alternate every few milliseconds.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use dyno_host::lab::{Lab, SERVER};
use dyno_measure::Prng;
use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{Facts, Figure, Packets};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock;
use dyno_sys::tap::{Hears, Tap};

use super::figure::{figure, median};
use super::rules::{self, Rules};
use crate::failure::chain;

/// Cables of each side: the interval is over them.
const CABLES: usize = 6;
/// Turns of each pair of cables; the middle one counts.
const TURNS: usize = 120;
/// Thousands of rules make a turn long: fewer are enough then.
const TURNS_MIN: usize = 5;
const PAIR_MAX: Duration = Duration::from_millis(600);
/// Requests of a turn: half a millisecond, so that a neighbour's turn spoils few of them.
const REQUESTS: u32 = 40;
/// Requests before the first turn: buffers, routes and neighbours are found then.
const WARM_UP: u32 = 300;
/// As a small GET and its answer.
const REQUEST_BYTES: usize = 100;
const ANSWER_BYTES: usize = 150;
/// Packets of a request and its answer at the server's end: acknowledgements ride on them.
const PACKETS: f64 = 2.0;
/// An answer comes within microseconds, or rules have dropped it.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// A first packet that is lost is sent again after one second, and after two more.
const READY_MAX: Duration = Duration::from_secs(5);
const SEED: u64 = 16;

/// A connection through something; it stays while this is held.
struct Path {
    ends: [TcpStream; 2],
    /// Heard, and read by nobody.
    _tap: Option<Tap>,
}

/// A small request over loopback as it is, which any user can measure, where no rule drops it.
pub(super) fn over_loopback() -> Fact<Figure> {
    let measured = on_one_cpu(|| {
        let paths: Result<Vec<Path>, String> = (0..CABLES)
            .map(|_| {
                connected(Ipv4Addr::LOCALHOST, 0, |address| {
                    TcpStream::connect_timeout(&(*address).into(), ANSWER_MAX)
                })
            })
            .collect();
        let mut values = Vec::new();
        for mut path in paths? {
            let mut turns: Vec<f64> = (0..TURNS).map(|_| path.request_us()).collect::<Result<_, _>>()?;
            values.push(median(&mut turns));
        }
        Ok(figure(&values))
    });
    as_fact("a request over loopback", measured)
}

/// Past one socket that is handed every packet.
pub(super) fn past_a_tap() -> Fact<Packets> {
    let tapped = || {
        cable(0, |_| {
            let mut tap = Tap::open().map_err(|error| error.to_string())?;
            tap.set(Hears::All).map_err(|error| error.to_string())?;
            Ok(Some(tap))
        })
    };
    let what = "one socket with a ring that hears every packet".to_owned();
    as_fact("a tap's cost", compared(what, &|| cable(0, |_| Ok(None)), &tapped))
}

/// Through a copy of the rules that the facts tell of.
pub(super) fn through_rules(facts: &Facts) -> Fact<Packets> {
    let copy = match rules::copied(facts) {
        Fact::Value(copy) => copy,
        Fact::Absent(what) => return Fact::Absent(what),
        Fact::Unread(why) => return Fact::Unread(why),
    };
    let ports = rules::ports(facts);
    let port = match on_a_thread(|| first_let_in(&copy, &ports)) {
        Ok(port) => port,
        Err(why) => return as_fact("packets through a copy of the rules", Err(why)),
    };
    let ruled = || cable(port, |_| copy.load().map(|()| None));
    let what = format!("a copy of {}, to port {port}", copy.words());
    as_fact("packets through a copy of the rules", compared(what, &|| cable(port, |_| Ok(None)), &ruled))
}

/// The first port of these that the rules let a connection to.
fn first_let_in(copy: &Rules, ports: &[u16]) -> Result<u16, String> {
    let lab = ready()?;
    copy.load()?;
    let found = ports
        .iter()
        .find(|port| in_lab(&lab, **port, ANSWER_MAX).is_ok_and(|mut path| path.request_us().is_ok()));
    let names: Vec<String> = ports.iter().map(u16::to_string).collect();
    found.copied().ok_or_else(|| format!("the copy lets no connection in to port {}", names.join(", ")))
}

fn compared(
    what: String,
    without: &(dyn Fn() -> Result<Path, String> + Sync),
    with: &(dyn Fn() -> Result<Path, String> + Sync),
) -> Result<Packets, String> {
    let mut cables = laid(without, with)?;
    on_one_cpu(|| {
        let mut rng = Prng::new(SEED);
        let (mut plain, mut packet_ns, mut percent) = (Vec::new(), Vec::new(), Vec::new());
        for pair in &mut cables {
            let [a, b] = turns(pair, &mut rng)?;
            plain.push(a);
            packet_ns.push(1_000.0 * (b - a) / PACKETS);
            percent.push(100.0 * (b - a) / b);
        }
        Ok(Packets {
            what,
            request_us: figure(&plain),
            packet_ns: figure(&packet_ns),
            percent: figure(&percent),
        })
    })
}

/// All cables at once: the kernel takes up to a second to see that a new one has two ends, and may take it for each.
fn laid(
    without: &(dyn Fn() -> Result<Path, String> + Sync),
    with: &(dyn Fn() -> Result<Path, String> + Sync),
) -> Result<Vec<[Path; 2]>, String> {
    std::thread::scope(|scope| {
        let making: Vec<_> = (0..CABLES).map(|_| [scope.spawn(without), scope.spawn(with)]).collect();
        let made = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        // All are waited for before the first failure is told.
        let all: Vec<[Result<Path, String>; 2]> = making.into_iter().map(|pair| pair.map(made)).collect();
        all.into_iter().map(|[a, b]| Ok([a?, b?])).collect()
    })
}

/// What a request takes over each of a pair, µs: the middle of all turns.
fn turns(pair: &mut [Path; 2], rng: &mut Prng) -> Result<[f64; 2], String> {
    let mut taken = [Vec::new(), Vec::new()];
    let begun = Instant::now();
    for turn in 0..TURNS {
        if turn >= TURNS_MIN && begun.elapsed() > PAIR_MAX {
            break;
        }
        let first = usize::from(rng.coin());
        for at in [first, 1 - first] {
            taken[at].push(pair[at].request_us()?);
        }
    }
    Ok(taken.map(|mut side| median(&mut side)))
}

impl Path {
    /// What a request and its answer take, over a turn of them.
    fn request_us(&mut self) -> Result<f64, String> {
        let begun = Instant::now();
        for _ in 0..REQUESTS {
            self.exchange().map_err(|error| format!("an answer did not come: {error}"))?;
        }
        Ok(begun.elapsed().as_secs_f64() * 1e6 / f64::from(REQUESTS))
    }

    fn exchange(&mut self) -> std::io::Result<()> {
        let [server, client] = &mut self.ends;
        client.write_all(&[b'?'; REQUEST_BYTES])?;
        server.read_exact(&mut [0; REQUEST_BYTES])?;
        server.write_all(&[b'!'; ANSWER_BYTES])?;
        client.read_exact(&mut [0; ANSWER_BYTES])
    }
}

/// A connection over a cable of its own, with whatever is put in its way. The thread that makes it lives in the cable's
/// namespace from then on; the connection and what it runs through stay while the path does.
fn cable(port: u16, prepare: impl FnOnce(&Lab) -> Result<Option<Tap>, String>) -> Result<Path, String> {
    let lab = ready()?;
    let tap = prepare(&lab)?;
    Ok(Path { _tap: tap, ..in_lab(&lab, port, ANSWER_MAX)? })
}

/// A cable whose ends have found each other.
fn ready() -> Result<Lab, String> {
    let lab = Lab::enter(1).map_err(|error| chain(&error))?;
    in_lab(&lab, 0, READY_MAX)?;
    Ok(lab)
}

fn in_lab(lab: &Lab, port: u16, answer_max: Duration) -> Result<Path, String> {
    let client = lab.client();
    connected(SERVER, port, |address| {
        client.within(|| TcpStream::connect_timeout(&(*address).into(), answer_max))?
    })
}

fn connected(
    address: Ipv4Addr,
    port: u16,
    connect: impl FnOnce(&std::net::SocketAddrV4) -> std::io::Result<TcpStream>,
) -> Result<Path, String> {
    let path = || {
        let listener = TcpListener::bind((address, port))?;
        let port = listener.local_addr()?.port();
        let client = connect(&std::net::SocketAddrV4::new(address, port))?;
        let ends = [listener.accept()?.0, client];
        for end in &ends {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(ANSWER_MAX))?;
        }
        let mut path = Path { ends, _tap: None };
        (0..WARM_UP).try_for_each(|_| path.exchange())?;
        Ok(path)
    };
    path().map_err(|error: std::io::Error| format!("no connection: {error}"))
}

/// Namespaces are entered by threads that end: this process stays where it is.
fn on_a_thread<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    std::thread::scope(|scope| {
        scope.spawn(work).join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

fn on_one_cpu<T: Send>(work: impl FnOnce() -> Result<T, String> + Send) -> Result<T, String> {
    on_a_thread(|| {
        let cpu = affinity::allowed().iter().last().unwrap_or(0);
        affinity::set_current(&CpuSet::single(cpu)).map_err(|error| error.to_string())?;
        // What was made last settles: nothing is freed while the first turn is measured.
        clock::sleep_ns(1_000_000);
        work()
    })
}

fn as_fact<T>(what: &str, measured: Result<T, String>) -> Fact<T> {
    let needs = if dyno_sys::user::current().0 == 0 { "" } else { "root: sudo dyno audit --measure" };
    measured.map_or_else(
        |why| {
            Fact::Unread(Unread { what: what.to_owned(), why, needs: needs.to_owned(), ..Unread::default() })
        },
        Fact::Value,
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_request_over_loopback_takes_microseconds() {
        let Fact::Value(figure) = over_loopback() else { panic!("anybody may use loopback") };
        assert!(figure.value > 1.0 && figure.interval[0] <= figure.value, "{figure:?}");
    }

    #[test]
    fn a_tap_that_is_heard_costs_something_and_another_plain_cable_next_to_nothing() {
        if dyno_sys::namespace::can_make_network().is_err() {
            return;
        }
        let Fact::Value(tap) = past_a_tap() else { panic!("root may tap") };
        let plain = || cable(0, |_| Ok(None));
        let nothing = compared("nothing".into(), &plain, &plain).unwrap();
        assert!(tap.packet_ns.value > nothing.packet_ns.value, "{tap:?} {nothing:?}");
    }
}
