//! `cargo xtask gen bpf`: the BPF objects that are committed beside their sources, built by clang.
//!
//! Users never need clang: the objects are in the repository. With `--check` the programs of a fresh build are compared
//! with the committed ones, section by section; where there is no clang that is passed over with a word.

use std::path::Path;

use crate::command::{command, find_program, output};
use crate::flags::Given;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};

/// Where sources and objects lie.
const FOLDER: &str = "crates/dyno-sys/bpf";

/// The third version of the instruction set (Linux 5.1) has 32-bit comparisons; newer kernels are needed for other reasons.
const FLAGS: [&str; 8] = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror"];

/// Builds all of them, or compares.
pub(super) fn run(repo: &Repo, check: Given) -> Result<Outcome, Trouble> {
    if find_program("clang").is_none() || find_program("llvm-strip").is_none() {
        if check == Given::Yes {
            eprintln!("gen: no clang here, the BPF objects are not compared");
            return Ok(Outcome::Done);
        }
        return Err(Trouble::new("cannot build BPF objects: clang or llvm-strip is missing")
            .remedy("apt-get install clang llvm"));
    }
    let mut outcome = Outcome::Done;
    for source in repo.files(&[".bpf.c"])?.iter().filter(|path| path.starts_with(FOLDER)) {
        let object = source.replace(".bpf.c", ".bpf.o");
        match check {
            Given::No => {
                build(repo, source, &repo.path(&object))?;
                eprintln!("gen: wrote {object}");
            }
            Given::Yes if !is_current(repo, source, &object)? => {
                println!("{object}: its programs are not those of {source}: run cargo xtask gen bpf");
                outcome = Outcome::No;
            }
            Given::Yes => {}
        }
    }
    Ok(outcome)
}

/// Debug information is for people at the compiler's desk; the types that loaders need stay.
fn build(repo: &Repo, source: &str, object: &Path) -> Result<(), Trouble> {
    let (from, to) = (repo.path(source), object.to_string_lossy().into_owned());
    let mut words = vec!["clang"];
    words.extend(FLAGS);
    // Helpers are listed once for all programs; none uses all of them.
    let from = from.to_string_lossy();
    words.extend(["-Wno-unused-function", "-c", &from, "-o", &to]);
    output(&mut command(words))?;
    output(&mut command(["llvm-strip", "-g", &to]))?;
    Ok(())
}

fn is_current(repo: &Repo, source: &str, object: &str) -> Result<bool, Trouble> {
    let fresh = std::env::temp_dir().join(format!("dyno-gen-{}.bpf.o", std::process::id()));
    build(repo, source, &fresh)?;
    let read = |path: &Path| std::fs::read(path).map_err(Trouble::cannot(format!("read {}", path.display())));
    let same = sections(&read(&fresh)?) == sections(&read(&repo.path(object))?);
    let removed = std::fs::remove_file(&fresh);
    removed.map_err(Trouble::cannot(format!("remove {}", fresh.display())))?;
    Ok(same)
}

/// The sections that are code or its licence, with their bytes; types and line tables differ between compilers.
fn sections(object: &[u8]) -> Option<Vec<(String, &[u8])>> {
    // Places of the ELF header and of section headers in 64-bit files (elf(5)).
    let (table, size, count, names) =
        (u64_at(object, 40)?, u16_at(object, 58)?, u16_at(object, 60)?, u16_at(object, 62)?);
    let header = |at: u64| at.checked_mul(size)?.checked_add(table);
    let names_at = u64_at(object, header(names)? + 24)?;
    let mut found = Vec::new();
    for at in 0..count {
        let header = header(at)?;
        let (name, kind) = (u32_at(object, header)?, u32_at(object, header + 4)?);
        let name = text_at(object, names_at + name)?;
        let (start, length) = (u64_at(object, header + 24)? as usize, u64_at(object, header + 32)? as usize);
        const PROGBITS: u64 = 1;
        if kind == PROGBITS && length > 0 && !name.starts_with(".BTF") {
            found.push((name, object.get(start..start.checked_add(length)?)?));
        }
    }
    Some(found)
}

fn number_at<const BYTES: usize>(bytes: &[u8], at: u64) -> Option<u64> {
    let taken = bytes.get(usize::try_from(at).ok()?..)?.get(..BYTES)?;
    Some(taken.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

fn u16_at(bytes: &[u8], at: u64) -> Option<u64> {
    number_at::<2>(bytes, at)
}

fn u32_at(bytes: &[u8], at: u64) -> Option<u64> {
    number_at::<4>(bytes, at)
}

fn u64_at(bytes: &[u8], at: u64) -> Option<u64> {
    number_at::<8>(bytes, at)
}

fn text_at(bytes: &[u8], at: u64) -> Option<String> {
    let rest = bytes.get(usize::try_from(at).ok()?..)?;
    let end = rest.iter().position(|byte| *byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_object_has_its_programs_and_a_cut_one_has_none() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/dyno-sys/bpf/offcpu.bpf.o");
        let object = std::fs::read(path).unwrap_or_default();
        let names: Vec<String> =
            sections(&object).unwrap_or_default().into_iter().map(|(name, _)| name).collect();
        assert!(names.contains(&"tp_btf/sched_switch".to_owned()), "{names:?}");
        assert!(names.contains(&"license".to_owned()), "{names:?}");
        assert_eq!(sections(&object[..40.min(object.len())]), None);
    }
}
