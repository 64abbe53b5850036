//! The exit codes of every verb.

use std::process::ExitCode;

use dyno_lab::Failure;
use dyno_lab::failure::Ending;

/// Done.
pub(crate) const DONE: ExitCode = ExitCode::SUCCESS;
/// The answer is no: worse, a missed budget, nothing to be judged.
pub(crate) const NO: u8 = 1;
/// An error, also of usage.
pub(crate) const ERROR: u8 = 2;
/// The host could not be put back.
pub(crate) const NOT_RESTORED: u8 = 3;
/// Ctrl-C, after writing what was measured.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code of a failure, as a number that can be weighed against others.
pub(crate) fn number(failure: &Failure) -> u8 {
    match failure.ending() {
        Ending::No => NO,
        Ending::Error => ERROR,
        Ending::NotRestored => NOT_RESTORED,
        Ending::Interrupted => INTERRUPTED,
    }
}

/// The exit code of a failure.
pub(crate) fn code(failure: &Failure) -> ExitCode {
    ExitCode::from(number(failure))
}
