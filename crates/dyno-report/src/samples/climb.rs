//! The recorded climb, for tests: the same that the binary's own tests draw, with as many pairs as a real one.

use dyno_record::climb::Climb;

/// Pairs of a trial: what a page has to hold.
const PAIRS: usize = 240;

/// The record, with this seed in it.
pub(crate) fn sample_climb(seed: u64) -> Climb {
    let text = include_str!("../../../dyno/tests/golden/climb.json");
    let mut climb = Climb::from_json(text).expect("the record is of this schema");
    climb.seed = seed;
    for compared in &mut climb.series.trials {
        let pairs = &mut compared.trial.pairs;
        *pairs = pairs.iter().copied().cycle().take(PAIRS).collect();
    }
    climb
}
