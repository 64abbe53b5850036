//! What `dyno specimen run NAME --causal` found: what was predicted of each part, beside what shortening it really brought
//! (docs/records.md: `dyno.truth/1`).

use dyno_measure::judge::compare_paired;
use serde::Serialize;

use crate::causal::{Causal, Verdict};
use crate::comparison::Figures;
use crate::machine::Machine;
use crate::specimen::{Side, Site, Specimen};

/// Name and number of the shape.
const SCHEMA: &str = "dyno.truth/1";
/// Chance that an interval misses: that of a causal profile's intervals.
const ALPHA: f64 = 0.05;

/// A way to run the program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Variant {
    /// The side.
    pub side: Side,
    /// The part that was shortened, and by how many percent; none for a whole side.
    pub less: Option<(String, u32)>,
}

/// Predicted beside actual, for one part and one level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// The site as it was named to the profile.
    pub site: String,
    /// How much shorter the part was made; none where the real change is the repair.
    pub speedup_percent: Option<u32>,
    /// The profile's answer on the site.
    pub verdict: Option<Verdict>,
    /// Predicted time saved per unit, percent; of the greatest level where the real change is the repair.
    pub predicted_percent: Option<f64>,
    /// Its 95 % interval.
    pub predicted_interval: Option<[f64; 2]>,
    /// Time really saved per unit, percent.
    pub actual_percent: Option<f64>,
    /// Its 95 % interval.
    pub actual_interval: Option<[f64; 2]>,
    /// Predicted less actual, in points.
    pub error_points: Option<f64>,
    /// Whether what really was saved lies in the predicted interval.
    pub inside: Option<bool>,
    /// Whether the two differ by no more than both their intervals allow: what really was saved is known no better.
    pub agrees: Option<bool>,
    /// Whether the profile itself says that this level misleads, so that no verdict rests on it.
    pub biased: bool,
}

/// Everything.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Truth {
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
    /// What was counted.
    pub unit: String,
    /// Seed of every coin.
    pub seed: u64,
    /// Length of one real run.
    pub run_ns: u64,
    /// Why it ended early.
    pub cut_short: Option<String>,
    /// The ways in which it was run, the first one unchanged.
    pub variants: Vec<Variant>,
    /// Time per unit of each round and variant, µs.
    pub rounds_us: Vec<Vec<f64>>,
    /// Predicted beside actual.
    pub rows: Vec<Row>,
    /// The causal profile.
    pub predicted: Causal,
}

/// The ways to run a specimen: unchanged, then each part at each level, then each side that is a change of its own.
pub fn variants(sites: &[Site], levels: &[u32]) -> Vec<Variant> {
    let mut all = vec![Variant { side: Side::Defect, less: None }];
    for site in sites {
        match (site.part(), site.side) {
            (Some(part), _) => all.extend(
                levels
                    .iter()
                    .map(|level| Variant { side: Side::Defect, less: Some((part.to_owned(), *level)) }),
            ),
            (None, Some(side)) => all.push(Variant { side, less: None }),
            (None, None) => {}
        }
    }
    all.dedup();
    all
}

impl Variant {
    /// The words after the program's own.
    pub fn words(&self) -> Vec<String> {
        let less =
            self.less.iter().flat_map(|(part, level)| ["--less".to_owned(), format!("{part}={level}")]);
        std::iter::once(self.side.word().to_owned()).chain(less).collect()
    }

    /// Whether it is what is really tried for this site.
    #[must_use]
    pub fn tries(&self, site: &Site) -> bool {
        match &self.less {
            Some((part, _)) => site.part() == Some(part.as_str()),
            None => site.side == Some(self.side),
        }
    }
}

impl Truth {
    /// A truth without rounds.
    pub fn new(
        specimen: &Specimen,
        predicted: Causal,
        command: Vec<String>,
        variants: Vec<Variant>,
        run_ns: u64,
    ) -> Truth {
        Truth {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            started_unix_s: predicted.started_unix_s,
            command,
            machine: predicted.machine.clone(),
            name: specimen.name.clone(),
            unit: specimen.unit.clone(),
            seed: predicted.seed,
            run_ns,
            cut_short: None,
            variants,
            rounds_us: Vec::new(),
            rows: Vec::new(),
            predicted,
        }
    }

    /// Adds a round: what each variant did.
    pub fn add(&mut self, round: &[Figures]) {
        self.rounds_us.push(round.iter().map(|run| 1e6 / run.per_s()).collect());
    }

    /// Puts what was predicted beside what the rounds say.
    pub fn judge(&mut self, sites: &[Site]) {
        self.rows = (1..self.variants.len())
            .flat_map(|at| sites.iter().filter(move |_| at > 0).map(move |site| (at, site)))
            .filter(|(at, site)| self.variants[*at].tries(site))
            .map(|(at, site)| self.row(at, site))
            .collect();
    }

    fn row(&self, at: usize, site: &Site) -> Row {
        let level = self.variants[at].less.as_ref().map(|(_, level)| *level);
        let answer = self.predicted.sites.iter().find(|one| one.name == site.name);
        let answer = answer.or_else(|| self.only_one(site));
        let point = answer.and_then(|one| match level {
            Some(level) => one.points.iter().find(|point| point.speedup_percent == level),
            None => one.greatest(),
        });
        let actual = self.saved(at);
        let error = point.zip(actual).map(|(point, (actual, _))| point.effect_percent - actual);
        let both = point.zip(actual).filter(|_| level.is_some());
        let inside = both.map(|(point, (actual, _))| {
            let [low, high] = point.interval_percent;
            (low..=high).contains(&actual)
        });
        let agrees = both.map(|(point, (actual, interval))| {
            let both = half_width(point.interval_percent).hypot(half_width(interval));
            inside == Some(true) || (point.effect_percent - actual).abs() <= both
        });
        Row {
            site: site.name.clone(),
            speedup_percent: level,
            verdict: answer.map(|one| one.verdict),
            predicted_percent: point.map(|point| point.effect_percent),
            predicted_interval: point.map(|point| point.interval_percent),
            actual_percent: actual.map(|(value, _)| value),
            actual_interval: actual.map(|(_, interval)| interval),
            error_points: error.filter(|_| level.is_some()),
            inside,
            agrees,
            biased: point.is_some_and(|point| point.biased),
        }
    }

    /// A profile may call a site by a longer name than it was asked for, or by one without its file.
    fn only_one(&self, site: &Site) -> Option<&crate::causal::Site> {
        let mut alike =
            self.predicted.sites.iter().filter(|one| {
                one.name.contains(&site.name) || site.name.ends_with(&format!(":{}", one.name))
            });
        alike.next().filter(|_| alike.next().is_none())
    }

    /// Time saved per unit by a variant, percent, with its interval; none with too few rounds.
    fn saved(&self, at: usize) -> Option<(f64, [f64; 2])> {
        let of = |at: usize| self.rounds_us.iter().map(|round| round[at]).collect::<Vec<_>>();
        let (base, changed) = (of(0), of(at));
        let sound = base.iter().chain(&changed).all(|us| us.is_finite() && *us > 0.0);
        let estimate = sound.then(|| compare_paired(&base, &changed, ALPHA))??;
        let ratio = crate::climb::Ratio::of(&estimate);
        let saved = |ratio: f64| 100.0 * (1.0 - ratio);
        Some((saved(ratio.ratio), [saved(ratio.interval[1]), saved(ratio.interval[0])]))
    }
}

fn half_width([low, high]: [f64; 2]) -> f64 {
    (high - low).abs() / 2.0
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::causal::{Point, Site as Predicted};

    fn specimen() -> Specimen {
        toml::from_str(include_str!("../../../specimens/three-parts/specimen.toml")).unwrap()
    }

    fn figures(us: f64) -> Figures {
        Figures { units: 1_000, elapsed_ns: (us * 1e6) as u64, cpu_ns: 1, ..Figures::default() }
    }

    /// Predicted 30 % at 50 %, and really 28.
    fn truth() -> Truth {
        let specimen = specimen();
        let sites = &specimen.causal.as_ref().unwrap().sites[..1];
        let point = |level: u32, effect: f64| Point {
            speedup_percent: level,
            effect_percent: effect,
            interval_percent: [effect - 1.0, effect + 1.0],
            rounds: 20,
            ..Point::default()
        };
        let site = Predicted {
            name: "part_of_sixty".into(),
            verdict: Verdict::Helps,
            points: vec![point(10, 6.0), point(50, 30.0)],
            ..Predicted::default()
        };
        let predicted = Causal { sites: vec![site], seed: 7, ..Causal::default() };
        let mut truth = Truth::new(&specimen, predicted, Vec::new(), variants(sites, &[10, 50]), 500_000_000);
        for k in 0..8 {
            let drift = 1.0 + f64::from(k) / 100.0;
            truth.add(&[100.0, 94.3, 72.0].map(|us| figures(us * drift)));
        }
        truth.judge(sites);
        truth
    }

    #[test]
    fn each_part_is_run_at_each_level_beside_the_program_as_it_is() {
        let truth = truth();
        let words: Vec<String> = truth.variants.iter().map(|variant| variant.words().join(" ")).collect();
        assert_eq!(words, ["defect", "defect --less part_of_sixty=10", "defect --less part_of_sixty=50"]);
    }

    #[test]
    fn what_really_was_saved_is_inside_the_interval_or_it_is_not() {
        let rows = truth().rows;
        assert_eq!(rows.len(), 2);
        assert!((rows[0].actual_percent.unwrap() - 5.7).abs() < 0.01, "{rows:?}");
        assert_eq!((rows[0].inside, rows[1].inside), (Some(true), Some(false)));
        assert_eq!((rows[0].agrees, rows[1].agrees), (Some(true), Some(false)));
        assert!((rows[1].error_points.unwrap() - 2.0).abs() < 0.01, "{rows:?}");
        assert!(rows[1].actual_interval.unwrap()[0] > 27.5, "paired: drift does not count: {rows:?}");
    }

    #[test]
    fn a_level_that_the_profile_calls_misleading_is_marked() {
        let mut truth = truth();
        truth.predicted.sites[0].points[1].biased = true;
        truth.judge(&specimen().causal.unwrap().sites[..1]);
        assert_eq!(truth.rows.iter().map(|row| row.biased).collect::<Vec<_>>(), [false, true]);
    }

    #[test]
    fn a_whole_side_is_a_row_without_a_level_and_is_not_called_inside() {
        let site = Site { name: "f".into(), part: None, side: Some(Side::Repaired), inclusive: false };
        let specimen = specimen();
        let both = variants(&[site.clone(), Site { name: "g".into(), ..site.clone() }], &[10]);
        assert_eq!(both.len(), 2, "one side is run once: {both:?}");
        let mut truth = Truth::new(&specimen, Causal::default(), Vec::new(), both, 1);
        (0..6).for_each(|_| truth.add(&[figures(100.0), figures(80.0)]));
        truth.judge(&[site]);
        assert_eq!((truth.rows[0].speedup_percent, truth.rows[0].inside), (None, None));
        assert!((truth.rows[0].actual_percent.unwrap() - 20.0).abs() < 0.01);
    }

    #[test]
    fn few_rounds_and_no_units_are_no_answer() {
        let mut few = truth();
        few.rounds_us.truncate(3);
        few.judge(&specimen().causal.unwrap().sites[..1]);
        assert_eq!((few.rows[0].actual_percent, few.rows[0].inside), (None, None));
    }
}
