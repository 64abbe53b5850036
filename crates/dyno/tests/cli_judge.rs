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
    for (words, code, word, warnings) in [
        (vec!["judge", &a, &b], 1, "worse: ", 0),
        (vec!["judge", &b, &a], 0, "better: ", 0),
        (vec!["judge", &a, &b, "--higher"], 0, "better: ", 0),
        (vec!["judge", &b, &a, "--higher", "--unpaired"], 1, "worse: ", 0),
        // So small a difference may be that of two starts.
        (vec!["judge", &a, &same], 0, "no difference seen: ", 1),
        (vec!["judge", &a, &a], 0, "no difference seen: ", 0),
    ] {
        let ended = run(&words);
        assert_eq!(ended.code, Some(code), "{words:?}: {}", ended.out);
        assert!(ended.out.starts_with(word) && ended.out.lines().count() == 1, "{words:?}: {}", ended.out);
        assert_eq!(ended.err.lines().count(), warnings, "{words:?}: {}", ended.err);
        assert_eq!(
            ended.err.contains("if each side is one start"),
            warnings == 1,
            "{words:?}: {}",
            ended.err
        );
    }
}

/// Starts of twenty numbers each, whose levels these are, with 1 % of noise.
fn starts(levels: &[f64], seed: u64) -> String {
    let of = |(seed, level): (u64, &f64)| format!("# start\n{}", lines(&numbers(*level, seed)));
    (seed..).zip(levels).map(of).collect()
}

/// Starts that differ by 5 %: two a side tell nothing, and longer ones would not either. Planted faults: the lines are
/// comments as any others; each number counts.
#[test]
fn starts_are_judged_where_a_list_says_where_they_begin() {
    let folder = Folder::new("judge-starts");
    let a = folder.file("a", starts(&[1.0, 1.05], 1));
    let b = folder.file("b", starts(&[1.06, 1.1], 11));
    let ended = run(["judge", &a, &b]);
    assert!(ended.done().starts_with("no difference seen: "), "{}", ended.out);
    assert!(ended.out.contains("; 2 against 2 starts, 99 % interval"), "{}", ended.out);
    assert!(ended.err.starts_with("warning: 2 starts on a side are few: more starts"), "{}", ended.err);
    assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    let without = |path: &str, text: String| folder.file(path, text.replace("# start\n", ""));
    let flat = [without("flat-a", starts(&[1.0, 1.05], 1)), without("flat-b", starts(&[1.06, 1.1], 11))];
    let ended = run(["judge", &flat[0], &flat[1]]);
    assert!(
        ended.out.starts_with("cannot be told: ") && ended.out.contains("give more starts"),
        "{}",
        ended.out
    );
    let many = [1.0, 1.02, 0.98, 1.01, 0.99, 1.0];
    let a = folder.file("many-a", starts(&many, 1));
    let b = folder.file("many-b", starts(&many.map(|level| 1.1 * level), 11));
    let ended = run(["judge", &a, &b, "--json"]);
    let answer: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(
        (&answer["verdict"], &answer["starts"], &answer["pairs"]),
        (&"worse".into(), &[6, 6][..].into(), &6.into())
    );
    assert_eq!((ended.code, ended.err.as_str()), (Some(1), ""));
    assert!(run(["judge", &a, &b]).out.contains("; 6 pairs of starts, "));
    assert!(run(["judge", &a, &b, "--unpaired"]).out.contains("; 6 against 6 starts, "));
}

/// Planted fault: what has no spread tells nothing.
#[test]
fn constant_numbers_are_told_without_an_interval() {
    let folder = Folder::new("judge-constant");
    let [a, b] = [("a", 100.0), ("b", 200.0)].map(|(name, value)| folder.file(name, lines(&[value; 20])));
    for (words, says) in [
        (vec!["judge", &a, &b], "worse: b is +100.0 % against a, in every pair; 20 pairs, lower is better\n"),
        (
            vec!["judge", &a, &b, "--unpaired"],
            "worse: b is +100.0 % against a, all numbers of each being alike; 20 against 20 numbers, lower is better\n",
        ),
        (
            vec!["judge", &a, &a],
            "no difference seen: a is 0.0 % against a, in every pair; 20 pairs, lower is better\n",
        ),
    ] {
        let ended = run(&words);
        let out = ended.out.replace(&a, "a").replace(&b, "b");
        assert_eq!((out.as_str(), ended.err.as_str()), (says, ""), "{words:?}");
    }
}

/// B costs 30 % more by three of twenty numbers. Planted fault: "at most" of typical numbers is all that is said.
#[test]
fn means_outside_of_what_is_claimed_are_told_beside_it() {
    let folder = Folder::new("judge-means");
    let a = folder.file("a", lines(&numbers(1.0, 1)));
    let mut dear = numbers(1.0, 3);
    dear.iter_mut().skip(2).step_by(7).for_each(|value| *value *= 3.0);
    let ended = run(["judge", &a, &folder.file("b", lines(&dear))]);
    assert!(ended.done().contains("; typical numbers differ by at most "), "{}", ended.out);
    assert!(
        ended.err.contains("plain means differ by +3") && ended.err.contains("3 of 20 lie"),
        "{}",
        ended.err
    );
}

/// Planted fault: a quotient that is no number, and a panic.
#[test]
fn numbers_that_are_no_measurements_of_one_thing_are_an_error() {
    let folder = Folder::new("judge-sizes");
    let of = |name: &str, value: f64| folder.file(name, lines(&[value; 20]));
    let (small, large, tiny) = (of("small", 1e-300), of("large", 1e300), of("tiny", 5e-324));
    for (a, b) in [(&small, &large), (&large, &tiny), (&tiny, &small)] {
        for words in [vec!["judge", a, b], vec!["judge", a, b, "--unpaired"]] {
            let ended = run(&words);
            assert!(ended.failed()[0].contains("hold numbers from "), "{}", ended.err);
            assert!(ended.failed()[1].contains("different units"), "{}", ended.err);
        }
    }
    let [a, b] = [("1e308", 0.9e308), ("1.7e308", 1.7e308)].map(|(name, value)| of(name, value));
    let ended = run(["judge", &a, &b]);
    assert!(ended.out.starts_with("worse: ") && ended.out.contains(" is +88.9 % against "), "{}", ended.out);
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
