//! What only root can try of `dyno climb`: plans that turn host settings, killed and refused.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, Folder, dyno, wait_for};
use dyno_sys::knob;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

const CHOICE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";

/// A plan for our own server whose one rung writes `value` to `knob`.
fn plan(knob: &str, value: &str) -> String {
    let dyno = env!("CARGO_BIN_EXE_dyno");
    format!(
        r#"
name = "a host setting"
[launch]
argv = ["{dyno}", "serve", "--listen", "127.0.0.1:{{port}}", "--workers", "1"]
[load]
path = "/json"
[dial.knob]
how = "knob"
path = "{knob}"
start = "found"
values = [{{ name = "found", text = "" }}, {{ name = "turned", text = "{value}" }}]
[[rung]]
id = "turn"
set = "knob=turned"
claim = "a test"
proof = [{{ kind = "command", argv = ["true"], expect = "" }}]
"#
    )
}

fn climb(folder: &Folder, words: &[&str]) -> Command {
    let mut command = dyno(["climb", "plan.toml", "--allow-host-changes"].iter().chain(words));
    command.current_dir(folder.path(".")).env("TMPDIR", folder.path("."));
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Folders of climbs that are still there.
fn left(folder: &Folder) -> usize {
    let entries = std::fs::read_dir(folder.path(".")).unwrap().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("dyno-climb-")).count()
}

fn turned(folder: &Folder, value: &str) -> Child {
    let child = climb(folder, &["--time", "60s"]).spawn().unwrap();
    wait_for("the setting is turned", || knob::holds(CHOICE, value.as_bytes()).unwrap());
    child
}

/// Only one climb at a time may change the host.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, writes to /sys"]
fn a_choice_that_a_killed_climb_turned_is_back_and_its_folder_is_gone() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    if !Path::new(CHOICE).exists() {
        println!("not tested: there is no {CHOICE}");
        return;
    }
    let folder = Folder::new("root-killed");
    let before = knob::read(CHOICE).unwrap();
    let value = if knob::holds(CHOICE, b"advise").unwrap() { "never" } else { "advise" };
    folder.file("plan.toml", plan(CHOICE, value));
    let mut child = turned(&folder, value);
    // While it lives nobody else may turn settings.
    let other = Ended::of(climb(&folder, &["--time", "5s"]).spawn().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let back = || knob::read(CHOICE).unwrap() == before;
    let began = std::time::Instant::now();
    while !back() && began.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    let is_back = back();
    knob::put_back(CHOICE, &before).unwrap();
    assert!(is_back, "it was left turned");
    wait_for("the folder is gone", || left(&folder) == 0);
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains(&format!("process {} is climbing", child.id())), "{}", other.err);
}

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, a network namespace of its own"]
fn a_value_that_is_refused_halfway_leaves_the_setting_as_it_was() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = Folder::new("root-refused");
    let knob = "/proc/sys/net/ipv4/tcp_fin_timeout";
    folder.file("plan.toml", plan(knob, "5 7"));
    let script = r#"ip link set lo up; "$0" climb plan.toml --allow-host-changes --time 10s; code=$?; cat "$1" >after; exit $code"#;
    let mut command = Command::new("unshare");
    command.args(["-n", "sh", "-c", script, env!("CARGO_BIN_EXE_dyno"), knob]);
    command.current_dir(folder.path(".")).env("TMPDIR", folder.path("."));
    let ended = Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    // No rung had an answer.
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert_eq!(std::fs::read_to_string(folder.path("after")).unwrap().trim(), "60", "{}", ended.err);
    assert!(ended.out.contains("not possible") || ended.out.contains("failed"), "{}", ended.out);
}
