//! The simulator: the real core, protocol, timer wheel and queue on a simulated network and clock, by the seed.
//!
//! `cargo xtask simulate` runs many seeds and replays one; a part of them runs with the ordinary tests. A seed that fails
//! is made smaller and told with what happened in it.

#[cfg(test)]
use crate::fault::{self, Fault};
use crate::model;
use crate::simulator::check::check;
use crate::simulator::content::HAS_CONTENT;
use crate::simulator::door::Door;
use crate::simulator::handlers::HAS_SILENT;
use crate::simulator::hosts;
use crate::simulator::net::Manner;
use crate::simulator::world::{MODEL_LIMITS, Mode, Scenario, World};
use crate::traffic::{Mix, conversation};
use dyno_measure::Prng;
use std::panic::{AssertUnwindSafe, catch_unwind};

const MIX: Mix = Mix { requests_max: 5, body_bytes_max: 3_000, hostile_percent: 25, limits: MODEL_LIMITS };

/// Seeds that run with the ordinary tests, where nothing is optimised: a few seconds. `DYNO_SEEDS` asks for others, as
/// `FIRST..LAST`.
const SEEDS: std::ops::Range<u64> = 0..3_000;

thread_local! {
    /// What the last panic of this thread said, and where.
    static LAST_PANIC: std::cell::Cell<String> = const { std::cell::Cell::new(String::new()) };
}

/// Seeds within which every planted fault must be seen.
const FAULT_SEEDS: u64 = 20_000;

fn scenario(seed: u64) -> Scenario {
    let mut chance = Prng::new(seed);
    let mode = match chance.below(10) {
        0..4 => Mode::Patient,
        4 => Mode::Slow,
        5..7 => Mode::Draining,
        7..9 => Mode::Rude,
        _ => Mode::Tight,
    };
    let is_direct = chance.coin();
    let manner = Manner {
        reads_on: !is_direct && chance.coin(),
        tells_once: !is_direct && chance.coin(),
        replies_alone: !is_direct && chance.coin(),
        splits: !is_direct && chance.coin(),
    };
    let room_max = [200, 5_000, 60_000, 1 << 20][chance.below(4) as usize];
    // A buffer that holds less than the progress that is asked for in a stretch of time is nobody's.
    let room_max = if mode == Mode::Slow { room_max.max(5_000) } else { room_max };
    let mut scripts: Vec<_> =
        (0..=chance.below(3)).map(|_| split(&conversation(&mut chance, &MIX))).collect();
    let salt = match mode {
        Mode::Rude | Mode::Tight => chance.next_u64() as u32 | HAS_SILENT,
        Mode::Patient | Mode::Draining | Mode::Slow => chance.next_u64() as u32 & !HAS_SILENT,
    };
    if salt & HAS_CONTENT != 0 {
        let may_be_cut = matches!(mode, Mode::Rude | Mode::Tight);
        scripts.iter_mut().for_each(|script| add_content(&mut chance, script, salt, may_be_cut));
    }
    Door::name_clients(seed, &mut scripts);
    Scenario { seed, mode, scripts, manner, room_max, salt }
}

/// Puts requests for files between the others, and for what else hosts have; the last piece may be no request.
fn add_content(chance: &mut Prng, script: &mut Vec<Vec<u8>>, salt: u32, may_be_cut: bool) {
    for _ in 0..chance.below(5) {
        let at = chance.below(script.len() as u64) as usize;
        script.insert(at, hosts::request(chance, salt, may_be_cut));
    }
}

/// A conversation as its requests, as far as they can be told apart: what shrinking takes away.
pub(crate) fn split(bytes: &[u8]) -> Vec<Vec<u8>> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    for step in model::understand(bytes, &MODEL_LIMITS) {
        if let model::Step::Request(request) = step {
            pieces.push(bytes[at..request.ends_at].to_vec());
            at = request.ends_at;
        }
    }
    pieces.push(bytes[at..].to_vec());
    pieces
}

/// Runs a scenario; what went wrong, if anything did.
fn fails(scenario: &Scenario) -> Option<String> {
    let run = || {
        let mut world = World::new(scenario.clone(), false);
        world.run();
        check(&world);
    };
    catch_unwind(AssertUnwindSafe(run)).err()?;
    Some(LAST_PANIC.with(|last| last.take()))
}

/// Takes away what a failure does not need: whole clients, then requests.
fn shrink(mut scenario: Scenario) -> Scenario {
    let mut is_smaller = true;
    while is_smaller {
        is_smaller = false;
        for client in (0..scenario.scripts.len()).rev() {
            let mut without = scenario.clone();
            without.scripts.remove(client);
            if !without.scripts.is_empty() && fails(&without).is_some() {
                (scenario, is_smaller) = (without, true);
                continue;
            }
            for piece in (0..scenario.scripts[client].len()).rev() {
                let mut without = scenario.clone();
                without.scripts[client].remove(piece);
                if fails(&without).is_some() {
                    (scenario, is_smaller) = (without, true);
                }
            }
        }
    }
    scenario
}

/// What is told of a seed that fails.
fn report(seed: u64, why: &str) -> String {
    let small = shrink(scenario(seed));
    let small_why = fails(&small).unwrap_or_else(|| "made smaller it does not fail".to_owned());
    let mut world = World::new(small.clone(), true);
    let _failed_again = catch_unwind(AssertUnwindSafe(|| world.run()));
    let trace = world.trace.take().unwrap_or_default();
    let first = trace.len().saturating_sub(60);
    let scripts: Vec<String> =
        small.scripts.iter().map(|script| script.concat().escape_ascii().to_string()).collect();
    format!(
        "seed {seed}: {why}\n  {:?}, {:?}, room for {} bytes; clients send\n  {}\n{}\n{small_why}\nreplay: cargo xtask simulate {seed}",
        small.mode,
        small.manner,
        small.room_max,
        scripts.join("\n  "),
        trace[first..].iter().map(|line| format!("    {line}\n")).collect::<String>(),
    )
}

/// Handlers panic on purpose and faults are expected: nothing of it is printed.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let is_simulated = std::thread::current().name().is_some_and(|name| name == "simulator");
            if is_simulated {
                LAST_PANIC.with(|last| last.set(info.to_string()));
            } else {
                before(info);
            }
        }));
    });
    work()
}

fn seeds() -> std::ops::Range<u64> {
    let asked = std::env::var("DYNO_SEEDS").ok();
    let parsed = asked.as_deref().and_then(|text| {
        let (first, last) = text.split_once("..")?;
        Some(first.parse().ok()?..last.parse().ok()?)
    });
    assert!(asked.is_none() || parsed.is_some(), "DYNO_SEEDS is FIRST..LAST, not {asked:?}");
    parsed.unwrap_or(SEEDS)
}

fn run_all(seeds: std::ops::Range<u64>) -> Result<(), String> {
    for seed in seeds {
        if let Some(why) = fails(&scenario(seed)) {
            return Err(report(seed, &why));
        }
    }
    Ok(())
}

/// All seeds, on every CPU.
#[test]
fn every_seed_is_served_as_the_model_says() {
    let all = seeds();
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let share = (all.end - all.start).div_ceil(threads).max(1);
    let parts = (0..threads).map(|part| {
        let first = (all.start + part * share).min(all.end);
        first..(first + share).min(all.end)
    });
    let threads: Vec<_> = parts
        .map(|part| {
            let thread = std::thread::Builder::new().name("simulator".to_owned());
            thread.spawn(move || quietly(|| run_all(part))).expect("a thread can be started")
        })
        .collect();
    for thread in threads {
        if let Err(report) = thread.join().expect("failures are values here") {
            panic!("{report}");
        }
    }
    println!("seeds {}..{} passed", all.start, all.end);
}

/// A fault that the simulator does not see is a promise that it does not keep.
#[test]
fn every_planted_fault_is_seen() {
    let threads: Vec<_> = Fault::ALL
        .iter()
        .map(|&planted| {
            let thread = std::thread::Builder::new().name("simulator".to_owned());
            let search = move || {
                fault::plant(planted);
                quietly(|| (0..FAULT_SEEDS).find(|&seed| fails(&scenario(seed)).is_some()))
            };
            (planted, thread.spawn(search).expect("a thread can be started"))
        })
        .collect();
    let mut unseen = Vec::new();
    for (planted, thread) in threads {
        match thread.join().expect("failures are values here") {
            Some(seed) => println!("{planted:?}: seen by seed {seed}"),
            None => unseen.push(planted),
        }
    }
    assert!(unseen.is_empty(), "not seen within {FAULT_SEEDS} seeds: {unseen:?}");
}
