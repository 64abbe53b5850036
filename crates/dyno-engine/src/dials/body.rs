//! The dial `body`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// How a reply is put together.
///
/// ```
/// use dyno_engine::{Dials, Body};
///
/// let body: Body = Dials::default().body;
/// assert_eq!(body.to_string().parse(), Ok(body));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Body {
    /// Encoded straight into the shared send buffer from pieces made beforehand.
    Outbox,
    /// The way of a first version: a string for the body, a list of strings for the headers, formatted and concatenated.
    Generic,
}

words!(Body { Outbox = "outbox", Generic = "generic" });

impl Dial for Body {
    const ABOUT: About = About {
        name: "body",
        value: "WORD",
        choices: "outbox or generic",
        help: "A reply is encoded into the outbox, or put together the generic way [default: outbox]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Body {
        Body::Outbox
    }

    fn naive() -> Body {
        Body::Generic
    }
}
