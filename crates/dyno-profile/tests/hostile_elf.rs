//! Files of strangers that claim to be more than they are: a profiler that runs as root reads the programs of everybody, and
//! none of them may make it take memory that it does not have, or wait for ever.
//!
//! Each file here is of 16 KiB at most. What all of them together make this process ask for is what is checked: asked for,
//! not touched (VmPeak), because what is asked for on one machine is refused on another.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_measure::Prng;
use dyno_profile::{AddressSpaces, Symbols, Unwinder};
use dyno_sys::Pid;
use dyno_sys::perf::{Mmap, UserRegs};

/// What a stranger's file may have.
const FILE_BYTES: usize = 16 << 10;
/// What all of these files may make a profiler ask for, beyond what it has: see the limits of `elf.rs`.
const ASKED_BYTES_MAX: u64 = 96 << 20;

/// Programs that are mutated: some seconds on a busy machine. 800,000 with other seeds were read before this was written.
const MUTATED: usize = 1_500;

/// What any function may be called.
const NAME_BYTES_MAX: usize = 64 << 10;

/// No process of Linux has this number: nothing is read of it.
const PID: Pid = Pid::MAX;
const START: u64 = 0x5555_0000_0000;

const PROGBITS: u32 = 1;
const SYMTAB: u32 = 2;
const STRTAB: u32 = 3;
const NOTE: u32 = 7;
const COMPRESSED: u64 = 1 << 11;

/// A section's header, and where its bytes lie.
#[derive(Clone, Copy)]
struct Section {
    name: &'static str,
    kind: u32,
    flags: u64,
    offset: u64,
    size: u64,
    link: u32,
}

impl Section {
    fn of(name: &'static str, kind: u32, (offset, size): (u64, u64)) -> Section {
        Section { name, kind, flags: 0, offset, size, link: 0 }
    }

    fn compressed(self) -> Section {
        Section { flags: COMPRESSED, ..self }
    }
}

/// Sections that anything is read from.
const READ: [&str; 12] = [
    ".debug_info",
    ".debug_abbrev",
    ".debug_line",
    ".debug_line_str",
    ".debug_str",
    ".debug_str_offsets",
    ".debug_addr",
    ".debug_aranges",
    ".debug_ranges",
    ".debug_rnglists",
    ".eh_frame",
    ".eh_frame_hdr",
];

/// A file of code that begins with `data` behind its headers, and has these sections.
struct File {
    data: Vec<u8>,
    sections: Vec<Section>,
}

/// Bytes of the two headers at the beginning.
const HEAD_BYTES: u64 = 64 + 56;

impl File {
    fn of(data: Vec<u8>) -> File {
        File { data, sections: Vec::new() }
    }

    /// Where all of the data lies.
    fn all(&self) -> (u64, u64) {
        (HEAD_BYTES, self.data.len() as u64)
    }

    fn with(mut self, section: Section) -> File {
        self.sections.push(section);
        self
    }

    /// All sections that are read, each of all the data, compressed.
    fn all_compressed(mut self) -> File {
        let all = self.all();
        self.sections.extend(READ.map(|name| Section::of(name, PROGBITS, all).compressed()));
        let symbols = Section { link: 14, ..Section::of(".symtab", SYMTAB, all).compressed() };
        self.sections.push(symbols);
        self.sections.push(Section::of(".strtab", STRTAB, all).compressed());
        self.sections.push(Section::of(".note.gnu.build-id", NOTE, all).compressed());
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let mut names = vec![0];
        let mut headers = vec![0; 64];
        let mut add = |section: &Section| {
            let at = names.len() as u32;
            names.extend(section.name.as_bytes());
            names.push(0);
            let words = [section.flags, 0x1000, section.offset, section.size];
            headers.extend([at, section.kind].iter().flat_map(|word| word.to_le_bytes()));
            headers.extend(words.iter().flat_map(|word| word.to_le_bytes()));
            headers.extend([section.link, 0].iter().flat_map(|word| word.to_le_bytes()));
            headers.extend([1_u64, 0].iter().flat_map(|word| word.to_le_bytes()));
        };
        self.sections.iter().for_each(&mut add);
        let behind = HEAD_BYTES + self.data.len() as u64;
        add(&Section::of(".shstrtab", STRTAB, (behind, 400)));
        names.resize(400, 0);
        let count = self.sections.len() as u16 + 2;
        let mut out = head(behind + 400, count, count - 1);
        out.extend(&self.data);
        out.extend(&names);
        out.extend(&headers);
        assert!(out.len() <= FILE_BYTES, "{} bytes", out.len());
        out
    }
}

/// The file's header and the one of its code: everything, mapped from the beginning.
fn head(sections_at: u64, sections: u16, names: u16) -> Vec<u8> {
    let mut out = b"\x7fELF\x02\x01\x01".to_vec();
    out.resize(16, 0);
    out.extend([3_u16, 62].iter().flat_map(|word| word.to_le_bytes()));
    out.extend(1_u32.to_le_bytes());
    out.extend([0, 64, sections_at].iter().flat_map(|word: &u64| word.to_le_bytes()));
    out.extend(0_u32.to_le_bytes());
    out.extend([64, 56, 1, 64, sections, names].iter().flat_map(|word: &u16| word.to_le_bytes()));
    out.extend([1_u32, 5].iter().flat_map(|word| word.to_le_bytes()));
    out.extend([0, 0, 0, 0x4000, 0x4000, 0x1000].iter().flat_map(|word: &u64| word.to_le_bytes()));
    out
}

/// How a compressed section begins: by which method, and how much it says that comes of it.
fn compressed(method: u32, says: u64, data: &[u8]) -> Vec<u8> {
    let mut out = [method, 0].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    out.extend([says, 1].iter().flat_map(|word| word.to_le_bytes()));
    out.extend(data);
    out
}

const ZLIB: u32 = 1;
const ZSTD: u32 = 2;

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

/// So many times 128 KiB of one byte, four bytes for each (RFC 8878 §3.1.1.2.2).
fn zstd(blocks: u32) -> Vec<u8> {
    const RUN: u32 = 1 << 1;
    const RUN_BYTES: u32 = 128 << 10;
    let mut out = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x68];
    for block in 0..blocks {
        let last = u32::from(block + 1 == blocks);
        out.extend(&(RUN_BYTES << 3 | RUN | last).to_le_bytes()[..3]);
        out.push(b'x');
    }
    out
}

/// Everything that a profile reads of a file.
fn used(path: &Path) {
    let (mut spaces, mut symbols) = (AddressSpaces::new(), Symbols::new());
    spaces.exec(PID);
    // Twice, as two processes would have it: what was read once must not be read anew for each.
    for start in [START, START + 0x10_0000] {
        spaces.mmap(&Mmap {
            pid: PID,
            time_ns: 0,
            start,
            length: 0x4000,
            offset: 0,
            inode: fs::metadata(path).unwrap().ino(),
            path: path.to_str().unwrap().as_bytes(),
        });
    }
    let mut unwinder = Unwinder::new();
    for address in [START, START + 0x10, START + 0x1008, START + 0x3fff, START + 0x10_0010] {
        if let Some(place) = spaces.locate(PID, address) {
            let _ = spaces.images().get(place.image).build_id();
            let _ = spaces.images().get(place.image).unwound_by();
        }
        let regs = UserRegs { ip: address, sp: 0x1000, fp: 0x1010, lr: 0 };
        let _ = unwinder.unwind(&mut spaces, PID, &regs, &[0; 64], &[address, address]);
        let found = symbols.symbolize(&mut spaces, PID, address);
        assert!(found.iter().all(|function| function.name.len() <= NAME_BYTES_MAX), "names have a limit");
    }
}

/// A figure of /proc/self/status, in bytes.
fn status(field: &str) -> u64 {
    let text = fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() << 10
}

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("dyno-hostile-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    /// Uses a file, and says what it asked for.
    fn try_out(&self, what: &str, bytes: &[u8]) -> u64 {
        let path = self.0.join("file");
        fs::write(&path, bytes).unwrap();
        let before = status("VmPeak");
        used(&path);
        let asked = status("VmPeak") - before;
        println!("{what}: {} KiB more at the peak", asked >> 10);
        asked
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Compressed sections: what they say comes of them, and what does.
fn blown_up() -> Vec<(&'static str, File)> {
    let of = |bytes: Vec<u8>| File::of(bytes).all_compressed();
    let zeros = zlib(&vec![0; 10 << 20]);
    let runs = zstd(3_000);
    vec![
        ("8 GiB of zlib, claimed", of(compressed(ZLIB, 8 << 30, &zeros))),
        ("8 GiB of zstd, claimed", of(compressed(ZSTD, 8 << 30, &runs))),
        ("nearly 1 GiB of zlib, claimed", of(compressed(ZLIB, (1 << 30) - 1, &zeros))),
        ("200 MiB of zstd, claimed", of(compressed(ZSTD, 200 << 20, &zstd(2)))),
        ("10 MiB of zlib, really", of(compressed(ZLIB, 10 << 20, &zeros))),
        ("375 MiB of zstd, really", of(compressed(ZSTD, 3_000 << 17, &runs))),
        ("all that there is", of(compressed(ZLIB, u64::MAX, &zeros))),
    ]
}

/// Numbers in headers that lead out of the file, or into each other.
fn out_of_bounds() -> Vec<(&'static str, File)> {
    let plain = || File::of(vec![0xff; 8 << 10]);
    let wide = |offset, size| {
        let mut file = plain();
        file.sections.extend(READ.map(|name| Section::of(name, PROGBITS, (offset, size))));
        file.sections.push(Section { link: 14, ..Section::of(".symtab", SYMTAB, (offset, size)) });
        file.sections.push(Section::of(".strtab", STRTAB, (offset, size)));
        file
    };
    let note = |words: [u32; 3]| {
        let file = File::of(words.iter().flat_map(|word| word.to_le_bytes()).chain([0; 64]).collect());
        let all = file.all();
        file.with(Section::of(".note.gnu.build-id", NOTE, all))
    };
    vec![
        ("sections of 8 GiB", wide(HEAD_BYTES, 8 << 30)),
        ("sections beyond all numbers", wide(u64::MAX, u64::MAX)),
        ("sections of ones", wide(HEAD_BYTES, 8 << 10)),
        ("a note with a name of 4 GiB", note([u32::MAX, 20, 3])),
        ("a note with an id of 4 GiB", note([4, u32::MAX, 3])),
        ("a note of nothing", note([0, 0, 3])),
    ]
}

/// Section headers where others claim to be.
fn counted_wrong() -> Vec<(&'static str, Vec<u8>)> {
    let file = File::of(vec![0; 8 << 10]).bytes();
    let patched = |at: usize, with: &[u8]| {
        let mut bytes = file.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    // With no count in the header the first section has it: here in zeros, overwritten by 4 billion.
    let mut extended = patched(60, &[0, 0]);
    extended[40..48].copy_from_slice(&HEAD_BYTES.to_le_bytes());
    let size = HEAD_BYTES as usize + 32;
    extended[size..size + 8].copy_from_slice(&u64::from(u32::MAX).to_le_bytes());
    vec![
        ("65,535 sections", patched(60, &[0xff; 2])),
        ("65,535 segments", patched(56, &[0xff; 2])),
        ("sections of no size", patched(58, &[0, 0])),
        ("sections of one byte each", patched(58, &[1, 0])),
        ("names in a section that is not there", patched(62, &[0xfe, 0xff])),
        ("sections at the end of all numbers", patched(40, &[0xff; 8])),
        ("segments at the end of all numbers", patched(32, &[0xff; 8])),
        ("4 billion sections", extended),
        ("a header alone", file[..64].to_vec()),
        ("half a header", file[..40].to_vec()),
    ]
}

/// Functions of 16 bytes each whose names begin within `names`, one after the other.
fn symbols(names: Vec<u8>, symbols: u32) -> File {
    let names_bytes = names.len() as u64;
    let mut data = names;
    for at in 0..symbols {
        // A function, in the first section; its name begins within the first four bytes.
        data.extend([at % 4, 2 | 1 << 16].iter().flat_map(|word: &u32| word.to_le_bytes()));
        data.extend([0x10 + 16 * u64::from(at), 16].iter().flat_map(|word| word.to_le_bytes()));
    }
    let table = (HEAD_BYTES + names_bytes, 24 * u64::from(symbols));
    let symbols = Section { link: 2, ..Section::of(".symtab", SYMTAB, table) };
    File::of(data).with(symbols).with(Section::of(".strtab", STRTAB, (HEAD_BYTES, names_bytes)))
}

/// A name of C++ whose parts each name the part before them twice: 27 GB when it is written out.
fn doubled() -> Vec<u8> {
    let digits = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let twice = (1..=30).map(|level| digits[level] as char).map(|n| format!("S0_IS{n}_S{n}_E"));
    format!("_Z1f1a1pIS_S_E{}\0", twice.collect::<String>()).into_bytes()
}

/// Debug information that has its own parts read over and over (DWARF 4): so many units that all hold address 0x1000, share
/// one table of abbreviations and one line program, and begin with a function whose ranges are one list.
struct Shared {
    units: u32,
    abbreviations: u32,
    rows: usize,
    ranges: u64,
}

impl Shared {
    /// The sections, by name.
    fn sections(&self) -> [(&'static str, Vec<u8>); 4] {
        [
            (".debug_info", self.units()),
            (".debug_abbrev", self.abbreviations()),
            (".debug_line", self.lines()),
            (".debug_ranges", self.ranges()),
        ]
    }

    fn units(&self) -> Vec<u8> {
        let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
        unit.extend([0x1000_u64, 0x10].iter().flat_map(|word| word.to_le_bytes()));
        unit.extend(0_u32.to_le_bytes());
        // Four functions, each with all the ranges.
        unit.extend([[2, 0, 0, 0, 0]; 4].concat());
        unit.push(0);
        let length = (unit.len() as u32).to_le_bytes();
        (0..self.units).flat_map(|_| [&length[..], &unit].concat()).collect()
    }

    fn abbreviations(&self) -> Vec<u8> {
        // A unit with low_pc, high_pc and stmt_list; a subprogram with ranges.
        let mut out = vec![1, 0x11, 1, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0, 2, 0x2e, 0, 0x55, 0x17, 0, 0];
        for code in 3..self.abbreviations + 3 {
            out.extend([code as u8 | 0x80, (code >> 7) as u8 | 0x80, (code >> 14) as u8, 0x34, 0, 0, 0]);
        }
        out.push(0);
        out
    }

    fn lines(&self) -> Vec<u8> {
        let standard = [0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1];
        let mut header = vec![1, 1, 1, 0xfb, 14, 13];
        header.extend(standard);
        header.extend(b"\0a.c\0\0\0\0\0");
        let mut rest = vec![4, 0];
        rest.extend((header.len() as u32).to_le_bytes());
        rest.extend(header);
        // An address that is not the units', so that all of them are asked; then rows, each one line and one byte on.
        rest.extend([&[0, 9, 2][..], &0x5000_u64.to_le_bytes()].concat());
        rest.extend(vec![0x20; self.rows]);
        rest.extend([0, 1, 1]);
        [&(rest.len() as u32).to_le_bytes()[..], &rest].concat()
    }

    fn ranges(&self) -> Vec<u8> {
        let pairs = (0..self.ranges).flat_map(|at| [0x8000 + 2 * at, 0x8001 + 2 * at]);
        pairs.chain([0, 0]).flat_map(u64::to_le_bytes).collect()
    }

    fn plain(&self) -> File {
        self.file(|section| section, 0)
    }

    fn compressed(&self) -> File {
        let stored = |section: Vec<u8>| {
            let mut data = zlib(&section);
            // Longer than it need be, so that not too much comes of it.
            data.resize(data.len().max(section.len() / 60), 0);
            compressed(ZLIB, section.len() as u64, &data)
        };
        self.file(stored, COMPRESSED)
    }

    fn file(&self, stored: impl Fn(Vec<u8>) -> Vec<u8>, flags: u64) -> File {
        let mut file = File::of(Vec::new());
        for (name, section) in self.sections() {
            let (offset, stored) = (HEAD_BYTES + file.data.len() as u64, stored(section));
            let size = stored.len() as u64;
            file.data.extend(stored);
            file.sections.push(Section { flags, ..Section::of(name, PROGBITS, (offset, size)) });
        }
        file
    }
}

/// A file whose debug information is said to lie in a file of that name.
fn linked(name: &str) -> File {
    let file = File::of([name.as_bytes(), &[0; 8]].concat());
    let all = file.all();
    file.with(Section::of(".gnu_debuglink", PROGBITS, all))
}

/// One test, because they are measured by what the whole process asks for, and each thread asks for an arena of its own.
#[test]
fn strangers_files_ask_for_little_and_are_read_in_time() {
    a_file_of_16_kib_never_makes_a_profiler_ask_for_gigabytes();
    a_file_that_names_a_pipe_or_a_path_as_its_debug_file_is_not_followed();
    debug_information_that_shares_its_parts_is_not_read_over_and_over();
    programs_with_any_bytes_wrong_are_read_or_refused();
}

fn a_file_of_16_kib_never_makes_a_profiler_ask_for_gigabytes() {
    let scratch = Scratch::new("asks");
    // What the first use of anything takes is not the file's fault.
    let kind = File::of(vec![0; 256]).bytes();
    scratch.try_out("a file without anything", &kind);
    let mut asked = 0;
    for (what, file) in blown_up().into_iter().chain(out_of_bounds()) {
        asked += scratch.try_out(what, &file.bytes());
    }
    for (what, bytes) in counted_wrong() {
        asked += scratch.try_out(what, &bytes);
    }
    asked += scratch.try_out("300 symbols with one long name", &symbols(vec![b'n'; 8 << 10], 300).bytes());
    asked += scratch.try_out("a name that stands for 27 GB", &symbols(doubled(), 1).bytes());
    assert!(asked <= ASKED_BYTES_MAX, "{} MiB", asked >> 20);
}

/// Who opens a pipe without a writer waits for one; who opens a device may start it.
fn a_file_that_names_a_pipe_or_a_path_as_its_debug_file_is_not_followed() {
    let scratch = Scratch::new("links");
    fs::create_dir_all(scratch.0.join(".debug")).unwrap();
    let pipe = scratch.0.join(".debug/pipe");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for name in ["pipe", "../../dev/zero", "/dev/zero", "..", ""] {
        scratch.try_out(name, &linked(name).bytes());
    }
}

fn debug_information_that_shares_its_parts_is_not_read_over_and_over() {
    let scratch = Scratch::new("shares");
    scratch.try_out("a file without anything", &File::of(vec![0; 256]).bytes());
    let few = Shared { units: 3, abbreviations: 9, rows: 9, ranges: 9 };
    scratch.try_out("as it should be", &few.plain().bytes());
    let mut asked = 0;
    for (what, units, abbreviations, rows, ranges) in [
        ("abbreviations", 100, 1_000, 9, 9),
        ("lines", 100, 9, 7_000, 9),
        ("ranges", 100, 9, 9, 400),
        ("everything", 60, 300, 3_000, 200),
    ] {
        let shared = Shared { units, abbreviations, rows, ranges };
        asked += scratch.try_out(what, &shared.plain().bytes());
    }
    for (what, units, abbreviations, rows, ranges) in [
        ("abbreviations, compressed", 1_000, 8_000, 9, 9),
        ("lines, compressed", 1_000, 9, 60_000, 9),
        ("ranges, compressed", 1_000, 9, 9, 3_500),
        ("everything, compressed", 1_000, 2_000, 20_000, 1_000),
        ("more than the file may have", 6_000, 2_000, 200_000, 1_000),
    ] {
        let shared = Shared { units, abbreviations, rows, ranges };
        asked += scratch.try_out(what, &shared.compressed().bytes());
    }
    assert!(asked <= ASKED_BYTES_MAX, "{} MiB", asked >> 20);
}

/// Numbers at their limits, bits turned, bytes of chance: in headers mostly, since most bytes of a file are code.
fn programs_with_any_bytes_wrong_are_read_or_refused() {
    let scratch = Scratch::new("mutated");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let programs = ["program.elf", "program-compressed.elf", "program-stripped.elf"]
        .map(|name| fs::read(folder.join(name)).unwrap());
    let seed = 0xe1f;
    println!("seed {seed:#x}");
    let mut rng = Prng::new(seed);
    let before = status("VmPeak");
    for _ in 0..MUTATED {
        let mut bytes = programs[rng.below(3) as usize].clone();
        for _ in 0..=rng.below(4) {
            // What is read of them stands at their ends: headers, unwind tables, debug information, names.
            let at = match rng.below(3) {
                0 => rng.below(0x240),
                1 => 0x1000 + rng.below(0x1400),
                _ => 0x2800 + rng.below(bytes.len() as u64 - 0x2800),
            } as usize;
            let at = at.min(bytes.len() - 8);
            match rng.below(4) {
                0 => bytes[at] ^= 1 << rng.below(8),
                1 => bytes[at] = rng.below(256) as u8,
                2 => bytes[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes()),
                _ => {
                    bytes[at / 8 * 8..][..8].copy_from_slice(&(u64::MAX >> (8 * rng.below(8))).to_le_bytes());
                }
            }
        }
        let path = scratch.0.join("file");
        fs::write(&path, bytes).unwrap();
        used(&path);
    }
    let asked = status("VmPeak") - before;
    assert!(asked <= ASKED_BYTES_MAX, "{} MiB", asked >> 20);
}
