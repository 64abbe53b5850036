//! What goes wrong out there is a rung's verdict or a cut-short record: never a panic, never a server left behind.

use dyno_climb::climb::{ClimbError, Options};
use dyno_climb::meter::Trouble;
use dyno_climb::plan::Plan;
use dyno_record::climb::RungVerdict as V;

use crate::ladder::{Edit, calls_of, climbed, ladder, options, whole};
use crate::noise::Weather;
use crate::world::{At, Does, Trip, World};

fn died() -> Trouble {
    Trouble::Died { status: "killed by SIGSEGV".into(), stderr_tail: "assertion failed: left".into() }
}

fn troubles() -> [(Trouble, &'static str); 5] {
    let lied = Trouble::WrongAnswer { expected: "200".into(), got: "500".into() };
    let deaf = Trouble::NotListening {
        address: "127.0.0.1:8080".into(),
        waited_ms: 2_000,
        stderr_tail: "address in use".into(),
    };
    let absent = Trouble::Launch { command: "servr".into(), why: "no such file".into() };
    [
        (died(), "the server died: killed by SIGSEGV; its last words: assertion failed: left"),
        (Trouble::Hung { waited_ms: 2_000 }, "the server hung: no answer within 2000 ms"),
        (lied, "wrong answer: expected 200, got 500"),
        (deaf, "nobody listens on 127.0.0.1:8080 after 2000 ms; its last words: address in use"),
        (absent, "cannot start servr: no such file"),
    ]
}

fn quiet(seed: u64) -> World {
    World::new(Weather::Quiet, seed)
}

#[test]
fn a_rung_whose_server_fails_says_how_and_the_climb_goes_on() {
    let plan = ladder(&["bad=on", "gain=on"]);
    for (trouble, words) in troubles() {
        for at in [At::Open, At::Prove, At::Block(1), At::Block(9)] {
            let world = quiet(1).with("gain=on", Does::Cpu(-6.0)).failing("bad=on", at, trouble.clone());
            let climbed = whole(&plan, &options(1, 60), world);
            assert_eq!(climbed.verdict("bad=on"), V::Failed, "{at:?}");
            assert_eq!(climbed.why("bad=on"), words, "{at:?}");
            assert!(climbed.kept("gain=on"), "{at:?}: {}", climbed.why("gain=on"));
            assert_eq!(climbed.turned(), ["gain=on"]);
        }
    }
}

/// Planted fault: servers are opened without asking that they be built.
#[test]
fn a_rung_that_cannot_be_built_fails_in_the_compilers_words() {
    let plan = ladder(&["bad=on", "gain=on"]);
    let why = "exit status 1: s.c:3: error: expected ';'".to_owned();
    let broken = Trouble::Build { step: "cc s.c".into(), why };
    let world = || quiet(1).with("gain=on", Does::Cpu(-6.0));
    let climbed = whole(&plan, &options(1, 60), world().failing("bad=on", At::Build, broken.clone()));
    assert_eq!(climbed.verdict("bad=on"), V::Failed);
    assert_eq!(
        climbed.why("bad=on"),
        "the server cannot be built: cc s.c: exit status 1: s.c:3: error: expected ';'"
    );
    assert!(climbed.kept("gain=on"), "{}", climbed.why("gain=on"));
    let start = self::climbed(&plan, &options(1, 60), quiet(1).failing("bad=off", At::Build, broken.clone()));
    assert_eq!(start.outcome, Err(ClimbError::Start(broken)));
}

#[test]
fn a_live_dial_that_kills_its_server_fails_in_its_own_words() {
    let plan = ladder(&["bad=on", "gain=on"]).in_place("bad=on");
    for at in [At::Turn, At::Block(5)] {
        let world = quiet(2).with("gain=on", Does::Cpu(-6.0)).failing("bad=on", at, died());
        let climbed = whole(&plan, &options(2, 60), world);
        assert_eq!(climbed.verdict("bad=on"), V::Failed, "{at:?}");
        assert!(climbed.why("bad=on").contains("SIGSEGV"), "{}", climbed.why("bad=on"));
        assert!(climbed.kept("gain=on"), "{at:?}: {}", climbed.why("gain=on"));
    }
}

#[test]
fn a_clock_that_is_lost_means_not_measured() {
    let plan = ladder(&["spin=on", "gain=on"]);
    let lost = Trouble::ClockLost { why: "it spins".into() };
    let world = quiet(3).with("gain=on", Does::Cpu(-6.0)).failing("spin=on", At::Block(1), lost);
    let climbed = whole(&plan, &options(3, 60), world);
    assert_eq!(climbed.verdict("spin=on"), V::NotMeasured);
    assert!(climbed.why("spin=on").contains("it spins"));
    assert!(climbed.kept("gain=on"));
}

/// A server that dies once, at any of the first blocks of a step: on the side without the change nothing could be compared.
#[test]
fn a_death_on_the_side_without_the_change_costs_one_try_and_fresh_instances() {
    let plan = ladder(&["first=on", "gain=on"]);
    let world =
        || World::new(Weather::None, 4).with("first=on", Does::Cpu(-0.2)).with("gain=on", Does::Cpu(-6.0));
    let all = whole(&plan, &options(4, 120), world());
    let begins = calls_of(all.trial("noise").unwrap(), 4, 0) + 8 + 8;
    let mut hits = 0;
    for call in begins + 1..=begins + 6 {
        let climbed = whole(&plan, &options(4, 120), world().tripping(Trip::Once(call, died())));
        assert!(climbed.kept("gain=on"), "{}", climbed.why("gain=on"));
        let first = climbed.rung("first=on").first_attempt.as_ref();
        let Some(hit) = first.filter(|hit| hit.why.starts_with("without the change")) else { continue };
        hits += 1;
        assert_eq!(hit.verdict, V::NotMeasured);
        assert!(hit.why.starts_with("without the change, the server died"), "{}", hit.why);
        assert_eq!(climbed.verdict("first=on"), V::NoDifference, "{}", climbed.why("first=on"));
    }
    assert!(hits >= 2, "{hits} of six blocks were on that side");
}

/// What turns back serves only for the confirmation: there it dies.
#[test]
fn a_rung_that_cannot_be_measured_again_is_unconfirmed() {
    let plan = ladder(&["lucky=on", "gain=on"]);
    let world = quiet(6).with("gain=on", Does::Cpu(-20.0)).with("lucky=on", Does::Cpu(-6.0)).failing(
        "gain=on lucky=off",
        At::Block(3),
        died(),
    );
    let climbed = whole(&plan, &options(6, 240), world);
    assert_eq!(climbed.verdict("lucky=on"), V::Unconfirmed, "{}", climbed.why("lucky=on"));
    let why = climbed.why("lucky=on");
    assert!(why.starts_with("could not be measured again: without the change, the server died"), "{why}");
}

/// Planted fault: what left is all still in what was reached before confirmation; that is cheaper, and a server that died with
/// the rung is what the climb ends with.
#[test]
fn a_rung_that_dies_when_it_is_measured_again_is_not_in_the_end() {
    let plan = ladder(&["gain=on"]);
    let world = || World::new(Weather::None, 7).with("gain=on", Does::Cpu(-8.0));
    let all = whole(&plan, &options(7, 120), world());
    let [noise, step] = [("noise", 0), ("step:gain=on", 2)]
        .map(|(title, proofs)| calls_of(all.trial(title).unwrap(), 4, proofs));
    let begins = noise + step + 8 + 8;
    let mut hits = [0, 0];
    for call in begins + 1..=begins + 6 {
        let climbed = whole(&plan, &options(7, 120), world().tripping(Trip::Once(call, died())));
        let why = climbed.why("gain=on");
        assert_eq!(climbed.verdict("gain=on"), V::Unconfirmed, "{why}");
        assert!(why.starts_with("could not be measured again: "), "{why}");
        let without = why.contains("without the change, ");
        hits[usize::from(without)] += 1;
        let turned: &[&str] = if without { &["gain=on"] } else { &[] };
        assert_eq!(climbed.turned(), turned, "{why}");
    }
    assert!(hits[0] >= 2 && hits[1] >= 1, "{hits:?}");
}

#[test]
fn a_start_that_does_not_work_is_no_climb() {
    let plan = ladder(&["gain=on"]);
    for (trouble, words) in troubles() {
        for at in [At::Open, At::Block(3)] {
            let climbed = climbed(&plan, &options(6, 60), quiet(6).failing("", at, trouble.clone()));
            assert_eq!(climbed.outcome, Err(ClimbError::Start(trouble.clone())));
            let cut_short = climbed.record.cut_short.unwrap();
            assert_eq!(cut_short, format!("the start cannot be measured: {words}"));
        }
    }
}

/// Planted faults: the headline rung alone is given to the start, without what it needs; and an arm that cannot be opened costs
/// the total, whichever it is.
#[test]
fn a_headline_stands_on_what_it_needs_and_costs_no_total_where_it_cannot_stand() {
    let headline = |plan: Plan| Plan { headline: Some("top=on".into()), ..plan };
    let plan = headline(ladder(&["base=on", "top=on"]).needing("top=on", "base=on"));
    let world = || quiet(8).with("base=on", Does::Cpu(-20.0)).with("top=on", Does::Cpu(-20.0));
    let fails = |when: &str| world().failing(when, At::Open, died());
    let climbed = whole(&plan, &options(8, 120), fails("top=on base=off"));
    let total = climbed.record.total.as_ref().expect("start+top has its base");
    assert!(
        total.without.as_ref().is_some_and(|one| (one.gain.ratio - 1.0).abs() < 0.1),
        "{:?}",
        total.without
    );
    let plan = headline(ladder(&["base=on", "more=on", "top=on"]));
    let fallen = fails("top=on base=off more=off").with("more=on", Does::Cpu(-20.0));
    let climbed = whole(&plan, &options(8, 120), fallen);
    let total = climbed.record.total.as_ref().expect("start and end stand");
    assert!(total.without.is_none() && climbed.missing("start+top=on"), "{:?}", climbed.record.not_measured);
    assert_eq!(climbed.turned(), ["base=on", "more=on", "top=on"]);
}

/// A plan that goes everywhere: kept, reverted, live, needed, bundled, tried again, confirmed.
fn winding() -> (Plan, impl Fn() -> World) {
    let plan = ladder(&["gain=on", "harm=on", "spin=on", "base=on", "top=on"]);
    let plan = plan.in_place("spin=on").needing("top=on", "base=on");
    let world = || {
        World::new(Weather::Quiet, 9)
            .with("gain=on", Does::Cpu(-20.0))
            .with("harm=on", Does::Cpu(20.0))
            .with("spin=on", Does::Cpu(-20.0))
            .with("top=on base=on", Does::Cpu(-20.0))
    };
    (plan, world)
}

fn short() -> Options {
    Options { instances: 2, ..options(9, 40) }
}

/// Every call to the world early on, where sides are opened and proved; later every forty-first.
fn calls(of: u64) -> impl Iterator<Item = u64> {
    (1..24.min(of)).chain((24..=of).step_by(41))
}

#[test]
fn an_interrupt_at_any_call_leaves_a_record_and_no_server() {
    let (plan, world) = winding();
    let all = whole(&plan, &short(), world());
    for id in ["gain=on", "spin=on", "top=on"] {
        assert!(all.kept(id), "the climb to interrupt goes everywhere: {}", all.why(id));
    }
    for call in calls(all.world.calls()) {
        let climbed = climbed(&plan, &short(), world().tripping(Trip::From(call, Trouble::Interrupted)));
        assert_eq!(climbed.outcome, Err(ClimbError::Ended(Trouble::Interrupted)), "call {call}");
        assert_eq!(climbed.record.cut_short.as_deref(), Some("cut short: interrupted"), "call {call}");
        assert_eq!(climbed.record.rungs.len(), plan.rungs.len(), "call {call}: every rung is listed");
        for rung in &climbed.record.rungs {
            let seen_again = rung.leave_one_out.is_some();
            assert!(rung.attempt.verdict != V::Kept || seen_again, "call {call}: {} is kept", rung.id);
        }
        let done = climbed.record.rungs.iter().filter(|rung| rung.attempt.verdict != V::NotMeasured);
        for (rung, whole) in done.zip(&all.record.rungs) {
            assert_eq!(rung.id, whole.id, "call {call}: what was judged before is in the record");
        }
    }
}

#[test]
fn a_step_that_the_end_left_unseen_is_unconfirmed_and_says_so() {
    let (plan, world) = winding();
    let all = whole(&plan, &short(), world());
    let noise = calls_of(all.trial("noise").unwrap(), 2, 0);
    let step = calls_of(all.trial("step:gain=on").unwrap(), 2, 2);
    let cut = climbed(&plan, &short(), world().tripping(Trip::From(noise + step + 6, Trouble::Interrupted)));
    assert_eq!(cut.verdict("gain=on"), V::Unconfirmed);
    assert_eq!(cut.why("gain=on"), "better in its step; the climb ended before it was seen again");
    assert_eq!((cut.record.total, cut.record.reached), (None, None));
}

#[test]
fn without_a_total_the_setting_reached_is_told_all_the_same() {
    let plan = ladder(&["gain=on"]);
    let world = || quiet(3).with("gain=on", Does::Cpu(-20.0));
    let all = whole(&plan, &options(3, 60), world());
    let total = all.record.total.as_ref().unwrap();
    assert_eq!(all.record.reached, None, "a total tells it itself");
    // A block on each of three arms in every round, and in every start the opening of the arms and the proof of two; of the first
    // start's two once more.
    let before = all.world.calls() - (3 * (total.rounds + total.starts) + 2 * (total.starts + 1)) as u64;
    let climbed = whole(&plan, &options(3, 60), world().tripping(Trip::Once(before + 1, died())));
    assert!(climbed.record.total.is_none() && climbed.missing("total"));
    assert_eq!(climbed.record.reached.as_ref(), Some(&total.reached));
    assert_eq!(climbed.turned(), ["gain=on"]);
}

#[test]
fn a_server_that_dies_late_in_the_total_leaves_what_was_measured_before() {
    let plan = ladder(&["gain=on"]);
    let world = || quiet(3).with("gain=on", Does::Cpu(-20.0));
    let all = whole(&plan, &options(3, 60), world());
    let late = all.world.calls() - 10;
    let climbed = whole(&plan, &options(3, 60), world().tripping(Trip::Once(late, died())));
    let (total, whole) = (climbed.record.total.as_ref().unwrap(), all.record.total.as_ref().unwrap());
    assert!(total.rounds < whole.rounds && total.starts >= whole.starts - 1, "{} rounds", total.rounds);
    assert!(climbed.missing("total"), "what is missing of it is said");
}

#[test]
fn a_server_that_starts_slowly_has_a_total_of_one_start_with_a_warning() {
    let plan = ladder(&["gain=on"]);
    let world = quiet(5).with("gain=on", Does::Cpu(-20.0)).opening(3_000_000_000);
    let record = whole(&plan, &options(5, 120), world).record;
    let total = record.total.as_ref().unwrap();
    assert_eq!(total.starts, 1);
    assert!(record.warnings.iter().any(|warning| warning.contains("the total's servers once only")));
}

#[test]
fn an_interrupted_trial_is_kept_as_far_as_it_came() {
    let (plan, world) = winding();
    let all = whole(&plan, &short(), world());
    let full = &all.trial("step:gain=on").unwrap().trial.pairs;
    let before = calls_of(all.trial("noise").unwrap(), 2, 0);
    // Four servers, a proof of each, ten pairs and one block.
    let interrupt = Trip::From(before + 4 + 4 + 20 + 2, Trouble::Interrupted);
    let cut = climbed(&plan, &short(), world().tripping(interrupt));
    assert_eq!(cut.trial("step:gain=on").unwrap().trial.pairs, full[..10]);
    assert_eq!(cut.verdict("gain=on"), V::NotMeasured);
}

#[test]
fn a_lost_keeper_ends_the_climb() {
    let (plan, world) = winding();
    let lost = Trouble::Lost("the keeper is gone".into());
    let all = whole(&plan, &short(), world()).world.calls();
    for call in [1, 5, 40, all / 2, all - 3] {
        let climbed = climbed(&plan, &short(), world().tripping(Trip::From(call, lost.clone())));
        assert_eq!(climbed.outcome, Err(ClimbError::Ended(lost.clone())), "call {call}");
        assert_eq!(climbed.record.cut_short.as_deref(), Some("cut short: the keeper is gone"));
    }
}

#[test]
fn a_death_at_any_call_ends_nothing_but_what_it_hits() {
    let (plan, world) = winding();
    let all = whole(&plan, &short(), world());
    let noise_ends = calls_of(all.trial("noise").unwrap(), 2, 0);
    for call in calls(all.world.calls()) {
        let climbed = climbed(&plan, &short(), world().tripping(Trip::Once(call, died())));
        if call <= noise_ends {
            assert_eq!(climbed.outcome, Err(ClimbError::Start(died())), "call {call}");
        } else {
            assert_eq!(climbed.outcome, Ok(()), "call {call}");
            assert_eq!(climbed.record.rungs.len(), plan.rungs.len(), "call {call}");
        }
    }
}

#[test]
fn too_little_time_is_said_and_kept_to() {
    let plan = ladder(&["a=on", "b=on", "c=on", "d=on", "e=on", "f=on", "g=on", "h=on"]);
    for time_s in [1, 2, 3, 4, 5, 6, 8, 10, 13, 16, 20, 25, 32, 45] {
        let world = quiet(time_s).with("a=on", Does::Cpu(-20.0)).with("h=on", Does::Cpu(-20.0));
        let climbed = whole(&plan, &options(time_s, time_s), world);
        let record = &climbed.record;
        assert_eq!(record.rungs.len(), plan.rungs.len(), "{time_s} s: every rung is in the record");
        // Two sides are opened before the clock is looked at; the last blocks are finished; all servers are closed.
        let late_s = record.duration_s - time_s as f64;
        assert!(late_s < 2.0, "{time_s} s: {late_s:.1} s too long");
        assert!(record.total.is_some() || climbed.missing("total"), "{time_s} s");
        assert!(record.noise.is_some() || climbed.missing("noise"), "{time_s} s");
        for rung in &record.rungs {
            assert!(!rung.attempt.why.is_empty(), "{time_s} s: {}", rung.id);
        }
        if time_s == 1 {
            assert!(record.rungs.iter().all(|rung| rung.attempt.verdict == V::NotMeasured));
            assert!(climbed.missing("noise") && climbed.missing("total"));
        }
        if time_s >= 16 {
            assert!(climbed.kept("a=on"), "{time_s} s: the first rung is measured: {}", climbed.why("a=on"));
        }
    }
}

/// Blocks of a second: a pair takes two, and 240 pairs would take eight minutes.
#[test]
fn a_slow_server_is_judged_from_fewer_pairs_in_the_same_time() {
    let plan = ladder(&["gain=on", "harm=on"]);
    let world =
        quiet(10).slow(1_000_000_000).with("gain=on", Does::Cpu(-30.0)).with("harm=on", Does::Cpu(30.0));
    let climbed = whole(&plan, &options(10, 600), world);
    assert!(climbed.record.duration_s < 610.0, "{}", climbed.record.duration_s);
    assert!(climbed.kept("gain=on"), "{}", climbed.why("gain=on"));
    assert_eq!(climbed.verdict("harm=on"), V::Reverted, "{}", climbed.why("harm=on"));
    assert!(climbed.record.noise.unwrap().pairs >= 20);
}
