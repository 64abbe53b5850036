//! Listeners: bound once, before any worker exists, in the order of the workers; and watched by their worker unless it
//! can hold no more connections.
//!
//! The supervisor and the embedded server bind; workers only accept. A full worker never spins on a listener that it
//! cannot accept from.

use crate::dials::{Congestion, Dials, Pin, Reuseport};
use crate::error::{EngineError, refused};
use dyno_sys::affinity;
use dyno_sys::epoll::{Epoll, Interest};
use dyno_sys::knob::{HOLD_ONLY, NO_FOLLOW};
use dyno_sys::socket::{self, Addr, ListenOptions, SockOpt, SocketError};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::PathBuf;

/// Connections that may wait to be accepted; the kernel cuts it to net.core.somaxconn (4,096 by default).
pub(crate) const BACKLOG: u32 = 65_535;

/// A worker that could accept no more tries again after this long even if none of its own connections closed:
/// another process may have freed what was short. Ten tries a second cost nothing.
const PAUSE_NS: u64 = 100_000_000;

/// SOCK_STREAM, as SO_TYPE tells it.
const STREAM: i32 = 1;

/// The sockets of a server.
pub(crate) struct Bound {
    /// Where the server listens, with the ports that the kernel chose.
    pub(crate) addrs: Vec<Addr>,
    /// The files of Unix sockets.
    pub(crate) files: Vec<SocketFile>,
    /// The listeners of each worker.
    pub(crate) by_worker: Vec<Vec<OwnedFd>>,
}

/// A socket's file as it was made here: another server may have put its own in its place since.
pub(crate) struct SocketFile {
    path: PathBuf,
    /// A file is known by its number, which a file system gives to the next one when nobody has this one: while a server
    /// drains its listeners are closed, and its successor may have taken the name.
    held: File,
}

impl SocketFile {
    pub(crate) fn of(addr: &Addr) -> Option<SocketFile> {
        let Addr::Unix(path) = addr else { return None };
        let held = OpenOptions::new().read(true).custom_flags(HOLD_ONLY | NO_FOLLOW).open(path).ok()?;
        Some(SocketFile { path: path.clone(), held })
    }

    /// Takes it away, unless it is another's by now.
    pub(crate) fn remove(&self) {
        let id = |file: Metadata| (file.dev(), file.ino());
        let there = std::fs::symlink_metadata(&self.path).map(id);
        if there.is_ok_and(|there| self.held.metadata().map(id).is_ok_and(|own| own == there)) {
            // Somebody else may have removed it: then there is nothing to do.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Binds every address for every worker.
pub(crate) fn bind(addrs: &[Addr], dials: &Dials, mode: Option<u32>) -> Result<Bound, EngineError> {
    if addrs.is_empty() {
        return Err(EngineError::NoAddress);
    }
    let workers = dials.workers.get();
    let by_worker = (0..workers).map(|_| Vec::new()).collect();
    let mut bound = Bound { addrs: Vec::new(), files: Vec::new(), by_worker };
    for addr in addrs {
        let mut listeners = open(addr, dials, mode)?;
        if listeners.len() < workers {
            let copies = (1..workers).map(|_| listeners[0].try_clone()).collect::<io::Result<Vec<_>>>();
            listeners.extend(copies.map_err(refused("copy a listener for each worker"))?);
        }
        bound.files.extend(SocketFile::of(addr));
        bound
            .addrs
            .push(socket::local_addr(&listeners[0]).map_err(refused("read where the server listens"))?);
        for (own, listener) in bound.by_worker.iter_mut().zip(listeners) {
            own.push(listener);
        }
    }
    let is_whole = bound.by_worker.iter().all(|own| own.len() == addrs.len());
    assert!(is_whole, "each worker has a listener of each address");
    Ok(bound)
}

/// The sockets of an address: one for each worker where each has its own, else one that all share.
pub(crate) fn open(addr: &Addr, dials: &Dials, mode: Option<u32>) -> Result<Vec<OwnedFd>, EngineError> {
    match (addr, dials.reuseport) {
        (Addr::Unix(_), _) | (Addr::Tcp(_), Reuseport::Off) => {
            Ok(vec![listen(addr, dials, socket::Reuseport::Off, mode)?])
        }
        (Addr::Tcp(_), _) => bind_each(addr, dials),
    }
}

/// Where a listener of somebody else's listens, once it is sure that it is one, and set as our own ones are.
pub(crate) fn adopt(listener: &OwnedFd) -> Result<Addr, String> {
    let option = |option: SockOpt| {
        socket::int_option(listener, option).map_err(|error| format!("{option} cannot be read: {error}"))
    };
    if option(SockOpt::AcceptConn)? != 1 {
        return Err("it does not listen (Accept=yes in a socket unit?)".to_owned());
    }
    if option(SockOpt::Type)? != STREAM {
        return Err("it is no stream (ListenStream= in a socket unit makes one)".to_owned());
    }
    let set = |set: io::Result<()>| set.map_err(|error| error.to_string());
    set(socket::set_nonblocking(listener))?;
    let addr = socket::local_addr(listener).map_err(|error| error.to_string())?;
    if matches!(addr, Addr::Tcp(_)) {
        set(socket::set_nodelay(listener))?;
    }
    Ok(addr)
}

/// Copies of the listeners of every worker but `own`, where each worker has its own; none where all share them.
pub(crate) fn of_others(
    by_worker: &[Vec<OwnedFd>],
    own: usize,
    dials: &Dials,
) -> io::Result<Vec<(usize, Vec<OwnedFd>)>> {
    if dials.reuseport == Reuseport::Off {
        return Ok(Vec::new());
    }
    let others = by_worker.iter().enumerate().filter(|(number, _)| *number != own);
    others
        .map(|(number, all)| Ok((number, all.iter().map(OwnedFd::try_clone).collect::<io::Result<_>>()?)))
        .collect()
}

/// A socket for each worker, bound in their order: steering by CPU counts sockets in the order in which they joined.
fn bind_each(addr: &Addr, dials: &Dials) -> Result<Vec<OwnedFd>, EngineError> {
    // With SO_REUSEPORT a second server of the same user would join the first one's group unnoticed. Without it the
    // kernel says that the port is busy, so that is asked first.
    let mut addr = addr.clone();
    drop(listen(&addr, dials, socket::Reuseport::Off, None)?);
    let first = listen(&addr, dials, socket::Reuseport::On, None)?;
    addr = socket::local_addr(&first).map_err(refused("read where the server listens"))?;
    let mut listeners = vec![first];
    while listeners.len() < dials.workers.get() {
        listeners.push(listen(&addr, dials, socket::Reuseport::On, None)?);
    }
    if dials.reuseport == Reuseport::Cpu {
        steer(&listeners[0], dials, &cpus())?;
    }
    Ok(listeners)
}

/// Binds as many more of an address's sockets as there are more workers. They do not listen before [`begin`]: until somebody
/// accepts from them they must take nothing from those that are served.
pub(crate) fn join(listeners: &mut Vec<OwnedFd>, addr: &Addr, dials: &Dials) -> Result<(), EngineError> {
    while listeners.len() < dials.workers.get() {
        listeners.push(bound(addr, dials, socket::Reuseport::On, None)?);
    }
    Ok(())
}

/// Has the sockets listen that were only bound, in the order of their workers, which steering counts them in.
pub(crate) fn begin(by_worker: &[Vec<OwnedFd>]) -> Result<(), EngineError> {
    for listener in by_worker.iter().flatten() {
        let is_listening = socket::int_option(listener, SockOpt::AcceptConn);
        if is_listening.map_err(refused("read whether a socket listens"))? == 0 {
            let addr = socket::local_addr(listener).map_err(refused("read where the server listens"))?;
            let begun = socket::begin_to_listen(listener, &addr, BACKLOG);
            begun.map_err(|source| EngineError::Listen { addr, source })?;
        }
    }
    Ok(())
}

/// Has the kernel spread the connections of a socket's group over as many sockets as there are workers, by CPU: each to the
/// worker that is bound to it.
pub(crate) fn steer(listener: &OwnedFd, dials: &Dials, cpus: &[usize]) -> Result<(), EngineError> {
    let homes: Vec<usize> = (0..dials.workers.get()).filter_map(|number| home(number, dials, cpus)).collect();
    let attached = socket::attach_reuseport_by_cpu(listener, dials.workers.count().get(), &homes);
    attached.map_err(refused("steer connections by CPU (SO_ATTACH_REUSEPORT_CBPF)"))
}

/// The CPUs that this process may use, which its workers are bound to.
pub(crate) fn cpus() -> Vec<usize> {
    affinity::allowed().iter().collect()
}

/// The CPU of these that a worker is bound to, if any.
pub(crate) fn home(number: usize, dials: &Dials, cpus: &[usize]) -> Option<usize> {
    (dials.pin == Pin::Cpu && !cpus.is_empty()).then(|| cpus[number % cpus.len()])
}

/// Whether the address could be listened on.
pub(crate) fn would_listen(addr: &Addr, dials: &Dials) -> Result<(), EngineError> {
    let options = options(addr, dials, socket::Reuseport::Off, None);
    let refused = |source: SocketError| EngineError::Listen { addr: addr.clone(), source };
    socket::try_listen(addr, &options).map_err(refused)
}

fn options(addr: &Addr, dials: &Dials, reuseport: socket::Reuseport, mode: Option<u32>) -> ListenOptions {
    let congestion = match (&dials.congestion, addr) {
        (Congestion::Named(name), Addr::Tcp(_)) => Some(name.clone()),
        _ => None,
    };
    ListenOptions { backlog: BACKLOG, reuseport, congestion, mode }
}

fn listen(
    addr: &Addr,
    dials: &Dials,
    reuseport: socket::Reuseport,
    mode: Option<u32>,
) -> Result<OwnedFd, EngineError> {
    let listener = bound(addr, dials, reuseport, mode)?;
    let begun = socket::begin_to_listen(&listener, addr, BACKLOG);
    begun.map_err(|source| EngineError::Listen { addr: addr.clone(), source })?;
    Ok(listener)
}

fn bound(
    addr: &Addr,
    dials: &Dials,
    reuseport: socket::Reuseport,
    mode: Option<u32>,
) -> Result<OwnedFd, EngineError> {
    let options = options(addr, dials, reuseport, mode);
    let refused = |source: SocketError| EngineError::Listen { addr: addr.clone(), source };
    let listener = socket::bound(addr, &options).map_err(refused)?;
    if matches!(addr, Addr::Tcp(_)) {
        // Accepted sockets inherit it (tcp_create_openreq_child copies the listener), which saves a call for each.
        socket::set_nodelay(&listener)
            .map_err(|source| EngineError::System { what: format!("set TCP_NODELAY on {addr}"), source })?;
    }
    Ok(listener)
}

/// A worker's listeners, watched or not.
pub(crate) struct Listeners {
    listeners: Vec<OwnedFd>,
    interest: Interest,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Watched,
    /// Not watched until this moment, or until a connection closes.
    Paused {
        until_ns: u64,
    },
}

impl Listeners {
    /// Listeners that are not watched yet. Shared ones wake one worker at a time; without EPOLLEXCLUSIVE every
    /// connection wakes them all (epoll_ctl(2)).
    pub(crate) fn new(listeners: Vec<OwnedFd>, reuseport: Reuseport) -> Listeners {
        let interest = if reuseport == Reuseport::Off { Interest::READ.exclusive() } else { Interest::READ };
        Listeners { listeners, interest, state: State::Paused { until_ns: 0 } }
    }

    pub(crate) fn get(&self, at: usize) -> Option<BorrowedFd<'_>> {
        self.listeners.get(at).map(AsFd::as_fd)
    }

    pub(crate) fn count(&self) -> usize {
        self.listeners.len()
    }

    /// Watches the listeners under the tokens that `token` gives them.
    pub(crate) fn watch(&mut self, epoll: &Epoll, token: impl Fn(usize) -> u64) -> io::Result<()> {
        if self.state != State::Watched {
            for (at, listener) in self.listeners.iter().enumerate() {
                epoll.add(listener, token(at), self.interest)?;
            }
            self.state = State::Watched;
        }
        Ok(())
    }

    /// Stops watching the listeners; connections wait in the kernel's queue.
    pub(crate) fn pause(&mut self, epoll: &Epoll, now_ns: u64) {
        for listener in &self.listeners {
            // It may not be watched, when opening failed half way: then there is nothing to undo.
            let _ = epoll.remove(listener);
        }
        self.state = State::Paused { until_ns: now_ns + PAUSE_NS };
    }

    /// When to try again; `None` while they are watched.
    pub(crate) fn paused_until(&self) -> Option<u64> {
        match self.state {
            State::Watched => None,
            State::Paused { until_ns } => Some(until_ns),
        }
    }

    /// Closes the listeners for good.
    pub(crate) fn close(&mut self) {
        self.listeners.clear();
        self.state = State::Watched;
    }
}
