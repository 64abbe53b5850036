//! The climb's only way to the world: open a server, turn a dial, prove a change, measure a block, close.
//!
//! The lab implements [`Meter`] over real processes and the load generator; the tests implement it over a simulated world
//! with known effects and noise as measured. What goes wrong out there is a value, never a panic. What needs no server to
//! do anything ([`Clock`], [`Vitals`], [`Describe`]) and what only some climbs ask for ([`Look`]) stand beside it.

use dyno_measure::Histogram;
use dyno_measure::series::Block;
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
    /// The server could not be built.
    #[error("the server cannot be built: {step}: {why}")]
    Build {
        /// The command.
        step: String,
        /// Why not, with the end of what it printed.
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
    /// So few answers come that no block of load has enough of them to be measured by.
    #[error(
        "it is too slow to be measured: {per_second} answers a second under this load, and {needed} are needed"
    )]
    TooSlow {
        /// How many came.
        per_second: u64,
        /// How many must come.
        needed: u64,
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

    /// Whether it is the measuring that fails, and not the server.
    #[must_use]
    pub fn is_of_measuring(&self) -> bool {
        matches!(self, Self::ClockLost { .. } | Self::TooSlow { .. })
    }
}

/// What is to be opened.
#[derive(Debug)]
pub enum Opening<'o, A> {
    /// A server of the plan.
    Server(&'o ArmSpec),
    /// The smallest server that answers what another one answers, byte for byte.
    Floor {
        /// The server whose answer it learns.
        like: &'o A,
        /// The load that its connections carry.
        load: &'o LoadSpec,
    },
}

/// The world, as far as a climb changes and measures it.
pub trait Meter: Clock {
    /// A live server with its connections open.
    type Arm: Vitals;

    /// Builds what the server of a setting is started from, where the plan builds it and it is not built yet. Asked before
    /// any server of a comparison lives: connections that are idle for as long as a compiler runs may be closed.
    ///
    /// # Errors
    /// When a step of the build fails.
    fn build(&mut self, setting: &Setting) -> Result<(), Trouble>;

    /// Starts a server, waits until it is ready, checks its answers, warms it up.
    ///
    /// # Errors
    /// Whatever keeps it from answering rightly.
    fn open(&mut self, what: Opening<'_, Self::Arm>) -> Result<Self::Arm, Trouble>;

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

    /// Ends a server and waits until all of it is gone.
    fn close(&mut self, arm: Self::Arm);
}

/// Time.
pub trait Clock {
    /// Monotonic time, ns.
    fn now_ns(&self) -> u64;
}

/// What can be seen of a live server without costing it anything.
pub trait Vitals {
    /// What it holds of the memory.
    fn memory(&self) -> Memory;

    /// User and system time so far, in ticks; `None` when unknown.
    fn user_system_ticks(&self) -> Option<(u64, u64)>;

    /// The clock that its CPU time is read from, in words.
    fn clock(&self) -> String;
}

/// Memory, as far as a climb must know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident memory of a server, all its processes, shared pages counted once, bytes; 0 when unknown.
    pub server_bytes: u64,
    /// What could be taken beside it without swapping, bytes.
    pub left_bytes: u64,
}

/// Looks into servers, to see why a rung helps. Only climbs that are asked for it do so.
pub trait Look: Meter {
    /// Runs load on the server for about this long and says where its CPU time went. It costs the server time: nothing is
    /// measured meanwhile.
    ///
    /// # Errors
    /// In words, when it cannot be profiled here.
    fn profile(&mut self, arm: &mut Self::Arm, for_ns: u64) -> Result<Profile, String>;
}

/// Says how anyone comes to a setting.
pub trait Describe {
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
