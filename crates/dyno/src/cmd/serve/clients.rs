//! Who asks, as the flags say: which proxies are trusted, and what one address may have.

use crate::cli::{ClientFlags, TrustedProxy};
use dyno_engine::{AddressLimits, Clients, ToldBy};
use dyno_lab::Failure;

/// Proxies and what they tell by.
pub(super) fn of(flags: &ClientFlags) -> Clients {
    let network = |proxy: &TrustedProxy| match proxy {
        TrustedProxy::Network(network) => Some(*network),
        TrustedProxy::Unix => None,
    };
    Clients {
        told_by: flags.client_from.map_or(ToldBy::Nobody, ToldBy::from),
        trusted: flags.trusted_proxy.iter().filter_map(network).collect(),
        trusts_unix: flags.trusted_proxy.contains(&TrustedProxy::Unix),
    }
}

/// What one address may have.
pub(super) fn limits(flags: &ClientFlags) -> AddressLimits {
    AddressLimits {
        connections_max: flags.address_connections_max,
        requests_per_second: flags.address_requests_max,
        burst: flags.address_burst,
        addresses_max: flags.addresses_max.get(),
    }
}

/// Words that would do nothing are a mistake: who sets them wants something.
pub(super) fn check(flags: &ClientFlags) -> Result<(), Failure> {
    let (has_proxies, has_word) = (!flags.trusted_proxy.is_empty(), flags.client_from.is_some());
    if has_word && !has_proxies {
        return Err(Failure::usage("--client-from is set and no proxy is trusted")
            .likely("a proxy's word is believed only where --trusted-proxy names it")
            .try_this("--trusted-proxy 127.0.0.1"));
    }
    if flags.address_burst.is_some() && flags.address_requests_max.is_none() {
        return Err(Failure::usage("--address-burst is set and --address-requests-max is not")
            .likely("a burst is what an address may send at once of its requests per second")
            .try_this("--address-requests-max 100"));
    }
    Ok(())
}
