//! A stack that was walked, and why it has no further frames.
//!
//! The walk makes it, the check shortens it, profiles count its causes.

use std::collections::BTreeMap;

/// Why a stack has no further frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ended {
    /// There are none: the start of the thread, as far as its tables or frame pointers say.
    AtRoot,
    /// The next one could not be found, or could not be true.
    Cut(Cut),
}

/// A stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walked {
    /// Addresses from the leaf to the root. The leaf's is the instruction that ran; a caller's lies within the call (one
    /// below the address that is returned to), so that it belongs to the right line.
    pub addresses: Vec<u64>,
    /// Why it ended there.
    pub ended: Ended,
}

/// Why a stack was cut before its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cut {
    /// The return address lies in no code of the process.
    Outside,
    /// The copied piece ended, and what lies behind it may have changed since.
    CopyEnded,
    /// The pages behind the copied piece were never touched, or are not there.
    Untouched,
    /// What was read afterwards cannot be what stood there: it is behind no call of that function.
    Changed,
    /// Neither tables nor frame pointers lead on.
    NoRule,
    /// Deeper than any stack that is shown.
    TooDeep,
    /// The registers are those of a program of 32 bits.
    Narrow,
}

impl Cut {
    /// For readers.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Cut::Outside => "return address outside any mapping with code",
            Cut::CopyEnded => "deeper than the copied piece of the stack",
            Cut::Untouched => {
                "the copied piece ended in pages that were never touched, and what lies behind them had changed"
            }
            Cut::Changed => "what lay beyond the copied piece had changed when it was read",
            Cut::NoRule => "neither unwind tables nor frame pointers lead on",
            Cut::TooDeep => "more than 1,024 frames",
            Cut::Narrow => "copied stacks of programs of 32 bits are not walked (--call-graph fp)",
        }
    }
}

/// The causes as a record has them.
pub(crate) fn by_words(cuts: &BTreeMap<Cut, u64>) -> BTreeMap<String, u64> {
    cuts.iter().map(|(cut, stacks)| (cut.words().to_owned(), *stacks)).collect()
}

/// The causes in one line, the most frequent first.
pub(crate) fn causes(by: &BTreeMap<String, u64>) -> String {
    let mut by: Vec<_> = by.iter().collect();
    by.sort_by_key(|(_, stacks)| std::cmp::Reverse(**stacks));
    let words: Vec<String> = by.into_iter().map(|(why, stacks)| format!("{stacks} × {why}")).collect();
    words.join("; ")
}
