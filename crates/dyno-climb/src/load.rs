//! The load on a server: what is asked, over how many connections, and what a right answer is.
//!
//! Plans and rungs name one; the meter makes it.

use std::collections::BTreeMap;

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
        let request = format!("{} {}", self.method, self.path);
        dyno_record::climb::Load { request, connections: self.connections, pipeline: self.pipeline }
    }
}
