//! What a supervisor tells while a server runs: values for whoever started it, who may print them.

use super::logs::LogTrouble;
use crate::error::EngineError;
use dyno_sys::Pid;
use dyno_sys::child::Exit;
use dyno_sys::signal::Signal;
use dyno_sys::socket::Addr;
use std::path::PathBuf;

/// What happens while a server runs.
#[derive(Debug)]
pub enum Event {
    /// All workers are ready.
    Listening {
        /// Where, with the ports that the kernel chose.
        addrs: Vec<Addr>,
        /// The workers, in their order.
        pids: Vec<Pid>,
    },
    /// The process for metrics listens; told after `Listening`.
    Metrics {
        /// Where, with the port that the kernel chose.
        addr: Addr,
    },
    /// The process for metrics ended; it is replaced.
    MetricsDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// A worker ended without being told to.
    WorkerDied {
        /// Which.
        pid: Pid,
        /// How.
        exit: Exit,
        /// Nanoseconds until its replacement is started.
        replaced_in_ns: u64,
    },
    /// A worker does nothing: it was stopped, or a handler does not come back. Told once, where metrics are served; the others
    /// accept in its place.
    WorkerStuck {
        /// Which.
        pid: Pid,
        /// For how many nanoseconds, and a second more at most.
        for_ns: u64,
    },
    /// It works again.
    WorkerGetsOn {
        /// Which.
        pid: Pid,
    },
    /// A worker was told alone to drain, and did.
    WorkerDrained {
        /// Which.
        pid: Pid,
    },
    /// A replacement is ready.
    WorkerReplaced {
        /// The dead one.
        old: Pid,
        /// The new one.
        new: Pid,
    },
    /// A replacement could not be started; it will be tried again.
    WorkerNotReplaced {
        /// The reason.
        why: EngineError,
    },
    /// The process that writes the access log ended; it is replaced.
    LogWriterDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// A folder was read, before anything was served.
    Content {
        /// Which.
        folder: PathBuf,
        /// How many files of it are served.
        files: usize,
        /// How many could not be read.
        unread: usize,
    },
    /// The process that reads the folders ended; it is replaced, and what was read goes on being served.
    BuilderDied {
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// A folder cannot be read any more; what was read of it goes on being served.
    ContentStale {
        /// The reason.
        why: String,
    },
    /// A worker can hold fewer connections than it was asked to: descriptors are limited.
    Fitted {
        /// How many were asked for.
        asked: usize,
        /// How many a worker can hold.
        fitting: usize,
    },
    /// Workers accept no more: they hold as many connections as they can. Told once a minute while it goes on.
    Full {
        /// How many workers.
        workers: usize,
    },
    /// The supervisor is alive; told every `alive_ns`.
    Alive,
    /// A signal came that means nothing here.
    SignalIgnored {
        /// Which.
        signal: Signal,
    },
    /// The access log does not take every line; told once, until [`Event::LogRecovered`].
    LogTrouble {
        /// What is wrong with it.
        why: LogTrouble,
    },
    /// The access log takes every line again.
    LogRecovered {
        /// How many were lost since it did not.
        lost: u64,
    },
    /// A log was opened anew, as SIGUSR1 asks for; it is written there from now on.
    LogReopened {
        /// Where.
        path: PathBuf,
    },
    /// A log could not be opened anew; the file that was open goes on being written.
    LogNotReopened {
        /// The reason.
        why: EngineError,
    },
    /// Connections hold more than `buffer_bytes_max`; told once a minute while it goes on.
    MemoryShort {
        /// Bodies that were refused since this was told last.
        refused: u64,
        /// Connections that were cut since then.
        cut: u64,
    },
    /// No more connections are accepted; what was accepted is answered.
    Draining {
        /// Within so many nanoseconds; what is left then is cut.
        within_ns: u64,
    },
    /// A generation could not start. Told in its process.
    NotStarted {
        /// The reason.
        error: EngineError,
    },
    /// The first generation serves, or one in the place of one whose supervisor died.
    Ready {
        /// How many workers it has.
        workers: usize,
    },
    /// The supervisor of the generation that serves has ended, and its workers with it; it is replaced.
    SupervisorDied {
        /// Which.
        pid: Pid,
        /// How.
        exit: Exit,
        /// How soon it is replaced; 0 unless it keeps dying.
        replaced_in_ns: u64,
    },
    /// The kernel cannot keep processes from files (Landlock): filters of system calls alone confine them.
    FilesOpen,
    /// The settings are read again.
    Reloading,
    /// New settings are in force, and the workers of the old ones retire.
    Reloaded {
        /// Which generation serves, from 1.
        generation: u64,
        /// How many workers it has.
        workers: usize,
        /// Settings that differ and are not in force: sockets that were bound before stay as they are.
        kept: Vec<&'static str>,
    },
    /// New settings were refused; those before them stay in force.
    NotReloaded {
        /// The reason.
        why: String,
    },
    /// A generation that was replaced has answered everything, or its time was over.
    Retired {
        /// Which, from 1.
        generation: u64,
        /// Whether it answered everything.
        drained: Drained,
    },
    /// Another program was started that is to take over.
    HandingOver {
        /// Its process.
        pid: Pid,
    },
    /// The other program serves; what was accepted here is answered.
    HandedOver {
        /// Its process.
        pid: Pid,
    },
    /// The other program cannot take over; this one goes on.
    NotHandedOver {
        /// The reason.
        why: String,
    },
}

/// Whether everything that was accepted was answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drained {
    /// Every worker ended on its own within the time given.
    Wholly,
    /// The time was over, or a second signal came: connections were cut.
    Cut,
}
