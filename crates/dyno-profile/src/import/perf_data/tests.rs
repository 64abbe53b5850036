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
    file_of_events(&[(event, &[])], records)
}

/// Events with their ids, which stand between them and the records.
fn file_of_events(all: &[(Vec<u8>, &[u64])], records: &[Vec<u8>]) -> Vec<u8> {
    const HEAD: u64 = 104;
    const EVENT_BYTES: u64 = 64 + 16;
    let data = records.concat();
    let events_bytes = EVENT_BYTES * all.len() as u64;
    let (mut events, mut ids) = (Vec::new(), Vec::new());
    for (event, of_it) in all {
        events.extend_from_slice(event);
        events.extend(u64s(&[HEAD + events_bytes + ids.len() as u64, 8 * of_it.len() as u64]));
        ids.extend(u64s(of_it));
    }
    let data_at = HEAD + events_bytes + ids.len() as u64;
    let kernel = [u32s(&[8]), text("6.18.0")].concat();
    let feature_at = data_at + data.len() as u64;
    [
        MAGIC.to_vec(),
        u64s(&[HEAD, EVENT_BYTES, HEAD, events_bytes, data_at, data.len() as u64, 0, 0, 1 << 4, 0, 0, 0]),
        events,
        ids,
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
    assert_eq!(named(&profile, 0), ["w!0x24ff", "w!0x2010"]);
    assert_eq!(named(&profile, 1), ["0x8fffff", "w!0x2010", "[kernel.kallsyms]!0xffffffff80000000"]);
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
    assert_eq!(named(&profile, 0), ["at 0x24ff", "at 0x2010"]);
}

#[test]
fn records_are_taken_in_the_order_of_their_times() {
    let mut records = three();
    // The map is written last and is older than the samples all the same.
    let map = records.remove(1);
    records.push(map);
    assert_eq!(named(&read(&file(&records)).unwrap(), 0), ["w!0x24ff", "w!0x2010"]);
}

#[test]
fn the_newest_map_of_an_address_wins_from_its_time_on() {
    let mut records = three();
    records.insert(3, map(1_200_000_000, 0x40_0000, "/srv/new"));
    let profile = read(&file(&records)).unwrap();
    assert_eq!(
        (named(&profile, 0), named(&profile, 1)),
        (
            vec!["w!0x24ff".to_owned(), "w!0x2010".to_owned()],
            vec!["new!0x24ff".to_owned(), "new!0x2010".to_owned()]
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
    assert_eq!(read(&file(&records)).unwrap().sampling.lost, 40);
    // The counters' own figures, of the same samples and one that found no room otherwise; and what a filter left out.
    records.push(record(13, 0, &[u64s(&[30]), mark(9)]));
    records.push(record(13, 0, &[u64s(&[11]), mark(9)]));
    records.push(record(13, 1 << 15, &[u64s(&[5_000]), mark(9)]));
    assert_eq!(read(&file(&records)).unwrap().sampling.lost, 41);
}

/// A clock, another event and one that never comes, with an id each, as `perf record -e` of several writes them.
fn of_three_events(first: (u32, u64), second: (u32, u64)) -> Vec<u8> {
    const IDENTIFIER: u64 = 1 << 16;
    let holds = IP_TID_TIME_CHAIN_PERIOD | IDENTIFIER;
    let event = |(kind, config): (u32, u64)| {
        let mut event = event_of(kind, 499, holds, FREQUENCY_AND_SAMPLE_ID_ALL);
        event[8..16].copy_from_slice(&config.to_le_bytes());
        event
    };
    let user = (-512_i64) as u64;
    let sample = |id: u64, time: u64, leaf: u64| {
        let chain = u64s(&[2, user, leaf]);
        record(9, 2, &[u64s(&[id, leaf]), u32s(&[7, 8]), u64s(&[time, 2_000_000]), chain])
    };
    let records = [
        sample(21, 1_000_000_000, 0x40_0010),
        sample(32, 1_500_000_000, 0x40_0020),
        sample(22, 2_000_000_000, 0x40_0010),
        sample(31, 5_000_000_000, 0x40_0020),
    ];
    let dummy = event((1, 9));
    file_of_events(&[(dummy, &[11, 12]), (event(first), &[21, 22]), (event(second), &[31, 32])], &records)
}

/// Faults: all events as one sum under the first one's name; an event that never comes decides that nothing is time.
#[test]
fn of_several_events_the_first_that_came_is_read_and_the_others_are_told() {
    let profile = read(&of_three_events((1, 0), (0, 3))).unwrap();
    assert_eq!((profile.unit, profile.sampling.event.as_str()), (Unit::Nanoseconds, "cpu-clock"));
    assert_eq!((profile.stacks.len(), profile.total_ns(), profile.duration_s), (1, 4_000_000, 1.0));
    assert_eq!(profile.warnings, ["only samples of cpu-clock are read: 2 of cache-misses are left out"]);
}

/// Fault: events that are compared by all of their configuration; one kind of CPU is then left out.
#[test]
fn one_event_of_two_kinds_of_cpus_is_one() {
    let profile = read(&of_three_events((0, 4 << 32), (0, 8 << 32))).unwrap();
    assert_eq!((profile.sampling.event.as_str(), profile.total_ns()), ("cycles", 4));
    assert!(profile.warnings.is_empty(), "{:?}", profile.warnings);
}

/// As `perf record --buildid-mmap` writes it.
fn map_of_build(time: u64, id: u8) -> Vec<u8> {
    let head = [u32s(&[7, 7]), u64s(&[0x40_0000, 0x1000, 0x2000])].concat();
    let id = [vec![20, 0, 0, 0], vec![id; 20]].concat();
    record(10, 1 << 14 | 2, &[head, id, u64s(&[0]), text("/srv/w"), mark(time)])
}

/// Fault: a file that is known by its path alone; the first build's names are then shown for both.
#[test]
fn two_builds_of_one_path_are_two_files() {
    let user = (-512_i64) as u64;
    let in_it = |time| sample(time, &[user, 0x40_0010, 0x40_0500]);
    let records = [map_of_build(1, 0xaa), in_it(2), map_of_build(3, 0xbb), in_it(4)];
    let profile = read_named(&file(&records), |place| place.build_id.map(str::to_owned)).unwrap();
    let builds = ["aa".repeat(20), "bb".repeat(20)];
    let names: Vec<&str> = profile.frames.iter().map(|frame| frame.name.as_str()).collect();
    assert_eq!(names, builds);
    let modules =
        profile.modules.iter().map(|module| (module.path.as_str(), module.build_id.clone().unwrap()));
    assert_eq!(modules.collect::<Vec<_>>(), builds.map(|id| ("/srv/w", id)));
}

/// Fault: a caller that is named by the address to which it is returned, which may be the next function's.
#[test]
fn callers_of_the_kernels_part_and_the_users_are_named_by_their_calls() {
    let (kernel, user) = ((-128_i64) as u64, (-512_i64) as u64);
    let high = 0xffff_ffff_8000_0000;
    let chain = [kernel, high + 0x10, high + 0x20, user, 0x40_0010, 0x40_0020];
    let profile = read(&file(&[map(1, 0x40_0000, "/srv/w"), sample(2, &chain)])).unwrap();
    let places = [
        "w!0x201f",
        "w!0x2010",
        "[kernel.kallsyms]!0xffffffff8000001f",
        "[kernel.kallsyms]!0xffffffff80000010",
    ];
    assert_eq!(named(&profile, 0), places);
}

/// Fault: a pipe's own records of what a file has behind its records, passed over.
#[test]
fn a_pipe_tells_kernel_and_builds_among_its_records() {
    let attr = record(64, 0, &[event(1, FREQUENCY_AND_SAMPLE_ID_ALL), u64s(&[5])]);
    let release = record(80, 0, &[u64s(&[4]), u32s(&[8]), text("6.18.0")]);
    let build = record(67, 2, &[u32s(&[7]), vec![0xcc; 24], text("/srv/w")]);
    let bytes = [MAGIC.to_vec(), u64s(&[16]), attr, three().concat(), release, build].concat();
    let profile = read(&bytes).unwrap();
    assert_eq!((profile.machine.kernel.as_str(), profile.total_ns()), ("6.18.0", 6_000_000));
    assert_eq!(profile.modules[0].build_id, Some("cc".repeat(20)));
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

/// `--call-graph lbr`: callers stand in branch records. Faults: a file that has none is advised to record them; whoever has no user
/// callers has them there.
#[test]
fn callers_that_stand_in_branch_records_are_told() {
    const WITHOUT_USER_CALLERS: u64 = 1 << 22;
    const BRANCH_STACK: u64 = 1 << 11;
    let told = |flags: u64, branches: u64| {
        let kernel = [(-128_i64) as u64, 0xffff_ffff_8000_0000];
        let one = |time: u64, chain: &[u64]| {
            let head = [u64s(&[0x40_0010]), u32s(&[7, 8]), u64s(&[time, 2_000_000, chain.len() as u64])];
            // No branch was recorded with it.
            let behind = if branches == 0 { vec![] } else { u64s(&[0]) };
            record(9, 2, &[head.concat(), u64s(chain), behind])
        };
        let event =
            event_of(1, 499, IP_TID_TIME_CHAIN_PERIOD | branches, FREQUENCY_AND_SAMPLE_ID_ALL | flags);
        let records = [map(2, 0x40_0000, "/srv/w"), one(1_000_000_000, &kernel), one(2_000_000_000, &[])];
        read(&file_with(event, &records)).unwrap().warnings.join("; ")
    };
    let lbr = told(WITHOUT_USER_CALLERS, BRANCH_STACK);
    assert!(lbr.starts_with("callers in user space stand in branch records"), "{lbr}");
    let kernel = told(WITHOUT_USER_CALLERS, 0);
    assert!(kernel.starts_with("callers in user space were not recorded"), "{kernel}");
    assert!(!lbr.contains("perf record -g") && !kernel.contains("perf record -g"));
    assert!(told(0, 0).contains("1 samples have no call chain: perf record -g"), "{}", told(0, 0));
}

fn fork(time: u64, misc: u16, pid: u32, parent: u32) -> Vec<u8> {
    let body = [u32s(&[pid, parent, pid + 1, parent + 1]), u64s(&[time]), mark(time)];
    record(7, misc, &body)
}

/// Process 7 is a child of 5, whose number another program had. Faults: who had the number before is believed for good; what perf
/// writes of processes that were there before gives them their parents' files.
#[test]
fn a_child_has_its_parents_files_and_not_those_of_who_had_its_number() {
    const KNOWN_BEFORE: u16 = 1 << 13;
    let of_parent = |time| {
        record(1, 2, &[u32s(&[5, 5]), u64s(&[0x40_0000, 0x1000, 0x2000]), text("/srv/parent"), mark(time)])
    };
    let seen = |misc: u16, first: Vec<u8>| {
        let user = (-512_i64) as u64;
        let one = sample(1_000_000_000, &[user, 0x40_0010, 0x40_0500]);
        let records = [of_parent(1), first, fork(3, misc, 7, 5), one];
        named(&read(&file(&records)).unwrap(), 0)
    };
    assert_eq!(seen(0, map(2, 0x40_0000, "/srv/w")), ["parent!0x24ff", "parent!0x2010"]);
    assert_eq!(seen(KNOWN_BEFORE, map(2, 0x40_0000, "/srv/w")), ["w!0x24ff", "w!0x2010"]);
    assert_eq!(seen(KNOWN_BEFORE, of_parent(2)), ["0x4004ff", "0x400010"]);
}
