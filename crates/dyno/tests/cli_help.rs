//! Help, version, mistakes on the command line, and readers who stop reading.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, dyno, run};
use std::fs::OpenOptions;
use std::process::Stdio;

const VERBS: [&str; 17] = [
    "serve",
    "floor",
    "load",
    "judge",
    "climb",
    "report",
    "profile",
    "offcpu",
    "flame",
    "specimen",
    "diagnose",
    "causal",
    "audit",
    "doctor",
    "tune",
    "top",
    "completions",
];

#[test]
fn help_of_every_verb_begins_with_a_sentence_and_three_examples() {
    let mut lines = vec![vec!["--help"], vec!["help"], vec![]];
    lines.extend(VERBS.map(|verb| vec![verb, "--help"]));
    for words in lines {
        let ended = run(&words);
        let help = ended.done();
        let first = help.lines().next().unwrap();
        assert!(first.ends_with('.') && first.starts_with(char::is_uppercase), "{words:?}: {first}");
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        let examples: Vec<&str> = examples.take_while(|line| !line.is_empty()).collect();
        assert_eq!(examples.len(), 3, "{words:?}: {examples:#?}");
        assert!(
            examples.iter().all(|line| line.starts_with("  ") && line.contains("dyno ")),
            "{examples:#?}"
        );
        assert!(help.contains("\nUsage: dyno"), "{help}");
        assert!(ended.err.is_empty(), "{}", ended.err);
    }
}

#[test]
fn every_verb_is_in_the_help() {
    let ended = run(["--help"]);
    for verb in VERBS {
        assert!(ended.done().contains(&format!("\n  {verb} ")), "{verb} is missing in\n{}", ended.out);
    }
}

#[test]
fn help_is_no_wider_than_a_terminal_that_says_how_wide_it_is() {
    for (verb, columns) in VERBS.iter().flat_map(|verb| [40, 60, 100, 300].map(|columns| (verb, columns))) {
        let mut command = dyno([verb, "--help"]);
        command.env("COLUMNS", columns.to_string()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = Ended::of(command.spawn().unwrap());
        let widest = ended.done().lines().max_by_key(|line| line.chars().count()).unwrap();
        assert!(widest.chars().count() <= columns.min(100), "{verb} {columns}: {widest}");
    }
}

#[test]
fn the_version_is_a_name_a_number_a_commit_and_a_target() {
    let whole = run(["--version"]);
    assert_eq!(whole.done(), run(["-V"]).done());
    let line = whole.done().strip_suffix("\n").unwrap();
    let told = line.strip_prefix(&format!("dyno {} (", env!("CARGO_PKG_VERSION"))).unwrap();
    let parts: Vec<&str> = told.strip_suffix(')').unwrap().split(", ").collect();
    let commit = parts[0].trim_end_matches("-dirty");
    let is_commit = commit.len() == 12 && commit.bytes().all(|digit| digit.is_ascii_hexdigit());
    assert!(is_commit || commit == "commit unknown", "{line}");
    assert!(parts[1].starts_with(std::env::consts::ARCH) && parts[1].contains("linux"), "{line}");
}

#[test]
fn a_mistake_on_the_command_line_is_told_in_three_lines() {
    for words in [
        &["sevre"][..],
        &["--frobnicate"],
        &["serve", "--log"],
        &["serve", "--log", "loud"],
        &["serve", "--workers", "0"],
        &["serve", "--spin", "-1"],
        &["serve", "--listen", ":8080"],
        &["serve", "--congestion", "a name"],
        &["serve", "--idle-timeout", "0"],
        &["serve", "--control-fd", "777"],
        &["floor"],
        &["floor", "--answer", "/nowhere/answer"],
        &["load"],
        &["load", "127.0.0.1:80"],
        &["load", "https://127.0.0.1/"],
        &["load", "http://127.0.0.1:1/", "-d", "soon"],
        &["load", "http://127.0.0.1:1/", "-s", "x.lua"],
        &["load", "http://127.0.0.1:1/", "-R", "1000"],
        &["load", "http://127.0.0.1:1/", "-t", "4", "-c", "2"],
        &["load", "http://127.0.0.1:1/", "-p", "2147483646"],
        &["load", "http://127.0.0.1:1/", "--pin", "x"],
        &["load", "http://127.0.0.1:1/", "--expect", "colour=red"],
        &["load", "http://127.0.0.1:1/", "-H", "nonsense"],
        &["judge"],
        &["judge", "/nowhere/a", "/nowhere/b"],
        &["judge", "/nowhere/a"],
        &["judge", "-", "-"],
        &["judge", "a", "b", "--alpha", "2"],
        &["report"],
        &["report", "/nowhere/climb.json"],
        &["climb", "--time", "-1"],
    ] {
        run(words).failed();
    }
}

#[test]
fn a_reader_who_left_before_the_first_word_is_no_error() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let child = dyno(["--help"]).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    let ended = Ended::of(child);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = dyno(["--help"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    let ended = Ended::of(child);
    let lines = ended.failed();
    assert!(
        lines[0].starts_with("error: cannot write to standard output") && lines[1].contains("full"),
        "{lines:?}"
    );
}
