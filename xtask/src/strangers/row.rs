//! What came of one program, and how it stands to its truth. The strangers' task fills it, the page shows it.

use super::truths::Truth;

/// What came of one program.
pub(crate) struct Row {
    pub(crate) truth: Truth,
    pub(crate) found: Vec<Found>,
    /// Why there is no answer.
    pub(crate) trouble: Option<String>,
}

/// A finding as the record has it.
pub(crate) struct Found {
    pub(crate) class: String,
    pub(crate) confidence: String,
    pub(crate) summary: String,
}

/// How an answer stands to the truth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Right,
    Wrong,
    Silent,
    Accused,
    Broken,
}

impl Row {
    /// Who else used the machine is not the program's doing: it counts only where it is the truth.
    pub(crate) fn of_the_program(&self) -> impl Iterator<Item = &Found> {
        let wanted = self.truth.is_right("noisy_neighbor");
        self.found.iter().filter(move |found| wanted || found.class != "noisy_neighbor")
    }

    /// How the first finding stands to the truth.
    pub(crate) fn verdict(&self) -> Verdict {
        let first = self.of_the_program().next();
        match (first, self.truth.is_healthy()) {
            _ if self.trouble.is_some() => Verdict::Broken,
            (None, true) => Verdict::Right,
            (Some(_), true) => Verdict::Accused,
            (None, false) => Verdict::Silent,
            (Some(found), false) if self.truth.is_right(&found.class) => Verdict::Right,
            (Some(_), false) => Verdict::Wrong,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::truths;
    use super::*;

    fn row(expected: &str, found: &[&str]) -> Row {
        let line = format!("x\tredis.sh\tplain\t{expected}\tDebian\t-");
        let found = found.iter().map(|class| Found {
            class: (*class).to_owned(),
            confidence: "high".to_owned(),
            summary: String::new(),
        });
        Row { truth: truths::parse(&line).unwrap_or_default(), found: found.collect(), trouble: None }
    }

    #[test]
    fn only_the_first_finding_counts_and_a_healthy_program_has_none() {
        let verdict = |expected: &str, found: &[&str]| row(expected, found).verdict();
        assert_eq!(verdict("sync_io", &["sync_io", "copying"]), Verdict::Right);
        assert_eq!(verdict("sync_io", &["copying", "sync_io"]), Verdict::Wrong);
        assert_eq!(verdict("sync_io", &[]), Verdict::Silent);
        assert_eq!(verdict("healthy", &["copying"]), Verdict::Accused);
        assert_eq!(verdict("healthy", &["noisy_neighbor"]), Verdict::Right);
        assert_eq!(verdict("noisy_neighbor", &["noisy_neighbor"]), Verdict::Right);
    }
}
