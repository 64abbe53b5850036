//! The dial `pin`.

use super::dial::{About, Dial, Scope, words};
use std::num::NonZeroU32;

/// Whether a worker is bound to a CPU.
///
/// ```
/// use dyno_engine::{Dials, Pin};
///
/// let pin: Pin = Dials::default().pin;
/// assert_eq!(pin.to_string().parse(), Ok(pin));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pin {
    /// The scheduler decides.
    None,
    /// Worker k runs on the k-th allowed CPU.
    Cpu,
}

words!(Pin { None = "none", Cpu = "cpu" });

impl Dial for Pin {
    const ABOUT: About = About {
        name: "pin",
        value: "WORD",
        choices: "none or cpu",
        help: "Whether a worker is bound to a CPU: none or cpu [default: cpu with several workers, else none]",
        scope: Scope::Workers,
    };

    fn climbed(workers: NonZeroU32) -> Pin {
        if workers > NonZeroU32::MIN { Pin::Cpu } else { Pin::None }
    }

    fn naive() -> Pin {
        Pin::None
    }
}
