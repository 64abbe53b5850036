//! A system call that does nothing, many times over: what the kernel does for every call, and what filters add to it.
//!
//! An audit that measures times it in children of its own.

use crate::clock::mono_ns;

/// Calls before the clock starts: caches and branch predictors have seen the way then.
const WARM_UP: u32 = 1_000;

/// How long so many calls take, ns. It is `read` of no descriptor: servers may all make it, so that their filters let it pass.
#[must_use]
pub fn idle_calls_ns(calls: u32) -> u64 {
    (0..WARM_UP).for_each(|_| idle_call());
    let begun = mono_ns();
    (0..calls).for_each(|_| idle_call());
    mono_ns() - begun
}

fn idle_call() {
    // SAFETY: there is no descriptor -1, so that the kernel refuses before it looks at the place, and no byte is asked for.
    unsafe { libc::read(-1, std::ptr::null_mut(), 0) };
}

#[cfg(test)]
mod tests {
    use super::idle_calls_ns;

    /// The least of ten: whatever comes between makes it longer.
    #[test]
    fn ten_times_as_many_calls_take_longer() {
        let least_ns = |calls| (0..10).map(|_| idle_calls_ns(calls)).min();
        assert!(least_ns(100_000) > least_ns(10_000));
    }
}
