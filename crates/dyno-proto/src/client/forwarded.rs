//! `X-Forwarded-For` and `Forwarded` (RFC 7239): the chain of proxies that a request came through.
//!
//! It is read from its end, the part that the nearest proxy wrote, for as long as who wrote it is trusted. What stands
//! further in front is anybody's word. A part that cannot be understood ends the reading: the last known address stands.

use crate::scan::{is_token, trim_blanks};
use core::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Proxies that are followed; a chain of honest ones is shorter by far.
pub const HOPS_MAX: usize = 16;

/// Which field is believed. Never both: a proxy writes one and passes the other on as the client sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `X-Forwarded-For: 192.0.2.7, 10.0.0.1`.
    XForwardedFor,
    /// `Forwarded: for=192.0.2.7;proto=https, for="[2001:db8::1]:80"`.
    Forwarded,
}

impl Field {
    /// Its name in a request.
    #[must_use]
    pub fn name(self) -> &'static [u8] {
        match self {
            Field::XForwardedFor => b"X-Forwarded-For",
            Field::Forwarded => b"Forwarded",
        }
    }
}

/// Who asked: the nearest address that is no trusted proxy's, or the furthest one that is known. `values` are the field's
/// lines in their order.
pub fn client<'v>(
    peer: IpAddr,
    field: Field,
    values: impl Iterator<Item = &'v [u8]>,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    if !is_trusted(peer) {
        return peer;
    }
    let mut chain = Chain::new();
    for value in values {
        // A line that is no list says nothing, and what stood in front of it is not known to be true any more.
        if !chain.take(field, value) {
            chain = Chain::new();
        }
    }
    let mut known = peer;
    while let Some(address) = chain.pop() {
        let Some(address) = address else { return known };
        known = address;
        if !is_trusted(known) {
            return known;
        }
    }
    known
}

/// The last addresses of a chain; `None` for a part that names none.
struct Chain {
    parts: [Option<IpAddr>; HOPS_MAX],
    /// How many there were; only the last are kept.
    count: usize,
    popped: usize,
}

impl Chain {
    fn new() -> Chain {
        Chain { parts: [None; HOPS_MAX], count: 0, popped: 0 }
    }

    fn push(&mut self, part: Option<IpAddr>) {
        self.parts[self.count % HOPS_MAX] = part;
        self.count += 1;
    }

    /// The last part that was not taken yet.
    fn pop(&mut self) -> Option<Option<IpAddr>> {
        if self.popped == self.count.min(HOPS_MAX) {
            return None;
        }
        self.popped += 1;
        Some(self.parts[(self.count - self.popped) % HOPS_MAX])
    }

    /// Takes a line in; `false` when it is no list.
    fn take(&mut self, field: Field, value: &[u8]) -> bool {
        match field {
            Field::XForwardedFor => {
                for part in value.split(|&byte| byte == b',') {
                    self.push(node(trim_blanks(part)));
                }
                true
            }
            Field::Forwarded => self.take_elements(value),
        }
    }

    /// Elements between commas, pairs between semicolons (RFC 7239 §4); both may stand in quotes.
    fn take_elements(&mut self, value: &[u8]) -> bool {
        let mut rest = value;
        let mut element = Element::default();
        loop {
            rest = trim_blanks(rest);
            if !matches!(rest.first(), None | Some(b',' | b';')) {
                let Some(after) = element.pair(rest) else { return false };
                rest = trim_blanks(after);
            }
            match rest.split_first() {
                Some((b';', after)) => rest = after,
                Some((b',', after)) => {
                    self.push(std::mem::take(&mut element).by);
                    rest = after;
                }
                Some(_) => return false,
                None => break,
            }
        }
        self.push(element.by);
        true
    }
}

/// One proxy's word.
#[derive(Default)]
struct Element {
    by: Option<IpAddr>,
    has_for: bool,
}

impl Element {
    /// Takes a pair; what follows it, or `None` when it is none.
    fn pair<'v>(&mut self, text: &'v [u8]) -> Option<&'v [u8]> {
        let at = text.iter().position(|&byte| byte == b'=')?;
        let (name, rest) = (&text[..at], &text[at + 1..]);
        if !is_token(name) {
            return None;
        }
        let (value, rest) = value_of(rest)?;
        if name.eq_ignore_ascii_case(b"for") {
            // Each parameter stands once (§4): two could be read differently.
            if std::mem::replace(&mut self.has_for, true) {
                return None;
            }
            self.by = node(value);
        }
        Some(rest)
    }
}

/// A token, or what stands between quotes. A value with a backslash in it is no address and is handed on as it is.
fn value_of(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end =
            text.iter().position(|&byte| matches!(byte, b',' | b';' | b' ' | b'\t')).unwrap_or(text.len());
        return is_token(&text[..end]).then(|| text.split_at(end));
    };
    let mut at = 0;
    loop {
        match quoted.get(at)? {
            b'"' => return Some((&quoted[..at], &quoted[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// An address, with a port or without; IPv6 with a port stands in brackets (RFC 7239 §6). Neither `unknown` nor a name that
/// hides one is an address.
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = str::from_utf8(text).ok()?;
    if let Some(inner) = text.strip_prefix('[').and_then(|inner| inner.strip_suffix(']')) {
        return inner.parse::<Ipv6Addr>().ok().map(IpAddr::V6);
    }
    let alone = text.parse::<IpAddr>().ok();
    alone.or_else(|| text.parse::<SocketAddr>().ok().map(|node| node.ip()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::client::Network;

    /// The client of a request from 10.0.0.1, where 10.0.0.0/8 is trusted.
    fn of(field: Field, values: &[&str]) -> String {
        let trusted: Network = "10.0.0.0/8".parse().unwrap();
        let values = values.iter().map(|value| value.as_bytes());
        client("10.0.0.1".parse().unwrap(), field, values, |address| trusted.contains(address)).to_string()
    }

    #[test]
    fn the_nearest_address_that_is_no_proxys_is_the_clients() {
        for (values, wanted) in [
            (&[][..], "10.0.0.1"),
            (&["192.0.2.7"], "192.0.2.7"),
            (&["192.0.2.7, 10.0.0.2"], "192.0.2.7"),
            (&["192.0.2.7", "10.0.0.2,10.0.0.3"], "192.0.2.7"),
            (&["198.51.100.1, 192.0.2.7, 10.0.0.2"], "192.0.2.7"),
            (&["10.0.0.9, 10.0.0.2"], "10.0.0.9"),
            (&["2001:db8::1"], "2001:db8::1"),
            (&["192.0.2.7:4711"], "192.0.2.7"),
            (&["[2001:db8::1]:4711, 10.0.0.2"], "2001:db8::1"),
            (&["[2001:db8::1]"], "2001:db8::1"),
            // What cannot be understood ends it, whatever stands in front.
            (&["192.0.2.7, unknown, 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.7, , 10.0.0.2"], "10.0.0.2"),
            (&["192.0.2.7,"], "10.0.0.1"),
            (&["localhost"], "10.0.0.1"),
            (&["192.0.2.07"], "10.0.0.1"),
            (&["192.0.2.7 10.0.0.2"], "10.0.0.1"),
            (&["192.0.2.7\u{e9}"], "10.0.0.1"),
        ] {
            assert_eq!(of(Field::XForwardedFor, values), wanted, "{values:?}");
        }
    }

    #[test]
    fn who_is_not_trusted_is_not_believed() {
        let values = ["203.0.113.9".as_bytes()].into_iter();
        let peer = "192.0.2.7".parse().unwrap();
        assert_eq!(client(peer, Field::XForwardedFor, values, |_| false), peer);
    }

    #[test]
    fn a_chain_is_followed_for_so_many_proxies() {
        let long = ["192.0.2.7"].into_iter().chain([("10.0.0.2"); 100]).collect::<Vec<_>>().join(", ");
        assert_eq!(of(Field::XForwardedFor, &[&long]), "10.0.0.2");
        let short =
            ["192.0.2.7"].into_iter().chain([("10.0.0.2"); HOPS_MAX - 1]).collect::<Vec<_>>().join(", ");
        assert_eq!(of(Field::XForwardedFor, &[&short]), "192.0.2.7");
    }

    #[test]
    fn elements_pairs_and_quotes_are_read() {
        for (values, wanted) in [
            (&["for=192.0.2.7"][..], "192.0.2.7"),
            (&["For=\"192.0.2.7\""], "192.0.2.7"),
            (&["for=\"[2001:db8::1]:4711\""], "2001:db8::1"),
            (&["for=\"[2001:db8::1]\";proto=https;by=10.0.0.1"], "2001:db8::1"),
            (&["proto=http ; for=192.0.2.7;host=\"a,b;c\""], "192.0.2.7"),
            (&["for=198.51.100.1, for=192.0.2.7;by=10.0.0.2, for=10.0.0.2"], "192.0.2.7"),
            (&["for=192.0.2.7", "for=10.0.0.2"], "192.0.2.7"),
            (&["for=192.0.2.7;;"], "192.0.2.7"),
            (&["for=192.0.2.7, for=unknown"], "10.0.0.1"),
            (&["for=192.0.2.7, for=_hidden"], "10.0.0.1"),
            (&["for=192.0.2.7, proto=https"], "10.0.0.1"),
            (&["for=192.0.2.7, for=\"192.0.\\2.8\""], "10.0.0.1"),
            // No list: nothing in it is believed.
            (&["for=192.0.2.7 for=192.0.2.8"], "10.0.0.1"),
            (&["for=192.0.2.7;for=192.0.2.8"], "10.0.0.1"),
            (&["for =192.0.2.7"], "10.0.0.1"),
            (&["for=[2001:db8::1]"], "10.0.0.1"),
            (&["for=\"192.0.2.7"], "10.0.0.1"),
            (&["for=\"192.0.2.7\\"], "10.0.0.1"),
            (&["192.0.2.7"], "10.0.0.1"),
            (&["for="], "10.0.0.1"),
            (&["for=192.0.2.7", "nonsense", "for=10.0.0.2"], "10.0.0.2"),
        ] {
            assert_eq!(of(Field::Forwarded, values), wanted, "{values:?}");
        }
    }
}
