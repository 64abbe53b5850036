//! The dial `log`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// How the access log is written.
///
/// ```
/// use dyno_engine::{Dials, Log};
///
/// let log: Log = Dials::default().log;
/// assert_eq!(log.to_string().parse(), Ok(log));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Log {
    /// One `write(2)` per request, by the worker that answers it.
    Sync,
    /// Into a ring in shared memory, written by one other process or thread.
    Ring,
    /// The same, and a reply leaves when its line is written: for bookkeeping.
    Commit,
    /// No access log.
    Off,
}

words!(Log { Sync = "sync", Ring = "ring", Commit = "commit", Off = "off" });

impl Dial for Log {
    const ABOUT: About = About {
        name: "log",
        value: "WORD",
        choices: "sync, ring, commit or off",
        help: "Access log: ring (a writer beside), commit (replies wait for it), sync (a write per request) or off [default: off]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Log {
        Log::Off
    }

    fn naive() -> Log {
        Log::Sync
    }
}
