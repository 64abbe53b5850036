//! `dyno doctor`: what of this program works here, for this user.

use std::process::ExitCode;

use dyno_lab::Failure;

use super::exit;
use crate::{cli, out};

/// Runs the verb. What is missing is no failure of this verb.
pub(crate) fn run(args: &cli::Doctor) -> Result<ExitCode, Failure> {
    let record = dyno_host::doctor::examine();
    let text = if args.json {
        let text = serde_json::to_string(&record);
        text.map_err(|error| Failure::error("the result cannot be written as JSON").because(&error))? + "\n"
    } else {
        dyno_report::text::audit::doctor(&record, out::terminal_width(), args.color.on_stdout())
    };
    out::print(&text)?;
    Ok(exit::DONE)
}
