//! A server whose figures a scraper reads: `cargo run --release -p dyno-engine --example metrics`, then
//! `curl http://127.0.0.1:8080/` and `curl http://127.0.0.1:9100/metrics`.

use dyno_engine::{EngineError, Method, Server};

fn main() -> Result<(), EngineError> {
    server().listen("127.0.0.1:8080").metrics("127.0.0.1:9100").run()
}

pub(crate) fn server() -> Server {
    Server::new().route(Method::Get, "/", |_request, reply| reply.text("It counts.\n"))
}
