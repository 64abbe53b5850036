//! A server in ten lines: `cargo run --release -p dyno-engine --example hello`, then
//! `curl http://127.0.0.1:8080/hello/world`.

use dyno_engine::{EngineError, Method, Server};

fn main() -> Result<(), EngineError> {
    server().listen("127.0.0.1:8080").run()
}

pub(crate) fn server() -> Server {
    Server::new().route(Method::Get, "/hello/{name}", |request, reply| {
        let name = request.param("name").unwrap_or("nobody");
        reply.text(&format!("Hello, {name}!\n"))
    })
}
