//! One comparison as it is published: what was compared, how, by which rule, and every pair.
//!
//! The climb writes them, `dyno judge` judges them again with the rule that they carry, `dyno report` draws them. A trial's
//! id says nothing of how it was measured: all of that is in fields of its own, because ids hold the user's own text.

use dyno_measure::judge::Rule;
use dyno_measure::series::Trial;
use serde::{Deserialize, Serialize};

/// A part of a climb that compares two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// A against A.
    Noise,
    /// A rung against the setting before it.
    Step,
    /// The setting reached against the same with a kept rung turned back.
    LeaveOneOut,
}

/// When the servers of both sides are alive, and how long their blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Schedule {
    /// Both sides are alive; a pair is two short blocks.
    LivePairs,
    /// Both sides are alive; a pair is two long blocks, for servers that work in bursts.
    LongPairs,
    /// No two servers are alive at the same time: a pair is a visit of each side, and a block is the sum of a visit's.
    InTurn,
}

/// A trial of a record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// Its name in this record, unlike any other's. Nothing may be read from it.
    pub id: String,
    /// The part of the climb.
    pub stage: Stage,
    /// Which try of that stage, from 1: noise that differed is measured again, and so is a rung that was not kept.
    pub attempt: u32,
    /// The rung; none where the noise was measured.
    pub rung: Option<String>,
    /// When its servers were alive.
    pub schedule: Schedule,
    /// The dial that was toggled in the same servers; none where each side had servers of its own, or in older records.
    pub toggles: Option<String>,
    /// The clock of the servers' CPU; empty when nothing was measured, or in older records.
    pub clock: String,
    /// The rule by which it was judged.
    pub rule: Rule,
    /// What was measured.
    #[serde(flatten)]
    pub trial: Trial,
}

impl Compared {
    /// What it is called where people read it.
    #[must_use]
    pub fn title(&self) -> String {
        let stage = match (self.stage, self.attempt) {
            (Stage::Noise, 1) => "noise".to_owned(),
            (Stage::Noise, attempt) => format!("noise:{attempt}"),
            (Stage::Step, 1) => "step".to_owned(),
            (Stage::Step, _) => "second".to_owned(),
            (Stage::LeaveOneOut, _) => "leave-one-out".to_owned(),
        };
        let rung = self.rung.iter().map(|rung| format!(":{rung}"));
        let way = match self.schedule {
            Schedule::LivePairs => "",
            Schedule::LongPairs => ":bursty",
            Schedule::InTurn => ":in-turn",
        };
        std::iter::once(stage).chain(rung).chain([way.to_owned()]).collect()
    }
}
