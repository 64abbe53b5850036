//! A folder as a site: `cargo run --release -p dyno-engine --example static_site -- FOLDER`, then
//! `curl -i --compressed http://127.0.0.1:8080/`. Files may be changed while it runs.

use dyno_engine::{Content, EngineError, Method, Server};

fn main() -> Result<(), EngineError> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    Server::new()
        .listen("127.0.0.1:8080")
        // A request may ask for a lifetime of at most a day: /style.css?maxage=86400
        .content("/", Content::new(folder).maxage_max_s(86_400))
        // Routes come before files.
        .route(Method::Get, "/hello/{name}", |request, reply| {
            reply.text(&format!("Hello, {}!\n", request.param("name").unwrap_or("nobody")))
        })
        .run()
}
