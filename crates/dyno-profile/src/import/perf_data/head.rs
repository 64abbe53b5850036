//! The head of a perf.data: what was counted, what each sample holds, and on which machine.

use std::collections::{BTreeMap, HashMap};

use super::cursor::Cursor;
use crate::import::gather::error::ImportError;

/// Size of the head in a file; in a pipe it is [`PIPE_HEAD_BYTES`].
const PIPE_HEAD_BYTES: u64 = 16;
/// Events in one file: perf itself stops at the number of open descriptors.
const EVENTS_MAX: u64 = 65_536;

/// An event and what its samples hold (perf_event_attr).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Event {
    kind: u32,
    config: u64,
    period: u64,
    pub(super) sample_type: u64,
    pub(super) read_format: u64,
    flags: u64,
}

impl Event {
    const FREQUENCY: u64 = 1 << 10;
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    const EXCLUDE_CALLCHAIN_USER: u64 = 1 << 22;
    const HARDWARE: u32 = 0;
    const SOFTWARE: u32 = 1;
    /// Above it stands which kind of CPU counts, where a machine has several.
    const OF_HARDWARE: u64 = 0xffff_ffff;

    fn read(cursor: &mut Cursor<'_>) -> Option<(Event, u32)> {
        let kind = cursor.u32()?;
        let size = cursor.u32()?;
        let (config, period) = (cursor.u64()?, cursor.u64()?);
        let (sample_type, read_format, flags) = (cursor.u64()?, cursor.u64()?, cursor.u64()?);
        Some((Event { kind, config, period, sample_type, read_format, flags }, size))
    }

    /// Whether its period is in nanoseconds: cpu-clock or task-clock.
    pub(super) fn is_clock(self) -> bool {
        self.kind == Event::SOFTWARE && self.config <= 1
    }

    /// Whether records other than samples have their time at their end.
    pub(super) fn marks_all(self) -> bool {
        self.flags & Event::SAMPLE_ID_ALL != 0
    }

    /// Whether its call chains have no callers in user space: they stand in branch records (`--call-graph lbr`), in copied stacks
    /// (`dwarf`), or nowhere (`--kernel-callchains`).
    pub(super) fn is_without_user_callers(self) -> bool {
        self.flags & Event::EXCLUDE_CALLCHAIN_USER != 0
    }

    pub(super) fn has_branches(self) -> bool {
        const BRANCH_STACK: u64 = 1 << 11;
        self.sample_type & BRANCH_STACK != 0
    }

    pub(super) fn frequency(self) -> Option<f64> {
        (self.flags & Event::FREQUENCY != 0).then_some(self.period as f64)
    }

    /// The period of each of its samples, where it is fixed (`perf record -c`): samples need not say it then.
    pub(super) fn fixed_period(self) -> Option<u64> {
        (self.flags & Event::FREQUENCY == 0).then_some(self.period)
    }

    /// Events of one name are one: `cycles` of the fast and of the slow CPUs, of the user and of the kernel.
    pub(super) fn name(self) -> String {
        let named = match (self.kind, self.config & Event::OF_HARDWARE) {
            (Event::SOFTWARE, 0) => "cpu-clock",
            (Event::SOFTWARE, 1) => "task-clock",
            (Event::HARDWARE, 0) => "cycles",
            (Event::HARDWARE, 1) => "instructions",
            (Event::HARDWARE, 2) => "cache-references",
            (Event::HARDWARE, 3) => "cache-misses",
            (Event::HARDWARE, 4) => "branches",
            (Event::HARDWARE, 5) => "branch-misses",
            _ => return format!("event {}:{:#x}", self.kind, self.config),
        };
        named.to_owned()
    }
}

/// What a head says.
#[derive(Debug, Clone, Default)]
pub(super) struct Head {
    pub(super) events: Vec<Event>,
    /// Which event an id belongs to.
    pub(super) ids: HashMap<u64, usize>,
    /// Where the records are: from, bytes.
    pub(super) data: (u64, u64),
    pub(super) kernel: String,
    pub(super) processor: String,
    pub(super) cpus: u32,
    pub(super) command: Vec<String>,
    pub(super) build_ids: BTreeMap<String, String>,
}

pub(super) fn read(file: &[u8]) -> Result<Head, ImportError> {
    let mut cursor = Cursor::of(file, 0, file.len() as u64).expect("a file is as long as itself");
    let short = |cursor: &Cursor<'_>| cursor.damaged("it ends within its head");
    let mut sizes = || {
        cursor.skip(8)?;
        cursor.u64()
    };
    let Some(head_bytes) = sizes() else { return Err(short(&cursor)) };
    if head_bytes == PIPE_HEAD_BYTES {
        let data = (PIPE_HEAD_BYTES, file.len() as u64 - PIPE_HEAD_BYTES);
        return Ok(Head { data, ..Head::default() });
    }
    let sections = sections(&mut cursor).ok_or_else(|| short(&cursor))?;
    let mut head = Head { data: sections.data, ..Head::default() };
    events(file, &sections, &mut head).ok_or_else(|| cursor.damaged("its events lie outside of it"))?;
    if head.events.is_empty() {
        return Err(cursor.damaged("it describes no event"));
    }
    // Who recorded and where is good to know and never needed: what is torn there is left out.
    let _ = features(file, &sections, &mut head);
    Ok(head)
}

struct Sections {
    event_bytes: u64,
    events: (u64, u64),
    data: (u64, u64),
    features: [u64; 4],
}

fn sections(cursor: &mut Cursor<'_>) -> Option<Sections> {
    let event_bytes = cursor.u64()?;
    let mut section = || Some((cursor.u64()?, cursor.u64()?));
    let (events, data, _types) = (section()?, section()?, section()?);
    let features = [cursor.u64()?, cursor.u64()?, cursor.u64()?, cursor.u64()?];
    Some(Sections { event_bytes, events, data, features })
}

fn events(file: &[u8], sections: &Sections, head: &mut Head) -> Option<()> {
    let count = sections.events.1.checked_div(sections.event_bytes)?;
    // No two events have an id in common: all their ids together fit into the file.
    let mut ids_left = file.len() as u64;
    for at in 0..count.min(EVENTS_MAX) {
        let from = sections.events.0.checked_add(at * sections.event_bytes)?;
        let mut cursor = Cursor::of(file, from, sections.event_bytes)?;
        let (event, _) = Event::read(&mut cursor)?;
        // The event's ids stand behind it, whatever its own size is.
        let mut behind = Cursor::of(file, from.checked_add(sections.event_bytes.checked_sub(16)?)?, 16)?;
        let (ids_at, ids_bytes) = (behind.u64()?, behind.u64()?);
        ids_left = ids_left.checked_sub(ids_bytes)?;
        let ids = Cursor::of(file, ids_at, ids_bytes)?;
        head.add(event, ids);
    }
    Some(())
}

impl Head {
    fn add(&mut self, event: Event, mut ids: Cursor<'_>) {
        while let Some(id) = ids.u64() {
            self.ids.insert(id, self.events.len());
        }
        self.events.push(event);
    }

    /// An event that is described among the records, as in a pipe.
    pub(super) fn add_record(&mut self, mut record: Cursor<'_>) -> Option<()> {
        let whole = record;
        let (event, size) = Event::read(&mut record)?;
        let mut ids = whole;
        ids.skip(u64::from(size))?;
        self.add(event, ids);
        Some(())
    }

    /// A build-id that stands among the records.
    pub(super) fn add_build_id(&mut self, record: Cursor<'_>) {
        // What is torn there is left out, as in a file.
        let _ = build_id(record, self);
    }

    /// A section that stands among the records.
    pub(super) fn add_feature(&mut self, mut record: Cursor<'_>) {
        let bit = record.u64().and_then(|bit| usize::try_from(bit).ok());
        let _ = bit.and_then(|bit| feature(bit, record, self));
    }

    /// The event that a sample with this id is of.
    pub(super) fn event_of(&self, id: u64) -> Option<usize> {
        self.ids.get(&id).copied()
    }
}

/// Sections behind the records, one for each bit that is set.
fn features(file: &[u8], sections: &Sections, head: &mut Head) -> Option<()> {
    let from = sections.data.0.checked_add(sections.data.1)?;
    let bits = (0..256_usize).filter(|bit| sections.features[bit / 64] >> (bit % 64) & 1 == 1);
    for (at, bit) in bits.enumerate() {
        let mut place = Cursor::of(file, from.checked_add(at as u64 * 16)?, 16)?;
        let cursor = Cursor::of(file, place.u64()?, place.u64()?)?;
        // One torn section does not spoil the others.
        let _ = feature(bit, cursor, head);
    }
    Some(())
}

fn feature(bit: usize, mut cursor: Cursor<'_>, head: &mut Head) -> Option<()> {
    match bit {
        2 => build_ids(cursor, head)?,
        4 => cursor.counted_text()?.clone_into(&mut head.kernel),
        7 => head.cpus = cursor.u32()?,
        8 => cursor.counted_text()?.clone_into(&mut head.processor),
        11 => {
            let words = cursor.u32()?;
            for _ in 0..words.min(4_096) {
                head.command.push(cursor.counted_text()?.to_owned());
            }
        }
        _ => {}
    }
    Some(())
}

fn build_ids(mut cursor: Cursor<'_>, head: &mut Head) -> Option<()> {
    while cursor.left() > 0 {
        let (_kind, _misc, size) = (cursor.u32()?, cursor.u16()?, cursor.u16()?);
        build_id(cursor.part(usize::from(size).checked_sub(8)?)?, head)?;
    }
    Some(())
}

/// A process, an id and the file that has it.
fn build_id(mut entry: Cursor<'_>, head: &mut Head) -> Option<()> {
    const ID_BYTES: usize = 20;
    entry.skip(4)?;
    let id = entry.take(24)?;
    let id = hex(&id[..ID_BYTES]);
    head.build_ids.insert(entry.text().to_owned(), id);
    Some(())
}

/// Bytes as lower-case digits; zeros at the end of a short id are filling.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
