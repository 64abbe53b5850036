//! Whether a block of load was answered as it should be, and if not, the deepest reason that can be found.

use dyno_climb::meter::Trouble;
use dyno_load::{BlockReport, BlockSpec};

use super::arm::Arm;
use super::world::World;

impl World<'_> {
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
            if let Some(status) = self.exit_of(arm.pid) {
                return Some(status);
            }
            dyno_sys::clock::sleep_ns(1_000_000);
        }
        None
    }
}
