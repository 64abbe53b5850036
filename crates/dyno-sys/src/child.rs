//! Children: fork, wait, and the safeguards a child sets on itself. Used by the engine's supervisor and by the keeper.
//!
//! Forking a process with threads leaves locks held by nobody (`fork(2)`), so it is refused.

use crate::Pid;
use crate::errno::{checked, checked_long};
use crate::signal;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// What a child that panicked exits with, as every Rust program does.
const PANIC_CODE: i32 = 101;

/// The parent that forked this process with [`fork`]; 0 where it was started otherwise.
static PARENT: AtomicI32 = AtomicI32::new(0);

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// By itself, with this status.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

/// Whether to wait for an exit or to look for one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Until it comes.
    Block,
    /// Only if it is there.
    NoHang,
}

impl Exit {
    /// Reads a wait status (`wait(2)`).
    pub(crate) fn from_status(status: i32) -> Exit {
        if libc::WIFSIGNALED(status) {
            Exit::Signal(libc::WTERMSIG(status))
        } else {
            Exit::Code(libc::WEXITSTATUS(status))
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Exit::Code(code) => write!(out, "exit status {code}"),
            Exit::Signal(number) => write!(out, "killed by {}", signal::name(number)),
        }
    }
}

/// Starts a child that runs `life` and ends with its answer; nothing of the parent's is dropped or flushed in it. A
/// panic ends it with 101. Refused when this process has more than one thread.
pub fn fork(life: impl FnOnce() -> i32) -> io::Result<Pid> {
    let threads = count_threads(&format!("/proc/{}/task", this()))?;
    if threads != 1 {
        return Err(io::Error::other(format!("a process of {threads} threads cannot be forked safely")));
    }
    let parent = this();
    // SAFETY: this process has one thread (just counted; only this thread could start another), so that the child's
    // copy of every lock and allocator is in order.
    match checked(unsafe { libc::fork() })? {
        0 => live(parent, life),
        pid => Ok(pid),
    }
}

/// How many threads a folder of them has. Without /proc it is not there; without a free descriptor it cannot be read.
fn count_threads(folder: &str) -> io::Result<usize> {
    let numbers = crate::tasks::read_numbers(folder).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "/proc is not mounted".to_owned(),
            _ => error.to_string(),
        };
        io::Error::new(error.kind(), format!("the threads of this process cannot be counted: {why}"))
    })?;
    Ok(numbers.len())
}

fn live(parent: Pid, life: impl FnOnce() -> i32) -> ! {
    PARENT.store(parent, Relaxed);
    let code = catch_unwind(AssertUnwindSafe(life)).unwrap_or(PANIC_CODE);
    exit_now(code)
}

/// Ends this process at once: no destructor, no flush, no exit handler of the parent's.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit takes no pointer and does not return.
    unsafe { libc::_exit(code) }
}

/// Any child of this process that has ended, taken off the process table. Never blocks.
pub fn wait_any() -> Option<(Pid, Exit)> {
    let mut status = 0;
    // SAFETY: `status` is writable for the length of the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    (pid > 0).then(|| (pid, Exit::from_status(status)))
}

/// Waits for the child `pid`. `None` when it still runs and `how` is [`Wait::NoHang`]; `ECHILD` when it is no child of
/// this process or was waited for before.
pub fn wait(pid: Pid, how: Wait) -> io::Result<Option<Exit>> {
    let flags = if how == Wait::NoHang { libc::WNOHANG } else { 0 };
    if pid <= 0 {
        return Err(io::Error::from_raw_os_error(libc::ECHILD));
    }
    loop {
        let mut status = 0;
        // SAFETY: `status` is writable for the length of the call.
        match checked(unsafe { libc::waitpid(pid, &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(Exit::from_status(status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Whether this process has any child, ended or not.
pub(crate) fn has_children() -> bool {
    // SAFETY: all zeroes is a valid siginfo_t: it holds numbers only.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    let look = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
    // SAFETY: `info` is writable for the length of the call; WNOWAIT leaves the child where it is.
    checked(unsafe { libc::waitid(libc::P_ALL, 0, &raw mut info, look) }).is_ok()
}

/// This process's number.
pub fn this() -> Pid {
    std::process::id().cast_signed()
}

/// The number of the process that would wait for this one.
pub fn parent() -> Pid {
    // SAFETY: getppid takes no pointer and cannot fail.
    unsafe { libc::getppid() }
}

/// A descriptor of process `pid` that becomes readable when it ends and never names another (Linux 5.3).
pub fn pidfd_open(pid: Pid) -> io::Result<OwnedFd> {
    // SAFETY: pidfd_open takes two integers; the descriptor is close-on-exec by definition.
    let fd = checked_long(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}

/// A copy of descriptor `fd` of another process (Linux 5.6): the same socket, for reading its options. `EPERM` unless we
/// might trace that process.
pub fn pidfd_getfd(pidfd: impl AsFd, fd: i32) -> io::Result<OwnedFd> {
    let pidfd = pidfd.as_fd().as_raw_fd();
    // SAFETY: pidfd_getfd takes three integers; the copy is close-on-exec by definition.
    let copy = checked_long(unsafe { libc::syscall(libc::SYS_pidfd_getfd, pidfd, fd, 0) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy as i32) })
}

/// Sends a signal to exactly the process that `pidfd` was opened on.
pub(crate) fn pidfd_kill(pidfd: &OwnedFd, number: i32) -> io::Result<()> {
    let (pidfd, nothing) = (pidfd.as_raw_fd(), std::ptr::null::<libc::siginfo_t>());
    // SAFETY: a null siginfo asks for what kill(2) would send.
    checked_long(unsafe { libc::syscall(libc::SYS_pidfd_send_signal, pidfd, number, nothing, 0) })?;
    Ok(())
}

/// From now on nothing this process starts gains privileges (set-user-id files lose their power). Inherited, for good.
pub fn no_new_privs() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1)
}

/// From now on this process and whatever it starts get no huge pages, also where the system gives them to everybody
/// (`PR_SET_THP_DISABLE`).
pub fn no_huge_pages() -> io::Result<()> {
    prctl(libc::PR_SET_THP_DISABLE, 1)
}

/// From now on timers of this thread, and of whatever it starts, may be late by as much (`PR_SET_TIMERSLACK`), so that several
/// are due at once. 0 is what it had when it began.
pub fn timer_slack(ns: u64) -> io::Result<()> {
    prctl(libc::PR_SET_TIMERSLACK, ns as libc::c_ulong)
}

/// The kernel kills this process when the thread that forked it ends (`PR_SET_PDEATHSIG`). `ESRCH` when that has already
/// happened: end then. A change of user clears it (`prctl(2)`): call it after.
pub fn die_with_parent() -> io::Result<()> {
    die_with(PARENT.load(Relaxed))
}

/// The same for a parent whose number is known from elsewhere; 0 is not checked.
pub(crate) fn die_with(expected: Pid) -> io::Result<()> {
    prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL as libc::c_ulong)?;
    if expected != 0 && parent() != expected {
        return Err(io::Error::from_raw_os_error(libc::ESRCH));
    }
    Ok(())
}

/// Orphans among this process's descendants become its children instead of init's (`PR_SET_CHILD_SUBREAPER`).
pub fn become_subreaper() -> io::Result<()> {
    prctl(libc::PR_SET_CHILD_SUBREAPER, 1)
}

/// Names this thread in `ps` and /proc/PID/comm; the kernel keeps 15 bytes.
pub fn set_name(name: &std::ffi::CStr) -> io::Result<()> {
    prctl(libc::PR_SET_NAME, name.as_ptr() as libc::c_ulong)
}

/// `argument` is a number, or for PR_SET_NAME the address of a live C string.
fn prctl(option: libc::c_int, argument: libc::c_ulong) -> io::Result<()> {
    const NONE: libc::c_ulong = 0;
    // SAFETY: the options used in this file take a number or a pointer that its caller keeps alive.
    checked(unsafe { libc::prctl(option, argument, NONE, NONE, NONE) })?;
    Ok(())
}

/// Starts a session, and with it a process group, of one's own: Ctrl-C in the terminal does not reach it.
pub(crate) fn set_session() -> io::Result<()> {
    // SAFETY: setsid takes no pointer.
    checked(unsafe { libc::setsid() })?;
    Ok(())
}

/// Numbers already taken by [`take_inherited`].
static TAKEN: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Takes over a descriptor that this process's parent left open under a known number, and makes it close-on-exec.
/// `EBADF` when nothing is open there, `EBUSY` when it was taken before, `EINVAL` for 0 to 2. Call it at start, before
/// anything was opened that could have got the number.
pub fn take_inherited(fd: i32) -> io::Result<OwnedFd> {
    if fd <= 2 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    let mut taken = TAKEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    if taken.contains(&fd) {
        return Err(io::Error::from_raw_os_error(libc::EBUSY));
    }
    // SAFETY: F_SETFD takes an integer; a closed number answers EBADF.
    checked(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    taken.push(fd);
    // SAFETY: the descriptor is open (fcntl said so), came with the process, and is given out once only.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes the number of `old` stand for what `new` is; what it stood for is closed there. Copies of `old` under other
/// numbers, in other processes above all, stay what they were (`dup3(2)`).
pub fn replace(old: impl AsFd, new: impl AsFd) -> io::Result<()> {
    let (old, new) = (old.as_fd().as_raw_fd(), new.as_fd().as_raw_fd());
    // SAFETY: dup3 takes integers, and both descriptors are borrowed and so open; the owner of `old` still owns its number.
    checked(unsafe { libc::dup3(new, old, libc::O_CLOEXEC) })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    // Waiting is what is tested here, by number.
    #![allow(clippy::unwrap_used, clippy::zombie_processes)]
    use super::*;
    use std::process::Command;

    /// Planted fault: whatever keeps them from being counted, /proc is not mounted.
    #[test]
    fn threads_that_cannot_be_counted_say_why() {
        let why = |folder: &str| count_threads(folder).unwrap_err().to_string();
        assert!(why("/nowhere/task").ends_with(": /proc is not mounted"));
        // As good as no free descriptor: there, and not to be read.
        let unread = why("/proc/self/status");
        assert!(unread.contains("(os error ") && !unread.contains("mounted"), "{unread}");
        assert!(count_threads("/proc/self/task").unwrap() > 0);
    }

    #[test]
    fn exits_are_told_in_words() {
        assert_eq!(Exit::Code(1).to_string(), "exit status 1");
        assert_eq!(Exit::Signal(libc::SIGSEGV).to_string(), "killed by SIGSEGV");
        assert_eq!(Exit::from_status(3 << 8), Exit::Code(3));
        assert_eq!(Exit::from_status(libc::SIGKILL), Exit::Signal(libc::SIGKILL));
        // 0x80 marks a core dump.
        assert_eq!(Exit::from_status(libc::SIGABRT | 0x80), Exit::Signal(libc::SIGABRT));
    }

    #[test]
    fn a_process_with_threads_is_not_forked() {
        // The test harness itself has more than one thread here.
        let release = std::sync::Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| release.wait());
            let refused = fork(|| 0).unwrap_err();
            release.wait();
            assert!(refused.to_string().contains("threads"), "{refused}");
        });
    }

    #[test]
    fn a_child_is_waited_for_once() {
        let child = Command::new("sh").args(["-c", "exit 7"]).spawn().unwrap();
        let pid = child.id().cast_signed();
        assert_eq!(wait(pid, Wait::Block).unwrap(), Some(Exit::Code(7)));
        assert_eq!(wait(pid, Wait::NoHang).unwrap_err().raw_os_error(), Some(libc::ECHILD));
        assert_eq!(wait(-1, Wait::NoHang).unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }

    #[test]
    fn a_running_child_has_no_exit_yet_and_its_pidfd_tells_the_end() {
        let child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = child.id().cast_signed();
        let pidfd = pidfd_open(pid).unwrap();
        assert_eq!(wait(pid, Wait::NoHang).unwrap(), None);
        pidfd_kill(&pidfd, libc::SIGKILL).unwrap();
        crate::socket::wait_readable(&pidfd, crate::clock::mono_ns() + 5_000_000_000).unwrap();
        assert_eq!(wait(pid, Wait::NoHang).unwrap(), Some(Exit::Signal(libc::SIGKILL)));
    }

    #[test]
    fn another_process_lends_its_descriptor() {
        let child = Command::new("sleep").arg("60").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id().cast_signed();
        let copy = pidfd_getfd(pidfd_open(pid).unwrap(), 0).unwrap();
        let link = |process: &str, fd: i32| std::fs::read_link(format!("/proc/{process}/fd/{fd}")).unwrap();
        assert_eq!(link("self", copy.as_raw_fd()), link(&pid.to_string(), 0));
        signal::kill(pid, signal::Signal::Kill).unwrap();
        wait(pid, Wait::Block).unwrap();
    }

    #[test]
    fn a_descriptor_is_inherited_once_and_never_a_standard_one() {
        let left = std::fs::File::open("/dev/null").unwrap();
        let number = std::os::fd::IntoRawFd::into_raw_fd(left);
        let _taken = take_inherited(number).unwrap();
        assert_eq!(take_inherited(number).unwrap_err().raw_os_error(), Some(libc::EBUSY));
        assert_eq!(take_inherited(1).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        assert_eq!(take_inherited(1 << 20).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
