//! The dial `replies`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// When replies to pipelined requests leave.
///
/// ```
/// use dyno_engine::{Dials, Replies};
///
/// let replies: Replies = Dials::default().replies;
/// assert_eq!(replies.to_string().parse(), Ok(replies));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replies {
    /// All replies of one connection's turn together.
    Batch,
    /// Each reply as soon as it is made.
    Single,
}

words!(Replies { Batch = "batch", Single = "single" });

impl Dial for Replies {
    const ABOUT: About = About {
        name: "replies",
        value: "WORD",
        choices: "batch or single",
        help: "Replies to pipelined requests leave as a batch or single [default: batch]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Replies {
        Replies::Batch
    }

    fn naive() -> Replies {
        Replies::Single
    }
}
