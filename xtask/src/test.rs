//! `cargo xtask test`: provides what the tests need and runs all of them, those of root too where it has the rights.
//!
//! `ci` calls it too, with what is to be built beside it, which yields to all of them. Cargo builds the tests' binaries; they
//! are run from here, each with a limit of time: first those that measure nothing, some of them together, then those that do,
//! one at a time.
//! One that fails or hangs does not keep the others from being run. A test file `tests/root_*.rs` needs root, and every
//! capability that it names (`CAP_…`). Without them it is skipped with a message; in CI that is a failure, because nobody
//! reads messages there.

mod binaries;

use std::io::stderr;
use std::time::Duration;

use crate::beside::{Crowd, Done, Group, Job, Task};
use crate::command::{in_own_session, lowly};
use crate::flags::Flags;
use crate::limit::Ended;
use crate::packages;
use crate::repo::{Repo, is_ci};
use crate::rights::Rights;
use crate::trouble::{Outcome, Trouble};
use binaries::Place;
pub(crate) use binaries::{BUILD_MAX, Binary, KEPT_BYTES, documentation};

/// So many of the slowest are told at the end.
const SLOWEST: usize = 12;

/// Room for tests that measure nothing: so many binaries at once. Each has as many threads as there are CPUs, and most of
/// them wait most of the time.
const ROOM: usize = 2;

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let yes = flags.switch("--yes");
    flags.finish()?;
    packages::provide(yes)?;
    let Some(all) = Binary::build(repo)? else { return Ok(Outcome::No) };
    let documentation = Group::new(1, [documentation(repo)]);
    let crowd = Crowd::begin(repo.scratch("said")?, vec![documentation])?;
    let ran = run_beside(repo, &all, vec![], crowd)?;
    ran.tell();
    Ok(Outcome::done_if(|| ran.failed.is_empty()))
}

/// Runs `all`, with `others` behind those that only compute, and beside what builds in `crowd`.
pub(crate) fn run_beside(
    repo: &Repo,
    all: &[Binary],
    others: Vec<Task>,
    crowd: Crowd,
) -> Result<Ran, Trouble> {
    let (able, skipped) =
        RootTest::all(repo)?.into_iter().partition::<Vec<_>, _>(|test| test.lacks.is_empty());
    for test in &skipped {
        eprintln!("skipped: {} needs {}", test.path, test.lacks.join(", "));
    }
    let tasks: Vec<(Place, Task)> = all.iter().map(|binary| of_binary(binary, &able)).collect();
    let mut ran = run_all(tasks, others, crowd)?;
    if is_ci() && !skipped.is_empty() {
        ran.failed.push(format!("{} root tests were skipped, and in CI nothing may be", skipped.len()));
    }
    Ok(ran)
}

/// The task of running it, with root's tests where we are able to.
fn of_binary(binary: &Binary, able: &[RootTest]) -> (Place, Task) {
    let is_of_root = able.iter().any(|test| test.path == binary.source);
    let mut command = binary.command();
    if is_of_root {
        command.arg("--include-ignored");
    }
    let place = binary.place();
    let takes = if place <= Place::Together { 1 } else { ROOM };
    // Those that measure go before others on the CPUs.
    let command = if place == Place::Beside { lowly(&command) } else { in_own_session(&command) };
    (place, Task { name: binary.source.clone(), command, limit: binary.limit(), takes })
}

/// First those that bear others, then each of the rest by itself, and what measures last. Beside all of these builds and those
/// that only compute have what is left of the CPUs; nothing of them goes on when the quiet ones come.
fn run_all(mut tasks: Vec<(Place, Task)>, others: Vec<Task>, mut crowd: Crowd) -> Result<Ran, Trouble> {
    tasks.sort_by_key(|(place, _)| *place);
    let mut behind = |last| tasks.split_off(tasks.iter().take_while(|(place, _)| *place <= last).count());
    let [quiet, apart, together] = [Place::Last, Place::Together, Place::Beside].map(&mut behind);
    let [beside, together, apart, quiet] =
        [tasks, together, apart, quiet].map(|tasks| tasks.into_iter().map(|(_, task)| task));
    crowd.join(Group::new(1, beside.chain(others)));
    crowd.join(Group::new(ROOM, together.chain(apart)));
    let folder = crowd.folder().to_owned();
    let mut ran = Ran::default();
    crowd.finish(&mut stderr())?.into_iter().for_each(|done| ran.add(done));
    for task in quiet {
        ran.add(Job::start(&folder, task)?.wait(&mut stderr())?);
    }
    Ok(ran)
}

/// What was run.
#[derive(Default)]
pub(crate) struct Ran {
    /// A line for each that failed.
    pub(crate) failed: Vec<String>,
    done: Vec<Done>,
}

impl Ran {
    fn add(&mut self, done: Done) {
        self.failed.extend(failure(&done));
        self.done.push(done);
    }

    /// What took longest, and what failed.
    pub(crate) fn tell(&self) {
        let mut slowest: Vec<&Done> = self.done.iter().collect();
        slowest.sort_by_key(|done| std::cmp::Reverse(done.took.elapsed));
        let total: Duration = slowest.iter().map(|done| done.took.elapsed).sum();
        eprintln!("{} programs ran for {:.0} s in all; the slowest:", slowest.len(), total.as_secs_f64());
        slowest.iter().take(SLOWEST).for_each(|done| eprintln!("{}", done.line()));
        for done in &self.done {
            done.excerpt().iter().for_each(|said| eprintln!("---- of {}:\n{said}", done.name));
        }
        self.failed.iter().for_each(|line| eprintln!("failed: {line}"));
    }
}

/// What is to be said of it if it did not end well.
fn failure(done: &Done) -> Option<String> {
    let name = &done.name;
    match &done.ended {
        Ended::Well => None,
        Ended::Badly(status) => Some(format!("{name}: {status}")),
        Ended::TooLate(processes) => {
            let seconds = done.limit.as_secs_f64();
            Some(format!("{name}: hangs: not done after {seconds} s, its {processes} processes were killed"))
        }
    }
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

    fn planted(name: &str, script: &str, limit: Duration) -> Task {
        let command = crate::command::command(["sh", "-c", script]);
        Task { name: name.to_owned(), command, limit, takes: 1 }
    }

    #[test]
    fn a_binary_that_hangs_is_a_failure_that_names_it() {
        let folder = std::env::temp_dir().join(format!("dyno-late-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let told = |script: &str, limit| {
            let task = planted("crates/x/tests/hangs.rs", script, limit);
            failure(&Job::start(&folder, task).unwrap().wait(&mut Vec::new()).unwrap())
        };
        let hangs = told("exec sleep 600", Duration::from_millis(100)).unwrap();
        assert!(hangs.starts_with("crates/x/tests/hangs.rs: hangs: not done after 0.1 s"), "{hangs}");
        let fails = told("exit 101", Duration::from_secs(60)).unwrap();
        assert_eq!(fails, "crates/x/tests/hangs.rs: exit status: 101");
        assert_eq!(told("exit 0", Duration::from_secs(60)), None);
        std::fs::remove_dir_all(&folder).unwrap();
    }

    /// Each leaves a file while it runs, and fails if it sees one of those that it must not meet. The build beside them ends
    /// when the last of them has, or says that they waited for it.
    ///
    /// Faults: those that measure in the room of the others; a build that is waited for before what measures, or not before what
    /// is quiet; a failure that ends it.
    #[test]
    fn no_test_runs_beside_what_measures_builds_do_and_who_fails_is_named() {
        let folder = std::env::temp_dir().join(format!("dyno-place-{}", std::process::id()));
        let (marks, said) = (folder.join("marks"), folder.join("said"));
        [&marks, &said].iter().for_each(|folder| std::fs::create_dir_all(folder).unwrap());
        let long = Duration::from_secs(60);
        let of = |place, me: &str, not: &str, end: &str| {
            let script = format!(
                "cd {}; touch {me}; sleep 0.1; rm {me}; for f in {not}; do [ ! -e $f ] || exit 9; done; {end}",
                marks.display()
            );
            let takes = if place <= Place::Together { 1 } else { ROOM };
            (place, Task { takes, ..planted(&format!("{me}.rs"), &script, long) })
        };
        let tasks = vec![
            of(Place::Quiet, "quiet", "*", "[ -e ../built ] || exit 7"),
            of(Place::Last, "measures", "t* by-itself", ""),
            of(Place::Apart, "by-itself", "measures t*", ""),
            of(Place::Together, "t1", "measures by-itself", ""),
            of(Place::Together, "t2", "measures by-itself", "exit 7"),
            of(Place::Together, "t3", "measures by-itself", ""),
            of(Place::Last, "measures-too", "t* by-itself measures", "touch ../over; exit 101"),
        ];
        let script = format!(
            "i=0; until [ -e {0}/over ]; do sleep 0.01; i=$((i + 1)); [ $i -lt 3000 ] || exit 8; done; touch {0}/built; exit 3",
            folder.display()
        );
        let build = planted("the release build", &script, long);
        let crowd = Crowd::begin(said, vec![Group::new(1, [build])]).unwrap();
        let mut ran = run_all(tasks, vec![], crowd).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
        ran.failed.sort_unstable();
        assert_eq!(
            ran.failed,
            [
                "measures-too.rs: exit status: 101",
                "t2.rs: exit status: 7",
                "the release build: exit status: 3"
            ]
        );
        let names = ran.done.iter().map(|done| done.name.as_str());
        let tests: Vec<&str> = names.filter(|name| name.ends_with(".rs")).collect();
        assert_eq!(tests.len(), 7, "{tests:?}");
        assert_eq!(
            tests[3..],
            ["by-itself.rs", "measures.rs", "measures-too.rs", "quiet.rs"],
            "in their order"
        );
    }
}
