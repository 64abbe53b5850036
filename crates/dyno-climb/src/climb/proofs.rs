//! Proofs read on both sides of a comparison, and what they come to.
//!
//! A change counts only when its proof fails without it and holds with it, on every instance, before measuring and after. Where servers are
//! visited one after another the proofs are read in every visit instead (`visit`), and held against each other here too.

use dyno_measure::series::Side;
use dyno_record::climb::ProofLine;

use super::bench::Bench;
use super::climber::Climber;
use crate::meter::{Meter, Trouble};
use crate::proof::{Proof, Reading};

impl<M: Meter> Climber<'_, M> {
    /// Reads every proof on both sides of every instance; the reason when the change is not in force on one.
    pub(crate) fn prove_all(
        &mut self,
        bench: &mut Bench<M::Arm>,
        when: &str,
    ) -> Result<Option<String>, (Side, Trouble)> {
        let proofs = bench.proving().proofs.clone();
        let (mut first, mut why) = (Vec::new(), None);
        for at in 0..bench.instances() {
            let mut lines = Vec::new();
            why = self.prove_one(bench, at, &proofs, when, &mut lines)?;
            if at == 0 || why.is_some() {
                first = lines;
            }
            if why.is_some() {
                break;
            }
        }
        let proving = bench.proving();
        match when {
            "before" if proving.before.is_empty() || why.is_some() => proving.before = first,
            "before" => {}
            _ => proving.after = first,
        }
        Ok(why)
    }

    fn prove_one(
        &mut self,
        bench: &mut Bench<M::Arm>,
        at: usize,
        proofs: &[Proof],
        when: &str,
        lines: &mut Vec<ProofLine>,
    ) -> Result<Option<String>, (Side, Trouble)> {
        // A toggled server has no side that was never changed: its trouble counts against B.
        let is_toggled = matches!(bench, Bench::Toggled { .. });
        let blamed = |side: Side| if is_toggled { Side::B } else { side };
        for proof in proofs {
            let mut read =
                |side: Side| self.read_on(bench, side, at, proof).map_err(|trouble| (blamed(side), trouble));
            let (without, with) = (read(Side::A)?, read(Side::B)?);
            if let Some(why) = hold(proof, [&without, &with], when, lines) {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }
}

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
        // What is held against the other side's reading says nothing without it.
        Ok([_, false]) if proof.is_relative() => {
            Some(format!("not in force: {proof}, read {} with it and {} without", readings[1], readings[0]))
        }
        Ok([_, false]) => Some(format!("not in force: {proof}, read {}", readings[1])),
        Err(why) => Some(format!("cannot be proved: {why}")),
    }
}
