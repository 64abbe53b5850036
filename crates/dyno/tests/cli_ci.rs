//! What a job of continuous integration reads: conditions, exit statuses, formats.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Ended, Server, dyno, run};
use std::path::{Path, PathBuf};
use std::process::Stdio;

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden");

/// Runs it among the recorded inputs.
fn said<const N: usize>(words: [&str; N]) -> Ended {
    said_of(&words)
}

fn said_of(words: &[&str]) -> Ended {
    let mut command = dyno(words);
    command.current_dir(FOLDER).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ended::of(command.spawn().unwrap())
}

#[test]
fn a_condition_that_is_not_met_is_a_no_that_says_found_and_wanted() {
    for (conditions, code, says) in [
        ("total>=2x", 0, "met: total is 2.30× (2.21 … 2.38), wanted >= 2.00×"),
        ("total>=2.5x", 1, "not met: total is 2.30×"),
        ("total>=2.25x", 0, "the interval holds the limit"),
        ("low(total)>=2.25x", 1, "not met: the lower end of total is 2.21×"),
        ("total>=2x, rung.one-send<=-5%, p99<=1ms", 0, "met: rung.one-send is −31.4 % ±1.2"),
        ("rung.workers<=0", 1, "not met: rung.workers is not measured (one server CPU)"),
        ("floor<=1.1x and errors<=0", 2, "there is no figure \"errors\""),
    ] {
        let ended = said(["report", "climb.json", "-o", "/dev/null", "--fail-under", conditions]);
        assert_eq!(ended.code, Some(code), "{conditions}: {}", ended.err);
        assert!(ended.err.contains(says), "{conditions}: {}", ended.err);
    }
}

/// Planted fault: figures that neither record has are left out, and a gate on the total ends as a mistake in its name.
#[test]
fn what_neither_of_two_records_measured_is_not_met_and_no_mistake() {
    let folder = common::Folder::new("unmeasured");
    let text = std::fs::read_to_string(format!("{FOLDER}/history/climb-1.json")).unwrap();
    let mut climb: serde_json::Value = serde_json::from_str(&text).unwrap();
    (climb["total"], climb["floor"]) = (serde_json::Value::Null, serde_json::Value::Null);
    let short = folder.file("short.json", climb.to_string());
    let ended = said_of(&["judge", &short, &short, "--fail-under", "high(total)>=-2%, cpu<=0%"]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    for told in ["the upper end of total is not measured in A and B", "cpu is not measured in A and B"] {
        assert!(ended.err.contains(told), "{}", ended.err);
    }
    assert!(ended.out.contains("not judged · total: not measured in A and B"), "{}", ended.out);
}

#[test]
fn several_conditions_must_all_hold_and_each_is_told() {
    let words = ["judge", "climb-1.json", "--fail-under", "total>=1x", "--fail-under", "total>=99x"];
    let ended = said(words);
    assert_eq!(ended.code, Some(1));
    let told: Vec<&str> = ended.err.lines().collect();
    assert!(told.len() == 2 && told[0].starts_with("met: ") && told[1].starts_with("not met: "), "{told:?}");
}

#[test]
fn what_cannot_be_read_is_shown_in_its_place_before_anything_is_measured() {
    let begun = std::time::Instant::now();
    for (verb, conditions, marked) in [
        (&["climb"][..], "total>>1", ">>"),
        (&["climb"], "total>=1ms", "ms"),
        (&["climb"], "total>=1.5", "1.5"),
        (&["climb", "--rung", "one-send"], "rung.edge<=0", "rung.edge"),
        (&["load", "http://127.0.0.1:1/"], "p99<=5", "5"),
        (&["load", "http://127.0.0.1:1/"], "cpu<=5us", "cpu"),
        (&["diagnose", "1"], "or", "o"),
    ] {
        let ended = run(verb.iter().copied().chain(["--fail-under", conditions]));
        assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{conditions}: {}", ended.err);
        let lines: Vec<&str> = ended.err.lines().collect();
        assert!(lines.len() == 5 && lines[0].starts_with("error: --fail-under: "), "{}", ended.err);
        let place: String =
            lines[1].chars().zip(lines[2].chars()).filter(|(_, mark)| *mark == '^').map(|(c, _)| c).collect();
        assert!(
            !place.is_empty() && marked.starts_with(place.trim()) || lines[2].ends_with('^'),
            "{}",
            ended.err
        );
    }
    assert!(begun.elapsed() < common::DEADLINE, "nothing was measured");
}

#[test]
fn a_load_is_gated_and_written_for_every_reader() {
    let server = Server::serve(&[]);
    let url = format!("http://{}/json", server.place);
    let load = |format: &str, conditions: &str| {
        run(["load", "-d", "500ms", "--format", format, "--fail-under", conditions, &url])
    };
    let good = load("junit", "rps>=1, errors<=0, p99<=10s");
    assert!(good.done().starts_with("<?xml") && good.out.contains("failures=\"0\""), "{}", good.out);
    let bad = load("github", "rps>=1G");
    assert_eq!(bad.code, Some(2), "a rate has no unit G: {}", bad.err);
    let bad = load("github", "rps>=1000M");
    assert_eq!(bad.code, Some(1), "{}", bad.err);
    assert!(
        bad.out.starts_with("::error title=dyno load%3A condition rps>=1000M::not met: rps is "),
        "{}",
        bad.out
    );
    let csv = load("csv", "rps>=1");
    assert!(csv.done().starts_with("name,value,low,high,unit,verdict,what,basis\r\nrps,"), "{}", csv.out);
    let markdown = load("markdown", "rps>=1");
    assert!(
        markdown.done().contains("| condition | found |\n| --- | --- |\n| rps&#62;=1 | met: "),
        "{}",
        markdown.out
    );
}

/// Planted fault: a failure is told on standard error alone.
#[test]
fn an_error_is_an_annotation_too_once_and_escaped() {
    let file = "a,b::warning::c%0A.json";
    for (words, says) in [
        (&["judge", "climb-1.json", "--format", "github", "--fail-under", "total>=1.5"][..], "--fail-under"),
        (&["report", file, "--format", "github"], "cannot read a,b::warning::c%250A.json"),
        (&["judge", "numbers-a.txt", "climb-1.json", "--format=github"], "climb-1.json is a record"),
        (&["audit", "--format", "github", "--no-such-flag"], "unexpected argument"),
        (&["load", "http://127.0.0.1:1/", "--format", "github"], "127.0.0.1:1 refuses connections"),
    ] {
        let ended = said_of(words);
        assert_eq!(ended.code, Some(2), "{words:?}: {}", ended.err);
        let line = format!("::error title=dyno {}::", words[0]);
        assert!(ended.out.starts_with(&line) && ended.out.contains(says), "{words:?}: {}", ended.out);
        assert_eq!(
            (ended.out.lines().count(), ended.err.matches("error: ").count()),
            (1, 1),
            "{}",
            ended.out
        );
    }
    let silent = said_of(&["judge", "climb-1.json", "--format", "junit", "--fail-under", "total>=1.5"]);
    assert_eq!(silent.out, "", "other formats have no place for it");
}

/// Planted fault: a load that failed says so in its annotations, and once more behind them.
#[test]
fn a_load_without_a_right_answer_is_one_annotation() {
    let server = Server::serve(&[]);
    let url = format!("http://{}/none", server.place);
    let ended = run(["load", "-d", "500ms", "--format", "github", &url]);
    assert_eq!(ended.out.matches("::error ").count(), 1, "{}{}", ended.out, ended.err);
}

#[test]
fn nothing_but_the_format_stands_on_standard_output() {
    for words in [
        &["judge", "climb-1.json", "--format", "junit"][..],
        &["judge", "numbers-a.txt", "numbers-b.txt", "--format", "junit"],
        &["judge", "history/climb-1.json", "history/climb-2.json", "--format", "junit"],
        &["report", "climb.json", "-o", "/dev/null", "--format", "junit"],
        &["audit", "--from", "facts-planted.json", "--format", "junit"],
        &["diagnose", "--from", "seen-disk.json", "--format", "junit", "--fail-on", "never"],
    ] {
        let mut command = dyno(words);
        command.current_dir(FOLDER).stdout(Stdio::piped()).stderr(Stdio::piped());
        let ended = Ended::of(command.spawn().unwrap());
        let text = ended.done();
        assert!(text.starts_with("<?xml ") && text.ends_with("</testsuites>\n"), "{words:?}: {text}");
    }
}

#[test]
fn two_records_of_another_kind_or_shape_are_refused_in_three_lines() {
    for (a, b, says) in [
        ("climb.json", "load-a.json", "climb.json is a climb, load-a.json is a load"),
        ("climb.json", "climb-1.json", "is of \"serve\", climb-1.json is of \"simulated\""),
        ("climb.json", "numbers-a.txt", "climb.json is a record, numbers-a.txt is none"),
        ("causal.json", "causal.json", "is \"dyno.causal/1\", which is not compared"),
        ("climb.json", "history/newer.json", "the record's schema is \"dyno.climb/9\""),
        ("history/damaged.json", "climb.json", "history/damaged.json: control character"),
    ] {
        let ended = said(["judge", a, b]);
        assert!(ended.failed()[0].contains(says), "{}", ended.err);
    }
    let ended = said(["judge", "climb.json", "climb.json", "--unpaired"]);
    assert!(ended.failed()[0].contains("--unpaired is for lists of numbers"), "{}", ended.err);
    let ended = said(["judge", "numbers-a.txt", "numbers-b.txt", "--html", "/tmp/never.html"]);
    assert!(ended.failed()[0].contains("--html draws two records"), "{}", ended.err);
}

/// Planted fault: the check left out of one of them, and what was measured is gone.
#[test]
fn nothing_is_written_over_what_it_is_made_from() {
    let folder = folder("over");
    let copied = |from: &str, to: &str| {
        let to = folder.join(to);
        std::fs::copy(Path::new(FOLDER).join(from), &to).unwrap();
        to.display().to_string()
    };
    let (a, b) = (copied("load-a.json", "a.json"), copied("load-b.json", "b.json"));
    let (seen, facts) = (copied("seen-lock.json", "s.json"), copied("facts-planted.json", "f.json"));
    let climb = copied("climb.json", "climb.json");
    let here = folder.display().to_string();
    for (words, file) in [
        (&["judge", &a, &b, "--html", &b][..], &b),
        (&["diagnose", "--from", &seen, "--html", &seen], &seen),
        (&["audit", "--from", &facts, "-o", &facts], &facts),
        (&["compare", &here, "-o", &climb], &climb),
    ] {
        let before = std::fs::read(file).unwrap();
        let ended = said_of(words);
        assert!(ended.failed()[0].contains("would be written over"), "{}", ended.err);
        assert_eq!(std::fs::read(file).unwrap(), before, "{file}");
    }
}

fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir(&folder).unwrap();
    folder
}

#[test]
fn a_folder_without_a_climb_is_a_no_and_what_is_no_climb_is_named() {
    let empty = folder("compare-empty");
    let ended = run(["compare", empty.to_str().unwrap()]);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(ended.err.contains("it has no file that ends in .json"), "{}", ended.err);

    let mixed = folder("compare-mixed");
    std::fs::copy(format!("{FOLDER}/history/climb-1.json"), mixed.join("a.json")).unwrap();
    std::fs::write(mixed.join("evil\u{1b}[2J.json"), "{}").unwrap();
    std::fs::create_dir(mixed.join("folder.json")).unwrap();
    std::fs::write(mixed.join("binary.json"), [0xff, 0xfe]).unwrap();
    let page = mixed.join("history.html");
    let ended = run(["compare", mixed.to_str().unwrap(), "-o", page.to_str().unwrap()]);
    let text = ended.done();
    for says in [
        "binary.json: it is not text",
        "folder.json: it is no file",
        "evil\\u{1b}[2J.json: this is not a climb record",
    ] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("a.json") && !page.contains('\u{1b}'));

    let ended = run(["compare", "/nowhere/at/all"]);
    assert!(ended.failed()[0].contains("cannot read the folder /nowhere/at/all"), "{}", ended.err);
    let ended = run(["compare", &format!("{FOLDER}/climb.json")]);
    assert!(ended.failed()[1].contains("dyno judge A B"), "{}", ended.err);
}
