//! How a verb ends: exit codes, and errors in three lines.

use std::process::ExitCode;

/// The exit codes of every verb.
pub(crate) mod exit {
    use std::process::ExitCode;

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
}

/// A verb that did not do what it was asked: what and where, likely why, what to try.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    likely: Option<String>,
    try_this: Option<String>,
    code: u8,
}

impl Failure {
    fn with(code: u8, what: impl Into<String>) -> Self {
        Self { what: what.into(), likely: None, try_this: None, code }
    }

    /// The answer is no.
    pub(crate) fn no(what: impl Into<String>) -> Self {
        Self::with(exit::NO, what)
    }

    /// Something could not be done.
    pub(crate) fn error(what: impl Into<String>) -> Self {
        Self::with(exit::ERROR, what)
    }

    /// The command line makes no sense.
    pub(crate) fn usage(what: impl Into<String>) -> Self {
        Self::with(exit::ERROR, what).try_this("dyno --help")
    }

    /// Ctrl-C, before there was anything to write.
    pub(crate) fn interrupted() -> Self {
        Self::with(exit::INTERRUPTED, "interrupted: nothing was measured yet")
    }

    /// The host is not as it was.
    pub(crate) fn not_restored(what: impl Into<String>) -> Self {
        Self::with(exit::NOT_RESTORED, what)
    }

    /// Adds the error's sources to what happened.
    pub(crate) fn because(mut self, error: &dyn std::error::Error) -> Self {
        let whole = crate::meter::chain(error);
        if !self.what.ends_with(&whole) {
            let text = error.to_string();
            // When `what` ends with the error itself only its sources are news.
            let news = if self.what.ends_with(&text) {
                whole[text.len()..].to_owned()
            } else {
                format!(": {whole}")
            };
            self.what.push_str(&news);
        }
        self
    }

    /// Adds the likely cause.
    pub(crate) fn likely(mut self, cause: impl Into<String>) -> Self {
        self.likely = Some(cause.into());
        self
    }

    /// Adds that processes have other numbers here than the kernel's programs see.
    pub(crate) fn in_a_container(self) -> Self {
        self.likely("it is a container").try_this("the same command on the host, or docker run --pid=host")
    }

    /// Adds what to try.
    pub(crate) fn try_this(mut self, command: impl Into<String>) -> Self {
        self.try_this = Some(command.into());
        self
    }

    /// What happened, in a line.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Its three lines.
    pub(crate) fn lines(&self) -> String {
        dyno_report::text::error_chain(&self.what, self.likely.as_deref(), self.try_this.as_deref())
    }

    /// What happened and likely why, in one line.
    pub(crate) fn in_one_line(&self) -> String {
        let likely = self.likely.as_ref().map(|likely| format!(" ({likely})"));
        format!("{}{}", self.what, likely.unwrap_or_default())
    }

    /// Its exit code.
    pub(crate) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }

    /// The same as a number, to be weighed against others.
    pub(crate) fn number(&self) -> u8 {
        self.code
    }
}
