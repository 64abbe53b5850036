//! Who listens where, and which descriptors are whose connections: /proc/net tables joined with /proc/PID/fd.
//!
//! Tables are those of the network namespace of the process they are read through.

use super::process::folder;
use crate::Pid;
use crate::child::this;
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

/// One line of /proc/net/udp or udp6.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpLine {
    /// What it has as TCP's table has.
    pub line: InetLine,
    /// Datagrams that found no room in its buffer, since it was made.
    pub drops: u64,
}

impl UdpLine {
    /// Whether it takes datagrams of anybody: who asks over one names whom.
    #[must_use]
    pub fn serves(&self) -> bool {
        self.line.remote.port() == 0 && self.line.local.port() != 0
    }
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
            inet_lines(this()).filter(|line| hears(line, addr)).map(|line| line.inode).collect()
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
    let lines = inet_lines(pid);
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
    let lines = inet_lines(pid).filter(accepted);
    let inodes: BTreeSet<u64> = lines.map(|line| line.inode).collect();
    let is_ours = |fd: &i32| socket_inode(&folder, *fd).is_some_and(|inode| inodes.contains(&inode));
    numbers_in(&format!("{folder}/fd")).into_iter().filter(is_ours).collect()
}

/// Whether two processes see the same network; not where that is not told.
pub fn same_network(one: Pid, other: Pid) -> bool {
    network_of(one).is_some_and(|network| Some(network) == network_of(other))
}

/// The number of the network namespace that `pid` sees; `None` where that is not told.
pub(crate) fn network_of(pid: Pid) -> Option<u64> {
    let link = fs::read_link(format!("{}/ns/net", folder(pid))).ok()?;
    link.to_str()?.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()
}

/// The descriptors of some processes that are listeners of TCP or open connections, ascending. The tables of a network namespace are as long as it has connections, and read once.
pub fn tcp_sockets_of(pids: &[Pid]) -> Vec<(Pid, Vec<i32>)> {
    joined(pids, network_of, open_inodes)
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
    inet_lines(pid).filter(is_open).map(|line| line.inode).collect()
}

/// The descriptors of `pid` that are among these sockets, ascending.
fn held(pid: Pid, inodes: &BTreeSet<u64>) -> Vec<i32> {
    let folder = folder(pid);
    let is_one = |fd: &i32| socket_inode(&folder, *fd).is_some_and(|inode| inodes.contains(&inode));
    numbers_in(&format!("{folder}/fd")).into_iter().filter(is_one).collect()
}

/// The inodes of the sockets that `pid` holds.
pub(crate) fn socket_inodes(pid: Pid) -> impl Iterator<Item = u64> {
    let folder = folder(pid);
    let fds = numbers_in(&format!("{folder}/fd"));
    fds.into_iter().filter_map(move |fd| socket_inode(&folder, fd))
}

/// The descriptors of `pid` that are sockets, with their inodes; `None` where it has no descriptors, or they may not be read.
pub(crate) fn socket_fds(pid: Pid) -> Option<BTreeMap<i32, u64>> {
    let folder = folder(pid);
    let fds = numbers_in(&format!("{folder}/fd"));
    let sockets = fds.iter().filter_map(|fd| Some((*fd, socket_inode(&folder, *fd)?)));
    (!fds.is_empty()).then(|| sockets.collect())
}

/// All lines of the tables of the network that `pid` sees.
pub(crate) fn inet_lines(pid: Pid) -> impl Iterator<Item = InetLine> + use<> {
    lines_of(pid, ["tcp", "tcp6"])
}

/// The same of UDP.
pub(crate) fn udp_lines(pid: Pid) -> impl Iterator<Item = UdpLine> + use<> {
    tables(pid, ["udp", "udp6"]).into_iter().flat_map(|text| parse_udp(&text))
}

fn lines_of(pid: Pid, names: [&str; 2]) -> impl Iterator<Item = InetLine> + use<> {
    tables(pid, names).into_iter().flat_map(|text| parse_inet(&text))
}

fn tables(pid: Pid, names: [&str; 2]) -> [String; 2] {
    let folder = folder(pid);
    names.map(|name| fs::read_to_string(format!("{folder}/net/{name}")).unwrap_or_default())
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

/// The inode of a descriptor that is a socket, of the process with this folder.
pub(crate) fn socket_inode(folder: &str, fd: i32) -> Option<u64> {
    let link = fs::read_link(format!("{folder}/fd/{fd}")).ok()?;
    link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The lines of /proc/net/tcp or tcp6; lines of another shape are passed over.
pub fn parse_inet(text: &str) -> Vec<InetLine> {
    text.lines().skip(1).filter_map(parse_inet_line).collect()
}

/// The lines of /proc/net/udp.
fn parse_udp(text: &str) -> Vec<UdpLine> {
    let of = |line: &str| {
        let drops = line.split_whitespace().nth(12)?.parse().ok()?;
        Some(UdpLine { line: parse_inet_line(line)?, drops })
    };
    text.lines().skip(1).filter_map(of).collect()
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
