//! The far end of deep stacks: what a copied piece does not reach is read from the process's memory afterwards.
//!
//! The unwinder calls it. A thread seldom leaves its outermost functions (a server's loop, a pool's worker), so what stands
//! there milliseconds later is what stood there at the sample. A walk that ends at no root is taken as cut all the same.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use dyno_sys::{Pid, proc};

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
    memory: HashMap<Pid, Option<File>>,
    pages: HashMap<(Pid, u64), Option<Box<[u8]>>>,
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
    pub(crate) fn word(&mut self, pid: Pid, sp: u64, address: u64) -> Option<u64> {
        let depth = address.checked_sub(sp)?;
        if !(NEAREST..FARTHEST).contains(&depth) {
            return None;
        }
        debug_assert!(depth < FARTHEST && address >= sp, "only the stack is read");
        let at = usize::try_from(address % PAGE).ok()?;
        let word = self.page(pid, address - address % PAGE)?.get(at..)?.first_chunk()?;
        Some(u64::from_ne_bytes(*word))
    }

    fn page(&mut self, pid: Pid, start: u64) -> Option<&[u8]> {
        assert_eq!(start % PAGE, 0, "a page is read once");
        let memory = &mut self.memory;
        let read = || {
            let open = || File::open(format!("{}/mem", proc::folder(pid))).ok();
            let file = memory.entry(pid).or_insert_with(open).as_ref()?;
            let mut page = vec![0; PAGE as usize];
            file.read_exact_at(&mut page, start).ok()?;
            Some(page.into_boxed_slice())
        };
        self.pages.entry((pid, start)).or_insert_with(read).as_deref()
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
        assert_eq!(far.word(pid, sp, sp + 8 * 3_000), Some(3_000));
        assert_eq!(far.word(pid, sp, sp + 8 * 100), None, "the copy has it");
        assert_eq!(far.word(pid, sp, sp + FARTHEST), None);
        assert_eq!(far.word(pid, sp, sp - 8), None);
        assert_eq!(far.word(pid, 0, 4 * PAGE), None, "nothing is mapped there");
    }
}
