//! Causal profiles of machines whose truth is known: what is claimed, how often falsely, and how well it is hit.
#![allow(clippy::unwrap_used)]

// Steps as in the wild are another test's.
#[allow(dead_code)]
#[path = "causal/machine.rs"]
mod machine;
#[path = "causal/pairs.rs"]
mod pairs;
#[path = "causal/programs.rs"]
mod programs;
#[path = "causal/traps.rs"]
mod traps;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use dyno_measure::stats::Sorted;
use dyno_profile::Error;
use dyno_profile::causal::{Asked, Hooks, Moment, Pause, Rig, Span, Treatment, Window, run};
use dyno_record::causal::{Causal, Metric, Site as Judged, SlowedAt, Verdict};

use machine::Step::{Meet, Run, Sleep, Visit};
use machine::{Machine, NOISY, Noise, Program, QUIET, Step};
use programs::{
    MS, US, all, balanced, fork_join, joined, lock, profiled, profiled_on, program, single, spinning, tried,
};

fn of(record: &Causal, site: usize) -> &Judged {
    record.sites.iter().find(|judged| judged.name == format!("f{site}")).unwrap()
}

fn show(what: &str, program: &Program, record: &Causal) {
    println!(
        "{what}: {:.0} visits/s, overhead {:.1} %",
        record.progress.per_second, record.overhead.attached_percent
    );
    println!("  {:?}", record.control);
    for judged in &record.sites {
        println!("  {} {:?}: {} [{:.1} s]", judged.name, judged.verdict, judged.reason, judged.spent_s);
        let seen = &judged.credibility;
        println!(
            "     null sd {:.1} % unpaid {:.1} % wakes {:.0}/s run {:.0?} us dropped {}/{}",
            seen.null_sd_percent,
            seen.unpaid_percent,
            seen.inner_wakes,
            seen.run_between_wakes_us,
            seen.dropped_windows,
            seen.windows
        );
        for point in &judged.points {
            let site = judged.name[1..].parse().unwrap();
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
        if let Some(slow) = &judged.slow_down {
            println!(
                "     slowed {:.0} %: costs {:.1} ({:.1?}) {}",
                slow.slowdown_percent, slow.cost_percent, slow.interval_percent, slow.contradicts
            );
        }
    }
}

#[test]
fn what_is_claimed_to_help_is_the_truth_nine_times_in_ten() {
    let (mut rows, mut held, mut narrow, mut errors) = (0, 0, 0, Vec::new());
    for (what, program, sites) in all() {
        let record = profiled(&program, sites, NOISY, 60 * sites as u64, 7);
        show(what, &program, &record);
        for judged in record.sites.iter().filter(|judged| judged.verdict == Verdict::Helps) {
            for point in judged.points.iter().filter(|point| !point.biased) {
                let truth =
                    Machine::truth(&program, judged.name[1..].parse().unwrap(), point.speedup_percent);
                let [low, high] = point.interval_percent;
                rows += 1;
                held += u32::from(low <= truth && truth <= high);
                narrow += u32::from((high - low) / 2.0 <= 3.0);
                errors.push((point.effect_percent - truth).abs());
            }
        }
    }
    let median = Sorted::of(errors).quantile(0.5).unwrap();
    println!(
        "{rows} rows that help: {held} hold the truth, {narrow} within 3 points; median error {median:.2} points"
    );
    assert!(rows >= 20 && f64::from(held) >= 0.9 * f64::from(rows) && median <= 1.5);
    // Where threads hand on to each other the method's own error is most of the width.
    assert!(f64::from(narrow) >= 0.8 * f64::from(rows));
}

/// Planted faults: who waits in a loop pays at its samples there (`owes_nothing_yet` of no): of a fork and a join 24 where 27 is
/// true; all that came in while it left the loop is no debt: with no harm here, and too great a figure for locks.
#[test]
fn threads_that_wait_in_loops_are_told_as_well_as_those_that_sleep() {
    let (mut rows, mut held) = (0, 0);
    let shapes = [
        ("fork and join", fork_join(), 3),
        ("joined", joined(), 2),
        ("lock 3/5", lock(3 * MS, 5 * MS), 2),
        ("lock 5/3", lock(5 * MS, 3 * MS), 2),
    ];
    for (what, program, sites) in shapes {
        let program = spinning(program);
        let record = profiled(&program, sites, QUIET, 60 * sites as u64, 11);
        show(what, &program, &record);
        for judged in record.sites.iter().filter(|judged| judged.verdict == Verdict::Helps) {
            for point in judged.points.iter().filter(|point| !point.biased) {
                let site = judged.name[1..].parse().unwrap();
                let truth = Machine::truth(&program, site, point.speedup_percent);
                let [low, high] = point.interval_percent;
                (rows, held) = (rows + 1, held + u32::from(low <= truth && truth <= high));
            }
        }
    }
    println!("{held} of {rows} hold the truth");
    assert!(rows >= 8 && held + 1 >= rows);
}

/// Threads that wait for each other in loops, for less than a pause: what is not known is not told. Planted fault: such waits
/// are no hand-offs (`pause_of_spin` of nought).
#[test]
fn of_short_waits_in_loops_nothing_is_told_that_is_not_so() {
    for (what, program, sites) in [
        ("lock 600/500", lock(600 * US, 500 * US), 2),
        ("lock 300/200", lock(300 * US, 200 * US), 2),
        ("joined", program(&[&[Run(0, 300 * US), Meet, Visit], &[Run(1, 500 * US), Meet]], &[]), 2),
    ] {
        let program = spinning(program);
        let record = profiled(&program, sites, QUIET, 60 * sites as u64, 13);
        show(what, &program, &record);
        for judged in record.sites.iter().filter(|judged| judged.verdict != Verdict::NotMeasurable) {
            for point in judged.points.iter().filter(|point| !point.biased) {
                let truth =
                    Machine::truth(&program, judged.name[1..].parse().unwrap(), point.speedup_percent);
                let [low, high] = point.interval_percent;
                assert!(low <= truth && truth <= high, "{what} {}: {truth:.1}", judged.name);
            }
        }
    }
}

/// Threads that wait for each other wait for whole pauses in place of a little more at each turn: that costs no less.
///
/// Planted faults: a slow-down that is told by the pauses asked for, not by those that were made for each visit; pauses for all
/// others as well.
#[test]
fn a_part_whose_calls_are_not_counted_is_slowed_down_by_its_samples_at_its_true_cost() {
    let (mut told, mut near) = (0, 0);
    for (what, program, sites) in all() {
        let machine = Machine::new(&program, NOISY, 5).without_calls();
        let record = profiled_on(machine, &program, sites, 60 * sites as u64, 5);
        show(what, &program, &record);
        for judged in &record.sites {
            let Some(slow) = judged.slow_down else { continue };
            let site = judged.name[1..].parse().unwrap();
            let truth = Machine::cost(&program, site, slow.slowdown_percent);
            let [low, high] = slow.interval_percent;
            let (low, high) = (low.min(high), low.max(high));
            println!(
                "{what} {site}: {:.0} % slower costs {truth:.1}, told {low:.1} .. {high:.1}",
                slow.slowdown_percent
            );
            assert_eq!(slow.at, SlowedAt::Samples);
            assert!((5.0..=150.0).contains(&slow.slowdown_percent) && high >= truth - 3.0, "{what} {site}");
            (told, near) = (told + 1, near + u32::from(low <= truth + 3.0));
            assert!(!slow.contradicts, "{what} {site}");
        }
    }
    assert!(told >= 10 && f64::from(near) >= 0.7 * f64::from(told), "{near} of {told}");
}

#[test]
fn where_threads_hand_on_in_less_than_ten_pauses_nothing_is_claimed() {
    let record = profiled(&lock(55 * US, 55 * US), 2, NOISY, 60, 3);
    for judged in &record.sites {
        assert_eq!(judged.verdict, Verdict::NotMeasurable);
        assert!(judged.reason.contains("hand on to each other"), "{}", judged.reason);
        assert!(judged.points.iter().all(|point| point.biased));
    }
}

#[test]
fn where_interrupts_are_cheap_threads_that_hand_on_are_sampled_twice_as_often_and_told_more_narrowly() {
    for (what, program, sites) in all() {
        let usual = profiled(&program, sites, NOISY, 60 * sites as u64, 11);
        let machine = Machine::new(&program, NOISY, 11).with_cheap_interrupts();
        let fine = profiled_on(machine, &program, sites, 60 * sites as u64, 11);
        show(what, &program, &fine);
        let hands_on = usual.sites[0].points.iter().any(|point| point.allowance_points > 1.5);
        assert_eq!(fine.credibility.period_us, if hands_on { 500.0 } else { 1_000.0 }, "{what}");
        for judged in &fine.sites {
            let sound = |judged: &Judged| judged.points.iter().filter(|point| !point.biased).count();
            let before = of(&usual, judged.name[1..].parse().unwrap());
            assert!(sound(judged) >= sound(before), "{what} {}", judged.name);
            for (point, before) in judged.points.iter().zip(&before.points).filter(|_| hands_on) {
                // Half of what hand-offs mislead by, and the rest as before.
                let least = 0.25 + 0.55 * before.allowance_points;
                assert!(before.biased || point.allowance_points < least, "{what} {point:?}");
                let truth =
                    Machine::truth(&program, judged.name[1..].parse().unwrap(), point.speedup_percent);
                let [low, high] = point.interval_percent;
                let holds = low - 0.5 <= truth && truth <= high + 0.5;
                assert!(point.biased || holds, "{what} {}: {truth} {point:?}", judged.name);
            }
        }
    }
}

#[test]
fn a_queue_that_fills_and_drains_for_longer_than_a_window_is_waited_for() {
    let (mut rows, mut held) = (0, 0);
    let quiet = Noise { jitter: 0.01, ..QUIET };
    for (room, noise, seed) in
        [(4, QUIET, 5), (8, QUIET, 5), (8, quiet, 5), (4, QUIET, 6), (8, QUIET, 6), (8, quiet, 7)]
    {
        let program = balanced(room);
        let record = profiled(&program, 2, noise, 240, seed);
        show(&format!("room for {room}"), &program, &record);
        assert!(record.warnings.iter().any(|said| said.contains("still showed in the next")), "{room}");
        let producer = of(&record, 0);
        assert_eq!(producer.verdict, Verdict::Helps, "{}", producer.reason);
        for point in producer.points.iter().filter(|point| !point.biased) {
            let truth = Machine::truth(&program, 0, point.speedup_percent);
            let [low, high] = point.interval_percent;
            (rows, held) = (rows + 1, held + u32::from(low <= truth && truth <= high));
            assert!(low - 1.0 <= truth && truth <= high + 1.0, "room for {room}: {truth} {point:?}");
        }
        assert!(!matches!(of(&record, 1).verdict, Verdict::Helps | Verdict::Hurts));
    }
    // Of eighteen intervals of 95 % four miss once in 400 times.
    assert!(rows >= 12 && held + 3 >= rows, "{held} of {rows}");
}

#[test]
fn what_changes_nothing_is_not_claimed_to() {
    let mut false_claims = Vec::new();
    for seed in 0..40 {
        // Three threads that have nothing to do with progress, each a site of its own.
        let apart: [&[Step]; 4] = [
            &[Run(9, MS), Visit],
            &[Run(0, MS)],
            &[Run(1, 300 * US), Run(2, 700 * US)],
            &[Sleep(MS), Run(2, MS)],
        ];
        let record = profiled(&program(&apart, &[]), 3, NOISY, 60, seed);
        let claims =
            record.sites.iter().filter(|judged| matches!(judged.verdict, Verdict::Helps | Verdict::Hurts));
        false_claims
            .extend(claims.map(|judged| {
                format!("seed {seed}: {} {:?} {}", judged.name, judged.verdict, judged.reason)
            }));
    }
    println!("40 null runs of three sites: {} false claims {false_claims:#?}", false_claims.len());
    assert!(false_claims.len() <= 2);
}

#[test]
fn foreign_load_is_said_and_not_measured_through() {
    let noise = Noise { foreign: 0.3, ..QUIET };
    let record = profiled(&single(), 1, noise, 20, 1);
    assert_eq!(of(&record, 0).verdict, Verdict::NotMeasurable);
    assert!(of(&record, 0).reason.contains("other processes used"), "{}", of(&record, 0).reason);
}

#[test]
fn progress_that_is_too_rare_is_said() {
    let rare = program(&[&[Run(0, 3_000 * MS), Visit]], &[]);
    let record = profiled(&rare, 1, QUIET, 30, 1);
    assert_eq!(of(&record, 0).verdict, Verdict::NotMeasurable);
    assert!(of(&record, 0).reason.contains("too few visits"), "{}", of(&record, 0).reason);
}

#[test]
fn the_budget_is_the_whole_budget_and_the_same_seed_the_same_record() {
    let of_seed = |seed| profiled(&single(), 3, NOISY, 15, seed);
    let record = of_seed(5);
    assert!(record.duration_s <= 15.5 && record.duration_s > 12.0, "{}", record.duration_s);
    let rounds: Vec<usize> = record.sites.iter().map(|judged| judged.points[0].rounds).collect();
    assert!(rounds.iter().max().unwrap() - rounds.iter().min().unwrap() <= 1, "shared evenly: {rounds:?}");
    assert_eq!(record, of_seed(5));
    assert_ne!(record, of_seed(6));
}

#[test]
fn who_is_interrupted_at_once_is_told_so_and_nothing_else() {
    let mut machine = Machine::new(&single(), QUIET, 1);
    let clock = machine.clock();
    let asked = Asked {
        levels_percent: vec![50],
        budget: Duration::from_secs(10),
        seed: 1,
        metric: Metric::Throughput,
        progress: "visit".to_owned(),
        cpus: 1,
    };
    let record = run(&asked, &mut machine, &tried(1), &clock, &mut |_| (), &AtomicBool::new(true)).unwrap();
    assert_eq!(record.cut_short.as_deref(), Some("interrupted"));
    assert_eq!(record.sites[0].verdict, Verdict::NotMeasurable);
    assert!(record.sites[0].points.is_empty() && record.sites[0].reason.contains("0 rounds"));
}

/// A machine whose neighbours calm down: 12 % slower when it begins, and no longer so after three seconds. Planted fault: it is not
/// awaited (`WARM_UPS_MAX` of 0), and taken for a program that works off what came in during pauses.
#[test]
fn a_machine_that_still_gets_faster_is_awaited_before_the_first_pause() {
    let program = single();
    for seed in 0..12 {
        let machine = Machine::new(&program, QUIET, seed).warming_up(0.12, 3_000_000_000);
        let record = profiled_on(machine, &program, 1, 40, seed);
        let judged = of(&record, 0);
        assert_eq!(judged.verdict, Verdict::Helps, "seed {seed}: {}", judged.reason);
    }
}

/// A kernel whose threads get no CPU waits for a minute and a half before a probe is out. Planted fault: the windows alone are asked
/// why there are so few of them.
#[test]
fn a_run_that_the_kernel_kept_waiting_says_so() {
    let program = single();
    let machine = Machine::new(&program, QUIET, 1).lets_go_in(90_000_000_000);
    let record = profiled_on(machine, &program, 1, 40, 1);
    let judged = of(&record, 0);
    assert_eq!(judged.verdict, Verdict::NotMeasurable);
    assert!(judged.reason.contains("s the kernel took 9"), "{}", judged.reason);
}

/// A crowd at a spin lock: whoever is in the site keeps the others from getting on, the more the faster it is.
struct Crowded {
    now: std::rc::Rc<std::cell::Cell<u64>>,
}

impl Rig for Crowded {
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error> {
        let slower = match treatment {
            Treatment::SpeedUp { percent, .. } => 1.0 + 0.2 * f64::from(*percent) / 100.0,
            _ => 1.0,
        };
        let length = span.length;
        self.now.set(self.now.get() + length.as_nanos() as u64 + 16 * MS);
        let (length_ns, jitter) = (length.as_nanos() as u64, (self.now.get() / 1_000 % 97) as f64 / 97.0);
        let visits = length_ns / MS;
        let at_ns = (slower * (1.0 + 0.01 * jitter) * (visits - 1) as f64 * MS as f64) as u64;
        let last = Moment { at_ns, inserted_ns: 0 };
        Ok(Window {
            length_ns,
            visits,
            last,
            samples: visits,
            hits: visits / 2,
            threads: 2,
            target_cpu_ns: 2 * length_ns,
            ..Window::default()
        })
    }

    fn detached(&mut self, span: Span) -> Result<Window, Error> {
        self.window(&Treatment::Nothing, span)
    }

    fn period_ns(&self) -> u64 {
        MS
    }

    fn pause(&self) -> Pause {
        Pause::TaskWork
    }

    fn entries_per_second(&mut self, _site: usize, _length: Duration) -> Result<Option<f64>, Error> {
        Ok(None)
    }
}

#[test]
fn what_makes_things_worse_is_contention() {
    let now = std::rc::Rc::new(std::cell::Cell::new(0));
    let mut crowd = Crowded { now: std::rc::Rc::clone(&now) };
    let asked = Asked {
        levels_percent: Asked::LEVELS_PERCENT.to_vec(),
        budget: Duration::from_secs(30),
        seed: 1,
        metric: Metric::Throughput,
        progress: "visit".to_owned(),
        cpus: 2,
    };
    let record =
        run(&asked, &mut crowd, &tried(1), &|| now.get(), &mut |_| (), &AtomicBool::new(false)).unwrap();
    assert_eq!(record.sites[0].verdict, Verdict::Hurts, "{}", record.sites[0].reason);
    assert!(record.sites[0].slope.unwrap().per_percent < -0.15);
}

/// A machine whose kernel ends every fourth window before its time: its delays are missing from most of it.
struct Impatient {
    machine: Machine,
    windows: u64,
    ended: usize,
}

impl Rig for Impatient {
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error> {
        self.windows += 1;
        if !self.windows.is_multiple_of(4) {
            return self.machine.window(treatment, span);
        }
        self.ended += 1;
        let window = self.machine.window(&Treatment::Nothing, span)?;
        Ok(Window { expired: true, ..window })
    }

    fn detached(&mut self, span: Span) -> Result<Window, Error> {
        self.machine.detached(span)
    }

    fn period_ns(&self) -> u64 {
        self.machine.period_ns()
    }

    fn pause(&self) -> Pause {
        self.machine.pause()
    }

    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error> {
        self.machine.entries_per_second(site, length)
    }

    fn hooks(&mut self, _length: Duration) -> Result<Option<Hooks>, Error> {
        let ran = vec![("samples", 4 * MS, 2_000), ("switches", 0, 0)];
        Ok(Some(Hooks { machine_ns: 2_000 * MS, length_ns: 1_000 * MS, ran }))
    }
}

#[test]
fn windows_that_the_kernel_ended_are_counted_and_change_no_answer() {
    let machine = Machine::new(&single(), QUIET, 1);
    let clock = machine.clock();
    let mut rig = Impatient { machine, windows: 0, ended: 0 };
    let asked = Asked {
        levels_percent: vec![50],
        budget: Duration::from_secs(60),
        seed: 1,
        metric: Metric::Throughput,
        progress: "visit".to_owned(),
        cpus: 1,
    };
    let stop = AtomicBool::new(false);
    let record = run(&asked, &mut rig, &tried(1), &clock, &mut |_| (), &stop).unwrap();
    let site = &record.sites[0];
    let was_cut_short = |window: &&dyno_record::causal::Window| {
        window.dropped.as_deref().is_some_and(|why| why.contains("kept from the CPUs"))
    };
    let ended = site.windows.iter().filter(was_cut_short).count();
    assert!(ended > 5 && rig.ended.abs_diff(ended) <= 12, "{ended} of {}", rig.ended);
    assert!(record.credibility.dropped_windows >= ended, "{:?}", record.credibility);
    let parts = record.overhead.parts.as_slice();
    let [samples] = parts else { panic!("what never ran is not in the record: {parts:?}") };
    assert!((samples.percent - 0.2).abs() < 1e-9 && (samples.per_second - 2_000.0).abs() < 1e-6);
    let [low, high] = site.points[0].interval_percent;
    assert!(low - 1.0 <= 30.0 && 30.0 <= high + 1.0, "half of sixty percent: {low} to {high}");
}
