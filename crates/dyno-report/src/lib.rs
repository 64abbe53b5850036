//! A record drawn: as text for a terminal ([`text`]) or as one HTML file ([`page`]).
//!
//! The verbs call it and write what it returns where it belongs. Everything is a pure function of records: nothing here
//! measures, prints, reads a clock or asks whether there is a terminal.

mod apply;
mod color;
mod date;
#[cfg(test)]
mod samples;

pub mod number;
pub mod page;
pub mod text;

pub use color::Color;
