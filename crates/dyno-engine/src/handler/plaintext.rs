//! `GET /plaintext`: the fixed text of the well-known plaintext test.

use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;

const TEXT: &str = "Hello, World!";

#[inline]
pub(crate) fn plaintext(_request: &Request<'_>, reply: Reply<'_>) -> Response {
    reply.text(TEXT)
}

pub(super) fn plaintext_generic(_request: &Request<'_>) -> (String, Vec<u8>) {
    ("text/plain".to_owned(), TEXT.to_owned().into_bytes())
}
