//! Who asked, where proxies stand between: their header fields, the PROXY protocol, and which proxies are believed.
//!
//! A proxy's word is worth as much as the proxy: what a peer that nobody trusts says of itself is never looked at. Called
//! by the engine's gate; nothing here knows a socket.

mod forwarded;
mod network;
pub mod proxy;

pub use forwarded::{Field, HOPS_MAX, client};
pub use network::{Network, NetworkError};
