//! When work is said to come in bursts, when a trial is given up, and what a changed rule keeps: exact, on both sides of each bound.
//!
//! Where all pairs are alike their totals have no error, and no pair is an outlier: the trimmed mean beside them may then be any.

use super::edges::{block, pairs};
use super::*;
use crate::series::{Block, Side};

const CPU: Metric = Metric::CpuPerRequest;

/// A trimmed mean with its error. It is surely below nought or above.
fn trimmed(log_ratio: f64, error: f64) -> Estimate {
    Estimate { log_ratio, error, half_width: 0.0, n: 30, uncharged: 0.0 }
}

fn points(rule: Rule) -> Rule {
    Rule { guards: Guards::Points, outside: false, ..rule }
}

/// B costs a tenth more in every block: ln 1.1 = 0.09531.
#[test]
fn totals_and_the_trimmed_mean_lie_apart_by_so_many_of_both_errors() {
    let dearer = pairs([1_100; 30]);
    for (log_ratio, error, wanted) in [(0.02, 0.01, 7.531), (0.2, 0.01, 10.469), (-0.1, 0.05, 3.906)] {
        let apart = errors_apart(CPU, &dearer, &trimmed(log_ratio, error), &Rule::QUICK, 1);
        assert!((apart - wanted).abs() < 1e-3, "{log_ratio} ± {error}: {apart}");
    }
}

/// Both sides cost the same in all, and the trimmed mean lies 2.5 below: with an error of 1 that is 2.5 errors.
#[test]
fn errors_tell_bursts_beyond_two_and_a_half_of_them_and_at_the_last_look_only() {
    let alike = pairs([1_000; 30]);
    let rule = |last| points(Rule { last, ..Rule::QUICK });
    for (error, last, wanted) in [(0.99, 30, true), (1.0, 30, false), (1.01, 30, false), (0.99, 31, false)] {
        let is = bursty(CPU, &alike, &trimmed(-2.5, error), &rule(last), 1);
        assert_eq!(is, wanted, "± {error} of {last}");
    }
    // A gain that the totals neither have nor have lost is not paid back.
    assert!(!bursty(CPU, &alike, &trimmed(-2.5, 1.0), &Rule::QUICK, 1));
    let slightly_dearer = pairs([1_001; 30]);
    assert!(bursty(CPU, &slightly_dearer, &trimmed(-2.5, 1.0), &Rule::QUICK, 1));
    assert!(!bursty(CPU, &slightly_dearer, &trimmed(2.5, 1.0), &Rule::QUICK, 1), "a loss is none");
}

#[test]
fn bursts_are_suspected_beyond_one_error_or_by_outliers_that_lean() {
    let alike = pairs([1_000; 30]);
    for (error, wanted) in [(0.99, true), (1.0, false), (1.01, false)] {
        let may_be = may_be_bursty(CPU, &alike, &trimmed(-1.0, error), &Rule::QUICK, 1);
        assert_eq!(may_be, wanted, "± {error}");
    }
    assert!(
        !may_be_bursty(CPU, &alike, &trimmed(-0.005, 1e-6), &Rule::QUICK, 1),
        "half a percent is nothing"
    );
    // Five outliers of five on one side: one in sixteen by chance, of which the totals are 1.7 % dearer, and hardly surely so.
    let noise = |k: u64| if k.is_multiple_of(2) { 990 } else { 1_010 };
    let lean = pairs((0..55).map(noise).chain([1_200; 5]));
    assert!(may_be_bursty(CPU, &lean, &trimmed(0.0, 1.0), &Rule::QUICK, 1));
    let two = pairs((0..54).map(noise).chain([1_400, 1_400, 1_400, 700, 700, 700]));
    assert!(!may_be_bursty(CPU, &two, &trimmed(0.0, 1.0), &Rule::QUICK, 1), "as many on either side");
}

/// A sixteenth of the cost, −2.7726: 5 % beside it are 0.3 % of what is saved.
#[test]
fn bursts_are_slight_where_they_change_the_figure_and_not_the_gain() {
    let each = |a: u64, b: &[u64]| -> Vec<Pair> {
        b.iter().map(|b| Pair { first: Side::A, instance: 0, a: block(a), b: block(*b) }).collect()
    };
    let slight = |a: u64, b: &[u64], beside: f64, error: f64, rule: &Rule, metric| {
        let pairs = each(a, b);
        let totals = log_of_sums(sums(CPU, &pairs));
        bursts_slightly(metric, &pairs, &trimmed(totals + beside, error), rule, 1)
    };
    let (quick, alike) = (Rule::QUICK, [1_000; 30]);
    for beside in [-0.05, 0.05] {
        assert!(slight(16_000, &alike, beside, 0.02, &quick, CPU));
        // 1.645 errors of 0.0304.
        assert!(slight(16_000, &alike, beside, 0.030_3, &quick, CPU));
        assert!(!slight(16_000, &alike, beside, 0.030_5, &quick, CPU));
        assert!(!slight(1_100, &alike, beside, 0.02, &quick, CPU), "it changes the gain as well");
    }
    assert!(!slight(16_000, &alike, -0.005, 0.001, &quick, CPU), "half a percent of the figure");
    assert!(!slight(16_000, &alike, -0.05, 0.02, &quick.by_totals(), CPU));
    assert!(!slight(16_000, &alike, -0.05, 0.02, &points(quick), CPU), "older records were judged without");
    assert!(!slight(16_000, &alike, -0.05, 0.02, &quick, Metric::P50));
    // Nine outliers of nine on one side, whatever the errors.
    let noise = (0..51).map(|k| if k % 2 == 0 { 990 } else { 1_010 });
    let lean: Vec<u64> = noise.chain([1_200; 9]).collect();
    assert!(slight(16_000, &lean, -0.03, 1.0, &quick, CPU));
}

/// Noise of 1 % about ln 2: the limit is 40 · 1.4826 · 0.01 = 0.59, 1.81 times as much.
#[test]
fn a_block_lies_beyond_noise_from_forty_deviations_on() {
    let beyond = |wild: u64| {
        let noise = (0..59).map(|k| if k % 2 == 0 { 1_980 } else { 2_020 });
        beyond_noise(CPU, &pairs(noise.chain([wild])), 2_f64.ln())
    };
    assert!(!beyond(3_500) && beyond(3_700));
    assert!(!beyond(1_150) && beyond(1_080));
}

#[test]
fn what_is_saved_is_a_share_of_the_dearer_side() {
    for (times, wanted) in [(2.0, 50.0), (0.5, -50.0), (0.1, -90.0), (1.0, 0.0)] {
        assert!((saved_percent(f64::ln(times)) - wanted).abs() < 1e-9, "{times}");
    }
}

/// As [`super::edges`] works out: after 60 of 240 pairs with an error of 0.01 the chance is 0.5002 where 0.0153 is read, and 0.077
/// where nothing is.
#[test]
fn a_trial_is_given_up_within_what_its_chance_allows() {
    let within = |least| Rule::QUICK.giving_up_below(least).gives_up_within(60, 0.01);
    assert!((within(0.500_205) - 0.015_3).abs() < 1e-6, "{}", within(0.500_205));
    assert!(within(0.05).abs() < 1e-12, "{}", within(0.05));
    // What excludes zero already is never given up: 3.06 · 0.01.
    assert!((within(0.999_999) - 0.030_6).abs() < 1e-9, "{}", within(0.999_999));
    assert_eq!(Rule::QUICK.gives_up_within(60, 0.01), 0.0);
}

/// Planted fault: what a rule is changed by is left at what the quick one has.
#[test]
fn a_rule_that_is_changed_keeps_the_rest() {
    let quick = Rule::QUICK;
    let once = Rule::once(77, 2.5);
    assert_eq!((once.z, once.first, once.step, once.last), (2.5, 77, 1, 77));
    assert_eq!((once.basis, once.between, once.outside), (Basis::Pairs, None, true));
    let limited = Guards::Margins { memory_max_bytes: Some(5) };
    assert_eq!(quick.within(Some(5)), Rule { guards: limited, ..quick });
    assert_eq!(quick.paying_for(Between::SUPPOSED).between, Some(Between::SUPPOSED));
    assert_eq!(quick.giving_up_below(0.2).hopeless, Some(0.2));
    let bases = [quick, quick.by_totals(), quick.by_instances()].map(|rule| rule.basis);
    assert_eq!(bases, [Basis::Pairs, Basis::Totals, Basis::Instances]);
}

#[test]
fn a_rule_is_written_without_what_older_records_had_not() {
    let written = |rule: Rule| serde_json::to_string(&rule).unwrap_or_default();
    let older = written(points(Rule::QUICK));
    assert!(
        older.starts_with('{')
            && !["between", "guards", "outside", "hopeless"].iter().any(|word| older.contains(word)),
        "{older}"
    );
    let quick = written(Rule::QUICK.giving_up_below(0.1).paying_for(Between::SUPPOSED));
    assert!(["between", "guards", "outside", "hopeless"].iter().all(|word| quick.contains(word)), "{quick}");
}

/// The dear blocks alone burn something outside of themselves, which a trimmed mean does not see.
#[test]
fn what_is_read_from_totals_is_doubted_by_totals() {
    let pair = |at: u64| {
        let (cost, outside) = if at >= 51 { (1_200, 100) } else { (990 + 20 * (at % 2), 0) };
        let b = Block { cpu_off_ns: 1_000 * outside, ..block(cost) };
        Pair { first: Side::A, instance: 0, a: block(16_000), b }
    };
    let trial = Trial { pairs: (0..60).map(pair).collect(), ..Trial::new(CPU) };
    let Next::Done(judgement) = next(&trial, &Rule::once(60, 2.5), 1) else { panic!("one look") };
    assert_eq!((judgement.verdict, judgement.basis), (Verdict::Better, Basis::Totals));
    // 26 · 990 + 25 · 1,010 + 9 · 1,200 = 61,790, and 900 outside.
    let wanted = (61_790.0_f64 / 62_690.0).ln();
    assert!((judgement.estimate.uncharged - wanted).abs() < 1e-12, "{judgement:?} {wanted}");
}

/// Twenty-five blocks are a tenth cheaper and five cost 1.7 times as much.
#[test]
fn who_is_judged_by_totals_is_never_told_to_measure_bursts_again() {
    let pairs = pairs((0..25).map(|k| 880 + 2 * k).chain([1_700; 5]));
    let trial = Trial { pairs, ..Trial::new(CPU) };
    assert_eq!(next(&trial, &Rule::QUICK, 1), Next::Bursty);
    assert!(matches!(next(&trial, &Rule::QUICK.by_totals(), 1), Next::More(Some(_))));
}

/// Read at 0.02 with an error of 0.005, of which CPU outside of blocks may take 0.03 or 0.006: the chance is that of 0, 0.077, or
/// of 0.014, 0.93.
#[test]
fn a_chance_is_that_of_what_may_be_left_of_the_effect() {
    let ended = |uncharged| {
        let told = Estimate { log_ratio: 0.02, error: 0.005, half_width: 0.015_3, n: 60, uncharged };
        end(&Rule::QUICK.giving_up_below(0.1), 60, &told)
    };
    assert_eq!([-0.03, -0.006, 0.0].map(ended), [Some(End::Hopeless), None, Some(End::Answered)]);
}

#[test]
fn looks_are_counted_from_the_first_one() {
    let rule = Rule { first: 12, step: 7, last: 40, ..Rule::QUICK };
    let planned: Vec<usize> = (0..60).filter(|pairs| rule.looks_at(*pairs)).collect();
    assert_eq!(planned, [12, 19, 26, 33, 40]);
    assert_eq!(rule.looks(60).collect::<Vec<_>>(), planned);
    assert_eq!(rule.looks(27).collect::<Vec<_>>(), [12, 19, 26]);
}
