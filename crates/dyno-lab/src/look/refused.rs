//! Why a process could not be watched, in three lines: samples here, waits in [`not_watched`].

use std::os::unix::fs::MetadataExt;

use dyno_profile::{Error, offcpu};
use dyno_sys::Pid;
use dyno_sys::bpf::BpfError;

use crate::failure::{Failure, chain};
use crate::user::{is_root, user_id};

/// Why nothing was sampled, in three lines.
#[must_use]
pub fn not_profiled(error: &Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        Error::NoProcess { .. } | Error::Ended { .. } => {
            failure.likely("it has ended, or it is another number").try_this("ps -e")
        }
        Error::Zombie { pid } => failure
            .likely("its parent has not waited for it; nothing runs in it any more")
            .try_this(format!("ps -o pid,ppid,stat,comm -p {pid}")),
        Error::NoCpu { online, .. } => failure
            .likely("it is switched off, or it is another number")
            .try_this(format!("dyno profile -a -C {online}")),
        Error::Own { .. } => {
            failure.likely("a shell's $$ became dyno, by exec").try_this("dyno profile -- COMMAND")
        }
        Error::Refused { what, paranoid, .. } => refused(failure, what, *paranoid),
        Error::NoEvent { .. } => {
            failure.likely("a virtual machine shows no hardware counters").try_this("-e cpu-clock")
        }
        Error::Descriptors { .. } => failure
            .likely("an event is a descriptor, and every thread needs one per CPU")
            .try_this("ulimit -Hn 1048576, or: dyno profile -t TID"),
        Error::Ring { .. } => failure
            .likely("this user may not lock more memory (kernel.perf_event_mlock_kb, ulimit -l)")
            .try_this("sudo sysctl kernel.perf_event_mlock_kb=4096"),
        Error::TooSeldom { .. } => failure
            .likely("kernel.perf_event_max_sample_rate was lowered, by hand or by the kernel (perf: interrupt took too long)")
            .try_this("sudo sysctl kernel.perf_event_max_sample_rate=100000"),
        Error::Perf { .. }
        | Error::Replaced { .. }
        | Error::ProbeRefused { .. }
        | Error::ProbeUnable { .. }
        | Error::NoProgress { .. }
        | Error::NoProbe { .. }
        | Error::ParticipantEnded { .. }
        | Error::NoFile { .. } => failure
            .likely("a kernel without perf events, or a sandbox that forbids them (seccomp, a container)")
            .try_this("ls /proc/sys/kernel/perf_event_paranoid"),
    }
}

fn refused(failure: Failure, what: &str, paranoid: Option<i32>) -> Failure {
    let level = paranoid.unwrap_or(-1);
    let number = what.strip_prefix("process ").or_else(|| what.strip_prefix("thread "));
    let pid = number.and_then(|pid| pid.parse::<Pid>().ok());
    let foreign = pid.and_then(owner_of).is_some_and(|owner| owner != user_id());
    if foreign {
        return failure.likely("it belongs to another user").try_this("sudo dyno profile …, or as its user");
    }
    if what == "the machine" {
        let likely =
            format!("kernel.perf_event_paranoid is {level} here; the whole machine needs 0, or root");
        return failure.likely(likely).try_this("sudo dyno profile -a");
    }
    if level > 2 {
        let likely =
            format!("kernel.perf_event_paranoid is {level} here; one's own processes need 2, or root");
        return failure.likely(likely).try_this("sudo sysctl kernel.perf_event_paranoid=2");
    }
    failure
        .likely("it may not be traced: it changed its user, or a sandbox forbids it")
        .try_this("sudo dyno profile …")
}

fn owner_of(pid: Pid) -> Option<u32> {
    std::fs::metadata(format!("/proc/{pid}")).ok().map(|folder| folder.uid())
}

/// Why no waits were recorded, in three lines.
#[must_use]
pub fn not_watched(error: &offcpu::Error) -> Failure {
    let failure = Failure::error(chain(error));
    match error {
        offcpu::Error::Gone { .. } => {
            failure.likely("it has ended, or it is another number").try_this("ps -e")
        }
        offcpu::Error::Zombie { pid } => failure
            .likely("its parent has not waited for it; nothing runs in it any more")
            .try_this(format!("ps -o pid,ppid,stat,comm -p {pid}")),
        offcpu::Error::Itself { .. } => {
            failure.likely("a shell's $$ became dyno, by exec").try_this("dyno offcpu -- COMMAND")
        }
        offcpu::Error::NoProcess => {
            failure.likely("the target is a thread, or the machine").try_this("dyno offcpu PID")
        }
        offcpu::Error::Refused { .. } => bpf_refused(),
        offcpu::Error::Unable { source: BpfError::Namespace, .. } => failure.in_a_container(),
        offcpu::Error::Unable { .. } => failure
            .likely("the kernel is older than 5.17, or was built without BTF (CONFIG_DEBUG_INFO_BTF)")
            .try_this("ls -l /sys/kernel/btf/vmlinux; uname -r"),
        offcpu::Error::Perf(error) => by_perf(error),
        offcpu::Error::Wait(_) => {
            failure.likely("descriptors or kernel memory are short").try_this("ulimit -a")
        }
    }
}

/// Records of switches are the kernel's side: they need more than samples of user code.
fn by_perf(error: &Error) -> Failure {
    let Error::Refused { paranoid, .. } = error else { return not_profiled(error) };
    let level = paranoid.unwrap_or(-1);
    if level < 2 || is_root() {
        return not_profiled(error);
    }
    Failure::error(chain(error))
        .likely(format!("kernel.perf_event_paranoid is {level} here; records of switches need 1, or root"))
        .try_this("sudo dyno offcpu …")
}

/// The chain of causes ends in the verifier's words, which help nobody who lacks a right.
fn bpf_refused() -> Failure {
    let lockdown = std::fs::read_to_string("/sys/kernel/security/lockdown").unwrap_or_default();
    let failure = Failure::error("cannot watch the scheduler: the kernel refuses BPF");
    if is_root() && lockdown.contains("[confidentiality]") {
        let likely = "the kernel is locked down (confidentiality): nobody may read it";
        return failure.likely(likely).try_this("cat /sys/kernel/security/lockdown");
    }
    if is_root() {
        let likely =
            "root without CAP_BPF, CAP_PERFMON or CAP_SYS_ADMIN: a container or a sandbox keeps them";
        return failure.likely(likely).try_this("grep CapEff /proc/self/status");
    }
    failure
        .likely("it needs root, or CAP_BPF and CAP_PERFMON; or, for your own, kernel.perf_event_paranoid 1")
        .try_this("sudo dyno offcpu …")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused_at(what: &str, paranoid: i32) -> String {
        let source = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        not_profiled(&Error::Refused { what: what.to_owned(), paranoid: Some(paranoid), source }).lines()
    }

    #[test]
    fn a_refusal_names_the_setting_and_the_command_that_helps() {
        let own = refused_at(&format!("process {}", std::process::id()), 3);
        assert!(own.contains("perf_event_paranoid is 3 here") && own.contains("sysctl"), "{own}");
        let machine = refused_at("the machine", 2);
        assert!(machine.contains("needs 0, or root"), "{machine}");
    }

    #[test]
    fn every_error_has_three_lines() {
        let source = || std::io::Error::from_raw_os_error(1);
        let errors = [
            Error::NoProcess { pid: 1 },
            Error::Zombie { pid: 1 },
            Error::Own { pid: 1 },
            Error::NoCpu { cpu: 9, online: "0-1".to_owned() },
            Error::NoEvent { event: "cycles", source: source() },
            Error::Descriptors { threads: 1, cpus: 2, source: source() },
            Error::Ring { bytes: 1, source: source() },
            Error::Perf { operation: "open a perf event", source: source() },
        ];
        for error in errors {
            assert_eq!(not_profiled(&error).lines().lines().count(), 3, "{error}");
        }
    }

    #[test]
    fn every_reason_against_watching_waits_has_three_lines() {
        let refused = || dyno_sys::bpf::BpfError::Missing { what: "map", name: "ring".to_owned() };
        let errors = [
            offcpu::Error::Gone { pid: 1 },
            offcpu::Error::Zombie { pid: 1 },
            offcpu::Error::Itself { pid: 1 },
            offcpu::Error::NoProcess,
            offcpu::Error::Refused { source: refused() },
            offcpu::Error::Unable { source: refused() },
            offcpu::Error::Wait(std::io::Error::from_raw_os_error(9)),
        ];
        for error in errors {
            assert_eq!(not_watched(&error).lines().lines().count(), 3, "{error}");
        }
    }
}
