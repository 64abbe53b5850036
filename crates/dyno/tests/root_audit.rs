//! `dyno audit` in a network namespace of its own: what is planted there is found, and nothing else.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};

use common::Ended;
use dyno_record::audit::Audit;
use dyno_record::facts::{Facts, Figure, Measured};

/// A namespace with `lo` set up, whose own devices are under /sys. Nothing of it outlives the shell.
const LAB: &str = "mount -t sysfs sysfs /sys && echo 0x9 > /sys/class/net/lo/flags && ";

/// One measuring at a time: they measure on the same CPU.
fn alone() -> std::sync::MutexGuard<'static, ()> {
    static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A load that would go on; it is asked to end, also when the test fails.
struct EndedWithUs(dyno_sys::Pid);

impl Drop for EndedWithUs {
    fn drop(&mut self) {
        let _ = dyno_sys::signal::kill(self.0, dyno_sys::signal::Signal::Int);
    }
}

/// A second of it is for the neighbours; the rest is reading, which takes minutes where each rule is asked for by itself.
const TOOK_S_MAX: f64 = 20.0;

fn in_a_namespace(script: &str) -> Ended {
    let mut command = Command::new("unshare");
    let script = format!("{LAB}{}", script.replace("DYNO", env!("CARGO_BIN_EXE_dyno")));
    command.args(["--net", "--mount", "sh", "-c", &script]).stdin(Stdio::null());
    Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Findings about the network: others come and go with the machine's neighbours, and so does what the whole machine's
/// queues of packets have dropped lately.
fn found(text: &str) -> Vec<(String, String)> {
    let audit: Audit = serde_json::from_str(text).unwrap();
    let is_ours = |id: &str| !id.starts_with("host.") && id != "net.softnet";
    let ours = audit.findings.into_iter().filter(|one| is_ours(&one.id));
    ours.map(|one| (one.id, one.object)).collect()
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN"]
fn a_mask_that_is_planted_is_all_that_is_found_besides() {
    let clean = found(in_a_namespace("DYNO audit --json").done());
    let mut planted =
        found(in_a_namespace("echo 1 > /sys/class/net/lo/queues/rx-0/rps_cpus && DYNO audit --json").done());
    let plant = ("net.rps".to_owned(), "lo".to_owned());
    assert!(planted.contains(&plant) && !clean.contains(&plant), "{clean:?} {planted:?}");
    planted.retain(|one| *one != plant);
    assert_eq!(planted, clean);
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN"]
fn a_server_of_another_namespace_is_looked_at_there() {
    let script = "echo 1 > /sys/class/net/lo/queues/rx-0/rps_cpus && echo $$ && exec sleep 600";
    let mut server = Command::new("unshare");
    let script = format!("{LAB}{script}");
    let server = server.args(["--net", "--mount", "sh", "-c", &script]).stdin(Stdio::null());
    let mut server = server.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let reader = server.stdout.as_mut().unwrap();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(reader), &mut line).unwrap();
    let facts = common::run(["audit", "facts", "--pid", line.trim()]);
    server.kill().unwrap();
    server.wait().unwrap();
    let facts = Facts::from_json(facts.done()).unwrap();
    let devices = facts.network.devices.value().unwrap();
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names.first(), Some(&"lo"));
    assert!(names.iter().all(|name| !name.starts_with("eth")), "{names:?}");
    assert_ne!(facts.reader.looked_into, facts.reader.network_namespace.value().cloned());
    let rps = devices[0].rps.value().unwrap();
    assert!(rps[0].value.ends_with('1'), "the mask of that namespace is read: {rps:?}");
}

/// Rules that refuse what never comes, and everything else but one port.
fn rules() -> String {
    let refused: String = (0..200).map(|at| format!("ip saddr 192.168.9.{at} drop\n")).collect();
    let head = "type filter hook input priority 0; policy drop;";
    format!("table inet t {{ chain c {{ {head}\n{refused}tcp dport 8080 accept\n}}\n}}\n")
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn rules_that_drop_nearly_everything_are_measured_here_and_nothing_is_left() {
    let _alone = alone();
    let folder = common::Folder::new("root-audit-measure");
    std::fs::write(folder.path("rules"), rules()).unwrap();
    let script = format!("nft -f {} && DYNO audit --measure --json", folder.path("rules").display());
    let ended = in_a_namespace(&script);
    let audit: Audit = serde_json::from_str(ended.done()).unwrap();
    let linear = audit.findings.iter().find(|one| one.id == "nf.linear").unwrap();
    assert_eq!(linear.gain.source, dyno_record::audit::Source::MeasuredHere, "{:?}", audit.measured);
    let measured = audit.measured.unwrap();
    let rules = measured.rules.value().unwrap();
    assert!(rules.what.ends_with("port 8080") && rules.packet_ns.value > 100.0, "{rules:?}");
    assert!(measured.tap.value().is_some() && measured.took_s < 20.0, "{measured:?}");
    let left = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    assert!(left.map(|one| one.file_name()).all(|name| !name.to_string_lossy().starts_with("veth-")));
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_SYS_PTRACE"]
fn a_server_under_load_is_watched_and_goes_on() {
    let _alone = alone();
    let folder = common::Folder::new("root-audit-watched");
    let log = folder.path("access.log").display().to_string();
    let mut server = common::Server::serve(&["--naive", "--log-file", &log]);
    let url = server.url("/json");
    let mut load = common::dyno(["load", &url, "-t1", "-c8", "--duration", "600s"]);
    let load = load.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let ends_with_us = EndedWithUs(load.id().cast_signed());
    let ended = common::run(["audit", "--measure", "--json", "--pid", &server.pid().to_string()]);
    let audit: Audit = serde_json::from_str(ended.done()).unwrap();
    let ids: Vec<&str> = audit.findings.iter().map(|one| one.id.as_str()).collect();
    // The naive start is all of these.
    let habits = ["app.split", "app.rw", "app.log"];
    assert!(habits.iter().all(|id| ids.contains(id)), "{ids:?} {:?}", audit.measured);
    let measured = audit.measured.unwrap();
    let filters = measured.filters.value().unwrap();
    assert!(filters.count >= 1 && filters.instructions > 10, "{filters:?}");
    drop(ends_with_us);
    let text = Ended::of(load);
    assert!(text.out.contains("requests in") && !text.out.contains("Socket errors"), "{}", text.out);
    server.signal(dyno_sys::signal::Signal::Term);
    assert!(server.end().success());
}

/// Planted fault: rules are read with a query for each; then ten thousand of them take minutes.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN, and nftables"]
fn ten_thousand_rules_a_read_only_proc_no_sys_and_odd_names_are_all_audited() {
    let script = "ip link add '<img>$(x)' type veth peer name 'a\"b' && ip link set '<img>$(x)' up
{ echo 'table inet t { chain c { type filter hook input priority 0;'
for n in $(seq 10000); do echo ip saddr 10.$((n / 65536)).$((n / 256 % 256)).$((n % 256)) drop; done
echo '}'; echo '}'; } | nft -f - || exit 1
DYNO audit --json; echo
mount -o bind,ro /proc/sys /proc/sys && DYNO audit --json; echo
umount -l /sys; DYNO audit --json; echo";
    let ended = in_a_namespace(script);
    let audits: Vec<Audit> = ended
        .done()
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(audits.len(), 3, "{}", ended.err);
    for audit in &audits {
        let linear = audit.findings.iter().find(|one| one.id == "nf.linear").unwrap();
        assert!(linear.found.starts_with("10000 rules"), "{}", linear.found);
        assert!(audit.took_s < TOOK_S_MAX, "{}", audit.took_s);
    }
    let closed = audits[1].findings.iter().filter(|one| one.by_hand.contains("/proc/sys is read-only here"));
    let changed = audits[0]
        .findings
        .iter()
        .filter(|one| one.changes.iter().any(|spec| spec.what.to_string().starts_with("/proc/sys")));
    assert_eq!(closed.count(), changed.count());
    let unseen = &audits[2].not_looked_at;
    assert!(
        audits[2].not_here.len() + unseen.len() > audits[0].not_here.len(),
        "without /sys some things are not there"
    );
}

/// A container's view: namespaces of its own for users, processes, mounts and network; and somebody who is not root.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN"]
fn inside_of_namespaces_and_as_nobody_every_check_ends_and_says_what_it_lacks() {
    let dyno = env!("CARGO_BIN_EXE_dyno");
    let folder = common::Folder::new("root-audit-nobody");
    // Whoever runs it may not reach the folder of the build.
    let copy = std::env::temp_dir().join(format!("dyno-audit-{}", std::process::id()));
    common::copy(dyno, &copy);
    let run = |words: &[&str]| {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]).current_dir("/").stdin(Stdio::null());
        Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
    };
    let copy = copy.display().to_string();
    let inside = run(&["unshare", "-Urpfm", "--mount-proc", "--net", &copy, "audit", "--json"]);
    let nobody =
        run(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &copy, "audit", "--json"]);
    let doctor = run(&["unshare", "-Urpfm", "--mount-proc", &copy, "doctor"]);
    let plan = run(&["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", &copy, "tune", "plan"]);
    std::fs::remove_file(&copy).unwrap();
    drop(folder);
    for ended in [inside, nobody] {
        let audit: Audit = serde_json::from_str(ended.done()).unwrap();
        assert!(audit.checks() > 70 && audit.took_s < TOOK_S_MAX, "{} {}", audit.checks(), audit.took_s);
        assert!(!audit.not_looked_at.is_empty());
        assert!(audit.not_looked_at.iter().all(|one| !one.why.is_empty()), "{:?}", audit.not_looked_at);
    }
    assert!(doctor.done().contains("answer"), "{}", doctor.out);
    assert!(plan.done().starts_with("plan "), "{}", plan.out);
}

/// The intervention is the number of rules: twenty times as many have to cost more than the others' interval, and several times as much.
///
/// Planted fault: the copy of the rules is not loaded; then three hundred cost as much as none.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN, and nftables"]
fn what_rules_are_measured_to_cost_grows_with_how_many_are_planted() {
    let _alone = alone();
    let folder = common::Folder::new("root-audit-intervention");
    let with = |count: usize| {
        let refused: String =
            (0..count).map(|at| format!("ip saddr 192.168.{}.{} drop\n", at / 250, at % 250)).collect();
        let head = "type filter hook input priority 0; policy accept;";
        let place = folder.path(&format!("rules-{count}"));
        std::fs::write(&place, format!("table inet t {{ chain c {{ {head}\n{refused}}}\n}}\n")).unwrap();
        let ended = in_a_namespace(&format!("nft -f {} && DYNO audit --measure --json", place.display()));
        let audit: Audit = serde_json::from_str(ended.done()).unwrap();
        audit.measured.unwrap().rules.value().unwrap().packet_ns
    };
    let (few, many) = (with(30), with(600));
    assert!(many.interval[0] > few.interval[1], "{few:?} {many:?}");
    assert!(many.value > 5.0 * few.value.max(1.0), "twenty times as many: {few:?} {many:?}");
}

/// The intervention: the program itself is put behind six filters, and its own calls are timed. What copies of the filters of another
/// process that is behind the same six were measured to add has to be what they add there.
///
/// Planted fault: the copies are not put on; then they add nothing.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_SYS_PTRACE"]
fn what_copies_of_filters_add_is_what_the_filters_themselves_add() {
    let _alone = alone();
    let under = |words: &[&str]| {
        let mut command = common::dyno(["netlab", "under", "--filters", "6", "--"]);
        command.args(words).stdin(Stdio::null());
        command
    };
    let mut server = under(&["sleep", "600"]).spawn().unwrap();
    let status = format!("/proc/{}/status", server.id());
    common::wait_for("it is behind its filters", || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        status.contains("Seccomp_filters:\t6") && status.starts_with("Name:\tsleep")
    });
    let measured = |ended: Ended| serde_json::from_str::<Audit>(ended.done()).unwrap().measured.unwrap();
    let dyno = env!("CARGO_BIN_EXE_dyno");
    let turn = || {
        let copies =
            measured(common::run(["audit", "--measure", "--json", "--pid", &server.id().to_string()]));
        let mut behind = under(&[dyno, "audit", "--measure", "--json"]);
        let behind = behind.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        (copies, measured(Ended::of(behind)))
    };
    // A neighbour on the same core makes all of a run slower, twice as slow even, and none faster: of five in turns the
    // fastest of each kind are compared.
    let turns: Vec<_> = std::iter::repeat_with(turn).take(5).collect();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(turns.iter().all(|(copies, _)| copies.filters.value().unwrap().count == 6), "{turns:?}");
    let least = |of: fn(&(Measured, Measured)) -> &Figure| {
        turns.iter().map(of).min_by(|a, b| a.value.total_cmp(&b.value)).unwrap()
    };
    let extra = least(|(copies, _)| &copies.filters.value().unwrap().extra_ns);
    let bare = least(|(copies, _)| copies.call_ns.value().unwrap());
    let there = least(|(_, behind)| behind.call_ns.value().unwrap());
    let added = there.value - bare.value;
    // A third of it, and the width of the intervals.
    let width = |one: &Figure| one.interval[1] - one.interval[0];
    let allowance = added / 3.0 + width(bare) + width(there) + width(extra);
    assert!((extra.value - added).abs() < allowance, "{extra:?} {bare:?} {there:?}");
    assert!(extra.interval[0] > 0.0, "{extra:?}");
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn nothing_is_left_of_a_measuring_that_is_broken_off_or_killed() {
    let _alone = alone();
    for signal in [dyno_sys::signal::Signal::Int, dyno_sys::signal::Signal::Kill] {
        ended_by(signal);
    }
}

fn ended_by(signal: dyno_sys::signal::Signal) {
    let mut child = common::dyno(["audit", "--measure"]);
    let mut child = child.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let own = std::fs::read_link("/proc/self/ns/net").unwrap();
    let threads = || std::fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
    let elsewhere = || {
        let networks = threads().filter_map(|thread| std::fs::read_link(thread.path().join("ns/net")).ok());
        networks.filter(|network| *network != own).collect::<Vec<_>>()
    };
    let mut entered = Vec::new();
    common::wait_for("it measures in namespaces of its own", || {
        entered = elsewhere();
        !entered.is_empty()
    });
    dyno_sys::signal::kill(child.id().cast_signed(), signal).unwrap();
    child.wait().unwrap();
    let is_lived_in = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|one| std::fs::read_link(one.path().join("ns/net")).ok())
            .any(|one| entered.contains(&one))
    };
    common::wait_for("nobody is in them any more", || !is_lived_in());
}
