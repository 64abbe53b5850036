//! `cargo xtask gen bpf`: the BPF objects that are committed beside their sources, built by clang.
//!
//! Users never need clang: the objects are in the repository. With `--check` a fresh build is compared with the committed
//! one to the last byte, so programs, relocations and types are those of the source. That holds for one version of
//! clang only, Debian 12's; where it is missing the comparison is passed over with a word, but never in CI.

mod differences;

use std::path::Path;

use crate::command::{command, find_program, output};
use crate::flags::Given;
use crate::repo::{Repo, is_ci};
use crate::trouble::{Outcome, Trouble};
use differences::differences;

/// Where sources and objects lie.
const FOLDER: &str = "crates/dyno-sys/bpf";

/// Other versions choose other registers and write other types: whoever builds the objects takes these.
const CLANG: &str = "clang-14";
const STRIP: &str = "llvm-strip-14";

/// The third version of the instruction set (Linux 5.1) has 32-bit comparisons; newer kernels are needed for other
/// reasons. The types name their source's folder: it is the repository, wherever that is.
const FLAGS: [&str; 9] =
    ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Wextra", "-Werror", "-fdebug-compilation-dir=."];

/// Builds all of them, or compares.
pub(crate) fn run(repo: &Repo, check: Given) -> Result<Outcome, Trouble> {
    if find_program(CLANG).is_none() || find_program(STRIP).is_none() {
        if check == Given::Yes && !is_ci() {
            eprintln!("gen: no {CLANG} here, the BPF objects are not compared");
            return Ok(Outcome::Done);
        }
        return Err(Trouble::new(format!("cannot build BPF objects: {CLANG} or {STRIP} is missing"))
            .likely("other versions write other bytes than those that are committed")
            .remedy("apt-get install clang-14 llvm-14"));
    }
    let mut outcome = Outcome::Done;
    for source in repo.files(&[".bpf.c"])?.iter().filter(|path| path.starts_with(FOLDER)) {
        let object = source.replace(".bpf.c", ".bpf.o");
        match check {
            Given::No => {
                build(repo, source, &repo.path(&object))?;
                eprintln!("gen: wrote {object}");
            }
            Given::Yes if !is_current(repo, source, &object)? => outcome = Outcome::No,
            Given::Yes => {}
        }
    }
    Ok(outcome)
}

/// Debug information is for people at the compiler's desk; the types that loaders need stay.
fn build(repo: &Repo, source: &str, object: &Path) -> Result<(), Trouble> {
    let to = object.to_string_lossy().into_owned();
    // Helpers are listed once for all programs; none uses all of them.
    let rest = ["-Wno-unused-function", "-c", source, "-o", &to];
    output(command([CLANG].iter().chain(&FLAGS).chain(&rest)).current_dir(repo.root()))?;
    output(&mut command([STRIP, "-g", &to]))?;
    Ok(())
}

fn is_current(repo: &Repo, source: &str, object: &str) -> Result<bool, Trouble> {
    let fresh = repo.scratch("bpf")?.join("fresh.bpf.o");
    build(repo, source, &fresh)?;
    let read = |path: &Path| std::fs::read(path).map_err(Trouble::cannot(format!("read {}", path.display())));
    let found = differences(&read(&repo.path(object))?, &read(&fresh)?);
    for difference in &found {
        println!("{object}: {difference}");
    }
    if !found.is_empty() {
        println!("{object}: is not what {CLANG} makes of {source}: run cargo xtask gen bpf");
    }
    Ok(found.is_empty())
}
