//! `cargo xtask test`: provides what the tests need and runs all of them, those of root too where it has the rights.
//!
//! A test file `tests/root_*.rs` needs root, and every capability that it names (`CAP_…`). Without them it is
//! skipped with a message; in CI that is a failure, because nobody reads messages there.

use std::collections::BTreeSet;

use crate::command::{cargo, run as run_command};
use crate::flags::Flags;
use crate::packages;
use crate::repo::{Repo, is_ci};
use crate::trouble::{Outcome, Trouble};

/// Capabilities by name and number, as in linux/capability.h: those that tests may ask for.
const CAPABILITIES: [(&str, u32); 14] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_NET_ADMIN", 12),
    ("CAP_IPC_LOCK", 14),
    ("CAP_SYS_PTRACE", 19),
    ("CAP_SYS_ADMIN", 21),
    ("CAP_SYS_NICE", 23),
    ("CAP_SYS_RESOURCE", 24),
    ("CAP_PERFMON", 38),
    ("CAP_BPF", 39),
];

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

/// What this process may do.
pub(crate) struct Rights {
    user: Option<u32>,
    capabilities: u64,
}

impl Rights {
    /// Read from procfs: no library call is needed for it.
    pub(crate) fn ours() -> Rights {
        Rights::of_status(&std::fs::read_to_string("/proc/self/status").unwrap_or_default())
    }

    pub(crate) fn of_status(text: &str) -> Rights {
        let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        // The second number is the effective one (proc_pid_status(5)).
        let user = field("Uid:").and_then(|ids| ids.split_whitespace().nth(1)?.parse().ok());
        let capabilities = field("CapEff:").and_then(|hex| u64::from_str_radix(hex, 16).ok());
        Rights { user, capabilities: capabilities.unwrap_or(0) }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.user == Some(0)
    }

    /// What a root test with this source would need beyond this.
    fn lacking(&self, source: &str) -> Vec<String> {
        let mut lacks: Vec<String> = (!self.is_root()).then(|| "root".to_owned()).into_iter().collect();
        for name in capability_names(source) {
            let number = CAPABILITIES.iter().find(|(known, _)| *known == name).map(|(_, number)| number);
            match number {
                Some(number) if self.capabilities >> number & 1 == 1 => {}
                Some(_) => lacks.push(name.to_owned()),
                None => lacks.push(format!("{name}, which this task does not know")),
            }
        }
        lacks
    }
}

fn capability_names(source: &str) -> BTreeSet<&str> {
    let words = source.split(|c: char| !c.is_ascii_uppercase() && c != '_');
    words.filter(|word| word.starts_with("CAP_") && word.len() > 4).collect()
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

    #[test]
    fn root_with_the_named_capabilities_lacks_nothing() {
        let root = Rights::of_status("Name:\tx\nUid:\t1000\t0\t0\t0\nCapEff:\t00000000000000c0\n");
        assert!(root.lacking("needs CAP_SETUID and CAP_SETGID: becomes another user").is_empty());
        assert_eq!(root.lacking("needs CAP_BPF, CAP_SETUID"), ["CAP_BPF"]);
        assert_eq!(root.lacking("needs CAP_FLYING").len(), 1);
    }

    #[test]
    fn anybody_else_lacks_root() {
        let user = Rights::of_status("Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n");
        assert_eq!(user.lacking(""), ["root"]);
        assert!(!Rights::of_status("").is_root());
    }
}
