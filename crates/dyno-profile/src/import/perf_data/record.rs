//! The stream of records: each has a kind, flags and a length.

use super::cursor::Cursor;
use super::head::{Event, Head, hex};
use super::maps::Map;
use crate::import::gather::error::ImportError;
use crate::unwind::within_call;

/// Fields of a sample, in the order in which they stand in it (PERF_SAMPLE_*).
mod holds {
    pub(super) const IP: u64 = 1;
    pub(super) const TID: u64 = 1 << 1;
    pub(super) const TIME: u64 = 1 << 2;
    pub(super) const ADDR: u64 = 1 << 3;
    pub(super) const READ: u64 = 1 << 4;
    pub(super) const CALLCHAIN: u64 = 1 << 5;
    pub(super) const ID: u64 = 1 << 6;
    pub(super) const CPU: u64 = 1 << 7;
    pub(super) const PERIOD: u64 = 1 << 8;
    pub(super) const STREAM_ID: u64 = 1 << 9;
    pub(super) const STACK_USER: u64 = 1 << 13;
    pub(super) const IDENTIFIER: u64 = 1 << 16;
}

/// Callers of one sample: above the kernel's own limit a number is damage.
const CALLERS_MAX: u64 = 65_536;
/// The number that says "kernel frames follow" in a chain.
const CONTEXT_KERNEL: u64 = -128_i64 as u64;
/// All numbers from here up are such words, not addresses.
const CONTEXT_MIN: u64 = -4_095_i64 as u64;

/// A record that matters, and when it was written.
#[derive(Debug)]
pub(super) struct Entry<'f> {
    pub(super) time: u64,
    pub(super) what: What<'f>,
}

/// What a record says.
#[derive(Debug)]
pub(super) enum What<'f> {
    /// A file was mapped.
    Map { pid: u32, map: Map<'f> },
    /// A thread has a name.
    Comm { pid: u32, tid: u32, name: &'f str, exec: bool },
    /// A thread was made; or was there before the recording, and is made known.
    Fork { pid: u32, parent: u32, tid: u32, parent_tid: u32, is_of_before: bool },
    /// Records of any kind that found no room in the ring.
    LostRecords(u64),
    /// Samples that were not written, as the event's counter has them at the end: mostly the same ones once more.
    LostSamples(u64),
    /// A stack was seen.
    Sample(Sample),
}

/// A stack.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pub(super) ip: u64,
    pub(super) in_kernel: bool,
    pub(super) pid: u32,
    pub(super) tid: u32,
    /// Its event, as an index into the head's.
    pub(super) event: usize,
    pub(super) period: Option<u64>,
    /// Addresses from the leaf, and whether they are the kernel's; a caller's lies within its call.
    pub(super) chain: Vec<(u64, bool)>,
    pub(super) has_user_stack: bool,
    pub(super) time: u64,
}

/// All records that matter, in the file's order.
pub(super) fn entries<'f>(file: &'f [u8], head: &mut Head) -> Result<Vec<Entry<'f>>, ImportError> {
    let (from, bytes) = head.data;
    let end = Cursor::of(file, file.len() as u64, 0).expect("a file ends where it ends");
    // A recording that was killed has no length in its head: the file's end is the records' end then.
    let bytes = if bytes == 0 { (file.len() as u64).saturating_sub(from) } else { bytes };
    let mut rest =
        Cursor::of(file, from, bytes).ok_or_else(|| end.damaged("it ends before its records do"))?;
    let mut found = Vec::new();
    let mut last_time = 0;
    while rest.left() > 0 {
        let start = rest;
        let entry = next(&mut rest, head, last_time)?;
        if rest.place() == start.place() {
            return Err(start.damaged("a record without length"));
        }
        last_time = entry.as_ref().map_or(last_time, |entry| entry.time);
        found.extend(entry);
    }
    Ok(found)
}

fn next<'f>(
    rest: &mut Cursor<'f>,
    head: &mut Head,
    last_time: u64,
) -> Result<Option<Entry<'f>>, ImportError> {
    let start = *rest;
    let torn = || start.damaged("a record is torn");
    let mut fixed = || Some((rest.u32()?, rest.u16()?, rest.u16()?));
    let (kind, misc, size) = fixed().ok_or_else(torn)?;
    let body = usize::from(size).checked_sub(8).and_then(|bytes| rest.part(bytes)).ok_or_else(torn)?;
    match kind {
        // What follows these is not within their length.
        66 => skip_behind(rest, body, Behind::Tracing).ok_or_else(torn)?,
        71 => skip_behind(rest, body, Behind::Aux).ok_or_else(torn)?,
        64 => head.add_record(body).ok_or_else(torn)?,
        // What a file has behind its records stands among them in a pipe.
        67 => head.add_build_id(body),
        80 => head.add_feature(body),
        81 | 83 => {
            let what = "its records are compressed (perf record -z), which is not read here";
            return Err(ImportError::Unsupported { what, instead: "perf script -i FILE | dyno flame -" });
        }
        _ => return what(kind, misc, body, head, last_time).ok_or_else(torn),
    }
    Ok(None)
}

enum Behind {
    Tracing,
    Aux,
}

fn skip_behind(rest: &mut Cursor<'_>, mut body: Cursor<'_>, behind: Behind) -> Option<()> {
    let bytes = match behind {
        Behind::Tracing => u64::from(body.u32()?).next_multiple_of(8),
        Behind::Aux => body.u64()?,
    };
    rest.skip(bytes)
}

/// Some(None): a record that does not matter here. None: a torn one.
fn what<'f>(
    kind: u32,
    misc: u16,
    body: Cursor<'f>,
    head: &Head,
    last_time: u64,
) -> Option<Option<Entry<'f>>> {
    const COMM_EXEC: u16 = 1 << 13;
    /// PERF_RECORD_MISC_FORK_EXEC: perf wrote it for a process that was there before, whose own maps follow.
    const FORK_EXEC: u16 = 1 << 13;
    /// PERF_RECORD_MISC_LOST_SAMPLES_BPF: the filter of the user left them out.
    const FILTERED: u16 = 1 << 15;
    let mut c = body;
    let what = match kind {
        1 => map(&mut c, None)?,
        10 => map(&mut c, Some(misc))?,
        2 => {
            c.skip(8)?;
            What::LostRecords(c.u64()?)
        }
        13 if misc & FILTERED != 0 => return Some(None),
        13 => What::LostSamples(c.u64()?),
        3 => What::Comm { pid: c.u32()?, tid: c.u32()?, name: c.text(), exec: misc & COMM_EXEC != 0 },
        7 => {
            let (pid, parent) = (c.u32()?, c.u32()?);
            let is_of_before = misc & FORK_EXEC != 0;
            What::Fork { pid, parent, tid: c.u32()?, parent_tid: c.u32()?, is_of_before }
        }
        9 => {
            let sample = sample(body, misc, head)?;
            return Some(Some(Entry { time: sample.time, what: What::Sample(sample) }));
        }
        _ => return Some(None),
    };
    let time = head.events.first().and_then(|event| time_of(*event, body)).unwrap_or(last_time);
    Some(Some(Entry { time, what }))
}

/// A mapped file; `misc` is given for the second form of the record, which may hold a build-id.
fn map<'f>(c: &mut Cursor<'f>, misc: Option<u16>) -> Option<What<'f>> {
    const HAS_BUILD_ID: u16 = 1 << 14;
    let pid = c.u32()?;
    c.skip(4)?;
    let (start, bytes, offset) = (c.u64()?, c.u64()?, c.u64()?);
    let (mut build_id, mut inode) = (None, 0);
    if let Some(misc) = misc {
        let mut id = c.part(24)?;
        c.skip(8)?;
        if misc & HAS_BUILD_ID == 0 {
            id.skip(8)?;
            inode = id.u64()?;
        } else {
            let length = usize::from(id.u32()?.to_le_bytes()[0]).min(20);
            build_id = Some(hex(id.take(length)?));
        }
    }
    Some(What::Map { pid, map: Map { start, bytes, offset, inode, build_id, path: c.text() } })
}

/// The time at the end of a record that is no sample.
fn time_of(event: Event, body: Cursor<'_>) -> Option<u64> {
    let has = |bit| event.sample_type & bit != 0;
    if !event.marks_all() || !has(holds::TIME) {
        return None;
    }
    let behind = [holds::ID, holds::STREAM_ID, holds::CPU, holds::IDENTIFIER];
    let bytes = 8 * (1 + behind.into_iter().filter(|bit| has(*bit)).count());
    let mut cursor = body;
    cursor.take(body.left().checked_sub(bytes)?)?;
    cursor.u64()
}

fn sample(body: Cursor<'_>, misc: u16, head: &Head) -> Option<Sample> {
    const CPU_MODE: u16 = 7;
    const KERNEL: u16 = 1;
    let at = identifier(body, head).and_then(|id| head.event_of(id)).unwrap_or(0);
    let event = head.events.get(at)?;
    let has = |bit| event.sample_type & bit != 0;
    let mut c = body;
    let (in_kernel, period) = (misc & CPU_MODE == KERNEL, event.fixed_period());
    let mut sample = Sample { in_kernel, period, event: at, ..Sample::default() };
    sample.has_user_stack = has(holds::STACK_USER);
    c.skip(if has(holds::IDENTIFIER) { 8 } else { 0 })?;
    if has(holds::IP) {
        sample.ip = c.u64()?;
    }
    if has(holds::TID) {
        (sample.pid, sample.tid) = (c.u32()?, c.u32()?);
    }
    if has(holds::TIME) {
        sample.time = c.u64()?;
    }
    c.skip(if has(holds::ADDR) { 8 } else { 0 })?;
    if has(holds::ID) {
        // Old kernels say it here alone: all their samples hold the same then, whatever event they are of.
        sample.event = head.event_of(c.u64()?).unwrap_or(at);
        sample.period = head.events.get(sample.event)?.fixed_period();
    }
    c.skip(8 * [holds::STREAM_ID, holds::CPU].into_iter().filter(|bit| has(*bit)).count() as u64)?;
    if has(holds::PERIOD) {
        sample.period = Some(c.u64()?);
    }
    if has(holds::READ) {
        skip_read(&mut c, event.read_format)?;
    }
    if has(holds::CALLCHAIN) {
        sample.chain = chain(&mut c)?;
    }
    Some(sample)
}

/// Which event a sample is of, where the file says it at a fixed place.
fn identifier(mut body: Cursor<'_>, head: &Head) -> Option<u64> {
    let first = head.events.first()?;
    (first.sample_type & holds::IDENTIFIER != 0).then(|| body.u64()).flatten()
}

/// Counters that stand in a sample (PERF_FORMAT_*).
fn skip_read(c: &mut Cursor<'_>, format: u64) -> Option<()> {
    let has = |bit: u64| u64::from(format & bit != 0);
    let (times, per_value) = (has(1) + has(2), 1 + has(4) + has(16));
    if format & 8 == 0 {
        return c.skip(8 * (times + per_value));
    }
    let count = c.u64()?.min(CALLERS_MAX);
    c.skip(8 * (times + count * per_value))
}

fn chain(c: &mut Cursor<'_>) -> Option<Vec<(u64, bool)>> {
    let count = c.u64().filter(|count| *count <= CALLERS_MAX)?;
    let (mut found, mut in_kernel, mut in_part) = (Vec::new(), false, 0);
    for _ in 0..count {
        let word = c.u64()?;
        if word >= CONTEXT_MIN {
            (in_kernel, in_part) = (word == CONTEXT_KERNEL, 0);
            continue;
        }
        // The kernel's part and the user's begin with the instruction that ran; what follows is returned to.
        found.push((within_call((in_part, &word)), in_kernel));
        in_part += 1;
    }
    Some(found)
}
