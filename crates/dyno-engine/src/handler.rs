//! Handlers that come with the engine: a file each, and the demonstration routes made of them.

mod echo;
mod first_version;
mod hello;
mod json;
mod plaintext;

use crate::dials::Dials;
use crate::route::{RouteError, Router};
use dyno_proto::http1::request::Method;
use first_version::{FirstVersion, with};

/// The routes that `dyno serve` serves: `GET /json`, `GET /plaintext`, `POST /echo`, `GET /hello/{name}`. The dials
/// `headers`, `body` and `date` choose between these handlers and those that do what a first version does.
///
/// ```
/// # use dyno_engine::*;
/// let server = Server::new().router(handler::demo(&Dials::default())?);
/// # let _ = server;
/// # Ok::<(), RouteError>(())
/// ```
///
/// # Errors
/// None that a test does not show first: the routes are fixed and do not collide.
pub fn demo(dials: &Dials) -> Result<Router, RouteError> {
    let mut router = Router::new();
    if let Some(first) = FirstVersion::of(dials) {
        router.route(Method::Get, "/json", with(first, json::json, json::json_generic))?;
        router.route(
            Method::Get,
            "/plaintext",
            with(first, plaintext::plaintext, plaintext::plaintext_generic),
        )?;
        router.route(Method::Post, "/echo", with(first, echo::echo, echo::echo_generic))?;
        router.route(Method::Get, "/hello/{name}", with(first, hello::hello, hello::hello_generic))?;
        return Ok(router);
    }
    router.route(Method::Get, "/json", json::json)?;
    router.route(Method::Get, "/plaintext", plaintext::plaintext)?;
    router.route(Method::Post, "/echo", echo::echo)?;
    router.route(Method::Get, "/hello/{name}", hello::hello)?;
    Ok(router)
}
