//! What is written down and published, as plain data with versions: records of climbs, profiles and causal profiles, the
//! observation that a diagnosis reads and what it finds.
//!
//! Every program that measures writes these shapes, every program that judges, compares or draws reads them; docs/records.md
//! describes them for readers. A record holds all that its verdicts were made from, so that anybody can judge it again.
//! Nothing here measures, and nothing asks the machine anything.

pub mod alike;
pub mod audit;
pub mod causal;
pub mod change;
pub mod climb;
pub mod commands;
pub mod comparison;
pub mod condition;
pub mod diagnosis;
pub mod difference;
pub mod digest;
pub mod doctor;
pub mod fact;
pub mod facts;
pub mod figure;
pub mod finding;
pub mod history;
pub mod journal;
pub mod judged;
pub mod lab;
pub mod load;
pub mod machine;
pub mod name;
pub mod observation;
pub mod plan_text;
pub mod planted;
pub mod profile;
pub mod ratios;
pub mod sane;
pub mod shares;
pub mod sheet;
pub mod specimen;
pub mod trial;
pub mod truth;
pub mod tune;
mod upgrade;
pub mod visible;
