//! `cargo xtask ci`: everything that has to hold before a merge, the cheap and likely failures first.
//!
//! `.ci/run` and careful people call it. Build variants are few, because building is most of the time: the dev profile
//! for clippy and tests, release for the manual and the budgets, built beside tests that wait, as the book's program is.

use std::time::Instant;

use crate::command::{cargo, command, find_program, run as run_command};
use crate::flags::{Flags, Given};
use crate::repo::Repo;
use crate::test::{self, Beside};
use crate::trouble::{Outcome, Trouble};
use crate::{book, budget, fuzz, generate, packages, simulate, tidy};

type Stage = (&'static str, fn(&Repo) -> Result<Outcome, Trouble>);

/// In the order in which they run; the first that fails ends it.
const STAGES: [Stage; 13] = [
    ("format", format),
    ("tidy", |repo| tidy::run(repo, Flags::new(vec![]))),
    ("clippy", clippy),
    ("packages", |_| packages::provide(Given::No).map(|()| Outcome::Done)),
    ("scripts", scripts),
    ("bpf", |repo| generate::bpf::run(repo, Given::Yes)),
    ("test", tests),
    ("features", features),
    ("simulate", simulate::run_built),
    ("fuzz", fuzz::run_in_ci),
    ("book", |repo| book::run(repo, Flags::new(vec![]))),
    ("manual", |repo| generate::run(repo, Flags::new(vec!["--check".to_owned()]))),
    ("budget", |repo| budget::run(repo, Flags::new(vec![]))),
];

/// Runs the verb.
pub(crate) fn run(repo: &Repo, flags: Flags) -> Result<Outcome, Trouble> {
    flags.finish()?;
    let start = Instant::now();
    for (name, stage) in STAGES {
        eprintln!("== {name} ({} s)", start.elapsed().as_secs());
        if stage(repo)? == Outcome::No {
            eprintln!("ci: {name} failed after {} s", start.elapsed().as_secs());
            return Ok(Outcome::No);
        }
    }
    licences(repo)?;
    eprintln!("ci: all is well after {} s", start.elapsed().as_secs());
    Ok(Outcome::Done)
}

fn format(repo: &Repo) -> Result<Outcome, Trouble> {
    let peers = ["--manifest-path", "bench/peers/Cargo.toml"];
    for place in [&[][..], &peers] {
        let words = [&["fmt", "--all", "--check"], place].concat();
        if run_command(cargo(words).current_dir(repo.root()))? == Outcome::No {
            return Ok(Outcome::No);
        }
    }
    Ok(Outcome::Done)
}

fn clippy(repo: &Repo) -> Result<Outcome, Trouble> {
    let words = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run_command(cargo(words).current_dir(repo.root()))
}

/// The README's command for them, and beside its first part the builds that the manual, the budgets and the book want.
fn tests(repo: &Repo) -> Result<Outcome, Trouble> {
    let builds = std::iter::once(repo.release_build()).chain(book::build_of_tool(repo)).collect();
    test::run_beside(repo, Given::No, Some(Beside { builds }))
}

/// What the product is built without unless asked: a feature that nobody builds rots.
fn features(repo: &Repo) -> Result<Outcome, Trouble> {
    let words = ["test", "-p", "dyno-engine", "--features", "zstd", "--lib", "content"];
    run_command(cargo(words).current_dir(repo.root()))
}

/// What is not Rust: shell scripts, and the Go servers of the examples and the bench.
fn scripts(repo: &Repo) -> Result<Outcome, Trouble> {
    let scripts = [&[".ci/run".to_owned()][..], &repo.files(&[".sh"])?].concat();
    let mut shellcheck = command(["shellcheck"]);
    if run_command(shellcheck.args(scripts).current_dir(repo.root()))? == Outcome::No {
        return Ok(Outcome::No);
    }
    // A specimen is a program only together with the harness: its own tests build it.
    let of_its_own = |manifest: &String| !manifest.starts_with("specimens/");
    for manifest in repo.files(&["go.mod"])?.into_iter().filter(of_its_own) {
        let folder = repo.path(manifest.trim_end_matches("go.mod"));
        if run_command(command(["go", "vet", "./..."]).current_dir(folder))? == Outcome::No {
            return Ok(Outcome::No);
        }
    }
    Ok(Outcome::Done)
}

/// Licences and sources by deny.toml, where its program is there: it reads an index from the network, so that a build
/// without one is not stopped by it.
fn licences(repo: &Repo) -> Result<(), Trouble> {
    if find_program("cargo-deny").is_none() {
        eprintln!("note: licences were not checked: cargo-deny is not installed (cargo install cargo-deny)");
        return Ok(());
    }
    let words = ["deny", "--offline", "check", "licenses", "bans", "sources"];
    match run_command(cargo(words).current_dir(repo.root()))? {
        Outcome::Done => Ok(()),
        Outcome::No => Err(Trouble::new("a licence or source is not one of those in deny.toml")),
    }
}
