//! Which commit and which target a build is of, for `dyno --version`: told to the compiler as `DYNO_COMMIT` and `DYNO_TARGET`.
//!
//! Cargo runs it. It asks git, unless `SOURCE_COMMIT` says it (a packager's build, from an archive), and never fails: a build
//! without git is a build of an unknown commit. It is run again when the commit moves or when sources change that the
//! program is built anew for in any case, and at no other time.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a packager sets, as Docker's builds and others have it.
const GIVEN: &str = "SOURCE_COMMIT";

/// As many digits as git's own projects need to tell commits apart.
const DIGITS: usize = 12;

/// What the program is built of, as git takes it (its `*` goes through folders).
const SOURCES: [&str; 4] = ["Cargo.*", "crates/*/src/*", "crates/*.toml", "specimens"];

fn main() {
    println!("cargo::rerun-if-env-changed={GIVEN}");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo::rustc-env=DYNO_TARGET={target}");
    let given = std::env::var(GIVEN).ok().filter(|commit| is_plain(commit));
    let commit = given.or_else(asked).unwrap_or_else(|| "commit unknown".to_owned());
    println!("cargo::rustc-env=DYNO_COMMIT={commit}");
    // Without any line of this kind cargo would watch the whole package, tests too.
    println!("cargo::rerun-if-changed=build.rs");
}

/// A commit's name in a line of cargo's: nothing that could be a line of its own.
fn is_plain(commit: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.+".contains(c);
    !commit.is_empty() && commit.len() <= 64 && commit.chars().all(plain)
}

/// What git says; `-dirty` where sources are not as they were committed.
fn asked() -> Option<String> {
    let root = root()?;
    watch(&root);
    let commit = git(&root, &["rev-parse", "HEAD"])?;
    let commit = commit.get(..DIGITS)?.to_owned();
    // Asking must not write the index, which others may be writing.
    let changed =
        [&["--no-optional-locks", "status", "--porcelain", "--untracked-files=no", "--"], &SOURCES[..]];
    let is_dirty = git(&root, &changed.concat()).is_none_or(|changes| !changes.is_empty());
    Some(if is_dirty { commit + "-dirty" } else { commit })
}

/// The workspace's root, when it is a working tree of its own: an archive that was unpacked in somebody else's repository is
/// of none of its commits.
fn root() -> Option<PathBuf> {
    let root = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR")?).ancestors().nth(2)?.canonicalize().ok()?;
    let top = git(&root, &["rev-parse", "--show-toplevel"])?;
    (Path::new(&top).canonicalize().ok()? == root).then_some(root)
}

/// What moves when the commit does (its name, the branch's, and the log of both), and the sources. Only what is there: cargo
/// runs a build script each time that watches what is not.
fn watch(root: &Path) {
    let branch = git(root, &["symbolic-ref", "--quiet", "HEAD"]);
    let of_git = ["HEAD", "logs/HEAD", "packed-refs"].into_iter().chain(branch.as_deref());
    let paths = of_git.filter_map(|name| git(root, &["rev-parse", "--git-path", name]));
    let crates = std::fs::read_dir(root.join("crates")).into_iter().flatten().flatten();
    let sources = crates.flat_map(|one| [one.path().join("src"), one.path().join("Cargo.toml")]);
    let single = ["Cargo.toml", "Cargo.lock", "specimens"].map(PathBuf::from);
    let all = paths.map(PathBuf::from).chain(single).map(|path| root.join(path)).chain(sources);
    for path in all.filter(|path| path.exists()) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
}

fn git(root: &Path, words: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(words).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}
