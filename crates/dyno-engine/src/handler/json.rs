//! `GET /json`: a message serialised for every request, as the well-known JSON test asks.

use crate::reply::{Answered, Reply};
use crate::request::Request;
use serde::Serialize;

#[derive(Serialize)]
struct Message<'m> {
    message: &'m str,
}

dyno_proto::json_object!(Message<'_> { "message": message });

#[inline]
pub(crate) fn json(_request: &Request<'_>, reply: Reply<'_>) -> Answered {
    reply.json_either(&Message { message: "Hello, World!" })
}
