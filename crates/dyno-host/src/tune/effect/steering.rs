//! Proofs of where a device's packets are worked on: RPS, RFS, XPS, polling threads, interrupts that are put off.
//!
//! Packets that come by themselves have to move a counter; and each of these needs something else beside it, which is looked at.
//! It only reads.

use dyno_record::change::Device;
use dyno_record::tune::{Effect, Force};
use dyno_sys::proc;

use super::device::{HANDED_OVER, RECEIVED, THREAD_US, by_napi, link, napis};
use super::seen::{Sight, is_empty_mask};

/// Fewer packets show nothing: one may be handed over by chance.
const PACKETS_MIN: u64 = 8;
/// CPU time of a thread that was only woken once or twice (0 to 10 µs), and a fifth of what a polled packet was seen to take at least:
/// packets that pass its NAPI by cost it nothing.
const WOKEN_US: u64 = 20;
const PACKETS_PER_US: u64 = 10;
const QUEUES_MAX: usize = 10_000;
/// The table of RFS for the whole machine.
pub(super) const FLOWS: &str = "/proc/sys/net/core/rps_sock_flow_entries";

pub(super) fn judge(device: &Device, file: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    let name = file.rsplit('/').next().unwrap_or(file);
    match name {
        "rps_cpus" => handing(device, wanted, sight),
        "rps_flow_cnt" => flows(device, wanted, sight),
        "xps_cpus" => sending(device, sight),
        "threaded" => thread(device, wanted, sight),
        "napi_defer_hard_irqs" | "gro_flush_timeout" => deferring(device, name, wanted, sight),
        _ => Effect::not_shown(format!("no counter tells what {name} does"), "the load for which it was set"),
    }
}

fn folder(device: &Device) -> String {
    format!("/sys/class/net/{}", device.name)
}

/// Files of all its queues whose value is something else than nothing.
fn set_of_queues(device: &Device, file: &str, sight: &Sight<'_>) -> usize {
    let queues = format!("{}/queues", folder(device));
    let names = proc::names(&queues, QUEUES_MAX).unwrap_or_default();
    let values = names.iter().filter_map(|name| (sight.text)(&format!("{queues}/{name}/{file}")));
    values.filter(|value| !is_empty_mask(value)).count()
}

/// RPS: packets are handed to other CPUs, or are not.
fn handing(device: &Device, wanted: &str, sight: &Sight<'_>) -> Effect {
    let has_flows = set_of_queues(device, "rps_flow_cnt", sight) > 0;
    let masks = set_of_queues(device, "rps_cpus", sight);
    handed(&device.name, is_empty_mask(wanted), (masks, has_flows), sight)
}

fn handed(name: &str, is_off: bool, (masks, has_flows): (usize, bool), sight: &Sight<'_>) -> Effect {
    let (received, handed) = (sight.moved.of(RECEIVED), sight.moved.of(HANDED_OVER));
    if received < PACKETS_MIN {
        return few(name, received, "while column 10 of /proc/net/softnet_stat is read");
    }
    let came = format!("{received} packets came in on {name}");
    match (is_off, handed) {
        (true, 0) => Effect::in_force(format!("{came}, and none on this machine was handed to another CPU")),
        (true, _) if has_flows => Effect::not_in_force(format!(
            "{came}, and {handed} were handed to another CPU: its rps_flow_cnt is set, and RFS hands them on without a mask"
        )),
        (true, _) if masks > 0 => Effect::not_in_force(format!(
            "{came}, and {handed} were handed to another CPU: another queue of it has a mask"
        )),
        (true, _) => Effect::not_shown(
            format!(
                "{came}, and {handed} on this machine were handed to another CPU, of another device perhaps"
            ),
            "column 10 of /proc/net/softnet_stat while the others are quiet",
        ),
        (false, 0) => Effect::not_in_force(format!(
            "{came}, and none was handed to another CPU: they come on the mask's CPUs already, or pass it by"
        )),
        (false, _) => {
            Effect::in_force(format!("{came}, and {handed} on this machine were handed to another CPU"))
        }
    }
}

fn few(name: &str, received: u64, beside: &str) -> Effect {
    Effect::not_shown(
        format!("{received} packets came in on {name} meanwhile"),
        format!("packets on {name} {beside}"),
    )
}

/// RFS is two tables; with one of them it is off.
fn flows(device: &Device, wanted: &str, sight: &Sight<'_>) -> Effect {
    if wanted.trim() == "0" {
        return Effect::in_force(format!("this queue of {} has no table any more", device.name));
    }
    match sight.number(FLOWS) {
        Some(0) => Effect::not_in_force(
            "net.core.rps_sock_flow_entries is 0: RFS needs the machine's table and the queue's".to_owned(),
        ),
        _ => handed(&device.name, false, (0, true), sight),
    }
}

/// XPS: which CPU sent a packet is not counted, but what goes before it is known.
fn sending(device: &Device, sight: &Sight<'_>) -> Effect {
    match set_of_queues(device, "xps_rxqs", sight) {
        0 => Effect::not_shown(
            "no counter tells which CPU sent through a queue".to_owned(),
            "one CPU that sends alone, beside the packets of each queue: tc -s qdisc below mq, or ethtool -S",
        ),
        _ => Effect::not_in_force(format!(
            "xps_rxqs of {} is set: queues are chosen by where a connection's packets come in, before CPUs are asked",
            device.name
        )),
    }
}

/// A thread polls the device: it has to use a CPU for the packets that come.
fn thread(device: &Device, wanted: &str, sight: &Sight<'_>) -> Effect {
    let is_polled = napis(device).is_none_or(|all| !all.is_empty());
    polled_by_thread(&device.name, wanted.trim() != "0", is_polled, sight)
}

fn polled_by_thread(name: &str, is_on: bool, is_polled: bool, sight: &Sight<'_>) -> Effect {
    let (received, spent) = (sight.moved.of(RECEIVED), sight.moved.get(THREAD_US));
    if is_on && !is_polled {
        return Effect::not_in_force(format!("nothing polls {name}: it has no NAPI instance"));
    }
    let Some(us) = spent else {
        return match is_on {
            true => Effect::not_in_force(format!("the kernel has no thread for {name}")),
            false => Effect::in_force(format!("the kernel has no thread for {name}")),
        };
    };
    if received < PACKETS_MIN {
        return few(name, received, "while its threads (napi/…) use a CPU, or do not");
    }
    let is_working = us >= WOKEN_US + received / PACKETS_PER_US;
    let seen = format!("{received} packets came in on {name}, and its threads worked {us} µs");
    match (is_on, is_working) {
        (true, true) | (false, false) => Effect::in_force(seen),
        (true, false) => Effect::not_in_force(format!(
            "{seen}: packets pass its NAPI by (on a virtual cable while the other end has TSO)"
        )),
        (false, true) => Effect::not_in_force(seen),
    }
}

/// Interrupts that are put off take two values and a device that is polled.
fn deferring(device: &Device, file: &str, wanted: &str, sight: &Sight<'_>) -> Effect {
    let other = if file == "gro_flush_timeout" { "napi_defer_hard_irqs" } else { "gro_flush_timeout" };
    let beside = sight.number(&format!("{}/{other}", folder(device)));
    let polls = wanted.trim().parse().ok().filter(|_| file == "napi_defer_hard_irqs");
    let is_card = link(device).is_some_and(|link| link.kind.is_empty() && link.name != "lo");
    let shown =
        deferred(&device.name, (other, beside), (wanted.trim() != "0", polls), napis(device), is_card);
    // Instances that have it count where packets come by them.
    if shown.force == Force::NotShown { by_napi(device, "waited for") } else { shown }
}

fn deferred(
    name: &str,
    (other, beside): (&str, Option<u64>),
    (is_on, polls): (bool, Option<u32>),
    napis: Option<Vec<(u32, u32)>>,
    is_card: bool,
) -> Effect {
    let Some(napis) = napis else {
        return Effect::not_shown(
            "this kernel does not tell its NAPI instances",
            "Linux 6.8, or interrupts under load",
        );
    };
    if let Some((id, has)) = napis.iter().find(|(_, has)| polls.is_some_and(|polls| polls != *has)) {
        return Effect::not_in_force(format!(
            "NAPI instance {id} of {name} has {has}: it was set for itself"
        ));
    }
    if !is_on {
        return Effect::in_force(format!("{name} takes its interrupts at once"));
    }
    if napis.is_empty() {
        return Effect::not_in_force(format!("nothing polls {name}: it has no NAPI instance"));
    }
    if beside == Some(0) {
        return Effect::not_in_force(format!(
            "{other} of {name} is 0, and one without the other puts nothing off"
        ));
    }
    match is_card {
        true => Effect::in_force(format!("all {} NAPI instances of {name} have it", napis.len())),
        false => Effect::not_shown(
            format!("the NAPI instances of {name} have it, and packets may pass them by"),
            "a connection with a NAPI id (SO_INCOMING_NAPI_ID)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::seen::Moved;
    use super::*;

    fn sight(received: u64, handed: u64) -> Sight<'static> {
        let moved = Moved::default().with(RECEIVED, received).with(HANDED_OVER, handed);
        Sight { text: &|_| None, moved }
    }

    /// Planted fault: nothing is asked of the counters; then a mask that hands nothing over is in force.
    #[test]
    fn packets_that_are_handed_over_or_not_show_the_mask() {
        let force =
            |is_off, others, seen: (u64, u64)| handed("vA", is_off, others, &sight(seen.0, seen.1)).force;
        let none = (0, false);
        assert_eq!(force(true, none, (50, 0)), Force::InForce);
        assert_eq!(force(true, (0, true), (50, 9)), Force::NotInForce, "RFS hands on without a mask");
        assert_eq!(force(true, (1, false), (50, 9)), Force::NotInForce, "another queue's mask");
        assert_eq!(force(true, none, (50, 9)), Force::NotShown, "another device's, perhaps");
        assert_eq!(force(false, (1, false), (50, 9)), Force::InForce);
        assert_eq!(force(false, (1, false), (50, 0)), Force::NotInForce);
        assert_eq!(force(false, (1, false), (PACKETS_MIN - 1, 0)), Force::NotShown);
    }

    /// Planted fault: a thread that is there is taken for one that works.
    #[test]
    fn a_thread_that_works_for_no_packet_is_not_in_force() {
        let force = |is_on, us: Option<u64>| {
            let moved = Moved::default().with(RECEIVED, 400).with(THREAD_US, us);
            polled_by_thread("vA", is_on, true, &Sight { text: &|_| None, moved }).force
        };
        // As met: a fast machine that polls 64 packets at a time.
        for us in [1_900, 217] {
            assert_eq!([force(true, Some(us)), force(true, Some(10))], [Force::InForce, Force::NotInForce]);
            assert_eq!([force(false, Some(10)), force(false, Some(us))], [Force::InForce, Force::NotInForce]);
        }
        assert_eq!([force(true, None), force(false, None)], [Force::NotInForce, Force::InForce]);
    }

    /// Planted fault: the value beside it is not looked at; then half of a pair is in force.
    #[test]
    fn putting_interrupts_off_takes_both_values_and_a_device_that_is_polled() {
        let force = |beside, napis, is_card| {
            deferred("eth0", ("gro_flush_timeout", beside), (true, Some(2)), napis, is_card).force
        };
        let has = |polls| Some(vec![(8_193, polls)]);
        assert_eq!(force(Some(200_000), has(2), true), Force::InForce);
        assert_eq!(force(Some(0), has(2), true), Force::NotInForce);
        assert_eq!(
            force(Some(200_000), has(0), true),
            Force::NotInForce,
            "an instance with a value of its own"
        );
        assert_eq!(force(Some(200_000), Some(vec![]), true), Force::NotInForce);
        assert_eq!(force(Some(200_000), has(2), false), Force::NotShown);
        assert_eq!(force(Some(200_000), None, true), Force::NotShown);
    }
}
