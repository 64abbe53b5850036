//! Netlink (`netlink(7)`): what the kernel tells in messages instead of files: devices, queues of packets, offloads,
//! listeners, taps, audit rules, packet filters.
//!
//! The host's facts are read with it. The readers only ask; [`crate::setting`] changes settings, and `link` makes cables of our
//! own. Replies are parsed by pure functions of bytes, and every dump has a limit.

pub mod attribute;
pub mod audit;
pub mod ethtool;
mod expression;
pub mod link;
pub mod nftables;
pub mod route;
pub mod sock_diag;
pub mod socket;
