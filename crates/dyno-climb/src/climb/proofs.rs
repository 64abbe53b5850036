//! What was read of a proof, written down, and whether it singles out the change.

use dyno_measure::series::Side;
use dyno_record::climb::ProofLine;

use crate::proof::{Proof, Reading};

/// Writes down what was read on both sides; the reason when the proof does not single out the change.
pub(crate) fn hold(
    proof: &Proof,
    readings: [&Reading; 2],
    when: &str,
    lines: &mut Vec<ProofLine>,
) -> Option<String> {
    let holds = proof.holds(readings[0], readings[1]);
    for side in Side::BOTH {
        lines.push(ProofLine {
            side: if side == Side::A { "a" } else { "b" }.into(),
            when: when.into(),
            expected: proof.to_string(),
            read: readings[side.index()].to_string(),
            holds: holds.as_ref().is_ok_and(|holds| holds[side.index()]),
        });
    }
    match holds {
        Ok([false, true]) => None,
        Ok([true, true]) => {
            Some(format!("the proof cannot tell the sides apart: {proof}, read {} on both", readings[1]))
        }
        Ok([_, false]) => Some(format!("not in force: {proof}, read {}", readings[1])),
        Err(why) => Some(format!("cannot be proved: {why}")),
    }
}
