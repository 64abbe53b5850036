//! Whole causal profiles of live programs whose truth is known by construction, sites found by name.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use common::{Running, wait_for};
use dyno_profile::causal::{Asked, Live, Progress, Reach, Resolver, Subject, run};
use dyno_record::causal::{Causal, Metric, Verdict};
use dyno_sys::clock::mono_ns;

static STOP: AtomicBool = AtomicBool::new(false);

fn started(words: &[&str]) -> Running {
    // Loops of one length must run at one speed: a jump that crosses 32 bytes is slower on many a CPU.
    let flags = ["-O2", "-falign-loops=32", "-g", "-pthread"];
    let running = Running::start("gcc", &flags, "beside.c", words).unwrap();
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
/// half of the truth.
fn assert_near(record: &Causal, name: &str, percent: u32, truth: f64) {
    let site = record.sites.iter().find(|site| site.name == name).unwrap();
    assert_ne!(site.verdict, Verdict::NotMeasurable, "{name}: {}", site.reason);
    let point = site.points.iter().find(|point| point.speedup_percent == percent).unwrap();
    let [low, high] = point.interval_percent;
    assert!((high - low) / 2.0 < 4.0, "{name} at {percent} %: {low} to {high} says nothing");
    // Two points beyond the interval: 95 % of intervals hold the truth, and of a dozen one may miss it, by little.
    assert!(
        low - 2.0 <= truth && truth <= high + 2.0,
        "{name} at {percent} %: {low} to {high}, true {truth}"
    );
}

#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and half a minute"]
fn parts_of_one_thread_are_worth_their_share() {
    let running = started(&[]);
    let record = profiled(&running, &["f60", "f30", "f10"], 30);
    for (name, share) in [("f60", 60.0), ("f30", 30.0), ("f10", 10.0)] {
        for percent in [10, 25, 50] {
            assert_near(&record, name, percent, share * f64::from(percent) / 100.0);
        }
    }
}

#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and a quarter of a minute"]
fn a_thread_beside_the_progress_has_no_effect() {
    let running = started(&["beside"]);
    let record = profiled(&running, &["apart", "f60"], 20);
    let apart = record.sites.iter().find(|site| site.name == "apart").unwrap();
    assert!(!matches!(apart.verdict, Verdict::Helps | Verdict::Hurts), "{}", apart.reason);
    assert_near(&record, "f60", 50, 30.0);
}
