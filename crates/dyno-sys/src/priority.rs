//! The place of a thread in the line for a CPU. Whoever watches thousands of busy threads asks for the first one, for as
//! long as it watches; without the right to it nothing changes. Whoever works beside those that serve takes the last one.

use crate::Tid;

/// Before all others of the usual kind.
const FIRST: libc::c_int = -20;

/// Behind them: a sixtieth of the share of one in the middle (kernel/sched/core.c, sched_prio_to_weight).
const LAST: libc::c_int = 19;

/// The calling thread stands first while this lives.
#[derive(Debug)]
pub struct First {
    /// The thread, and where it stood before; none where it may not.
    before: Option<(Tid, libc::c_int)>,
}

impl First {
    /// Asks for it; needs CAP_SYS_NICE, or root.
    pub fn in_line() -> First {
        // SAFETY: the call takes nothing.
        let tid = unsafe { libc::gettid() };
        // SAFETY: the call takes no pointer.
        let nice = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
        let is_first = set(tid, FIRST);
        First { before: is_first.then_some((tid, nice)) }
    }
}

impl Drop for First {
    fn drop(&mut self) {
        if let Some((tid, nice)) = self.before {
            set(tid, nice);
        }
    }
}

/// The calling thread stands behind all others of the usual kind from now on, and so do those that it starts: it works on
/// what they leave.
pub fn give_way() {
    // SAFETY: the call takes nothing.
    let tid = unsafe { libc::gettid() };
    // Everybody may stand further behind.
    set(tid, LAST);
}

fn set(tid: Tid, nice: libc::c_int) -> bool {
    // SAFETY: the call takes no pointer.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, tid.cast_unsigned(), nice) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nice() -> libc::c_int {
        // SAFETY: the call takes no pointer.
        unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) }
    }

    #[test]
    fn who_gives_way_stands_last_with_those_it_starts() {
        let before = nice();
        let theirs = std::thread::spawn(|| {
            give_way();
            (nice(), std::thread::spawn(nice).join())
        });
        assert!(matches!(theirs.join(), Ok((LAST, Ok(LAST)))));
        assert_eq!(nice(), before, "the others stand where they stood");
    }

    #[test]
    fn a_thread_stands_where_it_stood_once_it_is_no_longer_first() {
        let before = nice();
        let first = First::in_line();
        assert_eq!(nice(), if first.before.is_some() { FIRST } else { before });
        drop(first);
        assert_eq!(nice(), before);
    }
}
