//! Pages: one HTML file each, no network, readable without scripts.
//!
//! The verbs write them beside their records and `dyno report` draws any old record again. A page says nothing that is not
//! in its record and measures nothing; it is a pure function of it.

mod boxes;
mod chart;
mod draw;
mod html;
mod parts;
mod table;
#[cfg(test)]
mod tests;

pub mod audit;
pub mod causal;
pub mod climb;
pub mod diagnosis;
pub mod difference;
pub mod flame;
pub mod history;
pub mod load;
