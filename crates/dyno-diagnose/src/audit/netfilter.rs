//! Packet filters: rules that every packet of a standing connection is held against.

use std::collections::BTreeMap;

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::change::{FIRST_RULE, Network, What};
use dyno_record::commands::command;
use dyno_record::fact::Gap;
use dyno_record::facts::{Chain, Facts};

use super::draft::{
    CONNECTIONS, Check, FAST, Looked, Say, Seen, counted, finding, measured, quoted, unknown, with_sysctl,
};
use super::here;
use super::rule_walk::{Walk, walk};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "nf.linear", about: "rules of nftables, one after the other", look: linear },
    Check { id: "nf.legacy", about: "rules of the older tables (iptables-legacy)", look: legacy },
    Check { id: "nf.first", about: "where standing connections are let through", look: first },
    Check { id: "nf.ct", about: "connection tracking", look: tracking },
    Check { id: "nf.ctfull", about: "room for tracked connections", look: full },
    Check { id: "nf.nat", about: "translation of addresses", look: nat },
    Check { id: "nf.unused", about: "rules that no packet ever met", look: unused },
];

/// Hooks that a server's packets pass.
const HOOKS: [&str; 5] = ["ingress", "prerouting", "input", "output", "postrouting"];
/// Rules from which a chain is worth a sentence: ten cost 3 % [0, 5].
const LINEAR_MIN: usize = 10;
/// The same for the older tables, whose rules cost a tenth of it.
const LEGACY_MIN: usize = 100;
/// What stands before the accept of standing connections in any usual rule set: the loopback device, and invalid packets.
const BEFORE_MAX: usize = 2;
/// µs per rule and request, the least and the most that was measured: in tables of the family inet, of ip, and in the older
/// ones.
const INET_US: (f64, f64) = (0.05, 0.09);
const IP_US: (f64, f64) = (0.008, 0.012);
const LEGACY_US: (f64, f64) = (0.003, 0.009);
/// A request's CPU where costs of rules were measured, µs.
const REQUEST_US: f64 = 12.5;

fn linear(facts: &Facts) -> Seen {
    let chains = facts.netfilter.nftables.known()?;
    let long = walked(facts, chains).into_iter().filter(|(_, walk)| walk.rules > LINEAR_MIN);
    let found: Vec<AuditFinding> = long.map(|(chain, walk)| of_linear(facts, chain, walk)).collect();
    Ok(Looked::found_or(found, || summary(chains)))
}

fn of_linear(facts: &Facts, chain: &Chain, walk: Walk) -> AuditFinding {
    let cost = if chain.family == "inet" { INET_US } else { IP_US };
    let place = place(chain);
    let made = finding(
        format!("Each packet is held against up to {} of a packet filter, one by one", counted(walk.rules, "rule")),
        format!("{} in {place} before a packet of a standing connection is let through", counted(walk.rules, "rule")),
        "one rule that lets standing connections through first, and one set in place of many addresses",
    )
    .about(place)
    .gain(FAST, here::of_rules(facts).unwrap_or_else(|| share(walk.rules, cost, "rules of this family, one by one")))
    .risk(Risk::Security, "an order or a set that is written wrongly lets packets in; load a whole file, which is taken or refused as one")
    .why("A packet is compared with one rule after the other; a set is one look-up however many addresses it holds. Rules in a table of the family inet cost several times those in a table of the family ip.");
    match is_before_tracking(chain) || !has_tracking(facts) {
        true => with_set(made, chain),
        false => of_chain(chain).give(made).hand(WRITER),
    }
}

/// Why tune leaves the order of somebody's rules alone.
const WRITER: &str =
    "the order of the rules is their meaning, and who wrote them has to say that it may change";

/// `NF_IP_PRI_CONNTRACK`: in a chain before it no packet belongs to a connection yet, and a rule by state meets none.
const TRACKING: i32 = -200;

fn is_before_tracking(chain: &Chain) -> bool {
    let hook = chain.hook.as_deref().unwrap_or_default();
    hook == "ingress" || ["prerouting", "output"].contains(&hook) && chain.priority <= TRACKING
}

fn has_tracking(facts: &Facts) -> bool {
    !matches!(facts.netfilter.conntrack.known(), Err(Gap::Absent(_)))
}

/// Where a rule by state would meet nothing: addresses together, which nft finds by itself.
fn with_set(made: AuditFinding, chain: &Chain) -> AuditFinding {
    let made = AuditFinding {
        recommended: "one set in place of many addresses; a rule by state meets nothing in this chain".into(),
        ..made
    };
    made.hand(WRITER)
        .see(&[
            &format!("sudo nft -a list chain {}", words(chain)),
            "sudo nft -s list ruleset > ruleset.before; sudo nft -c -o -f ruleset.before  # shows which rules would be one set",
        ])
        .apply(&[
            "sudo nft -s list ruleset > ruleset.before",
            "(echo flush ruleset; cat ruleset.before) > ruleset.new; sudo nft -o -f ruleset.new  # loads them with sets",
        ])
        .revert(&["(echo flush ruleset; cat ruleset.before) | sudo nft -f -"])
}

fn legacy(facts: &Facts) -> Seen {
    let chains = facts.netfilter.legacy.known()?;
    let long = walked(facts, chains).into_iter().filter(|(_, walk)| walk.rules > LEGACY_MIN);
    let found: Vec<AuditFinding> = long.map(|(chain, walk)| of_legacy(facts, chain, walk)).collect();
    Ok(Looked::found_or(found, || summary(chains)))
}

fn of_legacy(facts: &Facts, chain: &Chain, walk: Walk) -> AuditFinding {
    let place = place(chain);
    let made = finding(
        format!(
            "Each packet is held against up to {} of a packet filter, one by one",
            counted(walk.rules, "rule")
        ),
        format!(
            "{} in {place} before a packet of a standing connection is let through",
            counted(walk.rules, "rule")
        ),
        "the rule that lets standing connections through first, or an ipset in place of many addresses",
    )
    .about(place)
    .gain(
        FAST,
        here::of_rules(facts).unwrap_or_else(|| share(walk.rules, LEGACY_US, "rules of the older tables")),
    )
    .risk(Risk::Security, "an order that is written wrongly lets packets in")
    .why("A packet is compared with one rule after the other until one decides.");
    match chain.table == "raw" || !has_tracking(facts) {
        // Before tracking no packet belongs to a connection, and a rule by state meets none.
        true => of_ipset(made, chain),
        false => of_iptables(chain, "legacy").give(made).hand(WHOLE),
    }
}

/// Why tune does not change the older tables.
const WHOLE: &str = "a table there is replaced whole, with everybody's counters and with what others wrote in the same moment";

/// Why tune puts no rule of nft's into a table of iptables'.
const KEPT: &str = "iptables keeps the table, and refuses it whole with a rule of nft's own in it";

/// By the names that `iptables-nft` gives, and takes for its own.
fn is_of_iptables(chain: &Chain) -> bool {
    ["ip", "ip6"].contains(&chain.family.as_str())
        && ["filter", "nat", "mangle", "raw", "security"].contains(&chain.table.as_str())
        && ["PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"].contains(&chain.name.as_str())
}

fn of_ipset(made: AuditFinding, chain: &Chain) -> AuditFinding {
    let tool = if chain.family == "ip6" { "ip6tables-legacy" } else { "iptables-legacy" };
    let (table, name) = (quoted(&chain.table), quoted(&chain.name));
    made.hand(WHOLE)
        .see(&[&format!("sudo {tool} -t {table} -vnL {name} --line-numbers")])
        .apply(&[
            &format!("sudo {tool}-save -t {table} > {tool}.before"),
            "sudo ipset create dyno hash:net; sudo ipset add dyno ADDRESS  # for each",
            &format!("sudo {tool} -w -t {table} -I {name} 1 -m set --match-set dyno src -j DROP; and delete the rules for these addresses"),
        ])
        .revert(&[&format!("sudo {tool}-restore -w < {tool}.before; sudo ipset destroy dyno")])
}

fn first(facts: &Facts) -> Seen {
    let none = Vec::new();
    let (nftables, legacy) =
        (facts.netfilter.nftables.or_absent(&none)?, facts.netfilter.legacy.or_absent(&none)?);
    let late = |(chain, walk): (&Chain, Walk), kind: Kind| {
        let before = walk.before_established.filter(|before| *before > BEFORE_MAX)?;
        // A rule by state meets nothing there, the first place would change nothing.
        if is_before_tracking(chain) {
            return None;
        }
        Some(of_first(chain, before, kind))
    };
    let of_new = walked(facts, nftables).into_iter().filter_map(|one| late(one, Kind::Nftables));
    let of_old = walked(facts, legacy).into_iter().filter_map(|one| late(one, Kind::Legacy));
    let found: Vec<AuditFinding> = of_new.chain(of_old).collect();
    Ok(Looked::found_or(found, || summary(&[&nftables[..], legacy].concat())))
}

/// Which of the two filters a chain is of.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Nftables,
    Legacy,
}

fn of_first(chain: &Chain, before: usize, kind: Kind) -> AuditFinding {
    let place = place(chain);
    let cost = match (kind, chain.family.as_str()) {
        (Kind::Legacy, _) => LEGACY_US,
        (Kind::Nftables, "inet") => INET_US,
        (Kind::Nftables, _) => IP_US,
    };
    let commands = match kind {
        Kind::Nftables => of_chain(chain),
        Kind::Legacy => of_iptables(chain, "legacy"),
    };
    let made = finding(
        format!("Connections that are open already are let through only after {}", counted(before, "other rule")),
        format!("'established accept' stands behind {} in {place}", counted(before, "rule")),
        "'established accept' as the first rule",
    )
    .about(place)
    .gain(FAST, share(before, cost, "rules before it"))
    .risk(Risk::Security, "addresses that the rules before it drop keep the connections that they have")
    .why("Nearly all packets of a server belong to connections that are open already, and each of them is held against every rule before that one.");
    let made = commands.give(made);
    match kind {
        Kind::Legacy => made.hand(WHOLE),
        Kind::Nftables if is_of_iptables(chain) => made.hand(KEPT),
        Kind::Nftables => match others_do(chain) {
            Some(what) => made.hand(&format!(
                "a rule before it {what}, which standing connections would no longer meet: who wrote the rules has to say that they need not"
            )),
            None => with_first_rule(made, chain),
        },
    }
}

/// What rules before the one for standing connections do besides letting in and refusing. Where there is no such rule in this
/// very chain, that is what is said.
fn others_do(chain: &Chain) -> Option<String> {
    let plain = |test: &String| {
        let name = test.split(' ').next().unwrap_or_default();
        ["address", "set", "port", "protocol", "device", "connection", "established"].contains(&name)
    };
    for rule in &chain.rules {
        let is_of_state = rule.tests == ["established"];
        if rule.action == "accept" && is_of_state && !rule.besides {
            return None;
        }
        if rule.besides {
            return Some("logs, marks or remembers packets".into());
        }
        match rule.action.as_str() {
            "accept" | "drop" => {}
            "" => return Some("counts packets".into()),
            "map" if is_of_state => return Some("asks a map what becomes of each state".into()),
            other => return Some(format!("does something else ({other})")),
        }
        if let Some(test) = rule.tests.iter().find(|test| !plain(test)) {
            return Some(format!("asks for something else ({test})"));
        }
    }
    Some("is in another chain".into())
}

/// One rule of ours, known by its comment.
fn with_first_rule(made: AuditFinding, chain: &Chain) -> AuditFinding {
    let what = What::FirstRule {
        network: Network::default(),
        family: chain.family.clone(),
        table: chain.table.clone(),
        chain: chain.name.clone(),
    };
    let (apply, revert) = (command(&what, FIRST_RULE), command(&what, ""));
    made.apply(&[&apply]).revert(&[&revert]).set(what, FIRST_RULE)
}

/// How a rule for standing connections is put first, and taken away.
struct Commands {
    see: String,
    apply: [String; 2],
    revert: String,
}

impl Commands {
    fn give(&self, finding: AuditFinding) -> AuditFinding {
        finding.see(&[&self.see]).apply(&[&self.apply[0], &self.apply[1]]).revert(&[&self.revert])
    }
}

/// A whole file is taken or refused as one, and puts back what was there, counters aside.
fn of_nft(chain: &Chain) -> Commands {
    let words = words(chain);
    Commands {
        see: format!("sudo nft -a list chain {words}"),
        apply: [
            "sudo nft -s list ruleset > ruleset.before".to_owned(),
            format!("sudo nft insert rule {words} ct state established,related accept"),
        ],
        revert: "(echo flush ruleset; cat ruleset.before) | sudo nft -f -".to_owned(),
    }
}

/// A chain of nftables, which may be iptables'.
fn of_chain(chain: &Chain) -> Commands {
    if is_of_iptables(chain) { of_iptables(chain, "nft") } else { of_nft(chain) }
}

fn of_iptables(chain: &Chain, variant: &str) -> Commands {
    let tool = format!("{}-{variant}", if chain.family == "ip6" { "ip6tables" } else { "iptables" });
    let (table, name) = (quoted(&chain.table), quoted(&chain.name));
    // By its comment it is told from a rule that was there before.
    let rule = "-m conntrack --ctstate ESTABLISHED -m comment --comment dyno -j ACCEPT";
    Commands {
        see: format!("sudo {tool} -t {table} -vnL {name} --line-numbers"),
        apply: [
            format!("sudo {tool}-save > {tool}.before  # to compare with afterwards"),
            format!("sudo {tool} -w -t {table} -I {name} 1 {rule}"),
        ],
        revert: format!("sudo {tool} -w -t {table} -D {name} {rule}"),
    }
}

fn tracking(facts: &Facts) -> Seen {
    let chains = both(facts)?;
    let follows = |chain: &&Chain| {
        let by_rule = |test: &String| test == "established" || test == "connection";
        chain.kind == "nat" && !chain.rules.is_empty()
            || chain.rules.iter().any(|rule| rule.tests.iter().any(by_rule))
    };
    let users: Vec<String> = chains.iter().filter(follows).map(place).collect();
    let count = facts.netfilter.conntrack.value().map_or(0, |one| one.count);
    let untracked = chains.iter().any(|chain| chain.rules.iter().any(|rule| rule.action == "notrack"));
    if users.is_empty() || untracked {
        let words = if untracked { "some packets are not tracked" } else { "no rule asks for connections" };
        return Ok(Looked::fine(format!("{words}; {count} connections are followed")));
    }
    let port = ports(facts).first().map_or_else(|| "PORT".to_owned(), u16::to_string);
    let made = finding(
        "Every packet is matched to a connection in the kernel's table",
        format!("{count} connections followed; asked for by {}", users.join(", ")),
        "no tracking for the server's port: 'notrack' there, and rules by port instead of by state",
    )
    .gain(FAST, measured(5.0, 12.0, "tracking for the server's port, against none"))
    .risk(Risk::Security, "packets to that port are then judged one by one, without their connection")
    .why("Tracking looks each packet up in a table and takes a lock; a rule by port can do without it.")
    .see(&["sudo nft list ruleset", "cat /proc/sys/net/netfilter/nf_conntrack_count"])
    .apply(&[
        "sudo nft add table ip dyno_notrack",
        "sudo nft 'add chain ip dyno_notrack in { type filter hook prerouting priority raw; }'",
        "sudo nft 'add chain ip dyno_notrack out { type filter hook output priority raw; }'",
        &format!("sudo nft add rule ip dyno_notrack in tcp dport {port} notrack  # rules by state must let that port through before"),
        &format!("sudo nft add rule ip dyno_notrack out tcp sport {port} notrack"),
    ])
    .revert(&["sudo nft delete table ip dyno_notrack"]);
    Ok(match ports(facts).first() {
        None => made,
        Some(port) => {
            let (network, family, name) = (Network::default(), "ip".to_owned(), "dyno_notrack".to_owned());
            made.set(What::Table { network, family, name }, &notrack(*port))
        }
    }
    .into())
}

/// A table whose chains let no packet of this port be tracked.
fn notrack(port: u16) -> String {
    format!(
        "chain in {{ type filter hook prerouting priority raw; tcp dport {port} counter notrack; }}\n\
         chain out {{ type filter hook output priority raw; tcp sport {port} counter notrack; }}"
    )
}

/// Percent of the table from which it is nearly full.
const NEARLY_FULL: f64 = 70.0;

/// A connection that could not be entered says nothing of room: two packets of one came at once, and one of them was taken
/// (net/netfilter/nf_conntrack_core.c, nf_ct_resolve_clash). Only a full table throws one out early.
fn full(facts: &Facts) -> Seen {
    let table = *facts.netfilter.conntrack.known()?;
    let share = 100.0 * table.count as f64 / table.max.max(1) as f64;
    let found = format!(
        "{} of {} ({share:.0} %), {} thrown out for want of room while the facts were read; since boot {} not entered, {} dropped",
        table.count, table.max, table.early_drops_lately, table.insert_failed, table.dropped
    );
    if share < NEARLY_FULL && table.early_drops_lately == 0 {
        return Ok(Looked::Fine(found));
    }
    let wanted = (table.max * 4).to_string();
    let made = finding(
        "The table of tracked connections is full, or nearly: new ones are dropped",
        found,
        format!("room for four times as many ({wanted}), or no tracking for the server's port"),
    )
    .gain(CONNECTIONS, unknown("connections are lost, not slowed"))
    .loses()
    .risk(Risk::None, "")
    .why("When it is full, packets of new connections are dropped without a word to either side.");
    let made = with_sysctl(made, "net.netfilter.nf_conntrack_max", &wanted, &table.max.to_string());
    // A longer table with as many buckets as before is one of long lists (networking/nf_conntrack-sysctl).
    if table.buckets == 0 || table.buckets >= 4 * table.max {
        return Ok(made.into());
    }
    let buckets = "net.netfilter.nf_conntrack_buckets";
    let mut made = made.set(What::File("/proc/sys/net/netfilter/nf_conntrack_buckets".into()), &wanted);
    made.see.push(format!("sysctl {buckets}"));
    made.apply.push(format!("sudo sysctl -w {buckets}={wanted}"));
    made.revert.push(format!("sudo sysctl -w {buckets}={}", table.buckets));
    Ok(made.into())
}

fn nat(facts: &Facts) -> Seen {
    let chains = both(facts)?;
    let rules: usize = chains.iter().filter(|chain| chain.kind == "nat").map(|chain| chain.rules.len()).sum();
    if rules == 0 {
        return Ok(Looked::fine("no rule translates addresses"));
    }
    let places: Vec<String> =
        chains.iter().filter(|chain| chain.kind == "nat" && !chain.rules.is_empty()).map(place).collect();
    Ok(finding(
        "Addresses may be translated, so every connection is tracked",
        format!("{} in {}", counted(rules, "rule"), places.join(", ")),
        "none, where no container and no other machine is reached through this one",
    )
    .gain(FAST, measured(4.0, 12.0, "the rules of a container engine, against none"))
    .risk(Risk::Operational, "containers lose their network; their engine writes the rules again")
    .why("A chain for translation makes the kernel track every connection and look each new one up in its rules.")
    .see(&["sudo nft list ruleset", "sudo iptables -t nat -vnL"])
    .apply(&["run the server in the host's own network, or stop the engine that made the rules"])
    .revert(&["start the engine again"])
    .into())
}

/// Packets that must have been counted before a rule that met none says anything.
const COUNTED_MIN: u64 = 10_000;

fn unused(facts: &Facts) -> Seen {
    let chains = both(facts)?;
    let counts: Vec<u64> =
        chains.iter().flat_map(|chain| &chain.rules).filter_map(|rule| rule.packets).collect();
    let never = counts.iter().filter(|packets| **packets == 0).count();
    let packets: u64 = counts.iter().sum();
    let found = format!(
        "{never} of {} never met a packet, of {packets} counted",
        counted(counts.len(), "counting rule")
    );
    // A few stand by; a crowd of them is what each packet is held against for nothing.
    if never <= LINEAR_MIN || packets < COUNTED_MIN {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("Many rules of a packet filter never met a packet", found, "only rules that are needed")
        .gain(FAST, share(never, (LEGACY_US.0, INET_US.1), "rules that are asked for nothing"))
        .choice()
        .risk(Risk::Security, "a rule that has met nothing yet may be there for the day when it does")
        .why("Every packet that gets as far as such a rule is compared with it.")
        .see(&["sudo iptables-save -c | grep '^.0:0'", "sudo nft list ruleset"])
        .apply(&[
            "sudo iptables-save > iptables.before; sudo nft -s list ruleset > ruleset.before",
            "delete those that nobody needs",
        ])
        .revert(&["sudo iptables-restore < iptables.before"])
        .into())
}

/// Both kinds of filters; what is not there has no chains.
fn both(facts: &Facts) -> Result<Vec<Chain>, Gap> {
    let none = Vec::new();
    let nftables = facts.netfilter.nftables.or_absent(&none)?;
    let legacy = facts.netfilter.legacy.or_absent(&none)?;
    Ok([&nftables[..], legacy].concat())
}

/// Chains that a server's packets enter, with their ways.
fn walked<'f>(facts: &Facts, chains: &'f [Chain]) -> Vec<(&'f Chain, Walk)> {
    let ports = ports(facts);
    let entered =
        chains.iter().filter(|chain| chain.hook.as_deref().is_some_and(|hook| HOOKS.contains(&hook)));
    // Rules for translation are asked for the first packet of a connection alone.
    entered.filter(|chain| chain.kind != "nat").map(|chain| (chain, walk(chains, chain, &ports))).collect()
}

fn ports(facts: &Facts) -> Vec<u16> {
    let listeners = facts.server.iter().flat_map(|server| server.listeners.value().into_iter().flatten());
    listeners.filter_map(|one| one.local.rsplit(':').next()?.parse().ok()).collect()
}

/// The share of a request's CPU that rules cost.
fn share(rules: usize, (least, most): (f64, f64), what: &str) -> dyno_record::audit::Gain {
    let percent = |us_per_rule: f64| {
        let us = rules as f64 * us_per_rule;
        (100.0 * us / (us + REQUEST_US)).round()
    };
    measured(percent(least), percent(most), &format!("{least} to {most} µs a rule and request: {what}"))
}

fn place(chain: &Chain) -> String {
    format!("{} {} {}", chain.family, chain.table, chain.name)
}

fn words(chain: &Chain) -> String {
    [&chain.family, &chain.table, &chain.name].map(|word| quoted(word)).join(" ")
}

fn summary(chains: &[Chain]) -> String {
    let rules: BTreeMap<&str, usize> = chains.iter().fold(BTreeMap::new(), |mut sum, chain| {
        *sum.entry(chain.family.as_str()).or_default() += chain.rules.len();
        sum
    });
    if rules.values().sum::<usize>() == 0 {
        return "no rules".to_owned();
    }
    rules
        .iter()
        .map(|(family, count)| format!("{family}: {}", counted(*count, "rule")))
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::Goal;
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Conntrack, Rule};

    fn rule(tests: &[&str], action: &str) -> Rule {
        let tests = tests.iter().map(|test| (*test).to_owned()).collect();
        Rule { tests, action: action.into(), ..Rule::default() }
    }

    fn found(chain: Chain, id: &str) -> Option<AuditFinding> {
        let mut facts = Facts::default();
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts.netfilter.legacy = Fact::Absent("the older packet filters".into());
        facts.netfilter.conntrack = Fact::Value(Conntrack { max: 9, ..Conntrack::default() });
        facts.netfilter.nftables = Fact::Value(vec![chain]);
        let all = crate::audit::audit(&facts, Goal::Throughput).findings;
        all.into_iter().find(|one| one.id == id)
    }

    fn chain(hook: &str, priority: i32, rules: Vec<Rule>) -> Chain {
        Chain {
            family: "inet".into(),
            table: "filter".into(),
            name: "c".into(),
            hook: Some(hook.into()),
            priority,
            kind: "filter".into(),
            rules,
            ..Chain::default()
        }
    }

    fn late(between: Rule) -> Vec<Rule> {
        let mut rules = vec![rule(&["address"], "drop"); 20];
        rules.extend([between, rule(&["established"], "accept")]);
        rules
    }

    /// Planted fault: what stands before it is not looked at; then packets are no longer marked or limited.
    #[test]
    fn a_rule_goes_first_by_itself_only_where_those_before_it_let_in_or_refuse() {
        let of = |between| found(chain("input", 0, late(between)), "nf.first").unwrap();
        let plain = of(rule(&["protocol", "port 22"], "accept"));
        assert_eq!(plain.changes.len(), 1);
        assert_eq!((plain.risk, plain.changes[0].wanted.as_str()), (Risk::Security, FIRST_RULE));
        for between in [
            rule(&["address"], ""),
            rule(&["limit"], "drop"),
            rule(&["address"], "jump other"),
            Rule { besides: true, ..rule(&["address"], "drop") },
            Rule { besides: true, ..rule(&["established"], "accept") },
            rule(&["established"], "map"),
        ] {
            let by_hand = of(between);
            assert!(
                by_hand.changes.is_empty() && by_hand.by_hand.starts_with("a rule before it"),
                "{by_hand:?}"
            );
            assert!(!by_hand.apply.is_empty() && !by_hand.revert.is_empty());
        }
    }

    /// Planted fault: nft's rule goes in; then every later call of iptables says that the table is incompatible.
    #[test]
    fn a_table_that_iptables_keeps_is_left_to_a_person_and_iptables() {
        let rules = late(rule(&["protocol"], "accept"));
        let kept = Chain {
            family: "ip".into(),
            table: "filter".into(),
            name: "INPUT".into(),
            ..chain("input", 0, rules)
        };
        let made = found(kept.clone(), "nf.first").unwrap();
        assert!(made.changes.is_empty() && made.by_hand == KEPT, "{made:?}");
        assert!(made.apply[1].starts_with("sudo iptables-nft -w -t filter -I INPUT 1 "), "{made:?}");
        let own = found(Chain { name: "input".into(), ..kept }, "nf.first").unwrap();
        assert_eq!(own.changes.len(), 1);
    }

    /// Planted fault: the limit alone is raised; then every packet is looked for in lists four times as long.
    #[test]
    fn a_table_that_is_full_gets_room_and_buckets_for_it() {
        let of = |buckets| {
            let mut facts = Facts::default();
            facts.reader.network_namespace = Fact::Value("net:[9]".into());
            let table = Conntrack { count: 900, max: 1_000, buckets, ..Conntrack::default() };
            facts.netfilter.conntrack = Fact::Value(table);
            let all = crate::audit::audit(&facts, Goal::Connections).findings;
            let made = all.into_iter().find(|one| one.id == "nf.ctfull").unwrap();
            made.changes.iter().map(|spec| spec.wanted.clone()).collect::<Vec<_>>()
        };
        assert_eq!(
            (of(1_000).len(), of(8_000), of(0)),
            (2, vec!["4000".to_owned()], vec!["4000".to_owned()])
        );
    }

    /// Planted fault: what was counted since boot, or a clash of two packets, counts as a full table; then each run of tune makes it
    /// four times as large.
    #[test]
    fn a_table_with_room_is_not_full_whatever_was_counted_since_boot() {
        let of = |table: Conntrack| {
            let mut facts = Facts::default();
            facts.netfilter.conntrack = Fact::Value(Conntrack { count: 65, max: 65_536, ..table });
            let all = crate::audit::audit(&facts, Goal::Connections).findings;
            all.into_iter().any(|one| one.id == "nf.ctfull")
        };
        assert!(!of(Conntrack { insert_failed: 1, dropped: 7, ..Conntrack::default() }));
        assert!(of(Conntrack { early_drops_lately: 1, ..Conntrack::default() }));
    }

    /// Planted fault: the hook's order is not looked at; then a rule by state is advised where no packet has one.
    #[test]
    fn before_connections_are_tracked_no_rule_by_state_is_advised() {
        let rules = || vec![rule(&["address"], "drop"); 20];
        let of = |hook, priority| found(chain(hook, priority, rules()), "nf.linear").unwrap();
        let has_state = |made: &AuditFinding| made.apply.iter().any(|line| line.contains("ct state"));
        assert!(has_state(&of("input", 0)) && has_state(&of("prerouting", -150)));
        assert!(!has_state(&of("prerouting", -300)) && !has_state(&of("ingress", 0)));
        assert_eq!(found(chain("prerouting", -300, late(rule(&["address"], "drop"))), "nf.first"), None);
    }
}
