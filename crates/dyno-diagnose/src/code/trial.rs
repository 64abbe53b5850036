//! By how much a loop goes on, tried out: from registers as they were seen it is followed for some turns.
//!
//! A compiler may make each address anew from a counter (`row * 384` by two shifts and an addition), so that no register of
//! it steps. Where a place is made of registers alone, and is further by the same in each turn and for all that was seen,
//! that is its step. What depends on memory, or on what a call leaves, is not known (`ahead`).

use std::collections::BTreeSet;

use dyno_record::observation::Registers;
use iced_x86::{Instruction, Mnemonic};

use super::{Access, Loop, STEP_BYTES_MAX, Tried, address_with, immediate};
use crate::ahead::Ahead;

/// Turns before the first that counts: what is copied from register to register has come round by then.
const TURNS_BEFORE: usize = 2;
/// Places of each access that are compared.
const TURNS: usize = 4;
/// What was seen of the registers, so many of them that a walk by chance has no step, and no more than it takes.
const SEEN_MIN: usize = 3;
const SEEN_MAX: usize = 8;
/// A mask or a shift brings round what has gone so far in a few turns: bytes of a page.
const FAR_BYTES: u64 = 4_096;

impl Loop {
    /// Gives each access what it does when it is tried out.
    pub(super) fn try_out(&mut self, seen: &[Registers]) {
        let every = seen.len().div_ceil(SEEN_MAX).max(1);
        let trials: Vec<_> = seen.iter().step_by(every).map(|seen| self.places_tried(seen)).collect();
        if trials.len() < SEEN_MIN {
            return;
        }
        let may_come_round = self.instructions.iter().any(comes_round);
        for (number, access) in self.accesses.iter_mut().enumerate() {
            let mut steps = trials.iter().flat_map(|places| places[number].windows(2)).map(|pair| {
                let [before, after] = [pair[0]?, pair[1]?];
                Some(after.wrapping_sub(before).cast_signed())
            });
            let first = steps.next().flatten();
            let bytes = first.filter(|_| steps.all(|step| step == first));
            let far = if may_come_round { FAR_BYTES } else { STEP_BYTES_MAX };
            let bytes = bytes.filter(|bytes| bytes.unsigned_abs() < far);
            access.tried = bytes.zip(trials[0][number][0]).map(|(bytes, place)| Tried { bytes, place });
        }
    }

    /// Of each access its places in the turns that count.
    fn places_tried(&self, seen: &Registers) -> Vec<Vec<Option<u64>>> {
        let mut ahead = Ahead::of(seen);
        let mut places = vec![Vec::new(); self.accesses.len()];
        for turn in 0..TURNS_BEFORE + TURNS {
            for (at, (instruction, written)) in self.instructions.iter().zip(&self.written).enumerate() {
                let here = self.accesses.iter().enumerate().filter(|(_, access)| access.at == at);
                for (number, access) in here.filter(|_| turn >= TURNS_BEFORE) {
                    places[number].push(address_with(access, |register| ahead.value(register)));
                }
                ahead.pass(instruction, written);
            }
        }
        places
    }

    /// How many lines of memory are read within the bytes of one step of such an access, by all that go on by as much.
    pub(super) fn lines_tried(&self, of: &Access, line_bytes: u64) -> Option<u64> {
        let step = of.tried.filter(|tried| tried.bytes != 0)?.bytes.unsigned_abs();
        let beside = self.accesses.iter().filter(|access| access.reads && !access.own);
        let lines = beside.filter_map(|access| {
            let tried = access.tried.filter(|tried| tried.bytes.unsigned_abs() == step)?;
            let at = tried.place % step;
            Some(at / line_bytes..=(at + access.bytes.max(1) - 1) / line_bytes)
        });
        Some(lines.flatten().collect::<BTreeSet<_>>().len() as u64)
    }
}

/// Whether what grows may begin again by it.
fn comes_round(instruction: &Instruction) -> bool {
    let and = instruction.mnemonic() == Mnemonic::And && immediate(instruction).is_some();
    and || instruction.mnemonic() == Mnemonic::Shr
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::observation::HotSpot;

    use super::super::Walk;
    use super::*;

    /// Seen five times with counters of any size, other numbers that stay, and tables that begin on a line.
    fn around(code: &str, offset: u64) -> Loop {
        let (address, code_at) = (0x40_0000 + offset, 0x40_0000);
        let seen = (1..=5_u64).map(|time| {
            let counter = 0x1_3531 * time * time;
            // rax, rbx, rcx, rdx, rsi, rdi, rbp, rsp, and r8 to r15.
            let (table, k) = (0x7f00_0000_0000, 0x9e37_79b9_7f4a_7c15);
            let values = [counter, counter, 7, 1 << 21, table, counter << 8, 0, 0, k, k, 0, 3, 0, 0, 0, 0];
            Registers { tid: 1, pid: 1, values }
        });
        let (code, seen) = (code.to_owned(), seen.collect());
        Loop::around(&HotSpot { address, code_at, code, seen, ..HotSpot::default() }).unwrap()
    }

    /// What HotSpot makes of `for (r…) sum += cells[r * 384 + column]`, four rows a turn: `r * 384` is made of two shifts, and a part of
    /// it goes round once before it is used.
    const JAVA: &str = "448bd3418bc0448bc74503c24403c14181f8000000030f83550100004c63c78bf8c1e7088bd8c1e307448beb4403ef4403e94d63d24d03c2\
        4d03c34e634486104d03c1458bd54181c2800100004181fa000000030f831f0100004c63d34c63cf4d03d14d03d34e638c96100600004d03c8\
        458bc54181c0000300004181f8000000030f83e60000004e638496100c00004d03c14181c5800400004181fd000000030f83d70000004e638c\
        96101200004d03c881c30002000081c700040000448bc04183c0044181f8fdff01000f8c2effffff";

    /// Planted faults: a step of registers that step themselves alone (nothing is tried); no turn before the first that counts.
    #[test]
    fn a_place_that_is_made_anew_in_each_turn_has_its_step() {
        for offset in [0, 0x40, 0xaf] {
            let columns = around(JAVA, offset);
            assert_eq!(columns.walk(), Walk::Stride(4 * 4 * 384), "at {offset:#x}");
            assert_eq!(columns.skips(64), Some(4 * 4 * 384), "four lines of 96 in each turn");
        }
    }

    /// `mov eax,ebx; shl eax,5; movsxd rax,eax; add ecx,[rsi+rax]`, and the same 16 bytes on; `add ebx,1; cmp ebx,edx; jl`. Planted fault: the
    /// lines of others are not counted.
    #[test]
    fn what_others_read_of_a_step_is_not_left_out() {
        let half = around("89d8c1e0054863c0030c06034c061083c30139d37cea", 0);
        assert_eq!((half.walk(), half.skips(64)), (Walk::Stride(32), None));
        // By 256 bytes: of four lines one is read by both.
        let first = around("89d8c1e0084863c0030c06034c061083c30139d37cea", 0);
        assert_eq!(first.skips(64), Some(256));
        // And all four: 0x40, 0x80 and 0xc0 further.
        let all = "89d8c1e0084863c0030c06034c0640038c0680000000038c06c000000083c30139d37cdc";
        assert_eq!((around(all, 0).walk(), around(all, 0).skips(64)), (Walk::Stride(256), None));
    }

    /// Two numbers beside each other, on two lines of each 128 bytes: `mov rcx,rax; shl rcx,7; mov rdx,[rsi+rcx+56]; add rdx,[rsi+rcx+64]; inc
    /// rax; cmp; jl`. Planted fault: a table that begins anywhere.
    #[test]
    fn lines_are_counted_from_where_the_table_begins() {
        let both = around("4889c148c1e107488b540e384803540e4048ffc04839f87ce7", 0);
        assert_eq!((both.walk(), both.skips(64)), (Walk::Stride(128), None));
    }

    /// `imul ebx,ebx,K; add ebx,1; mov eax,ebx; shr eax,8; add ecx,[rsi+rax*4]`, and without the shift (`add ebx,2`); an index from memory; `(i * K) >> 38` with K in a register;
    /// `i = (i + 4099) & mask`, which comes round. Planted faults: one time that it was seen, and one step; small numbers in all registers; no mask
    /// is asked for.
    #[test]
    fn what_jumps_has_no_step() {
        for (what, code) in [
            ("chance", "69db6d4ec64183c30189d8c1e808030c8639d17ceb"),
            ("far", "69db6d4ec64183c3024863c3030c0639fb75ed"),
            ("loaded", "8b049f4863c0030c8683c30139d37cf0"),
            ("hashed", "4889c248c1ea26030c964c01c04839f875ee"),
            ("round", "050310000025ffffff0789c2030c9639f875ed"),
        ] {
            assert_eq!(around(code, 0).walk(), Walk::Scattered, "{what}");
        }
    }
}
