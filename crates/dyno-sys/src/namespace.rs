//! Namespaces (`namespaces(7)`): whether this process may make one, and a look into another's network.
//!
//! `dyno doctor` asks, the host's facts look, the host's laboratory makes two and lives in one ([`OwnNetwork`]). None has a name:
//! it ends with the last process and the last descriptor in it, however they end.

use crate::Pid;
use crate::errno::{checked, checked_long};
use crate::proc;
use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::ptr;

/// `MOVE_MOUNT_F_EMPTY_PATH` (linux/mount.h).
const FROM_DESCRIPTOR: libc::c_uint = 4;
/// `OPEN_TREE_CLONE`.
const A_COPY: libc::c_uint = 1;

/// A network namespace, for as long as this is held or somebody is in it.
#[derive(Debug)]
pub struct OwnNetwork(OwnedFd);

impl AsFd for OwnNetwork {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl OwnNetwork {
    /// Makes one, with nothing in it but `lo`. It needs CAP_SYS_ADMIN.
    pub fn make() -> io::Result<OwnNetwork> {
        let made = std::thread::spawn(|| {
            // SAFETY: unshare takes an integer; only this thread, which ends here, is in the new namespace.
            checked(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            OwnNetwork::of_this_thread()
        });
        made.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// The one that this thread is in.
    pub fn of_this_thread() -> io::Result<OwnNetwork> {
        Ok(OwnNetwork(File::open("/proc/thread-self/ns/net")?.into()))
    }

    /// Its number, by which the kernel tells namespaces apart.
    pub fn number(&self) -> io::Result<u64> {
        Ok(File::from(self.0.try_clone()?).metadata()?.ino())
    }

    /// Does `work` with this thread in it: sockets that are made then are its own for good. The thread is back afterwards.
    ///
    /// # Panics
    /// When the thread cannot go back: whatever it did next would be done in the wrong place.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let home = OwnNetwork::of_this_thread()?;
        self.join()?;
        // Also where `work` panics.
        let back = Back(&home);
        let done = work();
        drop(back);
        Ok(done)
    }

    fn join(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and only this thread enters.
        checked(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
    }

    /// Takes this thread into it for good, and with it every thread and process that it starts from now on. They get a
    /// list of mounts of their own, in which `/sys` shows this namespace's devices, with all else that is mounted there.
    ///
    /// # Errors
    /// Without CAP_SYS_ADMIN. Then the thread may be half there, and the process should end.
    pub fn settle(&self) -> io::Result<()> {
        // SAFETY: unshare takes an integer; only this thread gets a list of mounts of its own.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
        mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
        self.join()?;
        let below: Vec<(CString, OwnedFd)> = mounts_below_sys()?
            .into_iter()
            .filter_map(|place| copy_of_tree(&place).ok().map(|tree| (place, tree)))
            .collect();
        match mount(c"sysfs", c"/sys", 0) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => return Ok(()),
            mounted => mounted?,
        }
        below.iter().try_for_each(|(place, tree)| put_tree(tree, place))
    }
}

/// Takes the thread home when it is dropped.
struct Back<'n>(&'n OwnNetwork);

impl Drop for Back<'_> {
    fn drop(&mut self) {
        self.0.join().expect("a thread may always go back to the namespace that it came from");
    }
}

/// What is mounted right below `/sys`; what lies deeper comes along.
fn mounts_below_sys() -> io::Result<Vec<CString>> {
    let text = crate::proc::text("/proc/thread-self/mounts")?;
    let mut places: Vec<String> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|place| place.starts_with("/sys/"))
        .map(str::to_owned)
        .collect();
    places.sort();
    places.dedup();
    let is_below = |place: &String, other: &String| place.starts_with(&format!("{other}/"));
    let highest = places.iter().filter(|place| !places.iter().any(|other| is_below(place, other)));
    Ok(highest.filter_map(|place| CString::new(place.as_str()).ok()).collect())
}

fn copy_of_tree(place: &CString) -> io::Result<OwnedFd> {
    let flags = A_COPY | libc::AT_RECURSIVE as libc::c_uint | libc::O_CLOEXEC as libc::c_uint;
    // SAFETY: the path ends in a zero byte and lives through the call; the rest are integers.
    let fd =
        checked_long(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, place.as_ptr(), flags) })?;
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

fn put_tree(tree: &OwnedFd, place: &CString) -> io::Result<()> {
    let (from, to) = (c"".as_ptr(), place.as_ptr());
    // SAFETY: both paths end in a zero byte and live through the call; the descriptor is open.
    checked_long(unsafe {
        libc::syscall(libc::SYS_move_mount, tree.as_raw_fd(), from, libc::AT_FDCWD, to, FROM_DESCRIPTOR)
    })
    .map(|_| ())
}

/// Whether a network namespace could be made. It needs CAP_SYS_ADMIN.
pub fn can_make_network() -> io::Result<()> {
    let made = std::thread::spawn(|| {
        // SAFETY: unshare takes an integer; only this thread, which ends here, is in the new namespace.
        checked(unsafe { libc::unshare(libc::CLONE_NEWNET) }).map(|_| ())
    });
    made.join().expect("the thread makes one call and does not panic")
}

/// Whether this process holds the capability that namespaces need. Who does and is refused one has met a fault: a test that passes
/// over what it may not try asks here first.
pub fn may_make_network() -> bool {
    let status = proc::text("/proc/thread-self/status").unwrap_or_default();
    proc::parse_capabilities(&status).iter().any(|name| name == "sys_admin")
}

/// Runs `work` on a thread in the network namespace of `pid`, with its devices under /sys. Its own tables are those of
/// `/proc/thread-self/net`. Nothing outside of the thread is changed; it needs CAP_SYS_ADMIN.
pub fn in_network_of<T: Send>(pid: Pid, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    on_a_thread(
        || {
            own_mounts()?;
            enter(&network)?;
            mount_sys(Sys::ReadOnly)
        },
        work,
    )
}

/// The same for what asks of sockets alone: no mount is made, and /sys shows the devices from here.
pub(crate) fn at_sockets_of<T: Send>(pid: Pid, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    let network = File::open(format!("/proc/{pid}/ns/net"))?;
    on_a_thread(|| enter(&network), work)
}

/// The same as the first in a namespace that was found, and what is under /sys can be written.
pub(crate) fn in_network<T: Send>(network: &File, work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(
        || {
            own_mounts()?;
            enter(network)?;
            mount_sys(Sys::Writable)
        },
        work,
    )
}

/// Runs `work` on a thread in a network namespace that is made for it and ends with it: for tests of what changes a network.
/// Programs that `work` starts are in it too. Needs CAP_SYS_ADMIN.
pub fn in_new_network<T: Send>(work: impl FnOnce() -> T + Send) -> io::Result<T> {
    on_a_thread(
        || {
            own_mounts()?;
            // SAFETY: unshare takes an integer; only this thread is in the new namespace.
            checked(unsafe { libc::unshare(libc::CLONE_NEWNET) })?;
            mount_sys(Sys::Writable)
        },
        work,
    )
}

fn on_a_thread<T: Send>(
    prepare: impl FnOnce() -> io::Result<()> + Send,
    work: impl FnOnce() -> T + Send,
) -> io::Result<T> {
    std::thread::scope(|scope| {
        let thread = scope.spawn(move || prepare().map(|()| work()));
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// What tells one network namespace of this boot from every other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its number in the file system of namespaces: short, and given to another once it has ended.
    pub inode: u64,
    /// Its number since the boot, which no other gets (Linux 5.14); 0 where it is not known.
    pub cookie: u64,
}

/// The namespace of this thread.
pub fn network() -> io::Result<Network> {
    let inode = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
    Ok(Network { inode, cookie: cookie().unwrap_or(0) })
}

impl Network {
    /// Whether this is the namespace that is meant.
    pub(crate) fn is(&self, other: &Network) -> bool {
        let told_apart = self.cookie != 0 && other.cookie != 0 && self.cookie != other.cookie;
        self.inode == other.inode && !told_apart
    }
}

/// `SO_NETNS_COOKIE` of a socket that is made here.
fn cookie() -> io::Result<u64> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"))?;
    let mut cookie = 0u64;
    let mut len = size_of::<u64>() as libc::socklen_t;
    let at = (&raw mut cookie).cast();
    // SAFETY: `cookie` is writable for `len` bytes, and both live through the call.
    checked(unsafe {
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, at, &raw mut len)
    })?;
    Ok(cookie)
}

const SO_NETNS_COOKIE: libc::c_int = 71;

/// Opens the namespace of that number: of a process, or mounted somewhere. `None` when nobody has it any more.
pub(crate) fn find(network: &Network) -> Option<File> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let of_process = processes.map(|entry| entry.path().join("ns/net"));
    of_process.chain(mounted(network.inode)).find_map(|path| {
        let is_it = |meta: std::fs::Metadata| meta.ino() == network.inode;
        std::fs::metadata(&path).is_ok_and(is_it).then(|| File::open(&path).ok()).flatten()
    })
}

/// Where a namespace is mounted, as `ip netns` does it.
fn mounted(inode: u64) -> Vec<std::path::PathBuf> {
    let root = format!("net:[{inode}]");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let place = |line: &str| {
        let mut words = line.split(' ').skip(3);
        (words.next()? == root).then(|| words.next().map(Into::into)).flatten()
    };
    mounts.lines().filter_map(place).collect()
}

/// How the files under /sys may be used.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sys {
    ReadOnly,
    Writable,
}

fn own_mounts() -> io::Result<()> {
    // SAFETY: unshare takes an integer; only this thread gets a list of mounts of its own.
    checked(unsafe { libc::unshare(libc::CLONE_NEWNS) })?;
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)
}

fn enter(network: &File) -> io::Result<()> {
    // SAFETY: the descriptor is open, and only this thread enters.
    checked(unsafe { libc::setns(network.as_raw_fd(), libc::CLONE_NEWNET) }).map(|_| ())
}

/// Devices under /sys are those of the namespace in which it was mounted, so it is mounted anew, for this thread alone.
fn mount_sys(sys: Sys) -> io::Result<()> {
    match mount(c"sysfs", c"/sys", if sys == Sys::ReadOnly { libc::MS_RDONLY } else { 0 }) {
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
    fn sockets_made_within_are_of_that_namespace_and_the_thread_comes_back() {
        let own = OwnNetwork::of_this_thread().unwrap().number().unwrap();
        let Ok(other) = OwnNetwork::make() else { return };
        assert_ne!(other.number().unwrap(), own);
        let inside = other.within(|| OwnNetwork::of_this_thread().unwrap().number().unwrap()).unwrap();
        assert_eq!(inside, other.number().unwrap());
        let panicked = std::panic::catch_unwind(|| other.within(|| panic!("work that goes wrong")));
        assert!(panicked.is_err());
        assert_eq!(OwnNetwork::of_this_thread().unwrap().number().unwrap(), own);
    }

    #[test]
    fn who_settles_there_sees_its_devices_and_whatever_else_is_mounted_below_sys() {
        let Ok(other) = OwnNetwork::make() else { return };
        let mounts = || proc::text("/proc/thread-self/mounts").unwrap();
        let outside = mounts();
        let (devices, inside) = std::thread::spawn(move || {
            other.settle().unwrap();
            let devices = std::fs::read_dir("/sys/class/net").unwrap();
            let names: Vec<_> = devices.map(|device| device.unwrap().file_name()).collect();
            (names, mounts_below_sys().unwrap())
        })
        .join()
        .unwrap();
        assert_eq!(devices, ["lo"]);
        assert_eq!(inside, mounts_below_sys().unwrap());
        assert_eq!(mounts(), outside);
    }

    #[test]
    fn a_new_network_is_another_one_and_is_found_while_it_lives() {
        let own = network().unwrap();
        let made = in_new_network(|| {
            let made = network().unwrap();
            assert!(!made.is(&own) && made.cookie != own.cookie);
            let names: Vec<_> = std::fs::read_dir("/sys/class/net").unwrap().flatten().collect();
            assert!(names.iter().all(|name| name.file_name() != "eth0"), "its devices are its own");
            made
        });
        match made {
            Ok(made) => assert!(find(&made).is_none(), "it ended with its thread"),
            Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
        }
        assert!(find(&own).is_some());
    }

    #[test]
    fn a_later_namespace_of_the_same_number_is_another() {
        let first = Network { inode: 7, cookie: 1 };
        assert!(!first.is(&Network { inode: 7, cookie: 2 }) && first.is(&Network { inode: 7, cookie: 0 }));
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
