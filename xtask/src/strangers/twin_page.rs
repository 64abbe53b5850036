//! What came of the programs with twins, for a terminal and for the page of evidence.

use std::fmt::Write;
use std::path::Path;

use crate::trouble::Trouble;

use super::page::machine;
use super::predicted::Predicted;
use super::standing::{Met, Standing};

impl Standing {
    fn word(self) -> &'static str {
        match self {
            Standing::Inside => "inside",
            Standing::Agrees => "agrees",
            Standing::Hollow => "outside, hollow",
            Standing::Wrong => "WRONG",
            Standing::RightlyRefused => "rightly refused",
            Standing::Refused => "refused",
            Standing::Broken => "did not run",
        }
    }
}

/// One program on one line.
pub(crate) fn line(met: &Met) -> String {
    let head = format!("{:<16} {:<18} {:<11}", met.standing().word(), met.twin.name, met.twin.kind);
    match &met.trouble {
        Some(trouble) => format!("{head} {}", trouble.replace('\n', " ")),
        None => format!("{head} predicted {} · actual {}", predicted(met), actual(met)),
    }
}

fn predicted(met: &Met) -> String {
    match &met.predicted {
        Some(Predicted::Told(told)) => {
            let hollow = if told.hollow { ", hollow" } else { "" };
            format!("{} ({}{hollow})", figure(told.saved, told.interval), told.verdict)
        }
        Some(Predicted::Refused(why)) => format!("– ({why})"),
        None => "–".to_owned(),
    }
}

fn actual(met: &Met) -> String {
    met.actual.map_or("–".to_owned(), |actual| figure(actual.saved, actual.interval))
}

fn figure(value: f64, [low, high]: [f64; 2]) -> String {
    // A minus that stands before nothing is none.
    let value = if value.abs() < 0.05 { 0.0 } else { value };
    format!("{value:.1} ±{:.1}", (high - low) / 2.0).replace('-', "−")
}

/// How many of each, and how far off.
pub(crate) fn sum(all: &[Met]) -> String {
    let count = |standing| all.iter().filter(|met| met.standing() == standing).count();
    let told = [Standing::Inside, Standing::Agrees, Standing::Hollow, Standing::Wrong];
    let median = median(all.iter().filter_map(Met::error).collect()).map_or(String::new(), |median| {
        format!("; median difference {median:.1} points where a verdict rests on it")
    });
    format!(
        "of {} programs {} are told a figure: inside {}, within both intervals {}, hollow and outside {}, confidently wrong \
         {}{median}; refused for the expected reason {}, for another {}; did not run: {}",
        all.len(),
        told.into_iter().map(count).sum::<usize>(),
        count(Standing::Inside),
        count(Standing::Agrees),
        count(Standing::Hollow),
        count(Standing::Wrong),
        count(Standing::RightlyRefused),
        count(Standing::Refused),
        count(Standing::Broken),
    )
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some((low + high) / 2.0)
}

/// The page of evidence.
pub(crate) fn page(all: &[Met], asked: &str) -> String {
    let pairs = all.iter().filter_map(|met| met.actual).map(|actual| actual.pairs).max().unwrap_or_default();
    let mut text = String::from("# Causal profiles of programs from elsewhere\n\n");
    let _ = write!(
        text,
        "`cargo xtask strangers --causal`, {}. Each program is asked of once, for {asked}. Then it and its twin, the same program \
         with that part really shortened, work in turns: {pairs} pairs of windows of 1.5 s or what the table says, while the other is \
         stopped. Figures are time saved per unit in percent with intervals of 95 %, by the program's own count.\n\n{}.\n\n\
         | program | kind | from | part, so much of it gone | known by | units/s | predicted | actual | answer |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        machine(),
        sum(all),
    );
    for met in all {
        let twin = &met.twin;
        let _ = writeln!(
            text,
            "| {} | {} | {} | `{}`, {} % | {} | {} | {} | {} | {} |",
            twin.name,
            twin.kind,
            twin.from,
            twin.site.name,
            twin.percent,
            twin.known_by,
            met.actual.map_or("–".to_owned(), |actual| format!("{:.0}", actual.per_s)),
            met.trouble.as_ref().map_or_else(|| predicted(met), |trouble| trouble.replace('\n', " ")),
            actual(met),
            met.standing().word(),
        );
    }
    text
}

/// Keeps it.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Trouble> {
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(Trouble::cannot("make its folder"))?;
    std::fs::write(path, text).map_err(Trouble::cannot(format!("write {}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_its_interval_and_no_minus_before_nothing() {
        assert_eq!(figure(-12.34, [-13.0, -11.5]), "−12.3 ±0.8");
        assert_eq!(figure(-0.04, [-1.0, 1.0]), "0.0 ±1.0");
    }

    #[test]
    fn the_median_of_an_even_number_lies_between_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0, 9.0]), Some(2.5));
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(Vec::new()), None);
    }
}
