//! What the verbs say of recorded inputs, word for word: help, tables, pages, verdicts and findings.
//!
//! Inputs and outputs lie in `golden/`; each output is what `dyno` printed on standard output, run inside that folder. After
//! a wanted change of words, `DYNO_GOLDEN=write cargo test -p dyno --test golden` writes them anew, and the change is read
//! like any other.
//!
//! `climb-1.json` was written by the last program that wrote `dyno.climb/1`, in its simulated world, and is never to be
//! written anew: it has every pair and round, and trials of all three schedules, so that judge reaches its verdicts again.
//! The pairs of `climb.json` are made up.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, dyno};
use std::path::Path;
use std::process::Stdio;

/// Where inputs and outputs lie.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// The output's file, the exit status, and the words.
const CASES: [(&str, i32, &str); 58] = [
    ("out/report-climb.txt", 0, "report climb.json -o /dev/null --color always"),
    ("out/report-climb.html", 0, "report climb.json -o -"),
    ("out/report-causal.txt", 0, "report causal.json -o /dev/null --color always"),
    ("out/report-causal.html", 0, "report causal.json -o -"),
    ("out/report-load.html", 0, "report load-a.json -o -"),
    ("out/judge-climb.txt", 1, "judge climb.json"),
    ("out/judge-climb.json", 1, "judge climb.json --json"),
    ("out/report-climb-1.txt", 0, "report climb-1.json -o /dev/null --color always"),
    ("out/report-climb-1.html", 0, "report climb-1.json -o -"),
    ("out/judge-climb-1.txt", 0, "judge climb-1.json"),
    ("out/judge-climb-1.json", 0, "judge climb-1.json --json"),
    ("out/judge-numbers.txt", 0, "judge numbers-a.txt numbers-b.txt"),
    ("out/judge-numbers.json", 0, "judge numbers-a.txt numbers-b.txt --json"),
    ("out/judge-unpaired.txt", 1, "judge --unpaired --higher numbers-a.txt numbers-b.txt --alpha 0.1"),
    ("out/judge-two-climbs.txt", 0, "judge history/climb-2.json history/climb-5.json"),
    ("out/judge-two-climbs.json", 0, "judge history/climb-2.json history/climb-5.json --json"),
    ("out/judge-two-climbs.html", 0, "judge history/climb-2.json history/climb-5.json --html -"),
    (
        "out/judge-two-machines.txt",
        1,
        "judge history/climb-2.json history/climb-6.json --fail-under total>=0%",
    ),
    ("out/judge-two-profiles.txt", 0, "judge before.json after.json"),
    ("out/judge-two-loads.txt", 1, "judge load-a.json load-b.json"),
    ("out/compare.txt", 0, "compare history -o /dev/null --color always"),
    ("out/compare.json", 0, "compare history --json"),
    ("out/compare.html", 0, "compare history -o -"),
    ("out/report-climb.md", 0, "report climb.json -o /dev/null --format markdown --fail-under total>=2x"),
    ("out/report-climb.csv", 0, "report history/climb-4.json -o /dev/null --format csv"),
    (
        "out/report-climb.xml",
        1,
        "report history/climb-4.json -o /dev/null --format junit --fail-under total>=9x",
    ),
    (
        "out/report-climb.github",
        1,
        "report history/climb-4.json -o /dev/null --format github --fail-under total>=9x",
    ),
    ("out/audit-planted.xml", 1, "audit --from facts-planted.json --format junit --fail-on high"),
    ("out/diagnose-disk.md", 1, "diagnose --from seen-disk.json --format markdown"),
    ("out/flame-before.svg", 0, "flame before.json --format svg -o -"),
    ("out/flame-waiting.html", 0, "flame waiting.json -o -"),
    ("out/flame-hostile.svg", 0, "flame hostile.json --format svg --icicle -o -"),
    ("out/flame-hostile.folded", 0, "flame hostile.json --format folded -o -"),
    ("out/flame-diff.svg", 0, "flame --diff before.json after.json --requests 100,120 --format svg -o -"),
    ("out/flame-diff.html", 0, "flame --diff before.json after.json --requests 100,120 -o -"),
    ("out/flame-threads.svg", 0, "flame waiting.json --format svg --per-thread -o -"),
    ("out/flame-stacks.json", 0, "flame stacks.folded --format json -o -"),
    ("out/flame-stacks.speedscope.json", 0, "flame stacks.folded --counts us --format speedscope -o -"),
    ("out/flame-stacks.firefox.json", 0, "flame stacks.folded --format firefox -o -"),
    ("out/flame-perf-script.folded", 0, "flame perf-script.txt --format folded -o -"),
    ("out/flame-perf-script.json", 0, "flame perf-script.txt --format json -o -"),
    ("out/diagnose-calls.txt", 1, "diagnose --from seen-calls.json"),
    ("out/diagnose-disk.txt", 1, "diagnose --from seen-disk.json --color always"),
    ("out/diagnose-generator.txt", 1, "diagnose --from seen-generator.json"),
    ("out/diagnose-lock.txt", 1, "diagnose --from seen-lock.json"),
    ("out/diagnose-malloc.txt", 1, "diagnose --from seen-malloc.json"),
    ("out/diagnose-lock.html", 1, "diagnose --from seen-lock.json --html -"),
    ("out/diagnose-nothing.html", 0, "diagnose --from seen-nothing.json --html -"),
    ("out/diagnose-nothing.txt", 0, "diagnose --from seen-nothing.json"),
    ("out/audit-planted.txt", 0, "audit --from facts-planted.json"),
    ("out/audit-planted-full.txt", 1, "audit --from facts-planted.json --full --fail-on high --color always"),
    ("out/audit-planted.sarif", 0, "audit --from facts-planted.json --format sarif"),
    ("out/audit-planted.prom", 0, "audit --from facts-planted.json --format prometheus"),
    ("out/audit-planted.html", 0, "audit --from facts-planted.json --format html"),
    ("out/specimen-list.txt", 0, "specimen list"),
    ("out/specimen-list.json", 0, "specimen list --json"),
    ("out/specimen-explain.txt", 0, "specimen explain sync-log"),
    ("out/specimen-source.txt", 0, "specimen explain three-parts --source"),
];

/// Everything that has a page of help.
const HELPED: [&str; 30] = [
    "",
    "serve",
    "top",
    "floor",
    "load",
    "judge",
    "compare",
    "climb",
    "report",
    "profile",
    "offcpu",
    "flame",
    "specimen",
    "specimen list",
    "specimen explain",
    "specimen run",
    "diagnose",
    "causal",
    "audit",
    "audit facts",
    "tune",
    "tune plan",
    "tune apply",
    "tune confirm",
    "tune status",
    "tune rollback",
    "tune persist",
    "tune snapshot",
    "tune diff",
    "doctor",
];

/// Runs it among the inputs, on a terminal of a hundred columns.
fn said(words: &str) -> Ended {
    let mut command = dyno(words.split_whitespace());
    command.current_dir(FOLDER).env("COLUMNS", "100");
    Ended::of(command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap())
}

/// Holds a text against the file, or writes it where that is asked for.
fn same(file: &str, words: &str, text: &str) -> Result<(), String> {
    let path = Path::new(FOLDER).join(file);
    if std::env::var_os("DYNO_GOLDEN").is_some_and(|what| what == "write") {
        std::fs::write(&path, text).unwrap();
        return Ok(());
    }
    let expected = std::fs::read_to_string(&path).unwrap();
    let (was, is) = (expected.lines(), text.lines());
    let differs = was.zip(is).enumerate().find(|(_, (was, is))| was != is);
    match differs {
        Some((at, (was, is))) => Err(format!("dyno {words}: line {}\n  was {was}\n  is  {is}", at + 1)),
        None if expected != text => Err(format!("dyno {words}: another number of lines")),
        None => Ok(()),
    }
}

#[test]
fn what_is_said_of_recorded_inputs_is_what_it_was() {
    let wrong = CASES.iter().filter_map(|(file, code, words)| {
        let ended = said(words);
        assert_eq!(ended.code, Some(*code), "dyno {words}: {}", ended.err);
        same(file, words, &ended.out).err()
    });
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn help_is_what_it_was() {
    let pages = HELPED.map(|verb| {
        let words = format!("{verb} --help");
        format!("$ dyno {}\n{}\n", words.trim(), said(&words).done())
    });
    same("out/help.txt", "--help", &pages.concat()).unwrap();
}
