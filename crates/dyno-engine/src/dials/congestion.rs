//! The dial `congestion`.

use super::dial::{About, Dial, DialError, Scope, unknown_word};
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;

/// The congestion control of accepted connections.
///
/// ```
/// use dyno_engine::{Congestion, Dials};
///
/// let congestion: Congestion = Dials::default().congestion;
/// assert_eq!(congestion.to_string().parse().as_ref(), Ok(&congestion));
/// ```
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
            _ => Err(unknown_word::<Congestion>(word)),
        }
    }
}

impl fmt::Display for Congestion {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Congestion::Default => out.pad("default"),
            Congestion::Named(name) => out.pad(name),
        }
    }
}

impl Dial for Congestion {
    const ABOUT: About = About {
        name: "congestion",
        value: "NAME",
        choices: "default or the name of an algorithm",
        help: "Congestion control of accepted connections: default, or its name [default: default]",
        scope: Scope::Request,
    };

    fn climbed(_: NonZeroU32) -> Congestion {
        Congestion::Default
    }

    fn naive() -> Congestion {
        Congestion::Default
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_name_that_the_kernel_could_not_hold_is_refused() {
        for word in ["", "a-name-of-sixteen", "re no", "x\n"] {
            assert!(word.parse::<Congestion>().is_err(), "{word:?}");
        }
    }
}
