//! `--fail-under`: conditions read before the work, held after it, each told on standard error.

use dyno_lab::Failure;
use dyno_record::condition::{self, Condition, ConditionError, Held, Known};
use dyno_record::figure::Sheet;
use dyno_report::figures;
use dyno_report::number::visible;

use crate::cli::Gate;
use crate::out;

/// Conditions as they were given, each with the text that it stands in.
#[derive(Debug, Default)]
pub(super) struct Conditions(Vec<(String, Condition)>);

impl Conditions {
    /// Reads them: what cannot be read is told before anything is measured.
    pub(super) fn read(gate: &Gate) -> Result<Conditions, Failure> {
        let mut all = Vec::new();
        for text in &gate.fail_under {
            let conditions = condition::read(text).map_err(|error| refused(text, &error))?;
            all.extend(conditions.into_iter().map(|one| (text.clone(), one)));
        }
        Ok(Conditions(all))
    }

    /// The same for figures whose names are known before the work.
    pub(super) fn check(&self, known: &[Known]) -> Result<(), Failure> {
        self.0.iter().try_for_each(|(text, one)| one.check(known).map_err(|error| refused(text, &error)))
    }

    /// Holds them against what was measured.
    pub(super) fn hold(&self, sheet: &Sheet) -> Result<Vec<Held>, Failure> {
        self.0.iter().map(|(text, one)| one.hold(sheet).map_err(|error| refused(text, &error))).collect()
    }
}

fn refused(text: &str, error: &ConditionError) -> Failure {
    Failure::usage(format!("--fail-under: {error}"))
        .picture(&error.picture(text))
        .likely(error.hint.clone())
        .try_this("dyno judge --help, or docs/manual/ci.md")
}

/// Says what came of each; whether all are met.
pub(super) fn told(held: &[Held]) -> bool {
    for one in held {
        out::say(&format!("{}\n", visible(&figures::held(one))));
    }
    held.iter().all(|one| one.met)
}
