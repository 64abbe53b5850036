//! Programs in the spirit of those in the wild, whose truth is counted: what each kind of them does to an answer.

use super::machine::Step::{
    Chance, Collect, Leave, Lock, Meet, Poll, Pop, PopEither, PopFor, Push, PushEach, PushOrDrop, Read, Run,
    RunEach, Skip, Sleep, Stale, Token, TryPop, Unlock, Until, Varied, Visit, VisitEach, VisitOnceIn, Write,
};
use super::machine::{Program, Step};
use super::programs::{MS, US, program};

/// Longer than anybody waits.
const LONG: u64 = 10_000 * MS;

/// A name, a program, and how many sites it has.
pub(crate) type World = (&'static str, Program, usize);

fn times(count: usize, steps: &[Step]) -> Vec<&[Step]> {
    vec![steps; count]
}

fn on_cores(cores: usize, program: Program) -> Program {
    Program { cores: Some(cores), ..program }
}

fn with(items: &[usize], program: Program) -> Program {
    Program { items: items.to_vec(), ..program }
}

fn spinning_for(ns: u64, program: Program) -> Program {
    Program { spins: true, spins_for: Some(ns), ..program }
}

/// Threads that share what there is of something.
pub(crate) fn sharing() -> Vec<World> {
    let of_two = [Pop(0), Run(0, 2 * MS), Push(0), Run(1, MS), Visit];
    let reader: &[Step] = &[Read(0), Run(0, 2 * MS), Leave(0), Run(1, 3 * MS), Visit];
    let writer: &[Step] = &[Write(0), Run(2, MS), Leave(0), Run(3, 9 * MS)];
    let many_writers: &[Step] = &[Write(0), Run(2, MS), Leave(0), Run(3, 5 * MS)];
    let convoy = [Lock(0), Run(0, MS), Unlock(0), Run(1, 2 * MS), Visit];
    let brief: &[Step] = &[Lock(0), Run(0, 500 * US), Unlock(0), Run(1, 1_500 * US), Visit];
    let by_clock: &[Step] = &[Sleep(10 * MS), Lock(0), Run(2, 3 * MS), Unlock(0)];
    let adaptive = [Lock(0), Run(0, 2 * MS), Unlock(0), Run(1, 3 * MS), Visit];
    let short = [Lock(0), Run(0, 300 * US), Unlock(0), Run(1, 500 * US), Visit];
    let varied = [Lock(0), Varied(0, 2 * MS), Unlock(0), Varied(1, 5 * MS), Visit];
    vec![
        ("semaphore of two", with(&[2], program(&times(4, &of_two), &[2])), 2),
        ("readers before a rare writer", program(&[reader, reader, reader, writer], &[]), 4),
        ("writers before readers", program(&[reader, reader, many_writers, many_writers], &[]), 4),
        ("lock convoy", program(&times(6, &convoy), &[]), 2),
        ("a timer at the lock", program(&[brief, brief, by_clock], &[]), 3),
        ("adaptive lock", spinning_for(100 * US, program(&times(2, &adaptive), &[])), 2),
        ("sleeping lock as the adaptive", program(&times(2, &adaptive), &[]), 2),
        ("spin lock as the adaptive", Program { spins: true, ..program(&times(2, &adaptive), &[]) }, 2),
        ("adaptive lock of four", spinning_for(MS, program(&times(4, &adaptive), &[])), 2),
        ("short adaptive lock", spinning_for(50 * US, program(&times(3, &short), &[])), 2),
        ("lock of varied turns", program(&times(3, &varied), &[]), 2),
        ("spin lock of varied turns", Program { spins: true, ..program(&times(3, &varied), &[]) }, 2),
    ]
}

/// Work that is handed on.
pub(crate) fn handing_on() -> Vec<World> {
    let feeds: &[Step] = &[Run(2, 500 * US), Push(0)];
    let feeds_too: &[Step] = &[Run(3, 700 * US), Push(1)];
    let steals: &[Step] = &[PopEither(0, 1), Varied(0, 600 * US), Run(1, 300 * US), Visit];
    let steals_too: &[Step] = &[PopEither(1, 0), Varied(0, 600 * US), Run(1, 300 * US), Visit];
    let source: &[Step] = &[Varied(0, 900 * US), Push(0)];
    let flushes: &[Step] = &[Collect(0, 8, 5 * MS), RunEach(1, 2 * MS, 100 * US), VisitEach];
    let heavy: &[Step] = &[Collect(0, 8, 5 * MS), RunEach(1, 4 * MS, 300 * US), VisitEach];
    let worker: &[Step] = &[Pop(0), Run(0, 2 * MS), Run(1, MS), Visit];
    let master: &[Step] = &[Run(2, MS), Push(0)];
    let quick: &[Step] = &[Varied(0, 800 * US), PushOrDrop(0)];
    let slow: &[Step] = &[Pop(0), Varied(1, MS), Visit];
    let lossy: &[Step] = &[Varied(0, 1_300 * US), PushOrDrop(0)];
    let looks: &[Step] = &[Poll(0, 100 * US, 5 * MS), Run(1, 2 * MS), Visit];
    let makes: &[Step] = &[Varied(0, 3 * MS), Push(0)];
    let commits: &[Step] = &[Run(0, MS), Push(0), Pop(1), Run(2, 500 * US), Visit];
    let log: &[Step] = &[Collect(0, 1, LONG), RunEach(1, 3 * MS, 100 * US), PushEach(1)];
    let stages = |a: usize, b: usize| {
        let three: [&[Step]; 3] = [
            &[Varied(0, 5 * MS), Push(0)],
            &[Pop(0), Varied(1, 6 * MS), Push(1)],
            &[Pop(1), Varied(2, 55 * MS / 10), Visit],
        ];
        program(&three, &[a, b])
    };
    let tandem = |a: u64, room: usize| {
        program(&[&[Varied(0, a), Push(0)], &[Pop(0), Varied(1, 4 * MS), Visit]], &[room])
    };
    vec![
        ("work stealing", program(&[feeds, feeds_too, steals, steals_too], &[16, 16]), 4),
        ("batch by size or time", program(&[source, flushes], &[100]), 2),
        ("batch that is the limit", program(&[source, source, heavy], &[20]), 2),
        ("pool on its own cores", program(&[master, worker, worker], &[8]), 3),
        ("pool that waits", program(&[master, worker, worker, worker, worker], &[8]), 3),
        ("full queue drops", program(&[quick, slow], &[10]), 2),
        ("queue drops now and then", program(&[lossy, slow], &[4]), 2),
        ("polling that backs off", program(&[makes, looks], &[20]), 2),
        ("group commit", program(&[commits, commits, commits, commits, log], &[20, 20]), 3),
        ("three stages, one and sixteen", stages(1, 16), 3),
        ("three stages, sixteen and one", stages(16, 1), 3),
        ("tandem of one", tandem(4 * MS, 1), 2),
        ("tandem of eight", tandem(4 * MS, 8), 2),
        ("tandem of fifty", tandem(39 * MS / 10, 50), 2),
        (
            "spinning pipeline",
            Program { spins: true, ..program(&[makes, &[Pop(0), Varied(1, 2 * MS), Visit]], &[4]) },
            2,
        ),
    ]
}

/// Threads that wait for a core.
pub(crate) fn crowded() -> Vec<World> {
    let own: &[Step] = &[Run(0, 600 * US), Run(1, 400 * US), Visit];
    let stranger: &[Step] = &[Run(2, MS)];
    let worker: &[Step] = &[Pop(0), Run(0, 700 * US), Run(1, 300 * US), Visit];
    let master: &[Step] = &[Run(2, 300 * US), Push(0)];
    let asks: &[Step] = &[Run(0, MS), Sleep(3 * MS), Run(1, 500 * US), Visit];
    let locks: &[Step] = &[Lock(0), Run(0, MS), Unlock(0), Run(1, 2 * MS), Visit];
    let makes: &[Step] = &[Run(0, 2 * MS), Push(0)];
    let uses: &[Step] = &[Pop(0), Run(1, MS), Visit];
    let beside: &[Step] = &[Sleep(2 * MS), Run(2, MS)];
    vec![
        ("four of their own on two cores", on_cores(2, program(&times(4, own), &[])), 2),
        ("two and two strangers on two cores", on_cores(2, program(&[own, own, stranger, stranger], &[])), 3),
        ("one and a stranger on one core", on_cores(1, program(&[own, stranger], &[])), 3),
        (
            "pool on two cores",
            on_cores(2, program(&[master, worker, worker, worker, worker, worker], &[8])),
            3,
        ),
        ("eight that ask on two cores", on_cores(2, program(&times(8, asks), &[])), 2),
        ("four that ask on two cores", on_cores(2, program(&times(4, asks), &[])), 2),
        ("four at a lock on two cores", on_cores(2, program(&times(4, locks), &[])), 2),
        ("pipeline on one core", on_cores(1, program(&[makes, uses], &[4])), 2),
        ("pipeline and a timer on two cores", on_cores(2, program(&[makes, uses, beside], &[4])), 3),
        ("spin lock on two cores", on_cores(2, Program { spins: true, ..program(&times(4, locks), &[]) }), 2),
        (
            "adaptive lock on two cores",
            on_cores(2, spinning_for(100 * US, program(&times(4, locks), &[]))),
            2,
        ),
    ]
}

/// What clocks, chance and others' answers do.
pub(crate) fn clocks_and_chance() -> Vec<World> {
    let stale: &[Step] = &[Run(0, MS), Stale(1, 50 * MS, 10 * MS), Visit];
    let mutates: &[Step] = &[Run(0, MS), Push(0), Visit];
    let collects: &[Step] = &[Collect(0, 50, LONG), RunEach(1, 0, 200 * US)];
    let held: &[Step] = &[Read(0), Run(0, MS), Push(0), Leave(0), Visit];
    let stops: &[Step] = &[Collect(0, 100, LONG), Write(0), RunEach(1, 5 * MS, 100 * US), Leave(0)];
    let hedges: &[Step] =
        &[TryPop(2, 0), Push(0), PopFor(2, 4 * MS, 1), Skip(2), Push(1), Pop(2), Run(2, 500 * US), Visit];
    let answers = |queue, site| vec![Pop(queue), Varied(site, 2 * MS), Push(2)];
    let retries: &[Step] = &[Push(0), PopFor(1, 12 * MS, 2), Run(1, MS), Visit];
    let server: &[Step] = &[Pop(0), Varied(0, 2 * MS), Push(1)];
    let renders = |ms: u64| vec![Run(0, ms * MS * 3 / 4), Run(1, ms * MS / 4), Push(0)];
    let shows: &[Step] = &[Until(16 * MS), TryPop(0, 1), Visit];
    let blocks: &[Step] = &[Run(0, 300 * US), Chance(20, 1), Sleep(2 * MS), Run(1, 200 * US), Visit];
    let tenth: &[Step] = &[Run(0, 60 * US), Run(1, 40 * US), VisitOnceIn(10)];
    let calls: &[Step] = &[Run(0, 3 * MS), Run(1, 2 * MS), Visit];
    let calls_too: &[Step] = &[Run(0, MS), Run(2, MS)];
    let kinds: [&[Step]; 2] = [&[Run(0, MS), Visit], &[Run(1, 250 * US), Visit]];
    let rare: &[Step] = &[Run(0, MS), Chance(2, 1), Run(1, 30 * MS), Visit];
    let part: &[Step] = &[Varied(0, 3 * MS), Run(1, MS), Meet];
    let last: &[Step] = &[Varied(0, 3 * MS), Run(1, MS), Meet, Visit];
    let thinks: &[Step] = &[Push(0), Pop(1), Sleep(5 * MS)];
    let serves: &[Step] = &[Pop(0), Run(0, MS), Run(1, 500 * US), Push(1), Visit];
    let (hedged_a, hedged_b) = (answers(0, 0), answers(1, 1));
    let (renders_fast, renders_slow) = (renders(12), renders(20));
    vec![
        ("cache that becomes stale", program(&[stale], &[]), 2),
        ("collector beside", program(&[mutates, mutates, collects], &[1_000]), 2),
        ("collector that stops all", program(&[held, held, stops], &[10_000]), 2),
        ("hedged requests", program(&[hedges, hedges, &hedged_a, &hedged_b], &[100; 3]), 3),
        ("retries", program(&[retries, retries, retries, retries, server], &[1_000; 2]), 2),
        ("frames that are always there", program(&[&renders_fast, shows], &[2]), 2),
        ("frames that are missed", program(&[&renders_slow, shows], &[2]), 2),
        ("a blocking call now and then", program(&[blocks], &[]), 2),
        ("a tenth of the units is counted", program(&[tenth], &[]), 2),
        ("two callers", program(&[calls, calls_too], &[]), 3),
        ("two kinds of visits", program(&kinds, &[]), 2),
        ("rare and long", program(&[rare], &[]), 2),
        ("joins of varied parts", program(&[last, part, part], &[]), 2),
        ("clients that think", program(&[thinks, thinks, thinks, thinks, serves], &[10, 10]), 2),
    ]
}

/// What is as fast as it can be only up to a limit that pauses keep it from.
pub(crate) fn limits_ahead() -> Vec<World> {
    let limited: &[Step] = &[Token(MS, 500), Run(0, 700 * US), Run(1, 500 * US), Visit];
    let loses: &[Step] = &[Sleep(MS), PushOrDrop(0)];
    let takes: &[Step] = &[Pop(0), Varied(0, 1_100 * US), Visit];
    vec![
        ("limit with a burst", program(&[limited], &[]), 2),
        ("what comes by itself is dropped", program(&[loses, takes], &[3]), 1),
    ]
}

pub(crate) fn all_worlds() -> Vec<World> {
    [sharing(), handing_on(), crowded(), clocks_and_chance()].into_iter().flatten().collect()
}
