//! A new version in the place of one that runs: what this process was handed, and what takes its own place on SIGUSR2.

use std::ffi::OsString;

use dyno_engine::master::{Inheritance, Own, Program, VARIABLE};
use dyno_lab::Failure;

/// What the environment says was handed over, and this program as it was started.
///
/// # Errors
/// When what was handed over is not there.
pub(super) fn own(variable: impl Fn(&str) -> Option<OsString>) -> Result<Own, Failure> {
    let text = variable(VARIABLE).map(|text| text.to_string_lossy().into_owned());
    let inheritance = text.map_or_else(|| Ok(Inheritance::default()), |text| Inheritance::take(&text));
    let inheritance = inheritance.map_err(|why| {
        Failure::usage(format!("{VARIABLE} cannot be understood: {why}"))
            .likely("it is set by a server that hands over, and something else has set it")
            .try_this(format!("env -u {VARIABLE} dyno serve"))
    })?;
    // Where the program's own path cannot be read nothing can take over, which is told when it is asked for.
    let program = std::env::current_exe().ok().map(|path| Program {
        path,
        words: std::env::args_os().collect(),
        environment: std::env::vars_os().collect(),
    });
    Ok(Own { inheritance, program })
}
