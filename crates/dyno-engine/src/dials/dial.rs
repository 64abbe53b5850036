//! What a dial is: a name, the words it takes, and where it stands at the start and at the end of the climb.
//!
//! Each dial has a file of its own beside this one; `dials.rs` lists them. Nothing here knows a single dial.

use std::fmt::Display;
use std::num::NonZeroU32;
use std::str::FromStr;

/// Why a dial could not be set.
///
/// ```
/// # use dyno_engine::*;
///
/// let refused = Dials::default().set("log", "loud");
/// assert!(matches!(refused, Err(DialError::UnknownWord { .. })));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// There is no dial of this name.
    #[error("no dial is called \"{name}\"; the dials are {}", known.join(", "))]
    UnknownDial {
        /// The name as it was given.
        name: String,
        /// The names of all dials.
        known: &'static [&'static str],
    },
    /// The dial exists and does not know this word.
    #[error("dial {dial} cannot be \"{word}\"; it takes {choices}")]
    UnknownWord {
        /// The dial's name.
        dial: &'static str,
        /// The word as it was given.
        word: String,
        /// The words that it takes, in words.
        choices: &'static str,
    },
}

/// What a dial acts on.
///
/// ```
/// # use dyno_engine::*;
/// assert!(Dials::ABOUT.iter().any(|about| about.scope == Dials::ABOUT[0].scope));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// How many workers there are, and which connections and CPUs they get.
    Workers,
    /// What one worker does for a request.
    Request,
}

/// What a command line or a manual says of a dial.
///
/// ```
/// # use dyno_engine::*;
/// let names: Vec<&str> = Dials::ABOUT.iter().map(|about: &About| about.name).collect();
/// assert_eq!(names, Dials::NAMES);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct About {
    /// Its name, which is its flag's as well.
    pub name: &'static str,
    /// What stands for its value in a help text.
    pub value: &'static str,
    /// The words that it takes, in words.
    pub choices: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// What it acts on.
    pub scope: Scope,
}

/// A choice that has a name and words.
///
/// ```
/// # use dyno_engine::*;
///
/// assert_eq!(<Log as Dial>::ABOUT.name, "log");
/// assert_ne!(Body::naive(), Body::climbed(std::num::NonZeroU32::MIN));
/// ```
pub trait Dial: Sized + Display + FromStr<Err = DialError> {
    /// What is said of it.
    const ABOUT: About;

    /// Where the climb ends, with this many workers.
    fn climbed(workers: NonZeroU32) -> Self;

    /// Where an ordinary first version stands.
    fn naive() -> Self;
}

/// A word that the dial does not take.
pub(crate) fn unknown_word<D: Dial>(word: &str) -> DialError {
    DialError::UnknownWord { dial: D::ABOUT.name, word: word.to_owned(), choices: D::ABOUT.choices }
}

/// `u32::from_str` takes a plus sign; a dial takes digits only, so that what is shown is what was given.
pub(crate) fn digits(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

/// Words for the positions of a dial that has a fixed number of them.
macro_rules! words {
    ($name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// Every position of this dial, in the order of its words.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert!(Log::ALL.contains(&Log::Ring));
            /// ```
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }

        impl std::str::FromStr for $name {
            type Err = $crate::dials::dial::DialError;

            fn from_str(word: &str) -> Result<$name, Self::Err> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err($crate::dials::dial::unknown_word::<$name>(word)),
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.pad(match self { $($name::$variant => $word),+ })
            }
        }
    };
}
pub(crate) use words;
