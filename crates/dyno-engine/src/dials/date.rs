//! The dial `date`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// When the Date header is formatted.
///
/// ```
/// use dyno_engine::{Dials, Date};
///
/// let date: Date = Dials::default().date;
/// assert_eq!(date.to_string().parse(), Ok(date));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Date {
    /// Once a second.
    Second,
    /// For every reply, with a clock call of its own.
    Reply,
}

words!(Date { Second = "second", Reply = "reply" });

impl Dial for Date {
    const ABOUT: About = About {
        name: "date",
        value: "WORD",
        choices: "second or reply",
        help: "The Date header is formatted once a second, or for every reply [default: second]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Date {
        Date::Second
    }

    fn naive() -> Date {
        Date::Reply
    }
}
