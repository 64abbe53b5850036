use crate::ladder::*; use crate::noise::Weather; use crate::world::*;
#[test]
fn veto_rate() {
    let plan = ladder(&["a=on"]);
    for w in [Weather::Quiet, Weather::Contended, Weather::Worst] {
        for gain in [-20.0, -5.0] {
        let all = over_seeds(250, |seed| {
            let c = whole(&plan, &options(seed, 30), World::new(w, seed).with("a=on", Does::Cpu(gain)));
            c.why("a=on").to_owned()
        });
        println!("{w:?} {gain}: veto {:.3}", share(&all, |why| why.contains("p99")));
        }
    }
}
#[test]
fn contended_five() {
    let plan = ladder(&["null=on", "small=on", "large=on", "other=on"]);
    let all = over_seeds(100, |seed| {
        let c = whole(&plan, &options(seed, 120), World::new(Weather::Contended, seed).with("small=on", Does::Cpu(-2.0)).with("large=on", Does::Cpu(-5.0)));
        (seed, format!("{:?} {} pairs {:?} loo {:?}", c.verdict("large=on"), c.why("large=on"), c.rung("large=on").attempt.effect_percent, c.rung("large=on").leave_one_out), c.rung("small=on").attempt.why.clone())
    });
    for (s, l, m) in all { if !l.starts_with("Kept") { println!("{s} {l}"); } if !m.starts_with("better") { println!("   small {s} {m}"); } }
}
#[test]
fn bursts() {
    let plan = ladder(&["calm=on", "collector=on"]);
    let all = over_seeds(20, |seed| {
        let world = World::new(Weather::Quiet, seed).with("calm=off", Does::Bursts(0.1)).with("collector=on", Does::Bursts(0.1));
        let c = whole(&plan, &options(seed, 480), world);
        format!("{seed}: {:?} {} | {:?} {} first {:?}", c.verdict("calm=on"), c.why("calm=on"), c.verdict("collector=on"), c.why("collector=on"), c.rung("calm=on").first_attempt.as_ref().map(|a| a.why.clone()))
    });
    for l in all { println!("{l}"); }
}
