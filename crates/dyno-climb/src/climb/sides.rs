//! The two sides of a trial: where they live, how long they may be measured, and how that ended.

use dyno_measure::judge::{self, Rule};
use dyno_measure::series::{Metric, Side, Trial};
use dyno_record::climb::ProofLine;

use super::climber::SideArms;
use super::rules::{BURSTY_SUFFIX, IN_TURN_SUFFIX};
use crate::dial::Setting;
use crate::meter::{ArmSpec, Length, Measured, Trouble};
use crate::proof::Proof;

/// Where the two sides of a trial live.
pub(crate) enum Sides<'s, A> {
    /// Each in processes of its own, all live.
    Apart { a: &'s mut SideArms<A>, b: &'s mut SideArms<A> },
    /// Toggled in the same processes.
    InPlace { arms: &'s mut SideArms<A>, dial: &'s str, a: Setting, b: Setting },
    /// Never two servers at the same time.
    InTurn(&'s mut Turns),
}

/// What a trial is called and how long it may take.
pub(crate) struct Bounds<'b> {
    pub(crate) id: String,
    pub(crate) stage: &'b str,
    pub(crate) name: &'b str,
    pub(crate) metric: Metric,
    pub(crate) rule: Rule,
    pub(crate) length: Length,
    pub(crate) deadline_ns: u64,
}

impl Bounds<'_> {
    /// The same once more, for another way of measuring.
    pub(crate) fn again(&self) -> Self {
        Self { id: self.id.clone(), ..*self }
    }

    /// The same in long blocks, judged by this rule.
    pub(crate) fn in_long_blocks(self, rule: Rule) -> Self {
        Self { id: format!("{}{BURSTY_SUFFIX}", self.id), rule, length: Length::Long, ..self }
    }

    /// The same with instances one after another, judged by this rule.
    pub(crate) fn in_turn(self, rule: Rule) -> Self {
        Self { id: format!("{}{IN_TURN_SUFFIX}", self.id), rule, length: Length::Long, ..self }
    }
}

/// How a trial ended.
pub(crate) struct Tried {
    pub(crate) trial: Trial,
    pub(crate) outcome: Outcome,
}

pub(crate) enum Outcome {
    /// The judge has enough, or the time is up and this is the last look.
    Judged(judge::Judgement),
    /// Work comes in bursts.
    Bursty,
    /// Too much CPU was burnt outside the blocks, this share of a side's, percent: instances must be measured one after
    /// another.
    OffBlock(f64),
    /// A proof did not hold in one of the pairs.
    NotApplied(String),
    /// The time was up before anything could be said.
    OutOfTime(String),
    /// Too many pairs were invalid.
    Unmeasured(String),
    /// A side failed; which, and how.
    Trouble(Side, Trouble),
}

impl<A> Sides<'_, A> {
    pub(crate) fn reborrow(&mut self) -> Sides<'_, A> {
        match self {
            Self::Apart { a, b } => Sides::Apart { a, b },
            Self::InPlace { arms, dial, a, b } => Sides::InPlace { arms, dial, a: a.clone(), b: b.clone() },
            Self::InTurn(turns) => Sides::InTurn(turns),
        }
    }

    /// Live servers of each side.
    pub(crate) fn instances(&self) -> usize {
        match self {
            Self::Apart { a, b } => a.arms.len().min(b.arms.len()),
            Self::InPlace { arms, .. } => arms.arms.len(),
            Self::InTurn(_) => 1,
        }
    }

    /// Where the dials of A and B stand.
    pub(crate) fn settings(&self) -> [&Setting; 2] {
        match self {
            Self::Apart { a, b } => [&a.spec.setting, &b.spec.setting],
            Self::InPlace { a, b, .. } => [a, b],
            Self::InTurn(turns) => turns.specs.each_ref().map(|spec| &spec.setting),
        }
    }
}

/// Two settings of which only one is alive at a time.
pub(crate) struct Turns {
    pub(crate) specs: [ArmSpec; 2],
    /// The live dial to toggle within each instance; `None` where each side has instances of its own.
    pub(crate) toggles: Option<String>,
    /// What must tell the sides apart, read in every pair.
    pub(crate) proofs: Vec<Proof>,
    /// What was read of them in the first pair before its load, and in the latest after it.
    pub(crate) before: Vec<ProofLine>,
    pub(crate) after: Vec<ProofLine>,
    /// Why a proof did not hold.
    pub(crate) not_applied: Option<String>,
    /// The largest memory of an instance of each side, bytes.
    pub(crate) rss_peak_bytes: [u64; 2],
    /// The clock that CPU was read from.
    pub(crate) clock: String,
}

impl Turns {
    pub(crate) fn new(specs: [ArmSpec; 2]) -> Self {
        Self {
            specs,
            toggles: None,
            proofs: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            not_applied: None,
            rss_peak_bytes: [0; 2],
            clock: String::new(),
        }
    }

    /// The lines of the record.
    pub(crate) fn lines(&mut self) -> Vec<ProofLine> {
        let mut lines = std::mem::take(&mut self.before);
        lines.append(&mut self.after);
        lines
    }
}

pub(crate) fn other(side: Side) -> Side {
    if side == Side::A { Side::B } else { Side::A }
}

/// A clock that stood still while hundreds of replies were served was not read.
pub(crate) fn unreadable(measured: &Measured, trial: &Trial) -> bool {
    let value = measured.block.value(trial.metric);
    !(value.is_finite() && value > 0.0)
}
