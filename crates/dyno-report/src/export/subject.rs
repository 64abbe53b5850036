//! What is exported, and how: the words that callers of exporters use.

use dyno_record::audit::{Audit, Level};
use dyno_record::climb::Climb;
use dyno_record::diagnosis::Diagnosis;
use dyno_record::difference::Difference;
use dyno_record::figure::Sheet;
use dyno_record::finding::Confidence;
use dyno_record::judged::Judged;
use dyno_record::load::LoadRun;

/// A format that a program reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// For a comment or a summary: GitHub flavoured Markdown.
    Markdown,
    /// Every figure in a row (RFC 4180).
    Csv,
    /// JUnit's XML, as test runners read it.
    Junit,
    /// Workflow commands of GitHub's runners.
    Github,
}

/// What is written.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'r> {
    /// A climb.
    Climb(&'r Climb),
    /// A climb's record judged again.
    Judged(&'r Judged),
    /// Two records.
    Difference(&'r Difference),
    /// Two lists of numbers, and the answer in a sentence.
    Numbers(&'r Sheet, &'r str),
    /// A load, and why it says nothing of its target, if so.
    Load(&'r LoadRun, Option<&'r str>),
    /// A diagnosis; findings from this confidence on count as failed, none: none does.
    Diagnosis(&'r Diagnosis, Option<Confidence>),
    /// An audit; findings from this level on count as failed, none: none does.
    Audit(&'r Audit, Option<Level>),
}
