//! Climbs of a folder in the order in which they were made: what became of total, floor and rungs, and where the machine or
//! the program changed.
//!
//! `dyno compare` writes it; its field names are an interface (docs/records.md).

use dyno_measure::apart::Known;
use serde::{Deserialize, Serialize};

use crate::difference::{Change, changes};
use crate::figure::{Forbids, Sheet, Unit};
use crate::sheet::{FINAL_SETTING, STEP};

/// Name and number of this record's shape.
pub const HISTORY_SCHEMA: &str = "dyno.history/1";

/// A history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    /// [`HISTORY_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The folder.
    pub folder: String,
    /// One line of climbs for each plan and load, the longest first: what differs in these is not compared.
    pub lines: Vec<Line>,
    /// Files that were passed over, and why.
    pub skipped: Vec<Skipped>,
}

/// Climbs of one plan under one load, by when they began.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The plan.
    pub plan: String,
    /// The load.
    pub load: String,
    /// The climbs.
    pub climbs: Vec<Entry>,
    /// What totals of climbs between which nothing changed differ by beyond their intervals; none with fewer than three.
    pub beyond: Option<Beyond>,
}

/// A climb of a history.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// Its file.
    pub file: String,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long it took.
    pub duration_s: f64,
    /// Version of the program that wrote it.
    pub version: String,
    /// Why it ended early, if it did.
    pub cut_short: Option<String>,
    /// Its machine: processor and number of CPUs.
    pub machine: String,
    /// What is not as in the climb before.
    pub changes: Vec<Change>,
    /// Its figures, without steps of rungs.
    pub figures: Vec<Point>,
}

/// A figure of a climb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its name: `total`, `floor`, `rung.ID`.
    pub name: String,
    /// What it counts.
    pub unit: Unit,
    /// None where it was not measured.
    pub value: Option<f64>,
    /// Its interval.
    pub interval: Option<[f64; 2]>,
    /// The rung's verdict.
    pub word: String,
    /// Whether it is a gain that was confirmed, a step's own, or another figure.
    pub basis: String,
}

/// What like climbs differ by.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Beyond {
    /// Standard deviation of totals from climb to climb that their intervals do not explain, percent.
    pub percent: f64,
    /// Climbs that it was read from.
    pub climbs: usize,
}

/// A file that is no climb.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skipped {
    /// The file.
    pub file: String,
    /// Why.
    pub why: String,
}

/// Normal quantile of the intervals of totals.
const Z: f64 = 2.576;
/// Climbs, each with its file.
type Climbs = Vec<(String, Sheet)>;

/// Fewest climbs whose totals say what climbs differ by.
const ALIKE_MIN: usize = 3;

impl History {
    /// Climbs as files and sheets, in any order.
    #[must_use]
    pub fn of(folder: &str, version: &str, climbs: Climbs, skipped: Vec<Skipped>) -> Self {
        let mut climbs = climbs;
        climbs
            .sort_by(|(a_file, a), (b_file, b)| (a.started_unix_s, a_file).cmp(&(b.started_unix_s, b_file)));
        let mut lines: Vec<(String, String, Climbs)> = Vec::new();
        for (file, sheet) in climbs {
            let (plan, load) =
                (of(&sheet, "plan"), format!("{}, {}", of(&sheet, "load"), of(&sheet, "network")));
            match lines.iter_mut().find(|(a, b, _)| (a, b) == (&plan, &load)) {
                Some((_, _, line)) => line.push((file, sheet)),
                None => lines.push((plan, load, vec![(file, sheet)])),
            }
        }
        lines.sort_by_key(|(_, _, line)| std::cmp::Reverse(line.len()));
        let lines = lines.into_iter().map(|(plan, load, climbs)| line(plan, load, &climbs)).collect();
        Self { schema: HISTORY_SCHEMA.into(), version: version.into(), folder: folder.into(), lines, skipped }
    }

    /// All climbs.
    #[must_use]
    pub fn climbs(&self) -> usize {
        self.lines.iter().map(|line| line.climbs.len()).sum()
    }
}

fn of(sheet: &Sheet, what: &str) -> String {
    sheet.conditions.iter().find(|one| one.what == what).map(|one| one.value.clone()).unwrap_or_default()
}

fn line(plan: String, load: String, climbs: &[(String, Sheet)]) -> Line {
    let before = std::iter::once(None).chain(climbs.iter().map(|(_, sheet)| Some(sheet)));
    let entries = climbs.iter().zip(before).map(|((file, sheet), before)| entry(file, sheet, before));
    Line { plan, load, climbs: entries.collect(), beyond: beyond(climbs) }
}

fn entry(file: &str, sheet: &Sheet, before: Option<&Sheet>) -> Entry {
    let point = |figure: &crate::figure::Figure| Point {
        name: figure.name.clone(),
        unit: figure.unit,
        value: figure.value,
        interval: figure.interval,
        word: figure.word.clone(),
        basis: figure.basis.clone(),
    };
    Entry {
        file: file.to_owned(),
        started_unix_s: sheet.started_unix_s,
        duration_s: sheet.duration_s,
        version: sheet.version.clone(),
        cut_short: sheet.cut_short.clone(),
        machine: format!("{}, {} CPUs", of(sheet, "processor"), of(sheet, "CPUs")),
        changes: before.map(|before| around(before, sheet)).unwrap_or_default(),
        figures: sheet.figures.iter().filter(|one| !one.name.starts_with(STEP)).map(point).collect(),
    }
}

/// What changed around two climbs. Where their dials ended is what came of them.
fn around(before: &Sheet, after: &Sheet) -> Vec<Change> {
    changes(before, after).into_iter().filter(|change| change.what != FINAL_SETTING).collect()
}

/// Of the longest run of climbs between which nothing changed: the variance of totals beyond that of their intervals
/// (DerSimonian and Laird, 1986).
fn beyond(climbs: &[(String, Sheet)]) -> Option<Beyond> {
    let same = |a: &&(String, Sheet), b: &&(String, Sheet)| {
        around(&a.1, &b.1).iter().all(|change| change.forbids == Forbids::Nothing && change.what != "version")
    };
    let all: Vec<&(String, Sheet)> = climbs.iter().collect();
    let longest = all.chunk_by(|a, b| same(a, b)).max_by_key(|run| run.len())?;
    let totals: Vec<Known> = longest
        .iter()
        .filter_map(|(_, sheet)| {
            let total = sheet.figure("total")?;
            Known::of(total.value?, total.interval?)
        })
        .filter(|known| known.half_width > 0.0)
        .collect();
    if totals.len() < ALIKE_MIN {
        return None;
    }
    let weights: Vec<f64> = totals.iter().map(|known| (Z / known.half_width).powi(2)).collect();
    let sum: f64 = weights.iter().sum();
    let centre = weights.iter().zip(&totals).map(|(weight, known)| weight * known.log).sum::<f64>() / sum;
    let q: f64 =
        weights.iter().zip(&totals).map(|(weight, known)| weight * (known.log - centre).powi(2)).sum();
    let squares: f64 = weights.iter().map(|weight| weight * weight).sum();
    let freedom = (totals.len() - 1) as f64;
    let variance = ((q - freedom) / (sum - squares / sum)).max(0.0);
    Some(Beyond { percent: dyno_measure::units::percent_of_log(variance.sqrt()), climbs: totals.len() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::{Better, Condition, Figure};

    fn climb(started: u64, total: f64, plan: &str, model: &str) -> (String, Sheet) {
        let figure = Figure::new("total", "gain", (Unit::Ratio, Better::Higher), Some(total));
        let conditions = vec![
            Condition::new("plan", plan, Forbids::All),
            Condition::new("processor", model, Forbids::Absolute),
        ];
        let figures = vec![figure.within(Some([total * 0.99, total / 0.99]))];
        (
            format!("{started}.json"),
            Sheet { started_unix_s: started, conditions, figures, ..Sheet::default() },
        )
    }

    #[test]
    fn climbs_stand_in_the_order_of_their_starts_with_what_changed() {
        let climbs = vec![
            climb(30, 2.0, "serve", "y"),
            climb(10, 2.0, "serve", "x"),
            climb(5, 1.0, "nginx", "x"),
            climb(20, 2.0, "serve", "x"),
        ];
        let history = History::of("d", "0", climbs, Vec::new());
        let starts: Vec<Vec<u64>> = history
            .lines
            .iter()
            .map(|line| line.climbs.iter().map(|one| one.started_unix_s).collect())
            .collect();
        assert_eq!(starts, [vec![10, 20, 30], vec![5]]);
        let changed: Vec<usize> = history.lines[0].climbs.iter().map(|one| one.changes.len()).collect();
        assert_eq!((changed, history.climbs()), (vec![0, 0, 1], 4));
    }

    #[test]
    fn what_like_climbs_differ_by_is_read_from_their_totals_alone() {
        let of = |totals: &[f64]| {
            let climbs =
                totals.iter().enumerate().map(|(at, total)| climb(at as u64, *total, "p", "x")).collect();
            History::of("d", "0", climbs, Vec::new()).lines[0].beyond
        };
        assert_eq!(of(&[2.0, 2.1]), None);
        assert!(of(&[2.0, 2.001, 1.999]).is_some_and(|one| one.percent == 0.0 && one.climbs == 3));
        let wild = of(&[2.0, 2.4, 1.7, 2.2]).map_or(0.0, |one| one.percent);
        assert!((10.0..25.0).contains(&wild), "{wild}");
    }
}
