//! `POST /echo`: gives the body back under the content type that it came with.

use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;

#[inline]
pub(crate) fn echo(request: &Request<'_>, reply: Reply<'_>) -> Response {
    reply.bytes(media(request), request.body())
}

pub(super) fn echo_generic(request: &Request<'_>) -> (String, Vec<u8>) {
    (media(request).to_owned(), request.body().to_vec())
}

fn media<'r>(request: &'r Request<'_>) -> &'r str {
    request.header("content-type").filter(|name| !name.is_empty()).unwrap_or("application/octet-stream")
}
