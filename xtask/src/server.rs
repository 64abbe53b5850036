//! A server that a task starts, waits for, and always ends.
//!
//! The budget runs `dyno serve` in one, the bench all its servers at once.

use std::fs::File;
use std::io::Read;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::command::{command, shown};
use crate::trouble::Trouble;

/// Valgrind takes seconds to load a program on a busy machine.
const READY_MAX: Duration = Duration::from_secs(60);
/// What dyno itself grants to a drain, twice.
const STOP_MAX: Duration = Duration::from_secs(20);
/// Between looks: too short to be felt, too long to load the machine.
const LOOK: Duration = Duration::from_millis(10);
/// Bytes of what a server that ended printed last: they are shown.
const SAID_BYTES_MAX: usize = 2_000;

/// A running server; dropping it kills it.
pub(crate) struct Server {
    child: Child,
    addr: SocketAddr,
    said: PathBuf,
}

impl Server {
    /// Starts `program`, which has to listen on `addr`; what it says goes to the file `said`.
    pub(crate) fn start(mut program: Command, addr: SocketAddr, said: &Path) -> Result<Server, Trouble> {
        let output = File::create(said).map_err(Trouble::cannot(format!("write {}", said.display())))?;
        let again = output.try_clone().map_err(Trouble::cannot(format!("write {}", said.display())))?;
        let spawned = program.stdin(Stdio::null()).stdout(output).stderr(again).spawn();
        let child = spawned.map_err(Trouble::cannot(format!("run {}", shown(&program))))?;
        let mut server = Server { child, addr, said: said.to_owned() };
        server.wait_until_ready().map_err(|why| Trouble::new(format!("{}: {why}", shown(&program))))?;
        Ok(server)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn wait_until_ready(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + READY_MAX;
        while TcpStream::connect(self.addr).is_err() {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Err(format!("ended with {status}: {}", self.last_words()));
            }
            if Instant::now() > deadline {
                return Err(format!("does not listen on {} after {READY_MAX:?}", self.addr));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    fn last_words(&self) -> String {
        let mut text = Vec::new();
        let read = File::open(&self.said).and_then(|mut file| file.read_to_end(&mut text));
        let start = text.len().saturating_sub(SAID_BYTES_MAX);
        read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&text[start..]).trim().to_owned())
    }

    /// Asks it to end, as a service manager would, and waits until it has.
    pub(crate) fn stop(mut self) -> Result<(), Trouble> {
        crate::command::output(&mut command(["kill", "-TERM", &self.child.id().to_string()]))?;
        let deadline = Instant::now() + STOP_MAX;
        while self.child.try_wait().map_err(Trouble::cannot("wait for a server"))?.is_none() {
            if Instant::now() > deadline {
                return Err(Trouble::new(format!("the server on {} does not end when asked to", self.addr)));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            // First the gentle way: a supervisor that is killed cannot end its workers.
            let _ = command(["kill", "-TERM", &self.child.id().to_string()]).status();
            let deadline = Instant::now() + STOP_MAX;
            while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
                std::thread::sleep(LOOK);
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A port of 127.0.0.1 that nobody listens on. Somebody may take it before the server does: then the server says so.
pub(crate) fn free_addr() -> Result<SocketAddr, Trouble> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    listener.and_then(|listener| listener.local_addr()).map_err(Trouble::cannot("find a free port"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_server_that_ends_at_once_is_told_with_its_last_words() {
        let said = std::env::temp_dir().join(format!("xtask-server-{}", std::process::id()));
        let program = command(["sh", "-c", "echo no such flag >&2; exit 2"]);
        let trouble = Server::start(program, free_addr().unwrap(), &said).err().unwrap();
        std::fs::remove_file(&said).unwrap();
        assert!(trouble.to_string().contains("no such flag"), "{trouble}");
    }
}
