//! How often a causal profile of a simulated machine is right, for each kind of program: how often what is nothing is claimed,
//! how often a true tenth is found, and how often intervals hold the truth.
//!
//! Rates are counted over seeds. A bound is what a rate that is as promised stays within but for one time in ten thousand
//! (binomial), so that a change of chance alone makes the test red once in some hundred changes at most: there are some thirty
//! bounds. The same seeds give the same counts each time.
#![allow(clippy::unwrap_used)]

// Not all that the others need.
#[allow(dead_code)]
#[path = "causal/machine.rs"]
mod machine;
#[allow(dead_code)]
#[path = "causal/programs.rs"]
mod programs;

use dyno_record::causal::{Site, Verdict};

use machine::Step::{Lock, Meet, Pop, Push, Run, Sleep, Unlock, Until, Visit};
use machine::{Machine, NOISY, Program};
use programs::{MS, US, beside, joined, pipeline, profiled, program, timed};

/// Runs of each program, and the time of one, seconds for each site.
const RUNS: u64 = 30;
const SITE_S: u64 = 30;
/// How often a bound may be broken by chance.
const FALSE_RED: f64 = 1e-4;
/// Rates that are promised: of false claims in a run (all sites together), and of intervals that miss.
const CLAIMED_MAX: f64 = 0.02;
const MISSED_MAX: f64 = 0.05;
/// What the truth is known to: it is counted over forty seconds, too.
const TRUTH_POINTS: f64 = 0.3;

/// A kind of program, how many sites it has, the one that is worth a tenth at 50 %, how often that is found at least, and
/// answers that are no refusals, of all its sites in all runs: half of what there were when this was written.
type Kind = (&'static str, Program, usize, Option<(usize, f64)>, u64);

fn kinds() -> Vec<Kind> {
    let shares = program(&[&[Run(0, 800 * US), Run(1, 200 * US), Visit]], &[]);
    let naps = program(&[&[Run(0, 3 * MS), Run(1, 2 * MS), Sleep(5 * MS), Visit]], &[]);
    let turn = [Lock(0), Run(0, 2 * MS), Unlock(0), Run(1, 8 * MS), Visit];
    let ticks = program(&[&[Until(20 * MS), Run(0, 4 * MS), Run(1, 4 * MS), Visit]], &[]);
    let uneven = program(&[&[Run(0, 5 * MS), Run(1, 2 * MS), Meet, Visit], &[Run(2, 6 * MS), Meet]], &[]);
    let chain = program(&[&[Run(0, 10 * MS), Push(0)], &[Pop(0), Run(1, 2 * MS), Visit]], &[4]);
    vec![
        ("one thread", shares, 2, Some((1, 0.9)), 29),
        ("beside", beside(), 2, None, 23),
        ("naps", naps, 2, Some((1, 0.9)), 29),
        ("timed", timed(), 2, None, 27),
        ("joined", joined(), 2, None, 9),
        ("uneven join", uneven, 3, None, 31),
        ("pipeline", pipeline(), 3, None, 15),
        ("a stage that others wait for", chain, 2, None, 14),
        ("two at a lock now and then", program(&[&turn, &turn], &[]), 2, None, 29),
        ("ticks", ticks, 2, None, 0),
    ]
}

/// Chance of more than so many of `n`, each as likely as said.
fn more_than(k: u64, n: u64, p: f64) -> f64 {
    let (mut term, mut at_most) = ((1.0 - p).powi(n as i32), 0.0);
    for i in 0..=k {
        at_most += term;
        term *= (n - i) as f64 / (i + 1) as f64 * p / (1.0 - p);
    }
    1.0 - at_most
}

/// The most that chance makes of `n`.
fn most(n: u64, p: f64) -> u64 {
    (0..n).find(|k| more_than(*k, n, p) < FALSE_RED).unwrap_or(n)
}

/// What was counted of a kind.
#[derive(Debug, Default)]
struct Counts {
    /// Runs with a claim of what is nothing, or of the opposite.
    false_claims: u64,
    /// Answers that are claims or nothing, their figures, and those that do not hold the truth.
    answers: u64,
    figures: u64,
    missed: u64,
    /// Runs in which the tenth is said to help.
    found: u64,
}

impl Counts {
    fn add(&mut self, sites: &[Site], truths: &[f64], tenth: Option<usize>) {
        let truth = |site: &Site| truths[site.name[1..].parse::<usize>().unwrap()];
        let is_false = |site: &&Site| match site.verdict {
            Verdict::Helps => truth(site) < TRUTH_POINTS,
            Verdict::Hurts => truth(site) > -TRUTH_POINTS,
            Verdict::NoEffect | Verdict::NotMeasurable => false,
        };
        self.false_claims += u64::from(sites.iter().any(|site| is_false(&site)));
        for site in sites.iter().filter(|site| site.verdict != Verdict::NotMeasurable) {
            self.answers += 1;
            let figure = site.points.iter().find(|point| point.speedup_percent == 50 && !point.biased);
            let Some(figure) = figure else { continue };
            let [low, high] = figure.interval_percent;
            let (low, high) = (low - TRUTH_POINTS, high + TRUTH_POINTS);
            self.figures += 1;
            self.missed += u64::from(truth(site) < low || truth(site) > high);
            let is_tenth = tenth.is_some_and(|at| site.name == format!("f{at}"));
            self.found += u64::from(is_tenth && site.verdict == Verdict::Helps);
        }
    }
}

fn counted((_, program, sites, tenth, _): &Kind) -> Counts {
    let truths: Vec<f64> = (0..*sites).map(|site| Machine::truth(program, site, 50)).collect();
    let mut counts = Counts::default();
    for seed in 0..RUNS {
        let record = profiled(program, *sites, NOISY, SITE_S * *sites as u64, 1_000 + seed);
        counts.add(&record.sites, &truths, tenth.map(|(site, _)| site));
    }
    counts
}

/// Planted faults: intervals half as wide (`Mean::of` with half of `half_width`: misses); a claim at a chance of one in five
/// (`case::CHANCE_MAX`: false claims); a verdict that needs sixty rounds (`ROUNDS_MIN`: nothing found).
#[test]
fn false_claims_finds_and_intervals_that_miss_are_as_rare_as_is_said_for_each_kind_of_program() {
    let kinds = kinds();
    let counts: Vec<Counts> = std::thread::scope(|scope| {
        let halves = kinds.chunks(kinds.len().div_ceil(2));
        let threads = halves.map(|half| scope.spawn(|| half.iter().map(counted).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for ((what, _, _, tenth, answers_min), counts) in kinds.iter().zip(&counts) {
        println!("{what}: {counts:?}");
        let [claims_max, missed_max] =
            [(RUNS, CLAIMED_MAX), (counts.figures, MISSED_MAX)].map(|(n, p)| most(n, p));
        assert!(counts.false_claims <= claims_max, "{what}: {counts:?}, {claims_max} by chance");
        assert!(counts.missed <= missed_max, "{what}: {counts:?}, {missed_max} by chance");
        assert!(counts.answers >= *answers_min, "{what}: {counts:?}, refused where it was measured before");
        if let Some((_, rate)) = tenth {
            let lost_max = most(RUNS, 1.0 - rate);
            assert!(RUNS - counts.found <= lost_max, "{what}: {counts:?}, {lost_max} not found by chance");
        }
    }
    assert!(counts.last().unwrap().answers == 0, "what is paced by a clock has no answer");
}

#[test]
fn bounds_are_the_binomials() {
    assert!(
        (more_than(0, 10, 0.05) - 0.401_263).abs() < 1e-5
            && (more_than(2, 30, 0.05) - 0.187_822).abs() < 1e-5
    );
    assert_eq!([most(30, 0.02), most(60, 0.05), most(30, 0.1), most(0, 0.05)], [5, 11, 10, 0]);
}
