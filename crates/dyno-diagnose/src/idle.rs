//! When all who wait at one place wait at once: then nobody holds what they wait for, and they wait for work.
//!
//! A lock that is waited for is held by somebody, who runs, wants a CPU, or waits for something else. Workers that hand on
//! whose turn it is to look for work (a leader and its followers, a lock around a queue's pipe, accept in turns) wake
//! each other just as a lock's waiters do; but between two pieces of work all of them wait. Called by `waits` and
//! `equals`; without a timeline it does not answer.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::profile::{Profile, Stack, ThreadState, WaitClass};

use super::frames::leaf_first;
use super::names;

/// Of the time in which somebody waits there, the part in which all do, from which on they wait for work.
const ALL_MIN: f64 = 0.3;
/// The same as a part of what chance says of workers that know nothing of each other, and the least that proves anything: of those of
/// which n work at a time on average, none does for exp(-n) of the time. A holder does not wait.
const OF_CHANCE: f64 = 0.5;
const ALL_LEAST: f64 = 0.1;
/// A shorter part of the window proves nothing, and of a long one a tenth of a second proves as much: where threads wait so
/// often that no more is kept, it holds thousands of waits.
const WINDOW_MIN: f64 = 0.1;
const LONG_WINDOW_NS: f64 = 1e9;
/// A thread that ran for less did nothing.
const RAN_MIN: f64 = 0.01;
/// Of what a thread waits for others' processes, what must be for work to come for all of it to be.
const EVENTS_MIN: f64 = 0.5;

/// Of the window, what the threads together may sleep for a time: a sleeper may hold a lock, and where run-times sleep in a
/// futex its waits look like the others'.
const SLEPT_MAX: f64 = 0.1;

/// Requests that are owed an answer, beyond those that threads work on, for each thread that waits at a lock, from which on they
/// do not wait for work: they have it. One that is owed may be at its holder. Where many more are owed they are elsewhere.
const OWED_MIN: f64 = 0.7;
const OWED_MAX: f64 = 1.5;
const OWED_AT_ALL_MIN: f64 = 2.0;

/// One holder after another ends waits about as often as another time: between half of the ends lie two thirds of their mean
/// distance. Where it is less than this part, they end together, and nothing was held: news came for all.
const TOGETHER_MAX: f64 = 0.1;
/// Fewer ends show no rhythm.
const ENDS_MIN: usize = 8;

/// Threads that wait at a place and, at other times, for a connection, on average, from which on nobody waits for work under a lock there:
/// who has such a lock waits for work alone.
const ACCEPTING_MIN: f64 = 1.5;

/// Calls that wait until there is something to do; where the descriptor is a pipe, reading is one too.
const EVENTS: &[&str] = &[
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "accept",
    "accept4",
    // Answers come through a ring as well: `rings` says that this was not seen.
    RING,
];

/// The call that waits for whatever was asked for in a ring.
pub(super) const RING: &str = "io_uring_enter";

/// Whether who waits in it waits for something to do, and not for an answer.
pub(super) fn is_event_call(call: &str) -> bool {
    EVENTS.contains(&call)
}

/// Whether a call takes a connection.
pub(super) fn is_accept(call: &str) -> bool {
    matches!(call, "accept" | "accept4")
}

/// Calls that a library waits in for one answer, with a time limit.
const POLLS: &[&str] = &["poll", "ppoll", "select", "pselect6"];

/// Whether a call may wait for an answer as well as for work.
pub(super) fn is_poll(call: &str) -> bool {
    POLLS.contains(&call)
}

/// What a thread did when.
#[derive(Debug, Clone, Copy)]
struct Stretch {
    from: u64,
    to: u64,
    at_lock: bool,
}

/// The stretches of each thread in which it had nothing to do, or waited for a turn.
#[derive(Debug, Default)]
pub(super) struct Idle {
    window_ns: f64,
    stretches: BTreeMap<u32, Vec<Stretch>>,
    /// From the first to the last that is known of a thread.
    known: BTreeMap<u32, (u64, u64)>,
    ran: BTreeSet<u32>,
    /// How long each slept in a futex.
    slept_ns: BTreeMap<u32, u64>,
    own: BTreeSet<u32>,
    /// How long each waited for a connection.
    accepted_ns: BTreeMap<u32, u64>,
    /// Requests that were taken and not answered yet, on average.
    owed: f64,
}

impl Idle {
    /// `owed`: requests that were taken and not answered yet, on average, as far as it is known.
    pub(super) fn of(profile: &Profile, owed: f64) -> Idle {
        let window_ns = profile.duration_s * 1e9;
        let tid = |thread: u32| profile.threads[thread as usize].tid;
        let for_events = waits_for_events(profile);
        let mut idle = Idle { window_ns, owed, ..Idle::default() };
        idle.slept_ns = sleeps_in_futexes(profile);
        idle.own = profile.threads.iter().map(|thread| thread.tid).collect();
        for stack in &profile.stacks {
            let call = stack.wait.as_ref().and_then(|wait| wait.system_call.as_deref());
            if call.is_some_and(is_accept) {
                *idle.accepted_ns.entry(tid(stack.thread)).or_default() += stack.weight_ns;
            }
        }
        let ran = |ns: u64| ns as f64 >= RAN_MIN * window_ns;
        let times = profile.thread_times.iter().filter(|time| ran(time.running_ns + time.runnable_ns));
        idle.ran = times.map(|time| tid(time.thread)).collect();
        for span in &profile.timeline {
            let thread = tid(span.thread);
            let known = idle.known.entry(thread).or_insert((span.from_ns, span.to_ns));
            *known = (known.0.min(span.from_ns), known.1.max(span.to_ns));
            let at_lock = span.class == Some(WaitClass::Lock);
            let event = span.class == Some(WaitClass::Network) && for_events.contains(&thread);
            if span.state == ThreadState::Waiting && (at_lock || event) {
                let stretch = Stretch { from: span.from_ns, to: span.to_ns, at_lock };
                idle.stretches.entry(thread).or_default().push(stretch);
            }
        }
        idle
    }

    /// Whether those who wait at a place wait for connections elsewhere, several beside each other: then they have work here, or are
    /// kept for news, which come to many at a time.
    pub(super) fn have_work(&self, waiters: &BTreeSet<u32>) -> bool {
        let accepted_ns: u64 = waiters.iter().filter_map(|tid| self.accepted_ns.get(tid)).sum();
        let stretches = || waiters.iter().filter_map(|tid| self.stretches.get(tid)).flatten();
        let ends = || stretches().filter(|one| one.at_lock).map(|one| one.to).collect();
        accepted_ns as f64 >= ACCEPTING_MIN * self.window_ns && !are_together(ends())
    }

    /// Threads that do something, on average: those that wait neither for a turn nor for an event.
    fn busy(&self) -> f64 {
        self.busy_of(|_| true)
    }

    fn busy_of(&self, is_one: impl Fn(u32) -> bool) -> f64 {
        let of = |(tid, (from, to)): (&u32, &(u64, u64))| {
            let waited = self.stretches.get(tid).into_iter().flatten().map(|one| one.to - one.from);
            1.0 - waited.sum::<u64>() as f64 / (to - from).max(1) as f64
        };
        self.known.iter().filter(|(tid, _)| is_one(**tid)).map(of).sum()
    }

    /// Whether these threads often wait all at once. `there_ns`: how long they waited at the place in question, all together.
    pub(super) fn wait_for_work(&self, tids: &BTreeSet<u32>, there_ns: u64) -> bool {
        let by_chance = (-self.busy_of(|tid| tids.contains(&tid))).exp();
        let enough = (OF_CHANCE * by_chance).clamp(ALL_LEAST, ALL_MIN);
        self.all_at_once(tids, there_ns).is_some_and(|share| share >= enough)
    }

    /// Whether as many requests are owed an answer as threads wait at a place, on average: they have work, and stand there with it.
    fn has_work_for(&self, waiting: f64) -> bool {
        let owed = self.owed - self.busy();
        owed >= OWED_AT_ALL_MIN && owed >= OWED_MIN * waiting && owed <= OWED_MAX * waiting + OWED_AT_ALL_MIN
    }

    /// Of the time in which one of them is at a lock, the part in which all of them wait.
    fn all_at_once(&self, tids: &BTreeSet<u32>, there_ns: u64) -> Option<f64> {
        let group: Vec<u32> = tids.intersection(&self.own).copied().collect();
        // One that waited all the time is no holder; one that ran and of which nothing is known may be.
        let seen: Vec<u32> = group.iter().copied().filter(|tid| self.known.contains_key(tid)).collect();
        if seen.len() < 2 || group.iter().any(|tid| !seen.contains(tid) && self.ran.contains(tid)) {
            return None;
        }
        let slept_ns: u64 = group.iter().filter_map(|tid| self.slept_ns.get(tid)).sum();
        if slept_ns as f64 > SLEPT_MAX * self.window_ns {
            return None;
        }
        let from = seen.iter().map(|tid| self.known[tid].0).max()?;
        let to = seen.iter().map(|tid| self.known[tid].1).min()?;
        if to <= from || ((to - from) as f64) < WINDOW_MIN * self.window_ns.min(LONG_WINDOW_NS) {
            return None;
        }
        let stretches = seen.iter().filter_map(|tid| self.stretches.get(tid)).flatten();
        let mut turns: Vec<(u64, i64, i64)> = Vec::new();
        let mut ends: Vec<u64> = Vec::new();
        for one in stretches.filter(|one| one.from < to && one.to > from) {
            let at_lock = i64::from(one.at_lock);
            turns.push((one.from.max(from), 1, at_lock));
            turns.push((one.to.min(to), -1, -at_lock));
            ends.extend((one.at_lock && one.to < to).then_some(one.to));
        }
        turns.sort_unstable();
        let (mut waiting, mut at_lock, mut before) = (0, 0, from);
        let (mut any_ns, mut all_ns, mut together_ns, mut waited_ns) = (0, 0, 0, 0.0);
        for (at, waits, locks) in turns {
            let ns = at - before;
            any_ns += if at_lock > 0 { ns } else { 0 };
            waited_ns += ns as f64 * at_lock as f64;
            all_ns += if at_lock > 0 && waiting == seen.len() as i64 { ns } else { 0 };
            together_ns += if at_lock == seen.len() as i64 { ns } else { 0 };
            (waiting, at_lock, before) = (waiting + waits, at_lock + locks, at);
        }
        debug_assert!(waiting == 0 && at_lock == 0, "every stretch that begins ends");
        // Workers without work wait in a futex as well, at their queue: those at this place alone may be as many.
        let there = there_ns as f64 / self.window_ns.max(1.0);
        let is_as_many = self.has_work_for(waited_ns / (to - from) as f64)
            || there >= OWED_AT_ALL_MIN && self.has_work_for(there);
        // Who asks for news is owed an answer until there is any.
        let news = together_ns as f64 >= ALL_MIN * any_ns as f64 && are_together(ends);
        if is_as_many && !news {
            return None;
        }
        (any_ns > 0).then(|| all_ns as f64 / any_ns as f64)
    }
}

/// Whether waits that ended at these times ended many at a time.
fn are_together(mut ends: Vec<u64>) -> bool {
    if ends.len() < ENDS_MIN {
        return false;
    }
    ends.sort_unstable();
    let mut apart: Vec<u64> = ends.windows(2).map(|two| two[1] - two[0]).collect();
    apart.sort_unstable();
    let mean = apart.iter().sum::<u64>() as f64 / apart.len() as f64;
    (apart[apart.len() / 2] as f64) < TOGETHER_MAX * mean
}

/// Threads that wait for others' processes mostly in calls that wait for something to do: not for an answer.
fn waits_for_events(profile: &Profile) -> BTreeSet<u32> {
    let mut waited = BTreeMap::<u32, (u64, u64)>::new();
    for stack in &profile.stacks {
        if stack.wait.as_ref().is_none_or(|wait| wait.class != WaitClass::Network) {
            continue;
        }
        let (events, all) = waited.entry(profile.threads[stack.thread as usize].tid).or_default();
        *all += stack.weight_ns;
        *events += if is_event(stack) { stack.weight_ns } else { 0 };
    }
    let mostly = |(events, all): &(u64, u64)| *events as f64 >= EVENTS_MIN * *all as f64;
    waited.into_iter().filter(|(_, waited)| mostly(waited)).map(|(tid, _)| tid).collect()
}

fn sleeps_in_futexes(profile: &Profile) -> BTreeMap<u32, u64> {
    let waker = |stack: &Stack| stack.waker.and_then(|at| profile.wakers.get(at as usize));
    let word = |stack: &Stack| stack.wait.as_ref().and_then(|wait| wait.object.clone());
    let by_threads = profile.stacks.iter().filter(|stack| waker(stack).is_some_and(|waker| waker.tid != 0));
    let handed: BTreeSet<String> = by_threads.filter_map(word).collect();
    let mut slept = BTreeMap::new();
    for stack in &profile.stacks {
        let is_futex = stack.wait.as_ref().is_some_and(|wait| wait.class == WaitClass::Lock);
        let sleeps = || leaf_first(profile, stack).iter().any(|frame| names::is(&frame.name, names::SLEEP));
        // What only timers end is a sleep, whatever the program calls it.
        let timed_out = || {
            waker(stack).is_some_and(|waker| waker.tid == 0)
                && word(stack).is_some_and(|word| !handed.contains(&word))
        };
        if is_futex && (timed_out() || sleeps()) {
            *slept.entry(profile.threads[stack.thread as usize].tid).or_default() += stack.weight_ns;
        }
    }
    slept
}

fn is_event(stack: &Stack) -> bool {
    let Some(wait) = &stack.wait else { return false };
    let is_call = wait.system_call.as_deref().is_some_and(|call| EVENTS.contains(&call));
    // What comes through a pipe is never an answer: nobody asks through it.
    is_call || wait.object.as_deref().is_some_and(|object| object.starts_with("pipe:"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use dyno_record::profile::{Span, Thread};

    /// Two threads, and what each did in hundredths of a second.
    fn profile(spans: &[(u32, u64, u64, Option<WaitClass>)]) -> Profile {
        let span = |(thread, from, to, class): &(u32, u64, u64, Option<WaitClass>)| Span {
            thread: *thread,
            from_ns: from * 10_000_000,
            to_ns: to * 10_000_000,
            state: if class.is_some() { ThreadState::Waiting } else { ThreadState::Running },
            class: *class,
        };
        Profile {
            duration_s: 1.0,
            threads: [1, 2, 3].map(|tid| Thread { pid: 1, tid, name: "worker".to_owned() }).to_vec(),
            timeline: spans.iter().map(span).collect(),
            ..Profile::default()
        }
    }

    fn share(spans: &[(u32, u64, u64, Option<WaitClass>)]) -> Option<f64> {
        Idle::of(&profile(spans), 0.0).all_at_once(&BTreeSet::from([1, 2]), 0)
    }

    const LOCK: Option<WaitClass> = Some(WaitClass::Lock);

    #[test]
    fn a_lock_is_held_while_it_is_waited_for() {
        let turns = [(0, 0, 50, None), (0, 50, 100, LOCK), (1, 0, 50, LOCK), (1, 50, 100, None)];
        assert_eq!(share(&turns), Some(0.0));
        // Its holder may sleep, or wait for an answer.
        for class in [WaitClass::Sleep, WaitClass::Disk, WaitClass::Network] {
            assert_eq!(share(&[(0, 0, 100, Some(class)), (1, 0, 100, LOCK)]), Some(0.0));
        }
    }

    #[test]
    fn where_all_wait_at_once_nobody_holds_anything() {
        let pool = [(0, 0, 10, None), (0, 10, 100, LOCK), (1, 0, 90, LOCK), (1, 90, 100, None)];
        assert_eq!(share(&pool), Some(0.8));
        assert!(Idle::of(&profile(&pool), 0.0).wait_for_work(&BTreeSet::from([1, 2, 77]), 0));
    }

    /// Workers that wait for a connection beside each other, and one that does so in the others' place. Planted fault: the time in accept
    /// is not asked for.
    #[test]
    fn where_several_wait_for_connections_nobody_waits_for_work_at_a_lock() {
        let apart = [(0, 0, 10, None), (0, 10, 100, LOCK), (1, 0, 90, LOCK), (1, 90, 100, None)];
        let accepting = |spans: &[_], each: u64| {
            let mut pool = profile(spans);
            for thread in [0, 1] {
                let wait = dyno_record::profile::Wait {
                    class: WaitClass::Network,
                    system_call: Some("accept".to_owned()),
                    ..Default::default()
                };
                let stack =
                    Stack { thread, weight_ns: each * 10_000_000, wait: Some(wait), ..Stack::default() };
                pool.stacks.push(stack);
            }
            Idle::of(&pool, 0.0).have_work(&BTreeSet::from([1, 2]))
        };
        assert_eq!([accepting(&apart, 50), accepting(&apart, 80)], [false, true]);
        // News for both at once, now and then. Planted fault: the ends are not asked.
        let waits = (0..10).flat_map(|at| [(0, 10 * at, 10 * at + 9, LOCK), (1, 10 * at, 10 * at + 9, LOCK)]);
        assert!(!accepting(&waits.collect::<Vec<_>>(), 80), "who is kept for news has no work here");
    }

    /// Planted faults: who ran and was seen is as unknown as who ran and was not; however little it ran.
    #[test]
    fn of_those_that_ran_each_must_be_known() {
        let with = |thread: u32, ran_ms: u64| {
            let mut profile = profile(&[(0, 10, 100, LOCK), (1, 0, 90, LOCK)]);
            let times = dyno_record::profile::ThreadTime { thread, ..Default::default() };
            let (running_ns, runnable_ns) = (ran_ms * 500_000, ran_ms * 500_000);
            profile.thread_times =
                vec![dyno_record::profile::ThreadTime { running_ns, runnable_ns, ..times }];
            Idle::of(&profile, 0.0).all_at_once(&BTreeSet::from([1, 2, 3]), 0)
        };
        assert_eq!(with(0, 20), Some(1.0));
        assert_eq!([with(2, 9), with(2, 10)], [Some(1.0), None]);
    }

    /// Workers with more to do, of which nobody works for a sixth of the time. Planted fault: always three tenths.
    #[test]
    fn the_more_workers_work_the_more_seldom_all_of_them_wait() {
        let spans = |rest: u64| {
            let works = |from, to| [(0, from, to, None), (1, from, to, None)];
            let waits = |from, to| [(0, from, to, LOCK), (1, from, to, LOCK)];
            [works(0, 40), waits(40, 40 + rest)]
                .concat()
                .into_iter()
                .chain([(0, 40 + rest, 100, None), (1, 40 + rest, 100, LOCK)])
        };
        let waits_for_work = |rest: u64| {
            let all: Vec<_> = spans(rest).collect();
            Idle::of(&profile(&all), 0.0).wait_for_work(&BTreeSet::from([1, 2]), 0)
        };
        assert_eq!([waits_for_work(14), waits_for_work(3)], [true, false]);
    }

    /// A database's row is locked by a session whose client takes its time: it waits for its next word as for any other.
    /// Planted faults: what is owed is not asked; one request is enough.
    #[test]
    fn who_owes_answers_does_not_wait_for_work() {
        let profile = profile(&[(0, 0, 100, LOCK), (1, 0, 100, LOCK)]);
        let share = |owed| Idle::of(&profile, owed).all_at_once(&BTreeSet::from([1, 2]), 0);
        assert_eq!([0.0, 1.5, 2.0].map(share), [Some(1.0), Some(1.0), None]);
        assert_eq!(share(100.0), Some(1.0), "those are elsewhere");
        assert_eq!([5.0, 5.1].map(share), [None, Some(1.0)], "one and a half for each, and two");
        let busy = [(0, 0, 100, LOCK), (1, 0, 100, LOCK), (2, 0, 100, None)];
        let mut beside = self::profile(&busy);
        assert_eq!(
            Idle::of(&beside, 2.5).all_at_once(&BTreeSet::from([1, 2]), 0),
            Some(1.0),
            "another has one"
        );
        beside.timeline.pop();
        assert_eq!(Idle::of(&beside, 2.5).all_at_once(&BTreeSet::from([1, 2]), 0), None);
    }

    /// Threads of a server with eight requests before a lock around a question to a process beside: most of the forty wait at their
    /// queue. Planted faults: only all that wait at any lock are compared with what is owed (`there_ns` not asked); one at the place
    /// is enough (`OWED_AT_ALL_MIN` not asked of it).
    #[test]
    fn who_waits_at_a_queue_beside_says_nothing_of_a_lock_before_which_requests_stand() {
        let mut profile = profile(&[]);
        profile.threads = (1..=40).map(|tid| Thread { pid: 1, tid, name: "worker".to_owned() }).collect();
        let all: Vec<_> = (0..40).map(|thread| (thread, 0, 100, LOCK)).collect();
        profile.timeline = self::profile(&all).timeline;
        let share = |owed, there: u64| {
            let idle = Idle::of(&profile, owed);
            idle.all_at_once(&(1..=40).collect(), there * 1_000_000_000)
        };
        assert_eq!([share(8.0, 0), share(8.0, 7)], [Some(1.0), None]);
        assert_eq!(share(3.0, 7), Some(1.0), "hardly any has work");
        assert_eq!(share(3.0, 1), Some(1.0), "one that waits shows nothing");
    }

    /// Clients that ask for news and are answered when there are any (long polling): all of them wait, and all are told at
    /// once. Planted faults: whoever is owed holds up others; what ends one by one is news too.
    #[test]
    fn who_waits_for_news_waits_for_work_though_answers_are_owed() {
        let waits = |apart: u64| {
            let of = |thread: u32| {
                let late = apart * u64::from(thread);
                (0..5).map(move |n| (thread, 20 * n + late, 20 * n + 19 + late, LOCK))
            };
            (0..2).flat_map(of).collect::<Vec<_>>()
        };
        let share = |apart| Idle::of(&profile(&waits(apart)), 2.5).all_at_once(&BTreeSet::from([1, 2]), 0);
        assert!(share(0).is_some_and(|share| share > 0.9), "{:?}", share(0));
        assert_eq!(share(10), None, "one is told after the other");
    }

    /// Planted faults: the first distance in place of the middle one; seven ends are enough.
    #[test]
    fn waits_end_together_where_half_of_them_lie_within_a_tenth_of_the_mean_distance() {
        let ends = |apart: [u64; 8]| {
            let mut at = 5;
            let next = apart.map(|ns| {
                at += ns;
                at
            });
            [&[5], &next[..]].concat()
        };
        let is_so = |apart| super::are_together(ends(apart));
        assert!(!is_so([1, 1, 1, 1, 1, 25, 25, 25]), "1 of a mean of 10");
        assert!(is_so([1, 26, 1, 1, 26, 1, 1, 26]));
        assert!(!is_so([0, 0, 0, 0, 20, 20, 20, 20]));
        let few = |many: usize| super::are_together([0, 0, 0, 0, 0, 0, 0, 90][8 - many..].to_vec());
        assert_eq!([few(7), few(8)], [false, true]);
    }

    #[test]
    fn one_that_sleeps_in_a_futex_may_hold_the_lock() {
        let mut profile = profile(&[(0, 0, 100, LOCK), (1, 0, 100, LOCK)]);
        let both = BTreeSet::from([1, 2]);
        profile
            .frames
            .push(dyno_record::profile::Frame { name: "JVM_Sleep".to_owned(), ..Default::default() });
        let futex = dyno_record::profile::Wait { class: WaitClass::Lock, ..Default::default() };
        let slept =
            |ns| Stack { frames: vec![0], weight_ns: ns, wait: Some(futex.clone()), ..Stack::default() };
        profile.stacks = vec![slept(90_000_000)];
        assert_eq!(Idle::of(&profile, 0.0).all_at_once(&both, 0), Some(1.0));
        profile.stacks = vec![slept(500_000_000)];
        assert_eq!(Idle::of(&profile, 0.0).all_at_once(&both, 0), None);
    }

    /// Planted faults: whatever a timer ended once is a sleep; what nobody ended is one.
    #[test]
    fn a_futex_that_only_a_timer_ends_is_slept_in() {
        use dyno_record::profile::{Wait, Waker};
        let slept = |wakers: &[Option<(u32, &str)>]| {
            let mut profile = profile(&[]);
            for (at, by) in wakers.iter().enumerate() {
                let object = by.map(|(_, word)| word.to_owned());
                let wait = Some(Wait { class: WaitClass::Lock, object, ..Wait::default() });
                profile.wakers.push(Waker { tid: by.map_or(0, |(tid, _)| tid), ..Waker::default() });
                let waker = by.map(|_| at as u32);
                profile.stacks.push(Stack { weight_ns: 7, wait, waker, ..Stack::default() });
            }
            super::sleeps_in_futexes(&profile).get(&1).copied().unwrap_or(0)
        };
        assert_eq!(slept(&[Some((0, "a")), Some((0, "a"))]), 14);
        assert_eq!(slept(&[Some((0, "a")), Some((2, "a"))]), 0, "somebody hands it on as well");
        assert_eq!(slept(&[Some((0, "a")), Some((2, "b"))]), 7, "another one");
        assert_eq!(slept(&[None, None]), 0);
    }

    #[test]
    fn one_that_waits_for_events_has_nothing_to_do() {
        let spans = [(0, 0, 100, Some(WaitClass::Network)), (1, 0, 100, LOCK)];
        let mut profile = profile(&spans);
        profile.stacks.push(Stack { weight_ns: 1_000, ..wait("epoll_wait", None) });
        profile.stacks.push(Stack { weight_ns: 900, ..wait("recvfrom", Some("socket:[7]")) });
        let both = BTreeSet::from([1, 2]);
        assert_eq!(Idle::of(&profile, 0.0).all_at_once(&both, 0), Some(1.0));
        profile.stacks[0] = Stack { weight_ns: 800, ..wait("read", Some("pipe:[9]")) };
        assert_eq!(Idle::of(&profile, 0.0).all_at_once(&both, 0), Some(0.0), "more of it is for an answer");
    }

    fn wait(call: &str, object: Option<&str>) -> Stack {
        let (class, object) = (WaitClass::Network, object.map(str::to_owned));
        let wait = dyno_record::profile::Wait { class, system_call: Some(call.to_owned()), object };
        Stack { wait: Some(wait), ..Stack::default() }
    }

    #[test]
    fn what_is_not_known_is_not_told() {
        assert_eq!(share(&[]), None);
        assert_eq!(share(&[(0, 0, 100, LOCK)]), None, "of the other nothing is known");
        assert_eq!(share(&[(0, 0, 6, LOCK), (1, 0, 100, LOCK)]), None, "too short");
    }
}
