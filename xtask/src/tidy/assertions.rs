//! Assertions per function, by crate: what must hold, stated where it must hold. Printed, not judged: a number is no rule.

use std::collections::BTreeMap;

use super::source::Source;

/// What states something.
const ASSERTIONS: [&str; 6] =
    ["assert", "assert_eq", "assert_ne", "debug_assert", "debug_assert_eq", "debug_assert_ne"];

/// What was counted in a crate, tests aside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) assertions: usize,
    pub(super) functions: usize,
}

/// Counts one source file.
pub(super) fn count(text: &str) -> Count {
    let source = Source::new(text);
    let outside_tests = |word: &'static str| source.words(word).filter(|&at| !source.is_test(at)).count();
    Count { assertions: ASSERTIONS.into_iter().map(outside_tests).sum(), functions: outside_tests("fn") }
}

/// One line: each crate's assertions per function.
pub(super) fn line(counts: &BTreeMap<String, Count>) -> String {
    let each = counts.iter().map(|(name, count)| {
        let per_function = count.assertions as f64 / count.functions.max(1) as f64;
        format!("{} {per_function:.2}", name.trim_start_matches("dyno-"))
    });
    format!("assertions per function: {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_of_code_are_counted_and_those_of_tests_and_texts_are_not() {
        let text = "fn a() { assert!(true); debug_assert_eq!(1, 1, \"assert!\"); } // assert!\nfn b() {}\n\
                    #[cfg(test)]\nmod tests { fn c() { assert!(true); } }\n";
        assert_eq!(count(text), Count { assertions: 2, functions: 2 });
        let counts = BTreeMap::from([("dyno-x".to_owned(), count(text))]);
        assert_eq!(line(&counts), "assertions per function: x 1.00");
    }
}
