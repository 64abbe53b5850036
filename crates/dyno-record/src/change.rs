//! A change of the host: which setting, where it is wanted, and why. Plain data.
//!
//! Plans and journals hold them; `dyno_host::change::HostChange` carries them out, and `dyno_host::place` says where this
//! process's devices, networks and threads are. A new kind of setting is a variant of [`What`] here, and its applier in
//! `dyno_sys::setting`.

use serde::{Deserialize, Serialize};

/// A network namespace: its number is given to another one when it has ended, its cookie is not (0: not known).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Network {
    /// As in `net:[4026531840]`.
    pub inode: u64,
    /// The kernel's number of it since the boot.
    #[serde(default)]
    pub cookie: u64,
}

/// A network device: a namesake with another number is another one.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Device {
    /// Its namespace.
    pub network: Network,
    /// Its number there.
    pub index: u32,
    /// Its name there.
    pub name: String,
}

/// A thread: one that started at another time is another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Task {
    /// Its process.
    pub pid: i32,
    /// Its number.
    pub tid: i32,
    /// When it started, in clock ticks since the boot.
    pub started: u64,
}

/// A setting of the host. Its value is a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A file under `/proc/sys` or `/sys`, as this process sees it: a sysctl, an attribute of the machine.
    #[serde(rename = "knob")]
    File(String),
    /// A file under `/proc/sys/net` of a network namespace.
    NetworkFile {
        /// The namespace.
        network: Network,
        /// The file.
        path: String,
    },
    /// A file under `/sys/class/net/NAME` of a device, as `queues/rx-0/rps_cpus`.
    DeviceFile {
        /// The device.
        device: Device,
        /// The file, below the device's folder.
        file: String,
    },
    /// An offload of a device by the kernel's name: `on` or `off`.
    Feature {
        /// The device.
        device: Device,
        /// As `tx-tcp-segmentation`.
        name: String,
    },
    /// Queues, rings and interrupts of a device: a number.
    Hardware {
        /// The device.
        device: Device,
        /// As ethtool says it: `channels combined`, `ring rx`, `coalesce rx-usecs`.
        field: String,
    },
    /// The root qdisc of a device: `default` (the kernel's choice) or a kind, as `pfifo`.
    Qdisc {
        /// The device.
        device: Device,
    },
    /// A table of nftables of our own: chains and rules as nft takes them inside of a table. It was none before.
    Table {
        /// The namespace.
        network: Network,
        /// `inet`, `ip` or `ip6`.
        family: String,
        /// Its name, which begins with `dyno_`.
        name: String,
    },
    /// A rule of ours at the head of somebody's chain of nftables, which lets standing connections through. It was none before.
    FirstRule {
        /// The namespace.
        network: Network,
        /// `inet`, `ip` or `ip6`.
        family: String,
        /// The table.
        table: String,
        /// The chain.
        chain: String,
    },
    /// The CPUs that may take an interrupt: `0-1,5`.
    Interrupt {
        /// Its number.
        irq: u32,
        /// Who asked for it; another one's interrupt of the number is another one.
        name: String,
    },
    /// Where a thread may run: `0-1,5`.
    Affinity(Task),
    /// A thread's class and place in line: `other nice 0`, `fifo priority 10`.
    Scheduler(Task),
    /// A file of our own, which says so: its contents. It was none before.
    OwnFile {
        /// Where.
        path: String,
    },
    /// A folder of our own: `folder`. It was none before.
    OwnFolder {
        /// Where.
        path: String,
    },
}

impl What {
    /// Whether it is on disk: everything else is gone with the boot.
    #[must_use]
    pub fn outlives_boot(&self) -> bool {
        matches!(self, Self::OwnFile { .. } | Self::OwnFolder { .. })
    }

    /// The device that it is of.
    #[must_use]
    pub fn device(&self) -> Option<&Device> {
        match self {
            Self::DeviceFile { device, .. }
            | Self::Feature { device, .. }
            | Self::Hardware { device, .. }
            | Self::Qdisc { device } => Some(device),
            _ => None,
        }
    }
}

impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::File(path)
            | Self::NetworkFile { path, .. }
            | Self::OwnFile { path }
            | Self::OwnFolder { path } => f.write_str(path),
            Self::DeviceFile { device, file } => write!(f, "/sys/class/net/{}/{file}", device.name),
            Self::Feature { device, name } => write!(f, "offload {name} of {}", device.name),
            Self::Hardware { device, field } => write!(f, "{field} of {}", device.name),
            Self::Qdisc { device } => write!(f, "root qdisc of {}", device.name),
            Self::Table { family, name, .. } => write!(f, "nftables table {family} {name}"),
            Self::FirstRule { family, table, chain, .. } => {
                write!(f, "first rule of nftables chain {family} {table} {chain}")
            }
            Self::Interrupt { irq, name } => write!(f, "CPUs of interrupt {irq} ({name})"),
            Self::Affinity(task) => write!(f, "CPUs of thread {} of {}", task.tid, task.pid),
            Self::Scheduler(task) => write!(f, "scheduling of thread {} of {}", task.tid, task.pid),
        }
    }
}

/// What [`What::FirstRule`] is set to where it is there.
pub const FIRST_RULE: &str = "ct state established counter accept";

/// What is to be changed, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangeSpec {
    /// The setting.
    #[serde(flatten)]
    pub what: What,
    /// Where it is to stand.
    pub wanted: String,
    /// Why, in words.
    pub why: String,
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_kind_survives_json_and_a_file_is_written_as_ever() {
        let device =
            Device { network: Network { inode: 9, cookie: 2 }, index: 3, name: "<img src=x>".into() };
        let network = device.network;
        for what in [
            What::File("/proc/sys/a".into()),
            What::NetworkFile { network, path: "/proc/sys/net/core/somaxconn".into() },
            What::DeviceFile { device: device.clone(), file: "queues/rx-0/rps_cpus".into() },
            What::Feature { device: device.clone(), name: "rx-gro".into() },
            What::Hardware { device: device.clone(), field: "ring rx".into() },
            What::Qdisc { device },
            What::Table { network, family: "inet".into(), name: "dyno_x".into() },
            What::FirstRule { network, family: "ip".into(), table: "<b>".into(), chain: "c".into() },
            What::Interrupt { irq: 41, name: "eth0-rx-0".into() },
            What::Affinity(Task { pid: 1, tid: 2, started: 3 }),
            What::Scheduler(Task::default()),
            What::OwnFile { path: "/etc/x".into() },
            What::OwnFolder { path: "/etc/y".into() },
        ] {
            let spec = ChangeSpec { what, wanted: "1".into(), why: "a test".into() };
            let line = serde_json::to_string(&spec).unwrap();
            assert_eq!(serde_json::from_str::<ChangeSpec>(&line).unwrap(), spec, "{line}");
        }
        let spec = ChangeSpec { what: What::File("/a".into()), wanted: "1".into(), why: "w".into() };
        assert_eq!(serde_json::to_string(&spec).unwrap(), r#"{"knob":"/a","wanted":"1","why":"w"}"#);
    }
}
