//! Samples to stacks, stacks to names, names to the record of a profile.
//!
//! ```text
//! perf ring → sample → unwind (maps, image) → fold → symbol → dyno_measure::profile::Profile
//! ```
//! `dyno profile`, `dyno diagnose` and a climb that profiles call it. It watches processes that it did not build and does
//! not stop; nothing of it stays behind when its descriptors are closed. It never prints.

mod elf;
mod error;
mod fold;
mod image;
mod jit;
mod kernel;
mod maps;
mod record;
mod session;
mod symbol;
mod unwind;

pub use error::{Error, paranoid};
pub use fold::CUT;
pub use image::{Image, ImageId, Images, Kind, UnwoundBy};
pub use maps::{AddressSpaces, Place};
pub use record::{CallGraph, Event, Options, Recorder, Target, record};
pub use symbol::{DEBUG_BYTES_MAX, Function, Symbols};
pub use unwind::{Ended, FRAMES_MAX, Unwinder, Walked, by_chain};
