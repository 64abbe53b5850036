//! Names that are misspelt, and what shells and man(1) read: every verb says what was meant before it starts anything.
#![allow(clippy::unwrap_used)]

mod common;

use std::process::Command;

use common::{Folder, run};

const PLAN: &str = include_str!("../../../examples/nginx.toml");

/// What was said of a mistake that must end with 2 and leave standard output alone.
fn refused(words: &[&str]) -> String {
    let ended = run(words);
    assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
    assert!(ended.out.is_empty(), "{words:?}: {}", ended.out);
    ended.err
}

#[test]
fn a_misspelt_name_is_told_the_one_that_was_meant() {
    for (words, meant) in [
        (&["climb", "--rung", "one-sned"][..], "one-send"),
        (&["causal", "1", "--progress", "syscall:wriet"], "syscall:write"),
        (&["tune", "plan", "net.rsp"], "net.rps"),
        (&["specimen", "explain", "sync-lgo"], "sync-log"),
        (&["man", "clmb"], "climb"),
    ] {
        let said = refused(words);
        assert!(said.contains(&format!("  likely: did you mean {meant}?\n")), "{words:?}: {said}");
    }
}

/// Planted fault: what nothing is found of has nothing to be done about it.
#[test]
fn a_device_that_is_not_there_is_told() {
    let said = refused(&["tune", "plan", "net.rps:no-such-device"]);
    assert!(said.starts_with("error: there is no network device no-such-device here\n"), "{said}");
}

/// Planted fault: the list has claims, and not what they cost.
#[test]
fn the_list_of_rungs_says_what_each_risks() {
    let listed = run(["climb", "--list"]).done().to_owned();
    let of = |rung: &str| listed.lines().find(|line| line.starts_with(rung)).unwrap().to_owned();
    assert!(of("log-ring").contains("; risk: lines still in the ring are lost"), "{listed}");
    assert!(
        of("sandbox-off").contains("; only with --rung sandbox-off; risk: GIVES UP SECURITY"),
        "{listed}"
    );
    assert!(!of("one-send").contains("risk"), "{listed}");
}

#[test]
fn a_plans_mistake_is_shown_where_it_stands() {
    let folder = Folder::new("mistakes");
    let plan = folder.file("plan.toml", PLAN.replacen("claim =", "clame =", 1));
    let said = refused(&["climb", &plan]);
    let lines: Vec<&str> = said.lines().collect();
    let (place, picture) = (lines[0], &lines[2..4]);
    assert!(
        place.starts_with(&format!("error: {plan}:")) && place.contains("unknown key \"clame\""),
        "{said}"
    );
    assert!(picture[0].contains("| clame = "), "{said}");
    assert_eq!(picture[0].find("clame"), picture[1].find("^^^^^"), "{said}");
    assert!(said.contains("  likely: did you mean claim?\n"), "{said}");
}

#[test]
fn bash_completes_verbs_flags_and_names_by_the_script() {
    let folder = Folder::new("completions");
    let script = folder.file("dyno.bash", run(["completions", "bash"]).done());
    let dyno = std::path::Path::new(env!("CARGO_BIN_EXE_dyno"));
    let path = format!("{}:{}", dyno.parent().unwrap().display(), std::env::var("PATH").unwrap_or_default());
    for (line, wanted) in
        [("dyno cl", "climb"), ("dyno climb --rung one", "one-send"), ("dyno load --lat", "--latency")]
    {
        let words = line.split(' ').count();
        let last = line.rsplit(' ').next().unwrap();
        let asked = format!(
            "source {script}; COMP_WORDS=({line}); COMP_CWORD={}; COMP_TYPE=9; _clap_complete_dyno dyno {last} x; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            words - 1
        );
        let mut bash = Command::new("bash");
        let output = bash.args(["--norc", "-c", &asked]).env("PATH", &path).output().unwrap();
        let offered = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(offered.lines().any(|one| one.trim() == wanted), "{line}: {offered}");
    }
}

#[test]
fn every_page_for_man_is_written_into_the_folder() {
    let folder = Folder::new("man");
    let into = format!("{}/pages", folder.file("x", "").trim_end_matches("/x"));
    assert_eq!(run(["man", "--all", &into]).done(), "");
    let page = std::fs::read_to_string(format!("{into}/dyno-climb.1")).unwrap();
    assert!(page.starts_with(".TH DYNO-CLIMB 1 ") && page.is_ascii(), "{page}");
}
