//! What judging comes to: a climb's record judged again, or two lists of numbers.
//!
//! `dyno judge --json` writes them; their field names are an interface (docs/records.md).

use dyno_measure::judge::Verdict;
use serde::{Deserialize, Serialize};

use crate::climb::RungVerdict;
use crate::figure::{Better, Figure, Sheet, Starts, Unit};

/// Name and number of the shape of a record judged again.
pub const JUDGED_SCHEMA: &str = "dyno.judged/1";
/// Name and number of the shape of two lists of numbers compared.
pub const NUMBERS_SCHEMA: &str = "dyno.numbers/1";

/// A climb's record judged again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// [`JUDGED_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// The record's file.
    pub file: String,
    /// Every verdict in it.
    pub verdicts: Vec<Again>,
    /// Whether total and floor follow from their rounds; none where there are none to say it of.
    pub total_follows: Option<bool>,
}

/// One verdict of the record, and what its measurements say.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Again {
    /// The rung.
    pub rung: String,
    /// What the record says.
    pub stored: RungVerdict,
    /// What its measurements say; none when there is nothing to judge.
    pub again: Option<RungVerdict>,
}

impl Again {
    /// Whether they say another thing.
    #[must_use]
    pub fn differs(&self) -> bool {
        self.again.is_some_and(|again| again != self.stored)
    }
}

impl Judged {
    /// Verdicts that are not reached again.
    #[must_use]
    pub fn differing(&self) -> usize {
        self.verdicts.iter().filter(|one| one.differs()).count()
    }

    /// Verdicts that rest on measurements.
    #[must_use]
    pub fn measured(&self) -> usize {
        self.verdicts.iter().filter(|one| one.again.is_some()).count()
    }

    /// Whether all of it follows from its measurements.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.differing() == 0 && self.total_follows != Some(false)
    }
}

/// Two lists of numbers compared.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Numbers {
    /// [`NUMBERS_SCHEMA`].
    pub schema: String,
    /// Version of the program.
    pub version: String,
    /// What the side before is called.
    pub a: String,
    /// What the side with the change is called.
    pub b: String,
    /// The answer.
    pub verdict: Verdict,
    /// B against A, percent.
    pub effect_percent: f64,
    /// None without a spread.
    pub interval_percent: Option<[f64; 2]>,
    /// Pairs, or the numbers of the shorter list.
    pub pairs: usize,
    /// Chance of a difference where there is none.
    pub alpha: f64,
    /// Only where the numbers resemble their neighbours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_1: Option<f64>,
    /// How many independent ones they are worth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effective_numbers: Option<f64>,
    /// The means of B against those of A, percent: only where they are another answer than typical numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_effect_percent: Option<f64>,
    /// Starts of A and of B, where these are what is compared: then `pairs` counts starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starts: Option<[usize; 2]>,
    /// Why nothing can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

impl Numbers {
    /// As a sheet: the effect, by which it is gated and exported. `better` says which direction is good.
    #[must_use]
    pub fn sheet(&self, better: Better) -> Sheet {
        let what = format!("{} against {}", self.b, self.a);
        let effect = Figure::new("effect", what, (Unit::Percent, better), Some(self.effect_percent));
        let word = match self.verdict {
            Verdict::Better => "better",
            Verdict::Worse => "worse",
            Verdict::NoDifference => "no difference seen",
        };
        let effect =
            effect.within(self.interval_percent).word(word).basis(self.why.clone().unwrap_or_default());
        Sheet {
            kind: "numbers",
            schema: self.schema.clone(),
            version: self.version.clone(),
            figures: vec![effect.deciding()],
            starts: Starts::Seen,
            ..Sheet::default()
        }
    }
}
