//! Causal profiles of simulated programs in the spirit of those in the wild: semaphores, batches, stealing, readers and writers,
//! pools on few cores, time-outs, back-off, group commits. What is told of them is held against what is so.
#![allow(clippy::unwrap_used)]

// Not all that the others need.
#[allow(dead_code)]
#[path = "causal/machine.rs"]
mod machine;
#[allow(dead_code)]
#[path = "causal/programs.rs"]
mod programs;
#[path = "causal/worlds.rs"]
mod worlds;

use dyno_record::causal::{Causal, Verdict};

use machine::Step::{Run, Visit};
use machine::{Machine, NOISY, Program, QUIET};
use programs::{US, profiled_on, program};
use worlds::{World, all_worlds, limits_ahead};

/// Runs of each program.
const SEEDS: u64 = 2;
/// What the truth is known to: chance decides much in some of them.
const TRUTH_POINTS: f64 = 0.5;
/// Farther outside of an interval no figure may be, and nearer no more of them than chance puts there: one in twenty would.
const FAR_POINTS: f64 = 2.0;
const MISSED_SHARE_MAX: f64 = 0.05;

#[derive(Default)]
struct Told {
    answers: usize,
    figures: usize,
    missed: usize,
    far: Vec<String>,
}

impl Told {
    /// Every figure that a verdict may rest on, held against the truth.
    fn add(&mut self, what: &str, record: &Causal, truth: &dyn Fn(usize, u32) -> f64) {
        for judged in record.sites.iter().filter(|judged| judged.verdict != Verdict::NotMeasurable) {
            let site = judged.name[1..].parse().unwrap();
            self.answers += 1;
            for point in judged.points.iter().filter(|point| !point.biased) {
                let truth = truth(site, point.speedup_percent);
                let [low, high] = point.interval_percent;
                let outside = (low - truth).max(truth - high) - TRUTH_POINTS;
                self.figures += 1;
                self.missed += usize::from(outside > 0.0);
                if outside > FAR_POINTS {
                    self.far.push(format!("{what} {}: {truth:.1} {point:?}", judged.name));
                }
            }
        }
    }
}

/// What is told of a program in some runs.
fn told(what: &str, program: &Program, sites: usize, seeds: std::ops::Range<u64>) -> Told {
    told_on(|machine| machine, what, program, sites, seeds)
}

/// The same, on machines as they are made of usual ones.
fn told_on(
    made: fn(Machine) -> Machine,
    what: &str,
    program: &Program,
    sites: usize,
    seeds: std::ops::Range<u64>,
) -> Told {
    let levels = [10, 25, 50];
    let truths: Vec<[f64; 3]> =
        (0..sites).map(|site| levels.map(|level| Machine::truth_over(program, site, level, 60))).collect();
    let truth = |site: usize, level: u32| truths[site][levels.iter().position(|one| *one == level).unwrap()];
    let mut told = Told::default();
    for seed in seeds {
        let noise = if seed % 2 == 0 { QUIET } else { NOISY };
        let machine = made(Machine::new(program, noise, seed));
        let record = profiled_on(machine, program, sites, 60 * sites as u64, seed);
        told.add(&format!("{what}, seed {seed}"), &record, &truth);
    }
    told
}

/// Planted fault: hand-offs of all windows stand for each level's (`Handed::seen` of `all` alone: 26 ±2 at 50 % of what two threads
/// do outside of a lock, where 21 is true). What else is looked at in such programs has its fault where it is asked.
#[test]
fn of_programs_as_in_the_wild_nothing_is_told_that_is_not_so() {
    let worlds = all_worlds();
    let all: Vec<(&str, Told)> = std::thread::scope(|scope| {
        let of = |(what, program, sites): &World| (*what, told(what, program, *sites, 400..400 + SEEDS));
        let halves = worlds.chunks(worlds.len().div_ceil(2));
        let threads = halves.map(|half| scope.spawn(move || half.iter().map(of).collect::<Vec<_>>()));
        let threads: Vec<_> = threads.collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let far: Vec<&String> = all.iter().flat_map(|(_, told)| &told.far).collect();
    let sum = |of: fn(&Told) -> usize| all.iter().map(|(_, told)| of(told)).sum::<usize>();
    let (answers, figures, missed) =
        (sum(|told| told.answers), sum(|told| told.figures), sum(|told| told.missed));
    println!("{} programs: {answers} answers with {figures} figures, {missed} missed", all.len());
    assert!(far.is_empty(), "{far:#?}");
    assert!(missed as f64 <= MISSED_SHARE_MAX * figures as f64, "{missed} of {figures}");
    assert!(answers >= 60, "{answers} answers: refused where it was measured before");
}

/// Turns that take as long as samples are apart: pauses begin with samples, and shift who pauses until all are met at the same place.
///
/// Planted faults: `met_in_step` of nought: 47 ±1 at 50 %, where 30 is true; time for each visit by what pauses leave (`ns_per_visit`
/// of `SpeedUp`).
#[test]
fn threads_in_step_with_samples_are_not_told_what_the_samples_make_of_it() {
    for unit in [330, 950, 1_000, 1_050] {
        for threads in [2, 4] {
            let turn = [Run(0, 6 * unit * US / 10), Run(1, 4 * unit * US / 10), Visit];
            let program = program(&vec![&turn[..]; threads], &[]);
            // Calls that are not counted are slowed down at samples, which are in step as well.
            for made in [|machine| machine, Machine::without_calls as fn(Machine) -> Machine] {
                let told = told_on(made, "turns", &program, 2, 20..22);
                assert!(told.far.is_empty(), "{threads} of {unit} us: {:#?}", told.far);
            }
        }
    }
}

/// What no experiment can see that only slows down: a limit above the present rate. The manual says so; here it is counted.
#[test]
fn a_limit_that_is_not_reached_yet_is_not_seen() {
    for (what, program, sites) in limits_ahead() {
        let told = told(what, &program, sites, 30..32);
        assert!(told.answers == 0 || !told.far.is_empty(), "{what} is seen: let the manual say so");
    }
}
