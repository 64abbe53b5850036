//! Sheets of records: which figures each kind has, by which names, and under what they were made.
//!
//! Comparing, gating and exporting call them. A name never changes its meaning.

mod audit;
mod climb;
mod diagnosis;
mod load;

/// The condition that names the bytes of a load's request.
pub const REQUEST_BYTES: &str = "request bytes";
/// The condition that names what a right answer is.
pub const RIGHT_ANSWER: &str = "right answer";

pub use audit::of_audit;
pub use climb::{FINAL_SETTING, RUNG, STEP, of_climb};
pub use diagnosis::of_diagnosis;
pub use load::of_load;
