//! Opening sockets: listen, accept, connect. Called by the engine's supervisor and by load sessions.
//!
//! A busy address is told apart from every other failure, because it is the one that users meet.

use super::addr::Addr;
use super::option::{SockOpt, set_congestion, set_int_option};
use crate::errno::{self, checked};
use std::ffi::CString;
use std::fs::{OpenOptions, Permissions};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Whether several sockets may share one address (`SO_REUSEPORT`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reuseport {
    /// One listener.
    Off,
    /// As many as processes of this user open; the kernel spreads connections over them.
    On,
}

/// How to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections waiting to be accepted; the kernel cuts it to net.core.somaxconn.
    pub backlog: u32,
    /// Sharing of the address; only for IP.
    pub reuseport: Reuseport,
    /// The congestion control of accepted connections; `None` keeps the system's.
    pub congestion: Option<String>,
    /// The permissions of a Unix socket's file; `None` leaves them to the umask.
    pub mode: Option<u32>,
}

impl Default for ListenOptions {
    /// 4,096 waiting connections (net.core.somaxconn since Linux 5.4), no sharing.
    fn default() -> ListenOptions {
        ListenOptions { backlog: 4_096, reuseport: Reuseport::Off, congestion: None, mode: None }
    }
}

/// Why a socket could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// No socket of this kind: descriptor limit, or IPv6 switched off.
    #[error("cannot open a socket for {addr}")]
    Open {
        /// Whom for.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// A path that is too long, made by hand.
    #[error("{addr} is too long for a socket file")]
    TooLong {
        /// The address.
        addr: Addr,
    },
    /// Somebody listens there.
    #[error("{addr} is in use")]
    InUse {
        /// The address.
        addr: Addr,
    },
    /// The address is not ours, the port is privileged, the folder is missing …
    #[error("cannot bind {addr}")]
    Bind {
        /// The address.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// An option was refused.
    #[error("cannot set {option} on the socket of {addr}")]
    Option {
        /// Whose.
        addr: Addr,
        /// Which, with its value.
        option: String,
        /// The kernel's word.
        source: io::Error,
    },
    /// The kernel would not listen.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
    /// Nobody there, no route, no free port on this side …
    #[error("cannot connect to {addr}")]
    Connect {
        /// The address.
        addr: Addr,
        /// The kernel's word.
        source: io::Error,
    },
}

/// What one attempt to accept came to.
#[derive(Debug)]
pub enum Accepted {
    /// A connection, nonblocking.
    Conn(OwnedFd),
    /// Nobody waits.
    WouldBlock,
    /// The descriptor limit or kernel memory: stop accepting until something was closed.
    LimitReached,
    /// This connection died before it was accepted (`accept(2)`): try the next.
    Transient,
    /// The listener itself is broken; the errno.
    Failed(i32),
}

/// Opens a listener. `SO_REUSEADDR` is set; an IPv6 listener takes IPv6 only, so that both families can be listened on
/// side by side. A socket file is removed first only if it is one and nobody answers on it.
pub fn listen(addr: &Addr, options: &ListenOptions) -> Result<OwnedFd, SocketError> {
    let fd = bound(addr, options)?;
    begin_to_listen(&fd, addr, options.backlog)?;
    Ok(fd)
}

/// The same without listening: nobody can connect, and of a group that shares its address (`SO_REUSEPORT`) it is none yet.
pub fn bound(addr: &Addr, options: &ListenOptions) -> Result<OwnedFd, SocketError> {
    let fd = open(addr)?;
    prepare(&fd, addr, options)?;
    bind_or_replace(&fd, addr)?;
    if let (Addr::Unix(path), Some(mode)) = (addr, options.mode) {
        // Before it listens: nobody can connect meanwhile.
        let refused =
            |source| SocketError::Option { addr: addr.clone(), option: format!("mode {mode:o}"), source };
        set_mode(path, mode).map_err(refused)?;
    }
    Ok(fd)
}

/// The mode of a socket's file, and of nothing else: who may write to its folder could have put a link to another file in its
/// place.
fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    let held = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_PATH | libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path)?;
    if !held.metadata()?.file_type().is_socket() {
        return Err(io::Error::from_raw_os_error(libc::ENOTSOCK));
    }
    // A descriptor that only holds a place cannot be asked for it (fchmod(2): EBADF); its name under /proc leads to the place.
    std::fs::set_permissions(format!("/proc/self/fd/{}", held.as_raw_fd()), Permissions::from_mode(mode))
}

/// Has a socket of [`bound`] listen. With `SO_REUSEPORT` the kernel gives it its share of connections from now on.
pub fn begin_to_listen(fd: impl AsFd, addr: &Addr, backlog: u32) -> Result<(), SocketError> {
    let backlog = i32::try_from(backlog).unwrap_or(i32::MAX);
    // SAFETY: listen takes no pointer, and the descriptor is borrowed and so open.
    match checked(unsafe { libc::listen(fd.as_fd().as_raw_fd(), backlog) }) {
        Ok(_) => Ok(()),
        // With SO_REUSEADDR two sockets can bind, and the second learns here that the first listens.
        Err(source) if in_use(&source) => Err(SocketError::InUse { addr: addr.clone() }),
        Err(source) => Err(SocketError::Listen { addr: addr.clone(), source }),
    }
}

/// Whether [`listen`] would succeed, as far as that can be told without listening: nothing is left behind, and nobody
/// can connect meanwhile.
pub fn try_listen(addr: &Addr, options: &ListenOptions) -> Result<(), SocketError> {
    let refused = |source| match in_use(&source) {
        true => SocketError::InUse { addr: addr.clone() },
        false => SocketError::Bind { addr: addr.clone(), source },
    };
    match addr {
        Addr::Unix(path) => can_make(path).map_err(refused),
        Addr::Tcp(_) => {
            let fd = open(addr)?;
            prepare(&fd, addr, options)?;
            bind(&fd, addr).map_err(refused)
        }
    }
}

/// Whether a socket's file could be made.
fn can_make(path: &Path) -> io::Result<()> {
    if std::fs::symlink_metadata(path).is_ok() && !is_stale(path) {
        return Err(io::Error::from_raw_os_error(libc::EADDRINUSE));
    }
    let folder =
        path.parent().filter(|folder| folder.components().next().is_some()).unwrap_or(Path::new("."));
    let folder = CString::new(folder.as_os_str().as_bytes())?;
    // SAFETY: `folder` is a string with its closing zero and lives through the call.
    checked(unsafe { libc::access(folder.as_ptr(), libc::W_OK | libc::X_OK) })?;
    Ok(())
}

/// Takes one waiting connection, nonblocking and close-on-exec.
#[inline]
pub fn accept(listener: impl AsFd) -> Accepted {
    let (fd, flags) = (listener.as_fd().as_raw_fd(), libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC);
    loop {
        // SAFETY: both pointers may be null: the peer's address is not asked for.
        let conn = unsafe { libc::accept4(fd, std::ptr::null_mut(), std::ptr::null_mut(), flags) };
        if conn >= 0 {
            // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
            return Accepted::Conn(unsafe { OwnedFd::from_raw_fd(conn) });
        }
        match errno::last() {
            libc::EINTR => {}
            number => return refused(number),
        }
    }
}

/// Starts a connection: the socket becomes writable when it stands, or [`super::take_error`] tells why not.
pub fn connect(addr: &Addr) -> Result<OwnedFd, SocketError> {
    let fd = open(addr)?;
    start(&fd, addr)?;
    Ok(fd)
}

/// The same from a chosen local IP; the port is picked only at connect (`IP_BIND_ADDRESS_NO_PORT`), so that each source
/// address has the whole port range for each destination.
pub fn connect_from(addr: &Addr, source: IpAddr) -> Result<OwnedFd, SocketError> {
    let fd = open(addr)?;
    let option =
        |source| SocketError::Option { addr: addr.clone(), option: SockOpt::BindNoPort.to_string(), source };
    set_int_option(&fd, SockOpt::BindNoPort, 1).map_err(option)?;
    let local = Addr::Tcp(SocketAddr::new(source, 0));
    bind(&fd, &local).map_err(|source| SocketError::Bind { addr: local.clone(), source })?;
    start(&fd, addr)?;
    Ok(fd)
}

fn open(addr: &Addr) -> Result<OwnedFd, SocketError> {
    let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes no pointer.
    let fd = checked(unsafe { libc::socket(addr.family(), kind, 0) })
        .map_err(|source| SocketError::Open { addr: addr.clone(), source })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn prepare(fd: &OwnedFd, addr: &Addr, options: &ListenOptions) -> Result<(), SocketError> {
    let Addr::Tcp(ip) = addr else { return Ok(()) };
    let set = |option: SockOpt, value| {
        let refused =
            |source| SocketError::Option { addr: addr.clone(), option: format!("{option} {value}"), source };
        set_int_option(fd, option, value).map_err(refused)
    };
    set(SockOpt::ReuseAddr, 1)?;
    if ip.is_ipv6() {
        set(SockOpt::V6Only, 1)?;
    }
    if options.reuseport == Reuseport::On {
        set(SockOpt::ReusePort, 1)?;
    }
    let Some(name) = &options.congestion else { return Ok(()) };
    let option = format!("{} {name}", SockOpt::Congestion);
    set_congestion(fd, name).map_err(|source| SocketError::Option { addr: addr.clone(), option, source })
}

fn bind_or_replace(fd: &OwnedFd, addr: &Addr) -> Result<(), SocketError> {
    let mut outcome = bind(fd, addr);
    if let (Err(error), Addr::Unix(path)) = (&outcome, addr)
        && in_use(error)
        && is_stale(path)
        && std::fs::remove_file(path).is_ok()
    {
        outcome = bind(fd, addr);
    }
    match outcome {
        Ok(()) => Ok(()),
        Err(source) if in_use(&source) => Err(SocketError::InUse { addr: addr.clone() }),
        Err(source) => Err(SocketError::Bind { addr: addr.clone(), source }),
    }
}

/// A socket file that a dead server left: only a refused connection proves that; a full queue does not.
fn is_stale(path: &Path) -> bool {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    let refused = |error: &io::Error| error.raw_os_error() == Some(libc::ECONNREFUSED);
    let answer = || connect(&Addr::Unix(path.to_owned()));
    is_socket && matches!(answer(), Err(SocketError::Connect { source, .. }) if refused(&source))
}

fn in_use(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EADDRINUSE)
}

fn bind(fd: &OwnedFd, addr: &Addr) -> io::Result<()> {
    let raw = addr.raw().ok_or_else(|| io::Error::from_raw_os_error(libc::ENAMETOOLONG))?;
    // SAFETY: the pointer and length are those of `raw`, which lives through the call.
    checked(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.len()) })?;
    Ok(())
}

fn start(fd: &OwnedFd, addr: &Addr) -> Result<(), SocketError> {
    let Some(raw) = addr.raw() else { return Err(SocketError::TooLong { addr: addr.clone() }) };
    // SAFETY: the pointer and length are those of `raw`, which lives through the call.
    match checked(unsafe { libc::connect(fd.as_raw_fd(), raw.as_ptr(), raw.len()) }) {
        Ok(_) => Ok(()),
        // Interrupted or not, the attempt goes on by itself (connect(2), EINTR).
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => Ok(()),
        Err(source) => Err(SocketError::Connect { addr: addr.clone(), source }),
    }
}

fn refused(number: i32) -> Accepted {
    match number {
        libc::EAGAIN => Accepted::WouldBlock,
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM => Accepted::LimitReached,
        // accept(2) "Error handling": errors pending on the new connection are to be treated like EAGAIN by retrying.
        libc::ECONNABORTED
        | libc::EPERM
        | libc::EPROTO
        | libc::ENETDOWN
        | libc::ENOPROTOOPT
        | libc::EHOSTDOWN
        | libc::ENONET
        | libc::EHOSTUNREACH
        | libc::EOPNOTSUPP
        | libc::ENETUNREACH
        | libc::ETIMEDOUT => Accepted::Transient,
        number => Accepted::Failed(number),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::{Io, local_addr, peer_addr, recv, send, take_error};
    use super::*;

    fn loopback(text: &str) -> (OwnedFd, Addr) {
        let fd = listen(&text.parse().unwrap(), &ListenOptions::default()).unwrap();
        let addr = local_addr(&fd).unwrap();
        (fd, addr)
    }

    /// Accepts with a deadline: loopback connects at once, but by way of a softirq.
    fn accept_soon(listener: &OwnedFd) -> OwnedFd {
        let deadline_ns = crate::clock::mono_ns() + 5_000_000_000;
        super::super::wait_readable(listener, deadline_ns).unwrap();
        match accept(listener) {
            Accepted::Conn(conn) => conn,
            other => panic!("expected a connection, got {other:?}"),
        }
    }

    fn scratch(name: &str) -> std::path::PathBuf {
        let path = std::env::temp_dir().join(format!("dyno-sys-{}-{name}.sock", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn connections_stand_over_both_families_and_files() {
        let path = scratch("stand");
        for text in ["127.0.0.1:0", "[::1]:0", &format!("unix:{}", path.display())] {
            let (listener, addr) = loopback(text);
            assert!(matches!(accept(&listener), Accepted::WouldBlock));
            let client = connect(&addr).unwrap();
            let conn = accept_soon(&listener);
            assert_eq!(take_error(&client).unwrap(), None);
            assert_eq!(send(&client, b"hi"), Io::Done(2));
            let mut buf = [0; 8];
            super::super::wait_readable(&conn, crate::clock::mono_ns() + 5_000_000_000).unwrap();
            assert_eq!(recv(&conn, &mut buf), Io::Done(2));
            assert_eq!(peer_addr(&client).unwrap(), addr);
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_busy_port_is_named_as_busy() {
        let (_listener, addr) = loopback("127.0.0.1:0");
        let second = listen(&addr, &ListenOptions::default()).unwrap_err();
        assert!(matches!(&second, SocketError::InUse { addr: busy } if *busy == addr), "{second}");
    }

    #[test]
    fn reuseport_lets_a_second_listener_in() {
        let options = ListenOptions { reuseport: Reuseport::On, ..ListenOptions::default() };
        let first = listen(&"127.0.0.1:0".parse().unwrap(), &options).unwrap();
        listen(&local_addr(&first).unwrap(), &options).unwrap();
    }

    #[test]
    fn both_families_share_a_port() {
        let (_six, addr) = loopback("[::]:0");
        let Addr::Tcp(addr) = addr else { panic!("{addr} is not IP") };
        listen(&Addr::Tcp(SocketAddr::from(([0, 0, 0, 0], addr.port()))), &ListenOptions::default()).unwrap();
    }

    #[test]
    fn a_stale_socket_file_is_replaced_and_a_live_one_is_not() {
        let path = scratch("stale");
        let text = format!("unix:{}", path.display());
        let (live, addr) = loopback(&text);
        assert!(matches!(listen(&addr, &ListenOptions::default()), Err(SocketError::InUse { .. })));
        drop(live);
        assert!(path.exists(), "closing a listener leaves its file");
        let mut again = None;
        crate::assert_soon(&true, || {
            again = listen(&addr, &ListenOptions::default()).ok();
            again.is_some()
        });
        std::fs::remove_file(path).unwrap();
    }

    /// Planted faults: `set_mode` changes it by the path, which follows links; it follows them when it opens (no O_NOFOLLOW).
    #[test]
    fn a_mode_is_for_a_socket_alone_and_no_link_leads_it_elsewhere() {
        let (path, secret) = (scratch("mode"), scratch("secret"));
        let mode = |path: &Path| std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777;
        let options = ListenOptions { mode: Some(0o620), ..ListenOptions::default() };
        listen(&Addr::Unix(path.clone()), &options).unwrap();
        assert_eq!(mode(&path), 0o620);
        std::fs::write(&secret, "precious").unwrap();
        std::fs::set_permissions(&secret, Permissions::from_mode(0o600)).unwrap();
        assert_eq!(set_mode(&secret, 0o666).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
        std::fs::remove_file(&path).unwrap();
        let theirs = scratch("theirs");
        let _theirs =
            listen(&Addr::Unix(theirs.clone()), &ListenOptions { mode: Some(0o600), ..options }).unwrap();
        for other in [&secret, &theirs] {
            std::os::unix::fs::symlink(other, &path).unwrap();
            assert_eq!(set_mode(&path, 0o666).unwrap_err().raw_os_error(), Some(libc::ENOTSOCK));
            assert_eq!(mode(other), 0o600);
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::remove_file(&theirs).unwrap();
        std::fs::remove_file(&secret).unwrap();
    }

    #[test]
    fn an_ordinary_file_is_never_removed() {
        let path = scratch("file");
        std::fs::write(&path, "precious").unwrap();
        let refused = listen(&Addr::Unix(path.clone()), &ListenOptions::default()).unwrap_err();
        assert!(matches!(refused, SocketError::InUse { .. }), "{refused}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "precious");
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_refused_connection_is_told_by_the_socket() {
        let (listener, addr) = loopback("127.0.0.1:0");
        drop(listener);
        crate::assert_soon(&Some(libc::ECONNREFUSED), || {
            let client = connect(&addr).unwrap();
            let _ = super::super::wait_readable(&client, crate::clock::mono_ns() + 100_000_000);
            take_error(&client).unwrap()
        });
    }

    #[test]
    fn a_connection_leaves_from_the_source_it_was_given() {
        let (_listener, addr) = loopback("127.0.0.1:0");
        let client = connect_from(&addr, "127.0.3.4".parse().unwrap()).unwrap();
        assert!(local_addr(&client).unwrap().to_string().starts_with("127.0.3.4:"));
    }

    #[test]
    fn a_path_made_too_long_by_hand_is_an_error_and_no_panic() {
        let addr = Addr::Unix("x".repeat(200).into());
        assert!(matches!(connect(&addr), Err(SocketError::TooLong { .. })));
        assert!(matches!(listen(&addr, &ListenOptions::default()), Err(SocketError::Bind { .. })));
    }

    #[test]
    fn an_unknown_congestion_control_is_named() {
        let options = ListenOptions { congestion: Some("nonesuch".to_owned()), ..ListenOptions::default() };
        let refused = listen(&"127.0.0.1:0".parse().unwrap(), &options).unwrap_err();
        assert!(refused.to_string().contains("nonesuch"), "{refused}");
    }

    #[test]
    fn accept_errors_fall_into_their_classes() {
        assert!(matches!(refused(libc::EMFILE), Accepted::LimitReached));
        assert!(matches!(refused(libc::ECONNABORTED), Accepted::Transient));
        assert!(matches!(refused(libc::EINVAL), Accepted::Failed(libc::EINVAL)));
    }
}
