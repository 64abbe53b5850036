//! `GET /hello/{name}`: greets by the decoded name.

use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;

#[inline]
pub(crate) fn hello(request: &Request<'_>, reply: Reply<'_>) -> Response {
    reply.text(&greeting(request))
}

pub(super) fn hello_generic(request: &Request<'_>) -> (String, Vec<u8>) {
    ("text/plain".to_owned(), greeting(request).into_bytes())
}

fn greeting(request: &Request<'_>) -> String {
    ["Hello, ", request.param("name").unwrap_or_default(), "!"].concat()
}
