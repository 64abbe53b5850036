//! Virtual cables made and set (`rtnetlink(7)`, `veth(4)`, ethtool's netlink family): both ends, addresses, offloads.
//!
//! The laboratory of `dyno-host` calls it in namespaces of its own. It is never called where somebody else's devices are.

use super::attribute::put;
use super::ethtool::family;
use super::socket::{Netlink, Protocol};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd, AsRawFd};

const RTM_NEWLINK: u16 = 16;
const RTM_NEWADDR: u16 = 20;
const CREATE: u16 = 0x400;
/// Never what is there already.
const EXCLUSIVE: u16 = 0x200;
/// The flag of kinds with attributes inside.
const NESTED: u16 = 0x8000;
const FEATURES_SET: u8 = 12;
const IFF_UP: u32 = 1;
/// Bytes of `struct ifinfomsg`.
const LINK_HEAD_BYTES: usize = 16;

/// A cable to be made.
#[derive(Clone, Copy, Debug)]
pub struct Veth<'n> {
    /// Name of the end that stays here, and of the one that goes to the other namespace.
    pub names: [&'n str; 2],
    /// Queues of each end, in each direction.
    pub queues: u32,
}

/// Makes a cable from this thread's namespace to another.
///
/// # Errors
/// The kernel's word: without CAP_NET_ADMIN, or where a name is taken.
pub fn make_veth(veth: Veth<'_>, other: impl AsFd) -> io::Result<()> {
    assert!(veth.names.iter().all(|name| (1..16).contains(&name.len())), "a device's name has 1 to 15 bytes");
    let end = |name: &str| {
        let mut end = vec![0; LINK_HEAD_BYTES];
        put(&mut end, 3, &[name.as_bytes(), b"\0"].concat());
        put(&mut end, 31, &veth.queues.to_le_bytes());
        put(&mut end, 32, &veth.queues.to_le_bytes());
        end
    };
    let mut there = end(veth.names[1]);
    put(&mut there, 28, &other.as_fd().as_raw_fd().to_le_bytes());
    let peer = inside(1, &there);
    let mut info = Vec::new();
    put(&mut info, 1, b"veth\0");
    put(&mut info, 2 | NESTED, &peer);
    let mut here = end(veth.names[0]);
    put(&mut here, 18 | NESTED, &info);
    Netlink::open(Protocol::Route)?.tell(RTM_NEWLINK, CREATE | EXCLUSIVE, &here)
}

/// Gives a device of this thread's namespace an address.
///
/// # Errors
/// The kernel's word.
pub fn add_address(device: u32, address: Ipv4Addr, prefix: u8) -> io::Result<()> {
    assert!(prefix <= 32, "a prefix of {prefix} bits");
    let mut body = vec![libc::AF_INET as u8, prefix, 0, 0];
    body.extend(device.to_le_bytes());
    put(&mut body, 2, &address.octets());
    put(&mut body, 1, &address.octets());
    Netlink::open(Protocol::Route)?.tell(RTM_NEWADDR, CREATE | EXCLUSIVE, &body)
}

/// Sets a device of this thread's namespace up.
///
/// # Errors
/// The kernel's word.
pub fn set_up(device: u32) -> io::Result<()> {
    let mut body = vec![0; LINK_HEAD_BYTES];
    body[4..8].copy_from_slice(&device.to_le_bytes());
    body[8..12].copy_from_slice(&IFF_UP.to_le_bytes());
    body[12..16].copy_from_slice(&IFF_UP.to_le_bytes());
    Netlink::open(Protocol::Route)?.tell(RTM_NEWLINK, 0, &body)
}

/// Where an offload is to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offload {
    /// It works.
    On,
    /// It does not.
    Off,
}

/// Switches offloads of a device by the names that the kernel gives them. What the driver cannot switch stays as it is and is
/// no error: the caller reads back.
///
/// # Errors
/// The kernel's word.
pub fn set_offloads(device: u32, names: &[&str], wanted: Offload) -> io::Result<()> {
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "ethtool")?;
    let mut body = vec![FEATURES_SET, 1, 0, 0];
    let mut number = Vec::new();
    put(&mut number, 1, &device.to_le_bytes());
    put(&mut body, 1 | NESTED, &number);
    let mut bits = Vec::new();
    for name in names {
        let mut bit = Vec::new();
        put(&mut bit, 2, &[name.as_bytes(), b"\0"].concat());
        if wanted == Offload::On {
            put(&mut bit, 3, &[]);
        }
        put(&mut bits, 1 | NESTED, &bit);
    }
    put(&mut body, 3 | NESTED, &inside(3, &bits));
    netlink.tell(family, 0, &body)
}

/// Attributes inside of one attribute.
fn inside(kind: u16, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put(&mut out, kind | NESTED, content);
    out
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::namespace::OwnNetwork;
    use crate::netlink::{ethtool, route};

    /// Two namespaces and a cable between them.
    fn cable() -> Option<[OwnNetwork; 2]> {
        let [here, there] = [OwnNetwork::make().ok()?, OwnNetwork::make().ok()?];
        let veth = Veth { names: ["a", "b"], queues: 2 };
        here.within(|| make_veth(veth, &there)).unwrap().unwrap();
        Some([here, there])
    }

    fn link(name: &str) -> route::Link {
        route::links(10).unwrap().0.into_iter().find(|link| link.name == name).unwrap()
    }

    #[test]
    fn a_cable_has_an_end_in_each_namespace_with_its_queues_and_address() {
        let Some(ends) = cable() else { return };
        for (end, name, last) in [(&ends[0], "a", 1), (&ends[1], "b", 2)] {
            end.within(|| {
                let index = link(name).index;
                set_up(index).unwrap();
                add_address(index, Ipv4Addr::new(198, 18, 0, last), 30).unwrap();
                let link = link(name);
                assert_eq!((link.kind.as_str(), link.is_up, link.queues), ("veth", true, (2, 2)));
                assert!(
                    add_address(index, Ipv4Addr::new(198, 18, 0, last), 30).is_err(),
                    "it has it already"
                );
            })
            .unwrap();
        }
        let answered = ends[0].within(|| std::net::UdpSocket::bind("198.18.0.1:0").map(|_| ())).unwrap();
        assert!(answered.is_ok());
        assert!(ends[1].within(|| std::net::UdpSocket::bind("198.18.0.1:0")).unwrap().is_err());
    }

    #[test]
    fn offloads_are_switched_by_name_and_read_back() {
        let Some([here, _there]) = cable() else { return };
        here.within(|| {
            let index = link("a").index;
            let has = || {
                let settings = ethtool::settings(10).unwrap().remove(&index).unwrap();
                settings.features.unwrap().iter().any(|name| name == "tx-tcp-segmentation")
            };
            assert!(has());
            set_offloads(index, &["tx-tcp-segmentation"], Offload::Off).unwrap();
            assert!(!has());
            set_offloads(index, &["tx-tcp-segmentation"], Offload::On).unwrap();
            assert!(has());
            assert!(set_offloads(index, &["no-such-offload"], Offload::On).is_err());
        })
        .unwrap();
    }
}
