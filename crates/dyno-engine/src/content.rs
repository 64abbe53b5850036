//! Folders as content that is never computed twice: each file is read, encoded and described once, and served from a table.
//!
//! `settings` is what a user says; `scan` looks at the folder; `encode` makes and checks codings, `cache` keeps them from
//! start to start; `build` puts everything into an `image`, sealed memory that all workers share; `watch` does so again when
//! something changes; `load` makes a worker's table of an image, `tables` beside its loop; `answer` is what a
//! request gets. Building happens in a thread or process of its own, never where requests are answered.

mod answer;
mod build;
mod cache;
mod encode;
mod error;
mod image;
mod load;
mod scan;
mod settings;
mod tables;
mod watch;

pub(crate) use answer::{Answered, answer, error_page};
pub(crate) use build::Built;
pub use error::ContentError;
pub(crate) use load::{sites, table_of};
pub use settings::{Compress, Content, Mount, Watch};
pub(crate) use tables::Tables;
pub(crate) use watch::Builders;
