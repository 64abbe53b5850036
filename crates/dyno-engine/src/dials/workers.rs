//! The dial `workers`.

use super::dial::{About, Dial, DialError, Scope, digits, unknown_word};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// How many workers serve.
///
/// ```
/// # use dyno_engine::*;
/// assert!(Workers::for_each_cpu().get() >= 1);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Workers(NonZeroU32);

impl Workers {
    /// The most workers a server may have: the width of a `cpu_set_t` (sched_setaffinity(2)).
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(Workers::for_each_cpu().get() <= Workers::MAX as usize);
    /// ```
    pub const MAX: u32 = 1_024;

    /// A worker for each CPU that this process may use.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let dials = Dials::for_workers(Workers::for_each_cpu().count());
    /// # let _ = dials;
    /// ```
    #[must_use]
    pub fn for_each_cpu() -> Workers {
        let cpus = u32::try_from(dyno_sys::affinity::allowed().len()).unwrap_or(Workers::MAX);
        Workers(NonZeroU32::new(cpus.min(Workers::MAX)).unwrap_or(NonZeroU32::MIN))
    }

    /// How many.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(Workers::for_each_cpu().count().get() >= 1);
    /// ```
    #[must_use]
    pub fn count(self) -> NonZeroU32 {
        self.0
    }

    /// How many, to count or to size something with.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// assert!(Dials::default().workers.get() >= 1);
    /// ```
    #[must_use]
    pub fn get(self) -> usize {
        self.0.get() as usize
    }
}

impl FromStr for Workers {
    type Err = DialError;

    fn from_str(word: &str) -> Result<Workers, DialError> {
        let count = digits(word).filter(|&count| count <= Workers::MAX).and_then(NonZeroU32::new);
        count.map(Workers).ok_or_else(|| unknown_word::<Workers>(word))
    }
}

impl fmt::Display for Workers {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, out)
    }
}

impl Dial for Workers {
    const ABOUT: About = About {
        name: "workers",
        value: "N",
        choices: "a number from 1 to 1024",
        help: "Worker processes [default: one for each CPU that may be used]",
        scope: Scope::Workers,
    };

    fn climbed(workers: NonZeroU32) -> Workers {
        Workers(workers.min(NonZeroU32::new(Workers::MAX).unwrap_or(NonZeroU32::MAX)))
    }

    fn naive() -> Workers {
        Workers(NonZeroU32::MIN)
    }
}
