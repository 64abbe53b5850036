//! The rule for pools of workers that are too small: they sleep, or wait for others' answers, while somebody waits for them.

use std::collections::BTreeSet;

use dyno_record::finding::Confidence;
use dyno_record::observation::Asked;

use super::answers;
use super::behind;
use super::channels::{self, Found};
use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;
use super::limits::{WAITING_SHARE_MIN, in_queue, is_owed_shortly, pool_draft, unread, untaken};
use super::names;
use super::waits::{OffCpu, SLEEP_SHARE_MIN, ThreadTime, senders};

/// Of the CPU time, what the sleepers must use to be those who serve: others keep house beside them.
const SERVE_SHARE_MIN: f64 = 0.75;
/// CPU time that must be idle before a pool can be what holds the target back.
const POOL_SPARE_MIN: f64 = 0.25;
/// Fewer sleepers than this are timers and helpers, no pool.
const SLEEPERS_MIN: usize = 4;

/// A pool of workers is full of sleepers.
pub(super) fn pool_limit(facts: &Facts<'_>) -> Outcome {
    let Some(spare) = facts.spare() else { return Outcome::Unseen("how busy the CPUs were") };
    if spare < POOL_SPARE_MIN {
        return Outcome::Against(format!(
            "{} of the CPUs' time is free: sleepers hold nothing up",
            percent(spare)
        ));
    }
    facts.as_goroutines_show(of_sleepers(facts, spare))
}

fn of_sleepers(facts: &Facts<'_>, spare: f64) -> Outcome {
    let mut perhaps = match answers::in_line_for_connections(facts, spare) {
        Some(Found::Limit(draft)) => return Outcome::Found(draft),
        Some(Found::Perhaps(draft)) => {
            let unknown = "one connection may carry several requests at a time (HTTP/2, gRPC, AMQP): then none of them is in line";
            Some(draft.sign(unknown))
        }
        None => None,
    };
    let is_asked = asked_for(facts).is_some() || is_owed_shortly(facts);
    match channels::requests_in_channels(facts, spare, is_asked) {
        Some(Found::Limit(draft)) => return Outcome::Found(draft),
        Some(Found::Perhaps(draft)) => {
            let unknown = "whether they wait for work to be done or for news is not to be seen from here";
            perhaps = Some(draft.sign(unknown));
        }
        None => {}
    }
    if let Some(draft) = goroutine_pool(facts, spare) {
        return pool(facts, draft);
    }
    let Some(off) = &facts.off else {
        return perhaps.map_or(Outcome::Unseen("what threads waited for"), Outcome::Noted);
    };
    if let Some(draft) = answers::in_line_for_names(facts, off, spare) {
        return Outcome::Found(draft);
    }
    let by_the_clock = off.threads.iter().filter(|(_, time)| sleeps(time, off.window_ns, false));
    let by_the_clock: BTreeSet<u32> = by_the_clock.map(|(tid, _)| *tid).collect();
    if let Some(draft) = behind::in_line_for_sleepers(facts, off, &by_the_clock, spare) {
        return Outcome::Found(draft);
    }
    let waiting = untaken(facts, WAITING_SHARE_MIN);
    let asleep = asleep(facts, off, waiting.is_some());
    let sleepers = asleep.len();
    let workers = off.threads.values().filter(|time| time.works(off.window_ns)).count();
    // Few threads may sleep for their own reasons, but not while somebody waits to be answered.
    let ran: u64 = asleep.iter().map(|(_, time)| time.run).sum();
    let serve = ran as f64 >= SERVE_SHARE_MIN * off.run_but_of_keepers() as f64;
    let few = (1..SLEEPERS_MIN).contains(&sleepers);
    let by_clock = asleep.iter().all(|(_, time)| sleeps(time, off.window_ns, false));
    let doing = if by_clock { "sleep" } else { "sleep or wait for others' answers" };
    let asked = if by_clock { None } else { asked(facts, sleepers) };
    let queued = in_queue(facts, WAITING_SHARE_MIN);
    if let Some(waiting) = waiting.filter(|_| few && serve) {
        let summary = format!(
            "{sleepers} of {workers} threads that serve {doing} most of the time while requests wait for them"
        );
        let draft = pool_draft(spare, summary).fact(waiting, sleepers as f64, "threads").sign_if(queued);
        let draft = if processes(off, &asleep) > 1 { draft } else { draft.next(NO_BLOCKING) };
        return Outcome::Found(before_others(draft, asked));
    }
    if let Some(draft) = perhaps {
        return Outcome::Noted(draft);
    }
    let are_a_pool = serve || work_for_others(facts, off, &asleep);
    if sleepers < SLEEPERS_MIN || sleepers * 2 < workers || !are_a_pool {
        if let Some(draft) = behind::all_wait_for_the_clock(facts, off, spare) {
            return Outcome::Found(draft);
        }
        if let Some(draft) = nobody_accepts(facts, off, spare) {
            return Outcome::Found(draft);
        }
        if let Some(draft) = queue_too_short(facts, off, spare) {
            return Outcome::Found(draft);
        }
        if let Some(draft) = looks_now_and_then(&asleep, spare).filter(|_| few && serve && by_clock) {
            return Outcome::Noted(draft);
        }
        return short_of_a_pool(off, sleepers, asked_for(facts).is_some());
    }
    let summary = format!(
        "all {sleepers} workers {doing} most of the time while {} of the CPUs is free",
        percent(spare)
    );
    let draft = pool_draft(spare, summary).fact(
        format!("{sleepers} threads {doing} for more than {}", percent(SLEEP_SHARE_MIN)),
        sleepers as f64,
        "threads",
    );
    if asked_for(facts).is_none()
        && let Some(draft) = behind::all_wait_for_the_clock(facts, off, spare)
    {
        return Outcome::Found(draft);
    }
    pool(facts, before_others(draft.sign_if(queued), asked))
}

/// Waits of others that a sleeper ends for each of its sleeps, where it works for others.
const ENDS_MIN: f64 = 0.5;

/// Whether some of these threads answer clients, or end waits of others who may. Threads that keep house do neither, while others are
/// seen to answer: who sleeps works little, and is seldom met at it.
fn work_for_others(facts: &Facts<'_>, off: &OffCpu<'_>, threads: &[(u32, &ThreadTime)]) -> bool {
    let senders = facts.seen.on_cpu.as_ref().map(senders).unwrap_or_default();
    let works = |(tid, time): &(u32, &ThreadTime)| {
        senders.contains(tid) || off.ended(*tid) as f64 >= ENDS_MIN * time.sleeps.max(1) as f64
    };
    senders.is_empty() || threads.iter().any(works)
}

/// Sleeps longer than this are for the time's sake; shorter ones may be looks, or a fast clock.
const LOOK_NS_MAX: f64 = 20e6;

/// Threads that do the work sleep for a moment and look again, many times. What comes meanwhile waits for the next look: whether
/// something does is not to be seen where it comes through memory.
fn looks_now_and_then(asleep: &[(u32, &ThreadTime)], spare: f64) -> Option<Draft> {
    let (_, most) = asleep.iter().max_by_key(|(_, time)| time.run)?;
    let mean_ns = most.sleep as f64 / most.sleeps.max(1) as f64;
    let ms = mean_ns / 1e6;
    let is_short =
        |time: &ThreadTime| time.sleeps > 0 && time.sleep as f64 <= LOOK_NS_MAX * time.sleeps as f64;
    let many = asleep.iter().filter(|(_, time)| is_short(time)).count();
    let summary = format!(
        "{many} of those who do the work sleep for {ms:.1} ms again and again: if they look for work in between, what comes meanwhile waits for the next look"
    );
    (most.sleeps > 0 && mean_ns <= LOOK_NS_MAX).then(|| {
        pool_draft(spare, summary)
            .sure(Confidence::Low)
            .fact(format!("{} sleeps of {ms:.1} ms on average", most.sleeps), ms, "ms")
            .instead("wait for what comes (a condition, a channel, poll on a descriptor) in place of sleeping between looks")
    })
}

/// Of the looks at a listener, those at which somebody must wait there for nobody to be taken for one who accepts.
const QUEUED_MIN: f64 = 0.9;
/// Of the working time, what waits for disks and locks from which on that is why nobody accepts.
const HELD_UP_MAX: f64 = 0.2;

fn held_up(off: &OffCpu<'_>) -> f64 {
    off.weighted_share(|time| {
        time.disk + time.behind_disk + time.for_flusher + time.syncing + time.contended + time.allocator
    })
}

/// Connections wait before a listener all the time though CPUs are free and nothing is seen to hold the workers up: all of them
/// are taken, by clients that ask nothing perhaps.
fn nobody_accepts(facts: &Facts<'_>, off: &OffCpu<'_>, spare: f64) -> Option<Draft> {
    let queued = in_queue(facts, QUEUED_MIN).filter(|_| facts.has_cpu_to_spare())?;
    let held_up = held_up(off);
    let summary = format!(
        "connections wait to be accepted all the time while {} of the CPUs is free: all workers are taken",
        percent(spare)
    );
    let draft = pool_draft(spare, summary).sign(queued);
    (held_up < HELD_UP_MAX).then(|| {
        draft.next("where clients keep connections on which they ask nothing: a shorter time for keep-alive, or a server that waits for many at once")
    })
}

/// Connections that found no room in the window, from which on a queue is too short; each of those clients waits for a second.
const DROPPED_MIN: u64 = 10;

/// Clients find no room before a listener though CPUs are free and it is emptied: they come in bursts that are longer than its queue.
fn queue_too_short(facts: &Facts<'_>, off: &OffCpu<'_>, spare: f64) -> Option<Draft> {
    let queues = facts.seen.packets.as_ref()?.queues.iter();
    let one = queues.max_by_key(|queue| queue.dropped).filter(|queue| queue.dropped >= DROPPED_MIN)?;
    let is_emptied = (one.looks_waiting as f64) < QUEUED_MIN * one.looks as f64;
    if !is_emptied || held_up(off) >= HELD_UP_MAX {
        return None;
    }
    let room = one.backlog.map_or(String::new(), |backlog| format!(", which takes {backlog}"));
    let summary = format!(
        "{} connections found no room in the queue of {}{room}, while {} of the CPUs is free",
        one.dropped,
        one.local,
        percent(spare)
    );
    facts.has_cpu_to_spare().then(|| {
        pool_draft(spare, summary)
            .fact(format!("{} connections were dropped there", one.dropped), one.dropped as f64, "connections")
            .sign("a client whose connection is dropped tries again after a second")
            .instead("a longer queue: the backlog of listen(), and net.core.somaxconn, which bounds it; or one who accepts more often")
    })
}

/// What an event loop needs, where one process's threads are few.
const NO_BLOCKING: &str = "in an event loop no call may sleep or block: wait by the loop's own timers, or hand such work to threads";

/// Of the workers, those that must hold a connection to an address for it to be whose answers they wait for.
const ASKED_MIN: f64 = 0.5;

/// The address whose answers most of so many workers wait for, with the connections to it.
fn asked<'o>(facts: &Facts<'o>, workers: usize) -> Option<&'o Asked> {
    let asked = facts.seen.packets.as_ref()?.asked.first();
    asked.filter(|asked| asked.connections >= ASKED_MIN * workers as f64)
}

/// Workers that wait for another server's answers: more of them help only as far as that one can do more.
fn before_others(draft: Draft, asked: Option<&Asked>) -> Draft {
    let Some(Asked { remote, connections, .. }) = asked else { return draft };
    draft
        .fact(
            format!(
                "{connections:.1} connections to {remote} are open on average: its answers are waited for"
            ),
            *connections,
            "connections",
        )
        .next(format!("diagnose what listens at {remote}: when it answers sooner, as many workers do more"))
}

/// Processes that these threads are of.
fn processes(off: &OffCpu<'_>, threads: &[(u32, &ThreadTime)]) -> usize {
    let is_one = |tid: u32| threads.iter().any(|(one, _)| *one == tid);
    let those = off.profile.threads.iter().filter(|thread| is_one(thread.tid));
    those.map(|thread| thread.pid).collect::<BTreeSet<u32>>().len()
}

/// Of so many workers that wait for others' answers, those that must owe an answer themselves, as far as that is known. A thread
/// of its own for each connection waits for the next request of its client.
const OWE_MIN: f64 = 0.5;

fn owe(facts: &Facts<'_>, workers: usize) -> bool {
    let serving = facts.seen.packets.as_ref().and_then(|packets| packets.serving);
    serving.is_none_or(|serving| serving.owed() >= OWE_MIN * workers as f64)
}

/// Threads that sleep most of the time. Work that waits before those is explained; else it may wait for who polls.
fn asleep<'o>(facts: &Facts<'_>, off: &'o OffCpu<'_>, is_waited_for: bool) -> Vec<(u32, &'o ThreadTime)> {
    let times = || off.threads.iter().map(|(tid, time)| (*tid, time));
    let those = |with_answers| times().filter(move |(_, time)| sleeps(time, off.window_ns, with_answers));
    let owed = is_waited_for && owe(facts, those(true).count());
    let asleep: Vec<_> = those(owed).collect();
    let slept = |time: &ThreadTime| time.sleep + time.answers + answers::polled_ns(time);
    let polling: Vec<_> = times().filter(|(_, time)| time.does_mostly(slept(time), off.window_ns)).collect();
    let alone = asleep.is_empty() && !polling.is_empty();
    let those: Vec<&ThreadTime> = polling.iter().map(|(_, time)| *time).collect();
    let for_answers = alone && answers::are_waited_for(facts, off, &those, SERVE_SHARE_MIN);
    if for_answers { polling } else { asleep }
}

/// Too few sleep for most of the time; how long they do says how near that is, where somebody waits for them.
fn short_of_a_pool(off: &OffCpu<'_>, sleepers: usize, is_waited_for: bool) -> Outcome {
    let works = |time: &&ThreadTime| time.works(off.window_ns);
    let workers: Vec<&ThreadTime> = off.threads.values().filter(works).collect();
    let slept = workers.iter().map(|time| time.sleep + time.answers).sum::<u64>() as f64;
    let share = slept / off.window_ns / workers.len().max(1) as f64;
    let many = workers.len();
    let text = format!("{sleepers} of {many} threads that work sleep most of the time");
    if !is_waited_for || many < SLEEPERS_MIN {
        return Outcome::Against(text);
    }
    let text = format!("{text}; on average they do so for {} of it", percent(share));
    Outcome::near(&[(share, SLEEP_SHARE_MIN)], text)
}

/// Threads that do something at their own pace sleep as a pool's do: it holds somebody up only where somebody waits for it.
fn pool(facts: &Facts<'_>, draft: Draft) -> Outcome {
    match asked_for(facts) {
        Some(who) => Outcome::Found(draft.sign(who)),
        None => Outcome::Noted(draft.sign("nobody was seen to wait for them")),
    }
}

/// Goroutines that wait to hand something over, on average, from which on there is a line of work.
const SENDERS_MIN: f64 = 0.5;

/// Who waits for the target's answers, or for its workers.
fn asked_for(facts: &Facts<'_>) -> Option<String> {
    let states = facts.seen.goroutines.as_ref().map(|all| &all.states);
    let senders = states.and_then(|states| states.get("chan send").copied());
    let senders = senders.filter(|many| *many >= SENDERS_MIN);
    untaken(facts, WAITING_SHARE_MIN)
        .or_else(|| unread(facts))
        .or_else(|| facts.seen.load.as_ref().map(|_| "the load waits for its answers".to_owned()))
        .or_else(|| senders.map(|many| format!("{many:.1} goroutines wait to hand work over")))
}

/// Whether it is a worker that does nothing else for most of the time: who waits for another's answer, while somebody waits
/// for its own, could as well sleep.
fn sleeps(time: &ThreadTime, window_ns: f64, is_waited_for: bool) -> bool {
    let answers = if is_waited_for { time.answers } else { 0 };
    time.does_mostly(time.sleep + answers, window_ns)
}

/// Share of CPU time with a timer of Go in the stack from which sleeping is what the program does. Pools of sleepers have
/// 0.17 to 0.3, by the machine; who sleeps uses little CPU, so some 200 samples tell it, to ±0.05.
const TIMED_MIN: f64 = 0.1;
/// The same for handing work from goroutine to goroutine: with a goroutine for each task none is handed over.
const HANDED_MIN: f64 = 0.05;

/// Goroutines sleep without a thread: what little CPU is used shows timers and work handed over, and CPUs stay free.
fn goroutine_pool(facts: &Facts<'_>, spare: f64) -> Option<Draft> {
    let on = facts.on.as_ref()?;
    let (timed, handed) = (on.share_with(names::TIMED), on.share_with(names::HANDED));
    if timed < TIMED_MIN || handed < HANDED_MIN {
        return None;
    }
    let summary =
        format!("work is handed to workers that sleep, while {} of the CPUs is free", percent(spare));
    let draft = pool_draft(spare, summary)
        .fact(format!("{} of the CPU time is spent on timers of sleepers", percent(timed)), timed, "share")
        .fact(format!("{} is spent on handing work over", percent(handed)), handed, "share");
    Some(draft)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use dyno_record::finding::Class;
    use dyno_record::observation::{Goroutines, Packets, Queue, Sending, Serving};
    use dyno_record::profile::WaitClass;

    use crate::scene::Scene;

    /// Planted faults: disks and locks are not asked (`HELD_UP_MAX` of 2); a queue now and then is enough (`QUEUED_MIN` of 0.5).
    #[test]
    fn workers_that_hardly_run_are_taken_where_nobody_accepts_what_waits() {
        let queued = |looks_waiting, scene: Scene| {
            let queue =
                Queue { looks: 60, looks_waiting, waiting: 10 * looks_waiting, most: 10, ..Queue::default() };
            let (rounds_waiting, waiting) = (looks_waiting, 10 * looks_waiting);
            let sending = Some(Sending { rounds: 60, rounds_waiting, waiting, ..Sending::default() });
            let packets = Packets { sending, queues: vec![queue], ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        let idle = || Scene::new(&[0.001; 4]).on("main;serve", 1);
        assert_eq!(queued(60, idle()), [Class::PoolLimit]);
        assert_eq!(queued(40, idle()), []);
        let busy = Scene::new(&[9.9]).on("main;work", 100);
        assert_eq!(queued(60, busy), [Class::SingleThreadLimit]);
        let at_disk = idle().off(1, WaitClass::Disk, "main;serve;fdatasync;do_fsync_[k]", 9.0);
        assert!(!queued(60, at_disk).contains(&Class::PoolLimit));
    }

    /// A loop around a sleep of a millisecond. Planted faults: however long the sleeps are; no note.
    #[test]
    fn who_sleeps_for_a_moment_between_looks_is_a_note() {
        let noted = |sleeps: u64| {
            let mut scene = Scene::new(&[0.4, 0.3]).on("run;work", 100);
            for tid in 1..=2 {
                scene = scene.off(tid, WaitClass::Sleep, "run;usleep;hrtimer_nanosleep_[k]", 9.5);
                scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = sleeps;
            }
            let said = scene.diagnosed();
            assert!(said.findings.is_empty(), "{:?}", said.findings);
            said.notes
                .iter()
                .any(|note| note.summary.contains("what comes meanwhile waits for the next look"))
        };
        assert!(noted(9_000));
        assert!(!noted(9), "once a second");
    }

    #[test]
    fn a_pool_of_sleepers_leaves_the_cpus_free() {
        let mut pool = Scene::new(&[0.05; 8]).on("run;work", 100);
        for tid in 1..=8 {
            pool = pool.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.9);
        }
        let sending = Sending { rounds: 80, rounds_waiting: 70, waiting: 70, ..Sending::default() };
        let asked = |scene: Scene| {
            scene.with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
        };
        assert_eq!(asked(pool).classes(), [Class::PoolLimit]);
        let goroutines = |cpu: f64, senders: f64| {
            let states = [("chan send".to_owned(), senders)];
            Scene::new(&[cpu, cpu])
                .on("main.worker;time.Sleep;runtime.gopark", 60)
                .on("main.worker;runtime.chanrecv;runtime.gopark", 10)
                .on("runtime.schedule", 30)
                .with(|seen| {
                    seen.goroutines =
                        Some(Goroutines { looks: 50, states: states.into(), ..Goroutines::default() });
                })
        };
        assert_eq!(goroutines(2.0, 1.0).classes(), [Class::PoolLimit]);
        assert_eq!(goroutines(9.5, 1.0).classes(), []);
        assert_eq!(goroutines(2.0, 0.0).classes(), [], "tickers of a service that has little to do");
    }

    /// A loop that waits for another server while Java's compiler is warming up. Planted fault: what the compiler runs is work that
    /// somebody else does (`run_but_of_keepers` of all).
    #[test]
    fn a_run_times_own_threads_serve_nobody() {
        let serves = |beside: &str| {
            let mut scene = Scene::new(&[0.2, 0.2]).on("main;serve;ask", 100).off(
                1,
                WaitClass::Network,
                "main;serve;ask",
                9.0,
            );
            let off = scene.seen.off_cpu.as_mut().unwrap();
            off.stacks.last_mut().unwrap().wait.as_mut().unwrap().system_call = Some("read".to_owned());
            off.threads[1].name = beside.to_owned();
            let sending = Sending { rounds: 80, rounds_waiting: 80, waiting: 800, ..Sending::default() };
            let packets = Packets { sending: Some(sending), ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(serves("C2 CompilerThre"), [Class::PoolLimit]);
        assert_eq!(serves("worker"), []);
    }

    /// Planted fault: workers of one kind whatever their processes; then a server of two is told to block in no event loop.
    #[test]
    fn an_event_loop_is_one_process() {
        let advised = |pid: u32| {
            let sending = Sending { rounds: 80, rounds_waiting: 70, waiting: 70, ..Sending::default() };
            let mut scene = Scene::new(&[0.3, 0.3]).on("main;serve", 100);
            for tid in 1..=2 {
                scene = scene.off(tid, WaitClass::Sleep, "main;serve;nanosleep;hrtimer_nanosleep_[k]", 9.5);
            }
            let scene = scene.with(|seen| {
                seen.off_cpu.as_mut().unwrap().threads[1].pid = pid;
                seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
            });
            let next = scene.diagnosed().findings.remove(0).next;
            next.iter().any(|next| next.text.contains("event loop"))
        };
        assert_eq!([advised(1), advised(2)], [true, false]);
    }

    /// Planted fault: threads that do nothing count as those that work (`RUNS_MIN` of 0).
    #[test]
    fn helpers_that_hardly_run_make_no_pool_larger() {
        let runs = [vec![0.05; 5], vec![0.004; 30]].concat();
        let mut pool = Scene::new(&runs).on("run;work", 100);
        for tid in 1..=5 {
            pool = pool.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.9);
        }
        let sending = Sending { rounds: 80, rounds_waiting: 70, waiting: 70, ..Sending::default() };
        let pool = pool.with(|seen| {
            seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() });
        });
        assert_eq!(pool.classes(), [Class::PoolLimit]);
    }

    /// Two loops that answer, beside four threads that keep house. Planted fault: any four that sleep are a pool.
    #[test]
    fn threads_that_keep_house_are_no_pool_however_many_they_are() {
        let mut loops = Scene::new(&[4.0, 4.0, 0.02, 0.02, 0.02, 0.02]).on("run;send;tcp_sendmsg_[k]", 100);
        for tid in 3..=6 {
            loops = loops.off(tid, WaitClass::Sleep, "keep;usleep;hrtimer_nanosleep_[k]", 9.9);
        }
        let sending = Sending { rounds: 80, rounds_waiting: 45, waiting: 50, ..Sending::default() };
        let with = |scene: Scene| {
            let packets = Packets { sending: Some(sending), ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        let mut answer = loops;
        assert_eq!(with(Scene { seen: answer.seen.clone() }), []);
        answer.seen.on_cpu.as_mut().unwrap().stacks[0].thread = 2;
        assert_eq!(with(answer), [Class::PoolLimit], "one of the sleepers answers");
    }

    /// Eight workers that sleep 50 ms for each of 40 clients, whose requests an acceptor has read. Planted fault: only few sleepers are
    /// asked whether clients wait.
    #[test]
    fn many_sleepers_are_a_limit_too_where_all_that_clients_ask_was_read() {
        let pool = |looks_owed: u64| {
            let mut scene = Scene::new(&[0.05; 8]).on("run;send;tcp_sendmsg_[k]", 1);
            for tid in 1..=8 {
                scene.seen.on_cpu.as_mut().unwrap().stacks[0].thread = tid - 1;
                let one = scene.seen.on_cpu.as_ref().unwrap().stacks[0].clone();
                scene.seen.on_cpu.as_mut().unwrap().stacks.push(one);
                scene = scene.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.9);
                scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap().samples = 200;
            }
            let serving =
                Serving { connections: 40.0, looks: 400, looks_owed, owed_ms: 125.0, ..Serving::default() };
            let packets = Packets { serving: Some(serving), ..Packets::default() };
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(pool(395), [Class::PoolLimit]);
        assert_eq!(pool(200), [], "half of them rest");
    }

    /// Planted faults: what is dropped is not asked (`DROPPED_MIN` of a million); one that is dropped is enough.
    #[test]
    fn a_queue_in_which_bursts_find_no_room_is_too_short() {
        let drops = |dropped: u64, run_s: f64| {
            let queue = Queue {
                local: "0.0.0.0:80".into(),
                looks: 60,
                backlog: Some(5),
                dropped,
                ..Queue::default()
            };
            let packets = Packets { queues: vec![queue], ..Packets::default() };
            let scene = Scene::new(&[run_s, run_s]).on("run;send;tcp_sendmsg_[k]", 100);
            scene.with(|seen| seen.packets = Some(packets)).classes()
        };
        assert_eq!(
            [drops(3_000, 1.0), drops(3, 1.0), drops(3_000, 9.9)],
            [vec![Class::PoolLimit], vec![], vec![]]
        );
    }

    /// Planted fault: sleepers found whether or not anybody waits for them (`pool` that never answers `Noted`).
    #[test]
    fn threads_that_sleep_at_their_own_pace_are_a_note() {
        let mut paced = Scene::new(&[0.8; 6]).on("run;work", 100);
        for tid in 1..=6 {
            paced = paced.off(tid, WaitClass::Sleep, "run;nanosleep;hrtimer_nanosleep_[k]", 9.0);
        }
        assert_eq!(paced.classes(), []);
        assert_eq!(paced.diagnosed().notes[0].class, Class::PoolLimit);
    }

    #[test]
    fn one_thread_that_serves_and_sleeps_while_requests_wait_is_a_pool_of_one() {
        let server = |waiting: u64| {
            let sending = Sending { rounds: 80, rounds_waiting: waiting, waiting, ..Sending::default() };
            Scene::new(&[0.3])
                .on("main;serve;nanosleep", 100)
                .off(1, WaitClass::Sleep, "main;serve;nanosleep;hrtimer_nanosleep_[k]", 9.5)
                .with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
        };
        assert_eq!(server(70).classes(), [Class::PoolLimit]);
        assert_eq!(server(10).classes(), [], "nobody waits for it");
    }

    /// Planted faults: a futex is never a sleep (`wait_class` without it); whatever lies beneath a sleep is one (`!is_lock()`
    /// left out).
    #[test]
    fn who_sleeps_in_a_futex_sleeps_and_the_lock_that_he_takes_afterwards_is_one() {
        let server = |futex: &str| {
            let sending = Sending { rounds: 80, rounds_waiting: 80, waiting: 300, ..Sending::default() };
            let mut scene = Scene::new(&[0.1; 4]).on("main;serve;work", 100);
            for tid in 1..=4 {
                scene = scene.off(tid, WaitClass::Lock, &format!("main;serve;{futex};futex_wait_[k]"), 9.0);
            }
            scene.with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
        };
        assert_eq!(server("JVM_Sleep;pthread_cond_timedwait").first(), Some(Class::PoolLimit));
        for other in ["time_sleep;take_gil;pthread_cond_timedwait", "JVM_MonitorWait;pthread_cond_wait"] {
            assert!(!server(other).classes().contains(&Class::PoolLimit), "{other}");
        }
    }

    /// Planted fault: only who sleeps by a clock fills a pool; then one whose workers wait for a slow database is silent.
    #[test]
    fn workers_that_wait_for_anothers_answer_fill_a_pool_while_requests_wait() {
        let server = |call: &str, waiting: u64| {
            let sending = Sending { rounds: 80, rounds_waiting: waiting, waiting, ..Sending::default() };
            let mut scene = Scene::new(&[0.3; 4]).on("main;serve;query", 100);
            for tid in 1..=4 {
                scene = scene.off(tid, WaitClass::Network, "main;serve;query;recv", 9.5);
                let stack = scene.seen.off_cpu.as_mut().unwrap().stacks.last_mut().unwrap();
                stack.wait.as_mut().unwrap().system_call = Some(call.to_owned());
            }
            scene.with(|seen| seen.packets = Some(Packets { sending: Some(sending), ..Packets::default() }))
        };
        assert_eq!(server("recvfrom", 70).classes(), [Class::PoolLimit]);
        let summary = server("recvfrom", 70).diagnosed().findings.remove(0).summary;
        assert!(summary.starts_with("all 4 workers sleep or wait for others' answers"), "{summary}");
        // A thread of its own for each connection waits for its client. Planted fault: what it owes is not asked.
        let of_each_connection = |looks_owed: u64| {
            let serving = Serving { connections: 4.0, looks: 100, looks_owed, ..Serving::default() };
            let scene = server("recvfrom", 70);
            scene.with(|seen| seen.packets.as_mut().unwrap().serving = Some(serving)).classes()
        };
        assert_eq!((of_each_connection(90), of_each_connection(5)), (vec![Class::PoolLimit], vec![]));
        assert_eq!(server("recvfrom", 10).classes(), [], "nobody waits for it");
        assert_eq!(server("accept4", 70).classes(), [], "they have nothing to do");
    }
}
