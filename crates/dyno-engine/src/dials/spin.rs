//! The dial `spin`.

use super::dial::{About, Dial, DialError, Scope, digits, unknown_word};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Microseconds of polling before a worker sleeps; 0 is off.
///
/// ```
/// # use dyno_engine::*;
/// assert_eq!(Spin::from_us(50).us(), 50);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spin(u32);

impl Spin {
    /// The longest a worker may poll before it sleeps: one second. More is a busy loop by another name.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Spin::from_us(u32::MAX).us(), Spin::US_MAX);
    /// ```
    pub const US_MAX: u32 = 1_000_000;

    /// This many microseconds, at most [`Spin::US_MAX`].
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let dials = Dials { spin: Spin::from_us(20), ..Dials::default() };
    /// # let _ = dials;
    /// ```
    #[must_use]
    pub fn from_us(us: u32) -> Spin {
        Spin(us.min(Spin::US_MAX))
    }

    /// The microseconds.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert_eq!(Dials::default().spin.us(), 0);
    /// ```
    #[must_use]
    pub fn us(self) -> u32 {
        self.0
    }
}

impl FromStr for Spin {
    type Err = DialError;

    fn from_str(word: &str) -> Result<Spin, DialError> {
        let us = digits(word).filter(|&us| us <= Spin::US_MAX);
        us.map(Spin).ok_or_else(|| unknown_word::<Spin>(word))
    }
}

impl fmt::Display for Spin {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl Dial for Spin {
    const ABOUT: About = About {
        name: "spin",
        value: "US",
        choices: "microseconds from 0 (off) to 1000000",
        help: "Microseconds of polling before a worker sleeps; burns its CPU when idle [default: 0]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Spin {
        Spin(0)
    }

    fn naive() -> Spin {
        Spin(0)
    }
}
