//! How a task ends: done, "the answer is no", or trouble that is printed in three lines.

use std::fmt;
use std::process::ExitCode;

/// A task that could do its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All is well.
    Done,
    /// Something was found, failed, or is over its budget.
    No,
}

impl Outcome {
    pub(crate) fn exit_code(self) -> ExitCode {
        ExitCode::from(u8::from(self == Outcome::No))
    }

    pub(crate) fn done_if(holds: impl FnOnce() -> bool) -> Outcome {
        if holds() { Outcome::Done } else { Outcome::No }
    }
}

/// A task that could not do its work: what and where, the likely reason, what to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Trouble {
    what: String,
    likely: Option<String>,
    remedy: Option<String>,
}

impl Trouble {
    pub(crate) fn new(what: impl Into<String>) -> Trouble {
        Trouble { what: what.into(), likely: None, remedy: None }
    }

    pub(crate) fn likely(self, why: impl Into<String>) -> Trouble {
        Trouble { likely: Some(why.into()), ..self }
    }

    pub(crate) fn remedy(self, command: impl Into<String>) -> Trouble {
        Trouble { remedy: Some(command.into()), ..self }
    }

    /// For `map_err`: "cannot `what`: the system's words".
    pub(crate) fn cannot<E: fmt::Display>(what: impl fmt::Display) -> impl FnOnce(E) -> Trouble {
        move |source| Trouble::new(format!("cannot {what}: {source}"))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.what)?;
        if let Some(likely) = &self.likely {
            write!(f, "\n  likely: {likely}")?;
        }
        if let Some(remedy) = &self.remedy {
            write!(f, "\n  try:    {remedy}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_is_told_in_three_lines() {
        let trouble =
            Trouble::new("cannot run wrk").likely("it is not installed").remedy("apt-get install wrk");
        let lines = "error: cannot run wrk\n  likely: it is not installed\n  try:    apt-get install wrk";
        assert_eq!(trouble.to_string(), lines);
        assert_eq!(Trouble::new("x").to_string(), "error: x");
    }
}
