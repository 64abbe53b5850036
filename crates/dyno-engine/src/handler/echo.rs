//! `POST /echo`: gives the body back under the content type that it came with.

use crate::reply::{Answered, Reply};
use crate::request::Request;

#[inline]
pub(crate) fn echo(request: &Request<'_>, reply: Reply<'_>) -> Answered {
    let content_type = request.header("content-type").filter(|name| !name.is_empty());
    reply.bytes(content_type.unwrap_or("application/octet-stream"), request.body())
}
