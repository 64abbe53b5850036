//! Queues of network devices: who takes their packets, on which CPU.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::facts::{Device, Facts, QueueSetting};

use super::draft::{
    Check, FAST, Looked, Say, Seen, THROUGHPUT, counted, device as named, finding, measured, present,
    published, quoted, unknown, with_sysctl,
};
use super::moved::{Moved, OF_PACKETS, moved, only_told};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.rps", about: "packets that one CPU hands to another (RPS)", look: rps },
    Check { id: "net.rfs", about: "handing packets to the CPU that reads them (RFS)", look: rfs },
    Check { id: "net.xps", about: "CPUs of sending queues (XPS)", look: xps },
    Check { id: "net.rss", about: "queues of the hardware against CPUs (RSS)", look: rss },
    Check { id: "net.coal", about: "how often the hardware interrupts", look: coalescing },
    Check { id: "net.rings", about: "room in the hardware's rings", look: rings },
];

/// CPUs up to which handing packets on only moves work to a CPU that is busy already: it was measured on two.
const FEW_CPUS: u32 = 4;

/// Whether a mask of CPUs, as `0,00000003`, names any.
fn is_set(mask: &str) -> bool {
    mask.chars().any(|c| c.is_ascii_hexdigit() && c != '0')
}

/// The mask of one CPU as the kernel takes it: words of 32 bits, the highest first.
fn mask_of(cpu: u32) -> String {
    let zeroes = ",00000000".repeat(cpu as usize / 32);
    format!("{:x}{zeroes}", 1u32 << (cpu % 32))
}

/// Queues whose commands are shown.
const QUEUES_SHOWN: usize = 8;

fn set_queues(queues: &[QueueSetting]) -> Vec<&QueueSetting> {
    queues.iter().filter(|queue| is_set(&queue.value)).collect()
}

fn listed(queues: &[&QueueSetting]) -> String {
    let more = if queues.len() > 4 { format!(" and {} more", queues.len() - 4) } else { String::new() };
    let shown: Vec<String> =
        queues.iter().take(4).map(|one| format!("{}={}", one.queue, one.value)).collect();
    shown.join(" ") + &more
}

fn up(devices: &[Device]) -> impl Iterator<Item = &Device> {
    devices.iter().filter(|device| device.is_up)
}

fn rps(facts: &Facts) -> Seen {
    let devices = facts.network.devices.known()?;
    let mut found: Vec<AuditFinding> = Vec::new();
    let mut kept = Vec::new();
    for device in up(devices) {
        let queues = set_queues(device.rps.known()?);
        if queues.is_empty() {
            continue;
        }
        // Software devices have no interrupts to spread; hardware with a queue for each CPU spreads by itself.
        let is_needless = device.driver.is_none() || device.rx_queues >= facts.cpu_count()?;
        match is_needless || facts.cpu_count()? <= FEW_CPUS {
            true => found.push(of_rps(device, &queues)),
            false => kept.push(format!("{} {}", device.name, listed(&queues))),
        }
    }
    Ok(Looked::found_or(found, || match kept.is_empty() {
        true => "off on every device".to_owned(),
        false => format!("{}: more CPUs than queues", kept.join(", ")),
    }))
}

fn of_rps(device: &Device, queues: &[&QueueSetting]) -> AuditFinding {
    let name = quoted(&device.name);
    let file = |queue: &QueueSetting| format!("/sys/class/net/{name}/queues/{}/rps_cpus", queue.queue);
    let apply: Vec<String> =
        queues.iter().take(4).map(|queue| format!("echo 0 | sudo tee {}", file(queue))).collect();
    let revert: Vec<String> = queues
        .iter()
        .take(4)
        .map(|queue| format!("echo {} | sudo tee {}", queue.value, file(queue)))
        .collect();
    let words = |all: &[String]| all.iter().map(String::as_str).map(str::to_owned).collect::<Vec<_>>();
    let mut made = finding(
        format!("Each packet of {} is handed from one CPU to another before it is worked on", device.name),
        listed(queues),
        "0: off",
    )
    .about(&device.name)
    .gain(FAST, measured(34.0, 47.0, "masks set on a device of one queue with two busy CPUs, against off"))
    .risk(Risk::None, "")
    .why("Handing a packet over takes an interrupt between CPUs, 7 to 16 µs a request. It helps only where one CPU is full of packets while others idle.")
    .see(&[&format!("grep . /sys/class/net/{name}/queues/rx-*/rps_cpus")]);
    made.apply = words(&apply);
    made.revert = words(&revert);
    queues.iter().fold(made, |made, queue| {
        let (device, file) = (named(&device.name), format!("queues/{}/rps_cpus", queue.queue));
        made.set(What::DeviceFile { device, file }, "0")
    })
}

fn rfs(facts: &Facts) -> Seen {
    let devices = facts.network.devices.known()?;
    let zero = "0".to_owned();
    let sysctl = facts.sysctls.get("net.core.rps_sock_flow_entries");
    let entries = sysctl.map_or(Ok(&zero), |fact| fact.or_absent(&zero))?;
    let mut with_flows = Vec::new();
    for device in up(devices) {
        let own = device.rfs.known()?.iter().filter(|queue| queue.value != "0").count();
        with_flows.extend((own > 0).then(|| format!("{} ({})", device.name, counted(own, "queue"))));
    }
    let found = format!(
        "net.core.rps_sock_flow_entries={entries}, rps_flow_cnt set on: {}",
        match with_flows.is_empty() {
            true => "none".to_owned(),
            false => with_flows.join(", "),
        }
    );
    if (entries == "0") == with_flows.is_empty() {
        return Ok(Looked::Fine(found));
    }
    let half = finding(
        "Half of RFS is set: packets are not handed to the CPU that reads them",
        found,
        "both tables set, or both 0",
    )
    .gain(FAST, unknown("half set it does nothing; wholly set with RPS it cost 63 % on two busy CPUs"))
    .risk(Risk::None, "")
    .why("RFS needs a table for the machine and one for each queue; with one of them missing it is off.");
    let see = "grep . /sys/class/net/*/queues/rx-*/rps_flow_cnt";
    if entries != "0" {
        let mut made = with_sysctl(half, "net.core.rps_sock_flow_entries", "0", entries);
        made.see.push(see.into());
        return Ok(made.into());
    }
    // The machine's table is empty already: what is set is the queues'.
    let mut made = half.see(&["sysctl net.core.rps_sock_flow_entries", see]);
    for device in up(devices) {
        for queue in device.rfs.known()?.iter().filter(|queue| queue.value != "0") {
            let file = format!("queues/{}/rps_flow_cnt", queue.queue);
            let path = quoted(&format!("/sys/class/net/{}/{file}", device.name));
            if made.apply.len() < QUEUES_SHOWN {
                made.apply.push(format!("echo 0 | sudo tee {path}"));
                made.revert.push(format!("echo {} | sudo tee {path}", queue.value));
            }
            made = made.set(What::DeviceFile { device: named(&device.name), file }, "0");
        }
    }
    Ok(made.into())
}

fn xps(facts: &Facts) -> Seen {
    let devices = facts.network.devices.known()?;
    let mut found = Vec::new();
    let several: Vec<&Device> =
        up(devices).filter(|device| device.tx_queues > 1 && device.driver.is_some()).collect();
    if several.is_empty() {
        return Ok(Looked::NotHere("a hardware device with several sending queues".into()));
    }
    if facts.cpu_count()? < 2 {
        return Ok(Looked::fine("one CPU: nobody takes turns at a queue"));
    }
    for device in several {
        let queues = device.xps.known()?;
        if queues.is_empty() || !set_queues(queues).is_empty() {
            continue;
        }
        let name = quoted(&device.name);
        let made = finding(
            format!("Sending queues of {} are chosen by hash, not by CPU", device.name),
            format!("{}, no CPUs set for any", counted(device.tx_queues as usize, "sending queue")),
            "a queue for each CPU",
        )
        .about(&device.name)
        .gain(FAST, unknown("part of the published 38 % for locality"))
        .risk(Risk::None, "")
        .why("Two CPUs that send through one queue wait for each other.")
        .see(&[&format!("grep . /sys/class/net/{name}/queues/tx-*/xps_cpus")]);
        let each = || 0..device.tx_queues.min(facts.cpus.count);
        let mut made = made.revert(&[&format!(
            "for f in /sys/class/net/{name}/queues/tx-*/xps_cpus; do echo 0 | sudo tee $f; done"
        )]);
        // A shell counts no further than 63 in powers of two, and the kernel wants words of 32 bits.
        let set = |queue: u32| {
            format!("echo {} | sudo tee /sys/class/net/{name}/queues/tx-{queue}/xps_cpus", mask_of(queue))
        };
        made.apply = each().take(QUEUES_SHOWN).map(set).collect();
        let more = each().count().saturating_sub(QUEUES_SHOWN);
        made.apply.extend(
            (more > 0).then(|| format!("# and {more} more: dyno tune apply net.xps does all of them")),
        );
        found.push(each().fold(made, |made, queue| {
            let file = format!("queues/tx-{queue}/xps_cpus");
            made.set(What::DeviceFile { device: named(&device.name), file }, &mask_of(queue))
        }));
    }
    Ok(Looked::found_or(found, || "CPUs are set for sending queues".to_owned()))
}

fn hardware_of(device: &Device, field: &str) -> What {
    What::Hardware { device: named(&device.name), field: field.to_owned() }
}

fn hardware(facts: &Facts) -> Result<Vec<&Device>, dyno_record::fact::Gap> {
    Ok(up(facts.network.devices.known()?).filter(|device| device.driver.is_some()).collect())
}

fn rss(facts: &Facts) -> Seen {
    let mut found = Vec::new();
    let mut fine = Vec::new();
    for device in hardware(facts)? {
        let Some(channels) = present(&device.channels)? else {
            fine.push(format!(
                "{}: {}, none can be added",
                device.name,
                counted(device.rx_queues as usize, "queue")
            ));
            continue;
        };
        let wanted = channels.max.min(facts.cpu_count()?);
        fine.push(format!("{}: {} of {} queues", device.name, channels.is, channels.max));
        if channels.is >= wanted {
            continue;
        }
        let name = quoted(&device.name);
        let kind = if device.channel_kind.is_empty() { "combined" } else { &device.channel_kind };
        found.push(
            finding(
                format!("{} spreads packets over fewer CPUs than there are", device.name),
                format!(
                    "{} of {} queues, {}",
                    channels.is,
                    channels.max,
                    counted(facts.cpus.count as usize, "CPU")
                ),
                format!("{wanted} queues"),
            )
            .about(&device.name)
            .gain(THROUGHPUT, published(38.0, "locality as a whole, of which this is a part"))
            .risk(Risk::Operational, "the device is reset: connections stall for a moment")
            .why("Packets of a queue are worked on by the CPU that takes its interrupt.")
            .see(&[&format!("ethtool -l {name}")])
            .apply(&[&format!("sudo ethtool -L {name} {kind} {wanted}")])
            .revert(&[&format!("sudo ethtool -L {name} {kind} {}", channels.is)])
            .set(hardware_of(device, &format!("channels {kind}")), &wanted.to_string()),
        );
    }
    if fine.is_empty() {
        return Ok(Looked::NotHere("a hardware network device".into()));
    }
    Ok(Looked::found_or(found, || fine.join(", ")))
}

/// µs below which a device that does not adapt interrupts for nearly every packet.
const OFTEN_USECS: u32 = 16;

fn coalescing(facts: &Facts) -> Seen {
    let mut found = Vec::new();
    let mut fine = Vec::new();
    for device in hardware(facts)? {
        let (Some(rx), Some(tx)) = (present(&device.rx_usecs)?, present(&device.tx_usecs)?) else { continue };
        let adaptive = device.adaptive_rx.value().copied().unwrap_or(false);
        let words = format!(
            "{}: adaptive {}, rx {rx} µs, tx {tx} µs",
            device.name,
            if adaptive { "on" } else { "off" }
        );
        if adaptive || *rx >= OFTEN_USECS {
            fine.push(words);
            continue;
        }
        if device.adaptive_rx.value().is_none() {
            // A fixed pause is one that each answer waits for: nothing is advised.
            fine.push(format!("{words}; its driver cannot adapt it to the load"));
            continue;
        }
        let name = quoted(&device.name);
        found.push(
            finding(format!("{} interrupts for nearly every packet", device.name), words, "adaptive, with 256 µs on sending")
                .about(&device.name)
                .gain(THROUGHPUT, published(28.0, "adaptive moderation together with busy polling"))
                .risk(Risk::None, "")
                .why("Under load a CPU spends more time being interrupted than working; a pause of some µs gathers packets.")
                .see(&[&format!("ethtool -c {name}")])
                .apply(&[&format!("sudo ethtool -C {name} adaptive-rx on tx-usecs 256")])
                .revert(&[&format!("sudo ethtool -C {name} adaptive-rx off rx-usecs {rx} tx-usecs {tx}")])
                .set(hardware_of(device, "coalesce adaptive-rx"), "1")
                .set(hardware_of(device, "coalesce tx-usecs"), "256"),
        );
    }
    if found.is_empty() && fine.is_empty() {
        return Ok(Looked::NotHere("a device whose interrupts can be moderated".into()));
    }
    Ok(Looked::found_or(found, || fine.join(", ")))
}

fn rings(facts: &Facts) -> Seen {
    let mut found = Vec::new();
    let mut fine = Vec::new();
    for device in hardware(facts)? {
        let Some(ring) = present(&device.rx_ring)? else { continue };
        let words = format!(
            "{}: {} of {} descriptors, {} packets lost for want of room (now {}), of {}",
            device.name, ring.is, ring.max, device.rx_missed, device.rx_missed_lately, device.packets
        );
        let moved = moved((device.rx_missed_lately, device.rx_missed), device.packets, OF_PACKETS);
        if moved == Moved::No || ring.is >= ring.max {
            fine.push(words);
            continue;
        }
        let name = quoted(&device.name);
        let made = finding(
            format!("{} lost packets because its ring was full", device.name),
            words,
            format!("{} descriptors", ring.max),
        )
        .about(&device.name)
        .gain(FAST, unknown("lost packets are sent again, after a pause"))
        .risk(Risk::Operational, "the device is reset: connections stall for a moment")
        .why(
            "Packets that arrive while the CPU is elsewhere wait in the ring; when it is full they are lost.",
        )
        .see(&[&format!("ethtool -g {name}"), &format!("ip -s -s link show dev {name}")])
        .apply(&[&format!("sudo ethtool -G {name} rx {}", ring.max)])
        .revert(&[&format!("sudo ethtool -G {name} rx {}", ring.is)])
        .set(hardware_of(device, "ring rx"), &ring.max.to_string());
        found.push(if moved == Moved::Now { made.loses() } else { only_told(made) });
    }
    if found.is_empty() && fine.is_empty() {
        return Ok(Looked::NotHere("a device whose rings can be set".into()));
    }
    Ok(Looked::found_or(found, || fine.join(", ")))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Goal, Level};
    use dyno_record::fact::Fact;
    use dyno_record::facts::Within;

    fn found(device: Device, cpus: u32, id: &str) -> Option<AuditFinding> {
        let mut facts = Facts::default();
        facts.cpus.count = cpus;
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts.network.devices = Fact::Value(vec![Device {
            name: "eth0".into(),
            driver: Some("x".into()),
            is_up: true,
            ..device
        }]);
        let all = crate::audit::audit(&facts, Goal::Throughput).findings;
        all.into_iter().find(|one| one.id == id)
    }

    /// Planted fault: packets since boot are judged; then one that was lost in months is a High for ever.
    #[test]
    fn a_ring_is_too_short_where_packets_are_lost_now() {
        let of = |missed, lately| {
            let ring = Fact::Value(Within { is: 256, max: 4_096 });
            let device = Device {
                packets: 10_000_000_000,
                rx_missed: missed,
                rx_missed_lately: lately,
                rx_ring: ring,
                ..Device::default()
            };
            found(device, 4, "net.rings").map(|made| (made.level, made.changes.len()))
        };
        assert_eq!(of(1, 0), None);
        assert_eq!(of(50_000, 0), Some((Level::Low, 0)));
        assert_eq!(of(50_000, 3), Some((Level::High, 1)));
    }

    /// Planted fault: the word is always `combined`.
    #[test]
    fn queues_are_set_by_the_name_that_the_card_has_for_them() {
        let of = |kind: &str| {
            let channels = Fact::Value(Within { is: 2, max: 16 });
            let device = Device { channels, channel_kind: kind.into(), ..Device::default() };
            found(device, 8, "net.rss").unwrap()
        };
        assert_eq!(of("rx").apply, ["sudo ethtool -L eth0 rx 8"]);
        assert!(of("rx").changes[0].what.to_string().contains("channels rx"), "{:?}", of("rx").changes);
        assert_eq!(of("combined").revert, ["sudo ethtool -L eth0 combined 2"]);
    }

    /// Planted fault: a shell shifts; then the mask of the 33rd queue is refused.
    #[test]
    fn masks_beyond_32_cpus_are_words_with_commas() {
        let xps = Fact::Value(vec![QueueSetting { queue: "tx-0".into(), value: "0".into() }]);
        let made = found(Device { tx_queues: 40, xps, ..Device::default() }, 64, "net.xps").unwrap();
        assert_eq!(made.changes[33].wanted, "2,00000000");
        assert_eq!(made.apply[1], "echo 2 | sudo tee /sys/class/net/eth0/queues/tx-1/xps_cpus");
        assert!(made.apply.len() == QUEUES_SHOWN + 1 && made.apply[QUEUES_SHOWN].contains("32 more"));
    }
}
