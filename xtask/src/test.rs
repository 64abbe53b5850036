//! `cargo xtask test`: provides what the tests need and runs all of them, those of root too where it has the rights.
//!
//! `ci` calls it too, with a build to be made beside it. Cargo builds the tests' binaries; they are run from here, one
//! after another, each with a limit of time. One that fails or hangs does not keep the others from being run. A test file
//! `tests/root_*.rs` needs root, and every capability that it names (`CAP_…`). Without them it is skipped with a message;
//! in CI that is a failure, because nobody reads messages there.

mod binaries;

use std::process::Command;
use std::time::{Duration, Instant};

use crate::command::{run_in_background, shown};
use crate::flags::{Flags, Given};
use crate::limit::{Ended, run_within};
use crate::packages;
use crate::repo::{Repo, is_ci};
use crate::rights::Rights;
use crate::trouble::{Outcome, Trouble};
pub(crate) use binaries::{Binary, KEPT_BYTES};

/// So many of the slowest are told at the end.
const SLOWEST: usize = 8;

/// What `ci` needs afterwards and can be done meanwhile.
pub(crate) struct Beside {
    /// Started when the tests are built, all at once.
    pub(crate) builds: Vec<Command>,
}

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let yes = flags.switch("--yes");
    flags.finish()?;
    run_beside(repo, yes, None)
}

/// The same, with builds beside those tests that measure nothing; they have ended before the others begin.
pub(crate) fn run_beside(repo: &Repo, yes: Given, beside: Option<Beside>) -> Result<Outcome, Trouble> {
    packages::provide(yes)?;
    let (able, skipped) =
        RootTest::all(repo)?.into_iter().partition::<Vec<_>, _>(|test| test.lacks.is_empty());
    for test in &skipped {
        eprintln!("skipped: {} needs {}", test.path, test.lacks.join(", "));
    }
    let Some(all) = Binary::build(repo)? else { return Ok(Outcome::No) };
    let failed = run_all(repo, &all, &able, beside)?;
    failed.iter().for_each(|line| eprintln!("failed: {line}"));
    if is_ci() && !skipped.is_empty() {
        eprintln!("failed: {} root tests were skipped, and in CI nothing may be", skipped.len());
        return Ok(Outcome::No);
    }
    Ok(Outcome::done_if(|| failed.is_empty()))
}

/// Runs them one after another: first those that measure nothing, then those that do, root's last; a line for each that
/// failed.
fn run_all(
    repo: &Repo,
    all: &[Binary],
    able: &[RootTest],
    beside: Option<Beside>,
) -> Result<Vec<String>, Trouble> {
    let of_root = |binary: &&Binary| able.iter().any(|test| test.path == binary.source);
    let (root, others): (Vec<&Binary>, Vec<&Binary>) = all.iter().partition(of_root);
    let (measuring, waiting): (Vec<&Binary>, Vec<&Binary>) =
        others.into_iter().partition(|binary| binary.measures());
    let mut runs = Runs::default();
    let builds = beside.map(|beside| beside.builds).unwrap_or_default();
    let started = builds.into_iter().map(|mut build| run_in_background(&mut build));
    let mut builds = started.collect::<Result<Vec<_>, Trouble>>()?;
    for binary in waiting {
        runs.add(&binary.source, &mut binary.command(), binary.limit())?;
    }
    let (mut documentation, limit) = binaries::documentation(repo);
    runs.add("the documentation's examples", &mut documentation, limit)?;
    for build in &mut builds {
        let ended = build.wait().map_err(Trouble::cannot("wait for a build beside the tests"))?;
        runs.failed.extend((!ended.success()).then(|| "a build beside the tests".to_owned()));
    }
    for binary in measuring {
        runs.add(&binary.source, &mut binary.command(), binary.limit())?;
    }
    for binary in root {
        runs.add(&binary.source, binary.command().arg("--include-ignored"), binary.limit())?;
    }
    runs.tell_slowest();
    Ok(runs.failed)
}

/// What was run so far.
#[derive(Default)]
struct Runs {
    /// A line for each that failed.
    failed: Vec<String>,
    took: Vec<(Duration, String)>,
}

impl Runs {
    fn add(&mut self, name: &str, command: &mut Command, limit: Duration) -> Result<(), Trouble> {
        let begun = Instant::now();
        self.failed.extend(failure(name, command, limit)?);
        self.took.push((begun.elapsed(), name.to_owned()));
        Ok(())
    }

    fn tell_slowest(&mut self) {
        self.took.sort_by(|a, b| b.cmp(a));
        let total: Duration = self.took.iter().map(|(time, _)| *time).sum();
        eprintln!("{} binaries ran for {:.0} s; the slowest:", self.took.len(), total.as_secs_f64());
        for (time, name) in self.took.iter().take(SLOWEST) {
            eprintln!("{:>7.1} s  {name}", time.as_secs_f64());
        }
    }
}

/// Runs one; what is to be said if it did not end well.
fn failure(name: &str, command: &mut Command, limit: Duration) -> Result<Option<String>, Trouble> {
    eprintln!("     Running {name}: {}", shown(command));
    Ok(match run_within(command, limit)? {
        Ended::Well => None,
        Ended::Badly(status) => Some(format!("{name}: {status}")),
        Ended::TooLate(processes) => {
            let seconds = limit.as_secs_f64();
            Some(format!("{name}: hangs: not done after {seconds} s, its {processes} processes were killed"))
        }
    })
}

/// A test file that only root can run.
struct RootTest {
    path: String,
    /// What we lack for it, in words.
    lacks: Vec<String>,
}

impl RootTest {
    fn all(repo: &Repo) -> Result<Vec<RootTest>, Trouble> {
        let rights = Rights::ours();
        let files = repo.files(&[".rs"])?;
        let of_root = files.into_iter().filter(|path| is_root_test(path));
        of_root.map(|path| Ok(RootTest { lacks: rights.lacking(&repo.read(&path)?), path })).collect()
    }
}

/// `crates/PACKAGE/tests/root_*.rs`.
fn is_root_test(path: &str) -> bool {
    matches!(path.split('/').collect::<Vec<_>>()[..], ["crates", _, "tests", file] if file.starts_with("root_"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_root_test_is_known_by_its_place_and_name() {
        assert!(is_root_test("crates/dyno-sys/tests/root_user.rs"));
        assert!(!is_root_test("crates/dyno-sys/tests/user.rs"));
        assert!(!is_root_test("crates/dyno-sys/src/root_user.rs"));
    }

    #[test]
    fn a_binary_that_hangs_is_a_failure_that_names_it() {
        let told = |script: &str, limit| {
            let mut planted = crate::command::command(["sh", "-c", script]);
            failure("crates/x/tests/hangs.rs", &mut planted, limit).unwrap()
        };
        let hangs = told("exec sleep 600", Duration::from_millis(100)).unwrap();
        assert!(hangs.starts_with("crates/x/tests/hangs.rs: hangs: not done after 0.1 s"), "{hangs}");
        let fails = told("exit 101", Duration::from_secs(60)).unwrap();
        assert_eq!(fails, "crates/x/tests/hangs.rs: exit status: 101");
        assert_eq!(told("exit 0", Duration::from_secs(60)), None);
    }
}
