//! Causal profiles of simulated machines with fixed seeds, figure by figure: a change of how a verdict is reached shows
//! here what changes with it.
//!
//! `tests/golden/causal.txt` holds one line per record and per site; floating-point figures are rounded to twelve digits,
//! windows are hashed. A change that is meant is written down with `GOLDEN=write cargo test`.
#![allow(clippy::unwrap_used)]

// Truths are asked for elsewhere.
#[allow(dead_code)]
#[path = "causal/machine.rs"]
mod machine;
#[path = "causal/programs.rs"]
mod programs;

use std::fmt::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dyno_profile::Error;
use dyno_profile::causal::{Asked, Hooks, Pause, Rig, Span, Treatment, Window, run};
use dyno_record::causal::{Causal, Metric};
use serde_json::Value;

use machine::Step::{Run, Visit};
use machine::{Machine, NOISY, Noise, Program, QUIET};
use programs::{MS, all, balanced, lock, pipeline, profiled, profiled_on, program, single, tried};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/causal.txt");

/// Twelve digits: the last ones of a logarithm are the C library's.
fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => Value::from(format!("{:.11e}", number.as_f64().unwrap())),
        Value::Array(all) => all.iter().map(rounded).collect(),
        Value::Object(all) => all.iter().map(|(key, value)| (key.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

/// Fowler, Noll and Vo: short, and the same everywhere.
fn hash(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn lines(what: &str, record: &Causal) -> String {
    let mut whole = rounded(&serde_json::to_value(record).unwrap());
    let sites = whole.as_object_mut().unwrap().remove("sites").unwrap();
    let mut out = format!("{what}\n  {whole}\n");
    for mut site in sites.as_array().unwrap().clone() {
        let windows = site.as_object_mut().unwrap().remove("windows").unwrap();
        let count = windows.as_array().unwrap().len();
        writeln!(out, "  {site} windows {count} {:016x}", hash(&windows.to_string())).unwrap();
    }
    out
}

fn asked(program: &Program, budget_s: u64, seed: u64) -> Asked {
    Asked {
        levels_percent: Asked::LEVELS_PERCENT.to_vec(),
        budget: Duration::from_secs(budget_s),
        seed,
        metric: Metric::Throughput,
        progress: "visit".to_owned(),
        cpus: program.threads.len(),
    }
}

/// A machine on which something happens after so many windows.
struct Odd<'a> {
    machine: Machine,
    windows: u64,
    happens: Box<dyn FnMut(u64, Window) -> Result<Window, Error> + 'a>,
}

impl Rig for Odd<'_> {
    fn window(&mut self, treatment: &Treatment, span: Span) -> Result<Window, Error> {
        self.windows += 1;
        let window = self.machine.window(treatment, span)?;
        (self.happens)(self.windows, window)
    }

    fn detached(&mut self, span: Span) -> Result<Window, Error> {
        self.machine.detached(span)
    }

    fn hooks(&mut self, _length: Duration) -> Result<Option<Hooks>, Error> {
        let ran = vec![("samples", 4 * MS, 2_000), ("switches", 0, 0)];
        Ok(Some(Hooks { machine_ns: 2_000 * MS, length_ns: 1_000 * MS, ran }))
    }

    fn period_ns(&self) -> u64 {
        self.machine.period_ns()
    }

    fn pause(&self) -> Pause {
        self.machine.pause()
    }

    fn entries_per_second(&mut self, site: usize, length: Duration) -> Result<Option<f64>, Error> {
        self.machine.entries_per_second(site, length)
    }
}

/// A profile of `single` on which something happens, with its events.
fn odd<'a>(
    stop: &AtomicBool,
    happens: impl FnMut(u64, Window) -> Result<Window, Error> + 'a,
) -> (Causal, String) {
    let (program, mut events) = (single(), String::new());
    let machine = Machine::new(&program, NOISY, 4);
    let clock = machine.clock();
    let mut rig = Odd { machine, windows: 0, happens: Box::new(happens) };
    let asked = asked(&program, 20, 4);
    let record = run(
        &asked,
        &mut rig,
        &tried(3),
        &clock,
        &mut |event| {
            let point = event.running.map(|point| (point.speedup_percent, point.rounds));
            writeln!(events, "{} {} {point:?} {:?} {:?}", event.site, event.round, event.done, event.left)
                .unwrap();
        },
        stop,
    );
    (record.unwrap(), events)
}

fn simulated() -> String {
    let mut out = String::new();
    for (what, program, sites) in all() {
        let record = profiled(&program, sites, NOISY, 15 * sites as u64, 7);
        out += &lines(&format!("{what}, noisy, seed 7"), &record);
    }
    for (what, program) in [("pipeline", pipeline()), ("lock 2000/2000", lock(2 * MS, 2 * MS))] {
        let machine = Machine::new(&program, NOISY, 11).with_cheap_interrupts();
        let record = profiled_on(machine, &program, 2, 30, 11);
        out += &lines(&format!("{what}, cheap interrupts, seed 11"), &record);
    }
    for (room, budget_s) in [(8, 240), (8, 120), (4, 30)] {
        let record = profiled(&balanced(room), 2, QUIET, budget_s, 5);
        out += &lines(&format!("a queue with room for {room}, {budget_s} s, seed 5"), &record);
    }
    out += &lines("others on the CPUs", &profiled(&single(), 1, Noise { foreign: 0.3, ..QUIET }, 10, 1));
    out += &lines("watching is dear", &profiled(&single(), 1, Noise { attached: 0.6, ..NOISY }, 60, 1));
    let rare = program(&[&[Run(0, 3_000 * MS), Visit]], &[]);
    out += &lines("rare progress", &profiled(&rare, 1, QUIET, 30, 1));
    out
}

fn interrupted() -> String {
    let mut out = String::new();
    let go_on = AtomicBool::new(false);
    let (record, events) = odd(&go_on, |at, window| Ok(Window { expired: at % 4 == 0, ..window }));
    out += &lines("every fourth window cut short", &record);
    writeln!(out, "  told {} {:016x}", events.lines().count(), hash(&events)).unwrap();
    let (record, _) = odd(&go_on, |at, window| match at {
        70.. => Err(Error::Ended { pid: 7, after_s: 12.5 }),
        _ => Ok(window),
    });
    out += &lines("the target ends", &record);
    let stop = AtomicBool::new(false);
    let (record, events) = odd(&stop, |at, window| {
        stop.store(at >= 90, Ordering::Relaxed);
        Ok(window)
    });
    out += &lines("somebody stops it", &record);
    writeln!(out, "  told {} {:016x}", events.lines().count(), hash(&events)).unwrap();
    out
}

#[test]
fn the_same_seed_gives_the_same_figures_as_ever() {
    let found = simulated() + &interrupted();
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(GOLDEN, &found).unwrap();
    }
    let wanted = std::fs::read_to_string(GOLDEN).unwrap();
    for (at, (found, wanted)) in found.lines().zip(wanted.lines()).enumerate() {
        assert_eq!(found, wanted, "line {}", at + 1);
    }
    assert_eq!(found.lines().count(), wanted.lines().count());
}
