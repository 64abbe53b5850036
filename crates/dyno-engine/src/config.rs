//! What a server is told before it starts: where to listen, how its dials stand, its limits.
//!
//! The binary fills a `Config` from its flags, the library's `Server` from its builder calls. Nothing here is read
//! from files or the environment.

use crate::clients::{AddressLimits, Clients};
use crate::content::Mount;
use crate::dials::Dials;
use crate::error::EngineError;
use crate::error_log::ErrorLog;
use crate::host::Host;
use crate::log::LogFormat;
use crate::sandbox::Sandbox;
use dyno_proto::http1::request;
use dyno_sys::socket::Addr;
use dyno_sys::user::Identity;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// One second in nanoseconds.
pub(crate) const SECOND_NS: u64 = 1_000_000_000;

/// How long a drain may take before what is left is cut: the ten seconds that service managers commonly grant.
///
/// ```
/// # use dyno_engine::*;
/// assert_eq!(DRAIN_NS_DEFAULT, 10_000_000_000);
/// ```
pub const DRAIN_NS_DEFAULT: u64 = 10 * SECOND_NS;

/// How long the workers of old settings may go on: as long as a large download over a slow line takes.
pub const RETIRE_NS_DEFAULT: u64 = 3_600 * SECOND_NS;

/// How long a program that takes over has until it serves: what reads a large folder first needs some.
pub const HAND_OVER_NS_DEFAULT: u64 = 60 * SECOND_NS;

/// Everything a server is told before it starts.
///
/// ```no_run
/// # use dyno_engine::*;
///
/// let config = Config { listen: vec!["127.0.0.1:8080".parse()?], ..Config::default() };
/// let setup = master::Setup { config, routes: Box::new(Router::new) };
/// let mut again = || Err("nothing is read again".to_owned());
/// master::run(setup, master::Own::default(), &mut again, &mut |event| eprintln!("{event:?}"))?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Config {
    /// Where to listen; never empty.
    pub listen: Vec<Addr>,
    /// How the dials stand.
    pub dials: Dials,
    /// The permissions of the files of Unix sockets; `None` leaves them to the umask.
    pub socket_mode: Option<u32>,
    /// What a peer may ask for at most.
    pub limits: Limits,
    /// Where the access log goes; `None` is standard output.
    pub log_file: Option<PathBuf>,
    /// What a line of the access log says.
    pub log_format: LogFormat,
    /// Whether replies that wait for the access log ([`Log::Commit`](crate::Log::Commit)) wait until the disk has it.
    pub log_fsync: bool,
    /// Where workers say what goes wrong with a request, before its reply leaves; `None`: nowhere.
    pub error_log: Option<ErrorLog>,
    /// Who the workers and the log's writer become once they are forked; `None`: they stay who the supervisor is. Only root
    /// may become somebody else. Sockets and the log are opened before.
    pub user: Option<Identity>,
    /// Whether workers and helpers are kept from what they do not need. Routes of one's own may need more than those here:
    /// that is why it is off unless it is asked for.
    pub sandbox: Sandbox,
    /// Folders whose files are served where no route is, for every name that is no other host's.
    pub content: Vec<Mount>,
    /// Hosts that are told apart, with their folders, redirects, header lines and error pages.
    pub hosts: Vec<Host>,
    /// How long a drain may take, in nanoseconds, before connections that are left are cut.
    pub drain_ns: u64,
    /// How long the workers of old settings may go on after a reload, in nanoseconds, before their connections are cut.
    pub retire_ns: u64,
    /// Where `/metrics` and `/healthz` are served, by a process of their own; `None`: nowhere, and nothing is counted for
    /// them.
    pub metrics: Option<Addr>,
    /// How it is known who asks, where proxies stand between.
    pub clients: Clients,
    /// Listeners that a service manager has opened; where there are any they take the place of `listen`.
    pub inherited: Vec<OwnedFd>,
    /// How often [`Event::Alive`](crate::supervisor::Event::Alive) is told, in nanoseconds; `None`: never.
    pub alive_ns: Option<u64>,
    /// How long a program that takes over on SIGUSR2 has until it serves, in nanoseconds.
    pub hand_over_ns: u64,
    /// A SOCK_SEQPACKET socket on which the supervisor takes orders while it runs; see `control`.
    pub control: Option<OwnedFd>,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            listen: vec![Addr::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))],
            dials: Dials::default(),
            socket_mode: None,
            limits: Limits::default(),
            log_file: None,
            log_format: LogFormat::default(),
            log_fsync: false,
            error_log: None,
            user: None,
            sandbox: Sandbox::Off,
            content: Vec::new(),
            hosts: Vec::new(),
            drain_ns: DRAIN_NS_DEFAULT,
            retire_ns: RETIRE_NS_DEFAULT,
            metrics: None,
            clients: Clients::default(),
            inherited: Vec::new(),
            alive_ns: None,
            hand_over_ns: HAND_OVER_NS_DEFAULT,
            control: None,
        }
    }
}

/// What a peer may ask for at most, and for how long it may keep the server waiting. Times are nanoseconds.
///
/// ```
/// # use dyno_engine::*;
///
/// let limits = Limits { body_bytes_max: 64 << 10, idle_ns: 5_000_000_000, ..Limits::default() };
/// let server = Server::new().limits(limits);
/// # let _ = server;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a request line; longer ones get 414.
    pub line_bytes_max: usize,
    /// Bytes of a head; longer ones get 431.
    pub head_bytes_max: usize,
    /// Header fields of a request; more get 431.
    pub headers_max: usize,
    /// Bytes of a request's body; longer ones get 413.
    pub body_bytes_max: usize,
    /// Bytes of a body that a route takes piece by piece ([`Router::upload`](crate::Router::upload)); larger ones get 413.
    pub upload_bytes_max: u64,
    /// Connections of one worker. What its descriptor limit allows is less: then that holds.
    pub connections_max: usize,
    /// Bytes that all connections together may hold in memory: partial heads, bodies that are collected, replies that
    /// wait. Divided among the workers. Over it new bodies get 503 and the worst hoarders are cut.
    pub buffer_bytes_max: usize,
    /// What one address may have of all this.
    pub address: AddressLimits,
    /// Requests of one worker that are answered later, streamed or uploaded at a time; more get 503.
    pub outstanding_max: usize,
    /// A head must be complete this long after its first byte (not after its last: RFC 9110 §15.5.9, 408).
    pub head_ns: u64,
    /// A connection without a request is closed after this long.
    pub idle_ns: u64,
    /// A body must make progress (1,000 bytes or its end) in each stretch of this length.
    pub body_ns: u64,
    /// Close a connection whose client acknowledges nothing (less than 1,000 bytes) of what waits for it for this long.
    /// A receiver whose buffer is full acknowledges in steps of a segment or of a part of its buffer, so that it must read
    /// such a step in this time: 1,448 bytes over Ethernet, up to some 200 kB over loopback.
    pub write_ns: u64,
    /// An answer that comes later must come within this time, or the client gets 504.
    pub later_ns: u64,
    /// How long a closed connection is read and discarded, so that its peer can still read the last answer; and how long a
    /// stream may be silent when its client has closed its sending side.
    pub linger_ns: u64,
}

impl Default for Limits {
    /// The parser's limits, a body of 1 MiB (nginx's default), 10 s for a head and a body's progress, 60 s for a
    /// reader's progress and of idleness.
    fn default() -> Limits {
        let http = request::Limits::default();
        Limits {
            line_bytes_max: http.line_bytes_max,
            head_bytes_max: http.head_bytes_max,
            headers_max: http.headers_max,
            body_bytes_max: 1 << 20,
            // As large as files are on common file systems: such bodies are not held, so memory sets no bound.
            upload_bytes_max: 1 << 40,
            connections_max: 1_000_000,
            buffer_bytes_max: buffer_bytes_default(),
            address: AddressLimits::default(),
            outstanding_max: 65_536,
            head_ns: 10 * SECOND_NS,
            idle_ns: 60 * SECOND_NS,
            body_ns: 10 * SECOND_NS,
            write_ns: 60 * SECOND_NS,
            later_ns: 60 * SECOND_NS,
            linger_ns: 2 * SECOND_NS,
        }
    }
}

/// 256 MiB, or an eighth of the memory that this process may use, whichever is less.
fn buffer_bytes_default() -> usize {
    const MOST: usize = 256 << 20;
    let limit = dyno_sys::proc::memory_limit_bytes().and_then(|bytes| usize::try_from(bytes).ok());
    limit.map_or(MOST, |bytes| MOST.min(bytes / 8))
}

/// A worker reads into one buffer with room for a whole head.
const HEAD_BYTES_MOST: usize = 64 << 20;

/// The shortest field line has four bytes, `a:` and its end: no head has more.
const HEADERS_MOST: usize = HEAD_BYTES_MOST / 4;

/// More addresses than this at a time no server has seen; the table takes 400 MB then.
const ADDRESSES_MOST: usize = 1 << 24;

impl Limits {
    /// Whether a server of so many workers could keep to them.
    ///
    /// # Errors
    /// [`EngineError::Limit`] where it could not.
    pub(crate) fn check(&self, workers: usize) -> Result<(), EngineError> {
        let refuse = |limit, value, why| Err(EngineError::Limit { limit, value, why });
        if self.head_bytes_max > HEAD_BYTES_MOST {
            let why = format!("a worker has a buffer of this size, so it is {HEAD_BYTES_MOST} at most");
            return refuse("head_bytes_max", self.head_bytes_max, why);
        }
        if self.headers_max > HEADERS_MOST {
            let why = format!("each takes four bytes in each worker, so it is {HEADERS_MOST} at most");
            return refuse("headers_max", self.headers_max, why);
        }
        if self.address.addresses_max > ADDRESSES_MOST {
            let why = format!("each takes 24 bytes in each worker, so it is {ADDRESSES_MOST} at most");
            return refuse("addresses_max", self.address.addresses_max, why);
        }
        let least = self.head_bytes_max * workers;
        if self.buffer_bytes_max < least {
            let why =
                format!("the workers share it, and each must be able to keep one head: {least} at least");
            return refuse("buffer_bytes_max", self.buffer_bytes_max, why);
        }
        Ok(())
    }

    /// The part of the limits that the parser keeps.
    pub(crate) fn http(&self) -> request::Limits {
        request::Limits {
            line_bytes_max: self.line_bytes_max,
            head_bytes_max: self.head_bytes_max,
            headers_max: self.headers_max,
        }
    }
}
