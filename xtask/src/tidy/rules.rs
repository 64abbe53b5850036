//! What may stand in a file, by where the file stands.

use super::finding::Finding;
use super::source::{Source, whole_words};

/// The longest file: above it nobody reads to the end.
const LINES_MAX: usize = 1_000;

/// The one crate that may talk to the kernel without safety's help.
const UNSAFE_CRATE: &str = "crates/dyno-sys/";

/// The compiler's name for it.
const LINT: &str = "unsafe_code";

/// Crates that print, exit and read arguments: everything else under `crates` is a library.
const PROGRAM: &str = "crates/dyno/";

/// Modules of the standard library through which a world could leak into proto.
const WORLD: [&str; 8] = ["env", "fs", "io", "net", "os", "process", "thread", "time"];

/// What a library leaves to its caller.
const TALK: [&str; 4] = ["print", "println", "eprint", "eprintln"];

/// Words for unfinished work; joined here, so that this list is not found by its own rule.
const UNFINISHED: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Macros of unfinished work.
const UNFINISHED_MACROS: [&str; 3] = ["dbg", "todo", "unimplemented"];

/// Everything that is wrong with a file.
pub(crate) fn findings(path: &str, text: &str, unsafe_files: &[String]) -> Vec<Finding> {
    let source = Source::new(text);
    let mut found = form(&source);
    found.extend(unfinished(&source));
    if !path.starts_with(UNSAFE_CRATE) && !unsafe_files.iter().any(|listed| listed == path) {
        found.extend(unchecked_code(&source));
    }
    if let Some(of_proto) = path.strip_prefix("crates/dyno-proto/src/") {
        found.extend((!is_test_file(of_proto)).then(|| world(&source)).into_iter().flatten());
    }
    if is_library(path) {
        found.extend(talk(&source));
    }
    found.sort();
    found.into_iter().map(|(line, text)| Finding { path: path.to_owned(), line, text }).collect()
}

/// Whether a file has unsafe code.
pub(crate) fn has_unsafe(text: &str) -> bool {
    !unchecked_code(&Source::new(text)).is_empty()
}

type Found = Vec<(usize, String)>;

fn form(source: &Source<'_>) -> Found {
    let mut found = Found::new();
    if !source.text.starts_with("//!") {
        found.push((1, "begins without //!: say what the file is for and who calls it".to_owned()));
    }
    let lines = source.text.lines().count();
    if lines > LINES_MAX {
        found.push((LINES_MAX + 1, format!("{lines} lines: above {LINES_MAX} a file is cut in two")));
    }
    found
}

fn unfinished(source: &Source<'_>) -> Found {
    let words = UNFINISHED.iter().flat_map(|word| {
        let places = whole_words(source.text, word);
        places.map(move |at| (source.line(at), format!("{word}: finish it, or leave it out")))
    });
    let macros = UNFINISHED_MACROS.iter().flat_map(|name| {
        let text = format!("{name}! is for debugging, not for committed code");
        macro_calls(source, name).map(move |at| (source.line(at), text.clone()))
    });
    words.chain(macros).collect()
}

fn macro_calls<'s>(source: &'s Source<'_>, name: &'s str) -> impl Iterator<Item = usize> {
    source.words(name).filter(move |at| source.code[at + name.len()..].starts_with('!'))
}

fn unchecked_code(source: &Source<'_>) -> Found {
    let why = "unsafe outside dyno-sys: wrap it there, or list the file with its reason in docs/unsafe.md";
    let permits = source.words(LINT).filter(|at| is_permission(&source.code[..*at]));
    source.words("unsafe").chain(permits).map(|at| (source.line(at), why.to_owned())).collect()
}

/// Whether the list that is open at the end of `before` allows; `#![forbid(…)]` keeps out what it names.
fn is_permission(before: &str) -> bool {
    let list = before.rfind('(').map_or("", |open| &before[..open]);
    list.ends_with("allow") || list.ends_with("expect")
}

fn world(source: &Source<'_>) -> Found {
    let places = source.code.match_indices("std::").map(|(at, _)| at).filter(|at| !source.is_test(*at));
    let named = places.flat_map(|at| {
        let modules = first_names(&source.code[at + "std::".len()..]);
        modules.into_iter().filter(|name| WORLD.contains(name)).map(move |name| (at, name))
    });
    let why = "proto reads no socket, clock or environment: the same bytes give the same events (core has addresses and durations)";
    named.map(|(at, name)| (source.line(at), format!("std::{name}: {why}"))).collect()
}

/// The first name after a path's `::`, or of every item in its braces.
fn first_names(after: &str) -> Vec<&str> {
    let name = |text: &'_ str| text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let Some(list) = after.strip_prefix('{') else { return vec![&after[..name(after)]] };
    let (mut depth, mut start, mut names) = (0_usize, 0, Vec::new());
    for (at, byte) in list.bytes().enumerate() {
        if matches!(byte, b',' | b'}') && depth == 0 {
            let item = list[start..at].trim_start();
            names.push(&item[..name(item)]);
            start = at + 1;
        }
        match byte {
            b'{' => depth += 1,
            b'}' if depth == 0 => break,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    names
}

fn talk(source: &Source<'_>) -> Found {
    let printed =
        TALK.iter().flat_map(|name| macro_calls(source, name).map(move |at| (at, format!("{name}!"))));
    let called = ["process::exit", "env::args", "env::args_os"]
        .iter()
        .flat_map(|path| source.words(path).map(move |at| (at, (*path).to_owned())));
    let places = printed.chain(called).filter(|(at, _)| !source.is_test(*at));
    places
        .map(|(at, what)| {
            (
                source.line(at),
                format!("{what} in a library: only the binary prints, exits and reads arguments"),
            )
        })
        .collect()
}

/// A library's own code: not the binary's, and not that of tests, benches and examples.
fn is_library(path: &str) -> bool {
    let own = path.starts_with("crates/") && !path.starts_with(PROGRAM);
    own && path.contains("/src/") && !is_test_file(path)
}

/// A test module that stands in a file of its own.
fn is_test_file(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/src/tests/") || path == "tests.rs"
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGINE: &str = "crates/dyno-engine/src/worker.rs";
    const NONE: [usize; 0] = [];
    const PROTO: &str = "crates/dyno-proto/src/http1/parse.rs";

    /// Lines with findings, for a file that begins as it should.
    fn lines(path: &str, code: &str) -> Vec<usize> {
        let text = format!("//! Sample.\n{code}");
        findings(path, &text, &[]).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_file_begins_with_what_it_is_for() {
        assert_eq!(findings(ENGINE, "fn a() {}\n", &[]).len(), 1);
        assert_eq!(lines(ENGINE, "fn a() {}\n"), NONE);
    }

    #[test]
    fn a_file_ends_after_a_thousand_lines() {
        assert_eq!(lines(ENGINE, &"\n".repeat(LINES_MAX - 1)), NONE);
        assert_eq!(lines(ENGINE, &"\n".repeat(LINES_MAX)), [LINES_MAX + 1]);
    }

    #[test]
    fn a_library_neither_prints_nor_exits_nor_reads_arguments() {
        let code = "fn a() {\n println!();\n eprint!(\"\");\n std::process::exit(1);\n std::env::args();\n}";
        assert_eq!(lines(ENGINE, code), [3, 4, 5, 6]);
        for path in ["crates/dyno/src/main.rs", "crates/dyno-engine/tests/http.rs", "xtask/src/main.rs"] {
            assert_eq!(lines(path, code), NONE, "{path}");
        }
        assert_eq!(lines(ENGINE, "#[cfg(test)]\nmod tests {\n fn a() { println!(); }\n}"), NONE);
        assert_eq!(lines(ENGINE, "/// `println!` stands here\nfn a() { my_println!(); }"), NONE);
    }

    #[test]
    fn proto_has_no_world() {
        assert_eq!(lines(PROTO, "use std::time::Instant;"), [2]);
        assert_eq!(lines(PROTO, "use std::{fmt, io::Read, ops::{Range, Deref}};"), [2]);
        assert_eq!(lines(PROTO, "use std::{fmt::{self, Write}, ops::Range};\nuse std::str;"), NONE);
        assert_eq!(lines(PROTO, "#[cfg(test)]\nmod tests {\n use std::time::Instant;\n}"), NONE);
        assert_eq!(lines(ENGINE, "use std::time::Instant;"), NONE);
    }

    #[test]
    fn unsafe_stands_in_sys_and_where_it_is_listed() {
        let code = "fn a() { unsafe { b() } }";
        assert_eq!(lines(ENGINE, code), [2]);
        assert_eq!(lines(ENGINE, "#![allow(dead_code, unsafe_code)]"), [2]);
        assert_eq!(lines(ENGINE, "#![forbid(unsafe_code)]"), NONE);
        assert_eq!(lines("crates/dyno-sys/src/shm.rs", code), NONE);
        assert_eq!(findings(ENGINE, &format!("//! x\n{code}"), &[ENGINE.to_owned()]), []);
        assert_eq!(lines(ENGINE, "// unsafe is a word here\nlet a = \"unsafe\";"), NONE);
    }

    #[test]
    fn unfinished_work_is_found_in_comments_too() {
        let word = UNFINISHED[0];
        assert_eq!(lines(ENGINE, &format!("// {word}: later")), [2]);
        assert_eq!(lines(ENGINE, "fn a() { todo!() }\nfn b() { dbg!(1); }"), [2, 3]);
        assert_eq!(lines(ENGINE, &format!("// {word}S is another word")), NONE);
    }

    #[test]
    fn a_finding_says_where_and_why() {
        let found = findings(ENGINE, "//! x\nunsafe fn a() {}", &[]);
        let text = found[0].to_string();
        assert!(text.starts_with("crates/dyno-engine/src/worker.rs:2: unsafe outside dyno-sys"), "{text}");
    }
}
