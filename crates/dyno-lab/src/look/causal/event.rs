//! What experiments report while they run; the caller shows it.

use dyno_record::causal::Standing;

/// What experiments report while they run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'e> {
    /// What is done now, in a sentence.
    Stage(&'e str),
    /// Something that is to be known before the end.
    Warning(&'e str),
    /// Where the rounds stand.
    Standing(Standing<'e>),
    /// Nothing goes on any more.
    Over,
}
