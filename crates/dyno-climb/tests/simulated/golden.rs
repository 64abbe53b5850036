//! Whole climbs with fixed seeds, figure by figure: a change of how a climb decides shows here what changes with it.
//!
//! `tests/golden/climbs.txt` holds a line for each part of each record; floating-point figures have ten digits, blocks and
//! latencies are hashed. A change that is meant is written down with `GOLDEN=write cargo test`. Planted fault: any bound, sign
//! or count of the climb that is another one.

use dyno_climb::climb::{Options, Order};
use dyno_climb::load::LoadSpec;
use dyno_climb::meter::Trouble;
use dyno_climb::plan::Plan;
use dyno_measure::series::Metric;
use serde_json::Value;

use crate::ladder::{Edit, climbed, ladder, options};
use crate::noise::Weather;
use crate::world::{At, Does, Evidence, World};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/climbs.txt");

/// Ten digits: the last ones of a logarithm are the C library's.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::from(format!("{:.9e}", number.as_f64().unwrap())),
        Value::Array(all) => all.iter().map(rounded).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), short(key, value))).collect(),
        other => other.clone(),
    }
}

/// What was measured, block by block, is only worth knowing to be the same.
fn short(key: &str, value: &Value) -> Value {
    match (key, value) {
        ("pairs" | "tails" | "rounds" | "round_starts" | "latencies", Value::Array(all)) => {
            Value::from(format!("{} of {:016x}", all.len(), hash(&value.to_string())))
        }
        _ => rounded(value),
    }
}

/// Fowler, Noll and Vo: short, and the same everywhere.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Each trial by itself; rounds and their starts are a part each.
fn parts_of(series: &serde_json::Map<String, Value>) -> Vec<(&str, &Value)> {
    let mut parts = Vec::new();
    for (key, value) in series {
        match value {
            Value::Array(all) if key == "trials" => parts.extend(all.iter().map(|one| (key.as_str(), one))),
            one => parts.push((key.as_str(), one)),
        }
    }
    parts
}

/// A line for each rung, each trial and each of the other parts.
fn lines(name: &str, plan: &Plan, options: &Options, world: World) -> String {
    let record = climbed(plan, options, world).record;
    let Value::Object(whole) = serde_json::to_value(&record).unwrap() else { panic!("a record has parts") };
    let mut out = format!("{name}\n");
    for (key, value) in &whole {
        let parts: Vec<(&str, &Value)> = match value {
            Value::Array(all) => all.iter().map(|one| (key.as_str(), one)).collect(),
            Value::Object(all) if key == "series" => parts_of(all),
            one => vec![(key.as_str(), one)],
        };
        parts.iter().for_each(|(key, part)| out += &format!("  {key} {}\n", short(key, part)));
    }
    out
}

fn quiet() -> World {
    World::new(Weather::Quiet, 5).with("gain=on", Does::Cpu(-10.0)).with("small=on", Does::Cpu(-2.5))
}

/// A gain, a small one, nothing, and a harm.
const STEPS: [&str; 4] = ["gain=on", "small=on", "null=on", "harm=on"];

fn told() -> String {
    let plan = || ladder(&STEPS);
    let long = options(5, 600);
    let harm = |world: World| world.with("harm=on", Does::Cpu(4.0));
    let small_load = LoadSpec { connections: 1, ..LoadSpec::default() };
    let climbs = [
        lines("as it is by default", &plan(), &options(5, 240), harm(quiet())),
        lines("with time enough", &plan(), &long, harm(quiet())),
        lines(
            "in a contended hour, the other way round",
            &plan(),
            &Options { order: Order::Reverse, ..long.clone() },
            {
                let world = World::new(Weather::Contended, 6).with("gain=on", Does::Cpu(-10.0));
                harm(world.starting(1.0))
            },
        ),
        lines(
            "starts that differ, shuffled",
            &plan(),
            &Options { order: Order::Shuffle(3), ..long.clone() },
            harm(quiet().starting(2.0).remembering(1.0)),
        ),
        lines("bursts", &plan(), &long, harm(quiet()).with("small=on", Does::Bursts(0.1))),
        lines("rare bursts", &plan(), &long, harm(quiet()).with("null=on", Does::Rare(0.01, 11.0))),
        lines("who burns is visited in turn", &plan(), &long, harm(quiet()).with("", Does::Background(2.0))),
        lines(
            "it burns from a rung on",
            &plan(),
            &long,
            harm(quiet()).with("small=on", Does::Background(3.0)),
        ),
        lines("a tail, and memory", &plan(), &long, {
            harm(quiet()).with("gain=on", Does::Tail(50.0)).with("small=on", Does::Memory(20.0))
        }),
        lines("stand-ins", &ladder(&["a=on", "b=on", "c=on"]), &long, {
            let world = World::new(Weather::Quiet, 7);
            world.with("a=on b=off", Does::Cpu(-8.0)).with("b=on", Does::Cpu(-8.0))
        }),
        lines(
            "in place, with a limit",
            &Plan { memory_max_bytes: Some(21_000_000), ..plan().in_place("gain=on") },
            &long,
            harm(quiet()).with("small=on", Does::Memory(10.0)),
        ),
        lines(
            "what is needed, and a load of its own",
            &{
                let plan = plan().needing("small=on", "gain=on").needing("harm=on", "null=on");
                let plan = plan.edit("small=on", |rung| rung.load = Some(small_load.clone()));
                plan.edit("gain=on", |rung| rung.metric = Metric::SecondsPerRequest)
            },
            &long,
            harm(quiet()),
        ),
        lines("ageing and warming", &plan(), &long, {
            harm(quiet()).with("gain=on", Does::WarmUp(20.0, 2.0)).with("small=on", Does::Ageing(0.5))
        }),
        lines("not in force, and not readable", &plan(), &long, {
            harm(quiet()).reading("gain=on", Evidence::Never).reading("null=on", Evidence::Unreadable)
        }),
        lines("proved on most", &plan(), &long, harm(quiet()).reading("small=on", Evidence::OnMost)),
        lines("slow grounds", &plan(), &options(5, 120), harm(quiet()).with("small=on", Does::Ground(0.5))),
        lines(
            "two instances",
            &plan(),
            &Options { instances: 2, ..long.clone() },
            harm(quiet().starting(0.5)),
        ),
        lines("a rung that cannot be opened", &plan(), &long, {
            let trouble = Trouble::Died { status: "exit status: 1".into(), stderr_tail: "gone".into() };
            harm(quiet()).failing("small=on", At::Open, trouble)
        }),
    ];
    climbs.concat()
}

#[test]
fn climbs_with_fixed_seeds_are_as_they_were() {
    let said = told();
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(GOLDEN, &said).unwrap();
    }
    let wanted = std::fs::read_to_string(GOLDEN).unwrap();
    for (was, is) in wanted.lines().zip(said.lines()) {
        assert_eq!(was, is);
    }
    assert_eq!(wanted.lines().count(), said.lines().count(), "lines are missing");
}
