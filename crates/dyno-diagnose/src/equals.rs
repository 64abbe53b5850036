//! Which waits are turns at a lock though no name says so: those that are ended by threads which wait at the same place.
//!
//! A semaphore of one, a condition with a word, Java's park and a latch that is woken by a signal are all used as locks.
//! Whoever gives such a lock back took it the same way, so it waits there too; work for a pool comes from somebody who does
//! not. Called by `waits`; it never looks at how long a single wait was.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::profile::{Frame, Origin, Profile, Stack, WaitClass};

use super::frames::leaf_first;
use super::idle::Idle;
use super::names;

/// Of the time that is waited at a place, what its own waiters must have ended. The rest are those who left last: somebody
/// who takes the lock without waiting gives it back as well.
const BY_EQUALS_MIN: f64 = 0.7;
/// At each moment one holds what the others wait for: a pool whose threads all wait has nothing to do.
const ACTIVE_MIN: f64 = 0.5;
/// Of the waits of Java's threads for each other, those that a clock may end. Who wants a lock there waits until he has it; who
/// waits for the next task of a timer's queue wakes by the clock, and then one of the others to wait in his place.
const BY_CLOCK_MAX: f64 = 0.25;
/// Fewer waits prove nothing.
const WAITS_MIN: u64 = 8;
/// Frames of a wait that make its place: beyond them the same lock is reached on many ways. Always what called into a standard
/// library: all channels of a Rust program wait in the same functions, nine of them.
const PLACE_FRAMES: usize = 8;

/// What Rust calls all closures of a function, and where the library calls a thread's function, which may be folded into it: they are
/// told from each other by their addresses.
const CLOSURE: &str = "{{closure}}";
const BEGINS: &str = "__rust_begin_short_backtrace";

/// Of Java's, those beyond the functions in which all of them park.
const CALLER_FRAMES: usize = 2;

/// All places at which waits are turns.
#[derive(Default)]
pub(super) struct Equals {
    turns: BTreeSet<String>,
}

#[derive(Default)]
struct Place {
    waited: BTreeMap<u32, u64>,
    ns: u64,
    by_equals_ns: u64,
    waits: u64,
}

impl Equals {
    /// Where threads that wait there have nothing to do it is no turn.
    pub(super) fn of(profile: &Profile, idle: &Idle) -> Equals {
        let mut places = BTreeMap::<String, Place>::new();
        let asked = || profile.stacks.iter().filter(|stack| may_be_a_turn(profile, stack));
        for stack in asked() {
            for key in keys(profile, stack) {
                let place = places.entry(key).or_default();
                *place.waited.entry(tid(profile, stack)).or_default() += stack.weight_ns;
                place.ns += stack.weight_ns;
                place.waits += stack.samples;
            }
        }
        for stack in asked() {
            let Some(waker) = waker(profile, stack).filter(|waker| *waker != tid(profile, stack)) else {
                continue;
            };
            for key in keys(profile, stack) {
                let place = places.entry(key).or_default();
                if place.waited.contains_key(&waker) {
                    place.by_equals_ns += stack.weight_ns;
                }
            }
        }
        let window_ns = profile.duration_s * 1e9;
        let by_clock = parked_by_the_clock(profile);
        let for_work = |place: &Place| {
            let waiters = || place.waited.keys();
            let timed: u64 = waiters().filter_map(|tid| by_clock.get(tid)).sum();
            let those = waiters().copied().collect();
            !idle.have_work(&those) && idle.wait_for_work(&those, place.ns)
                || timed as f64 > BY_CLOCK_MAX * (place.waits + timed) as f64
        };
        let is_of_turns = |place: &Place| place.is_of_turns(window_ns) && !for_work(place);
        let turns = places.into_iter().filter(|(_, place)| is_of_turns(place));
        Equals { turns: turns.map(|(key, _)| key).collect() }
    }

    /// Whether this wait was for a turn: the lock's name, by its address where several threads wait at it.
    pub(super) fn turn(&self, profile: &Profile, stack: &Stack) -> Option<String> {
        if !may_be_a_turn(profile, stack) {
            return None;
        }
        keys(profile, stack).into_iter().find(|key| self.turns.contains(key))
    }

    /// Whether a thread that waits for a CPU stands where turns are waited for.
    pub(super) fn is_place_of_turns(&self, profile: &Profile, stack: &Stack) -> bool {
        way(&leaf_first(profile, stack)).is_some_and(|way| self.turns.contains(&way))
    }
}

impl Place {
    fn is_of_turns(&self, window_ns: f64) -> bool {
        let most = (self.waited.len() as f64 - ACTIVE_MIN) * window_ns;
        self.waited.len() >= 2
            && self.waits >= WAITS_MIN
            && self.by_equals_ns as f64 >= BY_EQUALS_MIN * self.ns as f64
            && self.ns as f64 <= most
    }
}

/// Waits of Java's threads for each other that a clock ended, wherever they were.
fn parked_by_the_clock(profile: &Profile) -> BTreeMap<u32, u64> {
    let mut waits = BTreeMap::new();
    for stack in profile.stacks.iter().filter(|stack| waker(profile, stack) == Some(0)) {
        if leaf_first(profile, stack).iter().any(|frame| names::is(&frame.name, names::PARK)) {
            *waits.entry(tid(profile, stack)).or_default() += stack.samples;
        }
    }
    waits
}

fn tid(profile: &Profile, stack: &Stack) -> u32 {
    profile.threads[stack.thread as usize].tid
}

fn waker(profile: &Profile, stack: &Stack) -> Option<u32> {
    stack.waker.and_then(|at| profile.wakers.get(at as usize)).map(|waker| waker.tid)
}

/// Waits in futexes, but not those of idle threads of run-times and of barriers; and waits for an event that a signal
/// ended, for so processes wake each other. Data that comes over a socket is no turn.
fn may_be_a_turn(profile: &Profile, stack: &Stack) -> bool {
    let frames = leaf_first(profile, stack);
    let has = |table: names::Table| frames.iter().any(|frame| names::is(&frame.name, table));
    match stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default() {
        WaitClass::Lock => {
            ![names::IDLE_RUN_TIME, names::TOGETHER, names::COLLECTED_HEAPS].into_iter().any(has)
        }
        WaitClass::Network | WaitClass::Other => signalled(profile, stack),
        _ => false,
    }
}

fn signalled(profile: &Profile, stack: &Stack) -> bool {
    let waker = stack.waker.and_then(|at| profile.wakers.get(at as usize));
    let mut frames = waker.into_iter().flat_map(|waker| &waker.frames);
    frames.any(|at| names::is(&profile.frames[*at as usize].name, names::SIGNAL))
}

/// What the place of a wait is known by: the word in memory, and the way there.
fn keys(profile: &Profile, stack: &Stack) -> Vec<String> {
    let is_futex = stack.wait.as_ref().is_some_and(|wait| wait.class == WaitClass::Lock);
    let word = stack.wait.as_ref().and_then(|wait| wait.object.clone()).filter(|_| is_futex);
    word.into_iter().chain(way(&leaf_first(profile, stack))).collect()
}

/// The innermost functions, to the caller of a standard library's at least; a single one is no way. Java's threads park in the same
/// few functions wherever they are: what called these is their place, and where that is interpreted it has no name.
fn way(frames: &[&Frame]) -> Option<String> {
    let names: Vec<&str> = user(frames).map(|frame| frame.name.as_str()).collect();
    let java = names.iter().rposition(|name| names::is(name, names::PARKED));
    let Some(beyond) =
        java.map(|at| at + 1).filter(|_| names.iter().any(|name| names::is(name, names::PARK)))
    else {
        let of_library = |name: &&&str| names::is(name, names::WAITS_FOR_ANYBODY) && !name.ends_with(BEGINS);
        let of_library = names.iter().take_while(of_library).count();
        let place = names[..names.len().min(PLACE_FRAMES.max(of_library + 1))].join(";");
        let is_one_of_many = |frame: &&&Frame| [CLOSURE, BEGINS].iter().any(|end| frame.name.ends_with(end));
        let at = user(frames).nth(of_library).filter(is_one_of_many).map_or(0, |caller| caller.address);
        return (names.len() >= 2).then(|| format!("{place} {at:x}"));
    };
    let own = names[beyond..].iter().take_while(|name| !names::is(name, names::ENTERS_JAVA));
    let mut own = own.filter(|name| **name != names::INTERPRETED).take(CALLER_FRAMES).peekable();
    own.peek()?;
    Some(own.copied().collect::<Vec<&str>>().join(";"))
}

fn user<'f>(frames: &'f [&'f Frame]) -> impl Iterator<Item = &'f &'f Frame> {
    frames.iter().filter(|frame| frame.origin == Origin::User)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::profile::{Span, ThreadState, WaitClass};

    use crate::scene::{S, Scene};

    /// Four threads wait at words of their own, three quarters of the time; each is woken by this thread, in this stack.
    fn parked(way: &str, waker: impl Fn(u32) -> u32, by: &str, seconds: f64) -> Scene {
        let mut scene = Scene::new(&[2.5, 2.5, 2.5, 2.5, 0.1]).on("run;work", 100);
        for tid in 1..=4 {
            scene = scene.off(tid, WaitClass::Lock, way, seconds).woken(&format!("0x{tid}"), waker(tid), by);
        }
        scene
    }

    const PARK: &str =
        "start;0x7f10;0x7f22;Unsafe_Park;Parker::park(bool, long);pthread_cond_wait;futex_wait_[k]";
    /// On another way, by another call.
    const TIMED: &str =
        "start;0x7f10;0x7f99;Unsafe_Park;Parker::park(bool, long);pthread_cond_timedwait;futex_wait_[k]";
    const UNPARK: &str = "start;0x7f10;0x7f55;Unsafe_Unpark;pthread_cond_signal;futex_wake_[k]";

    #[test]
    fn threads_that_unpark_each_other_contend_and_workers_that_a_producer_unparks_do_not() {
        let turns = parked(PARK, |tid| tid % 4 + 1, UNPARK, 7.5);
        assert_eq!(turns.first(), Some(Class::LockContention));
        assert_eq!(parked(PARK, |_| 5, UNPARK, 7.5).classes(), []);
    }

    /// A pool's idle threads beside a lock, all of them named: the same eight functions are innermost. Planted faults: these are the
    /// place (`CALLER_FRAMES` of 0); what is interpreted is one place.
    #[test]
    fn where_javas_threads_park_is_what_called_the_parking() {
        let park = |callers: &str| {
            format!(
                "StubRoutines (1);{callers};jdk.internal.misc.Unsafe.park;Unsafe_Park;Parker::park(bool, long);___pthread_cond_wait;__pthread_cond_wait_common;__futex_abstimed_wait_common;futex_wait_[k]"
            )
        };
        let by = "run;Unsafe_Unpark;pthread_cond_signal;futex_wake_[k]";
        let told = |callers: &str| parked(&park(callers), |tid| tid % 4 + 1, by, 7.5).first();
        let lock = "java.util.concurrent.locks.ReentrantLock.lock;java.util.concurrent.locks.AbstractQueuedSynchronizer.acquire";
        assert_eq!(told(lock), Some(Class::LockContention));
        assert_eq!(told("Interpreter;Interpreter;Interpreter"), None);
        assert_eq!(told(&format!("{lock};Interpreter")), Some(Class::LockContention));
    }

    /// Each of Ruby's threads waits for the interpreter at a word of its own, and is woken by one of the others: of any two
    /// both often wait at once, because a third has the turn.
    #[test]
    fn turns_at_words_of_their_own_are_one_lock() {
        let spans = (0..40_u64).flat_map(|slot| {
            (0..4_u32).map(move |thread| {
                let runs = slot % 4 == u64::from(thread);
                Span {
                    thread,
                    from_ns: slot * S / 4,
                    to_ns: (slot + 1) * S / 4,
                    state: if runs { ThreadState::Running } else { ThreadState::Waiting },
                    class: (!runs).then_some(WaitClass::Lock),
                }
            })
        });
        let turns = parked(
            "run;0x20fe00;rb_native_cond_wait;pthread_cond_wait;futex_wait_[k]",
            |tid| tid % 4 + 1,
            "run;0x2116e0;rb_native_cond_signal;pthread_cond_signal;futex_wake_[k]",
            7.5,
        );
        let turns = turns.with(|seen| seen.off_cpu.as_mut().unwrap().timeline = spans.collect());
        assert_eq!(turns.first(), Some(Class::LockContention));
    }

    /// The workers of a `ScheduledThreadPoolExecutor`. Planted fault: clocks do not count (`BY_CLOCK_MAX` of 1).
    #[test]
    fn threads_that_wait_for_the_next_task_of_a_timer_wait_for_work() {
        let mut workers = parked(PARK, |tid| tid % 4 + 1, UNPARK, 7.0);
        assert_eq!(workers.first(), Some(Class::LockContention));
        for tid in 1..=4 {
            workers = workers.off(tid, WaitClass::Lock, TIMED, 0.5).woken(
                &format!("0x{tid}"),
                0,
                "hrtimer_wakeup_[k]",
            );
        }
        assert_eq!(workers.classes(), []);
    }

    /// Two workers behind a channel and two who ask them and wait for the answer in a channel: both wait in the same functions of
    /// Rust's library, and each side wakes the other. Planted faults: the innermost eight functions are the place, whoever called
    /// them; closures are told by their name alone; the library ends where all of a stack does (`BEGINS` never found).
    #[test]
    fn threads_that_ask_and_those_that_answer_by_channels_hold_no_lock() {
        let recv = |caller: &str| {
            format!(
                "std::thread::run;{caller};std::sync::mpsc::Receiver<T>::recv;std::sync::mpmc::list::Channel<T>::recv;std::sync::mpmc::context::Context::with;std::thread::local::LocalKey<T>::try_with;std::sync::mpmc::context::Context::with::{{{{closure}}}};<std::sync::mpmc::context::Context>::wait_until;<std::thread::thread::Thread>::park;<std::sys::sync::thread_parking::futex::Parker>::park;std::sys::pal::unix::futex::futex_wait;syscall;futex_wait_[k]"
            )
        };
        let desk = |callers: [&str; 2]| {
            let mut scene = Scene::new(&[2.5; 4]).on("run;work", 100);
            for tid in 1..=4_u32 {
                let way = recv(callers[usize::from(tid > 2)]);
                let waker = (tid + 1) % 4 + 1;
                scene = scene.off(tid, WaitClass::Lock, &way, 7.0).woken(&format!("0x{tid}"), waker, "send");
            }
            scene
        };
        assert_eq!(desk(["desk::worker", "desk::serve"]).classes(), []);
        assert_eq!(desk(["desk::turn", "desk::turn"]).first(), Some(Class::LockContention));
        for caller in ["desk::main::{{closure}}", "std::sys::backtrace::__rust_begin_short_backtrace"] {
            let same = desk([caller; 2]);
            assert_eq!(same.first(), Some(Class::LockContention), "one place: {caller}");
            let apart = same.with(|seen| {
                let profile = seen.off_cpu.as_mut().unwrap();
                let at = profile.frames.iter().position(|frame| frame.name == caller).unwrap();
                let other = super::Frame { address: 0x1234, ..profile.frames[at].clone() };
                profile.frames.push(other);
                let last = profile.frames.len() as u32 - 1;
                for stack in profile.stacks.iter_mut().filter(|stack| stack.thread >= 2) {
                    let there = stack.frames.iter_mut().filter(|frame| **frame == at as u32);
                    there.for_each(|frame| *frame = last);
                }
            });
            assert_eq!(apart.classes(), [], "{caller}");
        }
    }

    #[test]
    fn a_pool_whose_threads_all_wait_holds_nothing() {
        let cascade = parked(PARK, |tid| tid % 4 + 1, UNPARK, 9.5);
        assert_eq!(cascade.classes(), []);
    }

    #[test]
    fn semaphores_and_conditions_that_equals_hand_on_are_locks() {
        for way in
            ["run;sem_wait;__new_sem_wait_slow64;futex_wait_[k]", "run;pthread_cond_wait;futex_wait_[k]"]
        {
            let scene = parked(way, |tid| tid % 4 + 1, "run;sem_post;futex_wake_[k]", 7.0);
            assert_eq!(scene.first(), Some(Class::LockContention), "{way}");
        }
        let barrier = parked("run;pthread_barrier_wait;futex_wait_[k]", |tid| tid % 4 + 1, "run;x", 7.0);
        assert_eq!(barrier.classes(), []);
    }

    #[test]
    fn processes_that_wake_each_other_by_signals_contend_and_those_that_get_data_do_not() {
        let latch = |by: &str| {
            let mut scene = Scene::new(&[2.5; 4]).on("run;work", 100);
            for tid in 1..=4 {
                scene = scene.off(tid, WaitClass::Network, "run;sleep_for_it;epoll_wait", 7.0).woken(
                    "socket",
                    tid % 4 + 1,
                    by,
                );
            }
            scene
        };
        assert_eq!(latch("run;give_back;kill").first(), Some(Class::LockContention));
        assert_eq!(latch("run;answer;send").classes(), []);
    }

    #[test]
    fn waiting_for_an_interpreters_lock_is_waiting_for_a_lock() {
        let waits = |way: &str| {
            let mut scene = Scene::new(&[2.5; 4]).on("run;work", 100);
            for tid in 1..=4 {
                scene = scene.off(tid, WaitClass::Lock, way, 7.0).woken("0x7f", 99, "0x1");
            }
            scene.first()
        };
        let named = "start;_PyEval_EvalFrameDefault;take_gil;pthread_cond_timedwait;futex_wait_[k]";
        let stripped = "start;_PyEval_EvalFrameDefault;0x4f92c0;pthread_cond_timedwait;futex_wait_[k]";
        assert_eq!(
            (waits(named), waits(stripped)),
            (Some(Class::LockContention), Some(Class::LockContention))
        );
        assert_eq!(waits("start;_PyEval_EvalFrameDefault;lock_acquire;sem_wait;futex_wait_[k]"), None);
    }

    /// Planted faults: one waiter is enough; seven waits are; whoever ended them; all of them may wait at once.
    #[test]
    fn a_place_of_turns_has_two_who_wait_for_each_other_and_not_both_at_once() {
        let is_so = |tids: u32, waits: u64, by_equals_ns: u64, ns: u64| {
            let waited = (0..tids).map(|tid| (tid, 1)).collect();
            super::Place { waited, ns, by_equals_ns, waits }.is_of_turns(1_000.0)
        };
        assert!(is_so(2, 8, 700, 1_000));
        assert!(!is_so(1, 8, 350, 500) && !is_so(2, 7, 700, 1_000) && !is_so(2, 8, 699, 1_000));
        assert!(is_so(2, 8, 1_500, 1_500) && !is_so(2, 8, 1_501, 1_501));
    }
}
