//! `dyno causal`: what is refused, in three lines and before anything is touched.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, run};

#[test]
fn mistakes_have_three_lines_and_write_nothing() {
    let folder = Folder::new("causal-mistakes");
    let place = folder.path("c.json");
    let place = place.to_str().unwrap();
    let nobody = (i32::MAX - 1).to_string();
    let lines = |words: &[&str]| run(["causal", "-o", place].iter().chain(words)).failed().join("\n");
    assert!(lines(&[&nobody, "--progress", "f"]).contains("there is no process"));
    assert!(
        lines(&["--progress", "f", "--", "no-such-program-here"]).contains("command -v no-such-program-here")
    );
    assert!(lines(&["1", "--levels", "0"]).contains("from 1 to 100"));
    assert!(lines(&["1", "--load=-c 8"]).contains("--load names no server"));
    assert!(lines(&["--progress", "f", "--", "true"]).contains("ended before it could be watched"));
    assert!(lines(&[]).contains("error: "));
    assert!(!std::path::Path::new(place).exists(), "nothing is written when nothing was tried");
}

#[test]
fn a_load_that_cannot_begin_is_told_with_its_own_words() {
    let folder = Folder::new("causal-load");
    let place = folder.path("c.json");
    let me = std::process::id().to_string();
    let words = ["causal", "-o", place.to_str().unwrap(), "--load", "http://127.0.0.1:1/ -c 1", &me];
    let ended = run(words);
    let lines = ended.failed();
    // Or later, on a machine on which it takes long to begin.
    assert!(lines[0].contains("the load 'http://127.0.0.1:1/ -c 1' ended "), "{}", ended.err);
}

#[test]
fn a_place_for_the_record_that_is_its_page_is_refused() {
    let folder = Folder::new("causal-place");
    let place = folder.path("c.html");
    let ended = run(["causal", "1", "--progress", "f", "-o", place.to_str().unwrap()]);
    assert!(ended.failed()[0].contains("over its record"), "{}", ended.err);
}
