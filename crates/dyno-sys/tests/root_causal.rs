//! The causal probe in the kernel: both ways of pausing load, others pause for what one thread runs, whoever waits is
//! credited or pays, and nobody pauses any more when the probe or its reader is gone.
//!
//! What is compared is counted or paid time, never a rate: the machine may be busy.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use dyno_sys::bpf;
use dyno_sys::bpf::causal::{
    Children, Counted, Counts, Mark, Pausing, Probe, Reach, Role, Tried, Visits, Waits, WaitsFor,
};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::proc::FileId;
use dyno_sys::signal::{self, Signal};
use dyno_sys::{Pid, proc};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

const MS: u64 = 1_000_000;
const PERIOD_NS: u64 = MS;
/// Half of the period for each hit: half of the code's time is gone.
const HALF_NS: u64 = PERIOD_NS / 2;

/// The probe looks at the whole machine: one test at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Each function that is tried lies in a section of its own, whose borders the program tells.
const PROGRAM: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define OWN(name) __attribute__((section("own_" #name), noinline)) void name
#define BORDERS(name) extern char __start_own_##name[], __stop_own_##name[]; printf(#name " %p %p\n", (void *)__start_own_##name, (void *)__stop_own_##name)
static void burn(long n) __attribute__((always_inline));
static inline void burn(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" ::: "memory"); }
OWN(f60)(long n) { burn(6 * n); }
OWN(f30)(long n) { burn(3 * n); }
OWN(f10)(long n) { burn(n); }
OWN(progress)(void) { __asm__ volatile(".byte 0x0f,0x1f,0x44,0,0"); }
static volatile int came; OWN(waits)(void) { while (!came) __builtin_ia32_pause(); }
OWN(caller)(long n) { f60(n); __asm__ volatile(""); }
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static void nap(long us) { struct timespec t = { 0, us * 1000 }; nanosleep(&t, 0); }
static void *in_f60(void *x) { for (;;) f60(1000); return x; }
static void *in_f30(void *x) { for (;;) { f30(10000); progress(); } return x; }
/* Laps of one length would be met by the samples' clock at the same places again and again, and 600 of them would not be 600. */
static long varied(void) { static unsigned seed = 1; seed = seed * 1103515245 + 12345; return 5000 + seed / 65536 % 10000; }
static void *periodic(void *x) { for (;;) { long n = varied(); nap(1000 + n / 10); f30(20 * n); progress(); } return x; }
/* A beat of two turns of the samples' clock, by the clock that it goes by. */
static void *steady(void *x) {
    struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
    for (;;) {
        if ((t.tv_nsec += 2000000) >= 1000000000) { t.tv_nsec -= 1000000000; t.tv_sec++; }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, 0); f30(500000); progress();
    }
    return x;
}
static int ping[2], pong[2];
static void *ponger(void *x) { char c; for (;;) { if (read(ping[0], &c, 1) != 1) break; f30(20000); if (write(pong[1], &c, 1) != 1) break; } return x; }
static void *pinger(void *x) { char c = 'x'; for (;;) { f60(10000); if (write(ping[1], &c, 1) != 1) break; if (read(pong[0], &c, 1) != 1) break; progress(); } return x; }
static void *in_waits(void *x) { waits(); return x; }
static void *sets(void *x) { for (;;) { came = 0; f60(20000); came = 1; f30(20000); } return x; }
static void *waits_and_works(void *x) { for (;;) { waits(); f10(60000); progress(); } return x; }
static void *in_f60_once(void *n) { f60((long)n); return 0; }
/* A socket of the loopback device, and where its datagrams come from and go to: itself, or nobody. */
static struct sockaddr_in here = { AF_INET };
static int datagrams(void) {
    int s = socket(AF_INET, SOCK_DGRAM, 0); socklen_t size = sizeof here; here.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (bind(s, (void *)&here, size) || getsockname(s, (void *)&here, &size)) _exit(1);
    return s;
}
static int to;
static void *receiver(void *x) { char c; for (;;) if (recv(to, &c, 1, 0) == 1) { f30(10000); progress(); } return x; }
/* A timeout of this kind is a soft interrupt's; on one CPU it comes upon the thread that runs there. */
static void *times_out(void *x) { char c; for (;;) { recv(to, &c, 1, 0); progress(); } return x; }
static void start(void *(*life)(void *)) { pthread_t t; pthread_create(&t, 0, life, 0); }
/* Each on a CPU of its own: the kernel may leave two that have to run on the same one, and the other to a neighbour, for
 * longer than an experiment lasts. */
static void start_apart(void *(*lives[])(void *), int count) {
    cpu_set_t all, one; sched_getaffinity(0, sizeof all, &all);
    for (int i = 0, cpu = -1; i < count; i++) {
        do cpu = (cpu + 1) % CPU_SETSIZE; while (!CPU_ISSET(cpu, &all));
        CPU_ZERO(&one); CPU_SET(cpu, &one); sched_setaffinity(0, sizeof one, &one);
        start(lives[i]);
    }
    sched_setaffinity(0, sizeof all, &all);
}
int main(int count, char **words) {
    BORDERS(f60); BORDERS(f30); BORDERS(f10); BORDERS(progress); BORDERS(caller); BORDERS(waits);
    printf("\n"); fflush(stdout);
    if (!strcmp(words[1], "three")) for (;;) { long n = varied(); f60(n); f30(n); f10(n); progress(); }
    if (!strcmp(words[1], "calls")) for (;;) { long n = varied(); caller(n); f30(2 * n); progress(); }
    if (!strcmp(words[1], "two")) start_apart((void *(*[])(void *)){in_f60, in_f30}, 2);
    if (!strcmp(words[1], "spins")) start_apart((void *(*[])(void *)){in_f60, in_waits}, 2);
    if (!strcmp(words[1], "spins_and_works")) start_apart((void *(*[])(void *)){sets, waits_and_works}, 2);
    if (!strcmp(words[1], "periodic")) { start(in_f60); start(periodic); }
    if (!strcmp(words[1], "steady")) { start(in_f60); start(steady); }
    if (!strcmp(words[1], "pingpong")) { if (pipe(ping) || pipe(pong)) return 1; start(ponger); start(pinger); }
    if (!strcmp(words[1], "napper")) for (;;) { nap(2000); f30(10000); progress(); }
    if (!strcmp(words[1], "joins")) for (;;) { pthread_t t; pthread_create(&t, 0, in_f60_once, (void *)(10 * varied())); pthread_join(t, 0); f30(20000); progress(); }
    if (!strcmp(words[1], "forks")) for (;;) { long n = 10 * varied(); if (!fork()) { f60(n); _exit(0); } wait(0); f30(20000); progress(); }
    if (!strcmp(words[1], "datagrams")) { to = datagrams(); start(receiver); for (;;) { f60(10000); sendto(to, "x", 1, 0, (void *)&here, sizeof here); } }
    if (!strcmp(words[1], "times_out")) {
        cpu_set_t one; CPU_ZERO(&one); CPU_SET(0, &one); sched_setaffinity(0, sizeof one, &one);
        struct timeval after = { 0, 8000 }; to = datagrams(); setsockopt(to, SOL_SOCKET, SO_RCVTIMEO, &after, sizeof after);
        start(times_out); in_f60(0);
    }
    if (!strcmp(words[1], "spawns")) for (int i = 0;; i++) { pthread_t t; pthread_create(&t, 0, (void *(*)(void *))f10, (void *)1000); pthread_join(t, 0); progress(); }
    pause();
    return count;
}
"#;

/// A running program of the kind that is named; it ends with the test.
struct Running {
    child: Child,
    pid: Pid,
    folder: PathBuf,
    places: BTreeMap<String, Range<u64>>,
}

impl Running {
    fn start(kind: &str) -> Running {
        let folder = std::env::temp_dir().join(format!("dyno-causal-{}-{kind}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (source, program) = (folder.join("causal.c"), folder.join("causal"));
        std::fs::write(&source, PROGRAM).unwrap();
        let flags = ["-O2", "-fno-omit-frame-pointer", "-fcf-protection=none", "-pthread", "-o"];
        let built = Command::new("cc").args(flags).arg(&program).arg(&source).status().unwrap();
        assert!(built.success());
        let mut child = Command::new(&program).arg(kind).stdout(Stdio::piped()).spawn().unwrap();
        let places = places(&mut child);
        Running { pid: child.id().cast_signed(), child, folder, places }
    }

    fn place(&self, name: &str) -> Range<u64> {
        self.places[name].clone()
    }

    /// Where in its file the progress point lies.
    fn progress_offset(&self) -> u64 {
        let at = self.place("progress").start;
        let mappings = proc::mappings(self.pid).unwrap();
        let holds = |mapping: &&proc::Mapping| (mapping.start..mapping.end).contains(&at);
        let mapping = mappings.iter().find(holds).unwrap();
        at - mapping.start + mapping.offset
    }

    fn image(&self) -> PathBuf {
        self.folder.join("causal")
    }

    fn tried(&self, pausing: Pausing) -> Probe {
        self.tried_with(pausing, Children::Strangers)
    }

    fn tried_with(&self, pausing: Pausing, children: Children) -> Probe {
        let mut probe = Probe::load(Some(pausing)).unwrap();
        let tasks = proc::tasks(self.pid);
        probe.take_in(self.pid, Role::Target, children, &tasks).unwrap();
        probe.attach(PERIOD_NS).unwrap();
        probe
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

fn places(child: &mut Child) -> BTreeMap<String, Range<u64>> {
    let mut found = BTreeMap::new();
    for line in BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [name, from, to] = words[..] else { break };
        let address = |text: &str| u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap();
        found.insert(name.to_owned(), address(from)..address(to));
    }
    found
}

/// One experiment's counts, long enough for `samples` of the target.
struct Tally {
    counts: Counts,
    inserted_ns: u64,
    visits: Visits,
}

fn experiment(probe: &mut Probe, tried: &Tried<'_>, samples: u64) -> Tally {
    let deadline_ns = mono_ns() + 20_000 * MS;
    static WINDOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let number = WINDOW.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let before = probe.counts();
    probe.begin(tried, deadline_ns).unwrap();
    probe.open_window(number);
    while probe.counts().since(&before).samples < samples {
        assert!(mono_ns() < deadline_ns, "too few samples: {:?}", probe.counts().since(&before));
        sleep_ns(5 * MS);
    }
    probe.close_window();
    let inserted_ns = probe.inserted_ns();
    probe.end();
    let visits = probe.visits(Counted::Visits, number).unwrap();
    Tally { counts: probe.counts().since(&before), inserted_ns, visits }
}

fn alone() -> std::sync::MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn samples_hit_each_function_as_often_as_it_runs() {
    let _alone = alone();
    let running = Running::start("three");
    let mut probe = running.tried(Pausing::TaskWork);
    for (name, truth) in [("f60", 0.6), ("f30", 0.3), ("f10", 0.1)] {
        let ranges = [running.place(name)];
        let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: 0 };
        let tally = experiment(&mut probe, &tried, 600);
        let found = share(tally.counts.hits, tally.counts.samples);
        // Four standard errors of 600 samples at most.
        assert!((found - truth).abs() < 0.09, "{name}: {found} of {:?}", tally.counts);
        assert_eq!((tally.inserted_ns, tally.counts.pauses), (0, 0));
    }
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_caller_is_hit_only_where_the_whole_stack_counts() {
    let _alone = alone();
    let running = Running::start("calls");
    let mut probe = running.tried(Pausing::TaskWork);
    let ranges = [running.place("caller")];
    let of = |reach| Tried::Code { ranges: &ranges, reach, delay_ns: 0 };
    let own = experiment(&mut probe, &of(Reach::Own), 400).counts;
    let inclusive = experiment(&mut probe, &of(Reach::Inclusive), 400).counts;
    assert!(share(own.hits, own.samples) < 0.05, "{own:?}");
    let found = share(inclusive.hits, inclusive.samples);
    assert!((found - 0.5).abs() < 0.12, "{inclusive:?}");
}

/// Both ways of pausing.
const WAYS: [Pausing; 2] = [Pausing::TaskWork, Pausing::SpinInSample];

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_running_sibling_pays_what_the_hits_insert() {
    let _alone = alone();
    let running = Running::start("two");
    for way in WAYS {
        let mut probe = running.tried(way);
        let ranges = [running.place("f60")];
        let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
        let begun_ns = mono_ns();
        let tally = experiment(&mut probe, &tried, 800);
        let (counts, length_ns) = (tally.counts, mono_ns() - begun_ns);
        // Of 800 samples of both threads, where strangers leave this one the smallest share of a core.
        assert!(counts.hits > 60, "{way:?} {counts:?}");
        // One thread hits: each hit inserts once, unless the other's credit has gone beyond it.
        let expected = counts.hits * HALF_NS;
        assert!((0.9..=1.01).contains(&share(tally.inserted_ns, expected)), "{way:?} {counts:?}");
        // The sibling pays all but what it owes at the end. While strangers keep it from its core, its share of the pauses is taken
        // as paid.
        let (paid, kept) = (share(counts.paid_ns, tally.inserted_ns), share(counts.queued_ns, length_ns));
        assert!(paid < 1.5 && paid + kept > 0.8, "{way:?}: paid {paid}, kept {kept} {counts:?}");
        // A pause lasts what was asked, or longer when somebody else took the core meanwhile; the end cuts the last one, which may
        // be of some milliseconds where the sibling had waited for a core.
        assert!(counts.paid_ns >= counts.asked_ns * 95 / 100, "{way:?} {counts:?}");
        assert_eq!((counts.missed, counts.lost), (0, 0), "{way:?} {counts:?}");
    }
}

/// Planted faults: who waits in a loop pays at its samples (`spins` of 0); no loop is left (`spins` not counted).
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn who_waits_in_a_loop_owes_nothing_and_its_waits_are_counted() {
    let _alone = alone();
    for way in WAYS {
        let tried = |kind| {
            let running = Running::start(kind);
            let mut probe = running.tried(way);
            let ranges = [running.place("f60")];
            let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
            let unknown = experiment(&mut probe, &tried, 600).counts;
            probe.name_loops(&[running.place("waits")]).unwrap();
            (unknown, experiment(&mut probe, &tried, 600).counts)
        };
        let (unknown, known) = tried("spins");
        assert!(unknown.paid_ns > 20 * HALF_NS && unknown.of_spinners == 0, "{way:?} {unknown:?}");
        assert!(known.paid_ns < 5 * HALF_NS && known.hits > 100, "{way:?} {known:?}");
        assert!(known.spun == known.of_spinners && known.spun > 100 && known.spins == 0, "{way:?} {known:?}");
        let (_, known) = tried("spins_and_works");
        assert!(
            known.spins > 5 && known.spun > known.spins && known.of_spinners > known.spun,
            "{way:?} {known:?}"
        );
    }
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn pauses_leave_out_their_share_of_what_interrupts_take() {
    let _alone = alone();
    let running = Running::start("two");
    // The middle of fifteen, side by side: the end of an experiment cuts a pause.
    let shorter_ns = || {
        // With interrupts off nobody takes the core meanwhile.
        let mut probe = running.tried(Pausing::SpinInSample);
        let ranges = [running.place("f60")];
        let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: PERIOD_NS * 45 / 100 };
        let mut of = |interrupt_ns| {
            probe.set_interrupt(interrupt_ns);
            let counts = experiment(&mut probe, &tried, 400).counts;
            let less = counts.asked_ns.cast_signed() - counts.paid_ns.cast_signed();
            less / counts.pauses.max(1).cast_signed()
        };
        let mut all = [0_i64; 15].map(|_| of(40_000) - of(0));
        all.sort_unstable();
        all[7]
    };
    // Clocks that did not begin a pause beat while it lasts as often as elsewhere, so that no more of their interrupts lie
    // outside of pauses than should; of the one that did, half of an eighth or so: 3 µs, and some that the end of an
    // experiment cuts. Planted fault: all are taken for one clock, 20 µs.
    let taken_ns = shorter_ns();
    assert!((500..=8_000).contains(&taken_ns), "{taken_ns} ns a pause");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_single_thread_has_nobody_to_pay_and_its_time_shrinks_by_its_hits() {
    let _alone = alone();
    let running = Running::start("three");
    let mut probe = running.tried(Pausing::TaskWork);
    let _point =
        probe.probe(Mark::Visit, &running.image(), running.progress_offset(), Some(running.pid)).unwrap();
    let ranges = [running.place("f60")];
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
    let tally = experiment(&mut probe, &tried, 1_000);
    assert_eq!((tally.counts.pauses, tally.counts.paid_ns), (0, 0));
    assert!(tally.visits.count > 100, "{:?}", tally.visits);
    // Of the time that it ran: a busy machine takes some of the elapsed time away.
    let ran_ns = tally.counts.samples * PERIOD_NS;
    let saved = share(tally.visits.last.position_ns - tally.visits.first.position_ns, ran_ns);
    assert!((saved - 0.3).abs() < 0.05, "60 % of it twice as fast saves 30 %: {saved} {:?}", tally.counts);
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_thread_that_time_wakes_pays_and_gains_nothing() {
    let _alone = alone();
    let running = Running::start("periodic");
    let mut probe = running.tried(Pausing::TaskWork);
    let _point =
        probe.probe(Mark::Visit, &running.image(), running.progress_offset(), Some(running.pid)).unwrap();
    let ranges = [running.place("f60")];
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
    let tally = experiment(&mut probe, &tried, 1_500);
    assert!(tally.counts.outer_wakes > 20, "{:?}", tally.counts);
    // Wake-ups by its sibling are those of the scheduler's own work, if any.
    assert!(tally.counts.inner_wakes * 5 < tally.counts.outer_wakes, "{:?}", tally.counts);
    // It was not given what was inserted while it slept: nearly all of it was really paid. It works a tenth of the time, and so
    // a sample meets it each ten milliseconds or so, in which five are inserted: with a debt beyond the longest pause, 20 ms,
    // that is cut, once in fifty.
    let paid = share(tally.counts.paid_ns, tally.inserted_ns);
    assert!(paid > 0.5, "paid {paid} {:?}", tally.counts);
}

/// CPU time of one thread.
fn ran_ns(pid: Pid, tid: dyno_sys::Tid) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/schedstat")).unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}

/// Experiments of a quarter of a second, with all clocks drawn anew before each: what the counters count in them, and the
/// CPU time of the threads meanwhile.
fn drawn(
    probe: &mut Probe,
    tried: &Tried<'_>,
    threads: &[(Pid, dyno_sys::Tid)],
    times: u32,
) -> (Counts, Vec<u64>) {
    let (mut all, mut ran) = (probe.counts(), vec![0; threads.len()]);
    let before = all;
    for time in 0..times {
        for clock in 0..probe.clocks() {
            probe.draw_clock(clock, f64::from(time) * 0.618 % 1.0).unwrap();
            sleep_ns(MS);
        }
        probe.begin(tried, mono_ns() + 5_000 * MS).unwrap();
        let of = || threads.iter().map(|(pid, tid)| ran_ns(*pid, *tid));
        let began: Vec<u64> = of().collect();
        sleep_ns(250 * MS);
        probe.end();
        of().zip(began).zip(&mut ran).for_each(|((now, began), ran)| *ran += now - began);
    }
    all = probe.counts().since(&before);
    (all, ran)
}

/// Planted fault: one clock for each CPU, never drawn anew: it meets none of its work, or all of it at each turn.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_thread_in_step_with_the_samples_clock_is_met_as_often_as_it_works() {
    let _alone = alone();
    let running = Running::start("steady");
    let mut probe = running.tried(Pausing::TaskWork);
    let threads: Vec<_> = proc::tasks(running.pid).into_iter().map(|tid| (running.pid, tid)).collect();
    let ranges = [running.place("f30")];
    // Hits are those of the thread that keeps the beat alone.
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: 0 };
    let (counts, ran) = drawn(&mut probe, &tried, &threads, 24);
    let naps_ns = ran.last().copied().unwrap();
    let worth = naps_ns as f64 / PERIOD_NS as f64;
    // What is no function of its own is the kernel's part of each beat.
    assert!((counts.hits as f64 / worth - 0.9).abs() < 0.2, "{} hits, worth {worth}", counts.hits);
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_thread_that_its_sibling_wakes_is_credited() {
    let _alone = alone();
    let running = Running::start("pingpong");
    let mut probe = running.tried(Pausing::TaskWork);
    let ranges = [running.place("f60")];
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
    let tally = experiment(&mut probe, &tried, 1_000);
    assert!(tally.counts.inner_wakes > 100 * (tally.counts.outer_wakes + 1), "{:?}", tally.counts);
    // Whoever waits for the other's f60 would have waited less: it owes nothing.
    let paid = share(tally.counts.paid_ns, tally.inserted_ns);
    assert!(paid < 0.4, "paid {paid} {:?}", tally.counts);
}

/// Planted fault: the row of a thread is deleted when it begins to end (`on_exit`): each wake-up is then one from outside, and
/// who waited pays all of it.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn who_waits_for_the_end_of_a_thread_or_a_child_is_credited() {
    let _alone = alone();
    for kind in ["joins", "forks"] {
        let running = Running::start(kind);
        let mut probe = running.tried_with(Pausing::TaskWork, Children::Followed);
        let ranges = [running.place("f60")];
        let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: HALF_NS };
        let tally = experiment(&mut probe, &tried, 1_000);
        assert!(tally.counts.hits > 300, "{kind}: {:?}", tally.counts);
        assert!(tally.counts.inner_wakes > 10 * (tally.counts.outer_wakes + 1), "{kind}: {:?}", tally.counts);
        // Nobody but it runs meanwhile: it would have waited less.
        let paid = share(tally.counts.paid_ns, tally.inserted_ns);
        assert!(paid < 0.1, "{kind}: paid {paid} {:?}", tally.counts);
    }
}

/// Planted faults: soft interrupts that count for the thread that they interrupt, as it was (the timer's wake-ups are then inner
/// ones); soft interrupts that count for nobody (the datagrams' are outer ones).
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_datagram_over_loopback_is_its_senders_and_a_timeout_is_nobodys() {
    let _alone = alone();
    for (kind, is_inner) in [("datagrams", true), ("times_out", false)] {
        let running = Running::start(kind);
        let mut probe = running.tried(Pausing::TaskWork);
        let counts = experiment(&mut probe, &Tried::Nothing, 1_000).counts;
        let (wanted, other) = if is_inner {
            (counts.inner_wakes, counts.outer_wakes)
        } else {
            (counts.outer_wakes, counts.inner_wakes)
        };
        assert!(wanted > 50 && wanted > 10 * other, "{kind}: {counts:?}");
    }
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn waits_of_the_chosen_kind_are_made_shorter_and_others_are_not() {
    let _alone = alone();
    let running = Running::start("pingpong");
    let mut probe = running.tried(Pausing::TaskWork);
    probe.name_waits(&[(0, WaitsFor::Descriptor), (1, WaitsFor::Descriptor)]).unwrap();
    let of = |kind| Tried::Waits { kind, percent: 50 };
    let network = experiment(&mut probe, &of(Waits::Network), 500);
    assert!(network.counts.hits > 100 && network.inserted_ns > 0, "{:?}", network.counts);
    for kind in [Waits::Disk, Waits::Lock, Waits::File(FileId { inode: 1, device: (0, 1) })] {
        let other = experiment(&mut probe, &of(kind), 200);
        assert_eq!((other.counts.hits, other.inserted_ns), (0, 0), "{kind:?} {:?}", other.counts);
    }
    drop(probe);
    // One that sleeps alone: half of each of its naps is gone.
    let napper = Running::start("napper");
    let mut probe = napper.tried(Pausing::TaskWork);
    let begun = mono_ns();
    let naps = experiment(&mut probe, &of(Waits::Any), 20);
    let elapsed = mono_ns() - begun;
    let saved = share(naps.inserted_ns, elapsed);
    assert!((0.3..=0.51).contains(&saved), "{saved} {:?}", naps.counts);
}

/// One that is stopped blocks outside of any system call and without a disk, as one does that waits for the lock of its address
/// space. Planted fault: whoever blocks there waits for a disk.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn who_blocks_outside_of_a_call_waits_for_a_disk_only_if_the_kernel_says_so() {
    let _alone = alone();
    let running = Running::start("three");
    let mut probe = running.tried(Pausing::TaskWork);
    let hits = |probe: &mut Probe, kind| {
        let before = probe.counts();
        probe.begin(&Tried::Waits { kind, percent: 50 }, mono_ns() + 20_000 * MS).unwrap();
        for _ in 0..10 {
            for signal in [Signal::Stop, Signal::Cont] {
                signal::kill(running.pid, signal).unwrap();
                sleep_ns(10 * MS);
            }
        }
        probe.end();
        probe.counts().since(&before).hits
    };
    assert!(hits(&mut probe, Waits::Any) > 0, "{:?}", probe.counts());
    assert_eq!(hits(&mut probe, Waits::Disk), 0, "{:?}", probe.counts());
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn beyond_the_deadline_nobody_pauses() {
    let _alone = alone();
    let running = Running::start("two");
    let mut probe = running.tried(Pausing::TaskWork);
    let ranges = [running.place("f60")];
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: PERIOD_NS };
    // As if the reader hung: it never ends what it began.
    probe.begin(&tried, mono_ns() + 100 * MS).unwrap();
    let patience = mono_ns() + 10_000 * MS;
    while probe.is_active() {
        assert!(mono_ns() < patience, "the deadline is not met: {:?}", probe.counts());
        sleep_ns(MS);
    }
    assert!(probe.counts().expired > 0);
    // Pauses that had begun have ended, also those of a CPU that stood still: none is counted any more.
    sleep_ns(1_000 * MS);
    let then = probe.counts();
    sleep_ns(200 * MS);
    assert_eq!((probe.counts().pauses, probe.counts().samples), (then.pauses, then.samples));
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn threads_that_are_born_and_end_leave_no_rows() {
    let _alone = alone();
    let running = Running::start("spawns");
    let mut probe = running.tried(Pausing::TaskWork);
    let _point =
        probe.probe(Mark::Visit, &running.image(), running.progress_offset(), Some(running.pid)).unwrap();
    let tally = experiment(&mut probe, &Tried::Nothing, 200);
    assert!(tally.visits.count > 100, "{:?}", tally.visits);
    assert_eq!(tally.counts.lost, 0);
    // Joined threads are gone from the table; a handful may be on their way.
    assert!(probe.owed().unwrap().threads < 10, "{:?}", probe.owed());
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn children_have_a_role_for_as_long_as_they_live_and_one_that_becomes_another_program_ends_nothing() {
    let _alone = alone();
    let script = "read go; for i in 1 2 3 4 5 6 7 8; do (:); /bin/true; done; echo done; read end";
    let mut shell =
        Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = shell.id().cast_signed();
    let mut probe = Probe::load(None).unwrap();
    probe.set_subject(pid);
    probe.take_in(pid, Role::Target, Children::Followed, &proc::tasks(pid)).unwrap();
    let mut words = shell.stdin.take().unwrap();
    words.write_all(b"go\n").unwrap();
    let mut said = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((said.as_str(), probe.counts().replaced), ("done\n", 0));
    // Its children were waited for: their ends were seen.
    assert_eq!(probe.processes().unwrap(), [pid]);
    drop(words);
    shell.wait().unwrap();
    assert_eq!(probe.processes().unwrap(), [], "nor has anybody who is given its number");
}

/// Programs and links of the whole machine that are not among `before`.
fn new_since(before: &(Vec<u32>, Vec<u32>)) -> (usize, usize) {
    let (programs, links) = bpf::ids().unwrap();
    let count = |now: &[u32], before: &[u32]| now.iter().filter(|id| !before.contains(id)).count();
    (count(&programs, &before.0), count(&links, &before.1))
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_dropped_probe_is_gone_and_its_target_runs() {
    let _alone = alone();
    let before = bpf::ids().unwrap();
    let running = Running::start("two");
    let mut probe = running.tried(Pausing::TaskWork);
    let point =
        probe.probe(Mark::Visit, &running.image(), running.progress_offset(), Some(running.pid)).unwrap();
    let ranges = [running.place("f60")];
    let tried = Tried::Code { ranges: &ranges, reach: Reach::Own, delay_ns: PERIOD_NS };
    probe.begin(&tried, mono_ns() + 60_000 * MS).unwrap();
    assert!(new_since(&before).0 >= 7, "seven programs were loaded");
    drop((probe, point));
    // The kernel's threads free them, on a full machine late.
    let deadline = mono_ns() + 60_000 * MS;
    while new_since(&before) != (0, 0) {
        assert!(mono_ns() < deadline, "left behind: {:?}", new_since(&before));
        std::thread::yield_now();
    }
    let ran = || proc::run_ns(running.pid).unwrap();
    let (then, patience) = (ran(), mono_ns() + 10_000 * MS);
    while ran() < then + 50 * MS {
        assert!(mono_ns() < patience, "the target does not run");
        sleep_ns(MS);
    }
}
