//! `dyno judge`: every form of input, every exit code, and a record judged again.
#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/record.rs"]
mod record;

use common::{Ended, Folder, run, run_with_input};
use dyno_measure::Prng;
use dyno_record::climb::{Climb, RungVerdict};

/// Twenty numbers around 100 with 1 % of noise, times a factor.
fn numbers(factor: f64, seed: u64) -> Vec<f64> {
    let mut rng = Prng::new(seed);
    (0..20).map(|_| factor * (100.0 + rng.normal())).collect()
}

fn lines(values: &[f64]) -> String {
    values.iter().map(|value| format!("{value}\n")).collect()
}

/// The same numbers in every form that is read, with the flags that each needs.
fn forms(values: &[f64]) -> [(&'static str, String, &'static [&'static str]); 4] {
    let list = serde_json::to_string(values).unwrap();
    let hyperfine = format!("{{\"results\":[{{\"command\":\"x\",\"mean\":1.0,\"times\":{list}}}]}}");
    let go: String = values.iter().map(|value| format!("BenchmarkX-2 \t 100\t {value} ns/op\n")).collect();
    [
        ("lines.txt", format!("# seconds\n{}", lines(values)), &[]),
        ("array.json", list, &[]),
        ("hyperfine.json", hyperfine, &["--name", "x"]),
        ("go.txt", format!("goos: linux\n{go}PASS\n"), &["--name", "BenchmarkX"]),
    ]
}

#[test]
fn every_form_gives_the_same_answer() {
    let folder = Folder::new("judge-forms");
    let (before, after) = (numbers(1.0, 1), numbers(0.9, 2));
    let mut answers = Vec::new();
    for ((name, a, flags), (_, b, _)) in forms(&before).into_iter().zip(forms(&after)) {
        let (a, b) = (folder.file(&format!("a-{name}"), a), folder.file(&format!("b-{name}"), b));
        let words = [&["judge", "--json", a.as_str(), b.as_str()], flags].concat();
        let answer: serde_json::Value = serde_json::from_str(run(words).done()).unwrap();
        assert_eq!((&answer["verdict"], &answer["pairs"]), (&"better".into(), &20.into()), "{name}");
        answers.push(answer["effect_percent"].as_f64().unwrap());
    }
    assert!((answers[0] + 10.0).abs() < 1.5, "{answers:?}");
    // JSON's numbers are read to the last bit but one.
    assert!(answers.iter().all(|answer| (answer - answers[0]).abs() < 1e-9), "{answers:?}");
}

#[test]
fn only_worse_is_a_no() {
    let folder = Folder::new("judge-codes");
    let a = folder.file("a", lines(&numbers(1.0, 1)));
    let b = folder.file("b", lines(&numbers(1.1, 2)));
    let same = folder.file("same", lines(&numbers(1.0, 3)));
    for (words, code, word) in [
        (vec!["judge", &a, &b], 1, "worse: "),
        (vec!["judge", &b, &a], 0, "better: "),
        (vec!["judge", &a, &b, "--higher"], 0, "better: "),
        (vec!["judge", &b, &a, "--higher", "--unpaired"], 1, "worse: "),
        (vec!["judge", &a, &same], 0, "no difference seen: "),
        (vec!["judge", &a, &a], 0, "no difference seen: "),
    ] {
        let ended = run(&words);
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.out);
        assert!(ended.out.starts_with(word) && ended.out.lines().count() == 1, "{words:?}: {}", ended.out);
        assert_eq!(ended.err, "");
    }
}

#[test]
fn one_side_may_come_from_standard_input() {
    let folder = Folder::new("judge-stdin");
    let a = folder.file("a", lines(&numbers(1.0, 1)));
    let ended = run_with_input(["judge", &a, "-"], &lines(&numbers(0.9, 2)));
    assert!(ended.done().starts_with("better: standard input is −"), "{}", ended.out);
}

#[test]
fn what_cannot_be_compared_is_told_with_its_place() {
    let folder = Folder::new("judge-bad");
    let good = folder.file("good", lines(&numbers(1.0, 1)));
    for (name, text, says) in [
        ("short", "1\n2\n3\n".to_owned(), "has 3 numbers"),
        ("uneven", lines(&numbers(1.0, 1)[..19]), "uneven has 19"),
        ("zero", lines(&numbers(1.0, 1)) + "0\n", ":21: 0 is not above zero"),
        ("word", "1\n2\nx\n".to_owned(), ":3: x is not a number"),
        ("empty", String::new(), "has 0 numbers"),
        (
            "two.json",
            "{\"results\":[{\"command\":\"p\"},{\"command\":\"q\"}]}".to_owned(),
            "has 2 benchmarks",
        ),
        ("go", "BenchmarkP 1 1 ns/op\nBenchmarkQ 1 1 ns/op\n".to_owned(), "has 2 benchmarks"),
    ] {
        let file = folder.file(name, text);
        let ended = run(["judge", &good, &file]);
        assert!(ended.failed()[0].contains(says), "{name}: {}", ended.err);
    }
    let binary = folder.file("binary", [0xff, 0xfe, 0]);
    assert!(run(["judge", &good, &binary]).failed()[0].contains("is not text"));
}

fn again(folder: &Folder, climb: &Climb) -> Ended {
    let file = folder.file("climb.json", serde_json::to_vec(climb).unwrap());
    run(["judge", &file])
}

#[test]
fn a_record_reaches_its_verdicts_again() {
    let folder = Folder::new("judge-record");
    let ended = again(&folder, &record::climb(7));
    let text = ended.done();
    let row = |rung: &str| {
        let line =
            text.lines().find(|line| line.trim_start().starts_with(rung)).unwrap_or_else(|| panic!("{text}"));
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row("one-send"), "kept kept");
    assert_eq!(row("edge"), "no difference no difference");
    assert_eq!(row("steer"), "not possible nothing to judge");
    assert!(text.ends_with("all 2 verdicts that rest on measurements are reached again\n"), "{text}");
}

#[test]
fn a_record_that_says_otherwise_than_its_measurements_is_found_out() {
    let folder = Folder::new("judge-forged");
    let mut climb = record::climb(7);
    climb.rungs[1].attempt.verdict = RungVerdict::Kept;
    let ended = again(&folder, &climb);
    assert_eq!(ended.code, Some(1), "{}", ended.err);
    assert!(
        ended.out.contains("differs\n") && ended.out.contains("1 of 2 verdicts are not reached again"),
        "{}",
        ended.out
    );
}

#[test]
fn a_record_without_its_measurements_cannot_be_judged() {
    let folder = Folder::new("judge-damaged");
    let mut climb = record::climb(7);
    climb.series.trials.truncate(1);
    assert!(again(&folder, &climb).failed()[0].contains("\"leave-one-out:one-send\" is not in it"));
    climb.series.trials[0].trial.pairs[0].b.replies = 0;
    assert!(again(&folder, &climb).failed()[0].contains("has a block without a figure"));
    let cut = folder.file("cut.json", &serde_json::to_vec(&record::climb(7)).unwrap()[..900]);
    assert!(run(["judge", &cut]).failed()[0].contains("not a climb record"));
    assert!(run(["judge", &cut, "--higher"]).failed()[0].contains("--higher compares two files"));
}

#[test]
fn one_file_of_numbers_alone_is_told_that_another_is_missing() {
    let folder = Folder::new("judge-alone");
    let path = folder.file("a.txt", "1\n2\n3\n4\n5\n6\n7\n8\n");
    let ended = run(["judge", &path]);
    assert!(ended.failed()[1].contains("a second file is missing"), "{}", ended.err);
}

#[test]
fn a_record_of_another_version_is_not_called_damaged() {
    let folder = Folder::new("judge-version");
    let path = folder.file("climb.json", r#"{"schema":"dyno.climb/3"}"#);
    for verb in ["judge", "report"] {
        let ended = run([verb, &path]);
        assert!(ended.failed()[1].contains("another version of dyno wrote it"), "{}", ended.err);
    }
}

#[test]
fn a_rung_with_an_endless_name_is_judged_and_not_panicked_at() {
    let folder = Folder::new("judge-long");
    let mut climb = record::climb(1);
    climb.rungs[2].id = "x".repeat(100_000);
    let path = folder.file("climb.json", serde_json::to_string(&climb).unwrap());
    for words in [&["judge", &path][..], &["report", &path]] {
        let ended = run(words);
        assert!(ended.code.is_some_and(|code| code < 3), "{}", ended.err);
    }
}
