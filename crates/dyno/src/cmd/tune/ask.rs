//! Whether the user agrees: `--yes`, or a y at a terminal.

use std::io::{self, BufRead, IsTerminal};

use dyno_lab::Failure;

use crate::cli::tune::Consent;
use crate::out;

/// Whether it is to be done. Off a terminal only `--yes` says so.
pub(super) fn agreed(consent: Consent, question: &str) -> Result<bool, Failure> {
    if consent.yes {
        return Ok(true);
    }
    if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
        return Err(Failure::error("nothing was changed: nobody said yes")
            .likely("this is no terminal, where it would be asked")
            .try_this("the same with --yes"));
    }
    out::say(&format!("{question} [y/N] "));
    let mut answer = String::new();
    let read = io::stdin().lock().read_line(&mut answer);
    Ok(read.is_ok() && matches!(answer.trim(), "y" | "Y" | "yes"))
}
