//! Causal profiles of machines whose truth is known: what is claimed, how often falsely, and how well it is hit.
#![allow(clippy::unwrap_used)]

#[path = "causal/machine.rs"]
mod machine;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::causal::{Causal, Metric, Site as Told, Source, Verdict};
use dyno_profile::causal::{Asked, Entry, Place, Reach, Site, Tried, run};

use machine::Step::{Lock, Meet, Pop, Push, Run, Sleep, Unlock, Visit};
use machine::{Machine, NOISY, Noise, Program, QUIET, Step};

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

fn program(threads: &[&[Step]], queues: &[usize]) -> Program {
    Program { threads: threads.iter().map(|steps| steps.to_vec()).collect(), queues: queues.to_vec() }
}

/// 60, 30 and 10 % of one thread.
fn single() -> Program {
    program(&[&[Run(0, 600 * US), Run(1, 300 * US), Run(2, 100 * US), Visit]], &[])
}

/// Two threads that join: 6.7 against 6.4.
fn joined() -> Program {
    program(&[&[Run(0, 67 * MS / 10), Meet, Visit], &[Run(1, 64 * MS / 10), Meet]], &[])
}

/// Three stages with queues between them; the middle one is slow.
fn pipeline() -> Program {
    let stages: [&[Step]; 3] =
        [&[Run(0, 5 * MS), Push(0)], &[Pop(0), Run(1, 10 * MS), Push(1)], &[Pop(1), Run(2, 6 * MS), Visit]];
    program(&stages, &[4, 4])
}

/// Two threads at one lock.
fn lock(inside: u64, outside: u64) -> Program {
    let turn = [Lock(0), Run(0, inside), Unlock(0), Run(1, outside), Visit];
    program(&[&turn, &turn], &[])
}

/// A thread that makes progress, and one that has nothing to do with it.
fn beside() -> Program {
    program(&[&[Run(0, MS), Visit], &[Run(1, MS)]], &[])
}

/// A thread woken by time, beside one that computes always.
fn timed() -> Program {
    program(&[&[Sleep(2 * MS), Run(1, MS), Visit], &[Run(0, MS)]], &[])
}

fn tried(sites: usize) -> Vec<Tried> {
    let site = |at: usize| {
        let entries = vec![Entry { image: "/program".into(), offset: at as u64 }];
        let place = Place::Code { ranges: std::iter::once(0..1).collect(), entries };
        Tried {
            site: Site { name: format!("f{at}"), place, reach: Reach::Own },
            source: Source::default(),
            share_percent: Some(50.0),
            is_spinning: false,
        }
    };
    (0..sites).map(site).collect()
}

fn profiled(program: &Program, sites: usize, noise: Noise, budget_s: u64, seed: u64) -> Causal {
    let mut machine = Machine::new(program, noise, seed);
    let clock = machine.clock();
    let asked = Asked {
        levels_percent: Asked::LEVELS_PERCENT.to_vec(),
        budget: Duration::from_secs(budget_s),
        seed,
        metric: Metric::Throughput,
        progress: "visit".to_owned(),
        cpus: program.threads.len(),
    };
    run(&asked, &mut machine, &tried(sites), &clock, &mut |_| (), &AtomicBool::new(false)).unwrap()
}

fn of(record: &Causal, site: usize) -> &Told {
    record.sites.iter().find(|told| told.name == format!("f{site}")).unwrap()
}

fn show(what: &str, program: &Program, record: &Causal) {
    println!(
        "{what}: {:.0} visits/s, overhead {:.1} %",
        record.progress.per_second, record.overhead.attached_percent
    );
    for told in &record.sites {
        println!("  {} {:?}: {} [{:.1} s]", told.name, told.verdict, told.reason, told.spent_s);
        let seen = &told.credibility;
        println!(
            "     null sd {:.1} % unpaid {:.1} % wakes {:.0}/s run {:.0?} us dropped {}/{}",
            seen.null_sd_percent,
            seen.unpaid_percent,
            seen.inner_wakes,
            seen.run_between_wakes_us,
            seen.dropped_windows,
            seen.windows
        );
        for point in &told.points {
            let site = told.name[1..].parse().unwrap();
            let truth = Machine::truth(program, site, point.speedup_percent);
            let [low, high] = point.interval_percent;
            println!(
                "     {:>3} %: {:6.2} ({low:.2} to {high:.2}) of {} rounds; true {truth:.2}{}",
                point.speedup_percent,
                point.effect_percent,
                point.rounds,
                if point.biased { " biased" } else { "" }
            );
        }
        if let Some(slow) = &told.slow_down {
            println!(
                "     slowed {:.0} %: costs {:.1} ({:.1?}) {}",
                slow.slowdown_percent, slow.cost_percent, slow.interval_percent, slow.contradicts
            );
        }
    }
}

#[test]
fn survey() {
    for (what, program, sites) in [
        ("single", single(), 3),
        ("joined", joined(), 2),
        ("pipeline", pipeline(), 3),
        ("lock 55/55", lock(55 * US, 55 * US), 2),
        ("lock 500/500", lock(500 * US, 500 * US), 2),
        ("lock 2000/2000", lock(2_000 * US, 2_000 * US), 2),
        ("beside", beside(), 2),
        ("timed", timed(), 2),
    ] {
        show(what, &program, &profiled(&program, sites, NOISY, 60 * sites as u64, 7));
    }
}
