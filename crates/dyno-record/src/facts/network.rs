//! Facts about the network: devices and what stands between them and sockets.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::fact::Fact;

/// The network of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Network {
    /// The devices.
    pub devices: Fact<Vec<Device>>,
    /// Sockets that tap packets.
    pub taps: Fact<Vec<Tap>>,
    /// TCP listeners.
    pub listeners: Fact<Vec<Listener>>,
    /// Counters since the namespace was made: `ListenOverflows`, `TCPTimeouts` … those that an audit reads.
    pub counters: Fact<BTreeMap<String, u64>>,
    /// What the same counters counted while the facts were read.
    pub lately: Fact<BTreeMap<String, u64>>,
    /// The backlogs before the protocols, over all CPUs.
    pub softnet: Fact<Softnet>,
    /// TCP sockets in use, closed ones that wait, and pages of their buffers.
    pub sockets: Fact<BTreeMap<String, u64>>,
}

/// A device.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Device {
    /// Its number in the namespace.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// `veth`, `bridge` …; empty for hardware and `lo`.
    pub kind: String,
    /// Its driver, for hardware.
    pub driver: Option<String>,
    /// Whether it is set up.
    pub is_up: bool,
    /// The number of the bridge, bond or switch that it is a part of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub master: Option<u32>,
    /// Somebody set it by name to take every packet of the wire (`ip link set promisc on`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_promiscuous: bool,
    /// Largest packet.
    pub mtu: u32,
    /// How many asked it for every packet of the wire.
    pub promiscuity: u32,
    /// Receiving and sending queues that are in use.
    pub rx_queues: u32,
    /// See `rx_queues`.
    pub tx_queues: u32,
    /// An XDP program is attached.
    pub has_xdp: bool,
    /// Packets received, dropped on receipt, lost for want of room, dropped on sending.
    pub packets: u64,
    /// See `packets`.
    pub rx_dropped: u64,
    /// See `packets`.
    pub rx_missed: u64,
    /// Packets lost for want of room while the facts were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub rx_missed_lately: u64,
    /// See `packets`.
    pub tx_dropped: u64,
    /// Its queueing disciplines, the root first.
    pub qdiscs: Fact<Vec<Qdisc>>,
    /// Kinds of filters that packets pass on the way in and out.
    pub filters: Fact<Vec<String>>,
    /// Names of the offloads that are on.
    pub features: Fact<Vec<String>>,
    /// Names of those that can be switched.
    pub settable_features: Fact<Vec<String>>,
    /// Names of those that were asked for: what is among them and not on, the device cannot do now.
    pub wanted_features: Fact<Vec<String>>,
    /// Queues of the hardware.
    pub channels: Fact<Within>,
    /// Which queues those are, as ethtool says it: `combined`, or `rx` where those that send are counted apart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub channel_kind: String,
    /// Descriptors of a receiving queue.
    pub rx_ring: Fact<Within>,
    /// Descriptors of a sending queue.
    pub tx_ring: Fact<Within>,
    /// µs after a packet until it interrupts.
    pub rx_usecs: Fact<u32>,
    /// The same on sending.
    pub tx_usecs: Fact<u32>,
    /// The driver adapts the first of these.
    pub adaptive_rx: Fact<bool>,
    /// Queues that the table for spreading packets names.
    pub rss_queues: Fact<u32>,
    /// CPUs that a receiving queue hands packets to, by queue.
    pub rps: Fact<Vec<QueueSetting>>,
    /// Entries of the table of flows, by receiving queue.
    pub rfs: Fact<Vec<QueueSetting>>,
    /// CPUs of a sending queue, by queue.
    pub xps: Fact<Vec<QueueSetting>>,
    /// Whether a thread polls it.
    pub threaded: Fact<u64>,
    /// ns until packets that wait to be joined go on.
    pub gro_flush_ns: Fact<u64>,
    /// Polls without packets before interrupts are taken again.
    pub defer_hard_irqs: Fact<u64>,
    /// Interrupts that are its own.
    pub interrupts: Vec<u32>,
    /// NAPI instances.
    #[serde(deserialize_with = "told_or_listed")]
    pub napi_ids: Fact<Vec<u32>>,
    /// The memory node of its hardware; -1 is none.
    pub node: Fact<i64>,
}

/// A list as a fact; a plain one is how it was written before.
fn told_or_listed<'de, D: Deserializer<'de>>(from: D) -> Result<Fact<Vec<u32>>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Listed(Vec<u32>),
        Told(Fact<Vec<u32>>),
    }
    Ok(match Written::deserialize(from)? {
        Written::Listed(ids) => Fact::Value(ids),
        Written::Told(fact) => fact,
    })
}

/// A setting of a queue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueueSetting {
    /// `rx-0`.
    pub queue: String,
    /// As it reads.
    pub value: String,
}

/// Something below a maximum.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Within {
    /// What it is.
    pub is: u32,
    /// What it may be.
    pub max: u32,
}

/// A queueing discipline.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Qdisc {
    /// `fq_codel`, `tbf` …
    pub kind: String,
    /// As `8001:`.
    pub handle: String,
    /// Whether it is the root.
    pub is_root: bool,
    /// Packets dropped and delayed.
    pub drops: u32,
    /// See `drops`.
    pub overlimits: u32,
}

/// A socket that taps packets.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Tap {
    /// What it asked for; 3 is every packet.
    pub protocol: u32,
    /// Its device by name; empty for all.
    pub device: String,
    /// Its inode.
    pub inode: u64,
    /// Whose it is.
    pub pid: Option<i32>,
    /// And what that is called.
    pub owner: String,
    /// Bytes of its ring.
    pub ring_bytes: Option<u64>,
    /// Instructions of its filter, where one is seen.
    pub filter: Option<u32>,
    /// Devices that it asked for every packet of the wire.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub promiscuous: Vec<String>,
}

/// A TCP listener.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Listener {
    /// As `0.0.0.0:80`.
    pub local: String,
    /// Connections that wait, and how many may.
    pub waiting: u32,
    /// See `waiting`.
    pub backlog: u32,
    /// Its inode.
    pub inode: u64,
    /// Its processes, as far as they are seen.
    pub pids: Vec<i32>,
    /// And what the first one is called.
    pub owner: String,
}

/// The backlogs before the protocols, since boot and while the facts were read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Softnet {
    /// Packets.
    pub packets: u64,
    /// Packets dropped because a backlog was full.
    pub dropped: u64,
    /// Times that a turn ended with work left.
    pub squeezed: u64,
    /// Packets that another CPU handed over (RPS).
    pub handed_over: u64,
    /// The same counts while the facts were read: dropped, squeezed, handed over.
    pub lately: (u64, u64, u64),
}

/// Packet filters of one namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Netfilter {
    /// Chains of nftables.
    pub nftables: Fact<Vec<Chain>>,
    /// Its sets.
    pub sets: Fact<Vec<String>>,
    /// Chains of the older tables.
    pub legacy: Fact<Vec<Chain>>,
    /// Connection tracking.
    pub conntrack: Fact<Conntrack>,
}

/// A chain.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chain {
    /// `inet`, `ip`, `ip6` …
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name.
    pub name: String,
    /// Where packets enter it.
    pub hook: Option<String>,
    /// Its place in the hook.
    pub priority: i32,
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// What becomes of a packet that no rule decides.
    pub policy: Option<String>,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A rule: what it asks and what it does, in words of few kinds.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Rule {
    /// `established`, `connection`, `set`, `port 80`, `address`, `protocol`, `device`, or the kernel's name of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<String>,
    /// `accept`, `drop`, `jump NAME`, `return`, `notrack`, `nat`, the kernel's name of it; empty for nothing.
    pub action: String,
    /// It does something besides: logs, marks, remembers an address.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub besides: bool,
    /// Packets that it decided, where it counts them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<u64>,
    /// Its number in the table.
    pub handle: u64,
}

/// Connection tracking.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Conntrack {
    /// Connections followed.
    pub count: u64,
    /// How many can be.
    pub max: u64,
    /// Buckets of its table.
    pub buckets: u64,
    /// Connections that could not be entered, and those thrown out early, since boot.
    pub insert_failed: u64,
    /// See `insert_failed`.
    pub dropped: u64,
    /// Connections thrown out early, for want of room, while the facts were read.
    #[serde(skip_serializing_if = "is_zero")]
    pub early_drops_lately: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
