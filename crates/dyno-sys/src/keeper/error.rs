//! Why the keeper could not do as asked: one enum for the module's edge.

use crate::Pid;
use std::ffi::OsString;
use std::io;

/// Why the keeper could not do as asked.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// It could not be forked.
    #[error("cannot start the keeper of processes")]
    Start {
        /// The kernel's word.
        source: io::Error,
    },
    /// A launch that no kernel could carry out.
    #[error("cannot launch: {why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
    /// The keeper was killed or closed: what it kept has been ended.
    #[error("the keeper of processes is gone, and everything it kept with it")]
    Gone,
    /// No answer came in time.
    #[error("the keeper of processes did not answer in time (asked to {operation})")]
    Late {
        /// What was asked.
        operation: &'static str,
    },
    /// The keeper itself was refused something.
    #[error("the keeper cannot {operation}")]
    Refused {
        /// What was asked.
        operation: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
    /// The child could not be made ready for its program.
    #[error("cannot launch {}: it cannot {step}", program.display())]
    Setup {
        /// The program.
        program: OsString,
        /// What failed, as words to follow "cannot".
        step: &'static str,
        /// The kernel's word.
        source: io::Error,
    },
    /// The program could not be run: not found, not executable …
    #[error("cannot run {}", program.display())]
    Exec {
        /// The program.
        program: OsString,
        /// The kernel's word.
        source: io::Error,
    },
    /// The child ended before it was released.
    #[error("{} ended before it was released", program.display())]
    Died {
        /// The program.
        program: OsString,
    },
    /// Not a process that this keeper launched.
    #[error("process {pid} was not launched here")]
    Unknown {
        /// Its number.
        pid: Pid,
    },
    /// Killed processes that would not end (in uninterruptible sleep).
    #[error("{left} processes of launch {pid} would not end")]
    Left {
        /// The launch.
        pid: Pid,
        /// How many.
        left: u64,
    },
}
