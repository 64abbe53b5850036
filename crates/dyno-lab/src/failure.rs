//! Work that was not done, as people read it: what and where, likely why, what to try.
//!
//! Everything here and the binary's verbs return it; the binary turns it into an exit code and prints its lines.

use dyno_record::visible::{in_place, visible};

/// How a verb ends that failed so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The answer is no: worse, a missed budget, nothing to be judged.
    No,
    /// An error, also of usage.
    Error,
    /// The host could not be put back.
    NotRestored,
    /// Ctrl-C, before there was anything to write.
    Interrupted,
}

/// Work that was not done: what and where, likely why, what to try.
#[derive(Debug, PartialEq, Eq)]
pub struct Failure {
    what: String,
    /// Lines of a text, with a mark where it is wrong.
    picture: Vec<String>,
    likely: Option<String>,
    try_this: Option<String>,
    ending: Ending,
}

impl Failure {
    fn with(ending: Ending, what: impl Into<String>) -> Self {
        Self { what: what.into(), picture: Vec::new(), likely: None, try_this: None, ending }
    }

    /// The answer is no.
    #[must_use]
    pub fn no(what: impl Into<String>) -> Self {
        Self::with(Ending::No, what)
    }

    /// Something could not be done.
    #[must_use]
    pub fn error(what: impl Into<String>) -> Self {
        Self::with(Ending::Error, what)
    }

    /// The command line makes no sense.
    #[must_use]
    pub fn usage(what: impl Into<String>) -> Self {
        Self::with(Ending::Error, what).try_this("dyno --help")
    }

    /// Ctrl-C, before there was anything to write.
    #[must_use]
    pub fn interrupted() -> Self {
        Self::with(Ending::Interrupted, "interrupted: nothing was measured yet")
    }

    /// The host is not as it was.
    #[must_use]
    pub fn not_restored(what: impl Into<String>) -> Self {
        Self::with(Ending::NotRestored, what)
    }

    /// Adds the error's sources to what happened.
    #[must_use]
    pub fn because(mut self, error: &dyn std::error::Error) -> Self {
        let whole = chain(error);
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

    /// Puts the place where it was said before what happened, as `dyno.toml:3`.
    #[must_use]
    pub fn at(mut self, place: &str) -> Self {
        self.what = format!("{place}: {}", self.what);
        self
    }

    /// Adds the likely cause.
    #[must_use]
    pub fn likely(mut self, cause: impl Into<String>) -> Self {
        self.likely = Some(cause.into());
        self
    }

    /// Adds the lines of a text that show where it is wrong.
    #[must_use]
    pub fn picture(mut self, lines: &[String]) -> Self {
        lines.clone_into(&mut self.picture);
        self
    }

    /// Adds that processes have other numbers here than the kernel's programs see.
    #[must_use]
    pub fn in_a_container(self) -> Self {
        self.likely("it is a container").try_this("the same command on the host, or docker run --pid=host")
    }

    /// Adds what to try.
    #[must_use]
    pub fn try_this(mut self, command: impl Into<String>) -> Self {
        self.try_this = Some(command.into());
        self
    }

    /// What happened, in a line.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    /// Its three lines: what; likely why; what to try. A picture stands below the first. Nothing in them is for a terminal to obey.
    #[must_use]
    pub fn lines(&self) -> String {
        let mut out = format!("error: {}\n", visible(&self.what));
        self.picture.iter().for_each(|line| out.push_str(&format!("  {}\n", in_place(line))));
        for (label, text) in [("likely:", &self.likely), ("try:", &self.try_this)] {
            if let Some(text) = text {
                out.push_str(&format!("  {label:<7} {}\n", visible(text)));
            }
        }
        out
    }

    /// What happened and likely why, in one line.
    #[must_use]
    pub fn in_one_line(&self) -> String {
        let likely = self.likely.as_ref().map(|likely| format!(" ({likely})"));
        format!("{}{}", self.what, likely.unwrap_or_default())
    }

    /// How the verb ends.
    #[must_use]
    pub fn ending(&self) -> Ending {
        self.ending
    }
}

/// An error with all its sources in one line.
#[must_use]
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(inner) = source {
        text = format!("{text}: {inner}");
        source = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_likely_why_and_what_to_try() {
        let failure = Failure::error("cannot open perf event: permission denied")
            .likely("kernel.perf_event_paranoid is 3 here; this needs 1, or root")
            .try_this("sudo sysctl kernel.perf_event_paranoid=1");
        assert_eq!(
            failure.lines(),
            "error: cannot open perf event: permission denied\n\
             \x20 likely: kernel.perf_event_paranoid is 3 here; this needs 1, or root\n\
             \x20 try:    sudo sysctl kernel.perf_event_paranoid=1\n"
        );
        assert_eq!(Failure::error("no such file").lines(), "error: no such file\n");
    }

    #[test]
    fn a_picture_keeps_its_blanks_and_nothing_in_it_is_obeyed() {
        let picture = ["1 | a =  \u{1b}[2J".to_owned(), "  |      ^".to_owned()];
        let lines = Failure::error("x").picture(&picture).likely("y").lines();
        assert_eq!(lines, "error: x\n  1 | a =  \\u{1b}[2J\n    |      ^\n  likely: y\n");
    }
}
