//! The older packet filters (`iptables-legacy(8)`), as the kernel keeps them.
//!
//! Read by the host's facts. Only tables that are there already are asked for: asking for another makes it.

use crate::errno::checked;
use crate::filter::{Action, Chain, HOOKS, Rule, Test, decided, extension, target};
use crate::netlink::attribute::{u32_at, u64_at};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `IPT_SO_GET_INFO` and `IPT_SO_GET_ENTRIES`; those of IPv6 have the same numbers.
const GET_INFO: i32 = 64;
const GET_ENTRIES: i32 = 65;
/// Bytes of a table's name, of `struct ipt_getinfo`, and of what stands before the entries.
const NAME_BYTES: usize = 32;
const INFO_BYTES: usize = 84;
const ENTRIES_AT: usize = 40;
/// A table of 100,000 rules has about 16 MB; larger ones are refused.
const TABLE_BYTES_MAX: usize = 16 << 20;
/// Bytes before the content of a match or a target.
const PART_HEAD_BYTES: usize = 32;

/// Which addresses a table is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    Four,
    /// IPv6.
    Six,
}

/// Where things stand in an entry.
struct Layout {
    family: &'static str,
    /// The addresses with their masks.
    addresses: std::ops::Range<usize>,
    devices: std::ops::Range<usize>,
    protocol: usize,
    /// Offsets of target and next entry, the counters, and the first match.
    offsets: usize,
    counters: usize,
    matches: usize,
}

impl Version {
    fn layout(self) -> Layout {
        match self {
            Version::Four => Layout {
                family: "ip",
                addresses: 0..16,
                devices: 16..80,
                protocol: 80,
                offsets: 88,
                counters: 96,
                matches: 112,
            },
            Version::Six => Layout {
                family: "ip6",
                addresses: 0..64,
                devices: 64..128,
                protocol: 128,
                offsets: 140,
                counters: 152,
                matches: 168,
            },
        }
    }

    fn family(self) -> i32 {
        match self {
            Version::Four => libc::AF_INET,
            Version::Six => libc::AF_INET6,
        }
    }

    fn level(self) -> i32 {
        match self {
            Version::Four => libc::IPPROTO_IP,
            Version::Six => libc::IPPROTO_IPV6,
        }
    }
}

/// The chains of a table that is there already.
pub fn table(version: Version, name: &str) -> io::Result<Vec<Chain>> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: socket takes three integers.
    let fd = checked(unsafe { libc::socket(version.family(), kind, libc::IPPROTO_RAW) })?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut info = vec![0; INFO_BYTES];
    put_name(&mut info, name)?;
    get(&fd, version, GET_INFO, &mut info)?;
    let size = u32_at(&info, 80) as usize;
    if size > TABLE_BYTES_MAX {
        return Err(io::Error::from_raw_os_error(libc::EFBIG));
    }
    let mut entries = vec![0; ENTRIES_AT + size];
    put_name(&mut entries, name)?;
    entries[NAME_BYTES..NAME_BYTES + 4].copy_from_slice(&info[80..84]);
    get(&fd, version, GET_ENTRIES, &mut entries)?;
    Ok(parse(version, name, &info, &entries[ENTRIES_AT..]))
}

fn put_name(out: &mut [u8], name: &str) -> io::Result<()> {
    if name.len() >= NAME_BYTES {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    out[..name.len()].copy_from_slice(name.as_bytes());
    Ok(())
}

fn get(fd: &OwnedFd, version: Version, option: i32, out: &mut [u8]) -> io::Result<()> {
    let mut len = libc::socklen_t::try_from(out.len()).unwrap_or(libc::socklen_t::MAX);
    let (fd, at) = (fd.as_raw_fd(), out.as_mut_ptr().cast());
    // SAFETY: `out` is writable for `len` bytes through the call, and `len` for the kernel's answer.
    checked(unsafe { libc::getsockopt(fd, version.level(), option, at, &raw mut len) })?;
    Ok(())
}

/// The entries of a table by chain. `info` says where the hooks begin; an entry with the target `ERROR` begins a chain of the
/// user's, and its text is the chain's name.
pub fn parse(version: Version, table: &str, info: &[u8], entries: &[u8]) -> Vec<Chain> {
    let layout = version.layout();
    let mask = u32_at(info, 32);
    let hooks = (0..HOOKS.len()).filter(|hook| mask & 1 << hook != 0);
    let begins: BTreeMap<usize, usize> =
        hooks.map(|hook| (u32_at(info, 36 + 4 * hook) as usize, hook)).collect();
    let mut chains: Vec<Chain> = Vec::new();
    let mut places: BTreeMap<usize, String> = BTreeMap::new();
    for (at, entry) in walk(&layout, entries) {
        let part = target_of(&layout, entry);
        if let Some(hook) = begins.get(&at) {
            chains.push(chain(&layout, table, HOOKS[*hook].to_uppercase(), Some(HOOKS[*hook])));
        } else if part_name(part) == "ERROR" {
            let name = text(part.get(PART_HEAD_BYTES..).unwrap_or_default());
            places.insert(at + entry.len(), name.clone());
            // The last entry of a table is one too, and names nothing.
            chains.push(chain(&layout, table, name, None));
            continue;
        }
        if let Some(chain) = chains.last_mut() {
            chain.rules.push(rule(&layout, entry));
        }
    }
    chains.retain(|chain| chain.hook.is_some() || !chain.rules.is_empty());
    chains.iter_mut().for_each(|chain| finish(chain, &places));
    chains
}

/// The last rule of a chain is its policy, or the way back; jumps get their names.
fn finish(chain: &mut Chain, places: &BTreeMap<usize, String>) {
    if let Some(last) = chain.rules.pop().filter(|_| chain.hook.is_some()) {
        chain.policy = Some(if last.action == Action::Drop { "drop" } else { "accept" });
    }
    for rule in &mut chain.rules {
        if let Action::Jump(place) = &rule.action {
            let name = place.parse().ok().and_then(|place: usize| places.get(&place));
            rule.action = Action::Jump(name.cloned().unwrap_or_default());
        }
    }
}

fn chain(layout: &Layout, table: &str, name: String, hook: Option<&'static str>) -> Chain {
    let kind = if table == "nat" { "nat" } else { "filter" };
    Chain {
        family: layout.family.into(),
        table: table.into(),
        name,
        hook,
        kind: kind.into(),
        ..Chain::default()
    }
}

/// Every entry with its place.
fn walk<'e>(layout: &Layout, entries: &'e [u8]) -> impl Iterator<Item = (usize, &'e [u8])> {
    let (offsets, least) = (layout.offsets, layout.matches);
    let mut at = 0;
    std::iter::from_fn(move || {
        let next = usize::from(u16_at(entries, at + offsets + 2));
        let entry = entries.get(at..at + next).filter(|_| next >= least)?;
        at += next;
        Some((at - next, entry))
    })
}

fn rule(layout: &Layout, entry: &[u8]) -> Rule {
    let mut tests = Vec::new();
    let is_set = |range: &std::ops::Range<usize>| entry[range.clone()].iter().any(|byte| *byte != 0);
    if is_set(&layout.addresses) {
        tests.push(Test::Address);
    }
    if is_set(&layout.devices) {
        tests.push(Test::Device);
    }
    if u16_at(entry, layout.protocol) != 0 {
        tests.push(Test::Protocol);
    }
    let end = usize::from(u16_at(entry, layout.offsets));
    let mut parts = entry.get(layout.matches..end).unwrap_or_default();
    while let Some((part, rest)) = first_part(parts) {
        tests.push(extension(&part_name(part), &part[PART_HEAD_BYTES..]));
        parts = rest;
    }
    let packets = Some(u64_at(entry, layout.counters));
    Rule { tests, action: action(target_of(layout, entry)), packets, ..Rule::default() }
}

fn first_part(parts: &[u8]) -> Option<(&[u8], &[u8])> {
    let len = usize::from(u16_at(parts, 0));
    (len >= PART_HEAD_BYTES && len <= parts.len()).then(|| parts.split_at(len))
}

fn target_of<'e>(layout: &Layout, entry: &'e [u8]) -> &'e [u8] {
    entry.get(usize::from(u16_at(entry, layout.offsets))..).unwrap_or_default()
}

/// The standard target has no name: its number is a verdict, or the place of the chain to go to.
fn action(part: &[u8]) -> Action {
    const RETURN: i64 = -5;
    let name = part_name(part);
    if !name.is_empty() {
        return target(&name);
    }
    match i64::from(u32_at(part, PART_HEAD_BYTES) as i32) {
        RETURN => Action::Return,
        verdict if verdict < 0 => decided(-verdict - 1).unwrap_or_default(),
        place => Action::Jump(place.to_string()),
    }
}

fn part_name(part: &[u8]) -> String {
    text(part.get(2..PART_HEAD_BYTES - 1).unwrap_or_default())
}

fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |two| u16::from_le_bytes([two[0], two[1]]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(name: &str, content: &[u8]) -> Vec<u8> {
        let mut part = vec![0; PART_HEAD_BYTES];
        part[2..2 + name.len()].copy_from_slice(name.as_bytes());
        part.extend(content);
        part.resize(part.len().next_multiple_of(8), 0);
        let len = part.len() as u16;
        part[..2].copy_from_slice(&len.to_le_bytes());
        part
    }

    fn entry(source: u8, matches: &[u8], target: &[u8]) -> Vec<u8> {
        let mut entry = vec![0; 112];
        entry[0] = source;
        entry.extend(matches);
        let (target_at, next) = (entry.len() as u16, (entry.len() + target.len()) as u16);
        entry.extend(target);
        entry[88..90].copy_from_slice(&target_at.to_le_bytes());
        entry[90..92].copy_from_slice(&next.to_le_bytes());
        entry
    }

    fn verdict(number: i32) -> Vec<u8> {
        part("", &number.to_le_bytes())
    }

    /// INPUT with a rule that drops an address, one that jumps, and the policy; then the chain `mine`.
    fn table() -> (Vec<u8>, Vec<u8>) {
        let drop = entry(10, &[], &verdict(-1));
        let (length, error) = (drop.len(), entry(0, &[], &part("ERROR", b"mine\0")));
        let place = 3 * length + error.len();
        let input = [drop, entry(0, &part("state", &[2, 0, 0, 0]), &verdict(place as i32))].concat();
        let jump_len = input.len() - length;
        let place = length + jump_len + length + error.len();
        let mut input = input;
        let at = length + jump_len - 8;
        input[at..at + 4].copy_from_slice(&(place as u32).to_le_bytes());
        let policy = entry(0, &[], &verdict(-2));
        let mine = [entry(0, &[], &verdict(-2)), entry(0, &[], &verdict(-5))].concat();
        let last = entry(0, &[], &part("ERROR", b"ERROR\0"));
        let mut info = vec![0; INFO_BYTES];
        info[32] = 1 << 1;
        (info, [input, policy, error, mine, last].concat())
    }

    #[test]
    fn chains_rules_and_policies_are_read_from_a_tables_bytes() {
        let (info, entries) = table();
        let chains = parse(Version::Four, "filter", &info, &entries);
        let names: Vec<&str> = chains.iter().map(|chain| chain.name.as_str()).collect();
        assert_eq!(names, ["INPUT", "mine"]);
        assert_eq!((chains[0].policy, chains[0].hook), (Some("accept"), Some("input")));
        assert_eq!(chains[0].rules[0].action, Action::Drop);
        assert_eq!(chains[0].rules[0].tests, [Test::Address]);
        assert_eq!(chains[0].rules[1].tests, [Test::Established]);
        assert_eq!(chains[0].rules[1].action, Action::Jump("mine".into()));
        assert_eq!((chains[1].rules.len(), chains[1].rules[0].action.clone()), (1, Action::Accept));
    }

    #[test]
    fn a_table_cut_anywhere_is_no_panic() {
        let (info, entries) = table();
        for end in 0..entries.len() {
            let _ = parse(Version::Four, "filter", &info, &entries[..end]);
            let _ = parse(Version::Six, "filter", &info, &entries[..end]);
        }
    }
}
