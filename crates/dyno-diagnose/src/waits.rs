//! The off-CPU profile digested: for what each thread waited, at which locks, and who kept whom waiting.
//!
//! A wait is no fault by itself: a server waits for requests, a pool's thread for work. What counts is time that a thread
//! could have worked: on a CPU, runnable, or held up by a lock, a disk or a page. Called by `facts`, read by the rules.

use std::collections::{BTreeMap, BTreeSet};

use dyno_record::observation::{Observation, Serving};
use dyno_record::profile::{Frame, Origin, Profile, Span, Stack, ThreadState, WaitClass, Waker};

use super::equals::Equals;
use super::flushers::{self, Waits};
use super::frames::{crowd, is_own, leaf_first, own_place};
use super::idle::{Idle, is_event_call, is_poll};
use super::names;
use super::whose_lock::{is_interpreter_lock, made_by, run_time_lock};

/// One thread's time, in nanoseconds of the off-CPU profile's window.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ThreadTime {
    pub(super) run: u64,
    pub(super) run_queue: u64,
    /// Locks that others held.
    pub(super) contended: u64,
    /// The same, inside the allocator.
    pub(super) allocator: u64,
    /// Locks whose holder waited for a disk.
    pub(super) behind_disk: u64,
    /// Conditions and the like that a thread ended which was at a disk meanwhile.
    pub(super) for_flusher: u64,
    pub(super) disk: u64,
    pub(super) fault: u64,
    pub(super) sleep: u64,
    /// How often.
    pub(super) sleeps: u64,
    pub(super) network: u64,
    /// Of it, what was spent in calls that wait for an answer, and not for something to do.
    pub(super) answers: u64,
    /// Of `network`, what was spent in `poll` and its like, for one or the other, and how often.
    pub(super) polled: u64,
    pub(super) polls: u64,
    /// Of `polled`, what the clock ended, and how often.
    pub(super) timed: u64,
    pub(super) timeouts: u64,
    /// Of `network`, what was spent waiting for a name server, and how often.
    pub(super) names: u64,
    pub(super) lookups: u64,
    /// Conditions, joins, barriers, pipes: nothing to do, but for what a flusher ended.
    pub(super) awaiting: u64,
    /// Of `run`, what the kernel did to get bytes onto a disk before the call came back: `fsync` and its like.
    pub(super) syncing: u64,
    /// Its time at a disk, where it writes behind others that work meanwhile and nobody waits for it.
    pub(super) behind_all: u64,
}

/// Share of their life that a pool's threads sleep: they take no part in the work otherwise.
pub(super) const SLEEP_SHARE_MIN: f64 = 0.75;
/// Share of a busy thread: one that runs less is a helper.
const RUNS_MIN: f64 = 0.000_5;

/// A lock, by its address or by the place where it is taken.
#[derive(Debug, Clone, Default)]
pub(super) struct Lock {
    pub(super) wait_ns: u64,
    pub(super) waits: u64,
    pub(super) waiters: BTreeSet<u32>,
    pub(super) wakers: BTreeSet<u32>,
    /// Functions of the program in which it was waited for, and in which it was given back.
    pub(super) functions: BTreeSet<String>,
    pub(super) place: Option<String>,
    pub(super) kind: LockKind,
    /// Its waiters end each other's waits, at words of their own perhaps: only all of them together tell whether somebody
    /// holds it, and that was asked.
    is_turn: bool,
    pub(super) behind_disk: bool,
}

impl Lock {
    /// Waits of a thread.
    fn count(&mut self, stack: &Stack, tid: u32, place: Option<String>) {
        self.wait_ns += stack.weight_ns;
        self.waits += stack.samples;
        self.waiters.insert(tid);
        self.place = self.place.take().or(place);
    }
}

/// Whose lock.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum LockKind {
    /// A mutex or the like.
    #[default]
    Mutex,
    /// The allocator's.
    Allocator,
    /// No lock: a worker waits for work.
    Await,
    /// A futex without a name around it.
    Unknown,
}

/// Waits for a disk at one place.
#[derive(Debug, Clone, Default)]
pub(super) struct DiskWait {
    pub(super) ns: u64,
    pub(super) waits: u64,
    /// The system call it happened in.
    pub(super) call: Option<String>,
    pub(super) place: Option<String>,
}

/// The digest.
pub(super) struct OffCpu<'o> {
    pub(super) profile: &'o Profile,
    /// The target's threads, by number.
    own: BTreeSet<u32>,
    pub(super) window_ns: f64,
    pub(super) threads: BTreeMap<u32, ThreadTime>,
    pub(super) locks: BTreeMap<String, Lock>,
    /// By system call and file.
    pub(super) disks: BTreeMap<String, DiskWait>,
    /// Waits at futexes and at pipes between the target's own threads, by who waited and who ended them; a run-time's idle threads
    /// are not in it.
    handed: BTreeMap<(u32, u32), Handed>,
    /// Waits at unix sockets that another thread of the target's ended, by what it sent or took.
    pub(super) at_sockets: u64,
    /// Those for something to do, or for a word that it is done: at futexes, and at pipes.
    awaited: Waits,
    /// How many waits of others each thread ended, of whatever kind.
    ended: BTreeMap<u32, u64>,
    /// Others' share of the CPU time that was used.
    crowd: f64,
    /// Waits that equals end.
    equals: Equals,
    /// Whether it is a Go program: its threads' waits in futexes are for goroutines to run.
    is_go: bool,
    /// Whether some thread waits for a disk, or syncs: only then may who holds a file's lock do so for it.
    meets_disk: bool,
    /// Memory that several processes share.
    shared: &'o [[u64; 2]],
}

/// A thread's time inside of the program's functions.
struct Inside {
    tid: u32,
    functions: BTreeSet<String>,
    ns: u64,
}

/// What one thread waited for another.
#[derive(Debug, Clone, Default)]
pub(super) struct Handed {
    pub(super) ns: u64,
    pub(super) waits: u64,
    /// The pipes at which it did.
    pipes: BTreeSet<String>,
}

/// Waits that some threads ended, and which of them did.
#[derive(Debug, Clone, Default)]
pub(super) struct Ended {
    pub(super) ns: u64,
    pub(super) waits: u64,
    pub(super) by: BTreeSet<u32>,
}

/// Two threads that run in turns.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turns {
    pub(super) threads: (u32, u32),
    /// The less of both threads' waits for the other, as a share of the window.
    pub(super) share: f64,
    /// Waits of both per second.
    pub(super) per_s: f64,
}

/// Of what a lock's holders do, the disk's share from which on the lock is held for it.
const HOLDERS_AT_DISK_MIN: f64 = 0.4;
/// Of the time for which a lock is waited for, what its holders spend at a disk however full the machine is: beside twenty that want
/// the same CPU a holder at a fast disk waits for it 16 times as long as for the disk.
const HELD_AT_DISK_MIN: f64 = 0.02;
/// Of the window, what who meets others at locks must run: who wakes somebody now and then does not work.
const MEETS_RAN_MIN: f64 = 0.01;
/// Threads beside those that wait at locks, on average, for one that holds them: a lock that is handed on has nobody for a moment.
const ONE_AT_A_TIME_MAX: f64 = 1.3;
/// Own functions of a stack that may be the one in which a lock is held: a lock of the program's own making takes two.
const OWN_FUNCTIONS: usize = 4;
/// Both threads wait for each other at least this share of the time; on a full machine they wait for a CPU as well.
const TURN_SHARE_MIN: f64 = 0.1;
/// Of a thread's waits at futexes, those that the other thread must have ended for the two to be a pair.
const PEER_SHARE_MIN: f64 = 0.8;
/// Of the window, what some thread must spend at a disk for the kernel's lock of a file to be held for it.
const DISK_MET_MIN: f64 = 0.05;
/// Of the CPU time, what threads that are at no disk must use to be those who work while one writes behind them.
const WORKS_BESIDE_MIN: f64 = 0.2;
/// Both together run no longer than one CPU could: never at the same time. Where it is known when they ran, so much of the time they
/// may both do so: who writes runs on for a moment while the other wakes.
const TOGETHER_MAX: f64 = 1.15;
/// Of the window, what a thread waits at locks, or keeps others waiting, from which on it meets others there.
const MEETS_MIN: f64 = 0.1;

impl<'o> OffCpu<'o> {
    pub(super) fn new(profile: &'o Profile, seen: &'o Observation) -> OffCpu<'o> {
        let window_ns = profile.duration_s * 1e9;
        let serving = seen.packets.as_ref().and_then(|packets| packets.serving.as_ref());
        let idle = Idle::of(profile, serving.map_or(0.0, Serving::owed));
        let mut off = OffCpu {
            profile,
            own: profile.threads.iter().map(|thread| thread.tid).collect(),
            window_ns,
            threads: BTreeMap::new(),
            locks: BTreeMap::new(),
            disks: BTreeMap::new(),
            handed: BTreeMap::new(),
            at_sockets: 0,
            awaited: Waits::new(),
            ended: BTreeMap::new(),
            crowd: crowd(seen),
            equals: if seen.goroutines.is_some() { Equals::default() } else { Equals::of(profile, &idle) },
            is_go: seen.goroutines.is_some(),
            meets_disk: false,
            shared: &seen.shared,
        };
        off.take_run_times(seen);
        off.take_sync_times(seen);
        off.meets_disk = off.at_disks_ns() as f64 >= DISK_MET_MIN * window_ns;
        for stack in &profile.stacks {
            off.take(stack);
        }
        off.tell_locks_from_waiting(&idle);
        off.find_holders_at_disks(seen);
        off.share_out_locks();
        off.find_flushers();
        off.find_writers_behind(seen);
        off
    }

    /// Run times come from the counters' window; the profile's may be another. Threads that began since, as those of a program that
    /// is started again and again, have what the profile saw of them.
    fn take_run_times(&mut self, seen: &Observation) {
        let scale = if seen.duration_s > 0.0 { self.window_ns / 1e9 / seen.duration_s } else { 0.0 };
        for thread in &seen.threads {
            self.threads.entry(thread.tid).or_default().run = (thread.run_ns as f64 * scale) as u64;
        }
        let counted: BTreeSet<u32> = seen.threads.iter().map(|thread| thread.tid).collect();
        for times in &self.profile.thread_times {
            let tid = self.profile.threads[times.thread as usize].tid;
            if !counted.contains(&tid) {
                self.threads.entry(tid).or_default().run = times.running_ns;
            }
        }
    }

    /// On a fast disk a call that syncs spends as much time in the kernel's code as it waits.
    fn take_sync_times(&mut self, seen: &Observation) {
        let Some(on) = &seen.on_cpu else { return };
        let mut spent = BTreeMap::<u32, (u64, u64)>::new();
        for stack in &on.stacks {
            let frames = leaf_first(on, stack);
            let syncs = frames.iter().any(|frame| names::is(&frame.name, names::SYNC));
            let of_thread = on.threads.get(stack.thread as usize).map_or(0, |thread| thread.tid);
            let (all, in_sync) = spent.entry(of_thread).or_default();
            *all += stack.weight_ns;
            *in_sync += if syncs { stack.weight_ns } else { 0 };
        }
        for (tid, (all, in_sync)) in spent {
            let Some(time) = self.threads.get_mut(&tid) else { continue };
            time.syncing = (time.run as f64 * in_sync as f64 / all.max(1) as f64) as u64;
        }
    }

    /// Time of all threads that goes into disks themselves.
    fn at_disks_ns(&self) -> u64 {
        let is_at_disk = |stack: &&Stack| {
            stack.wait.as_ref().is_some_and(|wait| wait.class == WaitClass::Disk)
                && !waits_for_nothing(stack, self.threads.get(&self.tid(stack)), self.window_ns)
        };
        let waited: u64 = self.profile.stacks.iter().filter(is_at_disk).map(|stack| stack.weight_ns).sum();
        waited + self.sum(|time| time.syncing)
    }

    /// System calls of these names in a second.
    pub(super) fn calls_per_s(&self, table: names::Table) -> f64 {
        let calls = self.profile.system_calls.iter().filter(|(name, _)| names::is(name, table));
        calls.map(|(_, call)| call.count).sum::<u64>() as f64 / self.profile.duration_s.max(1e-9)
    }

    fn tid(&self, stack: &Stack) -> u32 {
        self.profile.threads[stack.thread as usize].tid
    }

    fn take(&mut self, stack: &Stack) {
        let frames = leaf_first(self.profile, stack);
        let (tid, ns) = (self.tid(stack), stack.weight_ns);
        let class = self.class(stack, &frames);
        let at_lock = class == WaitClass::RunQueue && self.equals.is_place_of_turns(self.profile, stack);
        let for_pages = at_lock && is_address_space(&frames);
        let looks_again = class == WaitClass::Sleep && self.looks_again(&frames);
        let by_clock = self.is_ended_in(stack, names::CLOCK);
        if class != WaitClass::RunQueue
            && let Some(waker) = self.waker(stack).filter(|waker| waker.tid != tid)
        {
            *self.ended.entry(waker.tid).or_default() += stack.samples;
        }
        let time = self.threads.entry(tid).or_default();
        match class {
            // Woken for a lock and not there yet: had the lock been free, it would not have slept.
            WaitClass::RunQueue if for_pages => time.fault += ns,
            WaitClass::RunQueue if at_lock => time.contended += ns,
            // What others' processes made it wait says nothing of the target.
            WaitClass::RunQueue => time.run_queue += (ns as f64 * (1.0 - self.crowd)) as u64,
            WaitClass::Disk => {
                time.disk += ns;
                self.take_disk(stack, &frames);
            }
            WaitClass::Network => {
                time.network += ns;
                let call = stack.wait.as_ref().and_then(|wait| wait.system_call.as_deref());
                time.awaiting += if is_at_pipe(stack) { ns } else { 0 };
                time.answers += if call.is_some_and(|call| !is_event_call(call)) { ns } else { 0 };
                if call.is_some_and(is_poll) {
                    (time.polled, time.polls) = (time.polled + ns, time.polls + stack.samples);
                    if by_clock {
                        (time.timed, time.timeouts) = (time.timed + ns, time.timeouts + stack.samples);
                    }
                }
                if frames.iter().any(|frame| names::is(&frame.name, names::RESOLVER)) {
                    (time.names, time.lookups) = (time.names + ns, time.lookups + stack.samples);
                }
                // What goes through a pipe is handed on by whoever is at its other end, as through a queue.
                if is_at_pipe(stack) {
                    self.await_of(stack, tid);
                }
                if is_at_pipe(stack) || self.is_ended_in(stack, names::WRITES_DESCRIPTOR) {
                    self.hand_over_pipe(stack, tid);
                } else if self.is_ended_in(stack, names::UNIX_SOCKETS) && self.is_ended_by_own(stack) {
                    self.at_sockets += stack.samples;
                }
            }
            WaitClass::Sleep if looks_again => {
                time.contended += ns;
                self.take_polled(stack, &frames);
            }
            WaitClass::Sleep => (time.sleep, time.sleeps) = (time.sleep + ns, time.sleeps + stack.samples),
            WaitClass::PageFault => time.fault += ns,
            WaitClass::Lock => self.take_lock(stack, &frames),
            WaitClass::Other => {}
        }
    }

    /// Whether who ended a wait did so in one of these functions: by writing into an eventfd or a pipe, say, and not by a word from the
    /// network.
    fn is_ended_in(&self, stack: &Stack, table: names::Table) -> bool {
        let frames = self.waker(stack).map_or(&[][..], |waker| &waker.frames);
        frames.iter().any(|at| names::is(&self.profile.frames[*at as usize].name, table))
    }

    /// A wait at a pipe, or an eventfd, whose other end is the target's as well.
    fn hand_over_pipe(&mut self, stack: &Stack, tid: u32) {
        let Some(waker) = self.waker(stack).filter(|waker| self.own.contains(&waker.tid)) else { return };
        let handed = self.handed.entry((tid, waker.tid)).or_default();
        handed.ns += stack.weight_ns;
        handed.waits += stack.samples;
        handed.pipes.extend(stack.wait.as_ref().and_then(|wait| wait.object.clone()));
    }

    /// Whether a thread of the target ended a wait.
    fn is_ended_by_own(&self, stack: &Stack) -> bool {
        self.waker(stack).is_some_and(|waker| self.own.contains(&waker.tid))
    }

    fn take_disk(&mut self, stack: &Stack, frames: &[&Frame]) {
        let wait = stack.wait.clone().unwrap_or_default();
        let named = wait.system_call.clone();
        let call = wait.system_call.unwrap_or_else(|| "the disk".to_owned());
        let key = wait.object.map_or(call.clone(), |file| format!("{call} of {file}"));
        let entry = self.disks.entry(key).or_default();
        entry.ns += stack.weight_ns;
        entry.waits += stack.samples;
        entry.call = named;
        entry.place = entry.place.take().or_else(|| own_place(self.profile, frames));
    }

    /// Whether a sleep is one between two looks at a lock.
    fn looks_again(&self, frames: &[&Frame]) -> bool {
        let user = || frames.iter().filter(|frame| frame.origin == Origin::User);
        let path = |frame: &Frame| frame.module.and_then(|at| self.profile.modules.get(at as usize));
        let is_in =
            |frame: &&Frame, table: names::Table| path(frame).is_some_and(|of| names::is(&of.path, table));
        let caller = user().find(|frame| !is_in(frame, names::LIBRARIES));
        caller.is_some_and(|frame| is_in(frame, names::LOOKS_AGAIN_MODULES))
            || user().any(|frame| names::is(&frame.name, names::LOOKS_AGAIN))
    }

    /// Nobody ends such a wait: who holds the lock may be another process.
    fn take_polled(&mut self, stack: &Stack, frames: &[&Frame]) {
        let (tid, place) = (self.tid(stack), own_place(self.profile, frames));
        let lock = self.locks.entry(format!("a database's lock {:?}", LockKind::Mutex)).or_default();
        lock.count(stack, tid, place);
        // Whether others hold it was asked by who sleeps.
        lock.is_turn = true;
    }

    /// What a wait was for: a turn is one at a lock, whatever the thread slept in.
    fn class(&self, stack: &Stack, frames: &[&Frame]) -> WaitClass {
        let class = wait_class(stack, frames, self.meets_disk);
        let time = self.threads.get(&self.tid(stack));
        if class == WaitClass::Disk && waits_for_nothing(stack, time, self.window_ns) {
            return WaitClass::Other;
        }
        let other = matches!(class, WaitClass::Network | WaitClass::Other);
        let turn = other && self.equals.turn(self.profile, stack).is_some();
        if turn { WaitClass::Lock } else { class }
    }

    fn kind(&self, stack: &Stack, frames: &[&Frame]) -> LockKind {
        match lock_kind(frames) {
            LockKind::Unknown if self.is_go => LockKind::Await,
            LockKind::Await | LockKind::Unknown if self.is_turn(stack, frames) => LockKind::Mutex,
            kind => kind,
        }
    }

    /// Whether it is known from its waiters alone that it is a lock.
    fn is_turn(&self, stack: &Stack, frames: &[&Frame]) -> bool {
        matches!(lock_kind(frames), LockKind::Await | LockKind::Unknown)
            && !self.is_go
            && self.equals.turn(self.profile, stack).is_some()
    }

    /// What a lock is called: by a name that a run-time gives it, its address, or the place in the code.
    fn name_of_lock(&self, stack: &Stack, frames: &[&Frame], kind: LockKind) -> String {
        let object = stack.wait.as_ref().and_then(|wait| wait.object.clone());
        let named = run_time_lock(frames).map(str::to_owned).filter(|_| kind == LockKind::Mutex);
        let object = object.map(|object| self.across_processes(object)).map(|word| match made_by(frames) {
            Some(whose) if kind == LockKind::Mutex => format!("{word}, {whose}"),
            _ => word,
        });
        let named = named.or(object).or_else(|| own_place(self.profile, frames));
        named.unwrap_or_else(|| "an unnamed lock".to_owned())
    }

    /// A word of a process (`0x7f… (pid 7)`) in memory that several of them share is one lock for all of them.
    fn across_processes(&self, object: String) -> String {
        let address = object.split_once(" (pid ").map(|(address, _)| address);
        let number = address.and_then(|hex| u64::from_str_radix(hex.strip_prefix("0x")?, 16).ok());
        let is_shared =
            number.is_some_and(|at| self.shared.iter().any(|[start, end]| (*start..*end).contains(&at)));
        match address.filter(|_| is_shared) {
            Some(address) => format!("{address} (shared memory)"),
            None => object,
        }
    }

    fn take_lock(&mut self, stack: &Stack, frames: &[&Frame]) {
        let (waiter, place) = (self.tid(stack), own_place(self.profile, frames));
        let (kind, is_turn) = (self.kind(stack, frames), self.is_turn(stack, frames));
        let named = self.name_of_lock(stack, frames, kind);
        // The same address may be a mutex here and part of a condition there.
        let lock = self.locks.entry(format!("{named} {kind:?}")).or_default();
        (lock.kind, lock.is_turn) = (kind, is_turn);
        lock.count(stack, waiter, place);
        lock.functions.extend(own_functions(self.profile, frames));
        if let Some(waker) = stack.waker.and_then(|at| self.profile.wakers.get(at as usize)) {
            lock.wakers.insert(waker.tid);
            if !frames.iter().any(|frame| names::is(&frame.name, names::IDLE_RUN_TIME)) {
                let handed = self.handed.entry((waiter, waker.tid)).or_default();
                handed.ns += stack.weight_ns;
                handed.waits += stack.samples;
            }
            let frames: Vec<&Frame> =
                waker.frames.iter().rev().map(|at| &self.profile.frames[*at as usize]).collect();
            lock.functions.extend(own_functions(self.profile, &frames));
        }
    }

    /// Where no name says so: a lock is waited for by several threads that wake each other; work comes from elsewhere. And
    /// whatever its name, where all of its threads wait at once it is one for whose turn it is to wait for work.
    fn tell_locks_from_waiting(&mut self, idle: &Idle) {
        for lock in self.locks.values_mut().filter(|lock| lock.kind == LockKind::Unknown) {
            let each_other = lock.waiters.intersection(&lock.wakers).count() >= 2;
            lock.kind = if each_other { LockKind::Mutex } else { LockKind::Await };
        }
        for lock in self.locks.values_mut().filter(|lock| lock.kind == LockKind::Mutex && !lock.is_turn) {
            let those = lock.waiters.union(&lock.wakers).copied().collect();
            if !idle.have_work(&lock.waiters) && idle.wait_for_work(&those, lock.wait_ns) {
                lock.kind = LockKind::Await;
            }
        }
    }

    /// A lock's holder waited for a disk when the disk is waited for inside a function that takes or gives back the
    /// lock, by a thread that woke its waiters, and for as long as it takes to keep all of them waiting.
    fn find_holders_at_disks(&mut self, seen: &Observation) {
        let working = self.working_inside(seen);
        let (at_disk, for_cpu) = (self.inside(WaitClass::Disk), self.inside(WaitClass::RunQueue));
        for lock in self.locks.values_mut() {
            let is_inside = |at: &&Inside| !at.functions.is_disjoint(&lock.functions);
            let inside: Vec<&Inside> = at_disk.iter().filter(is_inside).collect();
            let for_cpu_ns: u64 = for_cpu.iter().filter(is_inside).map(|at| at.ns).sum();
            let gives_back = inside.iter().any(|at| lock.wakers.contains(&at.tid));
            // What the kernel does to get bytes onto the disk is done where they are waited for.
            let spent = |at: &Inside| {
                let time = self.threads.get(&at.tid).copied().unwrap_or_default();
                at.ns as f64 * (1.0 + time.syncing as f64 / time.disk.max(1) as f64)
            };
            let held_ns: f64 = inside.into_iter().map(spent).sum();
            let waited_ns = self.window_ns.min(lock.wait_ns as f64);
            let works_ns: u64 = working.iter().filter(is_inside).map(|at| at.ns).sum();
            // Whoever waits for a lock whose holder, or next holder, waits for a CPU waits for that: how full a machine is says
            // nothing of what the lock is held for.
            let on_full = HOLDERS_AT_DISK_MIN * (waited_ns - for_cpu_ns as f64);
            let at_disk = || spent_at_disks(&self.threads, &lock.wakers) >= HOLDERS_AT_DISK_MIN;
            let long = held_ns >= HOLDERS_AT_DISK_MIN * waited_ns
                || held_ns >= on_full.max(HELD_AT_DISK_MIN * waited_ns)
                    && held_ns >= HOLDERS_AT_DISK_MIN * (held_ns + works_ns as f64);
            let named = gives_back && long;
            // Without names: who gives it back is at the disk for most of the time in which it does not wait for it.
            let unnamed = lock.functions.is_empty();
            lock.behind_disk = lock.kind == LockKind::Mutex && (named || unnamed && at_disk());
        }
        let group = if self.meets_disk { self.alone_at_a_disk() } else { BTreeSet::new() };
        let of_group = |lock: &&mut Lock| lock.kind == LockKind::Mutex && lock.waiters.is_subset(&group);
        self.locks.values_mut().filter(of_group).for_each(|lock| lock.behind_disk = true);
    }

    /// Those who meet at locks, where no more than one of them at a time does anything but wait there or for a CPU: that one holds what
    /// they wait for, in whatever function (an interpreter's lock, say), and is at a disk for most of it. Else none.
    fn alone_at_a_disk(&self) -> BTreeSet<u32> {
        let ran = |tid: &u32| self.threads.get(tid).map_or(0, |time| time.run) as f64;
        let mutexes = self.locks.values().filter(|lock| lock.kind == LockKind::Mutex);
        let all = mutexes.flat_map(|lock| lock.waiters.union(&lock.wakers)).copied();
        let group: BTreeSet<u32> = all.filter(|tid| ran(tid) >= MEETS_RAN_MIN * self.window_ns).collect();
        let (mut waited_ns, mut for_cpu_ns) = (0, 0);
        for stack in self.profile.stacks.iter().filter(|stack| group.contains(&self.tid(stack))) {
            let frames = leaf_first(self.profile, stack);
            let lock = || self.lock_of(stack, &frames).map(|lock| lock.kind);
            match self.class(stack, &frames) {
                WaitClass::RunQueue => for_cpu_ns += stack.weight_ns,
                WaitClass::Lock if lock() == Some(LockKind::Mutex) => waited_ns += stack.weight_ns,
                _ => {}
            }
        }
        let times = group.iter().filter_map(|tid| self.threads.get(tid));
        let at_disk_ns = times.map(|time| time.disk + time.syncing).sum::<u64>() as f64;
        let beside_ns = group.len() as f64 * self.window_ns - (waited_ns + for_cpu_ns) as f64;
        // The one that has it may wait for a CPU as well.
        let held_ns = beside_ns + self.window_ns.min(for_cpu_ns as f64);
        let is_one = beside_ns <= ONE_AT_A_TIME_MAX * self.window_ns;
        if is_one && at_disk_ns >= HOLDERS_AT_DISK_MIN * held_ns { group } else { BTreeSet::new() }
    }

    /// Who runs inside of which of the program's functions, for how long in the profile's window; what syncs is no part of it.
    fn working_inside(&self, seen: &Observation) -> Vec<Inside> {
        let Some(on) = &seen.on_cpu else { return Vec::new() };
        let tid = |stack: &Stack| on.threads.get(stack.thread as usize).map_or(0, |thread| thread.tid);
        let mut sampled = BTreeMap::<u32, u64>::new();
        on.stacks.iter().for_each(|stack| *sampled.entry(tid(stack)).or_default() += stack.weight_ns);
        let of = |stack: &Stack| {
            let (tid, frames) = (tid(stack), leaf_first(on, stack));
            let run = self.threads.get(&tid)?.run as f64;
            let ns = (run * stack.weight_ns as f64 / sampled[&tid].max(1) as f64) as u64;
            let syncs = frames.iter().any(|frame| names::is(&frame.name, names::SYNC));
            let functions = own_functions(on, &frames).into_iter().collect();
            (!syncs).then_some(Inside { tid, functions, ns })
        };
        on.stacks.iter().filter_map(of).collect()
    }

    /// Who waits like that, and inside of which of the program's functions.
    fn inside(&self, class: WaitClass) -> Vec<Inside> {
        let so = |stack: &&Stack| self.class(stack, &leaf_first(self.profile, stack)) == class;
        let at = |stack: &Stack| {
            let functions = own_functions(self.profile, &leaf_first(self.profile, stack));
            Inside { tid: self.tid(stack), functions: functions.into_iter().collect(), ns: stack.weight_ns }
        };
        self.profile.stacks.iter().filter(so).map(at).collect()
    }

    fn share_out_locks(&mut self) {
        for stack in &self.profile.stacks {
            let frames = leaf_first(self.profile, stack);
            if self.class(stack, &frames) != WaitClass::Lock {
                continue;
            }
            let Some(lock) = self.lock_of(stack, &frames) else { continue };
            let (kind, behind_disk, is_turn) = (lock.kind, lock.behind_disk, lock.is_turn);
            let tid = self.tid(stack);
            // Who is woken from one to the next for a flusher's word looks like one who waits for his turn.
            if matches!(kind, LockKind::Await | LockKind::Unknown) || is_turn && !behind_disk {
                self.await_of(stack, tid);
            }
            let time = self.threads.entry(tid).or_default();
            match kind {
                LockKind::Mutex if behind_disk => time.behind_disk += stack.weight_ns,
                LockKind::Mutex => time.contended += stack.weight_ns,
                LockKind::Allocator => time.allocator += stack.weight_ns,
                LockKind::Await | LockKind::Unknown => time.awaiting += stack.weight_ns,
            }
        }
    }

    /// Waits of other threads that work, for something to do or for a word, which these ended.
    pub(super) fn ended_by(&self, tids: &BTreeSet<u32>) -> Ended {
        let works = |tid: &u32| self.threads.get(tid).is_some_and(|time| time.run > 0);
        let mut ended = Ended::default();
        for ((waiter, waker), awaited) in &self.awaited {
            if tids.contains(waker) && !tids.contains(waiter) && works(waiter) {
                ended.ns += awaited.ns;
                ended.waits += awaited.waits;
                ended.by.insert(*waker);
            }
        }
        ended
    }

    /// How many waits of others a thread ended.
    pub(super) fn ended(&self, tid: u32) -> u64 {
        self.ended.get(&tid).copied().unwrap_or_default()
    }

    /// CPU time of the threads of one process that meet at locks, that of the process where most is waited: those that wait there
    /// for a part of the time, and those who end these waits. And that of the target's other processes.
    pub(super) fn run_of_those_who_meet(&self) -> (u64, u64) {
        let process: BTreeMap<u32, u32> =
            self.profile.threads.iter().map(|thread| (thread.tid, thread.pid)).collect();
        let of = |tid: u32| process.get(&tid).copied().unwrap_or_default();
        let mut waited = BTreeMap::<u32, u64>::new();
        for (tid, time) in &self.threads {
            *waited.entry(of(*tid)).or_default() += time.contended;
        }
        let most = waited.into_iter().max_by_key(|(_, ns)| *ns).map_or(0, |(process, _)| process);
        let long = |ns: u64| ns as f64 >= MEETS_MIN * self.window_ns;
        let waits = |tid: u32| self.threads.get(&tid).is_some_and(|time| long(time.contended));
        let mut ended = BTreeMap::<u32, u64>::new();
        for ((_, waker), handed) in self.handed.iter().filter(|((waiter, _), _)| waits(*waiter)) {
            *ended.entry(*waker).or_default() += handed.ns;
        }
        let ends = |tid: u32| ended.get(&tid).is_some_and(|ns| long(*ns));
        let meet = self.threads.iter().filter(|(tid, _)| of(**tid) == most && (waits(**tid) || ends(**tid)));
        let elsewhere = self.threads.iter().filter(|(tid, _)| of(**tid) != most);
        (meet.map(|(_, time)| time.run).sum(), elsewhere.map(|(_, time)| time.run).sum())
    }

    /// Waits at futexes and pipes that threads of the target ended for each other, and how many threads waited.
    pub(super) fn waits_for_others(&self) -> (u64, usize) {
        let waiters: BTreeSet<u32> = self.handed.keys().map(|(waiter, _)| *waiter).collect();
        (self.handed.values().map(|handed| handed.waits).sum(), waiters.len())
    }

    /// A wait for something to do, or for a word, by who ended it.
    fn await_of(&mut self, stack: &Stack, tid: u32) {
        let waker = self.waker(stack).map_or(0, |waker| waker.tid);
        let awaited = self.awaited.entry((tid, waker)).or_default();
        awaited.ns += stack.weight_ns;
        awaited.waits += stack.samples;
    }

    /// Who waits for the word of a thread that is at a disk waits for the disk.
    fn find_flushers(&mut self) {
        for (tid, ns) in flushers::waited_for(&self.awaited, &self.at_disks()) {
            let time = self.threads.entry(tid).or_default();
            let as_turns = ns.saturating_sub(time.awaiting);
            (time.for_flusher, time.awaiting) = (ns, time.awaiting.saturating_sub(ns));
            time.contended = time.contended.saturating_sub(as_turns);
        }
    }

    /// Threads at a disk that serve nobody and for whom nobody waits, while others do a part of the work.
    fn find_writers_behind(&mut self, seen: &Observation) {
        let at_disks = self.at_disks();
        let run = self.sum(|time| time.run);
        let others = self.threads.iter().filter(|(tid, _)| !at_disks.contains_key(tid));
        let beside: u64 = others.map(|(_, time)| time.run).sum();
        // A Go program's threads wake each other for whatever there is to run: who waits for whom is not to be seen.
        if self.is_go || self.profile.wakers.is_empty() || (beside as f64) < WORKS_BESIDE_MIN * run as f64 {
            return;
        }
        let waited_for = self.waited_for();
        let awaited_min = DISK_MET_MIN * self.window_ns;
        for (tid, ns) in at_disks {
            let is_awaited = waited_for.get(&tid).is_some_and(|ns| *ns as f64 >= awaited_min);
            let Some(time) = self.threads.get_mut(&tid) else { continue };
            if !is_awaited && time.network == 0 && !sends(seen, tid) {
                time.behind_all = ns;
            }
        }
    }

    /// How long others waited for each thread: for its word, for what it sends, and for a file that it writes. The lock that
    /// somebody gives back in passing is no word.
    fn waited_for(&self) -> BTreeMap<u32, u64> {
        let mut waited = BTreeMap::<u32, u64>::new();
        for stack in &self.profile.stacks {
            let Some(waker) = self.waker(stack).filter(|waker| waker.tid != self.tid(stack)) else {
                continue;
            };
            let frames = leaf_first(self.profile, stack);
            let mut by = waker.frames.iter().map(|at| &self.profile.frames[*at as usize].name);
            let counts = match stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default() {
                WaitClass::Lock if self.class(stack, &frames) == WaitClass::Lock => self
                    .lock_of(stack, &frames)
                    .is_none_or(|lock| lock.kind == LockKind::Await || lock.is_turn || lock.behind_disk),
                WaitClass::Lock => true,
                // What an interrupt ends is nobody's doing.
                _ => by.any(|name| names::is(name, names::SENDS)),
            };
            *waited.entry(waker.tid).or_default() += if counts { stack.weight_ns } else { 0 };
        }
        waited
    }

    fn waker(&self, stack: &Stack) -> Option<&'o Waker> {
        stack.waker.and_then(|at| self.profile.wakers.get(at as usize))
    }

    /// Threads that are at a disk for most of what they do, and how long.
    fn at_disks(&self) -> BTreeMap<u32, u64> {
        let is_mostly = |tid: u32| spent_at_disks(&self.threads, &BTreeSet::from([tid])) >= flushers::MOSTLY;
        let at_disk = self.threads.iter().map(|(tid, time)| (*tid, time.disk + time.syncing));
        let long = at_disk.filter(|(_, ns)| *ns as f64 >= DISK_MET_MIN * self.window_ns);
        long.filter(|(tid, _)| is_mostly(*tid)).collect()
    }

    /// Of those who end others' waits the one that is there longest: its number, its name and its time there.
    pub(super) fn flusher(&self) -> Option<(u32, &'o str, u64)> {
        let ends = |tid: u32| self.awaited.keys().any(|(_, waker)| *waker == tid);
        let (tid, ns) =
            self.at_disks().into_iter().filter(|(tid, _)| ends(*tid)).max_by_key(|(_, ns)| *ns)?;
        let name = self.profile.threads.iter().find(|thread| thread.tid == tid)?.name.as_str();
        Some((tid, name, ns))
    }

    fn lock_of(&self, stack: &Stack, frames: &[&Frame]) -> Option<&Lock> {
        let kind = self.kind(stack, frames);
        self.locks.get(&format!("{} {kind:?}", self.name_of_lock(stack, frames, kind)))
    }

    /// Two threads that run in turns: each waits for the other alone, and never do both run.
    pub(super) fn turns(&self) -> Option<Turns> {
        let pairs = self.handed.keys().filter(|(waiter, waker)| waiter < waker && *waiter > 0);
        let turns = pairs.filter_map(|(one, other)| self.turns_of(*one, *other));
        turns.max_by(|a, b| a.per_s.total_cmp(&b.per_s))
    }

    fn turns_of(&self, one: u32, other: u32) -> Option<Turns> {
        let (there, back) = (self.handed.get(&(one, other))?, self.handed.get(&(other, one))?);
        let all = |tid: u32| {
            self.handed.iter().filter(|(pair, _)| pair.0 == tid).map(|(_, handed)| handed.ns).sum::<u64>()
        };
        let alone = |handed: &Handed, tid: u32| handed.ns as f64 >= PEER_SHARE_MIN * all(tid) as f64;
        let share = there.ns.min(back.ns) as f64 / self.window_ns.max(1.0);
        let per_s = (there.waits + back.waits) as f64 / (self.window_ns / 1e9).max(1e-9);
        // Who fills a pipe waits at the same one as who empties it: what goes through it goes one way, and both may work at a time.
        let both_ways = there.pipes.is_disjoint(&back.pipes);
        let turns = both_ways && alone(there, one) && alone(back, other);
        let turns = turns && self.together(one, other) <= TOGETHER_MAX;
        (turns && share >= TURN_SHARE_MIN).then_some(Turns { threads: (one, other), share, per_s })
    }

    /// How many CPUs two threads would need at most to run when they did: one, and the share of the time in which both ran. Without
    /// a timeline, what both ran.
    fn together(&self, one: u32, other: u32) -> f64 {
        let spans = |tid: u32| -> Vec<&Span> {
            self.profile
                .timeline
                .iter()
                .filter(|span| self.profile.threads[span.thread as usize].tid == tid)
                .collect()
        };
        let (of_one, of_other) = (spans(one), spans(other));
        let run = |tid: u32| self.threads.get(&tid).map_or(0, |time| time.run);
        let known = |spans: &[&Span]| {
            Some((spans.iter().map(|span| span.from_ns).min()?, spans.iter().map(|span| span.to_ns).max()?))
        };
        let (Some(a), Some(b)) = (known(&of_one), known(&of_other)) else {
            return (run(one) + run(other)) as f64 / self.window_ns.max(1.0);
        };
        let all_ns = a.1.min(b.1).saturating_sub(a.0.max(b.0));
        1.0 + both_run_ns(&of_one, &of_other) as f64 / all_ns.max(1) as f64
    }

    /// How long all ran but a run-time's own threads, which compile and collect for the others.
    pub(super) fn run_but_of_keepers(&self) -> u64 {
        let keep = self.profile.threads.iter().filter(|thread| names::is(&thread.name, names::KEEPERS));
        let keepers: BTreeSet<u32> = keep.map(|thread| thread.tid).collect();
        self.threads.iter().filter(|(tid, _)| !keepers.contains(tid)).map(|(_, time)| time.run).sum()
    }

    /// Sum over all threads.
    pub(super) fn sum(&self, of: impl Fn(&ThreadTime) -> u64) -> u64 {
        self.threads.values().map(of).sum()
    }

    /// Share of the threads' working time that is `of`.
    pub(super) fn share(&self, of: impl Fn(&ThreadTime) -> u64) -> f64 {
        let active = self.sum(ThreadTime::active);
        if active == 0 { 0.0 } else { self.sum(of) as f64 / active as f64 }
    }

    /// The same, each thread counted by its share of the CPU: what a thread that works beside waits for weighs little.
    pub(super) fn weighted_share(&self, of: impl Fn(&ThreadTime) -> u64) -> f64 {
        let run = self.sum(|time| time.run);
        let weighted = |time: &ThreadTime| of(time) as f64 / time.active().max(1) as f64 * time.run as f64;
        if run == 0 { self.share(of) } else { self.threads.values().map(weighted).sum::<f64>() / run as f64 }
    }

    /// Locks of a kind, those waited for longest first.
    pub(super) fn locks_of(&self, kind: LockKind) -> Vec<(&str, &Lock)> {
        let mut locks: Vec<(&str, &Lock)> = self
            .locks
            .iter()
            .filter(|(_, lock)| lock.kind == kind)
            .map(|(name, lock)| (name.rsplit_once(' ').map_or(name.as_str(), |pair| pair.0), lock))
            .collect();
        locks.sort_by_key(|(_, lock)| std::cmp::Reverse(lock.wait_ns));
        locks
    }
}

impl ThreadTime {
    /// Whether it works at all.
    pub(super) fn works(&self, window_ns: f64) -> bool {
        self.run as f64 >= RUNS_MIN * window_ns
    }

    /// Whether a thread that works does that for most of the time.
    pub(super) fn does_mostly(&self, ns: u64, window_ns: f64) -> bool {
        ns as f64 >= SLEEP_SHARE_MIN * window_ns && self.works(window_ns)
    }

    /// Time in which it worked or could have worked.
    pub(super) fn active(&self) -> u64 {
        self.run
            + self.run_queue
            + self.contended
            + self.allocator
            + self.behind_disk
            + self.for_flusher
            + self.disk
            + self.fault
    }
}

/// The profile's class, but for the kernel's own locks: who waits for the inode of a file waits for its disk, where anybody
/// does, and who waits for the address space waits for pages. And some run-times sleep in a futex.
fn wait_class(stack: &Stack, frames: &[&Frame], meets_disk: bool) -> WaitClass {
    let class = stack.wait.as_ref().map(|wait| wait.class).unwrap_or_default();
    let has =
        |origin, table| frames.iter().any(|frame| frame.origin == origin && names::is(&frame.name, table));
    let kernel = |table| has(Origin::Kernel, table);
    // The lock that a sleeper takes again when he wakes is one.
    let is_lock = || matches!(lock_kind(frames), LockKind::Mutex | LockKind::Allocator);
    if class == WaitClass::Lock && has(Origin::User, names::SLEEP) && !is_lock() {
        return WaitClass::Sleep;
    }
    if class != WaitClass::Lock || kernel(names::FUTEX) {
        return class;
    }
    match () {
        () if kernel(names::FILES) && meets_disk => WaitClass::Disk,
        () if is_address_space(frames) => WaitClass::PageFault,
        () => class,
    }
}

/// Whether a thread stands at the kernel's lock of the address space, which is taken for pages; the allocator's own doing is told of
/// the allocator.
fn is_address_space(frames: &[&Frame]) -> bool {
    let has =
        |origin, table| frames.iter().any(|frame| frame.origin == origin && names::is(&frame.name, table));
    has(Origin::Kernel, names::ADDRESS_SPACE)
        && !has(Origin::Kernel, names::FUTEX)
        && !has(Origin::User, names::ALLOCATOR)
}

/// Time in which both run; each one's spans are in order.
fn both_run_ns(one: &[&Span], other: &[&Span]) -> u64 {
    let runs = |spans: &[&Span]| -> Vec<(u64, u64)> {
        let run = spans.iter().filter(|span| span.state == ThreadState::Running);
        run.map(|span| (span.from_ns, span.to_ns)).collect()
    };
    let (one, other) = (runs(one), runs(other));
    let (mut at, mut both_ns) = (0, 0);
    for (from, to) in one {
        while at < other.len() && other[at].1 <= from {
            at += 1;
        }
        let those = other[at..].iter().take_while(|span| span.0 < to);
        both_ns += those.map(|span| to.min(span.1).saturating_sub(from.max(span.0))).sum::<u64>();
    }
    both_ns
}

/// Whether a thread waits for what comes through a pipe, or for room in it.
fn is_at_pipe(stack: &Stack) -> bool {
    let object = stack.wait.as_ref().and_then(|wait| wait.object.as_deref());
    object.is_some_and(|object| object.starts_with("pipe:"))
}

/// Whether a thread sends what others may wait for.
pub(super) fn sends(seen: &Observation, tid: u32) -> bool {
    let Some(on) = &seen.on_cpu else { return false };
    let is_its =
        |stack: &&Stack| on.threads.get(stack.thread as usize).is_some_and(|thread| thread.tid == tid);
    let mut stacks = on.stacks.iter().filter(is_its);
    stacks.any(|stack| leaf_first(on, stack).iter().any(|frame| names::is(&frame.name, names::SENDS)))
}

/// The threads that were seen to send something over sockets, as clients are answered.
pub(super) fn senders(on: &Profile) -> BTreeSet<u32> {
    let answers = |name: &str| names::is(name, names::SENDS) && !names::is(name, names::WRITES_DESCRIPTOR);
    let sends = |stack: &&Stack| leaf_first(on, stack).iter().any(|frame| answers(&frame.name));
    let threads = on.stacks.iter().filter(sends).filter_map(|stack| on.threads.get(stack.thread as usize));
    threads.map(|thread| thread.tid).collect()
}

/// Whether a thread that does no work waits for what disks may say: that of a library which has nothing asked for at the moment.
fn waits_for_nothing(stack: &Stack, time: Option<&ThreadTime>, window_ns: f64) -> bool {
    let call = stack.wait.as_ref().and_then(|wait| wait.system_call.as_deref());
    call.is_some_and(|call| REAPS.contains(&call)) && !time.is_some_and(|time| time.works(window_ns))
}

/// Calls that wait for whatever was asked of disks, and do so where nothing was.
const REAPS: [&str; 2] = ["io_getevents", "io_pgetevents"];

/// Of the time in which these threads wait for no lock and no CPU, the share that they spend on a disk.
fn spent_at_disks(threads: &BTreeMap<u32, ThreadTime>, tids: &BTreeSet<u32>) -> f64 {
    let times = tids.iter().filter_map(|tid| threads.get(tid));
    let (disk, all) = times.fold((0, 0), |(disk, all), time| {
        (disk + time.disk + time.syncing, all + time.disk + time.run + time.sleep)
    });
    disk as f64 / all.max(1) as f64
}

fn lock_kind(frames: &[&Frame]) -> LockKind {
    let user = |table: names::Table| {
        frames.iter().any(|frame| frame.origin == Origin::User && names::is(&frame.name, table))
    };
    if is_interpreter_lock(frames) {
        return LockKind::Mutex;
    }
    if user(names::COLLECTED_HEAPS) {
        return LockKind::Await;
    }
    match primitive(frames) {
        // A condition takes its mutex again when it wakes; and a monitor sleeps in a condition: what stands outside is it.
        Some(LockKind::Await) => LockKind::Await,
        Some(_) if user(names::ALLOCATOR) => LockKind::Allocator,
        Some(kind) => kind,
        None if user(names::ALLOCATOR) => LockKind::Allocator,
        None => LockKind::Unknown,
    }
}

/// The outermost way of waiting, below the program's own code: code further out may itself run inside somebody's wait.
fn primitive(frames: &[&Frame]) -> Option<LockKind> {
    let user = frames.iter().filter(|frame| frame.origin == Origin::User);
    let mut found = None;
    for frame in user {
        let is = |table: names::Table| names::is(&frame.name, table);
        match () {
            () if is(names::ACQUIRE) => found = Some(LockKind::Mutex),
            () if is(names::AWAIT) || is(names::TOGETHER) || is(names::IDLE_RUN_TIME) => {
                found = Some(LockKind::Await);
            }
            () if is(names::VIRTUAL_MACHINE) || is(names::WRAPPERS) || is(names::ALLOCATOR) => {}
            () if is(BENEATH) => {}
            () => return found,
        }
    }
    found
}

/// Frames that a wait may lie beneath: libraries without names, and run-times' own code.
const BENEATH: &[&str] = &[
    "0x*",
    "std::*",
    "core::*",
    "<*",
    "alloc::*",
    "runtime.*",
    "internal/*",
    "syscall*",
    "sync.*",
    "[*",
    "java.*",
    "jdk.*",
    "sun.*",
    "Interpreter*",
    "StubRoutines*",
    "*adapters",
];

/// The program's own functions in a stack.
fn own_functions(profile: &Profile, frames: &[&Frame]) -> Vec<String> {
    // Only the innermost: `main` and a thread's root are in every stack and prove nothing.
    let own = frames.iter().filter(|frame| is_own(profile, frame) && !frame.inlined);
    own.take(OWN_FUNCTIONS).map(|frame| frame.name.clone()).collect()
}
