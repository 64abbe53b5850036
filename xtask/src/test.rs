//! `cargo xtask test`: provides what the tests need and runs all of them, those of root too where it has the rights.
//!
//! A test file `tests/root_*.rs` needs root, and every capability that it names (`CAP_…`). Without them it is
//! skipped with a message; in CI that is a failure, because nobody reads messages there.

use std::collections::BTreeSet;

use crate::command::{cargo, run as run_command};
use crate::flags::Flags;
use crate::packages;
use crate::repo::{Repo, is_ci};
use crate::rights::Rights;
use crate::trouble::{Outcome, Trouble};

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let yes = flags.switch("--yes");
    flags.finish()?;
    packages::provide(yes)?;
    let (able, skipped) =
        RootTest::all(repo)?.into_iter().partition::<Vec<_>, _>(|test| test.lacks.is_empty());
    for test in &skipped {
        eprintln!("skipped: {} needs {}", test.path, test.lacks.join(", "));
    }
    if run_command(cargo(["test", "--workspace"]).current_dir(repo.root()))? == Outcome::No
        || run_root_tests(repo, &able)? == Outcome::No
    {
        return Ok(Outcome::No);
    }
    if is_ci() && !skipped.is_empty() {
        eprintln!("failed: {} root tests were skipped, and in CI nothing may be", skipped.len());
        return Ok(Outcome::No);
    }
    Ok(Outcome::Done)
}

fn run_root_tests(repo: &Repo, tests: &[RootTest]) -> Result<Outcome, Trouble> {
    if tests.is_empty() {
        return Ok(Outcome::Done);
    }
    let packages: BTreeSet<&str> = tests.iter().map(|test| test.package.as_str()).collect();
    let packages = packages.into_iter().flat_map(|package| ["--package", package]);
    let files = tests.iter().flat_map(|test| ["--test", test.file()]);
    let words = ["test"].into_iter().chain(packages).chain(files).chain(["--", "--ignored"]);
    run_command(cargo(words).current_dir(repo.root()))
}

/// A test file that only root can run.
struct RootTest {
    package: String,
    path: String,
    /// What we lack for it, in words.
    lacks: Vec<String>,
}

impl RootTest {
    fn all(repo: &Repo) -> Result<Vec<RootTest>, Trouble> {
        let rights = Rights::ours();
        let files = repo.files(&[".rs"])?;
        let named =
            files.into_iter().filter_map(|path| Some((package_of_root_test(&path)?.to_owned(), path)));
        named
            .map(|(package, path)| {
                let lacks = rights.lacking(&repo.read(&path)?);
                Ok(RootTest { package, path, lacks })
            })
            .collect()
    }

    /// Cargo's name of it.
    fn file(&self) -> &str {
        let name = self.path.rsplit('/').next().unwrap_or_default();
        name.strip_suffix(".rs").unwrap_or(name)
    }
}

/// `crates/PACKAGE/tests/root_*.rs`.
fn package_of_root_test(path: &str) -> Option<&str> {
    match path.split('/').collect::<Vec<_>>()[..] {
        ["crates", package, "tests", file] => file.starts_with("root_").then_some(package),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_test_is_known_by_its_place_and_name() {
        assert_eq!(package_of_root_test("crates/dyno-sys/tests/root_user.rs"), Some("dyno-sys"));
        assert_eq!(package_of_root_test("crates/dyno-sys/tests/user.rs"), None);
        assert_eq!(package_of_root_test("crates/dyno-sys/src/root_user.rs"), None);
    }
}
