//! Through code that a process made while it ran, where it keeps no frame pointer: by the instructions that lead out.
//!
//! The unwinder asks it where no file has tables. CPython's trampolines (`python3 -X perf`) take eight bytes of stack, call,
//! give them back and return. What runs straight from an address to a return says by itself where the caller's frame lies;
//! code that branches or calls before it returns says nothing, and is left to its frame pointer.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

use dyno_sys::{Pid, proc};
use framehop::UnwindRegsNative;

use crate::hotspot::{Caller, Function, HotSpot};

/// So much code is read behind an address: the way out of a trampoline takes ten bytes, the end of a function thirty.
const CODE_BYTES: usize = 64;
/// Ways that are remembered; then they are all forgotten.
const WAYS_MAX: usize = 1 << 16;

/// Ways out of code that were found, or that there is none.
#[derive(Default)]
pub(super) struct Made {
    ways: HashMap<(Pid, u64), Option<Way>>,
    /// Java virtual machines.
    machines: HashMap<Pid, Option<HotSpot>>,
    /// What those had compiled that are gone.
    gone: HashMap<Pid, Vec<Function>>,
}

/// Where the return address and the caller's frame pointer lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Way {
    returns_to: Slot,
    /// `None`: it is what it was.
    frame: Option<Slot>,
    /// Bytes that the return itself takes off the stack, its own address included.
    taken: u64,
}

/// A word of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    from: From,
    offset: i64,
}

/// A register as it was at the address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum From {
    Stack,
    Frame,
}

impl Made {
    /// The return address of the frame that is at `address` of code without a file, and its caller's registers; `None`
    /// where its instructions do not tell.
    pub(super) fn step(
        &mut self,
        pid: Pid,
        (address, is_leaf): (u64, bool),
        regs: &mut UnwindRegsNative,
        read: &mut impl FnMut(u64) -> Result<u64, ()>,
    ) -> Option<u64> {
        let machine = self.machines.entry(pid).or_insert_with(|| HotSpot::of(pid));
        if let Some(machine) = machine.as_mut().filter(|_| cfg!(target_arch = "x86_64")) {
            let found = machine.caller((address, is_leaf), (regs.sp(), frame_pointer(regs)), read);
            if let Some(Caller { returns_to, sp, frame }) = found {
                *regs = registers(returns_to, sp, frame);
                return Some(returns_to);
            }
        }
        if self.ways.len() >= WAYS_MAX {
            self.ways.clear();
        }
        let way = (*self.ways.entry((pid, address)).or_insert_with(|| way_out(&code(pid, address))))?;
        let at = |slot: Slot| match slot.from {
            From::Stack => regs.sp().wrapping_add_signed(slot.offset),
            From::Frame => frame_pointer(regs).wrapping_add_signed(slot.offset),
        };
        let place = at(way.returns_to);
        // A caller's frame lies above what it called.
        let sp = place.checked_add(way.taken).filter(|sp| *sp > regs.sp())?;
        let returns_to = read(place).ok()?;
        let frame = way.frame.map(at).map_or(Ok(frame_pointer(regs)), read).ok()?;
        *regs = registers(returns_to, sp, frame);
        Some(returns_to)
    }

    /// What was compiled in each Java virtual machine that was seen.
    pub(super) fn functions(&mut self) -> HashMap<Pid, Vec<Function>> {
        let mut all = std::mem::take(&mut self.gone);
        let here =
            self.machines.iter_mut().filter_map(|(pid, machine)| Some((*pid, machine.as_mut()?.functions())));
        all.extend(here);
        all
    }

    /// A process ended, or runs another program.
    pub(super) fn forget_process(&mut self, pid: Pid) {
        self.ways.retain(|(of, _), _| *of != pid);
        if let Some(mut machine) = self.machines.remove(&pid).flatten() {
            self.gone.insert(pid, machine.functions());
        }
    }
}

/// The code behind an address, as far as it can be read.
fn code(pid: Pid, address: u64) -> Vec<u8> {
    let mut code = vec![0; CODE_BYTES];
    let memory = File::open(format!("{}/mem", proc::folder(pid)));
    let length = memory.and_then(|memory| memory.read_at(&mut code, address)).unwrap_or(0);
    code.truncate(length);
    code
}

#[cfg(target_arch = "x86_64")]
fn frame_pointer(regs: &UnwindRegsNative) -> u64 {
    regs.bp()
}

#[cfg(target_arch = "x86_64")]
fn registers(ip: u64, sp: u64, frame: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(ip, sp, frame)
}

#[cfg(target_arch = "aarch64")]
fn frame_pointer(regs: &UnwindRegsNative) -> u64 {
    regs.fp()
}

#[cfg(target_arch = "aarch64")]
fn registers(ip: u64, sp: u64, frame: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(ip, sp, frame)
}

/// Elsewhere code made at run time keeps frame pointers: a call without one loses its own return address.
#[cfg(not(target_arch = "x86_64"))]
fn way_out(_: &[u8]) -> Option<Way> {
    None
}

/// Follows the instructions to the return.
#[cfg(target_arch = "x86_64")]
fn way_out(code: &[u8]) -> Option<Way> {
    use iced_x86::{
        Decoder, DecoderOptions, FlowControl, InstructionInfoFactory, Mnemonic, OpAccess, OpKind, Register,
    };
    let mut stack = Slot { from: From::Stack, offset: 0 };
    let mut frame = None;
    let mut infos = InstructionInfoFactory::new();
    for one in &mut Decoder::new(64, code, DecoderOptions::NONE) {
        let to_stack =
            one.op_count() > 0 && one.op0_kind() == OpKind::Register && one.op0_register() == Register::RSP;
        match one.mnemonic() {
            Mnemonic::Ret => {
                let more = if one.op_count() > 0 { u64::from(one.immediate16()) } else { 0 };
                return Some(Way { returns_to: stack, frame, taken: 8 + more });
            }
            Mnemonic::Add
                if to_stack && one.op1_kind() != OpKind::Register && one.op1_kind() != OpKind::Memory =>
            {
                stack.offset = stack.offset.checked_add(one.immediate(1) as i64)?;
            }
            Mnemonic::Lea if to_stack && one.memory_index() == Register::None => {
                let moved = one.memory_displacement64() as i64;
                stack = match one.memory_base() {
                    Register::RSP => Slot { offset: stack.offset.checked_add(moved)?, ..stack },
                    Register::RBP if frame.is_none() => Slot { from: From::Frame, offset: moved },
                    _ => return None,
                };
            }
            Mnemonic::Mov if to_stack => {
                let by_frame = one.op1_kind() == OpKind::Register && one.op1_register() == Register::RBP;
                stack = (by_frame && frame.is_none()).then_some(Slot { from: From::Frame, offset: 0 })?;
            }
            Mnemonic::Leave if frame.is_none() => {
                frame = Some(Slot { from: From::Frame, offset: 0 });
                stack = Slot { from: From::Frame, offset: 8 };
            }
            Mnemonic::Pop if one.op0_kind() == OpKind::Register && !to_stack => {
                if one.op0_register() == Register::RBP {
                    frame = Some(stack);
                }
                stack.offset = stack.offset.checked_add(8)?;
            }
            _ => {
                let moves = infos.info(&one).used_registers().iter().any(|used| {
                    let is_kept = matches!(used.register().full_register(), Register::RSP | Register::RBP);
                    is_kept
                        && !matches!(
                            used.access(),
                            OpAccess::Read | OpAccess::CondRead | OpAccess::NoMemAccess
                        )
                });
                if one.is_invalid() || moves || one.flow_control() != FlowControl::Next {
                    return None;
                }
            }
        }
    }
    None
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    const fn stack(offset: i64) -> Slot {
        Slot { from: From::Stack, offset }
    }

    const fn frame(offset: i64) -> Slot {
        Slot { from: From::Frame, offset }
    }

    /// Fault: `add` of the stack pointer is passed over like any other instruction; the trampoline's word is then taken for
    /// the return address.
    #[test]
    fn what_runs_straight_to_a_return_tells_where_its_caller_is() {
        for (code, expected) in [
            // add rsp, 8; ret: CPython's trampoline.
            (&[0x48, 0x83, 0xc4, 0x08, 0xc3][..], (stack(8), None, 8)),
            // pop rbp; ret: the same with a frame.
            (&[0x5d, 0xc3], (stack(8), Some(stack(0)), 8)),
            // mov eax, ebx; add rsp, 0x118; pop rbx; pop rbp; ret
            (
                &[0x89, 0xd8, 0x48, 0x81, 0xc4, 0x18, 0x01, 0, 0, 0x5b, 0x5d, 0xc3],
                (stack(0x128), Some(stack(0x120)), 8),
            ),
            // leave; ret 16
            (&[0xc9, 0xc2, 0x10, 0], (frame(8), Some(frame(0)), 24)),
            // mov rsp, rbp; pop rbp; ret
            (&[0x48, 0x89, 0xec, 0x5d, 0xc3], (frame(8), Some(frame(0)), 8)),
            // lea rsp, [rbp-16]; pop r12; pop rbx; pop rbp; ret
            (&[0x48, 0x8d, 0x65, 0xf0, 0x41, 0x5c, 0x5b, 0x5d, 0xc3], (frame(8), Some(frame(0)), 8)),
        ] {
            let (returns_to, frame, taken) = expected;
            assert_eq!(way_out(code), Some(Way { returns_to, frame, taken }), "{code:x?}");
        }
    }

    #[test]
    fn what_branches_calls_or_moves_the_stack_otherwise_tells_nothing() {
        for code in [
            &[0x75, 0x01, 0xc3, 0xc3][..], // jne over; ret
            &[0xe8, 0, 0, 0, 0, 0xc3],     // call; ret
            &[0xeb, 0xfe],                 // jmp to itself
            &[0x48, 0x89, 0xc4, 0xc3],     // mov rsp, rax; ret
            &[0x48, 0x29, 0xc4, 0xc3],     // sub rsp, rax; ret
            &[0x48, 0x89, 0xc5, 0xc3],     // mov rbp, rax; ret
            &[0x5d, 0xc9, 0xc3],           // pop rbp; leave; ret
            &[0x48, 0x83, 0xc4, 0x08],     // it ends before it returns
            &[0x06],                       // no instruction
            &[],
        ] {
            assert_eq!(way_out(code), None, "{code:x?}");
        }
    }

    #[test]
    fn a_caller_is_never_below_what_it_called() {
        let mut made = Made::default();
        let way = Way { returns_to: frame(8), frame: Some(frame(0)), taken: 8 };
        made.ways.insert((1, 0x100), Some(way));
        let mut regs = UnwindRegsNative::new(0x100, 0x9000, 0x8000);
        assert_eq!(made.step(1, (0x100, true), &mut regs, &mut |_| Ok(7)), None);
        assert_eq!((regs.sp(), regs.bp()), (0x9000, 0x8000), "as it was");
        regs.set_bp(0x9010);
        assert_eq!(made.step(1, (0x100, true), &mut regs, &mut |at| Ok(at + 1)), Some(0x9019));
        assert_eq!((regs.sp(), regs.bp()), (0x9020, 0x9011));
        assert_eq!(made.step(1, (0x100, true), &mut regs, &mut |_| Err(())), None);
    }
}
