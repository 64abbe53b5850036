//! A rule of ours at the head of somebody's chain of nftables: packets of standing connections are let through at once.
//!
//! Its comment tells it from everybody's rules. `nft` puts it in, netlink finds it and takes it out; no other rule is touched.

use super::kind::{Kind, not_exact};
use super::table;
use crate::netlink::nftables;
use std::io;

/// What the rule does, as it is read and written.
pub const RULE: &str = "ct state established counter accept";

pub(super) struct FirstRule<'s> {
    pub(super) family: &'s str,
    pub(super) table: &'s str,
    pub(super) chain: &'s str,
}

/// Names that mean themselves alone to nft.
pub(super) fn is_crooked(family: &str, names: [&str; 2]) -> bool {
    let begins = |name: &str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    let bad = |name: &str| !begins(name) || name.len() > 255 || !name.chars().all(plain);
    !["inet", "ip", "ip6"].contains(&family) || names.iter().any(|name| bad(name))
}

impl FirstRule<'_> {
    fn found(&self) -> io::Result<Option<nftables::Ours>> {
        nftables::ours_in(self.family, self.table, self.chain)
    }

    /// Why it is not there any more: the chain is not.
    pub(super) fn missing(&self) -> Option<String> {
        match self.found() {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => {
                Some(format!("there is no chain {} {} {} any more", self.family, self.table, self.chain))
            }
            _ => None,
        }
    }
}

impl Kind for FirstRule<'_> {
    fn get(&self) -> io::Result<String> {
        Ok(self.found()?.map_or_else(String::new, |_| RULE.to_owned()))
    }

    fn put(&self, value: &str) -> io::Result<()> {
        let (Self { family, table, chain }, found) = (self, self.found()?);
        match (value, found) {
            ("", None) => Ok(()),
            ("", Some(ours)) => nftables::delete_rules(family, table, chain, &ours.handles),
            (RULE, Some(_)) => Ok(()),
            (RULE, None) => {
                let mark = nftables::FIRST_MARK;
                table::nft(&format!("insert rule {family} {table} {chain} {RULE} comment \"{mark}\"\n"))
            }
            _ => Err(not_exact("only one rule is put first, and this is another one")),
        }
    }

    fn advises_against(&self, value: &str) -> io::Result<Option<String>> {
        if value.is_empty() {
            return Ok(None);
        }
        Ok(match self.found()? {
            Some(ours) if ours.before > 0 => Some(format!(
                "the rule is there already, and {} of somebody's stand before it: roll it back first (dyno tune rollback)",
                ours.before
            )),
            None if nftables::has_extensions(self.family, self.table)? => Some(format!(
                "iptables keeps table {}, and would refuse it whole with a rule of nft's own in it: put the rule first with iptables",
                self.table
            )),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::RULE;
    use crate::knob::KnobError;
    use crate::namespace::network;
    use crate::netlink::nftables;
    use crate::setting::Setting;
    use crate::setting::tests::{in_network, run};

    fn first() -> Setting {
        let network = network().unwrap();
        Setting::FirstRule { network, family: "inet".into(), table: "filter".into(), chain: "input".into() }
    }

    /// Somebody's rules.
    fn plant() {
        run("nft add table inet filter");
        run("nft add chain inet filter input { type filter hook input priority 0 ; policy drop ; }");
        run("nft add rule inet filter input ip saddr 192.168.9.1 drop");
        run("nft add rule inet filter input ct state established accept");
    }

    #[test]
    fn a_rule_of_ours_comes_first_and_goes_and_every_other_stays() {
        in_network(|| {
            plant();
            let before = run("nft list ruleset");
            let first = first();
            assert_eq!(first.read().unwrap(), b"");
            first.write(RULE.as_bytes()).unwrap();
            first.write(RULE.as_bytes()).unwrap();
            let ours = nftables::ours_in("inet", "filter", "input").unwrap().unwrap();
            assert_eq!((ours.handles.len(), ours.before), (1, 0), "twice written is there once");
            run("nft insert rule inet filter input tcp dport 22 accept");
            assert_eq!(nftables::ours_in("inet", "filter", "input").unwrap().unwrap().before, 1);
            assert!(
                first.holds(RULE.as_bytes()).unwrap(),
                "somebody's rule before it does not make it theirs"
            );
            first.put_back(b"").unwrap();
            assert_eq!(run("nft list ruleset").lines().count(), before.lines().count() + 1);
            assert!(!run("nft list ruleset").contains("dyno"));
            first.put_back(b"").unwrap();
        });
    }

    /// Planted fault: it stands, wherever that is; then whoever applies it again is told that all is well.
    #[test]
    fn a_rule_of_ours_behind_others_is_rolled_back_before_it_is_put_first_again() {
        in_network(|| {
            plant();
            let advice = || first().advises_against(RULE.as_bytes());
            assert_eq!(advice(), None);
            first().write(RULE.as_bytes()).unwrap();
            assert_eq!(advice(), None, "it is the first");
            run("nft insert rule inet filter input tcp dport 22 accept");
            assert!(advice().unwrap().contains("1 of somebody's"));
            assert_eq!(first().advises_against(b""), None);
        });
    }

    /// Planted fault: only names are looked at; then the next call of iptables says "table is incompatible".
    #[test]
    fn a_table_that_iptables_keeps_is_left_to_iptables() {
        in_network(|| {
            run("iptables-nft -A INPUT -m addrtype --src-type LOCAL -j ACCEPT");
            let network = network().unwrap();
            let (family, table, chain) = ("ip".into(), "filter".into(), "INPUT".into());
            let first = Setting::FirstRule { network, family, table, chain };
            let advice = first.advises_against(RULE.as_bytes()).unwrap_or_default();
            assert!(advice.contains("iptables keeps table filter"), "{advice}");
        });
    }

    /// Planted fault: the chain is looked for in a list that is cut; then a rollback forgets a rule that stands.
    #[test]
    fn a_rule_is_found_behind_more_chains_than_a_list_holds() {
        in_network(|| {
            let mut all = String::from("table inet many {\n");
            (0..10_001).for_each(|number| all += &format!("chain c{number} {{ }}\n"));
            all += "}\n";
            let path = std::env::temp_dir().join(format!("dyno-chains-{}", std::process::id()));
            std::fs::write(&path, all).unwrap();
            run(&format!("nft -f {}", path.display()));
            std::fs::remove_file(path).unwrap();
            plant();
            first().write(RULE.as_bytes()).unwrap();
            assert_eq!(first().read().unwrap(), RULE.as_bytes());
            first().put_back(b"").unwrap();
            assert_eq!(first().read().unwrap(), b"");
        });
    }

    /// Planted fault: every rule of that text is taken for ours; then the administrator's own accept is deleted.
    #[test]
    fn somebody_elses_rule_of_the_same_text_is_not_ours() {
        in_network(|| {
            plant();
            run("nft add rule inet filter input ct state established counter accept");
            let before = run("nft list ruleset");
            assert_eq!(first().read().unwrap(), b"");
            first().put_back(b"").unwrap();
            assert_eq!(run("nft list ruleset"), before);
        });
    }

    #[test]
    fn a_chain_that_has_gone_is_told_and_a_flushed_one_has_none() {
        in_network(|| {
            plant();
            first().write(RULE.as_bytes()).unwrap();
            run("nft flush chain inet filter input");
            assert_eq!(first().read().unwrap(), b"");
            run("nft flush ruleset");
            assert!(matches!(first().read(), Err(KnobError::Gone { .. })));
            assert!(matches!(first().put_back(b""), Err(KnobError::Gone { .. })));
            let network = network().unwrap();
            let hostile = Setting::FirstRule {
                network,
                family: "inet".into(),
                table: "x; flush ruleset".into(),
                chain: "input".into(),
            };
            assert!(matches!(hostile.read(), Err(KnobError::NotExact { .. })));
        });
    }
}
