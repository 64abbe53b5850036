//! The verbs.
//!
//! `main` calls `run` once. A verb returns its exit code, or a failure that `main` prints in three lines.

mod audit;
pub(crate) mod causal;
pub(crate) mod climb;
mod compare;
mod diagnose;
mod doctor;
mod exit;
mod flame;
mod floor;
mod gate;
mod judge;
mod load;
mod netlab;
mod offcpu;
mod pages;
mod profile;
mod recording;
mod report;
mod serve;
pub(crate) mod specimen;
mod stop;
mod top;
mod tune;
mod usage;

use std::process::ExitCode;

use crate::cli::{Cli, Verb, layout};
use crate::out;
use dyno_lab::Failure;

pub(crate) use exit::code;
pub(crate) use usage::unparsed;

/// Runs the verb.
pub(crate) fn run(cli: Cli) -> Result<ExitCode, Failure> {
    match cli.verb {
        None => {
            out::print(&layout::shown(&Cli::laid_out().render_help().to_string()))?;
            Ok(exit::DONE)
        }
        Some(Verb::Serve(args)) => serve::run(&args),
        Some(Verb::Top(args)) => top::run(&args),
        Some(Verb::Floor(args)) => floor::run(&args),
        Some(Verb::Load(args)) => load::run(&args),
        Some(Verb::Judge(args)) => judge::run(&args),
        Some(Verb::Compare(args)) => compare::run(&args),
        Some(Verb::Climb(args)) => climb::run(&args),
        Some(Verb::Report(args)) => report::run(&args),
        Some(Verb::Profile(args)) => profile::run(&args),
        Some(Verb::OffCpu(args)) => offcpu::run(&args),
        Some(Verb::Flame(args)) => flame::run(&args),
        Some(Verb::Specimen(args)) => specimen::run(&args),
        Some(Verb::Diagnose(args)) => diagnose::run(&args),
        Some(Verb::Causal(args)) => causal::run(&args),
        Some(Verb::Audit(args)) => audit::run(&args),
        Some(Verb::Tune(args)) => tune::run(&args),
        Some(Verb::Doctor(args)) => doctor::run(&args),
        Some(Verb::Completions(args)) => pages::completions(&args),
        Some(Verb::Man(args)) => pages::man(&args),
        Some(Verb::Netlab(args)) => netlab::run(&args),
    }
}
