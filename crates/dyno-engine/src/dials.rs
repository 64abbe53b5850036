//! The dials: every choice of the server that the climb can turn, by name and by word.
//!
//! The command line and the climb's built-in plan speak these words; workers read the parsed choices once at start.
//! A dial is one file in this folder and one line in the list below.

mod body;
mod busy_poll;
mod calls;
mod congestion;
mod date;
pub(crate) mod dial;
mod headers;
mod log;
mod pin;
mod read;
mod replies;
mod reuseport;
mod send;
mod spin;
mod trigger;
mod workers;

pub use body::Body;
pub use busy_poll::BusyPoll;
pub use calls::Calls;
pub use congestion::Congestion;
pub use date::Date;
pub use dial::{About, Dial, DialError, Scope};
pub use headers::Headers;
pub use log::Log;
pub use pin::Pin;
pub use read::Read;
pub use replies::Replies;
pub use reuseport::Reuseport;
pub use send::Send;
pub use spin::Spin;
use std::num::NonZeroU32;
pub use trigger::Trigger;
pub use workers::Workers;

macro_rules! dials {
    ($($field:ident: $Type:ident),+ $(,)?) => {
        /// A value for each dial.
        ///
        /// `Dials::default()` is the setting that the climb reached; `Dials::naive()` is where it starts.
        ///
        /// ```
        /// # use dyno_engine::*;
        ///
        /// let dials = Dials { log: Log::Ring, ..Dials::default() };
        /// let server = Server::new().dials(dials);
        /// # let _ = server;
        /// ```
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Dials {
            $(#[doc = concat!("See [`", stringify!($Type), "`].")] pub $field: $Type),+
        }

        impl Dials {
            /// What is said of each dial, in the order of the manual.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert!(Dials::ABOUT.iter().any(|about| about.name == "log"));
            /// ```
            pub const ABOUT: &'static [About] = &[$($Type::ABOUT),+];

            /// The names of all dials, in the same order.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert!(Dials::NAMES.contains(&"spin"));
            /// ```
            pub const NAMES: &'static [&'static str] = &[$($Type::ABOUT.name),+];

            /// The climbed setting for this many workers: more than one get a listener and a CPU each.
            ///
            /// ```
            /// # use dyno_engine::*;
            ///
            /// let dials = Dials::for_workers(std::num::NonZeroU32::MIN);
            /// assert_eq!(dials.workers.get(), 1);
            /// ```
            #[must_use]
            pub fn for_workers(workers: NonZeroU32) -> Dials {
                Dials { $($field: $Type::climbed(workers)),+ }
            }

            /// What an ordinary first version does: where the climb starts.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert_ne!(Dials::naive().body, Dials::default().body);
            /// ```
            #[must_use]
            pub fn naive() -> Dials {
                Dials { $($field: $Type::naive()),+ }
            }

            /// Turns the dial called `name` to `word`.
            ///
            /// ```
            /// # use dyno_engine::*;
            ///
            /// let mut dials = Dials::default();
            /// dials.set("log", "ring")?;
            /// assert_eq!(dials.log, Log::Ring);
            /// assert!(dials.set("log", "loud").is_err());
            /// # Ok::<(), DialError>(())
            /// ```
            ///
            /// # Errors
            /// [`DialError`] when there is no such dial or it does not take this word; nothing is changed then.
            pub fn set(&mut self, name: &str, word: &str) -> Result<(), DialError> {
                $(if name == $Type::ABOUT.name {
                    self.$field = word.parse()?;
                    return Ok(());
                })+
                Err(DialError::UnknownDial { name: name.to_owned(), known: Dials::NAMES })
            }

            /// The word at which the dial called `name` stands; `None` when there is no such dial.
            ///
            /// ```
            /// # use dyno_engine::*;
            /// assert_eq!(Dials::default().get("log").as_deref(), Some("off"));
            /// ```
            #[must_use]
            pub fn get(&self, name: &str) -> Option<String> {
                $(if name == $Type::ABOUT.name {
                    return Some(self.$field.to_string());
                })+
                None
            }
        }
    };
}

dials! {
    log: Log,
    send: Send,
    calls: Calls,
    read: Read,
    trigger: Trigger,
    body: Body,
    headers: Headers,
    date: Date,
    replies: Replies,
    congestion: Congestion,
    spin: Spin,
    busy_poll: BusyPoll,
    workers: Workers,
    reuseport: Reuseport,
    pin: Pin,
}

impl Default for Dials {
    /// The climbed setting with a worker for each CPU that this process may use.
    fn default() -> Dials {
        Dials::for_workers(Workers::for_each_cpu().count())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_dial_reads_back_the_word_it_was_set_to() {
        let words = [
            ("log", "sync ring commit off"),
            ("send", "joined split"),
            ("calls", "recv-send read-write"),
            ("read", "once drain"),
            ("trigger", "level edge"),
            ("body", "outbox generic"),
            ("headers", "borrowed owned"),
            ("date", "second reply"),
            ("replies", "batch single"),
            ("congestion", "default reno"),
            ("spin", "0 200 1000000"),
            ("busy-poll", "0 200 1000000"),
            ("workers", "1 2 1024"),
            ("reuseport", "off hash cpu"),
            ("pin", "none cpu"),
        ];
        assert_eq!(words.map(|(name, _)| name), Dials::NAMES);
        let mut dials = Dials::naive();
        for (name, list) in words {
            for word in list.split(' ') {
                dials.set(name, word).unwrap();
                assert_eq!(dials.get(name).as_deref(), Some(word));
            }
        }
    }

    #[test]
    fn an_unknown_word_is_refused_with_the_words_that_are_taken() {
        let mut dials = Dials::naive();
        for (name, word) in [
            ("log", "Sync"),
            ("spin", "-1"),
            ("spin", "+1"),
            ("spin", "1000001"),
            ("workers", "0"),
            ("pin", ""),
        ] {
            let error = dials.set(name, word).unwrap_err();
            assert!(error.to_string().starts_with(&format!("dial {name} cannot be \"{word}\"")), "{error}");
        }
        assert_eq!(dials, Dials::naive());
        assert!(matches!(dials.set("colour", "red"), Err(DialError::UnknownDial { .. })));
        assert_eq!(dials.get("colour"), None);
    }

    #[test]
    fn several_workers_get_a_listener_and_a_cpu_each() {
        let one = Dials::for_workers(NonZeroU32::MIN);
        assert_eq!((one.reuseport, one.pin), (Reuseport::Off, Pin::None));
        let two = Dials::for_workers(NonZeroU32::new(2).unwrap());
        assert_eq!((two.reuseport, two.pin), (Reuseport::Hash, Pin::Cpu));
    }
}
