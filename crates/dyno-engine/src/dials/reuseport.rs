//! The dial `reuseport`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// How connections are spread over workers.
///
/// ```
/// use dyno_engine::{Dials, Reuseport};
///
/// let reuseport: Reuseport = Dials::default().reuseport;
/// assert_eq!(reuseport.to_string().parse(), Ok(reuseport));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuseport {
    /// One listener shared by all workers.
    Off,
    /// A listener per worker; the kernel hashes the addresses (SO_REUSEPORT).
    Hash,
    /// A listener per worker; the CPU that took the packet chooses (SO_ATTACH_REUSEPORT_CBPF).
    Cpu,
}

words!(Reuseport { Off = "off", Hash = "hash", Cpu = "cpu" });

impl Dial for Reuseport {
    const ABOUT: About = About {
        name: "reuseport",
        value: "WORD",
        choices: "off, hash or cpu",
        help: "How connections are spread over workers: off, hash or cpu [default: hash with several workers, else off]",
        scope: Scope::Workers,
    };

    fn climbed(workers: NonZeroU32) -> Reuseport {
        if workers > NonZeroU32::MIN { Reuseport::Hash } else { Reuseport::Off }
    }

    fn naive() -> Reuseport {
        Reuseport::Off
    }
}
