//! `dyno audit` in a network namespace of its own: what is planted there is found, and nothing else.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::{Command, Stdio};

use common::Ended;
use dyno_record::audit::Audit;
use dyno_record::facts::Facts;

/// A namespace with `lo` set up, whose own devices are under /sys. Nothing of it outlives the shell.
const LAB: &str = "mount -t sysfs sysfs /sys && echo 0x9 > /sys/class/net/lo/flags && ";

fn in_a_namespace(script: &str) -> Ended {
    let mut command = Command::new("unshare");
    let script = format!("{LAB}{}", script.replace("DYNO", env!("CARGO_BIN_EXE_dyno")));
    command.args(["--net", "--mount", "sh", "-c", &script]).stdin(Stdio::null());
    Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Findings about the network: others come and go with the machine's neighbours.
fn found(text: &str) -> Vec<(String, String)> {
    let audit: Audit = serde_json::from_str(text).unwrap();
    let ours = audit.findings.into_iter().filter(|one| !one.id.starts_with("host."));
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
    let folder = common::Folder::new("root-audit-watched");
    let log = folder.path("access.log").display().to_string();
    let mut server = common::Server::serve(&["--naive", "--log-file", &log]);
    let url = server.url("/json");
    let mut load = common::dyno(["load", &url, "-t1", "-c8", "--duration", "12s"]);
    let load = load.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let ended = common::run(["audit", "--measure", "--json", "--pid", &server.pid().to_string()]);
    let audit: Audit = serde_json::from_str(ended.done()).unwrap();
    let ids: Vec<&str> = audit.findings.iter().map(|one| one.id.as_str()).collect();
    // The naive start is all of these.
    let habits = ["app.split", "app.rw", "app.log"];
    assert!(habits.iter().all(|id| ids.contains(id)), "{ids:?} {:?}", audit.measured);
    let measured = audit.measured.unwrap();
    let filters = measured.filters.value().unwrap();
    assert!(filters.count >= 1 && filters.instructions > 10, "{filters:?}");
    let text = Ended::of(load);
    assert!(text.out.contains("requests in") && !text.out.contains("Socket errors"), "{}", text.out);
    server.signal(dyno_sys::signal::Signal::Term);
    assert!(server.end().success());
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn nothing_is_left_of_a_measuring_that_is_killed() {
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
    child.kill().unwrap();
    child.wait().unwrap();
    let is_lived_in = || {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        all.filter_map(|one| std::fs::read_link(one.path().join("ns/net")).ok())
            .any(|one| entered.contains(&one))
    };
    common::wait_for("nobody is in them any more", || !is_lived_in());
}
