//! Files made here, byte by byte, and what is read from them.
#![allow(clippy::unwrap_used)]

use super::*;
use dyno_record::name;

const IP_TID_TIME_CHAIN_PERIOD: u64 = 1 | 2 | 4 | 32 | 256;
const FREQUENCY_AND_SAMPLE_ID_ALL: u64 = 1 << 10 | 1 << 18;

fn u64s(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize((bytes.len() + 1).next_multiple_of(8), 0);
    bytes
}

fn record(kind: u32, misc: u16, body: &[Vec<u8>]) -> Vec<u8> {
    let body = body.concat();
    let size = u16::try_from(body.len() + 8).unwrap();
    [u32s(&[kind]), misc.to_le_bytes().to_vec(), size.to_le_bytes().to_vec(), body].concat()
}

/// pid, tid and time, as they end every record but a sample.
fn mark(time: u64) -> Vec<u8> {
    [u32s(&[7, 8]), u64s(&[time])].concat()
}

fn map(time: u64, start: u64, path: &str) -> Vec<u8> {
    record(1, 2, &[u32s(&[7, 7]), u64s(&[start, 0x1000, 0x2000]), text(path), mark(time)])
}

fn sample(time: u64, chain: &[u64]) -> Vec<u8> {
    let body = [u64s(&[chain[1]]), u32s(&[7, 8]), u64s(&[time, 2_000_000, chain.len() as u64]), u64s(chain)];
    record(9, 2, &body)
}

fn event(kind: u32, flags: u64) -> Vec<u8> {
    event_of(kind, 499, IP_TID_TIME_CHAIN_PERIOD, flags)
}

fn event_of(kind: u32, period: u64, sample_type: u64, flags: u64) -> Vec<u8> {
    let mut event = [u32s(&[kind, 64]), u64s(&[0, period, sample_type, 0, flags])].concat();
    event.resize(64, 0);
    event
}

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    file_of(1, records)
}

fn file_of(kind: u32, records: &[Vec<u8>]) -> Vec<u8> {
    file_with(event(kind, FREQUENCY_AND_SAMPLE_ID_ALL), records)
}

fn file_with(event: Vec<u8>, records: &[Vec<u8>]) -> Vec<u8> {
    const HEAD: u64 = 104;
    let data = records.concat();
    let event_bytes = event.len() as u64 + 16;
    let data_at = HEAD + event_bytes;
    let kernel = [u32s(&[8]), text("6.18.0")].concat();
    let feature_at = data_at + data.len() as u64;
    [
        MAGIC.to_vec(),
        u64s(&[HEAD, event_bytes, HEAD, event_bytes, data_at, data.len() as u64, 0, 0, 1 << 4, 0, 0, 0]),
        event,
        u64s(&[0, 0]),
        data,
        u64s(&[feature_at + 16, kernel.len() as u64]),
        kernel,
    ]
    .concat()
}

fn three() -> Vec<Vec<u8>> {
    let kernel = (-128_i64) as u64;
    let user = (-512_i64) as u64;
    vec![
        record(3, 0, &[u32s(&[7, 8]), text("worker"), mark(1)]),
        map(2, 0x40_0000, "/srv/w"),
        sample(1_000_000_000, &[user, 0x40_0010, 0x40_0500]),
        sample(1_500_000_000, &[user, 0x40_0010, 0x40_0500]),
        sample(2_000_000_000, &[kernel, 0xffff_ffff_8000_0000, user, 0x40_0010, 0x90_0000]),
    ]
}

fn named(profile: &Profile, stack: usize) -> Vec<String> {
    let frames = profile.stacks[stack].frames.iter().map(|&frame| &profile.frames[frame as usize]);
    frames.map(|frame| name::of_frame(profile, frame)).collect()
}

#[test]
fn stacks_are_read_with_their_files_offsets_and_time() {
    let profile = read(&file(&three())).unwrap();
    assert_eq!((profile.stacks.len(), profile.total_ns()), (2, 6_000_000));
    assert_eq!(named(&profile, 0), ["w!0x2500", "w!0x2010"]);
    assert_eq!(named(&profile, 1), ["0x900000", "w!0x2010", "[kernel.kallsyms]!0xffffffff80000000"]);
    let thread = &profile.threads[0];
    assert_eq!((thread.pid, thread.tid, thread.name.as_str()), (7, 8, "worker"));
    assert_eq!((profile.unit, profile.sampling.event.as_str()), (Unit::Nanoseconds, "cpu-clock"));
    assert_eq!((profile.sampling.frequency_hz, profile.duration_s), (Some(499.0), 1.0));
    assert_eq!(profile.machine.kernel, "6.18.0");
}

#[test]
fn names_are_asked_for_by_file_and_offset() {
    let knows = |place: Place<'_>| (place.module == "/srv/w").then(|| format!("at {:#x}", place.offset));
    let profile = read_named(&file(&three()), knows).unwrap();
    assert_eq!(named(&profile, 0), ["at 0x2500", "at 0x2010"]);
}

#[test]
fn records_are_taken_in_the_order_of_their_times() {
    let mut records = three();
    // The map is written last and is older than the samples all the same.
    let map = records.remove(1);
    records.push(map);
    assert_eq!(named(&read(&file(&records)).unwrap(), 0), ["w!0x2500", "w!0x2010"]);
}

#[test]
fn the_newest_map_of_an_address_wins_from_its_time_on() {
    let mut records = three();
    records.insert(3, map(1_200_000_000, 0x40_0000, "/srv/new"));
    let profile = read(&file(&records)).unwrap();
    assert_eq!(
        (named(&profile, 0), named(&profile, 1)),
        (
            vec!["w!0x2500".to_owned(), "w!0x2010".to_owned()],
            vec!["new!0x2500".to_owned(), "new!0x2010".to_owned()]
        )
    );
}

#[test]
fn a_child_keeps_its_parents_files_until_it_runs_another_program() {
    let user = (-512_i64) as u64;
    let in_child = |time: u64| {
        let body = [u64s(&[0x40_0010]), u32s(&[9, 9]), u64s(&[time, 1_000, 2, user, 0x40_0010])];
        record(9, 2, &body)
    };
    let records = vec![
        map(2, 0x40_0000, "/srv/w"),
        record(7, 0, &[u32s(&[9, 7, 9, 7]), u64s(&[3]), mark(3)]),
        in_child(4),
        record(3, 1 << 13, &[u32s(&[9, 9]), text("sh"), mark(5)]),
        in_child(6),
    ];
    let profile = read(&file(&records)).unwrap();
    assert_eq!(
        (named(&profile, 0), named(&profile, 1)),
        (vec!["w!0x2010".to_owned()], vec!["0x400010".to_owned()])
    );
    assert_eq!(profile.threads[0].name, "sh");
}

#[test]
fn another_event_than_a_clock_counts_samples() {
    let profile = read(&file_of(0, &three())).unwrap();
    assert_eq!(
        (profile.unit, profile.total_ns(), profile.sampling.event.as_str()),
        (Unit::Samples, 3, "cycles")
    );
}

/// As `perf record -e cpu-clock -c 1000000 -g` writes it. Planted fault: a sample that says no period weighs a nanosecond.
#[test]
fn samples_of_a_fixed_period_weigh_it_without_saying_so() {
    const SAMPLE_ID_ALL: u64 = 1 << 18;
    let user = (-512_i64) as u64;
    let body = |time: u64| [u64s(&[0x40_0010]), u32s(&[7, 8]), u64s(&[time, 2, user, 0x40_0010])].concat();
    let event = event_of(1, 1_000_000, IP_TID_TIME_CHAIN_PERIOD & !256, SAMPLE_ID_ALL);
    let records = [map(2, 0x40_0000, "/srv/w"), record(9, 2, &[body(3)]), record(9, 2, &[body(4)])];
    let profile = read(&file_with(event, &records)).unwrap();
    assert_eq!((profile.unit, profile.total_ns()), (Unit::Nanoseconds, 2_000_000));
    assert_eq!(profile.sampling.frequency_hz, None);
}

#[test]
fn lost_samples_are_counted() {
    let mut records = three();
    records.push(record(2, 0, &[u64s(&[1, 40]), mark(9)]));
    records.push(record(13, 0, &[u64s(&[2]), mark(9)]));
    assert_eq!(read(&file(&records)).unwrap().sampling.lost, 42);
}

#[test]
fn a_pipe_describes_its_events_among_its_records() {
    let attr = record(64, 0, &[event(1, FREQUENCY_AND_SAMPLE_ID_ALL), u64s(&[5])]);
    let bytes = [MAGIC.to_vec(), u64s(&[16]), attr, three().concat()].concat();
    assert_eq!(read(&bytes).unwrap().total_ns(), 6_000_000);
}

#[test]
fn a_file_cut_anywhere_is_refused_or_read_and_never_panics() {
    let whole = file(&three());
    // Behind the records stand one section and what it points at.
    let data_end = whole.len() - 28;
    for cut in 0..whole.len() {
        let outcome = read(&whole[..cut]);
        match outcome {
            Err(ImportError::Damaged { .. }) => assert!(cut < data_end, "cut at {cut}"),
            Ok(profile) => assert!(cut >= data_end && profile.total_ns() == 6_000_000, "cut at {cut}"),
            Err(other) => panic!("cut at {cut}: {other}"),
        }
    }
}

#[test]
fn a_file_with_any_byte_wrong_never_panics() {
    let whole = file(&three());
    for at in 8..whole.len() {
        for value in [0, 1, 0x7f, 0xff] {
            let mut spoiled = whole.clone();
            spoiled[at] = value;
            drop(read(&spoiled));
        }
    }
}

#[test]
fn what_is_not_read_here_is_told_with_a_way() {
    let compressed = file(&[record(81, 0, &[u64s(&[0])])]);
    assert!(read(&compressed).unwrap_err().to_string().contains("compressed"));
    let mut swapped = file(&three());
    swapped[..8].copy_from_slice(MAGIC_SWAPPED);
    assert!(read(&swapped).unwrap_err().to_string().contains("byte order"));
}
