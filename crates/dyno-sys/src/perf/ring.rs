//! The ring that the kernel writes records into and one reader empties (`perf_event_open(2)`, "MMAP layout").
//!
//! The kernel never overwrites what was not read: what finds no room is counted as lost.

use super::sampling::SamplingEvent;
use crate::clock::mono_ns;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Release};

/// Places in the first page, `struct perf_event_mmap_page`.
const DATA_HEAD: usize = 1_024;
const DATA_TAIL: usize = 1_032;

/// The ring of one CPU, or of one thread.
#[derive(Debug)]
pub struct Ring {
    base: *mut u8,
    page_bytes: usize,
    data_bytes: usize,
}

// SAFETY: the mapping belongs to this value alone and may be read from whichever thread owns it.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `bytes`, rounded up to a power of two of pages. `EPERM` when the user may not lock so much memory
    /// (kernel.perf_event_mlock_kb per CPU, then RLIMIT_MEMLOCK).
    pub fn map(event: &impl AsFd, bytes: usize) -> io::Result<Ring> {
        let page_bytes = page_bytes();
        let data_bytes = bytes.div_ceil(page_bytes).next_power_of_two() * page_bytes;
        assert!(data_bytes.is_power_of_two(), "places in {data_bytes} bytes are found by a mask");
        let (null, rights) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        let (fd, size) = (event.as_fd().as_raw_fd(), page_bytes + data_bytes);
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
        let base = unsafe { libc::mmap(null, size, rights, libc::MAP_SHARED, fd, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Ring { base: base.cast(), page_bytes, data_bytes })
    }

    /// Bytes of records it holds at most.
    pub fn capacity(&self) -> usize {
        self.data_bytes
    }

    /// Appends every whole record to `out` and frees their room; the bytes appended.
    pub fn drain(&mut self, out: &mut Vec<u8>) -> usize {
        // Acquire: the records were written before the head moved past them.
        let head = self.position(DATA_HEAD).load(Acquire);
        let tail = self.position(DATA_TAIL).load(Acquire);
        let length = head.wrapping_sub(tail) as usize;
        // More could not have been written without overwriting what nobody has read.
        assert!(length <= self.data_bytes, "{length} bytes are in a ring of {}", self.data_bytes);
        let from = tail as usize & (self.data_bytes - 1);
        let first = length.min(self.data_bytes - from);
        self.copy(from, first, out);
        self.copy(0, length - first, out);
        // Release: the kernel may write here only after these reads.
        self.position(DATA_TAIL).store(head, Release);
        length
    }

    fn position(&self, at: usize) -> &AtomicU64 {
        assert!(at.is_multiple_of(8) && at + 8 <= self.page_bytes, "{at} is no word of the first page");
        // SAFETY: the first page is mapped as long as `self` lives and the place, just checked, lies in it.
        let place = unsafe { self.base.add(at) };
        // SAFETY: the place is aligned to 8 bytes; the kernel and we use it by whole words only.
        unsafe { AtomicU64::from_ptr(place.cast()) }
    }

    /// `from + length` is at most `data_bytes`, and no part of it is written until the tail moves.
    fn copy(&self, from: usize, length: usize, out: &mut Vec<u8>) {
        assert!(from + length <= self.data_bytes, "{from} + {length} lies in {} bytes", self.data_bytes);
        // SAFETY: just checked: the place lies in the mapping, which begins with the page of positions.
        let start = unsafe { self.base.add(self.page_bytes + from) };
        // SAFETY: the kernel does not write between tail and head, so these bytes are still while the slice lives.
        out.extend_from_slice(unsafe { std::slice::from_raw_parts(start, length) });
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own and nothing borrows from it any more.
        unsafe { libc::munmap(self.base.cast(), self.page_bytes + self.data_bytes) };
    }
}

/// Sleeps until one of the events' rings asks to be read, or `deadline_ns` on `mono_ns` has come. Events whose target is
/// gone (hung up) are taken out of `events`: they would be ready for ever.
pub fn wait(events: &mut Vec<&SamplingEvent>, deadline_ns: u64) -> io::Result<()> {
    let poll_for = |event: &&SamplingEvent| crate::socket::poll_for(event.as_fd().as_raw_fd());
    let mut asked: Vec<libc::pollfd> = events.iter().map(poll_for).collect();
    if mono_ns() < deadline_ns {
        crate::socket::poll(&mut asked, deadline_ns)?;
    }
    let mut hung_up = asked.iter().map(|asked| asked.revents & (libc::POLLHUP | libc::POLLERR) != 0);
    events.retain(|_| !hung_up.next().unwrap_or(false));
    Ok(())
}

/// Bytes of a page of this machine.
pub fn page_bytes() -> usize {
    // SAFETY: sysconf takes a number.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    usize::try_from(bytes).expect("the page size is known on every Linux")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A ring of one page of data in memory of its own, written to as the kernel would.
    fn ring() -> Ring {
        let (null, rights) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        let (kind, size) = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 2 * page_bytes());
        // SAFETY: a new mapping at a place of the kernel's choice touches no memory of ours.
        let base = unsafe { libc::mmap(null, size, rights, kind, -1, 0) };
        assert!(base != libc::MAP_FAILED, "{}", io::Error::last_os_error());
        Ring { base: base.cast(), page_bytes: page_bytes(), data_bytes: page_bytes() }
    }

    fn write(ring: &Ring, at: usize, byte: u8) {
        assert!(at < ring.data_bytes, "{at} lies in the ring");
        // SAFETY: just checked: the place lies in the mapping, which begins with the page of positions.
        let place = unsafe { ring.base.add(ring.page_bytes + at) };
        // SAFETY: the mapping is writable, and nobody else knows it.
        unsafe { place.write(byte) };
    }

    #[test]
    fn what_goes_round_the_end_is_read_in_order_and_its_room_is_free_again() {
        let mut ring = ring();
        let last = ring.capacity() - 1;
        [(last - 1, 1), (last, 2), (0, 3)].into_iter().for_each(|(at, byte)| write(&ring, at, byte));
        ring.position(DATA_TAIL).store(last as u64 - 1, Release);
        ring.position(DATA_HEAD).store(last as u64 + 2, Release);
        let mut out = Vec::new();
        assert_eq!((ring.drain(&mut out), &out[..]), (3, &[1, 2, 3][..]));
        assert_eq!(ring.position(DATA_TAIL).load(Acquire), last as u64 + 2);
        assert_eq!(ring.drain(&mut out), 0);
    }

    #[test]
    #[should_panic(expected = "bytes are in a ring of")]
    fn a_head_beyond_the_tails_reach_is_never_read() {
        let mut ring = ring();
        let beyond = ring.capacity() as u64 + 1;
        ring.position(DATA_HEAD).store(beyond, Release);
        ring.drain(&mut Vec::new());
    }

    #[test]
    #[should_panic(expected = "is no word of the first page")]
    fn a_place_behind_the_first_page_is_no_position() {
        let _ = ring().position(page_bytes());
    }
}
