//! The flags of `dyno serve` that are about who asks: proxies that are trusted, and limits of one address.

use std::num::{NonZeroU32, NonZeroUsize};
use std::str::FromStr;

use clap::{Args, ValueEnum};
use dyno_engine::{Network, NetworkError, ToldBy};

use super::words::{TOO_LARGE, some};

/// The help heading of flags about proxies.
const PROXIES: &str = "Proxies in front";

/// What a proxy tells by who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ClientFrom {
    /// The field X-Forwarded-For.
    XForwardedFor,
    /// The field Forwarded (RFC 7239).
    Forwarded,
    /// The PROXY protocol, version 1 or 2.
    ProxyProtocol,
}

impl From<ClientFrom> for ToldBy {
    fn from(from: ClientFrom) -> ToldBy {
        match from {
            ClientFrom::XForwardedFor => ToldBy::XForwardedFor,
            ClientFrom::Forwarded => ToldBy::Forwarded,
            ClientFrom::ProxyProtocol => ToldBy::ProxyProtocol,
        }
    }
}

/// A proxy that is trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustedProxy {
    /// Whoever connects over a Unix socket.
    Unix,
    /// Whoever connects from there.
    Network(Network),
}

impl FromStr for TrustedProxy {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<TrustedProxy, NetworkError> {
        if text == "unix" { Ok(TrustedProxy::Unix) } else { text.parse().map(TrustedProxy::Network) }
    }
}

/// The flags.
#[derive(Debug, Args)]
pub(crate) struct ClientFlags {
    /// A proxy whose word on who asks is believed: an address, a network as 10.0.0.0/8, or unix; may be given again
    #[arg(long, value_name = "NETWORK", help_heading = PROXIES)]
    pub(crate) trusted_proxy: Vec<TrustedProxy>,
    /// What trusted proxies tell by who asks: x-forwarded-for, forwarded or proxy-protocol [default: nothing]
    #[arg(long, value_name = "WORD", value_enum, hide_possible_values = true, help_heading = PROXIES)]
    pub(crate) client_from: Option<ClientFrom>,

    /// Connections of one address in one worker (of IPv6, one /64); more are closed [default: any number]
    #[arg(long, value_name = "N", value_parser = number, help_heading = "Limits")]
    pub(crate) address_connections_max: Option<NonZeroU32>,
    /// Requests per second of one address in one worker; more get 429 [default: any number]
    #[arg(long, value_name = "N", value_parser = number, help_heading = "Limits")]
    pub(crate) address_requests_max: Option<NonZeroU32>,
    /// Requests that an address may send at once after a pause [default: as many as in a second]
    #[arg(long, value_name = "N", value_parser = number, help_heading = "Limits")]
    pub(crate) address_burst: Option<NonZeroU32>,
    /// Addresses that a worker keeps count of; others are not limited
    #[arg(long, value_name = "N", default_value = "65536", value_parser = some, help_heading = "Limits")]
    pub(crate) addresses_max: NonZeroUsize,
}

fn number(text: &str) -> Result<NonZeroU32, String> {
    NonZeroU32::try_from(some(text)?).map_err(|_| TOO_LARGE.to_owned())
}
