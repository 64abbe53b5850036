//! What is told of series with fixed seeds, figure by figure: a change of how an answer is reached shows here what changes
//! with it. Whether the answers are right is asked beside the code and by simulated climbs.
//!
//! `tests/golden/figures.txt` holds a line for each; floating-point figures have ten digits. A change that is meant is written
//! down with `GOLDEN=write cargo test`. Planted fault: any constant, sign or bound of the judge that is another one.
#![allow(clippy::unwrap_used)]

use std::fmt::Write;

use dyno_measure::between::{Between, planned, visible};
use dyno_measure::dependence::{Told, series_level, series_paired, series_unpaired};
use dyno_measure::estimate::{Estimate, compare_paired, ratio_of_totals, spread_of_starts, trimmed_mean};
use dyno_measure::judge::{Basis, Guards, Judgement, Next, Rule, Veto, aside, cut_short, next, tail_growth};
use dyno_measure::rounds::Levels;
use dyno_measure::series::{Block, Metric, Pair, Side, Trial};
use dyno_measure::usl::{self, Point};
use dyno_measure::{Histogram, Prng, normal, shares, stats, student};

const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/figures.txt");

/// Ten digits: the last ones of a logarithm are the C library's.
fn figure(value: f64) -> String {
    format!("{value:.9e}")
}

fn figures(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(figure).collect::<Vec<_>>().join(" ")
}

fn told(estimate: &Estimate) -> String {
    let Estimate { log_ratio, error, half_width, n, uncharged } = *estimate;
    let [low, high] = estimate.interval_percent();
    let read = [log_ratio, error, half_width, estimate.percent(), low, high, estimate.at_most_percent()];
    let uncharged =
        if uncharged == 0.0 { String::new() } else { format!(" uncharged {}", figure(uncharged)) };
    format!("n {n} {}{uncharged}", figures(read))
}

fn maybe(estimate: Option<Estimate>) -> String {
    estimate.map_or("none".to_owned(), |estimate| told(&estimate))
}

fn judged(judgement: &Judgement) -> String {
    let Judgement { verdict, estimate, end, veto, basis } = judgement;
    let veto = veto.as_ref().map_or("no veto".to_owned(), Veto::to_string);
    format!("{verdict:?} {end:?} by {basis:?}, {veto}: {}", told(estimate))
}

fn followed(next: &Next) -> String {
    match next {
        Next::More(latest) => format!("more: {}", maybe(*latest)),
        Next::Bursty => "bursty".to_owned(),
        Next::Done(judgement) => judged(judgement),
    }
}

/// What a series is like: effects, noise and spreads as logarithms.
#[derive(Clone, Copy)]
struct World {
    name: &'static str,
    effect: f64,
    noise: f64,
    /// Between starts.
    spread: f64,
    /// The share of B's blocks that are dearer, and how many times.
    bursts: (f64, f64),
    /// Growth of B's tail.
    tail: f64,
    servers: u32,
}

const PLAIN: World =
    World { name: "plain", effect: 0.0, noise: 0.01, spread: 0.0, bursts: (0.0, 1.0), tail: 1.0, servers: 4 };

fn worlds() -> Vec<World> {
    vec![
        PLAIN,
        World { name: "noisy", noise: 0.06, ..PLAIN },
        World { name: "two percent", effect: -0.02, ..PLAIN },
        World { name: "half a percent", effect: -0.005, noise: 0.02, ..PLAIN },
        World { name: "dearer", effect: 0.05, ..PLAIN },
        World { name: "a tenth of it", effect: -2.3, ..PLAIN },
        World { name: "starts differ", spread: 0.02, ..PLAIN },
        World { name: "starts differ, and an effect", spread: 0.02, effect: -0.05, ..PLAIN },
        World { name: "eight starts", spread: 0.01, servers: 8, effect: -0.01, ..PLAIN },
        World { name: "one start", servers: 1, effect: -0.01, ..PLAIN },
        World { name: "rare bursts", bursts: (0.01, 11.0), effect: -0.05, ..PLAIN },
        World { name: "bursts", bursts: (0.1, 2.0), ..PLAIN },
        World { name: "small bursts", bursts: (0.15, 1.05), effect: -0.1, ..PLAIN },
        World { name: "small bursts of a tenth", bursts: (0.2, 1.3), effect: -2.3, ..PLAIN },
        World { name: "bursts that pay it back", bursts: (0.05, 3.0), effect: -0.03, ..PLAIN },
        World { name: "a longer tail", tail: 1.3, effect: -0.05, ..PLAIN },
        World { name: "a longer tail of two", tail: 1.15, effect: -0.05, servers: 2, ..PLAIN },
    ]
}

fn block(rng: &mut Prng, scale: f64, tail: f64) -> (Block, Histogram) {
    let replies = 3_900 + rng.below(200);
    let mut latencies = Histogram::new();
    for _ in 0..40 {
        latencies.record_n((300_000.0 * scale * (0.1 * rng.normal()).exp()) as u64, replies / 41);
    }
    latencies.record_n((2_000_000.0 * tail * (0.05 * rng.normal()).exp()) as u64, replies / 41);
    let block = Block {
        replies,
        wall_ns: (25e6 * scale) as u64,
        cpu_in_ns: (6_000.0 * scale * replies as f64) as u64,
        cpu_off_ns: 50_000 + rng.below(10_000),
        p50_ns: latencies.quantile(0.5),
        p99_ns: latencies.quantile(0.99),
        generator_ns: 9_000_000 + rng.below(500_000),
        events_per_wait_milli: 12_000 + rng.below(900),
        ..Block::default()
    };
    (block, latencies)
}

fn trial(world: &World, metric: Metric, pairs: usize) -> Trial {
    let mut rng = Prng::new(2_026);
    let starts: Vec<f64> = (0..world.servers).map(|_| world.spread * rng.normal()).collect();
    let mut trial = Trial::of_starts(metric, world.servers as usize);
    for n in 0..pairs {
        let instance = n as u32 % world.servers;
        // What both blocks of a pair have in common.
        let weather = 0.05 * rng.normal();
        let wild = if rng.unit() < 0.05 { 5.0 } else { 1.0 };
        let burst = if rng.unit() < world.bursts.0 { world.bursts.1 } else { 1.0 };
        let effect = world.effect + starts[instance as usize] + world.noise * wild * rng.normal();
        let (a, of_a) = block(&mut rng, weather.exp(), 1.0);
        let (b, of_b) = block(&mut rng, burst * (weather + effect).exp(), world.tail);
        let first = if rng.coin() { Side::A } else { Side::B };
        trial.add(Pair { first, instance, a, b }, [&of_a, &of_b]);
    }
    trial.rss_peak_bytes = [20_000_000, 23_000_000];
    trial.memory_bytes = [20_000_000, 22_000_000].map(|bytes| (0..4).map(|n| bytes + 40_000 * n).collect());
    trial
}

fn rules() -> Vec<(&'static str, Rule)> {
    let known = Between { variance: 0.01_f64.powi(2), error: 1e-4 };
    let quick = Rule::QUICK;
    vec![
        ("quick", quick),
        ("totals", quick.by_totals()),
        ("instances", Rule { first: 8, step: 4, last: 40, ..quick.by_instances() }),
        ("paying", quick.paying_for(known)),
        ("paying, totals", quick.by_totals().paying_for(known)),
        ("paying for what is supposed", quick.paying_for(Between::SUPPOSED).giving_up_below(0.05)),
        ("gives up", quick.giving_up_below(0.05)),
        ("gives up, finer", Rule { worthwhile_percent: 0.25, ..quick.giving_up_below(0.1) }),
        ("a limit", quick.within(Some(21_000_000))),
        ("points", Rule { guards: Guards::Points, outside: false, ..quick }),
        ("points, totals", Rule { guards: Guards::Points, outside: false, ..quick.by_totals() }),
        ("once", Rule::once(60, 2.576)),
    ]
}

fn answers(out: &mut String) {
    for world in worlds() {
        for (name, rule) in rules() {
            for pairs in [12, 33, 64, 240] {
                let trial = trial(&world, Metric::CpuPerRequest, pairs);
                let answer = followed(&next(&trial, &rule, 7));
                let last = cut_short(&trial, &rule, 7).map_or("none".to_owned(), |one| judged(&one));
                let last = if answer == last { "the same".to_owned() } else { last };
                writeln!(out, "{} · {name} · {pairs}: {answer} | {last}", world.name).unwrap();
            }
        }
    }
}

fn parts(out: &mut String) {
    for world in worlds() {
        for metric in [Metric::CpuPerRequest, Metric::SecondsPerRequest, Metric::P50] {
            let trial = trial(&world, metric, 64);
            let ratios: Vec<f64> = trial.pairs.iter().map(|pair| pair.log_ratio(metric)).collect();
            let (name, pairs) = (world.name, &trial.pairs);
            writeln!(out, "{name} · {metric}: trimmed {}", told(&trimmed_mean(&ratios, 3.06))).unwrap();
            writeln!(out, "{name} · {metric}: totals {}", told(&ratio_of_totals(metric, pairs, 3.06, 5)))
                .unwrap();
            for basis in [Basis::Pairs, Basis::Totals, Basis::Instances] {
                let read = maybe(aside(&trial, metric, basis, 5));
                writeln!(out, "{name} · {metric}: aside by {basis:?} {read}").unwrap();
            }
        }
        let trial = trial(&world, Metric::CpuPerRequest, 240);
        writeln!(out, "{} · tail {}", world.name, maybe(tail_growth(&trial))).unwrap();
        let quantiles = [0.5, 0.9, 0.99, 0.999].map(|q| Side::BOTH.map(|side| trial.latency_ns(side, q)));
        writeln!(out, "{} · latencies {quantiles:?}", world.name).unwrap();
        for side in Side::BOTH {
            let totals = trial.totals(side);
            let read =
                [totals.cpu_us_per_request(), totals.requests_per_second(), totals.off_block_percent()];
            writeln!(out, "{} · {side:?} {totals:?} {}", world.name, figures(read)).unwrap();
        }
    }
}

fn spreads(out: &mut String) {
    let read = |world: &World| {
        let trial = trial(world, Metric::CpuPerRequest, 96);
        spread_of_starts(Metric::CpuPerRequest, &trial.pairs)
    };
    let all: Vec<_> = worlds().iter().filter_map(read).collect();
    for count in [0, 1, 3, all.len()] {
        let known = Between::pooled(&all[..count]);
        let read = [known.variance, known.error, known.percent()];
        writeln!(out, "between, of {count}: {}", figures(read)).unwrap();
        for (pairs, starts) in [(30, 4), (240, 8), (12, 1)] {
            let one = planned(known, 4e-4, pairs, starts, 3.06);
            let seen = visible(&[one, [0.01, 0.03]], 0.8);
            writeln!(out, "  planned of {pairs} in {starts}: {} {}", figures(one), figure(seen)).unwrap();
        }
    }
    for (pairs, error) in [(30, 0.002), (60, 0.01), (210, 0.01)] {
        let rule = Rule::QUICK.giving_up_below(0.1);
        writeln!(out, "gives up within: {}", figure(rule.gives_up_within(pairs, error))).unwrap();
    }
}

/// Numbers around `level` of which each keeps a part of the one before.
fn numbers(rng: &mut Prng, n: usize, level: f64, keeps: f64, noise: f64) -> Vec<f64> {
    let mut at = 0.0;
    let mut step = || {
        at = keeps * at + (1.0 - keeps * keeps).sqrt() * rng.normal();
        level * (noise * at).exp()
    };
    (0..n).map(|_| step()).collect()
}

fn lists(out: &mut String) {
    let whole = |told: Option<Told>| {
        told.map_or("none".to_owned(), |told| {
            let depends = told.dependence.map_or("independent".to_owned(), |seen| format!("{seen:.10?}"));
            format!("tells {} {depends}: {}", told.tells, self::told(&told.estimate))
        })
    };
    for n in [4, 6, 12, 40, 300] {
        for keeps in [0.0, 0.3, 0.6, 0.85, 0.97] {
            let mut rng = Prng::new(99);
            let a = numbers(&mut rng, n, 100.0, keeps, 0.02);
            let b = numbers(&mut rng, n, 97.0, keeps, 0.03);
            let name = format!("{n} numbers, keeping {keeps}");
            writeln!(out, "{name}: paired {}", whole(series_paired(&a, &b, 0.01))).unwrap();
            writeln!(out, "{name}: unpaired {}", whole(series_unpaired(&a, &b, 0.01))).unwrap();
            writeln!(out, "{name}: in turns {}", maybe(compare_paired(&a, &b, 0.01))).unwrap();
            let level = series_level(&a, 0.01).map_or("none".to_owned(), |l| figures([l.log, l.half_width]));
            writeln!(out, "{name}: level {level}").unwrap();
        }
    }
}

fn rounds(out: &mut String) {
    for (name, spread, burst) in [("alike", 0.0, 1.0), ("starts differ", 0.03, 1.0), ("bursts", 0.0, 3.0)] {
        let mut rng = Prng::new(4);
        let mut starts = Vec::new();
        let rounds: Vec<Vec<Block>> = (0..48)
            .map(|n| {
                starts.push(n / 8);
                let weather = 0.05 * rng.normal();
                let of_start = [0.0, spread * f64::from(n / 8 % 3), -spread * f64::from(n / 8 % 2)];
                let arm = |(at, of_start): (usize, f64)| {
                    let dear = if at == 2 && rng.unit() < 0.1 { burst } else { 1.0 };
                    let scale = weather + of_start - 0.2 * at as f64 + 0.01 * rng.normal();
                    block(&mut rng, dear * scale.exp(), 1.0).0
                };
                of_start.into_iter().enumerate().map(arm).collect()
            })
            .collect();
        for by_totals in [false, true] {
            for starts in [&starts[..], &[]] {
                let levels = Levels::of(&rounds, starts, by_totals).unwrap();
                let read = [levels.level(0), levels.level(2), levels.ratio(0, 1), levels.ratio(1, 2)];
                let read = read.map(maybe).join(" | ");
                writeln!(out, "rounds, {name}, totals {by_totals}, {} named: {read}", starts.len()).unwrap();
            }
        }
        let bursts = [0.01, 0.1, 0.5].map(|least| Levels::show_bursts(&rounds, &starts, least));
        writeln!(out, "rounds, {name}: bursts {bursts:?}").unwrap();
    }
}

fn curves(out: &mut String) {
    for p in [1e-9, 0.001, 0.02, 0.3, 0.5, 0.8, 0.975, 0.995, 1.0 - 1e-9] {
        writeln!(out, "normal quantile of {p}: {}", figure(normal::normal_quantile(p))).unwrap();
    }
    for freedom in [1.0, 2.0, 3.5, 7.0, 30.0, 500.0] {
        let at = [1.96, 2.576, 3.06].map(|z| student::student(z, freedom));
        let chances = [0.5, 2.0, 4.0].map(|t| student::chance(t, freedom));
        writeln!(out, "student, {freedom}: {} | {}", figures(at), figures(chances)).unwrap();
    }
    for (some, many) in [([0, 100], [5, 100]), ([3, 1_000], [9, 900]), ([40, 50], [20, 50]), ([0, 0], [1, 9])]
    {
        writeln!(out, "by chance {some:?} {many:?}: {}", figure(shares::by_chance(some, many))).unwrap();
    }
    let values = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0];
    let read =
        [stats::mean(&values), stats::variance(&values), stats::deviation(&values), stats::median(values)];
    writeln!(out, "of eight values: {}", figures(read)).unwrap();
    let mut rng = Prng::new(11);
    let points: Vec<Point> = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]
        .into_iter()
        .flat_map(|n: f64| [n; 3])
        .map(|n| {
            let ideal = 1_000.0 * n / (1.0 + 0.05 * (n - 1.0) + 0.0004 * n * (n - 1.0));
            Point { n, throughput: ideal * (0.01 * rng.normal()).exp() }
        })
        .collect();
    writeln!(out, "scalability: {:.10?}", usl::fit(&points, &mut rng).unwrap()).unwrap();
}

#[test]
fn what_is_told_of_fixed_series_is_as_it_was() {
    let mut said = String::new();
    for part in [answers, parts, spreads, lists, rounds, curves] {
        part(&mut said);
    }
    if std::env::var_os("GOLDEN").is_some_and(|word| word == "write") {
        std::fs::write(GOLDEN, &said).unwrap();
    }
    let wanted = std::fs::read_to_string(GOLDEN).unwrap();
    for (was, is) in wanted.lines().zip(said.lines()) {
        assert_eq!(was, is);
    }
    assert_eq!(wanted.lines().count(), said.lines().count(), "lines are missing");
}
