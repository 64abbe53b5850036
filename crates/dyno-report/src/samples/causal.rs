//! A causal profile as it could have been, for tests: seeded, with the noise of a real one.

use dyno_measure::Prng;
use dyno_record::causal::*;
use dyno_record::machine::{Machine, Missing};
use dyno_record::profile::Target;

/// Spread of a window's period.
const NOISE: f64 = 0.02;
/// Rounds of a site.
const ROUNDS: u32 = 24;
/// Time per visit without a speed-up.
const PERIOD_US: f64 = 81.0;

/// Name, share of the samples, effect per percent, verdict, reason.
type Told = (&'static str, f64, f64, Verdict, &'static str);

const SITES: [Told; 4] = [
    (
        "render::page",
        48.2,
        0.41,
        Verdict::Helps,
        "each percent brings 0.41 % (0.36 … 0.46); slowing it down agrees",
    ),
    (
        "spin_until_free",
        21.0,
        -0.12,
        Verdict::Hurts,
        "the faster it is the slower the program: threads get in each other's way",
    ),
    ("checksum", 9.4, 0.0, Verdict::NoEffect, "zero lies within ±0.8 points"),
    (
        "core::ops::function::FnOnce::call_once<alloc::vec::Vec<app::queue::Message>>",
        6.1,
        0.05,
        Verdict::NotMeasurable,
        "threads hand work to each other every 90 µs, less than five pauses of 250 µs",
    ),
];

/// The record.
pub(crate) fn sample(seed: u64) -> Causal {
    let mut chance = Prng::new(seed);
    Causal {
        schema: CAUSAL_SCHEMA.into(),
        version: "0.1.0".into(),
        seed,
        started_unix_s: 1_795_000_000,
        duration_s: 64.2,
        command: ["dyno", "causal", "4242", "--progress", "syscall:write"].map(String::from).to_vec(),
        machine: Machine { cpus: 2, model: "AMD EPYC".into(), virtual_machine: true, ..Machine::default() },
        target: Target {
            pid: Some(4242),
            name: "server".into(),
            argv: vec!["./server".into(), "--port".into(), "8080".into()],
            scope: "process".into(),
        },
        options: Options {
            levels_percent: vec![10, 25, 50],
            budget_s: 60.0,
            participants: vec![4343],
            ..Options::default()
        },
        progress: Progress { name: "syscall:write".into(), per_second: 12_345.0, ..Progress::default() },
        sites: SITES.iter().map(|told| site(told, &mut chance)).collect(),
        credibility: credibility(),
        overhead: Overhead {
            attached_percent: 1.8,
            interval_percent: Some([0.4, 3.2]),
            rounds: 10,
            parts: vec![OverheadPart { name: "samples".into(), percent: 0.24, per_second: 2_000.0 }],
            inserted_percent: 11.8,
        },
        cut_short: None,
        not_measured: vec![Missing { what: "parse_head".into(), why: "below 2 % of the samples".into() }],
        warnings: vec!["steal 6 %: intervals are wider".into()],
    }
}

fn credibility() -> Credibility {
    Credibility {
        windows: 480,
        dropped_windows: 9,
        foreign_percent: 1.2,
        steal_percent: 0.3,
        unpaid_percent: 0.4,
        inner_wakes: 820.0,
        outer_wakes: 12_000.0,
        run_between_wakes_us: Some(1_800.0),
        null_sd_percent: 2.1,
        target_cpu_percent: 98.0,
        threads: 3.0,
        load_bound: Some(true),
        pause: "task_work".into(),
        period_us: 1_000.0,
        ..Credibility::default()
    }
}

fn site(&(name, share, slope, verdict, reason): &Told, chance: &mut Prng) -> Site {
    let half = if verdict == Verdict::NotMeasurable { 9.0 } else { 0.9 };
    let point = |level: u32| {
        let effect = slope * f64::from(level);
        Point {
            speedup_percent: level,
            effect_percent: effect,
            interval_percent: [effect - half, effect + half],
            rounds: ROUNDS as usize,
            dropped: 1,
            inserted_percent: share * f64::from(level) / 100.0,
            biased: verdict == Verdict::NotMeasurable && level > 10,
            allowance_points: if verdict == Verdict::NotMeasurable { 3.4 } else { 0.0 },
        }
    };
    Site {
        name: name.into(),
        source: Source {
            module: Some("/srv/server".into()),
            file: Some("src/render.rs".into()),
            line: Some(42),
            ranges: 2,
            hot_lines: vec![HotLine { file: "src/render.rs".into(), line: 57, share_percent: share / 2.0 }],
            ..Source::default()
        },
        share_percent: Some(share),
        verdict,
        reason: reason.into(),
        points: [10, 25, 50].map(point).to_vec(),
        slope: Some(Slope {
            per_percent: slope,
            interval: [slope - half / 40.0, slope + half / 40.0],
            p: 0.001,
            p_adjusted: 0.004,
        }),
        nulls: Nulls {
            mean_us: PERIOD_US,
            sd_percent: 2.0,
            rounds: ROUNDS as usize,
            difference_percent: 0.1,
            interval_percent: [-0.7, 0.9],
        },
        slow_down: (verdict == Verdict::Helps).then_some(SlowDown {
            added_ns: 20_000,
            calls_per_second: 12_345.0,
            slowdown_percent: 50.0,
            cost_percent: 19.0,
            interval_percent: [17.0, 21.0],
            rounds: 8,
            contradicts: false,
        }),
        no_slow_down: (verdict == Verdict::NotMeasurable).then(|| "it has no function of its own".into()),
        spent_s: 15.0,
        credibility: credibility(),
        windows: windows(slope, chance),
    }
}

fn windows(slope: f64, chance: &mut Prng) -> Vec<Window> {
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        for level in [0, 0, 10, 25, 50] {
            let noise = NOISE * (chance.below(2_001) as f64 / 1_000.0 - 1.0);
            let period = PERIOD_US * (1.0 - slope * f64::from(level) / 100.0) * (1.0 + noise);
            let treatment = if level == 0 { Treatment::Nothing } else { Treatment::SpeedUp(level) };
            all.push(Window {
                round,
                treatment,
                length_ms: 250.0,
                visits: 3_000,
                period_us: Some(period),
                ..Window::default()
            });
        }
    }
    all[3].dropped = Some("others used 9 % of the CPUs".into());
    all
}
