//! Why a file was not read: the same words for every format.

use dyno_record::profile::ProfileError;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Our own record, but a broken one.
    #[error(transparent)]
    Record(#[from] ProfileError),
    /// Neither text nor a format that is known.
    #[error("it is neither text nor perf.data")]
    NotText,
    /// Text of no known kind.
    #[error("line {line} is neither of folded stacks nor of perf script: \"{text}\"")]
    UnknownText {
        /// From 1.
        line: usize,
        /// Its beginning.
        text: String,
    },
    /// No stack in it.
    #[error("it has no stack")]
    Empty,
    /// A line that does not fit the lines before it.
    #[error("line {line}: {what}")]
    Line {
        /// From 1.
        line: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// Folded stacks of two profiles.
    #[error(
        "it is a comparison of two profiles and not one: each line ends in two numbers, before and after"
    )]
    Comparison,
    /// A perf.data that ends too early or contradicts itself.
    #[error("perf.data is damaged: {what} at byte {at}")]
    Damaged {
        /// What is wrong.
        what: &'static str,
        /// Where.
        at: u64,
    },
    /// A perf.data of a kind that is not read here.
    #[error("{what}")]
    Unsupported {
        /// What it is.
        what: &'static str,
        /// What to do instead.
        instead: &'static str,
    },
}
