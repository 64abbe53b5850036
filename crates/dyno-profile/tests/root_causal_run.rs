//! Whole causal profiles of live programs whose truth is known by construction, sites found by name.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::AtomicBool;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use common::watching::before_other_sessions;
use common::{Running, wait_for};
use dyno_measure::stats::Sorted;
use dyno_profile::causal::{Asked, Live, Progress, Reach, Resolver, Rig, Span, Subject, run};
use dyno_record::causal::{Causal, Metric, Verdict};
use dyno_sys::affinity::{self, CpuSet};
use dyno_sys::clock::mono_ns;
use dyno_sys::priority::First;

static STOP: AtomicBool = AtomicBool::new(false);

/// An experiment has the machine for itself, as far as these tests can say so: one at a time, and before others.
fn alone() -> (First, MutexGuard<'static, ()>) {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    (First::in_line(), alone)
}

fn started(words: &[&str]) -> Running {
    // Loops of one length must run at one speed: a jump that crosses 32 bytes is slower on many a CPU.
    let flags = ["-O2", "-falign-loops=32", "-g", "-pthread"];
    let running = Running::start_apart("gcc", &flags, "beside.c", words).unwrap();
    before_other_sessions(running.pid());
    wait_for("it can be looked into", || Resolver::open(running.pid()).is_ok());
    running
}

fn profiled(running: &Running, names: &[&str], seconds: u64) -> Causal {
    let pid = running.pid();
    let resolver = Resolver::open(pid).unwrap();
    let sites: Vec<_> = names.iter().map(|name| resolver.named(name, Reach::Own).unwrap()).collect();
    let probe = resolver.probe("progress").unwrap();
    assert!(probe.emulated);
    let progress = Progress::At { entries: probe.entries, whom: Vec::new() };
    let of_rig: Vec<_> = sites.iter().map(|tried| tried.site.clone()).collect();
    let mut live = Live::open(&Subject::new(pid), &progress, &of_rig, &STOP).unwrap();
    let asked = Asked {
        levels_percent: Asked::LEVELS_PERCENT.to_vec(),
        budget: Duration::from_secs(seconds),
        seed: 1,
        metric: Metric::Throughput,
        progress: "progress".to_owned(),
        cpus: dyno_sys::affinity::online().len(),
    };
    let record = run(&asked, &mut live, &sites, &mono_ns, &mut |_| (), &STOP).unwrap();
    show(&record);
    record
}

fn show(record: &Causal) {
    let [low, high] = record.overhead.interval_percent.unwrap_or_default();
    println!(
        "{:.0} visits/s, overhead {:.1} % ({low:.1} to {high:.1}), foreign {:.1} %, steal {:.1} %",
        record.progress.per_second,
        record.overhead.attached_percent,
        record.credibility.foreign_percent,
        record.credibility.steal_percent
    );
    for site in &record.sites {
        println!("{} {:?}: {} [{:.1} s]", site.name, site.verdict, site.reason, site.spent_s);
        println!("    {:?}", site.credibility);
        for point in &site.points {
            let [low, high] = point.interval_percent;
            println!(
                "    {:>3} %: {:.2} ({low:.2} to {high:.2}), {} rounds, {} dropped",
                point.speedup_percent, point.effect_percent, point.rounds, point.dropped
            );
        }
        println!("    {:?} {:?}", site.slow_down, site.no_slow_down);
    }
}

/// A figure that says something: `not measurable` on a program that is made to be measured is a fault, and an interval that
/// holds everything is no answer. Planted faults: pauses of half their length, or a correction that is left out, are off by
/// half of the truth, 15 points of 30 at 50 %: more than is allowed there in any case.
///
/// Chance: ten rounds, of the more that there is time for, give an interval of ±2.2 standard errors, about ±2.7 points at 50 %, most of it by how many
/// samples happen to lie in the site. Four points beyond it are 5.6 standard errors, which Student's t with ten degrees of
/// freedom exceeds twice in ten thousand times: six figures in a thousand runs one.
fn assert_near(record: &Causal, name: &str, percent: u32, truth: f64) {
    let site = record.sites.iter().find(|site| site.name == name).unwrap();
    assert_ne!(site.verdict, Verdict::NotMeasurable, "{name}: {}", site.reason);
    let point = site.points.iter().find(|point| point.speedup_percent == percent).unwrap();
    let [low, high] = point.interval_percent;
    // What the control adds where the machine is noisy among it (9 points were met): with the four below less than the fifteen of a fault.
    assert!((high - low) / 2.0 < 10.5, "{name} at {percent} %: {low} to {high} says nothing");
    assert!(
        low - 4.0 <= truth && truth <= high + 4.0,
        "{name} at {percent} %: {low} to {high}, true {truth}"
    );
}

#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and half a minute"]
fn parts_of_one_thread_are_worth_their_share() {
    let _alone = alone();
    let running = started(&[]);
    let record = profiled(&running, &["f60", "f30"], 30);
    for (name, share) in [("f60", 60.0), ("f30", 30.0)] {
        for percent in [25, 50] {
            assert_near(&record, name, percent, share * f64::from(percent) / 100.0);
        }
    }
}

/// Planted fault: time that passes for the thread beside taken out of the other's too, without its having paused: half of
/// it would seem to save 50 points.
#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and half a minute"]
fn a_thread_beside_the_progress_has_no_effect() {
    let _alone = alone();
    let running = started(&["beside"]);
    let record = profiled(&running, &["apart", "f60"], 32);
    let apart = record.sites.iter().find(|site| site.name == "apart").unwrap();
    let slope = apart.slope.unwrap();
    let [low, high] = slope.interval.map(|per_percent| 50.0 * per_percent);
    assert!((high - low) / 2.0 < 10.5, "{}: {low} to {high} says nothing", apart.reason);
    // As above: 2.2 standard errors and four points.
    assert!(low - 4.0 <= 0.0 && 0.0 <= high + 4.0, "{}: {low} to {high}", apart.reason);
    assert_near(&record, "f60", 50, 30.0);
}

/// Visits for each nanosecond that a program, let alone, has a CPU.
fn rate(words: &[&str]) -> f64 {
    let running = started(words);
    let probe = Resolver::open(running.pid()).unwrap().probe("progress").unwrap();
    let progress = Progress::At { entries: probe.entries, whom: Vec::new() };
    let mut live = Live::open(&Subject::new(running.pid()), &progress, &[], &STOP).unwrap();
    let span = Span { settle: Duration::from_millis(50), length: Duration::from_millis(500) };
    let window = live.detached(span).unwrap();
    // By its own clock: one thread of it runs at a time.
    window.visits as f64 / window.target_cpu_ns as f64
}

/// Planted fault: who waits for a thread's end gets no credit from it (the row is deleted when the thread begins to end): the
/// answer was contention, or that pauses cost more than they last.
#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and a minute"]
fn work_of_a_thread_that_is_joined_is_worth_what_making_it_shorter_brings() {
    let _alone = alone();
    let saved = (0..7).map(|_| {
        let whole = rate(&["joins", "0"]);
        100.0 * (1.0 - whole / rate(&["joins", "50"]))
    });
    let truth = Sorted::of(saved).quantile(0.5).unwrap();
    println!("made shorter by half it saves {truth:.1} %");
    // One thread of it runs at a time: on one CPU none begins behind a neighbour on another.
    let all = affinity::allowed();
    affinity::set_current(&CpuSet::single(all.iter().last().unwrap())).unwrap();
    let running = started(&["joins", "0"]);
    affinity::set_current(&all).unwrap();
    assert_near(&profiled(&running, &["f60"], 45), "f60", 50, truth);
}
