//! The host's memory: huge pages, swap, and who tidies up.

use dyno_record::audit::Risk;
use dyno_record::facts::Facts;

use super::draft::{
    ALL, Check, FAST, LATENCY, Looked, Say, Seen, finding, measured, unknown, with_file, with_sysctl,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "host.thp", about: "huge pages without asking", look: huge_pages },
    Check { id: "host.defrag", about: "waiting for huge pages", look: defrag },
    Check { id: "host.swap", about: "memory on a disk", look: swap },
    Check { id: "host.pressure", about: "tasks that wait for memory", look: pressure },
    Check { id: "host.numa", about: "moving memory between nodes", look: numa },
    Check { id: "host.ksm", about: "merging equal pages", look: merging },
];

const THP: &str = "/sys/kernel/mm/transparent_hugepage";

fn huge_pages(facts: &Facts) -> Seen {
    let value = facts.memory.thp.known()?;
    if !value.contains("[never]") {
        return Ok(Looked::fine(value));
    }
    let made = finding("No program gets huge pages, not even one that asks for them", value, "madvise: those that ask")
        .gain(FAST, measured(25.0, 31.0, "of the time of a random load in a table of 1 to 4 GB; not of a request"))
        .choice()
        .risk(Risk::Operational, "programs that ask for them use more memory")
        .why("A processor remembers where some thousand pages of memory lie. Huge pages are 512 times as large, so that these cover more.");
    Ok(with_file(made, &format!("{THP}/enabled"), "madvise", value).into())
}

fn defrag(facts: &Facts) -> Seen {
    let value = facts.memory.thp_defrag.known()?;
    let is_on = facts.memory.thp.value().is_some_and(|thp| thp.contains("[always]"));
    if !(value.contains("[always]") && is_on) {
        return Ok(Looked::fine(value));
    }
    let made = finding(
        "A program that touches new memory may wait until memory was tidied up",
        value,
        "defer+madvise",
    )
    .gain(LATENCY, unknown("pauses of milliseconds when memory is fragmented"))
    .risk(Risk::None, "")
    .why("With 'always', a program that needs a huge page waits while the kernel moves other pages aside.");
    Ok(with_file(made, &format!("{THP}/defrag"), "defer+madvise", value).into())
}

/// As TuneD's profiles for servers have it.
const SWAPPINESS_WANTED: u64 = 10;

fn swap(facts: &Facts) -> Seen {
    let areas = facts.memory.swaps.known()?;
    let swappiness = facts.sysctl("vm.swappiness")?;
    let used: u64 = areas.iter().filter(|area| area.is_on_disk()).map(|area| area.used_bytes).sum();
    let found = format!(
        "{} MB used of {} MB, vm.swappiness={swappiness}",
        used >> 20,
        areas.iter().map(|area| area.bytes).sum::<u64>() >> 20
    );
    if used == 0 {
        return Ok(Looked::Fine(found));
    }
    let is_low = swappiness.trim().parse::<u64>().is_ok_and(|value| value <= SWAPPINESS_WANTED);
    let better = if is_low { "memory enough" } else { "memory enough, or vm.swappiness=10" };
    let made = finding("Part of the memory lies on a disk", found, better)
        .gain(LATENCY, unknown("a request that needs that part waits for the disk"))
        .risk(Risk::Operational, "files are forgotten before programs are")
        .why("What was swapped out is read back page by page when it is touched. dyno audit --pid says whether it is the server's.");
    if is_low {
        let made = made.see(&["cat /proc/swaps", "vmstat 1 5"]).hand("vm.swappiness is low already");
        return Ok(made.apply(&["more memory, or fewer programs"]).revert(&["nothing to revert"]).into());
    }
    Ok(with_sysctl(made, "vm.swappiness", &SWAPPINESS_WANTED.to_string(), swappiness).into())
}

/// Percent of ten seconds in which some task waited for memory.
const WAITING_MIN: f64 = 1.0;

fn pressure(facts: &Facts) -> Seen {
    let Some(memory) = facts.cpus.pressure.get("memory") else {
        return Ok(Looked::NotHere("pressure of memory".into()));
    };
    let memory = *memory.known()?;
    let found = format!("{:.2} % of 10 s, {:.2} % of a minute", memory.avg10, memory.avg60);
    if memory.avg10 < WAITING_MIN {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("Programs wait for memory", found, "0 %")
        .gain(ALL, unknown("the share of time that they wait"))
        .loses()
        .risk(Risk::Operational, "something has to use less")
        .why("The kernel looks for memory that it can take from somebody, and whoever asked waits meanwhile.")
        .see(&["cat /proc/pressure/memory", "ps aux --sort -rss"])
        .apply(&["more memory, or fewer programs"])
        .revert(&["nothing to revert"])
        .into())
}

/// `NUMA_BALANCING_NORMAL`; the other bit is `NUMA_BALANCING_MEMORY_TIERING` (Linux 5.18, admin-guide/sysctl/kernel).
const NUMA_BY_USE: u32 = 1;

fn numa(facts: &Facts) -> Seen {
    let nodes = facts.cpus.nodes.known()?.len();
    let value = facts.sysctl("kernel.numa_balancing")?;
    let found = format!("kernel.numa_balancing={value}, {nodes} memory nodes");
    // 1 is by use; 2 moves what is used little to slower memory, and is no hunt for the nearest node.
    let by_use = value.trim().parse::<u32>().is_ok_and(|bits| bits & NUMA_BY_USE != 0);
    if !by_use || nodes < 2 {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "The kernel moves memory between nodes while programs run",
        found,
        "0, where the server's processes are bound to nodes",
    )
    .gain(LATENCY, unknown("no machine with several nodes was at hand; tuned turns it off for latency"))
    .risk(Risk::Operational, "a program that is not bound may stay far from its memory")
    .why("To learn which CPU uses a page, the kernel takes it away for a moment; the next access then has to ask the kernel for it.");
    let rest = value.trim().parse::<u32>().map_or(0, |bits| bits & !NUMA_BY_USE).to_string();
    Ok(with_sysctl(made, "kernel.numa_balancing", &rest, value).into())
}

fn merging(facts: &Facts) -> Seen {
    let value = facts.memory.ksm.known()?;
    if value != "1" {
        return Ok(Looked::fine(format!("ksm run={value}")));
    }
    let made = finding(
        "The kernel searches memory for equal pages, to keep each of them once",
        format!("ksm run={value}"),
        "0, where no virtual machines run here",
    )
    .gain(FAST, unknown("its CPU time, and a fault for each write to a merged page"))
    .risk(Risk::Operational, "memory that was merged is needed again")
    .why("A merged page is copied when somebody writes to it.");
    Ok(with_file(made, "/sys/kernel/mm/ksm/run", "0", value).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{AuditFinding, Goal};
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Node, Swap};

    /// Planted fault: anything but 0 counts; then tiers of memory are turned off.
    #[test]
    fn tiers_of_memory_stay_when_moving_by_use_is_turned_off() {
        let of = |value: &str| {
            let mut facts = Facts::default();
            facts.cpus.nodes = Fact::Value(vec![Node::default(); 2]);
            facts.sysctls.insert("kernel.numa_balancing".into(), Fact::Value(value.into()));
            facts.reader.network_namespace = Fact::Value("net:[9]".into());
            let found = crate::audit::audit(&facts, Goal::Latency).findings;
            found.into_iter().find(|one| one.id == "host.numa").map(|one| one.changes[0].wanted.clone())
        };
        assert_eq!([of("0"), of("1"), of("2"), of("3")], [None, Some("0".into()), None, Some("2".into())]);
    }

    fn swapped(name: &str, swappiness: &str) -> Option<AuditFinding> {
        let mut facts = Facts::default();
        let area = Swap { name: name.into(), bytes: 8 << 30, used_bytes: 1 << 30 };
        facts.memory.swaps = Fact::Value(vec![area]);
        facts.sysctls.insert("vm.swappiness".into(), Fact::Value(swappiness.into()));
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        let found = crate::audit::audit(&facts, Goal::Latency).findings;
        found.into_iter().find(|one| one.id == "host.swap")
    }

    /// Planted fault: a constant; then a host with 1 is advised to swap more.
    #[test]
    fn a_swappiness_that_is_low_already_is_not_advised_and_compressed_memory_is_no_disk() {
        assert_eq!(swapped("/dev/vda2", "60").unwrap().changes[0].wanted, "10");
        let low = swapped("/dev/vda2", "1").unwrap();
        assert!(low.changes.is_empty() && low.recommended == "memory enough", "{low:?}");
        assert_eq!(swapped("/dev/zram0", "60"), None);
    }
}
