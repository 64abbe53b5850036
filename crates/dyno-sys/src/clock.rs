//! Clocks, in nanoseconds. Read by workers once per loop turn, by the generator once per reply, and by the lab at the
//! edges of blocks. Nothing here keeps time: callers pass `now` on as an argument.

use crate::Pid;
use std::io;
use std::time::Duration;

const NS_PER_S: u64 = 1_000_000_000;

/// Nanoseconds since boot, never going back (`CLOCK_MONOTONIC`; through the vDSO, about 25 ns).
#[inline]
pub fn mono_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Nanoseconds since the machine's boot, sleep included (`CLOCK_BOOTTIME`): what starts of processes are counted in.
pub fn boot_ns() -> u64 {
    read_ns(libc::CLOCK_BOOTTIME)
}

/// Seconds since 1970 by the last timer tick (`CLOCK_REALTIME_COARSE`): up to 10 ms late, about 5 ns. For `Date:`.
#[inline]
pub fn real_coarse_s() -> u64 {
    read_ns(libc::CLOCK_REALTIME_COARSE) / NS_PER_S
}

/// Nanoseconds since 1970 (`CLOCK_REALTIME`): what files are dated by. It may be set.
pub fn real_ns() -> u64 {
    read_ns(libc::CLOCK_REALTIME)
}

/// CPU nanoseconds burnt by the calling thread, user and kernel (`CLOCK_THREAD_CPUTIME_ID`; a real system call).
#[inline]
pub fn thread_cpu_ns() -> u64 {
    read_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// CPU nanoseconds burnt by every thread, also ended ones, of process `pid`.
///
/// A thread that runs at this moment is counted up to its last scheduler tick (the answer may be 14 ms late); exact
/// when every thread sleeps. Its children are not counted. `ESRCH` when the process is gone.
pub fn process_cpu_ns(pid: Pid) -> io::Result<u64> {
    let mut id: libc::clockid_t = 0;
    // SAFETY: `id` is a live, writable clockid_t for the length of the call.
    let refused = unsafe { libc::clock_getcpuclockid(pid, &raw mut id) };
    if refused != 0 {
        return Err(io::Error::from_raw_os_error(refused));
    }
    try_read_ns(id)
}

/// Sleeps for `ns`. For control threads only: a worker waits in epoll.
pub fn sleep_ns(ns: u64) {
    std::thread::sleep(Duration::from_nanos(ns));
}

#[inline]
fn read_ns(id: libc::clockid_t) -> u64 {
    try_read_ns(id).expect("the clocks read here exist since Linux 2.6.32 and the pointer is ours")
}

#[inline]
fn try_read_ns(id: libc::clockid_t) -> io::Result<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a live, writable timespec for the length of the call.
    let answer = unsafe { libc::clock_gettime(id, &raw mut time) };
    crate::errno::checked(answer)?;
    Ok(time.tv_sec.cast_unsigned() * NS_PER_S + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn monotonic_time_never_goes_back() {
        let mut before = mono_ns();
        for _ in 0..1_000 {
            let now = mono_ns();
            assert!(now >= before, "{now} came after {before}");
            before = now;
        }
    }

    #[test]
    fn the_coarse_clock_agrees_with_the_standard_library() {
        let known = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        assert!(real_coarse_s().abs_diff(known) <= 2, "{} against {known}", real_coarse_s());
    }

    #[test]
    fn burning_moves_the_cpu_clocks_of_thread_and_process() {
        let process_ns = || process_cpu_ns(std::process::id().cast_signed()).unwrap();
        let (thread, process) = (thread_cpu_ns(), process_ns());
        let until = mono_ns() + 5_000_000_000;
        // The clock of a process that runs lags by up to a tick.
        while thread_cpu_ns() < thread + 1_000_000 || process_ns() < process + 1_000_000 {
            assert!(mono_ns() < until, "no CPU time was counted in 5 s");
        }
    }

    #[test]
    fn a_process_that_does_not_exist_has_no_clock() {
        assert_eq!(process_cpu_ns(i32::MAX - 1).unwrap_err().raw_os_error(), Some(libc::ESRCH));
    }

    #[test]
    fn sleeping_lasts_at_least_as_long_as_asked() {
        let start = mono_ns();
        sleep_ns(1_000_000);
        assert!(mono_ns() - start >= 1_000_000);
    }
}
