//! What is asked of whom: a URL becomes an address and the bytes of one request, or of several that are given.
//!
//! Called once before a run; the sessions send these bytes unchanged, so nothing is formatted per request. It speaks
//! plain HTTP/1.1 only. It resolves a name that the user wrote and opens no connection.

use std::net::{SocketAddr, ToSocketAddrs};

use dyno_proto::http1::response::Asked;
use dyno_sys::socket::Addr;

use crate::requests::{Requests, Unusable};

/// Where requests go and what each of them is, ready to be sent.
#[derive(Debug, Clone)]
pub struct Target {
    addr: Addr,
    /// Where the name leads besides.
    other: Option<Addr>,
    host: String,
    requests: Requests,
}

/// Why a URL or a request cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// TLS is not spoken here.
    #[error("\"{url}\": https is not supported yet; only http:// targets can be loaded")]
    NotYetHttps {
        /// The URL as given.
        url: String,
    },
    /// There is no `http://` in front.
    #[error("\"{url}\" does not start with http://, as in http://127.0.0.1:8080/")]
    NoScheme {
        /// The URL as given.
        url: String,
    },
    /// The URL breaks the grammar of RFC 3986 §3, or carries what a request cannot.
    #[error("\"{url}\": {why}")]
    BadUrl {
        /// The URL as given.
        url: String,
        /// What is wrong with it, in words.
        why: &'static str,
    },
    /// The host's name has no address.
    #[error("cannot find the address of \"{host}\"")]
    Unresolved {
        /// The host as written in the URL.
        host: String,
        /// What the resolver said; none when it answered with an empty list.
        source: Option<std::io::Error>,
    },
    /// The method is not a token (RFC 9110 §9.1), or is CONNECT.
    #[error("\"{method}\" cannot be sent as a method: {why}")]
    BadMethod {
        /// The method as given.
        method: String,
        /// What is wrong with it, in words.
        why: &'static str,
    },
    /// The header cannot be sent, or is one that the generator writes itself.
    #[error("header \"{name}\" cannot be sent: {why}")]
    BadHeader {
        /// The header's name as given.
        name: String,
        /// What is wrong with it, in words.
        why: &'static str,
    },
    /// One of several given requests cannot be sent.
    #[error("request {number} of those given cannot be sent: {why}")]
    BadRequest {
        /// Which one, counted from 1.
        number: usize,
        /// What is wrong with it, in words.
        why: &'static str,
    },
}

impl Target {
    /// A plain GET of this URL: request line and `Host`, nothing else, as wrk sends it.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn get(url: &str) -> Result<Self, TargetError> {
        Self::builder(url).build()
    }

    /// A request for this URL with another method, headers or a body.
    pub fn builder(url: &str) -> TargetBuilder {
        TargetBuilder {
            url: url.to_owned(),
            method: "GET".to_owned(),
            headers: Vec::new(),
            body: None,
            given: None,
            over: None,
        }
    }

    /// Where connections go.
    #[must_use]
    pub fn addr(&self) -> &Addr {
        &self.addr
    }

    /// The same at the other address that its name stands for, where there is one.
    pub(crate) fn elsewhere(&self) -> Option<Self> {
        self.other.clone().map(|addr| Self { addr, other: None, ..self.clone() })
    }

    /// The value of the request's `Host`; of given requests, the URL's host.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The bytes of one request, head and body; of several, the first.
    #[must_use]
    pub fn request(&self) -> &[u8] {
        self.requests.first()
    }

    /// The bytes of all requests, one behind the other; the same as [`Target::request`] where there is one.
    #[must_use]
    pub fn all_requests(&self) -> &[u8] {
        self.requests.all()
    }

    /// The bytes of so many requests, each of several taken as often as the others.
    #[must_use]
    pub fn bytes_of(&self, requests: u64) -> u64 {
        self.requests.bytes_of(requests)
    }

    /// All requests, which are sent in turn.
    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// What the framing of an answer has to know of its request.
    pub(crate) fn asked(&self) -> Asked {
        self.requests.asked()
    }
}

/// A request in the making; every mistake is reported by [`TargetBuilder::build`].
#[derive(Debug, Clone)]
#[must_use = "nothing is checked before build()"]
pub struct TargetBuilder {
    url: String,
    method: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    given: Option<Vec<u8>>,
    over: Option<Addr>,
}

impl TargetBuilder {
    /// The method, as it shall stand in the request line; `GET` otherwise.
    pub fn method(mut self, method: &str) -> Self {
        method.clone_into(&mut self.method);
        self
    }

    /// One more header, in the order given. `Host` replaces the one made from the URL.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body; its `Content-Length` is written by [`TargetBuilder::build`].
    pub fn body(mut self, body: Vec<u8>) -> Self {
        self.body = Some(body);
        self
    }

    /// Sends these requests in turn, whole ones one behind the other, byte for byte; the URL says where they go and
    /// nothing else. Method, headers and body are not used then.
    pub fn requests(mut self, bytes: Vec<u8>) -> Self {
        self.given = Some(bytes);
        self
    }

    /// Connects to this address, a Unix socket for instance, whatever the URL's host is.
    pub fn over(mut self, addr: Addr) -> Self {
        self.over = Some(addr);
        self
    }

    /// Checks everything, resolves the host and writes the request's bytes.
    ///
    /// # Errors
    /// See [`TargetError`].
    pub fn build(self) -> Result<Target, TargetError> {
        let url = Url::parse(&self.url)?;
        let asked = asked_by(&self.method)?;
        for (name, value) in &self.headers {
            check_header(name, value)?;
        }
        let host = self.host_value(&without_zone(url.authority))?;
        let requests = match &self.given {
            Some(bytes) => Requests::read(bytes)?,
            None => Requests::one(self.request_bytes(&url.target, &host), asked),
        };
        let (addr, other) = match self.over {
            Some(addr) => (addr, None),
            None => {
                let (first, other) = resolve(url.host, url.port)?;
                (Addr::Tcp(first), other.map(Addr::Tcp))
            }
        };
        Ok(Target { addr, other, host, requests })
    }

    fn host_value(&self, authority: &str) -> Result<String, TargetError> {
        let mut given = self.headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("host"));
        match (given.next(), given.next()) {
            (None, _) => Ok(authority.to_owned()),
            (Some((_, value)), None) => Ok(value.clone()),
            (Some((name, _)), Some(_)) => {
                Err(TargetError::BadHeader { name: name.clone(), why: "a request has one Host" })
            }
        }
    }

    fn request_bytes(&self, target: &str, host: &str) -> Vec<u8> {
        let mut text = format!("{} {target} HTTP/1.1\r\nHost: {host}\r\n", self.method);
        for (name, value) in self.headers.iter().filter(|(name, _)| !name.eq_ignore_ascii_case("host")) {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(body) = &self.body {
            text.push_str(&format!("Content-Length: {}\r\n", body.len()));
        }
        text.push_str("\r\n");
        let mut bytes = text.into_bytes();
        bytes.extend_from_slice(self.body.as_deref().unwrap_or_default());
        bytes
    }
}

impl From<Unusable> for TargetError {
    fn from(Unusable { number, why }: Unusable) -> Self {
        Self::BadRequest { number, why }
    }
}

/// A URL in pieces; pure, nothing is resolved.
#[derive(Debug, PartialEq, Eq)]
struct Url<'u> {
    authority: &'u str,
    host: &'u str,
    port: u16,
    target: String,
}

impl<'u> Url<'u> {
    fn parse(url: &'u str) -> Result<Self, TargetError> {
        let bad = |why| TargetError::BadUrl { url: url.to_owned(), why };
        if starts_with_ignoring_case(url, "https://") {
            return Err(TargetError::NotYetHttps { url: url.to_owned() });
        }
        if !starts_with_ignoring_case(url, "http://") {
            return Err(TargetError::NoScheme { url: url.to_owned() });
        }
        if !url.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(bad("blanks, controls and characters beyond ASCII must be percent-encoded"));
        }
        let rest = url["http://".len()..].split('#').next().unwrap_or_default();
        let (authority, tail) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return Err(bad("a user name in the URL is not sent; give an Authorization header"));
        }
        let (host, port) = split_port(authority).map_err(bad)?;
        let target = if tail.starts_with('/') { tail.to_owned() } else { format!("/{tail}") };
        Ok(Self { authority, host, port, target })
    }
}

fn starts_with_ignoring_case(text: &str, prefix: &str) -> bool {
    text.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
}

/// Splits `host:port`, `[v6]:port` or `host` (port 80, RFC 9110 §4.2.1); brackets are taken off the host.
fn split_port(authority: &str) -> Result<(&str, u16), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, after) = rest.split_once(']').ok_or("the bracket of an IPv6 address is not closed")?;
            let port = if after.is_empty() { None } else { Some(after.strip_prefix(':').ok_or(BAD_PORT)?) };
            (host, port)
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    if host.is_empty() {
        return Err("the host is missing");
    }
    match port {
        None => Ok((host, 80)),
        Some(digits) if !digits.bytes().all(|byte| byte.is_ascii_digit()) => Err(BAD_PORT),
        Some(digits) => {
            digits.parse().ok().filter(|port| *port != 0).map(|port| (host, port)).ok_or(BAD_PORT)
        }
    }
}

const BAD_PORT: &str = "the port is not a number from 1 to 65535";

/// A zone says by which of this machine's interfaces an address is reached, and means nothing to the server (RFC 6874 §4).
fn without_zone(authority: &str) -> String {
    let zone = authority.strip_prefix('[').and_then(|rest| rest.split_once(']')).and_then(|(host, after)| {
        let (address, _zone) = host.split_once('%')?;
        Some(format!("[{address}]{after}"))
    });
    zone.unwrap_or_else(|| authority.to_owned())
}

/// The first IPv4 address, else the first of any: `localhost` often means ::1 first, while servers listen on
/// 127.0.0.1. And the first IPv6 address behind it, where there is one: some listen on ::1 alone.
fn resolve(host: &str, port: u16) -> Result<(SocketAddr, Option<SocketAddr>), TargetError> {
    let unresolved = |source| TargetError::Unresolved { host: host.to_owned(), source };
    // A zone's mark is percent-encoded in a URL (RFC 6874 §2); bare, as the resolver wants it, it is understood too.
    let name = if host.contains(':') { host.replacen("%25", "%", 1) } else { host.to_owned() };
    let all: Vec<SocketAddr> =
        (name.as_str(), port).to_socket_addrs().map_err(|error| unresolved(Some(error)))?.collect();
    let [v4, v6] = [SocketAddr::is_ipv4, SocketAddr::is_ipv6].map(|is| all.iter().copied().find(is));
    let first = v4.or(v6).ok_or_else(|| unresolved(None))?;
    Ok((first, v6.filter(|v6| *v6 != first)))
}

fn asked_by(method: &str) -> Result<Asked, TargetError> {
    let bad = |why| TargetError::BadMethod { method: method.to_owned(), why };
    match method {
        "CONNECT" => Err(bad("a tunnel has no answers to count")),
        "HEAD" => Ok(Asked::Head),
        _ if is_token(method) => Ok(Asked::Other),
        _ => Err(bad("it is not a token (RFC 9110 §5.6.2)")),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), TargetError> {
    let bad = |why| Err(TargetError::BadHeader { name: name.to_owned(), why });
    if !is_token(name) {
        return bad("its name is not a token (RFC 9110 §5.6.2)");
    }
    if value.bytes().any(|byte| byte != b'\t' && byte.is_ascii_control()) {
        return bad("its value has a control character");
    }
    if name.eq_ignore_ascii_case("content-length") || name.eq_ignore_ascii_case("transfer-encoding") {
        return bad("the generator frames the body itself");
    }
    // Interim answers are skipped, so a body held back for one would be waited for by both sides.
    if name.eq_ignore_ascii_case("expect") || name.eq_ignore_ascii_case("upgrade") {
        return bad("the generator sends the whole request at once and stays with HTTP/1.1");
    }
    Ok(())
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn request_of(url: &str) -> String {
        String::from_utf8(Target::get(url).unwrap().request().to_vec()).unwrap()
    }

    #[test]
    fn a_get_is_the_request_that_wrk_sends() {
        assert_eq!(
            request_of("http://127.0.0.1:8080/json"),
            "GET /json HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"
        );
    }

    #[test]
    fn the_path_defaults_to_a_slash_and_the_fragment_stays_at_home() {
        let line = |url| request_of(url).lines().next().unwrap().to_owned();
        assert_eq!(line("http://127.0.0.1"), "GET / HTTP/1.1");
        assert_eq!(line("HTTP://127.0.0.1?a=1"), "GET /?a=1 HTTP/1.1");
        assert_eq!(line("http://127.0.0.1/a?b=/c#d/e"), "GET /a?b=/c HTTP/1.1");
        assert_eq!(line("http://127.0.0.1#x"), "GET / HTTP/1.1");
    }

    #[test]
    fn host_and_port_are_cut_as_rfc_3986_says() {
        assert_eq!(split_port("a.example"), Ok(("a.example", 80)));
        assert_eq!(split_port("[::1]:8080"), Ok(("::1", 8080)));
        assert_eq!(split_port("[::1]"), Ok(("::1", 80)));
        for bad in ["", ":80", "a:", "a:0", "a:65536", "a:+80", "a:b", "[::1", "[::1]8", "[]:80", "::1"] {
            assert!(split_port(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_ip_target_needs_no_resolver_and_localhost_prefers_ipv4() {
        let addr = |url| Target::get(url).unwrap().addr().to_string();
        assert_eq!(addr("http://127.0.0.1:81/"), "127.0.0.1:81");
        assert_eq!(addr("http://[::1]:81/"), "[::1]:81");
        assert_eq!(addr("http://localhost:81/"), "127.0.0.1:81");
    }

    /// Planted fault: the zone is asked for percent-encoded, or sent to the server.
    #[test]
    fn a_zone_says_where_to_and_stays_at_home() {
        for url in ["http://[fe80::1%25lo]:81/", "http://[fe80::1%lo]:81/"] {
            let target = Target::get(url).unwrap();
            let Addr::Tcp(SocketAddr::V6(addr)) = target.addr() else { panic!("{url} is IPv6") };
            assert!(addr.ip().to_string() == "fe80::1" && addr.scope_id() > 0, "{addr}");
            assert_eq!(target.host(), "[fe80::1]:81", "{url}");
        }
        assert_eq!(without_zone("[fe80::1%25eth0]"), "[fe80::1]");
        assert_eq!(without_zone("a%25b:80"), "a%25b:80");
    }

    #[test]
    fn what_cannot_be_loaded_is_refused_with_its_reason() {
        let says = |url: &str| Target::get(url).expect_err(url).to_string();
        assert!(says("https://127.0.0.1/").contains("not supported yet"));
        assert!(says("127.0.0.1:8080").contains("http://"));
        assert!(says(":8080").contains("http://"));
        assert!(says("http://u:p@127.0.0.1/").contains("user name"));
        assert!(says("http://127.0.0.1/a b").contains("percent-encoded"));
        assert!(says("http://127.0.0.1/a\r\nX: y").contains("percent-encoded"));
        assert!(says("http://127.0.0.1:99999/").contains("port"));
        assert!(says("http:///x").contains("host"));
    }

    #[test]
    fn a_post_carries_its_headers_in_order_and_the_length_of_its_body() {
        let target = Target::builder("http://127.0.0.1:80/x")
            .method("POST")
            .header("Content-Type", "text/plain")
            .header("host", "other.example")
            .body(b"hello".to_vec())
            .build()
            .unwrap();
        assert_eq!(target.host(), "other.example");
        let wanted = "POST /x HTTP/1.1\r\nHost: other.example\r\nContent-Type: text/plain\r\n\
                      Content-Length: 5\r\n\r\nhello";
        assert_eq!(String::from_utf8_lossy(target.request()), wanted);
    }

    #[test]
    fn a_request_that_could_smuggle_another_is_refused() {
        let header = |name, value| Target::builder("http://127.0.0.1/").header(name, value).build();
        for (name, value) in [
            ("X", "a\r\nY: b"),
            ("X", "a\nb"),
            ("X", "\0"),
            ("X Y", "a"),
            ("", "a"),
            ("X:", "a"),
            ("Content-Length", "5"),
            ("Transfer-Encoding", "chunked"),
            ("Expect", "100-continue"),
        ] {
            assert!(header(name, value).is_err(), "{name}: {value:?}");
        }
        assert!(header("X", "a\tb é").is_ok());
        let twice = Target::builder("http://127.0.0.1/").header("Host", "a").header("HOST", "b");
        assert!(twice.build().is_err());
        for method in ["", "GET /", "G\r\n", "CONNECT"] {
            assert!(Target::builder("http://127.0.0.1/").method(method).build().is_err(), "{method}");
        }
    }

    #[test]
    fn given_requests_are_sent_as_they_are_to_where_the_url_says() {
        let text = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\nGET /y HTTP/1.1\r\nHost: a\r\n\r\n";
        let given = |bytes: &[u8]| Target::builder("http://127.0.0.1:81/z").requests(bytes.to_vec()).build();
        let target = given(text).unwrap();
        assert_eq!((target.requests().len(), target.request()), (2, &text[..text.len() / 2]));
        assert_eq!(target.addr().to_string(), "127.0.0.1:81");
        let refused = given(&text[..text.len() - 1]).unwrap_err().to_string();
        assert!(refused.starts_with("request 2 of those given cannot be sent"), "{refused}");
    }

    #[test]
    fn a_unix_socket_takes_the_place_of_the_urls_host() {
        let over: Addr = "unix:/run/x.sock".parse().unwrap();
        let target = Target::builder("http://a.invalid/x").over(over).build().unwrap();
        assert_eq!(target.host(), "a.invalid");
        assert_eq!(target.addr().to_string(), "unix:/run/x.sock");
    }
}
