//! What a server is told of its clients: which proxies stand between, and what one address may have.

use dyno_proto::client::Network;
use std::num::NonZeroU32;

/// How it is known who asks. A proxy that is not trusted is a client like any other.
///
/// ```
/// # use dyno_engine::*;
///
/// // Behind a proxy on this machine that tells the client by X-Forwarded-For.
/// let trusted = vec!["127.0.0.0/8".parse()?];
/// let server = Server::new().clients(Clients { told_by: ToldBy::XForwardedFor, trusted, trusts_unix: false });
/// # let _ = server;
/// # Ok::<(), NetworkError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clients {
    /// What a trusted proxy tells it by.
    pub told_by: ToldBy,
    /// The proxies that are trusted.
    pub trusted: Vec<Network>,
    /// Whether everybody is who connects over a Unix socket, whose file's permissions say who can.
    pub trusts_unix: bool,
}

/// What a proxy tells by who asks. One of them only: what a proxy does not write itself, it passes on from the client.
///
/// ```
/// # use dyno_engine::*;
///
/// let clients = Clients { told_by: ToldBy::ProxyProtocol, trusts_unix: true, ..Clients::default() };
/// # let _ = clients;
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ToldBy {
    /// Nothing: the peer is the client.
    #[default]
    Nobody,
    /// The field `X-Forwarded-For`.
    XForwardedFor,
    /// The field `Forwarded` (RFC 7239).
    Forwarded,
    /// A header of the PROXY protocol, version 1 or 2, in front of each connection; one without it is closed.
    ProxyProtocol,
}

/// Limits of one address (of IPv6: of one /64) in one worker; none by default. Trusted proxies have none.
///
/// ```
/// # use dyno_engine::*;
///
/// use std::num::NonZeroU32;
///
/// let address = AddressLimits { requests_per_second: NonZeroU32::new(20), ..AddressLimits::default() };
/// let server = Server::new().limits(Limits { address, ..Limits::default() });
/// # let _ = server;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddressLimits {
    /// Connections; more are closed at once.
    pub connections_max: Option<NonZeroU32>,
    /// Requests per second; more get 429.
    pub requests_per_second: Option<NonZeroU32>,
    /// Requests that may come at once after a pause; `None`: as many as in a second.
    pub burst: Option<NonZeroU32>,
    /// Addresses that are kept count of, 24 bytes each; who finds no place among them is not limited.
    pub addresses_max: usize,
}

impl Default for AddressLimits {
    fn default() -> AddressLimits {
        AddressLimits { connections_max: None, requests_per_second: None, burst: None, addresses_max: 65_536 }
    }
}
