//! Devices and their queueing disciplines (`rtnetlink(7)`).
//!
//! Read by the host's facts, in this thread's network namespace.

use super::attribute::{attributes, find, u32_at, u64_at};
use super::socket::{Netlink, Protocol, Read, Until};
use std::io;

const RTM_GETLINK: u16 = 18;
const RTM_GETQDISC: u16 = 38;
const RTM_GETTFILTER: u16 = 46;
/// Bytes of `struct ifinfomsg`, and of `struct tcmsg`.
const LINK_HEAD_BYTES: usize = 16;
const TC_HEAD_BYTES: usize = 20;
/// The parent of a root (`TC_H_ROOT`).
const ROOT: u32 = 0xffff_ffff;
const IFF_UP: u32 = 1;
/// Set where somebody asked for it by the device's name: what sockets and bridges ask for is in the count alone
/// (net/core/dev.c, dev_get_flags).
const IFF_PROMISC: u32 = 0x100;

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Link {
    /// Its number in this namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `veth`, `bridge`, `vlan` …; empty for hardware and `lo`.
    pub kind: String,
    /// Whether it is set up.
    pub is_up: bool,
    /// The number of the bridge, bond or switch that it is a part of.
    pub master: Option<u32>,
    /// Somebody set it by name to take every packet of the wire.
    pub is_promiscuous: bool,
    /// Largest packet, in bytes.
    pub mtu: u32,
    /// How many asked it to take every packet of the wire.
    pub promiscuity: u32,
    /// Queues that there is room for, receiving and sending: fewer may be in use.
    pub queues: (u32, u32),
    /// Its queueing discipline, by name.
    pub qdisc: String,
    /// Largest segment that is handed to it whole, in bytes.
    pub gso_max_bytes: u32,
    /// Packets that such a segment may make.
    pub gso_max_segments: u32,
    /// An XDP program is attached.
    pub has_xdp: bool,
    /// Packets received, and those dropped since it exists: on receipt, for want of room, on sending.
    pub packets: u64,
    /// See `packets`.
    pub rx_dropped: u64,
    /// See `packets`.
    pub rx_missed: u64,
    /// See `packets`.
    pub tx_dropped: u64,
}

/// A queueing discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Qdisc {
    /// Its device.
    pub device: u32,
    /// `fq`, `tbf`, `mq` …
    pub kind: String,
    /// Its number, as `8001:`.
    pub handle: u32,
    /// Where it hangs: below a root that has a place for each queue, the queue's number and one.
    pub parent: u32,
    /// Whether it is the root.
    pub is_root: bool,
    /// Packets that it has passed on; below 2^32.
    pub packets: u32,
    /// Packets dropped and delayed.
    pub drops: u32,
    /// See `drops`.
    pub overlimits: u32,
    /// Packets that are queued.
    pub queued: u32,
}

/// The devices, `max` at most.
pub fn links(max: usize) -> io::Result<(Vec<Link>, Read)> {
    dump(RTM_GETLINK, &[0; LINK_HEAD_BYTES], max, parse_link)
}

/// The queueing disciplines, `max` at most.
pub fn qdiscs(max: usize) -> io::Result<(Vec<Qdisc>, Read)> {
    dump(RTM_GETQDISC, &[0; TC_HEAD_BYTES], max, parse_qdisc)
}

/// The kinds of filters (`bpf`, `flower` …) of a device at a parent, as `0xfffffff2` for what comes in.
pub fn filters(device: u32, parent: u32, max: usize) -> io::Result<Vec<String>> {
    let mut head = [0; TC_HEAD_BYTES];
    head[4..8].copy_from_slice(&device.to_le_bytes());
    head[12..16].copy_from_slice(&parent.to_le_bytes());
    let kind = |message: &[u8]| Some(find(message.get(TC_HEAD_BYTES..)?, 1)?.text());
    dump(RTM_GETTFILTER, &head, max, kind).map(|(kinds, _)| kinds)
}

fn dump<T>(
    kind: u16,
    body: &[u8],
    max: usize,
    parse: impl Fn(&[u8]) -> Option<T>,
) -> io::Result<(Vec<T>, Read)> {
    let mut all = Vec::new();
    let mut netlink = Netlink::open(Protocol::Route)?;
    let read = netlink.ask((kind, body), Until::Dumped, max, &mut |message| all.extend(parse(message)))?;
    Ok((all, read))
}

/// A message `RTM_NEWLINK`.
pub fn parse_link(message: &[u8]) -> Option<Link> {
    let rest = message.get(LINK_HEAD_BYTES..)?;
    let (index, flags) = (u32_at(message, 4), u32_at(message, 8));
    let (is_up, is_promiscuous) = (flags & IFF_UP != 0, flags & IFF_PROMISC != 0);
    let mut link = Link { index, is_up, is_promiscuous, ..Link::default() };
    for attribute in attributes(rest) {
        match attribute.kind {
            3 => link.name = attribute.text(),
            4 => link.mtu = attribute.u32(),
            6 => link.qdisc = attribute.text(),
            10 => link.master = Some(attribute.u32()),
            18 => link.kind = find(attribute.bytes, 1).map(|kind| kind.text()).unwrap_or_default(),
            23 => count(&mut link, attribute.bytes),
            30 => link.promiscuity = attribute.u32(),
            31 => link.queues.1 = attribute.u32(),
            32 => link.queues.0 = attribute.u32(),
            40 => link.gso_max_segments = attribute.u32(),
            41 => link.gso_max_bytes = attribute.u32(),
            43 => link.has_xdp = find(attribute.bytes, 2).is_some_and(|mode| mode.number() != 0),
            _ => {}
        }
    }
    Some(link)
}

/// `struct rtnl_link_stats64`: numbers of eight bytes.
fn count(link: &mut Link, stats: &[u8]) {
    let number = |at: usize| u64_at(stats, at * 8);
    link.packets = number(0);
    (link.rx_dropped, link.tx_dropped, link.rx_missed) = (number(6), number(7), number(15));
}

/// A message `RTM_NEWQDISC`.
pub fn parse_qdisc(message: &[u8]) -> Option<Qdisc> {
    let rest = message.get(TC_HEAD_BYTES..)?;
    let mut qdisc = Qdisc {
        device: u32_at(message, 4),
        handle: u32_at(message, 8),
        parent: u32_at(message, 12),
        is_root: u32_at(message, 12) == ROOT,
        ..Qdisc::default()
    };
    for attribute in attributes(rest) {
        match attribute.kind {
            1 => qdisc.kind = attribute.text(),
            7 => {
                // struct gnet_stats_basic: bytes, packets.
                let basic = find(attribute.bytes, 1).map(|basic| basic.bytes).unwrap_or_default();
                qdisc.packets = u32_at(basic, 8);
                // struct gnet_stats_queue: qlen, backlog, drops, requeues, overlimits.
                let queue = find(attribute.bytes, 3).map(|queue| queue.bytes).unwrap_or_default();
                (qdisc.queued, qdisc.drops, qdisc.overlimits) =
                    (u32_at(queue, 0), u32_at(queue, 8), u32_at(queue, 16));
            }
            _ => {}
        }
    }
    Some(qdisc)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::netlink::attribute::put;

    #[test]
    fn a_device_is_read_with_its_counters() {
        let mut message = vec![0; LINK_HEAD_BYTES];
        message[4] = 7;
        message[8] = 1;
        put(&mut message, 3, b"vS\0");
        put(&mut message, 6, b"tbf\0");
        put(&mut message, 10, &9u32.to_le_bytes());
        put(&mut message, 32, &4u32.to_le_bytes());
        let stats: Vec<u8> = (0..24u64).flat_map(|at| (at * 100).to_le_bytes()).collect();
        put(&mut message, 23, &stats);
        let link = parse_link(&message).unwrap();
        assert_eq!((link.index, link.is_up, link.queues, link.qdisc.as_str()), (7, true, (4, 0), "tbf"));
        assert_eq!((link.master, link.is_promiscuous), (Some(9), false));
        message[9] = 1;
        assert!(parse_link(&message).unwrap().is_promiscuous);
        assert_eq!((link.rx_dropped, link.tx_dropped, link.rx_missed), (600, 700, 1_500));
        assert!((0..LINK_HEAD_BYTES).all(|end| parse_link(&message[..end]).is_none()));
    }

    #[test]
    fn a_root_is_told_from_a_child_and_its_drops_are_counted() {
        let mut message = vec![0; TC_HEAD_BYTES];
        message[12..16].copy_from_slice(&ROOT.to_le_bytes());
        put(&mut message, 1, b"tbf\0");
        let mut stats = Vec::new();
        put(&mut stats, 3, &[3u32, 0, 5, 0, 9].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>());
        put(&mut message, 7, &stats);
        let qdisc = parse_qdisc(&message).unwrap();
        assert_eq!((qdisc.is_root, qdisc.queued, qdisc.drops, qdisc.overlimits), (true, 3, 5, 9));
    }

    #[test]
    fn this_namespace_has_lo() {
        let (links, read) = links(1_000).unwrap();
        assert!(links.iter().any(|link| link.name == "lo") && read == Read::Whole);
        assert!(qdiscs(1_000).is_ok() && filters(links[0].index, ROOT, 10).is_ok());
    }
}
