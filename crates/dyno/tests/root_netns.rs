//! What only root can try of the laboratory: `dyno climb --netns`, `dyno netlab`, and that nothing outlives either.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/verdict.rs"]
mod verdict;

use common::{Ended, Folder, dyno, wait_for};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

const NEEDS: &str = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN";

fn network_of(pid: u32) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/{pid}/ns/net")).ok()
}

/// Whether any process is in this namespace.
fn is_lived_in(network: &PathBuf) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    pids.any(|pid| network_of(pid).as_ref() == Some(network))
}

/// The laboratory that it is in, once that is as `ready` wants it.
///
/// While a laboratory is being made its maker is for a moment in each of its namespaces: where it was first seen says nothing.
///
/// Planted fault: the first namespace that is not ours is taken, and the maker is 100 ms in the client's: no server ever came.
fn entered(child: &Child, what: &str, ready: impl Fn(&PathBuf) -> bool) -> PathBuf {
    let own = network_of(std::process::id());
    let current = || network_of(child.id()).filter(|network| Some(network) != own.as_ref());
    let mut found = None;
    wait_for(what, || {
        found = current().filter(&ready);
        found.is_some()
    });
    found.unwrap()
}

/// Servers and keeper are there, and would be left.
fn climbing(folder: &Folder) -> Child {
    let words = ["climb", "--netns", "--rung", "rules-set", "--time", "60s"];
    let mut command = dyno(words);
    command.current_dir(folder.path(".")).env("TMPDIR", folder.path("."));
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn has_server(network: &PathBuf) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse::<u32>().ok());
    let serves = |pid: u32| {
        let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("198.18.0.1:")
    };
    pids.filter(|pid| network_of(*pid).as_ref() == Some(network)).any(serves)
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn nothing_of_a_laboratory_outlives_a_climb_that_is_killed() {
    let folder = Folder::new("root-netns-killed");
    let mut child = climbing(&folder);
    let network = entered(&child, "a server listens in the laboratory", has_server);
    child.kill().unwrap();
    child.wait().unwrap();
    wait_for("nobody is in the laboratory any more", || !is_lived_in(&network));
    let devices = std::fs::read_dir("/sys/class/net").unwrap().flatten();
    let mut names = devices.map(|device| device.file_name().to_string_lossy().into_owned());
    assert!(
        names.all(|name| !name.starts_with("veth-server") && !name.starts_with("veth-client")),
        "{NEEDS}"
    );
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn a_laboratory_that_is_held_ends_with_its_holder_and_tells_how_to_enter() {
    let mut child = dyno(["netlab", "hold", "--plant"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let listed = |_: &PathBuf| {
        let rules =
            Command::new("nsenter").args(["-t", &pid.to_string(), "-n", "nft", "list", "ruleset"]).output();
        rules.is_ok_and(|rules| String::from_utf8_lossy(&rules.stdout).matches(" drop").count() == 300)
    };
    let network = entered(&child, "the rules are planted", listed);
    child.kill().unwrap();
    drop(Ended::of(child));
    // A tool that it was just running ends by itself.
    wait_for("nobody is in the laboratory any more", || !is_lived_in(&network));
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn a_plan_that_names_loopback_is_refused_before_anything_is_made() {
    let folder = Folder::new("root-netns-loopback");
    let plan = r#"
name = "loopback"
[launch]
argv = ["server", "127.0.0.1:{port}"]
[dial.rules]
how = "lab"
part = "rules"
start = "some"
values = [{ name = "some", text = "linear 10" }, { name = "none", text = "none" }]
[[rung]]
id = "none"
set = "rules=none"
claim = "a test"
proof = [{ kind = "network", count = "rules_passed", per_request = { drops = 5 } }]
"#;
    folder.file("plan.toml", plan);
    let refused = |words: &[&str]| {
        let mut command = dyno(["climb", "plan.toml", "--time", "5s"].iter().chain(words));
        command.current_dir(folder.path(".")).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = Ended::of(command.spawn().unwrap());
        assert_eq!(ended.code, Some(2), "{}", ended.err);
        ended.err
    };
    let with = refused(&["--netns"]);
    assert!(with.contains("cannot come to \"127.0.0.1:{port}\"") && with.contains("{address}"), "{with}");
    let without = refused(&[]);
    assert!(without.contains("it is there with --netns only"), "{without}");
}

/// Planted fault: the tool is missed when the first part is turned; then it was the server's fault, and curl was to find it.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn a_tool_that_is_missing_is_told_with_its_package_before_anything_is_started() {
    let folder = Folder::new("root-netns-no-nft");
    let mut command = Command::new("unshare");
    let hidden = "for f in /usr/sbin /sbin; do mount -t tmpfs none $(readlink -f $f) || exit 9; done; exec \"$0\" climb --netns --time 5s";
    command.args(["--mount", "sh", "-c", hidden, env!("CARGO_BIN_EXE_dyno")]).current_dir(folder.path("."));
    let ended = Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(ended.err.starts_with("error: nft is not there; rules needs it"), "{}", ended.err);
    assert!(ended.err.contains("apt install nftables") && !ended.err.contains("curl"), "{}", ended.err);
}

/// Behind a server that sends its answer at once the client acknowledges the last one of a block later, when the other side stands.
///
/// Planted fault: connections are read at rest; then the side without polling reads 100 percent, and the other 0.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, CAP_NET_ADMIN"]
fn polling_is_read_off_requests_and_not_off_what_comes_between_blocks() {
    let folder = Folder::new("root-netns-polled");
    let plan = r#"
name = "polled"
[launch]
argv = ["DYNO", "serve", "--listen", "{address}:{port}", "--naive", "--send", "joined"]
[load]
path = "/json"
[dial.napi]
how = "lab"
part = "napi"
start = "on"
values = [{ name = "on", text = "on" }, { name = "off", text = "off" }]
[[rung]]
id = "polling-off"
set = "napi=off"
claim = "a test"
proof = [{ kind = "polled", percent = { drops = 90 } }]
"#;
    folder.file("plan.toml", plan.replace("DYNO", env!("CARGO_BIN_EXE_dyno")));
    let mut command = dyno(["climb", "plan.toml", "--netns", "--time", "40s", "--instances", "2"]);
    command.current_dir(folder.path("."));
    let (_, said) = verdict::until_verdict(command, "polling-off");
    assert!(!said.contains("polling-off: not applied") && !said.contains("polling-off: failed"), "{said}");
}
