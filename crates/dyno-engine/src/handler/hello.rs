//! `GET /hello/{name}`: greets by the decoded name.

use crate::reply::{Answered, Reply};
use crate::request::Request;

#[inline]
pub(crate) fn hello(request: &Request<'_>, reply: Reply<'_>) -> Answered {
    let name = request.param("name").unwrap_or_default();
    reply.text(&["Hello, ", name, "!"].concat())
}
