//! What is told when a server cannot be: the likely cause of each of the engine's errors, and what to try.

use std::error::Error;
use std::io;
use std::os::unix::fs::FileTypeExt;

use dyno_engine::{Addr, EngineError};
use dyno_lab::{Failure, chain};
use dyno_sys::proc;
use dyno_sys::socket::SocketError;

/// What opening a pipe for writing answers that nobody has opened for reading (ENXIO, fifo(7)).
const NOBODY_READS: i32 = 6;

/// A server of one worker holds some twenty descriptors while it starts.
const DESCRIPTORS_MIN: u64 = 32;

/// Ports below this one belong to root (ip_unprivileged_port_start, ip-sysctl).
const PRIVILEGED_PORTS: u16 = 1_024;

/// An address as a browser has it.
pub(crate) fn url(addr: &Addr) -> String {
    match addr {
        Addr::Tcp(addr) => format!("http://{addr}"),
        Addr::Unix(_) => addr.to_string(),
    }
}

/// An engine's error with its likely cause; `dyno floor` has the same ones.
pub(crate) fn engine_failure(error: &EngineError) -> Failure {
    let failure = Failure::error(error.to_string());
    match error {
        EngineError::Listen { addr, source } => not_listening(failure.because(error), addr, source),
        EngineError::Log { source, .. } if source.raw_os_error() == Some(NOBODY_READS) => failure
            .because(source)
            .likely("it is a pipe that nobody reads")
            .try_this("start its reader first"),
        EngineError::Log { path, source } => {
            let failure = dyno_lab::file::refused(&error.to_string(), source);
            match path {
                Some(_) => failure,
                None => failure.try_this("dyno serve --log-file access.log"),
            }
        }
        EngineError::ErrorLog { source, .. } => dyno_lab::file::refused(&error.to_string(), source),
        EngineError::System { source, .. } if source.raw_os_error().is_some_and(is_short_of_memory) => {
            failure.because(error).likely("memory or processes are limited here").try_this("ulimit -a")
        }
        EngineError::WorkerStart { how, .. } if how.contains("cannot become user") => failure
            .because(error)
            .likely("this root may not become other users, as in some containers")
            .try_this("dyno serve --user root, if what it serves may have all of root's rights"),
        EngineError::Content { source } => Failure::error(chain(source))
            .likely("whoever serves may not read it (dyno serve --help, --user), or it is another's")
            .try_this("ls -ld, on the folder and those above it"),
        EngineError::System { .. } if is_short_of_descriptors() => failure
            .because(error)
            .likely(format!("this process may have {} open files (ulimit -n)", proc::nofile().0))
            .try_this("ulimit -n 1024, or LimitNOFILE= of its unit"),
        EngineError::System { .. } | EngineError::WorkerStart { .. } | EngineError::NotStarted { .. } => {
            failure.because(error).try_this("dyno serve --workers 1 --pin none --reuseport off")
        }
        EngineError::Limit { limit, .. } => Failure::usage(error.to_string())
            .try_this(format!("another --{} (dyno serve --help)", limit.replace('_', "-"))),
        EngineError::Inherited { .. } => failure
            .because(error)
            .likely("a mistake in the socket unit")
            .try_this("systemctl cat dyno.socket"),
        EngineError::Host { source } => Failure::usage(chain(source))
            .likely("two settings of hosts contradict each other")
            .try_this("docs/manual/hosts.md"),
        EngineError::NoAddress | EngineError::Address { .. } | EngineError::Route { .. } => {
            failure.because(error).try_this("dyno serve --help")
        }
    }
}

/// ENOMEM and EAGAIN: what fork(2) and mmap(2) answer where a limit was reached.
fn is_short_of_memory(number: i32) -> bool {
    matches!(
        io::Error::from_raw_os_error(number).kind(),
        io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock
    )
}

/// Whether so few files may be open that no server starts: an error of one more tells it in many forms.
fn is_short_of_descriptors() -> bool {
    proc::nofile().0 < DESCRIPTORS_MIN
}

fn not_listening(failure: Failure, addr: &Addr, source: &SocketError) -> Failure {
    let cause = source.source().and_then(|cause| cause.downcast_ref::<io::Error>()).map(io::Error::kind);
    match (source, cause) {
        (SocketError::InUse { .. }, _) => busy(failure, addr),
        (SocketError::Option { .. }, Some(io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied)) => {
            failure
                .likely("the kernel has no congestion control of that name, or only root may choose it")
                .try_this("cat /proc/sys/net/ipv4/tcp_allowed_congestion_control")
        }
        (_, Some(io::ErrorKind::PermissionDenied)) if is_privileged(addr) => failure
            .likely("ports below 1024 need root or CAP_NET_BIND_SERVICE")
            .try_this("--listen 127.0.0.1:8080"),
        (_, Some(io::ErrorKind::PermissionDenied)) => {
            failure.likely("this user may not make a file there").try_this("name a socket file in /tmp")
        }
        (_, Some(io::ErrorKind::NotFound)) => failure
            .likely("the folder of the socket file does not exist")
            .try_this("name a socket file in /tmp"),
        (_, Some(io::ErrorKind::AddrNotAvailable)) => {
            failure.likely("this machine has no such address").try_this("ip -brief address")
        }
        _ => failure.try_this("another address: --listen 127.0.0.1:0"),
    }
}

fn busy(failure: Failure, addr: &Addr) -> Failure {
    if let Addr::Unix(path) = addr
        && std::fs::symlink_metadata(path).is_ok_and(|file| !file.file_type().is_socket())
    {
        return failure
            .likely("a file of that name is there, and it is no socket: it is left alone")
            .try_this(format!("another name: --listen {}", elsewhere(addr)));
    }
    let pids: Vec<String> = proc::listeners(addr).iter().map(ToString::to_string).collect();
    let likely = match &pids[..] {
        [] => "another program listens there".to_owned(),
        [pid] => format!("process {pid} listens there"),
        _ => format!("processes {} listen there", pids.join(", ")),
    };
    let try_this = match pids.first() {
        Some(pid) => format!("ps -p {pid}, or another address: --listen {}", elsewhere(addr)),
        None => format!("another address: --listen {}", elsewhere(addr)),
    };
    failure.likely(likely).try_this(try_this)
}

/// The same place with a port that the kernel chooses.
fn elsewhere(addr: &Addr) -> String {
    match addr {
        Addr::Tcp(addr) => std::net::SocketAddr::new(addr.ip(), 0).to_string(),
        Addr::Unix(path) => format!("unix:{}.2", path.display()),
    }
}

fn is_privileged(addr: &Addr) -> bool {
    matches!(addr, Addr::Tcp(addr) if addr.port() < PRIVILEGED_PORTS)
}
