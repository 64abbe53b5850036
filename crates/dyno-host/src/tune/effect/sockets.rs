//! Proofs that are read from new sockets: queues of listeners, ports, buffers, congestion control, the window after a pause.
//!
//! The sockets are this proof's own, on 127.0.0.1 of the setting's namespace, and closed when it returns. Sockets of others are
//! looked at where they keep what they were made with.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use dyno_record::tune::Effect;
use dyno_sys::netlink::sock_diag;
use dyno_sys::proc;
use dyno_sys::socket::{self, Addr, ListenOptions, SockOpt};

/// Listeners of a namespace at most, as the facts read them.
const LISTENERS_MAX: usize = 10_000;
/// Of those that keep the old value so many are named.
const NAMED_MAX: usize = 3;
/// Sockets without a port of their own: more would not have missed a range that is wider by a tenth.
const PORTS_MAX: usize = 64;
/// A short segment makes a window of many.
const SEGMENT_BYTES: i32 = 536;
/// Enough for the window to open far beyond its start (10 segments, RFC 6928), in segments of that length.
const BULK_BYTES: usize = 512 << 10;
const WINDOW_MIN: u32 = 20;
/// Longer than twice the shortest time after which the kernel sends again (200 ms, TCP_RTO_MIN): a window that begins
/// slowly is a quarter then.
const IDLE: Duration = Duration::from_millis(650);
/// No step of a proof over loopback takes so long.
const STUCK: Duration = Duration::from_secs(5);

fn here() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn no_socket(error: impl std::fmt::Display) -> Effect {
    Effect::not_shown(
        format!("no socket could be made on 127.0.0.1 there: {error}"),
        "a socket made from now on",
    )
}

fn number(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// How many connections may wait at a listener is copied when it listens.
pub(super) fn backlog(old: &str, wanted: &str) -> Effect {
    let asks = ListenOptions { backlog: i32::MAX.cast_unsigned(), ..ListenOptions::default() };
    let fresh = match socket::listen(&Addr::Tcp(here()), &asks) {
        Ok(fresh) => TcpListener::from(fresh),
        Err(error) => return no_socket(error),
    };
    let all = match sock_diag::listeners(LISTENERS_MAX) {
        Ok((all, _)) => all,
        Err(error) => {
            return Effect::not_shown(format!("listeners cannot be listed: {error}"), "ss -ltn: Send-Q");
        }
    };
    let own = fresh.local_addr().ok();
    let has = all.iter().find(|one| Some(one.local) == own).map(|one| u64::from(one.backlog));
    let kept: Vec<&sock_diag::Listener> = all
        .iter()
        .filter(|one| Some(one.local) != own && Some(u64::from(one.backlog)) == number(old))
        .collect();
    match has {
        Some(has) if Some(has) != number(wanted) => {
            Effect::not_in_force(format!("a listener that was made now has room for {has} connections"))
        }
        None => Effect::not_shown("a new listener was not found".to_owned(), "ss -ltn: Send-Q"),
        Some(_) if !kept.is_empty() => Effect::not_in_force(format!(
            "{} was made before and has room for {}: its server has to be started again",
            named(&kept),
            old.trim()
        )),
        Some(has) => Effect::in_force(format!(
            "a listener that was made now has room for {has} connections, and none is left with {}",
            old.trim()
        )),
    }
}

/// The first of them with their owners.
fn named(kept: &[&sock_diag::Listener]) -> String {
    let inodes = kept.iter().take(NAMED_MAX).map(|one| u64::from(one.inode)).collect();
    let holders = proc::socket_holders(&inodes);
    let word = |one: &&sock_diag::Listener| {
        let holder = holders.of.get(&u64::from(one.inode)).and_then(|all| all.first());
        let owner = holder.map(|(pid, _)| format!(" of {} ({pid})", proc::name(*pid).unwrap_or_default()));
        format!("{}{}", one.local, owner.unwrap_or_default())
    };
    let mut words: Vec<String> = kept.iter().take(NAMED_MAX).map(word).collect();
    if kept.len() > NAMED_MAX {
        words.push(format!("{} more", kept.len() - NAMED_MAX));
    }
    words.join(", ")
}

/// A socket that is bound to no port gets one of the range.
pub(super) fn ports(old: &str, wanted: &str) -> Effect {
    // They stay open, so that each gets another port.
    let sockets: Vec<TcpListener> = (0..PORTS_MAX).map_while(|_| TcpListener::bind(here()).ok()).collect();
    let got = sockets.iter().filter_map(|socket| socket.local_addr().ok()).map(|at| at.port());
    let (Some(old), Some(wanted)) = (range(old), range(wanted)) else {
        return Effect::not_shown("it is no range".to_owned(), "a range of two ports");
    };
    from_range(&got.collect::<Vec<_>>(), old, wanted)
}

fn range(text: &str) -> Option<[u16; 2]> {
    let mut words = text.split_whitespace().map(|word| word.parse().ok());
    Some([words.next()??, words.next()??])
}

fn from_range(got: &[u16], old: [u16; 2], wanted: [u16; 2]) -> Effect {
    let outside = |[least, most]: [u16; 2]| got.iter().copied().find(|port| *port < least || *port > most);
    let is_narrower = old[0] <= wanted[0] && wanted[1] <= old[1];
    match (outside(wanted), outside(old)) {
        _ if got.is_empty() => no_socket("none was given a port"),
        (Some(port), _) => Effect::not_in_force(format!("a new socket was given port {port}")),
        (None, Some(port)) => {
            Effect::in_force(format!("a new socket was given port {port}, which the old range did not have"))
        }
        (None, None) if is_narrower => {
            Effect::in_force(format!("{} new sockets were given ports of the range alone", got.len()))
        }
        (None, None) => Effect::not_shown(
            format!("{} new sockets were given ports that both ranges have", got.len()),
            "a socket with a port that the old range did not have",
        ),
    }
}

/// Which buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Receiving,
    Sending,
}

/// Least, first and largest size of a buffer: the first is copied into a socket when it is made.
pub(super) fn buffer(side: Side, old: &str, wanted: &str) -> Effect {
    let first = |text: &str| text.split_whitespace().nth(1).and_then(number);
    if first(old) == first(wanted) {
        return Effect::not_shown(
            "the largest size is asked for when a connection's buffer grows".to_owned(),
            "a connection whose buffer (ss -tm: rb, tb) is larger than the old limit",
        );
    }
    let option = if side == Side::Receiving { SockOpt::RcvBuf } else { SockOpt::SndBuf };
    let read = TcpListener::bind(here()).and_then(|socket| socket::int_option(&socket, option));
    match read {
        Err(error) => no_socket(error),
        Ok(bytes) if u64::try_from(bytes).ok() == first(wanted) => Effect::in_force(format!(
            "a socket that was made now begins with {bytes} bytes; those of before keep theirs"
        )),
        Ok(bytes) => Effect::not_in_force(format!("a socket that was made now begins with {bytes} bytes")),
    }
}

/// Sockets keep the one that they were made with, listeners for their connections too.
pub(super) fn congestion(wanted: &str) -> Effect {
    match TcpListener::bind(here()).and_then(socket::congestion) {
        Err(error) => no_socket(error),
        Ok(name) if name == wanted.trim() => Effect::in_force(format!(
            "a socket that was made now has {name}; those of before, and connections of listeners that were given one, keep theirs"
        )),
        Ok(name) => Effect::not_in_force(format!("a socket that was made now has {name}")),
    }
}

/// What became of a window during a pause.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    congestion: String,
    before: u32,
    after: u32,
}

/// The window of a connection that pauses.
pub(super) fn after_idle(wanted: &str) -> Effect {
    match watched() {
        Ok(window) => window.judge(wanted),
        Err(error) => no_socket(error),
    }
}

impl Window {
    fn judge(&self, wanted: &str) -> Effect {
        let Window { congestion, before, after } = self;
        // It sets its own window, and so the kernel does not ask (include/net/tcp.h, tcp_slow_start_after_idle_check).
        if congestion.starts_with("bbr") {
            return Effect::not_in_force(format!(
                "new connections use {congestion}, and for that the kernel does not ask for it"
            ));
        }
        if *before < WINDOW_MIN {
            return Effect::not_shown(
                format!("the window of a connection over loopback stayed at {before} segments"),
                "a connection that pauses: cwnd in ss -ti before and after",
            );
        }
        let seen = format!("a connection's window was {before} segments before a pause and {after} after it");
        match (wanted.trim() == "0", after * 4 < before * 3) {
            (true, false) | (false, true) => Effect::in_force(seen),
            _ => Effect::not_in_force(seen),
        }
    }
}

fn watched() -> io::Result<Window> {
    let listener = TcpListener::bind(here())?;
    // Who connects sends no longer segments than the listener says.
    socket::set_int_option(&listener, SockOpt::MaxSegment, SEGMENT_BYTES)?;
    let mut near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_write_timeout(Some(STUCK))?;
    near.set_nodelay(true)?;
    far.set_read_timeout(Some(STUCK))?;
    let congestion = socket::congestion(&near)?;
    if congestion.starts_with("bbr") {
        return Ok(Window { congestion, before: 0, after: 0 });
    }
    let block = [0_u8; 16 << 10];
    let mut taken = vec![0_u8; block.len()];
    for _ in 0..BULK_BYTES / block.len() {
        near.write_all(&block)?;
        far.read_exact(&mut taken)?;
    }
    let before = socket::sending(&near)?.window;
    std::thread::sleep(IDLE);
    near.write_all(&block[..1])?;
    let after = socket::sending(&near)?.window;
    Ok(Window { congestion, before, after })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    /// Planted fault: the ports that were given are not looked at.
    #[test]
    fn a_port_of_the_new_range_alone_shows_it_and_one_outside_of_it_the_contrary() {
        let (old, new) = ([32_768, 60_999], [1_024, 65_535]);
        let force = |got: &[u16], old, wanted| from_range(got, old, wanted).force;
        assert_eq!(force(&[40_000, 2_000], old, new), Force::InForce);
        assert_eq!(force(&[40_000], old, new), Force::NotShown);
        assert_eq!(force(&[40_000], new, old), Force::InForce);
        assert_eq!(force(&[2_000], new, old), Force::NotInForce);
        assert_eq!(force(&[], new, old), Force::NotShown);
    }

    /// Planted fault: congestion control is not asked for; then a setting that nobody asks for is in force.
    #[test]
    fn a_window_that_nobody_asks_about_is_not_in_force() {
        let force = |name: &str, before, after, wanted| {
            Window { congestion: name.into(), before, after }.judge(wanted).force
        };
        assert_eq!(force("bbr", 0, 0, "0"), Force::NotInForce);
        assert_eq!(force("cubic", 100, 100, "0"), Force::InForce);
        assert_eq!(force("cubic", 100, 25, "0"), Force::NotInForce);
        assert_eq!(force("cubic", 100, 25, "1"), Force::InForce);
        assert_eq!(force("cubic", 10, 10, "0"), Force::NotShown);
    }
}
