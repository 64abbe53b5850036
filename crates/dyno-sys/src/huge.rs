//! Whether new memory of this process stands in huge pages: `madvise(2)`, and what /proc says of the mapping.
//!
//! The host's proofs call it; the mapping is gone when it returns. Whether huge pages are worth having, others say.

use crate::errno::checked;
use crate::proc;
use std::io;
use std::ptr;

/// A huge page of x86-64 and of arm64 with pages of 4 kB.
const HUGE_BYTES: usize = 2 << 20;
/// Room for one that begins on its boundary.
const MAPPED_BYTES: usize = 2 * HUGE_BYTES;

/// How memory asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asks {
    /// It does not: huge pages are everybody's.
    Nothing,
    /// By `MADV_HUGEPAGE`.
    Madvise,
}

/// Whether memory that is mapped and touched now gets a huge page at once.
pub fn are_given(asks: Asks) -> io::Result<bool> {
    let (access, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping is asked for, of nobody's memory.
    let start = unsafe { libc::mmap(ptr::null_mut(), MAPPED_BYTES, access, kind, -1, 0) };
    if start == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    let told = touched(start, asks);
    // SAFETY: start and length are those of the mapping above, and nothing refers into it.
    unsafe { libc::munmap(start, MAPPED_BYTES) };
    told
}

fn touched(start: *mut libc::c_void, asks: Asks) -> io::Result<bool> {
    if asks == Asks::Madvise {
        // SAFETY: start and length are those of a mapping of ours.
        checked(unsafe { libc::madvise(start, MAPPED_BYTES, libc::MADV_HUGEPAGE) })?;
    }
    let inside = start as usize;
    let at = inside.next_multiple_of(HUGE_BYTES) - inside;
    // SAFETY: at is below HUGE_BYTES, the mapping has twice that.
    let byte = unsafe { start.cast::<u8>().add(at) };
    // SAFETY: the byte is of a mapping of ours that can be written.
    unsafe { byte.write_volatile(1) };
    Ok(huge_kib(&proc::text("/proc/self/smaps")?, inside + at) > 0)
}

/// `AnonHugePages` of the mapping with this address.
fn huge_kib(smaps: &str, address: usize) -> u64 {
    let has = |line: &str| {
        let (from, rest) = line.split_once('-')?;
        let upto = rest.split_whitespace().next()?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        Some((number(from)?..number(upto)?).contains(&address))
    };
    let of_mapping = smaps.lines().skip_while(|line| has(line) != Some(true)).skip(1);
    let mut own = of_mapping.take_while(|line| has(line).is_none());
    let field = own.find_map(|line| line.strip_prefix("AnonHugePages:"));
    field.and_then(|text| text.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn huge_pages_are_counted_of_the_mapping_with_the_address_alone() {
        let smaps = "1000-3000 rw-p 0 00:00 0\nAnonHugePages:  2048 kB\n3000-5000 rw-p 0 00:00 0 [heap]\nRss: 4 kB\nAnonHugePages: 0 kB";
        assert_eq!([0x1000, 0x2fff, 0x3000, 0x9000].map(|at| huge_kib(smaps, at)), [2048, 2048, 0, 0]);
    }

    #[test]
    fn asking_leaves_no_mapping_behind() {
        let before = proc::text("/proc/self/maps").map(|text| text.lines().count());
        assert!(are_given(Asks::Madvise).is_ok() && are_given(Asks::Nothing).is_ok());
        let after = proc::text("/proc/self/maps").map(|text| text.lines().count());
        assert!(before.is_ok_and(|before| after.is_ok_and(|after| after <= before + 2)));
    }
}
