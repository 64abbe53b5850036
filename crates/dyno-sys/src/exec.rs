//! Becoming another program (`execve(2)`) that gets some descriptors under known numbers, and no others.
//!
//! For a child that was just forked: it has one thread, and nothing of it is needed any more.

use crate::errno::{checked, checked_long};
use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

/// The number that the first descriptor gets; the others follow it. The standard ones stay.
pub const FIRST: i32 = 3;

/// Becomes the program. `words` begin with its name; `kept` get the numbers from [`FIRST`] on, and all others but the
/// standard ones are closed. Comes back only with the reason why not; then descriptors are in disorder, and the process
/// should end.
pub fn become_program(
    path: &CStr,
    words: &[CString],
    environment: &[CString],
    kept: &[BorrowedFd<'_>],
) -> io::Error {
    match renumber(kept) {
        Ok(()) => {}
        Err(error) => return error,
    }
    let list = |texts: &[CString]| -> Vec<*const libc::c_char> {
        texts.iter().map(|text| text.as_ptr()).chain([ptr::null()]).collect()
    };
    let (words, environment) = (list(words), list(environment));
    // SAFETY: three pointers to texts that end in zero bytes, in lists that end in null; all live through the call.
    unsafe { libc::execve(path.as_ptr(), words.as_ptr(), environment.as_ptr()) };
    io::Error::last_os_error()
}

/// Gives descriptors their numbers and closes those behind them.
fn renumber(kept: &[BorrowedFd<'_>]) -> io::Result<()> {
    let count = i32::try_from(kept.len()).map_err(|_| io::Error::from_raw_os_error(libc::EMFILE))?;
    let end = FIRST + count;
    // First out of the way of all numbers that are given, then under them.
    let mut aside = Vec::new();
    for fd in kept {
        // SAFETY: F_DUPFD_CLOEXEC takes an integer; the descriptor is borrowed and so open.
        aside.push(checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, end) })?);
    }
    for (number, fd) in (FIRST..).zip(aside) {
        // SAFETY: two integers. What stood under the number belongs to this process alone, which ends or becomes another.
        checked(unsafe { libc::dup2(fd, number) })?;
    }
    close_from(end)
}

/// Closes everything from a number on (Linux 5.9).
fn close_from(first: i32) -> io::Result<()> {
    // SAFETY: three integers; as above.
    checked_long(unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) })?;
    Ok(())
}
