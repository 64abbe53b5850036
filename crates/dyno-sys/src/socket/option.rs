//! Socket options by name (`socket(7)`, `tcp(7)`): set by the engine, read back by proofs, also on sockets fetched from
//! another process. Nothing here knows which setting is good.

use crate::errno::checked;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::str::FromStr;

/// TCP_CA_NAME_MAX of the kernel's include/net/tcp.h.
const CONGESTION_BYTES_MAX: usize = 16;

/// A socket option that this product sets or proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SockOpt {
    /// `TCP_NODELAY`
    NoDelay,
    /// `TCP_CONGESTION`: a name, not a number.
    Congestion,
    /// `TCP_QUICKACK`
    QuickAck,
    /// `TCP_CORK`
    Cork,
    /// `TCP_DEFER_ACCEPT`, seconds; set 5 reads 7.
    DeferAccept,
    /// `TCP_USER_TIMEOUT`, milliseconds.
    UserTimeout,
    /// `TCP_NOTSENT_LOWAT`, bytes.
    NotSentLowat,
    /// `SO_BUSY_POLL`, microseconds.
    BusyPoll,
    /// `SO_PREFER_BUSY_POLL`
    PreferBusyPoll,
    /// `SO_INCOMING_CPU`
    IncomingCpu,
    /// `SO_INCOMING_NAPI_ID`; 0 is no busy polling.
    IncomingNapiId,
    /// `SO_SNDBUF`, bytes; reads back doubled.
    SndBuf,
    /// `SO_RCVBUF`, bytes; reads back doubled.
    RcvBuf,
    /// `SO_KEEPALIVE`
    KeepAlive,
    /// `TCP_KEEPIDLE`, seconds.
    KeepIdle,
    /// `TCP_KEEPINTVL`, seconds.
    KeepInterval,
    /// `TCP_KEEPCNT`
    KeepCount,
    /// `SO_REUSEADDR`
    ReuseAddr,
    /// `SO_REUSEPORT`
    ReusePort,
    /// `SO_ACCEPTCONN`: 1 on a listener; read only.
    AcceptConn,
    /// `SO_TYPE`: 1 is a stream's; read only.
    Type,
    /// `IPV6_V6ONLY`
    V6Only,
    /// `IP_BIND_ADDRESS_NO_PORT`
    BindNoPort,
    /// `TCP_MAXSEG`, bytes
    MaxSegment,
}

/// Every option with its kernel name, level and number.
const TABLE: [(SockOpt, &str, i32, i32); 24] = [
    (SockOpt::NoDelay, "TCP_NODELAY", libc::IPPROTO_TCP, libc::TCP_NODELAY),
    (SockOpt::Congestion, "TCP_CONGESTION", libc::IPPROTO_TCP, libc::TCP_CONGESTION),
    (SockOpt::QuickAck, "TCP_QUICKACK", libc::IPPROTO_TCP, libc::TCP_QUICKACK),
    (SockOpt::Cork, "TCP_CORK", libc::IPPROTO_TCP, libc::TCP_CORK),
    (SockOpt::DeferAccept, "TCP_DEFER_ACCEPT", libc::IPPROTO_TCP, libc::TCP_DEFER_ACCEPT),
    (SockOpt::UserTimeout, "TCP_USER_TIMEOUT", libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT),
    (SockOpt::NotSentLowat, "TCP_NOTSENT_LOWAT", libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT),
    (SockOpt::BusyPoll, "SO_BUSY_POLL", libc::SOL_SOCKET, libc::SO_BUSY_POLL),
    (SockOpt::PreferBusyPoll, "SO_PREFER_BUSY_POLL", libc::SOL_SOCKET, libc::SO_PREFER_BUSY_POLL),
    (SockOpt::IncomingCpu, "SO_INCOMING_CPU", libc::SOL_SOCKET, libc::SO_INCOMING_CPU),
    (SockOpt::IncomingNapiId, "SO_INCOMING_NAPI_ID", libc::SOL_SOCKET, libc::SO_INCOMING_NAPI_ID),
    (SockOpt::SndBuf, "SO_SNDBUF", libc::SOL_SOCKET, libc::SO_SNDBUF),
    (SockOpt::RcvBuf, "SO_RCVBUF", libc::SOL_SOCKET, libc::SO_RCVBUF),
    (SockOpt::KeepAlive, "SO_KEEPALIVE", libc::SOL_SOCKET, libc::SO_KEEPALIVE),
    (SockOpt::KeepIdle, "TCP_KEEPIDLE", libc::IPPROTO_TCP, libc::TCP_KEEPIDLE),
    (SockOpt::KeepInterval, "TCP_KEEPINTVL", libc::IPPROTO_TCP, libc::TCP_KEEPINTVL),
    (SockOpt::KeepCount, "TCP_KEEPCNT", libc::IPPROTO_TCP, libc::TCP_KEEPCNT),
    (SockOpt::ReuseAddr, "SO_REUSEADDR", libc::SOL_SOCKET, libc::SO_REUSEADDR),
    (SockOpt::ReusePort, "SO_REUSEPORT", libc::SOL_SOCKET, libc::SO_REUSEPORT),
    (SockOpt::AcceptConn, "SO_ACCEPTCONN", libc::SOL_SOCKET, libc::SO_ACCEPTCONN),
    (SockOpt::Type, "SO_TYPE", libc::SOL_SOCKET, libc::SO_TYPE),
    (SockOpt::V6Only, "IPV6_V6ONLY", libc::IPPROTO_IPV6, libc::IPV6_V6ONLY),
    (SockOpt::BindNoPort, "IP_BIND_ADDRESS_NO_PORT", libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT),
    (SockOpt::MaxSegment, "TCP_MAXSEG", libc::IPPROTO_TCP, libc::TCP_MAXSEG),
];

/// A name that is none of ours.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not a socket option known here; write for example TCP_NODELAY or SO_SNDBUF")]
pub struct SockOptError {
    /// What was written.
    pub name: String,
}

impl SockOpt {
    fn row(self) -> &'static (SockOpt, &'static str, i32, i32) {
        TABLE.iter().find(|row| row.0 == self).expect("a test finds every option in the table")
    }
}

impl fmt::Display for SockOpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.row().1)
    }
}

impl FromStr for SockOpt {
    type Err = SockOptError;

    fn from_str(name: &str) -> Result<SockOpt, SockOptError> {
        let row = TABLE.iter().find(|row| row.1.eq_ignore_ascii_case(name));
        row.map(|row| row.0).ok_or_else(|| SockOptError { name: name.to_owned() })
    }
}

/// The option's number as the kernel keeps it. `ENOPROTOOPT` for one that this kind of socket does not have.
pub fn int_option(fd: impl AsFd, option: SockOpt) -> io::Result<i32> {
    let &(_, _, level, number) = option.row();
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: `value` and `len` live through the call and `len` is the size of `value`.
    checked(unsafe { libc::getsockopt(fd, level, number, (&raw mut value).cast(), &raw mut len) })?;
    Ok(value)
}

/// Sets the option's number; the kernel may keep another (see each option).
pub fn set_int_option(fd: impl AsFd, option: SockOpt, value: i32) -> io::Result<()> {
    let &(_, _, level, number) = option.row();
    let (fd, len) = (fd.as_fd().as_raw_fd(), size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: `value` lives through the call and `len` is its size.
    checked(unsafe { libc::setsockopt(fd, level, number, (&raw const value).cast(), len) })?;
    Ok(())
}

/// Any option as text: the number, or the name of the congestion control.
pub fn read_option(fd: impl AsFd, option: SockOpt) -> io::Result<String> {
    match option {
        SockOpt::Congestion => congestion(fd),
        option => int_option(fd, option).map(|value| value.to_string()),
    }
}

/// Sends small pieces at once (`TCP_NODELAY`). A Unix socket refuses it with `EOPNOTSUPP`.
pub fn set_nodelay(fd: impl AsFd) -> io::Result<()> {
    set_int_option(fd, SockOpt::NoDelay, 1)
}

/// Chooses the congestion control by name. `ENOENT` when the kernel has none of that name, `EPERM` when only root may.
pub fn set_congestion(fd: impl AsFd, name: &str) -> io::Result<()> {
    let &(_, _, level, number) = SockOpt::Congestion.row();
    let (fd, len) = (fd.as_fd().as_raw_fd(), name.len() as libc::socklen_t);
    // SAFETY: the pointer and length are those of `name`, which lives through the call.
    checked(unsafe { libc::setsockopt(fd, level, number, name.as_ptr().cast(), len) })?;
    Ok(())
}

/// The congestion control in force.
pub fn congestion(fd: impl AsFd) -> io::Result<String> {
    let &(_, _, level, number) = SockOpt::Congestion.row();
    let mut name = [0_u8; CONGESTION_BYTES_MAX];
    let mut len = name.len() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    // SAFETY: `name` and `len` live through the call and `len` is the size of `name`.
    checked(unsafe { libc::getsockopt(fd, level, number, name.as_mut_ptr().cast(), &raw mut len) })?;
    let text = name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte));
    Ok(text.collect())
}

/// The error that waits on the socket, taken off it: how a connect ended.
pub fn take_error(fd: impl AsFd) -> io::Result<Option<i32>> {
    let mut value: libc::c_int = 0;
    let mut len = size_of::<libc::c_int>() as libc::socklen_t;
    let fd = fd.as_fd().as_raw_fd();
    let place = (&raw mut value).cast();
    // SAFETY: `value` and `len` live through the call and `len` is the size of `value`.
    checked(unsafe { libc::getsockopt(fd, libc::SOL_SOCKET, libc::SO_ERROR, place, &raw mut len) })?;
    Ok((value != 0).then_some(value))
}

/// How the kernel finds out whether the peer of a silent connection is still there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// Seconds of silence before the first probe (`TCP_KEEPIDLE`).
    pub idle_s: i32,
    /// Seconds between probes that nobody answers (`TCP_KEEPINTVL`).
    pub interval_s: i32,
    /// Probes that nobody answers before the connection is over (`TCP_KEEPCNT`).
    pub probes: i32,
}

/// Probes a silent peer (`SO_KEEPALIVE`). A socket that is not TCP has no peer that could vanish unnoticed: then it fails
/// and nothing is lost.
pub fn keep_alive(fd: impl AsFd, wanted: KeepAlive) -> io::Result<()> {
    let fd = fd.as_fd();
    set_int_option(fd, SockOpt::KeepIdle, wanted.idle_s)?;
    set_int_option(fd, SockOpt::KeepInterval, wanted.interval_s)?;
    set_int_option(fd, SockOpt::KeepCount, wanted.probes)?;
    set_int_option(fd, SockOpt::KeepAlive, 1)
}

/// Closing will drop what is unsent and reset the connection (`SO_LINGER` 0): no TIME_WAIT is left.
pub fn set_linger_zero(fd: impl AsFd) -> io::Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    let (fd, len) = (fd.as_fd().as_raw_fd(), size_of::<libc::linger>() as libc::socklen_t);
    let place = (&raw const linger).cast();
    // SAFETY: `linger` lives through the call and `len` is its size.
    checked(unsafe { libc::setsockopt(fd, libc::SOL_SOCKET, libc::SO_LINGER, place, len) })?;
    Ok(())
}

/// Asks that a listener of a reuseport group be preferred for packets that arrive on `cpu` (`SO_INCOMING_CPU`).
pub fn set_incoming_cpu(fd: impl AsFd, cpu: usize) -> io::Result<()> {
    let cpu = i32::try_from(cpu).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    set_int_option(fd, SockOpt::IncomingCpu, cpu)
}

/// The CPU that last handled a packet of this connection; `None` before the first.
pub fn incoming_cpu(fd: impl AsFd) -> io::Result<Option<usize>> {
    int_option(fd, SockOpt::IncomingCpu).map(|cpu| usize::try_from(cpu).ok())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::net::{TcpListener, TcpStream};

    fn joined() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (client, listener.accept().unwrap().0)
    }

    #[test]
    fn every_option_is_found_by_its_name_and_written_back() {
        for (option, name, ..) in TABLE {
            assert_eq!(name.parse::<SockOpt>().unwrap(), option);
            assert_eq!(option.to_string(), name);
        }
        assert_eq!("tcp_nodelay".parse::<SockOpt>().unwrap(), SockOpt::NoDelay);
        assert!("TCP_NONESUCH".parse::<SockOpt>().unwrap_err().to_string().contains("TCP_NONESUCH"));
    }

    #[test]
    fn nodelay_is_off_until_it_is_set() {
        let (client, _conn) = joined();
        assert_eq!(int_option(&client, SockOpt::NoDelay).unwrap(), 0);
        set_nodelay(&client).unwrap();
        assert_eq!(read_option(&client, SockOpt::NoDelay).unwrap(), "1");
    }

    #[test]
    fn the_congestion_control_in_force_can_be_set_again() {
        let (client, _conn) = joined();
        let name = congestion(&client).unwrap();
        assert!(!name.is_empty());
        set_congestion(&client, &name).unwrap();
        assert_eq!(read_option(&client, SockOpt::Congestion).unwrap(), name);
        assert_eq!(set_congestion(&client, "nonesuch").unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn a_lingerless_close_resets_the_peer() {
        let (client, conn) = joined();
        set_linger_zero(&client).unwrap();
        drop(client);
        let outcome = std::io::Read::read(&mut &conn, &mut [0; 8]);
        assert_eq!(outcome.unwrap_err().raw_os_error(), Some(libc::ECONNRESET));
    }

    #[test]
    fn a_connection_tells_a_cpu_that_exists() {
        let (client, conn) = joined();
        std::io::Write::write_all(&mut &client, b"x").unwrap();
        std::io::Read::read_exact(&mut &conn, &mut [0; 1]).unwrap();
        let cpu = incoming_cpu(&conn).unwrap();
        assert!(cpu.is_some_and(|cpu| crate::affinity::online().contains(cpu)), "{cpu:?}");
    }

    #[test]
    fn an_option_of_another_kind_of_socket_is_refused() {
        let (unix, _other) = std::os::unix::net::UnixStream::pair().unwrap();
        assert!(set_nodelay(&unix).is_err());
    }
}
