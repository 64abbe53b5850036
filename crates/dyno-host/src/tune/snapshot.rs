//! A snapshot of everything that tune could touch, raw. It only reads.
//!
//! The verb writes it and compares two; tests hold it against another to see that a host is as it was.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

use dyno_record::change::{Device, What};
use dyno_record::tune::{Reading, SNAPSHOT_SCHEMA, Snapshot};
use dyno_sys::netlink::{ethtool, route};
use dyno_sys::{clock, knob};

use crate::host::{Host, Kernel};
use crate::journal::boot_id;
use crate::place;

/// Files at most; a host of 4,096 CPUs has about 60,000.
const FILES_MAX: usize = 200_000;
const DEVICES_MAX: usize = 10_000;
/// Folders under /proc/sys are this deep, and devices' queues.
const DEPTH_MAX: usize = 12;
/// Attributes of a device that count, or tell its state and not its setting.
const COUNTED: [&str; 8] = [
    "statistics",
    "byte_queue_limits",
    "carrier",
    "carrier_changes",
    "carrier_down_count",
    "carrier_up_count",
    "operstate",
    "uevent",
];
/// Files beside settings of memory that count what the kernel has done: who collects large pages moves them by himself.
const MEMORY: &str = "/sys/kernel/mm";
const MEMORY_COUNTED: [&str; 12] = [
    "full_scans",
    "general_profit",
    "ksm_zero_pages",
    "pages_collapsed",
    "pages_scanned",
    "pages_shared",
    "pages_sharing",
    "pages_skipped",
    "pages_unshared",
    "pages_volatile",
    "stable_node_chains",
    "stable_node_dups",
];
/// Single files, and what lists several.
const FILES: [&str; 6] = [
    "/sys/kernel/mm/transparent_hugepage",
    "/sys/kernel/mm/ksm",
    "/sys/module/haltpoll/parameters",
    "/sys/devices/system/clocksource/clocksource0",
    "/sys/devices/system/cpu/smt",
    "/proc/cmdline",
];
const NFT: [&str; 3] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"];

/// Takes it, of this thread's namespace.
#[must_use]
pub fn snapshot() -> Snapshot {
    let mut settings = BTreeMap::new();
    walk(Path::new("/proc/sys"), 0, &mut settings);
    FILES.iter().for_each(|path| walk(Path::new(path), 0, &mut settings));
    interrupts(&mut settings);
    governors(&mut settings);
    devices(&mut settings);
    settings.insert("nftables".into(), ruleset());
    Snapshot {
        schema: SNAPSHOT_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        boot: boot_id(),
        taken_unix_s: clock::real_coarse_s(),
        settings,
    }
}

fn walk(path: &Path, depth: usize, settings: &mut BTreeMap<String, Reading>) {
    let Ok(found) = fs::symlink_metadata(path) else { return };
    if depth > DEPTH_MAX || settings.len() >= FILES_MAX {
        return;
    }
    if found.is_dir() {
        let names = fs::read_dir(path).into_iter().flatten().flatten();
        return names.for_each(|entry| walk(&entry.path(), depth + 1, settings));
    }
    // What nobody may read is no setting that could be put back.
    if found.is_file() && found.mode() & 0o444 != 0 && !counts(path) {
        file(path, settings);
    }
}

/// Whether a file tells what has happened, and no setting.
fn counts(path: &Path) -> bool {
    let is_counted = || path.file_name().is_some_and(|name| MEMORY_COUNTED.iter().any(|one| name == *one));
    let is_statistic = || path.parent().is_some_and(|parent| parent.ends_with("stats"));
    path.starts_with(MEMORY) && (is_counted() || is_statistic())
}

fn file(path: &Path, settings: &mut BTreeMap<String, Reading>) {
    let reading = match knob::read(path) {
        Ok(raw) => Reading::Value(String::from_utf8_lossy(raw.trim_ascii()).into_owned()),
        Err(error) => Reading::Unread(super::plan::chain(&error)),
    };
    settings.insert(path.display().to_string(), reading);
}

fn interrupts(settings: &mut BTreeMap<String, Reading>) {
    for entry in fs::read_dir("/proc/irq").into_iter().flatten().flatten() {
        let path = entry.path();
        let path = if path.is_dir() { path.join("smp_affinity") } else { path };
        if path.exists() {
            file(&path, settings);
        }
    }
}

fn governors(settings: &mut BTreeMap<String, Reading>) {
    for entry in fs::read_dir("/sys/devices/system/cpu").into_iter().flatten().flatten() {
        let path = entry.path().join("cpufreq/scaling_governor");
        if path.exists() {
            file(&path, settings);
        }
    }
}

fn devices(settings: &mut BTreeMap<String, Reading>) {
    let features = ethtool::settings(DEVICES_MAX).unwrap_or_default();
    for link in route::links(DEVICES_MAX).map(|(links, _)| links).unwrap_or_default() {
        let name = &link.name;
        attributes(name, settings);
        let (index, network) = (link.index, place::network().unwrap_or_default());
        let device = Device { network, index, name: name.clone() };
        let reading = match Kernel.read(&What::Qdisc { device }) {
            Ok(value) => Reading::Value(String::from_utf8_lossy(&value).into_owned()),
            Err(error) => Reading::Unread(super::plan::chain(&error)),
        };
        settings.insert(format!("qdisc {name}"), reading);
        if let Some(told) = features.get(&index) {
            settings.insert(format!("ethtool {name}"), Reading::Value(format!("{told:?}")));
        }
        settings.insert(
            format!("link {name}"),
            Reading::Value(format!("index {index} mtu {} up {}", link.mtu, link.is_up)),
        );
    }
}

/// The files of a device that are settings, its queues' too.
fn attributes(name: &str, settings: &mut BTreeMap<String, Reading>) {
    let folder = Path::new("/sys/class/net").join(name);
    for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
        let is_counted = COUNTED.iter().any(|counted| entry.file_name() == *counted);
        if is_counted || entry.file_type().is_ok_and(|kind| kind.is_symlink()) {
            continue;
        }
        match entry.file_name() == "queues" {
            true => queues(&entry.path(), settings),
            false if entry.path().is_file() => file(&entry.path(), settings),
            false => {}
        }
    }
}

fn queues(folder: &Path, settings: &mut BTreeMap<String, Reading>) {
    for queue in fs::read_dir(folder).into_iter().flatten().flatten() {
        for name in ["rps_cpus", "rps_flow_cnt", "xps_cpus", "xps_rxqs", "tx_maxrate"] {
            let path = queue.path().join(name);
            if path.exists() {
                file(&path, settings);
            }
        }
    }
}

/// The rules as nft lists them, without counters: by its path and with nothing of this process's environment.
fn ruleset() -> Reading {
    let Some(tool) = NFT.iter().find(|path| Path::new(path).exists()) else {
        return Reading::Unread("nft is not installed".into());
    };
    let listed = Command::new(tool)
        .args(["-s", "list", "ruleset"])
        .env_clear()
        .env("LC_ALL", "C")
        .current_dir("/")
        .output();
    match listed {
        Ok(output) if output.status.success() => {
            Reading::Value(String::from_utf8_lossy(&output.stdout).into_owned())
        }
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            Reading::Unread(said.lines().next().unwrap_or("nft failed").to_owned())
        }
        Err(error) => Reading::Unread(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::tune::difference;

    /// Planted fault: whatever stands beside a setting is one; then a kernel that looks for large pages changes settings.
    #[test]
    fn what_counts_beside_settings_of_memory_is_none() {
        let counted = |path: &str| counts(Path::new(path));
        assert!(counted("/sys/kernel/mm/transparent_hugepage/khugepaged/full_scans"));
        assert!(counted("/sys/kernel/mm/transparent_hugepage/hugepages-64kB/stats/swpout"));
        assert!(!counted("/sys/kernel/mm/transparent_hugepage/khugepaged/pages_to_scan"));
        assert!(
            !counted("/sys/kernel/mm/transparent_hugepage/enabled") && !counted("/proc/sys/a/full_scans")
        );
    }

    #[test]
    fn two_snapshots_at_once_differ_by_what_moves_by_itself_alone() {
        let seen = dyno_sys::namespace::in_new_network(|| {
            let (before, after) = (snapshot(), snapshot());
            assert!(before.settings.len() > 500 && before.settings.contains_key("qdisc lo"));
            let difference = difference(&before, &after);
            // Other tests and programs of this machine run beside: the network here is nobody else's.
            let of_network = |name: &&String| !name.starts_with('/') || name.starts_with("/proc/sys/net");
            assert_eq!(difference.changed.keys().filter(of_network).count(), 0, "{:?}", difference.changed);
        });
        if let Err(error) = seen {
            assert!(!dyno_sys::namespace::may_make_network(), "{error}");
        }
    }
}
