//! `cargo xtask tidy`: the rules of the project that a compiler does not know, as in "What must never happen".
//!
//! Which crate may know which (`crates`), which file of a crate which other (`circles`), what may stand in a file (`rules`),
//! on code with comments, strings and tests told apart (`source`). It also says how many assertions each crate has to a
//! function. People and `ci` run it; it reads and prints, and changes nothing.

mod assertions;
mod circles;
mod crates;
mod finding;
mod modules;
pub(crate) mod pages;
mod rules;
mod source;
mod uses;

use std::collections::BTreeMap;

use crate::flags::Flags;
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use finding::Finding;

/// Where unsafe code outside `dyno-sys` is listed, with reasons.
const UNSAFE_LIST: &str = "docs/unsafe.md";

/// Runs the verb.
pub(crate) fn run(repo: &Repo, flags: Flags) -> Result<Outcome, Trouble> {
    flags.finish()?;
    let mut findings = crates::findings(repo.metadata());
    let listed = unsafe_list(repo);
    let files = repo.files(&[".rs"])?;
    for path in &files {
        findings.extend(rules::findings(path, &repo.read(path)?, &listed));
    }
    findings.extend(stale_listings(repo, &listed));
    findings.extend(circles(repo, &files)?);
    findings.extend(pages::findings(repo)?);
    findings.sort();
    findings.iter().for_each(|finding| println!("{finding}"));
    eprintln!("{}", assertions::line(&assertions_by_crate(repo, &files)?));
    eprintln!("tidy: {} files, {} findings", files.len(), findings.len());
    Ok(Outcome::done_if(|| findings.is_empty()))
}

/// Circles of every crate, this one's too.
fn circles(repo: &Repo, files: &[String]) -> Result<Vec<Finding>, Trouble> {
    let mut found = Vec::new();
    for (name, files) in of_crates(files) {
        let texts: Result<Vec<_>, Trouble> =
            files.iter().map(|path| Ok((path.clone(), repo.read(path)?))).collect();
        let root = if name == XTASK { "xtask/src/".to_owned() } else { format!("crates/{name}/src/") };
        found.extend(circles::findings(&root, &texts?));
    }
    Ok(found)
}

fn assertions_by_crate(
    repo: &Repo,
    files: &[String],
) -> Result<BTreeMap<String, assertions::Count>, Trouble> {
    let mut counts = BTreeMap::new();
    for (name, paths) in of_crates(files) {
        let count: &mut assertions::Count = counts.entry(name).or_default();
        for path in paths {
            let of_file = assertions::count(&repo.read(&path)?);
            count.assertions += of_file.assertions;
            count.functions += of_file.functions;
            count.changing += of_file.changing;
        }
    }
    Ok(counts)
}

/// The crate that stands beside `crates/`.
const XTASK: &str = "xtask";

/// The source files of each crate.
fn of_crates(files: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files {
        let name = path.strip_prefix("crates/").and_then(|rest| rest.split_once("/src/"));
        let xtask = path.starts_with("xtask/src/").then_some((XTASK, ""));
        if let Some((name, _)) = name.or(xtask) {
            crates.entry(name.to_owned()).or_default().push(path.clone());
        }
    }
    crates
}

/// The files that [`UNSAFE_LIST`] names in backticks; none when there is no list.
fn unsafe_list(repo: &Repo) -> Vec<String> {
    let text = repo.read(UNSAFE_LIST).unwrap_or_default();
    listed_files(&text).map(str::to_owned).collect()
}

fn listed_files(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2).filter(|word| word.ends_with(".rs"))
}

/// A list is believed while it is true: a file on it exists and has unsafe code.
fn stale_listings(repo: &Repo, listed: &[String]) -> Vec<Finding> {
    let has_unsafe = |path: &String| repo.read(path).is_ok_and(|text| rules::has_unsafe(&text));
    let stale = listed.iter().filter(|path| !has_unsafe(path));
    stale
        .map(|path| Finding {
            path: UNSAFE_LIST.to_owned(),
            line: 1,
            text: format!("{path} is listed but has no unsafe code: take it off the list"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_of_unsafe_files_is_what_stands_in_backticks() {
        let text = "# Unsafe\n- `crates/dyno-proto/src/scan.rs`: SIMD; see `unsafe` in the book\n";
        assert_eq!(listed_files(text).collect::<Vec<_>>(), ["crates/dyno-proto/src/scan.rs"]);
    }
}
