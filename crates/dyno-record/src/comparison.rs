//! What a comparison of a specimen's sides came to, as `--json` prints it (docs/records.md: `dyno.specimen/1`).

use std::collections::BTreeMap;

use dyno_measure::judge::compare_paired;
use serde::{Deserialize, Serialize};

use crate::climb::Ratio;
use crate::finding::Class;
use crate::machine::Machine;
use crate::specimen::{Language, Side, Specimen};

/// Name and number of the shape.
const SCHEMA: &str = "dyno.specimen/1";

/// Chance that an interval misses the truth.
const ALPHA: f64 = 0.01;

/// The figures of one run, as the program printed them; a server's rate is the generator's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Units of work done.
    pub units: u64,
    /// In this time.
    pub elapsed_ns: u64,
    /// With this CPU time of the program, all its threads.
    pub cpu_ns: u64,
    /// What else it counted.
    #[serde(default)]
    pub notes: BTreeMap<String, i64>,
}

/// Both sides, run one after the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Round {
    /// Which ran first.
    pub first: Side,
    /// The defect.
    pub defect: Figures,
    /// The repair.
    pub repaired: Figures,
}

/// When, by which command and where a comparison is made.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Made {
    /// Seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// The command line.
    pub command: Vec<String>,
    /// The machine.
    pub machine: Machine,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Record {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Version of the program.
    pub version: &'static str,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// The command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// The specimen.
    pub name: String,
    /// What it is written in.
    pub language: Language,
    /// What diagnosis must name first; none where that is not what it is for.
    pub class: Option<Class>,
    /// What was counted.
    pub unit: String,
    /// Connections of the load; none without a server.
    pub connections: Option<usize>,
    /// Seed of the order.
    pub seed: u64,
    /// Length of one run of one side.
    pub run_ns: u64,
    /// Why it ended early.
    pub cut_short: Option<String>,
    /// Every round.
    pub rounds: Vec<Round>,
    /// Units per second, repaired over defect; 99 % interval. None with too few rounds.
    pub rate: Option<Ratio>,
    /// CPU per unit, repaired over defect; 99 % interval.
    pub cpu_per_unit: Option<Ratio>,
    /// What `rate` was expected to be, at least and at most.
    pub expected: [f64; 2],
    /// What the third way showed.
    pub also: Option<Figures>,
    /// The truth is that the repair changes nothing that is counted.
    #[serde(skip)]
    pub changes_nothing: bool,
}

impl Figures {
    /// Units per second.
    pub fn per_s(&self) -> f64 {
        self.units as f64 / (self.elapsed_ns as f64 / 1e9)
    }

    /// CPU time of a unit.
    pub fn cpu_per_unit_ns(&self) -> f64 {
        self.cpu_ns as f64 / self.units as f64
    }

    /// Reads the last line of a program.
    pub fn from_output(text: &str) -> Option<Figures> {
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }
}

impl Record {
    /// A record without rounds.
    pub fn new(specimen: &Specimen, made: Made, seed: u64, run_ns: u64) -> Record {
        Record {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            started_unix_s: made.started_unix_s,
            command: made.command,
            machine: made.machine,
            name: specimen.name.clone(),
            language: specimen.language,
            class: specimen.class,
            unit: specimen.unit.clone(),
            connections: specimen.load.as_ref().map(|load| load.connections),
            seed,
            run_ns,
            cut_short: None,
            rounds: Vec::new(),
            rate: None,
            cpu_per_unit: None,
            expected: specimen.expect.ratio,
            also: None,
            changes_nothing: specimen.causal.as_ref().is_some_and(|causal| causal.null),
        }
    }

    /// Judges the rounds that there are.
    pub fn judge(&mut self) {
        self.rate = self.ratio(Figures::per_s);
        self.cpu_per_unit = self.ratio(Figures::cpu_per_unit_ns);
    }

    /// Whether the truth was seen: the repair faster, by an interval that holds nothing else, or where it is to change
    /// nothing no clear change; none with too few rounds.
    pub fn is_shown(&self) -> Option<bool> {
        let [low, high] = self.expected;
        self.rate.as_ref().map(|rate| match self.changes_nothing {
            true => rate.interval[0] <= 1.0 && 1.0 <= rate.interval[1] || (low..=high).contains(&rate.ratio),
            false => rate.interval[0] > 1.0,
        })
    }

    /// The middle of a figure over the rounds of a side.
    pub fn median(&self, side: Side, value: impl Fn(&Figures) -> f64) -> f64 {
        let mut values: Vec<f64> = self.rounds.iter().map(|round| value(round.of(side))).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
    }

    fn ratio(&self, value: impl Fn(&Figures) -> f64) -> Option<Ratio> {
        let of = |side| self.rounds.iter().map(|round| value(round.of(side))).collect::<Vec<_>>();
        let (defect, repaired) = (of(Side::Defect), of(Side::Repaired));
        let sound = defect.iter().chain(&repaired).all(|value| value.is_finite() && *value > 0.0);
        sound.then(|| compare_paired(&defect, &repaired, ALPHA))?.map(|estimate| Ratio::of(&estimate))
    }
}

impl Round {
    fn of(&self, side: Side) -> &Figures {
        match side {
            Side::Defect => &self.defect,
            Side::Repaired => &self.repaired,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn specimen() -> Specimen {
        toml::from_str(include_str!("../../../specimens/sync-log/specimen.toml")).unwrap()
    }

    fn figures(units: u64) -> Figures {
        Figures { units, elapsed_ns: 1_000_000_000, cpu_ns: 500_000_000, ..Figures::default() }
    }

    fn record(pairs: &[(u64, u64)]) -> Record {
        let mut record = Record::new(&specimen(), Made::default(), 1, 2);
        let round = |(defect, repaired): &(u64, u64)| Round {
            first: Side::Defect,
            defect: figures(*defect),
            repaired: figures(*repaired),
        };
        record.rounds = pairs.iter().map(round).collect();
        record.judge();
        record
    }

    #[test]
    fn a_repair_that_is_twice_as_fast_is_shown_with_its_interval() {
        let record = record(&[(100, 200), (101, 199), (99, 201), (100, 203), (98, 200), (100, 198)]);
        let rate = record.rate.as_ref().unwrap();
        assert!((rate.ratio - 2.0).abs() < 0.03, "{rate:?}");
        assert!(rate.interval[0] > 1.9 && rate.interval[1] < 2.15, "{rate:?}");
        let cpu = record.cpu_per_unit.as_ref().unwrap();
        assert!((cpu.ratio - 0.5).abs() < 0.01, "{cpu:?}");
        assert_eq!(record.is_shown(), Some(true));
        assert!((record.median(Side::Defect, Figures::per_s) - 100.0).abs() < 1.5);
    }

    #[test]
    fn equal_sides_show_nothing_and_few_rounds_are_no_answer() {
        let equal = record(&[(100, 101), (101, 99), (99, 100), (100, 99), (98, 100), (100, 98)]);
        assert_eq!(equal.is_shown(), Some(false));
        assert_eq!(record(&[(100, 200); 4]).is_shown(), None);
        assert_eq!(record(&[(100, 0); 6]).is_shown(), None, "no unit is no rate");
    }

    #[test]
    fn a_repair_that_is_to_change_nothing_is_shown_by_no_change() {
        let nothing = |rounds| Record { changes_nothing: true, expected: [0.8, 1.4], ..record(rounds) };
        let equal = nothing(&[(100, 101), (101, 99), (99, 100), (100, 99), (98, 100), (100, 98)]);
        assert_eq!(equal.is_shown(), Some(true));
        let twice = nothing(&[(100, 200), (101, 199), (99, 201), (100, 203), (98, 200), (100, 198)]);
        assert_eq!(twice.is_shown(), Some(false));
    }

    #[test]
    fn the_last_line_of_figures_counts() {
        let text =
            "ready\nsomething else\n{\"units\":3,\"elapsed_ns\":2,\"cpu_ns\":1,\"notes\":{\"woken\":7}}\n";
        let figures = Figures::from_output(text).unwrap();
        assert_eq!((figures.units, figures.elapsed_ns, figures.cpu_ns), (3, 2, 1));
        assert_eq!(figures.notes["woken"], 7);
        assert_eq!(Figures::from_output("ready\n"), None);
    }
}
