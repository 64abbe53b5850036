//! The judge on block series from a real machine.

use dyno_measure::Prng;
use dyno_measure::judge::{Judgement, Rule, Verdict, cut_short};
use dyno_measure::series::{Metric, Pair, Side, Trial};

use crate::tape::{self, Row};

/// Neighbouring rows as pairs, the sides by a coin.
fn neighbours(rows: &[Row], rng: &mut Prng) -> Trial {
    let mut trial = Trial::new(Metric::CpuPerRequest);
    for (n, two) in rows.chunks_exact(2).enumerate() {
        let first = if rng.coin() { Side::A } else { Side::B };
        let (a, b) = if first == Side::A { (two[0], two[1]) } else { (two[1], two[0]) };
        trial.pairs.push(Pair { first, instance: n as u32 % 4, a: a.block, b: b.block });
    }
    trial
}

/// Two arms against each other, as they ran in each round.
fn arms(rows: &[Row], a: u64, b: u64) -> Trial {
    let mut trial = Trial::new(Metric::CpuPerRequest);
    for round in 0..=rows[rows.len() - 1].round {
        let place = |arm: u64| rows.iter().position(|row| row.round == round && row.arm == arm).unwrap();
        let first = if place(a) < place(b) { Side::A } else { Side::B };
        trial.pairs.push(Pair { first, instance: 0, a: rows[place(a)].block, b: rows[place(b)].block });
    }
    trial
}

fn judged(trial: &Trial) -> Judgement {
    cut_short(trial, &Rule::QUICK, 1).expect("a series without bursts")
}

#[test]
fn equal_arms_of_a_real_machine_are_called_different_at_most_twice_in_forty() {
    let rows = tape::null();
    assert_eq!(rows.len(), 800);
    let mut called = 0;
    for seed in 1..=40 {
        let mut rng = Prng::new(seed);
        let from = rng.below(rows.len() as u64 - 480) as usize;
        let trial = neighbours(&rows[from..from + 480], &mut rng);
        called += u32::from(judged(&trial).verdict != Verdict::NoDifference);
    }
    println!("{called} of 40 called different");
    assert!(called <= 2, "{called} of 40 called different");
}

#[test]
fn no_two_of_eight_equal_arms_are_called_different() {
    let mut called = 0;
    for a in 0..8 {
        for b in 0..a {
            let trial = arms(tape::null(), a, b);
            called += u32::from(judged(&trial).verdict != Verdict::NoDifference);
        }
    }
    println!("{called} of 28 called different");
    assert!(called <= 1, "{called} of 28 called different");
}

#[test]
fn a_real_change_of_nine_per_mille_lies_inside_the_interval() {
    let rows = tape::small_change();
    assert_eq!(rows.len(), 1_288);
    let all = arms(rows, 0, 1);
    let estimate = cut_short(&all, &Rule::once(all.pairs.len(), 3.06), 1).unwrap().estimate;
    let [low, high] = estimate.interval_percent();
    println!("{} pairs: {low:+.2} to {high:+.2} %, true +0.9 %", all.pairs.len());
    assert!(low < 0.9 && 0.9 < high, "{low:+.2} to {high:+.2} %");
    assert!(high - low < 2.5, "{low:+.2} to {high:+.2} %: nothing is inside no interval");
    let mut inside = 0;
    for seed in 1..=40 {
        let from = Prng::new(seed).below(all.pairs.len() as u64 - 240) as usize;
        let stretch = Trial { pairs: all.pairs[from..from + 240].to_vec(), ..Trial::new(all.metric) };
        let [low, high] = judged(&stretch).estimate.interval_percent();
        inside += u32::from(low < 0.9 && 0.9 < high);
    }
    println!("{inside} of 40 stretches hold it");
    assert!(inside >= 38, "{inside} of 40 stretches hold it");
}
