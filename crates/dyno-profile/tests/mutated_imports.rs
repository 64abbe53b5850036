//! Files of strangers, mutated by chance: reading and showing them neither panics nor hangs nor fills the memory.
//!
//! What is right about such a file nobody knows; what must hold for every one of them is checked: an answer in time, tables
//! that fit together, and no more stacks than the file has bytes.
#![allow(clippy::unwrap_used)]

use dyno_measure::Prng;
use dyno_profile::tree::{Threads, Tree};
use dyno_profile::{export, import, layout, top};
use dyno_record::profile::Profile;
use dyno_sys::proc;

/// Some seconds for all of them where nothing is optimised.
const ROUNDS: usize = 6_000;
/// What all of these files together may take: they are a few KiB each.
const MEMORY_BYTES_MAX: u64 = 256 << 20;

const FOLDED: &[&str] = &[
    "main;work;hot 12\nmain;read_[k] 3\nmain;wait;[waits: disk] 7\n",
    "a b::c(int, long);d e 1.6\r\n\u{feff}x;y;z 18446744073709551615\nw 9e17\n",
];
const SCRIPT: &[&str] = &[
    "w 24868 13362.661185:    2004008 cpu-clock:\n\t            1145 hot+0xc (/srv/w)\n\t           2724a main+0x7a (/usr/lib/libc.so.6)\n\n",
    "http worker 24868/24870 [001] 13362.663184:    2000000 cpu-clock:uhH:\n\tffffffff81a0b2c4 do_syscall_64+0x64 ([kernel.kallsyms])\n\t  1148 std::vec<a (int)>::push(int)+0xf (/srv/w)\n\n# end\n",
];
/// What mutations put into texts: the bytes that decide something, and numbers at their limits.
const PIECES: &[&str] = &[
    ";",
    " ",
    "\n",
    "\t",
    ":",
    "+0x",
    "[",
    "]",
    "(",
    ")",
    "_[k]",
    "_[i]",
    "[waits: ",
    "18446744073709551615",
    "-1",
    "1e400",
    "NaN",
    "0.5",
    "9999999999999999999999",
    "\u{feff}",
    "é",
    "\0",
    "#",
    "ffffffffffffffff",
    "{",
    "cpu-clock:",
    "/",
    ".",
];

struct Chance(Prng);

impl Chance {
    fn new(seed: u64) -> Self {
        println!("seed {seed:#x}");
        Self(Prng::new(seed))
    }

    fn below(&mut self, limit: usize) -> usize {
        self.0.below(limit as u64) as usize
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Overwrites numbers where they stand, up to three times: of a binary file whose places move nothing is left.
fn overwritten(chance: &mut Chance, mut bytes: Vec<u8>, pieces: &[&[u8]]) -> Vec<u8> {
    for _ in 0..=chance.below(3) {
        let piece = chance.one_of(pieces);
        let at = chance.below(bytes.len() / piece.len()) * piece.len();
        match chance.below(3) {
            0 => bytes[at] ^= 1 << chance.below(8),
            1 => bytes[at] = chance.below(256) as u8,
            _ => bytes[at..at + piece.len()].copy_from_slice(piece),
        }
    }
    bytes
}

/// Cuts, doubles, overwrites and inserts, up to six times.
fn mutated(chance: &mut Chance, mut bytes: Vec<u8>, pieces: &[&[u8]]) -> Vec<u8> {
    for _ in 0..=chance.below(6) {
        let at = chance.below(bytes.len() + 1);
        let end = (at + chance.below(24)).min(bytes.len());
        match chance.below(6) {
            0 => drop(bytes.splice(at..at, chance.one_of(pieces).iter().copied())),
            1 => drop(bytes.drain(at..end)),
            2 => drop(bytes.splice(at..at, bytes[at..end].to_vec())),
            3 => bytes.truncate(at.max(1)),
            4 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            _ => drop(bytes.splice(at..end, chance.one_of(pieces).iter().copied())),
        }
    }
    bytes
}

/// Everything that a file is read for.
fn used(profile: &Profile, file_bytes: usize) {
    assert!(profile.stacks.len() <= file_bytes, "{} stacks of {file_bytes} bytes", profile.stacks.len());
    let json = serde_json::to_string(profile).unwrap();
    assert!(Profile::from_json(&json).is_ok(), "its tables do not fit together");
    let tree = Tree::of(profile, Threads::Apart);
    let _ = layout::layout(&tree, layout::Limits { share_min: 0.001, cells_max: 1_000 });
    let (_, _) = (top::functions(profile), profile.total_ns());
    let _ = (export::folded::bytes(profile), export::pprof::bytes(profile));
    let _ = (export::firefox::bytes(profile), export::speedscope::bytes(profile));
}

type Mutate = fn(&mut Chance, Vec<u8>, &[&[u8]]) -> Vec<u8>;

/// Reads and uses mutations of these; how many were read, so that a test that only refuses is seen.
fn survive(seed: u64, seeds: &[Vec<u8>], pieces: &[&[u8]], mutate: Mutate) -> usize {
    let mut chance = Chance::new(seed);
    let mut read = 0;
    for _ in 0..ROUNDS {
        let start = seeds[chance.below(seeds.len())].clone();
        let bytes = mutate(&mut chance, start, pieces);
        if let Ok(profile) = import::read(&bytes) {
            used(&profile, bytes.len());
            read += 1;
        }
    }
    let peak = proc::rss_peak_bytes(std::process::id().cast_signed()).unwrap();
    assert!(peak < MEMORY_BYTES_MAX, "{} MiB", peak >> 20);
    read
}

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

fn pieces() -> Vec<&'static [u8]> {
    PIECES.iter().map(|piece| piece.as_bytes()).collect()
}

#[test]
fn mutated_folded_stacks_are_read_or_refused() {
    let read = survive(0xf01d, &texts(FOLDED), &pieces(), mutated);
    assert!(read > ROUNDS / 10, "only {read} were read");
}

#[test]
fn mutated_scripts_are_read_or_refused() {
    let read = survive(0x5c21, &texts(SCRIPT), &pieces(), mutated);
    assert!(read > ROUNDS / 10, "only {read} were read");
}

#[test]
fn a_mutated_record_of_ours_is_read_or_refused() {
    let profile = import::read(FOLDED[0].as_bytes()).unwrap();
    survive(0x0125, &[serde_json::to_vec(&profile).unwrap()], &pieces(), mutated);
}

#[test]
fn mutated_perf_data_is_read_or_refused() {
    let numbers = [0, 1, 7, 8, 16, 64, 0xffff, 1 << 31, 1 << 32, 1 << 63, u64::MAX].map(u64::to_le_bytes);
    let kinds = [1, 2, 3, 7, 9, 10, 13, 64, 66, 71].map(u32::to_le_bytes);
    let pieces: Vec<&[u8]> = numbers.iter().map(|n| &n[..]).chain(kinds.iter().map(|n| &n[..])).collect();
    let files = [perf_data(), piped(&perf_data())];
    files.iter().for_each(|file| assert!(import::read(file).is_ok()));
    survive(0xda7a, &files, &pieces, mutated);
    let read = survive(0xda7b, &files, &pieces, overwritten);
    assert!(read > ROUNDS / 10, "only {read} were read");
}

/// Lost records, whose sums go beyond any number.
#[test]
fn numbers_that_do_not_fit_are_held_at_the_largest() {
    let lost = record(2, 0, &[0, u64::MAX]);
    let profile = import::read(&file(&[lost.clone(), lost, sample(1, 1), sample(2, u64::MAX)])).unwrap();
    assert_eq!((profile.sampling.lost, profile.total_ns()), (u64::MAX, u64::MAX));
    let folded = import::read(b"a 18446744073709551615\nb 18446744073709551615\n").unwrap();
    assert_eq!(folded.total_ns(), u64::MAX);
    used(&folded, 48);
}

/// Ids of events that all point at the whole file: each of 2,000 would be read 16,000 times.
#[test]
fn events_that_claim_each_others_ids_do_not_take_for_ever() {
    let events: u64 = 4_000;
    let mut bytes = Vec::new();
    let event_bytes = 80;
    let (at, length) = (104, events * event_bytes);
    let whole = at + length;
    let header = [104, event_bytes, at, length, whole, 0, 0, 0, 0, 0, 0, 0];
    bytes.extend(b"PERFILE2");
    bytes.extend(header.iter().flat_map(|n: &u64| n.to_le_bytes()));
    for _ in 0..events {
        bytes.extend(event());
        bytes.extend([0, whole].iter().flat_map(|n: &u64| n.to_le_bytes()));
    }
    assert!(import::read(&bytes).is_err());
}

/// A process that maps and forks, again and again: its children's maps must not be copied without limit.
#[test]
fn forks_do_not_multiply_maps_without_limit() {
    const MAPS: u32 = 12_000;
    let mut records: Vec<Vec<u8>> = (0..MAPS).map(|n| map(1, u64::from(n) << 12)).collect();
    for child in 2..MAPS {
        records.push(record(7, 0, &[u64::from(child) | 1 << 32, u64::from(child) | 1 << 32, 1]));
        records.push(map(child, u64::MAX << 13));
    }
    records.push(sample(2, 5));
    let profile = import::read(&file(&records)).unwrap();
    let peak = proc::rss_peak_bytes(std::process::id().cast_signed()).unwrap();
    assert!(peak < 2 * MEMORY_BYTES_MAX, "{} MiB", peak >> 20);
    assert!(profile.warnings.iter().any(|warning| warning.contains("maps")), "{:?}", profile.warnings);
}

fn record(kind: u32, misc: u16, body: &[u64]) -> Vec<u8> {
    let bytes: Vec<u8> = body.iter().flat_map(|n| n.to_le_bytes()).collect();
    let size = u16::try_from(bytes.len() + 8).unwrap();
    [&kind.to_le_bytes()[..], &misc.to_le_bytes(), &size.to_le_bytes(), &bytes].concat()
}

/// A file of 4 KiB of process `pid`, mapped at `start`.
fn map(pid: u32, start: u64) -> Vec<u8> {
    let path = u64::from_le_bytes(*b"/srv/w\0\0");
    record(1, 2, &[u64::from(pid) | u64::from(pid) << 32, start, 0x1000, 0x2000, path, 7 | 8 << 32, 1])
}

fn sample(time: u64, period: u64) -> Vec<u8> {
    let user = (-512_i64).cast_unsigned();
    record(9, 2, &[0x40_0010, 7 | 8 << 32, time, period, 3, user, 0x40_0010, 0x40_0500])
}

/// Of cpu-clock, with IP, TID, TIME, CALLCHAIN and PERIOD in every sample, and marks on all records.
fn event() -> Vec<u8> {
    let words = [0, 499, 1 | 2 | 4 | 32 | 256, 0, 1 << 10 | 1 << 18, 0, 0];
    let kind = 1_u64 | 64 << 32;
    std::iter::once(&kind).chain(&words).flat_map(|n: &u64| n.to_le_bytes()).collect()
}

fn file(records: &[Vec<u8>]) -> Vec<u8> {
    let data = records.concat();
    let (event, event_bytes) = (event(), 80);
    let header = [104, event_bytes, 104, event_bytes, 184, data.len() as u64, 0, 0, 0, 0, 0, 0];
    let header: Vec<u8> = header.iter().flat_map(|n: &u64| n.to_le_bytes()).collect();
    [&b"PERFILE2"[..], &header, &event, &[0; 16], &data].concat()
}

fn perf_data() -> Vec<u8> {
    let name = u64::from_le_bytes(*b"worker\0\0");
    file(&[
        record(3, 0, &[7 | 8 << 32, name, 7 | 8 << 32, 1]),
        map(7, 0x40_0000),
        record(7, 0, &[9 | 7 << 32, 9 | 8 << 32, 1, 7 | 8 << 32, 1]),
        sample(1_000_000_000, 2_000_000),
        record(2, 0, &[0, 3, 7 | 8 << 32, 1]),
        sample(1_500_000_000, 2_000_000),
    ])
}

/// The same as perf writes it into a pipe: a short head, and the event among the records.
fn piped(whole: &[u8]) -> Vec<u8> {
    let mut described = record(64, 0, &[]);
    described.extend(event());
    described[6..8].copy_from_slice(&72_u16.to_le_bytes());
    [&b"PERFILE2"[..], &16_u64.to_le_bytes(), &described, &whole[184..]].concat()
}
