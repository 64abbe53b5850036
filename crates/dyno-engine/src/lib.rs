//! The thread-per-core HTTP server: HTTP/1.1 on epoll, one loop per CPU that owns everything it touches.
//!
//! The same worker runs in two ways: [`Server`] runs workers as threads of an embedding program, [`master::run`]
//! runs them as processes under a small parent, which is what `dyno serve` does. [`floor`] is the smallest loop that
//! answers, the yardstick of both. Every choice that matters for speed is a dial ([`Dials`]) with a name and words, so
//! that it can be turned and measured.
//!
//! The path of a request: socket → `worker` → `core` → `http1` (parse, route, handler, frame) → `outbox` → socket. The library never prints, never exits and reads no arguments.
//!
//! ```no_run
//! use dyno_engine::{Method, Server};
//!
//! Server::new()
//!     .listen("127.0.0.1:8080")
//!     .route(Method::Get, "/hello/{name}", |request, reply| reply.text(request.param("name").unwrap_or("nobody")))
//!     .run()?;
//! # Ok::<(), dyno_engine::EngineError>(())
//! ```

#![deny(missing_docs)]

mod account;
mod addresses;
mod answer;
mod asked;
mod budget;
mod clients;
mod config;
mod conn;
mod content;
mod control;
mod core;
mod dials;
mod draining;
mod error;
mod error_log;
mod fault;
mod fetcher;
mod field;
mod file;
pub mod floor;
mod foreign;
mod gate;
pub mod handler;
mod heads;
mod host;
mod hosts;
mod http1;
mod json;
mod kernel;
mod later;
mod ledger;
mod listen;
mod log;
mod mailbox;
pub mod master;
mod meter;
mod metrics;
mod neighbours;
mod orders;
mod outbox;
mod params;
mod pool;
mod queue;
mod reply;
mod request;
mod response;
mod route;
mod sandbox;
mod scratch;
#[cfg(test)]
mod scripted;
mod seam;
mod segment;
mod server;
mod shared;
mod stats;
pub mod supervisor;
mod table;
mod timer;
mod upload;
mod worker;

#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code))]
#[path = "../tests/simulator/model.rs"]
mod model;
#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code, unreachable_pub))]
#[path = "../tests/simulator/mod.rs"]
mod simulator;
#[cfg(test)]
#[path = "../tests/strictness/core.rs"]
mod strictness;
#[cfg(any(test, fuzzing))]
#[cfg_attr(fuzzing, allow(dead_code))]
#[path = "../tests/simulator/traffic.rs"]
mod traffic;

#[cfg(fuzzing)]
#[doc(hidden)]
pub use simulator::fuzzed::simulate;

pub use account::{ReplyBytes, account};
pub use answer::Answer;
pub use clients::{AddressLimits, Clients, ToldBy};
pub use config::{Config, DRAIN_NS_DEFAULT, HAND_OVER_NS_DEFAULT, Limits, RETIRE_NS_DEFAULT};
pub use content::{Compress, Content, ContentError, Mount, Watch};
pub use dials::{
    About, Body, BusyPoll, Calls, Congestion, Date, Dial, DialError, Dials, Headers, Log, Pin, Read, Replies,
    Reuseport, Scope, Send, Spin, Trigger, Workers,
};
pub use dyno_json_derive::Encode;
pub use dyno_proto::client::{Network, NetworkError};
pub use dyno_proto::http1::Method;
pub use dyno_proto::json::Encode;
pub use dyno_sys::socket::{Addr, AddrError};
pub use dyno_sys::user::Identity;
pub use error::EngineError;
pub use error_log::{ErrorLog, Level, LevelError};
pub use file::FilePart;
pub use host::{Host, Security};
pub use hosts::{HostError, Redirect};
pub use json::{Json, JsonError, json};
pub use later::Responder;
pub use log::{LogFormat, LogFormatError};
pub use mailbox::Waker;
pub use pool::{Pool, PoolCounts, PoolSize};
pub use reply::Reply;
pub use request::Request;
pub use response::{Filled, Response, Source};
pub use route::{Begin, Handler, RouteError, Router};
pub use sandbox::Sandbox;
pub use server::{Running, Server};
pub use shared::Shared;
pub use stats::Counts;
pub use supervisor::Drained;
pub use upload::{BodyError, Flow, Upload};
