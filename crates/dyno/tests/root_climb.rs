//! What only root can try of `dyno climb`: plans that turn host settings, proved, killed and refused.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/verdict.rs"]
mod verdict;

use common::{Ended, Folder, dyno, wait_for};
use dyno_record::climb::{Climb, Rung, RungVerdict, State};
use dyno_sys::knob;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use verdict::until_verdict;

/// A choice of the kernel's: it reads `always [madvise] never`, and takes one of these words.
const CHOICE: &str = "/sys/kernel/mm/transparent_hugepage/shmem_enabled";
/// Another one, which every program hears.
const PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

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

fn turned(folder: &Folder, choice: &str, value: &str) -> Child {
    let mut child = climb(folder, &["--time", "60s"]).spawn().unwrap();
    let mut is_over = false;
    wait_for("the setting is turned", || {
        is_over = child.try_wait().unwrap().is_some();
        is_over || knob::holds(choice, value.as_bytes()).unwrap()
    });
    if is_over {
        let ended = Ended::of(child);
        panic!("the climb ended before it turned {choice} to {value}: {}{}", ended.out, ended.err);
    }
    child
}

/// Only one climb at a time may change the host.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, writes to /sys"]
fn a_choice_that_a_killed_climb_turned_is_back_and_its_folder_is_gone() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    killed("root-killed", CHOICE, ["advise", "never"]);
    killed("root-killed-pages", PAGES, ["always", "madvise"]);
}

/// A climb that turns `choice` to one of the words is killed.
fn killed(name: &str, choice: &str, words: [&str; 2]) {
    let folder = Folder::new(name);
    let before = knob::read(choice).unwrap();
    let value = words[usize::from(knob::holds(choice, words[0].as_bytes()).unwrap())];
    folder.file("plan.toml", plan(choice, value));
    let mut child = turned(&folder, choice, value);
    // While it lives nobody else may turn settings.
    let other = Ended::of(climb(&folder, &["--time", "5s"]).spawn().unwrap());
    child.kill().unwrap();
    child.wait().unwrap();
    let back = || knob::read(choice).unwrap() == before;
    let began = std::time::Instant::now();
    while !back() && began.elapsed().as_secs() < 10 {
        std::thread::yield_now();
    }
    let is_back = back();
    knob::put_back(choice, &before).unwrap();
    assert!(is_back, "{choice} was left turned");
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

/// The mode of huge pages that each side of the example is to have, whatever this host has.
const FOUND: (&str, &str) = ("{ name = \"found\" }", "{ name = \"found\", text = \"madvise\" }");
/// A smaller table, so that many servers fit.
const SMALL: [(&str, &str); 2] = [("\"256\"", "\"64\""), ("rises = 200.0", "rises = 50.0")];

/// What became of the rung of `examples/pages.toml`, with changes; the host's mode is as it was.
fn of_pages(name: &str, changes: &[(&str, &str)]) -> Rung {
    let folder = Folder::new(name);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut plan = std::fs::read_to_string(examples.join("pages.toml")).unwrap();
    for (from, to) in SMALL.iter().chain([&FOUND]).chain(changes) {
        assert!(plan.contains(from), "the example has no {from}");
        plan = plan.replace(from, to);
    }
    folder.file("plan.toml", plan);
    std::fs::create_dir(folder.path("c")).unwrap();
    std::fs::copy(examples.join("c/server.c"), folder.path("c/server.c")).unwrap();
    let before = knob::read(PAGES).unwrap();
    let (_, talk) = until_verdict(climb(&folder, &["--time", "100s", "--instances", "2"]), "pages-everybody");
    assert_eq!(knob::read(PAGES).unwrap(), before, "{talk}");
    let json = std::fs::read_to_string(folder.path("climb.json")).unwrap_or_else(|_| panic!("{talk}"));
    Climb::from_json(&json).unwrap().rungs.remove(0)
}

/// The knob is turned, read back through its brackets, and proved by the memory of the servers that were started under it.
///
/// Planted fault: the process may have no huge pages (`PR_SET_THP_DISABLE`); then the knob stands as it was wanted, and nothing of the
/// table stands in them.
#[test]
#[ignore = "needs root: CAP_SYS_ADMIN, writes to /sys"]
fn huge_pages_for_everybody_are_proved_where_they_stand_and_are_not_applied_elsewhere() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // After many builds memory is in pieces, and the kernel may have no huge page to give: it is put together.
    std::fs::write("/proc/sys/vm/compact_memory", "1").unwrap();
    let rung = of_pages("root-pages", &[]);
    let attempt = &rung.attempt;
    let measured = !matches!(attempt.verdict, RungVerdict::NotApplied | RungVerdict::Failed);
    assert!(measured && attempt.pairs > 0, "{}: {}", attempt.verdict.words(), attempt.why);
    assert!(attempt.proof.iter().all(|line| line.holds == (line.side == "b")), "{:?}", attempt.proof);
    let dyno = env!("CARGO_BIN_EXE_dyno");
    let given_up = format!(
        "argv = [\"{dyno}\", \"netlab\", \"under\", \"--pages\", \"small\", \"--\", \"{{out}}/server\""
    );
    let changes = [("argv = [\"{out}/server\"", given_up.as_str())];
    let rung = of_pages("root-pages-given-up", &changes);
    assert_eq!(rung.attempt.verdict, RungVerdict::NotApplied, "{}", rung.attempt.why);
    assert_eq!(rung.state, Some(State::NotInForce));
    assert!(rung.attempt.why.contains("not in force"), "{}", rung.attempt.why);
}
