//! The machine under the server: what it is, where its time goes, and its settings, changed and put back.
//!
//! A setting is changed by one type alone, [`change::HostChange`]: read, journalled, guarded by the keeper, written, read
//! back, put back. The lab calls it, asks [`recovery`] what a killed program left, and has one run at a time change the host
//! ([`lock`]). Nothing here decides what is to be changed, or prints.

pub mod change;
pub mod changes;
mod counted;
pub mod doctor;
pub mod facts;
mod file;
pub mod host;
pub mod journal;
pub mod lab;
pub mod lock;
pub mod machine;
pub mod memory;
pub mod place;
pub mod recovery;
mod setting;
pub mod tally;
pub mod tune;
