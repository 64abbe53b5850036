//! Experiments on live programs: a speed-up of known worth, a target that ends or becomes another program, one that
//! starts children, and a profiler that is killed in the middle.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod common;

use common::Running;
use common::watching::before_other_sessions;
use dyno_measure::stats::Sorted;
use dyno_profile::Error;
use dyno_profile::causal::{
    Children, Entry, Live, Marks, Named, Passed, Place, Progress, Reach, Rig, Site, Span, Subject, Treatment,
    WaitKind, Window, candidates, rates,
};
use dyno_record::causal::SlowedAt;
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::priority::First;
use dyno_sys::{Pid, bpf, proc};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

const MS: u64 = 1_000_000;
static STOP: AtomicBool = AtomicBool::new(false);

/// The probe looks at the whole machine: one test at a time, and before others.
static ALONE: Mutex<()> = Mutex::new(());

/// A program of a kind that `known/live.c` names, and where its functions lie.
struct Target {
    running: Running,
    pid: Pid,
    places: BTreeMap<String, Range<u64>>,
}

impl Target {
    fn start(kind: &str) -> Target {
        // A loop whose jump crosses 32 bytes runs at another speed on many a CPU: then shares are not what was written.
        let aligned = "-falign-loops=32";
        let flags = ["-O2", aligned, "-fno-omit-frame-pointer", "-fcf-protection=none", "-pthread"];
        let mut running = Running::start_apart("cc", &flags, "live.c", &[kind, "done"]).unwrap();
        let places = places(&mut running.child);
        Target { pid: running.pid(), running, places }
    }

    /// One whose figures are judged: it goes before others. Where it would fill all CPUs, each probe that comes or goes would wait long
    /// for the kernel's own threads.
    fn measured(kind: &str) -> Target {
        let target = Target::start(kind);
        before_other_sessions(target.pid);
        target
    }

    fn file(&self, name: &str) -> PathBuf {
        self.running.folder.join(name)
    }

    fn entry(&self, name: &str) -> Entry {
        let at = self.places[name].start;
        let mappings = proc::mappings(self.pid).unwrap();
        let mapping = mappings.iter().find(|mapping| (mapping.start..mapping.end).contains(&at)).unwrap();
        Entry { image: self.file("program"), offset: at - mapping.start + mapping.offset }
    }

    fn site(&self, name: &str) -> Site {
        let place = Place::Code { ranges: vec![self.places[name].clone()], entries: vec![self.entry(name)] };
        Site { name: name.to_owned(), place, reach: Reach::Own }
    }

    fn progress(&self) -> Progress {
        Progress::At { entries: vec![self.entry("progress")], whom: Vec::new() }
    }

    fn live(&self, sites: &[Site]) -> Live<'static> {
        Live::open(&Subject::new(self.pid), &self.progress(), sites, &STOP).unwrap()
    }

    /// Lets it go on where it waits to be told so: it is watched by now, however long that took to begin.
    fn tell(&self) {
        let file = std::fs::File::options().write(true).open(self.file("done")).unwrap();
        file.write_all_at(&[1], 0).unwrap();
    }

    /// What it has done until now.
    fn done(&self) -> u64 {
        let raw = std::fs::read(self.file("done")).unwrap();
        u64::from_ne_bytes(raw[..8].try_into().unwrap())
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

fn alone() -> (First, MutexGuard<'static, ()>) {
    let alone = ALONE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    (First::in_line(), alone)
}

const LENGTH: Duration = Duration::from_millis(200);
const SPAN: Span = Span { settle: Duration::from_millis(5), length: LENGTH };

/// Time of a unit of progress without what was inserted.
fn period_ns(window: &Window) -> f64 {
    let elapsed = (window.last.at_ns - window.first.at_ns) as f64;
    let inserted = window.last.inserted_ns as f64 - window.first.inserted_ns as f64;
    (elapsed - inserted) / (window.visits - 1) as f64
}

/// The same of a target that never waits, by its own clock: that stands still while others have its CPU.
fn own_period_ns(window: &Window) -> f64 {
    let inserted = (window.hits * window.delay_ns) as f64;
    (window.target_cpu_ns as f64 - inserted) / window.visits as f64
}

/// Whether the machine was there for all of a window, as far as the kernel says: rounds in which it was not are left out, whatever
/// they would show.
fn is_whole(window: &Window) -> bool {
    !window.expired && window.steal_ns == 0 && window.queued_ns * 20 <= window.target_cpu_ns
}

/// What a treatment saves in each round, with the mean of the middle half and the half width of its 99.9 % interval: machines
/// disturb some rounds, and no round decides.
fn saved_within(
    live: &mut Live<'_>,
    treatment: Treatment,
    rounds: usize,
    period: fn(&Window) -> f64,
) -> (f64, f64) {
    let mut pairs = 0;
    let mut round = || {
        pairs += 1;
        assert!(pairs <= 10 * rounds, "the machine was taken away in nearly all of {pairs} rounds");
        let (null, treated) = (live.window(&Treatment::Nothing, SPAN), live.window(&treatment, SPAN));
        let (null, treated) = (null.unwrap(), treated.unwrap());
        (is_whole(&null) && is_whole(&treated)).then(|| 1.0 - period(&treated) / period(&null))
    };
    let mut all: Vec<f64> = std::iter::repeat_with(&mut round).flatten().take(rounds).collect();
    all.sort_by(f64::total_cmp);
    let middle = &all[rounds / 4..rounds - rounds / 4];
    let mean = middle.iter().sum::<f64>() / middle.len() as f64;
    // Of the winsorised deviation (Tukey and McLaughlin): rounds beyond the middle count as its ends.
    let ends = [middle[0], middle[middle.len() - 1]];
    let clamped = all.iter().map(|value| value.clamp(ends[0], ends[1]));
    let variance = clamped.map(|value| (value - mean).powi(2)).sum::<f64>() / (rounds - 1) as f64;
    let kept = middle.len() as f64 / rounds as f64;
    // Student's t of 99.9 % at 15 to 20 degrees of freedom is 4.07 to 3.85.
    (mean, 4.1 * variance.sqrt() / (kept * (rounds as f64).sqrt()))
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_function_of_sixty_percent_that_takes_half_the_time_saves_thirty() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60"), running.site("f10")]);
    for (site, percent, truth) in [(0, 50, 0.30), (1, 100, 0.10)] {
        let faster = Treatment::SpeedUp { site, percent };
        let (found, off) = saved_within(&mut live, faster, 24, own_period_ns);
        println!("{percent} % of site {site} saves {found:.4} ±{off:.4}, true {truth}");
        // Once: in one run of a thousand it is beyond its interval by chance, and pauses are exact to a point. A method that
        // paid nothing, or all twice, would be off by all of it, ten points at least: more than this may be wide.
        assert!(off < 0.06, "site {site}: the interval is ±{off}");
        assert!((found - truth).abs() < off + 0.01, "site {site}: {found} ±{off}, true {truth}");
    }
}

/// Planted faults: samples that time no steps; interrupted ones that count; a clock that is read once; places that are noted in no window, or in
/// those in which something is faster.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn samples_show_how_fast_the_cpu_of_the_target_is_and_where_it_works() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60")]);
    let windows: Vec<Window> = (0..12).map(|_| live.window(&Treatment::Nothing, SPAN).unwrap()).collect();
    let steps = || windows.iter().map(|window| window.steps_ns).filter(|ns| *ns > 0.0);
    let all: Vec<f64> = steps().collect();
    // 512 of at least three cycles each, and as many nanoseconds on a slow machine. None is known where the CPU lost a third of its
    // speed, or its samples, for most of a window.
    assert!(all.len() >= 6 && steps().all(|ns| (100.0..5_000.0).contains(&ns)), "{all:?}");
    let [least, most] = [steps().fold(f64::INFINITY, f64::min), steps().fold(0.0, f64::max)];
    assert!(most < 1.5 * least, "means of what takes at most half as much again as the least: {all:?}");
    let placed = |window: &Window| window.places.iter().map(|(_, samples)| samples).sum::<u64>();
    // One sample of a window may be missing: two CPUs that note a new place at once.
    assert!(windows.iter().all(|window| placed(window).abs_diff(window.samples) <= 1), "{windows:?}");
    let mut tried = |percent| placed(&live.window(&Treatment::SpeedUp { site: 0, percent }, SPAN).unwrap());
    assert!(tried(0) > 0 && tried(50) == 0, "where somebody pauses others work");
}

/// Countings of calls, and the third-worst ten milliseconds of the target in each, as a part of its usual rate: a machine may take
/// half of two of them.
fn worst_of_countings(running: &Target, live: &mut Live<'_>) -> (Vec<f64>, Vec<f64>) {
    // By its own clock: others may have its CPU. What a probe takes is time of who meets it.
    let slice = || {
        let (done, ran) = (running.done(), proc::run_ns(running.pid).unwrap());
        sleep_ns(10 * MS);
        let ran = proc::run_ns(running.pid).unwrap() - ran;
        (ran >= 5 * MS).then(|| (running.done() - done) as f64 / ran as f64)
    };
    let usual = Sorted::of((0..30).filter_map(|_| slice())).quantile(0.5).unwrap();
    let counting = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        let counted = scope.spawn(|| {
            let count = |at| {
                let calls = live.entries_per_second(0, Duration::from_millis(500)).unwrap().unwrap();
                // What comes late is of this one too.
                sleep_ns(30 * MS);
                counting.store(at, Ordering::Relaxed);
                calls
            };
            (1..=COUNTINGS).map(count).collect::<Vec<f64>>()
        });
        let mut rates = vec![Vec::new(); COUNTINGS];
        while let Some(of_now) = rates.get_mut(counting.load(Ordering::Relaxed)) {
            of_now.extend(slice().map(|rate| rate / usual));
        }
        let third_worst = |mut of_one: Vec<f64>| {
            of_one.sort_by(f64::total_cmp);
            // Where the machine was taken away for nearly all of it there is nothing to tell.
            of_one.get(2).copied()
        };
        (rates.into_iter().filter_map(third_worst).collect(), counted.join().unwrap())
    })
}

const COUNTINGS: usize = 8;

/// Planted fault: a probe that is held for half a second on a function that is entered 10^5 to 10^6 times a second leaves
/// it 0.4 to 4 % of its rate that long, at each counting (`LOOK` of `live/entries.rs` at 500 ms, and no glimpse before it).
/// A stall of a twentieth of a second may come in one of eight countings; not in two.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_target_runs_on_while_calls_of_its_hottest_function_are_counted() {
    let _alone = alone();
    let running = Target::measured("hot");
    let mut live = running.live(&[running.site("tiny")]);
    let (worst, calls) = worst_of_countings(&running, &mut live);
    println!("third-worst 10 ms of its usual rate: {worst:.2?}; {calls:.0?} calls a second");
    assert!(calls.iter().all(|calls| *calls > 40_000.0), "{calls:?}");
    assert!(worst.len() >= COUNTINGS / 2, "the machine was taken away nearly all the time: {worst:?}");
    assert!(worst.iter().filter(|rate| **rate < 0.5).count() <= 1, "{worst:?}");
}

/// Planted fault: the control left out (`Rig::alike` that answers `None`), or its pauses inserted without anybody owing them.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn pauses_for_all_alike_slow_what_runs_by_itself_and_not_what_a_clock_paces() {
    let _alone = alone();
    let fell = |kind: &str| {
        let running = Target::measured(kind);
        let mut live = running.live(&[]);
        let rate =
            |window: &Window| (window.visits - 1) as f64 / (window.last.at_ns - window.first.at_ns) as f64;
        let mut pairs = std::iter::repeat_with(|| {
            let null = live.window(&Treatment::Nothing, SPAN).unwrap();
            (null, live.alike(25, SPAN).unwrap().unwrap())
        });
        let whole = pairs.by_ref().take(240).filter(|(null, alike)| is_whole(null) && is_whole(alike));
        let whole: Vec<_> = whole.take(24).collect();
        assert_eq!(whole.len(), 24, "the machine was taken away in nearly all of 240 rounds");
        let rounds = whole.iter().map(|(null, alike)| {
            let inserted = (alike.last.inserted_ns - alike.first.inserted_ns) as f64;
            let inserted = inserted / (alike.last.at_ns - alike.first.at_ns) as f64;
            (1.0 - rate(alike) / rate(null)) / inserted
        });
        Sorted::of(rounds).quantile(0.5).unwrap()
    };
    let (own, paced) = (fell("three"), fell("frames"));
    println!(
        "visits become rarer by {own:.2} of what is inserted, and by {paced:.2} where a clock paces them"
    );
    assert!((0.8..1.25).contains(&own) && paced < 0.3, "{own} {paced}");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_call_that_is_made_longer_takes_that_much_longer() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60")]);
    let calls = live.entries_per_second(0, LENGTH).unwrap().unwrap();
    assert!(calls > 100.0, "{calls} calls a second");
    let window =
        live.window(&Treatment::SlowDown { site: 0, at: SlowedAt::Calls, ns: 2_000_000 }, SPAN).unwrap();
    // Each is counted from a moment of its own, and this process may not run between the two.
    assert!(window.hits >= 2 && window.hits.abs_diff(window.visits) <= 2 + window.visits / 10, "{window:?}");
    assert_eq!((window.delay_ns, window.paid_ns), (2_000_000, 0));
    // Two milliseconds each at the very least; the machine may be busy beside.
    assert!(period_ns(&window) > 2e6, "{window:?}");
}

/// Planted faults: who is hit pauses no longer (`owed_ns` stays 0), or all others pause too (`insert`).
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_part_whose_samples_pause_becomes_slower_by_that_and_nobody_else_does() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60")]);
    let slower = Treatment::SlowDown { site: 0, at: SlowedAt::Samples, ns: MS / 2 };
    let pairs = std::iter::repeat_with(|| {
        (live.window(&Treatment::Nothing, SPAN).unwrap(), live.window(&slower, SPAN).unwrap())
    });
    let whole = pairs.take(120).filter(|(null, window)| is_whole(null) && is_whole(window));
    let whole: Vec<_> = whole.take(12).collect();
    assert_eq!(whole.len(), 12, "the machine was taken away in nearly all of 120 rounds");
    let rounds = whole.iter().map(|(null, window)| {
        assert_eq!(window.last.inserted_ns, 0, "no position moves: {window:?}");
        let asked = window.hits as f64 * 5e5;
        assert!(window.hits > 10 && (0.9..1.2).contains(&(window.paid_ns as f64 / asked)), "{window:?}");
        let left = 1.0 - window.paid_ns as f64 / window.length_ns as f64;
        period_ns(window) * left / period_ns(null)
    });
    let longer = Sorted::of(rounds).quantile(0.5).unwrap();
    assert!((0.9..1.1).contains(&longer), "a visit takes {longer:.2} of what its pauses explain");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_pair_tells_how_much_is_on_its_way() {
    let _alone = alone();
    let running = Target::measured("three");
    let progress =
        Progress::Between { begin: vec![running.entry("begin")], end: vec![running.entry("progress")] };
    let mut live = Live::open(&Subject::new(running.pid), &progress, &[], &STOP).unwrap();
    let window = live.window(&Treatment::Nothing, SPAN).unwrap();
    let pair = window.pair.unwrap();
    let length_ns = (pair.closed_ns - pair.opened_ns) as f64;
    let until_closed = |marks: Marks| {
        marks.count as f64 * (pair.closed_ns - pair.start_ns) as f64 - marks.since_start_ns as f64
    };
    let lives_ns = pair.in_flight as f64 * length_ns + until_closed(pair.begins) - until_closed(pair.ends);
    let in_flight = lives_ns / length_ns;
    assert_eq!(pair.carried, 0, "the thread that begins it ends it: {pair:?}");
    // One thread: nearly always one unit is begun.
    assert!((0.8..=1.1).contains(&in_flight), "{window:?}");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn returns_of_a_system_call_are_progress_and_are_found() {
    let _alone = alone();
    let running = Target::measured("writer");
    let found = candidates(&[running.pid], Duration::from_millis(300), &STOP).unwrap();
    assert_eq!(found[0].progress, "syscall:write", "{found:?}");
    let named: Named = found[0].progress.parse().unwrap();
    let progress = named.resolved(&mut |_place| Err(())).unwrap();
    let site = running.site("f30");
    let mut live = Live::open(&Subject::new(running.pid), &progress, &[site], &STOP).unwrap();
    let window = live.window(&Treatment::SpeedUp { site: 0, percent: 50 }, SPAN).unwrap();
    assert!(window.visits > 10 && window.hits > 10, "{window:?}");
    assert_eq!(window.pair, None);
    let tracepoint: Named = "tracepoint:no_such_thing".parse().unwrap();
    let progress = tracepoint.resolved(&mut |_place| Err(())).unwrap();
    let error = Live::open(&Subject::new(running.pid), &progress, &[], &STOP).unwrap_err();
    assert!(matches!(error, Error::NoProgress { .. }), "{error}");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn functions_are_offered_with_their_rate() {
    let _alone = alone();
    let running = Target::measured("three");
    let passed = |name: &str| Passed {
        name: name.to_owned(),
        entries: vec![running.entry(name)],
        emulated: true,
        share_percent: 50.0,
    };
    let functions = ["progress", "f60"].map(passed);
    let found = rates(&[running.pid], &functions, (LENGTH, 100 * LENGTH), &STOP).unwrap();
    assert_eq!(found.len(), 2);
    // Both are entered once for each unit.
    let (one, other) = (found[0].per_second, found[1].per_second);
    assert!(one > 100.0 && other < 5.0 * one && one < 5.0 * other, "{found:?}");
}

/// Whether the file system of this folder keeps its files in memory.
fn in_memory(folder: &Path) -> bool {
    let words = ["-f", "-c", "%T"];
    let told = Command::new("stat").args(words).arg(folder).output().unwrap();
    String::from_utf8_lossy(&told.stdout).starts_with("tmpfs")
}

/// Planted faults: no wait counts for a file, or none for a disk; what a thread waits for is asked once, when it leaves its core (`file_ns` left out of `on_waking`): a wait that began
/// under the file before is counted, once in some hundred runs on a busy machine.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_file_that_is_waited_for_can_be_made_faster_and_another_cannot() {
    let _alone = alone();
    let running = Target::measured("syncer");
    let wait = |kind| Site { name: "wait".to_owned(), place: Place::Wait(kind), reach: Reach::Own };
    let file = running.file("done").to_string_lossy().into_owned();
    // Not its program's file, of which a page may have to be read at any time.
    let other = running.file("other");
    std::fs::write(&other, "nobody opens it").unwrap();
    let other = other.to_string_lossy().into_owned();
    let sites = [WaitKind::File(file), WaitKind::Disk, WaitKind::File(other), WaitKind::Lock].map(wait);
    let mut live = running.live(&sites);
    let hits = |live: &mut Live<'_>, site| {
        live.window(&Treatment::SpeedUp { site, percent: 50 }, SPAN).unwrap().hits
    };
    let mut hits: Vec<u64> = (0..4).map(|site| hits(&mut live, site)).collect();
    if hits[..2] == [0, 0] && in_memory(&std::env::temp_dir()) {
        assert!(
            std::env::var_os("CI").is_none(),
            "temporary files must lie on a disk (TMPDIR), or this says nothing"
        );
        println!("not tested: temporary files lie in memory, where nobody waits for them");
        return;
    }
    // A wait counts in the window in which it ends, and one may be longer than a window, on a disk that others use. This waits; a
    // probe that counts none never gets there.
    let deadline_ns = mono_ns() + 60_000 * MS;
    while hits[..2].contains(&0) {
        assert!(mono_ns() < deadline_ns, "{hits:?}");
        for (site, hits) in hits.iter_mut().enumerate().take(2) {
            *hits += live.window(&Treatment::SpeedUp { site, percent: 50 }, SPAN).unwrap().hits;
        }
    }
    assert_eq!((hits[2], hits[3]), (0, 0), "{hits:?}");
}

/// Two threads meet after each unit: one waits for time, the other computes. Whoever comes last decides.
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_shorter_wait_brings_something_only_where_somebody_waits_for_it() {
    let _alone = alone();
    let place = Place::Wait(WaitKind::Network);
    let sites = [Site { name: "wait:network".to_owned(), place, reach: Reach::Own }];
    let half = Treatment::SpeedUp { site: 0, percent: 50 };
    let found = |kind| {
        let running = Target::measured(kind);
        saved_within(&mut running.live(&sites), half, 20, period_ns)
    };
    // 0.45 and nothing; a wait that is not shortened, or is where nobody waits for it, is off by all of it.
    let (saved, off) = found("waits_long");
    assert!(off < 0.1 && (0.38 - off..0.52 + off).contains(&saved), "waits_long: {saved} ±{off}");
    let (saved, off) = found("works_long");
    assert!(off < 0.1 && saved.abs() < 0.06 + off, "works_long: {saved} ±{off}");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn what_the_programs_take_is_told_by_what_they_look_at() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60")]);
    let hooks = live.hooks(LENGTH).unwrap().unwrap();
    let ran = |hook| hooks.ran.iter().find(|(name, ..)| *name == hook).map(|(_, ns, count)| (*ns, *count));
    for hook in ["samples", "switches", "progress"] {
        let (ns, count) = ran(hook).unwrap();
        assert!(count > 20 && ns > count && ns < hooks.machine_ns / 2, "{hook}: {hooks:?}");
    }
    // A sample of each CPU per millisecond; a hypervisor that takes CPUs away takes their samples.
    let due = hooks.machine_ns / MS;
    let (_, samples) = ran("samples").unwrap();
    assert!(samples > due / 4 && samples < due + due / 10, "{samples} of {due}: {hooks:?}");
}

/// Stops this very process again and again for longer than the kernel waits for it, and always lets it go on; it has begun.
fn stopper() -> Child {
    let stop = "for i in $(seq 20); do sleep 0.05; kill -STOP $0; sleep 0.1; kill -CONT $0; echo; done";
    let me = std::process::id().to_string();
    let mut stopper = Command::new("sh").args(["-c", stop, &me]).stdout(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(stopper.stdout.take().unwrap());
    told.read_line(&mut String::new()).unwrap();
    // It goes on telling.
    std::thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    stopper
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_window_that_the_kernel_ended_is_told() {
    let _alone = alone();
    let running = Target::measured("three");
    let mut live = running.live(&[running.site("f60")]);
    let half = Treatment::SpeedUp { site: 0, percent: 50 };
    let mut stopper = stopper();
    let kept = live.window(&half, SPAN).unwrap();
    stopper.wait().unwrap();
    assert!(kept.expired, "{kept:?}");
    // An ordinary one is the first during which nobody keeps this process from its CPU for the sixth part of the time that the
    // kernel waits for it: what expires then expires by itself. Planted fault: `expired` counts from the beginning of all windows.
    let deadline_ns = mono_ns() + 20_000 * MS;
    let ordinary = loop {
        let before_ns = kept_off_ns();
        let window = live.window(&half, SPAN).unwrap();
        if kept_off_ns() - before_ns < 10 * MS && window.steal_ns < 10 * MS {
            break window;
        }
        assert!(mono_ns() < deadline_ns, "no window without others: {window:?}");
    };
    assert!(!ordinary.expired, "{ordinary:?}");
}

/// How long this thread has waited for a CPU that it could have used, all in all.
fn kept_off_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Windows until the target is gone.
fn until_gone(live: &mut Live<'_>) -> Error {
    let deadline_ns = mono_ns() + 20_000 * MS;
    loop {
        assert!(mono_ns() < deadline_ns, "the end of the target was not seen");
        if let Err(error) = live.window(&Treatment::SpeedUp { site: 0, percent: 50 }, SPAN) {
            return error;
        }
    }
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_target_that_ends_or_becomes_another_program_is_told() {
    let _alone = alone();
    let ends = Target::start("ends");
    let mut live = ends.live(&[ends.site("f60")]);
    ends.tell();
    let error = until_gone(&mut live);
    assert!(matches!(error, Error::Ended { pid, .. } if pid == ends.pid), "{error}");
    let becomes = Target::start("becomes");
    let mut live = becomes.live(&[becomes.site("f60")]);
    becomes.tell();
    let error = until_gone(&mut live);
    assert!(matches!(error, Error::Replaced { pid, .. } if pid == becomes.pid), "{error}");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_child_belongs_to_the_target_only_when_children_are_followed() {
    let _alone = alone();
    let family = Target::start("family");
    let window = |children| {
        let subject = Subject { children, ..Subject::new(family.pid) };
        let mut live = Live::open(&subject, &family.progress(), &[family.site("f60")], &STOP).unwrap();
        live.window(&Treatment::SpeedUp { site: 0, percent: 50 }, SPAN).unwrap()
    };
    let alone = window(Children::Strangers);
    assert_eq!((alone.hits, alone.visits), (0, 0), "{alone:?}");
    let followed = window(Children::Followed);
    assert!(followed.hits > 10 && followed.visits > 10, "{followed:?}");
}

/// A process that ends with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The first byte of an instruction, as a process has it now: a probe puts its own there.
fn first_byte(pid: Pid, address: u64) -> u8 {
    let mut byte = [0];
    std::fs::File::open(format!("/proc/{pid}/mem")).unwrap().read_exact_at(&mut byte, address).unwrap();
    byte[0]
}

/// Planted faults: a probe in all processes that run the file (the stranger meets it too); one in those only that are there at
/// the beginning (the later child is not counted).
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn strangers_who_run_the_same_file_meet_no_probe_and_later_children_do() {
    let _alone = alone();
    let family = Target::start("late");
    let own = |pid: Pid| -> (u64, u64) {
        let mappings = proc::mappings(pid).unwrap();
        let code = mappings.iter().find(|mapping| mapping.executable).unwrap();
        (code.start, code.offset)
    };
    let mut stranger = Command::new(family.file("program"));
    stranger.arg("three").arg(family.file("other")).stdout(Stdio::null());
    let stranger = Ending(stranger.spawn().unwrap());
    let stranger_pid = stranger.0.id().cast_signed();
    let entry = family.entry("progress");
    let there = std::fs::metadata(family.file("program")).unwrap().ino();
    let runs = |mapping: &proc::Mapping| mapping.executable && mapping.inode == there;
    common::wait_for("the stranger begins", || {
        proc::mappings(stranger_pid).is_ok_and(|all| all.iter().any(runs))
    });
    let address = |pid| entry.offset - own(pid).1 + own(pid).0;
    let whole = first_byte(stranger_pid, address(stranger_pid));
    let subject = Subject { children: Children::Followed, ..Subject::new(family.pid) };
    let mut live = Live::open(&subject, &family.progress(), &[family.site("f60")], &STOP).unwrap();
    assert_ne!(first_byte(family.pid, address(family.pid)), whole, "the target has a probe");
    family.tell();
    common::wait_for("the child begins", || proc::tree(family.pid).len() > 1);
    let window =
        live.window(&Treatment::SlowDown { site: 0, at: SlowedAt::Calls, ns: 10_000 }, SPAN).unwrap();
    assert!(window.visits > 10 && window.hits > 10, "{window:?}");
    assert_eq!(first_byte(stranger_pid, address(stranger_pid)), whole, "a stranger has none");
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn children_that_begin_other_programs_end_no_experiment() {
    let _alone = alone();
    let spawns = Target::start("spawns");
    let subject = Subject { children: Children::Followed, ..Subject::new(spawns.pid) };
    let mut live = Live::open(&subject, &spawns.progress(), &[spawns.site("f60")], &STOP).unwrap();
    for _ in 0..3 {
        let window = live.window(&Treatment::SpeedUp { site: 0, percent: 50 }, SPAN).unwrap();
        assert!(window.hits > 10 && window.visits > 10, "{window:?}");
    }
}

#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_thousand_threads_are_no_trouble() {
    let _alone = alone();
    let crowd = Target::start("crowd");
    let mut live = crowd.live(&[crowd.site("f60")]);
    let deadline_ns = mono_ns() + 20_000 * MS;
    while proc::tasks(crowd.pid).len() < 1_000 {
        assert!(mono_ns() < deadline_ns, "no thread is started");
        live.window(&Treatment::SpeedUp { site: 0, percent: 50 }, SPAN).unwrap();
    }
    let window = live
        .window(&Treatment::SpeedUp { site: 0, percent: 50 }, Span { length: 4 * LENGTH, ..SPAN })
        .unwrap();
    assert!(window.threads > 500 && window.visits > 0, "{window:?}");
    assert_eq!(window.missed, 0, "{window:?}");
}

/// Programs and links of the whole machine that are not among `before`.
fn new_since(before: &(Vec<u32>, Vec<u32>)) -> (usize, usize) {
    let (programs, links) = bpf::ids().unwrap();
    let count = |now: &[u32], before: &[u32]| now.iter().filter(|id| !before.contains(id)).count();
    (count(&programs, &before.0), count(&links, &before.1))
}

/// Names the process that [`a_profiler_to_be_killed`] works on.
const VICTIM: &str = "DYNO_TEST_CAUSAL_VICTIM";

/// Not a test by itself: what the next one starts and kills.
#[test]
#[ignore = "only started by a_killed_profiler_leaves_nothing_and_its_target_runs_on_after_a_tenth_of_a_second"]
fn a_profiler_to_be_killed() {
    let Ok(victim) = std::env::var(VICTIM) else { return };
    let words: Vec<&str> = victim.split_whitespace().collect();
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    let entry = Entry { image: PathBuf::from(words[1]), offset: number(2) };
    let ranges = std::iter::once(number(3)..number(4)).collect();
    let place = Place::Code { ranges, entries: Vec::new() };
    let site = Site { name: "f60".to_owned(), place, reach: Reach::Own };
    let progress = Progress::At { entries: vec![entry], whom: Vec::new() };
    let pid = i32::try_from(number(0)).unwrap();
    let mut live = Live::open(&Subject::new(pid), &progress, &[site], &STOP).unwrap();
    // All of the period: its sibling hardly comes to do anything.
    while live.window(&Treatment::SpeedUp { site: 0, percent: 100 }, SPAN).is_ok() {}
}

fn profiler_of(running: &Target) -> Child {
    let (entry, range) = (running.entry("progress"), &running.places["f60"]);
    let victim =
        format!("{} {} {} {} {}", running.pid, entry.image.display(), entry.offset, range.start, range.end);
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--ignored", "--exact", "a_profiler_to_be_killed"]).env(VICTIM, victim);
    command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap()
}

/// How many profilers are killed. What leaves something behind in one kill of seven is missed by twenty in one run of
/// twenty (0.857^20 = 0.046), by two hundred never; those take ten minutes and more: `DYNO_KILLS=200`. A pause that stays may be taken
/// for somebody's who is in the way once: in one kill of seven it is missed by one run of five (0.046 + 20/7 · 0.857^19 = 0.20),
/// in a quarter of them by one of forty, in 9 of 20 by one of nine thousand.
fn kills() -> usize {
    std::env::var("DYNO_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20)
}

/// What the thread that counts does in a quarter of a second for the time that it runs: others may have its CPU, but a pause takes
/// its time.
fn done_in_a_while(running: &Target) -> f64 {
    let is_it = |tid: &i32| proc::name(*tid).is_ok_and(|name| name == "counts");
    let counts = proc::tasks(running.pid).into_iter().find(is_it).unwrap();
    let ran = || -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{counts}/schedstat")).unwrap();
        text.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (done, ran_before) = (running.done(), ran());
    sleep_ns(250 * MS);
    (running.done() - done) as f64 / (ran() - ran_before).max(1) as f64
}

/// Planted faults: programs or links that are pinned (they never go); a pause that outlives its profiler, as
/// without the deadline and with `active` left set (the target does nothing meanwhile).
#[test]
#[ignore = "needs root: CAP_BPF, CAP_PERFMON, CAP_SYS_ADMIN"]
fn a_killed_profiler_leaves_nothing_and_its_target_runs_on_after_a_tenth_of_a_second() {
    let _alone = alone();
    let running = Target::start("two");
    let before = bpf::ids().unwrap();
    let mut chance = dyno_measure::Prng::new(7);
    common::wait_for("it counts", || running.done() > 0);
    let usual = Sorted::of((0..5).map(|_| done_in_a_while(&running))).quantile(0.5).unwrap();
    let (mut gone_after, mut rates) = (Vec::new(), Vec::new());
    for _ in 0..kills() {
        let mut profiler = profiler_of(&running);
        let deadline_ns = mono_ns() + 120_000 * MS;
        // All hooks are in place once samples are taken: eight programs, as many links and one for each CPU. Each of them waits
        // for the kernel to have been left by whoever is in it, builds that hardly get a CPU among them: 3 s were met beside some.
        while new_since(&before).0 < 7 {
            let ended = profiler.try_wait().unwrap();
            if ended.is_some() || mono_ns() > deadline_ns {
                let _ = profiler.kill();
                let (done, hooks) = (rates.len(), new_since(&before));
                let said = profiler.wait_with_output().unwrap();
                let said = String::from_utf8_lossy(&said.stderr);
                panic!(
                    "it does not begin after {done} kills ({ended:?}, {hooks:?} of its hooks are there): {said}"
                );
            }
            sleep_ns(MS);
        }
        sleep_ns(chance.below(400 * MS));
        let killed_ns = mono_ns();
        profiler.kill().unwrap();
        // By now nobody pauses any more, whatever of it is still there.
        sleep_ns((killed_ns + 100 * MS).saturating_sub(mono_ns()));
        rates.push(done_in_a_while(&running) / usual);
        profiler.wait().unwrap();
        // What is pinned never goes.
        common::wait_for("nothing of it is left", || new_since(&before) == (0, 0));
        gone_after.push((mono_ns() - killed_ns) as f64 / MS as f64);
    }
    // The kernel takes hooks away one after another while the process ends, and waits for all CPUs after each: some 100 ms, and
    // 912 were met while others kept both CPUs busy; who is in the kernel and hardly gets a CPU holds that up. A minute is for ever.
    let longest = gone_after.iter().copied().fold(0.0, f64::max);
    println!(
        "{} kills: gone after {longest:.0} ms at most; the target does {rates:.3?} of its work",
        rates.len()
    );
    assert!(longest < 60_000.0, "{gone_after:?} ms");
    // A pause that is left takes all of its time. By its own time a thread does as much as ever, whatever others do; what the
    // machine takes from its core without a word is met once at most, and is not most of it.
    let slow = rates.iter().filter(|rate| **rate < 0.85).count();
    assert!(slow <= rates.len().div_ceil(20) && rates.iter().all(|rate| *rate > 0.3), "{rates:?}");
}
