//! A record's view: everything that is said of it, worked out once and drawn by two writers.
//!
//! One file per record makes its view from plain data types; `text` and `page` draw any of them and know no record. A view
//! holds words as they are: each writer makes harmless what its reader would obey. Nothing here knows a width or a tag.

pub(crate) mod audit;
mod audit_here;
pub(crate) mod block;
pub(crate) mod boxes;
pub(crate) mod causal;
pub(crate) mod chart;
pub(crate) mod climb;
pub(crate) mod diagnosis;
pub(crate) mod difference;
pub(crate) mod doctor;
pub(crate) mod history;
pub(crate) mod judged;
pub(crate) mod load;
mod look;
pub(crate) mod measure;
pub(crate) mod profile;
pub(crate) mod sheet;
pub(crate) mod show;
pub(crate) mod specimen;
pub(crate) mod table;
pub(crate) mod words;

pub use look::{Look, Order, Orientation};
