//! The programs and libraries that the tests need beside Rust, and how they come onto a Debian machine.
//!
//! `cargo xtask test` calls this, and `needs` does nothing else. It looks first, asks on a terminal, installs by itself with `--yes` or CI=true, and
//! starts no service.

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::command::{command, find_program, run as run_command};
use crate::flags::{Flags, Given};
use crate::go;
use crate::repo::is_ci;
use crate::rights::Rights;
use crate::trouble::{Outcome, Trouble};

/// One thing that is needed.
pub(crate) struct Package {
    /// Debian's name.
    pub(crate) name: &'static str,
    /// How to see that it is there, from whatever source.
    pub(crate) seen: Seen,
    /// What needs it.
    pub(crate) reason: &'static str,
}

/// How to see that something is there.
pub(crate) enum Seen {
    /// A program of this name.
    Program(&'static str),
    /// A shared library with this file name.
    Library(&'static str),
    /// A file at this place.
    File(&'static str),
}

/// Everything that is needed. What every Debian has (coreutils, util-linux) is not named.
pub(crate) const PACKAGES: [Package; 22] = [
    Package {
        name: "nginx",
        seen: Seen::Program("nginx"),
        reason: "a server that is not ours, for the climb and the bench; it stays stopped",
    },
    Package { name: "git", seen: Seen::Program("git"), reason: "a change and its base, for the gate in CI" },
    Package { name: "wrk", seen: Seen::Program("wrk"), reason: "the generator that ours is compared with" },
    Package { name: "valgrind", seen: Seen::Program("valgrind"), reason: "counts what the budgets limit" },
    Package {
        name: "shellcheck",
        seen: Seen::Program("shellcheck"),
        reason: "reads the commands that reports give",
    },
    Package {
        name: "chromium",
        seen: Seen::Program("chromium"),
        reason: "opens the pages that are written; nothing of it asks a network",
    },
    Package {
        name: "libmimalloc2.0",
        seen: Seen::Library("libmimalloc.so.2"),
        reason: "an allocator that the climb turns to",
    },
    Package {
        name: "libjemalloc2",
        seen: Seen::Library("libjemalloc.so.2"),
        reason: "an allocator that the climb turns to",
    },
    Package {
        name: "gcc",
        seen: Seen::Program("cc"),
        reason: "links, builds specimens and the minimal client",
    },
    Package { name: "libc6-dev", seen: Seen::Library("crt1.o"), reason: "what is linked with" },
    Package { name: "g++", seen: Seen::Program("g++"), reason: "builds specimens and known programs in C++" },
    Package {
        name: "golang-go",
        seen: Seen::Program("go"),
        reason: "builds specimens and servers in Go; where it is too old it fetches a newer one",
    },
    Package {
        name: "ca-certificates",
        seen: Seen::File("/etc/ssl/certs/ca-certificates.crt"),
        reason: "modules of Go are fetched over TLS",
    },
    Package {
        name: "default-jdk-headless",
        seen: Seen::Program("javac"),
        reason: "builds and runs specimens in Java",
    },
    Package {
        name: "clang-14",
        seen: Seen::Program("clang-14"),
        reason: "builds the BPF objects, to compare them with the committed ones",
    },
    Package { name: "llvm-14", seen: Seen::Program("llvm-strip-14"), reason: "strips the BPF objects" },
    Package { name: "strace", seen: Seen::Program("strace"), reason: "kills a tuner at each of its calls" },
    Package {
        name: "iptables",
        seen: Seen::Program("iptables-nft"),
        reason: "tables of packet filters that iptables keeps",
    },
    Package { name: "nftables", seen: Seen::Program("nft"), reason: "packet filters of the laboratory" },
    Package { name: "iproute2", seen: Seen::Program("tc"), reason: "queueing disciplines of the laboratory" },
    Package {
        name: "ethtool",
        seen: Seen::Program("ethtool"),
        reason: "plants offloads, to see them put back",
    },
    Package { name: "procps", seen: Seen::Program("kill"), reason: "interrupts what tests have started" },
];

/// Runs the verb.
pub(crate) fn run(mut flags: Flags) -> Result<Outcome, Trouble> {
    let yes = flags.switch("--yes");
    flags.finish()?;
    provide(yes).map(|()| Outcome::Done)
}

/// Installs what is missing, and fetches a newer Go where there is an old one.
///
/// # Errors
/// When something is missing and may not or cannot be installed.
pub(crate) fn provide(yes: Given) -> Result<(), Trouble> {
    provide_these(&PACKAGES, yes)?;
    go::provide()
}

/// What compilers are made of: linking goes on while all else is installed, and must not meet half of a newer one.
const COMPILERS: [&str; 3] = ["gcc", "g++", "libc6-dev"];

/// Installs what is missing of the compilers that builds of ours use.
///
/// # Errors
/// As above.
pub(crate) fn provide_compilers(yes: Given) -> Result<(), Trouble> {
    provide_all(PACKAGES.iter().filter(|package| COMPILERS.contains(&package.name)), yes)
}

/// Installs what is missing of `wanted`.
///
/// # Errors
/// When something is missing and may not or cannot be installed.
pub(crate) fn provide_these(wanted: &[Package], yes: Given) -> Result<(), Trouble> {
    provide_all(wanted.iter(), yes)
}

fn provide_all<'p>(wanted: impl Iterator<Item = &'p Package>, yes: Given) -> Result<(), Trouble> {
    let missing: Vec<&Package> = wanted.filter(|package| !is_there(&package.seen)).collect();
    if missing.is_empty() {
        return Ok(());
    }
    eprintln!("missing:");
    missing.iter().for_each(|package| eprintln!("  {:<21} {}", package.name, package.reason));
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    if let Some(trouble) = refusal(&names, find_program("apt-get").as_deref(), &Rights::ours()) {
        return Err(trouble);
    }
    if yes == Given::No && !is_ci() && !agreed()? {
        return Err(needs(&names).remedy("the same command with --yes"));
    }
    install(&missing)
}

/// Why nothing can be installed here, with what to do by hand.
fn refusal(names: &[&str], apt: Option<&Path>, rights: &Rights) -> Option<Trouble> {
    match (apt, rights.is_root()) {
        (None, _) => {
            Some(needs(names).likely("this is no Debian, whose names these are: install them by hand"))
        }
        (Some(_), false) => {
            let by_hand = format!("sudo apt-get install --no-install-recommends {}", names.join(" "));
            Some(needs(names).likely("only root may install").remedy(by_hand))
        }
        (Some(_), true) => None,
    }
}

fn needs(names: &[&str]) -> Trouble {
    Trouble::new(format!("this needs what is missing here: {}", names.join(", ")))
}

fn is_there(seen: &Seen) -> bool {
    match seen {
        Seen::Program(name) => find_program(name).is_some(),
        Seen::File(path) => Path::new(path).is_file(),
        Seen::Library(name) => library_folders().iter().any(|folder| folder.join(name).exists()),
    }
}

/// Where a linker looks, Debian's folder per architecture included.
fn library_folders() -> Vec<PathBuf> {
    let plain = ["/usr/lib", "/usr/lib64", "/usr/local/lib", "/lib"].map(PathBuf::from);
    let of_architecture = std::fs::read_dir("/usr/lib").into_iter().flatten().flatten();
    let linux =
        of_architecture.map(|entry| entry.path()).filter(|path| path.to_string_lossy().contains("-linux-"));
    plain.into_iter().chain(linux).collect()
}

/// Asks on a terminal; elsewhere nobody can answer, which is a no.
fn agreed() -> Result<bool, Trouble> {
    if !std::io::stdin().is_terminal() {
        return Ok(false);
    }
    eprint!("install them now with apt-get? [y/N] ");
    std::io::stderr().flush().map_err(Trouble::cannot("ask"))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(Trouble::cannot("read the answer"))?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// How long apt-get waits for another one to finish: an unattended upgrade takes minutes.
const LOCK_S_MAX: u32 = 300;

fn install(missing: &[&Package]) -> Result<(), Trouble> {
    let names: Vec<&str> = missing.iter().map(|package| package.name).collect();
    apt(&["update", "-q"])?;
    apt(&[&["install", "-q", "-y", "--no-install-recommends"], &names[..]].concat())?;
    let still = missing.iter().find(|package| !is_there(&package.seen));
    still.map_or(Ok(()), |package| Err(Trouble::new(format!("{} is installed, yet not found", package.name))))
}

/// Runs a command while no package may start its service (Debian's invoke-rc.d asks the file that is its first argument:
/// 101 means "forbidden"). A shell does it, which takes the file away after Ctrl-C too; a policy that the machine has of
/// its own, as containers do, stays.
const WITHOUT_SERVICES: &str = r#"
trap : INT TERM HUP
policy=$1
shift
if (set -C; printf '#!/bin/sh\nexit 101\n' > "$policy") 2> /dev/null; then
    made=yes
    chmod 755 "$policy"
fi
"$@"
code=$?
[ -z "$made" ] || rm -f "$policy"
exit "$code"
"#;

/// Where invoke-rc.d looks.
const POLICY: &str = "/usr/sbin/policy-rc.d";

fn apt(words: &[&str]) -> Result<(), Trouble> {
    let timeout = format!("DPkg::Lock::Timeout={LOCK_S_MAX}");
    let mut apt = command(["sh", "-c", WITHOUT_SERVICES, "sh", POLICY, "apt-get", "-o", &timeout]);
    apt.args(words).env("DEBIAN_FRONTEND", "noninteractive");
    match run_command(&mut apt)? {
        Outcome::Done => Ok(()),
        Outcome::No => Err(Trouble::new(format!("apt-get {} failed", words[0]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_package_has_its_own_name_and_a_reason() {
        let mut names: Vec<&str> = PACKAGES.iter().map(|package| package.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), PACKAGES.len());
        assert!(PACKAGES.iter().all(|package| !package.reason.is_empty()));
        assert!(COMPILERS.iter().all(|name| names.contains(name)));
    }

    #[test]
    fn who_may_not_install_is_told_the_command() {
        let (user, root) = (Rights::of_status("Uid:\t1000\t1000\n"), Rights::of_status("Uid:\t0\t0\n"));
        let refused =
            |apt: Option<&Path>, rights| refusal(&["wrk", "nginx"], apt, rights).map(|t| t.to_string());
        let apt = Some(Path::new("/usr/bin/apt-get"));
        assert_eq!(refused(apt, &root), None);
        let text = refused(apt, &user).unwrap_or_default();
        assert!(text.contains("wrk, nginx") && text.contains("sudo apt-get install"), "{text}");
        assert!(refused(None, &root).is_some_and(|text| text.contains("no Debian")));
    }

    fn without_services(policy: &Path, words: &[&str]) -> std::process::Output {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", WITHOUT_SERVICES, "sh"]).arg(policy).args(words).output().expect("sh runs")
    }

    #[test]
    fn the_policy_is_there_while_a_command_runs_and_gone_after_it_and_after_ctrl_c() {
        let policy = std::env::temp_dir().join(format!("dyno-policy-{}", std::process::id()));
        let name = policy.display().to_string();
        let seen = without_services(&policy, &["cat", &name]);
        assert_eq!(String::from_utf8_lossy(&seen.stdout), "#!/bin/sh\nexit 101\n");
        assert!(!policy.exists());
        let broken = without_services(&policy, &["sh", "-c", "kill -INT $PPID; exit 7"]);
        assert_eq!((broken.status.code(), policy.exists()), (Some(7), false));
        std::fs::write(&policy, "the machine's own").expect("a temporary file");
        without_services(&policy, &["true"]);
        assert_eq!(std::fs::read_to_string(&policy).expect("it stays"), "the machine's own");
        std::fs::remove_file(&policy).expect("it is there");
    }

    #[test]
    fn what_is_there_is_seen_and_what_is_not_is_missed() {
        assert!(is_there(&Seen::Program("sh")));
        assert!(!is_there(&Seen::Program("no-such-program-here")));
        assert!(!is_there(&Seen::Library("libnosuchlibrary.so.9")));
        assert!(is_there(&Seen::Library("libc.so.6")), "the C library is in one of {:?}", library_folders());
    }
}
