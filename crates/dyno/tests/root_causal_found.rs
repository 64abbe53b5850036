//! What `dyno causal` takes for progress where nobody names any: a caller, a function of Go, what a server sends, nothing.
//!
//! What is found is judged, and no effect.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Background, Ended, Folder, PROBES_OUT, dyno, run_with_probes, wait_for};
use dyno_record::causal::Causal;
use dyno_sys::priority::First;
use dyno_sys::proc;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One program at a time is looked at.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Units of two milliseconds through a function that calls others; a helper that is entered half a million times a second;
/// and one that comes twice a second. Each adds to its count in a file that the test maps nothing of: it reads it.
const OFFERS: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
static volatile unsigned long long sink;
static volatile long *done;
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec / 1e9; }
static __attribute__((noinline)) void tiny(void) { for (long i = 0; i < 300; i++) sink += i; done[1]++; }
static __attribute__((noinline)) void unit_of_work(void) { for (long i = 0; i < 1000; i++) { tiny(); sink += i; } done[0]++; }
static __attribute__((noinline)) void seldom(void) { for (long i = 0; i < 20000000; i++) sink += i; done[2]++; }
int main(int count, char **words) {
    int file = open(words[1], O_RDWR | O_CREAT, 0600);
    if (count < 2 || file < 0 || ftruncate(file, 4096)) return 1;
    done = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (double last = now();;) { unit_of_work(); if (now() - last > 0.5) { seldom(); last = now(); } }
}
"#;

/// Builds and starts it; it ends with the test.
struct Worker {
    child: Child,
    counts: PathBuf,
}

impl Worker {
    fn start(folder: &Folder) -> Worker {
        let (source, program, counts) =
            (folder.file("offers.c", OFFERS), folder.path("offers"), folder.path("counts"));
        let built = Command::new("cc").args(["-O1", "-g", "-o"]).arg(&program).arg(source).status().unwrap();
        assert!(built.success());
        let child = Command::new(program).arg(&counts).spawn().unwrap();
        let worker = Worker { child, counts };
        wait_for("it works", || worker.units() > 10);
        worker
    }

    fn units(&self) -> u64 {
        let raw = std::fs::read(&self.counts).unwrap_or_default();
        raw.get(..8).map_or(0, |raw| u64::from_ne_bytes(raw.try_into().unwrap()))
    }

    /// Units per second, while `body` runs.
    fn rate<T>(&self, body: impl FnOnce() -> T) -> (T, f64) {
        let (begun, before) = (std::time::Instant::now(), self.units());
        let value = body();
        (value, (self.units() - before) as f64 / begun.elapsed().as_secs_f64())
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// It ran to its end; in a short time it may have come to no answer, which is a no.
fn ran(ended: &Ended) -> bool {
    ended.code == Some(0) || ended.code == Some(1) && ended.err.contains("error: nothing was measured")
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn where_nothing_is_named_the_caller_that_does_a_unit_is_found_and_counted() {
    let (_alone, _first) = (alone(), First::in_line());
    let folder = Folder::new("causal-found");
    let worker = Worker::start(&folder);
    let pid = worker.child.id().to_string();
    let mut command = dyno(["causal", "--for", "12s", "--levels", "50", "--json", &pid]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let (ended, rate) = worker.rate(|| Ended::within(PROBES_OUT, command.spawn().unwrap()));
    assert!(ran(&ended), "{}", ended.err);
    let record = Causal::from_json(&ended.out).unwrap();
    let progress = &record.progress;
    assert_eq!(progress.name, "unit_of_work", "{progress:?}");
    assert!(progress.chosen.is_some(), "{progress:?}");
    assert!(ended.err.contains("progress: unit_of_work, "), "{}", ended.err);
    // Its own count is of all the time, delays of the experiments among it.
    assert!(progress.per_second > 0.5 * rate && progress.per_second < 2.5 * rate, "{progress:?} {rate}");
    for too in ["tiny", "seldom", "main"] {
        assert!(progress.candidates.iter().all(|one| one.name != too), "{progress:?}");
    }
}

/// A unit is a thousand digests: those come too often to be counted.
const GO_UNITS: &str = r#"
package main

import "crypto/sha256"

var sink byte

//go:noinline
func digest(b []byte) byte { h := sha256.Sum256(b); return h[0] }

//go:noinline
func handleOne(b []byte) {
	for i := range b[:1000] {
		b[i] = digest(b)
	}
	sink = b[0]
}

func main() {
	b := make([]byte, 2048)
	for {
		handleOne(b)
	}
}
"#;

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and go"]
fn a_unit_of_a_stock_go_program_is_found() {
    let (_alone, _first) = (alone(), First::in_line());
    let folder = Folder::new("causal-go");
    let (source, program) = (folder.file("main.go", GO_UNITS), folder.path("units"));
    let built = Command::new("go").args(["build", "-o"]).arg(&program).arg(source).status().unwrap();
    assert!(built.success());
    let units = Background(Command::new(&program).spawn().unwrap());
    let ended = run_with_probes(["causal", "--for", "12s", "--levels", "50", "--json", &units.pid()]);
    assert!(ran(&ended), "{}", ended.err);
    let record = Causal::from_json(&ended.out).unwrap();
    assert_eq!(record.progress.name, "main.handleOne", "{:?}", record.progress);
    assert!((20.0..20_000.0).contains(&record.progress.per_second), "{:?}", record.progress);
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON)"]
fn what_a_server_sends_is_found_and_its_functions_are_told() {
    // Not before others: all CPUs would be full of what comes first, and the kernel's own threads wait for them.
    let _alone = alone();
    let server = common::Server::serve(&["--naive", "--log-file", "/dev/null"]);
    let worker = *proc::tree(server.pid()).last().unwrap();
    let url = format!("http://{}/json", server.place);
    let load = dyno(["load", "-t1", "-c8", "-d60s", &url]).stdout(Stdio::null()).spawn().unwrap();
    let _load = Background(load);
    let ended = run_with_probes(["causal", "--for", "8s", "--levels", "50", "--json", &worker.to_string()]);
    assert!(ran(&ended), "{}", ended.err);
    let progress = Causal::from_json(&ended.out).unwrap().progress;
    assert!(progress.name.starts_with("syscall:"), "{progress:?}");
    assert!(progress.chosen.is_some_and(|why| why.contains("what it sends most often")));
}

#[test]
#[ignore = "needs root (CAP_BPF, CAP_PERFMON) and cc"]
fn a_process_that_does_nothing_offers_nothing_in_three_lines() {
    let _alone = alone();
    let idle = Background::sleeper();
    let ended = run_with_probes(["causal", "--for", "10s", &idle.pid()]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    // What it does comes first, line by line; the failure is the last three.
    let lines: Vec<&str> = ended.err.lines().rev().take(3).collect();
    assert!(lines[2].starts_with("error: nothing is named that counts as progress"), "{}", ended.err);
    assert!(lines[0].starts_with("  try:    "), "{}", ended.err);
}
