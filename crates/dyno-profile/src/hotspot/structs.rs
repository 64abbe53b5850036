//! HotSpot's table of its own structures, and what is read by it: heaps of code, their blocks, names of methods.
//!
//! Fields that a version of Java lacks are looked for under their other names; one that has neither makes the machine
//! unreadable, and its code is then as nameless as any.

use std::collections::{BTreeMap, HashMap};

use dyno_sys::Pid;
use dyno_sys::proc::Memory;

use crate::image::spaces::library;

/// What is read of a block's head, how large a frame may be, and bytes of a name.
pub(super) const HEAD_BYTES: usize = 512;
pub(super) const FRAME_BYTES_MAX: u64 = 1 << 20;
const NAME_BYTES_MAX: usize = 512;
/// The library of the virtual machine.
const LIBRARY: &str = "libjvm.so";
/// Entries of its tables: some 2,000.
const ENTRIES_MAX: u64 = 1 << 14;
/// Heaps of code: three, or one.
const HEAPS_MAX: u64 = 16;

/// Where fields lie, in bytes.
pub(super) struct Structs {
    /// The list of heaps.
    heaps: u64,
    list_length: u64,
    list_data: u64,
    heap_low: u64,
    heap_high: u64,
    heap_log2_segment: u64,
    block_bytes: u64,
    block_length: u64,
    block_used: u64,
    name: u64,
    complete: (u64, usize),
    frame_size: u64,
    code: Code,
    method: u64,
    description: u64,
    constants: u64,
    name_index: u64,
    pool_bytes: u64,
    pool_holder: u64,
    class_name: u64,
    symbol_length: u64,
    symbol_body: u64,
    /// Names of kinds of code by where they stand.
    kinds: std::cell::RefCell<HashMap<u64, String>>,
}

/// Where a piece's instructions begin and end.
enum Code {
    Addresses(u64, u64),
    /// From the piece's beginning on, and where its data begin.
    Offsets(u64, u64),
}

/// A piece of code as it stands in its block.
pub(super) struct Piece {
    pub(super) name: String,
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) complete: u64,
    pub(super) frame_bytes: u64,
    pub(super) method: Option<u64>,
}

/// The tables' entries.
struct Tables {
    /// By type and field: the type of the field, its offset, its address where it is static.
    fields: HashMap<(String, String), (String, u64, u64)>,
    /// Bytes of types.
    types: HashMap<String, u64>,
}

impl Structs {
    /// Of a process that is a Java virtual machine.
    pub(super) fn of(pid: Pid) -> Option<(Memory, Structs)> {
        let (elf, bias) = library(pid, LIBRARY)?;
        let memory = Memory::open(pid).ok()?;
        let symbol = |name: &str| elf.defined(".dynsym", name).map(|address| address.wrapping_add(bias));
        let tables = Tables::read(&memory, &symbol)?;
        let structs = tables.structs()?;
        Some((memory, structs))
    }

    /// Where the heaps of code begin and end, and how many bytes a segment of each has, as a power of two.
    pub(super) fn heaps(&self, memory: &Memory) -> Vec<(u64, u64, u32)> {
        let list = word(memory, self.heaps);
        let length = u64::from(half(memory, list + self.list_length)).min(HEAPS_MAX);
        let data = word(memory, list + self.list_data);
        let heaps = (0..length).map(|at| word(memory, data + 8 * at));
        let ends = |heap| (word(memory, heap + self.heap_low), word(memory, heap + self.heap_high));
        let log2 = |heap| half(memory, heap + self.heap_log2_segment).min(32);
        heaps.map(|heap| (ends(heap).0, ends(heap).1, log2(heap))).collect()
    }

    /// The bytes of the block that begins with `head` at `at`, and the code in it; `None` where it is no block.
    pub(super) fn block(
        &self,
        (at, head): (u64, &[u8]),
        log2: u32,
        memory: &Memory,
    ) -> Option<(u64, Option<Piece>)> {
        let segments =
            word_in(head, self.block_length).filter(|segments| *segments > 0 && *segments < 1 << 40)?;
        let bytes = segments.checked_shl(log2)?;
        let is_used = head.get(usize::try_from(self.block_used).ok()?).is_some_and(|used| *used != 0);
        Some((bytes, if is_used { self.piece((at, head), memory) } else { None }))
    }

    fn piece(&self, (at, head): (u64, &[u8]), memory: &Memory) -> Option<Piece> {
        let (start, head) =
            (at.checked_add(self.block_bytes)?, head.get(usize::try_from(self.block_bytes).ok()?..)?);
        let int = |at: u64| Some(u64::from(half_in(head, at)?));
        let (begin, end) = match self.code {
            Code::Addresses(begin, end) => (word_in(head, begin)?, word_in(head, end)?),
            Code::Offsets(begin, end) => (start.checked_add(int(begin)?)?, start.checked_add(int(end)?)?),
        };
        let complete = match self.complete {
            (at, 2) => u64::from(u16::from_ne_bytes(*head.get(usize::try_from(at).ok()?..)?.first_chunk()?)),
            (at, _) => int(at)?,
        };
        let name = self.kind_name(memory, word_in(head, self.name)?)?;
        let is_method = name.ends_with("nmethod");
        // Code that has no frame, or none of one size, says minus one.
        let frame_bytes = Some(8 * int(self.frame_size)?).filter(|bytes| *bytes <= FRAME_BYTES_MAX);
        Some(Piece {
            begin,
            end,
            complete: if complete >= u64::from(u16::MAX) { 0 } else { complete },
            frame_bytes: frame_bytes.unwrap_or(0),
            method: if is_method { word_in(head, self.method) } else { None },
            name,
        })
    }

    /// There are some forty kinds, in the library's own text.
    fn kind_name(&self, memory: &Memory, at: u64) -> Option<String> {
        let mut kinds = self.kinds.borrow_mut();
        if let Some(name) = kinds.get(&at) {
            return Some(name.clone());
        }
        let name = text(memory, at)?;
        kinds.insert(at, name.clone());
        Some(name)
    }

    /// `package.Class.method`. `classes` keeps what was read of each.
    pub(super) fn method_name(
        &self,
        memory: &Memory,
        method: u64,
        classes: &mut BTreeMap<u64, Option<String>>,
    ) -> Option<String> {
        let description = word(memory, method + self.description);
        let pool = word(memory, description + self.constants);
        let index = memory.read(description + self.name_index, 2);
        let index = u64::from(u16::from_ne_bytes(*index.first_chunk()?));
        // The lowest bit may say something else.
        let name = self.symbol(memory, word(memory, pool + self.pool_bytes + 8 * index) & !1)?;
        let class = classes.entry(pool).or_insert_with(|| {
            let holder = word(memory, pool + self.pool_holder);
            let name = self.symbol(memory, word(memory, holder + self.class_name))?;
            Some(name.replace('/', "."))
        });
        Some(format!("{}.{name}", class.as_deref()?))
    }

    fn symbol(&self, memory: &Memory, at: u64) -> Option<String> {
        let length = memory.read(at + self.symbol_length, 2);
        let length = usize::from(u16::from_ne_bytes(*length.first_chunk()?));
        let body = memory.read(at + self.symbol_body, length.min(NAME_BYTES_MAX));
        let text = String::from_utf8(body).ok()?;
        let is_name = length > 0 && !text.chars().any(|letter| letter.is_control() || letter == ' ');
        is_name.then_some(text)
    }
}

impl Tables {
    fn read(memory: &Memory, symbol: &dyn Fn(&str) -> Option<u64>) -> Option<Tables> {
        let value = |name: &str| symbol(name).map(|at| word(memory, at));
        let entry = |what: &str| value(&format!("gHotSpotVMStructEntry{what}"));
        let (first, stride) = (value("gHotSpotVMStructs")?, entry("ArrayStride")?);
        let (of_type, field) = (entry("TypeNameOffset")?, entry("FieldNameOffset")?);
        let (kind, offset, address) =
            (entry("TypeStringOffset")?, entry("OffsetOffset")?, entry("AddressOffset")?);
        let mut fields = HashMap::new();
        for at in (0..ENTRIES_MAX).map(|at| first + at * stride) {
            let Some(name) = text(memory, word(memory, at + of_type)) else { break };
            let key = (name, text(memory, word(memory, at + field)).unwrap_or_default());
            let of_field = text(memory, word(memory, at + kind)).unwrap_or_default();
            fields.insert(key, (of_field, word(memory, at + offset), word(memory, at + address)));
        }
        let entry = |what: &str| value(&format!("gHotSpotVMTypeEntry{what}"));
        let (first, stride) = (value("gHotSpotVMTypes")?, entry("ArrayStride")?);
        let (name, size) = (entry("TypeNameOffset")?, entry("SizeOffset")?);
        let mut types = HashMap::new();
        for at in (0..ENTRIES_MAX).map(|at| first + at * stride) {
            let Some(name) = text(memory, word(memory, at + name)) else { break };
            types.insert(name, word(memory, at + size));
        }
        Some(Tables { fields, types })
    }

    /// The first of these that is there.
    fn field(&self, names: &[(&str, &str)]) -> Option<&(String, u64, u64)> {
        names.iter().find_map(|(of, field)| self.fields.get(&((*of).to_owned(), (*field).to_owned())))
    }

    fn structs(&self) -> Option<Structs> {
        let at = |of: &str, field: &str| self.field(&[(of, field)]).map(|(_, offset, _)| *offset);
        let either = |names: &[(&str, &str)]| self.field(names).map(|(_, offset, _)| *offset);
        let (space_low, space_high) = (at("VirtualSpace", "_low")?, at("VirtualSpace", "_high")?);
        let space = at("CodeHeap", "_memory")?;
        let (kind, complete, _) = self.field(&[("CodeBlob", "_frame_complete_offset")])?;
        let code = match (at("CodeBlob", "_code_begin"), at("CodeBlob", "_code_end")) {
            (Some(begin), Some(end)) => Code::Addresses(begin, end),
            _ => Code::Offsets(at("CodeBlob", "_code_offset")?, at("CodeBlob", "_data_offset")?),
        };
        let structs = Structs {
            heaps: self.field(&[("CodeCache", "_heaps")])?.2,
            list_length: either(&[("GrowableArrayBase", "_len"), ("GenericGrowableArray", "_len")])?,
            list_data: either(&[("GrowableArray<int>", "_data"), ("GenericGrowableArray", "_data")])?,
            heap_low: space + space_low,
            heap_high: space + space_high,
            heap_log2_segment: at("CodeHeap", "_log2_segment_size")?,
            block_bytes: *self.types.get("HeapBlock")?,
            block_length: at("HeapBlock::Header", "_length")?,
            block_used: at("HeapBlock::Header", "_used")?,
            name: at("CodeBlob", "_name")?,
            complete: (*complete, if kind.contains("16") { 2 } else { 4 }),
            frame_size: at("CodeBlob", "_frame_size")?,
            code,
            method: either(&[("CompiledMethod", "_method"), ("nmethod", "_method")])?,
            description: at("Method", "_constMethod")?,
            constants: at("ConstMethod", "_constants")?,
            name_index: at("ConstMethod", "_name_index")?,
            pool_bytes: *self.types.get("ConstantPool")?,
            pool_holder: at("ConstantPool", "_pool_holder")?,
            class_name: at("Klass", "_name")?,
            symbol_length: at("Symbol", "_length")?,
            symbol_body: either(&[("Symbol", "_body"), ("Symbol", "_body[0]")])?,
            kinds: std::cell::RefCell::default(),
        };
        let is_near = [structs.method, structs.frame_size, structs.name, structs.complete.0]
            .iter()
            .all(|at| *at + structs.block_bytes + 8 <= HEAD_BYTES as u64);
        is_near.then_some(structs)
    }
}

fn word(memory: &Memory, at: u64) -> u64 {
    word_in(&memory.read(at, 8), 0).unwrap_or(0)
}

fn half(memory: &Memory, at: u64) -> u32 {
    half_in(&memory.read(at, 4), 0).unwrap_or(0)
}

fn word_in(bytes: &[u8], at: u64) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?))
}

fn half_in(bytes: &[u8], at: u64) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(usize::try_from(at).ok()?..)?.first_chunk()?))
}

/// A text of the library; none at nought.
fn text(memory: &Memory, at: u64) -> Option<String> {
    let bytes = memory.read(at, if at == 0 { 0 } else { NAME_BYTES_MAX });
    let end = bytes.iter().position(|byte| *byte == 0).filter(|end| *end > 0)?;
    Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
}
