//! The table of programs with a part, each with its twin in which that part was really shortened. The strangers' task reads it.

use std::path::Path;

use super::table;
use crate::trouble::Trouble;

/// One line of the table.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Twin {
    pub(crate) name: String,
    /// What of the causal profiler's world it meets.
    pub(crate) kind: String,
    pub(crate) script: String,
    /// The word for the program as it is, and the word for its twin.
    pub(crate) variants: [String; 2],
    /// What is counted; none where the profiler has to find it.
    pub(crate) progress: Option<String>,
    pub(crate) site: Site,
    /// How much of the part is really gone in the twin.
    pub(crate) percent: u32,
    pub(crate) expected: Expected,
    /// How long each side of a pair is measured, in seconds.
    pub(crate) window_s: f64,
    pub(crate) from: String,
    /// What is different in the twin.
    pub(crate) known_by: String,
}

/// The part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) name: String,
    pub(crate) asked: Asked,
}

/// How it is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Asked {
    /// By its name, for its own code.
    #[default]
    Own,
    /// By its name, with what it calls.
    Inclusive,
    /// Not at all: the profiler has to choose it.
    Default,
}

/// What a good answer is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Expected {
    /// A figure.
    #[default]
    Figure,
    /// A refusal with this word in its reason, or nothing to be won.
    Reason(String),
}

impl Twin {
    /// Whether one of these words, separated by commas, is in its name.
    pub(crate) fn is_named(&self, only: &str) -> bool {
        table::is_named(&self.name, only)
    }

    pub(crate) fn expected(&self) -> String {
        match &self.expected {
            Expected::Figure => "a figure".to_owned(),
            Expected::Reason(word) => format!("\"{word}\", or nothing"),
        }
    }
}

/// Reads the table: twelve columns, lines that begin with # are comments.
///
/// # Errors
/// When it cannot be read, or a line has other columns.
pub(crate) fn read(path: &Path) -> Result<Vec<Twin>, Trouble> {
    table::read(path, parse)
}

/// One line.
pub(crate) fn parse(line: &str) -> Option<Twin> {
    let columns: Vec<&str> = line.split('\t').collect();
    let [name, kind, script, variant, twin, progress, site, percent, expected, window_s, from, known_by] =
        columns.try_into().ok()?;
    Some(Twin {
        name: name.to_owned(),
        kind: kind.to_owned(),
        script: script.to_owned(),
        variants: [variant.to_owned(), twin.to_owned()],
        progress: (progress != "default").then(|| progress.to_owned()),
        site: site_of(site),
        percent: percent.parse().ok().filter(|percent| (1..=100).contains(percent))?,
        expected: if expected == "figure" { Expected::Figure } else { Expected::Reason(expected.to_owned()) },
        window_s: window_s.parse().ok().filter(|seconds| *seconds > 0.0)?,
        from: from.to_owned(),
        known_by: known_by.to_owned(),
    })
}

fn site_of(text: &str) -> Site {
    let named = |name: &str, asked| Site { name: name.to_owned(), asked };
    match text.split_once('=') {
        Some(("inclusive", name)) => named(name, Asked::Inclusive),
        Some(("default", name)) => named(name, Asked::Default),
        _ => named(text, Asked::Own),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::collections::BTreeSet;

    use super::*;

    fn folder() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("strangers")
    }

    fn table() -> Vec<Twin> {
        read(&folder().join("twins.tsv")).unwrap()
    }

    #[test]
    fn every_twin_differs_from_its_program_in_a_part_and_says_how_that_is_known() {
        let mut names = BTreeSet::new();
        for twin in table() {
            assert!(folder().join(&twin.script).is_file(), "{}", twin.script);
            assert!(names.insert(twin.name.clone()), "{} comes twice", twin.name);
            assert_ne!(twin.variants[0], twin.variants[1], "{}: no part is shortened", twin.name);
            assert!(!twin.known_by.is_empty(), "{}: how is it known?", twin.name);
            assert!([10, 25, 50].contains(&twin.percent), "{}: the profiler tries other levels", twin.name);
        }
    }

    #[test]
    fn every_kind_of_program_that_misled_a_causal_profiler_is_met() {
        let kinds: BTreeSet<String> = table().into_iter().map(|twin| twin.kind).collect();
        let wanted = [
            "steady",
            "queue",
            "contention",
            "recursion",
            "paced",
            "timer",
            "backlog",
            "quota",
            "phases",
            "between",
            "hundred",
            "tokio",
        ];
        for kind in wanted {
            assert!(kinds.contains(kind), "nobody is {kind}");
        }
    }

    #[test]
    fn a_line_of_other_columns_or_an_impossible_percentage_is_refused() {
        let line = |percent: &str| {
            format!("x\tsteady\tx.sh\ta\tb\tdefault\tinclusive=f\t{percent}\tpaced\t1.5\tDebian\thalf of it")
        };
        let twin = parse(&line("50")).unwrap();
        assert_eq!(twin.site, Site { name: "f".to_owned(), asked: Asked::Inclusive });
        assert_eq!((twin.progress, twin.expected), (None, Expected::Reason("paced".to_owned())));
        assert_eq!((parse("x\ty"), parse(&line("0")), parse(&line("101"))), (None, None, None));
    }
}
