//! The audit of made-up hosts: what speaks, from which figure on, and what it says.
#![allow(clippy::unwrap_used)]

#[path = "../../src/golden.rs"]
mod golden;
mod host;
mod lines;
mod pairs;
mod told;
