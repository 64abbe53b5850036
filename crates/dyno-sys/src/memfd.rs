//! Memory that is a file without a name (`memfd_create(2)`), sealed so that nobody can change it any more, and mapped.
//!
//! The engine's content is written into one, sealed, and mapped by every worker. What is not sealed is not mapped:
//! memory that another process can write is no `&[u8]`.

use crate::clock;
use crate::errno::checked;
use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};

/// After these nobody can write to it or change its length, nor take a seal off (fcntl(2), F_ADD_SEALS).
const SEALS: libc::c_int = libc::F_SEAL_WRITE | libc::F_SEAL_GROW | libc::F_SEAL_SHRINK | libc::F_SEAL_SEAL;

/// An empty one that can be written; `name` is what procfs calls it.
///
/// # Errors
/// What memfd_create(2) says.
pub fn create(name: &CStr) -> io::Result<File> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: `name` ends with a zero and lives through the call.
    let fd = checked(unsafe { libc::memfd_create(name.as_ptr(), flags) })?;
    // SAFETY: the kernel has just handed out this descriptor and nobody else knows it.
    Ok(File::from(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// A huge page of x86-64 and of arm64 with pages of 4 kB.
pub const HUGE_BYTES: usize = 2 << 20;

/// Puts the first `bytes` bytes, whole huge pages that are written, into huge pages (`MADV_COLLAPSE`, Linux 6.1; it asks no
/// setting of the host). `sendfile` then lends a socket few large pieces instead of many small pages.
///
/// # Errors
/// What mmap(2) and madvise(2) say, `EINVAL` of older kernels among it. What could be done stays done.
pub fn make_huge(fd: impl AsFd, bytes: usize) -> io::Result<()> {
    let bytes = bytes / HUGE_BYTES * HUGE_BYTES;
    if bytes == 0 {
        return Ok(());
    }
    let (null, room) = (std::ptr::null_mut(), bytes + HUGE_BYTES);
    let private = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // Room in which an address that a huge page can have is somewhere; nothing of it is ever touched.
    // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
    let start = unsafe { libc::mmap(null, room, libc::PROT_NONE, private, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let ahead = start.addr().next_multiple_of(HUGE_BYTES) - start.addr();
    let at = start.wrapping_byte_add(ahead);
    let kind = libc::MAP_SHARED | libc::MAP_FIXED;
    // SAFETY: `at` and `bytes` lie within the room mapped above, to which nothing refers.
    let mapped = unsafe { libc::mmap(at, bytes, libc::PROT_READ, kind, fd.as_fd().as_raw_fd(), 0) };
    let made = if mapped == libc::MAP_FAILED {
        Err(io::Error::last_os_error())
    } else {
        // SAFETY: `at` and `bytes` are those of the mapping just made; its content stays as it is.
        checked(unsafe { libc::madvise(at, bytes, libc::MADV_COLLAPSE) }).map(|_| ())
    };
    // SAFETY: start and length are those of the room, with the mapping in it, and nothing refers into it.
    unsafe { libc::munmap(start, room) };
    made
}

/// So long somebody may have it by chance: a child between fork and exec has what its parent had mapped at that moment, and whoever
/// moves pages holds them for a moment.
const BUSY_NS_MAX: u64 = 1_000_000_000;
const BUSY_NAP_NS: u64 = 1_000_000;

/// Ends all change of it for good.
///
/// # Errors
/// What fcntl(2) says: `EBUSY` where somebody has it mapped so that he may write, and still does after a second.
pub fn seal(fd: impl AsFd) -> io::Result<()> {
    let until_ns = clock::mono_ns() + BUSY_NS_MAX;
    loop {
        // SAFETY: F_ADD_SEALS takes a number.
        match checked(unsafe { libc::fcntl(fd.as_fd().as_raw_fd(), libc::F_ADD_SEALS, SEALS) }) {
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) && clock::mono_ns() < until_ns => {
                clock::sleep_ns(BUSY_NAP_NS);
            }
            sealed => return sealed.map(|_| ()),
        }
    }
}

/// Bytes of a sealed memfd, for as long as this lives.
#[derive(Debug)]
pub struct Mapping {
    start: *const u8,
    bytes: usize,
}

// SAFETY: the memory is sealed: all that anybody can do with it is to read it.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// All of it.
    ///
    /// # Errors
    /// `PermissionDenied` when it is not sealed; what fcntl(2), fstat(2) and mmap(2) say.
    pub fn of_sealed(fd: impl AsFd) -> io::Result<Mapping> {
        let fd = fd.as_fd();
        // SAFETY: F_GET_SEALS takes nothing.
        let seals = checked(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GET_SEALS) })?;
        if seals & SEALS != SEALS {
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it is not sealed"));
        }
        let length = File::from(fd.try_clone_to_owned()?).metadata()?.len();
        let bytes = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
        if bytes == 0 {
            return Ok(Mapping { start: std::ptr::NonNull::dangling().as_ptr(), bytes });
        }
        let (access, kind) = (libc::PROT_READ, libc::MAP_SHARED);
        let null = std::ptr::null_mut();
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let start = unsafe { libc::mmap(null, bytes, access, kind, fd.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping { start: start.cast_const().cast(), bytes })
    }
}

impl AsRef<[u8]> for Mapping {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: `bytes` bytes are mapped from `start` on until this is dropped, and the seals keep them as they are.
        unsafe { std::slice::from_raw_parts(self.start, self.bytes) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: `of_sealed` has mapped exactly this, and no reference into it outlives `self`.
            unsafe { libc::munmap(self.start.cast_mut().cast(), self.bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_sealed_is_read_by_all_and_changed_by_nobody() {
        let mut file = create(c"a test").unwrap();
        file.write_all(b"for good").unwrap();
        let refused = Mapping::of_sealed(&file).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "not before it is sealed");
        seal(&file).unwrap();
        assert!(file.write_all(b"x").is_err() && file.set_len(1).is_err() && file.set_len(100).is_err());
        let mapping = Mapping::of_sealed(&file).unwrap();
        drop(file);
        assert_eq!(mapping.as_ref(), b"for good");
    }

    /// As a child between fork and exec does. Planted fault: the first refusal counts.
    #[test]
    fn who_has_it_mapped_for_a_moment_is_waited_for() {
        let mut file = create(c"a test").unwrap();
        file.write_all(&[7; 4096]).unwrap();
        let (null, access) = (std::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping at an address of the kernel's choice touches nothing that exists.
        let at = unsafe { libc::mmap(null, 4096, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        assert_ne!(at, libc::MAP_FAILED);
        let at = at.addr();
        let ends = std::thread::spawn(move || {
            clock::sleep_ns(50_000_000);
            // SAFETY: exactly what was mapped above, and nothing refers into it.
            unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(at), 4096) }
        });
        seal(&file).unwrap();
        assert_eq!(ends.join().unwrap(), 0);
    }

    #[test]
    fn what_is_put_into_huge_pages_stays_what_it_was() {
        let bytes: Vec<u8> = (0..2 * HUGE_BYTES).map(|at| (at ^ at >> 8) as u8).collect();
        let mut file = create(c"a test").unwrap();
        file.write_all(&bytes).unwrap();
        match make_huge(&file, bytes.len()) {
            Ok(()) => {}
            Err(error) => println!("this kernel makes no huge pages: {error}"),
        }
        seal(&file).unwrap();
        assert!(Mapping::of_sealed(&file).unwrap().as_ref() == bytes);
    }

    #[test]
    fn nothing_can_be_sealed_and_mapped_too() {
        let file = create(c"a test").unwrap();
        seal(&file).unwrap();
        assert!(Mapping::of_sealed(&file).unwrap().as_ref().is_empty());
    }

    #[test]
    fn an_ordinary_file_is_refused() {
        assert!(Mapping::of_sealed(File::open("/proc/self/exe").unwrap()).is_err());
    }
}
