//! The record: the same for the same seed, whole after JSON, unbiased in what it quotes.

use dyno_climb::climb::{Options, Profiles};
use dyno_climb::meter::Trouble;
use dyno_measure::series::{BLOCK_COLUMNS, Side};
use dyno_record::climb::{CLIMB_SCHEMA, Climb};
use dyno_record::trial::Schedule;

use crate::ladder::{Edit, ladder, options, whole};
use crate::noise::Weather;
use crate::rejudge;
use crate::world::{At, Does, World};

fn record(seed: u64) -> Climb {
    let plan = ladder(&["gain=on", "spin=on", "null=on"]).in_place("spin=on");
    let world = World::new(Weather::Contended, seed)
        .with("gain=on", Does::Cpu(-8.0))
        .with("spin=on", Does::Cpu(-8.0));
    whole(&plan, &options(seed, 60), world).record
}

#[test]
fn the_same_seed_gives_the_same_record_and_another_seed_another() {
    assert_eq!(record(1), record(1));
    assert_ne!(record(1).series, record(2).series);
}

#[test]
fn a_record_read_back_from_json_says_the_same() {
    let written = Climb { schema: CLIMB_SCHEMA.into(), ..record(3) };
    let read = Climb::from_json(&serde_json::to_string(&written).unwrap()).unwrap();
    assert_eq!(read.series, written.series);
    let verdicts = |record: &Climb| -> Vec<_> {
        record.rungs.iter().map(|rung| (rung.id.clone(), rung.attempt.verdict)).collect()
    };
    assert_eq!(verdicts(&read), verdicts(&written));
    rejudge::says_the_same(&read);
}

#[test]
fn a_record_carries_what_it_was_made_from() {
    let record = record(4);
    assert_eq!((record.plan.as_str(), record.seed), ("simulated", 4));
    assert_eq!(record.series.block_columns, BLOCK_COLUMNS);
    let mut ids: Vec<&str> = record.series.trials.iter().map(|trial| trial.id.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "no two trials of one name");
    for rung in &record.rungs {
        let id = rung.attempt.trial.as_ref().expect("every rung was measured");
        let trial = &record.trial(id).expect("its trial").trial;
        assert_eq!(trial.pairs.len(), rung.attempt.pairs);
        assert!(trial.pairs.iter().all(|pair| (pair.instance as usize) < rung.attempt.instances));
        assert_eq!(rung.attempt.clock, "simulated");
    }
    let total = record.total.as_ref().unwrap();
    assert_eq!(record.series.rounds.len(), total.rounds);
    assert!(record.series.rounds.iter().all(|round| round.len() == total.arms.len()));
    let starts = &record.series.round_starts;
    assert_eq!((starts.len(), starts.last()), (total.rounds, Some(&(total.starts as u32 - 1))));
}

#[test]
fn both_sides_of_every_rung_that_was_measured_are_profiled_when_asked_for() {
    let plan = ladder(&["gain=on", "live=on", "lost=on"]).in_place("live=on");
    let died = Trouble::Died { status: "1".into(), stderr_tail: String::new() };
    let world =
        World::new(Weather::Quiet, 31).with("gain=on", Does::Cpu(-10.0)).failing("lost=on", At::Open, died);
    let asked = Options { profiles: Profiles::Sides, ..options(31, 240) };
    let climbed = whole(&plan, &asked, world);
    let taken: Vec<(&str, Side)> =
        climbed.record.profiles.iter().map(|one| (one.rung.as_str(), one.side)).collect();
    let of = |rung| [(rung, Side::A), (rung, Side::B)];
    assert_eq!(taken, [of("gain=on"), of("live=on")].concat());
    let per_request = |at: usize| {
        let profile = &climbed.record.profiles[at].profile;
        profile.total_ns() as f64 / profile.requests.as_ref().unwrap().count as f64
    };
    assert!(per_request(1) < 0.95 * per_request(0), "the sides were mixed up");
}

/// Ids are the user's own text. Whatever they end in says nothing of how a rung was measured.
#[test]
fn a_rung_may_be_called_what_ways_of_measuring_were_once_told_by() {
    let named = |id: &str| {
        let mut plan = ladder(&["gain=on", "null=on"]);
        plan.rungs[0].id = id.to_owned();
        plan
    };
    let climb = |id: &str| {
        let world = World::new(Weather::Quiet, 12).with("gain=on", Does::Cpu(-8.0));
        whole(&named(id), &options(12, 60), world).record
    };
    let plain = climb("gain");
    let shapes = |record: &Climb| -> Vec<_> {
        record.series.trials.iter().map(|trial| (trial.stage, trial.schedule, trial.rule)).collect()
    };
    for id in ["gain:bursty", "gain:in-turn", "noise", "noise:2", "step:gain", "gain#2", "leave-one-out:x"] {
        let record = climb(id);
        assert_eq!(shapes(&record), shapes(&plain), "{id}");
        assert_eq!(record.rungs[0].attempt.effect_percent, plain.rungs[0].attempt.effect_percent, "{id}");
        assert!(record.series.trials.iter().all(|trial| trial.schedule == Schedule::LivePairs), "{id}");
        let of_rung = record.series.trials.iter().filter(|trial| trial.rung.as_deref() == Some(id));
        assert_eq!(of_rung.count(), 2, "{id}: a step and a confirmation");
    }
}

/// `step:x` measured in long blocks and `x:bursty` measured in short ones were once called the same.
#[test]
fn trials_of_rungs_with_like_ids_are_told_apart() {
    let mut plan = ladder(&["collector=on", "gain=on"]);
    (plan.rungs[0].id, plan.rungs[1].id) = ("x".into(), "x:bursty".into());
    let world = World::new(Weather::Quiet, 3)
        .with("collector=off", Does::Bursts(0.1))
        .with("gain=on", Does::Cpu(-8.0));
    let record = whole(&plan, &options(3, 240), world).record;
    let schedule = |at: usize| {
        let id = record.rungs[at].attempt.trial.as_ref().expect("it was measured");
        let trial = record.trial(id).expect("its trial");
        (trial.rung.as_deref(), trial.schedule)
    };
    assert_eq!(schedule(0), (Some("x"), Schedule::LongPairs));
    assert_eq!(schedule(1), (Some("x:bursty"), Schedule::LivePairs));
}
