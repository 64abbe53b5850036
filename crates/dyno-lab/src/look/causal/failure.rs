//! Why nothing was tried, in three lines.

use dyno_profile::Error;
use dyno_profile::causal::{Children, SiteError};
use dyno_record::alike;
use dyno_record::profile::{Origin, Profile, Stack};
use dyno_sys::bpf::BpfError;
use dyno_sys::{proc, trace};

use super::asked::Asked;
use crate::failure::{Failure, chain};
use crate::look::refused::not_profiled;
use crate::user::is_root;

/// Waits that can be tried, but for those for a file.
const WAITS: [&str; 4] = ["wait:disk", "wait:lock", "wait:network", "wait:any"];

/// A place in the code that was not found.
pub(super) fn no_site(error: &SiteError) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        SiteError::Unreadable { pid, .. } => failure
            .likely("it has ended, or belongs to another user")
            .try_this(format!("sudo dyno causal {pid} …")),
        SiteError::NoCode { pid } => {
            failure.likely("it is a thread of the kernel").try_this(format!("ls -l /proc/{pid}/exe"))
        }
        SiteError::Unknown { .. } | SiteError::Folded { .. } => failure
            .likely("the compiler folded it into its callers, or it has another name in the binary")
            .try_this("nm -C PROGRAM | grep NAME, or a FILE:LINE within it"),
        SiteError::Stripped { path, .. } => failure
            .likely("a package strips its programs; its debug package may have the names")
            .try_this(format!("file {path}; or --progress syscall:write, and sites left to be chosen")),
        SiteError::Ambiguous { .. } => {
            failure.likely("several files have one of that name").try_this("FILE:NAME, as main.c:serve")
        }
        SiteError::NoLine { .. } => {
            failure.likely("the compiler made nothing of it").try_this("a line beside it")
        }
        SiteError::NoFile { .. } => failure
            .likely("the binary was built from another name or folder")
            .try_this("the file's name alone"),
        SiteError::NoDebug { .. } => {
            failure.likely("it was built without -g").try_this("a function's name instead of FILE:LINE")
        }
        SiteError::NoWait { name } => {
            failure
                .likely(alike::did_you_mean(name, WAITS).unwrap_or_else(|| {
                    "a word of another spelling, or a path without its beginning".to_owned()
                }))
                .try_this("--site wait:disk, or --site wait:/var/lib/data")
        }
        SiteError::Offset { .. } => {
            failure.likely("an offset is for --progress").try_this("the function, or FILE:LINE")
        }
        SiteError::NoInstruction { .. } => failure
            .likely("the binary was built anew since the offset was read")
            .try_this("objdump -d PROGRAM --disassemble=NAME, or a FILE:LINE within it"),
        SiteError::Beyond { .. } | SiteError::NotInFile { .. } => {
            failure.likely("the offset leads out of the function").try_this("a smaller offset")
        }
    }
}

/// Something that cannot be counted.
pub(super) fn not_counted(error: &Error) -> Failure {
    let forms =
        "it is SYMBOL, SYMBOL+OFFSET, FILE:LINE, begin:PLACE,end:PLACE, tracepoint:NAME or syscall:NAME";
    let likely = call_meant(error).unwrap_or_else(|| forms.to_owned());
    Failure::usage(chain(error)).likely(likely).try_this("--progress syscall:write")
}

/// The system call that was perhaps meant.
fn call_meant(error: &Error) -> Option<String> {
    let Error::NoProgress { asked, .. } = error else { return None };
    let call = alike::meant(asked.strip_prefix("syscall:")?, trace::call_names())?;
    Some(alike::question(&format!("syscall:{call}")))
}

/// The experiments could not begin, or not one window of them could be run.
#[must_use]
pub fn not_run(error: &Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        Error::ProbeRefused { .. } => refused(),
        Error::ProbeUnable { source: BpfError::Namespace } => failure.in_a_container(),
        Error::NoProbe { .. } => failure
            .likely("the instruction there is one that uprobes refuse, as those with a LOCK prefix")
            .try_this("the function itself, or a line beside it"),
        Error::ParticipantEnded { .. } => {
            failure.likely("a client that had no more to ask").try_this("one that asks for as long as --for")
        }
        Error::ProbeUnable { .. } => failure
            .likely("the kernel is older than 5.17, or was built without BTF (CONFIG_DEBUG_INFO_BTF)")
            .try_this("ls -l /sys/kernel/btf/vmlinux; uname -r"),
        Error::NoProgress { .. } => not_counted(error),
        Error::NoFile { .. } => {
            failure.likely("the path is one that this program has not").try_this("ls -l /proc/PID/fd")
        }
        Error::Replaced { .. } => {
            failure.likely("a script that became its program by exec").try_this("the process as it is now")
        }
        other => not_profiled(other),
    }
}

/// The chain of causes ends in the verifier's words, which help nobody who lacks a right.
fn refused() -> Failure {
    let failure = Failure::error("cannot experiment: the kernel refuses BPF");
    if is_root() {
        let likely = "root without CAP_BPF, CAP_PERFMON or CAP_SYS_ADMIN, or a kernel that is locked down";
        return failure
            .likely(likely)
            .try_this("grep CapEff /proc/self/status; cat /sys/kernel/security/lockdown");
    }
    failure.likely("it needs root, or CAP_BPF and CAP_PERFMON").try_this("the same command under sudo")
}

/// A profile in which no function has enough samples.
pub(super) fn unknown(asked: &Asked, profile: &Profile) -> Failure {
    let seen = profile.sampling.samples;
    let failure = Failure::error(format!(
        "no function of process {} has 2 % of its samples ({seen} in all)",
        asked.pid
    ));
    if asked.children == Children::Strangers && proc::tree(asked.pid).len() > 1 {
        return failure
            .likely("its children do the work, and it only waits for them")
            .try_this(format!("dyno causal {} --children", asked.pid));
    }
    let nameless = nameless_percent(profile);
    if nameless >= NAMELESS_PERCENT {
        return failure
            .likely(format!("{nameless:.0} % of them lie in code without a file: it was compiled at run time, by a JVM or another interpreter"))
            .try_this("--site with a function of its libraries, or --site wait:any; compiled code cannot be tried");
    }
    if seen >= SAMPLES_RAN {
        return failure
            .likely("its time is spread over many functions, or in code that no file holds")
            .try_this("--site FUNCTION, or --inclusive, or --site wait:any");
    }
    failure
        .likely("it hardly ran: it waits, or nobody asks it anything")
        .try_this("a load on it, or --site FUNCTION, or --site wait:any")
}

/// Samples of a target that ran.
const SAMPLES_RAN: u64 = 200;
/// Share of the samples in code without a file from which on it is named.
const NAMELESS_PERCENT: f64 = 30.0;

/// Samples whose innermost user code lies in no file, percent.
fn nameless_percent(profile: &Profile) -> f64 {
    let all: u64 = profile.stacks.iter().map(|stack| stack.samples).sum();
    let innermost = |stack: &&Stack| {
        let mut frames = stack.frames.iter().rev().filter_map(|at| profile.frames.get(*at as usize));
        frames.find(|frame| frame.origin == Origin::User).is_some_and(|frame| frame.module.is_none())
    };
    let nameless: u64 = profile.stacks.iter().filter(innermost).map(|stack| stack.samples).sum();
    100.0 * nameless as f64 / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_that_is_not_found_has_three_lines() {
        let name = || "f".to_owned();
        let errors = [
            SiteError::Unreadable { pid: 1, source: std::io::Error::from_raw_os_error(1) },
            SiteError::NoCode { pid: 1 },
            SiteError::Unknown { name: name(), near: vec!["g".to_owned()] },
            SiteError::Stripped { name: name(), path: "/bin/f".to_owned() },
            SiteError::Ambiguous { name: name(), found: vec![name(), name()] },
            SiteError::Folded { name: name() },
            SiteError::NoLine { name: name(), nearest: vec![1, 2] },
            SiteError::NoFile { name: name() },
            SiteError::NoDebug { name: name(), path: name() },
            SiteError::Offset { name: name() },
            SiteError::NotInFile { name: name() },
            SiteError::NoInstruction { name: name(), around: [0, 4] },
            SiteError::Beyond { name: name(), bytes: 9 },
        ];
        for error in errors {
            assert_eq!(no_site(&error).lines().lines().count(), 3, "{error}");
        }
    }

    #[test]
    fn every_reason_why_nothing_could_be_run_has_three_lines() {
        let refusal = || dyno_sys::bpf::BpfError::Missing { what: "map", name: "points".to_owned() };
        let errors = [
            Error::ProbeRefused { source: refusal() },
            Error::ProbeUnable { source: refusal() },
            Error::NoProgress { asked: "x".to_owned(), reason: "it is empty".to_owned() },
            Error::NoFile { pid: 1, path: "/x".to_owned(), source: std::io::Error::from_raw_os_error(2) },
            Error::Replaced { pid: 1, after_s: 1.0 },
            Error::Ended { pid: 1, after_s: 1.0 },
            Error::NoProcess { pid: 1 },
        ];
        for error in errors {
            assert_eq!(not_run(&error).lines().lines().count(), 3, "{error}");
        }
    }
}
