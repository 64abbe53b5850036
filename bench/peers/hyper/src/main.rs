//! hyper 1 as a peer: `peer-hyper ADDR`, one thread. hyper writes Date itself.

use std::convert::Infallible;
use std::net::SocketAddr;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue, SERVER};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::Serialize;
use tokio::net::TcpListener;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addr: SocketAddr = std::env::args().nth(1).ok_or("usage: peer-hyper ADDR")?.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime, serve(addr))
}

async fn serve(addr: SocketAddr) -> Result<(), Box<dyn std::error::Error>> {
    let listener = TcpListener::bind(addr).await?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::task::spawn_local(async move {
            let mut http = http1::Builder::new();
            // One write for all replies of a pipelined read, as its benchmark entries ask for.
            http.pipeline_flush(true);
            // A client that goes away is no failure of the server.
            let _ = http.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
        });
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    Ok(match request.uri().path() {
        "/json" => match serde_json::to_vec(&Message { message: "Hello, World!" }) {
            Ok(body) => reply("application/json", Bytes::from(body)),
            Err(_) => status(StatusCode::INTERNAL_SERVER_ERROR),
        },
        "/plaintext" => reply("text/plain", Bytes::from_static(b"Hello, World!")),
        _ => status(StatusCode::NOT_FOUND),
    })
}

fn reply(content_type: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    let headers = response.headers_mut();
    headers.insert(SERVER, HeaderValue::from_static("hyper"));
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn status(code: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::new()));
    *response.status_mut() = code;
    response
}
