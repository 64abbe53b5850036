//! `GET /json`: a message serialised for every request, as the well-known JSON test asks.

use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use serde::Serialize;

#[derive(Serialize)]
struct Message<'m> {
    message: &'m str,
}

dyno_proto::json_object!(Message<'_> { "message": message });

const MESSAGE: Message<'static> = Message { message: "Hello, World!" };

#[inline]
pub(crate) fn json(_request: &Request<'_>, reply: Reply<'_>) -> Response {
    reply.json(&MESSAGE)
}

pub(super) fn json_generic(_request: &Request<'_>) -> (String, Vec<u8>) {
    let text = serde_json::to_string(&MESSAGE).expect("a text can be serialised");
    ("application/json".to_owned(), text.into_bytes())
}
