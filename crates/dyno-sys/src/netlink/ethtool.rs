//! What network hardware is set to (ethtool's netlink family) and its NAPI instances (the family netdev).
//!
//! Read by the host's facts. Devices without such settings are not in the answers.

use super::attribute::{Attribute, attributes, find, put};
use super::socket::{Netlink, Protocol, Read, Until};
use std::collections::BTreeMap;
use std::io;

const CTRL: u16 = 16;
const CTRL_GETFAMILY: u8 = 3;
/// Bytes of `struct genlmsghdr`.
const HEAD_BYTES: usize = 4;
const FEATURES_GET: u8 = 11;
const RINGS_GET: u8 = 15;
const CHANNELS_GET: u8 = 17;
const COALESCE_GET: u8 = 19;
const RSS_GET: u8 = 38;
const NAPI_GET: u8 = 11;

/// Something that is set to a value below a maximum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    /// What it is.
    pub is: u32,
    /// What it may be.
    pub max: u32,
}

/// Queues that can be set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Channels {
    /// How many.
    pub within: Within,
    /// Which, as ethtool says it: `combined`, or `rx` where those that send are counted apart.
    pub kind: &'static str,
}

/// When the device interrupts; `None` is not settable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// Microseconds after a packet came in.
    pub rx_usecs: Option<u32>,
    /// Microseconds after one went out.
    pub tx_usecs: Option<u32>,
    /// The driver adapts the first.
    pub adaptive_rx: Option<bool>,
    /// And the second.
    pub adaptive_tx: Option<bool>,
}

/// All that is known of a device, by its number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// Names of the offloads that are on.
    pub features: Option<Vec<String>>,
    /// Names of those that can be switched.
    pub settable: Option<Vec<String>>,
    /// Names of those that were asked for: one that is not on the device cannot do now.
    pub wanted: Option<Vec<String>>,
    /// Descriptors of a receiving queue.
    pub rx_ring: Option<Within>,
    /// Descriptors of a sending queue.
    pub tx_ring: Option<Within>,
    /// Queues.
    pub channels: Option<Channels>,
    /// When it interrupts.
    pub coalescing: Option<Coalescing>,
}

/// A NAPI instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Napi {
    /// Its device.
    pub device: u32,
    /// What sockets know it by.
    pub id: u32,
    /// Its interrupt.
    pub irq: Option<u32>,
    /// The thread that polls it.
    pub thread: Option<u32>,
    /// Polls without packets before interrupts are taken again.
    pub defer_hard_irqs: u32,
    /// How long interrupts stay away while an application polls, ns.
    pub irq_suspend_ns: u64,
}

/// The settings of every device, by its number; `max` devices at most.
pub fn settings(max: usize) -> io::Result<BTreeMap<u32, Settings>> {
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "ethtool")?;
    let mut all: BTreeMap<u32, Settings> = BTreeMap::new();
    for command in [FEATURES_GET, RINGS_GET, CHANNELS_GET, COALESCE_GET] {
        let mut each = |message: &[u8]| {
            let rest = message.get(HEAD_BYTES..).unwrap_or_default();
            if let Some(device) = device_of(rest) {
                apply(all.entry(device).or_default(), command, rest);
            }
        };
        // A device that does not answer one question may answer the next.
        if netlink.ask((family, &[command, 1, 0, 0]), Until::Dumped, max, &mut each)? == Read::Cut {
            // While a dump is not read to its end the kernel begins no other on the socket (EBUSY).
            netlink = Netlink::open(Protocol::Generic)?;
        }
    }
    Ok(all)
}

/// The NAPI instances, `max` at most.
pub fn napis(max: usize) -> io::Result<Vec<Napi>> {
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "netdev")?;
    let mut all = Vec::new();
    let mut each = |message: &[u8]| all.push(parse_napi(message.get(HEAD_BYTES..).unwrap_or_default()));
    netlink.ask((family, &[NAPI_GET, 1, 0, 0]), Until::Dumped, max, &mut each)?;
    Ok(all)
}

/// How many different queues a device's table for spreading packets names.
pub fn rss_queues(device: u32) -> io::Result<usize> {
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "ethtool")?;
    let mut queues = 0;
    netlink.ask((family, &request(device, RSS_GET, 0)), Until::First, 1, &mut |message| {
        let table = find(message.get(HEAD_BYTES..).unwrap_or_default(), 4);
        let entries = table.map(|table| table.bytes).unwrap_or_default().chunks_exact(4);
        queues = entries.collect::<std::collections::BTreeSet<_>>().len();
    })?;
    Ok(queues)
}

/// The answer of one device to one question of the family `ethtool`, without its head.
pub(crate) fn answer(device: u32, command: u8) -> io::Result<Vec<u8>> {
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "ethtool")?;
    let mut answer = Vec::new();
    netlink.ask((family, &request(device, command, 0)), Until::First, 1, &mut |message| {
        answer = message.get(HEAD_BYTES..).unwrap_or_default().to_vec();
    })?;
    Ok(answer)
}

/// Has one device change what these attributes say.
pub(crate) fn tell(device: u32, command: u8, attributes: &[u8]) -> io::Result<()> {
    /// `ETHTOOL_FLAG_OMIT_REPLY`: the acknowledgement is enough.
    const OMIT_REPLY: u32 = 2;
    let mut netlink = Netlink::open(Protocol::Generic)?;
    let family = family(&mut netlink, "ethtool")?;
    let body = [request(device, command, OMIT_REPLY), attributes.to_vec()].concat();
    netlink.tell(family, 0, &body)
}

fn request(device: u32, command: u8, flags: u32) -> Vec<u8> {
    let (mut body, mut header) = (vec![command, 1, 0, 0], Vec::new());
    put(&mut header, 1, &device.to_le_bytes());
    if flags != 0 {
        put(&mut header, 3, &flags.to_le_bytes());
    }
    put(&mut body, 1 | 0x8000, &header);
    body
}

/// The number of a family. Only families of ours are asked for, so that no module is looked for.
pub(super) fn family(netlink: &mut Netlink, name: &str) -> io::Result<u16> {
    let mut body = vec![CTRL_GETFAMILY, 1, 0, 0];
    put(&mut body, 2, &[name.as_bytes(), b"\0"].concat());
    let mut id = None;
    netlink.ask((CTRL, &body), Until::First, 1, &mut |message| {
        id = find(message.get(HEAD_BYTES..).unwrap_or_default(), 1).map(|id| id.number() as u16);
    })?;
    id.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOENT))
}

fn device_of(message: &[u8]) -> Option<u32> {
    Some(find(find(message, 1)?.bytes, 1)?.u32())
}

fn apply(settings: &mut Settings, command: u8, message: &[u8]) {
    match command {
        FEATURES_GET => {
            settings.features = find(message, 4).map(|active| parse_bitset(&active));
            settings.settable = find(message, 2).map(|settable| parse_bitset(&settable));
            settings.wanted = find(message, 3).map(|wanted| parse_bitset(&wanted));
        }
        RINGS_GET => {
            settings.rx_ring = within(message, 6, 2);
            settings.tx_ring = within(message, 9, 5);
        }
        CHANNELS_GET => settings.channels = parse_channels(message),
        _ => settings.coalescing = Some(parse_coalescing(message)),
    }
}

fn within(message: &[u8], is: u16, max: u16) -> Option<Within> {
    let number = |kind: u16| find(message, kind).map(|attribute| attribute.u32());
    Some(Within { is: number(is)?, max: number(max)? }).filter(|within| within.max > 0)
}

/// Devices whose queues come in pairs count them apart from the others; where a device can have both kinds, those that it has.
fn parse_channels(message: &[u8]) -> Option<Channels> {
    let combined = within(message, 9, 5).map(|within| Channels { within, kind: "combined" });
    let receiving = within(message, 6, 2).map(|within| Channels { within, kind: "rx" });
    match (combined, receiving) {
        (Some(combined), Some(receiving)) if combined.within.is == 0 => Some(receiving),
        (combined, receiving) => combined.or(receiving),
    }
}

/// The names of what is in a set. One with a mask lists all that the mask has, and marks those that are in it
/// (`ETHTOOL_A_BITSET_BIT_VALUE`); one without (`ETHTOOL_A_BITSET_NOMASK`) lists only what is in it.
pub(crate) fn parse_bitset(set: &Attribute<'_>) -> Vec<String> {
    let bits = find(set.bytes, 3).map(|bits| bits.bytes).unwrap_or_default();
    let has_mask = find(set.bytes, 1).is_none();
    let is_in = |bit: &Attribute<'_>| !has_mask || find(bit.bytes, 3).is_some();
    attributes(bits).filter(is_in).filter_map(|bit| find(bit.bytes, 2).map(|name| name.text())).collect()
}

fn parse_coalescing(message: &[u8]) -> Coalescing {
    let number = |kind: u16| find(message, kind).map(|attribute| attribute.u32());
    let is_on = |kind: u16| number(kind).map(|value| value != 0);
    Coalescing { rx_usecs: number(2), tx_usecs: number(6), adaptive_rx: is_on(11), adaptive_tx: is_on(12) }
}

/// An answer to `napi-get`.
pub fn parse_napi(message: &[u8]) -> Napi {
    let number = |kind: u16| find(message, kind).map(|attribute| attribute.number());
    let word = |kind: u16| number(kind).map(|value| value as u32);
    Napi {
        device: word(1).unwrap_or(0),
        id: word(2).unwrap_or(0),
        irq: word(3),
        thread: word(4),
        defer_hard_irqs: word(5).unwrap_or(0),
        irq_suspend_ns: number(7).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn words(pairs: &[(u16, u32)]) -> Vec<u8> {
        let mut out = Vec::new();
        pairs.iter().for_each(|(kind, value)| put(&mut out, *kind, &value.to_le_bytes()));
        out
    }

    #[test]
    fn rings_queues_and_coalescing_are_read() {
        let mut settings = Settings::default();
        apply(&mut settings, RINGS_GET, &words(&[(2, 4_096), (5, 512), (6, 256), (9, 512)]));
        apply(&mut settings, CHANNELS_GET, &words(&[(5, 8), (9, 2)]));
        apply(&mut settings, COALESCE_GET, &words(&[(2, 3), (11, 0)]));
        assert_eq!(settings.rx_ring, Some(Within { is: 256, max: 4_096 }));
        let channels = settings.channels.unwrap();
        assert_eq!((channels.within, channels.kind), (Within { is: 2, max: 8 }, "combined"));
        let coalescing = settings.coalescing.unwrap();
        assert_eq!((coalescing.rx_usecs, coalescing.adaptive_rx), (Some(3), Some(false)));
        assert_eq!(coalescing.tx_usecs, None);
        assert_eq!(within(&words(&[(5, 0), (9, 0)]), 9, 5), None, "a maximum of 0 is no setting");
    }

    /// Planted fault: the word is always `combined`; then the command for a card with `rx` and `tx` alone is refused.
    #[test]
    fn queues_that_receive_alone_are_called_by_their_name() {
        let kind = |message: &[(u16, u32)]| parse_channels(&words(message)).map(|one| one.kind);
        assert_eq!(kind(&[(2, 16), (3, 16), (6, 4), (7, 4)]), Some("rx"));
        assert_eq!(
            kind(&[(2, 16), (5, 16), (6, 4), (9, 0)]),
            Some("rx"),
            "it could have pairs, and has none"
        );
        assert_eq!(kind(&[(2, 16), (5, 16), (6, 0), (9, 4)]), Some("combined"));
        assert_eq!(kind(&[(2, 0), (5, 0)]), None);
    }

    /// Planted fault: the mark of each name is not looked at; then a device can switch whatever has a name.
    #[test]
    fn offloads_are_named_that_are_in_the_set_and_not_those_of_its_mask() {
        let of = |has_mask: bool| {
            let (mut names, mut set) = (Vec::new(), Vec::new());
            for (name, is_in) in [("tx-tcp-segmentation\0", true), ("rx-gro\0", false)] {
                let mut bit = Vec::new();
                put(&mut bit, 2, name.as_bytes());
                if is_in && has_mask {
                    put(&mut bit, 3, &[]);
                }
                put(&mut names, 1, &bit);
            }
            if !has_mask {
                put(&mut set, 1, &[]);
            }
            put(&mut set, 3, &names);
            parse_bitset(&Attribute { kind: 4, bytes: &set })
        };
        assert_eq!(of(false), ["tx-tcp-segmentation", "rx-gro"]);
        assert_eq!(of(true), ["tx-tcp-segmentation"]);
    }

    /// Planted fault: the socket is kept; then the second question is refused while the first is not read to its end.
    #[test]
    fn more_devices_than_are_asked_for_end_no_question() {
        let asked = crate::namespace::in_new_network(|| {
            // What forty devices tell of their offloads fills more than one piece of an answer.
            let pairs =
                "for n in $(seq 20); do echo link add a$n type veth peer name b$n; done | ip -batch -";
            let made = std::process::Command::new("sh").args(["-c", pairs]).output();
            made.is_ok_and(|ended| ended.status.success()).then(|| settings(1))
        });
        // Where no namespace may be made, or nothing makes devices in it, nothing is shown.
        if let Ok(Some(Err(error))) = asked {
            assert_eq!(error.raw_os_error(), Some(libc::ENOENT), "{error}");
        }
    }

    #[test]
    fn this_kernel_tells_its_offloads_or_has_no_such_family() {
        match settings(1_000) {
            Ok(all) => assert!(all.values().any(|one| one.features.is_some()), "lo has offloads"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::ENOENT)),
        }
        let _ = napis(1_000);
    }
}
