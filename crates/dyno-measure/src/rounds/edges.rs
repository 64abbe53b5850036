//! Levels of rounds by hand: what is burnt outside of blocks, and the common-mode noise of a round beside a wild block.
#![allow(clippy::unwrap_used)]

use super::*;

/// A block of a thousand replies at so many ns inside and outside of it.
fn block([inside, outside]: [u64; 2]) -> Block {
    Block { replies: 1_000, cpu_in_ns: 1_000 * inside, cpu_off_ns: 1_000 * outside, ..Block::default() }
}

fn rounds(count: usize, arms: &[[u64; 2]]) -> Vec<Vec<Block>> {
    vec![arms.iter().map(|arm| block(*arm)).collect(); count]
}

/// Of the second arm's 3,300 ns 300 lie outside: ln 0.55, and ln 0.5 where these are not charged.
#[test]
fn a_ratio_reaches_to_where_cpu_outside_of_blocks_is_not_charged() {
    for by_totals in [false, true] {
        let levels = Levels::of(&rounds(15, &[[6_000, 0], [3_000, 300]]), &[], by_totals).unwrap();
        let ratio = levels.ratio(0, 1).unwrap();
        assert!((ratio.log_ratio - 0.55_f64.ln()).abs() < 1e-9, "{ratio:?}");
        assert!((ratio.uncharged - (0.5_f64 / 0.55).ln()).abs() < 1e-9, "{ratio:?}");
        assert!((levels.level(1).unwrap().log_ratio - 3_300_f64.ln()).abs() < 1e-9, "a level is charged");
        let charged = levels.all_charged().ratio(0, 1).unwrap();
        assert!((charged.log_ratio - 0.55_f64.ln()).abs() < 1e-9 && charged.uncharged == 0.0, "{charged:?}");
    }
}

#[test]
fn a_clock_that_stood_still_inside_leaves_no_doubt_behind() {
    let levels = Levels::of(&rounds(15, &[[6_000, 0], [0, 3_000]]), &[], true).unwrap();
    let ratio = levels.ratio(0, 1).unwrap();
    assert!((ratio.log_ratio - 0.5_f64.ln()).abs() < 1e-9 && ratio.uncharged == 0.0, "{ratio:?}");
}

/// The machine makes rounds 1, 2, 4, 8 and 16 times as dear, which trimming reads as four times; the first block of the first arm
/// is eight times as dear by itself.
#[test]
fn what_a_round_costs_all_arms_is_taken_from_each_of_its_blocks() {
    let round = |at: usize| {
        let times = 1 << at;
        let wild = if at == 0 { 8 } else { 1 };
        [wild * 6_000, 3_000, 1_000].map(|cost| block([times * cost, 0])).to_vec()
    };
    let rounds: Vec<Vec<Block>> = (0..5).map(round).collect();
    for (level, cost) in typical(&rounds).iter().zip([24_000.0_f64, 12_000.0, 4_000.0]) {
        assert!((level - cost.ln()).abs() < 1e-9, "{level} of {cost}");
    }
}
