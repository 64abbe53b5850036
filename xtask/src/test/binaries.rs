//! The tests' binaries: built by cargo, listed from what it tells, each with its package and its limit of time.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::beside::Task;
use crate::command::{cargo, command, shown};
use crate::repo::Repo;
use crate::trouble::Trouble;

/// What the product is built without unless asked is built and tested here: a feature that nobody builds rots. Without it are
/// the release build and clippy's.
const FEATURES: [&str; 2] = ["--features", "dyno/zstd"];

/// No build takes so long, also as the lowliest of programs.
pub(crate) const BUILD_MAX: Duration = Duration::from_secs(5_400);

/// Most end within seconds. This is many times what the slowest of the others takes on two cores beside a busy
/// neighbour, so that only what hangs meets it.
const LIMIT: Duration = Duration::from_secs(240);

/// Those that only compute, and yield to all others: some times what they take beside a busy neighbour.
const COMPUTING_LIMIT: Duration = Duration::from_secs(3_000);

/// Those that measure for minutes, by their source.
const LIMITS: [(&str, Duration); 9] = [
    // Twenty profilers begin and are killed; with DYNO_KILLS=200 that takes four minutes.
    ("crates/dyno-profile/tests/root_causal.rs", Duration::from_secs(600)),
    // What takes its probes out waits for the kernel, on a full machine for seconds each.
    ("crates/dyno/tests/root_causal.rs", Duration::from_secs(600)),
    ("crates/dyno/tests/root_causal_found.rs", Duration::from_secs(600)),
    ("crates/dyno/tests/climb.rs", Duration::from_secs(600)),
    ("crates/dyno/tests/root_climb.rs", Duration::from_secs(600)),
    ("crates/dyno/tests/climb_builds.rs", Duration::from_secs(900)),
    // Every fault that is planted in the simulated server is looked for.
    ("crates/dyno-engine/src/lib.rs", Duration::from_secs(600)),
    // Ten measurings of some seconds each.
    ("crates/dyno/tests/root_audit.rs", Duration::from_secs(600)),
    // Every specimen is built, watched, and compared with its repaired twin.
    ("crates/dyno/tests/root_diagnose.rs", Duration::from_secs(900)),
];

/// When a test runs, and whether beside others. What builds yields to all of them, and goes on beside most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// Beside whatever else runs, as lowly as what builds: it only computes, and no clock is looked at.
    Beside,
    /// Beside other tests.
    Together,
    /// By itself.
    Apart,
    /// By itself, and behind those: it looks at speeds or shares of time. So do most of root's, or at the host's counters and
    /// programs in the kernel.
    Last,
    /// Alone on the machine, behind builds too: it judges what others do to it, or looks at all of the host's settings.
    Quiet,
}

/// Those that builds would spoil: they write to the disk whose waits are judged, and have the kernel move memory.
const QUIET: [&str; 2] = ["crates/dyno/tests/root_diagnose.rs", "crates/dyno/tests/root_tune.rs"];

/// Those whose figures others beside them would spoil.
const MEASURING: [&str; 8] = [
    "crates/dyno/tests/ci_page.rs",
    "crates/dyno/tests/climb.rs",
    "crates/dyno/tests/climb_builds.rs",
    "crates/dyno/tests/examples.rs",
    "crates/dyno/tests/specimens.rs",
    "crates/dyno-engine/tests/noise.rs",
    "crates/dyno-profile/tests/attach.rs",
    "crates/dyno-profile/tests/sites.rs",
];

/// Those that measure nothing, but watch what goes on, or want the CPUs: other tests would be in their way.
const BY_THEMSELVES: [&str; 13] = [
    "crates/dyno/tests/cli_audit.rs",
    "crates/dyno/tests/cli_diagnose.rs",
    "crates/dyno/tests/cli_manager.rs",
    "crates/dyno/tests/cli_profile.rs",
    "crates/dyno/tests/root_logs.rs",
    "crates/dyno/tests/root_netns.rs",
    "crates/dyno/tests/root_serve.rs",
    "crates/dyno-host/src/lib.rs",
    // Both look at packets that CPUs hand each other, which the kernel counts for all networks together.
    "crates/dyno-host/tests/tune_deaths.rs",
    "crates/dyno-host/tests/tune_effect.rs",
    "crates/dyno-lab/src/lib.rs",
    "crates/dyno-sys/src/lib.rs",
    "crates/dyno-sys/tests/root_user.rs",
];

/// Memory up to here stays with the process: a simulation takes and gives back megabytes for each of its blocks, and the
/// kernel cleared them anew each time, which was half of its run.
pub(crate) const KEPT_BYTES: u64 = 1 << 30;
const SIMULATION: &str = "crates/dyno-climb/tests/simulated/main.rs";

/// Those that only compute: simulated worlds, and what is searched for with seeds.
const COMPUTING: [&str; 7] = [
    SIMULATION,
    "crates/dyno-engine/tests/model_check.rs",
    "crates/dyno-measure/src/lib.rs",
    "crates/dyno-profile/tests/causal_known.rs",
    "crates/dyno-profile/tests/causal_rates.rs",
    "crates/dyno-profile/tests/causal_worlds.rs",
    "crates/dyno-profile/tests/mutated_imports.rs",
];

/// One binary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Binary {
    /// Its first source file, by its path from the root.
    pub(crate) source: String,
    /// The folder of its package, in which cargo runs it.
    folder: PathBuf,
    program: PathBuf,
}

impl Binary {
    /// Builds all of the workspace's; none if something does not build.
    pub(crate) fn build(repo: &Repo) -> Result<Option<Vec<Binary>>, Trouble> {
        let words = ["test", "--workspace", "--no-run", "--message-format", "json-render-diagnostics"];
        let mut build = cargo(words);
        build.args(FEATURES).current_dir(repo.root()).stdin(Stdio::null()).stderr(Stdio::inherit());
        eprintln!("$ {}", shown(&build));
        let built = build.output().map_err(Trouble::cannot("run cargo test"))?;
        if !built.status.success() {
            return Ok(None);
        }
        let told = String::from_utf8(built.stdout).map_err(Trouble::cannot("read what cargo built"))?;
        let mut all: Vec<Binary> = told.lines().filter_map(|line| Binary::told(repo.root(), line)).collect();
        all.sort_by(|a, b| a.source.cmp(&b.source));
        match all.is_empty() {
            true => Err(Trouble::new("cargo built no tests")),
            false => Ok(Some(all)),
        }
    }

    /// From a line of cargo's, if it tells of a test's binary.
    fn told(root: &Path, line: &str) -> Option<Binary> {
        let told: Value = serde_json::from_str(line).ok()?;
        if told["profile"]["test"] != true {
            return None;
        }
        let program = PathBuf::from(told["executable"].as_str()?);
        let folder = Path::new(told["manifest_path"].as_str()?).parent()?.to_owned();
        let source = Path::new(told["target"]["src_path"].as_str()?).strip_prefix(root).ok()?;
        Some(Binary { source: source.to_string_lossy().into_owned(), folder, program })
    }

    /// The command that runs it, as cargo would.
    pub(crate) fn command(&self) -> Command {
        let mut run = command([self.program.to_string_lossy()]);
        // It is ours, as long as cargo runs us; a test would look for its files there.
        run.current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        if self.source == SIMULATION {
            run.env("MALLOC_TRIM_THRESHOLD_", KEPT_BYTES.to_string());
        }
        run
    }

    /// Where it runs.
    pub(super) fn place(&self) -> Place {
        let source = self.source.as_str();
        let is_of_root = source.rsplit('/').next().is_some_and(|file| file.starts_with("root_"));
        match BY_THEMSELVES.contains(&source) {
            true => Place::Apart,
            false if COMPUTING.contains(&source) => Place::Beside,
            false if QUIET.contains(&source) => Place::Quiet,
            false if is_of_root || MEASURING.contains(&source) => Place::Last,
            false => Place::Together,
        }
    }

    /// How long it may take.
    pub(super) fn limit(&self) -> Duration {
        if self.place() == Place::Beside {
            return COMPUTING_LIMIT;
        }
        LIMITS.iter().find(|(source, _)| *source == self.source).map_or(LIMIT, |(_, limit)| *limit)
    }
}

/// The examples in the documentation, which cargo builds and runs itself.
pub(crate) fn documentation(repo: &Repo) -> Task {
    let mut test = cargo(["test", "--workspace", "--doc"]);
    test.args(FEATURES).current_dir(repo.root());
    Task { name: "the documentation's examples".to_owned(), command: test, limit: BUILD_MAX, takes: 1 }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const TOLD: &str = r#"{"reason":"compiler-artifact","manifest_path":"/r/crates/dyno-sys/Cargo.toml",
        "target":{"kind":["test"],"name":"fork","src_path":"/r/crates/dyno-sys/tests/fork.rs"},
        "profile":{"test":true},"executable":"/r/target/debug/deps/fork-1"}"#;

    #[test]
    fn a_binary_is_read_from_cargos_words() {
        let binary = Binary::told(Path::new("/r"), TOLD).unwrap();
        assert_eq!(binary.source, "crates/dyno-sys/tests/fork.rs");
        assert_eq!(binary.limit(), LIMIT);
        let command = binary.command();
        assert_eq!(command.get_program(), "/r/target/debug/deps/fork-1");
        assert_eq!(command.get_current_dir(), Some(Path::new("/r/crates/dyno-sys")));
    }

    /// Fault: a list that is asked for another one's company, or root's that are taken for any other's.
    #[test]
    fn who_measures_is_last_and_so_is_root() {
        let of = |source: &str| {
            let told = TOLD.replace("crates/dyno-sys/tests/fork.rs", source);
            Binary::told(Path::new("/r"), &told).unwrap().place()
        };
        assert_eq!(of("crates/dyno/tests/climb.rs"), Place::Last);
        assert_eq!(of("crates/dyno/tests/root_tune.rs"), Place::Quiet);
        assert_eq!(of("crates/dyno/tests/root_causal_found.rs"), Place::Last);
        assert_eq!(of("crates/dyno/tests/root_logs.rs"), Place::Apart);
        assert_eq!(of("crates/dyno-sys/tests/fork.rs"), Place::Together);
        assert_eq!(of(SIMULATION), Place::Beside);
    }

    #[test]
    fn what_is_no_test_is_passed_over() {
        let program = TOLD.replace(r#""test":true"#, r#""test":false"#);
        let library = TOLD.replace(r#""/r/target/debug/deps/fork-1""#, "null");
        for line in [program.as_str(), &library, r#"{"reason":"build-finished"}"#, "no json"] {
            assert_eq!(Binary::told(Path::new("/r"), line), None, "{line}");
        }
    }

    #[test]
    fn every_test_with_a_rule_of_its_own_is_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert!(LIMITS.iter().all(|(source, limit)| root.join(source).is_file() && *limit > LIMIT));
        assert!(
            MEASURING
                .iter()
                .chain(&BY_THEMSELVES)
                .chain(&COMPUTING)
                .chain(&QUIET)
                .all(|source| root.join(source).is_file())
        );
    }
}
