//! The dial `headers`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// How a handler sees the request's headers.
///
/// ```
/// use dyno_engine::{Dials, Headers};
///
/// let headers: Headers = Dials::default().headers;
/// assert_eq!(headers.to_string().parse(), Ok(headers));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// As slices of the receive buffer.
    Borrowed,
    /// Copied into a map with lower-cased names before the handler runs.
    Owned,
}

words!(Headers { Borrowed = "borrowed", Owned = "owned" });

impl Dial for Headers {
    const ABOUT: About = About {
        name: "headers",
        value: "WORD",
        choices: "borrowed or owned",
        help: "A handler sees borrowed or owned headers [default: borrowed]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Headers {
        Headers::Borrowed
    }

    fn naive() -> Headers {
        Headers::Owned
    }
}
