//! What registers will hold a few instructions further on, as far as plain arithmetic tells it.
//!
//! `code` asks, for places that a loop reads: a sample is mostly taken after a slow load, and by then the load has often
//! overwritten the register that its address was made of. The address of the next turn is made anew from registers that are
//! still there. What is loaded, and what a call leaves, is not known; it is never guessed.

use dyno_record::observation::Registers;
use iced_x86::{FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The registers in [`Registers::values`], in their order.
pub(super) const GENERAL: [Register; 16] = {
    use Register::{R8, R9, R10, R11, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP};
    [RAX, RBX, RCX, RDX, RSI, RDI, RBP, RSP, R8, R9, R10, R11, R12, R13, R14, R15]
};

/// Place of a register in [`Registers::values`].
pub(super) fn order(register: Register) -> Option<usize> {
    GENERAL.iter().position(|one| *one == register)
}

/// The general registers at one instruction; `None` for those whose values are not known there.
pub(super) struct Ahead {
    values: [Option<u64>; 16],
}

impl Ahead {
    /// As they were sampled.
    pub(super) fn of(seen: &Registers) -> Ahead {
        Ahead { values: seen.values.map(Some) }
    }

    /// What the whole of a register holds.
    pub(super) fn value(&self, register: Register) -> Option<u64> {
        self.values[order(register)?]
    }

    /// Goes past an instruction that writes these registers.
    pub(super) fn pass(&mut self, instruction: &Instruction, written: &[Register]) {
        let calls = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall);
        if calls || instruction.mnemonic() == Mnemonic::Syscall {
            self.values = [None; 16];
            return;
        }
        let made = self.made(instruction);
        for at in written.iter().filter_map(|register| order(*register)) {
            self.values[at] = None;
        }
        if let Some(at) = order(instruction.op0_register().full_register()).filter(|_| made.is_some()) {
            self.values[at] = made;
        }
    }

    /// What it puts into its first operand, where that is a whole register or the lower half of one.
    fn made(&self, instruction: &Instruction) -> Option<u64> {
        let target = instruction.op0_register();
        let bits = whole_bits(target).filter(|_| instruction.op0_kind() == OpKind::Register)?;
        let (left, right) = (|| self.operand(instruction, 0), || self.operand(instruction, 1));
        let shift = || (instruction.op_count() == 2).then(right).flatten().map(|by| by as u32 % bits);
        let same = instruction.op1_kind() == OpKind::Register && instruction.op1_register() == target;
        let value = match instruction.mnemonic() {
            Mnemonic::Mov => right()?,
            Mnemonic::Movsxd if whole_bits(instruction.op1_register()) == Some(32) => {
                i64::from(right()? as u32 as i32).cast_unsigned()
            }
            Mnemonic::Xor | Mnemonic::Sub if same => 0,
            Mnemonic::Add => left()?.wrapping_add(right()?),
            Mnemonic::Sub => left()?.wrapping_sub(right()?),
            Mnemonic::And => left()? & right()?,
            Mnemonic::Or => left()? | right()?,
            Mnemonic::Xor => left()? ^ right()?,
            Mnemonic::Inc => left()?.wrapping_add(1),
            Mnemonic::Dec => left()?.wrapping_sub(1),
            Mnemonic::Shl => left()? << shift()?,
            Mnemonic::Shr => left()? >> shift()?,
            Mnemonic::Imul if instruction.op_count() == 2 => left()?.wrapping_mul(right()?),
            Mnemonic::Imul if instruction.op_count() == 3 => {
                right()?.wrapping_mul(self.operand(instruction, 2)?)
            }
            Mnemonic::Lea => self.computed(instruction)?,
            _ => return None,
        };
        Some(if bits == 32 { value & u64::from(u32::MAX) } else { value })
    }

    /// A number or a register; what stands in memory is not known.
    fn operand(&self, instruction: &Instruction, at: u32) -> Option<u64> {
        match instruction.op_kind(at) {
            OpKind::Memory => None,
            OpKind::Register => {
                let register = instruction.op_register(at);
                let value = self.value(register.full_register())?;
                Some(if whole_bits(register)? == 32 { value & u64::from(u32::MAX) } else { value })
            }
            _ => instruction.try_immediate(at).ok(),
        }
    }

    /// The same as a number with a sign, of as many bits as it has.
    pub(super) fn signed(&self, instruction: &Instruction, at: u32) -> Option<i64> {
        let value = self.operand(instruction, at)?;
        let is_half =
            instruction.op0_kind() == OpKind::Register && whole_bits(instruction.op0_register()) == Some(32);
        Some(if is_half { i64::from(value as u32 as i32) } else { value.cast_signed() })
    }

    fn computed(&self, instruction: &Instruction) -> Option<u64> {
        let value = |register: Register| match register {
            Register::None | Register::RIP => Some(0),
            register => self.value(register),
        };
        let index =
            value(instruction.memory_index())?.wrapping_mul(u64::from(instruction.memory_index_scale()));
        Some(
            value(instruction.memory_base())?
                .wrapping_add(index)
                .wrapping_add(instruction.memory_displacement64()),
        )
    }
}

/// Bits of a register that is whole, or whose writing clears the other half; parts of one are not followed.
fn whole_bits(register: Register) -> Option<u32> {
    match register {
        register if register.is_gpr64() => Some(64),
        register if register.is_gpr32() => Some(32),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    use iced_x86::{Decoder, DecoderOptions, InstructionInfoFactory};

    /// rax after these bytes, from registers that hold 0x100, 0x101, 0x102 …
    fn rax(hex: &str) -> Option<u64> {
        let bytes: Vec<u8> =
            (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
        let values = std::array::from_fn(|at| 0x100 + at as u64);
        let mut ahead = Ahead::of(&Registers { tid: 1, pid: 1, values });
        let mut info = InstructionInfoFactory::new();
        for one in &mut Decoder::with_ip(64, &bytes, 0x1000, DecoderOptions::NONE) {
            let used = info.info(&one).used_registers();
            let written: Vec<Register> = used
                .iter()
                .filter(|used| !matches!(used.access(), iced_x86::OpAccess::Read))
                .map(|used| used.register().full_register())
                .collect();
            ahead.pass(&one, &written);
        }
        ahead.value(Register::RAX)
    }

    /// Planted faults: a half keeps the upper half; a shift left for a shift right; a load leaves what was there; a call does.
    #[test]
    fn plain_arithmetic_is_followed_and_nothing_else() {
        for (what, code, holds) in [
            ("mov %rcx,%rax", "4889c8", Some(0x102)),
            ("mov $-1,%rax; mov %ecx,%eax", "48c7c0ffffffff89c8", Some(0x102)),
            ("mov $-1,%eax", "b8ffffffff", Some(0xffff_ffff)),
            ("mov $-1,%eax; movslq %eax,%rax", "b8ffffffff4863c0", Some(u64::MAX)),
            ("add %rcx,%rax; sub $2,%rax", "4801c84883e802", Some(0x200)),
            ("and $0xf0f,%eax; or $7,%eax", "250f0f000083c807", Some(0x107)),
            ("xor %eax,%eax", "31c0", Some(0)),
            ("mov (%rdi),%rax; xor %eax,%eax", "488b0731c0", Some(0)),
            ("shr $4,%rax", "48c1e804", Some(0x10)),
            ("shl $4,%rax", "48c1e004", Some(0x1000)),
            ("imul %rcx,%rax", "480fafc1", Some(0x100 * 0x102)),
            ("imul $3,%rcx,%rax", "486bc103", Some(0x306)),
            ("lea 8(%rcx,%rdx,4),%rax", "488d449108", Some(0x102 + 4 * 0x103 + 8)),
            ("inc %rax; dec %rax", "48ffc048ffc8", Some(0x100)),
            ("mov (%rdi),%rax", "488b07", None),
            ("mov (%rdi),%rcx; add %rcx,%rax", "488b0f4801c8", None),
            ("mov $1,%al", "b001", None),
            ("shl %cl,%rax", "48d3e0", None),
            ("mul %rcx", "48f7e1", None),
            ("call", "e800000000", None),
        ] {
            assert_eq!(rax(code), holds, "{what}");
        }
    }
}
