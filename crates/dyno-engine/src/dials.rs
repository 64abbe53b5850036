//! The dials: every choice of the server that the climb can turn, by name and by word.
//!
//! The command line and the climb's built-in plan speak these words; workers read the parsed choices once at start.
//! Nothing here looks at the machine except `Dials::default`, which counts the CPUs that this process may use.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The longest a worker may poll before it sleeps, in microseconds: one second. More is a busy loop by another name.
pub const SPIN_US_MAX: u32 = 1_000_000;

/// The most workers a server may have: the width of a `cpu_set_t` (sched_setaffinity(2)).
pub const WORKERS_MAX: u32 = 1_024;

/// Why a dial could not be set.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DialError {
    /// There is no dial of this name.
    #[error("no dial is called \"{name}\"; the dials are {}", Dials::NAMES.join(", "))]
    UnknownDial {
        /// The name as it was given.
        name: String,
    },
    /// The dial exists and does not know this word.
    #[error("dial {dial} cannot stand at \"{word}\"; it takes {choices}")]
    UnknownWord {
        /// The dial's name.
        dial: &'static str,
        /// The word as it was given.
        word: String,
        /// The words that it takes, in words.
        choices: &'static str,
    },
}

macro_rules! dial {
    ($(#[$doc:meta])* $name:ident, $dial:literal, $choices:literal { $($(#[$word_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $name {
            $($(#[$word_doc])* $variant),+
        }

        impl $name {
            /// Every position of this dial, in the order of its words.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];
        }

        impl FromStr for $name {
            type Err = DialError;

            fn from_str(word: &str) -> Result<$name, DialError> {
                match word {
                    $($word => Ok($name::$variant),)+
                    _ => Err(DialError::UnknownWord { dial: $dial, word: word.to_owned(), choices: $choices }),
                }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($name::$variant => $word),+ })
            }
        }
    };
}

dial! {
    /// How the access log is written.
    Log, "log", "sync, ring or off" {
        /// One `write(2)` per request, by the worker that answers it.
        Sync = "sync",
        /// Into a ring in shared memory, written by one other process or thread.
        Ring = "ring",
        /// No access log.
        Off = "off",
    }
}

dial! {
    /// Whether the head and the body of a reply leave together.
    Send, "send", "joined or split" {
        /// Head and body in one send.
        Joined = "joined",
        /// The head in one send, the body in a second one.
        Split = "split",
    }
}

dial! {
    /// Which system calls move the bytes.
    Calls, "calls", "recv-send or read-write" {
        /// `recv(2)` and `send(2)`, which go straight to the socket.
        RecvSend = "recv-send",
        /// `read(2)` and `write(2)`, which pass the file layers first.
        ReadWrite = "read-write",
    }
}

dial! {
    /// When a worker stops reading from a connection.
    Read, "read", "once or drain" {
        /// A read that did not fill the buffer was the last one.
        Once = "once",
        /// Reads go on until the kernel says that there is nothing.
        Drain = "drain",
    }
}

dial! {
    /// How the kernel reports readiness (epoll(7)).
    Trigger, "trigger", "level or edge" {
        /// As long as there is something to read.
        Level = "level",
        /// When something arrives.
        Edge = "edge",
    }
}

dial! {
    /// How a reply is put together.
    Body, "body", "outbox or generic" {
        /// Encoded straight into the shared send buffer from pieces made beforehand.
        Outbox = "outbox",
        /// The way of a first version: a string for the body, a list of strings for the headers, formatted and concatenated.
        Generic = "generic",
    }
}

dial! {
    /// How a handler sees the request's headers.
    Headers, "headers", "borrowed or owned" {
        /// As slices of the receive buffer.
        Borrowed = "borrowed",
        /// Copied into a map with lower-cased names before the handler runs.
        Owned = "owned",
    }
}

dial! {
    /// When the Date header is formatted.
    Date, "date", "second or reply" {
        /// Once a second.
        Second = "second",
        /// For every reply, with a clock call of its own.
        Reply = "reply",
    }
}

dial! {
    /// When replies to pipelined requests leave.
    Replies, "replies", "batch or single" {
        /// All replies of one connection's turn together.
        Batch = "batch",
        /// Each reply as soon as it is made.
        Single = "single",
    }
}

dial! {
    /// How connections are spread over workers.
    Reuseport, "reuseport", "off, hash or cpu" {
        /// One listener shared by all workers.
        Off = "off",
        /// A listener per worker; the kernel hashes the addresses (SO_REUSEPORT).
        Hash = "hash",
        /// A listener per worker; the CPU that took the packet chooses (SO_ATTACH_REUSEPORT_CBPF).
        Cpu = "cpu",
    }
}

dial! {
    /// Whether a worker is bound to a CPU.
    Pin, "pin", "none or cpu" {
        /// The scheduler decides.
        None = "none",
        /// Worker k runs on the k-th allowed CPU.
        Cpu = "cpu",
    }
}

/// The congestion control of accepted connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Congestion {
    /// What the kernel uses (`net.ipv4.tcp_congestion_control`).
    Default,
    /// A named algorithm, such as `reno`.
    Named(String),
}

impl FromStr for Congestion {
    type Err = DialError;

    fn from_str(word: &str) -> Result<Congestion, DialError> {
        // TCP_CA_NAME_MAX is 16 with its ending zero (include/net/tcp.h).
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        match word {
            "default" => Ok(Congestion::Default),
            _ if !word.is_empty() && word.len() < 16 && word.bytes().all(plain) => {
                Ok(Congestion::Named(word.to_owned()))
            }
            _ => Err(unknown_word("congestion", word, "default or the name of an algorithm")),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Congestion::Default => f.pad("default"),
            Congestion::Named(name) => f.pad(name),
        }
    }
}

/// A value for each dial.
///
/// `Dials::default()` is the setting that the climb reached; `Dials::naive()` is where it starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dials {
    /// How the access log is written.
    pub log: Log,
    /// Whether head and body leave together.
    pub send: Send,
    /// Which system calls move the bytes.
    pub calls: Calls,
    /// When a worker stops reading.
    pub read: Read,
    /// How readiness is reported.
    pub trigger: Trigger,
    /// How a reply is put together.
    pub body: Body,
    /// How a handler sees headers.
    pub headers: Headers,
    /// When the Date header is formatted.
    pub date: Date,
    /// When replies to pipelined requests leave.
    pub replies: Replies,
    /// The congestion control of accepted connections.
    pub congestion: Congestion,
    /// Microseconds of polling before a worker sleeps; 0 is off; at most [`SPIN_US_MAX`].
    pub spin: u32,
    /// How many workers serve; at most [`WORKERS_MAX`].
    pub workers: NonZeroU32,
    /// How connections are spread over workers.
    pub reuseport: Reuseport,
    /// Whether a worker is bound to a CPU.
    pub pin: Pin,
}

impl Default for Dials {
    /// The climbed setting with a worker for each CPU that this process may use.
    fn default() -> Dials {
        let cpus = dyno_sys::affinity::allowed().len().clamp(1, WORKERS_MAX as usize);
        let workers = u32::try_from(cpus).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        Dials::for_workers(workers)
    }
}

impl Dials {
    /// The names of all dials, in the order of the manual.
    pub const NAMES: [&'static str; 14] = [
        "log",
        "send",
        "calls",
        "read",
        "trigger",
        "body",
        "headers",
        "date",
        "replies",
        "congestion",
        "spin",
        "workers",
        "reuseport",
        "pin",
    ];

    /// The climbed setting for this many workers: more than one get a listener and a CPU each.
    #[must_use]
    pub fn for_workers(workers: NonZeroU32) -> Dials {
        let several = workers > NonZeroU32::MIN;
        Dials {
            log: Log::Off,
            send: Send::Joined,
            calls: Calls::RecvSend,
            read: Read::Once,
            trigger: Trigger::Level,
            body: Body::Outbox,
            headers: Headers::Borrowed,
            date: Date::Second,
            replies: Replies::Batch,
            congestion: Congestion::Default,
            spin: 0,
            workers,
            reuseport: if several { Reuseport::Hash } else { Reuseport::Off },
            pin: if several { Pin::Cpu } else { Pin::None },
        }
    }

    /// What an ordinary first version does: where the climb starts.
    #[must_use]
    pub fn naive() -> Dials {
        Dials {
            log: Log::Sync,
            send: Send::Split,
            calls: Calls::ReadWrite,
            read: Read::Drain,
            trigger: Trigger::Level,
            body: Body::Generic,
            headers: Headers::Owned,
            date: Date::Reply,
            replies: Replies::Single,
            congestion: Congestion::Default,
            spin: 0,
            workers: NonZeroU32::MIN,
            reuseport: Reuseport::Off,
            pin: Pin::None,
        }
    }

    /// Turns the dial called `name` to `word`.
    ///
    /// # Errors
    /// [`DialError`] when there is no such dial or it does not take this word; nothing is changed then.
    pub fn set(&mut self, name: &str, word: &str) -> Result<(), DialError> {
        match name {
            "log" => self.log = word.parse()?,
            "send" => self.send = word.parse()?,
            "calls" => self.calls = word.parse()?,
            "read" => self.read = word.parse()?,
            "trigger" => self.trigger = word.parse()?,
            "body" => self.body = word.parse()?,
            "headers" => self.headers = word.parse()?,
            "date" => self.date = word.parse()?,
            "replies" => self.replies = word.parse()?,
            "congestion" => self.congestion = word.parse()?,
            "spin" => self.spin = parse_spin(word)?,
            "workers" => self.workers = parse_workers(word)?,
            "reuseport" => self.reuseport = word.parse()?,
            "pin" => self.pin = word.parse()?,
            _ => return Err(DialError::UnknownDial { name: name.to_owned() }),
        }
        Ok(())
    }

    /// The word at which the dial called `name` stands; `None` when there is no such dial.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<String> {
        Some(match name {
            "log" => self.log.to_string(),
            "send" => self.send.to_string(),
            "calls" => self.calls.to_string(),
            "read" => self.read.to_string(),
            "trigger" => self.trigger.to_string(),
            "body" => self.body.to_string(),
            "headers" => self.headers.to_string(),
            "date" => self.date.to_string(),
            "replies" => self.replies.to_string(),
            "congestion" => self.congestion.to_string(),
            "spin" => self.spin.to_string(),
            "workers" => self.workers.to_string(),
            "reuseport" => self.reuseport.to_string(),
            "pin" => self.pin.to_string(),
            _ => return None,
        })
    }
}

/// Parses the spin dial: whole microseconds, at most [`SPIN_US_MAX`].
///
/// # Errors
/// [`DialError::UnknownWord`] for anything else.
pub fn parse_spin(word: &str) -> Result<u32, DialError> {
    let spin = digits(word).filter(|&us| us <= SPIN_US_MAX);
    spin.ok_or_else(|| unknown_word("spin", word, "microseconds from 0 (off) to 1000000"))
}

fn parse_workers(word: &str) -> Result<NonZeroU32, DialError> {
    let workers = digits(word).filter(|&count| count <= WORKERS_MAX).and_then(NonZeroU32::new);
    workers.ok_or_else(|| unknown_word("workers", word, "a number from 1 to 1024"))
}

/// `u32::from_str` takes a plus sign; a dial takes digits only, so that what is shown is what was given.
fn digits(word: &str) -> Option<u32> {
    word.bytes().all(|byte| byte.is_ascii_digit()).then(|| word.parse().ok()).flatten()
}

fn unknown_word(dial: &'static str, word: &str, choices: &'static str) -> DialError {
    DialError::UnknownWord { dial, word: word.to_owned(), choices }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn every_dial_reads_back_the_word_it_was_set_to() {
        let words = [
            ("log", "sync ring off"),
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
            assert!(
                error.to_string().starts_with(&format!("dial {name} cannot stand at \"{word}\"")),
                "{error}"
            );
        }
        assert_eq!(dials, Dials::naive());
        assert!(matches!(dials.set("colour", "red"), Err(DialError::UnknownDial { .. })));
        assert_eq!(dials.get("colour"), None);
    }

    #[test]
    fn an_algorithm_name_that_the_kernel_could_not_hold_is_refused() {
        for word in ["", "a-name-of-sixteen", "re no", "x\n"] {
            assert!(word.parse::<Congestion>().is_err(), "{word:?}");
        }
    }

    #[test]
    fn several_workers_get_a_listener_and_a_cpu_each() {
        let one = Dials::for_workers(NonZeroU32::MIN);
        assert_eq!((one.reuseport, one.pin), (Reuseport::Off, Pin::None));
        let two = Dials::for_workers(NonZeroU32::new(2).unwrap());
        assert_eq!((two.reuseport, two.pin), (Reuseport::Hash, Pin::Cpu));
    }
}
