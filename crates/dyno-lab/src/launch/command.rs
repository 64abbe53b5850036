//! A command that is started to be watched.

use std::ffi::OsString;
use std::os::fd::AsFd;

use dyno_sys::keeper::{KeeperError, Launch};

use crate::failure::{Failure, chain};

/// A command that is to be watched: it reads this program's standard input, and what it prints goes to standard error.
///
/// # Errors
/// When these cannot be handed on.
pub fn order(command: &[OsString]) -> Result<Launch, Failure> {
    let output = std::io::stderr().as_fd().try_clone_to_owned();
    let output = output.map_err(|error| Failure::error("cannot hand on standard error").because(&error))?;
    let input = std::io::stdin().as_fd().try_clone_to_owned();
    let input = input.map_err(|error| Failure::error("cannot hand on standard input").because(&error))?;
    Ok(Launch {
        argv: command.to_vec(),
        env: Vec::new(),
        cwd: None,
        cpus: None,
        output,
        inherit: vec![(input, 0)],
        user: None,
    })
}

/// Why a command could not be started, in three lines.
pub fn not_started(error: &KeeperError, command: &[OsString]) -> Failure {
    Failure::error(chain(error))
        .likely("there is no such program in PATH, or it may not be run")
        .try_this(format!("command -v {}", program(command)))
}

/// The command's first word, for messages.
pub fn program(command: &[OsString]) -> String {
    command.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default()
}
