//! Programs with one planted, known defect each and the repaired twin: held, built, run and measured.
//!
//! [`catalogue`] holds them, [`builds`] builds them, [`runner`] runs programs, [`measure`] compares the sides, [`causal`]
//! puts what a causal profile predicts beside what really shortening a part brings.

pub mod builds;
pub mod catalogue;
pub mod causal;
pub mod measure;
pub mod neutral;
pub mod planted;
pub mod ready;
pub mod runner;
