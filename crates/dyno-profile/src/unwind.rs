//! From registers and a copied piece of stack to the calls that led here.
//!
//! By the compiler's tables where a file has them, by frame pointers elsewhere, module by module; through code without a
//! file by its own instructions where they tell (`made`). Where the copied piece ends the process's memory goes on (`far`).
//! The kernel's own walk over frame pointers, where a sample has one, continues what the copied bytes cannot: it reads the
//! whole stack, and with Go also across a switch of stacks. What came of it is checked before it is shown (`checked`).

mod checked;
mod far;
mod made;
mod walked;

use std::cell::Cell;
use std::collections::HashMap;

use dyno_sys::Pid;
use dyno_sys::perf::UserRegs;
use framehop::{CacheNative, FrameAddress, MayAllocateDuringUnwind, UnwindRegsNative, Unwinder as _};

use crate::hotspot::Function;
use crate::image::UnwoundBy;
use crate::image::spaces::AddressSpaces;
use checked::Checks;
use far::Far;
use made::Made;
pub use walked::{Cut, Ended, Walked};
pub(crate) use walked::{by_words, causes};

/// The deepest stack: deeper ones are recursions, which look alike; the kernel's own limit is 127.
const FRAMES_MAX: usize = 1_024;

/// Walks stacks; rules once found are cached, over all processes.
#[derive(Default)]
pub struct Unwinder {
    cache: CacheNative<MayAllocateDuringUnwind>,
    far: Far,
    made: Made,
    checks: Checks,
}

impl Unwinder {
    /// An unwinder with empty caches.
    pub fn new() -> Unwinder {
        Unwinder::default()
    }

    /// Drops memory of processes that was read: it may have changed since.
    pub fn forget_memory(&mut self) {
        self.far.forget();
    }

    /// A process ended, or runs another program.
    pub fn forget_process(&mut self, pid: Pid) {
        self.far.forget_process(pid);
        self.made.forget_process(pid);
        self.checks.forget_process(pid);
    }

    /// What was compiled in each Java virtual machine that was seen, also in those that are gone.
    pub(crate) fn compiled(&mut self) -> HashMap<Pid, Vec<Function>> {
        self.made.functions()
    }

    /// The stack of a thread with these registers, whose stack from the stack pointer upwards is `stack`. `chain` is
    /// what the kernel found by frame pointers, leaf first, or empty.
    pub fn unwind(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        regs: &UserRegs,
        stack: &[u8],
        chain: &[u64],
    ) -> Walked {
        let (walked, first_far) = self.walk(spaces, pid, regs, stack, chain);
        assert!(walked.addresses.len() <= FRAMES_MAX.max(chain.len() + 1), "a stack is bounded");
        let end = regs.sp.saturating_add(stack.len() as u64);
        let far = first_far.map(|first| (first, self.far.why_behind(pid, end)));
        self.checks.passed(spaces, pid, walked, far)
    }

    /// The stack that the kernel's chain alone tells.
    pub(crate) fn chained(&mut self, spaces: &mut AddressSpaces, pid: Pid, chain: &[u64]) -> Walked {
        self.checks.passed(spaces, pid, by_chain(chain), None)
    }

    /// Before it is checked, with the place of the first frame that was found in words read afterwards.
    fn walk(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        regs: &UserRegs,
        stack: &[u8],
        chain: &[u64],
    ) -> (Walked, Option<usize>) {
        if by_frame_pointers(spaces, pid, regs.ip) && chain.len() > 1 {
            return self.mended(spaces, pid, regs, stack, chain);
        }
        if !spaces.learned(pid) {
            return (by_chain(chain), None);
        }
        let mut walk = Walk::default();
        let mut far = |address| self.far.word(pid, regs.sp, address);
        let way = (&mut self.cache, &mut self.made);
        walk.over((spaces, pid), way, regs, stack, (FRAMES_MAX, &mut far));
        if walk.ended != Ended::AtRoot {
            walk.continue_by(spaces, pid, chain);
        }
        assert!(walk.frames.len() <= FRAMES_MAX, "a stack is bounded, however it was walked");
        walk.walked()
    }

    /// The kernel's chain with the caller of the leaf put in where the leaf keeps no frame of its own: the chain then
    /// has only that caller's caller. Where the leaf uses the frame pointer for something else the chain leads nowhere:
    /// then by tables as far as the copied bytes reach.
    fn mended(
        &mut self,
        spaces: &mut AddressSpaces,
        pid: Pid,
        regs: &UserRegs,
        stack: &[u8],
        chain: &[u64],
    ) -> (Walked, Option<usize>) {
        let mut walked = by_chain(chain);
        let leads_nowhere = chain.get(1).is_some_and(|caller| spaces.locate(pid, *caller).is_none());
        if !spaces.learned(pid) {
            return (walked, None);
        }
        let mut walk = Walk::default();
        let way = (&mut self.cache, &mut self.made);
        if leads_nowhere {
            let mut far = |address| self.far.word(pid, regs.sp, address);
            walk.over((spaces, pid), way, regs, stack, (FRAMES_MAX, &mut far));
            return if walk.frames.len() > 1 { walk.walked() } else { (walked, None) };
        }
        walk.over((spaces, pid), way, regs, stack, (2, &mut |_| Err(Cut::CopyEnded)));
        let caller = walk.frames.get(1).map(|frame| frame.address_for_lookup());
        let missing = caller.filter(|caller| walked.addresses.get(1) != Some(caller));
        if let Some(caller) = missing.filter(|caller| spaces.locate(pid, *caller).is_some()) {
            assert!(!walked.addresses.is_empty(), "a chain has its leaf");
            walked.addresses.insert(1, caller);
        }
        (walked, None)
    }
}

/// What is looked up of an address and its place in a stack, the leaf first: the instruction that ran, and of a caller one
/// byte before the address that is returned to.
pub(crate) fn within_call((at, address): (usize, &u64)) -> u64 {
    if at == 0 { *address } else { address.saturating_sub(1) }
}

/// A stack by the kernel's chain alone, unchecked.
fn by_chain(chain: &[u64]) -> Walked {
    // Where the last frame pointer is zero a root looks like a register that was used otherwise.
    let ended = Ended::Cut(Cut::NoRule);
    Walked { addresses: chain.iter().enumerate().map(within_call).collect(), ended }
}

struct Walk {
    frames: Vec<FrameAddress>,
    ended: Ended,
    /// The place of the first frame for which a word was read from memory afterwards.
    first_far: Option<usize>,
}

impl Default for Walk {
    fn default() -> Walk {
        Walk { frames: Vec::new(), ended: Ended::Cut(Cut::NoRule), first_far: None }
    }
}

impl Walk {
    fn over(
        &mut self,
        (spaces, pid): (&AddressSpaces, Pid),
        (cache, made): (&mut CacheNative<MayAllocateDuringUnwind>, &mut Made),
        regs: &UserRegs,
        stack: &[u8],
        (frames_max, far): (usize, &mut dyn FnMut(u64) -> Result<u64, Cut>),
    ) {
        let Some(rules) = spaces.rules(pid) else { return };
        // The reader is lent while frames come: what it saw is told through cells.
        let (place, first_far, why) = (Cell::new(0), Cell::new(None), Cell::new(Cut::NoRule));
        let mut read = |address: u64| {
            let at = usize::try_from(address.wrapping_sub(regs.sp)).map_err(|_| ())?;
            if let Some(word) = stack.get(at..).and_then(|rest| rest.first_chunk()) {
                return Ok(u64::from_ne_bytes(*word));
            }
            first_far.set(first_far.get().or(Some(place.get())));
            far(address).map_err(|cut| why.set(cut))
        };
        let mut moving = native(regs);
        let mut next = Some(FrameAddress::from_instruction_pointer(regs.ip));
        self.ended = Ended::AtRoot;
        while let Some(frame) = next {
            if self.frames.len() == frames_max {
                self.ended = Ended::Cut(Cut::TooDeep);
                break;
            }
            self.frames.push(frame);
            place.set(self.frames.len());
            let is_leaf = self.frames.len() == 1;
            let in_made = spaces.is_made(pid, frame.address_for_lookup());
            let by_code =
                in_made.then(|| made.step(pid, (frame.address(), is_leaf), &mut moving, &mut read)).flatten();
            let found = by_code.map_or_else(
                || rules.unwind_frame(frame, &mut moving, cache, &mut read),
                |word| Ok(Some(word)),
            );
            next = match found {
                Ok(Some(address)) => FrameAddress::from_return_address(address),
                Ok(None) => break,
                Err(_) => None,
            };
            if next.is_none() {
                self.ended = Ended::Cut(why.get());
            }
        }
        self.first_far = first_far.get();
    }

    /// Where the bytes ended in code with frame pointers, the kernel's chain knows the rest.
    fn continue_by(&mut self, spaces: &mut AddressSpaces, pid: Pid, chain: &[u64]) {
        let Some(last) = self.frames.last().map(|frame| frame.address()) else { return };
        if !by_frame_pointers(spaces, pid, last) {
            return;
        }
        let rest = chain.iter().position(|address| *address == last).map_or(&[][..], |at| &chain[at + 1..]);
        self.frames.extend(rest.iter().filter_map(|address| FrameAddress::from_return_address(*address)));
        self.frames.truncate(FRAMES_MAX);
        if !rest.is_empty() {
            self.ended = Ended::Cut(Cut::NoRule);
        }
        debug_assert!(self.frames.iter().any(|frame| frame.address() == last), "what was walked stays");
    }

    fn walked(self) -> (Walked, Option<usize>) {
        let addresses = self.frames.iter().map(|frame| frame.address_for_lookup()).collect();
        (Walked { addresses, ended: self.ended }, self.first_far)
    }
}

fn by_frame_pointers(spaces: &mut AddressSpaces, pid: Pid, address: u64) -> bool {
    let place = spaces.locate(pid, address);
    place.is_some_and(|place| spaces.images().get(place.image).unwound_by() == UnwoundBy::FramePointers)
}

#[cfg(target_arch = "x86_64")]
fn native(regs: &UserRegs) -> UnwindRegsNative {
    UnwindRegsNative::new(regs.ip, regs.sp, regs.fp)
}

#[cfg(target_arch = "aarch64")]
fn native(regs: &UserRegs) -> UnwindRegsNative {
    UnwindRegsNative::new(regs.lr, regs.sp, regs.fp)
}

#[cfg(test)]
mod tests {
    use super::*;
    use dyno_sys::perf::Mmap;

    #[test]
    fn a_chains_callers_point_into_their_calls() {
        let walked = by_chain(&[0x1000, 0x2005, 0x3009]);
        assert_eq!(walked.addresses, [0x1000, 0x2004, 0x3008]);
    }

    #[test]
    fn a_stack_of_code_without_tables_is_walked_by_frame_pointers_to_its_end() {
        let mut spaces = AddressSpaces::new();
        spaces.exec(7);
        let (start, length, path) = (0x9_0000, 0x3_0000, b"//anon".as_slice());
        spaces.mmap(&Mmap { pid: 7, time_ns: 0, start, length, offset: 0, inode: 0, path });
        let stack: Vec<u8> = [1, 2, 0x50_0030, 0xa_0000, 3, 4, 0, 0xb_0000]
            .iter()
            .flat_map(|word: &u64| word.to_ne_bytes())
            .collect();
        let regs = UserRegs { ip: 0x9_0000, sp: 0x50_0000, fp: 0x50_0010, lr: 0 };
        let walked = Unwinder::new().unwind(&mut spaces, 7, &regs, &stack, &[]);
        assert_eq!(walked.addresses[..2], [0x9_0000, 0x9_ffff], "{walked:?}");
        let short = Unwinder::new().unwind(&mut spaces, 7, &regs, &stack[..8], &[]);
        assert_eq!((short.addresses.len(), short.ended), (1, Ended::Cut(Cut::CopyEnded)));
    }
}
