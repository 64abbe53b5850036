//! Every specimen is built here and both its sides answer; what is said of them is true of their sources.
//!
//! A compiler that is missing skips its specimens, but never in CI: there nobody reads words.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/schema.rs"]
mod schema;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use dyno_record::finding::Class;
use dyno_sys::proc;
use dyno_sys::signal::{self, Signal};
use serde_json::Value;

use common::{Ended, Folder, dyno, run, wait_for};

/// Names of fewer letters stand in any program by chance.
const TELLING_LETTERS: usize = 7;

/// As the list tells it.
#[derive(serde::Deserialize)]
struct Listed {
    name: String,
    language: String,
    class: Option<Class>,
    fetches: Option<String>,
    connections: Option<usize>,
}

fn listed() -> Vec<Listed> {
    let list: serde_json::Value = serde_json::from_str(run(["specimen", "list", "--json"]).done()).unwrap();
    serde_json::from_value(list["specimens"].clone()).unwrap()
}

/// Builds are kept between runs of the tests, by the hash of their sources.
fn cache() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("specimens");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// `dyno specimen run`, with the compilers' own caches where they always are.
fn specimen(name: &str, words: &[&str]) -> Command {
    let mut command = dyno(["specimen", "run", name]);
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    if std::env::var_os("GOCACHE").is_none() {
        command.env("GOCACHE", home.join(".cache/go-build"));
    }
    command.args(words).env("XDG_CACHE_HOME", cache());
    command
}

/// Waits as long as a compiler takes: dyno itself has the limits.
fn done(name: &str, words: &[&str]) -> Vec<Value> {
    let output: Output = specimen(name, words).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{name} {words:?}: {error}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Whether specimens in this language can be built here; in CI they must.
fn possible(language: &str) -> bool {
    let tool = match language {
        "C" => "cc",
        "C++" => "g++",
        "Rust" => "rustc",
        "Go" => "go",
        "Java" => "javac",
        other => panic!("no tool is known for {other}"),
    };
    // Whoever built this test has Rust, and with it a linker, which is the compiler of C.
    let is_owed = ["C", "Rust"].contains(&language);
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(has(tool) || !is_ci && !is_owed, "{tool} is missing, and may not be skipped here");
    if !has(tool) {
        eprintln!("skipped: specimens in {language}, because {tool} is missing");
    }
    has(tool)
}

/// Whether a build that fetches modules can: they are there, or the proxy answers. In CI it must.
fn can_fetch() -> bool {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specimens/http2-writer");
    let words = ["mod", "download", "golang.org/x/net", "golang.org/x/text"];
    let fetched = Command::new("go").args(words).current_dir(sources).env("GOTOOLCHAIN", "local").output();
    let can = fetched.is_ok_and(|output| output.status.success());
    let is_ci = std::env::var("CI").is_ok_and(|value| value == "true" || value == "1");
    assert!(can || !is_ci, "modules cannot be fetched, and in CI nothing may be skipped");
    if !can {
        eprintln!("skipped: a specimen whose modules cannot be fetched here");
    }
    can
}

/// How long each is looked at, once: the longest unit takes some 10 ms of a CPU, so one is missing only where others have the CPUs
/// for half a second on end. Nobody does beside these tests: they run alone, beside builds that yield. A second look would miss
/// what does nothing in one run of two in one case of four.
const LOOKED: &str = "0.5";

/// The defect in a neutral build, the repair with its own names: so both builds are seen, and both sides.
fn both_sides_answer(languages: &[&str]) {
    let of = listed().into_iter().filter(|listed| languages.contains(&listed.language.as_str()));
    let mut seen = 0;
    for listed in of.filter(|listed| possible(&listed.language)) {
        seen += 1;
        if listed.fetches.is_some() && !can_fetch() {
            continue;
        }
        if listed.connections.is_some() {
            loaded_sides_answer(&listed.name);
            continue;
        }
        for words in [&["--defect", "--neutral"][..], &["--repaired"]] {
            let lines = done(&listed.name, &[words, &["--json", "--for", LOOKED]].concat());
            assert!(lines[0]["pid"].as_i64().unwrap() > 1, "{lines:?}");
            assert!(lines[1]["units"].as_i64().unwrap() > 0, "{}: {lines:?}", listed.name);
            assert!(lines[1]["cpu_ns"].as_i64().unwrap() > 0, "{}: {lines:?}", listed.name);
        }
    }
    assert!(seen > 0 || languages.iter().all(|language| !possible(language)), "{languages:?}");
}

fn loaded_sides_answer(name: &str) {
    for naming in [&["--json"][..], &["--json", "--neutral"]] {
        let words = [naming, &["--rounds", "5", "--for", "0.25", "--seed", "7"]].concat();
        let output = specimen(name, &words).output().unwrap();
        // So short a run may show no gain; it must have its figures.
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
        schema::holds("specimen", &String::from_utf8_lossy(&output.stdout));
        let record: Value = serde_json::from_slice(&output.stdout).unwrap();
        let rounds = record["rounds"].as_array().unwrap();
        assert_eq!(
            (rounds.len(), &record["schema"], &record["seed"]),
            (5, &"dyno.specimen/1".into(), &7.into())
        );
        for side in ["defect", "repaired"] {
            assert!(rounds.iter().all(|round| round[side]["units"].as_i64().unwrap() > 0), "{record}");
        }
    }
}

#[test]
fn both_sides_of_every_specimen_in_c_answer() {
    both_sides_answer(&["C"]);
}

#[test]
fn both_sides_of_every_other_specimen_answer() {
    both_sides_answer(&["C++", "Rust", "Go", "Java"]);
}

#[test]
fn no_name_that_tells_is_left_in_a_neutral_program() {
    let truths = truths();
    for (name, language) in [("sync-log", "C"), ("tree-index", "C++"), ("global-lock", "Rust")] {
        if !possible(language) {
            continue;
        }
        let folder = Folder::new(&format!("neutral-{language}"));
        let mut command = specimen(name, &["--defect", "--neutral", "--for", "0.05"]);
        let output = command.env("XDG_CACHE_HOME", folder.path("")).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        let program = program_in(&folder.path("dyno/specimens"));
        let telling = truths[name].iter().filter(|word| word.len() >= TELLING_LETTERS);
        for word in telling.chain([&name.to_owned()]) {
            let left = program.windows(word.len()).any(|window| window == word.as_bytes());
            assert!(!left, "{word} stands in the neutral program of {name}");
        }
    }
}

/// The one program that was built there.
fn program_in(root: &Path) -> Vec<u8> {
    let entries = std::fs::read_dir(root).unwrap().flatten();
    let mut programs = entries.map(|entry| entry.path().join("program")).filter(|path| path.is_file());
    let program = std::fs::read(programs.next().unwrap()).unwrap();
    assert_eq!(programs.next(), None);
    program
}

/// The names that each specimen replaces.
fn truths() -> BTreeMap<String, Vec<String>> {
    #[derive(serde::Deserialize)]
    struct Truth {
        name: String,
        rename: Vec<String>,
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specimens");
    let folders = std::fs::read_dir(root).unwrap().flatten();
    let texts = folders.filter_map(|entry| std::fs::read_to_string(entry.path().join("specimen.toml")).ok());
    let truths = texts.map(|text| toml::from_str::<Truth>(&text).unwrap());
    truths.map(|truth| (truth.name, truth.rename)).collect()
}

#[test]
fn the_list_names_every_specimen_once_and_each_is_explained() {
    let listed = listed();
    assert!(listed.len() >= 18, "{}", listed.len());
    let page = run(["specimen", "list"]);
    for entry in &listed {
        let class = serde_json::to_value(entry.class).unwrap();
        let begins = format!("{} ", entry.name);
        let lines: Vec<&str> = page.done().lines().filter(|line| line.starts_with(&begins)).collect();
        assert_eq!(lines.len(), 1, "{}", entry.name);
        assert!(lines[0].contains(class.as_str().unwrap_or_default()), "{}", lines[0]);
        let explained = run(["specimen", "explain", &entry.name]);
        let place = format!("specimens/{}/", entry.name);
        assert!(explained.done().contains(&place), "{}", explained.out);
        assert!(explained.done().matches("specimens/").count() >= 2, "{}", explained.out);
    }
}

#[test]
fn a_missing_compiler_is_not_possible_here() {
    let folder = Folder::new("no-compiler");
    for (name, tool) in
        [("sync-log", "cc"), ("tree-index", "g++"), ("pool-of-100", "go"), ("wait-notify", "javac")]
    {
        let mut command = dyno(["specimen", "run", name]);
        command.env("PATH", "").env("XDG_CACHE_HOME", folder.path(tool));
        let ended = Ended::from(command.output().unwrap());
        let lines = ended.failed();
        assert_eq!(lines[0], format!("error: not possible here: no {tool}"));
        assert!(lines[1].contains(name), "{lines:?}");
    }
}

#[test]
fn a_source_that_does_not_build_is_told_with_the_compilers_words() {
    let folder = Folder::new("broken-compiler");
    let compiler = folder.file("cc", "#!/bin/sh\necho no room for code\nexit 3\n");
    std::fs::set_permissions(&compiler, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = dyno(["specimen", "run", "hot-lock"]);
    command.env("PATH", folder.path("")).env("XDG_CACHE_HOME", folder.path("cache"));
    let ended = Ended::from(command.output().unwrap());
    assert_eq!(ended.code, Some(2), "{}", ended.err);
    assert!(
        ended.err.contains("failed (exit status 3)") && ended.err.contains("no room for code"),
        "{}",
        ended.err
    );
}

#[test]
fn a_cache_that_others_may_write_to_is_not_used() {
    let folder = Folder::new("open-cache");
    let root = folder.path("cache/dyno/specimens");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::set_permissions(&root, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let mut command = dyno(["specimen", "run", "hot-lock"]);
    command.env("XDG_CACHE_HOME", folder.path("cache"));
    let ended = Ended::from(command.output().unwrap());
    assert!(ended.failed()[1].contains("others own it or may write to it"), "{}", ended.err);
}

/// CPU time after which a side has done something: a unit takes a thousandth of it.
const BEGUN_NS: u64 = 20_000_000;

#[test]
fn one_side_ends_with_its_figures_when_dyno_is_interrupted() {
    assert!(possible("C"));
    let mut child = specimen("byte-per-call", &["--defect", "--json", "--for", "60s"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let first: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    let side = format!("/proc/{}", first["pid"]);
    assert!(Path::new(&side).exists(), "{first}");
    let pid = first["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).unwrap();
    wait_for("a side that works", || proc::run_ns(pid).is_ok_and(|ns| ns >= BEGUN_NS));
    signal::kill(child.id().cast_signed(), Signal::Int).unwrap();
    let figures: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
    assert!(figures["units"].as_i64().unwrap() > 0, "{figures}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    wait_for("the end of the side", || !Path::new(&side).exists());
}

#[test]
fn mistakes_are_told_in_three_lines() {
    for words in [
        &["specimen", "run", "sync-lgo"][..],
        &["specimen", "explain", "nothing-like-it"],
        &["specimen", "run", "sync-log", "--rounds", "4"],
        &["specimen", "run", "sync-log", "--defect", "--repaired"],
        &["specimen", "run", "sync-log", "--for", "0"],
    ] {
        run(words).failed();
    }
    assert!(run(["specimen", "run", "sync-lgo"]).err.contains("did you mean sync-log?"));
}
