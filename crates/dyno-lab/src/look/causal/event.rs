//! What experiments report while they run; the caller shows it.

use std::time::Duration;

/// What experiments report while they run.
#[derive(Debug, Clone, Copy)]
pub enum Event<'e> {
    /// What is done now, in a sentence.
    Stage(&'e str),
    /// Where the rounds stand.
    Standing(Standing<'e>),
    /// Nothing goes on any more.
    Over,
}

/// Where the experiments stand.
#[derive(Debug, Clone, Copy)]
pub struct Standing<'s> {
    /// The site whose turn it is.
    pub site: &'s str,
    /// Rounds of it that are over.
    pub round: usize,
    /// Its greatest level's effect and half width so far, in percent.
    pub effect: Option<(f64, f64)>,
    /// Sites that are done, of all.
    pub done: (usize, usize),
    /// Time left of the whole budget.
    pub left: Duration,
}
