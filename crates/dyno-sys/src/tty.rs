//! The terminal: how wide it is.

use std::os::fd::{AsFd, AsRawFd};

/// Columns of the terminal behind this descriptor (TIOCGWINSZ, tty_ioctl(4)); `None` when it is none or has no size.
pub fn columns(terminal: impl AsFd) -> Option<usize> {
    let mut size = libc::winsize { ws_row: 0, ws_col: 0, ws_xpixel: 0, ws_ypixel: 0 };
    let fd = terminal.as_fd().as_raw_fd();
    // SAFETY: the kernel writes one `winsize`, which `size` is, and keeps no pointer to it.
    let answer = unsafe { libc::ioctl(fd, libc::TIOCGWINSZ, &raw mut size) };
    (answer == 0 && size.ws_col > 0).then_some(usize::from(size.ws_col))
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
