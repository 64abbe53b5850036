//! A request as a handler sees it: method, path, parameters, headers, body. It borrows everything from the worker.

use crate::params::Params;
use dyno_proto::http1::request::{Head, Header, Method};

/// A request that is completely received and sane; of an upload, its head.
///
/// ```
/// # use dyno_engine::*;
/// Server::new().route(Method::Get, "/", |request, reply| reply.text(request.header("User-Agent").unwrap_or("nobody")));
/// ```
pub struct Request<'r> {
    head: &'r Head<'r>,
    body: &'r [u8],
    params: &'r Params<'r>,
}

impl<'r> Request<'r> {
    #[inline]
    pub(crate) fn new(head: &'r Head<'r>, body: &'r [u8], params: &'r Params<'r>) -> Request<'r> {
        Request { head, body, params }
    }

    /// The method.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| match request.method() {
    ///     Method::Head => reply.empty(),
    ///     _ => reply.text("a body\n"),
    /// });
    /// ```
    #[must_use]
    pub fn method(&self) -> Method<'r> {
        self.head.method
    }

    /// The path as it was sent, percent-encoded, without the query.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.text(request.path()));
    /// ```
    #[must_use]
    pub fn path(&self) -> &'r str {
        str::from_utf8(self.head.path()).expect("the parser admits visible ASCII only")
    }

    /// What follows the first `?`, percent-encoded; `None` without a question mark.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.text(request.query().unwrap_or("no query")));
    /// ```
    #[must_use]
    pub fn query(&self) -> Option<&'r str> {
        let query = self.head.query()?;
        Some(str::from_utf8(query).expect("the parser admits visible ASCII only"))
    }

    /// The decoded value of the route's parameter `{name}`; `None` when the route has no such parameter.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.text(request.param("name").unwrap_or("nobody")));
    /// ```
    #[must_use]
    pub fn param(&self, name: &str) -> Option<&str> {
        self.params.get(name)
    }

    /// The first value of the header, whose name is compared without case; `None` when it is absent or not UTF-8.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.text(request.header("Accept-Language").unwrap_or("en")));
    /// ```
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        let named = |field: &Header<'_>| field.name.eq_ignore_ascii_case(name.as_bytes());
        self.head.headers().filter(named).find_map(|field| str::from_utf8(field.value).ok())
    }

    /// Every header, in the order in which they came: name and value as they were sent.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.text(&format!("{} fields\n", request.headers().count())));
    /// ```
    pub fn headers(&self) -> impl Iterator<Item = (&'r [u8], &'r [u8])> + use<'r> {
        self.head.headers().map(|field| (field.name, field.value))
    }

    /// The body, at most `Limits::body_bytes_max` bytes; empty when there was none.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// Server::new().route(Method::Get, "/", |request, reply| reply.bytes("application/octet-stream", request.body()));
    /// ```
    #[must_use]
    pub fn body(&self) -> &'r [u8] {
        self.body
    }
}
