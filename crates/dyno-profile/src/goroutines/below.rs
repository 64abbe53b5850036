//! Which process of a target is the Go program to look at: what is named may be a wrapper around it, or `go run`.
//!
//! Called by a diagnosis before it looks at goroutines; it changes nothing.

use dyno_sys::clock::sleep_ns;
use dyno_sys::{Pid, proc};

/// So many processes of a target are asked whether they are Go's.
const PROCESSES_MAX: usize = 64;

/// Where several are Go's, how long they are watched to see which of them is at work.
const GLANCE_NS: u64 = 50_000_000;

/// Of a process and its descendants, the Go program that is at work: the one that runs most now.
#[must_use]
pub fn below(pid: Pid) -> Option<Pid> {
    let of_go = all_below(pid);
    if of_go.len() < 2 {
        return of_go.first().copied();
    }
    let run = || -> Vec<u64> { of_go.iter().map(|pid| proc::run_ns(*pid).unwrap_or(0)).collect() };
    let before = run();
    sleep_ns(GLANCE_NS);
    at_work(&of_go, &before, &run())
}

/// Of a process and its descendants, those that run a Go program.
#[must_use]
pub fn all_below(pid: Pid) -> Vec<Pid> {
    proc::tree(pid).into_iter().take(PROCESSES_MAX).filter(|pid| super::is_go(*pid)).collect()
}

/// Who ran most between two looks; where that is the same, who ran most before. What `go run` spent on building is long ago.
fn at_work(pids: &[Pid], before: &[u64], after: &[u64]) -> Option<Pid> {
    let ran = pids.iter().zip(before.iter().zip(after));
    let most = ran.max_by_key(|(_, (before, after))| (after.saturating_sub(**before), **after));
    most.map(|(pid, _)| *pid)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: who has had most of the CPU since it began.
    #[test]
    fn who_is_at_work_stands_before_who_was() {
        assert_eq!(at_work(&[7, 8], &[900, 10], &[900, 40]), Some(8), "go run, and what it built and began");
        assert_eq!(at_work(&[7, 8], &[900, 10], &[960, 40]), Some(7), "both work");
        assert_eq!(at_work(&[7, 8], &[900, 10], &[900, 10]), Some(7), "none does");
        assert_eq!(at_work(&[], &[], &[]), None);
    }
}
