//! The kernel's way of saying no, as `io::Result`. Used by every module here; never exported.

use std::io;

/// The error number that the last failed call of this thread left.
#[inline]
pub(crate) fn last() -> i32 {
    // An `io::Error` made by `last_os_error` always holds an OS error number.
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// Calls that answer -1 and set errno.
#[inline]
pub(crate) fn checked(answer: libc::c_int) -> io::Result<libc::c_int> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The same for calls made through `syscall(2)`, which answer a long.
#[inline]
pub(crate) fn checked_long(answer: libc::c_long) -> io::Result<libc::c_long> {
    if answer == -1 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}

/// The same for calls that answer a length.
#[inline]
pub(crate) fn checked_size(answer: isize) -> io::Result<usize> {
    usize::try_from(answer).map_err(|_| io::Error::last_os_error())
}
