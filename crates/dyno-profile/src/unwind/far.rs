//! The far end of deep stacks: what a copied piece does not reach is read from the process's memory afterwards.
//!
//! The unwinder calls it. A thread seldom leaves its outermost functions (a server's loop, a pool's worker), so what stands
//! there milliseconds later is what stood there at the sample; where that cannot be, `checked` sees it. A page that the
//! thread never touched is not read: it would be zeros, which look like the start of a thread.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use dyno_sys::perf::page_bytes;
use dyno_sys::{Pid, proc};

use super::walked::Cut;

/// Words nearer to the stack pointer than this change with every call: only the copied piece has them as they were.
const NEAREST: u64 = 8 << 10;
/// Eight times the most that a kernel copies, and a usual limit of a thread's stack.
const FARTHEST: u64 = 512 << 10;
const PAGE: u64 = 4 << 10;
/// Processes whose memory is kept open.
const OPEN_MAX: usize = 64;

/// Memory of processes, read page by page and kept until [`Far::forget`]. Pages begin at multiples of [`PAGE`], and what is
/// kept of one is whole.
#[derive(Default)]
pub(crate) struct Far {
    memory: HashMap<Pid, Option<Memory>>,
    pages: HashMap<(Pid, u64), Page>,
}

/// A page's bytes, or why they cannot be believed.
type Page = Result<Box<[u8]>, Cut>;

/// A process's memory, and which of its pages are there.
struct Memory {
    bytes: File,
    /// Absent where the kernel has none, or does not show it.
    pages: Option<File>,
}

impl Far {
    /// Drops what was read: it may have changed since.
    pub(crate) fn forget(&mut self) {
        self.pages.clear();
        if self.memory.len() > OPEN_MAX {
            self.memory.clear();
        }
        debug_assert!(self.pages.is_empty() && self.memory.len() <= OPEN_MAX);
    }

    /// A process ended, or runs another program.
    pub(crate) fn forget_process(&mut self, pid: Pid) {
        self.memory.remove(&pid);
        self.pages.retain(|(of, _), _| *of != pid);
    }

    /// The word at an address of the stack whose pointer was `sp`.
    pub(crate) fn word(&mut self, pid: Pid, sp: u64, address: u64) -> Result<u64, Cut> {
        let depth = address.checked_sub(sp).filter(|depth| *depth < FARTHEST).ok_or(Cut::NoRule)?;
        let at = usize::try_from(address % PAGE).map_err(|_| Cut::NoRule)?;
        let page = self.page(pid, address - address % PAGE)?;
        if depth < NEAREST {
            return Err(Cut::CopyEnded);
        }
        let word = page.get(at..).and_then(|rest| rest.first_chunk()).ok_or(Cut::NoRule)?;
        Ok(u64::from_ne_bytes(*word))
    }

    /// Why frames behind the end of a copied piece may be wrong: what a copy stops at, or what became of the rest since.
    pub(crate) fn why_behind(&mut self, pid: Pid, end: u64) -> Cut {
        let page = self.page(pid, end - end % PAGE);
        if page == Err(Cut::Untouched) { Cut::Untouched } else { Cut::Changed }
    }

    fn page(&mut self, pid: Pid, start: u64) -> Result<&[u8], Cut> {
        assert_eq!(start % PAGE, 0, "a page is read once");
        let memory = &mut self.memory;
        let read = || {
            let memory = memory.entry(pid).or_insert_with(|| Memory::open(pid)).as_ref();
            memory.ok_or(Cut::CopyEnded)?.page(start)
        };
        let page = self.pages.entry((pid, start)).or_insert_with(read);
        page.as_deref().map_err(|cut| *cut)
    }
}

/// Of a page in the kernel's table: it is in memory, or was written out.
const PRESENT: u64 = 1 << 63;
const SWAPPED: u64 = 1 << 62;

impl Memory {
    fn open(pid: Pid) -> Option<Memory> {
        let folder = proc::folder(pid);
        let bytes = File::open(format!("{folder}/mem")).ok()?;
        Some(Memory { bytes, pages: File::open(format!("{folder}/pagemap")).ok() })
    }

    fn page(&self, start: u64) -> Page {
        if !self.is_touched(start) {
            return Err(Cut::Untouched);
        }
        let mut page = vec![0; PAGE as usize];
        self.bytes.read_exact_at(&mut page, start).map_err(|_| Cut::Untouched)?;
        Ok(page.into_boxed_slice())
    }

    /// Whether something was ever written there; also where the kernel does not say.
    fn is_touched(&self, start: u64) -> bool {
        let Some(pages) = &self.pages else { return true };
        let mut entry = [0; 8];
        if pages.read_exact_at(&mut entry, start / page_bytes() as u64 * 8).is_err() {
            return true;
        }
        u64::from_ne_bytes(entry) & (PRESENT | SWAPPED) != 0
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_word_far_up_is_read_from_the_process_and_a_near_one_is_not() {
        let stack: Vec<u64> = (0..4_096).collect();
        let (pid, sp) = (dyno_sys::child::this(), stack.as_ptr().addr() as u64);
        let mut far = Far::default();
        assert_eq!(far.word(pid, sp, sp + 8 * 3_000), Ok(3_000));
        assert_eq!(far.word(pid, sp, sp + 8 * 100), Err(Cut::CopyEnded), "the copy has it");
        assert_eq!(far.word(pid, sp, sp + FARTHEST), Err(Cut::NoRule));
        assert_eq!(far.word(pid, sp, sp - 8), Err(Cut::NoRule));
        assert_eq!(far.word(pid, 0, 4 * PAGE), Err(Cut::Untouched), "nothing is mapped there");
    }
    /// Planted fault: `is_touched` answers always yes; then zeros are read, which look like the start of a thread.
    #[test]
    fn a_page_that_nobody_wrote_to_is_told_from_one_that_holds_a_word() {
        if !std::path::Path::new("/proc/self/pagemap").exists() {
            assert!(std::env::var_os("CI").is_none(), "CI has page maps, or this says nothing");
            println!("not tested: this kernel has no page maps");
            return;
        }
        // A huge page would be touched with its neighbours. So long that the allocator asks the kernel for it.
        dyno_sys::child::no_huge_pages().unwrap();
        let mut stack = vec![0_u64; 8 << 20];
        let (pid, sp, far_up) = (dyno_sys::child::this(), stack.as_ptr().addr() as u64, 32 << 10);
        assert_eq!(Far::default().word(pid, sp, sp + 8 * far_up), Err(Cut::Untouched));
        std::hint::black_box(&mut stack)[far_up as usize] = 7;
        assert_eq!(Far::default().word(pid, sp, sp + 8 * far_up), Ok(7));
    }
}
