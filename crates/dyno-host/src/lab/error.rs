//! Why there is no laboratory, and why a part of it is not as it should be.

use std::io;

use dyno_sys::knob::KnobError;

/// Why there is no laboratory, or why a part of it does not stand where it should.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// Only root may make namespaces.
    #[error("cannot make a network namespace")]
    Namespace(#[source] io::Error),
    /// The cable could not be made or set.
    #[error("cannot {what} of the laboratory's cable")]
    Cable {
        /// What was tried.
        what: &'static str,
        /// The kernel's word.
        #[source]
        source: io::Error,
    },
    /// It was set, and stands otherwise.
    #[error("the laboratory's {what} should be {wanted} and is {read}")]
    NotSo {
        /// The part.
        what: &'static str,
        /// Where it was to stand.
        wanted: String,
        /// Where it stands.
        read: String,
    },
    /// There is no such value.
    #[error("{0}")]
    Value(String),
    /// A program of the system is missing.
    #[error("{tool} is not there; {part} needs it")]
    NoTool {
        /// The program.
        tool: &'static str,
        /// What needs it.
        part: &'static str,
    },
    /// A program of the system refused.
    #[error("{tool} refused: {said}")]
    Tool {
        /// The program.
        tool: &'static str,
        /// What it printed.
        said: String,
    },
    /// A file of the namespace could not be set.
    #[error(transparent)]
    File(#[from] KnobError),
    /// A tap could not be opened or asked.
    #[error("cannot have a packet tap")]
    Tap(#[source] io::Error),
    /// A count could not be read.
    #[error("cannot read {what}")]
    Count {
        /// Which.
        what: &'static str,
        /// The kernel's word.
        #[source]
        source: io::Error,
    },
}
