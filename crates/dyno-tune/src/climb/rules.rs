//! By which rule each trial of a climb is judged, live and from a record.
//!
//! Stages name their trials `noise`, `step:ID`, `second:ID` and `leave-one-out:ID`; trials of long blocks end in
//! [`BURSTY_SUFFIX`]. [`rule_of`] finds the rule again, so that a record needs no copy of it.

use dyno_measure::judge::{LAST_LOOK_MIN, Rule};
use dyno_measure::series::Trial;

/// Bursty trials are judged at these looks: each pair lasts ten times as long.
pub(crate) const BURSTY: Rule = Rule { first: 20, step: 20, last: 120, ..Rule::QUICK.by_totals() };
/// One look: 1.2 % false alarms on fresh data, after a step that had 1 % itself.
pub(crate) const CONFIRM_Z: f64 = 2.5;
/// What the name of a trial of long blocks ends in.
pub(crate) const BURSTY_SUFFIX: &str = ":bursty";

/// The rule by which a recorded trial was judged.
///
/// `judge::next` answers for a trial that the rule ended, `judge::cut_short` for one that ended with its time. Noise and
/// leave-one-out have one look, at the pairs that there are.
#[must_use]
pub fn rule_of(trial: &Trial) -> Rule {
    let stage = trial.id.split(':').next().unwrap_or_default();
    let pairs = trial.pairs.len().max(LAST_LOOK_MIN);
    let bursty = trial.id.ends_with(BURSTY_SUFFIX);
    match (stage, bursty) {
        ("noise", _) => Rule::once(pairs, Rule::QUICK.z),
        ("leave-one-out", false) => Rule::once(pairs, CONFIRM_Z),
        ("leave-one-out", true) => Rule::once(pairs, CONFIRM_Z).by_totals(),
        (_, false) => Rule::QUICK,
        (_, true) => BURSTY,
    }
}
