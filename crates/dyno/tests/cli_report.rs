//! `dyno report`: any record drawn again, into the place that was meant and no other.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/record.rs"]
mod record;

use common::{Folder, run, run_with_input, word};
use std::os::unix::fs::symlink;

fn recorded(folder: &Folder) -> String {
    folder.file("climb.json", serde_json::to_vec(&record::climb(7)).unwrap())
}

#[test]
fn the_page_lies_beside_its_record_and_the_table_is_printed() {
    let folder = Folder::new("report");
    let file = recorded(&folder);
    let ended = run(["report", &file]);
    assert!(ended.done().contains("one-send"), "{}", ended.out);
    assert!(!ended.out.contains('\u{1b}'), "no colour where nobody looks");
    let page = std::fs::read_to_string(folder.path("climb.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"), "{}", &page[..60]);
    assert_eq!(ended.err, format!("report    {}\n", word(&folder.path("climb.html"))));
    assert!(run(["report", &file, "--color", "always"]).done().contains('\u{1b}'));
}

#[test]
fn a_causal_record_is_drawn_as_one_by_what_it_says_of_itself() {
    use dyno_record::causal::{CAUSAL_SCHEMA, Causal, Site};
    let folder = Folder::new("report-causal");
    let site = Site { name: "render_page".to_owned(), ..Site::default() };
    let record = Causal { schema: CAUSAL_SCHEMA.to_owned(), sites: vec![site], ..Causal::default() };
    let file = folder.file("any-name.json", serde_json::to_vec(&record).unwrap());
    assert!(run(["report", &file]).done().contains("render_page"));
    let page = std::fs::read_to_string(folder.path("any-name.html")).unwrap();
    assert!(page.contains("Causal profile") && page.contains("render_page"), "{page}");
    let newer = folder.file("newer.json", r#"{"schema":"dyno.causal/99"}"#);
    assert!(run(["report", &newer]).failed()[1].contains("another version of dyno"));
}

#[test]
fn the_page_goes_where_it_is_told() {
    let folder = Folder::new("report-told");
    let file = recorded(&folder);
    let page = word(&folder.path("elsewhere.html"));
    run(["report", &file, "-o", &page]).done();
    let written = std::fs::read_to_string(&page).unwrap();
    assert_eq!(run(["report", &file, "-o", "-"]).done(), written);
    let json = std::fs::read_to_string(&file).unwrap();
    assert_eq!(run_with_input(["report", "-"], &json).done(), written);
}

#[test]
fn a_link_is_never_written_through_and_a_record_never_over() {
    let folder = Folder::new("report-link");
    let file = recorded(&folder);
    let victim = folder.file("victim", "precious");
    symlink(&victim, folder.path("climb.html")).unwrap();
    assert!(run(["report", &file]).failed()[0].ends_with("it is a symbolic link"));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert!(run(["report", &file, "-o", &file]).failed()[0].contains("over its record"));
    assert!(run(["report", &file, "-o", "/dev/full"]).failed()[1].contains("the disk is full"));
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let folder = Folder::new("report-none");
    for (name, text, says) in [
        ("numbers", "[1,2,3]", "this is not a climb record"),
        ("other.json", r#"{"schema":"dyno.climb/99"}"#, "dyno.climb/99"),
        ("empty", "", "this is not a climb record"),
    ] {
        let file = folder.file(name, text);
        let ended = run(["report", &file]);
        assert!(ended.failed()[0].contains(says) && ended.err.contains(&file), "{}", ended.err);
    }
}
