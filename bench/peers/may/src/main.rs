//! may_minihttp as a peer: `peer-may ADDR`, one worker. It writes Server and Date itself.

use std::io;

use bytes::BufMut;
use may_minihttp::{HttpServer, HttpService, Request, Response};
use serde::Serialize;

#[derive(Serialize)]
struct Message {
    message: &'static str,
}

#[derive(Clone)]
struct Routes;

impl HttpService for Routes {
    fn call(&mut self, request: Request<'_, '_, '_>, response: &mut Response<'_>) -> io::Result<()> {
        // may_minihttp hands out the whole target; everybody else's routes do not see the query.
        match request.path().split('?').next().unwrap_or_default() {
            "/json" => {
                response.header("Content-Type: application/json");
                let message = Message { message: "Hello, World!" };
                serde_json::to_writer(response.body_mut().writer(), &message)?;
            }
            "/plaintext" => {
                response.header("Content-Type: text/plain").body("Hello, World!");
            }
            _ => {
                response.status_code(404, "Not Found");
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let addr = std::env::args().nth(1).ok_or("usage: peer-may ADDR")?;
    may::config().set_workers(1);
    let server = HttpServer(Routes).start(addr)?;
    server.join().map_err(|_| "the accepting coroutine panicked")?;
    Ok(())
}
