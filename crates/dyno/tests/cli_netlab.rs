//! `dyno netlab under`: what a program is put under is in force for it.
#![allow(clippy::unwrap_used)]

mod common;

use common::run;

fn under(words: &[&str], program: &[&str]) -> common::Ended {
    run(["netlab", "under"].iter().chain(words).chain(&["--"]).chain(program))
}

#[test]
fn a_program_is_behind_its_filters_in_its_class_and_without_huge_pages() {
    let words = ["--filters", "2", "--class", "batch nice 3", "--pages", "small"];
    let status = under(&words, &["/bin/cat", "/proc/self/status", "/proc/self/stat"]);
    let text = status.done();
    assert!(text.contains("Seccomp_filters:\t2") && text.contains("THP_enabled:\t0"), "{text}");
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    assert_eq!((fields[19 - 3], fields[41 - 3]), ("3", "3"), "nice, and the number of batch");
}

#[test]
fn a_class_that_does_not_exist_is_named_and_nothing_is_started() {
    let ended = under(&["--class", "hurried"], &["/bin/echo", "started"]);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""));
    assert!(
        ended.err.contains("cannot be in class \"hurried\"") && ended.err.contains("batch nice 0"),
        "{}",
        ended.err
    );
}
