//! Who talks with some processes, of all on this machine.
//!
//! Descriptors are listed first, and sockets right after them: who holds the other end of a connection then is found. A client
//! that connects anew for each request holds another one by then. So whose sockets change while they are looked at is asked
//! by them: each new one is fetched for the microseconds in which it tells its two addresses (pidfd_getfd(2)).

use super::{LISTEN, hears, open_sockets, unix_ends};
use crate::Pid;
use crate::child::{pidfd_getfd, pidfd_open};
use crate::clock::mono_ns;
use crate::netlink::sock_diag::plain;
use crate::proc::{self, InetLine, network_of};
use crate::tasks::numbers_in;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// So far up a chain of proxies it is looked who asks.
const CHAIN_MAX: usize = 4;
/// So often it is looked whose sockets change.
const ROUNDS: usize = 20;
/// One whose sockets stay the same for so many rounds is left alone: before, it may only have been between two connections. A
/// client that has one for half of the time, and others that stay, is missed once in eight thousand times.
const STILL_ROUNDS: usize = 12;
/// Between two rounds: who waits for a CPU, between two connections, gets one.
const NAP: Duration = Duration::from_millis(1);
/// For all of them: on a machine of a hundred thousand sockets a round is long.
const ROUNDS_NS_MAX: u64 = 1_000_000_000;

/// Other processes of this machine that hold the far ends of these processes' connections, or listen where those that they open
/// lead, and those that ask the ones that ask them, as far as we may read their descriptors. One in another network, a
/// container's, is found too.
pub fn peers(pids: &[Pid]) -> Vec<Pid> {
    let mut known: BTreeSet<Pid> = pids.iter().copied().collect();
    let mut found = BTreeSet::new();
    let mut asked = pids.to_vec();
    let until_ns = mono_ns() + ROUNDS_NS_MAX;
    for step in 0..CHAIN_MAX {
        // Each network has its own tables.
        let mut networks = BTreeMap::<Option<u64>, Vec<Pid>>::new();
        asked.iter().for_each(|pid| networks.entry(network_of(*pid)).or_default().push(*pid));
        let mut next = BTreeSet::new();
        for of_one in networks.values() {
            let mut around = around(of_one, &known, step == 0, until_ns);
            found.append(&mut around.servers);
            next.append(&mut around.clients);
        }
        next.retain(|pid| known.insert(*pid));
        asked = next.into_iter().collect();
        found.extend(&asked);
        if asked.is_empty() {
            break;
        }
    }
    found.into_iter().collect()
}

/// What the other end of a connection does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    /// It connected to us.
    Client,
    /// We connected to it.
    Server,
}

#[derive(Debug, Default)]
struct Around {
    clients: BTreeSet<Pid>,
    servers: BTreeSet<Pid>,
}

/// Who is at the other ends of their connections; servers only where they are wanted. Who is known already is not asked.
fn around(pids: &[Pid], known: &BTreeSet<Pid>, with_servers: bool, until_ns: u64) -> Around {
    let opened = if with_servers { opened(pids) } else { BTreeSet::new() };
    let others = numbers_in("/proc").into_iter().filter(|pid| !known.contains(pid));
    let mut others: Vec<Sockets> = others.filter_map(Sockets::of).collect();
    let networks: BTreeMap<u64, Pid> =
        others.iter().filter_map(|one| Some((one.network?, one.pid))).collect();
    let ends = Ends::of(pids, &opened, &networks);
    let mut around = Around::default();
    others.retain(|one| {
        let is = |wanted| one.now.values().any(|inode| ends.far.get(inode) == Some(&wanted));
        let asks_us = is(Side::Client);
        if asks_us {
            around.clients.insert(one.pid);
        }
        if with_servers && is(Side::Server) {
            around.servers.insert(one.pid);
        }
        !asks_us
    });
    if ends.listens() {
        around.clients.extend(others_that_ask(&ends, others, until_ns));
    }
    around
}

/// Where the connections lead that these processes open again and again. Those that stay are seen in tables.
fn opened(pids: &[Pid]) -> BTreeSet<Name> {
    let mut own: Vec<Sockets> = pids.iter().filter_map(|pid| Sockets::of(*pid)).collect();
    let mut opened = BTreeSet::new();
    let until_ns = mono_ns() + ROUNDS_NS_MAX / 10;
    for _ in 0..ROUNDS {
        own.retain_mut(|one| {
            one.renew(&mut |name| opened.extend([name]));
            one.may_change()
        });
        if own.is_empty() || mono_ns() > until_ns {
            break;
        }
        std::thread::sleep(NAP);
    }
    opened
}

/// Looks again and again at whose sockets change, and asks the new ones where they lead.
fn others_that_ask(ends: &Ends, mut others: Vec<Sockets>, until_ns: u64) -> Vec<Pid> {
    let mut found = Vec::new();
    for _ in 0..ROUNDS {
        others.retain_mut(|one| {
            let (home, mut asks_us) = (one.network == ends.network, false);
            one.renew(&mut |name| asks_us |= ends.is_asked_by(&name, home));
            if asks_us {
                found.push(one.pid);
            }
            !asks_us && one.may_change()
        });
        if others.is_empty() || mono_ns() > until_ns {
            break;
        }
        std::thread::sleep(NAP);
    }
    found
}

/// The sockets of a process, as they were seen last.
struct Sockets {
    pid: Pid,
    network: Option<u64>,
    now: BTreeMap<i32, u64>,
    /// Rounds since they changed.
    still: usize,
}

impl Sockets {
    /// `None` for a process without descriptors: a kernel thread, or one that we may not look into.
    fn of(pid: Pid) -> Option<Sockets> {
        Some(Sockets { pid, network: network_of(pid), now: proc::socket_fds(pid)?, still: 0 })
    }

    /// Looks again, and tells where the new ones lead.
    fn renew(&mut self, told: &mut dyn FnMut(Name)) {
        let now = proc::socket_fds(self.pid).unwrap_or_default();
        if now == self.now {
            self.still += 1;
            return;
        }
        self.still = 0;
        let is_new = |(fd, inode): &(&i32, &u64)| self.now.get(fd) != Some(*inode);
        if let Ok(handle) = pidfd_open(self.pid) {
            let new = now.iter().filter(is_new);
            new.filter_map(|(fd, _)| Name::of(pidfd_getfd(&handle, *fd).ok()?)).for_each(told);
        }
        self.now = now;
    }

    fn may_change(&self) -> bool {
        self.still < STILL_ROUNDS
    }
}

/// Between whom a socket stands.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Name {
    Tcp {
        local: SocketAddr,
        remote: SocketAddr,
    },
    /// The name of the other end, if it has one: of unix sockets mostly that does which listened.
    Unix(Option<String>),
}

impl Name {
    /// The name at which a connection over a unix socket found its server.
    fn server(&self) -> Option<&String> {
        match self {
            Name::Unix(remote) => remote.as_ref(),
            Name::Tcp { .. } => None,
        }
    }

    fn of(socket: OwnedFd) -> Option<Name> {
        let socket = TcpStream::from(socket);
        if let (Ok(local), Ok(remote)) = (socket.local_addr(), socket.peer_addr()) {
            return Some(Name::Tcp { local: plain(local), remote: plain(remote) });
        }
        let socket = UnixStream::from(OwnedFd::from(socket));
        Some(Name::Unix(unix_name(&socket.peer_addr().ok()?)))
    }
}

/// As /proc/net/unix and `ss` write it: `@` before a name without a file.
fn unix_name(at: &std::os::unix::net::SocketAddr) -> Option<String> {
    let of_name = |name: &[u8]| format!("@{}", String::from_utf8_lossy(name).replace('\0', "@"));
    let of_path = || at.as_pathname().map(|path| path.to_string_lossy().into_owned());
    at.as_abstract_name().map(of_name).or_else(of_path)
}

/// The ends of some processes' connections.
#[derive(Clone, Debug, Default)]
struct Ends {
    network: Option<u64>,
    /// Where they listen.
    tcp: Vec<SocketAddr>,
    unix: BTreeSet<String>,
    /// This machine's addresses at which connections came to them.
    came_to: BTreeSet<SocketAddr>,
    /// The other ends that are on this machine, by inode.
    far: BTreeMap<u64, Side>,
}

impl Ends {
    /// Those that they hold now, and who listens where they have `opened` others. `networks`: those that others see, with one
    /// who does.
    fn of(pids: &[Pid], opened: &BTreeSet<Name>, networks: &BTreeMap<u64, Pid>) -> Ends {
        let Some(first) = pids.first() else { return Ends::default() };
        let own: BTreeSet<u64> = pids.iter().flat_map(|pid| proc::socket_inodes(*pid)).collect();
        let mut ends = Ends { network: network_of(*first), ..Ends::default() };
        ends.add_tcp(*first, &own, opened, networks);
        ends.add_unix(*first, &own, opened);
        ends.add_udp(*first, &own);
        ends
    }

    fn listens(&self) -> bool {
        !self.tcp.is_empty() || !self.unix.is_empty()
    }

    fn add_tcp(
        &mut self,
        first: Pid,
        own: &BTreeSet<u64>,
        opened: &BTreeSet<Name>,
        networks: &BTreeMap<u64, Pid>,
    ) {
        let home = open_sockets(first);
        let is_ours = |line: &InetLine| own.contains(&line.inode);
        self.tcp =
            home.iter().filter(|line| line.state == LISTEN && is_ours(line)).map(|line| line.local).collect();
        let mut ours = Pairs::default();
        for line in home.iter().filter(|line| line.state != LISTEN) {
            // Not accepted yet, or since we looked: nobody else will get it.
            let accepted = self.hears(&line.local);
            if accepted || is_ours(line) {
                ours.add(accepted, line.local, line.remote);
            }
        }
        for name in opened {
            let Name::Tcp { local, remote } = name else { continue };
            ours.add(self.hears(local), *local, *remote);
        }
        self.came_to = ours.accepted.iter().map(|(_, local)| *local).collect();
        let elsewhere = if self.reaches_out(&ours) { self.sockets_elsewhere(networks) } else { Vec::new() };
        let lines = home.iter().map(|line| (line, true)).chain(elsewhere.iter().map(|line| (line, false)));
        for (line, home) in lines.filter(|(line, _)| line.inode != 0 && !is_ours(line)) {
            let side = match line.state {
                LISTEN => ours.lead_to(&line.local, home).then_some(Side::Server),
                _ if self.leads_to_us(line.local, line.remote, home) => Some(Side::Client),
                _ => ours.far_side(line, home),
            };
            if let Some(side) = side {
                self.far.insert(line.inode, side);
            }
        }
    }

    /// Whether anything of theirs can be met in another network.
    fn reaches_out(&self, ours: &Pairs) -> bool {
        let ends = ours.accepted.iter().chain(&ours.opened).map(|(remote, _)| remote);
        self.tcp.iter().chain(ends).any(|at| !at.ip().is_loopback())
    }

    /// Sockets that are open in other networks, as far as they can lead out of theirs.
    fn sockets_elsewhere(&self, networks: &BTreeMap<u64, Pid>) -> Vec<InetLine> {
        let others = networks.iter().filter(|(number, _)| Some(**number) != self.network);
        let all = others.flat_map(|(_, pid)| open_sockets(*pid));
        all.filter(|line| !line.local.ip().is_loopback()).collect()
    }

    /// Who in their own network is connected to a socket of theirs over UDP. One that names the other end with each datagram is not
    /// to be seen.
    fn add_udp(&mut self, first: Pid, own: &BTreeSet<u64>) {
        let lines: Vec<proc::UdpLine> = proc::udp_lines(first).collect();
        let (ours, theirs): (Vec<&proc::UdpLine>, Vec<&proc::UdpLine>) =
            lines.iter().partition(|one| own.contains(&one.line.inode));
        // Whether one leads to another's socket, which takes what anybody sends.
        let leads = |one: &proc::UdpLine, other: &proc::UdpLine| {
            let InetLine { local, remote, .. } = one.line;
            let is_near = remote.ip().is_loopback() || remote.ip() == local.ip();
            other.serves() && remote.port() != 0 && is_near && hears(&other.line.local, &remote)
        };
        for one in theirs.iter().filter(|one| one.line.inode != 0) {
            if ours.iter().any(|own| leads(one, own)) {
                self.far.insert(one.line.inode, Side::Client);
            } else if ours.iter().any(|own| leads(own, one)) {
                self.far.insert(one.line.inode, Side::Server);
            }
        }
    }

    /// Where the kernel does not tell who is connected to whom, only who listens is known.
    fn add_unix(&mut self, first: Pid, own: &BTreeSet<u64>, opened: &BTreeSet<Name>) {
        let (ours, theirs): (Vec<_>, Vec<_>) = proc::parse_unix_listeners(&proc::unix_table(first))
            .into_iter()
            .partition(|line| own.contains(&line.inode));
        self.unix = ours.into_iter().map(|line| line.name).collect();
        let ends = unix_ends(first);
        let named: BTreeSet<u64> =
            ends.iter().filter(|end| end.name.is_some()).map(|end| end.inode).collect();
        let servers: BTreeSet<&String> = opened.iter().filter_map(Name::server).collect();
        for end in ends.iter().filter(|end| own.contains(&end.inode)) {
            let Some(peer) = end.peer else { continue };
            if end.name.as_ref().is_some_and(|name| self.unix.contains(name)) {
                self.far.insert(peer, Side::Client);
            } else if named.contains(&peer) {
                self.far.insert(peer, Side::Server);
            }
        }
        let asked = theirs.iter().filter(|line| servers.contains(&line.name));
        self.far.extend(asked.map(|line| (line.inode, Side::Server)));
    }

    fn hears(&self, to: &SocketAddr) -> bool {
        self.tcp.iter().any(|at| hears(at, to))
    }

    /// Whether a socket of this name is a client's of ours; `home`: in our network.
    fn is_asked_by(&self, name: &Name, home: bool) -> bool {
        match name {
            Name::Tcp { local, remote } => self.leads_to_us(*local, *remote, home),
            // Another container may have a socket of the same name.
            Name::Unix(_) => home && name.server().is_some_and(|name| self.unix.contains(name)),
        }
    }

    /// Whether a connection from `local` to `remote` ends at one of our listeners, and not at one of another machine or
    /// network that has its port.
    fn leads_to_us(&self, local: SocketAddr, remote: SocketAddr, home: bool) -> bool {
        let here = if remote.ip().is_loopback() {
            home
        } else {
            self.came_to.contains(&remote)
                || self.tcp.contains(&remote)
                || (home && remote.ip() == local.ip())
        };
        here && self.hears(&remote)
    }
}

/// Connections of ours, by the address of the other end and of this one.
#[derive(Debug, Default)]
struct Pairs {
    accepted: BTreeSet<(SocketAddr, SocketAddr)>,
    opened: BTreeSet<(SocketAddr, SocketAddr)>,
}

impl Pairs {
    fn add(&mut self, accepted: bool, local: SocketAddr, remote: SocketAddr) {
        let pairs = if accepted { &mut self.accepted } else { &mut self.opened };
        pairs.insert((remote, local));
    }

    /// Whether those that we opened lead to who listens there. One that listens on any address of its network may have the port
    /// of another machine's.
    fn lead_to(&self, listener: &SocketAddr, home: bool) -> bool {
        let near = |to: &SocketAddr, local: &SocketAddr| to.ip().is_loopback() || to.ip() == local.ip();
        let leads = |(to, local): &(SocketAddr, SocketAddr)| match home {
            true => hears(listener, to) && (listener == to || near(to, local)),
            false => listener == to && !to.ip().is_loopback(),
        };
        self.opened.iter().any(leads)
    }

    /// Which other end this one is.
    fn far_side(&self, line: &InetLine, home: bool) -> Option<Side> {
        let turned = (line.local, line.remote);
        // On its way from another network the address where it leads may have been changed, and not the one that it is from.
        let from = (line.local, SocketAddr::from(([0; 4], 0)));
        let comes_from =
            || self.accepted.range(from..).next().is_some_and(|(remote, _)| *remote == line.local);
        if self.accepted.contains(&turned) || (!home && comes_from()) {
            Some(Side::Client)
        } else if self.opened.contains(&turned) {
            Some(Side::Server)
        } else {
            None
        }
    }
}

#[cfg(test)]
#[path = "../../tests/common/holder.rs"]
mod holder;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::holder::Holder;
    use super::*;
    use crate::child::this;
    use std::net::{TcpListener, UdpSocket};
    use std::os::unix::net::UnixListener;
    use std::process::{Command, Stdio};

    fn connected(at: SocketAddr) -> OwnedFd {
        TcpStream::connect(at).unwrap().into()
    }

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        (listener, at)
    }

    /// A listener of unix sockets without a file.
    fn unix_listener(name: &str) -> (UnixListener, std::os::unix::net::SocketAddr) {
        let name = format!("dyno-sys-{}-{name}", this());
        let at = std::os::unix::net::SocketAddr::from_abstract_name(name).unwrap();
        (UnixListener::bind_addr(&at).unwrap(), at)
    }

    /// A proxy stands between a server and who asks it, and asks another one, too. Planted faults: the chain is not followed;
    /// it is followed down as well as up; a connection that was opened counts as accepted.
    #[test]
    fn who_asks_the_one_that_asks_is_a_peer_and_who_shares_a_server_is_none() {
        let (server_at, at) = listener();
        let (proxy_at, asked) = listener();
        let (store_at, stored) = listener();
        let (other_at, asked_too) = listener();
        let client = Holder::of([connected(asked)]);
        let other = Holder::of([other_at.into()]);
        let stranger = Holder::of([connected(stored)]);
        let store = Holder::of([store_at.into()]);
        let server = Holder::of([server_at.into(), connected(stored)]);
        let proxy = Holder::of([proxy_at.into(), connected(at), connected(asked_too)]);
        // Other tests start processes; between fork and exec those hold all of this too.
        let found = peers(&[server.pid()]);
        let is_there = |holder: &Holder| found.contains(&holder.pid());
        assert_eq!([&client, &proxy, &store].map(is_there), [true; 3]);
        assert_eq!([&stranger, &other].map(is_there), [false; 2]);
        let found = peers(&[stranger.pid()]);
        assert!(found.contains(&store.pid()) && !found.contains(&server.pid()), "{found:?}");
    }

    /// Planted faults: UDP's table is not read; whoever is connected anywhere is a client.
    #[test]
    fn who_is_connected_over_udp_is_a_peer() {
        let bound = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let connected = |to: &UdpSocket| {
            let socket = bound();
            socket.connect(to.local_addr().unwrap()).unwrap();
            OwnedFd::from(socket)
        };
        let (server_at, store_at) = (bound(), bound());
        let client = Holder::of([connected(&server_at)]);
        let stranger = Holder::of([connected(&store_at)]);
        let asks = connected(&store_at);
        let (server, store) = (Holder::of([server_at.into(), asks]), Holder::of([store_at.into()]));
        let found = peers(&[server.pid()]);
        let is_there = |holder: &Holder| found.contains(&holder.pid());
        assert_eq!([&client, &store, &stranger].map(is_there), [true, true, false]);
    }

    /// Planted fault: the kernel is not asked for pairs of unix sockets.
    #[test]
    fn who_is_connected_over_unix_sockets_is_a_peer() {
        if !super::super::has_unix_part() {
            println!("not tested: this kernel has no unix_diag loaded");
            return;
        }
        let (server_at, at) = unix_listener("server");
        let (store_at, stored) = unix_listener("store");
        let connected = |at| OwnedFd::from(UnixStream::connect_addr(at).unwrap());
        let client = Holder::of([connected(&at)]);
        let opened = connected(&stored);
        let (accepted, _) = server_at.accept().unwrap();
        let (kept, _) = store_at.accept().unwrap();
        let store = Holder::of([store_at.into(), kept.into()]);
        let stranger = Holder::of([connected(&stored)]);
        let server = Holder::of([server_at.into(), accepted.into(), opened]);
        let found = peers(&[server.pid()]);
        let is_there = |holder: &Holder| found.contains(&holder.pid());
        assert_eq!([&client, &store, &stranger].map(is_there), [true, true, false]);
    }

    /// Planted fault: whoever connects to that port, of whatever machine, leads to us.
    #[test]
    fn a_connection_to_the_same_port_of_another_address_is_not_ours() {
        let ends = Ends {
            tcp: vec!["0.0.0.0:80".parse().unwrap()],
            came_to: BTreeSet::from(["10.0.0.5:80".parse().unwrap()]),
            ..Ends::default()
        };
        let leads = |local: &str, remote: &str, home| {
            ends.leads_to_us(local.parse().unwrap(), remote.parse().unwrap(), home)
        };
        assert!(leads("127.0.0.1:4000", "127.0.0.1:80", true));
        assert!(leads("10.0.0.9:4000", "10.0.0.5:80", false) && leads("10.0.0.5:4000", "10.0.0.5:80", true));
        assert!(!leads("127.0.0.1:4000", "127.0.0.1:80", false), "its own machine's");
        assert!(!leads("10.0.0.9:4000", "10.0.0.6:80", true) && !leads("10.0.0.9:4000", "10.0.0.5:81", true));
    }

    /// Planted fault: whoever listens on any address is the server, of whatever machine that port is.
    #[test]
    fn who_has_the_port_of_another_machines_server_is_not_asked() {
        let opened = |to: &str, local: &str| {
            let mut pairs = Pairs::default();
            pairs.add(false, local.parse().unwrap(), to.parse().unwrap());
            move |listener: &str, home| pairs.lead_to(&listener.parse().unwrap(), home)
        };
        let here = opened("10.0.0.5:5432", "10.0.0.5:4000");
        assert!(here("0.0.0.0:5432", true) && here("10.0.0.5:5432", true) && !here("10.0.0.6:5432", true));
        let there = opened("10.0.0.9:5432", "10.0.0.5:4000");
        assert!(!there("0.0.0.0:5432", true) && !there("0.0.0.0:5432", false));
        assert!(there("10.0.0.9:5432", false), "a container's own address");
        let looped = opened("127.0.0.1:5432", "127.0.0.1:4000");
        assert!(looped("0.0.0.0:5432", true) && !looped("127.0.0.1:5432", false));
    }

    /// A server that closes each connection after its answer, and a client that has none for longer than a millisecond, and one
    /// to somebody else that stays. Planted fault: those that are new are not asked where they lead.
    #[test]
    fn a_peer_whose_connections_are_shorter_than_a_look_is_found() {
        let (listener, at) = listener();
        let script =
            format!("while :; do exec 3<>/dev/tcp/127.0.0.1/{}; read -r <&3; exec 3<&-; done", at.port());
        let client =
            Holder::from(Command::new("bash").args(["-c", &script]).stderr(Stdio::null()).spawn().unwrap());
        let accepted = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
        let counts = accepted.clone();
        let closing = std::thread::spawn(move || {
            // The last one is the test's own, which says that it is over.
            while let Ok((conn, from)) = listener.accept() {
                drop(conn);
                counts.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if from.ip() != std::net::IpAddr::from([127, 0, 0, 1]) {
                    return;
                }
            }
        });
        let begun = std::time::Instant::now();
        while !peers(&[this()]).contains(&client.pid()) {
            assert!(begun.elapsed().as_secs() < 20, "the client never came");
        }
        // One that had no CPU meanwhile asked for nothing.
        let count = || accepted.load(std::sync::atomic::Ordering::Relaxed);
        let is_missed = || {
            let before = count();
            !peers(&[this()]).contains(&client.pid()) && count() > before
        };
        let missed = (0..30).filter(|_| is_missed()).count();
        drop(client);
        let from = std::net::IpAddr::from([127, 0, 0, 2]);
        drop(crate::socket::connect_from(&crate::socket::Addr::Tcp(at), from));
        closing.join().unwrap();
        assert!(missed <= 2, "{missed} of 30");
    }

    #[test]
    fn both_ends_of_one_process_are_no_peers() {
        let (listener, at) = listener();
        let _client = TcpStream::connect(at).unwrap();
        let _accepted = listener.accept().unwrap();
        assert!(!peers(&[this()]).contains(&this()));
    }

    /// A client that has another connection every few milliseconds is found. Who lists the connections first and
    /// then looks through all processes misses it in every third try.
    #[test]
    fn a_peer_that_connects_anew_all_the_time_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let script = format!("while exec 3<>/dev/tcp/127.0.0.1/{port}; do read -r -t 0.02 <&3; done");
        let client = Holder::from(Command::new("bash").args(["-c", &script]).spawn().unwrap());
        let pid = client.pid();
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
        drop(client);
        let from = std::net::IpAddr::from([127, 0, 0, 2]);
        drop(crate::socket::connect_from(
            &crate::socket::Addr::Tcp(SocketAddr::from(([127, 0, 0, 1], port))),
            from,
        ));
        accepting.join().unwrap();
        assert!(missed <= 2, "{missed} of 30");
    }
}
