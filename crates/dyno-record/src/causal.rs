//! The published record of a causal profile: what it would bring if this code, or this wait, were faster.
//!
//! `dyno causal` writes it, the curves page is drawn from it. It holds every window that a verdict rests on, the windows
//! that were set aside and why. The shapes are described for readers in docs/records.md.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Missing};
use crate::profile::Target;

/// Name and number of the causal record's shape.
pub const CAUSAL_SCHEMA: &str = "dyno.causal/1";

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CausalError {
    /// Not JSON, or not of this shape.
    #[error("this is not a causal record")]
    Shape(#[source] serde_json::Error),
    /// A figure that no measurement gives.
    #[error(transparent)]
    Impossible(#[from] crate::sane::Impossible),
    /// A record of another shape than this program knows.
    #[error("the record's schema is \"{found}\", this program reads \"{CAUSAL_SCHEMA}\"")]
    Schema {
        /// What the file says.
        found: String,
    },
}

/// One causal profile.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Causal {
    /// [`CAUSAL_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// Seed of every coin.
    pub seed: u64,
    /// When it began, seconds since 1970 (UTC).
    pub started_unix_s: u64,
    /// How long it took.
    pub duration_s: f64,
    /// The command line.
    pub command: Vec<String>,
    /// Where it ran.
    pub machine: Machine,
    /// What was experimented with.
    pub target: Target,
    /// What was asked for.
    pub options: Options,
    /// What was counted.
    pub progress: Progress,
    /// What was tried, the largest effect first.
    pub sites: Vec<Site>,
    /// How far all of it may be believed.
    pub credibility: Credibility,
    /// Pauses for all alike; none where that was not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// What watching and delaying cost.
    pub overhead: Overhead,
    /// Why it ended early, if it did: what is in the record was measured before.
    pub cut_short: Option<String>,
    /// What was not tried, and why.
    pub not_measured: Vec<Missing>,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Options {
    /// Virtual speed-ups, in percent.
    pub levels_percent: Vec<u32>,
    /// The whole budget.
    pub budget_s: f64,
    /// Sites named by the user; empty: chosen from a profile.
    pub sites: Vec<String>,
    /// Whether a site counts wherever it stands on the stack.
    pub inclusive: bool,
    /// Other processes that take part: their threads pay and pass on credit, their code never matches.
    pub participants: Vec<u32>,
}

/// What was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    /// The progress point as it was named.
    pub name: String,
    /// What effects are effects on.
    pub metric: Metric,
    /// Visits per second with all probes attached and no delays.
    pub per_second: f64,
    /// Mean time from begin to end, where progress is a pair.
    pub latency_us: Option<f64>,
    /// Why this is counted, where the user named nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chosen: Option<String>,
    /// What else could have been counted, the likeliest first; empty where progress was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub candidates: Vec<Candidate>,
}

/// Something that could be counted as progress.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Candidate {
    /// As `--progress` takes it.
    pub name: String,
    /// How often it came.
    pub per_second: f64,
    /// Samples that had it on their stacks, 0 to 100; none for system calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_percent: Option<f64>,
}

/// What effects are effects on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Time between visits of the progress point.
    #[default]
    Throughput,
    /// Time from begin to end, by Little's law.
    Latency,
}

/// What the experiments say of a site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Making it faster makes the program faster.
    Helps,
    /// Making it faster makes the program slower: contention.
    Hurts,
    /// The interval holds zero and is narrow.
    NoEffect,
    /// It cannot be measured here.
    #[default]
    NotMeasurable,
}

impl Verdict {
    /// The verdict in words, as tables print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Helps => "helps",
            Self::Hurts => "hurts when sped up: contention",
            Self::NoEffect => "no effect found",
            Self::NotMeasurable => "not measurable here",
        }
    }
}

/// One site and what came of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// Its name: a function, `FILE:LINE`, `wait:disk`.
    pub name: String,
    /// Where it lies.
    pub source: Source,
    /// Its share of the target's samples in the profile, 0 to 100; none for waits.
    pub share_percent: Option<f64>,
    /// The answer.
    pub verdict: Verdict,
    /// The answer's reason, in a sentence.
    pub reason: String,
    /// The effect of each level.
    pub points: Vec<Point>,
    /// All levels together.
    pub slope: Option<Slope>,
    /// Its own windows without delay.
    pub nulls: Nulls,
    /// The real slow-down that a claimed gain was held against.
    pub slow_down: Option<SlowDown>,
    /// Why there was no slow-down, where one would have been wanted.
    #[serde(default)]
    pub no_slow_down: Option<String>,
    /// Part of the budget that went into it.
    pub spent_s: f64,
    /// How far its own windows may be believed.
    pub credibility: Credibility,
    /// Every window, in the order in which they were run.
    pub windows: Vec<Window>,
}

/// Where a site lies.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// What it is.
    pub kind: SourceKind,
    /// Whether it counts wherever it stands on the stack.
    pub inclusive: bool,
    /// Its file of code as the target sees it.
    pub module: Option<String>,
    /// Source file, where it is known.
    pub file: Option<String>,
    /// Source line: of a function its first.
    pub line: Option<u32>,
    /// Stretches of code: more than one where it was folded into callers, or split.
    pub ranges: usize,
    /// Share of the samples, percent, that lies in what it calls, where only its own code is made faster and that is much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub callees_percent: Option<f64>,
    /// The hottest source lines in it, with their share of the target's samples in percent.
    #[serde(default)]
    pub hot_lines: Vec<HotLine>,
}

/// What a site is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A function with all its copies.
    #[default]
    Function,
    /// A source line.
    Line,
    /// A kind of wait.
    Wait,
}

/// A source line and its share.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HotLine {
    /// Source file.
    pub file: String,
    /// Source line.
    pub line: u32,
    /// Share of the target's samples.
    pub share_percent: f64,
}

/// The effect of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// How much faster the site was made, virtually.
    pub speedup_percent: u32,
    /// Time saved per unit of progress: positive is faster.
    pub effect_percent: f64,
    /// Its 95 % interval.
    pub interval_percent: [f64; 2],
    /// Rounds it rests on.
    pub rounds: usize,
    /// Windows of this level that were set aside.
    pub dropped: usize,
    /// Share of the window's time that was inserted as delay, 0 to 100.
    pub inserted_percent: f64,
    /// Part of each side of the interval that is the method's own: pauses are exact to some tenths of a point; and where
    /// threads hand on to each other after few pauses they come as lumps, and simulated machines show by how much that
    /// misleads at most; and what one window was seen to leave behind for the next, where there was no time to let it
    /// settle. In points.
    #[serde(default)]
    pub allowance_points: f64,
    /// Whether threads hand on to each other after less than ten of this level's pauses: a verdict rests on it only where
    /// it is a loss beyond all that it may be off by.
    #[serde(default)]
    pub biased: bool,
}

/// All levels of a site together: a straight line through the origin.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Slope {
    /// Effect in percent for each percent of speed-up.
    pub per_percent: f64,
    /// Its 95 % interval.
    pub interval: [f64; 2],
    /// How often chance alone gives as much, of this site alone.
    pub p: f64,
    /// The same with all sites that were tried taken into account (Holm).
    pub p_adjusted: f64,
}

/// A site's own windows without delay.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Nulls {
    /// Mean progress period.
    pub mean_us: f64,
    /// Deviation of one window from the other of its round, percent of the period.
    pub sd_percent: f64,
    /// Rounds with both of them.
    pub rounds: usize,
    /// The second null of a round against its first, percent: holds zero unless order matters.
    pub difference_percent: f64,
    /// Its 95 % interval.
    pub interval_percent: [f64; 2],
}

/// Where a site is slowed down.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowedAt {
    /// At each call: its entry lasts longer.
    #[default]
    Calls,
    /// At each sample that lies in it: whoever is there pauses.
    Samples,
}

/// A real slow-down of the site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowDown {
    /// What time was added to.
    #[serde(default)]
    pub at: SlowedAt,
    /// Time added to each.
    pub added_ns: u64,
    /// Calls per second, or such samples.
    pub calls_per_second: f64,
    /// How much longer the site's work became, percent.
    pub slowdown_percent: f64,
    /// What it cost, percent of the progress period: positive is slower.
    pub cost_percent: f64,
    /// Its 95 % interval.
    pub interval_percent: [f64; 2],
    /// Rounds it rests on.
    pub rounds: usize,
    /// Whether what the speed-up promises exceeds what the slow-down allows.
    pub contradicts: bool,
}

/// The treatment of a window: what was done to the target while it was counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Treatment {
    /// Nothing.
    #[default]
    Nothing,
    /// A virtual speed-up by so many percent.
    SpeedUp(u32),
    /// A real slow-down by so many nanoseconds at each call, or at each sample.
    SlowDown(u64),
}

/// One window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Its round.
    pub round: u32,
    /// What was done to the target; the record calls it `deed`.
    #[serde(rename = "deed", alias = "treatment")]
    pub treatment: Treatment,
    /// How long was counted.
    pub length_ms: f64,
    /// Visits of the progress point.
    pub visits: u64,
    /// Effective time per visit, inserted delay taken out; none with fewer than two visits.
    pub period_us: Option<f64>,
    /// Effective time from begin to end, where progress is a pair.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// Delay inserted between the first and the last visit.
    pub inserted_ms: f64,
    /// Samples in the site.
    pub hits: u64,
    /// Samples of the target.
    pub samples: u64,
    /// Share of other processes in all ticks, percent.
    pub foreign_percent: f64,
    /// Why it was set aside, if it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dropped: Option<String>,
}

/// How far figures may be believed: what was seen while they were measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Credibility {
    /// Windows that were run.
    pub windows: usize,
    /// Windows that were set aside.
    pub dropped_windows: usize,
    /// CPU of other processes, of all ticks.
    pub foreign_percent: f64,
    /// Time that the hypervisor took, of all CPUs' time.
    pub steal_percent: f64,
    /// Pauses cut off at their longest.
    pub capped: u64,
    /// Pauses that could not be scheduled.
    pub missed: u64,
    /// Pauses still due when windows ended, of what each thread had to pay.
    pub unpaid_percent: f64,
    /// Wake-ups of threads of the target by each other, per second.
    pub inner_wakes: f64,
    /// Those of them by processes that take part, such as a client on the same machine.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub partner_wakes: f64,
    /// Wake-ups from outside, per second.
    pub outer_wakes: f64,
    /// How long each thread that runs does so between two wake-ups of the target by itself: what is left between two
    /// hand-offs.
    pub run_between_wakes_us: Option<f64>,
    /// Share of the target's samples in loops that wait, percent: threads that spin.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub spinning_percent: f64,
    /// Ends of such waits, per second, as told by the samples.
    #[serde(default, skip_serializing_if = "is_nought")]
    pub spins: f64,
    /// How long each thread that runs works between two of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_between_spins_us: Option<f64>,
    /// Deviation of a window without delay.
    pub null_sd_percent: f64,
    /// CPU time of the target, of one CPU.
    pub target_cpu_percent: f64,
    /// Threads of the target that ran.
    pub threads: f64,
    /// Whether the target was the limit; none where that is not known.
    pub load_bound: Option<bool>,
    /// How threads were paused: `task_work`, or `spin_in_sample`.
    pub pause: String,
    /// Time between samples of one CPU.
    pub period_us: f64,
    /// What the interrupt of a sample takes from the thread that it hits, where that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt_us: Option<f64>,
}

fn is_nought(value: &f64) -> bool {
    *value <= 0.0
}

/// The control: pauses for all threads alike, while nothing was faster. Progress that the target makes by itself becomes
/// slower by just what is inserted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// Pairs of windows, with and without.
    pub pairs: usize,
    /// What was inserted, percent of the time.
    pub inserted_percent: f64,
    /// By how much visits became rarer by the clock: as much as was inserted, where all is well.
    pub fell_percent: f64,
    /// What pauses alone seem to save, percent of what was inserted: nought where all is well, a hundred where the target is
    /// paced from outside.
    pub artefact_percent: f64,
    /// Its 95 % interval.
    pub interval_percent: [f64; 2],
}

/// What watching and delaying cost.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Overhead {
    /// Attached without delay against detached, percent of the progress period: positive is slower.
    pub attached_percent: f64,
    /// Its 95 % interval; none where it was not measured.
    pub interval_percent: Option<[f64; 2]>,
    /// Pairs of windows it rests on.
    pub rounds: usize,
    /// What its programs in the kernel took, where the kernel counts it.
    pub parts: Vec<OverheadPart>,
    /// Share of the time that was inserted as delay, over all windows with delays: by design.
    pub inserted_percent: f64,
}

/// What one of the programs in the kernel took, with all probes attached and no delays: from its first instruction
/// to its last. The way there is not in it (the interrupt of a sample, the trap of a probe), nor are pauses.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OverheadPart {
    /// What it looks at: `samples`, `switches`, `wake-ups`, `progress`, `forks and exits` (`births and ends` in older records).
    pub name: String,
    /// Its share of the time of all CPUs of the machine, 0 to 100.
    pub percent: f64,
    /// How often it ran, on all CPUs together.
    #[serde(default)]
    pub per_second: f64,
}

/// Where the experiments stand while they run: reported and shown, in no record.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'s> {
    /// The site whose turn it is.
    pub site: &'s str,
    /// Rounds of it that are over.
    pub round: usize,
    /// A level, percent, with its effect and half width so far.
    pub effect: Option<(u32, f64, f64)>,
    /// Sites that are done, of all.
    pub done: (usize, usize),
    /// Time left of the whole budget.
    pub left: Duration,
}

impl Causal {
    /// Reads a record.
    ///
    /// # Errors
    /// When it is not JSON, not a causal record, or of another schema.
    pub fn from_json(text: &str) -> Result<Self, CausalError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let head: Head = serde_json::from_str(text).map_err(CausalError::Shape)?;
        if head.schema != CAUSAL_SCHEMA {
            return Err(CausalError::Schema { found: head.schema });
        }
        crate::sane::check(&serde_json::from_str(text).map_err(CausalError::Shape)?)?;
        serde_json::from_str(text).map_err(CausalError::Shape)
    }
}

impl Window {
    /// What effects are effects on, of this window: microseconds.
    #[must_use]
    pub fn value_us(&self, metric: Metric) -> Option<f64> {
        match metric {
            Metric::Throughput => self.period_us,
            Metric::Latency => self.latency_us,
        }
    }
}

impl Site {
    /// The effect of the greatest level.
    #[must_use]
    pub fn greatest(&self) -> Option<&Point> {
        self.points.iter().max_by_key(|point| point.speedup_percent)
    }

    /// The effect that the verdict rests on: of the greatest level that is not biased and agrees with it. Where there is none,
    /// the greatest that agrees, and at last the greatest.
    #[must_use]
    pub fn carrying(&self) -> Option<&Point> {
        let agrees = |point: &&Point| match self.verdict {
            Verdict::Helps => point.interval_percent[0] > 0.0,
            Verdict::Hurts => point.interval_percent[1] < 0.0,
            Verdict::NoEffect | Verdict::NotMeasurable => true,
        };
        let all = || self.points.iter().filter(|point| point.effect_percent.is_finite());
        let sound = all().filter(|point| !point.biased);
        let by_level = |point: &&Point| point.speedup_percent;
        sound
            .filter(agrees)
            .max_by_key(by_level)
            .or_else(|| all().filter(agrees).max_by_key(by_level))
            .or(self.greatest())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Planted fault: the greatest level, whether it is biased or not.
    #[test]
    fn a_verdict_is_shown_with_the_level_that_it_rests_on() {
        let point = |speedup_percent, effect_percent, half, biased| Point {
            speedup_percent,
            effect_percent,
            interval_percent: [effect_percent - half, effect_percent + half],
            biased,
            ..Point::default()
        };
        let level = |verdict, points: &[Point]| {
            let site = Site { verdict, points: points.to_vec(), ..Site::default() };
            site.carrying().map(|point| point.speedup_percent)
        };
        let hollow = [point(25, 14.8, 6.8, false), point(50, 25.8, 7.1, true)];
        assert_eq!(level(Verdict::Helps, &hollow), Some(25));
        let turning = [point(25, 9.0, 2.0, false), point(50, -4.0, 2.0, false)];
        assert_eq!(level(Verdict::Helps, &turning), Some(25));
        let contention = [point(25, 0.2, 3.0, false), point(50, -20.0, 9.0, true)];
        assert_eq!(level(Verdict::Hurts, &contention), Some(50));
        let none = [point(25, 1.0, 3.0, true), point(50, 2.0, 9.0, true)];
        assert_eq!([level(Verdict::NotMeasurable, &none), level(Verdict::NoEffect, &[])], [Some(50), None]);
    }

    #[test]
    fn a_record_survives_json() {
        let point = Point { speedup_percent: 25, effect_percent: 8.1, rounds: 12, ..Point::default() };
        let window = Window {
            treatment: Treatment::SpeedUp(25),
            dropped: Some("foreign".into()),
            ..Window::default()
        };
        let site = Site { points: vec![point], windows: vec![window, Window::default()], ..Site::default() };
        let record = Causal { schema: CAUSAL_SCHEMA.into(), sites: vec![site], ..Causal::default() };
        let text = serde_json::to_string(&record).unwrap();
        assert_eq!(Causal::from_json(&text).unwrap(), record);
        assert_eq!(record.sites[0].greatest().unwrap().speedup_percent, 25);
    }

    #[test]
    fn a_treatment_is_written_as_records_have_always_had_it_and_read_by_either_name() {
        for (treatment, written) in [
            (Treatment::Nothing, r#""deed":"nothing""#),
            (Treatment::SpeedUp(25), r#""deed":{"speed_up":25}"#),
            (Treatment::SlowDown(1_000), r#""deed":{"slow_down":1000}"#),
        ] {
            let window = Window { treatment, ..Window::default() };
            let text = serde_json::to_string(&window).unwrap();
            assert!(text.contains(written), "{text}");
            for text in [text.clone(), text.replace("deed", "treatment")] {
                assert_eq!(serde_json::from_str::<Window>(&text).unwrap(), window, "{text}");
            }
        }
    }

    #[test]
    fn a_record_of_another_schema_is_named_not_guessed() {
        let error = Causal::from_json(r#"{"schema":"dyno.climb/1"}"#).unwrap_err();
        assert!(error.to_string().contains("dyno.climb/1"), "{error}");
        assert!(Causal::from_json("[]").is_err());
    }
}
