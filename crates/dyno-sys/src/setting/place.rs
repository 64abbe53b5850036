//! Where a setting is: in which network namespace, on which device, of which thread; and whether that is still the same one.

use crate::namespace::{self, Network};
use crate::proc;
use crate::{Pid, Tid};
use std::ffi::CString;
use std::io;
use std::path::{Path, PathBuf};

/// Where sysfs has the devices of a namespace.
const DEVICES: &str = "/sys/class/net";

/// A network device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Its namespace.
    pub network: Network,
    /// Its number in it.
    pub index: u32,
    /// Its name in it.
    pub name: String,
}

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its process.
    pub pid: Pid,
    /// Its number.
    pub tid: Tid,
    /// When it started, in clock ticks since the boot: tells it from a later one of the same number.
    pub started: u64,
}

impl Device {
    /// The device of that name in this thread's namespace.
    ///
    /// # Errors
    /// When there is none.
    pub fn here(name: &str) -> io::Result<Device> {
        Ok(Device { network: namespace::network()?, index: index(name)?, name: name.to_owned() })
    }

    pub(super) fn folder(&self) -> PathBuf {
        Path::new(DEVICES).join(&self.name)
    }

    /// A name that the kernel gives to none (net/core/dev.c, dev_valid_name).
    pub(super) fn is_crooked(&self) -> bool {
        let name = self.name.as_bytes();
        let bad = |byte: &u8| *byte == b'/' || *byte == b':' || *byte == 0 || byte.is_ascii_whitespace();
        name.is_empty()
            || name.len() >= libc::IFNAMSIZ
            || name == b"."
            || name == b".."
            || name.iter().any(bad)
    }

    /// Why it is not there, seen from its namespace.
    pub(super) fn missing(&self) -> Option<String> {
        match index(&self.name) {
            Ok(found) if found == self.index => None,
            Ok(found) => Some(format!(
                "the device {} of now has the number {found}, that one had {}",
                self.name, self.index
            )),
            Err(_) => Some(format!("there is no device {} any more", self.name)),
        }
    }
}

fn index(name: &str) -> io::Result<u32> {
    let name = CString::new(name).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    // SAFETY: the name ends in a zero byte and lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

impl Task {
    /// The thread as it is now.
    ///
    /// # Errors
    /// When there is none.
    pub fn of(pid: Pid, tid: Tid) -> io::Result<Task> {
        Ok(Task { pid, tid, started: proc::stat(tid)?.start_ticks })
    }

    /// Why it is not there.
    pub(super) fn missing(&self) -> Option<String> {
        match proc::stat(self.tid) {
            Ok(stat) if stat.start_ticks == self.started => None,
            Ok(_) => Some(format!("{} is another thread by now", self.tid)),
            Err(_) => Some(format!("thread {} has ended", self.tid)),
        }
    }
}

/// Does something in a namespace; the inner error says that the namespace has ended.
///
/// # Errors
/// When it cannot be entered.
pub fn there<T: Send>(network: &Network, work: impl FnOnce() -> T + Send) -> io::Result<Result<T, String>> {
    if namespace::network().is_ok_and(|own| own.is(network)) {
        return Ok(Ok(work()));
    }
    let ended = || format!("the network namespace net:[{}] has ended", network.inode);
    let Some(found) = namespace::find(network) else { return Ok(Err(ended())) };
    namespace::in_network(&found, || match namespace::network() {
        Ok(inside) if inside.is(network) => Ok(work()),
        // Its number was given to another one.
        _ => Err(ended()),
    })
}
