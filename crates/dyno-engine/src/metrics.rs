//! `/metrics` and `/healthz`: what the workers have counted, served by a process of its own.
//!
//! The supervisor forks that process beside the workers (`supervisor/scraped.rs`): a worker like theirs with these two
//! routes, a listener of its own and no rights. It reads shared memory and /proc; no worker is asked anything.

mod accept;
mod board;
mod figures;
#[cfg(test)]
mod grammar;
mod page;

use crate::config::{Limits, SECOND_NS};
use crate::reply::Reply;
use crate::request::Request;
use crate::response::Response;
use crate::route::{RouteError, Router};
pub(crate) use board::Board;
use dyno_proto::http1::request::Method;
use page::Page;

/// The two routes.
pub(crate) fn routes(board: Board) -> Result<Router, RouteError> {
    let mut router = Router::new();
    router.route(Method::Get, "/metrics", move |request, reply| metrics(board, request, reply))?;
    router.route(Method::Get, "/healthz", move |_request, reply| healthz(board, reply))?;
    Ok(router)
}

/// A scraper asks once in some seconds; more connections than these are no scrapers.
pub(crate) fn limits() -> Limits {
    Limits {
        connections_max: 64,
        body_bytes_max: 0,
        head_bytes_max: 16 << 10,
        buffer_bytes_max: 1 << 20,
        outstanding_max: 1,
        head_ns: 5 * SECOND_NS,
        // Longer than scrapers pause, so that they keep their connection.
        idle_ns: 120 * SECOND_NS,
        write_ns: 10 * SECOND_NS,
        ..Limits::default()
    }
}

fn metrics(board: Board, request: &Request<'_>, reply: Reply<'_>) -> Response {
    let form = accept::form(request.header("accept"));
    let mut page = Page::new(form);
    figures::write(&mut page, board);
    reply.header("Cache-Control", "no-store").bytes(form.content_type(), page.end().as_bytes())
}

/// 200 while every worker accepts connections; 503 with the reason otherwise, in a drain above all.
fn healthz(board: Board, reply: Reply<'_>) -> Response {
    let reply = reply.header("Cache-Control", "no-store");
    match board.ailment() {
        None => reply.text("ok\n"),
        Some(why) => reply.status(503).text(&why),
    }
}
