//! Whole causal profiles of live programs whose truth is known by construction, sites found by name.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::causal::{Causal, Metric, Verdict};
use dyno_profile::causal::{Asked, Live, Progress, Reach, Resolver, Subject, run};
use dyno_sys::clock::mono_ns;

static STOP: AtomicBool = AtomicBool::new(false);

/// 60, 30 and 10 % of one thread, counted work; and a thread beside it that changes nothing where a word is given.
const PROGRAM: &str = r#"
#include <pthread.h>
#include <unistd.h>
#define F __attribute__((noinline))
static inline __attribute__((always_inline)) void burn(long n) { for (long i = 0; i < n; i++) __asm__ volatile("" ::: "memory"); }
F void f60(long n) { burn(6 * n); }
F void f30(long n) { burn(3 * n); }
F void f10(long n) { burn(n); }
F void apart(long n) { burn(n); }
F void progress(void) { __asm__ volatile("nop"); }
static void *beside(void *x) { for (;;) apart(100000); return x; }
int main(int count, char **words) {
    (void)words;
    pthread_t t;
    if (count > 1) pthread_create(&t, 0, beside, 0);
    while (getppid() != 1) { f60(50000); f30(50000); f10(50000); progress(); }
}
"#;

struct Running(Child, PathBuf);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
        let _ = fs::remove_dir_all(&self.1);
    }
}

fn started(name: &str, words: &[&str]) -> Running {
    let place = std::env::temp_dir().join(format!("dyno-causal-{}-{name}", std::process::id()));
    fs::create_dir_all(&place).unwrap();
    fs::write(place.join("program.c"), PROGRAM).unwrap();
    let mut build = Command::new("gcc");
    build.args(["-O2", "-g", "-pthread", "-o"]).arg(place.join("program")).arg(place.join("program.c"));
    assert!(build.status().unwrap().success());
    let program = Command::new(place.join("program")).args(words).stdin(Stdio::null()).spawn().unwrap();
    let running = Running(program, place);
    // Until it has begun, it is still a copy of this process.
    let wanted = running.1.join("program").canonicalize().unwrap();
    let begun = std::time::Instant::now();
    while fs::read_link(format!("/proc/{}/exe", running.0.id())).ok().as_ref() != Some(&wanted)
        || Resolver::open(running.0.id().cast_signed()).is_err()
    {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not begin");
        dyno_sys::clock::sleep_ns(1_000_000);
    }
    running
}

fn profiled(running: &Running, names: &[&str], seconds: u64) -> Causal {
    let pid = running.0.id().cast_signed();
    let resolver = Resolver::open(pid).unwrap();
    let sites: Vec<_> = names.iter().map(|name| resolver.named(name, Reach::Own).unwrap()).collect();
    let probe = resolver.probe("progress").unwrap();
    assert!(probe.emulated);
    let progress = Progress::At { entries: vec![probe.entry], whom: Vec::new() };
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

/// What a machine with much else on it gives up on is no wrong answer.
fn assert_near(record: &Causal, name: &str, percent: u32, truth: f64) {
    let site = record.sites.iter().find(|site| site.name == name).unwrap();
    if site.verdict == Verdict::NotMeasurable {
        println!("{name}: not measurable here: {}", site.reason);
        return;
    }
    let point = site.points.iter().find(|point| point.speedup_percent == percent).unwrap();
    let [low, high] = point.interval_percent;
    // Two points beyond the interval: 95 % of intervals hold the truth, and a test must not fail in the other five.
    assert!(
        low - 2.0 <= truth && truth <= high + 2.0,
        "{name} at {percent} %: {low} to {high}, true {truth}"
    );
}

#[test]
#[ignore = "needs CAP_BPF and CAP_PERFMON, and half a minute"]
fn parts_of_one_thread_are_worth_their_share() {
    let running = started("parts", &[]);
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
    let running = started("beside", &["beside"]);
    let record = profiled(&running, &["apart", "f60"], 20);
    let apart = record.sites.iter().find(|site| site.name == "apart").unwrap();
    assert!(!matches!(apart.verdict, Verdict::Helps | Verdict::Hurts), "{}", apart.reason);
    assert_near(&record, "f60", 50, 30.0);
}
