//! Signals as values that arrive on a descriptor (`signalfd(2)`), and sending them.
//!
//! Used by supervisors and by the keeper; a worker's loop watches the descriptor like any other. No handler is ever
//! installed, so nothing here runs in a signal's context.

use crate::Pid;
use crate::errno::{checked, checked_size};
use std::fmt;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// A signal that this product sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// SIGHUP: reload, or the terminal is gone.
    Hup,
    /// SIGINT: Ctrl-C.
    Int,
    /// SIGQUIT: Ctrl-\.
    Quit,
    /// SIGKILL: cannot be received.
    Kill,
    /// SIGUSR1.
    Usr1,
    /// SIGUSR2.
    Usr2,
    /// SIGTERM: end in good order.
    Term,
    /// SIGCHLD: a child ended or stopped.
    Child,
    /// SIGCONT.
    Cont,
    /// SIGSTOP: cannot be received.
    Stop,
}

/// Signals of one list, blocked in this thread and read from a nonblocking, close-on-exec descriptor.
///
/// Dropping it leaves them blocked: a signal that comes late must not end the process by surprise.
#[derive(Debug)]
pub struct SignalFd {
    fd: OwnedFd,
}

impl Signal {
    const ALL: [Signal; 10] = [
        Signal::Hup,
        Signal::Int,
        Signal::Quit,
        Signal::Kill,
        Signal::Usr1,
        Signal::Usr2,
        Signal::Term,
        Signal::Child,
        Signal::Cont,
        Signal::Stop,
    ];

    /// The kernel's number for it.
    pub const fn number(self) -> i32 {
        match self {
            Signal::Hup => libc::SIGHUP,
            Signal::Int => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Kill => libc::SIGKILL,
            Signal::Usr1 => libc::SIGUSR1,
            Signal::Usr2 => libc::SIGUSR2,
            Signal::Term => libc::SIGTERM,
            Signal::Child => libc::SIGCHLD,
            Signal::Cont => libc::SIGCONT,
            Signal::Stop => libc::SIGSTOP,
        }
    }

    fn from_number(number: u32) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.number().cast_unsigned() == number)
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&name(self.number()))
    }
}

/// The usual name of any signal number, `signal 40` where there is none.
pub fn name(number: i32) -> std::borrow::Cow<'static, str> {
    let known = match number {
        libc::SIGHUP => "SIGHUP",
        libc::SIGINT => "SIGINT",
        libc::SIGQUIT => "SIGQUIT",
        libc::SIGILL => "SIGILL",
        libc::SIGTRAP => "SIGTRAP",
        libc::SIGABRT => "SIGABRT",
        libc::SIGBUS => "SIGBUS",
        libc::SIGFPE => "SIGFPE",
        libc::SIGKILL => "SIGKILL",
        libc::SIGUSR1 => "SIGUSR1",
        libc::SIGSEGV => "SIGSEGV",
        libc::SIGUSR2 => "SIGUSR2",
        libc::SIGPIPE => "SIGPIPE",
        libc::SIGALRM => "SIGALRM",
        libc::SIGTERM => "SIGTERM",
        libc::SIGCHLD => "SIGCHLD",
        libc::SIGCONT => "SIGCONT",
        libc::SIGSTOP => "SIGSTOP",
        libc::SIGXCPU => "SIGXCPU",
        libc::SIGXFSZ => "SIGXFSZ",
        libc::SIGSYS => "SIGSYS",
        number => return format!("signal {number}").into(),
    };
    known.into()
}

impl SignalFd {
    /// Blocks `signals` in the calling thread (threads and children started later inherit that) and opens their
    /// descriptor. Call it before any thread starts, or another thread will be interrupted instead.
    pub fn new(signals: &[Signal]) -> io::Result<SignalFd> {
        let mut set = empty_set();
        for signal in signals {
            // SAFETY: `set` is an initialised sigset_t; the number is a real signal's.
            unsafe { libc::sigaddset(&raw mut set, signal.number()) };
        }
        mask(libc::SIG_BLOCK, &set)?;
        // SAFETY: `set` lives through the call; -1 asks for a new descriptor.
        let fd =
            checked(unsafe { libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(SignalFd { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// The next signal that came, if any; several of one kind may have become one (`signal(7)`).
    pub fn next(&self) -> Option<Signal> {
        // SAFETY: all zeroes is a valid signalfd_siginfo: it holds numbers only.
        let mut info: libc::signalfd_siginfo = unsafe { std::mem::zeroed() };
        let size = size_of::<libc::signalfd_siginfo>();
        // SAFETY: `info` is writable for `size` bytes through the call.
        let got = checked_size(unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut info).cast(), size) });
        got.is_ok_and(|got| got == size).then(|| Signal::from_number(info.ssi_signo)).flatten()
    }
}

impl AsFd for SignalFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sends `signal` to one process. 0 and below are refused with `EINVAL`: they name groups, and -1 everybody.
pub fn kill(pid: Pid, signal: Signal) -> io::Result<()> {
    if pid <= 0 {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: kill takes no pointer; the number is one process's.
    checked(unsafe { libc::kill(pid, signal.number()) })?;
    Ok(())
}

/// Writing to a broken connection then answers `EPIPE` instead of ending the process.
pub fn ignore_sigpipe() {
    // SAFETY: SIG_IGN installs no code.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Writing beyond the file-size limit (`ulimit -f`) then answers `EFBIG` instead of ending the process.
pub fn ignore_sigxfsz() {
    // SAFETY: SIG_IGN installs no code.
    unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) };
}

/// The end of a terminal then ends nothing, as under `nohup`.
pub fn ignore_hangup() {
    // SAFETY: SIG_IGN installs no code.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
}

/// Whether this process was started with the signal ignored, as `nohup` does with SIGHUP: then it should stay so.
pub fn is_ignored(signal: Signal) -> bool {
    // SAFETY: all zeroes is a valid sigaction: numbers and a null handler.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: `action` is writable through the call; nothing is set.
    let asked = unsafe { libc::sigaction(signal.number(), std::ptr::null(), &raw mut action) };
    asked == 0 && action.sa_sigaction == libc::SIG_IGN
}

/// Undoes everything that a child inherited: no signal is blocked or ignored any more. For a child before exec.
pub fn unblock_all_in_child() {
    // 64 is the last signal of Linux (_NSIG); KILL and STOP refuse, and that is fine.
    for number in 1..=64 {
        let default = [0_u64; KERNEL_ACTION_WORDS];
        let (place, none) = (default.as_ptr(), std::ptr::null_mut::<u64>());
        // Not through the C library, which keeps 32 and 33 for itself and would leave them ignored.
        // SAFETY: a kernel sigaction of zeroes (SIG_DFL, no flags, no mask) lives through the call; none is written.
        unsafe { libc::syscall(libc::SYS_rt_sigaction, number, place, none, size_of::<u64>()) };
    }
    mask(libc::SIG_SETMASK, &empty_set()).expect("a whole sigset_t and a known verb cannot be refused");
}

/// The kernel's own `struct sigaction` on 64-bit machines: handler, flags, restorer and a mask of 64 signals.
const KERNEL_ACTION_WORDS: usize = 4;

/// Blocks everything that can be blocked in the calling thread: the keeper lives until its work is done.
pub(crate) fn block_all() {
    let mut set = empty_set();
    // SAFETY: `set` is an initialised sigset_t.
    unsafe { libc::sigfillset(&raw mut set) };
    mask(libc::SIG_SETMASK, &set).expect("a whole sigset_t and a known verb cannot be refused");
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: all zeroes is a valid sigset_t: it holds numbers only.
    let mut set: libc::sigset_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is writable for the length of the call.
    unsafe { libc::sigemptyset(&raw mut set) };
    set
}

fn mask(verb: libc::c_int, set: &libc::sigset_t) -> io::Result<()> {
    // SAFETY: `set` lives through the call; the old mask is not asked for.
    let refused = unsafe { libc::pthread_sigmask(verb, set, std::ptr::null_mut()) };
    if refused == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(refused)) }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    /// Sends to one thread, so that the other tests of this process are left alone.
    fn raise_here(signal: Signal) {
        // SAFETY: raise takes no pointer.
        assert_eq!(unsafe { libc::raise(signal.number()) }, 0);
    }

    #[test]
    fn a_blocked_signal_arrives_on_the_descriptor() {
        let signals = SignalFd::new(&[Signal::Usr1, Signal::Usr2]).unwrap();
        assert_eq!(signals.next(), None);
        raise_here(Signal::Usr2);
        let deadline_ns = crate::clock::mono_ns() + 5_000_000_000;
        crate::socket::wait_readable(&signals, deadline_ns).unwrap();
        assert_eq!(signals.next(), Some(Signal::Usr2));
        assert_eq!(signals.next(), None);
    }

    #[test]
    fn groups_and_everybody_are_never_killed() {
        for pid in [0, -1, -77] {
            assert_eq!(kill(pid, Signal::Cont).unwrap_err().raw_os_error(), Some(libc::EINVAL));
        }
    }

    #[test]
    fn a_gone_process_is_no_such_process() {
        assert_eq!(kill(i32::MAX - 1, Signal::Term).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn numbers_and_names_go_both_ways() {
        for signal in Signal::ALL {
            assert_eq!(Signal::from_number(signal.number().cast_unsigned()), Some(signal));
            assert!(signal.to_string().starts_with("SIG"), "{signal}");
        }
        assert_eq!((name(11).as_ref(), name(40).as_ref()), ("SIGSEGV", "signal 40"));
    }
}
