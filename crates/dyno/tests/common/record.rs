//! A climb's record with known effects, for the tests of what reads records.
#![allow(dead_code, clippy::unwrap_used)]

use dyno_measure::judge::Rule;
use dyno_measure::series::{Block, Metric, Pair, Side, Trial};
use dyno_measure::{Histogram, Prng};
use dyno_record::climb::{Attempt, CLIMB_SCHEMA, Climb, Effect, Rung, RungVerdict};
use dyno_record::trial::{Compared, Schedule, Stage};

/// Replies of a block; with whole nanoseconds per reply its CPU is exact to a thousandth.
const REPLIES: u64 = 1_000;

/// Two rungs: `one-send` is 20 % cheaper and was confirmed, `edge` makes no difference.
pub(crate) fn climb(seed: u64) -> Climb {
    let trials = vec![
        trial(Stage::Step, "one-send", 30, 0.8, seed),
        trial(Stage::LeaveOneOut, "one-send", 60, 0.8, seed + 1),
        trial(Stage::Step, "edge", 240, 1.0, seed + 2),
    ];
    let confirmed = Effect { effect_percent: -20.0, interval_percent: [-21.0, -19.0], pairs: 60 };
    let mut climb = Climb { schema: CLIMB_SCHEMA.into(), seed, plan: "test".into(), ..Climb::default() };
    climb.series.trials = trials;
    climb.rungs = vec![
        rung("one-send", RungVerdict::Kept, Some("step:one-send"), Some(confirmed)),
        rung("edge", RungVerdict::NoDifference, Some("step:edge"), None),
        rung("steer", RungVerdict::NotPossible, None, None),
    ];
    climb
}

/// Pairs whose B costs `factor` times what A costs, with 2 % of noise.
fn trial(stage: Stage, rung: &str, pairs: usize, factor: f64, seed: u64) -> Compared {
    let mut rng = Prng::new(seed);
    let mut trial = Trial::new(Metric::CpuPerRequest);
    let mut latencies = Histogram::new();
    latencies.record_n(500_000, REPLIES);
    for k in 0..pairs {
        let mut block = |factor: f64| {
            let cpu_in_ns = (10_000_000.0 * factor * (0.02 * rng.normal()).exp()) as u64;
            Block { replies: REPLIES, wall_ns: 25_000_000, cpu_in_ns, ..Block::default() }
        };
        let (a, b) = (block(1.0), block(factor));
        trial.add(Pair { first: Side::A, instance: (k % 4) as u32, a, b }, [&latencies, &latencies]);
    }
    let rule = if stage == Stage::LeaveOneOut { Rule::once(pairs, 2.5) } else { Rule::QUICK };
    let compared = Compared {
        id: String::new(),
        stage,
        attempt: 1,
        rung: Some(rung.into()),
        schedule: Schedule::LivePairs,
        toggles: None,
        clock: "task clock".into(),
        rule,
        trial,
    };
    Compared { id: compared.title(), ..compared }
}

fn rung(id: &str, verdict: RungVerdict, trial: Option<&str>, leave_one_out: Option<Effect>) -> Rung {
    let attempt = Attempt {
        verdict,
        why: "as measured".into(),
        metric: Metric::CpuPerRequest,
        clock: "task clock".into(),
        load: "GET /json, 64 connections, closed loop".into(),
        effect_percent: trial.map(|_| -20.0),
        interval_percent: trial.map(|_| [-21.0, -19.0]),
        level: 0.99,
        pairs: 30,
        instances: 4,
        instance_spread_percent: None,
        off_block_percent: 0.0,
        proof: Vec::new(),
        figures: None,
        own_load: false,
        horizon_s: None,
        rss_peak_bytes: [0, 0],
        trial: trial.map(str::to_owned),
    };
    Rung {
        id: id.into(),
        change: "send split → joined".into(),
        claim: String::new(),
        source: String::new(),
        risk: String::new(),
        reverts: String::new(),
        state: None,
        elsewhere: String::new(),
        needs: Vec::new(),
        sets: String::new(),
        bundle: Vec::new(),
        attempt,
        first_attempt: None,
        leave_one_out_trial: leave_one_out.map(|_| format!("leave-one-out:{id}")),
        leave_one_out_beside: Vec::new(),
        plan_load: None,
        leave_one_out,
    }
}
