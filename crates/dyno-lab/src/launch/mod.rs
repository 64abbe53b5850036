//! Starting what is measured, and what loads it; ending all of it.

pub mod alone;
mod answers;
mod arm;
mod builds;
mod built;
mod clock;
pub mod command;
mod describe;
mod driver;
mod exits;
mod ground;
mod interrupt;
pub mod laboratory;
mod listeners;
pub mod load;
pub mod scratch;
mod server;
pub mod target;
mod world;

pub use arm::Arm;
pub(crate) use describe::described;
pub(crate) use driver::within;
pub use exits::Exits;
pub(crate) use exits::FINE;
pub use ground::Ground;
pub use interrupt::Interrupt;
pub(crate) use listeners::foreign_listener;
pub use server::load_fault;
pub(crate) use server::target as load_target;
pub(crate) use server::{Run, TIMEOUT_NS};
pub use world::World;
