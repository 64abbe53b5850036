//! The way of a packet through chains of rules: how many are asked before one decides about a packet of a standing connection.
//!
//! What a rule asks is known in kinds only, so the answer is the longest way that such a packet may take.

use dyno_record::facts::{Chain, Rule};

/// How deep chains may lead to each other (the kernel's own limit is 16, NFT_JUMP_STACK_SIZE).
const DEPTH_MAX: usize = 16;
/// Rules that are walked at most: chains that lead to each other twice grow without end.
const STEPS_MAX: usize = 200_000;

/// What such a packet meets in one chain of a hook.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Walk {
    /// Rules that were asked.
    pub(super) rules: usize,
    /// Rules before the one that lets standing connections through, where there is one.
    pub(super) before_established: Option<usize>,
}

/// Walks a chain. `ports` are those of the server, where they are known.
pub(super) fn walk(all: &[Chain], chain: &Chain, ports: &[u16]) -> Walk {
    let mut walk = Walk::default();
    let world = World { all, ports };
    world.step(chain, 0, &mut walk);
    walk
}

struct World<'f> {
    all: &'f [Chain],
    ports: &'f [u16],
}

/// Whether the packet goes on.
#[derive(PartialEq)]
enum Way {
    On,
    Decided,
    Back,
}

impl World<'_> {
    fn step(&self, chain: &Chain, depth: usize, walk: &mut Walk) -> Way {
        for rule in &chain.rules {
            if walk.rules >= STEPS_MAX {
                return Way::Decided;
            }
            walk.rules += 1;
            match self.ask(chain, rule, depth, walk) {
                Way::On => {}
                Way::Back => return Way::On,
                Way::Decided => return Way::Decided,
            }
        }
        Way::On
    }

    fn ask(&self, chain: &Chain, rule: &Rule, depth: usize, walk: &mut Walk) -> Way {
        let meets = |test: &String| self.may_meet(test);
        // Of a map of states it is taken that those that stand are accepted: that is what it is for.
        let lets_in = ["accept", "map"].contains(&rule.action.as_str());
        if lets_in && rule.tests.iter().any(|test| test == "established") {
            walk.before_established.get_or_insert(walk.rules - 1);
            return Way::Decided;
        }
        // Protocol and device are taken to fit; an address, a set or another state is not.
        let fits = rule.tests.iter().all(meets);
        match rule.action.strip_prefix("jump ") {
            Some(name) if fits && depth < DEPTH_MAX => {
                let same =
                    |one: &&Chain| one.family == chain.family && one.table == chain.table && one.name == name;
                self.all.iter().find(same).map_or(Way::On, |next| self.step(next, depth + 1, walk))
            }
            Some(_) => Way::On,
            None => match rule.action.as_str() {
                "return" if rule.tests.is_empty() => Way::Back,
                "accept" | "drop" if self.decides(rule) => Way::Decided,
                _ => Way::On,
            },
        }
    }

    fn may_meet(&self, test: &str) -> bool {
        matches!(test, "protocol" | "device" | "established") || self.is_own_port(test)
    }

    fn is_own_port(&self, test: &str) -> bool {
        let port = test.strip_prefix("port ").and_then(|port| port.parse().ok());
        port.is_some_and(|port: u16| self.ports.contains(&port))
    }

    /// A rule that decides about every packet, or about those of the server's port. A device alone decides nothing here: it
    /// may be another one.
    fn decides(&self, rule: &Rule) -> bool {
        let own = rule.tests.iter().any(|test| self.is_own_port(test));
        let all_fit = rule.tests.iter().all(|test| test == "protocol" || self.is_own_port(test));
        rule.tests.is_empty() || (own && all_fit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(tests: &[&str], action: &str) -> Rule {
        let tests = tests.iter().map(|test| (*test).to_owned()).collect();
        Rule { tests, action: action.into(), ..Rule::default() }
    }

    fn chain(name: &str, rules: Vec<Rule>) -> Chain {
        Chain { name: name.into(), rules, ..Chain::default() }
    }

    fn walked(all: &[Chain], ports: &[u16]) -> (usize, Option<usize>) {
        let walk = walk(all, &all[0], ports);
        (walk.rules, walk.before_established)
    }

    #[test]
    fn standing_connections_end_at_the_rule_that_lets_them_through() {
        let mut rules = vec![rule(&["address"], "drop"); 300];
        rules.push(rule(&["established"], "accept"));
        rules.push(rule(&["protocol", "port 80"], "accept"));
        assert_eq!(walked(&[chain("input", rules.clone())], &[]), (301, Some(300)));
        rules.rotate_right(2);
        assert_eq!(walked(&[chain("input", rules)], &[]), (1, Some(0)));
        assert_eq!(walked(&[chain("input", vec![rule(&["established"], "map")])], &[]), (1, Some(0)));
    }

    #[test]
    fn the_servers_port_decides_where_it_is_known() {
        let rules = vec![rule(&["protocol", "port 80"], "accept"), rule(&["address"], "drop")];
        assert_eq!(walked(&[chain("input", rules.clone())], &[80]), (1, None));
        assert_eq!(walked(&[chain("input", rules)], &[443]), (2, None));
    }

    #[test]
    fn other_chains_are_walked_where_every_packet_goes_there() {
        let sub = chain("sub", vec![rule(&["address"], "drop"), rule(&[], "return"), rule(&[], "drop")]);
        let all =
            |test: &[&str]| [chain("input", vec![rule(test, "jump sub"), rule(&[], "accept")]), sub.clone()];
        assert_eq!(walked(&all(&[]), &[]), (4, None));
        assert_eq!(walked(&all(&["address"]), &[]), (2, None), "an address sends nobody there");
    }

    #[test]
    fn chains_that_lead_to_each_other_for_ever_end() {
        let to = |name: &str| vec![rule(&[], &format!("jump {name}")); 8];
        let all = [chain("a", to("b")), chain("b", to("a"))];
        assert!(walked(&all, &[]).0 <= STEPS_MAX);
    }
}
