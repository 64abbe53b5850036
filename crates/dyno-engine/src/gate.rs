//! The gate: which connections and requests are let in by their address, and whose address that is.
//!
//! A worker has one where limits of addresses or trusted proxies are configured; it belongs to
//! [`ByDials`](crate::kernel::ByDials), so that a worker without one has no branch for it. The worker asks it for each new
//! connection, the protocol for each request. A trusted proxy is never limited itself: those behind it are, where it tells
//! who they are.

use crate::addresses::{Addresses, May};
use crate::clients::{AddressLimits, Clients, ToldBy};
use crate::fault::{Fault, planted};
use dyno_proto::client::proxy::{self, Parsed};
use dyno_proto::client::{self, Field};
use dyno_proto::http1::request::Head;
use std::net::{IpAddr, Ipv4Addr};

/// Who cannot be a peer: it stands for one without an address.
const NOBODY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// What a proxy's header in front of a connection came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Header {
    NeedMore,
    /// It is whole, and the connection is its client's from now on, if it says whose.
    Whole {
        client: Option<IpAddr>,
        used: usize,
    },
    /// It is none: nothing after it is understood.
    Wrong,
}

/// The gate of a worker.
pub(crate) struct Gate {
    addresses: Option<Addresses>,
    clients: Clients,
    now_ns: u64,
}

impl Gate {
    /// A gate, where one is asked for.
    pub(crate) fn new(limits: &AddressLimits, clients: &Clients) -> Option<Gate> {
        let is_limited = limits.connections_max.is_some() || limits.requests_per_second.is_some();
        let is_told = clients.told_by != ToldBy::Nobody;
        (is_limited || is_told).then(|| Gate {
            addresses: is_limited.then(|| Addresses::new(limits)),
            clients: clients.clone(),
            now_ns: 0,
        })
    }

    /// A loop turn begins at this moment.
    pub(crate) fn begin_turn(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// Whether a connection of this peer begins with a proxy's header.
    pub(crate) fn awaits_header(&self, peer: Option<IpAddr>) -> bool {
        self.clients.told_by == ToldBy::ProxyProtocol && self.trusts(peer)
    }

    /// Reads the header in front of a connection's input. `bytes_max`: what a connection may hold of it.
    pub(crate) fn header(&self, input: &[u8], bytes_max: usize) -> Header {
        match proxy::parse(input) {
            Ok(Parsed::NeedMore) if input.len() < bytes_max => Header::NeedMore,
            Ok(Parsed::NeedMore) | Err(_) => Header::Wrong,
            Ok(Parsed::Whole { source, used }) => {
                Header::Whole { client: source.map(|source| source.ip()), used }
            }
        }
    }

    /// Whether a connection of this address may be; it counts until [`Gate::disconnect`].
    pub(crate) fn connect(&mut self, address: Option<IpAddr>) -> May {
        let (now_ns, is_free) = (self.now_ns, self.trusts(address) && !planted(Fault::ProxyLimited));
        match (&mut self.addresses, address) {
            (Some(addresses), Some(address)) if !is_free => addresses.connect(address, now_ns),
            _ => May::Yes,
        }
    }

    /// A connection that was let in has ended.
    pub(crate) fn disconnect(&mut self, address: Option<IpAddr>) {
        let is_free = self.trusts(address);
        if let (Some(addresses), Some(address), false) = (&mut self.addresses, address, is_free) {
            addresses.disconnect(address);
        }
    }

    /// Whether this request may be answered.
    pub(crate) fn request(&mut self, head: &Head<'_>, peer: Option<IpAddr>) -> May {
        let (now_ns, client) = (self.now_ns, self.client(head, peer));
        let is_free = self.trusts(client) && !planted(Fault::ProxyLimited);
        match (&mut self.addresses, client) {
            (Some(addresses), Some(client)) if !is_free => addresses.request(client, now_ns),
            _ => May::Yes,
        }
    }

    /// Who asks: the peer, or whom a trusted proxy names.
    pub(crate) fn client(&self, head: &Head<'_>, peer: Option<IpAddr>) -> Option<IpAddr> {
        let field = match self.clients.told_by {
            ToldBy::XForwardedFor => Field::XForwardedFor,
            ToldBy::Forwarded => Field::Forwarded,
            ToldBy::Nobody | ToldBy::ProxyProtocol => return peer,
        };
        if !self.trusts(peer) && !planted(Fault::AnybodyBelieved) {
            return peer;
        }
        let named = head.headers().filter(|header| header.name.eq_ignore_ascii_case(field.name()));
        let is_believed = |address| {
            planted(Fault::FirstOfField) || planted(Fault::AnybodyBelieved) && Some(address) == peer
        };
        let is_trusted = |address| address == NOBODY || self.trusts(Some(address)) || is_believed(address);
        let client =
            client::client(peer.unwrap_or(NOBODY), field, named.map(|header| header.value), is_trusted);
        (client != NOBODY).then_some(client)
    }

    /// How often an address found no place in the table since this was asked last.
    pub(crate) fn take_uncounted(&mut self) -> u64 {
        self.addresses.as_mut().map_or(0, |addresses| std::mem::take(&mut addresses.uncounted))
    }

    fn trusts(&self, peer: Option<IpAddr>) -> bool {
        match peer {
            Some(peer) => self.clients.trusted.iter().any(|network| network.contains(peer)),
            None => self.clients.trusts_unix,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_proto::http1::request::{self, Slots};

    fn gate(told_by: ToldBy, connections: u32, rate: u32) -> Gate {
        let some = std::num::NonZeroU32::new;
        let limits = AddressLimits {
            connections_max: some(connections),
            requests_per_second: some(rate),
            burst: some(1),
            ..AddressLimits::default()
        };
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        Gate::new(&limits, &Clients { told_by, trusted, trusts_unix: true }).unwrap()
    }

    fn ip(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    fn with_head<T>(fields: &str, see: impl FnOnce(&Head<'_>) -> T) -> T {
        let limits = request::Limits::default();
        let mut slots = Slots::new(&limits);
        let text = format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n");
        let Ok(request::Parsed::Whole { head, .. }) = request::parse(text.as_bytes(), &limits, &mut slots)
        else {
            panic!("{text}")
        };
        see(&head)
    }

    #[test]
    fn who_asks_for_nothing_has_no_gate() {
        let trusted = vec!["10.0.0.0/8".parse().unwrap()];
        let clients = Clients { trusted, ..Clients::default() };
        assert!(Gate::new(&AddressLimits::default(), &clients).is_none());
    }

    #[test]
    fn the_client_is_whom_a_trusted_proxy_names_in_the_field_that_is_believed() {
        let fields = "X-Forwarded-For: 198.51.100.1, 192.0.2.7\r\nForwarded: for=192.0.2.8\r\n";
        for (told_by, peer, client) in [
            (ToldBy::XForwardedFor, ip("10.0.0.1"), ip("192.0.2.7")),
            (ToldBy::XForwardedFor, ip("203.0.113.5"), ip("203.0.113.5")),
            (ToldBy::XForwardedFor, None, ip("192.0.2.7")),
            (ToldBy::Forwarded, ip("10.0.0.1"), ip("192.0.2.8")),
            (ToldBy::ProxyProtocol, ip("10.0.0.1"), ip("10.0.0.1")),
            (ToldBy::Nobody, ip("10.0.0.1"), ip("10.0.0.1")),
        ] {
            let gate = gate(told_by, 1, 1);
            assert_eq!(with_head(fields, |head| gate.client(head, peer)), client, "{told_by:?} {peer:?}");
        }
        let gate = gate(ToldBy::XForwardedFor, 1, 1);
        assert_eq!(with_head("", |head| gate.client(head, None)), None, "a socket file has no address");
    }

    #[test]
    fn a_proxy_is_not_limited_and_who_is_behind_it_is() {
        let mut gate = gate(ToldBy::XForwardedFor, 1, 1);
        let proxy = ip("10.0.0.1");
        assert_eq!((gate.connect(proxy), gate.connect(proxy)), (May::Yes, May::Yes));
        let mut ask = |fields: &str| with_head(fields, |head| gate.request(head, proxy));
        assert_eq!((ask(""), ask("")), (May::Yes, May::Yes));
        let (one, other) = ("X-Forwarded-For: 192.0.2.1\r\n", "X-Forwarded-For: 192.0.2.2\r\n");
        assert_eq!((ask(one), ask(one), ask(other)), (May::Yes, May::No, May::Yes));
    }

    #[test]
    fn only_trusted_peers_begin_with_a_header() {
        let gate = gate(ToldBy::ProxyProtocol, 1, 1);
        assert!(gate.awaits_header(ip("10.0.0.1")) && gate.awaits_header(None));
        assert!(!gate.awaits_header(ip("192.0.2.1")));
        let line = b"PROXY TCP4 192.0.2.7 192.0.2.8 1 2\r\nGET";
        assert_eq!(gate.header(line, 100), Header::Whole { client: ip("192.0.2.7"), used: 36 });
        assert_eq!(gate.header(&line[..20], 100), Header::NeedMore);
        assert_eq!(gate.header(&line[..20], 20), Header::Wrong, "no more than may be held");
        assert_eq!(gate.header(b"GET / HTTP/1.1\r\n", 100), Header::Wrong);
    }
}
