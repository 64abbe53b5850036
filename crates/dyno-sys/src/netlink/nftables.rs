//! The rules of nftables (`nft(8)`): chains in their hooks, their rules in order, and the sets; and rules of ours among them.
//!
//! Read by the host's facts, in this thread's network namespace; [`crate::setting`] takes rules of ours out. Asking loads the module `nf_tables` where it is one: callers
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
const DELRULE: u16 = 8;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
/// `NLM_F_ACK`
const ACK: u16 = 4;
const GETSET: u16 = 10;
const GETSETELEM: u16 = 13;
/// Bytes of `struct nfgenmsg`; all families.
const HEAD: [u8; 4] = [0; 4];
/// Chains and sets at most: larger rule sets are told as cut.
const CHAINS_MAX: usize = 10_000;
/// Messages of elements of a set of states: connections have five states, and one message holds them all.
const ELEMENTS_MAX: usize = 16;

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
        let holds = |set: &str| holds_established(*message.first()?, &key.1, set).ok();
        let mut rule = expression::rule(expressions(rest), &holds);
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

/// Whether a set of states holds that of standing connections.
fn holds_established(family: u8, table: &str, set: &str) -> io::Result<bool> {
    let mut request = of_table(family, table);
    put(&mut request, 2, &[set.as_bytes(), b"\0"].concat());
    let mut holds = false;
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    let each = &mut |message: &[u8]| {
        let elements = find(message.get(HEAD.len()..).unwrap_or_default(), 3);
        holds |= elements.is_some_and(|elements| expression::has_established(elements.bytes));
    };
    netlink.ask((SUBSYSTEM | GETSETELEM, &request), Until::Dumped, ELEMENTS_MAX, each)?;
    Ok(holds)
}

/// Whether a table sleeps (`flags dormant`): its chains are in no hook then.
pub fn is_dormant(family: &str, table: &str) -> io::Result<bool> {
    let request = of_table(number(family)?, table);
    let mut flags = 0;
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    netlink.ask((SUBSYSTEM | GETTABLE, &request), Until::First, 1, &mut |message| {
        let found = find(message.get(HEAD.len()..).unwrap_or_default(), 2);
        flags = found.map_or(0, |flags| flags.be());
    })?;
    Ok(flags & DORMANT != 0)
}

/// The comment of a rule of ours that stands first in somebody's chain.
pub const FIRST_MARK: &str = "dyno: standing connections first";

/// Rules of ours in a chain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ours {
    /// Their numbers.
    pub handles: Vec<u64>,
    /// Somebody's rules before the first of them.
    pub before: usize,
    /// Packets that they let through.
    pub packets: u64,
}

/// The rules of ours in a chain, known by their comment; `ENOENT` where there is no such chain.
pub fn ours_in(family: &str, table: &str, chain: &str) -> io::Result<Option<Ours>> {
    let asked = (number(family)?, table, chain);
    see_chain(asked)?;
    let (mut ours, mut at) = (Ours::default(), 0);
    rules_of((family, table), &of_chain(asked), &mut |rule| {
        if find(rule, 2).is_none_or(|name| name.text() != chain) {
            return;
        }
        let comment = find(rule, 7).map(|data| data.bytes).unwrap_or_default();
        if comment.windows(FIRST_MARK.len()).any(|part| part == FIRST_MARK.as_bytes()) {
            ours.packets += expression::rule(expressions(rule), &|_| None).packets.unwrap_or(0);
            if ours.handles.is_empty() {
                ours.before = at;
            }
            ours.handles.extend(find(rule, 3).map(|handle| handle.be()));
        }
        at += 1;
    })?;
    Ok((!ours.handles.is_empty()).then_some(ours))
}

/// Whether a rule of the table has an extension of the older tables: then iptables keeps the table, and refuses all of it
/// once it holds a rule in nft's own form ("table is incompatible, use 'nft' tool").
pub(crate) fn has_extensions(family: &str, table: &str) -> io::Result<bool> {
    let request = of_table(number(family)?, table);
    let mut has = false;
    rules_of((family, table), &request, &mut |rule| has |= expression::has_extension(expressions(rule)))?;
    Ok(has)
}

/// `ENOENT` where there is no such chain. It is asked for alone: of a list that was cut nobody knows what is missing.
fn see_chain((number, table, chain): (u8, &str, &str)) -> io::Result<()> {
    let mut request = of_table(number, table);
    put(&mut request, 3, &[chain.as_bytes(), b"\0"].concat());
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    netlink.ask((SUBSYSTEM | GETCHAIN, &request), Until::First, 1, &mut |_| {}).map(|_| ())
}

/// Hands the rules over that a request asks for, without their heads, and those of this table alone: kernels that do not know
/// the filter of a dump send all rules.
fn rules_of((family, table): (&str, &str), request: &[u8], each: &mut dyn FnMut(&[u8])) -> io::Result<()> {
    let mut netlink = Netlink::open(Protocol::Netfilter)?;
    let read =
        netlink.ask((SUBSYSTEM | GETRULE, request), Until::Dumped, RULES_READ_MAX, &mut |message| {
            let Some(rule) = message.get(HEAD.len()..) else { return };
            if self::family(message) == family && find(rule, 1).is_some_and(|name| name.text() == table) {
                each(rule);
            }
        })?;
    match read {
        Read::Whole => Ok(()),
        Read::Cut => Err(io::Error::other(format!("there are more than {RULES_READ_MAX} rules"))),
    }
}

fn expressions(rule: &[u8]) -> &[u8] {
    find(rule, 4).map(|list| list.bytes).unwrap_or_default()
}

/// Rules that are looked through for ours, and for iptables'.
const RULES_READ_MAX: usize = 1_000_000;

/// Deletes rules of a chain by their numbers, all or none.
pub(crate) fn delete_rules(family: &str, table: &str, chain: &str, handles: &[u64]) -> io::Result<()> {
    let asked = (number(family)?, table, chain);
    let bodies: Vec<Vec<u8>> = handles
        .iter()
        .map(|handle| {
            let mut body = of_chain(asked);
            put(&mut body, 3, &handle.to_be_bytes());
            body
        })
        .collect();
    // The batch's head names the subsystem, in the network's order.
    let batch = [0, 0, 0, (SUBSYSTEM >> 8) as u8];
    let last = bodies.len().saturating_sub(1);
    let deletes = bodies.iter().enumerate().map(|(at, body)| {
        let acknowledged = if at == last { ACK } else { 0 };
        (SUBSYSTEM | DELRULE, acknowledged, body.as_slice())
    });
    let all: Vec<_> = [(BATCH_BEGIN, 0, &batch[..])]
        .into_iter()
        .chain(deletes)
        .chain([(BATCH_END, 0, &batch[..])])
        .collect();
    Netlink::open(Protocol::Netfilter)?.tell_all(&all)
}

fn of_chain((number, table, chain): (u8, &str, &str)) -> Vec<u8> {
    let mut body = of_table(number, table);
    put(&mut body, 2, &[chain.as_bytes(), b"\0"].concat());
    body
}

fn of_table(number: u8, table: &str) -> Vec<u8> {
    let mut body = vec![number, 0, 0, 0];
    put(&mut body, 1, &[table.as_bytes(), b"\0"].concat());
    body
}

/// The kernel's number of a family.
fn number(family: &str) -> io::Result<u8> {
    let found = (0..=10).find(|number| self::family(&[*number]) == family);
    Ok(found.ok_or(io::ErrorKind::InvalidInput)?)
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

    /// What nft makes of a text, in a namespace that is made for it; `None` where that may not be done, or without nft.
    fn compiled(text: &str) -> Option<Ruleset> {
        let made = crate::namespace::in_new_network(|| {
            let nft = |word: &str| std::process::Command::new("nft").arg(word).output();
            let has_nftables = nft("list ruleset").ok()?.status.success();
            has_nftables.then(|| {
                let ended = nft(text).unwrap();
                assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
                ruleset(1_000).unwrap()
            })
        });
        made.ok().flatten()
    }

    /// Planted fault: sets are not asked for their elements; then what firewalld writes lets nobody through.
    #[test]
    fn states_in_braces_are_a_set_and_read_like_those_with_commas() {
        use crate::filter::Test;
        let rules = "ct state established,related accept; ct state { established, related } accept; \
                     ct state != { new, invalid } accept; ct state { new, related } accept; \
                     ct state != { established } accept;";
        let Some(seen) = compiled(&format!("table inet t {{ chain c {{ {rules} }}; }}")) else { return };
        let tests: Vec<_> = seen.chains[0].rules.iter().map(|rule| rule.tests[0].clone()).collect();
        let standing = || Test::Established;
        assert_eq!(tests, [standing(), standing(), standing(), Test::Connection, Test::Connection]);
    }

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
