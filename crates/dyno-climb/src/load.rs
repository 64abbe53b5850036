//! The load on a server: what is asked, over how many connections, and what a right answer is.
//!
//! Plans and rungs name one; the meter makes it.

use std::collections::BTreeMap;

use dyno_record::digest::digest;
use serde::Deserialize;

/// A load on one server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LoadSpec {
    /// Path and query of the request.
    #[serde(default = "root_path")]
    pub path: String,
    /// Method.
    #[serde(default = "get")]
    pub method: String,
    /// Header fields added.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// Body of the request.
    #[serde(default)]
    pub body: String,
    /// Connections, all open at once.
    #[serde(default = "sixty_four")]
    pub connections: usize,
    /// Requests on the wire per connection.
    #[serde(default = "one")]
    pub pipeline: usize,
    /// The status of a right answer.
    #[serde(default = "two_hundred")]
    pub expect_status: u16,
    /// The body of a right answer; without it, the first answer's body.
    #[serde(default)]
    pub expect_body: Option<String>,
}

fn root_path() -> String {
    "/".into()
}

fn get() -> String {
    "GET".into()
}

fn sixty_four() -> usize {
    64
}

fn one() -> usize {
    1
}

fn two_hundred() -> u16 {
    200
}

impl Default for LoadSpec {
    fn default() -> Self {
        Self {
            path: root_path(),
            method: get(),
            headers: BTreeMap::new(),
            body: String::new(),
            connections: sixty_four(),
            pipeline: one(),
            expect_status: two_hundred(),
            expect_body: None,
        }
    }
}

impl LoadSpec {
    /// For the record.
    #[must_use]
    pub fn record(&self) -> dyno_record::climb::Load {
        dyno_record::climb::Load {
            request: format!("{} {}", self.method, self.path),
            request_digest: self.request_digest(),
            answer_digest: self.answer_digest(),
            connections: self.connections,
            pipeline: self.pipeline,
        }
    }

    /// What it is, to the last byte, for comparisons with other climbs.
    pub(crate) fn text(&self) -> String {
        let (request, answer) = (self.request_digest(), self.answer_digest());
        format!("{}, request {request}, right answer {answer}", self.record())
    }

    fn request_digest(&self) -> String {
        let fields = self.headers.iter().flat_map(|(name, value)| [name, value]);
        let all = [&self.method, &self.path].into_iter().chain(fields).chain([&self.body]);
        digest(all.map(|text| text.as_bytes()))
    }

    fn answer_digest(&self) -> String {
        let status = self.expect_status.to_string();
        digest([Some(&status), self.expect_body.as_ref()].into_iter().flatten().map(|text| text.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Planted fault: method, path and connections are all that a load is known by.
    #[test]
    fn loads_of_one_path_are_told_apart_by_headers_body_and_right_answer() {
        let plain = LoadSpec::default();
        let header = |name: &str| BTreeMap::from([("Accept-Encoding".to_owned(), name.to_owned())]);
        let gzip = LoadSpec { headers: header("gzip"), ..plain.clone() };
        let body = LoadSpec { body: "x".repeat(1_000_000), ..plain.clone() };
        let answer = LoadSpec { expect_body: Some(String::new()), ..plain.clone() };
        let digests = |load: &LoadSpec| [load.record().request_digest, load.record().answer_digest];
        assert_eq!(digests(&plain), digests(&LoadSpec { connections: 1, ..plain.clone() }));
        for other in [&gzip, &LoadSpec { headers: header("br"), ..plain.clone() }, &body] {
            assert_ne!(digests(other)[0], digests(&plain)[0]);
            assert_eq!(digests(other)[1], digests(&plain)[1]);
        }
        assert_ne!(digests(&answer)[1], digests(&plain)[1]);
        assert_eq!((gzip.record().to_string(), digests(&gzip).len()), (plain.record().to_string(), 2));
        assert_ne!(gzip.text(), plain.text());
    }
}
