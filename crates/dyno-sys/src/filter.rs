//! Rules of packet filters, in one form for nftables and the older tables: what a rule asks, and what it does.
//!
//! Their readers (`netlink::nftables`, `xtables`) fill it, the host's facts hold it. What a rule asks is named as far as it
//! tells whether a packet of a connection that stands ends there.

/// A chain of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chain {
    /// `inet`, `ip`, `ip6`, `arp`, `bridge` or `netdev`.
    pub family: String,
    /// Its table.
    pub table: String,
    /// Its name in the table.
    pub name: String,
    /// Where packets enter it: `prerouting`, `input`, `forward`, `output`, `postrouting`, `ingress`, `egress`; `None` where
    /// only other chains lead to it.
    pub hook: Option<&'static str>,
    /// Its place among the chains of the hook, the smallest first.
    pub priority: i32,
    /// `filter`, `nat` or `route`.
    pub kind: String,
    /// What becomes of a packet that no rule decides.
    pub policy: Option<&'static str>,
    /// Its rules, in order.
    pub rules: Vec<Rule>,
}

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// What must be so, one after the other.
    pub tests: Vec<Test>,
    /// What it does then.
    pub action: Action,
    /// It does something besides: logs, marks, remembers an address.
    pub besides: bool,
    /// Packets that it decided, where it counts them.
    pub packets: Option<u64>,
    /// Its number in the table, for commands.
    pub handle: u64,
}

/// Something that a rule asks of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Test {
    /// It belongs to a connection that stands already.
    Established,
    /// Something else about its connection.
    Connection,
    /// It is in a set.
    Set,
    /// Its port is this one, there or here.
    Port(u16),
    /// Its address.
    Address,
    /// Its protocol.
    Protocol,
    /// The device that it came from or goes to.
    Device,
    /// Something else, by the kernel's name.
    Other(String),
}

/// What a rule does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Action {
    /// The next rule is asked.
    #[default]
    Nothing,
    /// The packet goes on, and no rule of this chain is asked any more.
    Accept,
    /// It is dropped or rejected.
    Drop,
    /// Another chain is asked.
    Jump(String),
    /// The chain that led here goes on.
    Return,
    /// Its connection is not followed.
    NoTrack,
    /// Addresses are changed.
    Nat,
    /// Something else, by the kernel's name.
    Other(String),
}

/// The hooks of the families with addresses, by number.
pub(crate) const HOOKS: [&str; 5] = ["prerouting", "input", "forward", "output", "postrouting"];

/// `NF_ACCEPT` and `NF_DROP`, as the filters' verdicts have them.
pub(crate) fn decided(verdict: i64) -> Option<Action> {
    match verdict {
        0 => Some(Action::Drop),
        1 => Some(Action::Accept),
        _ => None,
    }
}

/// What the older tables' extension `conntrack` asks, in the forms with a mask of states (include/uapi/linux/netfilter/
/// xt_conntrack.h, versions 2 and 3): eight addresses, two times, five numbers of two bytes, then flags, inverted flags and
/// states. One that asks for an address or a port besides is not about every connection that stands.
pub(crate) fn conntrack_match(info: &[u8]) -> Test {
    const FLAGS_AT: usize = 146;
    const INVERTED_AT: usize = 148;
    const STATES_AT: usize = 150;
    const ABOUT_STATE: u16 = 1;
    // Says that it was written as the extension `state`.
    const AS_STATE: u16 = 1 << 13;
    const ESTABLISHED: u16 = 2;
    let number = |at: usize| {
        info.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes(bytes.try_into().expect("two bytes")))
    };
    let is_plain = number(FLAGS_AT) & !AS_STATE == ABOUT_STATE && number(INVERTED_AT) & ABOUT_STATE == 0;
    let stands = number(STATES_AT) & ESTABLISHED != 0;
    if is_plain && stands { Test::Established } else { Test::Connection }
}

/// What an extension of the older tables asks.
pub(crate) fn extension(name: &str, info: &[u8]) -> Test {
    match name {
        "conntrack" => conntrack_match(info),
        // struct xt_state_info: one mask.
        "state" if info.first().is_some_and(|states| states & 2 != 0) => Test::Established,
        "state" | "connmark" | "connlimit" | "connbytes" => Test::Connection,
        "set" => Test::Set,
        // struct xt_tcp: source ports from and to, then destination ports.
        "tcp" | "udp" => one_port(info).map_or(Test::Protocol, Test::Port),
        name => Test::Other(name.to_owned()),
    }
}

fn one_port(info: &[u8]) -> Option<u16> {
    let port = |at: usize| Some(u16::from_le_bytes([*info.get(at)?, *info.get(at + 1)?]));
    let pairs = [(port(0)?, port(2)?), (port(4)?, port(6)?)];
    pairs.into_iter().find(|(from, to)| from == to).map(|(from, _)| from)
}

/// What a target of the older tables does.
pub(crate) fn target(name: &str) -> Action {
    match name {
        "REJECT" => Action::Drop,
        "NOTRACK" | "CT" => Action::NoTrack,
        "SNAT" | "DNAT" | "MASQUERADE" | "REDIRECT" | "NETMAP" => Action::Nat,
        name => Action::Other(name.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extension_that_asks_for_standing_connections_is_known_from_others() {
        let mut info = vec![0; 156];
        assert_eq!(extension("conntrack", &info), Test::Connection);
        info[146] = 1;
        info[150] = 6;
        assert_eq!(extension("conntrack", &info), Test::Established);
        info[148] = 1;
        assert_eq!(extension("conntrack", &info), Test::Connection, "it asks for the opposite");
        info[148] = 0;
        info[147] = 1 << 5;
        assert_eq!(extension("conntrack", &info), Test::Established, "it was written as 'state'");
        // XT_CONNTRACK_ORIGSRC.
        info[146] |= 1 << 3;
        assert_eq!(extension("conntrack", &info), Test::Connection, "it asks for an address besides");
        assert_eq!(
            (extension("state", &[6]), extension("state", &[8])),
            (Test::Established, Test::Connection)
        );
        assert_eq!(extension("conntrack", &[]), Test::Connection);
    }

    #[test]
    fn one_port_is_told_from_a_range() {
        let tcp = |ports: [u16; 4]| ports.iter().flat_map(|port| port.to_le_bytes()).collect::<Vec<u8>>();
        assert_eq!(extension("tcp", &tcp([0, 65_535, 8_080, 8_080])), Test::Port(8_080));
        assert_eq!(extension("tcp", &tcp([0, 65_535, 0, 1_023])), Test::Protocol);
        assert_eq!(extension("udp", &[1]), Test::Protocol);
    }
}
