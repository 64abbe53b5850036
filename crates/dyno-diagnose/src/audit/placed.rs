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
        What::NetworkFile { network, .. } | What::Table { network, .. } => *network = at,
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

/// The namespace of the network facts; its cookie is known to those who can enter it.
fn network(facts: &Facts) -> Option<Network> {
    let name = facts.reader.looked_into.as_ref().or(facts.reader.network_namespace.value())?;
    let inode = name.strip_prefix("net:[")?.strip_suffix(']')?.parse().ok()?;
    Some(Network { inode, cookie: 0 })
}
