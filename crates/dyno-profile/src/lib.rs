//! Profiles: how they are laid out as pictures and tables, compared, and read and written in the formats of others.
//!
//! The binary calls this and draws what comes out. Nothing here prints, reads a clock or asks the kernel.

pub mod diff;
pub mod export;
pub mod import;
pub mod layout;
pub mod name;
pub mod top;
pub mod tree;
