//! A record drawn: as text for a terminal ([`text`]) or as one HTML file ([`page`]).
//!
//! What is said of a record is worked out once, as its view; text and page are two writers of views. The verbs call them
//! and write what they return where it belongs. Everything is a pure function of records: nothing here measures, prints,
//! reads a clock or asks whether there is a terminal.

mod apply;
mod color;
#[cfg(test)]
mod samples;
mod view;

pub mod export;
pub mod figures;
pub mod number;
pub mod page;
pub mod text;

pub use color::Color;
