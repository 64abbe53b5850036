//! Packet filters: nftables, the older tables, connection tracking.

use dyno_record::fact::Fact;
use dyno_record::facts::{Chain, Conntrack, Netfilter, Rule};
use dyno_sys::filter::{self, Action, Test};
use dyno_sys::netlink::nftables;
use dyno_sys::netlink::socket::Read;
use dyno_sys::proc;
use dyno_sys::xtables::{self, Version};

use super::limits::RULES_MAX;
use super::read::{fact, number, text};

/// All of it.
pub(super) fn netfilter(parts: &[String], cut: &mut Vec<String>) -> Netfilter {
    let has = |part: &str| parts.iter().any(|one| one == part);
    let rules = match has("nf_tables") {
        true => fact("nftables", nftables::ruleset(RULES_MAX)),
        false => Fact::Absent("nftables".into()),
    };
    if rules.value().is_some_and(|rules| rules.read == Read::Cut) {
        cut.push(format!("nftables rules after the first {RULES_MAX}"));
    }
    Netfilter {
        sets: rules.clone().map(|all| all.sets.into_iter().map(|set| set.name).collect()),
        nftables: rules.map(|all| all.chains.into_iter().map(chain).collect()),
        legacy: legacy(cut),
        conntrack: conntrack(),
    }
}

/// The tables that are there. Their names' files are there where the kernel has them at all.
fn legacy(cut: &mut Vec<String>) -> Fact<Vec<Chain>> {
    let four = tables(Version::Four, "/proc/thread-self/net/ip_tables_names");
    let six = tables(Version::Six, "/proc/thread-self/net/ip6_tables_names");
    let mut chains = match (four, six) {
        (Fact::Value(four), Fact::Value(six)) => [four, six].concat(),
        (Fact::Value(one), Fact::Absent(_)) | (Fact::Absent(_), Fact::Value(one)) => one,
        (Fact::Unread(why), _) | (_, Fact::Unread(why)) => return Fact::Unread(why),
        (Fact::Absent(_), Fact::Absent(_)) => return Fact::Absent("the older packet filters".into()),
    };
    let mut left = RULES_MAX;
    for chain in &mut chains {
        if chain.rules.len() > left {
            cut.push(format!("older packet filter rules after the first {RULES_MAX}"));
        }
        chain.rules.truncate(left);
        left -= chain.rules.len();
    }
    Fact::Value(chains)
}

fn tables(version: Version, names: &str) -> Fact<Vec<Chain>> {
    let names = match text(names) {
        Fact::Value(names) => names,
        Fact::Absent(what) => return Fact::Absent(what),
        Fact::Unread(why) => return Fact::Unread(why),
    };
    let mut all = Vec::new();
    for name in names.lines() {
        match fact(name, xtables::table(version, name)) {
            Fact::Value(chains) => all.extend(chains.into_iter().map(chain)),
            // It was there a moment ago.
            Fact::Absent(_) => {}
            Fact::Unread(why) => return Fact::Unread(why),
        }
    }
    Fact::Value(all)
}

fn chain(chain: filter::Chain) -> Chain {
    Chain {
        family: chain.family,
        table: chain.table,
        name: chain.name,
        hook: chain.hook.map(str::to_owned),
        priority: chain.priority,
        kind: chain.kind,
        policy: chain.policy.map(str::to_owned),
        rules: chain.rules.into_iter().map(rule).collect(),
    }
}

fn rule(rule: filter::Rule) -> Rule {
    Rule {
        tests: rule.tests.into_iter().map(test).collect(),
        action: action(rule.action),
        besides: rule.besides,
        packets: rule.packets,
        handle: rule.handle,
    }
}

fn test(test: Test) -> String {
    match test {
        Test::Established => "established".into(),
        Test::Connection => "connection".into(),
        Test::Set => "set".into(),
        Test::Port(port) => format!("port {port}"),
        Test::Address => "address".into(),
        Test::Protocol => "protocol".into(),
        Test::Device => "device".into(),
        Test::Other(name) => name,
    }
}

fn action(action: Action) -> String {
    match action {
        Action::Nothing => String::new(),
        Action::Accept => "accept".into(),
        Action::Drop => "drop".into(),
        Action::Jump(chain) => format!("jump {chain}"),
        Action::Return => "return".into(),
        Action::NoTrack => "notrack".into(),
        Action::Nat => "nat".into(),
        Action::Other(name) => name,
    }
}

fn conntrack() -> Fact<Conntrack> {
    const FOLDER: &str = "/proc/sys/net/netfilter";
    let read = |name: &str| number::<u64>(&format!("{FOLDER}/{name}")).value().copied().unwrap_or(0);
    let stats = stats();
    number::<u64>(&format!("{FOLDER}/nf_conntrack_count")).map(|count| Conntrack {
        count,
        max: read("nf_conntrack_max"),
        buckets: read("nf_conntrack_buckets"),
        insert_failed: column(&stats, "insert_failed"),
        dropped: column(&stats, "drop") + column(&stats, "early_drop"),
        early_drops_lately: 0,
    })
}

fn stats() -> String {
    proc::text("/proc/thread-self/net/stat/nf_conntrack").unwrap_or_default()
}

/// Connections that were thrown out because the table was full, since this namespace was made.
pub(super) fn early_drops() -> u64 {
    column(&stats(), "early_drop")
}

/// A line of names, then a line of hexadecimal numbers for each CPU.
fn column(stats: &str, name: &str) -> u64 {
    let mut lines = stats.lines();
    let at = lines.next().and_then(|names| names.split_whitespace().position(|word| word == name));
    let Some(at) = at else { return 0 };
    lines.filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(at)?, 16).ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_summed_over_cpus() {
        let stats = "entries  insert_failed drop\n00000003 00000002 0000000a\n00000003 00000001 00000001\n";
        assert_eq!(
            (column(stats, "insert_failed"), column(stats, "drop"), column(stats, "none")),
            (3, 11, 0)
        );
    }

    #[test]
    fn rules_keep_what_they_ask_and_do() {
        let rule = rule(filter::Rule {
            tests: vec![Test::Established, Test::Port(80), Test::Other("limit".into())],
            action: Action::Jump("mine".into()),
            besides: true,
            packets: Some(3),
            handle: 9,
        });
        assert_eq!(rule.tests, ["established", "port 80", "limit"]);
        assert_eq!((rule.action.as_str(), rule.packets, rule.besides), ("jump mine", Some(3), true));
    }

    #[test]
    fn without_nftables_in_the_kernel_it_is_not_asked_for() {
        let none = netfilter(&[], &mut Vec::new());
        assert_eq!(none.nftables, Fact::Absent("nftables".into()));
    }
}
