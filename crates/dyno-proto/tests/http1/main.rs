//! The readers of HTTP/1.1 against tables, limits, an oracle and chance: always at every cut.
#![allow(clippy::unwrap_used)]

mod chunk_table;
mod fuzz;
mod oracle;
mod request_blocks;
mod request_field_table;
mod request_limits;
mod request_line_table;
mod response_table;
mod support;
