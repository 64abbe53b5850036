//! Rules for CPUs that stand idle while there is work: disks, locks, the allocator's locks, pools of sleepers.

use std::collections::BTreeSet;

use dyno_record::finding::{Class, Confidence};

use super::answers;
use super::atomics::locks_on_one_line;
use super::draft::{Draft, Outcome, counted, percent};
use super::facts::{Cost, Facts};
use super::hand_over;
use super::kernel::met_in_kernel;
use super::memory::TOGETHER_MIN;
use super::one_sync;
use super::rings;
use super::spin;
use super::waits::{Lock, LockKind, OffCpu};
use super::whose_lock::INTERPRETERS_LOCK;

/// A fifth of the threads' working time: below it, curing the wait brings less than a quarter more.
const WAIT_SHARE_MIN: f64 = 0.20;
/// While less than this is free, threads that do not wait for a lock would wait for a CPU instead.
const SPARE_MIN: f64 = 0.10;
/// Where others use the CPUs, so much waiting is not only for a holder that they keep from running.
const WAIT_SHARE_ALONE: f64 = 0.40;
/// The target's own share of its CPUs from which on more of its threads would only wait for each other.
const OWN_CPU_MAX: f64 = 0.75;
/// CPUs that threads use together which work one at a time: one, and what waking and taking turns adds.
const ONE_CPU_MAX: f64 = 1.15;
/// Of one thread's time: what all threads together wait for less is no loss, however little they do besides.
const CONTENDED_MIN: f64 = 0.1;
/// CPU time of a wait at most: into the kernel, to sleep, to be woken, and back.
const WAIT_CPU_NS: f64 = 20_000.0;
/// Where nobody waits for long and waits explain less than this of the CPU time at locks, their price is that of taking
/// them, and not that of sharing them.
const EXPLAINED_MIN: f64 = 0.25;
/// CPU time in futex(2), called by locks or beside no less in the locks themselves, from which threads meet at them though they
/// hardly sleep: a lock calls the kernel only where another holds it.
const FUTEX_MET_MIN: f64 = 0.02;
/// Of the CPU time that it takes to meet at a lock, the share that the calls take; the rest is the lock's, whose cache line goes
/// from one to the other.
const CALLS_OF_MEETING: f64 = 0.5;
/// CPU time spent on taking locks from which they cost, even when the CPUs are full.
const LOCK_CPU_MIN: f64 = 0.15;
/// The same, where a fifth of the time is waited besides, or locks call the kernel.
const LOCK_CPU_BESIDE: f64 = 0.10;
/// Fewer turns a second cost less than a fifth of the time: a sleep and a wake-up are some 20 µs. What the other does
/// between two turns is work, whoever does it.
const TURNS_PER_S_MIN: f64 = 10_000.0;
/// A call that puts this much on the disk is shared by many records already: the bytes take as long as the wait. Less than
/// that is often one record in a page or two, written again with the next one.
const GATHERED_BYTES: f64 = 65_536.0;
/// Who gathers waits at most so often: every 10 ms.
const OFTEN_PER_S: f64 = 100.0;
/// Of what waits for a disk, what must wait for the word of a thread that is there for that thread to be what is advised on.
const FLUSHED_MIN: f64 = 0.5;
/// Of the time that waits for a disk, what reads must wait for it to be them that hold up.
const READS_MIN: f64 = 0.75;
/// Reads of this size wait for the disk and not for each other: the kernel reads ahead by as much.
const READ_AT_ONCE_BYTES: f64 = 131_072.0;

const NO_WAITS: &str = "what threads waited for";

/// Requests wait for a disk.
pub(super) fn sync_io(facts: &Facts<'_>) -> Outcome {
    let Some(off) = &facts.off else { return Outcome::Unseen(NO_WAITS) };
    let by_threads =
        off.weighted_share(|time| time.disk + time.behind_disk + time.for_flusher + time.syncing);
    // Goroutines that wait for a mutex held at the disk have no thread to wait with.
    let behind = facts.at_mutexes.as_ref().filter(|at| at.behind_disk && at.share >= WAIT_SHARE_MIN);
    let share = behind.map_or(by_threads, |at| at.share.max(by_threads));
    let direct = off.weighted_share(|time| time.disk + time.syncing);
    if share < WAIT_SHARE_MIN {
        if let Some(draft) = one_sync::requests_behind(facts, off) {
            return Outcome::Found(draft);
        }
        if rings::of(facts).is_some() {
            return Outcome::Unseen(rings::WHAT);
        }
        let text = format!("{} of the working threads' time waits for a disk", percent(share));
        return Outcome::near(&[(share, WAIT_SHARE_MIN)], text);
    }
    let draft = io_draft(facts, off, share, direct);
    if share - off.weighted_share(|time| time.behind_all) < WAIT_SHARE_MIN && behind.is_none() {
        return Outcome::Noted(draft.sign(
            "who is at the disk writes behind others that work meanwhile: nobody was seen to wait for it",
        ));
    }
    if mostly_reads(off) {
        return reading(facts, draft);
    }
    let bytes = bytes_per_call(facts, off);
    let gathered = bytes.is_some_and(|bytes| bytes >= GATHERED_BYTES) && !waits_often(off);
    let by_one = off.weighted_share(|time| time.for_flusher) >= FLUSHED_MIN * share;
    let so = match () {
        () if gathered => ": they are gathered already, the disk itself is what is left",
        () if by_one => "",
        () => ": many could share one",
    };
    let draft = match bytes {
        Some(bytes) => {
            let text = format!("each call puts {bytes:.0} bytes on the disk{so}");
            draft.fact(text, bytes, "bytes per call")
        }
        None => draft,
    };
    let draft = if by_one { draft.instead(ANSWER_BEFORE) } else { draft };
    if gathered { Outcome::Noted(draft) } else { Outcome::Found(draft) }
}

/// What is left to do where one thread gathers what many write.
const ANSWER_BEFORE: &str = "one thread gathers already what others write: answer before the bytes are on the disk and say what a \
                             crash may lose, or make each sync cheaper (a file that has its size already, fdatasync, a disk \
                             whose memory outlives a loss of power)";

/// Whether so many calls wait for the disk that they gather nothing, whatever else is written meanwhile by other ways.
fn waits_often(off: &OffCpu<'_>) -> bool {
    let waits: u64 = off.disks.values().map(|wait| wait.waits).sum();
    waits as f64 >= OFTEN_PER_S * off.window_ns / 1e9
}

/// Whether most of what waits for a disk reads.
fn mostly_reads(off: &OffCpu<'_>) -> bool {
    let waited = |reads: bool| {
        let those = off.disks.values().filter(move |wait| wait.call.as_deref().is_some_and(is_read) == reads);
        those.map(|wait| wait.ns).sum::<u64>() as f64
    };
    let (reading, other) = (waited(true), waited(false));
    reading > 0.0 && reading >= READS_MIN * (reading + other)
}

/// Whether a system call that waits for a disk waits for what stands there.
fn is_read(call: &str) -> bool {
    const READS: [&str; 6] = ["read", "pread", "sendfile", "splice", "open", "getdents"];
    READS.iter().any(|begins| call.starts_with(begins)) || call.contains("stat")
}

/// Threads wait for what they read; in large pieces they wait for the disk itself.
fn reading(facts: &Facts<'_>, draft: Draft) -> Outcome {
    let reads = facts.seen.process.reads.filter(|reads| reads.calls > 0);
    let bytes = reads.map_or(0.0, |reads| reads.bytes as f64 / reads.calls as f64);
    let text = format!("each call that reads brings {bytes:.0} bytes");
    let draft = draft.fact(text, bytes, "bytes per call").instead(
        "keep in memory what is read again, read ahead (posix_fadvise, readahead), or read on threads beside",
    );
    if bytes >= READ_AT_ONCE_BYTES {
        Outcome::Noted(draft)
    } else {
        Outcome::Found(draft.sure(Confidence::Medium))
    }
}

fn io_draft(facts: &Facts<'_>, off: &OffCpu<'_>, share: f64, direct: f64) -> Draft {
    let mut disks: Vec<_> = off.disks.iter().collect();
    disks.sort_by_key(|(_, wait)| std::cmp::Reverse(wait.ns));
    // A file that was closed before it could be looked up has no name: one with a name says more.
    let top = disks.iter().find(|(what, _)| what.contains(" of ")).or(disks.first());
    let what = top.map_or("the disk".to_owned(), |(what, _)| (*what).clone());
    let held = off.weighted_share(|time| time.behind_disk);
    let flushed = off.weighted_share(|time| time.for_flusher);
    // Threads run other goroutines while some wait: a share of one is no share of the other.
    let goroutines = facts.at_mutexes.as_ref().filter(|at| at.behind_disk);
    let (summary, of) = match goroutines.is_some_and(|at| at.share >= share) {
        true => (
            format!("{} of the goroutines that could work wait behind {what}", percent(share)),
            "the working threads' time",
        ),
        false => {
            (format!("{} of the working threads' time goes into waiting for {what}", percent(share)), "it")
        }
    };
    let draft = Draft::new(Class::SyncIo, share, summary).sure(Confidence::High).fact(
        format!("{} of {of} waits for the disk itself", percent(direct)),
        direct,
        "share",
    );
    let draft = disks.iter().take(3).fold(draft, |draft, (what, wait)| {
        let mean_us = wait.ns as f64 / 1e3 / wait.waits.max(1) as f64;
        draft.fact(format!("{what}: {} waits of {mean_us:.0} µs on average", wait.waits), mean_us, "µs")
    });
    let draft = match goroutines {
        Some(at) => draft.fact(
            format!("{:.1} goroutines wait for mutexes whose holder waits for the disk: the lock is not the cause", at.waiting),
            at.waiting,
            "goroutines",
        ),
        None => draft,
    };
    let draft = if held >= 0.01 {
        let text = format!(
            "{} waits for locks whose holder waits for the disk: the lock is not the cause",
            percent(held)
        );
        draft.fact(text, held, "share")
    } else {
        draft
    };
    let draft = for_flusher(off, draft, flushed);
    let is_it = |path: &str| what.strip_suffix(path).is_some_and(|call| call.ends_with(" of "));
    let opened = facts.seen.files.iter().find(|(path, flags)| flags.contains("SYNC") && is_it(path));
    draft
        .sign_if(opened.map(|(path, flags)| format!("{path} was opened with {flags}: every write waits by itself")))
        .next("hand the bytes to a thread beside, or gather several records for one write; say what a crash may lose")
        .rung("log-ring")
        .at(top.and_then(|(_, wait)| wait.place.clone()))
        .specimen("sync-log")
}

/// What waits for the word of a thread that is at the disk, and which that is.
fn for_flusher(off: &OffCpu<'_>, draft: Draft, share: f64) -> Draft {
    let Some((tid, name, ns)) = off.flusher().filter(|_| share >= 0.01) else { return draft };
    let there = percent(ns as f64 / off.window_ns);
    let text = format!(
        "{} waits for another thread to come back from the disk: {name} ({tid}) is there {there} of the time",
        percent(share)
    );
    draft.fact(text, share, "share")
}

/// Bytes that each call which waited put on the disk, where writes are what is waited for: one call may wait several
/// times. Where calls were not counted, each wait stands for one.
fn bytes_per_call(facts: &Facts<'_>, off: &OffCpu<'_>) -> Option<f64> {
    // `write` and its like serve sockets and pipes too: how many of them were for the disk is not counted.
    let is_for_disks = |call: &&String| call.starts_with('p') || call.contains("sync");
    // What is read is not on the disk for it.
    let writes = || off.disks.values().filter(|wait| !wait.call.as_deref().is_some_and(is_read));
    let waited: BTreeSet<&String> = writes().filter_map(|wait| wait.call.as_ref()).collect();
    let all_counted = waited.iter().all(is_for_disks);
    let counts = waited.iter().filter_map(|call| off.profile.system_calls.get(*call)).map(|call| call.count);
    let counted: u64 = if all_counted { counts.sum() } else { 0 };
    let waits: u64 = writes().map(|wait| wait.waits).sum();
    let calls = if counted > 0 { counted } else { waits };
    let scale = off.window_ns / 1e9 / facts.seen.duration_s.max(1e-9);
    let bytes = facts.seen.process.disk_write_bytes? as f64 * scale;
    (calls > 0 && bytes > 0.0).then(|| bytes / calls as f64)
}

/// Threads wait for each other at a lock.
pub(super) fn lock_contention(facts: &Facts<'_>) -> Outcome {
    facts.as_goroutines_show(at_locks(facts))
}

fn at_locks(facts: &Facts<'_>) -> Outcome {
    let goroutines = facts.at_mutexes.as_ref().filter(|at| !at.behind_disk).map(|at| at.share);
    let threads = facts.off.as_ref().map(|off| off.share(|time| time.contended));
    let contended_ns = |off: &OffCpu<'_>| off.sum(|time| time.contended) as f64;
    let little = goroutines.is_none()
        && facts.off.as_ref().is_some_and(|off| {
            contended_ns(off) < CONTENDED_MIN * off.window_ns || are_few_of_those_owed(facts, off)
        });
    let waited = threads.into_iter().chain(goroutines).reduce(f64::max);
    let spent = facts.cpu_share(&[Cost::UserLock, Cost::Futex, Cost::LockCall]);
    let behind_disk = facts.off.as_ref().map_or(0.0, |off| off.share(|time| time.behind_disk));
    let (Some(waited), spent) = (waited.or(spent.map(|_| 0.0)), spent.unwrap_or(0.0)) else {
        return Outcome::Unseen(NO_WAITS);
    };
    let free = facts.spare().is_none_or(|spare| spare >= SPARE_MIN);
    // Where waits cannot be seen, threads that never run at the same time do not meet either.
    let met = facts.off.as_ref().map_or(facts.seen.cpus_used() >= TOGETHER_MIN, |off| {
        let waits: u64 = off.locks_of(LockKind::Mutex).iter().map(|(_, lock)| lock.waits).sum();
        let spent_ns = spent * facts.seen.cpus_used() * off.window_ns;
        waits as f64 * WAIT_CPU_NS >= EXPLAINED_MIN * spent_ns
    });
    let holds_up =
        !little && (waited >= WAIT_SHARE_MIN && free || waited >= WAIT_SHARE_ALONE && has_room(facts));
    // What little CPU time is used may go into locks: where there is plenty it is no loss.
    let [by_anybody, by_locks, in_locks] =
        [Cost::Futex, Cost::LockCall, Cost::UserLock].map(|cost| facts.cpu_share(&[cost]).unwrap_or(0.0));
    let in_kernel = by_anybody + by_locks;
    let explained = in_kernel / CALLS_OF_MEETING >= EXPLAINED_MIN * spent;
    let is_met = by_locks >= FUTEX_MET_MIN || in_kernel >= FUTEX_MET_MIN && in_locks >= in_kernel;
    let calls = is_met && explained;
    let beside = calls || waited >= WAIT_SHARE_MIN && !little;
    let spends = spent >= LOCK_CPU_MIN || spent >= LOCK_CPU_BESIDE && beside;
    let spun = spin::at_locks(facts) >= LOCK_CPU_MIN;
    let costs = spends && !facts.has_cpu_to_spare() && (waited >= 0.01 && !little || met || calls || spun);
    if !holds_up && !costs {
        let on_one_line = || locks_on_one_line(facts, LOCK_CPU_MIN);
        let drafts = turns(facts, free).or_else(|| met_in_kernel(facts)).or_else(on_one_line);
        if let Some(draft) = drafts.or_else(|| hand_over::costs_more_than_work(facts)) {
            return Outcome::Found(draft);
        }
        let held = facts.at_mutexes.as_ref().filter(|at| at.behind_disk && at.waiting >= 0.5);
        let held =
            held.map(|at| format!("; {:.1} goroutines wait for holders that wait for a disk", at.waiting));
        let disk = if let Some(held) = &held {
            held
        } else if behind_disk >= WAIT_SHARE_MIN {
            "; the rest waits for holders that wait for a disk"
        } else if little && waited >= WAIT_SHARE_MIN {
            "; all together less than a tenth of one thread's time, or of those who wait for answers"
        } else {
            ""
        };
        let text = format!(
            "{} of the working threads' time waits for locks, {} of the CPU takes them{disk}",
            percent(waited),
            percent(spent)
        );
        let of_thread = facts.off.as_ref().map_or(0.0, |off| contended_ns(off) / off.window_ns);
        let waits = if little { (of_thread, CONTENDED_MIN) } else { (waited, WAIT_SHARE_MIN) };
        return nearer_turns(facts, free, [waits, (spent, LOCK_CPU_MIN)], text);
    }
    let draft = lock_draft(facts, Class::LockContention, LockKind::Mutex, waited, spent);
    // How a pool keeps others waiting: a lock, a semaphore, a queue.
    match answers::none_is_free(facts).filter(|_| !costs) {
        Some(pool) => Outcome::Noted(draft.sign(format!(
            "who waits there waits for one of {:.1} connections to {}, none of which is free",
            pool.connections, pool.remote
        ))),
        None => Outcome::Found(draft),
    }
}

/// Of the requests that are held, those that stand at locks, from which on locks are what keeps them.
const OF_OWED_MIN: f64 = 0.1;
/// Fewer requests than this do not tell.
const OWED_MIN: f64 = 2.0;
/// Of its time, what a thread spends at locks that keeps all that it serves: an event loop's clients wait while it does.
const OF_THREAD_MIN: f64 = 0.1;

/// Whether hardly any of the requests that are held wait at locks: the others wait for something else, and what is used of the
/// working time says nothing where threads work for next to none of it. All that are told news at once meet for a moment.
fn are_few_of_those_owed(facts: &Facts<'_>, off: &OffCpu<'_>) -> bool {
    let owed = facts.seen.packets.as_ref().and_then(|packets| packets.serving).map_or(0.0, |all| all.owed());
    let at_locks = off.sum(|time| time.contended) as f64 / off.window_ns;
    let most = off.threads.values().map(|time| time.contended).max().unwrap_or(0);
    owed >= OWED_MIN && at_locks < OF_OWED_MIN * owed && (most as f64) < OF_THREAD_MIN * off.window_ns
}

/// Whether the target itself, with those who ask it, leaves nothing of its CPUs.
fn fills_cpus(facts: &Facts<'_>) -> bool {
    let host = &facts.seen.host;
    fills(facts, (facts.seen.process.cpu_ns + host.peers_ns + host.own_ns) as f64)
}

fn fills(facts: &Facts<'_>, used_ns: f64) -> bool {
    let host = &facts.seen.host;
    host.all_ns > 0 && used_ns >= OWN_CPU_MAX * host.all_ns as f64
}

/// Whether those who wait for a lock could use more CPU than they do.
fn has_room(facts: &Facts<'_>) -> bool {
    !fills_cpus(facts) || work_one_at_a_time(facts)
}

/// Whether those of a process who meet at locks use one CPU together, and leave some: then the lock lets one of them work at a
/// time, whatever else the process does meanwhile, as a compiler does beside the code that it makes faster. What other processes
/// of the target use is used.
fn work_one_at_a_time(facts: &Facts<'_>) -> bool {
    let Some(off) = &facts.off else { return false };
    let (host, seconds) = (&facts.seen.host, facts.seen.duration_s);
    let (together, elsewhere) = off.run_of_those_who_meet();
    let cpus = |ns: u64| ns as f64 / off.window_ns.max(1.0);
    let used_ns = cpus(together + elsewhere) * seconds * 1e9 + (host.peers_ns + host.own_ns) as f64;
    cpus(together) <= ONE_CPU_MAX && !fills(facts, used_ns)
}

/// Two threads hand one thing to each other: each sleeps until the other wakes it.
fn turns(facts: &Facts<'_>, free: bool) -> Option<Draft> {
    let turns = facts.off.as_ref()?.turns().filter(|turns| free && turns.per_s >= TURNS_PER_S_MIN)?;
    let (one, other) = turns.threads;
    let summary = format!(
        "threads {one} and {other} run in turns: {:.0} times a second one sleeps until the other wakes it",
        turns.per_s
    );
    let spare = facts.spare().unwrap_or(0.0);
    let draft = Draft::new(Class::LockContention, turns.share, summary)
        .sure(Confidence::High)
        .fact(format!("each waits for the other for {} of the time or more, and for nobody else", percent(turns.share)), turns.share, "share")
        .fact(format!("{:.0} sleeps and wake-ups a second", turns.per_s), turns.per_s, "per second")
        .fact(format!("{} of its CPUs' time is free meanwhile", percent(spare)), spare, "share")
        .next("let one thread do both parts (a call, a coroutine), or hand over many things at a time through a queue")
        .specimen("wait-notify");
    Some(draft)
}

/// What comes nearest to waiting at locks; or two threads that run in turns less often than would cost much.
fn nearer_turns(facts: &Facts<'_>, free: bool, shares: [(f64, f64); 2], text: String) -> Outcome {
    let turns = facts.off.as_ref().and_then(OffCpu::turns).filter(|_| free);
    let turns = turns.map_or(0.0, |turns| turns.per_s);
    let part = turns / TURNS_PER_S_MIN;
    if shares.iter().all(|(share, line)| share / line < part) {
        let text = format!("{text}; two threads run in turns, {turns:.0} times a second");
        return Outcome::short(part, format!("{TURNS_PER_S_MIN:.0}"), text);
    }
    Outcome::near(&shares, text)
}

/// Threads wait for each other inside the allocator.
pub(super) fn allocator_contention(facts: &Facts<'_>) -> Outcome {
    let waited = facts.off.as_ref().map(|off| off.share(|time| time.allocator));
    let spent = facts.cpu_share(&[Cost::AllocatorLock]);
    let (Some(waited), spent) = (waited.or(spent.map(|_| 0.0)), spent.unwrap_or(0.0)) else {
        return Outcome::Unseen(NO_WAITS);
    };
    let free = facts.spare().is_none_or(|spare| spare >= SPARE_MIN);
    let holds_up = waited >= WAIT_SHARE_MIN && free || waited >= WAIT_SHARE_ALONE && !fills_cpus(facts);
    // Who sleeps for a lock and who burns time on taking it suffer from the same.
    let both = waited * f64::from(u8::from(free)) + spent;
    if !holds_up && spent < LOCK_CPU_MIN && both < WAIT_SHARE_MIN {
        let text = format!(
            "{} of the working threads' time waits for the allocator's locks, {} of the CPU takes them",
            percent(waited),
            percent(spent)
        );
        return Outcome::near(&[(both, WAIT_SHARE_MIN), (spent, LOCK_CPU_MIN)], text);
    }
    Outcome::Found(lock_draft(facts, Class::AllocatorContention, LockKind::Allocator, waited, spent))
}

/// CPU time below this prints as nothing.
const SPENT_TOLD_MIN: f64 = 0.0005;

fn lock_draft(facts: &Facts<'_>, class: Class, kind: LockKind, waited: f64, spent: f64) -> Draft {
    let locks = facts.off.as_ref().map(|off| off.locks_of(kind)).unwrap_or_default();
    let top = locks.first();
    let whose = if kind == LockKind::Allocator { "the allocator's locks" } else { "locks" };
    let costs = [Cost::UserLock, Cost::LockCall, Cost::Futex, Cost::AllocatorLock];
    let goroutines = facts.at_mutexes.as_ref().filter(|at| kind == LockKind::Mutex && at.waiting >= 0.5);
    let place = goroutines.and_then(|at| at.place.clone());
    let place = place.or_else(|| top.and_then(|(_, lock)| lock.place.clone()));
    let place = place.or_else(|| Some(facts.on.as_ref()?.places(&costs).first()?.0.clone()));
    let summary = match goroutines.is_some_and(|at| at.share >= waited) {
        true => format!("{} of the goroutines that could work wait for {whose}", percent(waited)),
        false => format!("{} of the working threads' time waits for {whose}", percent(waited)),
    };
    let draft = Draft::new(class, waited.max(spent), summary).sure(if waited >= 2.0 * WAIT_SHARE_MIN {
        Confidence::High
    } else {
        Confidence::Medium
    });
    // A goroutine that waits uses no CPU: that none goes into locks is no evidence there.
    let draft = match goroutines.is_some() && spent < SPENT_TOLD_MIN {
        true => draft,
        false => draft.fact(
            format!("{} of the CPU time goes into taking and giving back {whose}", percent(spent)),
            spent,
            "share",
        ),
    };
    let draft = locks.iter().take(3).fold(draft, |draft, (name, lock)| {
        draft.fact(lock_in_words(name, lock), lock.wait_ns as f64 / 1e9, "s")
    });
    let draft = match goroutines {
        Some(at) => draft.fact(
            format!("{:.1} goroutines wait for mutexes at a time", at.waiting),
            at.waiting,
            "goroutines",
        ),
        None => draft,
    };
    let draft = match facts.spare() {
        Some(spare) => {
            draft.fact(format!("{} of its CPUs' time is free meanwhile", percent(spare)), spare, "share")
        }
        None => draft,
    };
    if class == Class::AllocatorContention {
        let text =
            "an allocator with caches of its own for each thread; free memory in the thread that took it";
        draft.next(text).rung("allocator").at(place).specimen("allocator-contention")
    } else {
        let of_interpreter = top.is_some_and(|(name, _)| *name == INTERPRETERS_LOCK);
        draft.next(if of_interpreter { ONE_AT_A_TIME } else { HOLD_LESS }).at(place).specimen("global-lock")
    }
}

const HOLD_LESS: &str =
    "hold the lock for less, split it, or give each thread its own part and join them rarely";
const ONE_AT_A_TIME: &str = "one thread at a time runs the interpreter: processes in place of threads (multiprocessing, more workers), or work that \
                             gives the lock up while it is done (numpy, zlib, a C extension, Ruby's Ractor, a Python without a GIL)";

fn lock_in_words(name: &str, lock: &Lock) -> String {
    let mean_us = lock.wait_ns as f64 / 1e3 / lock.waits.max(1) as f64;
    let place = lock.place.as_ref().map_or_else(String::new, |place| format!(" in {place}"));
    let ended = match lock.wakers.len() {
        0 => String::new(),
        wakers => format!(", ended by {}", counted(wakers as u64, "thread")),
    };
    format!(
        "{name}: {} of {mean_us:.0} µs on average by {}{place}{ended}",
        counted(lock.waits, "wait"),
        counted(lock.waiters.len() as u64, "thread")
    )
}

#[cfg(test)]
#[path = "blocking_tests.rs"]
mod tests;
