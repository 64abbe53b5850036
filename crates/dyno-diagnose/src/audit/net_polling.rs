//! Polling devices in place of waiting for their interrupts.

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::What;
use dyno_record::facts::Facts;

use super::app::{can_be_polled, comes_by_no_queue};
use super::draft::{
    Check, FAST, LATENCY, Looked, Say, Seen, counted, device as named, finding, measured, quoted, unknown,
    with_file, with_sysctl,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "net.busypoll", about: "busy polling for every socket", look: busy_poll },
    Check { id: "net.defer", about: "interrupts that stay away while somebody polls", look: defer },
    Check { id: "net.threaded", about: "threads that poll devices", look: threaded },
];

/// CPUs up to which a polling thread takes time from the server itself: it was measured on two.
const FEW_CPUS: u32 = 4;

fn busy_poll(facts: &Facts) -> Seen {
    let value = facts.sysctl("net.core.busy_poll")?;
    let polled = can_be_polled(facts)?.len();
    let found = format!("net.core.busy_poll={value}, {} that can be polled", counted(polled, "device"));
    if value != "0" || polled == 0 {
        return Ok(Looked::Fine(found));
    }
    if comes_by_no_queue(facts) {
        return Ok(Looked::Fine(format!("{found}; none of the server's connections comes by one")));
    }
    let made = finding("A waiting server sleeps until an interrupt wakes it", found, "50 µs, where the time of a single answer matters")
        .gain(LATENCY, measured(51.0, 51.0, "the median of one connection [48, 55]; nothing with 64"))
        .risk(Risk::CpuBurn, "a CPU is busy while a server waits")
        .why("Waking takes longer than the work of a small request. It works on sockets whose packets come from a queue that can be polled.");
    Ok(with_sysctl(made, "net.core.busy_poll", "50", value).into())
}

fn defer(facts: &Facts) -> Seen {
    let busy = facts.sysctl_number("net.core.busy_poll")?;
    let by_server = facts.server.iter().flat_map(|server| server.epolls.value().into_iter().flatten());
    let is_polled = busy > 0 || by_server.into_iter().any(|one| one.busy_poll_usecs > 0);
    if !is_polled {
        return Ok(Looked::fine("nobody polls"));
    }
    let mut found: Vec<AuditFinding> = Vec::new();
    for device in can_be_polled(facts)? {
        let (deferred, flush) = (*device.defer_hard_irqs.known()?, *device.gro_flush_ns.known()?);
        if deferred > 0 && flush > 0 {
            continue;
        }
        let name = quoted(&device.name);
        let folder = format!("/sys/class/net/{name}");
        let set = |deferred: u64, flush: u64| {
            [
                format!("echo {deferred} | sudo tee {folder}/napi_defer_hard_irqs"),
                format!("echo {flush} | sudo tee {folder}/gro_flush_timeout"),
            ]
        };
        let mut made = finding(
            format!("{} interrupts although it is polled", device.name),
            format!("napi_defer_hard_irqs={deferred}, gro_flush_timeout={flush}"),
            "2 and 200000 ns",
        )
        .about(&device.name)
        .gain(LATENCY, unknown("published for network cards, not measured here"))
        .risk(Risk::CpuBurn, "packets wait up to the timeout when nobody polls")
        .why("An interrupt while the server polls is work for nothing.")
        .see(&[&format!("grep . {folder}/napi_defer_hard_irqs {folder}/gro_flush_timeout")]);
        made.apply = set(2, 200_000).to_vec();
        made.revert = set(deferred, flush).to_vec();
        let file = |file: &str| What::DeviceFile { device: named(&device.name), file: file.to_owned() };
        let made = made.set(file("napi_defer_hard_irqs"), "2").set(file("gro_flush_timeout"), "200000");
        found.push(made);
    }
    Ok(Looked::found_or(found, || "interrupts are deferred".to_owned()))
}

fn threaded(facts: &Facts) -> Seen {
    let mut found = Vec::new();
    let mut on = Vec::new();
    for device in facts.network.devices.known()?.iter().filter(|device| device.is_up) {
        let is_on = *device.threaded.or_absent(&0)? != 0;
        if !is_on {
            continue;
        }
        on.push(device.name.clone());
        if facts.cpu_count()? > FEW_CPUS {
            continue;
        }
        let made = finding(
            format!("A thread polls {}, on a machine with few CPUs", device.name),
            format!("threaded=1, {}", counted(facts.cpus.count as usize, "CPU")),
            "0",
        )
        .about(&device.name)
        .gain(FAST, measured(4.0, 21.0, "threaded polling on two CPUs, against none"))
        .risk(Risk::None, "")
        .why("The thread competes with the server for the CPU, and each packet is handed over to it.");
        let mut made = with_file(made, &format!("/sys/class/net/{}/threaded", device.name), "0", "1");
        made.changes.clear();
        let file = What::DeviceFile { device: named(&device.name), file: "threaded".into() };
        found.push(made.set(file, "0"));
    }
    Ok(Looked::found_or(found, || match on.is_empty() {
        true => "off on every device".to_owned(),
        false => format!("on for {}", on.join(", ")),
    }))
}
