//! Who listens where, and which descriptors are whose connections: /proc/net tables joined with /proc/PID/fd.
//!
//! Tables are those of the network namespace of the process they are read through.

use super::process::folder;
use crate::Pid;
use crate::socket::Addr;
use crate::tasks::numbers_in;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

/// Socket states of the tables (include/net/tcp_states.h).
const ESTABLISHED: u8 = 0x01;
const CLOSE_WAIT: u8 = 0x08;
const LISTEN: u8 = 0x0A;
/// Connections that cost little to list again and again; of more, some last longer than a look.
const FEW: usize = 256;
/// So often a process is asked whose connections change while it is asked. One that is kept from the CPU while it changes
/// them, or whose asker is, is asked in vain about every other time: a chance of one in a million.
const TRIES_MAX: usize = 20;
/// `__SO_ACCEPTCON` in the flags of /proc/net/unix: it listens.
const UNIX_ACCEPTS: u32 = 0x1_0000;
/// `SS_CONNECTING` in its column of states: connected, and nobody's descriptor yet.
const UNIX_CONNECTING: &str = "02";

/// One line of /proc/net/tcp or tcp6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InetLine {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Bytes received that nobody has read; on a listener connections that nobody has accepted.
    pub unread: u64,
    /// The state, by the kernel's number (1 established, 10 listening).
    pub state: u8,
    /// What /proc/PID/fd names as `socket:[inode]`; 0 when no process holds it.
    pub inode: u64,
}

/// One line of /proc/net/unix that has a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixLine {
    /// The socket file.
    pub path: PathBuf,
    /// `0x10000` is set on a listener.
    pub flags: u32,
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u64,
}

/// A unix socket that listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnixListenerLine {
    /// Its file, or the name that begins with `@`.
    pub name: String,
    /// What /proc/PID/fd names as `socket:[inode]`.
    pub inode: u64,
}

/// The processes that would get a connection to `addr`, as far as we may read their descriptors: listeners on exactly
/// that address, and on any address when the port is the same.
pub fn listeners(addr: &Addr) -> Vec<Pid> {
    let inodes = match addr {
        Addr::Tcp(addr) => {
            inet_lines("/proc/net").filter(|line| hears(line, addr)).map(|line| line.inode).collect()
        }
        Addr::Unix(path) => {
            let text = fs::read_to_string("/proc/net/unix").unwrap_or_default();
            let hears = |line: &UnixLine| line.path == *path && line.flags & UNIX_ACCEPTS != 0;
            parse_unix(&text).into_iter().filter(hears).map(|line| line.inode).collect()
        }
    };
    owners(&inodes)
}

/// Where `pid` listens, as far as we may read its descriptors: TCP first, then socket files.
pub fn listens_on(pid: Pid) -> Vec<Addr> {
    let own: BTreeSet<u64> = socket_inodes(pid).collect();
    let folder = folder(pid);
    let lines = inet_lines(&format!("{folder}/net"));
    let tcp = lines.filter(|line| line.state == LISTEN && own.contains(&line.inode));
    let text = fs::read_to_string(format!("{folder}/net/unix")).unwrap_or_default();
    let files = parse_unix(&text).into_iter();
    let files = files.filter(|line| line.flags & UNIX_ACCEPTS != 0 && own.contains(&line.inode));
    tcp.map(|line| Addr::Tcp(line.local)).chain(files.map(|line| Addr::Unix(line.path))).collect()
}

fn hears(line: &InetLine, addr: &SocketAddr) -> bool {
    let same_ip = line.local.ip() == addr.ip();
    let any = |ip: IpAddr| ip.is_unspecified();
    line.state == LISTEN
        && line.local.port() == addr.port()
        && (same_ip || any(line.local.ip()) || any(addr.ip()))
}

/// The descriptors of `pid` that are accepted connections on local `port`, ascending.
pub fn sockets_accepted(pid: Pid, port: u16) -> Vec<i32> {
    let accepted =
        |line: &InetLine| line.local.port() == port && matches!(line.state, ESTABLISHED | CLOSE_WAIT);
    let folder = folder(pid);
    let lines = inet_lines(&format!("{folder}/net")).filter(accepted);
    let inodes: BTreeSet<u64> = lines.map(|line| line.inode).collect();
    let is_ours = |fd: &i32| socket_inode(&folder, *fd).is_some_and(|inode| inodes.contains(&inode));
    numbers_in(&format!("{folder}/fd")).into_iter().filter(is_ours).collect()
}

/// A listener of TCP or an open connection, and the descriptor by which a process holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldSocket {
    /// The descriptor.
    pub fd: i32,
    /// Its line of the table.
    pub line: InetLine,
}

impl HeldSocket {
    /// Whether it listens.
    #[must_use]
    pub fn listens(&self) -> bool {
        self.line.state == LISTEN
    }
}

/// Listeners of TCP and open connections of some processes that see the same network as the first of them, by process, with
/// descriptors ascending.
pub fn tcp_held(pids: &[Pid]) -> Vec<(Pid, Vec<HeldSocket>)> {
    let Some(first) = pids.first() else { return Vec::new() };
    let is_open = |line: &InetLine| matches!(line.state, ESTABLISHED | LISTEN);
    let table: BTreeMap<u64, InetLine> = inet_lines(&format!("{}/net", folder(*first)))
        .filter(|line| is_open(line) && line.inode != 0)
        .map(|line| (line.inode, line))
        .collect();
    let of = |pid: &Pid| {
        let folder = folder(*pid);
        let held = |fd: i32| Some(HeldSocket { fd, line: *table.get(&socket_inode(&folder, fd)?)? });
        (*pid, numbers_in(&format!("{folder}/fd")).into_iter().filter_map(held).collect())
    };
    pids.iter().map(of).collect()
}

/// Whether two processes see the same network; not where that is not told.
pub fn same_network(one: Pid, other: Pid) -> bool {
    let network = |pid: Pid| fs::read_link(format!("{}/ns/net", folder(pid))).ok();
    network(one).is_some_and(|network_of_one| Some(network_of_one) == network(other))
}

/// The descriptors of some processes that are listeners of TCP or open connections, ascending. The tables of a network namespace are as long as it has connections, and read once.
pub fn tcp_sockets_of(pids: &[Pid]) -> Vec<(Pid, Vec<i32>)> {
    let network = |pid: Pid| fs::read_link(format!("{}/ns/net", folder(pid))).ok();
    joined(pids, network, open_inodes)
}

/// Who holds what of which table. A process whose namespace is not told has a table of its own, and an empty table may be that
/// of a process that has just ended.
fn joined<K: Ord>(
    pids: &[Pid],
    network: impl Fn(Pid) -> Option<K>,
    mut read: impl FnMut(Pid) -> BTreeSet<u64>,
) -> Vec<(Pid, Vec<i32>)> {
    let mut tables: BTreeMap<K, BTreeSet<u64>> = BTreeMap::new();
    let mut of = |pid: Pid| {
        let Some(network) = network(pid) else { return held(pid, &read(pid)) };
        let table = tables.entry(network).or_default();
        if table.is_empty() {
            *table = read(pid);
        }
        held(pid, table)
    };
    pids.iter().map(|pid| (*pid, of(*pid))).collect()
}

/// Listeners and open connections of the network that `pid` sees.
fn open_inodes(pid: Pid) -> BTreeSet<u64> {
    let is_open = |line: &InetLine| matches!(line.state, ESTABLISHED | LISTEN);
    inet_lines(&format!("{}/net", folder(pid))).filter(is_open).map(|line| line.inode).collect()
}

/// The descriptors of `pid` that are among these sockets, ascending.
fn held(pid: Pid, inodes: &BTreeSet<u64>) -> Vec<i32> {
    let folder = folder(pid);
    let is_one = |fd: &i32| socket_inode(&folder, *fd).is_some_and(|inode| inodes.contains(&inode));
    numbers_in(&format!("{folder}/fd")).into_iter().filter(is_one).collect()
}

/// The TCP connections of some processes of one network namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those with received bytes that nobody has read.
    pub unread: usize,
    /// Whether these processes listen for TCP connections.
    pub listens: bool,
    /// How many they hold.
    pub held: usize,
    far_ends: BTreeSet<u64>,
    /// There are connections, and the other ends of all are elsewhere.
    leads_away: bool,
}

impl Connections {
    /// Those that these processes hold now.
    pub fn of(pids: &[Pid]) -> Connections {
        let Some(first) = pids.first() else { return Connections::default() };
        let all_held = || -> BTreeSet<u64> { pids.iter().flat_map(|pid| socket_inodes(*pid)).collect() };
        let mut own = all_held();
        let is_connection = |line: &InetLine| matches!(line.state, ESTABLISHED | CLOSE_WAIT);
        let table: Vec<InetLine> = inet_lines(&format!("{}/net", folder(*first))).collect();
        let listening: Vec<SocketAddr> = table
            .iter()
            .filter(|line| line.state == LISTEN && own.contains(&line.inode))
            .map(|line| line.local)
            .collect();
        let listens = !listening.is_empty();
        let came_to_us = |line: &InetLine| {
            let hears = |at: &SocketAddr| {
                at.port() == line.local.port() && (at.ip() == line.local.ip() || at.ip().is_unspecified())
            };
            is_connection(line) && listening.iter().any(hears)
        };
        // Accepted between the two looks, if it is ours.
        if table.iter().any(|line| line.inode != 0 && !own.contains(&line.inode) && came_to_us(line)) {
            own.extend(all_held());
        }
        // Nobody's descriptor yet, but nobody else will get it.
        let awaits_accept = |line: &InetLine| line.inode == 0 && came_to_us(line);
        let all: Vec<InetLine> = table.into_iter().filter(is_connection).collect();
        let (held, others): (Vec<InetLine>, Vec<InetLine>) =
            all.into_iter().partition(|line| own.contains(&line.inode));
        let to_be_accepted = others.iter().filter(|line| awaits_accept(line));
        let far: BTreeSet<_> =
            held.iter().chain(to_be_accepted).map(|line| (line.remote, line.local)).collect();
        let far_ends = others.iter().filter(|line| far.contains(&(line.local, line.remote)));
        let near = |line: &InetLine| line.remote.ip().is_loopback() || line.remote.ip() == line.local.ip();
        Connections {
            leads_away: !held.is_empty() && !held.iter().any(near),
            unread: held.iter().filter(|line| line.unread > 0).count(),
            listens,
            held: held.len(),
            far_ends: far_ends.map(|line| line.inode).filter(|inode| *inode != 0).collect(),
        }
    }
}

/// Other processes of this machine that hold the far ends of these processes' connections, as far as we may read their
/// descriptors.
///
/// A client that gives up all of its connections at once, as one does whose server closes each after a thousand requests,
/// has others when it is asked which ones it holds. So who is not found is asked first, the connections are listed right
/// after that, and who holds others by then is asked again.
pub fn peers(pids: &[Pid]) -> Vec<Pid> {
    let connections = Connections::of(pids);
    if connections.held == 0 && !connections.listens {
        return Vec::new();
    }
    let holders = socket_holders(&connections.far_ends);
    let known = holders.of.len();
    let found = pids_of(&holders);
    let all_known = known == connections.far_ends.len() && (known > 0 || connections.leads_away);
    // Who had none at the first look may have one now.
    let is_all = || Connections::of(pids).far_ends.is_subset(&connections.far_ends);
    if connections.held > FEW || (all_known && is_all()) {
        return found.into_iter().collect();
    }
    let others = numbers_in("/proc").into_iter().filter(|pid| !pids.contains(pid) && !found.contains(pid));
    let (mut peers, mut socketless) = (found.clone(), Vec::new());
    for pid in others {
        match holds_far_end(pid, pids) {
            Some(true) => drop(peers.insert(pid)),
            Some(false) => {}
            None => socketless.push(pid),
        }
    }
    // It has none, or was between two of them.
    peers.extend(socketless.into_iter().filter(|pid| holds_far_end(*pid, pids) == Some(true)));
    peers.into_iter().collect()
}

/// Whether `pid` holds the far end of a connection of `pids`. `None` when it holds no socket.
fn holds_far_end(pid: Pid, pids: &[Pid]) -> Option<bool> {
    let held = || -> BTreeSet<u64> { socket_inodes(pid).collect() };
    let mut own = held();
    for _ in 0..TRIES_MAX {
        if own.is_empty() {
            return None;
        }
        if !own.is_disjoint(&Connections::of(pids).far_ends) {
            return Some(true);
        }
        let before = std::mem::replace(&mut own, held());
        if before == own {
            return Some(false);
        }
    }
    Some(false)
}

fn socket_inodes(pid: Pid) -> impl Iterator<Item = u64> {
    let folder = folder(pid);
    let fds = numbers_in(&format!("{folder}/fd"));
    fds.into_iter().filter_map(move |fd| socket_inode(&folder, fd))
}

fn inet_lines(folder: &str) -> impl Iterator<Item = InetLine> + use<> {
    let read = |table: &str| fs::read_to_string(format!("{folder}/{table}")).unwrap_or_default();
    let (four, six) = (read("tcp"), read("tcp6"));
    parse_inet(&four).into_iter().chain(parse_inet(&six))
}

pub(super) fn owners(inodes: &BTreeSet<u64>) -> Vec<Pid> {
    pids_of(&socket_holders(inodes)).into_iter().collect()
}

fn pids_of(holders: &Holders) -> BTreeSet<Pid> {
    holders.of.values().flatten().map(|(pid, _)| *pid).collect()
}

/// Who holds which sockets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holders {
    /// Processes by inode, ascending, with their descriptors.
    pub of: BTreeMap<u64, Vec<(Pid, i32)>>,
    /// Processes whose descriptors may not be read.
    pub hidden: usize,
}

/// Every process that holds one of these sockets, from one walk over all descriptors of the machine.
pub fn socket_holders(inodes: &BTreeSet<u64>) -> Holders {
    let mut holders = Holders::default();
    if inodes.is_empty() {
        return holders;
    }
    for pid in numbers_in("/proc") {
        let folder = format!("/proc/{pid}");
        if fs::read_dir(format!("{folder}/fd"))
            .is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        {
            holders.hidden += 1;
        }
        for fd in numbers_in(&format!("{folder}/fd")) {
            if let Some(inode) = socket_inode(&folder, fd).filter(|inode| inodes.contains(inode)) {
                holders.of.entry(inode).or_default().push((pid, fd));
            }
        }
    }
    holders
}

fn socket_inode(folder: &str, fd: i32) -> Option<u64> {
    let link = fs::read_link(format!("{folder}/fd/{fd}")).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The lines of /proc/net/tcp or tcp6; lines of another shape are passed over.
pub fn parse_inet(text: &str) -> Vec<InetLine> {
    text.lines().skip(1).filter_map(parse_inet_line).collect()
}

fn parse_inet_line(line: &str) -> Option<InetLine> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let address = |at: usize| {
        let (ip, port) = fields.get(at)?.split_once(':')?;
        Some(SocketAddr::new(parse_ip(ip)?, u16::from_str_radix(port, 16).ok()?))
    };
    let (local, remote) = (address(1)?, address(2)?);
    let state = u8::from_str_radix(fields.get(3)?, 16).ok()?;
    let unread = u64::from_str_radix(fields.get(4)?.split_once(':')?.1, 16).ok()?;
    Some(InetLine { local, remote, unread, state, inode: fields.get(9)?.parse().ok()? })
}

/// Addresses are printed as 32-bit words in the machine's own order.
fn parse_ip(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| u32::from_str_radix(hex.get(at..at + 8)?, 16).ok().map(u32::to_ne_bytes);
    match hex.len() {
        8 => Some(IpAddr::V4(Ipv4Addr::from(word(0)?))),
        32 => {
            let words = [word(0)?, word(8)?, word(16)?, word(24)?];
            let octets: [u8; 16] = words.concat().try_into().ok()?;
            // A mapped address is the IPv4 one that it stands for.
            Some(Ipv6Addr::from(octets).to_canonical())
        }
        _ => None,
    }
}

/// The lines of /proc/net/unix that have a path; the path may hold blanks.
pub fn parse_unix(text: &str) -> Vec<UnixLine> {
    text.lines().skip(1).filter_map(parse_unix_line).collect()
}

/// The table of unix sockets of the network that `pid` sees; empty where it may not be read.
pub fn unix_table(pid: Pid) -> String {
    fs::read(format!("{}/net/unix", folder(pid)))
        .map_or_else(|_unread| String::new(), |raw| String::from_utf8_lossy(&raw).into_owned())
}

/// The unix listeners that these processes hold, of the network that the first of them sees.
pub fn unix_listeners(pids: &[Pid]) -> Vec<UnixListenerLine> {
    let Some(first) = pids.first() else { return Vec::new() };
    let mut all = parse_unix_listeners(&unix_table(*first));
    if !all.is_empty() {
        let own: BTreeSet<u64> = pids.iter().flat_map(|pid| socket_inodes(*pid)).collect();
        all.retain(|line| own.contains(&line.inode));
    }
    all
}

/// The listeners of /proc/net/unix.
pub fn parse_unix_listeners(text: &str) -> Vec<UnixListenerLine> {
    let listener = |line: &str| {
        let (fields, name) = unix_fields(line)?;
        let accepts = u32::from_str_radix(fields[3], 16).ok()? & UNIX_ACCEPTS != 0;
        let inode = fields[6].parse().ok()?;
        accepts.then(|| UnixListenerLine { name: name.to_owned(), inode })
    };
    text.lines().skip(1).filter_map(listener).collect()
}

/// How many connections wait to be accepted by the listener of this name, as /proc/net/unix shows it: a connection bears its
/// listener's name, and has no inode until it is accepted.
pub fn unix_waiting(text: &str, listener: &str) -> u32 {
    let waits = |line: &&str| {
        let fields = unix_fields(line).filter(|(_, name)| *name == listener);
        fields.is_some_and(|(fields, _)| fields[5] == UNIX_CONNECTING && fields[6] == "0")
    };
    text.lines().skip(1).filter(waits).count() as u32
}

/// The seven fields before the name, and the name, which may hold blanks.
fn unix_fields(line: &str) -> Option<([&str; 7], &str)> {
    let (mut fields, mut rest) = ([""; 7], line);
    for field in &mut fields {
        let (one, after) = rest.trim_start().split_once(' ').unwrap_or((rest.trim_start(), ""));
        (*field, rest) = (one, after);
    }
    (!fields[6].is_empty()).then_some((fields, rest))
}

fn parse_unix_line(line: &str) -> Option<UnixLine> {
    let path = &line[line.find('/')?..];
    let mut fields = line.split_whitespace().skip(3);
    let flags = u32::from_str_radix(fields.next()?, 16).ok()?;
    let inode = fields.nth(2)?.parse().ok()?;
    Some(UnixLine { path: path.into(), flags, inode })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::child::this;
    use std::net::{TcpListener, TcpStream};

    /// Planted fault: the table is read for each process; then workers times connections are read.
    #[test]
    fn a_table_is_read_once_for_all_processes_of_its_network() {
        let reads = |network: fn(Pid) -> Option<i32>, table: &BTreeSet<u64>| {
            let mut reads = 0;
            joined(&[1, 2, 3, 4], network, |_| {
                reads += 1;
                table.clone()
            });
            reads
        };
        let some = BTreeSet::from([u64::MAX]);
        assert_eq!((reads(|_| Some(7), &some), reads(|pid| Some(pid % 2), &some)), (1, 2));
        assert_eq!(reads(|_| None, &some), 4, "nobody knows whose network it is");
        assert_eq!(reads(|_| Some(7), &BTreeSet::new()), 4, "the first ones may have ended");
    }

    #[test]
    fn sockets_of_several_processes_are_those_of_each() {
        let socket = TcpListener::bind("127.0.0.1:0").unwrap();
        use std::os::fd::AsRawFd;
        let all = tcp_sockets_of(&[this(), i32::MAX]);
        assert!(all[0].1.contains(&socket.as_raw_fd()) && all[1].1.is_empty(), "{all:?}");
    }

    #[test]
    fn table_lines_become_addresses() {
        let four = "  sl  local_address rem_address st\n   \
            0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1603 1 0 100\n";
        let line = InetLine {
            local: "127.0.0.1:8080".parse().unwrap(),
            remote: "0.0.0.0:0".parse().unwrap(),
            unread: 0,
            state: LISTEN,
            inode: 1603,
        };
        assert_eq!(parse_inet(four), [line]);
        let six = "  sl  header\n   0: 00000000000000000000000001000000:0050 \
            00000000000000000000000001000000:C350 01 00000000:0000001F 00:00000000 00000000  0  0 99 1\n";
        let line = InetLine {
            local: "[::1]:80".parse().unwrap(),
            remote: "[::1]:50000".parse().unwrap(),
            unread: 31,
            state: ESTABLISHED,
            inode: 99,
        };
        assert_eq!(parse_inet(six), [line]);
        assert_eq!(parse_ip("0000000000000000FFFF00000100007F"), Some("127.0.0.1".parse().unwrap()));
        assert!(parse_inet("header\nnonsense\n 0: zz:1 x 0A\n").is_empty());
    }

    #[test]
    fn unix_lines_without_a_path_are_passed_over() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock\n\
                    0000: 00000003 00000000 00000000 0001 03  1599\n";
        let line = UnixLine { path: "/run/a b.sock".into(), flags: UNIX_ACCEPTS, inode: 4711 };
        assert_eq!(parse_unix(text), [line]);
    }

    /// Planted faults: every connection of that name counted; names cut at their blanks.
    #[test]
    fn unix_connections_that_nobody_accepted_are_counted_by_their_listeners_name() {
        let text = "Num       RefCount Protocol Flags    Type St Inode Path\n\
                    0000: 00000003 00000000 00000000 0001 03  1599\n\
                    0000: 00000002 00000000 00010000 0001 01 4711 /run/a b.sock\n\
                    0000: 00000002 00000000 00000000 0001 02     0 /run/a b.sock\n\
                    0000: 00000002 00000000 00000000 0001 02     0 /run/a b.sock\n\
                    0000: 00000003 00000000 00000000 0001 03 1603 /run/a b.sock\n\
                    0000: 00000002 00000000 00000000 0001 02     0 /run/a c.sock\n\
                    0000: 00000002 00000000 00010000 0001 01 4712 @x/y\n nonsense\n";
        let named = |name: &str, inode| UnixListenerLine { name: name.to_owned(), inode };
        assert_eq!(parse_unix_listeners(text), [named("/run/a b.sock", 4711), named("@x/y", 4712)]);
        let waiting = |name| unix_waiting(text, name);
        assert_eq!((waiting("/run/a b.sock"), waiting("/run/a c.sock"), waiting("@x/y")), (2, 1, 0));
    }

    #[test]
    fn this_process_is_found_listening_until_it_stops() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ip = listener.local_addr().unwrap();
        // Other tests start processes; between fork and exec those hold the listener too, so `contains` it is.
        assert!(listeners(&Addr::Tcp(ip)).contains(&this()));
        assert!(listeners(&Addr::Tcp(SocketAddr::from(([0, 0, 0, 0], ip.port())))).contains(&this()));
        assert!(!listeners(&Addr::Tcp(SocketAddr::from(([127, 0, 0, 2], ip.port())))).contains(&this()));
        assert!(listens_on(this()).contains(&Addr::Tcp(ip)));
        drop(listener);
        assert!(!listeners(&Addr::Tcp(ip)).contains(&this()));
    }

    #[test]
    fn what_was_received_and_not_read_is_counted_and_both_ends_of_one_process_are_no_peers() {
        use std::io::{Read, Write};
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut conn, _) = listener.accept().unwrap();
        let port = conn.local_addr().unwrap().port();
        client.write_all(b"x").unwrap();
        // Other tests of this process have connections too: only this one is looked at.
        let unread = || {
            let lines = inet_lines("/proc/self/net");
            lines.filter(|line| line.local.port() == port && line.unread > 0).count()
        };
        assert_eq!(unread(), 1);
        assert!(Connections::of(&[this()]).unread >= 1);
        conn.read_exact(&mut [0]).unwrap();
        assert_eq!(unread(), 0);
        assert!(!peers(&[this()]).contains(&this()));
    }

    /// A client that has another connection every few milliseconds is found. Who lists the connections first and
    /// then looks through all processes misses it in every third try.
    #[test]
    fn a_peer_that_connects_anew_all_the_time_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("while exec 3<>/dev/tcp/127.0.0.1/{port}; do read -r -t 0.02 <&3; done");
        let mut client = std::process::Command::new("bash").args(["-c", &script]).spawn().unwrap();
        let pid = client.id().cast_signed();
        let accepting = std::thread::spawn(move || {
            let mut held = std::collections::VecDeque::new();
            // The last one is the test's own, which says that it is over.
            while let Ok((conn, from)) = listener.accept() {
                held.push_back(conn);
                if held.len() > 2 {
                    held.pop_front();
                }
                if from.ip() != std::net::IpAddr::from([127, 0, 0, 1]) {
                    return;
                }
            }
        });
        let begun = std::time::Instant::now();
        while !peers(&[this()]).contains(&pid) {
            assert!(begun.elapsed().as_secs() < 20, "the client never came");
        }
        // A machine that stands still between two looks may miss it once. The fault misses it at most twice with a chance of
        // 6 in 10,000.
        let missed = (0..30).filter(|_| !peers(&[this()]).contains(&pid)).count();
        client.kill().unwrap();
        client.wait().unwrap();
        let from = std::net::IpAddr::from([127, 0, 0, 2]);
        drop(crate::socket::connect_from(&Addr::Tcp(SocketAddr::from(([127, 0, 0, 1], port))), from));
        accepting.join().unwrap();
        assert!(missed <= 2, "{missed} of 30");
    }

    #[test]
    fn a_listening_socket_file_has_an_owner() {
        let path = std::env::temp_dir().join(format!("dyno-sys-{}-owner.sock", this()));
        let _ = fs::remove_file(&path);
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        assert!(listeners(&Addr::Unix(path.clone())).contains(&this()));
        drop(listener);
        fs::remove_file(path).unwrap();
    }

    #[test]
    fn accepted_connections_are_told_from_the_listener_and_the_clients_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(sockets_accepted(this(), port).is_empty());
        let _client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (conn, _) = listener.accept().unwrap();
        assert_eq!(sockets_accepted(this(), port), [std::os::fd::AsRawFd::as_raw_fd(&conn)]);
    }
}
