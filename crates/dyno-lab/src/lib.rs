//! What the climb, the diagnosis, the causal profiler and the specimens do to real processes.
//!
//! Five folders that know each other in this order only: [`launch`] starts what is measured and what loads it, [`prove`] sees
//! whether a change is in force, [`measure`] runs blocks and reads clocks, [`look`] profiles, diagnoses and experiments,
//! [`specimens`] builds and runs programs whose truth is known. Below them stand [`failure`] and [`file`]. The binary's verbs
//! call it; it never prints and never ends the process: callbacks report progress, and failures are values.

pub mod failure;
pub mod file;
pub mod launch;
pub mod look;
pub mod measure;
pub mod prove;
pub mod specimens;
pub mod user;

pub use failure::{Failure, chain};
