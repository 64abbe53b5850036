//! Proofs of a device's qdisc, offloads, queues, rings and interrupts.
//!
//! A qdisc has to count what the device sends, an offload needs what it works with; what only a card could tell is told as not
//! shown. It only reads.

use std::collections::BTreeMap;

use dyno_record::change::Device;
use dyno_record::tune::Effect;
use dyno_sys::netlink::{ethtool, route};
use dyno_sys::proc;

use super::seen::{Moved, Sight};
use crate::counted;

/// Counters of a device.
pub(super) const RECEIVED: &str = "received";
pub(super) const SENT: &str = "sent";
const SENT_BYTES: &str = "sent bytes";
const MISSED: &str = "missed";
const QUEUED: &str = "queued";
pub(super) const HANDED_OVER: &str = "handed over";
pub(super) const THREAD_US: &str = "thread us";
/// Devices of a namespace at most, as the facts read them.
const DEVICES_MAX: usize = 10_000;
const QUEUES_MAX: usize = 10_000;
/// Bytes of a frame around what an MTU counts: addresses and type, and a tag of a VLAN perhaps.
const FRAME_BYTES: u64 = 18;
const TSO: &str = "tx-tcp-segmentation";
const GSO: &str = "tx-generic-segmentation";
const GRO: &str = "rx-gro";

/// Where the counters of a device stand.
pub(super) fn moving(device: &Device) -> Moved {
    let number = |file: &str| {
        let path = format!("/sys/class/net/{}/statistics/{file}", device.name);
        proc::text(&path).ok().and_then(|text| text.parse().ok())
    };
    Moved::default()
        .with(RECEIVED, number("rx_packets"))
        .with(SENT, number("tx_packets"))
        .with(SENT_BYTES, number("tx_bytes"))
        .with(MISSED, number("rx_missed_errors"))
        .with(QUEUED, counted::queued(device.index).ok())
        .with(HANDED_OVER, counted::handed_over())
        .with(THREAD_US, counted::threads_us(&device.name))
}

/// The numbers of its NAPI instances with how many polls they put interrupts off; none where nothing polls it.
pub(super) fn napis(device: &Device) -> Option<Vec<(u32, u32)>> {
    let all = ethtool::napis(DEVICES_MAX).ok()?;
    let own = all.iter().filter(|napi| napi.device == device.index);
    Some(own.map(|napi| (napi.id, napi.defer_hard_irqs)).collect())
}

pub(super) fn link(device: &Device) -> Option<route::Link> {
    let (all, _) = route::links(DEVICES_MAX).ok()?;
    all.into_iter().find(|link| link.index == device.index)
}

/// The root qdisc: packets that the device sends have to pass it.
pub(super) fn qdisc(device: &Device, sight: &Sight<'_>) -> Effect {
    let Some(link) = link(device) else {
        return Effect::not_shown("the device cannot be asked", "ip link show");
    };
    root(&link, sight)
}

fn root(link: &route::Link, sight: &Sight<'_>) -> Effect {
    let (name, kind) = (&link.name, &link.qdisc);
    let (sent, queued) = (sight.moved.of(SENT), sight.moved.of(QUEUED));
    if !link.is_up {
        return Effect::not_in_force(format!("{name} is down: its qdisc is put to work when it is set up"));
    }
    match (kind.as_str(), sent, queued) {
        (_, 0, _) => {
            Effect::not_shown(format!("{name} sent nothing meanwhile"), "a packet that it sends: tc -s qdisc")
        }
        ("noqueue", sent, 0) => {
            Effect::in_force(format!("{sent} packets left {name}, and none through a queue"))
        }
        ("noqueue", _, queued) => {
            Effect::not_in_force(format!("{queued} packets still went through a queue of {name}"))
        }
        (kind, sent, 0) => {
            Effect::not_in_force(format!("{sent} packets left {name}, and none of them through its {kind}"))
        }
        (kind, sent, queued) => {
            Effect::in_force(format!("{queued} packets passed {kind} while {name} sent {sent}"))
        }
    }
}

/// An offload.
pub(super) fn feature(device: &Device, name: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    match name {
        TSO | GSO => match link(device) {
            Some(link) => segments(&link, wanted, sight),
            None => Effect::not_shown("the device cannot be asked", "ip -d link show"),
        },
        GRO => joining(device, wanted),
        _ => Effect::not_shown(
            format!("no counter tells whether {name} works"),
            format!("ethtool -S {}, where the driver counts it", device.name),
        ),
    }
}

/// Large segments that leave whole.
fn segments(link: &route::Link, wanted: &str, sight: &Sight<'_>) -> Effect {
    let (name, mtu) = (&link.name, u64::from(link.mtu));
    let (sent, bytes) = (sight.moved.of(SENT), sight.moved.of(SENT_BYTES));
    let mean = bytes.checked_div(sent).unwrap_or(0);
    let is_large = mean > mtu + FRAME_BYTES;
    if wanted == "on" && (link.gso_max_segments == 1 || u64::from(link.gso_max_bytes) <= mtu) {
        return Effect::not_in_force(format!(
            "{name} takes segments of {} bytes and {} packets at most, so that nothing is left to cut",
            link.gso_max_bytes, link.gso_max_segments
        ));
    }
    match (wanted, is_large) {
        ("on", true) => Effect::in_force(format!(
            "{sent} packets of {mean} bytes in the mean were handed to {name}, whose packets have {mtu}"
        )),
        (_, true) => Effect::not_in_force(format!(
            "packets of {mean} bytes in the mean are still handed to {name}, whose packets have {mtu}"
        )),
        _ => Effect::not_shown(
            format!("no large reply left {name} meanwhile; a card may count what it has cut"),
            "a connection made from now on that sends more than a packet: tx_bytes by tx_packets, or ethtool -S",
        ),
    }
}

/// Packets are joined where the device is polled, if they are handed to it for that.
fn joining(device: &Device, wanted: &str) -> Effect {
    if wanted != "on" {
        return Effect::not_shown(
            format!("what is joined on {} is not counted", device.name),
            "reads that are never longer than a packet",
        );
    }
    by_napi(device, "joined")
}

/// Whether packets come by the device's NAPI instances, seen at connections that stand.
pub(super) fn by_napi(device: &Device, what: &str) -> Effect {
    let all = route::links(DEVICES_MAX).map(|(all, _)| all).unwrap_or_default();
    let others =
        all.iter().filter(|link| link.is_up && link.index != device.index && link.name != "lo").count();
    let ways =
        Ways { napis: napis(device), connections: counted::connections_by_napi(), is_alone: others == 0 };
    ways.judge(&device.name, what)
}

/// How packets come.
struct Ways {
    napis: Option<Vec<(u32, u32)>>,
    connections: BTreeMap<u32, usize>,
    /// No other device is up: what does not come by this one's instances passes them by.
    is_alone: bool,
}

impl Ways {
    fn judge(&self, name: &str, what: &str) -> Effect {
        let napis = self.napis.as_deref();
        if napis.is_some_and(<[_]>::is_empty) {
            return Effect::not_in_force(format!(
                "nothing polls {name} (it has no NAPI instance), and packets are {what} there"
            ));
        }
        let polled = napis.unwrap_or_default().iter().find(|(id, _)| self.connections.contains_key(id));
        let past = self.connections.get(&0).copied().unwrap_or(0);
        match polled {
            Some((id, _)) => Effect::in_force(format!(
                "packets of connections come by NAPI instance {id} of {name}, where they are {what}"
            )),
            None if self.is_alone && past > 0 => Effect::not_in_force(format!(
                "packets of {past} connections pass the NAPI instances of {name} by (on a virtual cable while the other end has TSO)"
            )),
            None => Effect::not_shown(
                format!("no connection was seen to get its packets by a NAPI instance of {name}"),
                "a connection with a NAPI id (SO_INCOMING_NAPI_ID) of the device",
            ),
        }
    }
}

/// Queues, rings, interrupts.
pub(super) fn hardware(device: &Device, field: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    let name = &device.name;
    match field.split_once(' ') {
        Some(("channels", which)) => {
            let seen = Queues {
                receiving: queues(name, "rx-"),
                sending: queues(name, "tx-"),
                spread: ethtool::rss_queues(device.index).ok().filter(|queues| *queues > 0),
            };
            seen.judge(name, which, wanted)
        }
        Some(("ring", "rx")) => match sight.moved.of(MISSED) {
            0 => Effect::not_shown(
                format!("{name} lost no packet meanwhile"),
                "rx_missed_errors that stands still under the load under which it grew",
            ),
            missed => Effect::not_in_force(format!("{name} still lost {missed} packets for want of room")),
        },
        Some(("ring", _)) => Effect::not_shown(
            format!("how far the ring of {name} fills is not counted"),
            format!("ethtool -S {name}, where the driver counts full rings"),
        ),
        _ => Effect::not_shown(
            format!("when {name} interrupts depends on its load"),
            "fewer interrupts than packets under load: /proc/interrupts beside rx_packets",
        ),
    }
}

fn queues(device: &str, start: &str) -> usize {
    let names = proc::names(&format!("/sys/class/net/{device}/queues"), QUEUES_MAX).unwrap_or_default();
    names.iter().filter(|name| name.starts_with(start)).count()
}

/// Queues that the kernel works.
struct Queues {
    receiving: usize,
    sending: usize,
    /// Those that the table for spreading packets names, where there is one.
    spread: Option<usize>,
}

impl Queues {
    fn judge(&self, name: &str, which: &str, wanted: &str) -> Effect {
        let Ok(wanted) = wanted.parse::<usize>() else {
            return Effect::not_shown("it is no number", "a number of queues");
        };
        let (receives, sends) = (which != "tx", which != "rx");
        if receives && self.receiving != wanted || sends && self.sending != wanted {
            return Effect::not_in_force(format!(
                "the kernel works {} receiving and {} sending queues of {name}",
                self.receiving, self.sending
            ));
        }
        match self.spread.filter(|_| receives) {
            Some(spread) if spread < wanted => Effect::not_in_force(format!(
                "the table by which {name} spreads packets names {spread} of {wanted} queues: ethtool -x {name}"
            )),
            Some(spread) => {
                Effect::in_force(format!("the table by which {name} spreads packets names {spread} queues"))
            }
            None => Effect::in_force(format!("the kernel works {wanted} queues of {name}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    fn link() -> route::Link {
        route::Link {
            name: "vA".into(),
            qdisc: "pfifo".into(),
            is_up: true,
            mtu: 1_500,
            gso_max_bytes: 65_536,
            gso_max_segments: 65_535,
            ..route::Link::default()
        }
    }

    fn moved(pairs: &[(&str, u64)]) -> Sight<'static> {
        let counts = pairs.iter().fold(Moved::default(), |moved, (name, count)| moved.with(name, *count));
        Sight { text: &|_| None, moved: counts }
    }

    /// Planted fault: packets that left are not held against those that were queued; then a qdisc that everything passes by
    /// (an XDP program, a socket with PACKET_QDISC_BYPASS) is in force.
    #[test]
    fn a_qdisc_that_packets_pass_by_is_not_in_force() {
        let force = |sent, queued| root(&link(), &moved(&[(SENT, sent), (QUEUED, queued)])).force;
        assert_eq!(
            [force(9, 9), force(9, 0), force(0, 0)],
            [Force::InForce, Force::NotInForce, Force::NotShown]
        );
        let none = route::Link { qdisc: "noqueue".into(), ..link() };
        let force = |queued| root(&none, &moved(&[(SENT, 9), (QUEUED, queued)])).force;
        assert_eq!([force(0), force(4)], [Force::InForce, Force::NotInForce]);
    }

    /// Planted fault: the table is not looked at; then queues to which no packet is spread are in force.
    #[test]
    fn queues_that_the_table_does_not_name_are_not_in_force() {
        let force =
            |receiving, spread| Queues { receiving, sending: 4, spread }.judge("eth0", "combined", "4").force;
        assert_eq!(force(4, Some(4)), Force::InForce);
        assert_eq!(force(4, None), Force::InForce);
        assert_eq!(force(4, Some(1)), Force::NotInForce);
        assert_eq!(force(2, None), Force::NotInForce);
    }

    /// Planted fault: packets that are lost are not looked at; then a ring that is still too short is not told.
    #[test]
    fn a_ring_that_still_loses_packets_is_not_in_force() {
        let device = Device { name: "eth0".into(), ..Device::default() };
        let force = |missed| hardware(&device, "ring rx", "4096", &moved(&[(MISSED, missed)])).force;
        assert_eq!([force(0), force(3)], [Force::NotShown, Force::NotInForce]);
    }

    /// Planted fault: connections are not looked at; then packets that pass by what joins them are not told.
    #[test]
    fn packets_that_pass_by_who_joins_them_are_told() {
        let force = |napis: &[(u32, u32)], connections: &[(u32, usize)], is_alone| {
            let connections = connections.iter().copied().collect();
            Ways { napis: Some(napis.to_vec()), connections, is_alone }.judge("vA", "joined").force
        };
        let own = [(8_193, 0)];
        assert_eq!(force(&[], &[], true), Force::NotInForce);
        assert_eq!(force(&own, &[(8_193, 2), (0, 1)], true), Force::InForce);
        assert_eq!(force(&own, &[(0, 3)], true), Force::NotInForce);
        assert_eq!(force(&own, &[(0, 3)], false), Force::NotShown);
        assert_eq!(force(&own, &[], true), Force::NotShown);
    }

    /// Planted fault: the device's limit is not looked at; then segments that are cut before it are in force.
    #[test]
    fn segments_that_are_cut_before_the_device_are_not_in_force() {
        let large = moved(&[(SENT, 10), (SENT_BYTES, 300_000)]);
        let small = moved(&[(SENT, 10), (SENT_BYTES, 10_000)]);
        assert_eq!(segments(&link(), "on", &large).force, Force::InForce);
        assert_eq!(segments(&link(), "off", &large).force, Force::NotInForce);
        assert_eq!(segments(&link(), "on", &small).force, Force::NotShown);
        let limited = route::Link { gso_max_segments: 1, ..link() };
        assert_eq!(segments(&limited, "on", &small).force, Force::NotInForce);
    }
}
