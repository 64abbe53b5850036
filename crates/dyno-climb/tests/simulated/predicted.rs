//! What experiments predict of rungs, beside what is measured: over a machine whose truth is known.

use dyno_climb::climb::Options;
use dyno_record::climb::{Predicted, RungVerdict};

use crate::ladder::{Edit, ladder, options, whole};
use crate::noise::Weather;
use crate::world::{Does, World};

const TWENTY_S: u64 = 20_000_000_000;

fn asked(seed: u64, time_s: u64) -> Options {
    Options { causal_ns: Some(TWENTY_S), ..options(seed, time_s) }
}

fn prediction(of: &Predicted) -> (f64, [f64; 2]) {
    (of.predicted_percent.expect("a prediction"), of.interval_percent.expect("its interval"))
}

#[test]
fn the_interval_of_what_is_predicted_holds_the_truth_in_nine_of_ten_climbs() {
    let (mut held, mut left_out, mut widths, seeds) = (0, 0, 0.0, 40);
    for seed in 0..seeds {
        let world = World::new(Weather::Quiet, seed).with("gain=on", Does::Cpu(-12.0));
        let climbed = whole(&ladder(&["gain=on"]), &asked(seed, 40), world);
        let rung = &climbed.record.rungs[0];
        assert_eq!(rung.attempt.verdict, RungVerdict::Kept, "seed {seed}");
        let predicted = rung.attempt.causal.as_ref().expect("it was asked for");
        let (value, [low, high]) = prediction(predicted);
        held += u32::from((low..=high).contains(&-12.0));
        widths += (high - low) / 2.0;
        let measured = predicted.measured_percent.expect("it was measured");
        assert!((measured + 12.0).abs() < 5.0 && value < -5.0, "seed {seed}: {predicted:?}");
        assert_eq!(predicted.functions[0].name, "serve");
        left_out += u32::from(predicted.unchanged == ["rest"]);
    }
    assert!(held >= 36, "{held} of {seeds} hold it");
    assert!(left_out >= 34, "two standard errors leave one in twenty: {left_out} of {seeds}");
    assert!(widths / f64::from(seeds as u32) < 10.0, "half-widths of {widths} in all");
}

#[test]
fn settings_are_experimented_with_once_and_only_where_it_was_asked_for() {
    let plan = ladder(&["null=on", "other=on", "gain=on", "last=on"]);
    let world = || World::new(Weather::Quiet, 5).with("gain=on", Does::Cpu(-10.0));
    let climbed = whole(&plan, &asked(5, 240), world());
    let settings: Vec<_> = climbed.record.causal.iter().map(|one| one.setting.clone()).collect();
    assert_eq!(settings.len(), 2, "the start, and what stands once the gain was kept: {settings:?}");
    assert_eq!(climbed.world.experiments(), 2);
    let of = |at: usize| climbed.record.rungs[at].attempt.causal.as_ref().and_then(|one| one.profile);
    assert_eq!([of(2), of(3)], [Some(0), Some(1)]);
    let without = whole(&plan, &options(5, 240), world());
    assert_eq!(without.world.experiments(), 0);
    assert!(without.record.causal.is_empty() && without.record.profiles.is_empty());
    assert!(without.record.rungs.iter().all(|rung| rung.attempt.causal.is_none()));
}

#[test]
fn experiments_take_nothing_of_the_climbs_own_time() {
    let plan = ladder(&["gain=on", "more=on"]);
    let world = || {
        let gain = World::new(Weather::Quiet, 8).with("gain=on", Does::Cpu(-10.0));
        gain.with("more=on", Does::Cpu(-10.0))
    };
    let pairs = |options: &Options| -> Vec<usize> {
        let climbed = whole(&plan, options, world());
        assert!(climbed.record.total.is_some(), "there was time for all of it");
        climbed.record.rungs.iter().map(|rung| rung.attempt.pairs).collect()
    };
    let (with, without) = (pairs(&asked(8, 30)), pairs(&options(8, 30)));
    assert!(with.iter().zip(&without).all(|(with, without)| with + 30 >= *without), "{with:?} {without:?}");
    let climbed = whole(&plan, &asked(8, 30), world());
    assert!((60.0..110.0).contains(&climbed.record.duration_s), "{}", climbed.record.duration_s);
}

#[test]
fn where_nobody_waits_for_what_became_faster_little_is_predicted() {
    let world = World::new(Weather::Quiet, 6).with("gain=on", Does::Cpu(-20.0)).predicting(Ok(0.0));
    let climbed = whole(&ladder(&["gain=on"]), &asked(6, 40), world);
    let predicted = climbed.record.rungs[0].attempt.causal.as_ref().unwrap();
    assert!(prediction(predicted).0.abs() < 2.0, "{predicted:?}");
    assert!(predicted.measured_percent.unwrap() < -15.0, "and it is measured all the same: {predicted:?}");
}

#[test]
fn what_cannot_be_predicted_says_why_and_is_measured_all_the_same() {
    let world = World::new(Weather::Quiet, 7).with("gain=on", Does::Cpu(-10.0)).predicting(Err("no BPF"));
    let climbed = whole(&ladder(&["gain=on", "null=on"]), &asked(7, 120), world);
    let record = &climbed.record;
    assert!(record.not_measured.iter().any(|missing| missing.why == "no BPF"), "{:?}", record.not_measured);
    let predicted = record.rungs[0].attempt.causal.as_ref().unwrap();
    assert_eq!(predicted.why_not.as_deref(), Some("no BPF"));
    assert!(predicted.predicted_percent.is_none() && predicted.measured_percent.unwrap() < -5.0);
    assert_eq!(record.rungs[0].attempt.verdict, RungVerdict::Kept);
}

#[test]
fn a_rung_that_is_toggled_in_place_is_predicted_too() {
    let plan = ladder(&["gain=on"]).in_place("gain=on");
    let world = World::new(Weather::Quiet, 9).with("gain=on", Does::Cpu(-25.0));
    let climbed = whole(&plan, &asked(9, 60), world);
    let predicted = climbed.record.rungs[0].attempt.causal.as_ref().unwrap();
    let (value, [low, high]) = prediction(predicted);
    assert!(low < -25.0 && high > -25.0 && value < -10.0, "{predicted:?}");
    assert!(predicted.drift_percent.is_some(), "looked at more than once: {predicted:?}");
    assert_eq!(climbed.record.profiles.len(), 2);
}
