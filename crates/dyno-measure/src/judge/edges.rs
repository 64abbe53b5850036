//! Where the judge's bounds lie: what it says exactly at one of them, and just beyond.
//!
//! Planted faults: a comparison that holds where it is only reached, an `and` that is an `or`, a part of a sum with its sign
//! turned. Every figure here is worked out by hand beside it.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::Histogram;
use crate::Prng;
use crate::series::{Block, Side};

/// A block of so many ns a reply, of CPU and of time alike.
pub(super) fn block(ns: u64) -> Block {
    Block { replies: 1_000, wall_ns: 1_000 * ns, cpu_in_ns: 1_000 * ns, ..Block::default() }
}

/// Pairs whose A costs 1,000 ns a reply, and B these.
pub(super) fn pairs(costs: impl IntoIterator<Item = u64>) -> Vec<Pair> {
    let pair = |ns| Pair { first: Side::A, instance: 0, a: block(1_000), b: block(ns) };
    costs.into_iter().map(pair).collect()
}

/// What was read, with an error that a quick rule makes this half width of.
fn read(log_ratio: f64, half_width: f64, n: usize) -> Estimate {
    Estimate { log_ratio, error: half_width / Rule::QUICK.z, half_width, n, uncharged: 0.0 }
}

#[test]
fn a_rule_is_sound_up_to_each_of_its_bounds_and_not_beyond() {
    let quick = Rule::QUICK;
    for sound in [
        Rule { last: PAIRS_MAX, step: PAIRS_MAX, ..quick },
        Rule { first: PAIRS_MIN, last: PAIRS_MIN, ..quick },
        Rule { worthwhile_percent: 0.0, ..quick },
        quick.giving_up_below(0.0),
        quick.paying_for(Between::SUPPOSED),
    ] {
        assert!(sound.is_sound(), "{sound:?}");
    }
    for broken in [
        Rule { last: PAIRS_MAX + 1, ..quick },
        Rule { z: f64::INFINITY, ..quick },
        Rule { z: -3.06, ..quick },
        Rule { worthwhile_percent: -0.1, ..quick },
        Rule { worthwhile_percent: f64::NAN, ..quick },
        quick.giving_up_below(-0.1),
        quick.paying_for(Between { variance: f64::NAN, error: 1.0 }),
        quick.paying_for(Between { variance: 0.0, error: 0.0 }),
    ] {
        assert!(!broken.is_sound(), "{broken:?}");
    }
}

#[test]
fn an_interval_that_reaches_zero_answers_nothing_and_one_beyond_it_says_which_side_is_cheaper() {
    let verdict = |log_ratio, half_width| Verdict::of(&read(log_ratio, half_width, 30));
    assert_eq!(verdict(-0.02, 0.02), Verdict::NoDifference, "it reaches zero");
    assert_eq!(verdict(0.02, 0.02), Verdict::NoDifference, "it reaches zero");
    assert_eq!(verdict(-0.020_1, 0.02), Verdict::Better);
    assert_eq!(verdict(0.020_1, 0.02), Verdict::Worse);
    let exact = Estimate { log_ratio: -0.5, error: 0.0, half_width: 0.0, n: 30, uncharged: 0.0 };
    assert_eq!(Verdict::of(&exact), Verdict::NoDifference, "without a spread nothing is known");
}

/// One percent is worth having: ln 1.01 = 0.00995.
#[test]
fn a_trial_ends_where_all_effects_that_are_worth_having_are_left_out() {
    let worth = log_of_percent(1.0);
    for (log_ratio, half_width, wanted) in [
        (0.0, worth, None),
        (0.0, 0.999 * worth, Some(End::Answered)),
        // 0.009 of 0.00995, and 0.0105: the farther end counts, on either side.
        (0.004, 0.005, Some(End::Answered)),
        (-0.004, 0.005, Some(End::Answered)),
        (0.004, 0.006_5, None),
        (-0.004, 0.006_5, None),
        // Far beyond, but for zero.
        (0.02, 0.02, None),
        (-0.02, 0.019_9, Some(End::Answered)),
    ] {
        let ended = end(&Rule::QUICK, 30, &read(log_ratio, half_width, 30));
        assert_eq!(ended, wanted, "{log_ratio} ± {half_width}");
    }
}

#[test]
fn the_last_look_is_the_one_after_which_no_other_is_planned() {
    let unclear = |pairs| read(0.0, 0.5, pairs);
    for (last, pairs, wanted) in [
        (240, 210, None),
        (240, 240, Some(End::LastLook)),
        // The looks are at 30, 60 … 240 all the same.
        (269, 210, None),
        (269, 240, Some(End::LastLook)),
        (270, 240, None),
    ] {
        assert_eq!(end(&Rule { last, ..Rule::QUICK }, pairs, &unclear(pairs)), wanted, "{pairs} of {last}");
    }
}

/// What works in bursts may have had none yet: "at most a little" is said at the last look only.
#[test]
fn totals_are_called_alike_at_the_last_look_only_except_in_older_records() {
    let alike = |pairs| read(0.0, 0.001, pairs);
    let totals = Rule::QUICK.by_totals();
    let older = Rule { guards: Guards::Points, ..totals };
    assert_eq!(end(&totals, 210, &alike(210)), None);
    assert_eq!(end(&totals, 240, &alike(240)), Some(End::Answered));
    assert_eq!(end(&older, 30, &alike(30)), Some(End::Answered));
    assert_eq!(end(&Rule::QUICK, 30, &alike(30)), Some(End::Answered));
    let clear = read(-0.5, 0.1, 30);
    assert_eq!(end(&totals, 30, &clear), Some(End::Answered), "an effect is one whatever it was read from");
}

#[test]
fn a_trial_is_given_up_below_its_chance_and_not_at_it() {
    // Without an error nothing moves, so that no answer is to be expected; with nothing too small to be worth having it is not
    // called negligible either.
    let still = Estimate { log_ratio: 0.0, error: 0.0, half_width: 0.0, n: 30, uncharged: 0.0 };
    let rule = |least| Rule { worthwhile_percent: 0.0, ..Rule::QUICK.giving_up_below(least) };
    assert_eq!(end(&rule(0.0), 30, &still), None);
    assert_eq!(end(&rule(1e-9), 30, &still), Some(End::Hopeless));
    assert_eq!(end(&rule(1e-9), 240, &still), Some(End::LastLook), "the last look is the last one");
}

/// After 60 of 240 pairs the error will halve: 3.06 · 0.01 · √¼ = 0.0153 is needed then, and the centre moves by
/// 0.01 · √¾ = 0.00866. Read where it is needed the chance is a half, and Φ(−0.0306 / 0.00866) = 0.0002 for the other side.
#[test]
fn the_chance_of_an_answer_is_that_of_the_centre_to_come_as_far_as_is_needed() {
    let chance = |log_ratio, n| {
        chance_of_answer(
            &Rule::QUICK,
            &Estimate { log_ratio, error: 0.01, half_width: 0.0, n, uncharged: 0.0 },
        )
    };
    for log_ratio in [0.015_3, -0.015_3] {
        assert!((chance(log_ratio, 60) - 0.500_205).abs() < 1e-6, "{}", chance(log_ratio, 60));
    }
    // Either side alike: twice Φ(−1.7667).
    assert!((chance(0.0, 60) - 0.077_280).abs() < 1e-6, "{}", chance(0.0, 60));
    assert!(chance(0.5, 239) > 0.999_999);
    assert_eq!([chance(0.5, 240), chance(0.5, 300)], [0.0; 2], "after the last look nothing moves");
}

/// Twenty-five blocks cost 880 to 928 of A's 1,000, and five 1,700: 3.7 % more in all. No block lies beyond noise (0.63 from the
/// centre, of 0.98), and five outliers on one side are no proof of bursts (1 in 16).
#[test]
fn a_gain_that_rare_blocks_pay_back_is_bursty_and_a_smaller_one_is_not() {
    let calm = || (0..25_u64).map(|k| 880 + 2 * k);
    let bursty = |metric, dear: u64, rule: &Rule| {
        let pairs = pairs(calm().chain([dear; 5]));
        let trimmed = estimate(metric, &pairs, rule, 1);
        assert_eq!(Verdict::of(&trimmed), Verdict::Better, "{trimmed:?}");
        super::bursty(metric, &pairs, &trimmed, rule, 1)
    };
    assert!(bursty(Metric::CpuPerRequest, 1_700, &Rule::QUICK));
    assert!(!bursty(Metric::CpuPerRequest, 1_300, &Rule::QUICK), "3 % less in all");
    assert!(!bursty(Metric::SecondsPerRequest, 1_700, &Rule::QUICK), "of CPU alone totals are asked");
    let older = Rule { guards: Guards::Points, ..Rule::QUICK };
    assert!(!bursty(Metric::CpuPerRequest, 1_700, &older), "older records were judged without");
}

#[test]
fn what_is_dearer_in_all_blocks_alike_is_not_bursty_however_much() {
    let dearer = pairs((0..30).map(|k| 1_480 + 2 * k));
    let trimmed = estimate(Metric::CpuPerRequest, &dearer, &Rule::QUICK, 1);
    assert!(!bursty(Metric::CpuPerRequest, &dearer, &trimmed, &Rule::QUICK, 1));
    assert!(!may_be_bursty(Metric::CpuPerRequest, &dearer, &trimmed, &Rule::QUICK, 1));
    let rare = pairs((0..25).map(|k| 880 + 2 * k).chain([1_700; 5]));
    let trimmed = estimate(Metric::CpuPerRequest, &rare, &Rule::QUICK, 1);
    assert!(may_be_bursty(Metric::CpuPerRequest, &rare, &trimmed, &Rule::QUICK, 1));
    assert!(!may_be_bursty(Metric::P50, &rare, &trimmed, &Rule::QUICK, 1));
}

/// Noise of ±1 %: the limit is 4 · 1.4826 · 0.01 = 5.9 %. Of all outliers on one side, eight are chance (2 / 256 of 0.005), nine
/// are not (2 / 512).
#[test]
fn outliers_lean_to_a_side_from_the_ninth_on_and_only_beyond_four_deviations() {
    let leans = |outliers: &[u64]| {
        let noise = (0..60 - outliers.len()).map(|k| if k % 2 == 0 { 990 } else { 1_010 });
        let pairs = pairs(noise.chain(outliers.iter().copied()));
        lopsided(Metric::CpuPerRequest, &pairs, 0.0, OUTLIER_CHANCE)
    };
    assert!(!leans(&[1_200; 8]) && leans(&[1_200; 9]));
    assert!(!leans(&[830; 8]) && leans(&[830; 9]));
    assert!(!leans(&[1_050; 9]), "ln 1.05 = 4.9 % lies within");
    assert!(leans(&[1_070; 9]), "ln 1.07 = 6.8 % lies beyond");
    assert!(!leans(&[1_058; 9]), "ln 1.058 = 5.64 % lies within");
    // Nine of ten on one side: 2 · (1 + 10) / 1,024 = 0.021.
    assert!(!leans(&[1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 1_200, 830]));
}

#[test]
fn pairs_without_any_spread_have_no_outliers() {
    let same = pairs([1_100; 30]);
    let centre = same[0].log_ratio(Metric::CpuPerRequest);
    assert!(!lopsided(Metric::CpuPerRequest, &same, centre, OUTLIER_CHANCE));
    assert!(!lopsided(Metric::CpuPerRequest, &same, centre, 1.0), "a chance of 1 is not below 1");
    assert!(!beyond_noise(Metric::CpuPerRequest, &same, centre));
}

/// Three of four coins or more on one side, either one: 2 · (4 + 1) / 16. Of none there is nothing to see.
#[test]
fn the_sign_test_counts_both_sides_once() {
    for (most, all, wanted) in [(3, 4, 0.625), (4, 4, 0.125), (2, 4, 1.0), (0, 0, 1.0), (1, 1, 1.0)] {
        assert!((sign_test(most, all) - wanted).abs() < 1e-12, "{most} of {all}: {}", sign_test(most, all));
    }
}

/// A side's servers, of which the second alone has the change.
fn holding(after: &[u64]) -> Trial {
    let memory_bytes = [vec![50_000_000; 4], after.to_vec()];
    Trial { memory_bytes, ..Trial::new(Metric::CpuPerRequest) }
}

#[test]
fn a_limit_of_memory_is_passed_where_all_of_the_interval_is_above_it() {
    let veto =
        |after: &[u64], limit| veto(&holding(after), Guards::Margins { memory_max_bytes: Some(limit) });
    let limit_bytes = 9_999_999;
    assert_eq!(veto(&[10_000_000; 4], 10_000_000), None, "it is reached");
    let beyond = Veto::MemoryLimit { limit_bytes, read_bytes: 10_000_000 };
    assert_eq!(veto(&[10_000_000; 4], limit_bytes), Some(beyond));
    // Two servers a fifth apart say next to nothing of their mean.
    assert_eq!(veto(&[9_000_000, 11_000_000], 1_000_000), None);
    assert_eq!(veto(&[10_000_000], limit_bytes), None, "one server has no interval");
}

#[test]
fn a_veto_says_what_grew_and_beyond_what() {
    let limit = Veto::MemoryLimit { limit_bytes: 10_000_000, read_bytes: 12_345_678 };
    for (veto, words) in [
        (Veto::Tail { percent: 30.4 }, "p99 grew by 30 %"),
        (Veto::Memory { percent: 15.6 }, "memory grew by 16 %"),
        (limit, "memory is 12.3 MB, the plan allows 10.0"),
    ] {
        assert_eq!(veto.to_string(), words);
    }
}

/// Pairs of a thousand equal latencies a side, A's a millisecond.
fn tails(mut trial: Trial, each: impl IntoIterator<Item = (u32, [u64; 2], [u64; 2])>) -> Trial {
    for (instance, values_ns, replies) in each {
        let latencies = [0, 1].map(|side| {
            let mut latencies = Histogram::new();
            latencies.record_n(values_ns[side], replies[side]);
            latencies
        });
        let pair = Pair { first: Side::A, instance, a: block(1_000), b: block(900) };
        trial.add(pair, latencies.each_ref());
    }
    trial
}

/// Eight groups whose tails grew by these, in turns.
fn grown(by_ns: [u64; 2]) -> Trial {
    let each = (0..8).map(|n| (0, [1_000_000, by_ns[n % 2]], [1_000; 2]));
    tails(Trial::new(Metric::CpuPerRequest), each)
}

/// Buckets are 0.8 % wide. Groups of +5 and +7 % have a mean of 6 %, and are far from zero; +9 and +15 %: 11.8 %, and 8 at least;
/// −30 and +120 %: 24 %, and nothing is sure.
#[test]
fn a_tail_refuses_what_is_more_than_a_tenth_longer_and_surely_so() {
    let points = |by_ns| veto(&grown(by_ns), Guards::Points);
    let margins = |by_ns| veto(&grown(by_ns), Rule::QUICK.guards);
    let is_about = |veto: Option<Veto>, wanted: f64| matches!(veto, Some(Veto::Tail { percent }) if (percent - wanted).abs() < 1.0);
    assert_eq!(points([1_050_000, 1_070_000]), None, "surely longer, by less than a tenth");
    assert_eq!(points([700_000, 2_200_000]), None, "by more than a tenth, and hardly sure");
    assert!(is_about(points([1_300_000, 1_320_000]), 31.0), "{:?}", points([1_300_000, 1_320_000]));
    assert!(is_about(margins([1_300_000, 1_320_000]), 31.0), "{:?}", margins([1_300_000, 1_320_000]));
    assert!(is_about(points([1_085_000, 1_150_000]), 11.8), "{:?}", points([1_085_000, 1_150_000]));
    assert_eq!(margins([1_085_000, 1_150_000]), None, "not surely by more than a tenth");
    assert_eq!(margins([700_000, 2_200_000]), None);
}

/// Four starts whose tails are 0 and 2 % longer, and a fifth whose tail is five times as long.
#[test]
fn a_start_with_a_handful_of_replies_says_nothing_of_the_tail() {
    let trial = |fifth: [u64; 2]| {
        let each = (0..4_u32).map(|n| (n, [1_000_000, 1_000_000 + 20_000 * u64::from(n % 2)], [1_000; 2]));
        let each = each.chain([(4, [1_000_000, 5_000_000], fifth)]);
        tail_growth(&tails(Trial::of_starts(Metric::CpuPerRequest, 5), each)).unwrap().percent()
    };
    for few in [[999, 999], [999, 5_000], [5_000, 999]] {
        assert!((0.0..3.0).contains(&trial(few)), "{few:?}: {}", trial(few));
    }
    // A fifth of ln 5, and 0.4 of 1 %: 39 %.
    assert!((35.0..43.0).contains(&trial([1_000, 1_000])), "{}", trial([1_000, 1_000]));
}

#[test]
fn a_tail_needs_all_of_its_groups_and_as_many_starts() {
    let starts = |count: u32| {
        let each = (0..count).map(|n| (n, [1_000_000, 1_300_000], [1_000; 2]));
        tail_growth(&tails(Trial::of_starts(Metric::CpuPerRequest, 4), each)).is_some()
    };
    assert_eq!([3, 4].map(starts), [false, true]);
    let groups = |pairs: u32| {
        // Where groups are interleaved, few replies count as well.
        let each = (0..pairs).map(|_| (0, [1_000_000, 1_300_000], [10; 2]));
        tail_growth(&tails(Trial::new(Metric::CpuPerRequest), each)).is_some()
    };
    assert_eq!([7, 8].map(groups), [false, true]);
}

/// Four starts have three degrees of freedom, and eight groups in turns seven, as they always had.
#[test]
fn a_tails_interval_is_as_wide_as_its_groups_are_few() {
    let starts = (0..4_u32).map(|n| (n, [1_000_000, 1_000_000 + 20_000 * u64::from(n % 2)], [1_000; 2]));
    let told = tail_growth(&tails(Trial::of_starts(Metric::CpuPerRequest, 4), starts)).unwrap();
    assert!((told.half_width / told.error - student(GUARD_Z, 3.0)).abs() < 1e-9, "{told:?}");
    let told = tail_growth(&grown([1_000_000, 1_020_000])).unwrap();
    assert!((told.half_width / told.error - expanded(GUARD_Z, 7.0)).abs() < 1e-9, "{told:?}");
    // Half of the groups grow by as much: they deviate by half of it, √(8 / 7) times, over √8.
    let error = told.log_ratio / 7_f64.sqrt();
    assert!((told.error - error).abs() < 1e-9 && told.n == 8, "{told:?} {error}");
}

#[test]
fn another_metric_and_a_last_look_are_told_from_as_many_pairs_as_their_basis_asks_for() {
    let noisy = |count: u64| {
        let pairs: Vec<Pair> = pairs((0..count).map(|k| 1_000 + 40 * (k % 5)));
        Trial { pairs, ..Trial::new(Metric::CpuPerRequest) }
    };
    for (basis, least) in [
        (Basis::Pairs, LAST_LOOK_MIN as u64),
        (Basis::Totals, LAST_LOOK_MIN as u64),
        (Basis::Instances, INSTANCES_LOOK_MIN as u64),
    ] {
        let told =
            |count| aside(&noisy(count), Metric::SecondsPerRequest, basis, 1).map(|told| told.n as u64);
        assert_eq!((told(least - 1), told(least)), (None, Some(least)), "{basis:?}");
        let rule = Rule { basis, first: 100, last: 240, ..Rule::QUICK };
        let cut = |count| cut_short(&noisy(count), &rule, 1).map(|judgement| judgement.estimate.n as u64);
        assert_eq!((cut(least - 1), cut(least)), (None, Some(least)), "{basis:?}");
    }
    assert_eq!(next(&noisy(29), &Rule::QUICK, 1), Next::More(None), "no look was taken");
}

/// Pairs of a thousand requests at 6 µs, B's moved by so many percent inside, and beside them what each side burns outside of its
/// blocks, and what others burn for each request of it, ns a request.
fn beside(percent: f64, outside: [u64; 2], others: [u64; 2]) -> Trial {
    let mut rng = Prng::new(5);
    let mut block = |cost_ns: f64, side: usize| Block {
        replies: 1_000,
        wall_ns: 25_000_000,
        cpu_in_ns: (1e3 * cost_ns * f64::exp(0.03 * rng.normal())) as u64,
        cpu_off_ns: 1_000 * outside[side],
        foreign_ns: 1_000 * others[side],
        ..Block::default()
    };
    let pair = |at: u32| Pair {
        first: Side::A,
        instance: at % 4,
        a: block(6_000.0, 0),
        b: block(6_000.0 * (1.0 + percent / 100.0), 1),
    };
    Trial { pairs: (0..60).map(pair).collect(), ..Trial::new(Metric::CpuPerRequest) }
}

/// 0.2 µs of 6 are 3.3 %, and no one knows whether a block left them behind or they go on whatever is served. Planted faults: all
/// of it is charged without a doubt, or none.
#[test]
fn what_one_side_burns_outside_of_its_blocks_is_a_doubt_and_what_both_do_is_none() {
    let told = |percent: f64, outside| {
        let judged = cut_short(&beside(percent, outside, [0, 0]), &Rule::QUICK, 1).unwrap();
        (judged.verdict, judged.estimate.interval_percent())
    };
    for (outside, truths) in [([200, 0], [-3.2, 0.0]), ([0, 200], [0.0, 3.3])] {
        let (verdict, [low, high]) = told(0.0, outside);
        assert_eq!(verdict, Verdict::NoDifference, "{outside:?}");
        assert!(low < truths[0] && truths[1] < high, "{outside:?}: {low} to {high}");
    }
    let (verdict, [low, high]) = told(-10.0, [0, 200]);
    assert!(verdict == Verdict::Better && low < -9.8 && high > -7.0, "{verdict:?} {low} to {high}");
    let (_, alike) = told(-5.0, [200, 200]);
    let (_, none) = told(-5.0, [0, 0]);
    assert!(alike[1] - alike[0] < none[1] - none[0] + 0.3, "{alike:?} {none:?}");
    // Older records are judged as they were.
    let older = Rule { outside: false, ..Rule::QUICK };
    assert_eq!(cut_short(&beside(0.0, [200, 0], [0, 0]), &older, 1).unwrap().verdict, Verdict::Better);
}

/// A tenth of 6 µs is saved. Planted faults: what others burn on either side is asked of B alone; whatever they burn more refuses; older records, and servers in turn, are judged by it.
#[test]
fn a_gain_that_others_pay_for_is_refused() {
    let veto = |others| cut_short(&beside(-10.0, [0, 0], others), &Rule::QUICK, 1).unwrap().veto;
    assert_eq!([veto([0, 0]), veto([2_000, 2_000]), veto([0, 200]), veto([700, 0])], [None; 4]);
    let Some(refused @ Veto::Elsewhere { others_ns, saved_ns }) = veto([0, 700]) else { panic!("it moved") };
    assert!((others_ns - 700.0).abs() < 1.0 && (500.0..700.0).contains(&saved_ns), "{refused:?}");
    assert_eq!(refused.to_string(), "other processes burn 0.7 µs more for each request, and it saves 0.6");
    assert!(veto([0, 400]).is_some(), "more than half of it");
    for rule in [Rule { outside: false, ..Rule::QUICK }, Rule::QUICK.by_instances()] {
        let judged = cut_short(&beside(-10.0, [0, 0], [0, 700]), &rule, 1).unwrap();
        assert_eq!((judged.verdict, judged.veto), (Verdict::Better, None), "{rule:?}");
    }
    let none = cut_short(&beside(-0.1, [0, 0], [0, 700]), &Rule::QUICK, 1).unwrap();
    assert_eq!((none.verdict, none.veto), (Verdict::NoDifference, None), "no gain is refused");
    let seconds = Trial { metric: Metric::SecondsPerRequest, ..beside(-10.0, [0, 0], [0, 700]) };
    assert_eq!(cut_short(&seconds, &Rule::QUICK, 1).and_then(|judged| judged.veto), None, "another measure");
}

/// One block of B in five is held up for 300 ms. In a closed loop few requests are slow by that, and all wait. Planted fault: nothing but
/// CPU and the 99th percentile is asked.
#[test]
fn what_saves_cpu_and_stalls_everybody_is_refused() {
    let veto = |held_ns: u64, metric: Metric| {
        let mut trial = Trial { metric, ..beside(-10.0, [0, 0], [0, 0]) };
        trial.pairs.iter_mut().step_by(5).for_each(|pair| pair.b.wall_ns += held_ns);
        veto(&trial, Guards::Margins { memory_max_bytes: None })
    };
    let Some(refused @ Veto::Rate { percent }) = veto(300_000_000, Metric::CpuPerRequest) else {
        panic!("it stalls")
    };
    assert!((percent - 240.0).abs() < 1.0, "{refused:?}: 60 ms more for each 25");
    assert_eq!(refused.to_string(), "a request takes 240 % longer");
    // One start of four is slow, for whatever reason.
    let mut one = beside(-10.0, [0, 0], [0, 0]);
    one.pairs.iter_mut().filter(|pair| pair.instance == 0).for_each(|pair| pair.b.wall_ns *= 2);
    assert_eq!(super::veto(&one, Guards::Margins { memory_max_bytes: None }), None);
    // 4 % longer is within the guard; what is judged by its time needs none.
    assert_eq!(veto(5_000_000, Metric::CpuPerRequest), None);
    assert_eq!(veto(300_000_000, Metric::SecondsPerRequest), None);
}
