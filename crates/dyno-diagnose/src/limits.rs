//! Rules for what bounds the target from outside or by its shape: one thread, the generator, others, a quota.

use std::collections::BTreeSet;

use dyno_record::finding::{Class, Confidence};
use dyno_record::observation::{Limit, Load, Queue, Serving, ThreadCost};
use dyno_record::profile::{ThreadTime, WaitClass};

use super::draft::{Draft, Outcome, percent};
use super::facts::Facts;
use super::idle::{is_accept, is_event_call};
use super::names;
use super::waits::{senders, sends};

/// A thread that has work for this share of the time, runs or waits for a CPU, is at its limit: the rest is what the scheduler
/// takes for switching.
const THREAD_FULL: f64 = 0.88;
/// A thread that runs for less than half of the time is short of CPUs, and not of threads.
const RUNS_HALF_MIN: f64 = 0.5;
/// Waiting for a CPU that is told.
const WAIT_TOLD_MIN: f64 = 0.01;
/// CPUs that must be free before more threads could help: half of one.
const FREE_CPUS_MIN: f64 = 0.4;
/// The same as a share of what the target and those who ask it use: so much more the CPUs could do at most, since who asks
/// works more too. Measured: a second process brought 1.3 times as much at 0.35 to 0.41 on one machine, and node 1.04 times as much
/// at 0.37 on another; less than a tenth at 0.25, and nothing (node, 0.9 times as much) where it was 0.16 to 0.33.
const GAIN_MIN: f64 = 0.45;
/// From here on it is told beside what is found: a second process may bring a little.
const GAIN_NOTED: f64 = 0.25;
/// From here on it is worth having in any case.
const GAIN_SURE: f64 = 0.5;
/// Requests that stand in line for each one that is worked on, from which load counts as waiting.
const IN_LINE_MIN: f64 = 4.0;
/// Of few connections, the share with bytes that it had not read.
const UNREAD_SHARE_MIN: f64 = 0.5;
/// Looks from which on a share of them is told.
const ROUNDS_MIN: u64 = 20;
/// Share of the looks at which something waited to be read or accepted: one client alone never waits like that, since it
/// asks again only after it was answered.
pub(super) const WAITING_SHARE_MIN: f64 = 0.5;
/// The same before a thread at its limit: what one client alone asks waits only while that thread does not run, an eighth
/// of the time at most. Where it waits for a CPU for longer, twice as much as it does not run.
const WAITING_BEFORE_FULL_MIN: f64 = 0.25;
const WAITING_WHILE_IT_RUNS_NOT: f64 = 2.0;
/// So many questions are seen before their answers say something.
const ASKED_MIN: u64 = 100;
/// Who waits for less than this share of the time has always something to do.
const RESTS_MAX: f64 = 0.001;
/// Share of the other threads' waits that the thread at its limit ended.
const WAIT_FOR_IT_MIN: f64 = 0.3;
/// Of the time, what those whose waits it ended work: a run-time's helpers wait for it as well, and do next to nothing.
const OTHERS_WORK_MIN: f64 = 0.01;
/// Waiting of other threads below this share of the window is no waiting.
const OTHERS_WAIT_MIN: f64 = 0.2;
/// Others' CPU and the hypervisor's: from a tenth on, figures are theirs too.
const FOREIGN_MIN: f64 = 0.10;
/// Share of the target's time spent waiting for a CPU from which on others delay it; below, they only used idle time.
const DELAY_MIN: f64 = 0.05;
/// Requests held at a time, from which on waiting is set against what they take.
const OWED_MIN: f64 = 1.0;
/// Of the CPU time, what threads that were seen must have used for their waiting to tell.
const SEEN_MIN: f64 = 0.5;
/// CPUs of others from which on they are told.
const OTHERS_TOLD_MIN: f64 = 0.1;
/// A thread that runs less is no competitor for a CPU.
const BUSY_MIN: f64 = 0.1;
/// Time that the hypervisor takes: 2 % make a run void elsewhere; 5 % are a finding.
const STEAL_MIN: f64 = 0.05;
/// Share of periods in which a quota held the target.
const THROTTLED_MIN: f64 = 0.05;
/// Time held, as a share of what it ran and was held: many periods that end a moment too early cost nothing.
const HELD_MIN: f64 = 0.05;

/// One thread is at its limit while CPUs are free. It is a finding only when something waits for that thread.
pub(super) fn single_thread_limit(facts: &Facts<'_>) -> Outcome {
    let Some(free) = facts.spare_cpus() else { return Outcome::Unseen("how busy the CPUs were") };
    let threads = facts.seen.threads.iter().filter(|thread| !names::is(&thread.name, names::COMPILERS));
    let demands = threads.map(|thread| Demand::of(facts, thread));
    let demands: Vec<Demand<'_>> = demands.collect();
    let Some(busiest) = demands.iter().max_by(|a, b| a.share().total_cmp(&b.share())) else {
        return Outcome::Unseen("the times of single threads");
    };
    let full = demands.iter().filter(|demand| demand.share() >= THREAD_FULL).count();
    let gain = facts.gain_at_most().unwrap_or(0.0);
    let is_worth = free >= FREE_CPUS_MIN && gain >= GAIN_MIN;
    if full != 1 || gain < GAIN_NOTED {
        let much = if gain < GAIN_MIN { format!(": {} more at most", percent(gain)) } else { String::new() };
        let text = format!("the busiest thread {busiest}, {full} are full, {free:.1} CPUs are free{much}");
        let is_near = full == 0 && is_worth && who_waits(facts, busiest).is_some();
        return if is_near {
            Outcome::near(&[(busiest.share(), THREAD_FULL)], text)
        } else {
            Outcome::Against(text)
        };
    }
    let (tid, name) = (busiest.thread.tid, &busiest.thread.name);
    let summary = format!("thread {tid} ({name}) {busiest} while {free:.1} CPUs are free");
    let draft = Draft::new(Class::SingleThreadLimit, busiest.share() * free.min(1.0), summary)
        .fact(format!("the busiest thread {busiest}"), busiest.share(), "share of the time")
        .fact(left(facts, free), free, "CPUs")
        .fact(format!("with them {} more at most, who asks included", percent(gain)), gain, "of what is done")
        .next("a second thread or process for the same work, each with its own listener; or less work on that thread")
        .rung("workers")
        .specimen("single-loop");
    match who_waits(facts, busiest) {
        Some(who) if is_worth => {
            let sure = if gain >= GAIN_SURE { Confidence::High } else { Confidence::Medium };
            Outcome::Found(draft.sure(sure).sign(who).sign_if(in_queue(facts, WAITING_BEFORE_FULL_MIN)))
        }
        Some(who) => Outcome::Noted(draft.sign(who)),
        None if is_worth => {
            let mut draft = draft.sign("nobody was seen waiting for it");
            draft.finding.summary.extend(tasks_unseen(facts));
            Outcome::Noted(draft)
        }
        None => Outcome::Against(format!("thread {busiest}, and nobody was seen waiting for it")),
    }
}

/// What the target and those who ask it leave of the CPUs, and how much of it others have.
fn left(facts: &Facts<'_>, free: f64) -> String {
    let host = &facts.seen.host;
    if let Some(cpus) = facts.paid_cpus() {
        return format!("{free:.1} CPUs are free of the {cpus} that its quota pays for");
    }
    let idle = host.idle_ns as f64 / host.all_ns.max(1) as f64 * f64::from(host.cpus);
    if free - idle < OTHERS_TOLD_MIN {
        return format!("{free:.1} CPUs are used by nobody");
    }
    format!(
        "{free:.1} CPUs are used neither by it nor by those who ask it: others have {:.1} of them",
        free - idle
    )
}

/// How much of the time a thread has work, as shares of the window: it runs, or it could and gets no CPU, whoever has it.
struct Demand<'o> {
    thread: &'o ThreadCost,
    runs: f64,
    waits: f64,
}

impl<'o> Demand<'o> {
    fn of(facts: &Facts<'o>, thread: &'o ThreadCost) -> Demand<'o> {
        let share = |ns: u64| ns as f64 / 1e9 / facts.seen.duration_s.max(1e-9);
        // A quota keeps threads waiting that more of them would not help.
        let held_ns = facts.seen.quota.as_ref().map_or(0, |quota| quota.throttled_ns);
        let waits = share(thread.wait_ns.saturating_sub(held_ns));
        Demand { thread, runs: share(thread.run_ns), waits }
    }

    fn share(&self) -> f64 {
        if self.runs < RUNS_HALF_MIN { self.runs } else { self.runs + self.waits }
    }
}

impl std::fmt::Display for Demand<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "runs {} of the time", percent(self.runs))?;
        if self.waits < WAIT_TOLD_MIN {
            return Ok(());
        }
        write!(f, " and waits {} of it for a CPU", percent(self.waits))
    }
}

/// Who waits for a thread: connections that were refused, requests in line, other threads that it wakes.
fn who_waits(facts: &Facts<'_>, busiest: &Demand<'_>) -> Option<String> {
    let clients = if others_serve(facts, busiest.thread.tid) { None } else { clients_wait(facts, busiest) };
    clients
        .or_else(|| never_rests(facts, busiest.thread))
        .or_else(|| threads_wait(facts, busiest.thread))
        .or_else(|| goroutines_ready(facts))
}

/// Waits of the target's other threads that a process ends in a second, from which on it answers them.
const ENDED_PER_S_MIN: f64 = 2.0;

/// Whether clients are answered by other processes of the target's, and not by a thread's own: what waits in connections waits for
/// those.
fn others_serve(facts: &Facts<'_>, tid: u32) -> bool {
    let Some(on) = &facts.seen.on_cpu else { return false };
    let pid_of = |tid: u32| on.threads.iter().find(|thread| thread.tid == tid).map(|thread| thread.pid);
    let Some(own) = pid_of(tid) else { return false };
    let senders: BTreeSet<u32> = senders(on).into_iter().filter_map(pid_of).collect();
    // Who answers seldom is not met at it; but others of the target's wait for it then.
    let serves = facts.off.as_ref().is_some_and(|off| {
        let own_threads = off.profile.threads.iter().filter(|thread| thread.pid == own);
        let ended: u64 = own_threads.map(|thread| off.ended(thread.tid)).sum();
        ended as f64 >= ENDED_PER_S_MIN * off.profile.duration_s
    });
    !senders.is_empty() && !senders.contains(&own) && !serves
}

/// Clients that wait: of all that the target serves, whichever of its threads answers them.
fn clients_wait(facts: &Facts<'_>, busiest: &Demand<'_>) -> Option<String> {
    let seen = facts.seen;
    if let Some(refused) = refused(facts) {
        return Some(refused);
    }
    let datagrams = seen.packets.as_ref().and_then(|packets| packets.datagrams);
    if let Some(dropped) = datagrams.map(|seen| seen.dropped).filter(|dropped| *dropped > 0) {
        return Some(format!("{dropped} datagrams found no room in its buffer (UDP) and were dropped"));
    }
    if let Some(load) = seen.load.as_ref().filter(|load| load.lost > 0) {
        return Some(format!("{} connections of the load were refused, reset or timed out", load.lost));
    }
    let idle_while_asked = WAITING_WHILE_IT_RUNS_NOT * (1.0 - busiest.runs);
    requests_in_line(facts)
        .or_else(|| held_in_line(facts, busiest.thread))
        .or_else(|| unread(facts))
        .or_else(|| untaken(facts, WAITING_BEFORE_FULL_MIN.max(idle_while_asked)))
}

/// Connections that found no room. The kernel counts them for all listeners of a network namespace: they are believed where one of the
/// target's own dropped some, or was seen full.
fn refused(facts: &Facts<'_>) -> Option<String> {
    let packets = facts.seen.packets.as_ref()?;
    // What overflows is dropped.
    let all = packets.listen_overflows.max(packets.listen_drops);
    let own: u64 = packets.queues.iter().map(|queue| queue.dropped).sum();
    if all.min(own) > 0 {
        return Some(format!("{} connections found its listener's queue full", all.min(own)));
    }
    let is_tcp = |queue: &&Queue| !queue.local.starts_with(['/', '@']);
    if all > 0 && packets.queues.is_empty() {
        return Some(format!(
            "{all} connections found a listener's queue full in its network; its own could not be looked at"
        ));
    }
    let is_full = |queue: &&Queue| queue.backlog.is_some_and(|backlog| queue.most >= u64::from(backlog));
    let full = packets.queues.iter().filter(is_tcp).find(is_full).filter(|_| all > 0)?;
    Some(format!("{all} connections found a listener's queue full, as that of {} was", full.local))
}

/// What a run-time's tasks do is not looked at: more of them may be ready to run than one thread runs.
fn tasks_unseen(facts: &Facts<'_>) -> Option<String> {
    let kind = facts.seen.not_looked_at.iter().find_map(|one| one.what.strip_prefix("what "))?;
    let tasks = kind.split_once(" wait for")?.0;
    (tasks != "threads").then(|| format!("; whether more {tasks} are ready to run is not to be seen"))
}

/// Goroutines that could run, on average, from which on there is more to do than one thread does.
const READY_MIN: f64 = 1.0;

/// Goroutines stand ready while nothing but one thread runs them: where Go may use a second one it does so within microseconds.
fn goroutines_ready(facts: &Facts<'_>) -> Option<String> {
    let ready = facts.seen.goroutines.as_ref()?.states.get("runnable").copied()?;
    (ready >= READY_MIN)
        .then(|| format!("{ready:.1} goroutines are ready to run on average, and one runs (GOMAXPROCS)"))
}

/// It never waits for an event, and takes something each time that it asks: the next request is always there. Who asks again and
/// again for nothing takes less.
fn never_rests(facts: &Facts<'_>, busiest: &ThreadCost) -> Option<String> {
    let sending = facts.seen.packets.as_ref()?.sending?;
    let profile = facts.off.as_ref()?.profile;
    let is_it = |time: &&ThreadTime| profile.threads[time.thread as usize].tid == busiest.tid;
    let time = profile.thread_times.iter().find(is_it)?;
    let all_ns = (time.running_ns + time.runnable_ns + time.waiting_ns) as f64;
    let count = |is: fn(&str) -> bool| -> u64 {
        let calls = profile.system_calls.iter().filter(|(name, _)| is(name));
        calls.map(|(_, call)| call.count.saturating_sub(call.errors)).sum()
    };
    let asked = count(|name| is_event_call(name) && !is_accept(name));
    let taken = count(|name| names::is(name, names::CALLS_IN) || is_accept(name));
    let is_so = time.waiting_ns as f64 <= RESTS_MAX * all_ns && asked >= ASKED_MIN && taken >= asked;
    (is_so && sending.rounds >= ROUNDS_MIN).then(|| {
        format!("it never waited: it asked {asked} times what there is to do, and took {taken} pieces and connections")
    })
}

/// Latency is many times what a request costs: the others stand in line before the thread.
fn requests_in_line(facts: &Facts<'_>) -> Option<String> {
    let load = facts.seen.load.as_ref().filter(|load| load.connections > 1 && load.limited != Limit::Yes)?;
    let cost_ns = facts.seen.process.cpu_ns as f64 / facts.seen.requests()?;
    let in_line = load.p50_ns as f64 / cost_ns.max(1.0);
    (in_line >= IN_LINE_MIN).then(|| {
        format!(
            "a request costs {:.0} µs and takes {:.0} µs: some {:.0} stand in line",
            cost_ns / 1e3,
            load.p50_ns as f64 / 1e3,
            in_line - 1.0
        )
    })
}

/// The same where no load of ours says how long a request takes: as many are held at a time as it takes times what it costs. Those
/// with which another server is asked wait for that one; and only who answers is who they wait for.
fn held_in_line(facts: &Facts<'_>, busiest: &ThreadCost) -> Option<String> {
    let serving = facts.seen.packets.as_ref()?.serving.filter(|_| facts.seen.load.is_none())?;
    let held = (serving.owed() - serving.awaiting).max(0.0);
    let in_line = held / facts.seen.cpus_used().max(1.0);
    (in_line >= IN_LINE_MIN && sends(facts.seen, busiest.tid))
        .then(|| format!("{held:.1} requests are held at a time, {in_line:.1} for each that is worked on"))
}

/// What was asked lies in its sockets.
pub(super) fn unread(facts: &Facts<'_>) -> Option<String> {
    let packets = facts.seen.packets.as_ref()?;
    let (unread, all) = (packets.unread, packets.connections);
    let most = unread >= 2 && unread as f64 >= UNREAD_SHARE_MIN * all as f64 && all > 0;
    (unread as f64 >= IN_LINE_MIN || most)
        .then(|| format!("{unread} connections and more held bytes that it had not read"))
}

/// Of the looks at clients, those at which they wait for an answer, and how many of them do, for it to be waited for all the time.
const OWED_ALWAYS_MIN: f64 = 0.9;
const OWED_BY_MANY_MIN: f64 = 2.0;

/// Clients wait for answers all the time: what they asked was read, and lies in no socket any more.
pub(super) fn is_owed(facts: &Facts<'_>) -> bool {
    let serving = facts.seen.packets.as_ref().and_then(|packets| packets.serving);
    serving.is_some_and(|serving| {
        serving.looks >= ROUNDS_MIN
            && serving.looks_owed as f64 >= OWED_ALWAYS_MIN * serving.looks as f64
            && serving.owed() >= OWED_BY_MANY_MIN
    })
}

/// How long clients have waited when they are looked at, ms, half of their waits, up to which they do not wait for news that come when they
/// come.
const NEWS_MS: f64 = 25.0;

/// Answers of other servers that the target waits for, on average, from which on it may pass them on.
const AWAITING_MAX: f64 = 0.5;

/// Clients wait for answers all the time, for none of them long, and nobody else is asked meanwhile.
pub(super) fn is_owed_shortly(facts: &Facts<'_>) -> bool {
    let serving = facts.seen.packets.as_ref().and_then(|packets| packets.serving);
    let shortly = |serving: Serving| serving.owed_ms > 0.0 && serving.owed_ms <= NEWS_MS;
    // Another server's answer may be what they wait for.
    is_owed(facts) && serving.is_some_and(|serving| shortly(serving) && serving.awaiting < AWAITING_MAX)
}

/// Whether somebody seems to wait for the target: bytes and connections that it has not taken.
pub(super) fn is_waited_for(facts: &Facts<'_>) -> bool {
    unread(facts).is_some() || untaken(facts, WAITING_SHARE_MIN).is_some()
}

/// At so many of the looks something waited to be read or accepted.
pub(super) fn untaken(facts: &Facts<'_>, share_min: f64) -> Option<String> {
    let sending = facts.seen.packets.as_ref()?.sending?;
    let (rounds, waited) = (sending.rounds, sending.rounds_waiting);
    let often = rounds >= ROUNDS_MIN && waited as f64 >= share_min * rounds as f64;
    often.then(|| {
        let mean = sending.waiting as f64 / rounds as f64;
        let datagrams = facts.seen.packets.as_ref().and_then(|packets| packets.datagrams);
        match datagrams.filter(|seen| 2 * seen.looks_waiting > waited) {
            Some(_) => format!("at {waited} of {rounds} looks, datagrams waited to be read (UDP)"),
            None => format!(
                "at {waited} of {rounds} looks, connections waited to be accepted or read, {mean:.1} on average"
            ),
        }
    })
}

/// The listener before which most connections wait, where some do at so many of the looks at it.
pub(super) fn queue<'o>(facts: &Facts<'o>, share_min: f64) -> Option<&'o Queue> {
    let queues = facts.seen.packets.as_ref()?.queues.iter();
    let often = |one: &&Queue| {
        one.looks >= ROUNDS_MIN && one.looks_waiting as f64 >= share_min * one.looks as f64 && one.waiting > 0
    };
    queues.filter(often).max_by_key(|one| one.waiting)
}

/// The same in words.
pub(super) fn in_queue(facts: &Facts<'_>, share_min: f64) -> Option<String> {
    let queue = queue(facts, share_min)?;
    let mean = queue.waiting as f64 / queue.looks as f64;
    let room = match queue.backlog {
        Some(backlog) if queue.most >= u64::from(backlog) => {
            format!("; its queue takes {backlog} and was full: further clients wait outside of it")
        }
        Some(backlog) => format!(", of {backlog} that may"),
        None => String::new(),
    };
    Some(format!(
        "{mean:.1} connections wait to be accepted at {} on average, {} at most{room}",
        queue.local, queue.most
    ))
}

/// Other threads wait for locks or pipes, and this thread is who wakes them.
fn threads_wait(facts: &Facts<'_>, busiest: &ThreadCost) -> Option<String> {
    let off = facts.off.as_ref()?;
    let profile = off.profile;
    let (mut all, mut by_it, mut woken) = (0_u64, 0_u64, BTreeSet::new());
    for stack in
        profile.stacks.iter().filter(|stack| profile.threads[stack.thread as usize].tid != busiest.tid)
    {
        let class = stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default();
        if !matches!(class, WaitClass::Lock | WaitClass::Network) {
            continue;
        }
        let thread = &profile.threads[stack.thread as usize];
        if names::is(&thread.name, names::KEEPERS) {
            continue;
        }
        let tid = thread.tid;
        let run = off.threads.get(&tid).map_or(0, |time| time.run) as f64;
        let waker = stack.waker.and_then(|at| profile.wakers.get(at as usize));
        let is_by_it = waker.is_some_and(|waker| waker.tid == busiest.tid);
        // A run-time's idle helpers wait for whatever comes, all of the time: they are no measure.
        all += if is_by_it || run >= OTHERS_WORK_MIN * off.window_ns { stack.weight_ns } else { 0 };
        if is_by_it {
            by_it += stack.weight_ns;
            woken.insert(tid);
        }
    }
    let (all, by_it) = (all as f64, by_it as f64);
    let work = |tid: &u32| off.threads.get(tid).map_or(0, |time| time.run) as f64;
    let waits = by_it >= WAIT_FOR_IT_MIN * all
        && by_it >= OTHERS_WAIT_MIN * off.window_ns
        && woken.iter().map(work).sum::<f64>() >= OTHERS_WORK_MIN * off.window_ns;
    waits.then(|| format!("{} of the other threads' waits were ended by it", percent(by_it / all)))
}

/// The generator is the limit, not the server.
pub(super) fn generator_limited(facts: &Facts<'_>) -> Outcome {
    let Some(load) = &facts.seen.load else { return Outcome::Unseen("the load: none was given by --load") };
    let text = format!("the generator was busy {} of the time; {}", percent(load.busy), load.limited_why);
    if load.limited != Limit::Yes {
        return Outcome::Against(text);
    }
    Outcome::Found(
        Draft::new(
            Class::GeneratorLimited,
            load.busy,
            "the load could not be made larger: the server may be faster than shown",
        )
        .sure(Confidence::High)
        .fact(text, load.busy, "share")
        .sign(rate(load))
        .next("more threads for the load (-t) on CPUs that the server leaves, or a second machine"),
    )
}

fn rate(load: &Load) -> String {
    format!(
        "{:.0} requests per second over {} connections are the generator's figure",
        load.replies_per_s, load.connections
    )
}

/// Others use the CPUs, or the hypervisor takes them.
pub(super) fn noisy_neighbor(facts: &Facts<'_>) -> Outcome {
    let host = &facts.seen.host;
    if host.all_ns == 0 {
        return Outcome::Unseen("where the CPUs' time went (/proc/stat)");
    }
    let share = |ns: u64| ns as f64 / host.all_ns as f64;
    let (foreign, steal) = (share(host.foreign_ns), share(host.steal_ns));
    let delay = delay(facts);
    // It waits for its peers as well, and for its own threads where more of them are busy than there are CPUs.
    let busy = facts.seen.threads.iter().filter(|thread| facts.runs(thread) >= BUSY_MIN).count();
    let own_ns = if busy > host.cpus as usize { facts.seen.process.cpu_ns } else { 0 };
    let used_ns = host.foreign_ns + host.peers_ns + own_ns;
    let by_others = host.foreign_ns as f64 / used_ns.max(1) as f64;
    let felt = delay.is_none_or(|delay| delay * by_others >= DELAY_MIN);
    // What it costs: little, where who waits for a CPU is not what is waited for.
    let cost = delay.and_then(|_| cost_of_waiting(facts)).map(|cost| cost * by_others);
    let waited = delay.map_or_else(String::new, |delay| {
        let threads = format!("; its threads waited {} of their time for a CPU", percent(delay));
        if host.foreign_ns == 0 {
            threads
        } else {
            format!("{threads}, {} of it because of others", percent(by_others))
        }
    });
    let text = format!(
        "others used {} of its CPUs' time, the hypervisor {}{waited}",
        percent(foreign),
        percent(steal)
    );
    let named = |used: &[(String, u64)]| {
        let all: Vec<String> =
            used.iter().take(NAMED_MAX).map(|(name, ns)| format!("{name} {}", percent(share(*ns)))).collect();
        (!all.is_empty()).then(|| all.join(", "))
    };
    if (foreign < FOREIGN_MIN || !felt) && steal < STEAL_MIN {
        let peers = share(host.peers_ns);
        if peers < FOREIGN_MIN {
            // Both are needed: what falls shorter decides.
            let felt = delay.map_or(f64::INFINITY, |delay| delay * by_others / DELAY_MIN);
            let others = if foreign / FOREIGN_MIN <= felt {
                (foreign, FOREIGN_MIN)
            } else {
                (felt * DELAY_MIN, DELAY_MIN)
            };
            return Outcome::near(&[others, (steal, STEAL_MIN)], text);
        }
        let text = format!("its own peers on this machine used {} of its CPUs' time", percent(peers));
        let draft = Draft::new(Class::NoisyNeighbor, peers, text).sign_if(named(&host.peers));
        return Outcome::Noted(draft.next("peers on CPUs of their own, or on another machine"));
    }
    let draft = Draft::new(Class::NoisyNeighbor, foreign + steal, text)
        .sure(Confidence::High)
        .fact(format!("others used {} of its CPUs' time", percent(foreign)), foreign, "share")
        .fact(format!("the hypervisor kept {}", percent(steal)), steal, "share")
        .sign_if(with_the_rest(named(&host.neighbours), &host.neighbours, foreign, share))
        .sign_if(yielding(host.yielding_ns, share))
        .next("stop them, or keep them off the server's CPUs (cpuset); on a shared host, another host");
    match cost.filter(|cost| *cost < DELAY_MIN && steal < STEAL_MIN) {
        Some(cost) => {
            let text = format!("that is {} of the time that what it does takes", percent(cost));
            Outcome::Noted(draft.fact(text, cost, "share"))
        }
        None => Outcome::Found(draft),
    }
}

/// Neighbours that are named.
const NAMED_MAX: usize = 3;
/// Of what others used, the part of those without a name from which on it is told.
const REST_MIN: f64 = 0.25;
/// Of the CPUs' time, what those who give way must use to be told.
const YIELDING_TOLD_MIN: f64 = 0.10;

/// The names of neighbours, and how much those used that have none.
fn with_the_rest(
    names: Option<String>,
    others: &[(String, u64)],
    all: f64,
    share: impl Fn(u64) -> f64,
) -> Option<String> {
    let rest = all - others.iter().take(NAMED_MAX).map(|(_, ns)| share(*ns)).sum::<f64>();
    if rest < REST_MIN * all || all < FOREIGN_MIN {
        return names;
    }
    let unnamed = format!("{} in processes that ended meanwhile or used little each", percent(rest));
    Some(names.map_or(unnamed.clone(), |names| format!("{names}, and {unnamed}")))
}

/// Who leaves a CPU to whoever wants it takes nothing.
fn yielding(ns: u64, share: impl Fn(u64) -> f64) -> Option<String> {
    (share(ns) >= YIELDING_TOLD_MIN).then(|| {
        format!("{} more went to processes that give way (SCHED_IDLE, nice 14 and more)", percent(share(ns)))
    })
}

/// Waiting for a CPU as a share of what takes time: of what requests take, where some are held, as many as there are at a time; of
/// one thread's time, where that one has work for most of it and they may wait for it; else all threads' waiting, of the window.
fn cost_of_waiting(facts: &Facts<'_>) -> Option<f64> {
    let seen = facts.seen;
    let share = |ns: u64| ns as f64 / 1e9 / seen.duration_s.max(1e-9);
    let ran: u64 = seen.threads.iter().map(|thread| thread.run_ns).sum();
    // What processes waited that are gone is not known.
    if (ran as f64) < SEEN_MIN * seen.process.cpu_ns as f64 {
        return None;
    }
    let all = share(seen.threads.iter().map(|thread| thread.wait_ns).sum());
    let serving = seen.packets.as_ref().and_then(|packets| packets.serving);
    let Some(owed) = serving.map(|serving| serving.owed()).filter(|owed| *owed >= OWED_MIN) else {
        return Some(all);
    };
    let busiest = seen.threads.iter().max_by_key(|thread| thread.run_ns + thread.wait_ns);
    let full = busiest.filter(|one| share(one.run_ns + one.wait_ns) >= RUNS_HALF_MIN);
    Some((all / owed).max(full.map_or(0.0, |one| share(one.wait_ns))))
}

/// Share of the threads' time in which they could run and got no CPU; `None` where none did either.
fn delay(facts: &Facts<'_>) -> Option<f64> {
    let threads = &facts.seen.threads;
    let run: u64 = threads.iter().map(|thread| thread.run_ns).sum();
    let wait: u64 = threads.iter().map(|thread| thread.wait_ns).sum();
    (run + wait > 0).then(|| wait as f64 / (run + wait) as f64)
}

/// The cgroup's CPU quota holds the server back.
pub(super) fn throttled(facts: &Facts<'_>) -> Outcome {
    let Some(quota) = &facts.seen.quota else { return Outcome::Unseen("the cgroup's cpu.stat") };
    let share = if quota.periods > 0 { quota.throttled as f64 / quota.periods as f64 } else { 0.0 };
    let text = format!("its quota held it in {} of {} periods", quota.throttled, quota.periods);
    if share < THROTTLED_MIN {
        return Outcome::near(&[(share, THROTTLED_MIN)], text);
    }
    let cpus = quota.cpus.map_or_else(|| "a quota".to_owned(), |cpus| format!("a quota of {cpus} CPUs"));
    let held_ns = quota.throttled_ns as f64;
    let draft = Draft::new(
        Class::Throttled,
        share,
        format!("{cpus} holds it back in {} of all periods", percent(share)),
    )
    .fact(text, share, "share")
    .fact(format!("its threads were held for {:.1} s in all", held_ns / 1e9), held_ns / 1e9, "s")
    .next("raise cpu.max (cgroup v2) or cpu.cfs_quota_us (v1), or run fewer threads than it allows CPUs");
    if held_ns < HELD_MIN * (facts.seen.process.cpu_ns as f64 + held_ns) {
        return Outcome::Noted(draft);
    }
    Outcome::Found(draft.sure(Confidence::High))
}

/// What all findings about pools that are too small begin with.
pub(super) fn pool_draft(spare: f64, summary: String) -> Draft {
    Draft::new(Class::PoolLimit, spare, summary)
        .fact(format!("{} of its CPUs' time is free", percent(spare)), spare, "share")
        .next("as many workers as tasks wait at a time (Little's law: arrivals per second × seconds each waits), or a task each")
        .specimen("pool-of-100")
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
