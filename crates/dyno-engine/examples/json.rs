//! Types as JSON, two ways: `cargo run --release -p dyno-engine --example json`, then
//! `curl http://127.0.0.1:8080/now` and
//! `curl -H 'Content-Type: application/json' -d '{"numbers":[1,2,4]}' http://127.0.0.1:8080/mean`.

use dyno_engine::{Encode, EngineError, JsonError, Method, Server, json};
use serde::{Deserialize, Serialize};

fn main() -> Result<(), EngineError> {
    server().listen("127.0.0.1:8080").run()
}

/// For the hot path: its keys are constants, and it writes itself straight into the send buffer.
#[derive(Encode)]
struct Message<'a> {
    message: &'a str,
    version: u32,
}

/// For ordinary use: whatever serde can read and write.
#[derive(Deserialize)]
struct Asked {
    numbers: Vec<f64>,
}

#[derive(Serialize)]
struct Mean {
    count: usize,
    mean: f64,
}

pub(crate) fn server() -> Server {
    Server::new()
        .route(Method::Get, "/now", |_request, reply| {
            reply.json(&Message { message: "Hello, World!", version: 1 })
        })
        .route(Method::Post, "/mean", json(|_request, asked: Asked| mean(&asked.numbers)))
}

fn mean(numbers: &[f64]) -> Result<Mean, JsonError> {
    match numbers.len() {
        0 => Err(JsonError::refused(422, "the mean of no numbers is not known")),
        count => Ok(Mean { count, mean: numbers.iter().sum::<f64>() / count as f64 }),
    }
}
