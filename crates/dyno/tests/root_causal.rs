//! What only root can try of `dyno causal`: a program whose parts are known, Ctrl-C, what is left behind.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/schema.rs"]
mod schema;

use common::watching::before_other_sessions;
use common::{Ended, Folder, PROBES_OUT, dyno, wait_for};
use dyno_record::causal::{Causal, Verdict};
use dyno_sys::priority::First;
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One thread: six parts of ten here, three there, one more, and a call for each unit. Every step waits for the one before
/// it, so that all take as long on every CPU; steps through memory do not.
const PARTS: &str = r#"
static volatile unsigned long long sink;
#define STEPS(n) \
    unsigned long long s = sink; \
    for (long i = 0; i < n; i++) s = s * 6364136223846793005ULL + 1442695040888963407ULL; \
    sink = s
static __attribute__((noinline)) void sixty(void) { STEPS(300000); }
static __attribute__((noinline)) void thirty(void) { STEPS(150000); }
static __attribute__((noinline)) void ten(void) { STEPS(50000); }
static __attribute__((noinline)) void done(void) { __asm__ volatile("nop"); }
int main(void) { for (;;) { sixty(); thirty(); ten(); done(); } }
"#;

/// Experiments judge what they measure: one at a time has the machine, before others.
fn alone() -> (First, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (First::in_line(), alone)
}

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
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().cast_signed();
    let begun = || {
        proc::tree(pid)
            .into_iter()
            .find(|one| *one != pid && proc::name(*one).is_ok_and(|name| name == "parts"))
    };
    wait_for("its program begins", || begun().is_some());
    before_other_sessions(begun().unwrap());
    child
}

fn record(folder: &Folder) -> Causal {
    let text = std::fs::read_to_string(folder.path("c.json")).unwrap();
    schema::holds("causal", &text);
    Causal::from_json(&text).unwrap()
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn what_one_thread_does_is_worth_what_it_takes_and_files_lie_beside_each_other() {
    let _alone = alone();
    let folder = Folder::new("causal-parts");
    // Some thirty rounds, of which a verdict needs five, also where half of the windows are lost to a hypervisor or to others.
    let words = ["--progress", "done", "--site", "sixty", "--for", "40s", "--coz", "c.coz"];
    let ended = Ended::within(PROBES_OUT, started(&folder, &words));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let record = record(&folder);
    let sixty = record.sites.iter().find(|site| site.name == "sixty").unwrap();
    // A program that is made to be measured: that nothing could be said of it is a fault. Planted ones: half of the pauses
    // left out gives 0.3, each counted twice 1.2.
    assert_eq!(sixty.verdict, Verdict::Helps, "{}", ended.out);
    let slope = sixty.slope.unwrap();
    let half_width = (slope.interval[1] - slope.interval[0]) / 2.0;
    assert!(half_width < 0.1 && (slope.per_percent - 0.6).abs() < 0.04 + half_width, "{}", ended.out);
    let control = record.control.unwrap();
    assert!(control.artefact_percent.abs() < 40.0, "nothing paces it: {control:?}");
    let share = sixty.share_percent.unwrap();
    assert!((50.0..70.0).contains(&share), "{share}");
    assert!(ended.out.contains("sixty") && ended.err.contains("round"), "{}\n{}", ended.out, ended.err);
    assert!(std::fs::read_to_string(folder.path("c.html")).unwrap().contains("sixty"));
    let coz = std::fs::read_to_string(folder.path("c.coz")).unwrap();
    assert!(coz.starts_with("startup") && coz.contains("selected="), "{coz}");
    assert!(proc::stat(record.target.pid.unwrap().cast_signed()).is_err(), "the command ended");
}

/// Sends Ctrl-C once it says `line` on standard error, and waits for its end.
fn interrupted_at(mut child: Child, line: &str) -> (Option<i32>, String) {
    let mut told = BufReader::new(child.stderr.take().unwrap());
    let mut all = String::new();
    while !all.lines().last().is_some_and(|last| last.contains(line)) {
        assert!(told.read_line(&mut all).unwrap() > 0, "it ended without saying {line:?}: {all}");
    }
    signal::kill(child.id().cast_signed(), Signal::Int).unwrap();
    told.read_to_string(&mut all).unwrap();
    (child.wait().unwrap().code(), all)
}

/// Planted faults: a record that is written at the end only, and one that says nothing of why it ended.
#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn ctrl_c_writes_what_was_measured() {
    let _alone = alone();
    let folder = Folder::new("causal-ctrl-c");
    let child = started(&folder, &["--progress", "done", "--site", "sixty", "--for", "60s"]);
    // The first line of where it stands: a round is over.
    let (code, err) = interrupted_at(child, "round 1");
    assert_eq!(code, Some(130), "{err}");
    let record = record(&folder);
    assert_eq!(record.cut_short.as_deref(), Some("interrupted"));
    let control = record.control.unwrap();
    assert!(!record.sites[0].windows.is_empty() && control.pairs > 1, "{control:?}");
}
