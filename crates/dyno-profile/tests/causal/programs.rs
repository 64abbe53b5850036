//! Programs of the simulated machine whose truth is known, and a causal profile of one: what the tests on them share.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_profile::causal::{Asked, Entry, Place, Reach, Site, Tried, run};
use dyno_record::causal::{Causal, Metric, Source};

use super::machine::Step::{Lock, Meet, Pop, Push, Run, Sleep, Unlock, Visit};
use super::machine::{Machine, Noise, Program, Step};

pub(crate) const US: u64 = 1_000;
pub(crate) const MS: u64 = 1_000_000;

pub(crate) fn program(threads: &[&[Step]], queues: &[usize]) -> Program {
    Program {
        threads: threads.iter().map(|steps| steps.to_vec()).collect(),
        queues: queues.to_vec(),
        items: Vec::new(),
        wakes_at: 1,
        quota_ns: None,
        spins: false,
        spins_for: None,
        cores: None,
    }
}

/// 60, 30 and 10 % of one thread.
pub(crate) fn single() -> Program {
    program(&[&[Run(0, 600 * US), Run(1, 300 * US), Run(2, 100 * US), Visit]], &[])
}

/// Two threads that join: 6.7 against 6.4.
pub(crate) fn joined() -> Program {
    program(&[&[Run(0, 67 * MS / 10), Meet, Visit], &[Run(1, 64 * MS / 10), Meet]], &[])
}

/// Three stages with queues between them; the middle one is slow.
pub(crate) fn pipeline() -> Program {
    let stages: [&[Step]; 3] =
        [&[Run(0, 5 * MS), Push(0)], &[Pop(0), Run(1, 10 * MS), Push(1)], &[Pop(1), Run(2, 6 * MS), Visit]];
    program(&stages, &[4, 4])
}

/// A producer that is a little slower than its consumer, with room for some items between them.
pub(crate) fn balanced(room: usize) -> Program {
    program(&[&[Run(0, 8 * MS), Push(0)], &[Pop(0), Run(1, 72 * MS / 10), Visit]], &[room])
}

/// Two threads at one lock.
pub(crate) fn lock(inside: u64, outside: u64) -> Program {
    let turn = [Lock(0), Run(0, inside), Unlock(0), Run(1, outside), Visit];
    program(&[&turn, &turn], &[])
}

/// The same, with waits in loops.
#[allow(dead_code, reason = "rates and goldens are of programs that sleep")]
pub(crate) fn spinning(program: Program) -> Program {
    Program { spins: true, ..program }
}

/// A parallel loop of two parts, joined, and a part by one thread alone: as OpenMP runs it.
#[allow(dead_code, reason = "rates and goldens are of programs that sleep")]
pub(crate) fn fork_join() -> Program {
    program(&[&[Run(1, 3 * MS), Meet, Run(2, 2 * MS), Visit, Meet], &[Run(0, 5 * MS), Meet, Meet]], &[])
}

/// A thread that makes progress, and one that has nothing to do with it.
pub(crate) fn beside() -> Program {
    program(&[&[Run(0, MS), Visit], &[Run(1, MS)]], &[])
}

/// A thread woken by time, beside one that computes always.
pub(crate) fn timed() -> Program {
    program(&[&[Sleep(2 * MS), Run(1, MS), Visit], &[Run(0, MS)]], &[])
}

pub(crate) fn tried(sites: usize) -> Vec<Tried> {
    let site = |at: usize| {
        let entries = vec![Entry { image: "/program".into(), offset: at as u64 }];
        let place = Place::Code { ranges: std::iter::once(0..1).collect(), entries };
        Tried {
            site: Site { name: format!("f{at}"), place, reach: Reach::Own },
            source: Source::default(),
            // What no profile weighed.
            share_percent: None,
            is_spinning: false,
        }
    };
    (0..sites).map(site).collect()
}

pub(crate) fn profiled(program: &Program, sites: usize, noise: Noise, budget_s: u64, seed: u64) -> Causal {
    profiled_on(Machine::new(program, noise, seed), program, sites, budget_s, seed)
}

pub(crate) fn profiled_on(
    machine: Machine,
    program: &Program,
    sites: usize,
    budget_s: u64,
    seed: u64,
) -> Causal {
    profiled_as(Metric::Throughput, machine, program, sites, budget_s, seed)
}

pub(crate) fn profiled_as(
    metric: Metric,
    mut machine: Machine,
    program: &Program,
    sites: usize,
    budget_s: u64,
    seed: u64,
) -> Causal {
    let clock = machine.clock();
    let asked = Asked {
        levels_percent: Asked::LEVELS_PERCENT.to_vec(),
        budget: Duration::from_secs(budget_s),
        seed,
        metric,
        progress: "visit".to_owned(),
        cpus: program.cores.unwrap_or(program.threads.len()),
    };
    run(&asked, &mut machine, &tried(sites), &clock, &mut |_| (), &AtomicBool::new(false)).unwrap()
}

/// Programs whose truth is known, and how many sites each has.
pub(crate) fn all() -> [(&'static str, Program, usize); 8] {
    [
        ("single", single(), 3),
        ("joined", joined(), 2),
        ("pipeline", pipeline(), 3),
        ("lock 55/55", lock(55 * US, 55 * US), 2),
        ("lock 500/500", lock(500 * US, 500 * US), 2),
        ("lock 2000/2000", lock(2_000 * US, 2_000 * US), 2),
        ("beside", beside(), 2),
        ("timed", timed(), 2),
    ]
}
