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
