//! `cargo xtask ci`: everything that has to hold before a merge, the cheap and likely failures first.
//!
//! `.ci/run` and careful people call it. Build variants are few, because building is most of the time: the dev profile
//! for clippy and tests, and a release of the engine alone for the budgets. Packages are installed beside the tests' build; all other
//! builds go on beside the tests, as lowly as programs can be. Whatever runs beside others is told whole when it has ended,
//! and makes the stage red by its name.

use std::io::stderr;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use crate::beside::{Crowd, Group, Job, Task};
use crate::command::{cargo, command, find_program, lowly, run as run_command};
use crate::flags::{Flags, Given};
use crate::limit::Ended;
use crate::repo::{Repo, is_ci};
use crate::test::{self, BUILD_MAX, Binary};
use crate::times::Times;
use crate::trouble::{Outcome, Trouble};
use crate::{book, budget, fuzz, generate, packages, simulate, tidy};

/// Of what runs some seconds.
const SHORT_MAX: Duration = Duration::from_secs(300);

/// Runs the verb.
pub(crate) fn run(repo: &Repo, flags: Flags) -> Result<Outcome, Trouble> {
    flags.finish()?;
    let mut ci = Ci { times: Times::begin(), own: own()?, repo, binaries: Vec::new(), crowd: None };
    let outcome = ci.run();
    eprint!("{}", ci.times.table());
    let word = if matches!(outcome, Ok(Outcome::Done)) { "all is well" } else { "it failed" };
    eprintln!("ci: {word} after {} s", ci.times.elapsed().as_secs());
    outcome
}

/// This program. Asked for early: cargo may build it anew.
fn own() -> Result<PathBuf, Trouble> {
    std::env::current_exe().map_err(Trouble::cannot("find this program"))
}

/// What is checked, and what was found until now.
struct Ci<'r> {
    repo: &'r Repo,
    own: PathBuf,
    times: Times,
    /// The tests, once they are built.
    binaries: Vec<Binary>,
    /// What builds beside the tests.
    crowd: Option<Crowd>,
}

type Stage = fn(&mut Ci<'_>) -> Result<Outcome, Trouble>;

/// What needs only a compiler, beside the packages that others need.
const BEFORE: [(&str, Stage); 3] = [
    ("format", |ci| format(ci.repo)),
    ("tidy", |ci| tidy::run(ci.repo, Flags::new(vec![]))),
    ("build of the tests", |ci| ci.build()),
];

const AFTER: [(&str, Stage); 8] = [
    ("scripts", |ci| scripts(ci.repo)),
    ("bpf", |ci| generate::bpf::run(ci.repo, Given::Yes)),
    ("test, clippy, simulate", |ci| ci.tests()),
    ("fuzz", |ci| fuzz::in_ci(ci.repo)),
    ("book", |ci| book::run(ci.repo, Flags::new(vec![]))),
    ("manual", |ci| manual(ci.repo)),
    ("budget", |ci| budget::run(ci.repo, Flags::new(vec![]))),
    ("licences", |ci| licences(ci.repo)),
];

impl Ci<'_> {
    fn run(&mut self) -> Result<Outcome, Trouble> {
        packages::provide_compilers(Given::No)?;
        let installing = self.start_packages()?;
        let before = self.stages(&BEFORE);
        // Whatever was found: who ends dpkg halfway leaves a broken machine.
        let outcome = self.times.stage("packages", || match installing {
            Some(job) => job.wait(&mut stderr()).map(|done| Outcome::done_if(|| done.ended == Ended::Well)),
            None => Ok(Outcome::Done),
        });
        if before? == Outcome::No {
            return Ok(Outcome::No);
        }
        if outcome? == Outcome::No {
            eprintln!("ci: packages failed");
            return Ok(Outcome::No);
        }
        // What was installed just now is found; what is older than wanted is not used.
        packages::provide(Given::No)?;
        self.stages(&AFTER)
    }

    /// In their order; the first that fails ends it.
    fn stages(&mut self, stages: &[(&str, Stage)]) -> Result<Outcome, Trouble> {
        for (name, stage) in stages {
            let mut times = std::mem::replace(&mut self.times, Times::begin());
            let outcome = times.stage(name, || stage(self));
            self.times = times;
            if outcome? == Outcome::No {
                eprintln!("ci: {name} failed");
                return Ok(Outcome::No);
            }
        }
        Ok(Outcome::Done)
    }

    /// Where nobody is asked.
    fn start_packages(&self) -> Result<Option<Job>, Trouble> {
        let task = Task { limit: Duration::MAX, ..self.task("packages", self.own(&["needs"])) };
        is_ci().then(|| Job::start(&self.repo.scratch("said")?, task)).transpose()
    }

    fn own(&self, words: &[impl AsRef<str>]) -> Command {
        let own = self.own.to_string_lossy();
        let mut own = command(std::iter::once(own.as_ref()).chain(words.iter().map(AsRef::as_ref)));
        own.current_dir(self.repo.root());
        own
    }

    fn task(&self, name: &str, command: Command) -> Task {
        Task { name: name.to_owned(), command, limit: SHORT_MAX, takes: 1 }
    }

    /// A build that others hardly notice.
    fn lowly(&self, name: &str, build: &Command) -> Task {
        Task { limit: BUILD_MAX, ..self.task(name, lowly(build)) }
    }

    /// Of the tests; beside it begins what has folders of its own.
    fn build(&mut self) -> Result<Outcome, Trouble> {
        let groups = vec![Group::new(1, self.builds_of_their_own()?)];
        self.crowd = Some(Crowd::begin(self.repo.scratch("said")?, groups)?);
        let built = Binary::build(self.repo)?;
        let outcome = Outcome::done_if(|| built.is_some());
        self.binaries = built.unwrap_or_default();
        Ok(outcome)
    }

    /// One after another: each has work for all CPUs.
    fn builds_of_their_own(&self) -> Result<Vec<Task>, Trouble> {
        let book = book::build_of_tool(self.repo).map(|build| self.lowly("the book's program", &build));
        let fuzz = self.lowly("the fuzz targets' build", &fuzz::build_for_ci(self.repo)?);
        let demo = self.lowly("the counted server's build", &self.repo.demo_build());
        Ok([demo, fuzz].into_iter().chain(book).collect())
    }

    /// The README's command for them, and beside it all else that builds. Cargo locks a folder of built things:
    /// what uses that of the tests stands in one line.
    fn tests(&mut self) -> Result<Outcome, Trouble> {
        let repo = self.repo;
        let mut crowd = self.crowd.take().ok_or_else(|| Trouble::new("the tests were not built"))?;
        let of_tests = [test::documentation(repo), self.lowly("clippy", &clippy(repo))];
        crowd.join(Group::new(1, of_tests));
        let ran = test::run_beside(repo, &self.binaries, vec![simulate::task(&self.binaries)?], crowd)?;
        ran.tell();
        Ok(Outcome::done_if(|| ran.failed.is_empty()))
    }
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

fn clippy(repo: &Repo) -> Command {
    let mut clippy = cargo(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    clippy.current_dir(repo.root());
    clippy
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

/// The help of the `dyno` that cargo built for the tests is any other's.
fn manual(repo: &Repo) -> Result<Outcome, Trouble> {
    let dyno = repo.target().join("debug/dyno").to_string_lossy().into_owned();
    generate::run(repo, Flags::new(vec!["--check".to_owned(), "--dyno".to_owned(), dyno]))
}

/// Licences and sources by deny.toml, where its program is there: it reads an index from the network, so that a build
/// without one is not stopped by it.
fn licences(repo: &Repo) -> Result<Outcome, Trouble> {
    if find_program("cargo-deny").is_none() {
        eprintln!("note: licences were not checked: cargo-deny is not installed (cargo install cargo-deny)");
        return Ok(Outcome::Done);
    }
    let words = ["deny", "--offline", "check", "licenses", "bans", "sources"];
    match run_command(cargo(words).current_dir(repo.root()))? {
        Outcome::Done => Ok(Outcome::Done),
        Outcome::No => Err(Trouble::new("a licence or source is not one of those in deny.toml")),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn ci(repo: &Repo) -> Ci<'_> {
        Ci {
            repo,
            own: PathBuf::from("/proc/self/exe"),
            times: Times::begin(),
            binaries: vec![],
            crowd: None,
        }
    }

    /// Fault: stages that go on after a failure, or a table that has no row for it.
    #[test]
    fn the_first_stage_that_fails_ends_it_and_is_in_the_table() {
        let repo = Repo::find().unwrap();
        let mut ci = ci(&repo);
        let stages: [(&str, Stage); 3] = [
            ("well", |_| Ok(Outcome::Done)),
            ("red", |_| Ok(Outcome::No)),
            ("never", |_| Err(Trouble::new("it was run"))),
        ];
        assert_eq!(ci.stages(&stages), Ok(Outcome::No));
        let table = ci.times.table();
        assert!(
            table.contains("  well\n") && table.contains("  red\n") && !table.contains("never"),
            "{table}"
        );
        assert_eq!(ci.stages(&stages[2..]), Err(Trouble::new("it was run")));
    }

    /// Fault: a `lowly` that forgets the environment or the folder: then other flags build in another place.
    #[test]
    fn a_lowly_build_is_the_same_build() {
        let repo = Repo::find().unwrap();
        let build = fuzz::build_for_ci(&repo).unwrap();
        let task = ci(&repo).lowly("the fuzz targets' build", &build);
        let words = |command: &Command| command.get_args().map(ToOwned::to_owned).collect::<Vec<_>>();
        assert!(words(&task.command).ends_with(&words(&build)));
        let flags = |command: &Command| {
            let mut all = command.get_envs();
            all.find(|(name, _)| *name == "RUSTFLAGS").map(|(_, value)| value.map(ToOwned::to_owned))
        };
        assert!(flags(&build).is_some());
        assert_eq!(
            (flags(&task.command), task.command.get_current_dir()),
            (flags(&build), build.get_current_dir())
        );
    }
}
