//! Profiles: taken from processes that run, laid out as pictures and tables, compared, read and written in the formats of
//! others.
//!
//! ```text
//! perf ring → sample ┐
//!                    ├→ unwind (image: which code lies where) → stack (symbol: what it is called) → profile::Profile
//! BPF probe → offcpu ┘
//! profile::Profile → tree → layout, and top, locks, diff, moved, export; import reads what others recorded
//! BPF probe → causal (rig, site, live, run) → causal::Causal
//! ```
//! `dyno profile`, `dyno offcpu`, `dyno diagnose` and a climb that profiles call it. It watches processes that it did not
//! build and does not stop; nothing of it stays behind when its descriptors are closed. It never prints; what draws,
//! exports and compares asks the kernel nothing.

mod calls;
mod error;
#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod golden;
mod hotspot;
mod image;
mod sample;
mod stack;
mod symbol;
mod unwind;

pub mod call_tree;
pub mod causal;
pub mod diff;
pub mod export;
pub mod goroutines;
pub mod import;
pub mod layout;
pub mod locks;
pub mod moved;
pub mod offcpu;
pub mod sheet;
pub mod top;
pub mod tree;
pub mod user_level;

pub use error::{Error, paranoid};
pub use image::spaces::{AddressSpaces, Place};
pub use image::{Image, ImageId, Images, Kind, UnwoundBy};
pub use sample::options::{CallGraph, Event, Options, Target};
pub use sample::recorder::{Recorder, record};
pub use symbol::{Function, Symbols};
pub use unwind::{Cut, Ended, Unwinder, Walked};
