//! Who is experimented with, and how.

use std::time::Duration;

use dyno_sys::Pid;

use crate::causal::rig::Pause;

/// Between samples of one CPU. Shorter ones cost more than they are worth: an interrupt of a virtual machine takes up to 25 µs.
/// And no multiple of a tick, the kernel's or the hypervisor's: pauses begin with samples, and in step with them all ticks
/// of a run would fall into pauses, or none.
const PERIOD: Duration = Duration::from_micros(970);
/// Whether processes that the target starts belong to it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Children {
    /// They do, with those that it has now: workers of a server.
    Followed,
    /// Only the process itself.
    #[default]
    Strangers,
}

/// Who is experimented with, and how.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The process whose code and waits are tried.
    pub pid: Pid,
    /// Whether its children are tried with it.
    pub children: Children,
    /// Other processes whose threads pause and hand on credit: a client on this machine that waits for answers.
    pub participants: Vec<Pid>,
    /// Between samples of one CPU.
    pub period: Duration,
    /// How threads pause; the best that the kernel takes, where nothing is said.
    pub pause: Option<Pause>,
    /// Seed of the random times before windows.
    pub seed: u64,
}

impl Subject {
    /// A process alone.
    pub fn new(pid: Pid) -> Subject {
        Subject {
            pid,
            children: Children::Strangers,
            participants: Vec::new(),
            period: PERIOD,
            pause: None,
            seed: 1,
        }
    }
}
