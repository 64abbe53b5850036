//! Networks, as operators write them: `10.0.0.0/8`, `2001:db8::/32`, or one address.

use core::net::IpAddr;
use std::fmt;
use std::str::FromStr;

/// All addresses that begin with the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network {
    first: IpAddr,
    prefix: u8,
}

/// Why a text is no network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NetworkError {
    /// Neither an address nor an address and the length of a prefix.
    NotANetwork {
        /// What was written.
        text: String,
    },
    /// The prefix is longer than an address.
    Prefix {
        /// What was written.
        text: String,
        /// Bits of such an address.
        bits: u8,
    },
    /// The address has bits behind the prefix: it is not clear what was meant.
    HostBits {
        /// What was written.
        text: String,
        /// The network that it lies in.
        network: Network,
    },
}

impl fmt::Display for NetworkError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkError::NotANetwork { text } => {
                write!(out, "\"{text}\" is no network; write 10.0.0.0/8, 2001:db8::/32 or one address")
            }
            NetworkError::Prefix { text, bits } => {
                write!(out, "\"{text}\" has no such prefix: an address has {bits} bits")
            }
            NetworkError::HostBits { text, network } => {
                write!(out, "\"{text}\" has bits behind its prefix; write {network}, or the address alone")
            }
        }
    }
}

impl std::error::Error for NetworkError {}

impl Network {
    /// Whether the address lies in it. IPv4 written as IPv6 is IPv4.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        let (one, other) = (self.first.to_canonical(), address.to_canonical());
        one.is_ipv4() == other.is_ipv4() && masked(other, self.prefix) == bits_of(one)
    }
}

/// The bits of an address, at the top of the number.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(four) => u128::from(four.to_bits()) << 96,
        IpAddr::V6(six) => six.to_bits(),
    }
}

fn masked(address: IpAddr, prefix: u8) -> u128 {
    let mask = u128::MAX.checked_shl(128 - u32::from(prefix)).unwrap_or(0);
    bits_of(address) & mask
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Network, NetworkError> {
        let not = || NetworkError::NotANetwork { text: text.to_owned() };
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix)),
            None => (text, None),
        };
        let address = address.parse::<IpAddr>().map_err(|_| not())?.to_canonical();
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let Some(prefix) = prefix else { return Ok(Network { first: address, prefix: bits }) };
        let is_number = (1..=3).contains(&prefix.len()) && prefix.bytes().all(|byte| byte.is_ascii_digit());
        let prefix = prefix.parse::<u8>().ok().filter(|_| is_number).ok_or_else(not)?;
        if prefix > bits {
            return Err(NetworkError::Prefix { text: text.to_owned(), bits });
        }
        let first = masked(address, prefix);
        let network = Network { first: address_of(first, address.is_ipv4()), prefix };
        if first != bits_of(address) {
            return Err(NetworkError::HostBits { text: text.to_owned(), network });
        }
        Ok(network)
    }
}

fn address_of(bits: u128, is_four: bool) -> IpAddr {
    match is_four {
        true => IpAddr::V4(((bits >> 96) as u32).into()),
        false => IpAddr::V6(bits.into()),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.first, self.prefix)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_network_holds_what_begins_like_it() {
        for (network, address, is_in) in [
            ("10.0.0.0/8", "10.255.1.2", true),
            ("10.0.0.0/8", "11.0.0.0", false),
            ("127.0.0.1", "127.0.0.1", true),
            ("127.0.0.1", "127.0.0.2", false),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "::1", false),
            ("::/0", "8.8.8.8", false),
            ("10.0.0.0/8", "::ffff:10.1.1.1", true),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("2001:db8::/33", "2001:db8:8000::1", false),
            ("::1", "::1", true),
        ] {
            let network: Network = network.parse().unwrap();
            assert_eq!(network.contains(address.parse().unwrap()), is_in, "{network} {address}");
        }
    }

    #[test]
    fn what_is_no_network_is_told() {
        for (text, says) in [
            ("", "is no network"),
            ("localhost", "is no network"),
            ("10.0.0.0/", "is no network"),
            ("10.0.0.0/+8", "is no network"),
            ("10.0.0.0/8/8", "is no network"),
            ("10.0/8", "is no network"),
            ("10.0.0.0/33", "an address has 32 bits"),
            ("::/129", "an address has 128 bits"),
            ("10.0.0.1/8", "write 10.0.0.0/8, or"),
            ("2001:db8::1/32", "write 2001:db8::/32, or"),
        ] {
            let error = text.parse::<Network>().unwrap_err().to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
