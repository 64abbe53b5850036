//! The simulator's parts; `run` is where it starts. The model of HTTP and the traffic stand beside it, at the crate's
//! root, because the tests over loopback use them too.

mod check;
mod commit;
mod content;
mod door;
#[cfg(fuzzing)]
pub mod fuzzed;
mod handlers;
mod hosts;
pub(crate) mod net;
mod run;
mod world;
