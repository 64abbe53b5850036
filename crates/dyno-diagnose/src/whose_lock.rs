//! Whose lock it is at which a thread waits, where a run-time makes locks for programs, or has one of its own. `waits` asks.

use dyno_record::profile::{Frame, Origin};

use super::names;

/// `take_gil` and its like; a build without its name is known by who calls it: nothing else waits with a time limit there.
pub(super) fn is_interpreter_lock(frames: &[&Frame]) -> bool {
    let user: Vec<&&Frame> = frames.iter().filter(|frame| frame.origin == Origin::User).collect();
    if user.iter().take(8).any(|frame| names::is(&frame.name, names::INTERPRETER_LOCK)) {
        return true;
    }
    let timed = user.iter().rposition(|frame| names::is(&frame.name, TIMED_CONDITION));
    let Some(timed) = timed else { return false };
    let mut above = user[timed + 1..].iter().skip_while(|frame| frame.name.starts_with("0x"));
    let hidden = user[timed + 1..].iter().take_while(|frame| frame.name.starts_with("0x")).count();
    hidden <= 2 && above.next().is_some_and(|frame| names::is(&frame.name, names::CALLS_INTERPRETER_LOCK))
}

const TIMED_CONDITION: &[&str] = &[
    "pthread_cond_timedwait*",
    "___pthread_cond_timedwait*",
    "__pthread_cond_timedwait*",
    "pthread_cond_clockwait*",
    "___pthread_cond_clockwait*",
];

/// Under this lock an interpreter runs programs: CPython's GIL, Ruby's GVL.
pub(super) const INTERPRETERS_LOCK: &str = "the interpreter's lock (GIL)";

/// Whose lock a word in memory is, where a run-time makes locks for programs.
pub(super) fn made_by(frames: &[&Frame]) -> Option<&'static str> {
    let has = |table: names::Table| frames.iter().any(|frame| names::is(&frame.name, table));
    match () {
        () if has(names::PYTHON_LOCK) => Some("a lock of Python's threading"),
        () if has(names::RUBY_MUTEX) => Some("a mutex of Ruby's"),
        () => None,
    }
}

/// Locks that a run-time keeps by other means than one word in memory.
pub(super) fn run_time_lock(frames: &[&Frame]) -> Option<&'static str> {
    let has = |table: names::Table| frames.iter().any(|frame| names::is(&frame.name, table));
    match () {
        () if is_interpreter_lock(frames) => Some(INTERPRETERS_LOCK),
        () if has(&["ObjectMonitor::enter*", "ObjectMonitor::EnterI*"]) => {
            Some("a monitor of Java (synchronized)")
        }
        () if has(&["Unsafe_Park", "Parker::park*"]) => {
            Some("a lock of java.util.concurrent (LockSupport.park)")
        }
        () => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    /// What is told of four threads that wait in turns, in the words of the first lock and of what to try.
    fn told(way: &str, back: &str) -> (String, String) {
        let mut scene = Scene::new(&[2.5; 4]).on("run;work", 100);
        for tid in 1..=4 {
            scene = scene.off(tid, WaitClass::Lock, way, 7.0).woken("0x7f00", tid % 4 + 1, back);
        }
        let found = scene.diagnosed().findings.remove(0);
        let lock = found.evidence.iter().find(|fact| fact.text.contains("waits of")).unwrap();
        (lock.text.clone(), found.next[0].text.clone())
    }

    /// Planted faults: CPython's own functions are the program's place (`PyCOND_*` not known); a lock of a program's is told by its address
    /// alone (`made_by` of nothing); holding it for less is advised where it is the interpreter's.
    #[test]
    fn a_lock_of_pythons_is_told_by_whose_it_is() {
        let gil =
            "_start;_PyEval_EvalFrameDefault;take_gil;PyCOND_TIMEDWAIT;pthread_cond_timedwait;futex_wait_[k]";
        let (lock, next) =
            told(gil, "_start;_PyEval_EvalFrameDefault;drop_gil;PyCOND_SIGNAL;pthread_cond_signal");
        assert!(lock.starts_with("the interpreter's lock (GIL): "), "{lock}");
        assert!(!lock.contains("Py"), "{lock}");
        assert!(next.contains("processes in place of threads"), "{next}");
        let lock = "_start;_PyEval_EvalFrameDefault;lock_PyThread_acquire_lock;PyThread_acquire_lock_timed;sem_wait;futex_wait_[k]";
        let (lock, next) = told(
            lock,
            "_start;_PyEval_EvalFrameDefault;lock_PyThread_release_lock;PyThread_release_lock;sem_post",
        );
        assert!(lock.starts_with("0x7f00, a lock of Python's threading: "), "{lock}");
        assert!(!lock.contains(" in "), "{lock}");
        assert!(next.starts_with("hold the lock for less"), "{next}");
    }
}
