//! Who sees packets besides the server: sockets that tap, and devices that take what is not for them.

use std::collections::BTreeMap;

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::facts::{Device, Facts, Packets, Tap};

use super::draft::{Check, FAST, Looked, Say, Seen, counted, finding, measured, quoted, unknown};
use super::here;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "tap.packet", about: "sockets that tap packets", look: packet },
    Check { id: "tap.promisc", about: "devices that take every packet of the wire", look: promiscuous },
];

/// Protocols that a server's packets have: every packet, IPv4, IPv6. A tap for others (LLDP, ARP) sees none of them.
const PROTOCOLS: [u32; 3] = [3, 0x0800, 0x86dd];
/// µs per request: a filter that refuses packets, a ring that takes them, a socket that copies each.
const FILTERED_US: (f64, f64) = (0.2, 0.4);
const RING_US: (f64, f64) = (0.3, 0.4);
const COPY_US: (f64, f64) = (0.4, 0.9);
/// Kinds of taps of one owner that are told apart.
const KINDS_MAX: usize = 4;
/// A request's CPU where that was measured, µs.
const REQUEST_US: f64 = 12.5;

fn packet(facts: &Facts) -> Seen {
    let taps = facts.network.taps.known()?;
    let mut by_owner: BTreeMap<(Option<i32>, &str), Vec<&Tap>> = BTreeMap::new();
    for tap in taps.iter().filter(|tap| PROTOCOLS.contains(&tap.protocol)) {
        by_owner.entry((tap.pid, tap.owner.as_str())).or_default().push(tap);
    }
    let found: Vec<AuditFinding> =
        by_owner.into_iter().map(|(owner, taps)| of_owner(owner, &taps, here::tap(facts))).collect();
    let others = taps.len();
    Ok(Looked::found_or(found, || match others {
        0 => "no socket taps packets".to_owned(),
        _ => format!("{} for protocols that a server does not speak", counted(others, "tap")),
    }))
}

fn of_owner((pid, name): (Option<i32>, &str), taps: &[&Tap], here: Option<&Packets>) -> AuditFinding {
    let owner = match pid {
        Some(pid) => format!("{name} ({pid})"),
        None => "a process that is not seen from here".to_owned(),
    };
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    taps.iter().for_each(|tap| *kinds.entry(described(tap)).or_default() += 1);
    let words: Vec<String> =
        kinds.iter().take(KINDS_MAX).map(|(kind, count)| format!("{count} {kind}")).collect();
    let more = if kinds.len() > KINDS_MAX { " and others" } else { "" };
    let apply = match pid {
        Some(pid) => {
            format!("sudo kill {pid}  # {}; a DHCP client's can be spared by a fixed address", quoted(name))
        }
        None => "stop the process that holds it: sudo ss -0 -p".to_owned(),
    };
    finding(
        format!("{owner} is shown every packet that the server receives and sends"),
        format!("{}: {}{more}", counted(taps.len(), "socket"), words.join("; ")),
        "no tap while the server is to be fast",
    )
    .about(owner)
    .gain(FAST, here.map_or_else(|| cost(taps), |one| here::of_taps(taps, one)))
    .risk(Risk::Operational, "what that program watches or does is no longer watched or done")
    .why("The kernel hands each packet to every tap before the server gets it: a filter runs, and where it agrees the packet is copied. A DHCP client taps too while it only waits for its lease to end.")
    .see(&["sudo ss -0 -e -b -p", "cat /proc/net/ptype"])
    .apply(&[&apply])
    .revert(&["start that program again"])
}

fn described(tap: &Tap) -> String {
    let device = if tap.device.is_empty() { "all devices" } else { &tap.device };
    let filter = tap.filter.map_or_else(
        || "no filter seen".to_owned(),
        |count| format!("a filter of {}", counted(count as usize, "instruction")),
    );
    let ring = tap.ring_bytes.map_or_else(String::new, |bytes| format!(", a ring of {} kB", bytes / 1_024));
    format!("on {device}, {filter}{ring}")
}

fn cost(taps: &[&Tap]) -> dyno_record::audit::Gain {
    let us = |pick: fn((f64, f64)) -> f64| -> f64 { taps.iter().map(|tap| pick(us_of(tap))).sum() };
    let percent = |us: f64| (100.0 * us / (us + REQUEST_US)).round();
    measured(
        percent(us(|cost| cost.0)),
        percent(us(|cost| cost.1)),
        "0.2 to 0.4 µs for a tap that refuses packets, 0.3 to 0.9 µs for one that takes them; ten of them cost 16 to 22 %",
    )
}

fn us_of(tap: &Tap) -> (f64, f64) {
    match (tap.filter, tap.ring_bytes) {
        (Some(_), _) => FILTERED_US,
        (None, Some(_)) => RING_US,
        (None, None) => COPY_US,
    }
}

/// How a device lets go of packets for others: by its name where somebody set it by name, else by the program that asked for it,
/// which keeps it as long as its socket is open, whatever the device is set to (packet(7), PACKET_MR_PROMISC).
fn ways(facts: &Facts, device: &Device) -> (Vec<String>, Vec<String>) {
    let taps = facts.network.taps.value().map(Vec::as_slice).unwrap_or_default();
    let asks = |tap: &&Tap| tap.promiscuous.contains(&device.name);
    let owner = |tap: &Tap| match tap.pid {
        Some(pid) => format!("stop {} ({pid}), which asked for it", quoted(&tap.owner)),
        None => "stop the program that asked for it, which is not seen from here".to_owned(),
    };
    let mut apply: Vec<String> = taps.iter().filter(asks).map(owner).collect();
    let mut revert: Vec<String> = apply.iter().map(|_| "start that program again".to_owned()).collect();
    apply.dedup();
    revert.dedup();
    if device.is_promiscuous {
        let set = |state: &str| format!("sudo ip link set dev {} promisc {state}", quoted(&device.name));
        apply.insert(0, set("off"));
        revert.insert(0, set("on"));
    }
    if apply.is_empty() {
        apply.push(
            "stop what asked for it: the kernel does not say who, a virtual machine's device perhaps".into(),
        );
        revert.push("start it again".into());
    }
    (apply, revert)
}

fn promiscuous(facts: &Facts) -> Seen {
    let devices = facts.network.devices.known()?;
    let found: Vec<AuditFinding> = devices
        .iter()
        // What is a part of a bridge, a bond or a switch has to: it would pass on nothing without.
        .filter(|device| device.promiscuity > 0 && device.is_up && device.driver.is_some())
        .filter(|device| device.master.is_none())
        .map(|device| {
            let (apply, revert) = ways(facts, device);
            let made = finding(
                format!("{} takes packets that are not for this machine", device.name),
                format!("asked for by {}", device.promiscuity),
                "0, where no bridge or virtual machine needs it",
            )
            .about(&device.name)
            .gain(FAST, unknown("it depends on what else is on the wire"))
            .risk(Risk::Operational, "who asked for it no longer sees the wire")
            .why("The network card could leave out packets for other machines by itself; now the CPU has to.")
            .see(&[&format!("ip -d link show dev {}", quoted(&device.name))]);
            AuditFinding { apply, revert, ..made }
        })
        .collect();
    Ok(Looked::found_or(found, || "no hardware device does that is no part of a bridge".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::audit::Goal;
    use dyno_record::fact::Fact;

    fn found(device: Device, taps: Vec<Tap>) -> Option<AuditFinding> {
        let mut facts = Facts::default();
        facts.network.taps = Fact::Value(taps);
        facts.network.devices = Fact::Value(vec![Device {
            name: "eth0".into(),
            driver: Some("x".into()),
            is_up: true,
            promiscuity: 1,
            ..device
        }]);
        let all = crate::audit::audit(&facts, Goal::Throughput).findings;
        all.into_iter().find(|one| one.id == "tap.promisc")
    }

    fn tap(owner: &str, promiscuous: &[&str]) -> Tap {
        let promiscuous = promiscuous.iter().map(|name| (*name).to_owned()).collect();
        Tap { device: "eth0".into(), pid: Some(7), owner: owner.into(), promiscuous, ..Tap::default() }
    }

    /// Planted fault: the master is not looked at; then a bridge is taken off the network.
    #[test]
    fn a_part_of_a_bridge_takes_every_packet_by_its_nature() {
        assert_eq!(found(Device { master: Some(3), ..Device::default() }, Vec::new()), None);
        assert!(found(Device::default(), Vec::new()).is_some());
    }

    /// Planted fault: any tap on the device is named; then a DHCP client is stopped for what a capture asked for.
    #[test]
    fn who_asked_for_it_is_named_and_not_whoever_taps() {
        let asked = |taps| found(Device::default(), taps).map(|one| one.apply).unwrap_or_default();
        let both = vec![tap("dhclient", &[]), tap("tcpdump", &["eth0"])];
        assert_eq!(asked(both), ["stop tcpdump (7), which asked for it"]);
        assert!(asked(vec![tap("dhclient", &[])])[0].contains("the kernel does not say who"));
    }

    /// Planted fault: the command is offered wherever the count is above zero; then it changes nothing, and its undo asks for more.
    #[test]
    fn the_command_by_name_is_for_what_was_set_by_name() {
        let is_promiscuous = true;
        let made = found(Device { is_promiscuous, ..Device::default() }, Vec::new()).unwrap_or_default();
        assert_eq!(made.apply, ["sudo ip link set dev eth0 promisc off"]);
        assert_eq!(made.revert, ["sudo ip link set dev eth0 promisc on"]);
        let made = found(Device::default(), Vec::new()).unwrap_or_default();
        assert!(made.apply.iter().chain(&made.revert).all(|line| !line.contains("ip link set")), "{made:?}");
    }
}
