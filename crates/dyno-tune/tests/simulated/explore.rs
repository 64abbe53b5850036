use crate::ladder::*; use crate::noise::Weather; use crate::world::*;
use dyno_measure::judge::tail_growth;
#[test]
fn veto74() {
    let plan = ladder(&["null=on", "small=on", "large=on", "other=on"]);
        let c = whole(&plan, &options(74, 160), World::new(Weather::Quiet, 74).with("small=on", Does::Cpu(-2.0)).with("large=on", Does::Cpu(-5.0)));
        let t = c.record.trial("step:large=on").unwrap();
        println!("{} {:?}", c.why("large=on"), tail_growth(t));
        for [a,b] in &t.tails { println!("{:.3}", (b.quantile(0.99) as f64 / a.quantile(0.99) as f64).ln()); }
        println!("{}", t.pairs.len());
}
#[test]
fn nulltails() {
    // growth / error over many trials
    let plan = ladder(&["large=on"]);
    for w in [Weather::Quiet, Weather::Contended] {
    let all = over_seeds(400, |seed| { let c = whole(&plan, &options(seed, 20), World::new(w, seed).with("large=on", Does::Cpu(-8.0)));
        let t = c.record.trial("step:large=on").unwrap(); tail_growth(t).map(|e| { 
          let g: Vec<f64> = t.tails.iter().map(|[a,b]| (b.quantile(0.99) as f64 / a.quantile(0.99) as f64).ln()).collect();
          let m = g.iter().sum::<f64>() / g.len() as f64;
          (e.log_ratio / e.error, m / e.error, e.log_ratio, m) }) });
    let v: Vec<_> = all.into_iter().flatten().collect();
    for cut in [2.0, 3.0, 3.4, 4.0, 4.5, 6.0] { println!("{w:?} n {} > {cut}: pooled {:.4} mean {:.4}", v.len(), share(&v, |x| x.0.abs() > cut), share(&v, |x| x.1.abs() > cut)); }
    println!("sd pooled {:.3} mean {:.3}", mean(v.iter().map(|x| x.2*x.2)).sqrt(), mean(v.iter().map(|x| x.3*x.3)).sqrt());
    }
}
