//! Rows of a table that lie wherever their pointers say: whether a loop takes one number of each.
//!
//! C keeps the pointers as they are, Java in four bytes. The rule for the order in which memory is read asks.

use dyno_record::observation::Registers;
use iced_x86::{Mnemonic, Register};

use super::{Access, Loop, Walk, immediate};

/// An address in memory, and one of a heap of less than 32 GB as Java keeps it.
const ADDRESS_BYTES: u64 = 8;
const COMPRESSED_BYTES: u64 = 4;

impl Loop {
    /// Of a table whose rows lie wherever their pointers say, the addresses seen where it takes one number of each row: the
    /// pointers are read in their order, and the place in the row stays the same.
    pub(crate) fn reads_of_rows(&self, seen: &[Registers]) -> Vec<u64> {
        self.addresses_read(seen, |access| self.is_of_a_row(access))
    }

    /// Whether it reads at an index that stays, from a row whose pointer was loaded from the next place in each turn.
    fn is_of_a_row(&self, access: &Access) -> bool {
        let stays = |register: Register| register != Register::None && !self.is_written(register);
        let from_a_list =
            |register: Register, bytes_min: u64| self.is_from_a_list(access.at, register, bytes_min);
        // A compiler may take either for the base; what is shorter than an address is an index then.
        let swapped = || access.scale == 1 && stays(access.base) && from_a_list(access.index, ADDRESS_BYTES);
        stays(access.index) && (from_a_list(access.base, COMPRESSED_BYTES) || self.is_widened(access))
            || swapped()
    }

    /// Whether a register was loaded, before the instruction at `at`, from the next place in each turn.
    fn is_from_a_list(&self, at: usize, register: Register, bytes_min: u64) -> bool {
        let Some(before) = self.writer_before(at, register) else { return false };
        let is_move = self.instructions[before].mnemonic() == Mnemonic::Mov;
        let mut loads = self.accesses.iter().filter(|load| load.at == before && load.reads);
        let strides = |load: &Access| matches!(self.walk_of(load), Walk::Stride(1..));
        is_move && loads.any(|load| load.bytes >= bytes_min && strides(load))
    }

    /// Whether the base of an access is such a load made an address: Java keeps one in four bytes, an eighth of its distance from
    /// the heap's beginning (`lea rdi, [r12+r11*8]`, or `shl r11, 3` where that is nought).
    fn is_widened(&self, access: &Access) -> bool {
        let Some(before) = self.writer_before(access.at, access.base) else { return false };
        let made = &self.instructions[before];
        let kept = match made.mnemonic() {
            Mnemonic::Lea
                if made.memory_index_scale() == 8 && !self.is_written(made.memory_base().full_register()) =>
            {
                made.memory_index().full_register()
            }
            Mnemonic::Shl if immediate(made) == Some(3) => access.base,
            _ => return false,
        };
        self.is_from_a_list(before, kept, COMPRESSED_BYTES)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::observation::HotSpot;

    use super::*;

    fn around(code: &str, offset: u64) -> Loop {
        let (address, code_at) = (0x40_0000 + offset, 0x40_0000);
        Loop::around(&HotSpot { address, code_at, code: code.to_owned(), ..HotSpot::default() }).unwrap()
    }

    fn at(values: [u64; 16]) -> Registers {
        Registers { tid: 1, pid: 1, values }
    }

    /// `sum += rows[i][j]`, `sum += objects[i]->value` and `sum += table[indices[i]]` in C. Planted faults: any place whose
    /// pointer was loaded; an index for a pointer.
    #[test]
    fn one_number_of_each_row_is_told_from_objects_and_from_indices() {
        let mut by = [0; 16];
        (by[5], by[0], by[4]) = (0x1000, 0x10_0000, 0x40);
        let rows = |code: &str, offset: u64| around(code, offset).reads_of_rows(&[at(by)]);
        assert_eq!(rows("488b074883c708f20f5804304839fa75ef", 0xc), [0x10_0040]);
        assert!(rows("488b074883c708f20f5840084839d775ef", 0xc).is_empty());
        assert!(rows("8b064883c604f20f5804c74839f275f0", 0xb).is_empty());
    }

    /// What HotSpot makes of `for (i…) sum += rows[i][j]`, four rows a turn: each pointer is loaded in four bytes, and made an address.
    const JAVA: &str = "448b5c9810438b54dc0c4b8d3cdc443bea0f835c0100004863d3448b4c9014478b5ccc0c42036caf104b8d3ccc453beb0f8331010000\
        448b4c9018478b5ccc0c42036caf104b8d3ccc453beb0f8319010000448b5c901c438b54dc0c42036caf104b8d3cdc443bea0f830201\
        000042036caf1083c304413bd87c85";

    /// Planted faults: only what was loaded whole is an address (`is_widened` of nothing); a copy of the counter is none (`step_of_copied`
    /// of nothing).
    #[test]
    fn javas_rows_are_found_through_the_four_bytes_in_which_it_keeps_where_they_are() {
        let mut by = [0; 16];
        // Behind the read at 0x24: that row's address is in rdi, what was kept of the next one in r9, the column in r13.
        (by[5], by[9], by[13]) = (0x7_0000_0000, 0x1000_0000, 1_729);
        let rows = around(JAVA, 0x29).reads_of_rows(&[at(by)]);
        assert_eq!(rows, [0x8000_0010 + 4 * 1_729, 0x7_0000_0010 + 4 * 1_729]);
        // Along a row, where the column goes on, nothing is taken of each: `inc r13` in place of the last comparison.
        let along = JAVA.replace("413bd87c85", "49ffc57c85");
        assert!(around(&along, 0x29).reads_of_rows(&[at(by)]).is_empty());
    }
}
