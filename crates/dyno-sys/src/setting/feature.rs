//! An offload of a network device (`ethtool -K`), by ethtool's netlink family.

use super::kind::Kind;
use crate::netlink::attribute::{find, put};
use crate::netlink::ethtool;
use std::io;

const GET: u8 = 11;
const SET: u8 = 12;
const ON: &str = "on";
const OFF: &str = "off";

pub(super) struct Feature<'s> {
    pub(super) device: u32,
    pub(super) name: &'s str,
}

/// What is asked for and what is in force: a feature is dropped while one that it needs is off, and comes back with it.
struct State {
    wanted: bool,
    active: bool,
}

impl Feature<'_> {
    fn state(&self) -> io::Result<State> {
        let answer = ethtool::answer(self.device, GET)?;
        let has = |kind: u16| {
            let names = find(&answer, kind).map(|set| ethtool::parse_bitset(&set)).unwrap_or_default();
            names.iter().any(|name| name == self.name)
        };
        if !has(2) {
            let why = "the device has no such offload that can be switched";
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        }
        Ok(State { wanted: has(3), active: has(4) })
    }
}

impl Kind for Feature<'_> {
    fn get(&self) -> io::Result<String> {
        Ok(if self.state()?.active { ON } else { OFF }.to_owned())
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let is_on = match value {
            ON => true,
            OFF => false,
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "an offload is on or off")),
        };
        if self.state()?.wanted == is_on {
            // It is asked for already, and something else keeps it from being so.
            return Ok(());
        }
        let (mut bit, mut bits, mut set, mut body) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        put(&mut bit, 2, &[self.name.as_bytes(), b"\0"].concat());
        if is_on {
            put(&mut bit, 3, &[]);
        }
        put(&mut bits, 1 | NESTED, &bit);
        put(&mut set, 3 | NESTED, &bits);
        put(&mut body, 3 | NESTED, &set);
        ethtool::tell(self.device, SET, &body)
    }
}

const NESTED: u16 = 0x8000;

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::setting::Setting;
    use crate::setting::tests::{device, in_network};

    fn offload(name: &str) -> Setting {
        Setting::Feature { device: device("lo"), name: name.into() }
    }

    #[test]
    fn an_offload_is_switched_read_back_and_put_back() {
        in_network(|| {
            let tso = offload("tx-tcp-segmentation");
            assert_eq!(tso.read().unwrap(), b"on");
            tso.write(b"off").unwrap();
            assert!(tso.holds(b"off").unwrap() && !tso.holds(b"on").unwrap());
            tso.put_back(b"on").unwrap();
            assert_eq!(tso.read().unwrap(), b"on");
        });
    }

    /// Planted fault: `put` writes although it is asked for already; then putting TSO back to "off" while scatter-gather is
    /// off makes it stay off.
    #[test]
    fn an_offload_that_another_one_drops_comes_back_with_it() {
        in_network(|| {
            let (gro, needs) = (offload("rx-gro"), offload("tx-tcp-segmentation"));
            if gro.write(b"off").is_ok() {
                needs.write(b"off").unwrap();
                needs.put_back(b"on").unwrap();
                gro.put_back(b"on").unwrap();
            }
            assert_eq!((gro.read().unwrap(), needs.read().unwrap()), (b"on".to_vec(), b"on".to_vec()));
        });
    }

    #[test]
    fn an_offload_that_the_device_does_not_have_is_told() {
        in_network(|| {
            let missing = offload("tx-<img src=x>").read().unwrap_err();
            assert!(
                std::error::Error::source(&missing).unwrap().to_string().contains("no such offload"),
                "{missing}"
            );
            assert!(offload("tx-tcp-segmentation").write(b"maybe").is_err());
        });
    }
}
