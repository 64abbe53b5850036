//! The machine under the server: what it is, where its time goes, and its settings, changed and put back.
//!
//! A setting is changed in one order: read, written down, written, read back, put back ([`knobs`], [`journal`]). The lab
//! and the binary call it. Nothing here decides what is to be changed, or prints.

pub mod journal;
pub mod knobs;
pub mod machine;
pub mod tally;
