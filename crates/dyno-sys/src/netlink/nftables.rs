//! The rules of nftables (`nft(8)`): chains in their hooks, their rules in order, and the sets.
//!
//! Read by the host's facts, in this thread's network namespace. Asking loads the module `nf_tables` where it is one: callers
//! see first whether it is there.

use super::attribute::{attributes, find, put};
use super::expression;
use super::socket::{Netlink, Protocol, Read, Until};
use crate::filter::{Chain, HOOKS};
use std::collections::BTreeMap;
use std::io;

/// `NFNL_SUBSYS_NFTABLES`, and what can be asked of it.
const SUBSYSTEM: u16 = 10 << 8;
const GETTABLE: u16 = 1;
/// `NFT_TABLE_F_DORMANT`
const DORMANT: u64 = 1;
const GETCHAIN: u16 = 4;
const GETRULE: u16 = 7;
const GETSET: u16 = 10;
/// Bytes of `struct nfgenmsg`; all families.
const HEAD: [u8; 4] = [0; 4];
/// Chains and sets at most: larger rule sets are told as cut.
const CHAINS_MAX: usize = 10_000;

/// A set or a map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Set {
    /// Its table.
    pub table: String,
    /// Its name; those without one of their own are called `__set0`.
    pub name: String,
}

/// All that nftables has in this namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// The chains with their rules.
    pub chains: Vec<Chain>,
    /// The sets.
    pub sets: Vec<Set>,
    /// Whether more was there than was asked for.
    pub read: Read,
}

/// Reads it, `rules_max` rules at most.
pub fn ruleset(rules_max: usize) -> io::Result<Ruleset> {
    let (chains, one) = dump(GETCHAIN, CHAINS_MAX, |message| {
        parse_chain(message)
            .map(|chain| ((chain.family.clone(), chain.table.clone(), chain.name.clone()), chain))
    })?;
    let order: Vec<_> = chains.iter().map(|(key, _)| key.clone()).collect();
    let mut chains: BTreeMap<_, Chain> = chains.into_iter().collect();
    let (rules, two) = dump(GETRULE, rules_max, |message| {
        let rest = message.get(HEAD.len()..)?;
        let key = (family(message).to_owned(), find(rest, 1)?.text(), find(rest, 2)?.text());
        let mut rule = expression::rule(find(rest, 4).map(|list| list.bytes).unwrap_or_default());
        rule.handle = find(rest, 3).map_or(0, |handle| handle.be());
        Some((key, rule))
    })?;
    for (key, rule) in rules {
        if let Some(chain) = chains.get_mut(&key) {
            chain.rules.push(rule);
        }
    }
    let (sets, three) = dump(GETSET, CHAINS_MAX, parse_set)?;
    let read = if [one, two, three].contains(&Read::Cut) { Read::Cut } else { Read::Whole };
    let chains = order.iter().filter_map(|key| chains.remove(key)).collect();
    Ok(Ruleset { chains, sets, read })
}

/// Whether a table sleeps (`flags dormant`): its chains are in no hook then.
pub fn is_dormant(family: &str, table: &str) -> io::Result<bool> {
    let number = (0..=10).find(|number| self::family(&[*number]) == family);
    let mut request = vec![number.ok_or(io::ErrorKind::InvalidInput)?, 0, 0, 0];
    put(&mut request, 1, &[table.as_bytes(), b"\0"].concat());
    let mut flags = 0;
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    netlink.ask((SUBSYSTEM | GETTABLE, &request), Until::First, 1, &mut |message| {
        let found = find(message.get(HEAD.len()..).unwrap_or_default(), 2);
        flags = found.map_or(0, |flags| flags.be());
    })?;
    Ok(flags & DORMANT != 0)
}

fn dump<T>(what: u16, max: usize, parse: impl Fn(&[u8]) -> Option<T>) -> io::Result<(Vec<T>, Read)> {
    let mut all = Vec::new();
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    let request = (SUBSYSTEM | what, &HEAD[..]);
    let read = netlink.ask(request, Until::Dumped, max, &mut |message| all.extend(parse(message)))?;
    Ok((all, read))
}

fn family(message: &[u8]) -> &'static str {
    match message.first() {
        Some(1) => "inet",
        Some(2) => "ip",
        Some(3) => "arp",
        Some(5) => "netdev",
        Some(7) => "bridge",
        Some(10) => "ip6",
        _ => "other",
    }
}

/// A message `NFT_MSG_NEWCHAIN`.
pub fn parse_chain(message: &[u8]) -> Option<Chain> {
    let rest = message.get(HEAD.len()..)?;
    let family = family(message);
    let mut chain = Chain { family: family.into(), ..Chain::default() };
    for attribute in attributes(rest) {
        match attribute.kind {
            1 => chain.table = attribute.text(),
            3 => chain.name = attribute.text(),
            4 => {
                let hook = find(attribute.bytes, 1).map(|hook| hook.be() as usize);
                chain.hook = hook.map(|hook| name_of(family, hook));
                chain.priority = find(attribute.bytes, 2).map_or(0, |priority| priority.be() as u32 as i32);
            }
            5 => chain.policy = Some(if attribute.be() == 0 { "drop" } else { "accept" }),
            7 => chain.kind = attribute.text(),
            _ => {}
        }
    }
    Some(chain)
}

fn name_of(family: &str, hook: usize) -> &'static str {
    match (family, hook) {
        ("netdev", 0) | ("inet", 5) => "ingress",
        ("netdev", _) => "egress",
        ("arp", 0) => "input",
        ("arp", _) => "output",
        (_, hook) => HOOKS.get(hook).copied().unwrap_or("other"),
    }
}

fn parse_set(message: &[u8]) -> Option<Set> {
    let rest = message.get(HEAD.len()..)?;
    Some(Set { table: find(rest, 1)?.text(), name: find(rest, 2)?.text() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::netlink::attribute::put;

    #[test]
    fn a_chain_is_read_with_its_hook_and_policy() {
        let mut message = vec![1, 0, 0, 0];
        put(&mut message, 1, b"filter\0");
        put(&mut message, 3, b"input\0");
        let mut hook = Vec::new();
        put(&mut hook, 1, &1u32.to_be_bytes());
        put(&mut hook, 2, &(-300i32).to_be_bytes());
        put(&mut message, 4, &hook);
        put(&mut message, 5, &0u32.to_be_bytes());
        put(&mut message, 7, b"filter\0");
        let chain = parse_chain(&message).unwrap();
        assert_eq!((chain.family.as_str(), chain.hook, chain.policy), ("inet", Some("input"), Some("drop")));
        assert_eq!((chain.priority, chain.kind.as_str()), (-300, "filter"));
        assert!((0..4).all(|end| parse_chain(&message[..end]).is_none()));
        assert_eq!((name_of("netdev", 0), name_of("ip", 9)), ("ingress", "other"));
    }
}
