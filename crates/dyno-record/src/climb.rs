//! The published record of a climb: enough to draw every picture and to reach every verdict again.
//!
//! `dyno climb` writes it, `dyno report` draws it, `dyno judge` judges it anew. Field names are an interface: a change of
//! meaning raises the number in `schema`. Effects are in percent of the metric, signed, B against A; the shapes,
//! and how sure each interval is, are described in docs/records.md.

use dyno_measure::judge::Estimate;
use dyno_measure::series::{Block, Metric, Side, Tail};
use serde::{Deserialize, Serialize};

use crate::machine::{Machine, Missing};
use crate::plan_text::PlanText;
use crate::profile::{Profile, ProfileError};
use crate::sane::{self, Impossible};
use crate::trial::Compared;
use crate::upgrade::{self, FIRST_SCHEMA};

/// Name and number of the climb record's shape.
pub const CLIMB_SCHEMA: &str = "dyno.climb/2";

/// A record that could not be read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// Not JSON, or not of this shape.
    #[error("this is not a climb record{}", at(field))]
    Shape {
        /// The field at which reading ended, as far as it has a name.
        field: Option<String>,
        /// What is wrong.
        source: serde_json::Error,
    },
    /// A figure that no measurement gives.
    #[error(transparent)]
    Impossible(#[from] Impossible),
    /// A record of another shape than this program knows.
    #[error("the record's schema is \"{found}\", this program reads \"{CLIMB_SCHEMA}\"")]
    Schema {
        /// What the file says.
        found: String,
    },
    /// No judge can go by the rule of one of its trials.
    #[error("the rule of trial {number} makes no sense")]
    Rule {
        /// Its place among the trials, from 1.
        number: usize,
    },
    /// A profile in it does not fit together.
    #[error("the profile of \"{rung}\" does not fit together")]
    Profile {
        /// Whose sides it shows.
        rung: String,
        /// What does not fit.
        source: ProfileError,
    },
}

fn at(field: &Option<String>) -> String {
    field.as_ref().map(|field| format!(", at {field}")).unwrap_or_default()
}

/// One climb.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Climb {
    /// [`CLIMB_SCHEMA`].
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
    /// Name of the plan.
    pub plan: String,
    /// What the plan's names stood for; empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub texts: Vec<PlanText>,
    /// Where it ran.
    pub machine: Machine,
    /// The laboratory's network; without one it was loopback.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The plan's own load; a rung may have another.
    pub load: Load,
    /// Why it ended early, if it did: what follows was measured before that.
    pub cut_short: Option<String>,
    /// A against A.
    pub noise: Option<Noise>,
    /// What a gain must be worth for its risk, in percent; none in older records, which kept every gain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worthwhile_percent: Option<f64>,
    /// Every rung that was asked for, in the order in which they were climbed, those that were not reached last.
    pub rungs: Vec<Rung>,
    /// The final setting against the smallest loop that answers the same bytes.
    pub floor: Option<Ratio>,
    /// The final setting against the start.
    pub total: Option<Total>,
    /// The final setting where there is no total; a total has it itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
    /// What was not measured, and why.
    pub not_measured: Vec<Missing>,
    /// What changes how the figures are to be read.
    pub warnings: Vec<String>,
    /// Raw measurements.
    pub series: Series,
    /// Where the CPU time of both sides went, where that was asked for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<SideProfile>,
}

/// The network of a climb in a laboratory: two namespaces and a virtual cable.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    /// The servers' address.
    pub server: String,
    /// The load's.
    pub load: String,
    /// Queues of each end of the cable.
    pub queues: u32,
    /// Packets for the server were polled for at the start (NAPI), which was seen before anything was measured.
    pub polled: bool,
}

/// Where the CPU time of one side of a rung went.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SideProfile {
    /// The rung.
    pub rung: String,
    /// The side.
    pub side: Side,
    /// What was seen, without its dust.
    pub profile: Profile,
}

impl Climb {
    /// Reads a record, also one of the schema before this one.
    ///
    /// # Errors
    /// When it is not JSON, not a climb, or of a schema that is not known here; when one of its rules makes no sense, or a
    /// profile in it does not fit together.
    pub fn from_json(text: &str) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Head {
            schema: String,
        }
        let shape =
            |source: serde_json::Error| RecordError::Shape { field: sane::field_at(text, &source), source };
        let head: Head = serde_json::from_str(text).map_err(shape)?;
        if ![CLIMB_SCHEMA, FIRST_SCHEMA].contains(&head.schema.as_str()) {
            return Err(RecordError::Schema { found: head.schema });
        }
        let mut record = serde_json::from_str(text).map_err(shape)?;
        sane::check(&record)?;
        let climb: Climb = match head.schema.as_str() {
            // From the text: an error in it has a place.
            CLIMB_SCHEMA => serde_json::from_str(text).map_err(shape)?,
            _ => {
                upgrade::from_first(&mut record, CLIMB_SCHEMA);
                serde_json::from_value(record).map_err(shape)?
            }
        };
        if let Some(at) = climb.series.trials.iter().position(|compared| !compared.rule.is_sound()) {
            return Err(RecordError::Rule { number: at + 1 });
        }
        for SideProfile { rung, profile, .. } in &climb.profiles {
            profile.check().map_err(|source| RecordError::Profile { rung: rung.clone(), source })?;
        }
        Ok(climb)
    }

    /// Whether a rung belongs to a load of its own: judged by another measure than CPU per request, under another load
    /// than the plan's. Kept or not, the final setting goes without it. In older records that is seen by the loads' texts.
    #[must_use]
    pub fn own_load_only(&self, attempt: &Attempt) -> bool {
        attempt.own_load || attempt.metric != Metric::CpuPerRequest && attempt.load != self.load.to_string()
    }

    /// Whether a gain is worth what it risks: below [`Climb::worthwhile_percent`] only what risks nothing is.
    #[must_use]
    pub fn is_worth(&self, risk: &str, effect_percent: f64) -> bool {
        !is_a_risk(risk) || self.worthwhile_percent.is_none_or(|least| effect_percent.abs() >= least)
    }

    /// Whether the final setting is another one than the start.
    #[must_use]
    pub fn has_climbed(&self) -> bool {
        let kept = |rung: &&Rung| rung.attempt.verdict == RungVerdict::Kept;
        self.rungs.iter().filter(kept).any(|rung| !self.own_load_only(&rung.attempt))
    }

    /// Whether any rung has an answer: a figure, or that its change fails or is not in force.
    #[must_use]
    pub fn has_answers(&self) -> bool {
        let unanswered = [RungVerdict::NotMeasured, RungVerdict::NotPossible];
        let is_answer =
            |tried: &Attempt| tried.effect_percent.is_some() || !unanswered.contains(&tried.verdict);
        let tries =
            |rung: &Rung| is_answer(&rung.attempt) || rung.first_attempt.as_ref().is_some_and(is_answer);
        self.rungs.iter().any(tries)
    }

    /// The final setting and how to come to it, when the climb came to one.
    #[must_use]
    pub fn reached(&self) -> Option<&Reached> {
        self.total.as_ref().map(|total| &total.reached).or(self.reached.as_ref())
    }

    /// The trial with this id.
    #[must_use]
    pub fn trial(&self, id: &str) -> Option<&Compared> {
        self.series.trials.iter().find(|trial| trial.id == id)
    }
}

/// A load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// Method and URL without the port, which differs per instance.
    pub request: String,
    /// Names the whole request ([`crate::digest`]); empty in older records.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request_digest: String,
    /// Names what a right answer is.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub answer_digest: String,
    /// Connections, all open at once.
    pub connections: usize,
    /// Requests on the wire per connection.
    pub pipeline: usize,
}

impl std::fmt::Display for Load {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = if self.connections == 1 { "" } else { "s" };
        write!(f, "{}, {} connection{plural}, closed loop", self.request, self.connections)?;
        if self.pipeline > 1 { write!(f, ", pipelined ×{}", self.pipeline) } else { Ok(()) }
    }
}

/// A against A: what can be seen today.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// What A differs from A by, in percent.
    pub aa_percent: f64,
    /// Its interval.
    pub interval_percent: [f64; 2],
    /// Effects from here up are kept and confirmed in 80 of 100 climbs like this one; in older records, the half width of
    /// the interval.
    pub visible_percent: f64,
    /// Pairs measured.
    pub pairs: usize,
    /// Tries it took: the second one has fresh instances.
    pub tries: u32,
    /// The trial in `series` that it was read from.
    #[serde(default)]
    pub trial: Option<String>,
    /// What one start of a server differs from another by, in percent (standard deviation); none where servers were measured
    /// one after another, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts_percent: Option<f64>,
}

/// What became of a rung.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RungVerdict {
    /// Better, and confirmed on fresh data.
    Kept,
    /// Worse, or vetoed by a guard.
    Reverted,
    /// Better, by less than its risk is worth: told, not kept.
    NotWorthwhile,
    /// No difference seen: the setting before stays.
    NoDifference,
    /// Better at its step, not confirmed on fresh data: out of the final setting.
    Unconfirmed,
    /// The change was not in force, or its proof cannot distinguish the sides.
    NotApplied,
    /// Cannot be had here.
    NotPossible,
    /// Time, noise or a clock stood in the way.
    NotMeasured,
    /// The server died, hung, or answered wrong.
    Failed,
}

impl RungVerdict {
    /// The verdict in words, as tables print it.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Reverted => "reverted",
            Self::NotWorthwhile => "not worthwhile",
            Self::NoDifference => "no difference",
            Self::Unconfirmed => "unconfirmed",
            Self::NotApplied => "not applied",
            Self::NotPossible => "not possible",
            Self::NotMeasured => "not measured",
            Self::Failed => "failed",
        }
    }
}

/// How far a rung came here, whatever came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It was in force and measured.
    MeasuredHere,
    /// It can be written down here, and does nothing.
    NotInForce,
    /// What it changes is not here.
    NotPresent,
    /// It counts from the next boot on.
    NeedsReboot,
}

impl State {
    /// The same in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::MeasuredHere => "measured here",
            Self::NotInForce => "configured, not in force",
            Self::NotPresent => "not present",
            Self::NeedsReboot => "needs reboot",
        }
    }
}

/// An effect with its interval, in percent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// B against A.
    pub effect_percent: f64,
    /// Both ends of the interval.
    pub interval_percent: [f64; 2],
    /// Pairs it rests on.
    pub pairs: usize,
}

impl From<Estimate> for Effect {
    fn from(e: Estimate) -> Self {
        Self { effect_percent: e.percent(), interval_percent: e.interval_percent(), pairs: e.n }
    }
}

/// Absolute figures of one side of a trial.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// Requests per second.
    pub requests_per_second: f64,
    /// Server CPU per request, µs, with what it burnt between its blocks.
    pub cpu_us_per_request: f64,
    /// Median latency, µs.
    pub p50_us: f64,
    /// 99th percentile, µs, pooled.
    pub p99_us: f64,
}

/// One rung and its verdict.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rung {
    /// Its name, e.g. `one-send`.
    pub id: String,
    /// What changes, e.g. `send split → joined`.
    pub change: String,
    /// Where it leaves its dial, as `dial=value`; empty in older records.
    #[serde(default)]
    pub sets: String,
    /// What it is said to bring, and why.
    pub claim: String,
    /// Who says so.
    pub source: String,
    /// What it risks or gives up.
    pub risk: String,
    /// How it goes back.
    pub reverts: String,
    /// Dials that must stand somewhere for it, as `dial=value`.
    pub needs: Vec<String>,
    /// How far it came here; none where time, noise or the server stood in the way, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<State>,
    /// What it was worth where somebody else measured it, in words. It enters no total.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub elsewhere: String,
    /// Rungs that were judged together with it, because it is nothing without them.
    pub bundle: Vec<String>,
    /// Its last attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// What the first attempt said, where there was a second pass.
    pub first_attempt: Option<Attempt>,
    /// Each kept dial turned back on fresh data: the effect of having it. This is the gain to quote.
    pub leave_one_out: Option<Effect>,
    /// The trial in `series` that this was read from.
    #[serde(default)]
    pub leave_one_out_trial: Option<String>,
    /// Rungs that stood beside it then and left afterwards: without any it was measured against the finished setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leave_one_out_beside: Vec<String>,
    /// What a rung with a load of its own does under the plan's load; none where it was not measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan_load: Option<Effect>,
}

/// Whether a rung's risk is one: `none`, alone or with its reason, is how a rung says that it is not.
#[must_use]
pub fn is_a_risk(risk: &str) -> bool {
    let none = risk.strip_prefix("none").is_some_and(|rest| !rest.starts_with(char::is_alphanumeric));
    !risk.trim().is_empty() && !none
}

/// One try at a rung.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// The answer.
    pub verdict: RungVerdict,
    /// The answer's reason, in words.
    pub why: String,
    /// What was compared.
    pub metric: Metric,
    /// The clock of the server's CPU.
    pub clock: String,
    /// The load it was measured under, in words.
    pub load: String,
    /// The step's own figure: it decided, and reads high.
    pub effect_percent: Option<f64>,
    /// Its interval.
    pub interval_percent: Option<[f64; 2]>,
    /// Confidence of the interval.
    pub level: f64,
    /// Pairs measured.
    pub pairs: usize,
    /// Live instances per side.
    pub instances: usize,
    /// Spread of the effect over instances, percent (standard deviation).
    pub instance_spread_percent: Option<f64>,
    /// Share of side B's CPU burnt outside its own blocks.
    pub off_block_percent: f64,
    /// What was read to see whether the change is in force.
    pub proof: Vec<ProofLine>,
    /// Absolute figures of both sides, A then B.
    pub figures: Option<[Figures; 2]>,
    /// Whether it is kept for its own load only, because it is judged by another measure than CPU per request, or because it
    /// does harm under the plan's, or that could not be excluded: the final setting goes without it. Older records say the
    /// last two only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub own_load: bool,
    /// Memory of both sides, bytes.
    pub rss_peak_bytes: [u64; 2],
    /// The trial in `series` that decided.
    pub trial: Option<String>,
    /// The longest that one of its servers has served, seconds: what happens more rarely is not seen. None where each server
    /// serves a pair only, or both sides are one, and in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub horizon_s: Option<f64>,
}

/// One reading of a proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofLine {
    /// `a` or `b`.
    pub side: String,
    /// `before` or `after` measuring.
    pub when: String,
    /// What must be read with the change.
    pub expected: String,
    /// What was read.
    pub read: String,
    /// Whether it holds.
    pub holds: bool,
}

/// A ratio of CPU (or of time) with its interval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Ratio {
    /// The ratio.
    pub ratio: f64,
    /// Both ends.
    pub interval: [f64; 2],
}

impl Ratio {
    /// The ratio that an estimate of a log ratio stands for.
    #[must_use]
    pub fn of(e: &Estimate) -> Self {
        let interval = e.ends().map(f64::exp);
        Self { ratio: e.log_ratio.exp(), interval }
    }
}

/// A final setting, as commands.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// Command line of the start.
    pub naive_argv: Vec<String>,
    /// Command line of the end.
    pub final_argv: Vec<String>,
    /// Environment added at the end, as `NAME=value`.
    pub final_env: Vec<String>,
    /// Shell commands that apply the final setting.
    pub apply: Vec<String>,
    /// The final setting as `dial=value`.
    pub final_setting: Vec<String>,
}

/// The whole way, on fresh data.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Total {
    /// From where to where.
    #[serde(flatten)]
    pub reached: Reached,
    /// Requests per CPU-second: final over naive.
    #[serde(flatten)]
    pub gain: Ratio,
    /// The same without the headline dial, where the plan names one.
    pub without: Option<Without>,
    /// Rounds measured.
    pub rounds: usize,
    /// Starts of all arms over which they were spread; 0 in older records, whose arms had one server each.
    #[serde(default)]
    pub starts: usize,
    /// Whether its servers were measured one after another: one of them burns CPU outside its own blocks.
    #[serde(default)]
    pub in_turn: bool,
    /// Whether levels are totals (ΣCPU / Σreplies) instead of trimmed means: a kept rung works in bursts, or servers were measured one
    /// after another.
    #[serde(default)]
    pub by_totals: bool,
    /// Whether the intervals of its ratios reach to what they are where CPU outside of blocks is not charged. Not in older records, nor
    /// where servers were measured one after another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outside: bool,
    /// Proofs of what was kept, read on the total's own servers: `a` is the start, `b` the end. Empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub proof: Vec<ProofLine>,
    /// Absolute figures of each arm.
    pub arms: Vec<Arm>,
}

/// The total with one rung already given to the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Without {
    /// The rung.
    pub rung: String,
    /// Requests per CPU-second: final over the start that has it.
    #[serde(flatten)]
    pub gain: Ratio,
}

/// What an arm of the total stands for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The start.
    #[default]
    Naive,
    /// What was reached before confirmation, where that was not the end.
    Reached,
    /// The start with the headline rung.
    NaiveWithHeadline,
    /// The end.
    Final,
    /// The smallest loop that answers the same bytes.
    Floor,
}

/// One of the live servers of the total.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// What it is called: `start`, `final`, `floor`, or `start+RUNG`. Earlier records say `naive` for `start`.
    pub name: String,
    /// What it stands for.
    pub role: Role,
    /// Absolute figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// Share of user time in its CPU, sampled by the kernel's tick.
    pub user_share: Option<f64>,
    /// Error of that share, from the number of ticks.
    pub user_share_error: Option<f64>,
    /// Latencies: [[ns, count], …].
    pub latencies: Tail,
}

/// Raw measurements.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Names of a block's columns.
    pub block_columns: Vec<String>,
    /// Every two-sided trial.
    pub trials: Vec<Compared>,
    /// The total's rounds: a block per arm, in the order of `total.arms`.
    pub rounds: Vec<Vec<Block>>,
    /// To which start of its arms each of them belongs. Empty in older records.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub round_starts: Vec<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_another_schema_is_named_not_guessed() {
        let error = Climb::from_json(r#"{"schema":"dyno.climb/9"}"#).expect_err("another schema");
        assert!(error.to_string().contains("dyno.climb/9"), "{error}");
        assert!(matches!(Climb::from_json("[]"), Err(RecordError::Shape { .. })));
    }

    /// Planted faults: figures are believed as they stand; a figure that is null is "not a climb record".
    #[test]
    fn figures_that_cannot_be_are_refused_by_name() {
        let climb = Climb { schema: CLIMB_SCHEMA.into(), total: Some(Total::default()), ..Climb::default() };
        let text = serde_json::to_string(&climb).expect("a record is plain data");
        for (wrong, says) in [
            (r#""ratio":-2.0"#, "total.ratio is -2.0: it cannot be negative"),
            (r#""ratio":1e308"#, "total.ratio is 1e+308: no measurement is as large"),
            (r#""ratio":null"#, "total.ratio is null: a figure must stand there"),
        ] {
            let text = text.replacen(r#""ratio":0.0"#, wrong, 1);
            let refused = Climb::from_json(&text).expect_err(wrong).to_string();
            assert!(refused.starts_with(says), "{refused}");
        }
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused_before_anybody_judges_by_it() {
        let trial = |step: usize| {
            let rule = format!(
                r#"{{"z":3.0,"first":30,"step":{step},"last":240,"worthwhile_percent":1.0,"basis":"pairs"}}"#
            );
            format!(
                r#"{{"id":"x","stage":"step","attempt":1,"rung":"x","schedule":"live_pairs","toggles":null,"clock":"",
                "rule":{rule},"metric":"p50","pairs":[],"invalid_pairs":0,"tails":[],"rss_peak_bytes":[0,0]}}"#
            )
        };
        let climb = Climb { schema: CLIMB_SCHEMA.into(), ..Climb::default() };
        let text = serde_json::to_string(&climb).expect("a record is plain data");
        let with = |trials: String| text.replace(r#""trials":[]"#, &format!(r#""trials":[{trials}]"#));
        assert!(Climb::from_json(&with(trial(30))).is_ok());
        let refused = Climb::from_json(&with([trial(30), trial(0)].join(","))).expect_err("no step");
        assert_eq!(refused.to_string(), "the rule of trial 2 makes no sense");
    }

    /// Records once held predictions, and causal profiles that they rested on.
    #[test]
    fn a_record_with_what_is_no_longer_written_is_still_read() {
        let climb = Climb { schema: CLIMB_SCHEMA.into(), ..Climb::default() };
        let text = serde_json::to_string(&climb).expect("a record is plain data");
        let older = text.replacen('{', r#"{"causal":[{"setting":["log=text"],"load":"","profile":{}}],"#, 1);
        assert_eq!(Climb::from_json(&older).expect("an older record"), climb);
    }

    #[test]
    fn a_record_survives_json() {
        let climb = Climb {
            schema: CLIMB_SCHEMA.into(),
            seed: u64::MAX,
            total: Some(Total::default()),
            ..Climb::default()
        };
        let text = serde_json::to_string(&climb).expect("a record is plain data");
        assert_eq!(Climb::from_json(&text).expect("what was written"), climb);
    }
}
