//! cargo-mutants: installed where it is missing, and asked for its list of changes.
//!
//! They are made here, in a copy of the repository, one after another: what is built there is built on, and the repository
//! stays as it is. (Asked for one by its name, it tries all that leave a field out as well.)

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::strata::Mutant;
use crate::command::{cargo, command, find_program, in_own_session, output, run as run_command, shown};
use crate::limit::{Ended, run_within};
use crate::repo::Repo;
use crate::test::KEPT_BYTES;
use crate::trouble::{Outcome, Trouble};

/// The one whose words this understands.
const VERSION: &str = "27.1.0";

/// A change may make tests slower, and a neighbour all of them: this many times what they took, and no less than so long.
const LIMIT_TIMES: u32 = 5;
const LIMIT_MIN: Duration = Duration::from_secs(30);

/// No crate takes so long to build.
const BUILD_MAX: Duration = Duration::from_secs(600);

/// Tests of a package that take most of its time and look at rates over thousands of climbs: left out here, because a
/// change would take four minutes. What only they would notice counts as not noticed.
const LEFT_OUT: [(&str, &[&str]); 1] = [(
    "dyno-climb",
    &[
        "rates::when_nothing_is_kept_the_total_holds_one",
        "burning::servers_that_burn_are_measured_in_turn_and_judged_rightly",
        "burning::thousands_of_equal_sides_in_turn_are_rarely_called_different",
        "starts::equal_starts_are_rarely_called_different_however_much_starts_differ",
        "burning::blocks_that_were_cut_short_now_and_then_are_no_server_that_burns",
        "rates::on_a_contended_machine_two_percent_is_mostly_found_and_five_always",
        "rates::thousands_of_equal_sides_are_rarely_called_different_or_bursty",
    ],
)];

/// Which of a package's tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Tests {
    /// Those of its library, in one binary.
    BesideTheCode,
    /// All but examples in the documentation.
    All,
}

impl Tests {
    /// The words for `cargo test`.
    fn words(self, package: &str) -> Vec<&'static str> {
        match self {
            Tests::BesideTheCode => vec!["--lib"],
            Tests::All => [&["--tests"][..], &left_out(package)].concat(),
        }
    }
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// A test failed.
    Caught,
    /// All tests passed.
    Missed,
    /// The tests did not end, which somebody would have noticed.
    TimedOut,
    /// It does not build.
    Unviable,
}

impl Fate {
    const ALL: [Fate; 4] = [Fate::Caught, Fate::Missed, Fate::TimedOut, Fate::Unviable];

    pub(super) fn of_word(word: &str) -> Option<Fate> {
        Fate::ALL.into_iter().find(|fate| fate.word() == word)
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Fate::Caught => "caught",
            Fate::Missed => "MISSED",
            Fate::TimedOut => "timed out",
            Fate::Unviable => "unviable",
        }
    }
}

/// The program and the copy.
pub(super) struct Tool {
    program: PathBuf,
    folder: PathBuf,
    tree: PathBuf,
}

impl Tool {
    /// Installs it if need be, and copies the repository.
    pub(super) fn provide(repo: &Repo) -> Result<Tool, Trouble> {
        let program = program(repo)?;
        let folder = repo.scratch("mutants")?;
        let tree = folder.join("tree");
        copy(repo.root(), &tree)?;
        Ok(Tool { program, folder, tree })
    }

    /// In the copy, with a target folder that stays between runs.
    fn in_tree(&self, mut command: Command) -> Command {
        command.current_dir(&self.tree).env("CARGO_TARGET_DIR", self.folder.join("target"));
        // Each change is built on what was built for the one before; nobody debugs them.
        command.env("CARGO_INCREMENTAL", "1").env("CARGO_PROFILE_TEST_DEBUG", "0");
        command.env("MALLOC_TRIM_THRESHOLD_", KEPT_BYTES.to_string());
        command.env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("CARGO_MANIFEST_DIR");
        command
    }

    fn asked(&self) -> Command {
        let mut asked = self.in_tree(command([self.program.to_string_lossy().as_ref(), "mutants"]));
        asked.args(["--colors", "never", "--no-times"]);
        asked
    }

    /// All changes that it would make to the workspace.
    pub(super) fn list(&self) -> Result<Vec<Mutant>, Trouble> {
        let told = output(self.asked().args(["--list", "--json", "--workspace"]))?;
        let told: Value = serde_json::from_str(&told).map_err(Trouble::cannot("read cargo-mutants' list"))?;
        let listed: Option<Vec<Mutant>> = told.as_array().and_then(|all| all.iter().map(mutant).collect());
        let listed = listed.filter(|listed| !listed.is_empty());
        listed.ok_or_else(|| Trouble::new("cargo-mutants lists nothing that is understood"))
    }

    /// How long a package's tests may take with a change: they run once without one, and must pass.
    pub(super) fn limit_of(&self, package: &str, tests: Tests, left: Duration) -> Result<Duration, Trouble> {
        let fails = || Trouble::new(format!("the tests of {package} fail without any change"));
        let mut build = self.testing(package, tests, &["--no-run"]);
        eprintln!("$ {}", shown(&build));
        if run_within(build.stdout(Stdio::null()), left)? != Ended::Well {
            return Err(fails());
        }
        let begun = Instant::now();
        if run_within(self.testing(package, tests, &[]).stdout(Stdio::null()), left)? != Ended::Well {
            return Err(fails());
        }
        Ok((begun.elapsed() * LIMIT_TIMES).max(LIMIT_MIN))
    }

    /// Makes one change, builds and tests its package, and takes it back.
    pub(super) fn test(&self, mutant: &Mutant, tests: Tests, limit: Duration) -> Result<Fate, Trouble> {
        let path = self.tree.join(&mutant.file);
        let file = || format!("change {}", path.display());
        let text = std::fs::read_to_string(&path).map_err(Trouble::cannot(file()))?;
        let made =
            mutant.made_in(&text).ok_or_else(|| Trouble::new(format!("{} is not there", mutant.name)))?;
        std::fs::write(&path, made).map_err(Trouble::cannot(file()))?;
        let fate = self.fate(&mutant.package, tests, limit);
        std::fs::write(&path, text).map_err(Trouble::cannot(file()))?;
        fate
    }

    fn fate(&self, package: &str, tests: Tests, limit: Duration) -> Result<Fate, Trouble> {
        match self.quietly(&mut self.testing(package, tests, &["--no-run"]), BUILD_MAX)? {
            Ended::Well => {}
            Ended::Badly(_) | Ended::TooLate(_) => return Ok(Fate::Unviable),
        }
        Ok(match self.quietly(&mut self.testing(package, tests, &[]), limit)? {
            Ended::Well => Fate::Missed,
            Ended::Badly(_) => Fate::Caught,
            Ended::TooLate(_) => Fate::TimedOut,
        })
    }

    fn quietly(&self, command: &mut Command, limit: Duration) -> Result<Ended, Trouble> {
        run_within(command.stdout(Stdio::null()).stderr(Stdio::null()), limit)
    }

    fn testing(&self, package: &str, tests: Tests, first: &[&'static str]) -> Command {
        let words = ["test", "--quiet", "--package", package];
        let words = words.into_iter().chain(first.iter().copied()).chain(tests.words(package));
        in_own_session(&self.in_tree(cargo(words)))
    }
}

/// The words for `cargo test` that leave a package's longest tests out.
fn left_out(package: &str) -> Vec<&'static str> {
    let tests = LEFT_OUT.iter().find(|(of, _)| *of == package).map_or(&[][..], |(_, tests)| tests);
    let skips = tests.iter().flat_map(|test| ["--skip", test]);
    let opening = (!tests.is_empty()).then_some("--");
    opening.into_iter().chain(skips).collect()
}

/// How many tests are left out, of which package.
pub(super) fn told_left_out() -> String {
    let told = LEFT_OUT.iter().map(|(package, tests)| format!("{} of {package}", tests.len()));
    told.collect::<Vec<_>>().join(", ")
}

/// From the PATH or from below the target folder.
fn program(repo: &Repo) -> Result<PathBuf, Trouble> {
    let own = repo.scratch("tools")?;
    let program = own.join("bin/cargo-mutants");
    let found = find_program("cargo-mutants").filter(|found| is_wanted(found));
    if let Some(found) = found.or_else(|| Some(program.clone()).filter(|own| is_wanted(own))) {
        return Ok(found);
    }
    let mut install = cargo(["install", "--locked", "cargo-mutants", "--version", VERSION, "--root"]);
    match run_command(install.arg(own))? {
        Outcome::Done => Ok(program),
        Outcome::No => Err(Trouble::new("cargo-mutants cannot be installed")),
    }
}

fn is_wanted(program: &Path) -> bool {
    let mut asked = command([program.to_string_lossy().as_ref(), "mutants", "--version"]);
    program.is_file()
        && output(&mut asked).is_ok_and(|told| told.split_whitespace().any(|word| word == VERSION))
}

/// Without what is built and without git's own, in the place of an older copy.
fn copy(root: &Path, tree: &Path) -> Result<(), Trouble> {
    if tree.exists() {
        std::fs::remove_dir_all(tree).map_err(Trouble::cannot(format!("clear {}", tree.display())))?;
    }
    std::fs::create_dir_all(tree).map_err(Trouble::cannot(format!("make {}", tree.display())))?;
    // Everything is as of now: what a run that was cut short has built of a change must not be taken for built.
    let script = "tar -C \"$1\" --exclude=target --exclude=.git -cf - . | tar -C \"$2\" -xmf -";
    let mut copy = command(["sh", "-c", script, "sh"]);
    output(copy.arg(root).arg(tree)).map(drop)
}

/// From an entry of its list.
fn mutant(told: &Value) -> Option<Mutant> {
    let text = |name: &str| told[name].as_str().map(str::to_owned);
    let place = |end: &str| {
        let number = |name: &str| usize::try_from(told["span"][end][name].as_u64()?).ok();
        Some((number("line")?, number("column")?))
    };
    Some(Mutant {
        name: text("name")?,
        package: text("package")?,
        file: text("file")?,
        span: [place("start")?, place("end")?],
        replacement: text("replacement")?,
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn tests_that_are_left_out_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        for (package, tests) in LEFT_OUT {
            for test in tests {
                let (file, name) = test.split_once("::").unwrap();
                let path = root.join(package).join(format!("tests/simulated/{file}.rs"));
                assert!(std::fs::read_to_string(path).unwrap().contains(&format!("fn {name}()")), "{test}");
            }
        }
        assert_eq!(left_out("dyno-proto"), [""; 0]);
        assert_eq!(left_out("dyno-climb")[..2], ["--", "--skip"]);
        assert_eq!(Tests::All.words("dyno-climb")[..3], ["--tests", "--", "--skip"]);
    }

    #[test]
    fn an_entry_of_the_list_is_read_and_an_odd_one_refused() {
        let told = r#"{ "name": "a.rs:1: x", "package": "p", "file": "a.rs", "replacement": "()",
            "span": { "start": { "line": 1, "column": 2 }, "end": { "line": 3, "column": 4 } } }"#;
        let read = mutant(&serde_json::from_str(told).unwrap()).unwrap();
        assert_eq!(
            (read.name.as_str(), read.package.as_str(), read.file.as_str(), read.span),
            ("a.rs:1: x", "p", "a.rs", [(1, 2), (3, 4)])
        );
        assert_eq!(mutant(&Value::Null), None);
    }

    #[test]
    fn a_copy_has_the_sources_and_nothing_that_was_built() {
        let folder = std::env::temp_dir().join(format!("dyno-copy-{}", std::process::id()));
        let root = folder.join("from");
        for below in ["src", "target/debug", ".cargo", ".git"] {
            std::fs::create_dir_all(root.join(below)).unwrap();
            std::fs::write(root.join(below).join("file"), below).unwrap();
        }
        let tree = folder.join("to");
        for _ in 0..2 {
            copy(&root, &tree).unwrap();
            assert!(tree.join("src/file").is_file() && tree.join(".cargo/file").is_file());
            assert!(!tree.join("target").exists() && !tree.join(".git").exists());
        }
        std::fs::remove_dir_all(folder).unwrap();
    }
}
