//! Reads the proofs of what was kept on the total's own servers, arm by arm.
//!
//! The starts ask it before their load and after it; what it means is judged in `in_force`.

use dyno_record::climb::Role;

use super::climber::Climber;
use super::in_force::Due;
use super::starts::Rounds;
use crate::meter::{Meter, Trouble};
use crate::proof::{Proof, Reading};

impl<M: Meter> Climber<'_, M> {
    /// Proofs of the rungs that stand at the end, or stood before confirmation, and not at the start. What is for a load of its own is
    /// proved under that.
    pub(crate) fn due_in_total(&self) -> Vec<Due> {
        let start = self.plan.start();
        let mut due = Vec::new();
        for kept in &self.kept {
            let rung = self.rung_of(kept.rung);
            if rung.load.is_some() || start.get(&rung.dial) == rung.to {
                continue;
            }
            // A rise or a drop is one against the setting before; other rungs stand between that and the start.
            due.extend(rung.proofs.iter().filter(|proof| !proof.is_relative()).map(|proof| Due {
                rung: rung.id.clone(),
                proof: proof.clone(),
                dial: rung.dial.clone(),
                value: rung.to.clone(),
            }));
        }
        due
    }

    /// Reads the proofs on all live servers of the total.
    pub(crate) fn prove_arms(&mut self, rounds: &mut Rounds<M::Arm>, when: &str) -> Result<(), Trouble> {
        let roles: Vec<Role> = rounds.arms.iter().map(|one| one.is.role).collect();
        let mut read = Vec::new();
        for role in roles {
            read.push((role, self.read_of_arm(rounds, role)?));
        }
        rounds.hold_all(read, when);
        Ok(())
    }

    /// What a server of this role reads of the proofs: the start of all of them, others of those that are due there.
    pub(crate) fn read_of_arm(
        &mut self,
        rounds: &mut Rounds<M::Arm>,
        role: Role,
    ) -> Result<Vec<(usize, Reading)>, Trouble> {
        let Some(one) = rounds.arms.iter_mut().find(|one| one.is.role == role) else { return Ok(Vec::new()) };
        let (Some(setting), Some(arm)) = (&one.is.setting, one.arm.as_mut()) else { return Ok(Vec::new()) };
        let due: Vec<(usize, Proof)> = match role {
            Role::Naive => rounds.in_force.due.iter().map(|due| due.proof.clone()).enumerate().collect(),
            _ => rounds.in_force.of(setting).map(|(at, due)| (at, due.proof.clone())).collect(),
        };
        due.into_iter().map(|(at, proof)| Ok((at, self.meter.prove(arm, &proof)?))).collect()
    }
}

impl<A> Rounds<A> {
    /// Holds what each arm read against what the start did.
    pub(crate) fn hold_all(&mut self, read: Vec<(Role, Vec<(usize, Reading)>)>, when: &str) {
        let start = read.iter().find(|(role, _)| *role == Role::Naive);
        let Some(start) = start.map(|(_, of_start)| of_start.iter().map(|(_, reading)| reading.clone()))
        else {
            return;
        };
        let start: Vec<Reading> = start.collect();
        assert!(start.len() == self.in_force.due.len(), "the start is asked for all that is due");
        for (role, with) in read.iter().filter(|(role, _)| *role != Role::Naive) {
            self.in_force.hold(*role, &start, with, when);
        }
    }
}
