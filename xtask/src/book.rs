//! `cargo xtask book`: the pages of `docs/` as one book with search, in `target/book`.
//!
//! People and `ci` call it. mdBook is built once, into the target folder, where it is missing: without optimization, because
//! the book takes it a second either way. What a book must be, `tidy` asks without it (`pages`).

use std::path::PathBuf;
use std::process::Command;

use crate::command::{cargo, command, find_program, run as run_command};
use crate::flags::Flags;
use crate::repo::Repo;
use crate::tidy::pages;
use crate::trouble::{Outcome, Trouble};

/// The series of mdBook whose settings docs/book.toml has.
const VERSION: &str = "^0.5";

/// Runs the verb.
pub(crate) fn run(repo: &Repo, flags: Flags) -> Result<Outcome, Trouble> {
    flags.finish()?;
    if let findings @ [_, ..] = &pages::findings(repo)?[..] {
        findings.iter().for_each(|finding| println!("{finding}"));
        return Ok(Outcome::No);
    }
    let mdbook = mdbook(repo)?;
    let mut build = command([mdbook.to_string_lossy().into_owned(), "build".into(), "docs".into()]);
    let outcome = run_command(build.current_dir(repo.root()))?;
    if outcome == Outcome::Done {
        eprintln!("book: {}", repo.target().join("book/index.html").display());
    }
    Ok(outcome)
}

/// The one on the path, or ours, built where it is not there yet.
fn mdbook(repo: &Repo) -> Result<PathBuf, Trouble> {
    let Some(mut build) = build_of_tool(repo) else {
        return Ok(find_program("mdbook").unwrap_or_else(|| own(repo)));
    };
    match run_command(&mut build)? {
        Outcome::Done => {
            // Some hundred megabytes that nobody needs again.
            let _ = std::fs::remove_dir_all(repo.target().join("tools/build"));
            Ok(own(repo))
        }
        Outcome::No => Err(Trouble::new("mdbook does not build").remedy("cargo install mdbook")),
    }
}

fn own(repo: &Repo) -> PathBuf {
    repo.target().join("tools/bin/mdbook")
}

/// What builds mdBook, where it is not there yet: a minute of CPU, which `ci` spends beside tests that wait.
pub(crate) fn build_of_tool(repo: &Repo) -> Option<Command> {
    if find_program("mdbook").is_some() || own(repo).is_file() {
        return None;
    }
    let tools = repo.target().join("tools");
    let (root, target) = (tools.to_string_lossy().into_owned(), tools.join("build"));
    let words = [
        "install",
        "mdbook",
        "--version",
        VERSION,
        "--locked",
        "--no-default-features",
        "--features",
        "search",
    ];
    let mut build = cargo(words);
    build.args(["--root", &root]).env("CARGO_TARGET_DIR", target);
    // Half a minute of CPU less, and none more for a book of some dozen pages.
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
    build.current_dir(repo.root());
    Some(build)
}
