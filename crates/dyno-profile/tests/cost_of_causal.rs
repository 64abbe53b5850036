//! What the causal probe costs a target while nobody is paused: all of it, and piece by piece. Prints a table.
//!
//! ```sh
//! cargo test --release -p dyno-profile --test cost_of_causal -- --ignored --nocapture
//! ```
//! Windows with and without each piece alternate, and pairs are compared: a busy machine widens the spread and moves
//! nothing. The target counts its work in a file that is mapped here too, so that nothing but the probe is in its way.
#![cfg(target_arch = "x86_64")]
#![allow(clippy::unwrap_used, clippy::single_range_in_vec_init)]

mod common;

use common::{Running, wait_for};
use dyno_measure::stats;
use dyno_sys::bpf::causal::{Children, Part, Pausing, Probe, Reach, Role, Tried};
use dyno_sys::clock::{mono_ns, sleep_ns};
use dyno_sys::proc;

const MS: u64 = 1_000_000;
const PERIOD_NS: u64 = MS;
const WINDOW_NS: u64 = 150 * MS;
const PAIRS: usize = 40;

/// A program of `known/counted.c`.
struct Counted(Running);

impl Counted {
    fn start(kind: &str) -> Counted {
        let flags = ["-O2", "-pthread"];
        let counted = Counted(Running::start("cc", &flags, "counted.c", &[kind, "done"]).unwrap());
        wait_for("it does something", || counted.done() >= 100);
        counted
    }

    fn done(&self) -> u64 {
        let raw = std::fs::read(self.0.folder.join("done")).unwrap_or_default();
        let row = |at: usize| Some(u64::from_ne_bytes(raw.get(at..at + 8)?.try_into().ok()?));
        row(0).unwrap_or(0) + row(64).unwrap_or(0)
    }

    /// Work in a window, by its second.
    fn rate(&self) -> f64 {
        sleep_ns(10 * MS);
        let (done, at_ns) = (self.done(), mono_ns());
        sleep_ns(WINDOW_NS);
        (self.done() - done) as f64 / ((mono_ns() - at_ns) as f64 / 1e9)
    }

    fn probe(&self) -> Probe {
        let mut probe = Probe::load(Some(Pausing::TaskWork)).unwrap();
        let pid = self.0.pid();
        probe.take_in(pid, Role::Target, Children::Strangers, &proc::tasks(pid)).unwrap();
        probe
    }
}

/// What a piece costs, in percent of the rate without it: the mean over pairs and its 95 % interval's half.
fn cost(running: &Counted, probe: &mut Probe, attach: &dyn Fn(&mut Probe)) -> (f64, f64) {
    // Code that is nowhere: every sample is looked at, none hits.
    let nowhere = 1..2;
    let ranges = std::slice::from_ref(&nowhere);
    let code = Tried::Code { ranges, reach: Reach::Own, delay_ns: PERIOD_NS / 2 };
    let mut pairs: Vec<f64> = (0..PAIRS)
        .map(|pair| {
            let mut with = || {
                attach(probe);
                probe.begin(&code, u64::MAX).unwrap();
                let rate = running.rate();
                probe.end();
                probe.detach();
                rate
            };
            // Which comes first alternates, so that drift does not count for one of them.
            let (with, without) = if pair % 2 == 0 {
                (with(), running.rate())
            } else {
                let bare = running.rate();
                (with(), bare)
            };
            100.0 * (1.0 - with / without)
        })
        .collect();
    // A tenth at each end: waves of other load.
    pairs.sort_by(f64::total_cmp);
    let kept = &pairs[PAIRS / 10..PAIRS - PAIRS / 10];
    (stats::mean(kept), 2.04 * (stats::variance(kept) / kept.len() as f64).sqrt())
}

#[test]
#[ignore = "a measurement of two minutes, made by hand; needs root"]
fn the_probe_without_pauses_costs_little() {
    for kind in ["compute", "pingpong"] {
        let running = Counted::start(kind);
        let mut probe = running.probe();
        println!("{kind}: {:.0} units/s", running.rate());
        let parts = [
            ("wakes", Part::Wakes),
            ("switches", Part::Switches),
            ("samples", Part::Samples { period_ns: PERIOD_NS }),
        ];
        for (name, part) in parts {
            let (mean, half) = cost(&running, &mut probe, &|probe| probe.attach_part(part).unwrap());
            println!("  {name:<10} {mean:+.2} % ± {half:.2}");
        }
        let (mean, half) = cost(&running, &mut probe, &|probe| probe.attach(PERIOD_NS).unwrap());
        println!("  all        {mean:+.2} % ± {half:.2}");
        assert_eq!(probe.counts().pauses, 0);
        // Far above what it costs, so that only a mistake reaches it.
        assert!(mean - half < 25.0, "{mean} ± {half}");
    }
}
