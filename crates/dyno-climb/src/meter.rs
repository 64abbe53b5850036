//! The climb's only way to the world: open a server, prove a change, measure a block, close.
//!
//! The binary implements [`Meter`] over real processes and the load generator; the tests implement it over a simulated
//! world with known effects and noise as measured. What goes wrong out there is a value, never a panic.

use dyno_measure::Histogram;
use dyno_measure::series::Block;
use dyno_record::causal::Causal;
use dyno_record::profile::Profile;

use crate::dial::Setting;
use crate::load::LoadSpec;
use crate::proof::{Proof, Reading};

/// What an arm is to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArmSpec {
    /// Where its dials stand.
    pub setting: Setting,
    /// The load that its connections carry.
    pub load: LoadSpec,
}

/// How long a block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Length {
    /// 5 ms of settling, 25 ms measured, lengthened until 500 replies, 1 s at most.
    Short,
    /// Ten times as long: for servers that work in bursts.
    Long,
}

/// A measured block with its latencies.
#[derive(Debug, Clone)]
pub struct Measured {
    /// The figures.
    pub block: Block,
    /// Latencies of the measured replies.
    pub latencies: Histogram,
}

/// What went wrong in the world.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The server could not be started at all.
    #[error("cannot start {command}: {why}")]
    Launch {
        /// The program.
        command: String,
        /// Why not.
        why: String,
    },
    /// The server ended.
    #[error("the server died: {status}{}", last_words(stderr_tail))]
    Died {
        /// How it ended.
        status: String,
        /// The end of what it printed.
        stderr_tail: String,
    },
    /// The server lives, and answers nothing.
    #[error("the server hung: no answer within {waited_ms} ms")]
    Hung {
        /// How long it was waited for.
        waited_ms: u64,
    },
    /// An answer was not the right one.
    #[error("wrong answer: expected {expected}, got {got}")]
    WrongAnswer {
        /// What a right one is.
        expected: String,
        /// What came.
        got: String,
    },
    /// Nobody listens where the plan says.
    #[error("nobody listens on {address} after {waited_ms} ms{}", last_words(stderr_tail))]
    NotListening {
        /// Where.
        address: String,
        /// How long it was waited for.
        waited_ms: u64,
        /// The end of what the server printed.
        stderr_tail: String,
    },
    /// The server's CPU clock cannot be read.
    #[error("the server's CPU clock cannot be read: {why}")]
    ClockLost {
        /// Why.
        why: String,
    },
    /// A host setting could not be written or put back.
    #[error("{0}")]
    Knob(String),
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The keeper is gone: nothing can be started or stopped any more.
    #[error("{0}")]
    Lost(String),
}

fn last_words(stderr_tail: &str) -> String {
    if stderr_tail.trim().is_empty() {
        String::new()
    } else {
        format!("; its last words: {}", stderr_tail.trim())
    }
}

impl Trouble {
    /// Whether it ends the climb rather than one rung.
    #[must_use]
    pub fn ends_the_climb(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Lost(_))
    }
}

/// The world, as far as a climb sees it.
pub trait Meter {
    /// A live server with its connections open.
    type Arm;

    /// Starts a server, waits until it is ready, checks its answers, warms it up.
    ///
    /// # Errors
    /// Whatever keeps it from answering rightly.
    fn open(&mut self, spec: &ArmSpec) -> Result<Self::Arm, Trouble>;

    /// Starts the smallest server that answers what `like` answers, byte for byte.
    ///
    /// # Errors
    /// As [`Meter::open`].
    fn open_floor(&mut self, like: &Self::Arm, load: &LoadSpec) -> Result<Self::Arm, Trouble>;

    /// Turns a live dial of a running server.
    ///
    /// # Errors
    /// When the server refuses or is gone.
    fn turn(&mut self, arm: &mut Self::Arm, setting: &Setting, dial: &str) -> Result<(), Trouble>;

    /// Reads what a proof wants to know.
    ///
    /// # Errors
    /// When the server is gone; what cannot be read is a [`Reading`] that says so.
    fn prove(&mut self, arm: &mut Self::Arm, proof: &Proof) -> Result<Reading, Trouble>;

    /// Runs one block of load.
    ///
    /// # Errors
    /// Death, silence or a wrong answer.
    fn block(&mut self, arm: &mut Self::Arm, length: Length) -> Result<Measured, Trouble>;

    /// Resident memory of the server, all its processes, shared pages counted once, bytes; 0 when unknown.
    fn memory_bytes(&mut self, arm: &Self::Arm) -> u64;

    /// Runs load on the server for about this long and says where its CPU time went. It costs the server time: nothing is
    /// measured meanwhile.
    ///
    /// # Errors
    /// In words, when it cannot be profiled here.
    fn profile(&mut self, arm: &mut Self::Arm, for_ns: u64) -> Result<Profile, String>;

    /// Experiments on the server under its load for this long, in an order that the seed decides: what it would bring if
    /// functions of it were faster. Nothing else is measured meanwhile, and the server is not used again.
    ///
    /// # Errors
    /// In words, when it cannot be experimented with.
    fn causal(&mut self, arm: &mut Self::Arm, for_ns: u64, seed: u64) -> Result<Causal, String>;

    /// Memory that could be taken without swapping, bytes.
    fn memory_left_bytes(&mut self) -> u64;

    /// User and system time of the server so far, in ticks; `None` when unknown.
    fn user_system_ticks(&mut self, arm: &Self::Arm) -> Option<(u64, u64)>;

    /// The clock that its CPU is read from, in words.
    fn clock(&self, arm: &Self::Arm) -> String;

    /// Ends a server and waits until all of it is gone.
    fn close(&mut self, arm: Self::Arm);

    /// Monotonic time, ns.
    fn now_ns(&self) -> u64;

    /// CPUs that servers run on.
    fn server_cpus(&self) -> usize;

    /// Command line, environment and shell commands that reproduce a setting.
    fn describe(&self, setting: &Setting) -> Described;
}

/// A setting as commands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Described {
    /// The server's command line.
    pub argv: Vec<String>,
    /// Variables to set for it.
    pub env: Vec<String>,
    /// Shell commands that apply it.
    pub apply: Vec<String>,
}
