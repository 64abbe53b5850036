//! What addresses of known programs are called, and how recorded stacks of one unwind, address by address: a change of
//! how files are read or stacks are walked shows here what changes with it.
//!
//! The programs, what was recorded of one, and what came of it stand in `tests/golden/`; `program.c` says how they were
//! made. A change that is meant is written down with `GOLDEN=write cargo test`.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use std::fmt::Write;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use dyno_profile::{AddressSpaces, Function, Symbols, Unwinder};
use dyno_sys::Pid;
use dyno_sys::perf::{Mmap, UserRegs};

/// No process of Linux has this number: nothing is read of it.
const PID: Pid = Pid::MAX;
/// Where the programs' code lies in their files, and at which addresses.
const CODE: (u64, u64) = (0x1000, 0x1000);

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares with what is written down, line by line.
fn assert_golden(name: &str, found: &str) {
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(golden(name), found).unwrap();
    }
    let wanted = std::fs::read_to_string(golden(name)).unwrap();
    for (at, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "{name}, line {}", at + 1);
    }
    assert_eq!(found.lines().count(), wanted.lines().count(), "{name}");
}

/// A process that mapped a program's code at `start`.
fn mapped(program: &Path, start: u64) -> AddressSpaces {
    let mut spaces = AddressSpaces::new();
    spaces.exec(PID);
    spaces.mmap(&Mmap {
        pid: PID,
        time_ns: 0,
        start,
        length: 0x1000,
        offset: CODE.0,
        inode: std::fs::metadata(program).unwrap().ino(),
        path: program.to_str().unwrap().as_bytes(),
    });
    spaces
}

fn in_words(functions: &[Function]) -> String {
    let one = |function: &Function| {
        let place = (function.file.as_deref().unwrap_or("?"), function.line.unwrap_or(0));
        let inlined = if function.inlined { " inlined" } else { "" };
        format!("{}@{}:{}{inlined}", function.name, place.0, place.1)
    };
    functions.iter().map(one).collect::<Vec<_>>().join(" < ")
}

fn symbols_of(name: &str, out: &mut String) {
    let start = 0x5555_0000_0000;
    let program = golden(name);
    let (mut spaces, mut symbols) = (mapped(&program, start), Symbols::new());
    let place = spaces.locate(PID, start).unwrap();
    let image = spaces.images().get(place.image);
    writeln!(out, "{name} {:?} {:?}", image.build_id(), image.unwound_by()).unwrap();
    let mut before = String::new();
    for offset in 0..0x140 {
        let place = spaces.locate(PID, start + offset).unwrap();
        assert_eq!(place.address, CODE.1 + offset);
        let found = in_words(&symbols.symbolize(&mut spaces, PID, start + offset));
        if found != before {
            writeln!(out, "  {:x} {found}", place.address).unwrap();
        }
        before = found;
    }
    writeln!(out, "  {:?}", symbols.notes()).unwrap();
}

#[test]
fn every_address_of_a_known_program_has_the_name_it_ever_had() {
    let mut out = String::new();
    for name in ["program.elf", "program-compressed.elf", "program-stripped.elf"] {
        symbols_of(name, &mut out);
    }
    assert_golden("symbols.txt", &out);
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap()
}

#[test]
fn recorded_stacks_are_walked_as_they_ever_were() {
    let text = std::fs::read_to_string(golden("samples.txt")).unwrap();
    let mut lines = text.lines();
    let start = hex(lines.next().unwrap().split(' ').nth(1).unwrap());
    let mut out = String::new();
    for (name, chained) in [("program.elf", false), ("program-stripped.elf", false), ("program.elf", true)] {
        writeln!(out, "{name} {chained}").unwrap();
        let (mut spaces, mut unwinder) = (mapped(&golden(name), start), Unwinder::new());
        for line in lines.clone() {
            let words: Vec<&str> = line.split(' ').collect();
            let [_, _, ip, sp, fp, chain, stack] = words[..] else { panic!("{line}") };
            let regs = UserRegs { ip: hex(ip), sp: hex(sp), fp: hex(fp), lr: 0 };
            let chain: Vec<u64> = if chained { chain.split(',').map(hex).collect() } else { Vec::new() };
            let bytes: Vec<u8> = (0..stack.len())
                .step_by(2)
                .map(|at| u8::from_str_radix(&stack[at..at + 2], 16).unwrap())
                .collect();
            // A copy that is cut: what lies behind it cannot be read of this process.
            for copied in [bytes.len(), 48, 8] {
                let walked = unwinder.unwind(&mut spaces, PID, &regs, &bytes[..copied], &chain);
                let addresses: Vec<String> = (walked.addresses.iter())
                    .map(|address| format!("{:x}", address.wrapping_sub(start).wrapping_add(CODE.1)))
                    .collect();
                writeln!(out, "  {copied} {:?} {}", walked.ended, addresses.join(" ")).unwrap();
            }
        }
    }
    assert_golden("walks.txt", &out);
}
