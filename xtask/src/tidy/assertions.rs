//! Assertions per function, by crate: what must hold, stated where it must hold. Beside it the same per function that
//! changes state (`&mut self`), which is where it matters. Printed, not judged: a number is no rule.

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
    /// Those that take `&mut self`.
    pub(super) changing: usize,
}

/// Counts one source file.
pub(super) fn count(text: &str) -> Count {
    let source = Source::new(text);
    let outside_tests = |word: &'static str| source.words(word).filter(|&at| !source.is_test(at)).count();
    let changes =
        |at: &usize| text[*at..].split([')', '{', ';']).next().is_some_and(|head| head.contains("&mut self"));
    let changing = source.words("fn").filter(|&at| !source.is_test(at)).filter(changes).count();
    Count {
        assertions: ASSERTIONS.into_iter().map(outside_tests).sum(),
        functions: outside_tests("fn"),
        changing,
    }
}

/// One line: each crate's assertions per function.
pub(super) fn line(counts: &BTreeMap<String, Count>) -> String {
    let each = counts.iter().map(|(name, count)| {
        let per = |functions: usize| count.assertions as f64 / functions.max(1) as f64;
        let (all, changing) = (per(count.functions), per(count.changing));
        format!("{} {all:.2} ({changing:.2})", name.trim_start_matches("dyno-"))
    });
    let each = each.collect::<Vec<_>>().join(", ");
    format!("assertions per function (per function that changes state): {each}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn assertions_of_code_are_counted_and_those_of_tests_and_texts_are_not() {
        let text = "fn a() { assert!(true); debug_assert_eq!(1, 1, \"assert!\"); } // assert!\nfn b(&mut self) {}\n\
                    #[cfg(test)]\nmod tests { fn c() { assert!(true); } }\n";
        assert_eq!(count(text), Count { assertions: 2, functions: 2, changing: 1 });
        let counts = BTreeMap::from([("dyno-x".to_owned(), count(text))]);
        assert_eq!(line(&counts), "assertions per function (per function that changes state): x 1.00 (2.00)");
    }
}
