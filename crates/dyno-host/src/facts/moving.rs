//! Counters of the network that never fall, at the beginning and at the end of reading: what lies between is what happens now.
//!
//! [`super::read`] takes both looks, in the namespace that the facts are of, and enters the differences.

use std::collections::BTreeMap;

use dyno_record::fact::Fact;
use dyno_record::facts::Facts;
use dyno_sys::netlink::route;
use dyno_sys::{Pid, namespace};

use super::limits::DEVICES_MAX;
use super::read::fact;
use super::{kernel, netfilter, network};

/// Counters at one moment.
#[derive(Default)]
pub(super) struct Moving {
    counters: Fact<BTreeMap<String, u64>>,
    early_drops: u64,
    missed: BTreeMap<u32, u64>,
}

impl Moving {
    /// Reads those of the network that the server sees, or this process where none is named.
    pub(super) fn take(server: Option<Pid>) -> Fact<Moving> {
        match server.filter(|pid| kernel::is_elsewhere(*pid)) {
            None => Fact::Value(Moving::here()),
            Some(pid) => fact("the server's network namespace", namespace::in_network_of(pid, Moving::here)),
        }
    }

    fn here() -> Moving {
        let links = route::links(DEVICES_MAX).map(|(links, _)| links).unwrap_or_default();
        Moving {
            counters: network::counters(),
            early_drops: netfilter::early_drops(),
            missed: links.iter().map(|link| (link.index, link.rx_missed)).collect(),
        }
    }
}

/// Enters what was counted between two looks.
pub(super) fn compare(before: Fact<Moving>, after: Fact<Moving>, facts: &mut Facts) {
    let (before, after) = match (before, after) {
        (Fact::Value(before), Fact::Value(after)) => (before, after),
        (Fact::Unread(why), _) | (_, Fact::Unread(why)) => {
            facts.network.lately = Fact::Unread(why);
            return;
        }
        (Fact::Absent(what), _) | (_, Fact::Absent(what)) => {
            facts.network.lately = Fact::Absent(what);
            return;
        }
    };
    let was = before.counters.value().cloned().unwrap_or_default();
    facts.network.lately = after.counters.map(|all| since(&was, all));
    if let Fact::Value(table) = &mut facts.netfilter.conntrack {
        table.early_drops_lately = after.early_drops.saturating_sub(before.early_drops);
    }
    let missed = since(&before.missed, after.missed);
    if let Fact::Value(devices) = &mut facts.network.devices {
        let lately = |index: u32| missed.get(&index).copied().unwrap_or(0);
        devices.iter_mut().for_each(|device| device.rx_missed_lately = lately(device.index));
    }
}

/// What is new meanwhile has nothing to be compared with, and counts nothing.
fn since<K: Ord>(before: &BTreeMap<K, u64>, after: BTreeMap<K, u64>) -> BTreeMap<K, u64> {
    let counted = |(key, now): (K, u64)| {
        let was = before.get(&key).copied().unwrap_or(now);
        (key, now.saturating_sub(was))
    };
    after.into_iter().map(counted).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::facts::{Conntrack, Device};

    fn look(overflows: u64, early_drops: u64, missed: u64) -> Fact<Moving> {
        Fact::Value(Moving {
            counters: Fact::Value([("ListenOverflows".to_owned(), overflows)].into()),
            early_drops,
            missed: [(2, missed)].into(),
        })
    }

    /// Planted fault: the second look is entered as it is; then what was counted since boot is told as of now.
    #[test]
    fn what_was_counted_before_the_first_look_is_not_of_now() {
        let mut facts = Facts::default();
        let eth = |index| Device { index, ..Device::default() };
        facts.network.devices = Fact::Value(vec![eth(2), eth(3)]);
        facts.netfilter.conntrack = Fact::Value(Conntrack::default());
        compare(look(7, 100, 1_000), look(9, 101, 1_003), &mut facts);
        assert_eq!(facts.network.lately.value().unwrap()["ListenOverflows"], 2);
        assert_eq!(facts.netfilter.conntrack.value().unwrap().early_drops_lately, 1);
        let missed: Vec<u64> =
            facts.network.devices.value().unwrap().iter().map(|one| one.rx_missed_lately).collect();
        assert_eq!(missed, [3, 0], "the other one is new");
        compare(look(7, 0, 0), Fact::Absent("it has ended".into()), &mut facts);
        assert_eq!(facts.network.lately, Fact::Absent("it has ended".into()));
    }

    #[test]
    fn this_network_is_looked_at_with_what_its_connections_are_held_against() {
        let Fact::Value(look) = Moving::take(None) else { panic!("it is this process's own") };
        let counters = look.counters.value().unwrap();
        assert!(counters.contains_key("PassiveOpens") && counters.contains_key("ListenOverflows"));
        assert!(!look.missed.is_empty(), "there is lo");
    }
}
