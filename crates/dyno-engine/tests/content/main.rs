//! Folders over real sockets: whole files and parts, codings, conditions, names that must not be served, and changes.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;

mod account;
mod changes;
mod conditions;
mod folder;
mod hosts;
mod names;
mod parts;
mod whole;
