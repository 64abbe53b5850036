//! Blocks of load with their clocks, and what a server's processes cost.

mod block;
pub mod cost;
