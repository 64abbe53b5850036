//! A table of nftables of our own: chains and rules are loaded whole by `nft -f`, read and deleted by netlink.
//!
//! Its comment holds a hash of what was loaded, so that it is known again; nobody else's table is read as ours or deleted.

use super::kind::{Kind, not_exact};
use crate::netlink::attribute::{find, put};
use crate::netlink::socket::{Netlink, Protocol, Until};
use std::io::{self, Write};
use std::process::{Command, Stdio};

/// Every table of ours begins with it.
pub const PREFIX: &str = "dyno_";
/// Where the tool is installed; it is called by its path, with nothing of this process's environment.
const TOOLS: [&str; 3] = ["/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"];
/// `NFNL_SUBSYS_NFTABLES`.
const SUBSYSTEM: u16 = 10;
const GET_TABLE: u16 = SUBSYSTEM << 8 | 1;
const DELETE_TABLE: u16 = SUBSYSTEM << 8 | 2;
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const ACK: u16 = 4;
/// The comment's beginning; a hash follows.
const COMMENT: &str = "dyno:";

pub(super) struct Table<'s> {
    pub(super) family: &'s str,
    pub(super) name: &'s str,
}

pub(super) fn is_crooked(family: &str, name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    number(family).is_none() || !name.starts_with(PREFIX) || name.len() > 64 || !name.chars().all(plain)
}

fn number(family: &str) -> Option<u8> {
    match family {
        "inet" => Some(1),
        "ip" => Some(2),
        "ip6" => Some(10),
        _ => None,
    }
}

impl Table<'_> {
    fn head(&self) -> [u8; 4] {
        [number(self.family).unwrap_or(0), 0, 0, 0]
    }

    fn request(&self) -> Vec<u8> {
        let mut body = self.head().to_vec();
        put(&mut body, 1, &[self.name.as_bytes(), b"\0"].concat());
        body
    }

    fn delete(&self) -> io::Result<()> {
        // The batch's head names the subsystem, in the network's order.
        let batch = [0, 0, 0, SUBSYSTEM as u8];
        let body = self.request();
        Netlink::open(Protocol::Netfilter)?.tell_all(&[
            (BATCH_BEGIN, 0, &batch),
            (DELETE_TABLE, ACK, &body),
            (BATCH_END, 0, &batch),
        ])
    }

    fn load(&self, rules: &str) -> io::Result<()> {
        let (family, name, mark) = (self.family, self.name, mark(rules));
        nft(&format!(
            "add table {family} {name}\ndelete table {family} {name}\n\
             table {family} {name} {{\ncomment \"{mark}\"\n{rules}\n}}\n"
        ))
    }
}

impl Kind for Table<'_> {
    /// Nothing, or our mark: the rules themselves are told by their hash.
    fn get(&self) -> io::Result<String> {
        let mut comment = String::new();
        let mut netlink = Netlink::open(Protocol::Netfilter)?;
        let asked = netlink.ask((GET_TABLE, &self.request()), Until::First, 1, &mut |message| {
            let data =
                find(message.get(4..).unwrap_or_default(), 6).map(|data| data.bytes).unwrap_or_default();
            comment = String::from_utf8_lossy(data).into_owned();
        });
        match asked {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => Ok(String::new()),
            Err(error) => Err(error),
            Ok(_) => {
                let mark = comment.find(COMMENT).map(|at| comment[at..].trim_end_matches('\0').to_owned());
                mark.ok_or_else(|| not_exact("a table of that name is there, and was not made by us"))
            }
        }
    }

    fn put(&self, value: &str) -> io::Result<()> {
        match value {
            "" => self.delete(),
            value if value.starts_with(COMMENT) => Err(not_exact("its rules are not known any more")),
            rules if is_balanced(rules) => self.load(rules),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "its braces do not match")),
        }
    }

    fn same(&self, reads: &str, wanted: &str) -> bool {
        reads == wanted || (!wanted.is_empty() && reads == mark(wanted))
    }
}

/// What is loaded stays inside our table.
fn is_balanced(rules: &str) -> bool {
    let depth = rules.chars().try_fold(0u32, |depth, c| match c {
        '{' => depth.checked_add(1),
        '}' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0) && !rules.contains('#')
}

/// FNV-1a of the rules: tells them from others, and guards against nobody.
fn mark(rules: &str) -> String {
    let hash = rules.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{COMMENT}{hash:016x}")
}

pub(super) fn nft(script: &str) -> io::Result<()> {
    let tool = TOOLS.iter().find(|path| std::path::Path::new(path).exists());
    let tool = tool
        .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "nft is not installed (package nftables)"))?;
    let mut command = Command::new(tool);
    command.args(["-f", "-"]).env_clear().env("LC_ALL", "C").current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let fed = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(script.as_bytes()));
    let output = child.wait_with_output()?;
    match output.status.success() {
        true => fed,
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(io::Error::other(format!("nft: {}", said.lines().next().unwrap_or_default())))
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::{is_balanced, mark};
    use crate::knob::KnobError;
    use crate::namespace::network;
    use crate::setting::Setting;
    use crate::setting::tests::{in_network, run};

    const RULES: &str = "chain early { type filter hook prerouting priority raw; tcp dport 8080 notrack; }";

    fn table(name: &str) -> Setting {
        Setting::Table { network: network().unwrap(), family: "inet".into(), name: name.into() }
    }

    #[test]
    fn a_table_of_ours_is_loaded_known_again_and_deleted() {
        in_network(|| {
            let before = run("nft -s list ruleset");
            let ours = table("dyno_test");
            assert_eq!(ours.read().unwrap(), b"");
            ours.write(RULES.as_bytes()).unwrap();
            assert!(run("nft list ruleset").contains("notrack"));
            assert!(ours.holds(RULES.as_bytes()).unwrap() && !ours.holds(b"chain x { }").unwrap());
            ours.write(b"chain other { }").unwrap();
            assert!(!run("nft list ruleset").contains("notrack"));
            ours.put_back(b"").unwrap();
            assert_eq!(run("nft -s list ruleset"), before);
        });
    }

    /// Planted fault: `get` takes any table of the name for ours; then it is deleted.
    #[test]
    fn somebody_elses_table_is_neither_changed_nor_deleted() {
        in_network(|| {
            run("nft add table inet dyno_theirs");
            let theirs = table("dyno_theirs");
            assert!(matches!(theirs.write(RULES.as_bytes()), Err(KnobError::NotExact { .. })));
            assert!(theirs.put_back(b"").is_err());
            assert!(run("nft list ruleset").contains("dyno_theirs"));
            assert!(matches!(table("filter").write(RULES.as_bytes()), Err(KnobError::NotExact { .. })));
        });
    }

    #[test]
    fn a_bad_rule_loads_nothing_and_no_rule_leaves_the_table() {
        in_network(|| {
            let ours = table("dyno_test");
            for rules in ["chain x { no such rule }", "} table inet other { chain x { }", "chain x { # }"] {
                assert!(ours.write(rules.as_bytes()).is_err(), "{rules}");
                assert_eq!((ours.read().unwrap(), run("nft list ruleset")), (vec![], String::new()));
            }
            assert!(is_balanced(RULES) && !is_balanced("}{") && mark("a") != mark("b"));
        });
    }
}
