//! One live server with its connections open.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use dyno_climb::dial::{How, Setting};
use dyno_climb::meter::{ArmSpec, Memory, Trouble, Vitals};
use dyno_climb::plan::Plan;
use dyno_load::Placement;
use dyno_sys::clock::mono_ns;
use dyno_sys::socket::{self, Addr, Io, Ready};
use dyno_sys::{Pid, proc};

use super::clock::{Clock, Family};
use super::driver::Driver;
use super::exits::processes;

/// The end of an output that is shown when a server died, or a build failed: a screen of a compiler's words.
const TAIL_BYTES: u64 = 600;
/// How long a server may take to answer on its control socket.
const CONTROL_NS_MAX: u64 = 2_000_000_000;
/// Longest answer on the control socket; the counters are a fraction of it.
const CONTROL_BYTES_MAX: usize = 4_096;

/// A live server.
#[derive(Debug)]
pub struct Arm {
    pub(crate) spec: ArmSpec,
    /// The launched process.
    pub(crate) pid: Pid,
    /// Its parent under the keeper: whatever the launch started and left stays below it.
    pub(crate) warden: Pid,
    pub(crate) addr: Addr,
    pub(crate) port: u16,
    pub(crate) dir: PathBuf,
    pub(crate) clock: Clock,
    /// The load on it: on this thread when there is one load CPU, else on one thread per CPU.
    pub(crate) driver: Driver,
    pub(crate) control: Option<OwnedFd>,
    /// What it prints.
    pub(crate) output: File,
    /// Its processes when its last block ended, where the clock needs to know them.
    pub(crate) family: Option<Family>,
    /// Its clock when its last block ended; `None` before the first one.
    pub(crate) last_end_ns: Option<u64>,
    /// CPU that was accounted to blocks.
    pub(crate) seen_ns: u64,
}

impl Arm {
    /// All processes of the server, also those that left their parent (a daemon forks twice).
    pub(crate) fn processes(&self) -> Vec<Pid> {
        processes(self.warden)
    }

    /// The process that was launched.
    #[must_use]
    pub fn server(&self) -> Pid {
        self.pid
    }

    /// The end of what the server printed.
    pub(crate) fn output_tail(&self) -> String {
        tail(&self.output)
    }

    /// Turns a dial over the control socket; a host setting is not the server's business.
    pub(crate) fn turn_live(&self, plan: &Plan, setting: &Setting, dial: &str) -> Result<(), Trouble> {
        let dial = plan.dial(dial);
        if dial.how != How::Live {
            return Ok(());
        }
        let message = &plan.value(setting, dial).text;
        match self.ask(message)?.as_str() {
            "ok" => Ok(()),
            refused => Err(Trouble::WrongAnswer {
                expected: format!("ok to \"{message}\""),
                got: refused.to_owned(),
            }),
        }
    }

    /// One question on the control socket.
    pub(crate) fn ask(&self, question: &str) -> Result<String, Trouble> {
        let wrong = |got: &str| Trouble::WrongAnswer {
            expected: format!("an answer to \"{question}\""),
            got: got.into(),
        };
        let control =
            self.control.as_ref().ok_or_else(|| wrong("the plan gives this server no control socket"))?;
        if !matches!(socket::send(control, question.as_bytes()), Io::Done(_)) {
            return Err(wrong("the control socket is closed"));
        }
        match socket::wait_readable(control, mono_ns() + CONTROL_NS_MAX) {
            Ok(Ready::TimedOut) | Err(_) => {
                return Err(Trouble::Hung { waited_ms: CONTROL_NS_MAX / 1_000_000 });
            }
            Ok(_) => {}
        }
        let mut answer = [0; CONTROL_BYTES_MAX];
        match socket::recv(control, &mut answer) {
            Io::Done(n) => Ok(String::from_utf8_lossy(&answer[..n]).trim().to_owned()),
            _ => Err(wrong("the control socket is closed")),
        }
    }
}

impl Vitals for Arm {
    fn memory(&self) -> Memory {
        // Pages that its processes share count once; where that may not be read, their peaks are summed.
        let of = |pid| proc::pss_bytes(pid).or_else(|_| proc::rss_peak_bytes(pid)).ok();
        Memory {
            server_bytes: self.processes().into_iter().filter_map(of).sum(),
            // What cannot be read must not cut anything.
            left_bytes: proc::memory_left_bytes().unwrap_or(u64::MAX),
        }
    }

    fn user_system_ticks(&self) -> Option<(u64, u64)> {
        let ticks = self.processes().into_iter().filter_map(|pid| proc::user_system_ticks(pid).ok());
        ticks.reduce(|(user, system), (more_user, more_system)| (user + more_user, system + more_system))
    }

    fn clock(&self) -> String {
        self.clock.name().into()
    }
}

/// Where the load of a climb runs: this process is bound to its one load CPU, and needs no other thread then.
pub(crate) fn placement(load_cpus: &[usize], connections: usize) -> Placement {
    match load_cpus {
        [_] => Placement::Caller,
        _ => Placement::Pinned(load_cpus.to_vec()).at_most(connections),
    }
}

/// The last lines of a file that somebody else writes.
pub(crate) fn tail(file: &File) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = file.try_clone()?;
        let length = file.metadata()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
        let mut bytes = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_load_cpu_needs_no_thread_and_no_more_cpus_load_than_there_are_connections() {
        assert_eq!(placement(&[2], 64), Placement::Caller);
        assert_eq!(placement(&[2, 3, 6, 7], 1), Placement::Pinned(vec![2]));
        assert_eq!(placement(&[2, 3], 64), Placement::Pinned(vec![2, 3]));
    }
}
