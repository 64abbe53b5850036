//! Which code is meant: from names, source lines and profiles to addresses in a running process, and to places where a
//! probe may be set.

mod choose;
mod debug;
mod entry;
mod error;
mod name;
mod passed;
mod resolver;
mod waiting;

pub use choose::{Choice, Parts, Spinning};
pub use error::SiteError;
pub use passed::{Passed, of_processes};
pub use resolver::{Probe, Resolver};
