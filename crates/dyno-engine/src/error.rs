//! Why a server could not start or go on: the errors at this crate's edge.

use crate::content::ContentError;
use crate::hosts::HostError;
use crate::route::RouteError;
use dyno_sys::socket::{Addr, AddrError, SocketError};
use std::io;
use std::path::PathBuf;

/// Why a server could not start or go on.
///
/// ```
/// # use dyno_engine::*;
///
/// let refused = Server::new().listen("no address").start();
/// assert!(matches!(refused, Err(EngineError::Address { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// A limit is set so that nothing could be served, or more memory would be asked for than there can be.
    #[error("{limit} cannot be {value}: {why}")]
    Limit {
        /// Which, by its name in [`Limits`](crate::Limits).
        limit: &'static str,
        /// How it was set.
        value: usize,
        /// The bound that it breaks.
        why: String,
    },
    /// The configuration names no address.
    #[error("there is no address to listen on")]
    NoAddress,
    /// An address could not be understood.
    #[error("the address to listen on cannot be used")]
    Address {
        /// What is wrong with it.
        source: AddrError,
    },
    /// An address could not be listened on; a busy port is the common reason.
    #[error("cannot listen on {addr}")]
    Listen {
        /// The address.
        addr: Addr,
        /// What was refused.
        source: SocketError,
    },
    /// A descriptor that a service manager has handed over cannot be served on.
    #[error("socket {number} of the service manager cannot be used: {why}")]
    Inherited {
        /// Which, from 0.
        number: usize,
        /// What is wrong with it.
        why: String,
    },
    /// A route could not be added.
    #[error("the routes cannot be served")]
    Route {
        /// What is wrong with it.
        #[from]
        source: RouteError,
    },
    /// A folder could not be served.
    #[error("the content cannot be served")]
    Content {
        /// What is wrong with it.
        #[from]
        source: ContentError,
    },
    /// Hosts cannot be served as they were told.
    #[error("the hosts cannot be served")]
    Host {
        /// What is wrong with them.
        #[from]
        source: HostError,
    },
    /// The access log could not be opened.
    #[error("cannot open the access log {path}", path = path.as_deref().unwrap_or("standard output".as_ref()).display())]
    Log {
        /// The file; `None` is standard output.
        path: Option<PathBuf>,
        /// The reason.
        source: io::Error,
    },
    /// The error log could not be opened.
    #[error("cannot open the error log {}", path.display())]
    ErrorLog {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The kernel refused something that a server needs.
    #[error("cannot {what}")]
    System {
        /// What was tried, as it follows "cannot".
        what: String,
        /// The reason.
        source: io::Error,
    },
    /// The first generation of workers did not start; why was told as [`Event::NotStarted`](crate::supervisor::Event).
    #[error("the server did not start: {why}")]
    NotStarted {
        /// The reason, once more.
        why: String,
    },
    /// A worker ended before it was ready.
    #[error("worker {worker} did not start: {how}")]
    WorkerStart {
        /// Its number, from 0.
        worker: usize,
        /// How it ended.
        how: String,
    },
}

/// An error with everything behind it, in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(source) = next {
        text = format!("{text}: {source}");
        next = source.source();
    }
    text
}

/// Names what was tried when the kernel refuses.
pub(crate) fn refused(what: impl Into<String>) -> impl FnOnce(io::Error) -> EngineError {
    move |source| EngineError::System { what: what.into(), source }
}
