//! `dyno tune`: what an audit found is carried out, kept in a journal, and put back.
//!
//! Reading, writing and rolling back are `dyno_host`'s; here are who is asked, in which words, and the exit status.

mod apply;
mod ask;
mod bench;
mod chosen;
mod compare;
mod persist;
mod rollback;
mod words;

use std::process::ExitCode;

use dyno_lab::Failure;

use crate::cli::Tune;
use crate::cli::tune::TuneWhat;

/// Runs the verb.
pub(crate) fn run(args: &Tune) -> Result<ExitCode, Failure> {
    match &args.what {
        TuneWhat::Plan(plan) => apply::plan(plan),
        TuneWhat::Apply(apply) => apply::apply(apply, &args.state),
        TuneWhat::Confirm(_) => apply::confirm(&args.state),
        TuneWhat::Status(status) => rollback::status(status, &args.state),
        TuneWhat::Rollback(rollback) => rollback::rollback(rollback, &args.state),
        TuneWhat::Persist(persist) => persist::persist(persist, &args.state),
        TuneWhat::Snapshot(snapshot) => compare::snapshot(snapshot),
        TuneWhat::Diff(diff) => compare::diff(diff),
    }
}
