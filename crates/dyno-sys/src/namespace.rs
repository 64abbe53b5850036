//! Namespaces (`namespaces(7)`): whether this process may make one, and a look into another's network.
//!
//! `dyno doctor` asks, the host's facts look. What is made or entered belongs to one thread, and is left when that has ended.

use crate::Pid;
use crate::errno::checked;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr;

/// Whether a network namespace could be made. It needs CAP_SYS_ADMIN.
pub fn can_make_network() -> io::Result<()> {
    let made = std::thread::spawn(|| {
        // SAFETY: unshare takes an integer; only this thread, which ends here, is in the new namespace.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(|_| ())
    });
    made.join().expect("the thread makes one call and does not panic")
}

/// Runs `work` on a thread in the network namespace of `pid`, with its devices under /sys. Its own tables are those of
/// `/proc/thread-self/net`. Nothing outside of the thread is changed; it needs CAP_SYS_ADMIN.
pub fn in_network_of<T: Send>(pid: Pid, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || {
            enter(&network)?;
            Ok(work())
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Devices under /sys are those of the namespace in which it was mounted, so it is mounted anew, for this thread alone.
fn enter(network: &File) -> io::Result<()> {
    // SAFETY: unshare takes an integer; only this thread gets a list of mounts of its own.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    // SAFETY: the descriptor is open, and only this thread enters.
    checked(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) })?;
    match mount(c"sysfs", c"/sys", libc::MS_RDONLY) {
        // The kernel mounts nothing on itself: the devices there are this namespace's already.
        Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
        mounted => mounted,
    }
}

fn mount(what: &std::ffi::CStr, place: &std::ffi::CStr, flags: libc::c_ulong) -> io::Result<()> {
    let (what, place) = (what.as_ptr(), place.as_ptr());
    // SAFETY: both names end in a zero byte and live through the call; there is no data.
    checked(unsafe { libc::mount(what, place, what, flags, ptr::null()) }).map(|_| ())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::proc;

    #[test]
    fn making_one_leaves_this_process_where_it_was() {
        let before = proc::link_name("/proc/self/ns/net").unwrap();
        match can_make_network() {
            Ok(()) => assert_eq!(crate::user::current().0, 0),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert_eq!(proc::link_name("/proc/self/ns/net").unwrap(), before);
    }

    #[test]
    fn a_look_into_a_namespace_leaves_this_thread_and_its_mounts_where_they_were() {
        let mounts = proc::text("/proc/thread-self/mounts").unwrap();
        let own = proc::link_name("/proc/self/ns/net").unwrap();
        match in_network_of(crate::child::this(), || proc::link_name("/proc/thread-self/ns/net")) {
            Ok(inside) => assert_eq!(inside.unwrap(), own),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert_eq!(proc::text("/proc/thread-self/mounts").unwrap(), mounts);
        assert!(in_network_of(i32::MAX, || ()).is_err(), "there is no such process");
    }
}
