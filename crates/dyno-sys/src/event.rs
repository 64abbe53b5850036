//! A wake-up across threads (`eventfd(2)`): one side signals, the other watches the descriptor in its epoll instance.

use crate::errno::checked;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};

/// A counter in the kernel that can be waited for: readable once it was signalled, until it is cleared.
#[derive(Debug)]
pub struct EventFd {
    fd: OwnedFd,
}

impl EventFd {
    /// One that is not signalled; close-on-exec and nonblocking.
    pub fn new() -> io::Result<EventFd> {
        // SAFETY: eventfd takes no pointer.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(EventFd { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Makes it readable. Any thread may call it; it never blocks and cannot fail in a way that matters: a counter that
    /// is full is readable already.
    pub fn signal(&self) {
        let one = 1_u64.to_ne_bytes();
        let _ = crate::socket::write(&self.fd, &one);
    }

    /// Makes it not readable until the next signal.
    pub fn clear(&self) {
        let mut count = 0_u64.to_ne_bytes();
        let _ = crate::socket::read(&self.fd, &mut count);
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use crate::epoll::{Epoll, Events, Interest, Timeout};

    #[test]
    fn signals_gather_until_they_are_cleared() {
        let event = EventFd::new().unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(&event, 7, Interest::READ).unwrap();
        let mut events = Events::with_capacity(2);
        let mut ready = || epoll.wait(&mut events, Timeout::Poll).unwrap().len();
        assert_eq!(ready(), 0);
        event.signal();
        event.signal();
        assert_eq!(ready(), 1);
        event.clear();
        assert_eq!(ready(), 0);
    }
}
