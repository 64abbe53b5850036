//! The connections of processes, and who holds their other ends.
//!
//! The kernel is asked for the sockets that are open (`sock_diag(7)`): the tables of /proc list those too that wait for their
//! end, of which a server without keep-alive leaves tens of thousands. Where it cannot be asked, the tables are read.

mod peers;

pub use peers::peers;

use crate::Pid;
use crate::child::this;
use crate::namespace;
use crate::netlink::sock_diag::{self, TcpSocket, UnixEnd};
use crate::proc::{self, InetLine, UdpLine, folder, same_network};
use crate::tasks::numbers_in;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::OnceLock;

/// Socket states of the tables (include/net/tcp_states.h).
const ESTABLISHED: u8 = 0x01;
const CLOSE_WAIT: u8 = 0x08;
const LISTEN: u8 = 0x0A;

/// The kernel's functions that answer for sockets of TCP and for unix sockets: asked without them, it would load them.
const TCP_PART: &str = "tcp_diag_dump";
const UNIX_PART: &str = "unix_diag_handler_dump";

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
pub fn held(pids: &[Pid]) -> Vec<(Pid, Vec<HeldSocket>)> {
    let Some(first) = pids.first() else { return Vec::new() };
    let table: BTreeMap<u64, InetLine> = open_sockets(*first)
        .into_iter()
        .filter(|line| line.state != CLOSE_WAIT && line.inode != 0)
        .map(|line| (line.inode, line))
        .collect();
    let of = |pid: &Pid| {
        let folder = folder(*pid);
        let held = |fd: i32| Some(HeldSocket { fd, line: *table.get(&proc::socket_inode(&folder, fd)?)? });
        (*pid, numbers_in(&format!("{folder}/fd")).into_iter().filter_map(held).collect())
    };
    pids.iter().map(of).collect()
}

/// How many UDP sockets these processes hold that see the same network as the first of them.
pub fn udp_sockets(pids: &[Pid]) -> usize {
    let Some(first) = pids.first() else { return 0 };
    let open: BTreeSet<u64> = proc::udp_lines(*first).map(|one| one.line.inode).collect();
    let held: BTreeSet<u64> = pids.iter().flat_map(|pid| proc::socket_inodes(*pid)).collect();
    held.intersection(&open).count()
}

/// UDP sockets of some processes of one network namespace that take datagrams of anybody.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Receivers {
    inodes: BTreeSet<u64>,
}

/// What lies in such sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Datagrams {
    /// Sockets with datagrams that nobody has read.
    pub waiting: usize,
    /// Datagrams that found no room, since the sockets were made.
    pub drops: u64,
}

impl Receivers {
    /// Those that these processes hold now.
    pub fn of(pids: &[Pid]) -> Receivers {
        let Some(first) = pids.first() else { return Receivers::default() };
        let mut inodes: BTreeSet<u64> =
            proc::udp_lines(*first).filter(UdpLine::serves).map(|one| one.line.inode).collect();
        if !inodes.is_empty() {
            let held: BTreeSet<u64> = pids.iter().flat_map(|pid| proc::socket_inodes(*pid)).collect();
            inodes.retain(|inode| held.contains(inode));
        }
        Receivers { inodes }
    }

    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inodes.is_empty()
    }

    /// Looks at all of them once, in the network that `pid` sees.
    pub fn look(&self, pid: Pid) -> Datagrams {
        let mut seen = Datagrams::default();
        for one in proc::udp_lines(pid).filter(|one| self.inodes.contains(&one.line.inode)) {
            seen.waiting += usize::from(one.line.unread > 0);
            seen.drops += one.drops;
        }
        seen
    }
}

/// The TCP connections of some processes of one network namespace, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Those with received bytes that nobody has read.
    pub unread: usize,
    /// Whether these processes listen for TCP connections.
    pub listens: bool,
    /// How many they hold.
    pub held: usize,
}

impl Connections {
    /// Those that these processes hold now.
    pub fn of(pids: &[Pid]) -> Connections {
        let Some(first) = pids.first() else { return Connections::default() };
        let own: BTreeSet<u64> = pids.iter().flat_map(|pid| proc::socket_inodes(*pid)).collect();
        let mut all = Connections::default();
        for line in open_sockets(*first).into_iter().filter(|line| own.contains(&line.inode)) {
            if line.state == LISTEN {
                all.listens = true;
            } else {
                all.held += 1;
                all.unread += usize::from(asks(&line));
            }
        }
        all
    }
}

/// Whether something waits to be read. A far side's end that was not taken stands in the queue as a byte, and asks for nothing.
fn asks(line: &InetLine) -> bool {
    line.unread > u64::from(line.state == CLOSE_WAIT)
}

/// Whether the kernel has the part that answers for unix sockets.
pub fn has_unix_part() -> bool {
    has(UNIX_PART)
}

fn has(part: &str) -> bool {
    static THERE: OnceLock<Vec<String>> = OnceLock::new();
    let there = THERE.get_or_init(|| proc::kernel_symbols(&[TCP_PART, UNIX_PART]).unwrap_or_default());
    there.iter().any(|one| one == part)
}

/// Listeners of TCP and connections that are open, or closed by the other side alone, of the network that `pid` sees.
fn open_sockets(pid: Pid) -> Vec<InetLine> {
    let states = [ESTABLISHED, CLOSE_WAIT, LISTEN];
    let asked = if has(TCP_PART) { at_sockets_of(pid, || sock_diag::tcp(&states).ok()) } else { None };
    let asked = asked.map(|all| all.into_iter().map(line).collect());
    asked.unwrap_or_else(|| proc::inet_lines(pid).filter(|line| states.contains(&line.state)).collect())
}

fn line(of: TcpSocket) -> InetLine {
    let TcpSocket { local, remote, unread, state, inode } = of;
    InetLine { local, remote, unread: unread.into(), state, inode: inode.into() }
}

/// Unix sockets of the network that `pid` sees, with those that they are connected to; none where the kernel cannot be asked.
fn unix_ends(pid: Pid) -> Vec<UnixEnd> {
    let asked = if has_unix_part() { at_sockets_of(pid, || sock_diag::unix().ok()) } else { None };
    asked.unwrap_or_default()
}

/// Does `work` in the network that `pid` sees; `None` where this process may not go there. In another one a thread of its own
/// does, and ends there: who may enter a network may not always go back.
fn at_sockets_of<T: Send>(pid: Pid, work: impl FnOnce() -> Option<T> + Send) -> Option<T> {
    if same_network(pid, this()) { work() } else { namespace::at_sockets_of(pid, work).ok()? }
}

/// Whether a listener at `at` gets what is sent to `to`, which is an address of this machine.
fn hears(at: &SocketAddr, to: &SocketAddr) -> bool {
    let any = at.ip().is_unspecified() && (at.is_ipv6() || to.is_ipv4());
    at.port() == to.port() && (at.ip() == to.ip() || any)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Shutdown, TcpListener, TcpStream};

    fn lines_at(port: u16) -> Vec<InetLine> {
        let mut all = open_sockets(this());
        all.retain(|line| line.local.port() == port || line.remote.port() == port);
        all.sort_by_key(|line| line.inode);
        all
    }

    /// Waits until so many bytes are there, and leaves them.
    fn arrives(conn: &TcpStream, bytes: usize) {
        while conn.peek(&mut [0; 8]).unwrap() < bytes {}
    }

    /// Planted faults: the table of TCP; sockets of everybody.
    #[test]
    fn sockets_of_udp_are_counted_that_a_process_holds() {
        let mut child = std::process::Command::new("sleep").arg("9").spawn().unwrap();
        let before = udp_sockets(&[this()]);
        let held = [
            std::net::UdpSocket::bind("127.0.0.1:0").unwrap(),
            std::net::UdpSocket::bind("[::1]:0").unwrap(),
        ];
        let counted = (udp_sockets(&[this()]) - before, udp_sockets(&[child.id().cast_signed()]));
        child.kill().unwrap();
        child.wait().unwrap();
        drop(held);
        assert_eq!(counted, (2, 0));
    }

    /// Planted faults: a socket that asks counts as one that is asked; what is dropped is read from another column.
    #[test]
    fn datagrams_that_nobody_reads_wait_and_those_without_room_are_counted() {
        let server = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        let client = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(server.local_addr().unwrap()).unwrap();
        let before = Receivers::of(&[this()]);
        let idle = before.look(this());
        // More than any buffer takes by default.
        for _ in 0..2_000 {
            client.send(&[7; 1_000]).unwrap();
        }
        let full = before.look(this());
        assert!(full.waiting > idle.waiting && full.drops > idle.drops, "{idle:?} {full:?}");
        let inode = |socket: &std::net::UdpSocket| {
            use std::os::fd::AsRawFd;
            proc::socket_inode(&folder(this()), socket.as_raw_fd()).unwrap()
        };
        assert_eq!([&server, &client].map(|one| before.inodes.contains(&inode(one))), [true, false]);
    }

    /// Planted fault: the address of the other end read from where this one's stands.
    #[test]
    fn the_kernels_answer_and_its_table_are_the_same() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(at).unwrap();
            let port = listener.local_addr().unwrap().port();
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (conn, _) = listener.accept().unwrap();
            client.write_all(b"four").unwrap();
            arrives(&conn, 4);
            let asked = lines_at(port);
            assert_eq!((asked.len(), asked.iter().map(|line| line.unread).sum::<u64>()), (3, 4), "{asked:?}");
            let states = [ESTABLISHED, CLOSE_WAIT, LISTEN];
            let mut read: Vec<InetLine> = proc::inet_lines(this())
                .filter(|line| line.local.port() == port || line.remote.port() == port)
                .filter(|line| states.contains(&line.state))
                .collect();
            read.sort_by_key(|line| line.inode);
            assert_eq!(asked, read);
            drop((client, conn));
        }
    }

    #[test]
    fn what_was_received_and_not_read_is_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut conn, _) = listener.accept().unwrap();
        let port = conn.local_addr().unwrap().port();
        client.write_all(b"x").unwrap();
        arrives(&conn, 1);
        // Other tests of this process have connections too: only this one is looked at.
        let unread = || lines_at(port).iter().filter(|line| line.unread > 0).count();
        assert_eq!(unread(), 1);
        let all = Connections::of(&[this()]);
        assert!(all.unread >= 1 && all.held >= 2 && all.listens, "{all:?}");
        conn.read_exact(&mut [0]).unwrap();
        assert_eq!(unread(), 0);
    }

    /// Planted fault: a far side's end counts as a request.
    #[test]
    fn a_far_sides_end_asks_for_nothing_and_what_came_before_it_does() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let asked = [&b""[..], b"x"].map(|sent| {
            let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
            let (_conn, _) = listener.accept().unwrap();
            client.write_all(sent).unwrap();
            client.shutdown(Shutdown::Write).unwrap();
            let port = client.local_addr().unwrap().port();
            let begun = std::time::Instant::now();
            loop {
                if let Some(line) = lines_at(port).iter().find(|line| line.state == CLOSE_WAIT) {
                    return asks(line);
                }
                assert!(begun.elapsed().as_secs() < 30, "its end does not come");
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        });
        assert_eq!(asked, [false, true]);
    }

    /// Planted fault: a listener of another address hears, too.
    #[test]
    fn who_listens_on_any_address_hears_all_of_its_port() {
        let hears = |at: &str, to: &str| hears(&at.parse().unwrap(), &to.parse().unwrap());
        assert!(hears("0.0.0.0:80", "10.0.0.1:80") && hears("[::]:80", "10.0.0.1:80"));
        assert!(hears("10.0.0.1:80", "10.0.0.1:80"));
        assert!(!hears("0.0.0.0:80", "[::1]:80") && hears("[::]:80", "[::1]:80"));
        assert!(!hears("10.0.0.2:80", "10.0.0.1:80") && !hears("0.0.0.0:81", "10.0.0.1:80"));
    }
}
