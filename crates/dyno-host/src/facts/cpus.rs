//! The processors: how they lie, idle, run, wait, and who interrupts them.

use std::collections::BTreeMap;

use dyno_record::fact::Fact;
use dyno_record::facts::{Cache, Cpus, Frequency, Idle, IdleState, Interrupt, Node, Pressure, TimeShares};
use dyno_sys::proc::{self, CpuStat};

use super::limits::{CPUS_MAX, INTERRUPTS_MAX};
use super::read::{by_cpu, fact, number, parsed, text};

const CPU: &str = "/sys/devices/system/cpu";

/// All of it, but what they did while the facts were read.
pub(super) fn cpus() -> Cpus {
    let machine = proc::machine();
    Cpus {
        model: machine.model,
        hypervisor: machine.vm,
        online: text(&format!("{CPU}/online")),
        count: machine.cpus.len() as u32,
        isolated: text(&format!("{CPU}/isolated")),
        smt: text(&format!("{CPU}/smt/control")),
        nodes: nodes(),
        caches: caches(),
        idle: idle(),
        frequency: frequency(),
        since_boot: Fact::Value(shares(&[], &proc::cpu_stat())),
        lately: Fact::default(),
        pressure: ["cpu", "memory", "io"].map(|name| (name.to_owned(), pressure(name))).into(),
        interrupts: interrupts(),
        irqbalance: Fact::default(),
    }
}

/// Shares of all CPUs' time between two readings; with nothing before it is since boot.
pub(super) fn shares(before: &[CpuStat], after: &[CpuStat]) -> TimeShares {
    let of = |all: &[CpuStat], part: fn(&CpuStat) -> u64| -> f64 { all.iter().map(part).sum::<u64>() as f64 };
    let between = |part: fn(&CpuStat) -> u64| of(after, part) - of(before, part);
    let idle = between(|cpu| cpu.idle + cpu.iowait);
    let (steal, softirq) = (between(|cpu| cpu.steal), between(|cpu| cpu.softirq));
    let rest = between(|cpu| cpu.user + cpu.nice + cpu.system + cpu.irq);
    let all = (idle + steal + softirq + rest).max(1.0);
    let percent = |part: f64| (10_000.0 * part / all).round() / 100.0;
    TimeShares {
        busy: percent(rest + softirq + steal),
        steal: percent(steal),
        softirq: percent(softirq),
        over_s: all / 1e9 / after.len().max(1) as f64,
    }
}

fn nodes() -> Fact<Vec<Node>> {
    let folder = "/sys/devices/system/node";
    fact(folder, proc::names(folder, CPUS_MAX)).map(|names| {
        let numbers = names.iter().filter_map(|name| name.strip_prefix("node")?.parse().ok());
        let mut nodes: Vec<Node> = numbers.map(|number| node(folder, number)).collect();
        nodes.sort_by_key(|node| node.node);
        nodes
    })
}

fn node(folder: &str, number: u32) -> Node {
    let read = |file: &str| proc::text(&format!("{folder}/node{number}/{file}")).unwrap_or_default();
    // The line is `Node 0 MemTotal:       24683476 kB`.
    let memory = read("meminfo");
    let total = memory.lines().find_map(|line| line.split_once("MemTotal:")).map(|parts| parts.1.trim());
    let kib: u64 = total.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    Node { node: number, cpus: read("cpulist"), memory_bytes: kib * 1_024 }
}

fn caches() -> Fact<Vec<Cache>> {
    let folder = format!("{CPU}/cpu0/cache");
    fact(&folder, proc::names(&folder, 16)).map(|names| {
        let indices = names.iter().filter(|name| name.starts_with("index"));
        let read =
            |index: &str, file: &str| proc::text(&format!("{folder}/{index}/{file}")).unwrap_or_default();
        let cache = |index: &String| Cache {
            level: read(index, "level").parse().unwrap_or(0),
            kind: read(index, "type"),
            size: read(index, "size"),
            shared_by: read(index, "shared_cpu_list"),
        };
        indices.map(cache).collect()
    })
}

fn idle() -> Idle {
    let governor = match text(&format!("{CPU}/cpuidle/current_governor")) {
        Fact::Value(governor) => Fact::Value(governor),
        _ => text(&format!("{CPU}/cpuidle/current_governor_ro")),
    };
    Idle {
        driver: text(&format!("{CPU}/cpuidle/current_driver")),
        governor,
        states: idle_states(),
        haltpoll_ns: number("/sys/module/haltpoll/parameters/guest_halt_poll_ns"),
    }
}

fn idle_states() -> Fact<Vec<IdleState>> {
    let folder = format!("{CPU}/cpu0/cpuidle");
    fact(&folder, proc::names(&folder, 64)).map(|names| {
        let read =
            |state: &str, file: &str| proc::text(&format!("{folder}/{state}/{file}")).unwrap_or_default();
        let state = |name: &String| IdleState {
            name: read(name, "name"),
            latency_us: read(name, "latency").parse().unwrap_or(0),
            disabled: read(name, "disable") == "1",
        };
        names.iter().map(state).collect()
    })
}

fn frequency() -> Frequency {
    let no_turbo = match number::<u32>(&format!("{CPU}/intel_pstate/no_turbo")) {
        Fact::Value(no_turbo) => Fact::Value(no_turbo != 0),
        _ => number::<u32>(&format!("{CPU}/cpufreq/boost")).map(|boost| boost == 0),
    };
    Frequency {
        driver: text(&format!("{CPU}/cpu0/cpufreq/scaling_driver")),
        governors: by_cpu("cpufreq/scaling_governor", CPUS_MAX),
        preferences: by_cpu("cpufreq/energy_performance_preference", CPUS_MAX),
        no_turbo,
    }
}

fn pressure(name: &str) -> Fact<Pressure> {
    parsed(&format!("/proc/pressure/{name}"), parse_pressure)
}

/// The line `some avg10=0.00 avg60=0.00 …`.
fn parse_pressure(text: &str) -> Option<Pressure> {
    let words: BTreeMap<&str, &str> =
        text.lines().next()?.split_whitespace().filter_map(|word| word.split_once('=')).collect();
    let number = |name: &str| words.get(name)?.parse().ok();
    Some(Pressure { avg10: number("avg10")?, avg60: number("avg60")? })
}

/// The table in /proc has a column per CPU and row; sysfs has each interrupt apart.
fn interrupts() -> Fact<Vec<Interrupt>> {
    let folder = "/sys/kernel/irq";
    fact(folder, proc::names(folder, INTERRUPTS_MAX)).map(|names| {
        let mut all: Vec<Interrupt> =
            names.iter().filter_map(|name| name.parse().ok()).filter_map(interrupt).collect();
        all.sort_by_key(|one| one.irq);
        all
    })
}

/// One that somebody has asked for.
fn interrupt(irq: u32) -> Option<Interrupt> {
    let name = proc::text(&format!("/sys/kernel/irq/{irq}/actions")).ok().filter(|name| !name.is_empty())?;
    let counts = proc::text(&format!("/sys/kernel/irq/{irq}/per_cpu_count")).unwrap_or_default();
    let read = |file: &str| proc::text(&format!("/proc/irq/{irq}/{file}")).unwrap_or_default();
    Some(Interrupt {
        irq,
        name,
        allowed: read("smp_affinity_list"),
        effective: read("effective_affinity_list"),
        count: counts.split(',').filter_map(|count| count.parse::<u64>().ok()).sum(),
        is_fixed: std::fs::metadata(format!("/proc/irq/{irq}/smp_affinity_list"))
            .is_ok_and(|found| found.permissions().readonly()),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn stat(user: u64, idle: u64, steal: u64) -> CpuStat {
        CpuStat { cpu: 0, user, nice: 0, system: 0, idle, iowait: 0, irq: 0, softirq: 0, steal }
    }

    #[test]
    fn shares_are_of_the_time_between_two_readings() {
        let shares = shares(&[stat(100, 100, 100)], &[stat(150, 140, 110)]);
        assert_eq!((shares.busy, shares.steal), (60.0, 10.0));
    }

    #[test]
    fn pressure_is_read_from_its_first_line() {
        let text =
            "some avg10=22.86 avg60=19.57 avg300=21.53 total=24947704915\nfull avg10=0.00 avg60=0.00\n";
        assert_eq!(parse_pressure(text), Some(Pressure { avg10: 22.86, avg60: 19.57 }));
        assert_eq!(parse_pressure("some"), None);
    }

    #[test]
    fn this_machine_tells_its_processors() {
        let cpus = cpus();
        assert!(cpus.count > 0 && cpus.online.value().is_some());
        assert!(cpus.since_boot.value().unwrap().busy > 0.0);
    }
}
