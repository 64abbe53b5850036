//! What other tools look at and what bears on a server's speed: compiled filters, pages that wait to be written, neighbours.

use dyno_record::audit::Risk;
use dyno_record::change::What;
use dyno_record::fact::Gap;
use dyno_record::facts::Facts;

use super::draft::{ALL, Check, FAST, LATENCY, Looked, Say, Seen, finding, unknown, with_sysctl};
use super::moved::counted;

pub(super) const CHECKS: &[Check] = &[
    Check { id: "host.jit", about: "whether filters are compiled, and how", look: compiled },
    Check { id: "host.writeback", about: "how much may wait to be written", look: write_back },
    Check { id: "net.neigh", about: "room for neighbours", look: neighbours },
];

/// Compiling is off on old kernels, and hardened on kernels that somebody made safer: constants are blinded for everybody with 2.
fn compiled(facts: &Facts) -> Seen {
    let enabled = facts.sysctl("net.core.bpf_jit_enable")?;
    // Root alone may read it: where it was not read, nothing is known of it.
    let hardened = facts.sysctl("net.core.bpf_jit_harden");
    let told = hardened.as_ref().map_or_else(|_| "not read", |hardened| *hardened);
    let found = format!("net.core.bpf_jit_enable={enabled}, net.core.bpf_jit_harden={told}");
    if enabled == "0" {
        let made = finding(
            "Filters of packets and system calls are interpreted, one instruction after the other",
            found,
            "1",
        )
        .gain(
            FAST,
            unknown("several times the cost of each filter; dyno audit --measure says what those here cost"),
        )
        .risk(
            Risk::Security,
            "code that is made from a filter's text can be abused where the kernel has other holes",
        )
        .why("Seccomp, taps, XDP and traffic control run programs for each call or packet.");
        return Ok(with_sysctl(made, "net.core.bpf_jit_enable", "1", enabled).into());
    }
    let hardened = match hardened {
        Err(Gap::Absent(_)) => "0",
        hardened => hardened?,
    };
    if hardened != "2" {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "Constants in all filters are disguised, also in those of root",
        found,
        "1: those of users without rights alone",
    )
    .gain(FAST, unknown("some instructions more for each constant of a filter"))
    .choice()
    .risk(Risk::Security, "constants of root's programs can be placed in the kernel's code; Lynis asks for 2")
    .why("The kernel splits each constant in two, and puts it together whenever the filter runs.");
    Ok(with_sysctl(made, "net.core.bpf_jit_harden", "1", hardened).into())
}

/// Percent of memory from which a writer may stand still for long: TuneD's profiles for latency have 10.
const DIRTY_MAX: i64 = 10;
/// And of what is dirty from which it is written in the background.
const BEHIND_MAX: i64 = 3;
/// On smaller machines a fifth of memory is written in a second or two.
const MEMORY_MIN: u64 = 16 << 30;

fn write_back(facts: &Facts) -> Seen {
    let ratio = facts.sysctl_number("vm.dirty_ratio")?;
    let behind = facts.sysctl_number("vm.dirty_background_ratio")?;
    let memory = facts.memory_bytes()?;
    let found = format!(
        "vm.dirty_ratio={ratio}, vm.dirty_background_ratio={behind}: up to {:.1} GB may wait",
        memory as f64 * ratio as f64 / 100.0 / 1e9
    );
    // 0: a number of bytes stands in its place.
    if ratio <= DIRTY_MAX || memory < MEMORY_MIN {
        return Ok(Looked::Fine(found));
    }
    // 0: a number of bytes stands in its place.
    let is_late = behind > BEHIND_MAX;
    let wanted = match is_late {
        true => format!("vm.dirty_ratio={DIRTY_MAX}, vm.dirty_background_ratio={BEHIND_MAX}"),
        false => format!("vm.dirty_ratio={DIRTY_MAX}"),
    };
    let made = finding("Much data may wait to be written to disk, and then every writer waits for the disk", found, wanted)
        .gain(LATENCY, unknown("nothing while nobody writes; TuneD sets it for latency, and the opposite (40) for throughput"))
        .risk(Risk::Operational, "disks are written to sooner and more evenly")
        .why("A program that writes when that share of memory is dirty stands still until the disk has caught up: a log line then waits for seconds.");
    let made = with_sysctl(made, "vm.dirty_ratio", &DIRTY_MAX.to_string(), &ratio.to_string());
    if !is_late {
        return Ok(made.into());
    }
    let name = "vm.dirty_background_ratio";
    let set = |value: i64| format!("sudo sysctl -w {name}={value}");
    let mut made =
        made.set(What::File("/proc/sys/vm/dirty_background_ratio".into()), &BEHIND_MAX.to_string());
    made.see.push(format!("sysctl {name}"));
    made.apply.push(set(BEHIND_MAX));
    made.revert.push(set(behind));
    Ok(made.into())
}

/// Percent of the table from which it is worth a sentence.
const NEIGHBOURS_MAX: u64 = 80;

fn neighbours(facts: &Facts) -> Seen {
    let counters = facts.network.counters.known()?;
    let most = facts.sysctl_number("net.ipv4.neigh.default.gc_thresh3")?;
    let Some(entries) = counters.get("NeighbourEntries").copied() else {
        return Ok(Looked::NotHere("a table of neighbours".into()));
    };
    let (lately, fulls) = counted(facts, &["NeighbourTableFull"])?;
    let found = format!("{entries} of {most}; the table was full {fulls} times (now {lately})");
    let most_known = u64::try_from(most).unwrap_or(0).max(1);
    if lately == 0 && 100 * entries < NEIGHBOURS_MAX * most_known {
        return Ok(Looked::Fine(found));
    }
    let wanted = (4 * most_known).to_string();
    let made = finding("The table of machines on the own network (ARP) is full, or nearly", found, format!("{wanted} or more"))
        .gain(ALL, unknown("packets to a neighbour that finds no room are lost"))
        .loses()
        .risk(Risk::Operational, "a little memory for each neighbour")
        .why("Each machine or container on the own network takes an entry. Packets to one that finds no room are dropped.");
    Ok(with_sysctl(made, "net.ipv4.neigh.default.gc_thresh3", &wanted, &most.to_string()).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Audit, Goal};
    use dyno_record::fact::{Fact, Unread};

    fn judged(sysctls: &[(&str, &str)], unread: &[&str]) -> Audit {
        let mut facts = Facts::default();
        facts.memory.total_bytes = 64 << 30;
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        let known =
            sysctls.iter().map(|(name, value)| ((*name).to_owned(), Fact::Value((*value).to_owned())));
        let hidden = unread.iter().map(|name| ((*name).to_owned(), Fact::Unread(Unread::default())));
        facts.sysctls = known.chain(hidden).collect();
        crate::audit::audit(&facts, Goal::Latency)
    }

    /// Planted fault: what was not read counts as 0; then without root it is told as fine.
    #[test]
    fn hardening_that_only_root_may_read_is_not_fine_without_root() {
        let without = judged(&[("net.core.bpf_jit_enable", "1")], &["net.core.bpf_jit_harden"]);
        assert!(without.fine.iter().all(|one| one.id != "host.jit"));
        assert!(without.not_looked_at.iter().any(|one| one.id == "host.jit"));
        let off = judged(&[("net.core.bpf_jit_enable", "0")], &["net.core.bpf_jit_harden"]);
        let made = off.findings.iter().find(|one| one.id == "host.jit").unwrap();
        assert!(made.found.ends_with("not read"), "{}", made.found);
    }

    /// Planted fault: one of the two is set; then the other is only promised.
    #[test]
    fn both_shares_of_dirty_memory_are_set_and_set_back() {
        let of = |behind: &str| {
            let all = judged(&[("vm.dirty_ratio", "20"), ("vm.dirty_background_ratio", behind)], &[]);
            all.findings.into_iter().find(|one| one.id == "host.writeback").unwrap()
        };
        let made = of("10");
        let wanted: Vec<&str> = made.changes.iter().map(|spec| spec.wanted.as_str()).collect();
        assert_eq!(
            (wanted, made.revert[1].as_str()),
            (vec!["10", "3"], "sudo sysctl -w vm.dirty_background_ratio=10")
        );
        assert_eq!((of("3").changes.len(), of("0").changes.len()), (1, 1), "low already, or in bytes");
    }
}
