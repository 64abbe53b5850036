//! A copy of the packet filter's rules for a namespace of ours: listed here, or where the server is, and loaded there.
//!
//! The tools list and load (nft, iptables-legacy-save); they are called by absolute path, with an empty environment.

use std::collections::BTreeSet;

use dyno_host::lab::tool;
use dyno_record::fact::{Fact, Unread};
use dyno_record::facts::{Chain, Facts};
use dyno_sys::namespace;

use crate::failure::chain;

/// Ports that rules usually let in, tried after those that are known.
const USUAL: [u16; 4] = [80, 443, 8080, 22];
/// Ports that are tried at most: each that is dropped takes half a second.
const PORTS_MAX: usize = 8;
/// What `nft list` prints where a rule is not nftables' own: it cannot be loaded again.
const FOREIGN: &str = "# xt";

/// Rules as their tools print them.
pub(super) struct Rules {
    nftables: Option<String>,
    legacy: Option<String>,
    count: usize,
}

/// The rules, where there are any.
pub(super) fn copied(facts: &Facts) -> Fact<Rules> {
    let count = |chains: &Fact<Vec<Chain>>| {
        chains.value().map_or(0, |all| all.iter().map(|chain| chain.rules.len()).sum::<usize>())
    };
    let (new, old) = (count(&facts.netfilter.nftables), count(&facts.netfilter.legacy));
    if new + old == 0 {
        return match &facts.netfilter.nftables {
            Fact::Unread(why) => Fact::Unread(why.clone()),
            _ => Fact::Absent("a rule of a packet filter".into()),
        };
    }
    let list = || -> Result<Rules, String> {
        Ok(Rules {
            nftables: if new > 0 { Some(listed("nft", &["list", "ruleset"])?) } else { None },
            legacy: if old > 0 { Some(listed("iptables-legacy-save", &[])?) } else { None },
            count: new + old,
        })
    };
    match where_the_server_is(facts, list) {
        Ok(rules) => Fact::Value(rules),
        Err(why) => Fact::Unread(Unread {
            what: "a copy of the rules".into(),
            why,
            needs: "root, and nft or iptables-legacy-save".into(),
            ..Unread::default()
        }),
    }
}

fn listed(tool: &'static str, words: &[&str]) -> Result<String, String> {
    let text = tool::run(tool, "a copy of the rules", words, "").map_err(|error| chain(&error))?;
    match text.contains(FOREIGN) {
        true => {
            Err("some rules are iptables' own kinds inside of nftables, which nft cannot load again".into())
        }
        false => Ok(text),
    }
}

/// In the server's network namespace, where one is named.
fn where_the_server_is<T: Send>(
    facts: &Facts,
    work: impl FnOnce() -> Result<T, String> + Send,
) -> Result<T, String> {
    match &facts.server {
        Some(server) => namespace::in_network_of(server.pid, work).map_err(|error| error.to_string())?,
        None => work(),
    }
}

impl Rules {
    /// Loads them into this thread's namespace.
    pub(super) fn load(&self) -> Result<(), String> {
        let load = |tool, words: &[&str], text: &Option<String>| match text {
            Some(text) => {
                tool::run(tool, "a copy of the rules", words, text).map(drop).map_err(|error| chain(&error))
            }
            None => Ok(()),
        };
        load("nft", &["-f", "-"], &self.nftables)?;
        load("iptables-legacy-restore", &[], &self.legacy)
    }

    pub(super) fn words(&self) -> String {
        format!("{} rules", self.count)
    }
}

/// Ports worth trying: the server's, those that rules name, the usual ones.
pub(super) fn ports(facts: &Facts) -> Vec<u16> {
    let own = facts.server.iter().filter_map(|server| server.listeners.value()).flatten();
    let own = own.filter_map(|listener| listener.local.rsplit(':').next()?.parse().ok());
    let chains = [&facts.netfilter.nftables, &facts.netfilter.legacy];
    let rules =
        chains.into_iter().filter_map(|chains| chains.value()).flatten().flat_map(|chain| &chain.rules);
    let named = rules.filter(|rule| rule.action == "accept").flat_map(|rule| &rule.tests);
    let named = named.filter_map(|test| test.strip_prefix("port ")?.parse().ok());
    let mut seen = BTreeSet::new();
    own.chain(named).chain(USUAL).filter(|port| *port > 0 && seen.insert(*port)).take(PORTS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_record::facts::{Netfilter, Rule};

    #[test]
    fn ports_that_rules_let_in_are_tried_before_the_usual_ones_and_each_once() {
        let rule = |test: &str, action: &str| Rule {
            tests: vec![test.into()],
            action: action.into(),
            ..Rule::default()
        };
        let chain = Chain {
            rules: vec![rule("port 9000", "accept"), rule("port 23", "drop"), rule("port 80", "accept")],
            ..Chain::default()
        };
        let netfilter = Netfilter { nftables: Fact::Value(vec![chain]), ..Netfilter::default() };
        let facts = Facts { netfilter, ..Facts::default() };
        assert_eq!(ports(&facts), [9000, 80, 443, 8080, 22]);
        assert!(matches!(copied(&Facts::default()), Fact::Unread(_)), "nobody could look");
    }
}
