//! By which rule each trial of a climb is judged, live and from a record.
//!
//! Stages name their trials `noise`, `step:ID`, `second:ID` and `leave-one-out:ID`; trials of long blocks end in
//! [`BURSTY_SUFFIX`], those of instances one after another in [`IN_TURN_SUFFIX`]. [`rule_of`] finds the rule again, so that a record needs no copy of it.

use dyno_measure::judge::{INSTANCES_LOOK_MIN, LAST_LOOK_MIN, Rule};
use dyno_measure::series::Trial;
use dyno_record::climb::{Climb, Noise};

/// Bursty trials are judged at these looks: each pair lasts ten times as long.
pub(crate) const BURSTY: Rule = Rule { first: 20, step: 20, last: 120, ..Rule::QUICK.by_totals() };
/// Instances measured one after another: each pair takes about a second. As many looks as [`Rule::QUICK`] has.
pub(crate) const IN_TURN: Rule =
    Rule { first: INSTANCES_LOOK_MIN, step: 8, last: 68, ..Rule::QUICK.by_instances() };
/// One look: 1.2 % false alarms on fresh data, after a step that had 1 % itself.
pub(crate) const CONFIRM_Z: f64 = 2.5;
/// What the name of a trial of long blocks ends in.
pub(crate) const BURSTY_SUFFIX: &str = ":bursty";
/// What the name of a trial of instances one after another ends in.
pub(crate) const IN_TURN_SUFFIX: &str = ":in-turn";

/// The rule by which a recorded trial was judged.
///
/// `judge::next` answers for a trial that the rule ended, `judge::cut_short` for one that ended with its time. Noise and
/// leave-one-out have one look, at the pairs that there are.
#[must_use]
pub fn rule_of(trial: &Trial) -> Rule {
    let stage = trial.id.split(':').next().unwrap_or_default();
    if trial.id.ends_with(IN_TURN_SUFFIX) {
        return in_turn_rule(stage, trial.pairs.len());
    }
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

fn in_turn_rule(stage: &str, pairs: usize) -> Rule {
    let pairs = pairs.max(IN_TURN.first);
    match stage {
        "noise" => Rule::once(pairs, Rule::QUICK.z).by_instances(),
        "leave-one-out" => Rule::once(pairs, CONFIRM_Z).by_instances(),
        _ => IN_TURN,
    }
}

/// The trial that a record's confirmation of this rung was read from: where a stage was measured in another way once more,
/// that decided.
#[must_use]
pub fn confirmation<'c>(climb: &'c Climb, rung: &str) -> Option<&'c Trial> {
    deciding(climb, &format!("leave-one-out:{rung}"))
}

/// The trial that a record's noise was read from.
#[must_use]
pub fn noise_trial<'c>(climb: &'c Climb, noise: &Noise) -> Option<&'c Trial> {
    deciding(climb, &noise_id(noise.tries))
}

/// What the noise's trial of this try is called.
pub(crate) fn noise_id(tries: u32) -> String {
    if tries == 1 { "noise".to_owned() } else { format!("noise:{tries}") }
}

fn deciding<'c>(climb: &'c Climb, id: &str) -> Option<&'c Trial> {
    let found = |suffix: &&str| climb.trial(&format!("{id}{suffix}"));
    [IN_TURN_SUFFIX, BURSTY_SUFFIX, ""].iter().find_map(found)
}
