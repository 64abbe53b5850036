//! Where the changes of findings take place: the namespace that the facts are of, and the numbers of its devices.
//!
//! [`super::audit`] calls it once for every finding. A change whose place the facts do not know is left out: the commands remain.

use dyno_record::change::{ChangeSpec, Network, What};
use dyno_record::facts::Facts;

/// The changes with their places.
pub(super) fn placed(changes: Vec<ChangeSpec>, facts: &Facts) -> Vec<ChangeSpec> {
    let count = changes.len();
    let placed: Vec<ChangeSpec> = changes.into_iter().filter_map(|change| one(change, facts)).collect();
    // All or none: half a finding is not what was shown.
    if placed.len() == count { placed } else { Vec::new() }
}

fn one(change: ChangeSpec, facts: &Facts) -> Option<ChangeSpec> {
    let at = network(facts)?;
    let index = |name: &str| {
        let devices = facts.network.devices.value()?;
        devices.iter().find(|device| device.name == name).map(|device| device.index)
    };
    let mut what = change.what;
    match &mut what {
        What::File(path) if path.starts_with("/proc/sys/net/") => {
            what = What::NetworkFile { network: at, path: path.clone() };
        }
        What::NetworkFile { network, .. } | What::Table { network, .. } | What::FirstRule { network, .. } => {
            *network = at;
        }
        What::DeviceFile { device, .. }
        | What::Feature { device, .. }
        | What::Hardware { device, .. }
        | What::Qdisc { device } => {
            device.index = index(&device.name)?;
            device.network = at;
        }
        _ => {}
    }
    Some(ChangeSpec { what, ..change })
}

/// Why none of these changes can be made here, where what they write is read-only for everybody.
pub(super) fn read_only<'f>(changes: &[ChangeSpec], facts: &'f Facts) -> Option<String> {
    let file = |what: &What| match what {
        What::Interrupt { irq, .. } => Some(format!("/proc/irq/{irq}/smp_affinity_list")),
        What::File(_) | What::NetworkFile { .. } | What::DeviceFile { .. } => Some(what.to_string()),
        _ => None,
    };
    let holds = |place: &str, file: &str| {
        file.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    let files: Vec<String> = changes.iter().filter_map(|change| file(&change.what)).collect();
    // The deepest place counts: a folder may be writable inside of one that is not.
    let deepest = |places: &'f [String], file: &str| {
        places.iter().filter(|place| holds(place, file)).max_by_key(|place| place.len())
    };
    let closed = |file: &String| {
        let place = deepest(&facts.kernel.read_only, file)?;
        let open = deepest(&facts.kernel.writable, file).map_or(0, String::len);
        (open < place.len()).then_some(place)
    };
    let place = files.iter().find_map(closed)?;
    Some(match files.contains(place) {
        true => format!("{place} cannot be written on this kernel: it has nothing that this would set"),
        false => format!("{place} is read-only here, as in a container: change it on the host"),
    })
}

/// The namespace of the network facts; its cookie is known to those who can enter it.
fn network(facts: &Facts) -> Option<Network> {
    let name = facts.reader.looked_into.as_ref().or(facts.reader.network_namespace.value())?;
    let inode = name.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    Some(Network { inode, cookie: 0 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Planted fault: a place is compared as a text; then `/proc/sys` holds `/proc/sysrq-trigger`.
    #[test]
    fn what_nobody_may_write_here_says_so_and_where_it_can_be_done() {
        let change = |path: &str| {
            vec![ChangeSpec { what: What::File(path.into()), wanted: "1".into(), why: "w".into() }]
        };
        let mut facts = Facts::default();
        facts.kernel.read_only = vec!["/proc/sys".into(), "/proc/sys/kernel/nmi_watchdog".into()];
        let why = |path: &str| read_only(&change(path), &facts);
        assert!(why("/proc/sys/vm/swappiness").unwrap().contains("on the host"));
        assert!(why("/proc/sys/kernel/nmi_watchdog").unwrap().contains("on this kernel"));
        assert_eq!(why("/proc/sysrq-trigger"), None);
        facts.kernel.writable = vec!["/proc/sys/net".into()];
        let why = |path: &str| read_only(&change(path), &facts);
        assert_eq!(why("/proc/sys/net/core/somaxconn"), None);
        assert!(why("/proc/sys/vm/swappiness").is_some());
        assert_eq!(read_only(&[], &facts), None);
    }
}
