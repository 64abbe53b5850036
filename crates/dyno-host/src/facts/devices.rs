//! Network devices: what they are, their queues and offloads, and what stands before and behind them.
//!
//! Numbers come from netlink; what only sysfs has is read there, where it shows the same network namespace.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::fact::Fact;
use dyno_record::facts::{Device, Interrupt, Qdisc, QueueSetting, Within};
use dyno_sys::netlink::ethtool::{self, Napi, Settings};
use dyno_sys::netlink::route::{self, Link};
use dyno_sys::netlink::socket::Read;
use dyno_sys::proc;

use super::limits::{DEVICES_MAX, QUEUES_MAX, RULES_MAX};
use super::read::{fact, newer, number, unread};

/// Parents of filters: on the way in and out of a device with `clsact`, and of any root.
const IN: u32 = 0xffff_fff2;
const OUT: u32 = 0xffff_fff3;

/// The driver of virtio's network devices.
const VIRTIO: &str = "virtio_net";

/// All that is read for every device at once.
struct Tables {
    qdiscs: Fact<Vec<route::Qdisc>>,
    settings: Fact<BTreeMap<u32, Settings>>,
    napis: Fact<Vec<Napi>>,
}

/// The devices of this namespace.
pub(super) fn devices(cut: &mut Vec<String>) -> Fact<Vec<Device>> {
    let links = fact("devices", route::links(DEVICES_MAX));
    let tables = Tables {
        qdiscs: fact("queueing disciplines", route::qdiscs(QUEUES_MAX)).map(|(all, _)| all),
        settings: newer("ethtool's family of netlink", ethtool::settings(DEVICES_MAX), "Linux 5.7"),
        napis: newer("queues that can be polled", ethtool::napis(QUEUES_MAX), "Linux 6.8"),
    };
    links.map(|(links, read)| {
        if read == Read::Cut {
            cut.push(format!("devices after the first {DEVICES_MAX}"));
        }
        links.into_iter().map(|link| device(link, &tables)).collect()
    })
}

/// Gives each device the interrupts that are its own, that its NAPI instances name, or that carry its name.
pub(super) fn match_interrupts(devices: &mut [Device], interrupts: &[Interrupt]) {
    let napis = ethtool::napis(QUEUES_MAX).unwrap_or_default();
    let of_napis: Vec<(u32, u32)> = napis.iter().filter_map(|napi| Some((napi.device, napi.irq?))).collect();
    devices.iter_mut().for_each(|device| match_one(device, interrupts, &of_napis));
}

fn match_one(device: &mut Device, interrupts: &[Interrupt], of_napis: &[(u32, u32)]) {
    let folders = interrupt_folders(device);
    let listed = folders.iter().flat_map(|folder| proc::names(folder, QUEUES_MAX).unwrap_or_default());
    let own = listed.filter_map(|name| name.parse::<u32>().ok());
    let of_napi = of_napis.iter().filter(|(index, _)| *index == device.index).map(|(_, irq)| *irq);
    let named = interrupts.iter().filter(|one| carries(&one.name, &device.name)).map(|one| one.irq);
    let all: BTreeSet<u32> = own.chain(of_napi).chain(named).collect();
    device.interrupts = all.into_iter().collect();
}

/// Virtio's interrupts belong to the bus's device above it. Above any other device is the port that it is plugged into, whose
/// interrupts are of power and errors.
fn interrupt_folders(device: &Device) -> Vec<String> {
    let own = format!("/sys/class/net/{}/device", device.name);
    match device.driver.as_deref() {
        Some(VIRTIO) => vec![format!("{own}/msi_irqs"), format!("{own}/../msi_irqs")],
        _ => vec![format!("{own}/msi_irqs")],
    }
}

/// Whether an interrupt's name begins with a device's: `eth10-TxRx-0` is none of `eth1`.
fn carries(interrupt: &str, device: &str) -> bool {
    interrupt.strip_prefix(device).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn device(link: Link, tables: &Tables) -> Device {
    let folder = format!("/sys/class/net/{}", link.name);
    let driver = proc::link_name(&format!("{folder}/device/driver")).ok();
    let is_hardware = driver.is_some();
    let mut device = Device {
        index: link.index,
        kind: link.kind,
        driver,
        is_up: link.is_up,
        master: link.master,
        is_promiscuous: link.is_promiscuous,
        mtu: link.mtu,
        promiscuity: link.promiscuity,
        rx_queues: link.queues.0,
        tx_queues: link.queues.1,
        has_xdp: link.has_xdp,
        packets: link.packets,
        rx_dropped: link.rx_dropped,
        rx_missed: link.rx_missed,
        tx_dropped: link.tx_dropped,
        qdiscs: of_device(&tables.qdiscs, link.index),
        filters: filters(link.index, &tables.qdiscs),
        napi_ids: napi_ids(&tables.napis, link.index),
        rss_queues: if is_hardware { rss(link.index) } else { Fact::Absent("RSS".into()) },
        name: link.name,
        ..Device::default()
    };
    set_from_ethtool(&mut device, &tables.settings);
    set_from_sysfs(&mut device, &folder);
    device
}

fn napi_ids(all: &Fact<Vec<Napi>>, index: u32) -> Fact<Vec<u32>> {
    let own = |all: Vec<Napi>| all.iter().filter(|napi| napi.device == index).map(|napi| napi.id).collect();
    all.clone().map(own)
}

fn of_device(all: &Fact<Vec<route::Qdisc>>, index: u32) -> Fact<Vec<Qdisc>> {
    all.clone().map(|all| {
        let mut own: Vec<&route::Qdisc> = all.iter().filter(|one| one.device == index).collect();
        own.sort_by_key(|one| !one.is_root);
        own.into_iter().map(qdisc).collect()
    })
}

fn qdisc(one: &route::Qdisc) -> Qdisc {
    Qdisc {
        kind: one.kind.clone(),
        handle: format!("{:x}:", one.handle >> 16),
        is_root: one.is_root,
        drops: one.drops,
        overlimits: one.overlimits,
    }
}

/// Filters can stand only where something holds them.
fn filters(index: u32, qdiscs: &Fact<Vec<route::Qdisc>>) -> Fact<Vec<String>> {
    let own = |kinds: &[&str]| {
        let all = qdiscs.value().map(Vec::as_slice).unwrap_or_default();
        all.iter().any(|one| one.device == index && kinds.contains(&one.kind.as_str()))
    };
    if !own(&["clsact", "ingress"]) {
        return Fact::Value(Vec::new());
    }
    let read = [IN, OUT].map(|parent| route::filters(index, parent, RULES_MAX));
    let [inward, outward] = read;
    fact("filters", inward.and_then(|inward| Ok([inward, outward?].concat())))
}

fn rss(index: u32) -> Fact<u32> {
    fact("RSS", ethtool::rss_queues(index)).map(|queues| queues as u32)
}

fn set_from_ethtool(device: &mut Device, settings: &Fact<BTreeMap<u32, Settings>>) {
    let settings = settings.clone().map(|all| all.get(&device.index).cloned().unwrap_or_default());
    let within = |get: fn(&Settings) -> Option<ethtool::Within>, what: &str| -> Fact<Within> {
        told(&settings, what, |one| get(one).map(|within| Within { is: within.is, max: within.max }))
    };
    device.channels = within(|one| Some(one.channels?.within), "queues that can be set");
    let channels = settings.value().and_then(|one| one.channels);
    device.channel_kind = channels.map_or_else(String::new, |one| one.kind.to_owned());
    device.rx_ring = within(|one| one.rx_ring, "a receiving ring that can be set");
    device.tx_ring = within(|one| one.tx_ring, "a sending ring that can be set");
    device.features = told(&settings, "offloads", |one| one.features.clone());
    device.settable_features = told(&settings, "offloads", |one| one.settable.clone());
    device.wanted_features = told(&settings, "offloads", |one| one.wanted.clone());
    if has_no_moderation(device) {
        let absent = || "moderation of a virtual card's interrupts".to_owned();
        (device.rx_usecs, device.tx_usecs) = (Fact::Absent(absent()), Fact::Absent(absent()));
        device.adaptive_rx = Fact::Absent(absent());
        return;
    }
    device.rx_usecs = told(&settings, "coalescing", |one| one.coalescing?.rx_usecs);
    device.tx_usecs = told(&settings, "coalescing", |one| one.coalescing?.tx_usecs);
    device.adaptive_rx = told(&settings, "adaptive coalescing", |one| one.coalescing?.adaptive_rx);
}

/// `VIRTIO_NET_F_NOTF_COAL` (include/uapi/linux/virtio_net.h). A card whose host does not offer it answers with zeros.
const VIRTIO_MODERATION: usize = 53;

fn has_no_moderation(device: &Device) -> bool {
    let path = format!("/sys/class/net/{}/device/features", device.name);
    let bits = proc::text(&path).ok().filter(|_| device.driver.as_deref() == Some(VIRTIO));
    bits.is_some_and(|bits| bits.as_bytes().get(VIRTIO_MODERATION) != Some(&b'1'))
}

/// What a device does not tell it does not have.
fn told<T>(settings: &Fact<Settings>, what: &str, get: impl Fn(&Settings) -> Option<T>) -> Fact<T> {
    match settings {
        Fact::Value(one) => get(one).map_or_else(|| Fact::Absent(what.into()), Fact::Value),
        Fact::Absent(what) => Fact::Absent(what.clone()),
        Fact::Unread(why) => Fact::Unread(why.clone()),
    }
}

fn set_from_sysfs(device: &mut Device, folder: &str) {
    if number::<u32>(&format!("{folder}/ifindex")) != Fact::Value(device.index) {
        let other = |what: &str| (what.to_owned(), "sysfs shows another network namespace");
        let (what, why) = other(folder);
        let needs = "run it by 'ip netns exec NAME', which shows the namespace's own";
        (device.rps, device.rfs, device.xps) = (
            unread(&what, None, why, needs),
            unread(&what, None, why, needs),
            unread(&what, None, why, needs),
        );
        (device.threaded, device.gro_flush_ns, device.defer_hard_irqs) = (
            unread(&what, None, why, needs),
            unread(&what, None, why, needs),
            unread(&what, None, why, needs),
        );
        return;
    }
    let queues = proc::names(&format!("{folder}/queues"), 2 * QUEUES_MAX).unwrap_or_default();
    device.rx_queues = in_use(&queues, "rx-").unwrap_or(device.rx_queues);
    device.tx_queues = in_use(&queues, "tx-").unwrap_or(device.tx_queues);
    device.rps = per_queue(folder, &queues, "rx-", "rps_cpus");
    device.rfs = per_queue(folder, &queues, "rx-", "rps_flow_cnt");
    device.xps = per_queue(folder, &queues, "tx-", "xps_cpus");
    device.threaded = number(&format!("{folder}/threaded"));
    device.gro_flush_ns = number(&format!("{folder}/gro_flush_timeout"));
    device.defer_hard_irqs = number(&format!("{folder}/napi_defer_hard_irqs"));
    device.node = number(&format!("{folder}/device/numa_node"));
}

/// How many queues of a kind there are folders for: those in use, of the many that a driver has made room for
/// (net/core/net-sysfs.c, net_rx_queue_update_kobjects).
fn in_use(queues: &[String], kind: &str) -> Option<u32> {
    let count = queues.iter().filter(|queue| queue.starts_with(kind)).count();
    u32::try_from(count).ok().filter(|count| *count > 0)
}

/// A setting of each queue; where a device has one sending queue the kernel has no file for its CPUs.
fn per_queue(folder: &str, queues: &[String], kind: &str, file: &str) -> Fact<Vec<QueueSetting>> {
    let mut all = Vec::new();
    for queue in queues.iter().filter(|queue| queue.starts_with(kind)) {
        match fact(file, proc::text(&format!("{folder}/queues/{queue}/{file}"))) {
            Fact::Value(value) => all.push(QueueSetting { queue: queue.clone(), value }),
            Fact::Absent(what) => return Fact::Absent(what),
            Fact::Unread(why) => return Fact::Unread(why),
        }
    }
    Fact::Value(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn lo_is_read_with_its_offloads_and_masks() {
        let mut cut = Vec::new();
        let all = devices(&mut cut);
        let lo = all.value().unwrap().iter().find(|one| one.name == "lo").unwrap();
        assert!(lo.driver.is_none() && lo.index > 0 && cut.is_empty());
        assert_eq!(lo.filters, Fact::Value(Vec::new()));
    }

    /// Planted fault: the folder above is read for every device; then the errors of a port count as a card's queues.
    #[test]
    fn only_virtios_interrupts_are_looked_for_above_the_device() {
        let of = |driver: &str| {
            let device = Device { name: "eth0".into(), driver: Some(driver.into()), ..Device::default() };
            interrupt_folders(&device)
        };
        assert_eq!(of("r8169"), ["/sys/class/net/eth0/device/msi_irqs"]);
        assert_eq!(of("virtio_net")[1], "/sys/class/net/eth0/device/../msi_irqs");
    }

    /// Planted fault: any beginning counts; then the interrupts of the tenth card are moved for the first one.
    #[test]
    fn a_name_that_goes_on_is_another_devices() {
        assert!(carries("eth1", "eth1") && carries("eth1-TxRx-0", "eth1") && carries("eth1:rx", "eth1"));
        assert!(
            !carries("eth10-TxRx-0", "eth1") && !carries("eth1a", "eth1") && !carries("i40e-eth1", "eth1")
        );
    }

    /// Planted fault: the room that a driver made is taken for what is in use.
    #[test]
    fn queues_in_use_are_those_with_a_folder() {
        let queues = ["rx-0", "rx-1", "tx-0"].map(str::to_owned);
        assert_eq!(
            (in_use(&queues, "rx-"), in_use(&queues, "tx-"), in_use(&[], "rx-")),
            (Some(2), Some(1), None)
        );
        let all = devices(&mut Vec::new());
        let lo = all.value().unwrap().iter().find(|one| one.name == "lo").unwrap();
        assert_eq!((lo.rx_queues, lo.tx_queues), (1, 1));
    }

    #[test]
    fn interrupts_are_matched_by_name_and_by_napi() {
        let mut devices = [Device { index: 2, name: "eth9".into(), ..Device::default() }];
        let interrupt = |irq, name: &str| Interrupt { irq, name: name.into(), ..Interrupt::default() };
        let all = [interrupt(30, "eth9-rx-0"), interrupt(31, "nvme0q1")];
        match_one(&mut devices[0], &all, &[(2, 44), (3, 45)]);
        assert_eq!(devices[0].interrupts, [30, 44]);
    }
}
