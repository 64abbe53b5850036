//! Latency of programs whose truth is known: the time from begin to end where requests come by themselves and the target
//! rests between them, where they hand on from thread to thread, and where the next begins as soon as one ends.

use dyno_record::causal::{Causal, Metric, Verdict};

use super::machine::Step::{Arrival, Begin, End, Pop, Push, Run, Sleep};
use super::machine::{Machine, NOISY, Noise, Program, QUIET, Step};
use super::of;
use super::programs::{MS, US, profiled_as, program};

fn latency(program: &Program, sites: usize, noise: Noise, seed: u64) -> Causal {
    profiled_as(Metric::Latency, Machine::new(program, noise, seed), program, sites, 60, seed)
}

/// Every figure with its truth; those that a verdict rests on hold it.
fn assert_true(what: &str, program: &Program, record: &Causal) {
    println!("{what}: {:?}", record.control);
    for judged in &record.sites {
        println!("  {} {:?}: {}", judged.name, judged.verdict, judged.reason);
        let site: usize = judged.name[1..].parse().unwrap();
        for point in &judged.points {
            let truth = Machine::true_latency(program, site, point.speedup_percent);
            let [low, high] = point.interval_percent;
            let level = point.speedup_percent;
            println!("     {level} %: {:.2} ({low:.2} to {high:.2}), true {truth:.2}", point.effect_percent);
            let holds = low - 1.0 <= truth && truth <= high + 1.0;
            let is_refused = judged.verdict == Verdict::NotMeasurable || point.biased;
            assert!(holds || is_refused, "{what} {}: {truth:.1} {point:?}", judged.name);
        }
    }
}

/// One thread that takes what comes in by itself, works on it for so many percent of the time, three quarters of that in one
/// site and the rest in another, and rests.
fn rests(percent: u64) -> Program {
    // No multiple of what samples keep step with.
    let every = 10_370 * US;
    let work = every * percent / 100;
    program(&[&[Arrival(every), Begin, Run(0, work * 3 / 4), Run(1, work / 4), End]], &[])
}

/// One that takes what comes in and hands it to one that works, for so many percent of the time; what it does itself takes so
/// long.
fn handed_on(percent: u64, own: u64) -> Program {
    let every = 10_370 * US;
    let work = every * percent / 100;
    let mut takes = vec![Arrival(every), Begin];
    takes.extend((own > 0).then_some(Run(1, own)));
    takes.push(Push(0));
    program(&[&takes, &[Pop(0), Run(0, work), End]], &[10_000])
}

/// Clients that ask again as soon as they are answered, one server, and a lock or none between.
fn closed(clients: usize) -> Program {
    let client: &[Step] = &[Begin, Push(0), Pop(1), Run(1, MS), End, Run(2, MS)];
    let mut threads = vec![client; clients];
    threads.push(&[Pop(0), Run(0, 4 * MS), Push(1)]);
    program(&threads, &[100, 100])
}

/// Planted fault: what is inserted is taken for a share of all time (`border_ns` and `own_ns` by the clock, and the whole
/// less `inserted`): 4 at 50 % of three quarters, where the truth is 37.5.
#[test]
fn latency_of_a_target_that_rests_is_a_share_of_what_requests_take_and_not_of_all_time() {
    for percent in [5, 10, 20, 40, 60] {
        for noise in [QUIET, NOISY] {
            let program = rests(percent);
            let record = latency(&program, 2, noise, percent);
            assert_true(&format!("works {percent} %"), &program, &record);
            let half = of(&record, 0);
            assert_eq!(half.verdict, Verdict::Helps, "{percent}: {}", half.reason);
        }
    }
}

/// Planted fault: begins and ends at the greatest shift of all (`own_ns` with what is owed taken off too): what it pays
/// while it works is taken for time of the unit.
#[test]
fn what_a_thread_owes_when_a_unit_begins_and_pays_meanwhile_is_no_time_of_the_unit() {
    // A site that has nothing to do with requests, beside them.
    let beside: &[Step] = &[Run(2, MS)];
    let requests = [Arrival(10_370 * US), Begin, Run(0, MS), End];
    let program = program(&[&requests, beside], &[]);
    for noise in [QUIET, NOISY] {
        let record = latency(&program, 3, noise, 3);
        assert_true("beside", &program, &record);
        assert!(!matches!(of(&record, 2).verdict, Verdict::Helps | Verdict::Hurts));
    }
}

/// Planted faults: `unpaid::of_carried` and `off_part` of nought: one that takes requests and is never sampled owes all of it, so that units seem to
/// end before they begin.
#[test]
fn units_that_are_handed_on_hold_the_truth_or_are_refused() {
    for percent in [10, 20, 40, 60, 80, 95] {
        for own in [0, 20 * US, 500 * US, 3 * MS] {
            let program = handed_on(percent, own);
            let record = latency(&program, 2, QUIET, percent);
            assert_true(&format!("works {percent} %, takes {own} ns"), &program, &record);
        }
    }
}

/// Planted fault: `queued_or_timed` that says nothing.
#[test]
fn latency_of_who_asks_again_when_it_is_answered_is_what_it_was_and_a_queue_of_what_comes_by_itself_is_told()
{
    let alone = program(&[&[Begin, Run(0, 600 * US), Run(1, 400 * US), End]], &[]);
    let pause = program(&[&[Begin, Run(0, 3 * MS), Run(1, MS), End, Run(2, MS), Sleep(MS)]], &[]);
    let mut helps = 0;
    for (what, program, sites) in [
        ("alone", alone, 2),
        ("with a pause", pause, 3),
        ("one client", closed(1), 3),
        ("three clients", closed(3), 3),
    ] {
        for noise in [QUIET, NOISY] {
            let record = latency(&program, sites, noise, 5);
            assert_true(what, &program, &record);
            helps += record.sites.iter().filter(|judged| judged.verdict == Verdict::Helps).count();
        }
    }
    assert!(helps >= 8, "{helps} of 22 help");
    let program = handed_on(80, 500 * US);
    let record = latency(&program, 1, QUIET, 5);
    assert!(of(&record, 0).reason.contains("waits in a queue"), "{}", of(&record, 0).reason);
}
