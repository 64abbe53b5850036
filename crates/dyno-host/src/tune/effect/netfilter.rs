//! Proof of a table of ours: its chains are in their hooks, its rules are in them, and their counters have moved. Proof of a
//! rule of ours in somebody's chain: it is the first, and packets came to it.
//!
//! A table is known by its comment, which stays when its rules are flushed or the table sleeps. It only reads.

use dyno_record::tune::Effect;
use dyno_sys::filter::{Chain, Rule};
use dyno_sys::netlink::nftables;

use super::seen::{Moved, Sight};

/// Rules of a namespace at most, as the facts read them.
const RULES_MAX: usize = 100_000;

pub(super) fn judge(family: &str, name: &str) -> Effect {
    let read =
        nftables::is_dormant(family, name).and_then(|sleeps| Ok((sleeps, nftables::ruleset(RULES_MAX)?)));
    match read {
        Ok((true, _)) => Effect::not_in_force(format!("table {name} is dormant: its chains are in no hook")),
        Ok((false, ruleset)) => {
            let own = |chain: &&Chain| chain.family == family && chain.table == name;
            of_chains(name, &ruleset.chains.iter().filter(own).collect::<Vec<_>>())
        }
        Err(error) => {
            Effect::not_shown(format!("the rules cannot be read: {error}"), "sudo nft list ruleset")
        }
    }
}

/// Packets that a rule of ours let through.
const PACKETS: &str = "let through";

pub(super) fn moving(family: &str, table: &str, chain: &str) -> Moved {
    let ours = nftables::ours_in(family, table, chain).ok().flatten();
    Moved::default().with(PACKETS, ours.map(|ours| ours.packets))
}

/// The rule for standing connections, which has to be the first.
pub(super) fn first(family: &str, table: &str, chain: &str, sight: &Sight<'_>) -> Effect {
    let sleeps = nftables::is_dormant(family, table);
    match sleeps.and_then(|sleeps| Ok((sleeps, nftables::ours_in(family, table, chain)?))) {
        Ok((true, _)) => Effect::not_in_force(format!("table {table} is dormant: its chains are in no hook")),
        Ok((false, None)) => Effect::in_force(format!("no rule of ours is in chain {chain}")),
        Ok((false, Some(ours))) => of_first(&ours, chain, sight.moved.of(PACKETS)),
        Err(error) => {
            Effect::not_shown(format!("the rules cannot be read: {error}"), "sudo nft list ruleset")
        }
    }
}

fn of_first(ours: &nftables::Ours, chain: &str, lately: u64) -> Effect {
    let nftables::Ours { before, packets, .. } = *ours;
    match (before, packets) {
        (1.., _) => Effect::not_in_force(format!(
            "it is rule {} of chain {chain}: somebody put others before it since",
            before + 1
        )),
        (0, 0) => Effect::not_shown(
            format!("it is the first rule of chain {chain}, and no packet of a standing connection came yet"),
            format!("its counter: sudo nft list chain … {chain}, once a connection stands"),
        ),
        (0, packets) => Effect::in_force(format!(
            "the first rule of chain {chain} has let packets through: {packets}, and {lately} of them meanwhile"
        )),
    }
}

fn of_chains(name: &str, chains: &[&Chain]) -> Effect {
    if chains.iter().all(|chain| chain.hook.is_none()) {
        return Effect::not_in_force(format!("no chain of table {name} is in a hook: no packet comes to it"));
    }
    let rules: Vec<&Rule> = chains.iter().flat_map(|chain| &chain.rules).collect();
    if rules.is_empty() {
        return Effect::not_in_force(format!("the chains of table {name} have no rule"));
    }
    let counted: Vec<u64> = rules.iter().filter_map(|rule| rule.packets).collect();
    match counted.iter().sum::<u64>() {
        _ if counted.is_empty() => Effect::not_shown(
            format!("no rule of table {name} counts packets"),
            format!("what its rules decide: sudo nft monitor trace, or counters in table {name}"),
        ),
        0 => Effect::not_shown(
            format!("no packet has come to a rule of table {name} yet"),
            format!("a packet that its rules are for: sudo nft list table {name}"),
        ),
        packets => Effect::in_force(format!("{packets} packets came to the rules of table {name}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::tune::Force;

    fn chain(hook: Option<&'static str>, packets: &[Option<u64>]) -> Chain {
        let rules = packets.iter().map(|packets| Rule { packets: *packets, ..Rule::default() }).collect();
        Chain { hook, rules, ..Chain::default() }
    }

    /// Planted fault: rules that are there are in force; then a table whose rules were flushed is too.
    #[test]
    fn rules_that_no_packet_comes_to_are_not_in_force() {
        let force = |chain: Chain| of_chains("dyno_notrack", &[&chain]).force;
        assert_eq!(force(chain(Some("prerouting"), &[Some(3)])), Force::InForce);
        assert_eq!(force(chain(Some("prerouting"), &[Some(0)])), Force::NotShown);
        assert_eq!(force(chain(Some("prerouting"), &[None])), Force::NotShown);
        assert_eq!(force(chain(None, &[Some(3)])), Force::NotInForce);
        assert_eq!(force(chain(Some("prerouting"), &[])), Force::NotInForce);
        assert_eq!(of_chains("dyno_x", &[]).force, Force::NotInForce);
    }

    /// Planted fault: its place is not looked at; then a rule behind three hundred others is in force.
    #[test]
    fn a_rule_that_is_no_longer_the_first_is_not_in_force() {
        let force = |before, packets| {
            of_first(&nftables::Ours { handles: vec![7], before, packets }, "input", 0).force
        };
        assert_eq!(
            [force(0, 9), force(0, 0), force(300, 9)],
            [Force::InForce, Force::NotShown, Force::NotInForce]
        );
    }
}
