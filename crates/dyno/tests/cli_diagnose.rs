//! `dyno diagnose`: who cannot be watched, what an idle process gives, and an observation judged again.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Background, Folder, run};

/// What was seen of a server under a quota, as `-o` would write it.
const THROTTLED: &str = r#"{"schema": "dyno.seen/1", "duration_s": 10.0,
    "host": {"cpus": 2, "all_ns": 20000000000, "idle_ns": 15000000000},
    "process": {"cpu_ns": 5000000000},
    "threads": [{"tid": 7, "name": "w", "run_ns": 5000000000}],
    "quota": {"cpus": 0.5, "periods": 100, "throttled": 60, "throttled_ns": 4000000000}}"#;

#[test]
fn a_process_that_is_not_there_is_an_error_in_three_lines() {
    let gone = run(["diagnose", "2147483646"]);
    assert_eq!(gone.code, Some(2));
    assert_eq!(gone.err.lines().count(), 3, "{}", gone.err);
    assert!(gone.err.contains("there is no process 2147483646"), "{}", gone.err);
}

#[test]
fn a_zombie_is_an_error_that_says_so() {
    let mut ended = Background::sleeper();
    ended.0.kill().unwrap();
    let deadline = std::time::Instant::now() + common::DEADLINE;
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", ended.0.id())).unwrap();
    while !state().contains(") Z ") {
        assert!(std::time::Instant::now() < deadline, "it never ended");
        std::thread::yield_now();
    }
    let zombie = run(["diagnose".to_owned(), ended.pid()]);
    assert_eq!(zombie.code, Some(2));
    assert!(zombie.err.contains("zombie"), "{}", zombie.err);
}

#[test]
fn an_idle_process_gives_nothing_and_says_that_nothing_ran() {
    let idle = Background::sleeper();
    let said =
        run(["diagnose".to_owned(), "-p".to_owned(), idle.pid(), "--for".to_owned(), "600ms".to_owned()]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("nothing ran"), "{}", said.out);
}

#[test]
fn a_target_that_ends_meanwhile_is_told() {
    // Nobody waits for it yet: a zombie is an end too.
    let mut short = std::process::Command::new("sleep").arg("3").spawn().unwrap();
    let said = run(["diagnose", &short.id().to_string(), "--for", "20s"]);
    short.wait().unwrap();
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("ended while it was watched"), "{}", said.out);
}

#[test]
fn a_place_that_cannot_be_written_is_told_before_anything_is_watched() {
    let idle = Background::sleeper();
    let said = run(["diagnose", &idle.pid(), "--for", "1h", "-o", "/nowhere/seen.json"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(said.err.lines().count(), 3, "{}", said.err);
}

#[test]
fn a_load_that_nobody_answers_is_an_error() {
    let idle = Background::sleeper();
    // Port 9 is discard's: nobody listens there on a machine of today.
    let said = run(["diagnose", &idle.pid(), "--for", "500ms", "--load", "http://127.0.0.1:9/ -c 2"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert_eq!(said.err.lines().count(), 3, "{}", said.err);
}

#[test]
fn a_diagnosis_that_must_be_complete_ends_with_an_error_where_rules_could_not_look() {
    let folder = Folder::new("diagnose-complete");
    let seen = folder.file("seen.json", THROTTLED);
    let said = run(["diagnose", "--from", &seen, "--require-complete"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("could not look") && said.err.contains("packet_tap"), "{}", said.err);
    assert_eq!(said.err.lines().count(), 3, "{}", said.err);
}

#[test]
fn what_was_seen_is_judged_again_and_the_exit_status_follows() {
    let folder = Folder::new("diagnose-from");
    let seen = folder.file("seen.json", THROTTLED);
    let said = run(["diagnose", "--from", &seen, "--json"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    let record: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(
        (&record["schema"], &record["findings"][0]["class"]),
        (&"dyno.diagnosis/1".into(), &"throttled".into())
    );
    assert!(record["not_looked_at"].as_array().unwrap().iter().any(|one| one["what"] == "sync_io"));
    assert_eq!(run(["diagnose", "--from", &seen, "--fail-on", "never"]).code, Some(0));
}

#[test]
fn what_is_no_observation_is_refused() {
    let folder = Folder::new("diagnose-odd");
    // A list; what another verb wrote; a profile in it that points nowhere.
    let torn =
        r#"{"schema": "dyno.seen/1", "on_cpu": {"stacks": [{"frames": [7], "samples": 1, "weight_ns": 1}]}}"#;
    for odd in ["[1, 2]", r#"{"schema": "dyno.profile/1"}"#, torn] {
        let odd = folder.file("odd.json", odd);
        let said = run(["diagnose", "--from", &odd]);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains("is no observation"), "{}", said.err);
    }
}
