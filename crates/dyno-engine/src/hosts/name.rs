//! Names of hosts: which are names at all, and whose a request's is.
//!
//! As in nginx, a name as it stands goes before one with a star, and of those the longest counts. Case, a port and a dot
//! at the end say nothing.

use super::error::HostError;
use crate::fault::{Fault, planted};
use crate::table::NameHasher;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::BuildHasherDefault;
use std::net::{Ipv4Addr, Ipv6Addr};

/// The longest name of the DNS (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;

/// The longest label (RFC 1035 §2.3.4).
const LABEL_BYTES_MAX: usize = 63;

type Numbers = HashMap<Box<[u8]>, u16, BuildHasherDefault<NameHasher>>;

/// Whose each name is.
#[derive(Debug, Default)]
pub(super) struct Names {
    exact: Numbers,
    /// What follows the star and its dot.
    below: Numbers,
}

impl Names {
    /// Gives a checked name to a host.
    pub(super) fn add(&mut self, name: &str, host: u16) -> Result<(), HostError> {
        let (numbers, key) = match name.strip_prefix("*.") {
            Some(rest) => (&mut self.below, rest),
            None => (&mut self.exact, name),
        };
        match numbers.entry(key.as_bytes().into()) {
            Entry::Occupied(_) => Err(HostError::NameTwice { name: name.to_owned() }),
            Entry::Vacant(free) => {
                free.insert(host);
                Ok(())
            }
        }
    }

    /// Whose an authority is, as a request has it.
    pub(super) fn find(&self, authority: &[u8]) -> Option<u16> {
        let name = name_of(authority);
        let mut lower = [0; NAME_BYTES_MAX];
        let lower = lower.get_mut(..name.len())?;
        lower.copy_from_slice(name);
        lower.make_ascii_lowercase();
        let exact = self.exact.get(&*lower).copied();
        if exact.is_some() && !planted(Fault::StarBeforeName) {
            return exact;
        }
        if self.below.is_empty() {
            return None;
        }
        if planted(Fault::StarIsItself) && self.below.contains_key(&*lower) {
            return self.below.get(&*lower).copied();
        }
        let dots = (0..lower.len()).filter(|at| lower[*at] == b'.' && *at > 0);
        let mut stars = dots.filter_map(|at| self.below.get(&lower[at + 1..]));
        let longest = if planted(Fault::ShortestStar) { stars.next_back() } else { stars.next() };
        longest.copied().or(exact)
    }
}

/// An authority without its port and without a dot at the end.
fn name_of(authority: &[u8]) -> &[u8] {
    if planted(Fault::PortKept) {
        return authority;
    }
    let end = match authority {
        [b'[', ..] => authority.iter().position(|&byte| byte == b']').map(|at| at + 1),
        _ => authority.iter().position(|&byte| byte == b':'),
    };
    let name = &authority[..end.unwrap_or(authority.len())];
    name.strip_suffix(b".").unwrap_or(name)
}

/// A name in small letters, if it is one: `example.org`, `*.example.org`, `192.0.2.1` or `[2001:db8::1]`.
pub(crate) fn checked(name: &str) -> Result<String, HostError> {
    let refused = |why| Err(HostError::Name { name: name.to_owned(), why });
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_suffix('.').unwrap_or(&lower);
    if bare.is_empty() {
        return refused("it is empty");
    }
    if let Some(address) = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return match address.parse::<Ipv6Addr>() {
            Ok(_) => Ok(bare.to_owned()),
            Err(_) => refused("between brackets stands an IPv6 address"),
        };
    }
    if bare.contains(':') {
        return refused("names have no port, and IPv6 addresses stand in brackets");
    }
    if !bare.is_ascii() {
        return refused("it is written in ASCII, as xn--…");
    }
    let labels = bare.strip_prefix("*.").unwrap_or(bare);
    if labels.contains('*') {
        return refused("a star is the whole first part, as in *.example.org");
    }
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    let is_label = |label: &str| (1..=LABEL_BYTES_MAX).contains(&label.len()) && label.bytes().all(is_letter);
    let is_name = labels.len() <= NAME_BYTES_MAX && labels.split('.').all(is_label);
    if !is_name && labels.parse::<Ipv4Addr>().is_err() {
        return refused("it takes letters, digits and hyphens between dots");
    }
    Ok(bare.to_owned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        let said =
            ["example.org", "*.example.org", "*.deep.example.org", "www.example.org", "[::1]", "10.0.0.1"];
        for (number, name) in said.iter().enumerate() {
            names.add(&checked(name).unwrap(), number as u16).unwrap();
        }
        names
    }

    #[test]
    fn a_whole_name_goes_before_a_star_and_a_longer_star_before_a_shorter() {
        let names = names();
        for (authority, expected) in [
            ("example.org", Some(0)),
            ("EXAMPLE.org:8080", Some(0)),
            ("example.org.", Some(0)),
            ("example.org.:80", Some(0)),
            ("www.example.org", Some(3)),
            ("a.example.org", Some(1)),
            ("a.b.example.org", Some(1)),
            ("a.deep.example.org", Some(2)),
            ("deep.example.org", Some(1)),
            ("[::1]:80", Some(4)),
            ("[::1]", Some(4)),
            ("10.0.0.1:1", Some(5)),
            (".example.org", None),
            ("badexample.org", None),
            ("example.org.evil", None),
            ("org", None),
            ("", None),
            ("..", None),
        ] {
            assert_eq!(names.find(authority.as_bytes()), expected, "{authority}");
        }
        assert_eq!(names.find(&b"a".repeat(100_000)), None);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for name in
            ["", ".", "a b", "a..b", "*", "a.*.b", "*a.b", "example.org:80", "::1", "[x]", "é.org", "a/b"]
        {
            assert!(checked(name).is_err(), "{name}");
        }
        let long = "a".repeat(64);
        assert!(checked(&long).is_err() && checked(&long[1..]).is_ok());
        assert_eq!(checked("*.Example.ORG.").unwrap(), "*.example.org");
        assert_eq!(checked("xn--bcher-kva.example").unwrap(), "xn--bcher-kva.example");
    }

    #[test]
    fn no_name_has_two_hosts() {
        let mut names = names();
        assert!(names.add("example.org", 9).is_err() && names.add("*.example.org", 9).is_err());
    }
}
