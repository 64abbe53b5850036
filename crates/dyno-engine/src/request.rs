//! A request as a handler sees it: method, path, parameters, headers, body. It borrows everything from the worker.

use crate::dials::Headers;
use crate::route::Params;
use dyno_proto::http1::request::{Head, Method};
use std::collections::HashMap;

/// A request that is completely received and sane.
pub struct Request<'r> {
    head: &'r Head<'r>,
    body: &'r [u8],
    params: &'r Params<'r>,
    owned: Option<Owned>,
}

/// Copied headers, in a box: a request without them stays small.
#[allow(clippy::box_collection, reason = "a request is made for every request, the map only by a dial")]
struct Owned(Box<HashMap<String, String>>);

impl<'r> Request<'r> {
    /// Puts the request together; with `headers = owned` every header is copied first, as first versions do.
    #[inline]
    pub(crate) fn new(
        head: &'r Head<'r>,
        body: &'r [u8],
        params: &'r Params<'r>,
        headers: Headers,
    ) -> Request<'r> {
        let owned = match headers {
            Headers::Borrowed => None,
            Headers::Owned => Some(Owned(Box::new(owned_headers(head)))),
        };
        Request { head, body, params, owned }
    }

    /// Whether the headers were copied.
    #[inline]
    pub(crate) fn is_owned(&self) -> bool {
        self.owned.is_some()
    }

    /// The method.
    #[must_use]
    pub fn method(&self) -> Method<'r> {
        self.head.method
    }

    /// The path as it was sent, percent-encoded, without the query.
    #[must_use]
    pub fn path(&self) -> &'r str {
        str::from_utf8(self.head.path()).expect("the parser admits visible ASCII only")
    }

    /// What follows the first `?`, percent-encoded; `None` without a question mark.
    #[must_use]
    pub fn query(&self) -> Option<&'r str> {
        let query = self.head.query()?;
        Some(str::from_utf8(query).expect("the parser admits visible ASCII only"))
    }

    /// The decoded value of the route's parameter `{name}`; `None` when the route has no such parameter.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name)
    }

    /// The first value of the header, whose name is compared without case; `None` when it is absent or not UTF-8.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        match &self.owned {
            Some(Owned(owned)) => owned.get(&name.to_ascii_lowercase()).map(String::as_str),
            None => borrowed_header(self.head, name),
        }
    }

    /// The body, at most `Limits::body_bytes_max` bytes; empty when there was none.
    #[must_use]
    pub fn body(&self) -> &'r [u8] {
        self.body
    }
}

fn borrowed_header<'r>(head: &Head<'r>, name: &str) -> Option<&'r str> {
    let named = |field: &[u8]| field.eq_ignore_ascii_case(name.as_bytes());
    head.headers().filter(|field| named(field.name)).find_map(|field| str::from_utf8(field.value).ok())
}

fn owned_headers(head: &Head<'_>) -> HashMap<String, String> {
    let mut owned = HashMap::new();
    for field in head.headers() {
        if let Ok(value) = str::from_utf8(field.value) {
            let name = String::from_utf8_lossy(field.name).to_ascii_lowercase();
            owned.entry(name).or_insert_with(|| value.to_owned());
        }
    }
    owned
}
