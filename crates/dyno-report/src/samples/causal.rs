//! The recorded causal profile, for tests: the same that the binary's own tests draw.

use dyno_record::causal::Causal;

/// The record, with this seed in it.
pub(crate) fn sample(seed: u64) -> Causal {
    let text = include_str!("../../../dyno/tests/golden/causal.json");
    Causal { seed, ..Causal::from_json(text).expect("the record is of this schema") }
}
