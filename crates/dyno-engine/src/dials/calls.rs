//! The dial `calls`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// Which system calls move the bytes.
///
/// ```
/// use dyno_engine::{Dials, Calls};
///
/// let calls: Calls = Dials::default().calls;
/// assert_eq!(calls.to_string().parse(), Ok(calls));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Calls {
    /// `recv(2)` and `send(2)`, which go straight to the socket.
    RecvSend,
    /// `read(2)` and `write(2)`, which pass the file layers first.
    ReadWrite,
}

words!(Calls { RecvSend = "recv-send", ReadWrite = "read-write" });

impl Dial for Calls {
    const ABOUT: About = About {
        name: "calls",
        value: "WORD",
        choices: "recv-send or read-write",
        help: "System calls that move bytes: recv-send or read-write [default: recv-send]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Calls {
        Calls::RecvSend
    }

    fn naive() -> Calls {
        Calls::ReadWrite
    }
}
