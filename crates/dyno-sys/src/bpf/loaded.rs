//! What BPF programs the machine has loaded, ours and others' (`bpf(2)`).
//!
//! Tests compare the numbers before and after; the host's facts name the programs. Nothing is loaded here.

use crate::errno::checked_long;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The numbers of all BPF programs and links of the machine: what is the same before and after was left as it was.
/// Needs CAP_SYS_ADMIN.
pub fn ids() -> io::Result<(Vec<u32>, Vec<u32>)> {
    Ok((every_id(PROG_GET_NEXT_ID)?, every_id(LINK_GET_NEXT_ID)?))
}

/// A BPF program that is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Its number.
    pub id: u32,
    /// What it hooks into, by the number of `enum bpf_prog_type`.
    pub kind: u32,
    /// Its name, at most fifteen letters.
    pub name: String,
}

/// The programs that are loaded, `max` at most. Needs CAP_SYS_ADMIN.
pub fn loaded(max: usize) -> io::Result<Vec<Loaded>> {
    let ids = every_id(PROG_GET_NEXT_ID)?;
    // One that was unloaded meanwhile is left out.
    Ok(ids.into_iter().take(max).filter_map(|id| info(id).ok()).collect())
}

fn info(id: u32) -> io::Result<Loaded> {
    let mut asked = [id, 0, 0];
    let (place, bytes) = (asked.as_mut_ptr(), size_of_val(&asked));
    // SAFETY: `asked` is readable for its whole length through the call.
    let fd = unsafe { libc::syscall(libc::SYS_bpf, PROG_GET_FD_BY_ID, place, bytes) };
    let fd = i32::try_from(checked_long(fd)?).expect("a descriptor is an int");
    // SAFETY: the kernel has just given us this descriptor, and nobody else knows it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let mut told = [0_u8; INFO_BYTES];
    // `bpf_fd`, `info_len` and `info` of `union bpf_attr`.
    let mut asked =
        [u64::from(fd.as_raw_fd().cast_unsigned()) | (INFO_BYTES as u64) << 32, told.as_mut_ptr() as u64];
    let (place, bytes) = (asked.as_mut_ptr(), size_of_val(&asked));
    // SAFETY: `asked` and the memory that it names are ours and live through the call.
    let answer = unsafe { libc::syscall(libc::SYS_bpf, OBJ_GET_INFO_BY_FD, place, bytes) };
    checked_long(answer)?;
    let end = told[64..].iter().position(|byte| *byte == 0).unwrap_or(INFO_BYTES - 64);
    Ok(Loaded {
        id,
        kind: u32::from_le_bytes([told[0], told[1], told[2], told[3]]),
        name: String::from_utf8_lossy(&told[64..64 + end]).into_owned(),
    })
}

/// `struct bpf_prog_info` as far as the end of the name.
const INFO_BYTES: usize = 80;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;

/// Commands of bpf(2), from uapi/linux/bpf.h.
const PROG_GET_NEXT_ID: libc::c_int = 11;
const LINK_GET_NEXT_ID: libc::c_int = 31;

fn every_id(command: libc::c_int) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    loop {
        // `start_id`, `next_id` and `open_flags` of `union bpf_attr`.
        let mut asked = [found.last().copied().unwrap_or(0), 0_u32, 0];
        let (place, bytes) = (asked.as_mut_ptr(), size_of_val(&asked));
        // SAFETY: `asked` is writable for its whole length through the call.
        let answer = unsafe { libc::syscall(libc::SYS_bpf, command, place, bytes) };
        match checked_long(answer) {
            Ok(_) => found.push(asked[1]),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => return Ok(found),
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_is_told_to_whoever_may_know() {
        match (loaded(10_000), ids()) {
            (Ok(programs), Ok((ids, _))) => assert!(programs.iter().all(|one| one.id > 0) || ids.is_empty()),
            (Err(error), Err(_)) => assert_eq!(error.raw_os_error(), Some(libc::EPERM)),
            other => panic!("one may and the other may not: {other:?}"),
        }
    }
}
