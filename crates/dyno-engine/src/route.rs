//! Routes: from a method and a path to a handler, its parameters, or the reason why there is none.
//!
//! Fixed paths stand in a table by length and are compared whole; paths with parameters are left to `matchit`. Paths
//! with percent-escapes are brought to their normal form first and parameters are decoded after the match, so that an
//! escaped slash never separates segments.

use crate::mailbox::Waker;
use crate::params::Params;
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use crate::upload::Upload;
use dyno_proto::http1::request::Method;
use dyno_proto::percent;

/// A handler: called once per request, on the worker's thread; it must not block.
///
/// ```
/// # use dyno_engine::*;
/// let hello: Box<Handler> = Box::new(|_request, reply| reply.text("Hello!\n"));
/// # let _ = hello;
/// ```
pub type Handler = dyn for<'r, 'w> Fn(&Request<'r>, Reply<'w>) -> Response + Send + Sync;

/// Begins an upload: called with the request's head, before its body has come. The waker lets a paused upload go on; an
/// error is a status to answer with instead.
///
/// ```
/// # use dyno_engine::*;
/// let nobody: Box<Begin> = Box::new(|_request, _waker| Err(403));
/// # let _ = nobody;
/// ```
pub type Begin = dyn for<'r> Fn(&Request<'r>, Waker) -> Result<Box<dyn Upload>, u16> + Send + Sync;

/// What a route does with a request.
pub(crate) enum Action {
    /// Answers it, once it is whole.
    Answer(Box<Handler>),
    /// Takes its body piece by piece.
    Upload(Box<Begin>),
}

/// Lengths of fixed paths that have a bucket of their own; longer ones share the last. 64 covers common APIs.
const BUCKETS: usize = 64;

/// The methods that a route can have, in the order of an Allow header.
const METHODS: [Method<'static>; 7] =
    [Method::Get, Method::Head, Method::Post, Method::Put, Method::Delete, Method::Patch, Method::Options];

/// What an OPTIONS for the whole server is told (RFC 9110 §9.3.7).
const ALLOW_ALL: &str = "GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS";

/// Why a route could not be added.
///
/// ```
/// # use dyno_engine::*;
/// let mut router = Router::new();
/// let refused = router.route(Method::Get, "no/slash", |_request, reply| reply.empty());
/// assert!(matches!(refused, Err(RouteError::Pattern { .. })));
/// ```
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// The pattern has a handler for this method already.
    #[error("route {method} {pattern} is there twice")]
    Twice {
        /// The method.
        method: String,
        /// The pattern.
        pattern: String,
    },
    /// The pattern is not a path, or collides with another one.
    #[error("route {pattern} cannot be added: {why}")]
    Pattern {
        /// The pattern.
        pattern: String,
        /// The reason, in words.
        why: String,
    },
    /// No handler can be given for this method.
    #[error("route {pattern} cannot be served for {method}: only {ALLOW_ALL}")]
    Method {
        /// The method.
        method: String,
        /// The pattern.
        pattern: String,
    },
}

/// The routes of a server.
///
/// ```
/// # use dyno_engine::*;
/// let mut router = Router::new();
/// router.route(Method::Get, "/users/{id}", |request, reply| reply.text(request.param("id").unwrap_or("")))?;
/// let server = Server::new().router(router);
/// # let _ = server;
/// # Ok::<(), RouteError>(())
/// ```
pub struct Router {
    fixed: [Vec<(Box<[u8]>, usize)>; BUCKETS],
    with_params: matchit::Router<usize>,
    resources: Vec<Resource>,
}

struct Resource {
    pattern: String,
    actions: [Option<Action>; METHODS.len()],
    allow: String,
}

impl Default for Router {
    fn default() -> Router {
        Router {
            fixed: [const { Vec::new() }; BUCKETS],
            with_params: matchit::Router::new(),
            resources: Vec::new(),
        }
    }
}

impl Router {
    /// A router without routes: everything is 404.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let server = Server::new().router(Router::new());
    /// # let _ = server;
    /// ```
    #[must_use]
    pub fn new() -> Router {
        Router::default()
    }

    /// Adds a route. `{name}` stands for one segment, `{*name}` for the rest of the path; parameters are decoded.
    /// HEAD is answered by the GET handler and OPTIONS by itself unless they have a handler of their own.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// let mut router = Router::new();
    /// router.route(Method::Get, "/files/{*path}", |request, reply| reply.text(request.param("path").unwrap_or("")))?;
    /// # Ok::<(), RouteError>(())
    /// ```
    ///
    /// # Errors
    /// [`RouteError`] when the pattern is no path, collides, or has this method already.
    pub fn route<F>(&mut self, method: Method<'_>, pattern: &str, handler: F) -> Result<(), RouteError>
    where
        F: for<'r, 'w> Fn(&Request<'r>, Reply<'w>) -> Response + Send + Sync + 'static,
    {
        self.add(method, pattern, Action::Answer(Box::new(handler)))
    }

    /// Adds a route that takes request bodies piece by piece: they may be of any length and are never held whole.
    ///
    /// ```
    /// # use dyno_engine::*;
    /// struct Count(usize);
    ///
    /// impl Upload for Count {
    ///     fn data(&mut self, bytes: &[u8]) -> Flow {
    ///         self.0 += bytes.len();
    ///         Flow::More
    ///     }
    ///     fn end(self: Box<Self>, reply: Reply<'_>) -> Response {
    ///         reply.text(&format!("{} bytes\n", self.0))
    ///     }
    /// }
    ///
    /// let mut router = Router::new();
    /// router.upload(Method::Put, "/count", |_request, _waker| Ok(Box::new(Count(0)) as Box<dyn Upload>))?;
    /// # Ok::<(), RouteError>(())
    /// ```
    ///
    /// # Errors
    /// As [`Router::route`].
    pub fn upload<F>(&mut self, method: Method<'_>, pattern: &str, begin: F) -> Result<(), RouteError>
    where
        F: for<'r> Fn(&Request<'r>, Waker) -> Result<Box<dyn Upload>, u16> + Send + Sync + 'static,
    {
        self.add(method, pattern, Action::Upload(Box::new(begin)))
    }

    fn add(&mut self, method: Method<'_>, pattern: &str, action: Action) -> Result<(), RouteError> {
        let Some(column) = column(method) else {
            return Err(RouteError::Method { method: name_of(method), pattern: pattern.to_owned() });
        };
        let at = self.resource(pattern)?;
        let resource = &mut self.resources[at];
        if resource.actions[column].is_some() {
            return Err(RouteError::Twice { method: name_of(method), pattern: pattern.to_owned() });
        }
        resource.actions[column] = Some(action);
        resource.allow = allow_of(resource);
        Ok(())
    }

    /// Finds what a request is for. `scratch` holds the path's normal form and is reused between requests.
    #[inline(always)] // Into the way of a request, where most paths are fixed ones.
    pub(crate) fn find<'f>(
        &'f self,
        method: Method<'_>,
        path: &'f [u8],
        scratch: &'f mut Vec<u8>,
    ) -> Found<'f> {
        if let Some(at) = self.fixed_at(path) {
            return self.resources[at].found(method, Params::None);
        }
        self.find_slowly(method, path, scratch)
    }

    #[inline]
    fn fixed_at(&self, path: &[u8]) -> Option<usize> {
        let bucket = &self.fixed[path.len().min(BUCKETS - 1)];
        bucket.iter().find(|(fixed, _)| is_same(fixed, path)).map(|&(_, at)| at)
    }

    #[inline(never)]
    fn find_slowly<'f>(&'f self, method: Method<'_>, path: &'f [u8], scratch: &'f mut Vec<u8>) -> Found<'f> {
        match method {
            Method::Connect | Method::Other(_) => return Found::NotImplemented,
            Method::Options if path == b"*" => return Found::Options { allow: ALLOW_ALL },
            _ => {}
        }
        if !percent::has_escapes(path) {
            return self.find_normal(method, path);
        }
        scratch.clear();
        match percent::normalize(path, scratch) {
            Ok(()) => self.find_normal(method, scratch),
            Err(_) => Found::BadPath,
        }
    }

    fn find_normal<'f>(&'f self, method: Method<'_>, path: &'f [u8]) -> Found<'f> {
        if let Some(at) = self.fixed_at(path) {
            return self.resources[at].found(method, Params::None);
        }
        // The parser admits visible ASCII only; anything else would be nowhere.
        let Ok(path) = str::from_utf8(path) else { return Found::Nowhere };
        let Ok(matched) = self.with_params.at(path) else { return Found::Nowhere };
        match Params::of(matched.params) {
            Some(params) => self.resources[*matched.value].found(method, params),
            None => Found::BadPath,
        }
    }

    fn resource(&mut self, pattern: &str) -> Result<usize, RouteError> {
        if let Some(at) = self.resources.iter().position(|resource| resource.pattern == pattern) {
            return Ok(at);
        }
        self.admit(pattern).map_err(|why| RouteError::Pattern { pattern: pattern.to_owned(), why })
    }

    fn admit(&mut self, pattern: &str) -> Result<usize, String> {
        if !pattern.starts_with('/') {
            return Err("a pattern starts with a slash".to_owned());
        }
        if let Some(odd) =
            pattern.chars().find(|&letter| !letter.is_ascii_graphic() || "?#%".contains(letter))
        {
            return Err(format!("a pattern cannot contain {odd:?}"));
        }
        let at = self.resources.len();
        if pattern.contains(['{', '}']) {
            self.with_params.insert(pattern, at).map_err(|error| error.to_string())?;
        } else {
            let bucket = &mut self.fixed[pattern.len().min(BUCKETS - 1)];
            bucket.push((pattern.as_bytes().into(), at));
        }
        let actions = [const { None }; METHODS.len()];
        self.resources.push(Resource { pattern: pattern.to_owned(), actions, allow: String::new() });
        Ok(at)
    }
}

impl Resource {
    #[inline(always)] // As `find`.
    fn found<'f>(&'f self, method: Method<'_>, params: Params<'f>) -> Found<'f> {
        match column(method).and_then(|column| self.actions[column].as_ref()) {
            Some(action) => Found::Action { action, params },
            None => self.found_otherwise(method, params),
        }
    }

    #[inline(never)]
    fn found_otherwise<'f>(&'f self, method: Method<'_>, params: Params<'f>) -> Found<'f> {
        match (method, self.actions[0].as_ref()) {
            (Method::Head, Some(action @ Action::Answer(_))) => Found::Action { action, params },
            (Method::Options, _) => Found::Options { allow: &self.allow },
            (Method::Connect | Method::Other(_), _) => Found::NotImplemented,
            _ => Found::MethodMissing { allow: &self.allow },
        }
    }
}

/// What a request is for.
pub(crate) enum Found<'f> {
    /// This is done with it.
    Action { action: &'f Action, params: Params<'f> },
    /// The path is known, the method is not served there: 405.
    MethodMissing { allow: &'f str },
    /// OPTIONS, answered by the engine.
    Options { allow: &'f str },
    /// A method that the engine does not implement: 501.
    NotImplemented,
    /// An escape in the path is malformed, or a parameter is no text: 400.
    BadPath,
    /// 404.
    Nowhere,
}

/// Compares short paths by their first and their last bytes, which overlap: words in place of a call that has to
/// find out how many bytes there are.
#[inline]
fn is_same(one: &[u8], other: &[u8]) -> bool {
    if one.len() != other.len() {
        return false;
    }
    match one.len() {
        4..8 => one.first_chunk::<4>() == other.first_chunk() && one.last_chunk::<4>() == other.last_chunk(),
        8..=16 => {
            one.first_chunk::<8>() == other.first_chunk() && one.last_chunk::<8>() == other.last_chunk()
        }
        _ => one == other,
    }
}

#[inline]
fn column(method: Method<'_>) -> Option<usize> {
    if method == Method::Get { Some(0) } else { other_column(method) }
}

fn other_column(method: Method<'_>) -> Option<usize> {
    METHODS.iter().position(|&known| known == method)
}

fn name_of(method: Method<'_>) -> String {
    String::from_utf8_lossy(method.as_bytes()).into_owned()
}

fn allow_of(resource: &Resource) -> String {
    let has = |method: Method<'_>| column(method).is_some_and(|column| resource.actions[column].is_some());
    let served = |method: &Method<'_>| match method {
        Method::Head => has(Method::Head) || has(Method::Get),
        Method::Options => true,
        other => has(*other),
    };
    METHODS.into_iter().filter(served).map(name_of).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn router(routes: &[(Method<'static>, &str)]) -> Router {
        let mut router = Router::new();
        for (method, pattern) in routes {
            router.route(*method, pattern, |_, reply| reply.empty()).unwrap();
        }
        router
    }

    fn found(router: &Router, method: Method<'_>, path: &str) -> String {
        match router.find(method, path.as_bytes(), &mut Vec::new()) {
            Found::Action { params, .. } => {
                let value = |name| params.get(name).map_or(String::new(), |value| format!(" {name}={value}"));
                format!("handler{}{}", value("name"), value("rest"))
            }
            Found::MethodMissing { allow } => format!("405 {allow}"),
            Found::Options { allow } => format!("options {allow}"),
            Found::NotImplemented => "501".to_owned(),
            Found::BadPath => "400".to_owned(),
            Found::Nowhere => "404".to_owned(),
        }
    }

    #[test]
    fn each_request_finds_what_it_is_for() {
        let long = format!("/{}", "x".repeat(200));
        let router = router(&[
            (Method::Get, "/json"),
            (Method::Post, "/echo"),
            (Method::Get, "/hello/{name}"),
            (Method::Delete, "/hello/{name}"),
            (Method::Get, "/files/{*rest}"),
            (Method::Get, &long),
            (Method::Get, "/a b".replace(' ', "-").as_str()),
        ]);
        for (method, path, expected) in [
            (Method::Get, "/json", "handler"),
            (Method::Head, "/json", "handler"),
            (Method::Get, "/%6a%73on", "handler"),
            (Method::Get, long.as_str(), "handler"),
            (Method::Post, "/json", "405 GET, HEAD, OPTIONS"),
            (Method::Trace, "/json", "405 GET, HEAD, OPTIONS"),
            (Method::Head, "/echo", "405 POST, OPTIONS"),
            (Method::Options, "/json", "options GET, HEAD, OPTIONS"),
            (Method::Options, "*", "options GET, HEAD, POST, PUT, DELETE, PATCH, OPTIONS"),
            (Method::Get, "/hello/world", "handler name=world"),
            (Method::Get, "/hello/%E4%B8%96%20x", "handler name=世 x"),
            (Method::Get, "/hello/a%2Fb", "handler name=a/b"),
            (Method::Get, "/hello/a%252Fb", "handler name=a%2Fb"),
            (Method::Put, "/hello/world", "405 GET, HEAD, DELETE, OPTIONS"),
            (Method::Get, "/hello/a/b", "404"),
            (Method::Get, "/hello/", "404"),
            (Method::Get, "/files/a/b", "handler rest=a/b"),
            (Method::Get, "/hello/%00", "400"),
            (Method::Get, "/hello/%4", "400"),
            (Method::Get, "/hello/%zz", "400"),
            (Method::Get, "/hello/%FF", "400"),
            (Method::Get, "/hello%2Fworld", "404"),
            (Method::Get, "/jsonx", "404"),
            (Method::Get, "", "404"),
            (Method::Get, "*", "404"),
            (Method::Connect, "example.com:443", "501"),
            (Method::Other(b"BREW"), "/json", "501"),
            (Method::Other(b"BREW"), "/nowhere", "501"),
        ] {
            assert_eq!(found(&router, method, path), expected, "{method:?} {path}");
        }
    }

    #[test]
    fn paths_are_the_same_when_every_byte_is() {
        for length in 0..40 {
            let path: Vec<u8> = (0..length).map(|at| b'a' + at % 26).collect();
            assert!(is_same(&path, &path.clone()));
            assert!(!is_same(&path, &[&path[..], b"x"].concat()));
            for at in 0..path.len() {
                let mut other = path.clone();
                other[at] ^= 1;
                assert!(!is_same(&path, &other), "{at} of {length}");
            }
        }
    }

    #[test]
    fn a_route_that_could_never_be_reached_is_refused() {
        let mut router = router(&[(Method::Get, "/json"), (Method::Get, "/hello/{name}")]);
        let mut add = |method, pattern: &str| router.route(method, pattern, |_, reply| reply.empty());
        assert!(matches!(add(Method::Get, "/json"), Err(RouteError::Twice { .. })));
        assert!(matches!(add(Method::Get, "json"), Err(RouteError::Pattern { .. })));
        assert!(matches!(add(Method::Get, "/a?b"), Err(RouteError::Pattern { .. })));
        assert!(matches!(add(Method::Get, "/hello/{other}"), Err(RouteError::Pattern { .. })));
        assert!(matches!(add(Method::Connect, "/x"), Err(RouteError::Method { .. })));
        assert!(add(Method::Post, "/json").is_ok());
    }
}
