//! Bytes in, events out: HTTP/1.1 for both directions, the semantics of content, JSON encoding, percent-encoding, dates.
//!
//! The engine reads requests and writes replies with it, the load generator writes requests and reads
//! replies. Nothing in here touches a socket, a clock, a thread or the environment: the same bytes give
//! the same outcome, however they were cut and whenever they came.

pub mod client;
pub mod date;
pub mod file_path;
pub mod http1;
pub mod json;
pub mod percent;
mod scan;
pub mod semantics;
mod word;
