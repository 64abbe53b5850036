//! Where a Go program's run-time keeps the list of its goroutines and its words for why one waits: by its symbols, or, where
//! those were stripped, by its code and by what stands in its memory.
//!
//! A guess would be worse than nothing: of a stripped program a place is believed only if the function that fills the list
//! uses all three words of it, they are those of a list, the first goroutine is the program's own, and no other place is so.

use std::collections::BTreeSet;

use dyno_sys::proc::Memory;
use iced_x86::{Decoder, DecoderOptions};

use super::record::{GOROUTINES_MAX, RECORD_BYTES, layout, number, word};
use crate::image::elf::Elf;
use crate::symbol::GoFunctions;

/// Reasons that a run-time may know; there are some forty.
const REASONS_MAX: usize = 64;
/// Bytes of the longest reason, with room.
const REASON_BYTES_MAX: usize = 64;
/// Bytes of a program's data that are searched.
const DATA_BYTES_MAX: u64 = 256 << 20;
/// What puts a goroutine on the list: in every Go since 1.4, and never folded into another function.
const ADDS: &str = "runtime.allgadd";
/// Bytes of it that are decoded; it has some 300.
const CODE_BYTES_MAX: u64 = 4_096;
/// Bytes of a list's head: where it lies, how many are on it, how many there is room for.
const HEAD_BYTES: usize = 24;
/// Records of a list that are looked at before it is believed.
const LOOKED_AT_MAX: usize = 64;
/// The first reasons behind the empty one, in every Go since 1.11.
const FIRST_REASONS: [&str; 2] = ["GC assist marking", "IO wait"];

/// The list of goroutines, as an address of the process, and the run-time's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) list: u64,
    pub(super) reasons: Vec<String>,
}

/// Where they are in a process whose program's addresses are moved by `bias`.
///
/// # Errors
/// Why that is not known.
pub(super) fn find(elf: &Elf, memory: &Memory, bias: u64) -> Result<Place, &'static str> {
    let symbol = |name: &str| elf.defined(".symtab", name);
    if let (Some(list), Some(reasons)) = (symbol("runtime.allgs"), symbol("runtime.waitReasonStrings")) {
        let reasons = reasons_at(memory, reasons.wrapping_add(bias));
        return Ok(Place { list: list.wrapping_add(bias), reasons });
    }
    by_code(elf, memory, bias)
        .ok_or("its table of symbols is stripped, and its code does not show where they are")
}

/// The same without symbols.
fn by_code(elf: &Elf, memory: &Memory, bias: u64) -> Option<Place> {
    if !cfg!(target_arch = "x86_64") {
        return None;
    }
    let adds = GoFunctions::read(elf)?.named(ADDS)?;
    let code = elf.bytes_at(adds.start, (adds.end - adds.start).min(CODE_BYTES_MAX))?;
    let lists = heads(&code, adds.start).into_iter().map(|head| head.wrapping_add(bias));
    let mut lists = lists.filter(|list| is_list(memory, *list));
    let list = lists.next().filter(|_| lists.next().is_none())?;
    let data = elf.header(".data")?.addresses()?;
    let bytes = usize::try_from((data.end - data.start).min(DATA_BYTES_MAX)).ok()?;
    let table = table_of_reasons(memory, data.start.wrapping_add(bias), bytes)?;
    Some(Place { list, reasons: reasons_at(memory, table) })
}

/// Places of three words in a row, all of which code at this address uses by their distance from it.
fn heads(code: &[u8], address: u64) -> Vec<u64> {
    let decoder = Decoder::with_ip(64, code, address, DecoderOptions::NONE);
    let used: BTreeSet<u64> = decoder
        .into_iter()
        .filter(|instruction| !instruction.is_invalid() && instruction.is_ip_rel_memory_operand())
        .map(|instruction| instruction.ip_rel_memory_address())
        .collect();
    let is_head = |at: &&u64| [8, 16].iter().all(|behind| used.contains(&at.wrapping_add(*behind)));
    used.iter().filter(is_head).copied().collect()
}

/// Whether a list of goroutines begins there: its head is one, all of its records can be read and agree on their layout, and
/// the first is the one that a program begins with.
fn is_list(memory: &Memory, list: u64) -> bool {
    let head = memory.read(list, HEAD_BYTES);
    let [Some(at), Some(count), Some(room)] = [0, 8, 16].map(|behind| word(&head, behind)) else {
        return false;
    };
    if at == 0 || !at.is_multiple_of(8) || !(1..=room).contains(&count) || room > GOROUTINES_MAX as u64 {
        return false;
    }
    let count = usize::try_from(count).unwrap_or(0).min(LOOKED_AT_MAX);
    let pointers = memory.read(at, count * 8);
    let records = (0..count).map(|one| memory.read(word(&pointers, one * 8).unwrap_or(0), RECORD_BYTES));
    let records: Vec<Vec<u8>> = records.collect();
    let all: Vec<&[u8]> = records.iter().map(Vec::as_slice).collect();
    all.iter().all(|record| record.len() == RECORD_BYTES)
        && layout(&all).is_some_and(|state_at| number(all[0], state_at) == 1)
}

/// Places that may be where its words for why one waits begin, and are asked.
const CANDIDATES_MAX: usize = 4_096;

/// The run-time's words for why one waits.
fn reasons_at(memory: &Memory, table: u64) -> Vec<String> {
    let rows = memory.read(table, REASONS_MAX * 16);
    rows.chunks_exact(16).map_while(|row| text(memory, row)).collect()
}

fn text(memory: &Memory, row: &[u8]) -> Option<String> {
    let (at, length) = (word(row, 0)?, word(row, 8)?);
    let bytes = memory.read(at, usize::try_from(length).ok().filter(|length| *length <= REASON_BYTES_MAX)?);
    String::from_utf8(bytes).ok()
}

/// Where in the data the table of those words begins: with an empty one and the first two of all.
fn table_of_reasons(memory: &Memory, data: u64, bytes: usize) -> Option<u64> {
    let data_bytes = memory.read(data, bytes);
    let is_row = |at: usize, wanted: &str| {
        word(&data_bytes, at + 8) == Some(wanted.len() as u64)
            && data_bytes.get(at..at + 16).and_then(|row| text(memory, row)).as_deref() == Some(wanted)
    };
    let begins = |at: &usize| is_row(at + 16, FIRST_REASONS[0]) && is_row(at + 32, FIRST_REASONS[1]);
    // What looks like a beginning is read where it points to: a file that is full of such is no program of Go's.
    let mut asked = 0;
    let may_begin = |at: &usize| {
        word(&data_bytes, at + 8) == Some(0)
            && word(&data_bytes, at + 24) == Some(FIRST_REASONS[0].len() as u64)
    };
    let candidates = (0..data_bytes.len()).step_by(8).filter(may_begin).take_while(|_| {
        asked += 1;
        asked <= CANDIDATES_MAX
    });
    let at = candidates.into_iter().find(begins)?;
    Some(data + at as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `mov rax, [rip+0xff9]`, `lea rcx, [rip+0xffa]`, `mov [rip+0xffb], rdx`, `mov rbx, [rsp+8]`: 0x2000, 0x2008, 0x2010.
    const USES: [u8; 26] = [
        0x48, 0x8b, 0x05, 0xf9, 0x0f, 0, 0, 0x48, 0x8d, 0x0d, 0xfa, 0x0f, 0, 0, 0x48, 0x89, 0x15, 0xfb, 0x0f,
        0, 0, 0x48, 0x8b, 0x5c, 0x24, 0x08,
    ];

    /// Planted fault: two words in a row are enough.
    #[test]
    fn code_that_uses_three_words_in_a_row_shows_where_a_list_may_begin() {
        assert_eq!(heads(&USES, 0x1000), [0x2000]);
        assert!(heads(&USES[..14], 0x1000).is_empty());
    }
}
