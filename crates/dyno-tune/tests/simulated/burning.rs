//! Servers that burn CPU outside their own blocks: measured one after another, and judged rightly.

use dyno_measure::Prng;
use dyno_measure::judge::{Next, Verdict, next};
use dyno_measure::record::RungVerdict as V;
use dyno_measure::series::{Block, Metric, Pair, Side, Trial};
use dyno_measure::units::log_of_percent;
use dyno_tune::climb::rule_of;
use dyno_tune::plan::Plan;

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
    climbed.rung(id).attempt.trial.as_ref().is_some_and(|trial| trial.ends_with(":in-turn"))
}

/// Two rungs without an effect around one of 10 %.
fn plan() -> Plan {
    ladder(&["null=on", "large=on", "other=on"])
}

fn climbs(weather: Weather, seeds: u64) -> Vec<Climbed> {
    over_seeds(seeds, |seed| {
        let world = burning(weather, seed).with("large=on", Does::Cpu(-10.0));
        let mut climbed = whole(&plan(), &options(seed, TIME_S), world);
        climbed.record.series = dyno_measure::record::Series::default();
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
    let mood = |_| {
        *now_ns += 26_000_000;
        noise.of_block(*now_ns, rng).exp()
    };
    (0..SLICES).map(mood).sum::<f64>().ln() - (SLICES as f64).ln()
}

/// A trial of instances one after another, without a climb around it: thousands take a second.
fn trial(weather: Weather, seed: u64, percent: f64) -> Trial {
    let mut rng = Prng::new(seed);
    let (mut noise, mut now_ns) = (Noise::new(weather, &mut rng), 0);
    let mut trial = Trial::new("step:x:in-turn", Metric::CpuPerRequest);
    let rule = rule_of(&trial);
    for instance in 0..rule.last as u32 {
        let first = if rng.coin() { Side::A } else { Side::B };
        let moods = [0, 1].map(|_| visit(&mut noise, &mut now_ns, &mut rng) + 0.003 * rng.normal());
        let [a, b] = Side::BOTH.map(|side| {
            let changed = if side == Side::B { log_of_percent(percent) } else { 0.0 };
            let cost_ns = 6_000.0 * (changed + moods[usize::from(side != first)]).exp();
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
                match next(&trial, &rule_of(&trial), seed) {
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
    assert!(climbed.record.trial("step:burns=on").is_some(), "the look side by side is in the record");
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
    let died = dyno_tune::meter::Trouble::Died { status: "signal 11".into(), stderr_tail: "oops".into() };
    let plan = ladder(&["bad=on", "gain=on"]);
    let world =
        burning(Weather::Quiet, 9).with("gain=on", Does::Cpu(-20.0)).failing("bad=on", At::Block(2), died);
    let climbed = whole(&plan, &options(9, TIME_S), world);
    assert_eq!(climbed.verdict("bad=on"), V::Failed);
    assert!(climbed.kept("gain=on"), "{}", climbed.why("gain=on"));
}
