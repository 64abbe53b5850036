//! Audits in the formats of other tools.
//!
//! `dyno audit` writes them. Each is a pure function of the record.

pub mod sarif;
pub mod textfile;
