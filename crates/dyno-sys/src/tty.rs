//! The terminal: whether there is one, and how large it is.

use std::os::fd::{AsFd, AsRawFd};

/// How large a terminal is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Characters in a line.
    pub columns: usize,
    /// Lines.
    pub rows: usize,
}

/// The size of the terminal behind this descriptor (TIOCGWINSZ, tty_ioctl(4)); `None` when it is none or has no size.
pub fn size(terminal: impl AsFd) -> Option<Size> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    let fd = terminal.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one `winsize`, which `size` is, and keeps no pointer to it.
    let answer = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    let size = Size { columns: usize::from(size.ws_col), rows: usize::from(size.ws_row) };
    (answer == 0 && size.columns > 0).then_some(size)
}

/// Columns of the terminal behind this descriptor; `None` when it is none or has no size.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    size(terminal).map(|size| size.columns)
}

/// Whether there is a terminal behind this descriptor; not any more once it was hung up.
pub fn is_terminal(fd: impl AsFd) -> bool {
    // SAFETY: isatty takes an integer.
    unsafe { libc::isatty(fd.as_fd().as_raw_fd()) == 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_terminal_has_no_width() {
        let (reader, _writer) = crate::socket::pipe().expect("a pipe");
        assert_eq!(columns(&reader), None);
    }
}
