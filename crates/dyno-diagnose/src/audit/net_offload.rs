//! What devices do for the CPU, and the queues before them.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::fact::Gap;
use dyno_record::facts::{Device, Facts};

use super::draft::{
    Check, FAST, Looked, Say, Seen, THROUGHPUT, device as named, finding, measured, published, quoted,
    unknown,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.tso", about: "cutting large replies into packets (TSO, GSO)", look: segmentation },
    Check { id: "net.gro", about: "joining packets that come in (GRO)", look: joining },
    Check { id: "net.qdisc", about: "queues before devices", look: qdisc },
    Check { id: "net.cc", about: "congestion control", look: congestion },
];

const TSO: &str = "tx-tcp-segmentation";
const GSO: &str = "tx-generic-segmentation";
const GRO: &str = "rx-gro";
const GATHER: &str = "tx-scatter-gather";
/// Disciplines that count, delay or sort by rules: what a server sends passes one lock and some arithmetic.
const SHAPING: [&str; 9] = ["tbf", "htb", "hfsc", "cbq", "netem", "drr", "ets", "prio", "red"];
/// Those that have a queue for each of the device's.
const SPREADING: [&str; 4] = ["mq", "mqprio", "noqueue", "taprio"];

/// A device that is up, with its offloads.
struct Offloads<'f> {
    device: &'f Device,
    on: &'f [String],
    settable: &'f [String],
    wanted: &'f [String],
}

impl Offloads<'_> {
    fn is_on(&self, name: &str) -> bool {
        has(self.on, name)
    }

    /// It is off because nobody asks for it. One that is asked for and off is one that the device cannot do now, as a tun device
    /// whose program takes no large packets: asking again changes nothing.
    fn is_left_out(&self, name: &str) -> bool {
        !self.is_on(name) && has(self.settable, name) && !has(self.wanted, name)
    }
}

/// Of devices that have none, nothing is said.
fn offloads(facts: &Facts) -> Result<Vec<Offloads<'_>>, Gap> {
    let mut all = Vec::new();
    for device in facts.network.devices.known()?.iter().filter(|device| device.is_up) {
        let settable = device.settable_features.value().map_or(&[][..], Vec::as_slice);
        match device.features.known() {
            Ok(on) => all.push(Offloads { device, on, settable, wanted: device.wanted_features.known()? }),
            Err(Gap::Absent(_)) => {}
            Err(gap) => return Err(gap),
        }
    }
    Ok(all)
}

fn has(features: &[String], name: &str) -> bool {
    features.iter().any(|feature| feature == name)
}

fn segmentation(facts: &Facts) -> Seen {
    let all = offloads(facts)?;
    let mut found: Vec<AuditFinding> = Vec::new();
    for one in &all {
        let device = one.device;
        // Without it the kernel takes TSO and GSO back at once (net/core/dev.c, netdev_fix_features).
        let lacks_gather = one.is_left_out(GATHER);
        let is_held = |name: &str| lacks_gather && has(one.settable, name) && !one.is_on(name);
        let off: Vec<&str> =
            [TSO, GSO].into_iter().filter(|name| one.is_left_out(name) || is_held(name)).collect();
        if off.is_empty() {
            continue;
        }
        let gain = match one.is_on(TSO) || one.is_on(GSO) {
            false => {
                measured(83.0, 85.0, "replies of 64 kB with both off; nothing for replies of one packet")
            }
            true => {
                unknown("with one of the two the kernel still works on large packets; 83 % was with both off")
            }
        };
        let name = quoted(&device.name);
        let set = |state: &str| {
            let words = [(TSO, "tso"), (GSO, "gso")];
            let mut words: Vec<String> = words
                .iter()
                .filter(|(long, _)| off.contains(long))
                .map(|(_, short)| format!("{short} {state}"))
                .collect();
            if lacks_gather {
                words.insert(0, format!("sg {state}"));
            }
            format!("sudo ethtool -K {name} {}", words.join(" "))
        };
        let made = finding(
            format!("Large replies are cut into packets long before they reach {}", device.name),
            format!("off: {}", off.join(", ")),
            "on",
        )
        .about(&device.name)
        .gain(THROUGHPUT, gain)
        .risk(Risk::Operational, "somebody may have turned it off because of a fault of the card's")
        .why("Each packet then runs through all of the network code by itself, instead of forty at once.")
        .see(&[&format!("ethtool -k {name}")])
        .apply(&[&set("on")])
        .revert(&[&set("off")]);
        let all = lacks_gather.then_some(GATHER).into_iter().chain(off.iter().copied());
        found.push(all.fold(made, |made, feature| {
            made.set(What::Feature { device: named(&device.name), name: feature.to_owned() }, "on")
        }));
    }
    let names: Vec<&str> = all.iter().map(|one| one.device.name.as_str()).collect();
    Ok(Looked::found_or(found, || format!("on, or not to be had, on {}", names.join(", "))))
}

fn joining(facts: &Facts) -> Seen {
    let all = offloads(facts)?;
    let words: Vec<String> = all
        .iter()
        .map(|one| format!("{} {}", one.device.name, if has(one.on, GRO) { "on" } else { "off" }))
        .collect();
    // Either way measured no difference for replies of one packet; what is published for turning it off is 4 %.
    Ok(Looked::fine(format!("{}; no difference was measured with small requests", words.join(", "))))
}

fn qdisc(facts: &Facts) -> Seen {
    let mut found = Vec::new();
    let mut fine = Vec::new();
    for device in facts.network.devices.known()?.iter().filter(|device| device.is_up) {
        let all = device.qdiscs.known()?;
        let Some(root) = all.iter().find(|one| one.is_root) else { continue };
        let name = quoted(&device.name);
        let words =
            format!("{} {}, {} dropped, {} delayed", device.name, root.kind, root.drops, root.overlimits);
        let made = if SHAPING.contains(&root.kind.as_str()) {
            finding(
                format!("Rules limit how fast {} may send", device.name),
                words,
                "the default, where nothing is to be limited",
            )
            .gain(FAST, measured(5.0, 8.0, "a token bucket that never held anything back, against none"))
            .risk(Risk::Operational, "a limit that somebody set is gone")
        } else if device.tx_queues > 1
            && device.driver.is_some()
            && facts.cpu_count()? > 1
            && !SPREADING.contains(&root.kind.as_str())
        {
            finding(
                format!("All queues of {} share one lock", device.name),
                words,
                "mq: a queue for each of the device's",
            )
            .gain(FAST, published(2.0, "no queue at all, against the default"))
            .risk(Risk::Operational, "fairness between connections is per queue")
        } else {
            fine.push(format!("{} {}", device.name, root.kind));
            continue;
        };
        found.push(
            made.about(&device.name)
                .why("Every packet that is sent passes the queue before the device.")
                .see(&[&format!("tc -s qdisc show dev {name}")])
                .apply(&[
                    &format!("tc qdisc show dev {name} | sudo tee /root/qdisc.before"),
                    &format!("sudo tc qdisc del dev {name} root"),
                ])
                .revert(&[&format!(
                    "sudo tc qdisc replace dev {name} root …  # as /root/qdisc.before has it"
                )])
                .set(What::Qdisc { device: named(&device.name) }, "default"),
        );
    }
    Ok(Looked::found_or(found, || fine.join(", ")))
}

fn congestion(facts: &Facts) -> Seen {
    let value = facts.sysctl("net.ipv4.tcp_congestion_control")?;
    let of_server = facts.server.as_ref().and_then(|server| server.options.value());
    let used = of_server.and_then(|options| options.values.get("TCP_CONGESTION"));
    let others: Vec<String> = used
        .into_iter()
        .flatten()
        .filter(|(name, _)| name.as_str() != value)
        .map(|(name, count)| format!("{count} connections use {name}"))
        .collect();
    let found = format!("{value}; reno, cubic and bbr measured no difference with replies of one packet");
    if others.is_empty() {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("Connections use another congestion control than the system's", format!("{value}; {}", others.join(", ")), "as you meant it")
        .gain(FAST, unknown("with replies of one packet it makes no difference"))
        .risk(Risk::None, "")
        .why("A listener keeps the one that was set when it was made, and so do its connections: a change reaches only what is opened afterwards.")
        .see(&["ss -tni"])
        .apply(&["restart the server"])
        .revert(&["nothing to revert"])
        .into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Goal, Level};
    use dyno_record::fact::Fact;

    fn found(on: &[&str], wanted: &[&str]) -> Option<AuditFinding> {
        let names = |all: &[&str]| Fact::Value(all.iter().map(|name| (*name).to_owned()).collect());
        let mut facts = Facts::default();
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts.network.devices = Fact::Value(vec![Device {
            name: "tun0".into(),
            is_up: true,
            features: names(on),
            settable_features: names(&[TSO, GSO, GATHER]),
            wanted_features: names(wanted),
            ..Device::default()
        }]);
        let all = crate::audit::audit(&facts, Goal::Throughput).findings;
        all.into_iter().find(|one| one.id == "net.tso")
    }

    /// Planted fault: what is asked for is not looked at; then every tun device is a High that nobody can mend.
    #[test]
    fn an_offload_that_is_asked_for_and_not_to_be_had_is_no_finding() {
        assert_eq!(found(&[GSO, GATHER], &[TSO, GSO, GATHER]), None);
        let off = found(&[GATHER], &[GATHER]).unwrap();
        assert_eq!((off.level, off.risk, off.changes.len()), (Level::High, Risk::Operational, 2));
    }

    /// Planted fault: the figure of both stands for one of them.
    #[test]
    fn the_figure_is_of_both_turned_off() {
        let one = found(&[GSO, GATHER], &[GSO, GATHER]).unwrap();
        assert_eq!((one.gain.percent, one.level), (None, Level::Low));
    }

    #[test]
    fn what_gathering_holds_back_comes_back_with_it() {
        let made = found(&[], &[TSO, GSO]).unwrap();
        assert_eq!(made.apply, ["sudo ethtool -K tun0 sg on tso on gso on"]);
    }

    /// Planted fault: a kernel that does not tell offloads has none; then it is told as fine.
    #[test]
    fn what_an_older_kernel_does_not_tell_is_not_fine() {
        let mut facts = Facts::default();
        facts.network.devices =
            Fact::Value(vec![Device { is_up: true, driver: Some("x".into()), ..Device::default() }]);
        let judged = crate::audit::audit(&facts, Goal::Throughput);
        for id in ["net.tso", "net.gro", "net.rss", "net.coal", "net.rings", "net.busypoll"] {
            assert!(judged.fine.iter().all(|one| one.id != id), "{id}");
            assert!(judged.not_here.iter().all(|one| one.id != id), "{id}");
        }
    }
}
