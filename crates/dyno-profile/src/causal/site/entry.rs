//! Where in a function a probe costs least: the kernel emulates pushes, no-operations and jumps, and single-steps the
//! rest, which is twenty times dearer.
//!
//! The place must be passed exactly once per call: within the straight beginning of the function, and nowhere that one
//! of its own jumps leads back to. x86-64 only; elsewhere the first instruction is as good as any.

use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind};

/// Bytes of a function that are looked at for jumps back to its beginning: longer ones are cut off.
pub(super) const CODE_BYTES_MAX: u64 = 64 << 10;
/// No instruction of x86-64 is longer.
pub(super) const INSTRUCTION_BYTES_MAX: u64 = 15;

/// A place within a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    /// Bytes behind the function's first.
    pub(super) offset: u64,
    /// Whether the kernel emulates its instruction.
    pub(super) emulated: bool,
}

/// The cheapest place that each call passes once and that the kernel puts a probe on: not on an instruction with a LOCK
/// prefix, where the one behind it serves as well.
pub(super) fn cheapest(code: &[u8]) -> Place {
    if !cfg!(target_arch = "x86_64") {
        return Place { offset: 0, emulated: false };
    }
    let all = decoded(code, 0);
    let targets: Vec<u64> = all.iter().filter_map(jump).collect();
    let mut first = None;
    for instruction in &all {
        let at = instruction.ip();
        // Jumps to what lies further on do not pass it twice.
        let once = !all.iter().any(|other| other.ip() >= at && jump(other).is_some_and(|to| to <= at));
        if !once {
            break;
        }
        if is_emulated(instruction) {
            return Place { offset: at, emulated: true };
        }
        first = first.or_else(|| (!instruction.has_lock_prefix()).then_some(at));
        if instruction.flow_control() != FlowControl::Next || targets.contains(&instruction.next_ip()) {
            break;
        }
    }
    Place { offset: first.unwrap_or(0), emulated: false }
}

/// The place so many bytes behind a function's first, or the two instructions between whose first bytes it would lie: a
/// breakpoint within an instruction changes what that does. `code` begins with the function and reaches beyond the place.
pub(super) fn at(code: &[u8], offset: u64) -> Result<Place, [u64; 2]> {
    if !cfg!(target_arch = "x86_64") {
        // Instructions of four bytes each.
        let before = offset & !3;
        let place = Place { offset, emulated: false };
        return if before == offset { Ok(place) } else { Err([before, before + 4]) };
    }
    let all = decoded(code, 0);
    let around = all.iter().take_while(|one| one.ip() <= offset).last();
    match around {
        Some(one) if one.ip() == offset => Ok(Place { offset, emulated: is_emulated(one) }),
        Some(one) => Err([one.ip(), one.next_ip()]),
        None => Err([0, 0]),
    }
}

/// `push` of a register, a no-operation, or a near jump: what `arch/x86/kernel/uprobes.c` emulates.
fn is_emulated(instruction: &Instruction) -> bool {
    match instruction.mnemonic() {
        Mnemonic::Push => instruction.op0_kind() == OpKind::Register && instruction.code() == Code::Push_r64,
        Mnemonic::Nop => true,
        _ => instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near(),
    }
}

pub(super) fn jump(instruction: &Instruction) -> Option<u64> {
    let direct = instruction.is_jmp_short_or_near() || instruction.is_jcc_short_or_near();
    direct.then(|| instruction.near_branch_target())
}

pub(super) fn decoded(code: &[u8], at: u64) -> Vec<Instruction> {
    Decoder::with_ip(64, code, at, DecoderOptions::NONE).iter().take_while(|one| !one.is_invalid()).collect()
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;

    #[test]
    fn the_first_push_or_no_operation_is_cheapest() {
        // endbr64; push %rbp
        assert_eq!(cheapest(&[0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0xc3]), Place { offset: 4, emulated: true });
        // lea 1(%rdi),%eax; ret
        assert_eq!(cheapest(&[0x8d, 0x47, 0x01, 0xc3]), Place { offset: 0, emulated: false });
        // lock incl (%rdi); mov (%rdi),%eax; ret: no probe is put on the first
        assert_eq!(cheapest(&[0xf0, 0xff, 0x07, 0x8b, 0x07, 0xc3]), Place { offset: 3, emulated: false });
        // nopl 0(%rax,%rax); ret
        assert_eq!(cheapest(&[0x0f, 0x1f, 0x44, 0, 0, 0xc3]), Place { offset: 0, emulated: true });
    }

    #[test]
    fn a_place_within_an_instruction_is_none() {
        // endbr64; push %rbp; lea 1(%rdi),%eax; ret
        let code = [0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x8d, 0x47, 0x01, 0xc3];
        assert_eq!(at(&code, 4), Ok(Place { offset: 4, emulated: true }));
        assert_eq!(at(&code, 5), Ok(Place { offset: 5, emulated: false }));
        assert_eq!([1, 3, 6, 7].map(|offset| at(&code, offset)), [[0, 4], [0, 4], [5, 8], [5, 8]].map(Err));
    }

    #[test]
    fn what_a_loop_passes_again_and_again_is_no_entry() {
        // 0: xor %eax,%eax; 2: nop; 3: dec %edi; 5: jne 2; 7: ret
        let looped = [0x31, 0xc0, 0x90, 0xff, 0xcf, 0x75, 0xfb, 0xc3];
        assert_eq!(cheapest(&looped), Place { offset: 0, emulated: false });
        // A jump back to the very first instruction: nothing is passed once, the first is as bad as any.
        assert!(!cheapest(&[0x55, 0x75, 0xfd, 0xc3]).emulated);
    }
}
