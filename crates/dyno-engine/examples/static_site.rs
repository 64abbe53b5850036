//! A folder as a site: `cargo run --release -p dyno-engine --example static_site -- FOLDER`, then
//! `curl -i --compressed http://127.0.0.1:8080/`. Files may be changed while it runs.

use dyno_engine::{Content, Host, Method, Redirect, Security, Server};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).unwrap_or_else(|| ".".into());
    Ok(server(folder.into())?.listen("127.0.0.1:8080").run()?)
}

pub(crate) fn server(folder: PathBuf) -> Result<Server, Box<dyn Error>> {
    let host = Host::any()
        .security(Security::Preset)
        .redirect(Redirect::new("/home", "/", 301)?)
        // While there is no such file, the status is said in words.
        .error_page(404, "404.html")?;
    Ok(Server::new()
        // A request may ask for a lifetime of at most a day: /style.css?maxage=86400
        .content("/", Content::new(folder).maxage_max_s(86_400))
        .host(host)
        // Routes come before files.
        .route(Method::Get, "/hello/{name}", |request, reply| {
            reply.text(&format!("Hello, {}!\n", request.param("name").unwrap_or("nobody")))
        }))
}
