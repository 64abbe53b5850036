//! The service manager that started us, as systemd is one: the sockets it has opened, and what it is told.
//!
//! Its protocols are a few variables of the environment and a datagram socket (sd_listen_fds(3), sd_notify(3)). Without
//! those variables nothing here does anything. A manager that cannot be told is no reason not to serve.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

use dyno_engine::supervisor::Event;
use dyno_lab::Failure;
use dyno_sys::{Pid, child, clock};

/// The first descriptor that is handed over (SD_LISTEN_FDS_START).
const FIRST: i32 = 3;

/// More sockets than this nobody hands over; a wrong number must not be believed.
const LISTENERS_MAX: i32 = 1_024;

/// How long news wait for room in the queue of a manager that is busy; it has ten places (`net.unix.max_dgram_qlen`).
const ROOM_MAX: Duration = Duration::from_secs(1);

/// What the manager has said of itself.
#[derive(Debug, Default)]
pub(super) struct Manager {
    notify: Option<SocketAddr>,
    listeners: i32,
    /// How long it waits for a sign of life, in microseconds.
    watchdog_us: Option<u64>,
    pid: Pid,
}

impl Manager {
    /// What the environment says of a manager.
    ///
    /// # Errors
    /// When it says it wrongly.
    pub(super) fn of(variable: impl Fn(&str) -> Option<OsString>, pid: Pid) -> Result<Manager, Failure> {
        let number = |name: &str| -> Result<Option<u64>, Failure> {
            let Some(text) = variable(name).filter(|text| !text.is_empty()) else { return Ok(None) };
            let number = text.to_str().and_then(|text| text.parse().ok());
            number.map(Some).ok_or_else(|| wrong(name, &text))
        };
        // Variables that are meant for another process, which started us, are none of ours.
        let own = u64::from(pid.unsigned_abs());
        let is_ours = |of: Option<u64>| of.is_none_or(|pid| pid == own);
        let listeners = match (number("LISTEN_PID")?, number("LISTEN_FDS")?) {
            (Some(of), Some(count)) if of == own => {
                i32::try_from(count).ok().filter(|count| *count <= LISTENERS_MAX)
            }
            _ => Some(0),
        };
        let listeners = listeners.ok_or_else(|| wrong("LISTEN_FDS", OsStr::new("a number that large")))?;
        let watchdog_us = number("WATCHDOG_USEC")?.filter(|us| *us > 0);
        let watchdog_us = if is_ours(number("WATCHDOG_PID")?) { watchdog_us } else { None };
        let notify = variable("NOTIFY_SOCKET").filter(|text| !text.is_empty());
        let notify =
            notify.map(|path| addr_of(&path).ok_or_else(|| wrong("NOTIFY_SOCKET", &path))).transpose()?;
        Ok(Manager { notify, listeners, watchdog_us, pid })
    }

    /// The sockets that it has opened for us.
    pub(super) fn take_listeners(&mut self) -> Result<Vec<OwnedFd>, Failure> {
        let take = |number: i32| {
            child::take_inherited(number).map_err(|error| {
                Failure::error(format!("cannot take the service manager's socket {number}"))
                    .because(&error)
                    .likely("LISTEN_FDS says that there are more than there are")
                    .try_this("env -u LISTEN_FDS dyno serve")
            })
        };
        (FIRST..FIRST + std::mem::take(&mut self.listeners)).map(take).collect()
    }

    /// How often it wants to hear from us: twice in the time that it waits.
    pub(super) fn alive_ns(&self) -> Option<u64> {
        let wanted = self.notify.as_ref().and(self.watchdog_us);
        wanted.map(|us| (us.saturating_mul(1_000) / 2).max(1_000_000))
    }

    /// Tells it what concerns it. It listens to its main process only, so others need not speak. News that it does not get it
    /// would wait for; the next sign of life comes by itself, and has no right to make anybody wait.
    pub(super) fn tell(&self, event: &Event) {
        if let Some(addr) = &self.notify
            && child::this() == self.pid
            && let Some(text) = self.text(event)
        {
            // A manager that does not listen has nothing to complain of.
            let wait = if matches!(event, Event::Alive) { None } else { Some(ROOM_MAX) };
            let _ = send(addr, &text, wait);
        }
    }

    fn text(&self, event: &Event) -> Option<String> {
        Some(match event {
            Event::Ready { workers } => {
                let pid = self.pid;
                format!("READY=1\nMAINPID={pid}\nSTATUS=serving with {workers} worker processes\n")
            }
            Event::Reloading => {
                let now_us = clock::mono_ns() / 1_000;
                format!("RELOADING=1\nMONOTONIC_USEC={now_us}\nSTATUS=reading the settings again\n")
            }
            Event::Reloaded { generation, workers, .. } => {
                format!("READY=1\nSTATUS=serving with {workers} worker processes, generation {generation}\n")
            }
            Event::NotReloaded { why } => {
                let why = why.lines().next().unwrap_or_default();
                format!("READY=1\nSTATUS=serving with the settings of before; not reloaded: {why}\n")
            }
            Event::HandedOver { pid } => format!("MAINPID={pid}\nSTATUS=process {pid} has taken over\n"),
            Event::Draining { .. } => "STOPPING=1\nSTATUS=draining\n".to_owned(),
            Event::Alive => "WATCHDOG=1\n".to_owned(),
            _ => return None,
        })
    }
}

/// A path, or with an `@` in front a name in the abstract namespace (unix(7)).
fn addr_of(path: &OsStr) -> Option<SocketAddr> {
    match path.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name).ok(),
        [b'/', ..] => SocketAddr::from_pathname(path).ok(),
        _ => None,
    }
}

/// By a socket of its own each time: one that stayed open would be every worker's too, which could send what it likes with it.
fn send(addr: &SocketAddr, text: &str, wait: Option<Duration>) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.set_write_timeout(wait)?;
    socket.set_nonblocking(wait.is_none())?;
    socket.send_to_addr(text.as_bytes(), addr).map(|_| ())
}

fn wrong(name: &str, text: &OsStr) -> Failure {
    Failure::usage(format!("{name} cannot be \"{}\"", text.display()))
        .likely("it is the service manager's to set, and something else has set it")
        .try_this(format!("env -u {name} dyno serve"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn manager(variables: &[(&str, &str)]) -> Result<Manager, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, text)| OsString::from(text))
        };
        Manager::of(variable, 77).map_err(|failure| failure.in_one_line())
    }

    #[test]
    fn without_a_manager_nothing_is_told_or_taken() {
        let mut manager = manager(&[]).unwrap();
        assert!(manager.take_listeners().unwrap().is_empty() && manager.alive_ns().is_none());
        manager.tell(&Event::Draining { within_ns: 0 });
    }

    #[test]
    fn what_is_meant_for_another_process_is_none_of_ours() {
        let listeners = |pid| manager(&[("LISTEN_PID", pid), ("LISTEN_FDS", "2")]).unwrap().listeners;
        assert_eq!((listeners("77"), listeners("78")), (2, 0));
        assert_eq!(manager(&[("LISTEN_FDS", "2")]).unwrap().listeners, 0, "nobody is named");
        let alive = |pid| {
            let variables = [("NOTIFY_SOCKET", "@x"), ("WATCHDOG_USEC", "30000000"), ("WATCHDOG_PID", pid)];
            manager(&variables).unwrap().alive_ns()
        };
        assert_eq!((alive("77"), alive("78")), (Some(15_000_000_000), None));
        assert_eq!(manager(&[("WATCHDOG_USEC", "1")]).unwrap().alive_ns(), None, "there is nobody to tell");
    }

    /// Planted fault: whatever finds the queue full is dropped, as signs of life may be; then a busy manager waits for ever for the
    /// end of a start or a reload.
    #[test]
    fn news_wait_for_a_busy_manager_and_signs_of_life_do_not() {
        let name = format!("dyno-manager-{}", child::this());
        let busy = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let variable = |wanted: &str| (wanted == "NOTIFY_SOCKET").then(|| OsString::from(format!("@{name}")));
        let manager = Manager::of(variable, child::this()).unwrap();
        // More than any queue has places.
        for _ in 0..10_000 {
            manager.tell(&Event::Alive);
        }
        let heard = std::thread::spawn(move || {
            let mut bytes = [0; 100];
            busy.set_read_timeout(Some(10 * ROOM_MAX)).unwrap();
            loop {
                let count = busy.recv(&mut bytes).unwrap();
                if bytes[..count].starts_with(b"STOPPING=1") {
                    return;
                }
            }
        });
        manager.tell(&Event::Draining { within_ns: 0 });
        heard.join().unwrap();
    }

    #[test]
    fn a_wrong_variable_is_named() {
        for (variables, name) in [
            (&[("LISTEN_PID", "77"), ("LISTEN_FDS", "two")][..], "LISTEN_FDS"),
            (&[("LISTEN_PID", "77"), ("LISTEN_FDS", "1000000")], "LISTEN_FDS"),
            (&[("LISTEN_PID", "-1")], "LISTEN_PID"),
            (&[("WATCHDOG_USEC", "soon")], "WATCHDOG_USEC"),
            (&[("NOTIFY_SOCKET", "relative")], "NOTIFY_SOCKET"),
        ] {
            assert!(
                manager(variables).unwrap_err().starts_with(&format!("{name} cannot be ")),
                "{variables:?}"
            );
        }
    }
}
