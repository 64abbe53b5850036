//! Servers that burn CPU outside their own blocks: measured one after another, and judged rightly.

use dyno_climb::climb::step_rule;
use dyno_climb::plan::Plan;
use dyno_measure::Prng;
use dyno_measure::judge::{Next, Verdict, next};
use dyno_measure::series::{Block, Metric, Pair, Side, Trial};
use dyno_measure::units::log_of_percent;
use dyno_record::climb::RungVerdict as V;
use dyno_record::trial::Schedule;

use crate::ladder::{Climbed, Edit, ladder, mean, options, over_seeds, share, whole};
use crate::noise::{Noise, Weather};
use crate::world::{At, Does, Evidence, World};

/// As long as climbs of these take to see what is there: a pair of instances takes about a second.
const TIME_S: u64 = 600;

/// Every server burns 2 % of a CPU whatever it serves.
fn burning(weather: Weather, seed: u64) -> World {
    World::new(weather, seed).with("", Does::Background(2.0))
}

fn in_turn(climbed: &Climbed, id: &str) -> bool {
    let trial = climbed.rung(id).attempt.trial.as_ref().and_then(|id| climbed.record.trial(id));
    trial.is_some_and(|trial| trial.schedule == Schedule::InTurn)
}

/// Two rungs without an effect around one of 10 %.
fn plan() -> Plan {
    ladder(&["null=on", "large=on", "other=on"])
}

fn climbs(weather: Weather, seeds: u64) -> Vec<Climbed> {
    over_seeds(seeds, |seed| {
        let world = burning(weather, seed).with("large=on", Does::Cpu(-10.0));
        let mut climbed = whole(&plan(), &options(seed, TIME_S), world);
        climbed.record.series.trials.iter_mut().for_each(|trial| trial.trial.pairs.clear());
        climbed.record.series.rounds.clear();
        climbed
    })
}

fn rates(name: &str, climbs: &[Climbed]) -> [f64; 2] {
    assert!(climbs.iter().all(|climbed| in_turn(climbed, "null=on") && in_turn(climbed, "large=on")));
    let null = share(climbs, |climbed| climbed.kept("null=on") || climbed.kept("other=on"));
    let large = share(climbs, |climbed| climbed.kept("large=on"));
    let visible = mean(climbs.iter().map(|climbed| climbed.record.noise.as_ref().unwrap().visible_percent));
    let quoted = |climbed: &Climbed| Some(climbed.rung("large=on").leave_one_out?.effect_percent);
    let quoted = mean(climbs.iter().filter_map(quoted));
    println!(
        "{name}, {} climbs: a null rung kept {null:.3}, 10 % kept {large:.3}, quoted {quoted:.2} %, visible {visible:.1} %",
        climbs.len()
    );
    assert!((quoted + 10.0).abs() < 0.7, "{name}: quoted {quoted} for -10");
    [null, large]
}

#[test]
fn servers_that_burn_are_measured_in_turn_and_judged_rightly() {
    for (weather, seeds, found) in [(Weather::Quiet, 60, 0.97), (Weather::Contended, 60, 0.85)] {
        let [null, large] = rates(&format!("{weather:?}"), &climbs(weather, seeds));
        assert!(null <= 0.02 && large >= found, "{weather:?}: {null} {large}");
    }
}

/// What a visit of 0.52 s after a start of 0.15 s reads, log, beside the server's own cost.
fn visit(noise: &mut Noise, now_ns: &mut u64, rng: &mut Prng) -> f64 {
    const SLICES: u64 = 20;
    *now_ns += 150_000_000;
    let slice = |_| {
        *now_ns += 26_000_000;
        noise.of_block(*now_ns, rng).exp()
    };
    (0..SLICES).map(slice).sum::<f64>().ln() - (SLICES as f64).ln()
}

/// A trial of instances one after another, without a climb around it: thousands take a second.
fn trial(weather: Weather, seed: u64, percent: f64) -> Trial {
    let mut rng = Prng::new(seed);
    let (mut noise, mut now_ns) = (Noise::new(weather, &mut rng), 0);
    let mut trial = Trial::new(Metric::CpuPerRequest);
    for instance in 0..step_rule(Schedule::InTurn).last as u32 {
        let first = if rng.coin() { Side::A } else { Side::B };
        let costs = [0, 1].map(|_| visit(&mut noise, &mut now_ns, &mut rng) + 0.003 * rng.normal());
        let [a, b] = Side::BOTH.map(|side| {
            let changed = if side == Side::B { log_of_percent(percent) } else { 0.0 };
            let cost_ns = 6_000.0 * (changed + costs[usize::from(side != first)]).exp();
            Block { replies: 80_000, cpu_in_ns: (80_000.0 * cost_ns) as u64, ..Block::default() }
        });
        trial.pairs.push(Pair { first, instance, a, b });
    }
    trial
}

#[test]
fn thousands_of_equal_sides_in_turn_are_rarely_called_different() {
    for (weather, percent, seeds) in [(Weather::Quiet, -10.0, 4_000), (Weather::Contended, -15.0, 4_000)] {
        let called = |percent: f64| {
            over_seeds(seeds, |seed| {
                let trial = trial(weather, seed, percent);
                match next(&trial, &step_rule(Schedule::InTurn), seed) {
                    Next::Done(judgement) => judgement.verdict,
                    other => panic!("{other:?} at the last look"),
                }
            })
        };
        let null = share(&called(0.0), |verdict| *verdict != Verdict::NoDifference);
        let found = share(&called(percent), |verdict| *verdict == Verdict::Better);
        println!("{weather:?}: equal sides called different {null:.4}, {percent} % found {found:.3}");
        assert!(null <= 0.015, "{weather:?}: {null}");
        assert!(found >= 0.95, "{weather:?}: {found}");
    }
}

/// Side by side a server is charged with what it burns while seven others have their blocks: 2 % of a CPU would pass for a
/// sixth of its cost. Alone it is what it is.
#[test]
fn what_burns_all_the_time_is_charged_once() {
    let plan = ladder(&["calm=on"]);
    let climbs = over_seeds(40, |seed| {
        let world = World::new(Weather::Quiet, seed).with("calm=off", Does::Background(2.0));
        whole(&plan, &options(seed, TIME_S), world)
    });
    assert!(climbs.iter().all(|climbed| climbed.world.crowd() <= 8));
    let read = |climbed: &Climbed| climbed.rung("calm=on").attempt.effect_percent;
    let mean = mean(climbs.iter().filter_map(read));
    println!("no longer burning 2 %: read {mean:.2} %, true -2 %");
    assert!((mean + 2.0).abs() < 0.7, "{mean}");
}

/// One that begins to burn with a rung is seen at that rung; what follows on it is measured in turn as well.
#[test]
fn a_rung_that_makes_a_server_burn_is_measured_again_in_turn() {
    let plan = ladder(&["before=on", "burns=on", "after=on"]);
    let world = World::new(Weather::Quiet, 5)
        .with("before=on", Does::Cpu(-10.0))
        .with("burns=on", Does::Background(2.0))
        .with("burns=on", Does::Cpu(-30.0))
        .with("after=on", Does::Cpu(-20.0));
    let climbed = whole(&plan, &options(5, TIME_S), world);
    assert_eq!(["before=on", "burns=on", "after=on"].map(|id| in_turn(&climbed, id)), [false, true, true]);
    assert!(["before=on", "burns=on", "after=on"].iter().all(|id| climbed.kept(id)));
    assert!(climbed.why("burns=on").starts_with("one instance after another"), "{}", climbed.why("burns=on"));
    assert!(climbed.trial("step:burns=on").is_some(), "the look side by side is in the record");
    let total = climbed.record.total.as_ref().unwrap();
    let truth = 1.0 / (0.9 * 0.7 * 0.8 / 0.98);
    assert!(total.in_turn && total.gain.interval[0] <= truth && truth <= total.gain.interval[1], "{total:?}");
    assert!(climbed.record.warnings.iter().any(|warning| warning.contains("outside its own blocks")));
    assert!(climbed.record.floor.is_some());
}

#[test]
fn a_server_that_burns_next_to_nothing_is_measured_side_by_side() {
    let plan = ladder(&["gain=on"]);
    let world =
        World::new(Weather::Quiet, 6).with("", Does::Background(0.1)).with("gain=on", Does::Cpu(-10.0));
    let climbed = whole(&plan, &options(6, 60), world);
    assert!(!in_turn(&climbed, "gain=on") && climbed.kept("gain=on"));
    assert!(!climbed.record.total.as_ref().unwrap().in_turn);
}

#[test]
fn a_dial_toggled_in_place_is_toggled_in_one_live_server() {
    let plan = ladder(&["spin=on"]).in_place("spin=on");
    let world = burning(Weather::Quiet, 7).with("spin=on", Does::Cpu(-10.0));
    let climbed = whole(&plan, &options(7, 300), world);
    assert!(in_turn(&climbed, "spin=on") && climbed.kept("spin=on"), "{}", climbed.why("spin=on"));
}

/// In turn the proof is read in every pair, in which it must tell the sides apart.
#[test]
fn what_is_not_in_force_in_turn_is_not_applied() {
    for (evidence, words) in [
        (Evidence::Always, "cannot tell the sides apart"),
        (Evidence::Never, "not in force"),
        (Evidence::Unreadable, "cannot be proved"),
        (Evidence::Fades, "not in force"),
    ] {
        let plan = ladder(&["gain=on"]);
        let world = burning(Weather::Quiet, 8).with("gain=on", Does::Cpu(-30.0)).reading("gain=on", evidence);
        let climbed = whole(&plan, &options(8, 120), world);
        assert_eq!(climbed.verdict("gain=on"), V::NotApplied, "{evidence:?}");
        assert!(climbed.why("gain=on").contains(words), "{evidence:?}: {}", climbed.why("gain=on"));
    }
}

#[test]
fn a_side_that_dies_in_turn_fails_its_rung_and_no_other() {
    let died = dyno_climb::meter::Trouble::Died { status: "signal 11".into(), stderr_tail: "oops".into() };
    let plan = ladder(&["bad=on", "gain=on"]);
    let world =
        burning(Weather::Quiet, 9).with("gain=on", Does::Cpu(-20.0)).failing("bad=on", At::Block(2), died);
    let climbed = whole(&plan, &options(9, TIME_S), world);
    assert_eq!(climbed.verdict("bad=on"), V::Failed);
    assert!(climbed.kept("gain=on"), "{}", climbed.why("gain=on"));
}

/// Short of time where the rung that makes servers burn came late: each confirmation gets its share, and no first one all.
#[test]
fn confirmations_in_turn_share_the_time() {
    let plan = ladder(&["first=on", "second=on", "burns=on"]);
    let climbs = over_seeds(20, |seed| {
        let world = World::new(Weather::Quiet, seed)
            .with("first=on", Does::Cpu(-20.0))
            .with("second=on", Does::Cpu(-20.0))
            .with("burns=on", Does::Background(2.0))
            .with("burns=on", Does::Cpu(-30.0));
        whole(&plan, &options(seed, 120), world)
    });
    let confirmed = mean(climbs.iter().map(|climbed| {
        climbed.record.rungs.iter().filter(|rung| rung.leave_one_out.is_some()).count() as f64
    }));
    println!("{confirmed:.2} of 3 confirmed");
    assert!(confirmed > 2.8, "{confirmed}");
}

/// Sides whose ground is made anew for each block, and others for which nothing is: what a pair takes is each rung's own.
/// Planted fault: all pairs take what those of the last step took, and the last ones that wait have no time.
#[test]
fn confirmations_whose_ground_takes_time_leave_the_others_theirs() {
    let (dear, cheap) = (["rules=on", "queue=on", "taps=on"], ["first=on", "second=on", "third=on"]);
    let plan = ladder(&[dear, cheap].concat());
    let climbs = over_seeds(10, |seed| {
        let world = World::new(Weather::Quiet, seed);
        let world = dear
            .iter()
            .fold(world, |world, rung| world.with(rung, Does::Ground(0.2)).with(rung, Does::Cpu(-20.0)));
        let world = cheap.iter().fold(world, |world, rung| world.with(rung, Does::Cpu(-8.0)));
        whole(&plan, &options(seed, 150), world)
    });
    for climbed in &climbs {
        let left = climbed.record.rungs.iter().filter(|rung| rung.leave_one_out.is_none());
        let left: Vec<_> = left.map(|rung| (&rung.id, &rung.attempt.why)).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Side by side takes the whole share until it is seen; the share was for short pairs.
#[test]
fn what_is_seen_to_burn_gets_the_time_to_be_judged_in_turn() {
    let plan = ladder(&["burns=on", "a=on", "b=on", "c=on", "d=on", "e=on"]);
    let climbs = over_seeds(10, |seed| {
        let world = World::new(Weather::Quiet, seed)
            .with("burns=on", Does::Background(2.0))
            .with("burns=on", Does::Cpu(40.0));
        whole(&plan, &options(seed, 100), world)
    });
    for climbed in &climbs {
        let rung = climbed.rung("burns=on");
        let first = rung.first_attempt.as_ref().unwrap_or(&rung.attempt);
        assert!(first.effect_percent.is_some(), "{}", first.why);
        assert!(climbed.record.rungs.iter().all(|rung| rung.attempt.verdict != V::NotMeasured));
    }
}

#[test]
fn where_there_is_no_time_in_turn_the_share_and_the_time_it_takes_are_said() {
    let plan = ladder(&["burns=on"]);
    let climbed = |seed, time_s| {
        let world = World::new(Weather::Quiet, seed)
            .with("burns=on", Does::Background(2.0))
            .with("burns=on", Does::Cpu(-30.0));
        whole(&plan, &options(seed, time_s), world)
    };
    for seed in 1..=5 {
        let short = climbed(seed, 20);
        assert_eq!(short.verdict("burns=on"), V::NotMeasured);
        let why = short.why("burns=on");
        assert!(why.contains("% of a server's CPU was burnt outside its own blocks"), "{why}");
        assert!(short.rung("burns=on").attempt.off_block_percent > 5.0);
        let time = why.split("--time ").nth(1).and_then(|rest| rest.split('s').next());
        let time_s = time.and_then(|time| time.parse().ok()).unwrap_or_else(|| panic!("a time in {why}"));
        let long = climbed(seed, time_s);
        assert!(long.kept("burns=on") && in_turn(&long, "burns=on"), "{time_s} s: {}", long.why("burns=on"));
    }
}

/// A machine that is busy cuts a block short now and then; what is left of its work is burnt after it.
#[test]
fn blocks_that_were_cut_short_now_and_then_are_no_server_that_burns() {
    let plan = ladder(&["null=on", "large=on"]);
    let climbs = over_seeds(40, |seed| {
        let world =
            World::new(Weather::Quiet, seed).with("", Does::Cut(3.0)).with("large=on", Does::Cpu(-10.0));
        whole(&plan, &options(seed, 120), world)
    });
    let changed = share(&climbs, |climbed| in_turn(climbed, "null=on") || in_turn(climbed, "large=on"));
    let [null, large] = ["null=on", "large=on"].map(|id| share(&climbs, |climbed| climbed.kept(id)));
    println!(
        "one block in 33 cut short: measured in turn {changed:.3}, null kept {null:.3}, large {large:.3}"
    );
    assert!(changed <= 0.3 && null <= 0.05 && large >= 0.95, "{changed} {null} {large}");
}

/// What burns seldom and much is in few pairs, as if it were chance; it must not pass for seven times what it is.
#[test]
fn what_burns_at_once_every_few_seconds_is_not_misread() {
    for every_s in [1.0, 5.0] {
        let plan = ladder(&["calm=on"]);
        let climbs = over_seeds(20, |seed| {
            let world = World::new(Weather::Quiet, seed).with("calm=off", Does::Pulse(every_s));
            whole(&plan, &options(seed, TIME_S), world)
        });
        let truth = -100.0 * 0.1 / every_s;
        let read = mean(climbs.iter().filter_map(|climbed| climbed.rung("calm=on").attempt.effect_percent));
        let changed = share(&climbs, |climbed| in_turn(climbed, "calm=on"));
        println!("100 ms every {every_s} s: read {read:.2} %, true {truth:.2} %, in turn {changed:.2}");
        assert!((read - truth).abs() < 2.5, "{every_s}: {read}");
    }
}

/// A timer of 0.4 % of a CPU on one side burns for eight servers' turns, and reads as 3 %: more than the change does. Nobody can say
/// side by side whose work it was, so the interval reaches from all of it to none.
#[test]
fn what_burns_a_little_all_the_time_is_no_gain_and_no_loss() {
    for (when, truth) in [("timer=off", -0.4), ("timer=on", 0.4)] {
        let plan = ladder(&["timer=on"]);
        let climbs = over_seeds(40, |seed| {
            let world = World::new(Weather::Quiet, seed).with(when, Does::Background(0.4));
            whole(&plan, &options(seed, 120), world)
        });
        let attempts: Vec<_> =
            climbs.iter().map(|climbed| climbed.rung("timer=on").attempt.clone()).collect();
        let decided = share(&attempts, |attempt| attempt.verdict != V::NoDifference);
        let held = share(&attempts, |attempt| {
            attempt.interval_percent.is_some_and(|[low, high]| low <= truth && truth <= high)
        });
        let in_turn = share(&climbs, |climbed| in_turn(climbed, "timer=on"));
        let read = mean(attempts.iter().filter_map(|attempt| attempt.effect_percent));
        println!(
            "{when} burns 0.4 %: read {read:.2} %, true {truth} %, in turn {in_turn:.2}, decided {decided:.3}, held {held:.3}"
        );
        assert!(decided <= 0.05 && held >= 0.95, "{when}: {decided} {held}");
    }
}

/// The same beside a gain that is larger than the doubt: it is kept, confirmed, and the total holds the truth.
#[test]
fn a_gain_is_found_beside_what_burns_a_little() {
    let plan = ladder(&["gain=on"]);
    let climbs = over_seeds(30, |seed| {
        let world = World::new(Weather::Quiet, seed)
            .with("gain=on", Does::Background(0.4))
            .with("gain=on", Does::Cpu(-10.0));
        whole(&plan, &options(seed, 120), world)
    });
    // A server that burns 0.4 % of the time serves in 99.6 % of it.
    let truth = 0.9 / 0.996;
    let kept = share(&climbs, |climbed| climbed.kept("gain=on"));
    let held = share(&climbs, |climbed| {
        climbed.record.total.as_ref().is_some_and(|total| {
            let [low, high] = total.gain.interval;
            low <= 1.0 / truth && 1.0 / truth <= high
        })
    });
    println!("10 % beside 0.4 % of a CPU: kept {kept:.2}, totals that hold the truth {held:.3}");
    assert!(kept >= 0.95 && held >= 0.96, "{kept} {held}");
}
