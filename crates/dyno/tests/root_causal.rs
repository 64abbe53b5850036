//! What only root can try of `dyno causal`: a program whose parts are known, Ctrl-C, what is left behind.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, Folder, dyno, wait_for};
use dyno_measure::causal::{Causal, Verdict};
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// One thread: twelve parts of twenty here, six there, two more, and a call for each unit.
const PARTS: &str = r#"
static volatile unsigned long long sink;
static __attribute__((noinline)) void sixty(void) { for (long i = 0; i < 600000; i++) sink += i; }
static __attribute__((noinline)) void thirty(void) { for (long i = 0; i < 300000; i++) sink += i + 1; }
static __attribute__((noinline)) void ten(void) { for (long i = 0; i < 100000; i++) sink += i + 2; }
static __attribute__((noinline)) void done(void) { __asm__ volatile("nop"); }
int main(void) { for (;;) { sixty(); thirty(); ten(); done(); } }
"#;

fn program(folder: &Folder) -> PathBuf {
    let source = folder.file("parts.c", PARTS);
    let program = folder.path("parts");
    let built = Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    program
}

fn started(folder: &Folder, words: &[&str]) -> Child {
    let mut command = dyno(["causal", "-o", "c.json"].iter().chain(words));
    command.arg("--").arg(program(folder)).current_dir(folder.path("."));
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn record(folder: &Folder) -> Causal {
    Causal::from_json(&std::fs::read_to_string(folder.path("c.json")).unwrap()).unwrap()
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn what_one_thread_does_is_worth_what_it_takes_and_files_lie_beside_each_other() {
    let folder = Folder::new("causal-parts");
    let words = ["--progress", "done", "--site", "sixty", "--site", "ten", "--for", "20s", "--coz", "c.coz"];
    let ended = Ended::of(started(&folder, &words));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let record = record(&folder);
    let sixty = record.sites.iter().find(|site| site.name == "sixty").unwrap();
    assert_ne!(sixty.verdict, Verdict::Hurts, "{}", ended.out);
    let slope = sixty.slope.unwrap();
    assert!(slope.interval[1] > 0.4 && slope.per_percent > 0.3, "{}", ended.out);
    let share = sixty.share_percent.unwrap();
    assert!((50.0..70.0).contains(&share), "{share}");
    assert!(ended.out.contains("sixty") && ended.err.contains("round"), "{}\n{}", ended.out, ended.err);
    assert!(std::fs::read_to_string(folder.path("c.html")).unwrap().contains("sixty"));
    assert!(std::fs::read_to_string(folder.path("c.coz")).unwrap().contains("selected="));
    assert!(proc::stat(record.target.pid.unwrap().cast_signed()).is_err(), "the command ended");
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn ctrl_c_writes_what_was_measured() {
    let folder = Folder::new("causal-ctrl-c");
    let child = started(&folder, &["--progress", "done", "--site", "sixty", "--for", "60s"]);
    let pid = child.id().cast_signed();
    // Symbols, a profile of three seconds, and some rounds: the program itself is the busiest of what runs under it.
    let busiest_ns = || proc::tree(pid).into_iter().filter_map(|one| proc::run_ns(one).ok()).max();
    wait_for("rounds were run", || busiest_ns().is_some_and(|ns| ns > 8_000_000_000));
    signal::kill(pid, Signal::Int).unwrap();
    let ended = Ended::of(child);
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let record = record(&folder);
    assert_eq!(record.cut_short.as_deref(), Some("interrupted"));
    assert!(!record.sites.is_empty() && !record.sites[0].windows.is_empty());
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn what_could_be_counted_is_told_where_nothing_is_named() {
    let folder = Folder::new("causal-candidates");
    let ended = Ended::of(started(&folder, &["--for", "10s"]));
    // What it does comes first, line by line; the failure is the last three.
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    let lines: Vec<&str> = ended.err.lines().rev().take(3).collect();
    assert!(lines[2].starts_with("error: nothing is named that counts as progress"), "{}", ended.err);
    assert!(lines[0].starts_with("  try:    "), "{}", ended.err);
    assert!(!folder.path("c.json").exists());
}
