//! The dial `send`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// Whether the head and the body of a reply leave together.
///
/// ```
/// use dyno_engine::{Dials, Send};
///
/// let send: Send = Dials::default().send;
/// assert_eq!(send.to_string().parse(), Ok(send));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Send {
    /// Head and body in one send.
    Joined,
    /// The head in one send, the body in a second one.
    Split,
}

words!(Send { Joined = "joined", Split = "split" });

impl Dial for Send {
    const ABOUT: About = About {
        name: "send",
        value: "WORD",
        choices: "joined or split",
        help: "Head and body of a reply leave joined or split [default: joined]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Send {
        Send::Joined
    }

    fn naive() -> Send {
        Send::Split
    }
}
