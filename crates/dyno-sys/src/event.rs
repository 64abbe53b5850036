//! Wake-ups across threads (`eventfd(2)`): one side signals, the other watches the descriptor in its epoll instance, or
//! waits at it as at a semaphore.

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

/// A count that threads wait for to be more than nothing: each wait takes one. Whoever adds to it never waits and takes no
/// lock, which a mutex with a condition would ask for.
#[derive(Debug)]
pub struct Semaphore {
    fd: OwnedFd,
}

impl Semaphore {
    /// One that counts nothing yet; close-on-exec.
    pub fn new() -> io::Result<Semaphore> {
        // SAFETY: eventfd takes no pointer.
        let fd = checked(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_SEMAPHORE) })?;
        // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
        Ok(Semaphore { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Adds so many, which wakes as many of those who wait.
    pub fn add(&self, count: u64) {
        // It would wait only at 2^64 - 1, and fail only for that number or a closed descriptor.
        let _ = crate::socket::write(&self.fd, &count.to_ne_bytes());
    }

    /// Takes one, and waits for it if there is none.
    pub fn take(&self) {
        let mut one = 0_u64.to_ne_bytes();
        let _ = crate::socket::read(&self.fd, &mut one);
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

    #[test]
    fn a_semaphore_lets_as_many_through_as_were_added() {
        let (count, threads) = (100, 4);
        let semaphore = Semaphore::new().unwrap();
        semaphore.add(1);
        semaphore.take();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| (0..count).for_each(|_| semaphore.take()));
            }
            (0..count).for_each(|_| semaphore.add(threads));
        });
    }
}
