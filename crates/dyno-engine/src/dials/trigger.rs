//! The dial `trigger`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// How the kernel reports readiness (epoll(7)).
///
/// ```
/// use dyno_engine::{Dials, Trigger};
///
/// let trigger: Trigger = Dials::default().trigger;
/// assert_eq!(trigger.to_string().parse(), Ok(trigger));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// As long as there is something to read.
    Level,
    /// When something arrives.
    Edge,
}

words!(Trigger { Level = "level", Edge = "edge" });

impl Dial for Trigger {
    const ABOUT: About = About {
        name: "trigger",
        value: "WORD",
        choices: "level or edge",
        help: "epoll's trigger: level or edge [default: level]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Trigger {
        Trigger::Level
    }

    fn naive() -> Trigger {
        Trigger::Level
    }
}
