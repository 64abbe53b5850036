//! `GET /plaintext`: the fixed text of the well-known plaintext test.

use crate::reply::{Answered, Reply};
use crate::request::Request;

#[inline]
pub(crate) fn plaintext(_request: &Request<'_>, reply: Reply<'_>) -> Answered {
    reply.text("Hello, World!")
}
