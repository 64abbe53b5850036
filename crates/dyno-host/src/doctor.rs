//! What of this program works on this machine for this user: each ability is tried, or the right for it looked up.
//!
//! `dyno doctor` calls [`examine`]. Nothing is changed: what is opened is closed, and nothing is written.

mod packages;

use std::fs::OpenOptions;
use std::io;

use dyno_record::doctor::{Ability, DOCTOR_SCHEMA, Doctor, State};
use dyno_sys::perf::{Clock, Inherit, Kernel, Sampling, SamplingEvent, Stacks, Start, Whom};
use dyno_sys::{bpf, child, namespace, proc, user};

use crate::machine::machine;
use packages::{installs, is_installed};

/// Samples per second of an event that is only opened.
const FREQUENCY_HZ: u64 = 99;
/// Descriptors that a load of ten thousand connections needs.
const FILES_WANTED: u64 = 20_000;

/// Who asks, and what he may.
struct Asker {
    is_root: bool,
    /// Its rights hold inside of a user namespace alone, as in a container: for what is the whole machine's they are none.
    is_contained: bool,
    capabilities: Vec<String>,
    paranoid: i64,
}

impl Asker {
    fn has(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|one| one == capability)
    }

    /// The same of a right over the whole machine.
    fn has_over_all(&self, capability: &str) -> bool {
        self.has(capability) && !self.is_contained
    }

    /// What gets a right over the whole machine.
    fn gets(&self) -> &'static str {
        match self.is_root {
            true => "on the host itself, outside of the container",
            false => "as root: sudo dyno …",
        }
    }
}

/// Tries everything once.
#[must_use]
pub fn examine() -> Doctor {
    let status = proc::text("/proc/self/status").unwrap_or_default();
    let uid = user::current().0;
    let asker = Asker {
        is_root: uid == 0,
        is_contained: is_contained(&proc::text("/proc/self/uid_map").unwrap_or_default()),
        capabilities: proc::parse_capabilities(&status),
        paranoid: number("/proc/sys/kernel/perf_event_paranoid").unwrap_or(4),
    };
    let abilities = [perf(&asker), kernel(&asker), host(&asker), tools()].concat();
    Doctor {
        schema: DOCTOR_SCHEMA.into(),
        version: env!("CARGO_PKG_VERSION").into(),
        machine: machine(),
        user: if asker.is_root { "root".into() } else { format!("user {uid}") },
        capabilities: asker.capabilities,
        abilities,
    }
}

/// The first user namespace maps all users to themselves (user_namespaces(7)).
fn is_contained(uid_map: &str) -> bool {
    let words: Vec<&str> = uid_map.split_whitespace().collect();
    !words.is_empty() && words != ["0", "0", "4294967295"]
}

fn ability(name: &str, purpose: &str, state: State, (why, get): (&str, &str)) -> Ability {
    Ability { name: name.into(), purpose: purpose.into(), state, why: why.into(), get: get.into() }
}

/// What a try came to: it works, or the kernel's word and what gets it.
fn tried(name: &str, purpose: &str, outcome: io::Result<()>, get: &str) -> Ability {
    match outcome {
        Ok(()) => ability(name, purpose, State::Works, ("", "")),
        Err(error) => {
            let text = error.to_string();
            let words = text.split(" (os error").next().unwrap_or(&text).to_lowercase();
            ability(name, purpose, State::Missing, (&words, get))
        }
    }
}

fn perf(asker: &Asker) -> Vec<Ability> {
    let own = "sudo sysctl kernel.perf_event_paranoid=2";
    let with_kernel = "sudo sysctl kernel.perf_event_paranoid=1, or as root";
    let whole = "sudo sysctl kernel.perf_event_paranoid=0, or as root";
    let me = Whom::Thread(child::this());
    let mut cycles = tried(
        "hardware counters",
        "profile, diagnose: cycles and cache misses",
        open(Clock::Cycles, Kernel::Without, me),
        own,
    );
    if cycles.state == State::Missing && open(Clock::CpuClock, Kernel::Without, me).is_ok() {
        cycles.why = format!("{}; profiles use the kernel's timer instead", cycles.why);
        cycles.get = "a machine whose processor's counters reach its guests, or bare metal".into();
    }
    let symbols = proc::text("/proc/kallsyms").unwrap_or_default();
    // Addresses are zero for whoever may not know them.
    let sees = symbols.lines().next().is_some_and(|line| !line.starts_with("0000000000000000"));
    let names = match sees {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "addresses are hidden (kptr_restrict, perf_event_paranoid {})",
            asker.paranoid
        ))),
    };
    vec![
        tried(
            "profiles",
            "profile, flame, diagnose, climb --profile",
            open(Clock::CpuClock, Kernel::Without, me),
            own,
        ),
        tried(
            "the kernel in profiles",
            "profile, diagnose: time inside the kernel",
            open(Clock::CpuClock, Kernel::With, me),
            with_kernel,
        ),
        tried(
            "the whole machine",
            "profile of all CPUs",
            open(Clock::CpuClock, Kernel::With, Whom::Cpu(0)),
            whole,
        ),
        cycles,
        tried(
            "names of the kernel",
            "profile: functions of the kernel by name",
            names,
            "sudo sysctl kernel.kptr_restrict=0, or as root",
        ),
    ]
}

fn open(clock: Clock, kernel: Kernel, whom: Whom) -> io::Result<()> {
    let sampling = Sampling {
        clock,
        frequency_hz: FREQUENCY_HZ,
        kernel,
        stacks: Stacks { chain: false, copy_bytes: 0 },
        inherit: Inherit::Nobody,
        start: Start::Later,
        wakeup_bytes: 0,
    };
    SamplingEvent::open(&sampling, whom).map(drop)
}

fn kernel(asker: &Asker) -> Vec<Ability> {
    vec![
        programs(asker),
        tracer(asker),
        ptrace(asker),
        others(asker),
        // The kernel's audit is the machine's; packet filters are those of this network namespace.
        rights(
            asker,
            asker.has_over_all("audit_control"),
            ("audit_control", "audit rules", "audit: the rules of the kernel's audit"),
        ),
        rights(asker, asker.has("net_admin"), ("net_admin", "packet filters", "audit: rules, taps' filters")),
    ]
}

/// Loading a program is not tried: a right and the kernel's types are what it takes.
fn programs(asker: &Asker) -> Ability {
    let (name, purpose) = ("BPF", "offcpu, causal, diagnose: what threads wait for");
    let has_types = proc::names("/sys/kernel/btf", 1).is_ok_and(|names| !names.is_empty());
    let may = asker.has_over_all("sys_admin") || (asker.has_over_all("bpf") && asker.has_over_all("perfmon"));
    match (may, has_types) {
        (true, true) => ability(name, purpose, State::Works, ("", "")),
        (true, false) => ability(
            name,
            purpose,
            State::Missing,
            ("the kernel has no types (CONFIG_DEBUG_INFO_BTF)", "a kernel of a distribution, 5.8 or newer"),
        ),
        (false, _) => {
            ability(name, purpose, State::Missing, ("it needs CAP_BPF and CAP_PERFMON", asker.gets()))
        }
    }
}

fn tracer(asker: &Asker) -> Ability {
    let read = proc::text("/sys/kernel/tracing/current_tracer").map(drop);
    let get = match &read {
        Err(error) if error.kind() == io::ErrorKind::NotFound && !asker.is_contained => {
            "sudo mount -t tracefs tracefs /sys/kernel/tracing"
        }
        _ => asker.gets(),
    };
    tried("tracefs", "audit: who traces system calls", read, get)
}

/// Yama's scope: 0 any process of one's own, 1 one's children, 2 with CAP_SYS_PTRACE, 3 nobody.
fn ptrace(asker: &Asker) -> Ability {
    let (name, purpose) = ("ptrace", "climb: proofs by system calls");
    let scope = number("/proc/sys/kernel/yama/ptrace_scope").unwrap_or(0);
    let set = "sudo sysctl kernel.yama.ptrace_scope=1";
    match (scope, asker.has("sys_ptrace")) {
        (0 | 1, _) | (2, true) => ability(name, purpose, State::Works, ("", "")),
        (3.., _) => ability(
            name,
            purpose,
            State::Missing,
            ("kernel.yama.ptrace_scope is 3: until the next boot nobody may", "set it to 1 at boot"),
        ),
        _ => ability(name, purpose, State::Missing, ("kernel.yama.ptrace_scope is 2", set)),
    }
}

fn others(asker: &Asker) -> Ability {
    let (name, purpose) = ("others' processes", "audit, diagnose: owners of sockets, servers of other users");
    match asker.has_over_all("sys_ptrace") {
        true => ability(name, purpose, State::Works, ("", "")),
        false => ability(name, purpose, State::Partly, ("only processes of your own", asker.gets())),
    }
}

fn rights(asker: &Asker, has: bool, (capability, name, purpose): (&str, &str, &str)) -> Ability {
    match has {
        true => ability(name, purpose, State::Works, ("", "")),
        false => {
            let why = format!("it needs CAP_{}", capability.to_uppercase());
            ability(name, purpose, State::Missing, (&why, asker.gets()))
        }
    }
}

fn host(asker: &Asker) -> Vec<Ability> {
    let write = OpenOptions::new().write(true).open("/proc/sys/net/core/somaxconn").map(drop);
    let get = if asker.is_root {
        "outside of the container, or with /proc/sys writable"
    } else {
        "as root: sudo dyno …"
    };
    vec![
        tried("host settings", "climb --allow-host-changes", write, get),
        tried("network namespaces", "climb --netns", namespace::can_make_network(), "as root: sudo dyno …"),
        files(),
        cpus(),
        programs_seen(asker),
    ]
}

/// Opening a file of settings for writing writes nothing.
fn number(path: &str) -> Option<i64> {
    proc::text(path).ok()?.parse().ok()
}

fn files() -> Ability {
    let (_, hard) = proc::nofile();
    let (name, purpose) = ("descriptors", "load, serve: ten thousand connections");
    match hard >= FILES_WANTED {
        true => ability(name, purpose, State::Works, ("", "")),
        false => ability(
            name,
            purpose,
            State::Partly,
            (&format!("{hard} at most"), "ulimit -Hn 1048576 as root, or LimitNOFILE= of the service"),
        ),
    }
}

fn cpus() -> Ability {
    let count = dyno_sys::affinity::allowed().len();
    let (name, purpose) = ("CPUs", "climb, load: the generator apart from the server");
    match count {
        0 | 1 => ability(
            name,
            purpose,
            State::Missing,
            ("one CPU: generator and server would share it", "a machine with two CPUs or more"),
        ),
        _ => ability(name, purpose, State::Works, ("", "")),
    }
}

fn programs_seen(asker: &Asker) -> Ability {
    let seen = bpf::loaded(1).map(drop);
    tried("others' BPF programs", "audit: who stands on the way of packets and calls", seen, asker.gets())
}

/// Tools that the commands of an audit name, and compilers of the specimens: dyno itself calls none of the first.
const TOOLS: [(&str, &str); 11] = [
    ("ip", "audit: commands to paste"),
    ("tc", "audit: commands to paste"),
    ("ss", "audit: commands to paste"),
    ("nft", "audit: commands to paste"),
    ("ethtool", "audit: commands to paste"),
    ("sysctl", "audit: commands to paste"),
    ("auditctl", "audit: commands to paste"),
    ("cc", "specimens in C"),
    ("c++", "specimens in C++"),
    ("rustc", "specimens in Rust"),
    ("go", "specimens in Go"),
];

fn tools() -> Vec<Ability> {
    let release = proc::text("/etc/os-release").unwrap_or_default();
    let missing: Vec<&(&str, &str)> = TOOLS.iter().filter(|(tool, _)| !is_installed(tool)).collect();
    if missing.is_empty() {
        return vec![ability(
            "tools",
            "commands to paste; compilers of the specimens",
            State::Works,
            ("", ""),
        )];
    }
    let one = |(tool, purpose): &&(&str, &str)| {
        ability(tool, purpose, State::Missing, ("not installed", &installs(&release, tool)))
    };
    missing.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_missing_says_why_and_what_gets_it() {
        let doctor = examine();
        assert!(doctor.abilities.len() > 14);
        for one in doctor.abilities.iter().filter(|one| one.state != State::Works) {
            assert!(!one.why.is_empty() && !one.get.is_empty(), "{}", one.name);
        }
    }

    #[test]
    fn a_right_is_looked_up_by_its_name() {
        let asker = |capabilities: &[&str]| Asker {
            is_root: false,
            is_contained: false,
            capabilities: capabilities.iter().map(|one| (*one).to_owned()).collect(),
            paranoid: 2,
        };
        assert_eq!(programs(&asker(&["bpf"])).state, State::Missing);
        let admin = asker(&["net_admin"]);
        assert_eq!(rights(&admin, admin.has("net_admin"), ("net_admin", "x", "y")).state, State::Works);
        assert_eq!(others(&asker(&[])).state, State::Partly);
    }

    /// Planted fault: rights are looked up by their names alone; then all of the machine works inside of a container.
    #[test]
    fn rights_inside_of_a_user_namespace_are_none_over_the_machine() {
        assert!(!is_contained("         0          0 4294967295\n") && !is_contained(""));
        assert!(is_contained("         0       1000          1\n"));
        let all = ["sys_admin", "bpf", "perfmon", "sys_ptrace"].map(str::to_owned).to_vec();
        let root = Asker { is_root: true, is_contained: true, capabilities: all, paranoid: 2 };
        let (bpf, processes) = (programs(&root), others(&root));
        assert_eq!((bpf.state, processes.state), (State::Missing, State::Partly));
        assert!(bpf.get.contains("outside of the container"), "{}", bpf.get);
    }
}
