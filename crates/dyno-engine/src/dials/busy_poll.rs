//! The dial `busy-poll`.

use super::dial::{About, Dial, DialError, Scope, digits, unknown_word};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Microseconds for which a worker that has nothing to do polls the network device before it sleeps; 0 is off.
///
/// The kernel polls, in the worker's wait for events (Linux 6.9). It does something only where packets come through a queue that can
/// be polled: not over loopback.
///
/// ```
/// # use dyno_engine::*;
/// assert_eq!(BusyPoll::from_us(50).us(), 50);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BusyPoll(u32);

impl BusyPoll {
    /// The longest that a worker may poll before it sleeps: one second.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(BusyPoll::from_us(u32::MAX).us(), BusyPoll::US_MAX);
    /// ```
    pub const US_MAX: u32 = 1_000_000;

    /// This many microseconds, at most [`BusyPoll::US_MAX`].
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let dials = Dials { busy_poll: BusyPoll::from_us(20), ..Dials::default() };
    /// # let _ = dials;
    /// ```
    #[must_use]
    pub fn from_us(us: u32) -> BusyPoll {
        BusyPoll(us.min(BusyPoll::US_MAX))
    }

    /// The microseconds.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Dials::default().busy_poll.us(), 0);
    /// ```
    #[must_use]
    pub fn us(self) -> u32 {
        self.0
    }
}

impl FromStr for BusyPoll {
    type Err = DialError;

    fn from_str(word: &str) -> Result<BusyPoll, DialError> {
        let us = digits(word).filter(|&us| us <= BusyPoll::US_MAX);
        us.map(BusyPoll).ok_or_else(|| unknown_word::<BusyPoll>(word))
    }
}

impl fmt::Display for BusyPoll {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl Dial for BusyPoll {
    const ABOUT: About = About {
        name: "busy-poll",
        value: "US",
        choices: "microseconds from 0 (off) to 1000000",
        help: "Microseconds for which an idle worker polls the network device before it sleeps [default: 0]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> BusyPoll {
        BusyPoll(0)
    }

    fn naive() -> BusyPoll {
        BusyPoll(0)
    }
}
