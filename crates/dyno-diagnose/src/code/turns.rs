//! For how many turns a loop goes on, as the registers say that were seen in it.
//!
//! Each way out of it compares something that goes on by the same in each turn with something that stays. Where the values
//! do not tell, nothing is said.

use dyno_record::observation::Registers;
use iced_x86::{FlowControl, Instruction, Mnemonic};

use super::Loop;
use crate::ahead::Ahead;

/// Times at which it must be known: of fewer the longest says little of how long it goes on.
const KNOWN_MIN: usize = 8;

impl Loop {
    /// How many turns were still to come, at most, whenever it was seen.
    pub(crate) fn turns_left(&self, seen: &[Registers]) -> Option<u64> {
        let ways_out = (0..self.instructions.len()).filter(|at| self.is_a_way_out(*at));
        ways_out.filter_map(|at| self.most_left(at, seen)).min()
    }

    /// Whether what the instruction at `at` leaves decides whether the loop goes on.
    fn is_a_way_out(&self, at: usize) -> bool {
        let next = &self.instructions[(at + 1) % self.instructions.len()];
        next.flow_control() == FlowControl::ConditionalBranch
    }

    fn most_left(&self, at: usize, seen: &[Registers]) -> Option<u64> {
        let left: Vec<u64> = seen.iter().filter_map(|seen| self.left(at, seen)).collect();
        left.iter().max().copied().filter(|_| left.len() >= KNOWN_MIN)
    }

    /// How many turns it is until the two are equal: by how far they are from each other in three turns, one after the other.
    fn left(&self, at: usize, seen: &Registers) -> Option<u64> {
        let mut ahead = Ahead::of(seen);
        let mut apart = [None; 3];
        for here in &mut apart {
            for (number, (instruction, written)) in self.instructions.iter().zip(&self.written).enumerate() {
                if number == at {
                    *here = distance(&ahead, instruction);
                }
                ahead.pass(instruction, written);
                if number == at && here.is_none() {
                    *here = remains(&ahead, instruction);
                }
            }
        }
        let [first, second, third] = [apart[0]?, apart[1]?, apart[2]?];
        let step = second.wrapping_sub(first);
        let comes_nearer = step != 0 && third.wrapping_sub(second) == step && (first < 0) != (step < 0);
        comes_nearer.then(|| first.unsigned_abs().div_ceil(step.unsigned_abs()))
    }
}

/// What a comparison compares.
fn distance(ahead: &Ahead, instruction: &Instruction) -> Option<i64> {
    match instruction.mnemonic() {
        Mnemonic::Cmp => {
            let [left, right] = [0, 1].map(|operand| ahead.signed(instruction, operand));
            Some(left?.wrapping_sub(right?))
        }
        Mnemonic::Test if instruction.op0_register() == instruction.op1_register() => {
            ahead.signed(instruction, 0)
        }
        _ => None,
    }
}

/// What a step leaves, which is compared with nothing.
fn remains(ahead: &Ahead, instruction: &Instruction) -> Option<i64> {
    let steps =
        matches!(instruction.mnemonic(), Mnemonic::Sub | Mnemonic::Dec | Mnemonic::Add | Mnemonic::Inc);
    steps.then(|| ahead.signed(instruction, 0)).flatten()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::observation::HotSpot;

    use super::*;

    /// rax, rbx, rcx, rdx, rsi and rdi of each time that it was seen.
    fn left(code: &str, seen: &[[u64; 6]]) -> Option<u64> {
        let registers = |first: &[u64; 6]| {
            let mut values = [0; 16];
            values[..6].copy_from_slice(first);
            Registers { tid: 1, pid: 1, values }
        };
        let seen: Vec<Registers> = seen.iter().map(registers).collect();
        let spot =
            HotSpot { address: 0x40_0000, code_at: 0x40_0000, code: code.to_owned(), ..HotSpot::default() };
        Loop::around(&spot).unwrap().turns_left(&seen)
    }

    /// Planted faults: the least that was left; a step of one for any; what goes away from its end comes to it; the widest way out.
    #[test]
    fn a_loop_says_by_its_counter_how_long_it_still_goes_on() {
        // `add ecx,[rsi+rax*4]; add eax,2; cmp eax,edx; jl`.
        let counted =
            |from: u64, to: u64| (0..10).map(|at| [from + 2 * at, 0, 0, to, 0, 0]).collect::<Vec<_>>();
        assert_eq!(left("030c8683c00239d07cf6", &counted(0, 64)), Some(31));
        assert_eq!(left("030c8683c00239d07cf6", &counted(0, 2_000_000)), Some(999_999));
        assert_eq!(left("030c8683c00239d07cf6", &counted(80, 64)), None, "it has another end");
        assert_eq!(left("030c8683c00239d07cf6", &counted(0, 64)[..4]), None, "seen too seldom");
        // Its signs are those of 32 bits: from -64 to nothing. `add ecx,[rsi+rax*4]; inc eax; jne`.
        let below: Vec<_> =
            (0..10).map(|at| [u64::from((-64_i32 + at).cast_unsigned()), 0, 0, 0, 0, 0]).collect();
        assert_eq!(left("030c86ffc075f9", &below), Some(63));
        // `add ecx,[rsi]; add rsi,rdx; cmp rsi,rdi; jne`, and an end of the table besides: `cmp rsi,rbx; jae`.
        let pointers: Vec<_> = (0..10).map(|at| [0, 1 << 40, 0, 1 << 13, at << 13, 100 << 13]).collect();
        assert_eq!(left("030e4801d64839fe75f6", &pointers), Some(99));
        assert_eq!(left("030e4801d64839de73054839fe75f1", &pointers), Some(99));
        // What is loaded says nothing: `mov rsi,[rsi]; test rsi,rsi; jne`.
        assert_eq!(left("488b364885f675f8", &pointers), None);
    }
}
