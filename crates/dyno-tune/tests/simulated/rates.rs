//! Error rates over many seeds.

use crate::ladder::{climbed, ladder, options, over_seeds, share};
use crate::noise::Weather;
use crate::world::{Does, World};

#[test]
fn explore() {
    let plan = ladder(&["null=on", "small=on", "large=on", "other=on"]);
    let n: u64 = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(20);
    let t: u64 = std::env::var("TIME").ok().and_then(|s| s.parse().ok()).unwrap_or(120);
    for weather in [Weather::None, Weather::Quiet, Weather::Contended, Weather::Worst, Weather::Recorded] {
        let begin = std::time::Instant::now();
        let all = over_seeds(n, |seed| {
            let world =
                World::new(weather, seed).with("small=on", Does::Cpu(-2.0)).with("large=on", Does::Cpu(-5.0));
            let c = climbed(&plan, &options(seed, t), world);
            (c.record, c.outcome)
        });
        let secs = begin.elapsed().as_secs_f64();
        let blocks: usize = all
            .iter()
            .map(|c| {
                c.0.series.trials.iter().map(|t| t.pairs.len() * 2).sum::<usize>()
                    + c.0.series.rounds.len() * 3
            })
            .sum();
        println!(
            "{weather:?}: {secs:.2} s, {} blocks a climb, {:.1} µs/block",
            blocks / n as usize,
            secs * 2e6 / blocks as f64
        );
        println!("  refused {:.3}", share(&all, |c| c.1.is_err()));
        for c in all.iter().filter(|c| c.1.is_err()).take(2) {
            println!("    {:?}", c.1);
        }
        let ok: Vec<_> = all.into_iter().filter(|c| c.1.is_ok()).collect();
        println!(
            "  visible {:.2}",
            crate::ladder::mean(ok.iter().map(|c| c.0.noise.as_ref().unwrap().visible_percent))
        );
        for r in 0..4 {
            let mut counts = std::collections::BTreeMap::<String, usize>::new();
            for c in &ok {
                let rung = &c.0.rungs[r];
                let first =
                    rung.first_attempt.as_ref().map_or(String::new(), |a| format!("{}->", a.verdict.words()));
                *counts
                    .entry(format!(
                        "{first}{}{}",
                        rung.attempt.verdict.words(),
                        if rung.attempt.trial.as_ref().is_some_and(|t| t.contains("bursty")) {
                            "(bursty)"
                        } else {
                            ""
                        }
                    ))
                    .or_default() += 1;
            }
            let m = |f: &dyn Fn(&dyno_measure::record::Rung) -> Option<f64>| {
                let v: Vec<f64> = ok.iter().filter_map(|c| f(&c.0.rungs[r])).collect();
                v.iter().sum::<f64>() / v.len() as f64
            };
            println!(
                "  {} {counts:?} step {:.2} loo {:.2}",
                ok[0].0.rungs[r].id,
                m(&|r| (r.attempt.verdict.words() == "kept").then_some(r.attempt.effect_percent).flatten()),
                m(&|r| r.leave_one_out.as_ref().map(|e| e.effect_percent))
            );
        }
    }
}
