//! What an experiment needs of a machine: one window at a time, with or without a virtual speed-up, and its raw counts.
//!
//! The experiment (`run`) knows a target through [`Rig`] alone: over a live process, or over a simulated one whose truth
//! is known. A rig never interprets what it counts, and an experiment never touches a process.

pub mod progress;
pub mod site;
pub mod window;

use std::time::Duration;

use dyno_record::causal::SlowedAt;

use crate::error::Error;
use window::Window;

/// What is done to the target during a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Treatment {
    /// Nothing: everything is attached, no thread is paused.
    Nothing,
    /// Others pause whenever a sample lies in the site.
    SpeedUp {
        /// Index of the site.
        site: usize,
        /// The pause as a share of the sampling period.
        percent: u32,
    },
    /// The site is made longer, really.
    SlowDown {
        /// Index of the site.
        site: usize,
        /// At each call of it, or at each sample in it.
        at: SlowedAt,
        /// By so much.
        ns: u64,
    },
}

/// What the rig's programs in the kernel took for a while, with everything attached and no thread delayed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hooks {
    /// Time of all CPUs of the machine meanwhile.
    pub machine_ns: u64,
    /// How long it was by the clock.
    pub length_ns: u64,
    /// What each looks at, how long it ran on all CPUs together, and how often.
    pub ran: Vec<(&'static str, u64, u64)>,
}

/// How threads are paused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// On their way back to user mode, preemptible.
    TaskWork,
    /// Inside the sample's program, with interrupts off, at most a millisecond at a time.
    SpinInSample,
}

/// How long a treatment is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Before its window opens, at least: until the target has come to rest.
    pub settle: Duration,
    /// While it is counted.
    pub length: Duration,
}

impl Span {
    /// Both.
    #[must_use]
    pub fn whole(self) -> Duration {
        self.settle + self.length
    }
}

/// A target under experiment.
pub trait Rig {
    /// Runs one window: settles, counts, cools off. With [`Treatment::Nothing`] all hooks are attached and no thread is
    /// delayed.
    ///
    /// # Errors
    /// [`Error::Ended`] when the target is gone.
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error>;

    /// A window with nothing attached but the progress counter: beside others it says what watching costs.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn detached(&mut self, span: Span) -> Result<Window, Error>;

    /// What its programs in the kernel take, watched for `length`; `None` where that is not counted.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn hooks(&mut self, _length: Duration) -> Result<Option<Hooks>, Error> {
        Ok(None)
    }

    /// The control: a window in which nothing is faster and all threads alike owe pauses, `percent` of the time; `None`
    /// where that cannot be done. Progress that is made by the target becomes slower by just that, and its effective time
    /// stays: what differs is no effect of anything, but pauses that are taken for one.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn alike(&mut self, _percent: u32, _span: Span) -> Result<Option<Window>, Error> {
        Ok(None)
    }

    /// How often the scheduler has kept the target from its CPUs because a quota was used up; `None` where nobody counts it.
    fn throttled(&self) -> Option<u64> {
        None
    }

    /// What the interrupt of a sample takes from the thread that it hits, where that was measured.
    fn interrupt_ns(&self) -> Option<u64> {
        None
    }

    /// Share of the target's samples in loops that only wait, percent, wherever they lie.
    fn spinning_percent(&self) -> f64 {
        0.0
    }

    /// Time between samples of one CPU.
    fn period_ns(&self) -> u64;

    /// Samples come twice as often from here on and pauses are half as long, where that costs the target little enough.
    fn sample_finely(&mut self) {}

    /// How threads are paused.
    fn pause(&self) -> Pause;

    /// Calls of a site per second; `None` where its calls cannot be counted, or there are none to count.
    ///
    /// # Errors
    /// As [`Rig::window`].
    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error>;
}
