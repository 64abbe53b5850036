//! Starting what is measured, and what loads it; ending all of it.

pub mod alone;
mod answers;
mod arm;
mod clock;
pub mod command;
mod describe;
mod exits;
mod ground;
mod interrupt;
mod listeners;
pub mod load;
pub mod loose;
pub mod scratch;
mod server;
pub mod target;
mod world;

pub use arm::Arm;
pub(crate) use arm::busy;
pub(crate) use describe::described;
pub use ground::Ground;
pub use interrupt::Interrupt;
pub(crate) use listeners::stranger;
pub(crate) use server::target as load_target;
pub(crate) use world::STOP_GRACE_NS;
pub use world::World;
