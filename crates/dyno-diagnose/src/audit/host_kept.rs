//! What is kept back from programs: CPUs that are isolated, speed beyond the nominal, memory of other nodes, disks that are busy.

use std::collections::BTreeSet;

use dyno_record::audit::{AuditFinding, Risk};
use dyno_record::facts::Facts;

use super::cpu_list::{cpus, shell, words};
use super::draft::{
    ALL, Check, FAST, LATENCY, Looked, Say, Seen, THROUGHPUT, counted, finding, quoted, unknown, with_file,
    with_sysctl,
};

pub(super) const CHECKS: &[Check] = &[
    Check { id: "host.isolated", about: "CPUs that only bound programs use", look: isolated },
    Check { id: "host.turbo", about: "speed beyond a processor's nominal one", look: turbo },
    Check { id: "host.energy", about: "what a processor prefers: speed or power", look: energy },
    Check { id: "host.reclaim", about: "memory of other nodes", look: reclaim },
    Check { id: "host.io", about: "tasks that wait for disks", look: disks },
];

/// `isolcpus=` keeps CPUs from the scheduler: what is not bound to them never runs there (admin-guide/kernel-parameters).
fn isolated(facts: &Facts) -> Seen {
    let list = facts.cpus.isolated.known()?;
    let apart = cpus(list);
    if apart.is_empty() {
        return Ok(Looked::fine("none"));
    }
    let found =
        format!("{} of {}: {}", apart.len(), counted(facts.cpu_count()? as usize, "CPU"), words(&apart));
    let Some(server) = &facts.server else {
        return Ok(Looked::Fine(format!(
            "{found}; whether a server is bound to them, dyno audit --pid PID sees"
        )));
    };
    let used: BTreeSet<u32> = server.threads.known()?.cpus.keys().flat_map(|list| cpus(list)).collect();
    let idle: Vec<u32> = apart.iter().copied().filter(|cpu| !used.contains(cpu)).collect();
    if idle.is_empty() {
        return Ok(Looked::Fine(found));
    }
    let pid = server.pid;
    Ok(finding(
        format!("{} are kept for programs that are bound to them, and the server is not", counted(idle.len(), "CPU")),
        found,
        "the server bound to them, or CPUs for everybody",
    )
    .gain(THROUGHPUT, unknown("as much as these CPUs can do"))
    .risk(Risk::Operational, "what they were kept for shares them with the server")
    .why("The scheduler gives an isolated CPU to nobody who was not bound to it by name, however busy the others are.")
    .see(&["cat /sys/devices/system/cpu/isolated", &format!("taskset -a -c -p {pid}")])
    .hand("between isolated CPUs the scheduler moves nothing: each thread has to be bound to one, which the server or its service knows")
    .apply(&[&format!("the server's own setting (nginx: worker_cpu_affinity), or sudo taskset -a -c -p {list} {pid}")])
    .revert(&["the setting as it was"])
    .into())
}

/// Kernel documentation, admin-guide/pm/intel_pstate (`no_turbo`) and cpufreq (`boost`).
fn turbo(facts: &Facts) -> Seen {
    let is_off = *facts.cpus.frequency.no_turbo.known()?;
    let driver = facts.cpus.frequency.driver.value().map_or("", String::as_str);
    if !is_off {
        return Ok(Looked::fine("allowed"));
    }
    let (path, wanted, was) = match driver.starts_with("intel_pstate") || driver.starts_with("intel_cpufreq")
    {
        true => ("/sys/devices/system/cpu/intel_pstate/no_turbo", "0", "1"),
        false => ("/sys/devices/system/cpu/cpufreq/boost", "1", "0"),
    };
    let made = finding(
        "CPUs may not run faster than their nominal speed",
        format!("turbo is off ({driver})"),
        "allowed",
    )
    .gain(FAST, unknown("the ratio of both speeds, where the machine is cool and few CPUs are busy"))
    .risk(Risk::CpuBurn, "more power and heat, and a speed that depends on the neighbours")
    .why("Most processors can run a third faster than their nominal speed while few of their cores are busy.")
    .choice();
    Ok(with_file(made, path, wanted, was).into())
}

/// `energy_performance_preference` (admin-guide/pm/intel_pstate, amd-pstate).
fn energy(facts: &Facts) -> Seen {
    let all = facts.cpus.frequency.preferences.known()?;
    let told: Vec<String> = all.iter().map(|(preference, list)| format!("{preference} on {list}")).collect();
    let saves = |name: &str| name == "power" || name.starts_with("balance");
    let governors = facts.cpus.frequency.governors.value();
    // With the governor performance the driver holds the preference at speed and refuses another one (intel_pstate.c).
    let is_fixed = governors.is_some_and(|all| all.keys().all(|governor| governor == "performance"));
    let slow: Vec<(&String, Vec<u32>)> =
        all.iter().filter(|(name, _)| saves(name)).map(|(name, list)| (name, cpus(list))).collect();
    if slow.is_empty() || is_fixed {
        return Ok(Looked::Fine(told.join(", ")));
    }
    let file = |cpu: u32| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/energy_performance_preference");
    let set = |word: &str, all: &[u32]| {
        let target = "/sys/devices/system/cpu/cpu$c/cpufreq/energy_performance_preference";
        format!("for c in {}; do echo {} | sudo tee {target}; done", shell(all), quoted(word))
    };
    let cpus: Vec<u32> = slow.iter().flat_map(|(_, all)| all.iter().copied()).collect();
    let made = finding("Processors prefer saving power to speed", told.join(", "), "performance")
        .gain(FAST, unknown("no machine with it was at hand; TuneD's profiles for throughput and latency set what older processors have in its place (energy_perf_bias)"))
        .risk(Risk::CpuBurn, "more power while little happens")
        .why("The processor itself chooses how fast it becomes, and how soon; this is what it is told to prefer.")
        .see(&["grep . /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference"])
        .apply(&[&set("performance", &cpus)]);
    let revert = slow.iter().map(|(word, all)| set(word, all)).collect();
    let made = AuditFinding { revert, ..made };
    let what = |cpu: &u32| dyno_record::change::What::File(file(*cpu));
    Ok(cpus.iter().fold(made, |made, cpu| made.set(what(cpu), "performance")).into())
}

/// Kernel documentation, admin-guide/sysctl/vm: "leave it off for file servers or workloads that benefit from their data cached".
fn reclaim(facts: &Facts) -> Seen {
    let nodes = facts.cpus.nodes.known()?.len();
    let value = facts.sysctl("vm.zone_reclaim_mode")?;
    let found = format!("vm.zone_reclaim_mode={value}, {}", counted(nodes, "memory node"));
    if value == "0" || nodes < 2 {
        return Ok(Looked::Fine(found));
    }
    let made = finding("Files are forgotten although there is free memory elsewhere", found, "0")
        .gain(ALL, unknown("pauses while memory is freed, and files that are read again"))
        .risk(Risk::Operational, "programs get memory of another node sooner, which is slower to read")
        .why("With it the kernel frees memory of the own node, cached files first, before it takes free memory of another one.");
    Ok(with_sysctl(made, "vm.zone_reclaim_mode", "0", value).into())
}

/// Percent of ten seconds in which some task waited for a disk, from which it is worth a sentence.
const WAITING_MIN: f64 = 5.0;

/// Lynis looks for processes that wait for a disk (PROC-3614); the kernel's own pressure counts all of them (accounting/psi).
fn disks(facts: &Facts) -> Seen {
    let Some(io) = facts.cpus.pressure.get("io") else {
        return Ok(Looked::NotHere("pressure of disks".into()));
    };
    let io = *io.known()?;
    let found = format!("{:.1} % of 10 s, {:.1} % of a minute", io.avg10, io.avg60);
    if io.avg10 < WAITING_MIN {
        return Ok(Looked::Fine(found));
    }
    Ok(finding("Programs wait for a disk", found, "below 5 %")
        .gain(LATENCY, unknown("a request waits as long as its file or log line does; nothing where it touches no disk"))
        .risk(Risk::Operational, "whoever uses the disk is slower, or elsewhere")
        .why("While a thread waits for a disk it serves nobody, and neither does whoever waits for that thread.")
        .see(&["cat /proc/pressure/io", "ps -eo state,pid,comm | grep ^D"])
        .hand("only who started these programs knows what they are for")
        .apply(&["sudo systemctl set-property NAME.service IOWeight=10  # for the one that is in no hurry"])
        .revert(&["sudo systemctl set-property NAME.service IOWeight=100"])
        .into())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::audit::Goal;
    use dyno_record::fact::Fact;
    use dyno_record::facts::{Node, Pressure, Server, Threads};

    fn found(facts: &Facts, id: &str) -> Option<AuditFinding> {
        let goals = Goal::ALL.into_iter();
        goals.flat_map(|goal| crate::audit::audit(facts, goal).findings).find(|one| one.id == id)
    }

    fn machine() -> Facts {
        let mut facts = Facts::default();
        facts.cpus.count = 8;
        facts.reader.network_namespace = Fact::Value("net:[9]".into());
        facts
    }

    #[test]
    fn isolated_cpus_are_a_finding_for_a_server_that_is_not_bound_to_them() {
        let of = |allowed: &str| {
            let mut facts = machine();
            facts.cpus.isolated = Fact::Value("4-7".into());
            let threads = Threads { cpus: [(allowed.to_owned(), 2)].into(), ..Threads::default() };
            facts.server = Some(Server { pid: 9, threads: Fact::Value(threads), ..Server::default() });
            found(&facts, "host.isolated")
        };
        assert!(of("0-3").unwrap().title.starts_with("4 CPUs"));
        assert_eq!(of("4-7"), None);
        let mut nobody = machine();
        nobody.cpus.isolated = Fact::Value("4-7".into());
        assert_eq!(found(&nobody, "host.isolated"), None, "no server is named");
    }

    /// Planted fault: the governor is not looked at; then a preference is advised that the driver refuses.
    #[test]
    fn a_preference_for_power_is_found_unless_the_governor_holds_it() {
        let of = |governor: &str| {
            let mut facts = machine();
            let pair = |a: &str, b: &str| [(a.to_owned(), b.to_owned())].into();
            facts.cpus.frequency.governors = Fact::Value(pair(governor, "0-7"));
            facts.cpus.frequency.preferences = Fact::Value(pair("balance_power", "0-7"));
            found(&facts, "host.energy").map(|one| one.changes.len())
        };
        assert_eq!([of("powersave"), of("performance")], [Some(8), None]);
    }

    #[test]
    fn turbo_is_allowed_by_the_file_of_its_driver() {
        let of = |driver: &str| {
            let mut facts = machine();
            facts.cpus.frequency.no_turbo = Fact::Value(true);
            facts.cpus.frequency.driver = Fact::Value(driver.into());
            let spec = found(&facts, "host.turbo").unwrap().changes.remove(0);
            (spec.what.to_string().rsplit('/').next().unwrap().to_owned(), spec.wanted)
        };
        assert_eq!(of("intel_pstate"), ("no_turbo".to_owned(), "0".to_owned()));
        assert_eq!(of("acpi-cpufreq"), ("boost".to_owned(), "1".to_owned()));
    }

    #[test]
    fn one_memory_node_has_nothing_to_reclaim_from_and_a_busy_disk_is_told() {
        let mut facts = machine();
        facts.sysctls.insert("vm.zone_reclaim_mode".into(), Fact::Value("1".into()));
        facts.cpus.nodes = Fact::Value(vec![Node::default()]);
        assert_eq!(found(&facts, "host.reclaim"), None);
        facts.cpus.nodes = Fact::Value(vec![Node::default(), Node { node: 1, ..Node::default() }]);
        assert_eq!(found(&facts, "host.reclaim").unwrap().changes[0].wanted, "0");
        let io = |avg10| Fact::Value(Pressure { avg10, avg60: 1.0 });
        facts.cpus.pressure.insert("io".into(), io(40.0));
        assert!(found(&facts, "host.io").unwrap().found.starts_with("40.0 %"));
        facts.cpus.pressure.insert("io".into(), io(1.0));
        assert_eq!(found(&facts, "host.io"), None);
    }
}
