//! What a right answer is; whether a block of load was answered so, and if not, the deepest reason that can be found.

use dyno_climb::load::LoadSpec;
use dyno_climb::meter::{ArmSpec, Trouble};
use dyno_load::{BlockReport, BlockSpec, Body, Expect};

use super::arm::Arm;
use super::server::expect;
use super::world::World;

impl World<'_> {
    /// What a right answer to this load is. Where the plan does not say, it is what the start answers: a server that is held
    /// against its own first answer is right whatever a change makes of it.
    pub(crate) fn right_answer(&mut self, load: &LoadSpec) -> Result<Expect, Trouble> {
        if let Some((_, expect)) = self.right.iter().find(|(known, _)| known == load) {
            return Ok(expect.clone());
        }
        let said = expect(load);
        let right = if said.body == Some(Body::Same) { self.answer_of_the_start(load, said)? } else { said };
        self.right.push((load.clone(), right.clone()));
        Ok(right)
    }

    /// The answer of two servers of the start. Where already these answer differently (a port, a process number), or do not
    /// answer this load, each server is held against its own first answer: that is what `own` says.
    fn answer_of_the_start(&mut self, load: &LoadSpec, own: Expect) -> Result<Expect, Trouble> {
        let Some(first) = self.learned(load, &own)? else { return Ok(own) };
        let again = self.learned(load, &own)?;
        Ok(if again.as_ref() == Some(&first) { first } else { own })
    }

    /// What a fresh server of the start answers; none where it does not, and is not what the climb begins with.
    fn learned(&mut self, load: &LoadSpec, own: &Expect) -> Result<Option<Expect>, Trouble> {
        let one = LoadSpec { connections: 1, ..load.clone() };
        let spec = ArmSpec { setting: self.plan.start(), load: one };
        self.stand(&spec.setting)?;
        match self.started(&spec, own) {
            Ok(arm) => {
                let learned = arm.driver.expect().clone();
                self.stop(arm);
                Ok(Some(learned))
            }
            Err(trouble) if trouble.ends_the_climb() || *load == self.plan.load => Err(trouble),
            Err(_) => Ok(None),
        }
    }

    /// A wrong or missing answer excludes the side; the reason is the deepest that can be found.
    pub(crate) fn check(&mut self, arm: &Arm, report: &BlockReport, spec: &BlockSpec) -> Result<(), Trouble> {
        if report.errors.total() == 0 && report.drained {
            return Ok(());
        }
        if let Some(status) = self.exit_within_grace(arm) {
            return Err(Trouble::Died { status, stderr_tail: arm.output_tail() });
        }
        if let Some(wrong) = &report.first_wrong {
            return Err(Trouble::WrongAnswer { expected: wrong.expected.clone(), got: wrong.got.clone() });
        }
        if !report.drained || report.errors.timeout > 0 {
            return Err(Trouble::Hung { waited_ms: spec.drain_ns_max / 1_000_000 });
        }
        let got = report.first_error.clone().unwrap_or_else(|| format!("{} errors", report.errors.total()));
        Err(Trouble::WrongAnswer { expected: "an answer to every request".into(), got })
    }

    /// A connection that broke may be the first sign of a death that the keeper is about to report.
    fn exit_within_grace(&mut self, arm: &Arm) -> Option<String> {
        for _ in 0..50 {
            if let Some(status) = self.death_of(arm.pid, arm.warden) {
                return Some(status);
            }
            dyno_sys::clock::sleep_ns(1_000_000);
        }
        None
    }
}
