//! What tests that watch or measure other processes ask of the machine: the right to watch, and a place before others in
//! the line for a CPU. Tests of other crates read this file too.
#![allow(dead_code, clippy::unwrap_used)]

use dyno_sys::{Pid, proc};

/// Whether this user holds the right to watch his own processes, by what the kernel says of rights and not by whether it
/// works: root's rights, or kernel.perf_event_paranoid of 2 or less outside of a sandbox. In CI nothing may be passed over.
pub(crate) fn may_watch() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| proc::parse_status_field(&status, name).unwrap_or_default().to_owned();
    const PERFMON_OR_ADMIN: u64 = 1 << 38 | 1 << 21;
    let has_right = u64::from_str_radix(&field("CapEff"), 16).unwrap() & PERFMON_OR_ADMIN != 0;
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let is_open = paranoid.trim().parse::<i32>().unwrap() <= 2 && field("Seccomp") == "0";
    if !has_right && !is_open {
        assert!(std::env::var_os("CI").is_none(), "CI has the right to watch, or its tests say nothing");
        println!("not tried: this user may not watch his own processes here");
    }
    has_right || is_open
}

/// Twenty-eight times the share of another session: windows count where others take less than a twentieth. At -20, with a program on each CPU, each
/// probe that comes or goes waits three times as long for the kernel's own threads.
const BEFORE_OTHERS: &str = "-15";

/// A process that began a session of its own goes before others on the CPUs: a program that is made to be measured has them as
/// far as it wants them, whatever runs beside the tests. Where the kernel shares the CPUs among sessions first, a thread's own
/// weight says nothing outside of its session. Without the right to it all stays as it is.
///
/// Never the session of the tests: one with threads of weights far apart, first itself, keeps Linux 6.18's own threads off a
/// CPU for seconds and minutes, and each probe that comes or goes waits for them (RCU; `membarrier` beside such a one: 12 s at
/// worst, and 0.1 s beside one whose threads weigh the same).
pub(crate) fn before_other_sessions(pid: Pid) {
    let _ = std::fs::write(format!("/proc/{pid}/autogroup"), BEFORE_OTHERS);
}
