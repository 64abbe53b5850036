//! HTTP/1.1 (RFC 9110, RFC 9112), both directions, without input or output of its own.
//!
//! [`request`] and [`chunk`] read what a client sends, and refuse every message that two readers could
//! understand in two ways; [`response`] reads what a server sends; [`encode`] writes both.

mod authority;
pub mod chunk;
pub mod encode;
mod field_line;
mod fields;
mod head;
mod limits;
mod line;
mod method;
mod reject;
pub mod request;
mod request_line;
pub mod response;

pub use head::{BodyLength, Head, Header, Slots, Version};
pub use method::Method;
pub use reject::Reject;
