//! `dyno flame`: any profile drawn, compared or converted, into the place that was meant and no other.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Folder, run, run_with_input, word};

const BEFORE: &str = "main;work 600\nmain;work;sys_read_[k] 300\nmain;idle 100\n";
const AFTER: &str = "main;work 700\nmain;idle 100\n";

#[test]
fn the_page_lies_beside_its_profile() {
    let folder = Folder::new("flame");
    let file = folder.file("stacks.folded", BEFORE);
    let ended = run(["flame", &file]);
    assert_eq!(ended.done(), "");
    let place = folder.path("stacks.html");
    assert_eq!(ended.err, format!("written   {}\n", word(&place)));
    let page = std::fs::read_to_string(place).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.contains("sys_read: 300 samples"), "{page}");
}

/// Fault: a page drawn with the default order whatever was asked for; `main` has no time of its own.
#[test]
fn the_pages_table_begins_with_the_callers_where_it_is_sorted_by_total() {
    let folder = Folder::new("flame-sort");
    let file = folder.file("stacks.folded", BEFORE);
    let first = |words: &[&str]| {
        let ended = run(["flame", &file, "-o", "-"].iter().chain(words));
        let page = ended.done();
        let rows = &page[page.find("<caption>Functions by time").unwrap()..];
        let name = &rows[rows.find("class=\"function\">").unwrap()..];
        name.split(['>', '<']).nth(1).unwrap().to_owned()
    };
    assert_eq!((first(&[]), first(&["--sort", "total"])), ("work".to_owned(), "main".to_owned()));
}

#[test]
fn a_format_is_named_or_seen_from_the_output() {
    let folder = Folder::new("flame-formats");
    let file = folder.file("stacks.txt", BEFORE);
    let svg = word(&folder.path("a.svg"));
    run(["flame", &file, "-o", &svg]).done();
    assert!(std::fs::read_to_string(&svg).unwrap().contains("<svg xmlns"));
    assert_eq!(run(["flame", &file, "--format", "folded", "-o", "-"]).done(), {
        "main;idle 100\nmain;work 600\nmain;work;sys_read_[k] 300\n"
    });
    let record = run(["flame", &file, "--format", "json", "-o", "-"]).done().to_owned();
    let again = run_with_input(["flame", "-", "--format", "folded"], &record);
    assert!(again.done().contains("main;work;sys_read_[k] 300\n"));
    for (format, holds) in
        [("speedscope", "file-format-schema.json"), ("firefox", "preprocessedProfileVersion")]
    {
        assert!(run(["flame", &file, "--format", format, "-o", "-"]).done().contains(holds), "{format}");
    }
    run(["flame", &file, "--format", "pprof"]).done();
    let packed = std::fs::read(folder.path("stacks.pb.gz")).unwrap();
    assert_eq!(packed[..2], [0x1f, 0x8b], "gzip");
}

#[test]
fn the_text_of_perf_script_is_read_from_a_pipe() {
    let text =
        "w 7 1.000000:    2000000 cpu-clock:\n\t 1145 hot+0xc (/srv/w)\n\t 2724a main+0x7a (/srv/w)\n\n";
    assert_eq!(run_with_input(["flame", "-", "--format", "folded"], text).done(), "main;hot 2000000\n");
}

/// Fault: `between` that keeps every stack whole; `cold` stands in the part then.
#[test]
fn a_part_by_time_holds_what_fell_into_it() {
    let sample = |seconds: &str, name: &str| {
        format!("w 7 {seconds}:    2000000 cpu-clock:\n\t 1145 {name}+0xc (/srv/w)\n\n")
    };
    let text = [sample("1.000000", "cold"), sample("1.400000", "hot"), sample("1.500000", "hot")].concat();
    let folded = |time: &str| run_with_input(["flame", "-", "--format", "folded", "--time", time], &text);
    assert_eq!(folded("0.3,").done(), "hot 4000000\n");
    assert_eq!(folded(",0.2").done(), "cold 2000000\n");
    let refused = folded("0.1,0.2");
    assert!(refused.failed()[0].contains("no sample fell"), "{}", refused.err);
    let refused = run_with_input(["flame", "-", "--time", "1,2"], BEFORE);
    assert!(refused.failed()[0].contains("does not know when its samples fell"), "{}", refused.err);
}

#[test]
fn a_comparison_needs_something_to_divide_by() {
    let folder = Folder::new("flame-diff");
    let (before, after) = (folder.file("before.folded", BEFORE), folder.file("after.folded", AFTER));
    let refused = run(["flame", "--diff", &before, &after]);
    assert!(
        refused.failed()[0].contains("neither how many requests were answered nor how long"),
        "{}",
        refused.err
    );
    assert!(!folder.path("after.diff.html").exists());
    run(["flame", "--diff", &before, &after, "--requests", "100,200", "--counts", "us"]).done();
    let page = std::fs::read_to_string(folder.path("after.diff.html")).unwrap();
    assert!(page.contains("10.0 → 4.00 µs of CPU per request"), "{page}");
    let svg = run(["flame", "--diff", &before, &after, "--requests", "5", "--format", "svg", "-o", "-"]);
    assert!(svg.done().contains("samples per request"));
    let none = run(["flame", "--diff", &before, &after, "--requests", "5", "--format", "pprof"]);
    assert!(none.failed()[1].contains("no place for two weights"));
}

#[test]
fn several_files_never_become_one_and_none_is_written_over() {
    let folder = Folder::new("flame-several");
    let (one, two) = (folder.file("cpu.folded", BEFORE), folder.file("cpu.txt", AFTER));
    assert!(run(["flame", &one, &two]).failed()[0].contains("two of the files would become"));
    assert!(!folder.path("cpu.html").exists(), "refused before anything is written");
    let refused = run(["flame", "--format", "folded", &two, &one]);
    assert!(refused.failed()[0].contains("would be written over"), "{}", refused.err);
    // Planted fault: the same file under another name is another file.
    std::fs::create_dir(folder.path("sub")).unwrap();
    let again = folder.path("sub/../cpu.folded");
    std::fs::hard_link(&one, folder.path("hard.folded")).unwrap();
    for over in [again, folder.path("hard.folded")] {
        let refused = run(["flame", &one, "--format", "folded", "-o", over.to_str().unwrap()]);
        assert!(refused.failed()[0].contains("would be written over"), "{}", refused.err);
    }
    assert_eq!(std::fs::read_to_string(&one).unwrap(), BEFORE);
    let refused = run(["flame", &one, "--requests", "10,20"]);
    assert!(refused.failed()[0].contains("two numbers"), "{}", refused.err);
}

#[test]
fn what_is_no_profile_is_refused_by_name() {
    let folder = Folder::new("flame-none");
    for (name, bytes, says) in [
        ("letter.txt", b"Dear all,\n".as_slice(), "line 1 is neither of folded stacks nor of perf script"),
        ("empty", b"", "it has no stack"),
        ("other.json", br#"{"schema":"dyno.climb/1"}"#, "dyno.climb/1"),
        ("perf.data", b"PERFILE2\x68\0\0\0", "perf.data is damaged"),
        ("noise", b"\xff\xfe\x00", "it is neither text nor perf.data"),
    ] {
        let file = folder.file(name, bytes);
        let ended = run(["flame", &file]);
        assert!(ended.failed()[0].contains(says) && ended.err.contains(&file), "{}", ended.err);
    }
    assert!(run(["flame", "/nowhere/x.json"]).failed()[0].contains("/nowhere"));
}

#[test]
fn nothing_is_written_over_what_it_was_made_from() {
    let folder = Folder::new("flame-over");
    let file = folder.file("stacks.folded", BEFORE);
    assert!(run(["flame", &file, "--format", "folded"]).failed()[0].contains("would be written over"));
    assert!(
        run(["flame", &file, &file, "-o", "one.html"]).failed()[0]
            .contains("2 files cannot all become one.html")
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), BEFORE);
}

#[test]
fn threads_of_folded_stacks_are_not_looked_for() {
    let folder = Folder::new("flame-no-threads");
    let file = folder.file("stacks.folded", BEFORE);
    let ended = run(["flame", &file, "--thread", "worker"]);
    let lines = ended.failed();
    assert!(
        lines[0].ends_with("this profile does not tell threads apart: it holds stacks alone"),
        "{}",
        ended.err
    );
    assert!(lines[1].contains("folded stacks hold functions and counts alone"), "{}", ended.err);
}
