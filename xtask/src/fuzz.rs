//! `cargo xtask fuzz`: what strangers send, changed by LLVM's fuzzer, which sees what code each input reaches.
//!
//! People run it for minutes, `ci` for seconds. The targets are programs of the package in `fuzz/`, built with any
//! compiler, because none of the code that they reach needs a sanitizer's help to be seen failing: it is safe Rust with
//! assertions and overflow checks on. Inputs to begin with are in `fuzz/corpus/`; what a run finds beyond them stays below
//! the target folder, and `--keep` adds what reaches new code to them.

mod told;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::command::{cargo, command, output, run as run_command, shown};
use crate::flags::{Flags, Given};
use crate::repo::Repo;
use crate::trouble::{Outcome, Trouble};
use told::Told;

/// A program of `fuzz/`.
struct Target {
    name: &'static str,
    /// Words to put in, a file of `fuzz/`.
    dictionary: Option<&'static str>,
    reach: Reach,
}

/// What must be built for it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The protocol's crate alone: a few seconds of these are in `ci`.
    Protocol,
    /// The engine.
    Server,
    /// The lab's readers.
    Lab,
}

impl Reach {
    /// The package's feature that it needs.
    fn feature(self) -> Option<&'static str> {
        match self {
            Reach::Protocol => None,
            Reach::Server => Some("server"),
            Reach::Lab => Some("lab"),
        }
    }
}

const TARGETS: [Target; 7] = [
    Target { name: "request", dictionary: Some("http.dict"), reach: Reach::Protocol },
    Target { name: "chunked", dictionary: None, reach: Reach::Protocol },
    Target { name: "response", dictionary: Some("http.dict"), reach: Reach::Protocol },
    Target { name: "fields", dictionary: Some("http.dict"), reach: Reach::Protocol },
    Target { name: "server", dictionary: Some("http.dict"), reach: Reach::Server },
    Target { name: "imports", dictionary: None, reach: Reach::Lab },
    Target { name: "plan", dictionary: None, reach: Reach::Lab },
];

/// For each target, when nothing else is asked for; and in `ci`.
const TIME: Duration = Duration::from_secs(60);
const TIME_IN_CI: Duration = Duration::from_secs(3);
/// Larger inputs say little more and are slower.
const INPUT_BYTES_MAX: u32 = 4096;
/// A run on one input that takes so long is a finding, and so is this much memory.
const RUN_S_MAX: u32 = 1;
const MEMORY_MB_MAX: u32 = 512;

/// Every edge of the code is counted, and what it compares is seen, by the compiler's own pass.
const COVERAGE: [&str; 5] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// Runs the verb.
pub(crate) fn run(repo: &Repo, mut flags: Flags) -> Result<Outcome, Trouble> {
    let time = flags.value("--time", crate::flags::time)?.unwrap_or(TIME);
    let input: Option<PathBuf> = flags.parsed("--input")?;
    let keep = flags.switch("--keep");
    let asked = flags.word();
    flags.finish()?;
    let targets = chosen(asked.as_deref())?;
    let fuzzer = Fuzzer::build(repo, &targets)?;
    if let Some(input) = input {
        let [target] = targets[..] else {
            return Err(
                Trouble::new("--input is for one target").remedy("cargo xtask fuzz TARGET --input FILE")
            );
        };
        return run_command(fuzzer.program(target).arg(std::path::absolute(&input).unwrap_or(input)));
    }
    let outcome = fuzzer.run_all(&targets, time)?;
    if keep == Given::Yes {
        targets.iter().try_for_each(|target| fuzzer.keep(target))?;
    }
    Ok(outcome)
}

/// The targets of which a few seconds are in `ci`.
fn of_ci() -> Vec<&'static Target> {
    TARGETS.iter().filter(|target| target.reach == Reach::Protocol).collect()
}

/// What builds them; it may go on beside other things.
pub(crate) fn build_for_ci(repo: &Repo) -> Result<Command, Trouble> {
    Ok(build(repo, &of_ci(), &repo.scratch("fuzz")?, &host()?))
}

/// Runs them.
pub(crate) fn in_ci(repo: &Repo) -> Result<Outcome, Trouble> {
    let targets = of_ci();
    Fuzzer::build(repo, &targets)?.run_all(&targets, TIME_IN_CI)
}

/// `request,chunked`, or all.
fn chosen(asked: Option<&str>) -> Result<Vec<&'static Target>, Trouble> {
    let Some(asked) = asked else { return Ok(TARGETS.iter().collect()) };
    let named = |name: &str| {
        let names = || TARGETS.map(|target| target.name).join(", ");
        let unknown =
            || Trouble::new(format!("there is no target \"{name}\"")).remedy(format!("one of {}", names()));
        TARGETS.iter().find(|target| target.name == name).ok_or_else(unknown)
    };
    asked.split(',').map(named).collect()
}

/// The targets, built.
struct Fuzzer {
    /// Where cargo put the programs.
    built: PathBuf,
    /// Corpora and dictionaries, as they are in the repository.
    sources: PathBuf,
    /// What runs have found.
    work: PathBuf,
}

impl Fuzzer {
    fn build(repo: &Repo, targets: &[&Target]) -> Result<Fuzzer, Trouble> {
        let (sources, work) = (repo.path("fuzz"), repo.scratch("fuzz")?);
        let host = host()?;
        match run_command(&mut build(repo, targets, &work, &host))? {
            Outcome::Done => {
                Ok(Fuzzer { built: work.join("target").join(host).join("release"), sources, work })
            }
            Outcome::No => Err(Trouble::new("the fuzz targets do not build")),
        }
    }

    fn run_all(&self, targets: &[&Target], time: Duration) -> Result<Outcome, Trouble> {
        let mut outcome = Outcome::Done;
        println!("{}", Told::HEAD);
        for target in targets {
            let told = self.run(target, time)?;
            println!("{}", told.row(target.name));
            if let Some(finding) = &told.finding {
                println!("  {}", told.why);
                println!("  again: cargo xtask fuzz {} --input {finding}", target.name);
                outcome = Outcome::No;
            }
        }
        Ok(outcome)
    }

    /// One target for so long, or until something is found.
    fn run(&self, target: &Target, time: Duration) -> Result<Told, Trouble> {
        let found = self.folder("corpus", target)?;
        let findings = self.folder("findings", target)?;
        let mut run = self.program(target);
        run.arg(format!("-max_total_time={}", time.as_secs().max(1)));
        run.args([format!("-max_len={INPUT_BYTES_MAX}"), format!("-timeout={RUN_S_MAX}")]);
        run.args([format!("-rss_limit_mb={MEMORY_MB_MAX}"), "-print_final_stats=1".to_owned()]);
        run.arg(format!("-artifact_prefix={}/", findings.display()));
        if let Some(dictionary) = target.dictionary {
            run.arg(format!("-dict={}", self.sources.join(dictionary).display()));
        }
        run.arg(&found).arg(self.corpus(target));
        let ended = run.output().map_err(Trouble::cannot(format!("run {}", shown(&run))))?;
        Told::read(&String::from_utf8_lossy(&ended.stderr), ended.status.success())
            .ok_or_else(|| Trouble::new(format!("{} said nothing that is understood", shown(&run))))
    }

    /// Puts inputs that reach what the repository's do not beside them.
    fn keep(&self, target: &Target) -> Result<(), Trouble> {
        let found = self.folder("corpus", target)?;
        output(self.program(target).arg("-merge=1").arg(self.corpus(target)).arg(found)).map(drop)
    }

    fn program(&self, target: &Target) -> Command {
        command([self.built.join(target.name).to_string_lossy()])
    }

    fn corpus(&self, target: &Target) -> PathBuf {
        self.sources.join("corpus").join(target.name)
    }

    fn folder(&self, kind: &str, target: &Target) -> Result<PathBuf, Trouble> {
        let folder = self.work.join(kind).join(target.name);
        std::fs::create_dir_all(&folder).map_err(Trouble::cannot(format!("make {}", folder.display())))?;
        Ok(folder)
    }
}

/// What builds them.
fn build(repo: &Repo, targets: &[&Target], work: &Path, host: &str) -> Command {
    // With a target of its own, so that build scripts and macros are built without the fuzzer's instructions.
    let mut build = cargo(["build", "--release", "--locked", "--target", host]);
    build.arg("--manifest-path").arg(repo.path("fuzz/Cargo.toml"));
    build.arg("--target-dir").arg(work.join("target"));
    for target in targets {
        build.args(["--bin", target.name]);
        build.args(target.reach.feature().map_or(vec![], |feature| vec!["--features", feature]));
    }
    build.env("RUSTFLAGS", format!("--cfg fuzzing {}", COVERAGE.join(" ")));
    build
}

/// The machine's own target, by the compiler's name.
fn host() -> Result<String, Trouble> {
    let told = output(&mut command(["rustc", "-vV"]))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Trouble::new("rustc does not name its host"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn targets_are_chosen_by_name_and_an_unknown_one_is_told() {
        assert_eq!(chosen(None).unwrap().len(), TARGETS.len());
        let two: Vec<&str> = chosen(Some("plan,request")).unwrap().iter().map(|target| target.name).collect();
        assert_eq!(two, ["plan", "request"]);
        let told = chosen(Some("requests")).err().unwrap().to_string();
        assert!(told.contains("\"requests\"") && told.contains("request, chunked"), "{told}");
    }

    #[test]
    fn every_target_has_its_program_its_corpus_and_its_words() {
        let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz");
        let manifest = std::fs::read_to_string(fuzz.join("Cargo.toml")).unwrap();
        for target in &TARGETS {
            assert!(manifest.contains(&format!("name = \"{}\"", target.name)), "{}", target.name);
            assert!(fuzz.join(format!("src/{}.rs", target.name)).is_file(), "{}", target.name);
            assert!(
                std::fs::read_dir(fuzz.join("corpus").join(target.name)).unwrap().count() > 0,
                "{}",
                target.name
            );
            assert!(target.dictionary.is_none_or(|name| fuzz.join(name).is_file()), "{}", target.name);
        }
    }
}
