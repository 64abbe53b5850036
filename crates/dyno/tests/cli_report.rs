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

/// Planted fault: the same file under another name is another file.
#[test]
fn a_record_is_not_written_over_whatever_it_is_called() {
    let folder = Folder::new("report-over");
    let file = recorded(&folder);
    let record = std::fs::read(&file).unwrap();
    std::fs::hard_link(&file, folder.path("hard.html")).unwrap();
    symlink(&file, folder.path("soft.html")).unwrap();
    std::fs::create_dir(folder.path("sub")).unwrap();
    let roundabout = word(&folder.path("sub/../climb.json"));
    for (over, read) in [
        (roundabout, &file),
        (word(&folder.path("hard.html")), &file),
        (file.clone(), &word(&folder.path("soft.html"))),
    ] {
        let lines = run(["report", read, "-o", &over]).failed().join("\n");
        assert!(lines.contains("would be written over") && lines.contains("-o PAGE.html"), "{lines}");
    }
    assert!(run(["report", &word(&folder.path("soft.html"))]).failed()[0].contains("would be written over"));
    assert_eq!(std::fs::read(&file).unwrap(), record);
}

#[test]
fn a_link_is_never_written_through_and_a_record_never_over() {
    let folder = Folder::new("report-link");
    let file = recorded(&folder);
    let victim = folder.file("victim", "precious");
    symlink(&victim, folder.path("climb.html")).unwrap();
    assert!(run(["report", &file]).failed()[0].ends_with("it is a symbolic link"));
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    assert!(run(["report", &file, "-o", &file]).failed()[0].contains("would be written over"));
    assert!(run(["report", &file, "-o", "/dev/full"]).failed()[1].contains("the disk is full"));
}

#[test]
fn what_is_no_record_is_refused_by_name() {
    let folder = Folder::new("report-none");
    for (name, text, says) in [
        ("numbers", "[1,2,3]", "is no record of dyno"),
        ("other.json", r#"{"schema":"dyno.climb/99"}"#, "dyno.climb/99"),
        ("empty", "", "is no record of dyno"),
    ] {
        let file = folder.file(name, text);
        let ended = run(["report", &file]);
        assert!(ended.failed()[0].contains(says) && ended.err.contains(&file), "{}", ended.err);
    }
}

/// One of each kind, among the recorded inputs or made here; whether its figures have names.
fn of_each_kind(folder: &Folder) -> Vec<(&'static str, String, bool)> {
    let golden = |name: &str| format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
    let said = |name: &str, words: &[&str]| folder.file(name, run(words).out);
    vec![
        ("climb", golden("climb.json"), true),
        ("causal", golden("causal.json"), false),
        ("load", golden("load-a.json"), true),
        (
            "diagnosis",
            said("diagnosis.json", &["diagnose", "--from", &golden("seen-disk.json"), "--json"]),
            true,
        ),
        ("audit", said("audit.json", &["audit", "--from", &golden("facts-planted.json"), "--json"]), true),
        (
            "difference",
            said("difference.json", &["judge", &golden("load-a.json"), &golden("load-b.json"), "--json"]),
            true,
        ),
    ]
}

/// Planted fault: a kind is drawn, and refused in the one format that every kind has.
#[test]
fn each_kind_is_written_in_each_format_or_says_which_it_has() {
    let folder = Folder::new("report-kinds");
    for (kind, file, named) in of_each_kind(&folder) {
        for (format, begins) in [
            ("table", ""),
            ("json", "{\"schema\":\"dyno."),
            ("markdown", "#"),
            ("csv", "name,value,"),
            ("junit", "<?xml "),
            ("github", "::"),
        ] {
            let page = word(&folder.path(&format!("{kind}.{format}.html")));
            let ended = run(["report", &file, "-o", &page, "--format", format]);
            if !named && !matches!(format, "table" | "json") {
                let lines = ended.err.lines().collect::<Vec<_>>();
                assert_eq!((ended.code, lines.len()), (Some(2), 3), "{kind} as {format}: {}", ended.err);
                assert!(lines[1].contains("the formats for it are table and json"), "{}", ended.err);
                continue;
            }
            assert!(
                ended.done().starts_with(begins) && !ended.out.is_empty(),
                "{kind} as {format}: {}",
                ended.out
            );
            assert!(std::fs::read_to_string(&page).unwrap().starts_with("<!doctype html>"), "{kind}");
        }
        let json = run(["report", &file, "-o", "/dev/null", "--json"]).done().to_owned();
        let (written, read): (serde_json::Value, serde_json::Value) = (
            serde_json::from_str(&json).unwrap(),
            serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap(),
        );
        let family = |record: &serde_json::Value| {
            record["schema"].as_str().unwrap().split('/').next().unwrap().to_owned()
        };
        assert_eq!(family(&written), family(&read), "an older climb is written as one of now");
        let gated = run(["report", &file, "-o", "/dev/null", "--fail-under", "nothing<=0"]);
        let says = if named {
            "there is no figure \"nothing\""
        } else {
            "--fail-under is for figures that have names"
        };
        assert!(gated.code == Some(2) && gated.err.contains(says), "{kind}: {}", gated.err);
    }
}

#[test]
fn a_record_that_another_verb_draws_is_told_which() {
    let folder = Folder::new("report-others");
    for (schema, verb) in
        [("profile", "dyno flame"), ("facts", "dyno audit --from"), ("seen", "dyno diagnose --from")]
    {
        let file = folder.file("other.json", format!(r#"{{"schema":"dyno.{schema}/1"}}"#));
        let ended = run(["report", &file]);
        let lines = ended.failed();
        assert!(lines[2].contains(&format!("{verb} {file}")), "{}", ended.err);
    }
}

/// Planted fault: any number is believed.
#[test]
fn a_record_with_a_figure_that_cannot_be_is_refused_with_its_field() {
    let folder = Folder::new("report-impossible");
    let golden = |name: &str| {
        std::fs::read_to_string(format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
    };
    let changed = |name: &str, place: &str, figure: serde_json::Value| {
        let mut record: serde_json::Value = serde_json::from_str(&golden(name)).unwrap();
        *record.pointer_mut(place).unwrap() = figure;
        folder.file("changed.json", record.to_string())
    };
    for (name, place, figure, field) in [
        ("climb.json", "/total/ratio", serde_json::json!(-2.0), "total.ratio is -2.0"),
        (
            "climb.json",
            "/rungs/0/figures/0/p99_us",
            serde_json::json!(1e308),
            "rungs[0].figures[0].p99_us is 1e+308",
        ),
        ("climb.json", "/total/interval/0", serde_json::Value::Null, "total.interval[0] is null"),
        ("load-a.json", "/requests_per_second", serde_json::json!(-1), "requests_per_second is -1"),
        ("load-a.json", "/latency_us/max", serde_json::Value::Null, "max: invalid type: null"),
        ("causal.json", "/duration_s", serde_json::json!(-9.5), "duration_s is -9.5"),
        ("before.json", "/duration_s", serde_json::json!(1e300), "duration_s is 1e+300"),
    ] {
        let file = changed(name, place, figure);
        let verb = if name == "before.json" { "flame" } else { "report" };
        let ended = run([verb, &file]);
        assert!(ended.failed()[0].contains(field), "{place}: {}", ended.err);
        if name.starts_with("load") {
            assert!(run(["judge", &file, &file]).failed()[0].contains(field), "{place}");
        }
    }
}
