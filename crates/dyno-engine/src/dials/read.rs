//! The dial `read`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// When a worker stops reading from a connection.
///
/// ```
/// use dyno_engine::{Dials, Read};
///
/// let read: Read = Dials::default().read;
/// assert_eq!(read.to_string().parse(), Ok(read));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Read {
    /// A read that did not fill the buffer was the last one.
    Once,
    /// Reads go on until the kernel says that there is nothing.
    Drain,
}

words!(Read { Once = "once", Drain = "drain" });

impl Dial for Read {
    const ABOUT: About = About {
        name: "read",
        value: "WORD",
        choices: "once or drain",
        help: "Read once per wake-up, or drain until nothing is there [default: once]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Read {
        Read::Once
    }

    fn naive() -> Read {
        Read::Drain
    }
}
