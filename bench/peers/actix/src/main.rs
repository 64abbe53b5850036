//! actix-web 4 as a peer: `peer-actix ADDR`, one worker. actix writes Date itself.

use actix_web::http::header::{ContentType, HeaderValue, SERVER};
use actix_web::{App, HttpResponse, HttpServer, get};
use serde::Serialize;

/// As its benchmark entries have it: room for the connections of a load test.
const BACKLOG: u32 = 1_024;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[get("/json")]
async fn json() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((SERVER, HeaderValue::from_static("actix")))
        .json(Message { message: "Hello, World!" })
}

#[get("/plaintext")]
async fn plaintext() -> HttpResponse {
    HttpResponse::Ok()
        .insert_header((SERVER, HeaderValue::from_static("actix")))
        .insert_header(ContentType::plaintext())
        .body("Hello, World!")
}

#[actix_web::main]
async fn main() -> std::io::Result<()> {
    let usage = || std::io::Error::other("usage: peer-actix ADDR");
    let addr = std::env::args().nth(1).ok_or_else(usage)?;
    let server = HttpServer::new(|| App::new().service(json).service(plaintext));
    server.workers(1).backlog(BACKLOG).bind(addr)?.run().await
}
