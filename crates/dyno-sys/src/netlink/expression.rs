//! The expressions of an nftables rule as what it asks and what it does.
//!
//! `nftables` calls it. A rule is a small program over registers; what is read off it is only what the two enums name.

use super::attribute::{Attribute, attributes, find};
use crate::filter::{Action, Rule, Test, decided, extension, target};

/// Keys of `ct` and `meta`, and states (include/uapi/linux/netfilter/nf_tables.h).
const CT_STATE: u64 = 0;
const CT_ESTABLISHED: u32 = 2;
const META_DEVICES: [u64; 8] = [4, 5, 6, 7, 8, 9, 10, 11];
const META_PROTOCOLS: [u64; 3] = [1, 15, 16];
const CMP_EQUAL: u64 = 0;
const CMP_NOT_EQUAL: u64 = 1;
/// `NFT_LOOKUP_F_INV`: what is not in the set meets it.
const LOOKUP_INVERTED: u64 = 1;
/// The register of verdicts: what a map puts there decides about the packet.
const VERDICT_REGISTER: u64 = 0;
/// Where the payload of a test lies.
const NETWORK: u64 = 1;
const TRANSPORT: u64 = 2;
/// Where addresses lie in both versions' heads: from 12 in IPv4, from 8 in IPv6.
const ADDRESS_AT: u64 = 8;

/// What was loaded last, until it is compared.
#[derive(Clone, Copy, PartialEq)]
enum Loaded {
    Nothing,
    State,
    /// The state with its mask.
    Masked(u32),
    Connection,
    Port,
    Address,
    Protocol,
    Device,
    Other,
}

/// Tells of a set by its name whether it holds the state of standing connections; `None` where it cannot be read.
pub(super) type Holds<'s> = &'s dyn Fn(&str) -> Option<bool>;

/// A rule of its list of expressions. A set of states is asked what it holds.
pub(super) fn rule(expressions: &[u8], holds: Holds<'_>) -> Rule {
    let mut rule = Rule::default();
    let mut loaded = Loaded::Nothing;
    for element in attributes(expressions) {
        let name = find(element.bytes, 1).map(|name| name.text()).unwrap_or_default();
        let data = find(element.bytes, 2).map(|data| data.bytes).unwrap_or_default();
        step(&mut rule, &mut loaded, (&name, data), holds);
    }
    rule
}

/// Whether it has a match or a target of the older tables.
pub(super) fn has_extension(expressions: &[u8]) -> bool {
    let name = |element: Attribute<'_>| find(element.bytes, 1).map(|name| name.text()).unwrap_or_default();
    attributes(expressions).any(|element| ["match", "target"].contains(&name(element).as_str()))
}

/// Whether the elements of a set of states, as a message has them, hold the state of standing connections.
pub(super) fn has_established(elements: &[u8]) -> bool {
    attributes(elements).any(|element| {
        let value = find(element.bytes, 1).and_then(|key| find(key.bytes, 1));
        value.is_some_and(|value| value.u32() == CT_ESTABLISHED)
    })
}

fn step(rule: &mut Rule, loaded: &mut Loaded, (name, data): (&str, &[u8]), holds: Holds<'_>) {
    match name {
        "ct" | "meta" | "payload" | "exthdr" => {
            *loaded = load(name, data);
            rule.besides |= writes(name, data);
        }
        "dynset" | "objref" => rule.besides = true,
        "bitwise" => *loaded = masked(*loaded, data),
        "cmp" => rule.tests.push(compared(*loaded, data)),
        "lookup" => look_up(rule, loaded, data, holds),
        "immediate" => verdict(rule, data),
        "counter" => rule.packets = find(data, 2).map(|packets| packets.be()),
        "match" => rule.tests.push(extension(&text(data, 1), bytes(data, 3))),
        "target" => rule.action = target(&text(data, 1)),
        "notrack" => rule.action = Action::NoTrack,
        "reject" => rule.action = Action::Drop,
        "nat" | "masq" | "redir" | "tproxy" => rule.action = Action::Nat,
        "log" | "queue" | "dup" | "fwd" | "flow_offload" | "synproxy" => {
            rule.action = Action::Other(name.into());
            rule.besides = true;
        }
        "range" => rule.tests.push(test(*loaded)),
        "rt" | "hash" | "byteorder" | "xfrm" | "tunnel" | "inner" => *loaded = Loaded::Other,
        "limit" | "connlimit" | "quota" | "fib" | "osf" | "socket" | "numgen" => {
            rule.tests.push(Test::Other(name.into()));
        }
        _ => {}
    }
}

/// Something of the packet or its connection is set: there is a source register, and none that is loaded. An option of a head
/// is taken away with neither.
fn writes(name: &str, data: &[u8]) -> bool {
    let source = match name {
        "meta" => 3,
        "ct" => 4,
        _ => 5,
    };
    find(data, 1).is_none() && (name == "exthdr" || find(data, source).is_some())
}

fn load(name: &str, data: &[u8]) -> Loaded {
    // Setting something (a mark) has a source register and loads nothing.
    let key = find(data, 2).map(|key| key.be());
    match (name, key) {
        ("ct", Some(CT_STATE)) => Loaded::State,
        ("ct", _) => Loaded::Connection,
        ("meta", Some(key)) if META_DEVICES.contains(&key) => Loaded::Device,
        ("meta", Some(key)) if META_PROTOCOLS.contains(&key) => Loaded::Protocol,
        ("payload", Some(TRANSPORT)) if number(data, 3) < 4 => Loaded::Port,
        ("payload", Some(NETWORK)) if number(data, 3) >= ADDRESS_AT && number(data, 4) >= 4 => {
            Loaded::Address
        }
        ("payload", Some(NETWORK)) => Loaded::Protocol,
        _ => Loaded::Other,
    }
}

fn masked(loaded: Loaded, data: &[u8]) -> Loaded {
    match loaded {
        Loaded::State => {
            let mask = find(data, 4).and_then(|mask| find(mask.bytes, 1)).map_or(0, |mask| mask.u32());
            Loaded::Masked(mask)
        }
        other => other,
    }
}

fn compared(loaded: Loaded, data: &[u8]) -> Test {
    let value = find(data, 3).and_then(|value| find(value.bytes, 1));
    let (is_equal, is_other) = (number(data, 2) == CMP_EQUAL, number(data, 2) == CMP_NOT_EQUAL);
    match (loaded, value) {
        // "State and mask is not 0".
        (Loaded::Masked(mask), Some(value)) if mask & CT_ESTABLISHED != 0 && is_other && value.u32() == 0 => {
            Test::Established
        }
        (Loaded::State, Some(value)) if is_equal && value.u32() == CT_ESTABLISHED => Test::Established,
        (Loaded::Port, Some(value)) if is_equal && value.bytes.len() == 2 => Test::Port(value.be() as u16),
        (loaded, _) => test(loaded),
    }
}

fn test(loaded: Loaded) -> Test {
    match loaded {
        Loaded::State | Loaded::Masked(_) | Loaded::Connection => Test::Connection,
        Loaded::Port => Test::Other("port".into()),
        Loaded::Address => Test::Address,
        Loaded::Protocol => Test::Protocol,
        Loaded::Device => Test::Device,
        Loaded::Nothing | Loaded::Other => Test::Other("payload".into()),
    }
}

/// A set, or a map. What a map of states does with those that stand is not looked up: it may accept them, or send them on.
fn look_up(rule: &mut Rule, loaded: &mut Loaded, data: &[u8], holds: Holds<'_>) {
    let register = find(data, 3).map(|register| register.be());
    let is_verdict = register == Some(VERDICT_REGISTER);
    rule.tests.push(match (*loaded, register) {
        (Loaded::State, Some(VERDICT_REGISTER)) => Test::Established,
        (Loaded::State, None) => of_states(data, holds),
        _ => Test::Set,
    });
    if is_verdict {
        rule.action = Action::Other("map".into());
    } else if register.is_some() {
        *loaded = Loaded::Other;
    }
}

/// `ct state { established, related }`, or `!=` with other states.
fn of_states(data: &[u8], holds: Holds<'_>) -> Test {
    let is_inverted = number(data, 5) & LOOKUP_INVERTED != 0;
    match holds(&text(data, 1)) {
        Some(holds) if holds != is_inverted => Test::Established,
        _ => Test::Connection,
    }
}

fn verdict(rule: &mut Rule, data: &[u8]) {
    let Some(verdict) = find(data, 2).and_then(|data| find(data.bytes, 2)) else { return };
    let code = find(verdict.bytes, 1).map_or(0, |code| code.be() as u32 as i32);
    let chain = || find(verdict.bytes, 2).map(|chain| chain.text()).unwrap_or_default();
    rule.action = match code {
        -3 | -4 => Action::Jump(chain()),
        -5 => Action::Return,
        code => decided(i64::from(code)).unwrap_or_default(),
    };
}

fn number(data: &[u8], kind: u16) -> u64 {
    find(data, kind).map_or(0, |attribute| attribute.be())
}

fn text(data: &[u8], kind: u16) -> String {
    find(data, kind).as_ref().map(Attribute::text).unwrap_or_default()
}

fn bytes(data: &[u8], kind: u16) -> &[u8] {
    find(data, kind).map(|attribute| attribute.bytes).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::put;

    /// A rule none of whose sets can be read.
    fn rule(expressions: &[u8]) -> Rule {
        super::rule(expressions, &|_| None)
    }

    fn be(value: u32) -> [u8; 4] {
        value.to_be_bytes()
    }

    /// An expression with attributes that are bytes.
    fn expression(name: &str, data: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let (mut inner, mut element, mut list) = (Vec::new(), Vec::new(), Vec::new());
        data.iter().for_each(|(kind, bytes)| put(&mut inner, *kind, bytes));
        put(&mut element, 1, &[name.as_bytes(), b"\0"].concat());
        put(&mut element, 2, &inner);
        put(&mut list, 1, &element);
        list
    }

    fn nested(kind: u16, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, kind, bytes);
        out
    }

    fn accept() -> Vec<u8> {
        expression("immediate", &[(2, nested(2, &nested(1, &be(1))))])
    }

    #[test]
    fn established_accept_is_read_off_its_expressions() {
        let state = expression("ct", &[(1, be(1).into()), (2, be(0).into())]);
        let mask = expression("bitwise", &[(4, nested(1, &6u32.to_le_bytes()))]);
        let compare = expression("cmp", &[(2, be(1).into()), (3, nested(1, &[0; 4]))]);
        let whole = rule(&[state.clone(), mask, compare.clone(), accept()].concat());
        assert_eq!((whole.tests, whole.action), (vec![Test::Established], Action::Accept));
        let new = expression("bitwise", &[(4, nested(1, &8u32.to_le_bytes()))]);
        assert_eq!(rule(&[state, new, compare, accept()].concat()).tests, [Test::Connection]);
    }

    #[test]
    fn a_port_an_address_and_a_set_are_read_off_theirs() {
        let load = |base: u32, at: u32, len: u32| {
            expression("payload", &[(2, be(base).into()), (3, be(at).into()), (4, be(len).into())])
        };
        let port = expression("cmp", &[(2, be(0).into()), (3, nested(1, &[31, 144]))]);
        assert_eq!(rule(&[load(2, 2, 2), port].concat()).tests, [Test::Port(8_080)]);
        let address = expression("cmp", &[(2, be(0).into()), (3, nested(1, &[10, 0, 0, 1]))]);
        assert_eq!(rule(&[load(1, 12, 4), address].concat()).tests, [Test::Address]);
        let set = expression("lookup", &[(1, b"bad\0".to_vec())]);
        assert_eq!(rule(&[load(1, 12, 4), set].concat()).tests, [Test::Set]);
    }

    /// Planted fault: a map of states accepts; then what it sends to another chain goes in before that chain is asked.
    #[test]
    fn a_map_of_states_is_no_plain_accept() {
        let state = || expression("ct", &[(1, be(1).into()), (2, be(0).into())]);
        let map = |register: u32| expression("lookup", &[(1, b"m\0".to_vec()), (3, be(register).into())]);
        let verdicts = rule(&[state(), map(0)].concat());
        assert_eq!((verdicts.tests, verdicts.action), (vec![Test::Established], Action::Other("map".into())));
        let mark = expression("meta", &[(2, be(3).into()), (3, be(1).into())]);
        let marks = rule(&[state(), map(1), mark].concat());
        assert_eq!((marks.tests, marks.action, marks.besides), (vec![Test::Set], Action::Nothing, true));
    }

    /// Planted fault: a set is not asked what it holds; then the form that firewalld writes lets nobody through.
    #[test]
    fn a_set_of_states_lets_standing_connections_through_where_it_holds_theirs() {
        let state = || expression("ct", &[(1, be(1).into()), (2, be(0).into())]);
        let of = |flags: u32, holds: Option<bool>| {
            let set = expression("lookup", &[(1, b"__set0\0".to_vec()), (5, be(flags).into())]);
            let seen = |name: &str| holds.filter(|_| name == "__set0");
            super::rule(&[state(), set, accept()].concat(), &seen)
        };
        let whole = of(0, Some(true));
        assert_eq!((whole.tests, whole.action), (vec![Test::Established], Action::Accept));
        assert_eq!(of(1, Some(false)).tests, [Test::Established], "all but the states of the set");
        for (flags, holds) in [(0, Some(false)), (1, Some(true)), (0, None), (1, None)] {
            assert_eq!(of(flags, holds).tests, [Test::Connection], "{flags} {holds:?}");
        }
    }

    #[test]
    fn the_elements_of_a_set_are_read_each() {
        let set = |states: &[u32]| -> Vec<u8> {
            let element = |state: &u32| nested(1, &nested(1, &nested(1, &state.to_le_bytes())));
            states.iter().flat_map(element).collect()
        };
        assert!(has_established(&set(&[4, 2])) && !has_established(&set(&[8, 1])));
        assert!(!has_established(&[]) && !has_established(&set(&[2])[..8]));
    }

    #[test]
    fn what_is_not_established_is_not_taken_for_it() {
        let state = expression("ct", &[(1, be(1).into()), (2, be(0).into())]);
        let mask = expression("bitwise", &[(4, nested(1, &2u32.to_le_bytes()))]);
        let is_not = expression("cmp", &[(2, be(1).into()), (3, nested(1, &2u32.to_le_bytes()))]);
        assert_eq!(rule(&[state, mask, is_not].concat()).tests, [Test::Connection]);
    }

    #[test]
    fn what_changes_a_packet_besides_is_told() {
        let size = expression("exthdr", &[(2, vec![2]), (7, be(1).into())]);
        assert!(rule(&[size, accept()].concat()).besides);
        for name in ["log", "objref", "dynset", "flow_offload"] {
            let accepts = rule(&[expression(name, &[]), accept()].concat());
            assert_eq!((accepts.action, accepts.besides), (Action::Accept, true), "{name}");
        }
    }

    #[test]
    fn verdicts_counters_and_extensions_of_the_older_tables_are_read() {
        let jump = expression(
            "immediate",
            &[(2, nested(2, &[nested(1, &(-3i32).to_be_bytes()), nested(2, b"x\0")].concat()))],
        );
        assert_eq!(rule(&jump).action, Action::Jump("x".into()));
        let counter = expression("counter", &[(2, 7u64.to_be_bytes().to_vec())]);
        assert_eq!(rule(&counter).packets, Some(7));
        let target = expression("target", &[(1, b"MASQUERADE\0".to_vec())]);
        assert_eq!((rule(&target).action, rule(&[])), (Action::Nat, Rule::default()));
        assert!(has_extension(&[counter.clone(), target].concat()) && !has_extension(&counter));
    }
}
