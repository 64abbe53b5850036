use crate::ladder::*;
use crate::noise::Weather;
use crate::world::*;
use dyno_measure::judge::tail_growth;
#[test]
fn seed6() {
    let plan = ladder(&["null=on", "small=on", "large=on", "other=on"]);
    let c = whole(&plan, &options(6, 160), World::new(Weather::Quiet, 6).with("small=on", Does::Cpu(-2.0)).with("large=on", Does::Cpu(-5.0)));
    println!("{} {:?}", c.why("large=on"), c.rung("large=on").leave_one_out);
    let t = c.record.trial("leave-one-out:large=on").unwrap();
    println!("{} {:?}", t.pairs.len(), dyno_measure::judge::instance_means(t.metric, &t.pairs));
    for i in 0..4 { println!("{}", t.pairs.iter().filter(|p| p.instance == i).count()); }
    println!("{:?}", c.record.series.trials.iter().map(|t| (t.id.clone(), t.pairs.len())).collect::<Vec<_>>());
}
