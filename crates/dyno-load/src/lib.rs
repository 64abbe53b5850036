//! The load generator: sessions that run blocks.
//!
//! A [`Target`] is what is asked of whom, an [`Expect`] what a right answer is. A [`Session`] keeps connections to the
//! target open and runs short blocks of requests over them on the calling thread; a [`Crew`] does the same on several
//! CPUs. A climb runs hundreds of blocks, [`run::load`] one long one. Every answer is checked; a wrong one is an error
//! and never throughput. [`limit`] says whether the figure is the server's or the generator's own.
//!
//! The load is a closed loop: each connection sends its next request when the last one was answered. A connection that
//! the server announces to close is closed by this side at once, so that TIME_WAIT stands here and not at the server.
//!
//! ```no_run
//! use dyno_load::{BlockSpec, Expect, Session, SessionPlan, Target};
//!
//! let plan = SessionPlan {
//!     target: Target::get("http://127.0.0.1:8080/json")?,
//!     expect: Expect::same_body(),
//!     connections: 64,
//!     pipeline: 1,
//!     timeout_ns: 2_000_000_000,
//! };
//! let mut session = Session::open(&plan)?;
//! let report = session.block(&BlockSpec::default(), &mut |_edge| { /* read the server's clocks here */ });
//! assert_eq!(report.errors.total(), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod beside;
mod check;
mod client;
mod connections;
mod crew;
mod down;
mod heard;
pub mod limit;
mod paced;
mod report;
mod requests;
pub mod run;
mod session;
mod target;
mod template;

pub use beside::{Beside, Progress, Waited};
pub use check::{Body, Expect, WrongAnswer};
pub use crew::{Crew, Placement};
pub use paced::HeldBack;
pub use report::{
    BlockReport, BlockSpec, Edge, Errors, Loaded, OpenError, Percentile, SessionPlan, Unanswered, Unfinished,
};
pub use session::Session;
pub use target::{Target, TargetBuilder, TargetError};
