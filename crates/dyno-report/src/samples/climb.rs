//! A climb as it could have been, for tests: seeded, with the sizes and the noise of a real one.

use dyno_measure::judge::{self, Rule};
use dyno_measure::series::{BLOCK_COLUMNS, Block, Metric, Pair, Side, Tail, Trial, pooled};
use dyno_measure::units::log_of_percent;
use dyno_measure::{Histogram, Prng};
use dyno_record::climb::*;
use dyno_record::machine::{Machine, Missing};
use dyno_record::trial::{Compared, Schedule, Stage};

/// Live instances of each side, as a climb has them.
const INSTANCES: u64 = 4;
/// Spread of a pair's log ratio (kernel-bound server, 25 ms blocks, shared machine).
const NOISE: f64 = 0.06;

/// Id, change, claim, effect in percent, verdict, why.
type Sampled = (&'static str, &'static str, &'static str, f64, RungVerdict, &'static str);

#[rustfmt::skip]
const RUNGS: [Sampled; 14] = [
    ("one-send", "send split → joined", "Head and body in one send: one system call, one segment and one wake-up less per reply.", -33.0, RungVerdict::Kept, "clear after 30 pairs"),
    ("outbox", "body generic → outbox", "Replies are encoded straight into the send buffer instead of being put together from strings.", -9.4, RungVerdict::Kept, "clear after 30 pairs"),
    ("log-ring", "log sync → ring", "The access log goes to a ring in shared memory; another process writes it.", -19.8, RungVerdict::Kept, "clear after 30 pairs"),
    ("headers", "headers owned → borrowed", "Handlers see headers as slices of the receive buffer instead of a map of strings.", -4.2, RungVerdict::Kept, "clear after 60 pairs"),
    ("date", "date reply → second", "The Date header is formatted once a second.", -2.6, RungVerdict::Kept, "clear after 120 pairs"),
    ("recv-send", "calls read-write → recv-send", "recv and send go straight to the socket; read and write pass the file layers first.", -2.3, RungVerdict::Kept, "clear after 150 pairs"),
    ("read-once", "read drain → once", "A read that did not fill the buffer was the last one: no second read that finds nothing.", -6.1, RungVerdict::Kept, "clear after 60 pairs"),
    ("edge", "trigger level → edge", "Edge-triggered readiness spares the kernel a second look at the ready list.", 0.1, RungVerdict::NoDifference, "at most 1.4 %"),
    ("batch", "replies single → batch", "Replies to pipelined requests leave together.", -54.0, RungVerdict::Kept, "clear after 30 pairs"),
    ("reno", "congestion default → reno", "One segment per reply needs no model of the path; pacing costs timers.", -3.0, RungVerdict::Unconfirmed, "−0.9 % ±1.6 when turned back on fresh data"),
    ("spin", "spin 0 → 50", "Polling for 50 µs before sleeping spares a wake-up.", -14.0, RungVerdict::Reverted, "p99 grew by 22 %"),
    ("log-off", "log ring → off", "No access log at all.", -3.4, RungVerdict::Kept, "clear after 210 pairs"),
    ("workers", "workers 1 → all", "A worker on every CPU of the server.", 0.0, RungVerdict::NotPossible, "one server CPU"),
    ("steer", "reuseport hash → cpu", "The CPU that took the packet serves it (cBPF on SO_REUSEPORT).", 0.0, RungVerdict::Failed, "exit status 1 while starting:\nerror: cannot attach the steering program: operation not permitted\n  likely: unprivileged BPF is off here"),
];

/// A whole climb; the same seed gives the same one.
pub(crate) fn sample_climb(seed: u64) -> Climb {
    let mut rng = Prng::new(seed);
    let mut climb = Climb {
        schema: CLIMB_SCHEMA.into(),
        version: "0.1.0".into(),
        seed,
        started_unix_s: 1_795_228_361,
        duration_s: 238.4,
        command: ["dyno", "climb", "--time", "4m"].map(str::to_owned).to_vec(),
        plan: "serve".into(),
        machine: machine(),
        load: load("GET /json", 64, 1),
        not_measured: vec![
            missing("loads with more than 64 connections", "the plan has one load"),
            missing("HTTP over a network card", "server and client share this machine"),
        ],
        warnings: vec!["steal 2.9 %: intervals are wider; the order of rungs is still sound".into()],
        ..Climb::default()
    };
    climb.series.block_columns = BLOCK_COLUMNS.map(str::to_owned).to_vec();
    climb.noise = Some(noise(&mut climb.series, &mut rng));
    let mut cpu_us = 15.4;
    for sampled in &RUNGS {
        let rung = rung(sampled, &mut cpu_us, &mut climb.series, &mut rng);
        climb.rungs.push(rung);
    }
    climb.total = Some(total(&mut climb.series, &mut rng));
    climb.floor = Some(Ratio { ratio: 1.031, interval: [1.012, 1.051] });
    climb
}

fn machine() -> Machine {
    Machine {
        cpus: 2,
        model: "AMD EPYC 9B45".into(),
        virtual_machine: true,
        kernel: "6.18.5".into(),
        memory_bytes: 8_200_000_000,
        clocksource: "kvm-clock".into(),
        congestion: "bbr".into(),
        server_cpus: "0".into(),
        load_cpus: "1".into(),
        steal_percent: 2.9,
        foreign_percent: 0.7,
        generator_us_per_request: 4.1,
        root: false,
    }
}

fn load(request: &str, connections: usize, pipeline: usize) -> Load {
    Load { request: request.into(), connections, pipeline }
}

fn missing(what: &str, why: &str) -> Missing {
    Missing { what: what.into(), why: why.into() }
}

fn noise(series: &mut Series, rng: &mut Prng) -> Noise {
    let trial = trial(Metric::CpuPerRequest, 240, 15.4, 0.0, rng);
    let effect = effect_of(&trial);
    series.trials.push(compared(Stage::Noise, 1, None, trial));
    Noise {
        aa_percent: effect.effect_percent,
        interval_percent: effect.interval_percent,
        visible_percent: 1.4,
        pairs: 240,
        tries: 1,
        trial: Some("noise".into()),
    }
}

fn rung(sampled: &Sampled, cpu_us: &mut f64, series: &mut Series, rng: &mut Prng) -> Rung {
    let (id, change, claim, percent, verdict, why) = *sampled;
    let measured = !matches!(verdict, RungVerdict::NotPossible | RungVerdict::Failed);
    let first = (id == "log-off")
        .then(|| attempt(id, 1, 0.2, RungVerdict::NoDifference, "at most 1.5 %", *cpu_us, series, rng));
    let tried = if first.is_some() { 2 } else { 1 };
    let attempt = match measured {
        true => attempt(id, tried, percent, verdict, why, *cpu_us, series, rng),
        false => unmeasured(verdict, why),
    };
    let kept = verdict == RungVerdict::Kept;
    if kept && id != "batch" {
        *cpu_us *= 1.0 + percent / 100.0;
    }
    let leave_one_out = (kept || verdict == RungVerdict::Unconfirmed).then(|| {
        let fresh = if kept { 0.95 * percent } else { -0.9 };
        let trial = trial(Metric::CpuPerRequest, 120, 6.8, fresh, rng);
        let effect = effect_of(&trial);
        series.trials.push(compared(Stage::LeaveOneOut, 1, Some(id), trial));
        effect
    });
    let leave_one_out_trial = leave_one_out.map(|_| format!("leave-one-out:{id}"));
    Rung {
        id: id.into(),
        change: change.into(),
        claim: claim.into(),
        source: "system call counts of the naive server; tcp_sendmsg in net/ipv4/tcp.c".into(),
        risk: if id == "log-ring" {
            "lines still in the ring are lost when the machine dies"
        } else if id == "log-off" {
            "no access log"
        } else {
            "none: the bytes are the same"
        }
        .into(),
        reverts: "restart without the flag".into(),
        needs: if id == "log-off" { vec!["log=ring".into()] } else { Vec::new() },
        sets: String::new(),
        bundle: if id == "read-once" { vec!["recv-send".into()] } else { Vec::new() },
        attempt,
        first_attempt: first,
        leave_one_out,
        leave_one_out_trial,
    }
}

#[expect(clippy::too_many_arguments, reason = "a table row of test data")]
fn attempt(
    id: &str,
    number: u32,
    percent: f64,
    verdict: RungVerdict,
    why: &str,
    cpu_us: f64,
    series: &mut Series,
    rng: &mut Prng,
) -> Attempt {
    let (metric, load) = match id {
        "spin" => (Metric::P50, load("GET /json", 1, 1)),
        "batch" => (Metric::CpuPerRequest, load("GET /json", 64, 16)),
        _ => (Metric::CpuPerRequest, load("GET /json", 64, 1)),
    };
    let trial = trial(metric, 240, cpu_us, percent, rng);
    let effect = effect_of(&trial);
    let attempt = Attempt {
        verdict,
        why: why.into(),
        metric,
        clock: "task clock of the server and its children".into(),
        load: load.to_string(),
        effect_percent: Some(effect.effect_percent),
        interval_percent: Some(effect.interval_percent),
        level: 0.99,
        pairs: trial.pairs.len(),
        instances: INSTANCES as usize,
        instance_spread_percent: Some(0.4 + rng.unit()),
        off_block_percent: trial.totals(Side::B).off_block_percent(),
        proof: proof(),
        figures: Some(Side::BOTH.map(|side| figures(&trial, side))),
        rss_peak_bytes: [4_510_000, 4_630_000],
        trial: None,
        causal: None,
    };
    let compared = compared(Stage::Step, number, Some(id), trial);
    let attempt = Attempt { trial: Some(compared.id.clone()), ..attempt };
    series.trials.push(compared);
    attempt
}

fn unmeasured(verdict: RungVerdict, why: &str) -> Attempt {
    Attempt {
        verdict,
        why: why.into(),
        metric: Metric::CpuPerRequest,
        clock: String::new(),
        load: String::new(),
        effect_percent: None,
        interval_percent: None,
        level: 0.99,
        pairs: 0,
        instances: 0,
        instance_spread_percent: None,
        off_block_percent: 0.0,
        proof: Vec::new(),
        figures: None,
        rss_peak_bytes: [0, 0],
        trial: None,
        causal: None,
    }
}

fn proof() -> Vec<ProofLine> {
    let line = |side: &str, when: &str, read: &str, holds| ProofLine {
        side: side.into(),
        when: when.into(),
        expected: "sendto ≤ 1.1 per reply".into(),
        read: read.into(),
        holds,
    };
    vec![
        line("a", "before", "sendto 2.00 per reply", false),
        line("b", "before", "sendto 1.00 per reply", true),
        line("a", "after", "sendto 2.00 per reply", false),
        line("b", "after", "sendto 1.00 per reply", true),
    ]
}

/// Pairs with this effect, with the slow drift, the fast noise and the wild blocks of a shared machine.
fn trial(metric: Metric, pairs: usize, cpu_us: f64, percent: f64, rng: &mut Prng) -> Trial {
    let mut trial = Trial::new(metric);
    let mut drift = 0.0;
    for _ in 0..pairs {
        drift = 0.9 * drift + 0.02 * rng.normal();
        let wild = if rng.unit() < 0.05 { 6.0 } else { 1.0 };
        let b_us = cpu_us * (log_of_percent(percent) + wild * NOISE * rng.normal()).exp();
        let (a, a_tail) = block(cpu_us * f64::exp(drift), rng);
        let (b, b_tail) = block(b_us * f64::exp(drift), rng);
        let first = if rng.coin() { Side::A } else { Side::B };
        let pair = Pair { first, instance: rng.below(INSTANCES) as u32, a, b };
        trial.add(pair, [&a_tail, &b_tail]);
    }
    trial.rss_peak_bytes = [4_510_000, 4_630_000];
    trial
}

/// A trial of the record: side by side, in short blocks. Its id is what people would call it.
fn compared(stage: Stage, attempt: u32, rung: Option<&str>, trial: Trial) -> Compared {
    let compared = Compared {
        id: String::new(),
        stage,
        attempt,
        rung: rung.map(str::to_owned),
        schedule: Schedule::LivePairs,
        toggles: None,
        clock: "task clock of the server and its children".into(),
        rule: Rule::QUICK,
        trial,
    };
    Compared { id: compared.title(), ..compared }
}

/// 25 ms of load on a server that needs this much CPU per request.
fn block(cpu_us: f64, rng: &mut Prng) -> (Block, Histogram) {
    let replies = (25_000.0 / (cpu_us * 1.15)) as u64;
    let latencies = latencies(64.0 * cpu_us * 1.15, 60, rng);
    let cpu_in_ns = (cpu_us * 1e3 * replies as f64) as u64;
    let block = Block {
        replies,
        wall_ns: 25_000_000,
        cpu_in_ns,
        cpu_off_ns: cpu_in_ns / 150,
        p50_ns: (latencies.quantile(0.5) as f64 * (cpu_us / 10.0)) as u64,
        p99_ns: latencies.quantile(0.99),
        generator_ns: 4_100 * replies,
        events_per_wait_milli: 2_300,
        steal_ns: rng.below(900_000),
        ..Block::default()
    };
    (block, latencies)
}

fn latencies(median_us: f64, count: usize, rng: &mut Prng) -> Histogram {
    let mut latencies = Histogram::new();
    for _ in 0..count {
        let slow = if rng.unit() < 0.006 { 4.0 * rng.unit() } else { 0.0 };
        latencies.record((1e3 * median_us * (0.18 * rng.normal() + slow).exp()) as u64);
    }
    latencies
}

fn figures(trial: &Trial, side: Side) -> Figures {
    let totals = trial.totals(side);
    Figures {
        requests_per_second: totals.requests_per_second(),
        cpu_us_per_request: totals.cpu_us_per_request(),
        p50_us: trial.latency_ns(side, 0.5) as f64 / 1e3,
        p99_us: trial.latency_ns(side, 0.99) as f64 / 1e3,
    }
}

fn effect_of(trial: &Trial) -> Effect {
    let ratios: Vec<f64> = trial.pairs.iter().map(|pair| pair.log_ratio(trial.metric)).collect();
    Effect::from(judge::trimmed_mean(&ratios, Rule::QUICK.z))
}

fn total(series: &mut Series, rng: &mut Prng) -> Total {
    const ARMS: [(&str, f64, f64); 4] =
        [("naive", 15.4, 0.41), ("naive+one-send", 10.3, 0.43), ("final", 6.71, 0.09), ("floor", 6.51, 0.03)];
    for round in 0..120 {
        series.round_starts.push(round / 10);
        let drift = 0.05 * rng.normal();
        let noisy = |cpu_us: f64, rng: &mut Prng| block(cpu_us * (drift + NOISE * rng.normal()).exp(), rng).0;
        series.rounds.push(ARMS.iter().map(|(_, cpu_us, _)| noisy(*cpu_us, rng)).collect());
    }
    let roles = [Role::Naive, Role::NaiveWithHeadline, Role::Final, Role::Floor];
    let arms: [Arm; 4] = std::array::from_fn(|at| arm(ARMS[at], roles[at], rng));
    Total {
        reached: Reached {
        naive_argv: argv("--naive"),
        final_argv: argv("--dial send=joined --dial body=outbox --dial log=off --dial calls=recv-send --dial replies=batch"),
        final_env: Vec::new(),
        apply: vec!["dyno serve --listen 127.0.0.1:8080 --workers 1 --log off --send joined --calls recv-send --read once --body outbox --headers borrowed --date second --replies batch".into()],
        final_setting: ["send=joined", "body=outbox", "log=off", "headers=borrowed", "date=second", "calls=recv-send", "read=once", "replies=batch"].map(str::to_owned).to_vec(),
        },
        gain: Ratio { ratio: 2.296, interval: [2.21, 2.384] },
        without: Some(Without { rung: "one-send".into(), gain: Ratio { ratio: 1.535, interval: [1.47, 1.602] } }),
        rounds: 120,
        starts: 12,
        in_turn: false,
        by_totals: false,
        arms: arms.to_vec(),
    }
}

fn argv(rest: &str) -> Vec<String> {
    format!("dyno serve --listen 127.0.0.1:0 {rest}").split(' ').map(str::to_owned).collect()
}

fn arm((name, cpu_us, user_share): (&str, f64, f64), role: Role, rng: &mut Prng) -> Arm {
    let mut trial = Trial::new(Metric::CpuPerRequest);
    let tail = latencies(64.0 * cpu_us * 1.15, 60_000, rng);
    trial.add(Pair { first: Side::A, instance: 0, a: Block::default(), b: Block::default() }, [&tail, &tail]);
    let latencies: Tail = pooled(trial.tails.iter().map(|[a, _]| a));
    Arm {
        name: name.into(),
        role,
        figures: Figures {
            requests_per_second: 1e6 / (cpu_us * 1.15),
            cpu_us_per_request: cpu_us,
            p50_us: latencies.quantile(0.5) as f64 / 1e3,
            p99_us: latencies.quantile(0.99) as f64 / 1e3,
        },
        user_share: Some(user_share),
        user_share_error: Some(0.02),
        latencies,
    }
}
