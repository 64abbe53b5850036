//! What a comparison of a specimen's sides came to, as `--json` prints it (docs/records.md: `dyno.specimen/1`).

use std::collections::BTreeMap;

use dyno_measure::judge::compare_paired;
use dyno_measure::record::{Machine, Ratio};
use dyno_measure::stats::Sorted;
use serde::{Deserialize, Serialize};

use super::catalogue::{Language, Specimen};

/// Name and number of the shape.
const SCHEMA: &str = "dyno.specimen/1";

/// Chance that an interval misses the truth.
const ALPHA: f64 = 0.01;

/// Which program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Side {
    /// With the planted defect.
    Defect,
    /// Without it.
    Repaired,
}

/// The figures of one run, as the program printed them; a server's rate is the generator's.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Units of work done.
    pub(crate) units: u64,
    /// In this time.
    pub(crate) elapsed_ns: u64,
    /// With this CPU time of the program, all its threads.
    pub(crate) cpu_ns: u64,
    /// What else it counted.
    #[serde(default)]
    pub(crate) notes: BTreeMap<String, i64>,
}

/// Both sides, run one after the other.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Round {
    /// Which ran first.
    pub(crate) first: Side,
    /// The defect.
    pub(crate) defect: Figures,
    /// The repair.
    pub(crate) repaired: Figures,
}

/// A comparison.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Record {
    /// [`SCHEMA`].
    pub(crate) schema: &'static str,
    /// Version of the program.
    pub(crate) version: &'static str,
    /// When it began, seconds since 1970 (UTC).
    pub(crate) started_unix_s: u64,
    /// The command line.
    pub(crate) command: Vec<String>,
    /// Where it ran.
    pub(crate) machine: Machine,
    /// The specimen.
    pub(crate) name: String,
    /// What it is written in.
    pub(crate) language: Language,
    /// What diagnosis must name first; none where that is not what it is for.
    pub(crate) class: Option<dyno_measure::finding::Class>,
    /// What was counted.
    pub(crate) unit: String,
    /// Connections of the load; none without a server.
    pub(crate) connections: Option<usize>,
    /// Seed of the order.
    pub(crate) seed: u64,
    /// Length of one run of one side.
    pub(crate) run_ns: u64,
    /// Why it ended early.
    pub(crate) cut_short: Option<String>,
    /// Every round.
    pub(crate) rounds: Vec<Round>,
    /// Units per second, repaired over defect; 99 % interval. None with too few rounds.
    pub(crate) rate: Option<Ratio>,
    /// CPU per unit, repaired over defect; 99 % interval.
    pub(crate) cpu_per_unit: Option<Ratio>,
    /// What `rate` was expected to be, at least and at most.
    pub(crate) expected: [f64; 2],
    /// What the third way showed.
    pub(crate) also: Option<Figures>,
    /// The truth is that the repair changes nothing that is counted.
    #[serde(skip)]
    pub(crate) changes_nothing: bool,
}

impl Side {
    /// The word that the programs know it by.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Side::Defect => "defect",
            Side::Repaired => "repaired",
        }
    }
}

impl Figures {
    /// Units per second.
    pub(crate) fn per_s(&self) -> f64 {
        self.units as f64 / (self.elapsed_ns as f64 / 1e9)
    }

    /// CPU time of a unit.
    pub(crate) fn cpu_per_unit_ns(&self) -> f64 {
        self.cpu_ns as f64 / self.units as f64
    }

    /// Reads the last line of a program.
    pub(crate) fn from_output(text: &str) -> Option<Figures> {
        text.lines().rev().find_map(|line| serde_json::from_str(line).ok())
    }
}

impl Record {
    /// A record without rounds.
    pub(crate) fn new(specimen: &Specimen, machine: Machine, seed: u64, run_ns: u64) -> Record {
        Record {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            started_unix_s: dyno_sys::clock::real_coarse_s(),
            command: crate::cmd::command_line(),
            machine,
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
    pub(crate) fn judge(&mut self) {
        self.rate = self.ratio(Figures::per_s);
        self.cpu_per_unit = self.ratio(Figures::cpu_per_unit_ns);
    }

    /// Whether the truth was seen: the repair faster, by an interval that holds nothing else, or where it is to change
    /// nothing no clear change; none with too few rounds.
    pub(crate) fn is_shown(&self) -> Option<bool> {
        let [low, high] = self.expected;
        self.rate.as_ref().map(|rate| match self.changes_nothing {
            true => rate.interval[0] <= 1.0 && 1.0 <= rate.interval[1] || (low..=high).contains(&rate.ratio),
            false => rate.interval[0] > 1.0,
        })
    }

    /// The middle of a figure over the rounds of a side.
    pub(crate) fn median(&self, side: Side, value: impl Fn(&Figures) -> f64) -> f64 {
        let values = self.rounds.iter().map(|round| value(round.of(side)));
        Sorted::of(values).quantile(0.5).unwrap_or(f64::NAN)
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
    use super::super::catalogue::find;
    use super::*;

    fn figures(units: u64) -> Figures {
        Figures { units, elapsed_ns: 1_000_000_000, cpu_ns: 500_000_000, ..Figures::default() }
    }

    fn record(pairs: &[(u64, u64)]) -> Record {
        let mut record = Record::new(&find("sync-log").unwrap(), Machine::default(), 1, 2);
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
