//! The shapes of requests that are counted and measured: what a wrk sends, what a benchmark, what a browser.
//!
//! The budget and the bench take them from here, so that a count and a time speak of the same bytes. A server that is
//! fast with one of them only is seen. Every request of a shape has the same answer. Nothing is sent here.

use crate::trouble::Trouble;

/// The host that all requests name. It is no server's own: all servers of a bench get the same bytes.
const HOST: &str = "127.0.0.1:8080";

/// Requests in one batch of the pipelined shapes, as many as other people's benchmarks send.
const BATCH: usize = 16;

/// Which of the different requests is the one of the equal ones: one as long as their mean, to a byte.
const EQUAL: usize = 11;

/// What one batch of requests looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    pub(crate) path: &'static str,
    /// The body of every right answer.
    pub(crate) body: &'static str,
    /// One batch; one request where nothing is pipelined.
    pub(crate) requests: Vec<String>,
}

impl Shape {
    /// Requests per batch.
    pub(crate) fn pipeline(&self) -> usize {
        self.requests.len()
    }

    /// The bytes of one batch.
    pub(crate) fn batch(&self) -> String {
        self.requests.concat()
    }

    /// Bytes of a request; of a batch of different ones their mean, rounded down: a batch's bytes divided by it are
    /// its requests.
    pub(crate) fn request_bytes(&self) -> usize {
        self.batch().len() / self.pipeline()
    }
}

/// All shapes.
pub(crate) fn all() -> Vec<Shape> {
    let different: Vec<String> = (0..BATCH).map(different).collect();
    let equal = vec![different[EQUAL].clone(); BATCH];
    vec![
        json("wrk", &[]),
        json("techempower", &TECHEMPOWER),
        json("browser", &BROWSER),
        plaintext("x16-equal", equal),
        plaintext("x16-different", different),
    ]
}

/// The shapes of a list of names, `wrk,browser`, in its order.
pub(crate) fn named(names: &str) -> Result<Vec<Shape>, Trouble> {
    let all = all();
    let known = || all.iter().map(|shape| shape.name).collect::<Vec<_>>().join(", ");
    let unknown = |name| Trouble::new(format!("there is no shape \"{name}\"; there are {}", known()));
    let shape = |name| all.iter().find(|shape| shape.name == name).cloned().ok_or_else(|| unknown(name));
    names.split(',').map(shape).collect()
}

fn json(name: &'static str, fields: &[&str]) -> Shape {
    let requests = vec![request("/json", fields)];
    Shape { name, path: "/json", body: "{\"message\":\"Hello, World!\"}", requests }
}

fn plaintext(name: &'static str, requests: Vec<String>) -> Shape {
    Shape { name, path: "/plaintext", body: "Hello, World!", requests }
}

/// A GET with `Host` first and then these field lines.
fn request(target: &str, fields: &[&str]) -> String {
    let lines: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
    format!("GET {target} HTTP/1.1\r\nHost: {HOST}\r\n{lines}\r\n")
}

/// What the TechEmpower benchmarks send for JSON.
const TECHEMPOWER: [&str; 2] = [
    "Accept: application/json,text/html;q=0.9,application/xhtml+xml;q=0.9,application/xml;q=0.8,*/*;q=0.7",
    "Connection: keep-alive",
];

/// What a browser sends when a page is opened; with `Host` twelve field lines.
const BROWSER: [&str; 11] = [
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36",
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8",
    "Accept-Language: en-GB,en;q=0.9,de;q=0.7",
    "Accept-Encoding: gzip, deflate, br",
    "Cookie: session=7c9e6679f4a1421b90d2b1c0aee2f0d4; csrf=e58ed763928c4155ac1f09fb3e6c4b52; \
     consent=necessary; theme=dark; language=en-GB; last=/en/news/2026",
    "Connection: keep-alive",
    "Upgrade-Insecure-Requests: 1",
    "Sec-Fetch-Dest: document",
    "Sec-Fetch-Mode: navigate",
    "Sec-Fetch-Site: same-origin",
    "Cache-Control: max-age=0",
];

/// The names of clients that the different requests come from, as if a proxy had gathered them on one connection.
const AGENTS: [&str; 4] = ["curl/8.11.", "okhttp/4.12.", "python-requests/2.32.", "Wget/1.24."];

/// One of the requests that all differ: in query, client and cookie, and a little in length.
fn different(index: usize) -> String {
    // A multiplicative hash (Fibonacci hashing): digits that repeat in no other request.
    let session = (index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let visits = (index + 1) * (index + 1) * 7;
    request(
        &format!("/plaintext?page={visits}&sort={}", ["new", "price", "rating"][index % 3]),
        &[
            &format!("User-Agent: {}{index}", AGENTS[index % AGENTS.len()]),
            "Accept: text/plain,text/html;q=0.9,*/*;q=0.7",
            &format!("Cookie: session={session:016x}; visits={visits}"),
            "Connection: keep-alive",
        ],
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use std::collections::BTreeSet;

    fn shape(name: &str) -> Shape {
        all().into_iter().find(|shape| shape.name == name).unwrap()
    }

    fn fields(request: &str) -> usize {
        request.trim_end().lines().count() - 1
    }

    #[test]
    fn the_shapes_have_the_sizes_that_they_are_known_for() {
        let of = |name: &str| {
            let shape = shape(name);
            (shape.pipeline(), fields(&shape.requests[0]), shape.request_bytes())
        };
        assert_eq!(of("wrk"), (1, 1, 44));
        assert_eq!(of("techempower"), (1, 3, 170));
        assert_eq!(of("browser"), (1, 12, 649));
        assert_eq!(of("x16-equal"), (16, 5, 214));
        assert_eq!(of("x16-different"), (16, 5, 213));
    }

    #[test]
    fn every_request_is_one_whole_get_of_its_path() {
        for shape in all() {
            for request in &shape.requests {
                let target = request.strip_prefix("GET ").unwrap().split(' ').next().unwrap();
                assert_eq!(target.split('?').next(), Some(shape.path), "{}", shape.name);
                assert_eq!(request.find("\r\n\r\n"), Some(request.len() - 4), "{}", shape.name);
                assert!(request.split("\r\n").all(|line| !line.contains(['\r', '\n'])), "{}", shape.name);
            }
        }
    }

    #[test]
    fn equal_requests_are_equal_and_no_two_different_ones_are() {
        let kinds = |name: &str| shape(name).requests.into_iter().collect::<BTreeSet<_>>().len();
        assert_eq!((kinds("x16-equal"), kinds("x16-different")), (1, BATCH));
        let lengths: Vec<usize> = shape("x16-different").requests.iter().map(String::len).collect();
        let (shortest, longest) = (*lengths.iter().min().unwrap(), *lengths.iter().max().unwrap());
        assert!((10..=30).contains(&(longest - shortest)), "{lengths:?}");
    }

    #[test]
    fn query_client_and_cookie_of_no_two_different_requests_are_equal() {
        let requests = shape("x16-different").requests;
        for part in ["GET ", "User-Agent: ", "Cookie: "] {
            let lines = requests.iter().map(|request| request.lines().find(|line| line.starts_with(part)));
            assert_eq!(lines.map(Option::unwrap).collect::<BTreeSet<_>>().len(), BATCH, "{part}");
        }
    }

    #[test]
    fn a_batch_divided_by_its_request_bytes_is_its_requests_and_the_first_alone_is_one() {
        for shape in all() {
            assert_eq!(shape.batch().len() / shape.request_bytes(), shape.pipeline(), "{}", shape.name);
            assert!(shape.requests[0].len() / shape.request_bytes() <= 1, "{}", shape.name);
        }
    }
}
