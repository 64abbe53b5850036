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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::climb::bench::Proving;
    use crate::climb::comparison::{Comparison, Sides};
    use crate::climb::rules::step_rule;
    use crate::climb::still::{on_a_climb, options, plan};
    use crate::proof::Bound;
    use dyno_record::trial::Schedule;

    fn threads(count: Bound) -> Proof {
        Proof::Threads { count }
    }

    fn number(read: f64) -> Reading {
        Reading::Number(read)
    }

    /// Planted faults: a proof that holds without the change is one; the sides' readings are mixed up.
    #[test]
    fn a_proof_holds_where_it_fails_without_the_change_and_holds_with_it() {
        let cannot = || Reading::CannotTell("gone".into());
        for (proof, without, with, why) in [
            (threads(Bound::AtMost(3.0)), number(4.0), number(3.0), None),
            (threads(Bound::Rises(2.0)), number(1.0), number(3.0), None),
            (
                threads(Bound::AtMost(3.0)),
                number(2.0),
                number(3.0),
                Some("the proof cannot tell the sides apart: threads: at most 3, read 3 on both"),
            ),
            (
                threads(Bound::AtMost(3.0)),
                number(5.0),
                number(4.0),
                Some("not in force: threads: at most 3, read 4"),
            ),
            (
                threads(Bound::AtMost(3.0)),
                number(3.0),
                number(4.0),
                Some("not in force: threads: at most 3, read 4"),
            ),
            (
                threads(Bound::Drops(1.0)),
                number(5.0),
                number(4.5),
                Some("not in force: threads: at least 1 lower than without, read 4.50 with it and 5 without"),
            ),
            (threads(Bound::AtMost(3.0)), number(4.0), cannot(), Some("cannot be proved: gone")),
        ] {
            let mut lines = Vec::new();
            let told = hold(&proof, [&without, &with], "before", &mut lines);
            assert_eq!(told.as_deref(), why, "{proof}");
            let read: Vec<_> = lines.iter().map(|line| (line.side.as_str(), line.read.clone())).collect();
            assert_eq!(read, [("a", without.to_string()), ("b", with.to_string())]);
            assert!(lines.iter().all(|line| line.when == "before" && line.expected == proof.to_string()));
            assert!(why.is_some() || lines.iter().map(|line| line.holds).eq([false, true]), "{lines:?}");
        }
    }

    /// What is read of two servers a side, A and B in turn; the lines that are written down, by their readings.
    fn proved(readings: &[f64], before: &[f64], when: &str) -> (Option<String>, [Vec<String>; 2]) {
        let two = crate::climb::options::Options { instances: 2, ..options() };
        on_a_climb(&plan(&["a=on"]), &two, |climber| {
            let settings = [climber.standing.clone(), climber.standing.with("a", "on")];
            let (arms, load) = (Sides::apart(settings), climber.plan.load.clone());
            let (schedule, rule) = (Schedule::LivePairs, step_rule(Schedule::LivePairs));
            let comparison = Comparison { arms, schedule, rule, load };
            let opened = climber.open_bench(&comparison, &[threads(Bound::AtMost(3.0))]);
            let Ok(mut bench) = opened else { panic!("they open") };
            if !before.is_empty() {
                climber.meter.readings = before.iter().copied().map(Reading::Number).collect();
                assert!(climber.prove_all(&mut bench, "before").is_ok());
            }
            climber.meter.readings = readings.iter().copied().map(Reading::Number).collect();
            let Ok(why) = climber.prove_all(&mut bench, when) else { panic!("they live") };
            assert!(climber.meter.readings.is_empty(), "all that is there to read is read");
            let read = |lines: &[ProofLine]| lines.iter().map(|line| line.read.clone()).collect::<Vec<_>>();
            let Proving { before, after, .. } = bench.proving();
            let both = [read(before), read(after)];
            climber.close_bench(bench);
            (why, both)
        })
    }

    /// Planted faults: the first instance alone is read; the last one's lines are told where none of them differs.
    #[test]
    fn every_instance_is_proved_and_the_first_is_told_or_the_one_that_differs() {
        let not = Some("not in force: threads: at most 3, read 7".to_owned());
        let words = |read: &[&str]| read.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let (first, odd) = (words(&["4", "1"]), words(&["6", "7"]));
        assert_eq!(proved(&[4.0, 1.0, 5.0, 2.0], &[], "before"), (None, [first.clone(), vec![]]));
        assert_eq!(proved(&[4.0, 1.0, 5.0, 2.0], &[], "after"), (None, [vec![], first.clone()]));
        assert_eq!(proved(&[4.0, 1.0, 6.0, 7.0], &[], "before"), (not.clone(), [odd.clone(), vec![]]));
        assert_eq!(
            proved(&[6.0, 7.0], &[], "before"),
            (not.clone(), [odd.clone(), vec![]]),
            "and no further"
        );
        // Of servers started anew only what differs is told: the first ones stand for them.
        let again = [4.0, 1.0, 4.0, 1.0];
        assert_eq!(proved(&[5.0, 2.0, 5.0, 2.0], &again, "before"), (None, [first.clone(), vec![]]));
        assert_eq!(proved(&[5.0, 2.0, 6.0, 7.0], &again, "before"), (not.clone(), [odd.clone(), vec![]]));
        assert_eq!(proved(&[4.0, 1.0, 6.0, 7.0], &again, "after"), (not, [first, odd]));
    }
}
