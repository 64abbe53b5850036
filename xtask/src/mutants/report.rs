//! What a run of `cargo xtask mutants` found, as a page: the score with its interval, and what nobody noticed.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::strata::{Mutant, Queues, stratum_of};
use super::tool::{Fate, told_left_out};
use super::tried::Tried;
use crate::command::{command, output};
use crate::trouble::Trouble;

/// The normal quantile of 95 %.
const Z: f64 = 1.959_964;

/// The page so far.
pub(super) struct Report {
    command: String,
    strata: Vec<(&'static str, usize)>,
    /// What is tested now.
    commit: String,
    tried: Vec<Tried>,
}

impl Report {
    pub(super) fn new(command: String, queues: &Queues, commit: String) -> Report {
        Report { command, strata: queues.sizes().collect(), commit, tried: vec![] }
    }

    /// Takes what an earlier run tried in its strata.
    pub(super) fn take(&mut self, earlier: Vec<Tried>) {
        let sampled = |stratum: &str| self.strata.iter().any(|(name, _)| *name == stratum);
        self.tried.extend(earlier.into_iter().filter(|tried| stratum_of(tried.file()).is_some_and(sampled)));
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        self.tried.iter().any(|tried| tried.name == name)
    }

    pub(super) fn tried(&self) -> &[Tried] {
        &self.tried
    }

    pub(super) fn add(&mut self, mutant: Mutant, fate: Fate) {
        self.tried.push(Tried { name: mutant.name, fate, commit: self.commit.clone() });
    }

    /// How many of a stratum say something: those that could be built.
    pub(super) fn counted(&self, stratum: &str) -> usize {
        self.number(Some(stratum), |fate| fate != Fate::Unviable)
    }

    fn number(&self, stratum: Option<&str>, holds: impl Fn(Fate) -> bool) -> usize {
        let of = |tried: &Tried| stratum.is_none() || stratum_of(tried.file()) == stratum;
        self.tried.iter().filter(|tried| of(tried) && holds(tried.fate)).count()
    }

    /// Those that a test noticed, one that then hung among them, and all that say something.
    fn score(&self, stratum: Option<&str>) -> (usize, usize) {
        let caught = self.number(stratum, |fate| matches!(fate, Fate::Caught | Fate::TimedOut));
        (caught, self.number(stratum, |fate| fate != Fate::Unviable))
    }

    /// The score, if there is one.
    pub(super) fn percent(&self) -> Option<f64> {
        let (caught, all) = self.score(None);
        (all > 0).then(|| 100.0 * caught as f64 / all as f64)
    }

    /// The score in a line.
    pub(super) fn headline(&self) -> String {
        let (caught, all) = self.score(None);
        format!("mutants: {}", told(caught, all))
    }

    /// Writes the page.
    pub(super) fn write(&self, page: &Path) -> Result<(), Trouble> {
        let folder = page.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Some(folder) = folder {
            std::fs::create_dir_all(folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        }
        let (date, machine) = (today()?, machine());
        std::fs::write(page, self.text(&date, &machine))
            .map_err(Trouble::cannot(format!("write {}", page.display())))
    }

    fn text(&self, date: &str, machine: &str) -> String {
        let mut page = format!(
            "# Mutants\n\nSmall changes to the code, each built and tested alone by its own package's tests (those that need \
             root are not among\nthem, nor the documentation's examples, nor the longest: {}); caught are those that a test noticed. Made by `{}`, {date}, {machine}.\n\n\
             Tried at: {}. Each is a line of the list beside this page, and `--continue` goes on from there.\n\n",
            told_left_out(),
            self.command,
            self.commits(),
        );
        page +=
            "| stratum | changes in it | tried | not buildable | caught | of these by time-out | score |\n";
        page += "|---|--:|--:|--:|--:|--:|---|\n";
        for (name, size) in &self.strata {
            page += &self.row(name, Some(name), *size);
        }
        page += &self.row("all", None, self.strata.iter().map(|(_, size)| size).sum());
        page += "\nThe interval is Wilson's, 95 %, for strata that count alike. What cannot be built says nothing and is \
                 replaced.\n";
        self.list(&mut page, "Survivors", Fate::Missed);
        self.list(&mut page, "Ended by the time-out", Fate::TimedOut);
        page
    }

    /// Each with how many were tried at it.
    fn commits(&self) -> String {
        let mut commits: BTreeMap<&str, usize> = BTreeMap::new();
        self.tried.iter().for_each(|tried| *commits.entry(&tried.commit).or_default() += 1);
        commits.iter().map(|(commit, number)| format!("{commit} ({number})")).collect::<Vec<_>>().join(", ")
    }

    fn row(&self, name: &str, stratum: Option<&str>, size: usize) -> String {
        let (caught, all) = self.score(stratum);
        let (unviable, late) = (
            self.number(stratum, |fate| fate == Fate::Unviable),
            self.number(stratum, |fate| fate == Fate::TimedOut),
        );
        let tried = all + unviable;
        format!("| {name} | {size} | {tried} | {unviable} | {caught} | {late} | {} |\n", told(caught, all))
    }

    fn list(&self, page: &mut String, title: &str, listed: Fate) {
        let mut names: Vec<&str> =
            self.tried.iter().filter(|tried| tried.fate == listed).map(|tried| tried.name.as_str()).collect();
        names.sort_unstable();
        writeln!(page, "\n## {title}\n").expect("a String takes all");
        if names.is_empty() {
            page.push_str("None.\n");
        }
        for name in names {
            writeln!(page, "- `{name}`").expect("a String takes all");
        }
    }
}

/// "17 of 20 caught: 85 % (64 … 95)".
fn told(caught: usize, all: usize) -> String {
    match wilson(caught, all) {
        None => "nothing tried".to_owned(),
        Some((low, high)) => {
            let percent = 100.0 * caught as f64 / all as f64;
            format!("{caught} of {all} caught: {percent:.0} % ({:.0} … {:.0})", 100.0 * low, 100.0 * high)
        }
    }
}

/// Wilson's interval of a share (1927): it holds for few cases and for shares near one, where the usual one does not.
fn wilson(hits: usize, all: usize) -> Option<(f64, f64)> {
    assert!(hits <= all, "{hits} of {all}");
    if all == 0 {
        return None;
    }
    let (n, share) = (all as f64, hits as f64 / all as f64);
    let square = Z * Z / n;
    let centre = (share + square / 2.0) / (1.0 + square);
    let half = Z * (share * (1.0 - share) / n + square / (4.0 * n)).sqrt() / (1.0 + square);
    Some(((centre - half).max(0.0), (centre + half).min(1.0)))
}

fn today() -> Result<String, Trouble> {
    Ok(output(&mut command(["date", "-u", "+%F"]))?.trim().to_owned())
}

/// Processor, their number, kernel.
fn machine() -> String {
    let read = |path| std::fs::read_to_string(path).unwrap_or_default();
    let cpus = read("/proc/cpuinfo");
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": ").map(|(_, model)| model));
    let number = cpus.lines().filter(|line| line.starts_with("processor")).count();
    let kernel = read("/proc/sys/kernel/osrelease");
    format!(
        "{number} CPUs ({}), Linux {}",
        model.unwrap_or("of an unknown model"),
        kernel.split(['-', '\n']).next().unwrap_or_default()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the values in Newcombe (1998), table I, method 3.
    #[test]
    fn the_interval_is_wilsons() {
        for (hits, all, low, high) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = wilson(hits, all).unwrap_or_default();
            assert!((found.0 - low).abs() < 5e-5 && (found.1 - high).abs() < 5e-5, "{hits}/{all}: {found:?}");
        }
        assert_eq!(wilson(0, 0), None);
        assert!(wilson(29, 29).is_some_and(|(low, high)| low > 0.88 && (high - 1.0).abs() < 1e-12));
    }

    fn mutant(line: usize) -> Mutant {
        let file = "crates/dyno-proto/src/json.rs".to_owned();
        Mutant {
            name: format!("{file}:{line}: replace f with ()"),
            package: "dyno-proto".to_owned(),
            file,
            span: [(1, 1); 2],
            replacement: String::new(),
        }
    }

    #[test]
    fn the_page_has_the_score_the_survivors_and_the_command() {
        let queues = Queues::new((1..=9).map(mutant).collect(), 1, |name| name == "proto");
        let mut report = Report::new("cargo xtask mutants --seed 1".to_owned(), &queues, "abc".to_owned());
        for (line, fate) in [(1, Fate::Caught), (2, Fate::Missed), (3, Fate::TimedOut), (4, Fate::Unviable)] {
            report.add(mutant(line), fate);
        }
        let page = report.text("2026-01-02", "a machine");
        assert!(page.contains("| proto | 9 | 4 | 1 | 2 | 1 | 2 of 3 caught: 67 % (21 … 94) |"), "{page}");
        assert!(page.contains("| all | 9 | 4 | 1 | 2 | 1 |"), "{page}");
        assert!(
            page.contains("## Survivors\n\n- `crates/dyno-proto/src/json.rs:2: replace f with ()`\n"),
            "{page}"
        );
        assert!(page.contains("2026-01-02, a machine") && page.contains("--seed 1"), "{page}");
        assert_eq!((report.counted("proto"), report.counted("judge")), (3, 0));
        assert!(report.percent().is_some_and(|caught| (caught - 66.67).abs() < 0.01));
    }

    #[test]
    fn what_was_tried_earlier_counts_where_it_is_sampled() {
        let queues = Queues::new(vec![], 1, |name| name == "proto");
        let mut report = Report::new(String::new(), &queues, "new".to_owned());
        assert_eq!((report.percent(), report.headline()), (None, "mutants: nothing tried".to_owned()));
        let earlier = |file: &str| Tried {
            name: format!("{file}:1: replace f with ()"),
            fate: Fate::Caught,
            commit: "old".to_owned(),
        };
        report.take(["crates/dyno-proto/src/json.rs", "crates/dyno-measure/src/hist.rs"].map(earlier).into());
        assert_eq!((report.tried().len(), report.counted("proto")), (1, 1), "measure is not sampled");
        report.add(mutant(2), Fate::Missed);
        assert!(report.knows("crates/dyno-proto/src/json.rs:1: replace f with ()"));
        assert!(!report.knows("crates/dyno-proto/src/json.rs:3: replace f with ()"));
        assert!(report.text("", "").contains("Tried at: new (1), old (1)"));
    }
}
