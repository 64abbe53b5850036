//! The processors: clock, sleep, speed, and who else wants them.

use std::collections::BTreeSet;

use dyno_record::audit::{AuditFinding, Gain, Risk};
use dyno_record::change::What;
use dyno_record::fact::{Fact, Gap};
use dyno_record::facts::Facts;

use super::cpu_list::{cpus, shell};
use super::draft::{
    Check, FAST, LATENCY, Looked, Say, Seen, counted, finding, measured, quoted, unknown, with_file,
    with_sysctl,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "host.clock", about: "the clock that programs read", look: clock },
    Check { id: "host.steal", about: "time that the hypervisor takes", look: steal },
    Check { id: "host.idle", about: "how CPUs wait", look: idle },
    Check { id: "host.freq", about: "how fast CPUs run", look: frequency },
    Check { id: "host.neigh", about: "other programs on the CPUs", look: neighbours },
    Check { id: "host.nmi", about: "the watchdog that takes a counter", look: watchdog },
];

fn clock(facts: &Facts) -> Seen {
    let (now, all) = (facts.kernel.clocksource.known()?, facts.kernel.clocksources.known()?);
    let found = format!("{now} of {all}");
    let has_tsc = all.split_whitespace().any(|one| one == "tsc");
    // Those that programs read without a system call.
    let is_quick =
        matches!(now.as_str(), "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "arch_sys_counter");
    if now == "tsc" || (is_quick && !has_tsc) {
        return Ok(Looked::Fine(found));
    }
    let gain = match is_quick {
        true => measured(0.0, 1.0, "4 ns for each reading of the clock"),
        false => unknown("each reading is a system call and a read of a slow device, about 1 µs"),
    };
    let made = finding(
        "Reading the clock takes longer than it could",
        found,
        if has_tsc { "tsc" } else { "a quick one; this machine offers none" },
    )
    .gain(FAST, gain)
    .risk(Risk::Operational, "where the kernel distrusts the tsc it may run differently on different CPUs")
    .why("Servers and their libraries read the clock for each request.");
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Ok(if has_tsc { with_file(made, path, "tsc", now) } else { made }.into())
}

/// Percent of stolen time from which figures mean little.
const STEAL_MAX: f64 = 2.0;

fn steal(facts: &Facts) -> Seen {
    let (lately, boot) = (*facts.cpus.lately.known()?, *facts.cpus.since_boot.known()?);
    let found = format!("{:.1} % in {:.1} s, {:.1} % since boot", lately.steal, lately.over_s, boot.steal);
    if lately.steal <= STEAL_MAX && boot.steal <= STEAL_MAX {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("The hypervisor gives the CPUs to others", found, "below 2 %")
        .gain(FAST, unknown("what is stolen is missing, and figures of that time mean little"))
        .risk(Risk::None, "")
        .why("A virtual CPU that wants to run waits until the hypervisor lets it.")
        .see(&["vmstat 1 5"])
        .apply(&["another size or kind of virtual machine, or dedicated CPUs"])
        .revert(&["nothing to revert"])
        .into())
}

/// µs of waking from which sleep shows in the time of an answer.
const WAKE_US: u64 = 20;

fn idle(facts: &Facts) -> Seen {
    let idle = &facts.cpus.idle;
    let is_guest = facts.cpus.hypervisor.is_some();
    if let (true, Fact::Value(ns)) = (is_guest, &idle.haltpoll_ns) {
        let governor = idle.governor.value().map_or("none", String::as_str);
        return Ok(guest_idle(*ns, governor));
    }
    let states = idle.states.known()?;
    let deep: Vec<String> = states
        .iter()
        .filter(|state| !state.disabled && state.latency_us >= WAKE_US)
        .map(|state| format!("{} {} µs", state.name, state.latency_us))
        .collect();
    if deep.is_empty() {
        return Ok(Looked::fine(format!("{} states, none slow to leave", states.len())));
    }
    Ok(finding(
        "Idle CPUs sleep so deeply that waking them shows",
        deep.join(", "),
        "no deep sleep, where the time of a single answer matters",
    )
    .gain(LATENCY, unknown("up to the waking time, per answer, on an idle host"))
    .risk(Risk::CpuBurn, "more power, and less turbo for the others")
    .why("A CPU that sleeps deeply needs tens of microseconds to wake up.")
    .see(&["grep . /sys/devices/system/cpu/cpu0/cpuidle/state*/latency"])
    .apply(&[
        "exec 3<>/dev/cpu_dma_latency; printf '\\0\\0\\0\\0' >&3  # as root; holds while the file is open",
    ])
    .revert(&["exec 3>&-"])
    .into())
}

/// Who alone asks how long a guest polls (drivers/cpuidle/governors/haltpoll.c).
const GUEST_GOVERNOR: &str = "haltpoll";

fn guest_idle(ns: u64, governor: &str) -> Looked {
    let found = format!("guest_halt_poll_ns={ns}");
    if ns > 0 {
        return Looked::Fine(found);
    }
    if governor != GUEST_GOVERNOR {
        return Looked::Fine(format!(
            "{found}; nobody asks for it: idle CPUs follow the governor {governor}"
        ));
    }
    let made = finding(
        "An idle virtual CPU gives itself back at once, and has to be woken",
        found,
        "200000, where the time of a single answer matters",
    )
    .gain(LATENCY, measured(30.0, 73.0, "the median of one connection, 200 µs against 0"))
    .risk(Risk::CpuBurn, "a CPU is busy for that long whenever it becomes idle")
    .why("Leaving and entering a virtual machine takes longer than the work of a small request.");
    with_file(made, "/sys/module/haltpoll/parameters/guest_halt_poll_ns", "200000", &ns.to_string()).into()
}

fn frequency(facts: &Facts) -> Seen {
    let frequency = &facts.cpus.frequency;
    let governors = frequency.governors.known()?;
    let driver = frequency.driver.value().map_or("unknown", String::as_str);
    let words: Vec<String> =
        governors.iter().map(|(governor, cpus)| format!("{governor} on {cpus}")).collect();
    let found = format!("{driver}: {}", words.join(", "));
    if !governors.keys().any(|governor| governor != "performance") {
        return Ok(Looked::Fine(found));
    }
    let slow: Vec<(&String, Vec<u32>)> = governors
        .iter()
        .filter(|(governor, _)| *governor != "performance")
        .map(|(governor, list)| (governor, cpus(list)))
        .collect();
    let set = |governor: &str, all: &[u32]| {
        format!(
            "for c in {}; do echo {} | sudo tee /sys/devices/system/cpu/cpu$c/cpufreq/scaling_governor; done",
            shell(all),
            quoted(governor)
        )
    };
    let undo: Vec<String> = slow.iter().map(|(governor, all)| set(governor, all)).collect();
    let all: Vec<u32> = slow.iter().flat_map(|(_, all)| all.iter().copied()).collect();
    let made = finding("CPUs run slower than they could, to save power", found, "performance")
        .gain(FAST, unknown("no machine with frequencies was at hand; tuned sets it in its profiles for throughput and latency"))
        .risk(Risk::CpuBurn, "more power while nothing happens")
        .why("A CPU that was slowed down needs milliseconds to become fast again.")
        .see(&["grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor"])
        .apply(&[&set("performance", &all)]);
    let made = AuditFinding { revert: undo, ..made };
    let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let each = all.iter().map(|cpu| What::File(file(*cpu)));
    Ok(each.fold(made, |made, what| made.set(what, "performance")).into())
}

/// Percent of a CPU from which somebody is a neighbour.
const NEIGHBOUR_MIN: f64 = 2.0;

fn neighbours(facts: &Facts) -> Seen {
    let all = facts.neighbours.known()?;
    let own = own_cpus(facts)?;
    let is_near = |cpu: u32| own.as_ref().is_none_or(|own| own.contains(&cpu));
    let loud: Vec<_> =
        all.iter().filter(|one| one.cpu_percent >= NEIGHBOUR_MIN && is_near(one.cpu)).collect();
    if loud.is_empty() {
        let place = if own.is_some() { "the server's CPUs" } else { "a CPU" };
        return Ok(Looked::fine(format!("nobody used 2 % of {place} while the facts were read")));
    }
    let words: Vec<String> = loud
        .iter()
        .take(5)
        .map(|one| format!("{} ({}) {:.0} % of CPU {}", one.name, one.pid, one.cpu_percent, one.cpu))
        .collect();
    let total: f64 = loud.iter().map(|one| one.cpu_percent).sum();
    let stops: Vec<String> =
        loud.iter().take(5).map(|one| format!("sudo taskset -a -p -c CPUS {}", one.pid)).collect();
    let made: AuditFinding = finding(
        format!("Other programs use {total:.0} % of a CPU in all"),
        words.join(", "),
        format!("none on the server's CPUs; {} here", counted(facts.cpus.count as usize, "CPU")),
    )
    .gain(FAST, taken(total, own.as_deref()))
    .risk(Risk::Operational, "these programs run slower, or elsewhere")
    .why("nice does not help against a program in a session of its own: the scheduler shares between sessions first.")
    .see(&["top -b -n 1"])
    .revert(&["taskset with all CPUs"]);
    Ok(AuditFinding { apply: stops, ..made }.into())
}

/// CPUs that the server may use, where one is named.
fn own_cpus(facts: &Facts) -> Result<Option<Vec<u32>>, Gap> {
    let Some(server) = &facts.server else { return Ok(None) };
    let lists = server.threads.known()?.cpus.keys();
    let own: BTreeSet<u32> = lists.flat_map(|list| cpus(list)).collect();
    Ok(Some(if own.is_empty() { (0..facts.cpu_count()?).collect() } else { own.into_iter().collect() }))
}

/// Percent that a program took which wanted all of the server's CPU, the least and the most.
const TAKEN: (f64, f64) = (11.0, 17.0);

/// The same of the share that neighbours really used of the server's CPUs.
fn taken(percent: f64, own: Option<&[u32]>) -> Gain {
    let Some(own) = own else {
        return unknown("without --pid nobody knows whether a server runs on the same CPUs");
    };
    let share = (percent / 100.0 / own.len().max(1) as f64).min(1.0);
    let tenths = |percent: f64| (10.0 * percent * share).round() / 10.0;
    measured(
        tenths(TAKEN.0),
        tenths(TAKEN.1),
        &format!(
            "a program that wanted all of the server's CPU, whatever its nice value, took 11 to 17 %, p99 six times as long; these used {:.0} % of its CPUs",
            100.0 * share
        ),
    )
}

fn watchdog(facts: &Facts) -> Seen {
    let value = facts.sysctl("kernel.nmi_watchdog")?;
    let found = format!("kernel.nmi_watchdog={value}");
    if value == "0" {
        return Ok(Looked::Fine(found));
    }
    let made = finding(
        "A watchdog interrupts each CPU and holds one of its counters",
        found,
        "0, where a profile is wanted",
    )
    .gain(FAST, unknown("an interrupt some times a second; tuned turns it off for latency"))
    .risk(Risk::Operational, "a CPU that hangs in the kernel is no longer noticed")
    .why("It interrupts each CPU every few seconds, and keeps one of the few counters that profiles need.");
    Ok(with_sysctl(made, "kernel.nmi_watchdog", "0", value).into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::{Audit, Goal, Level};
    use dyno_record::facts::{Neighbour, Server, Threads};

    fn latency(facts: &Facts) -> Audit {
        crate::audit::audit(facts, Goal::Latency)
    }

    /// Planted fault: the governor is not asked for; then a value is advised that nobody reads.
    #[test]
    fn polling_of_a_guest_is_advised_only_where_its_governor_asks_for_it() {
        let of = |governor: &str| {
            let mut facts = Facts::default();
            facts.cpus.hypervisor = Some("KVM".into());
            facts.cpus.idle.haltpoll_ns = Fact::Value(0);
            facts.cpus.idle.governor = Fact::Value(governor.into());
            latency(&facts)
        };
        assert!(of("haltpoll").findings.iter().any(|one| one.id == "host.idle"));
        let menu = of("menu");
        let fine = menu.fine.iter().find(|one| one.id == "host.idle").unwrap();
        assert!(fine.found.contains("nobody asks for it"), "{}", fine.found);
    }

    /// Planted fault: the figure of a whole CPU stands for any neighbour; then 2 % of one CPU of many are a High.
    #[test]
    fn a_neighbour_costs_its_share_of_the_servers_cpus() {
        let of = |percent: f64, cpu: u32, server: Option<&str>| {
            let mut facts = Facts::default();
            facts.cpus.count = 8;
            let one =
                Neighbour { pid: 9, name: "hog".into(), cpu_percent: percent, cpu, ..Neighbour::default() };
            facts.neighbours = Fact::Value(vec![one]);
            facts.server = server.map(|list| {
                let threads = Threads { cpus: [(list.to_owned(), 1)].into(), ..Threads::default() };
                Server { threads: Fact::Value(threads), ..Server::default() }
            });
            let found = latency(&facts).findings;
            found.into_iter().find(|one| one.id == "host.neigh").map(|one| (one.level, one.gain.percent))
        };
        assert_eq!(of(100.0, 3, Some("3")), Some((Level::High, Some([11.0, 17.0]))));
        assert_eq!(of(2.0, 3, Some("0-7")), Some((Level::Low, Some([0.0, 0.0]))));
        assert_eq!(of(100.0, 3, Some("0-1")), None, "the server may not run there");
        assert_eq!(of(100.0, 3, None), Some((Level::Low, None)), "nobody knows");
    }

    /// Planted fault: CPUs are counted from 0; then one that is offline makes the whole change impossible.
    #[test]
    fn only_cpus_that_save_power_are_changed_and_each_goes_back_to_its_own_governor() {
        let mut facts = Facts::default();
        facts.cpus.count = 3;
        let governors = [("performance", "4"), ("powersave", "0"), ("schedutil", "2")];
        let governors = governors.map(|(name, list)| (name.to_owned(), list.to_owned())).into();
        facts.cpus.frequency.governors = Fact::Value(governors);
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        let found = latency(&facts).findings;
        let made = found.iter().find(|one| one.id == "host.freq").unwrap();
        let files: Vec<String> = made.changes.iter().map(|spec| spec.what.to_string()).collect();
        let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
        assert_eq!(files, [file(0), file(2)]);
        assert!(made.revert[1].contains("for c in 2; do echo schedutil"), "{:?}", made.revert);
    }
}
