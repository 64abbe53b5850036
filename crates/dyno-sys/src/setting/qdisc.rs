//! The root qdisc of a device (`tc qdisc`), by rtnetlink.
//!
//! It reads as `default KIND` where the kernel chose it, else as `KIND handle 8001 options HEX`: what the kernel dumps is what it
//! takes. A tree of classes, or a kind whose options were not seen to come back, cannot be put back exactly and is refused.

use super::kind::{Kind, not_exact};
use crate::netlink::attribute::{find, put, u32_at};
use crate::netlink::socket::{Netlink, Protocol, Until};
use std::fmt::Write;
use std::io;

const NEW: u16 = 36;
const DELETE: u16 = 37;
const GET: u16 = 38;
/// Bytes of `struct tcmsg`.
const HEAD_BYTES: usize = 20;
const CREATE: u16 = 0x400;
const REPLACE: u16 = 0x100;
/// The parent of a root (`TC_H_ROOT`), and of what looks at packets that come in (`TC_H_INGRESS`).
const ROOT: u32 = 0xffff_ffff;
const INGRESS: u32 = 0xffff_fff1;
/// Qdiscs of a host at most.
const QDISCS_MAX: usize = 100_000;
/// Kinds without classes or children of other kinds, whose options the kernel takes as it tells them.
const EXACT: [&str; 11] = [
    "noqueue",
    "pfifo_fast",
    "pfifo",
    "bfifo",
    "pfifo_head_drop",
    "fq",
    "fq_codel",
    "codel",
    "tbf",
    "sfq",
    "mq",
];
/// The kernel's own choice.
const DEFAULT: &str = "default";

pub(super) struct Root(pub(super) u32);

/// A qdisc as it was told.
struct Seen {
    handle: u32,
    parent: u32,
    kind: String,
    options: Vec<u8>,
}

impl Root {
    fn all(&self) -> io::Result<Vec<Seen>> {
        let mut head = [0; HEAD_BYTES];
        head[4..8].copy_from_slice(&self.0.to_le_bytes());
        let mut seen = Vec::new();
        Netlink::open(Protocol::Route)?.ask((GET, &head), Until::Dumped, QDISCS_MAX, &mut |message| {
            let Some(rest) = message.get(HEAD_BYTES..) else { return };
            if u32_at(message, 4) != self.0 {
                return;
            }
            seen.push(Seen {
                handle: u32_at(message, 8),
                parent: u32_at(message, 12),
                kind: find(rest, 1).map(|kind| kind.text()).unwrap_or_default(),
                options: find(rest, 2).map(|options| options.bytes.to_vec()).unwrap_or_default(),
            });
        })?;
        Ok(seen)
    }

    fn message(&self, handle: u32) -> Vec<u8> {
        let mut head = vec![0; HEAD_BYTES];
        head[4..8].copy_from_slice(&self.0.to_le_bytes());
        head[8..12].copy_from_slice(&handle.to_le_bytes());
        head[12..16].copy_from_slice(&ROOT.to_le_bytes());
        head
    }
}

impl Kind for Root {
    fn get(&self) -> io::Result<String> {
        let all = self.all()?;
        let root = all.iter().find(|one| one.parent == ROOT);
        let root =
            root.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the device has no root qdisc"))?;
        let is_child = |one: &&Seen| one.parent != ROOT && one.parent != INGRESS;
        let chosen = all.iter().filter(is_child).find(|one| root.kind != "mq" || one.handle != 0);
        if let Some(child) = chosen {
            return Err(not_exact(format!(
                "{} has a {} under it, which would be lost",
                root.kind, child.kind
            )));
        }
        if !EXACT.contains(&root.kind.as_str()) {
            return Err(not_exact(format!("a {} cannot be put back exactly", root.kind)));
        }
        Ok(root.text())
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let wanted = Wanted::parse(value).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let mut netlink = Netlink::open(Protocol::Route)?;
        let Some(kind) = wanted.kind.filter(|_| !wanted.is_default) else {
            return netlink.tell(DELETE, 0, &self.message(0));
        };
        if !EXACT.contains(&kind) {
            return Err(not_exact(format!("a {kind} could not be put back exactly later")));
        }
        let mut message = self.message(wanted.handle.unwrap_or(0));
        put(&mut message, 1, &[kind.as_bytes(), b"\0"].concat());
        if let Some(options) = wanted.options.filter(|options| !options.is_empty() && kind != "pfifo_fast") {
            put(&mut message, 2, &options);
        }
        netlink.tell(NEW, CREATE | REPLACE, &message)
    }

    fn same(&self, reads: &str, wanted: &str) -> bool {
        let (Some(reads), Some(wanted)) = (Wanted::parse(reads), Wanted::parse(wanted)) else { return false };
        (!wanted.is_default || reads.is_default)
            && wanted.kind.is_none_or(|kind| reads.kind == Some(kind))
            && wanted.handle.is_none_or(|handle| reads.handle == Some(handle))
            && wanted.options.is_none_or(|options| reads.options.is_some_and(|reads| reads == options))
    }
}

impl Seen {
    fn text(&self) -> String {
        if self.handle == 0 {
            return format!("{DEFAULT} {}", self.kind);
        }
        let mut text = format!("{} handle {:x} options ", self.kind, self.handle >> 16);
        self.options.iter().for_each(|byte| {
            let _ = write!(text, "{byte:02x}");
        });
        text.trim_end().to_owned()
    }
}

/// A value, taken apart; what it does not name does not matter.
struct Wanted<'v> {
    is_default: bool,
    kind: Option<&'v str>,
    handle: Option<u32>,
    options: Option<Vec<u8>>,
}

impl<'v> Wanted<'v> {
    fn parse(value: &'v str) -> Option<Wanted<'v>> {
        let mut words = value.split_whitespace().peekable();
        let is_default = words.next_if_eq(&DEFAULT).is_some();
        let mut wanted = Wanted { is_default, kind: words.next(), handle: None, options: None };
        while let Some(word) = words.next() {
            match word {
                "handle" => {
                    wanted.handle = Some(u32::from_str_radix(words.next()?, 16).ok()?.checked_shl(16)?);
                }
                "options" => wanted.options = Some(bytes(words.next().unwrap_or_default())?),
                _ => return None,
            }
        }
        (is_default || wanted.kind.is_some()).then_some(wanted)
    }
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pair = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    hex.len().is_multiple_of(2).then(|| hex.as_bytes().chunks(2).map(pair).collect()).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use crate::knob::KnobError;
    use crate::setting::Setting;
    use crate::setting::tests::{device, in_network_with_pair, run};

    /// The queueing of a device as `tc` shows it, without the one figure in it that is a count of packets.
    fn settings(device: &str) -> String {
        let shown = run(&format!("tc qdisc show dev {device}"));
        let mut words: Vec<&str> = shown.split(' ').collect();
        if let Some(count) = words.iter().position(|word| *word == "direct_packets_stat") {
            words.drain(count..count + 2);
        }
        words.join(" ")
    }

    /// Planted fault: options left out of the message; then the limiter comes back as none, or is refused.
    #[test]
    fn a_limiter_that_somebody_set_is_taken_off_and_comes_back_to_the_byte() {
        in_network_with_pair(|| {
            let root = Setting::Qdisc(device("vA"));
            assert_eq!(root.read().unwrap(), b"default noqueue");
            for set in [
                "tc qdisc replace dev vA root handle 77: tbf rate 40gbit burst 10mb limit 100mb",
                "tc qdisc replace dev vA root handle 78: pfifo limit 123",
                "tc qdisc replace dev vA root pfifo_fast",
                "tc qdisc replace dev vA root mq",
            ] {
                run(set);
                let (shown, before) = (settings("vA"), root.read().unwrap());
                root.write(b"default").unwrap();
                assert!(root.holds(b"default noqueue").unwrap() && !root.holds(&before).unwrap(), "{set}");
                root.put_back(&before).unwrap();
                assert_eq!(settings("vA"), shown, "{set}");
                root.write(b"pfifo").unwrap();
                root.put_back(&before).unwrap();
                assert_eq!(settings("vA"), shown, "{set}");
            }
        });
    }

    #[test]
    fn a_tree_is_refused_before_anything_is_changed() {
        in_network_with_pair(|| {
            let root = Setting::Qdisc(device("vA"));
            for set in
                ["tc qdisc replace dev vA root handle 1: htb", "tc qdisc replace dev vA root handle 2: mq"]
            {
                run(set);
                if set.ends_with("mq") {
                    run("tc qdisc replace dev vA parent 2:1 pfifo limit 7");
                }
                let shown = settings("vA");
                assert!(matches!(root.read(), Err(KnobError::NotExact { .. })), "{set}");
                assert!(matches!(root.write(b"default"), Err(KnobError::NotExact { .. })), "{set}");
                assert_eq!(settings("vA"), shown);
            }
            run("tc qdisc del dev vA root");
            assert!(matches!(root.write(b"htb"), Err(KnobError::NotExact { .. })));
            assert!(root.write(b"no_such_kind").is_err() && root.holds(b"default").unwrap());
        });
    }

    /// Planted fault: `missing` compares names alone; then the namesake loses its qdisc.
    #[test]
    fn a_namesake_with_another_number_is_not_touched() {
        in_network_with_pair(|| {
            let root = Setting::Qdisc(device("vA"));
            root.write(b"pfifo").unwrap();
            run("ip link del vA");
            assert!(matches!(root.put_back(b"default noqueue"), Err(KnobError::Gone { .. })));
            run("ip link add vA type veth peer name vB");
            run("tc qdisc replace dev vA root pfifo limit 9");
            let shown = settings("vA");
            assert!(matches!(root.put_back(b"default noqueue"), Err(KnobError::Gone { .. })));
            assert_eq!(settings("vA"), shown);
        });
    }
}
