//! What requests for content mean, whatever version of HTTP carries them (RFC 9110): codings, conditions, ranges.
//!
//! The engine's content calls it with the values of fields. It knows no files, no clock and no connection.

pub mod coding;
pub mod condition;
pub mod range;
