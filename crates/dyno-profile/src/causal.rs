//! What would it bring if this were faster: virtual speed-ups of code and of waits, tried on a running program.

pub mod rig;

pub use rig::{Deed, Entry, Moment, Pause, Place, Reach, Rig, Site, WaitKind, Window};
