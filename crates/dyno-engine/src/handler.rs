//! Handlers that come with the engine: a file each, and the demonstration routes made of them.

mod echo;
mod hello;
mod json;
mod plaintext;

use crate::route::{RouteError, Router};
use dyno_proto::http1::request::Method;

/// The routes that `dyno serve` serves: `GET /json`, `GET /plaintext`, `POST /echo`, `GET /hello/{name}`.
///
/// # Errors
/// None that a test does not show first: the routes are fixed and do not collide.
pub fn demo() -> Result<Router, RouteError> {
    let mut router = Router::new();
    router.route(Method::Get, "/json", json::json)?;
    router.route(Method::Get, "/plaintext", plaintext::plaintext)?;
    router.route(Method::Post, "/echo", echo::echo)?;
    router.route(Method::Get, "/hello/{name}", hello::hello)?;
    Ok(router)
}
