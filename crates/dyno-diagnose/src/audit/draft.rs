//! What every check is made of: its answer, findings with their gains and prices, and commands that can be pasted.

use dyno_record::audit::{AuditFinding, Gain, Goal, Level, Prices, Risk, Source};
use dyno_record::change::{self, ChangeSpec, What};
use dyno_record::fact::{Fact, Gap, Unread};
use dyno_record::facts::{Facts, Server};

/// A check.
pub(super) struct Check {
    /// Its name, for ever.
    pub(super) id: &'static str,
    /// What it looks at, in a few words.
    pub(super) about: &'static str,
    pub(super) look: fn(&Facts) -> Seen,
}

/// What a check says; a fact that is not at hand is its error.
pub(super) type Seen = Result<Looked, Gap>;

/// What a check saw.
pub(super) enum Looked {
    /// Nothing to change; the raw value.
    Fine(String),
    /// There is no such thing here.
    NotHere(String),
    /// Something costs speed.
    Found(Vec<AuditFinding>),
}

impl Looked {
    pub(super) fn fine(found: impl Into<String>) -> Looked {
        Looked::Fine(found.into())
    }

    /// Findings, or the raw value where there are none.
    pub(super) fn found_or(findings: Vec<AuditFinding>, fine: impl FnOnce() -> String) -> Looked {
        if findings.is_empty() { Looked::Fine(fine()) } else { Looked::Found(findings) }
    }
}

impl From<AuditFinding> for Looked {
    fn from(finding: AuditFinding) -> Self {
        Looked::Found(vec![finding])
    }
}

pub(super) const FAST: &[Goal] = &[Goal::Throughput, Goal::Latency];
pub(super) const THROUGHPUT: &[Goal] = &[Goal::Throughput];
pub(super) const LATENCY: &[Goal] = &[Goal::Latency];
pub(super) const CONNECTIONS: &[Goal] = &[Goal::Connections];
pub(super) const MEMORY: &[Goal] = &[Goal::Memory];
pub(super) const ALL: &[Goal] = &Goal::ALL;

/// The machine that figures of docs/ladder.md marked [E] come from.
const ELSEWHERE: &str = "on a 2-CPU virtual machine, Linux 6.18, 64 connections, small replies";
/// The published ladder.
const PUBLISHED: &str = "published by M. Richards, 2021: 4 virtual CPUs, Linux 4.14";

/// A figure that this project measured, before it began, on another machine: the least and the most percent.
pub(super) fn measured(least: f64, most: f64, what: &str) -> Gain {
    Gain {
        percent: Some([least, most]),
        source: Source::MeasuredElsewhere,
        of: format!("{what}; {ELSEWHERE}"),
    }
}

/// A figure that somebody published.
pub(super) fn published(percent: f64, what: &str) -> Gain {
    let of = format!("{what}; {PUBLISHED}");
    Gain { percent: Some([percent, percent]), source: Source::MeasuredElsewhere, of }
}

/// A figure that was measured on this machine: the least and the most percent. What is below nothing is nothing.
pub(super) fn measured_here([least, most]: [f64; 2], what: String) -> Gain {
    let percent = [least, most].map(|percent| (percent.clamp(0.0, 100.0) * 10.0).round() / 10.0);
    Gain { percent: Some(percent), source: Source::MeasuredHere, of: what }
}

/// Nobody's figure is known.
pub(super) fn unknown(what: &str) -> Gain {
    Gain { percent: None, source: Source::NoneFound, of: what.to_owned() }
}

/// A finding with its title, the raw value, and what it should be.
pub(super) fn finding(
    title: impl Into<String>,
    found: impl Into<String>,
    recommended: impl Into<String>,
) -> AuditFinding {
    AuditFinding {
        title: title.into(),
        found: found.into(),
        recommended: recommended.into(),
        ..AuditFinding::default()
    }
}

/// What is said of a finding, one thing after the other.
pub(super) trait Say: Sized {
    fn about(self, object: impl Into<String>) -> Self;
    fn gain(self, goals: &[Goal], gain: Gain) -> Self;
    /// Packets or connections are lost.
    fn loses(self) -> Self;
    /// A choice that somebody made for another reason than speed: the level says nothing of it.
    fn choice(self) -> Self;
    fn risk(self, risk: Risk, price: &str) -> Self;
    fn why(self, why: &str) -> Self;
    /// Why it takes a person.
    fn hand(self, why: &str) -> Self;
    fn see(self, commands: &[&str]) -> Self;
    fn apply(self, commands: &[&str]) -> Self;
    fn revert(self, commands: &[&str]) -> Self;
    /// What `dyno tune` would set, and where it is to stand. Namespaces and devices are named when the audit is whole.
    fn set(self, what: What, wanted: &str) -> Self;
}

/// Percent from which a gain is medium, and high.
const MEDIUM: f64 = 3.0;
const HIGH: f64 = 10.0;

impl Say for AuditFinding {
    fn about(mut self, object: impl Into<String>) -> Self {
        self.object = object.into();
        self
    }

    fn gain(mut self, goals: &[Goal], gain: Gain) -> Self {
        self.goals = goals.to_vec();
        self.level = match gain.percent {
            Some([_, most]) if most >= HIGH => Level::High,
            Some([_, most]) if most >= MEDIUM => Level::Medium,
            _ => Level::Low,
        };
        self.gain = gain;
        self
    }

    fn loses(mut self) -> Self {
        self.level = Level::High;
        self
    }

    fn choice(mut self) -> Self {
        self.level = Level::Low;
        self
    }

    fn risk(mut self, risk: Risk, price: &str) -> Self {
        self.risk = risk;
        let price = price.to_owned();
        match risk {
            Risk::Reboot | Risk::Security => self.prices.security = price,
            Risk::Durability => self.prices.durability = price,
            Risk::CpuBurn => self.prices.cpu = price,
            Risk::Operational => self.prices.operability = price,
            Risk::None => self.prices = Prices::default(),
        }
        self
    }

    fn why(mut self, why: &str) -> Self {
        self.why = why.to_owned();
        self
    }

    fn hand(mut self, why: &str) -> Self {
        self.by_hand = why.to_owned();
        self
    }

    fn see(mut self, commands: &[&str]) -> Self {
        self.see = owned(commands);
        self
    }

    fn apply(mut self, commands: &[&str]) -> Self {
        self.apply = owned(commands);
        self
    }

    fn revert(mut self, commands: &[&str]) -> Self {
        self.revert = owned(commands);
        self
    }

    fn set(mut self, what: What, wanted: &str) -> Self {
        self.changes.push(ChangeSpec { what, wanted: wanted.to_owned(), why: self.title.clone() });
        self
    }
}

fn owned(commands: &[&str]) -> Vec<String> {
    commands.iter().map(|command| (*command).to_owned()).collect()
}

/// How a sysctl is seen, set, and set back.
pub(super) fn with_sysctl(finding: AuditFinding, name: &str, wanted: &str, was: &str) -> AuditFinding {
    let set = |value: &str| format!("sudo sysctl -w {name}={}", quoted(value));
    let file = What::File(format!("/proc/sys/{}", name.replace('.', "/")));
    finding.see(&[&format!("sysctl {name}")]).apply(&[&set(wanted)]).revert(&[&set(was)]).set(file, wanted)
}

/// How a file under /sys is seen, written, and written back. A choice goes back to its word in brackets.
pub(super) fn with_file(finding: AuditFinding, path: &str, wanted: &str, was: &str) -> AuditFinding {
    let target = quoted(path);
    let was =
        was.split_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']')).unwrap_or(was);
    let set = |value: &str| format!("echo {} | sudo tee {target}", quoted(value));
    let file = What::File(path.to_owned());
    finding
        .see(&[&format!("cat {}", quoted(path))])
        .apply(&[&set(wanted)])
        .revert(&[&set(was)])
        .set(file, wanted)
}

/// A device that is named; its number and its namespace are entered when the audit is whole.
pub(super) fn device(name: &str) -> change::Device {
    change::Device { name: name.to_owned(), ..change::Device::default() }
}

/// A word as a shell reads it back: names of devices and processes are whatever their makers chose.
pub(super) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The value, or nothing where there is no such thing. What could not be read is no nothing: it ends the check.
pub(super) fn present<T>(fact: &Fact<T>) -> Result<Option<&T>, Gap> {
    match fact.known() {
        Ok(value) => Ok(Some(value)),
        Err(Gap::Absent(_)) => Ok(None),
        Err(gap) => Err(gap),
    }
}

/// The server that was named.
pub(super) fn server(facts: &Facts) -> Result<&Server, Gap> {
    facts.server.as_ref().ok_or_else(|| {
        Gap::Unread(Unread {
            why: "no server is named".into(),
            needs: "dyno audit --pid PID".into(),
            ..Unread::default()
        })
    })
}

/// A count with its noun: `1 rule`, `3 rules`, `2 addresses`.
pub(super) fn counted(count: usize, one: &str) -> String {
    match (count, one.ends_with('s')) {
        (1, _) => format!("1 {one}"),
        (_, true) => format!("{count} {one}es"),
        (_, false) => format!("{count} {one}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_follows_from_the_most_that_is_known() {
        let level = |most| finding("", "", "").gain(FAST, measured(0.0, most, "x")).level;
        assert_eq!((level(2.9), level(3.0), level(10.0)), (Level::Low, Level::Medium, Level::High));
        assert_eq!(finding("", "", "").gain(FAST, unknown("x")).loses().level, Level::High);
        assert_eq!(finding("", "", "").gain(FAST, measured(0.0, 28.0, "x")).choice().level, Level::Low);
    }

    #[test]
    fn commands_set_back_what_was_there_and_quote_what_is_hostile() {
        let thp = with_file(finding("", "", ""), "/sys/x", "always", "always [madvise] never");
        assert_eq!(thp.revert, ["echo madvise | sudo tee /sys/x"]);
        let rmem = with_sysctl(finding("", "", ""), "net.ipv4.tcp_rmem", "4096 131072 6291456", "4096\t1\t2");
        assert_eq!(rmem.apply, ["sudo sysctl -w net.ipv4.tcp_rmem='4096 131072 6291456'"]);
        assert_eq!(quoted("a'b;$(x)"), r"'a'\''b;$(x)'");
    }
}
